/* The commands of the program. Each lives in a file of its own, src/cli/COMMAND.c, and has a row in commands.c. */
#ifndef FC_CLI_COMMANDS_H
#define FC_CLI_COMMANDS_H

#include "config/config.h"

struct fc_command {
	const char *name;
	enum fc_command_bit bit;
	const char *summary;
	const char *arguments; /* as the usage line shows them, "" for none */
	int argument_min;
	int argument_max;
	/* Prints its result on standard output and returns 0, or a negative FC_E... code with the reason in `error`. */
	int (*run)(const struct fc_config *config, struct fc_error *error);
};

/* Row `index`, or NULL behind the last. */
const struct fc_command *fc_command_at(size_t index);
const struct fc_command *fc_command_find(const char *name);

int fc_command_analyze(const struct fc_config *config, struct fc_error *error) FC_MUST_USE;
int fc_command_bench(const struct fc_config *config, struct fc_error *error) FC_MUST_USE;
int fc_command_doctor(const struct fc_config *config, struct fc_error *error) FC_MUST_USE;
int fc_command_gen(const struct fc_config *config, struct fc_error *error) FC_MUST_USE;
int fc_command_replay(const struct fc_config *config, struct fc_error *error) FC_MUST_USE;
int fc_command_sessions(const struct fc_config *config, struct fc_error *error) FC_MUST_USE;
int fc_command_simulate(const struct fc_config *config, struct fc_error *error) FC_MUST_USE; /* replay --simulate */
int fc_command_stat(const struct fc_config *config, struct fc_error *error) FC_MUST_USE;
int fc_command_top(const struct fc_config *config, struct fc_error *error) FC_MUST_USE;
int fc_command_tune(const struct fc_config *config, struct fc_error *error) FC_MUST_USE;
int fc_command_verify(const struct fc_config *config, struct fc_error *error) FC_MUST_USE;

#endif
