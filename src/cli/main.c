/* The program: finds the command, reads its settings, runs it, and reports an error once. */
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/outputs.h"
#include "config/describe.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_WRONG_CALL = 2 };

static int report(const struct fc_error *error)
{
	fprintf(stderr, "flatcake: %s\n", error->text[0] != '\0' ? error->text : fc_code_text(error->code));
	return error->code == FC_EINVAL || error->code == FC_ENOENT ? EXIT_WRONG_CALL : EXIT_FAILED;
}

/* Output that did not reach its file is a failure, also when the command itself went well. */
static int finish_output(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	perror("flatcake: standard output");
	return EXIT_FAILED;
}

static int unknown_command(const char *name)
{
	fprintf(stderr, "flatcake: unknown command \"%s\"; commands:", name);
	for (size_t row = 0; fc_command_at(row) != NULL; row++)
		fprintf(stderr, " %s", fc_command_at(row)->name);
	fputs(" help\n", stderr);
	return EXIT_WRONG_CALL;
}

static int help(const char *topic)
{
	if (topic == NULL) {
		fc_help_program(stdout);
	} else if (strcmp(topic, "manual") == 0) {
		fc_help_manual(stdout);
	} else if (strcmp(topic, "policies") == 0) {
		fc_help_policies(stdout);
	} else {
		const struct fc_command *command = fc_command_find(topic);
		if (command == NULL)
			return unknown_command(topic);
		fc_help_command(command, stdout);
	}
	return EXIT_DONE;
}

static bool is_help(const char *argument)
{
	return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

static bool asks_for_help(int count, char *const *arguments)
{
	for (int index = 0; index < count && strcmp(arguments[index], "--") != 0; index++) {
		if (is_help(arguments[index]))
			return true;
	}
	return false;
}

static int check_argument_count(const struct fc_command *command, const struct fc_config *config,
				struct fc_error *error)
{
	char usage[128];
	fc_help_usage(command, usage, sizeof(usage));
	if (config->argument_count > command->argument_max)
		return fc_error_set(error, FC_EINVAL, "%s: unexpected argument \"%s\"; usage: %s", command->name,
				    config->arguments[command->argument_max], usage);
	if (config->argument_count < command->argument_min)
		return fc_error_set(error, FC_EINVAL, "%s: an argument is missing; usage: %s", command->name, usage);
	return FC_OK;
}

static int run(const struct fc_command *command, int argument_count, char *const *arguments)
{
	struct fc_config config;
	struct fc_config_problem problem;
	struct fc_config_sources sources = {command->bit, argument_count, arguments, environ};
	int status = EXIT_DONE;
	int code = fc_config_load(&config, &sources, &problem);
	if (code == FC_OK)
		code = check_argument_count(command, &config, &problem.error);
	if (code == FC_OK)
		code = fc_outputs_check(&config, &problem.error);
	if (code == FC_OK) {
		code = command->run(&config, &problem.error);
		problem.error.code = code;
	}
	if (code != FC_OK) {
		fflush(stdout);
		status = report(&problem.error);
		if (problem.allowed[0] != '\0') {
			fputs("allowed:\n", stderr);
			fc_describe_wrapped(problem.allowed, 2, 0, stderr);
		}
	}
	fc_config_free(&config);
	return status;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fc_help_program(stderr);
		return EXIT_WRONG_CALL;
	}
	if (strcmp(argv[1], "help") == 0 || is_help(argv[1]))
		return finish_output(help(argc > 2 ? argv[2] : NULL));
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		printf("flatcake %d.%d.%d\n", FC_VERSION_MAJOR, FC_VERSION_MINOR, FC_VERSION_PATCH);
		return finish_output(EXIT_DONE);
	}
	const struct fc_command *command = fc_command_find(argv[1]);
	if (command == NULL)
		return unknown_command(argv[1]);
	if (asks_for_help(argc - 2, argv + 2))
		return finish_output(help(command->name));
	return finish_output(run(command, argc - 2, argv + 2));
}
