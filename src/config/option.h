/* The option table: one row for each setting of the program. Readers of flags, variables and YAML, the help and the
 * manual page all walk it. See config.h for why. */
#ifndef FC_CONFIG_OPTION_H
#define FC_CONFIG_OPTION_H

#include "config/config.h"

enum fc_option_type {
	FC_OPTION_SIZE,     /* uint64_t, bytes: 4096, 512M, 4GiB */
	FC_OPTION_COUNT,    /* uint64_t: 12 */
	FC_OPTION_DURATION, /* uint64_t, nanoseconds: 5ms, 30s */
	FC_OPTION_RATIO,    /* double: 0.8 */
	FC_OPTION_RATE,     /* double: 2.5, or "max" for INFINITY */
	FC_OPTION_CHOICE,   /* int, the index into `choices` */
	FC_OPTION_BOOL,     /* bool: on, off */
	FC_OPTION_SWITCH,   /* bool that as a flag needs no value */
	FC_OPTION_TEXT,     /* const char * */
};

/* A file that the command writes at its end, or - for standard output. */
enum fc_output_kind {
	FC_OUTPUT_NONE,
	FC_OUTPUT_REPORT, /* says what a run found; one that is there is replaced */
	FC_OUTPUT_KEPT,   /* read by later runs, perhaps edited by hand: replaced only with --force */
};

struct fc_option {
	const char *name; /* as a flag, without the dashes; the other two names are made from it */
	const char *value_name;
	enum fc_option_type type;
	size_t field_offset;      /* in struct fc_config */
	unsigned commands;        /* enum fc_command_bit; two rows may share a name if no command has both */
	const char *default_text; /* NULL: the field stays NULL */
	const char *help;
	uint64_t min, max;           /* SIZE, COUNT, DURATION */
	double ratio_min, ratio_max; /* RATIO, RATE */
	const char *const *choices;  /* CHOICE, NULL at the end */
	bool is_command_line_only;   /* makes no sense inside the YAML file */
	enum fc_output_kind output;  /* TEXT */
};

/* Row `index`, or NULL behind the last. */
const struct fc_option *fc_option_at(size_t index);

/* Where a setting was found; decides how its names are spelled. */
enum fc_option_spelling {
	FC_SPELLING_FLAG,     /* --block-tokens */
	FC_SPELLING_VARIABLE, /* FLATCAKE_BLOCK_TOKENS */
	FC_SPELLING_KEY,      /* block_tokens */
};

#define FC_OPTION_NAME_BYTES 48

/* Writes an option's name in one of its spellings. */
void fc_option_spell(const struct fc_option *option, enum fc_option_spelling spelling, char name[FC_OPTION_NAME_BYTES]);

/* The row whose name in this spelling is the given text, preferably the one that `command` takes; NULL if there is
 * none. */
const struct fc_option *fc_option_find(enum fc_option_spelling spelling, const char *name, size_t name_len,
				       enum fc_command_bit command);

/* The known name that looks most like a mistyped one, or NULL when none comes near. */
const struct fc_option *fc_option_suggest(enum fc_option_spelling spelling, const char *name, size_t name_len,
					  unsigned commands);

/* What values an option takes, as half a sentence ("a size from 4KiB to 1GiB, ..."). */
void fc_option_describe(const struct fc_option *option, char *text, size_t text_bytes);

/* Parses `value` and sets the option's field. `place` ("--memory", "conf.yaml:3: memory") opens the error's sentence. A
 * text is not copied. */
int fc_option_set(const struct fc_option *option, const char *value, struct fc_config *config, const char *place,
		  struct fc_error *error) FC_MUST_USE;

/* The same for rows of other tables, whose offsets are those of a struct of their own. */
int fc_option_set_in(const struct fc_option *option, const char *value, void *settings, const char *place,
		     struct fc_error *error) FC_MUST_USE;

/* FC_EINVAL for an option on the command line that has no effect beside the others (modes.c). */
int fc_config_check_modes(const struct fc_config *config, struct fc_error *error) FC_MUST_USE;

/* Reads a YAML file into `config`. */
int fc_config_read_yaml(struct fc_config *config, const char *path, struct fc_config_problem *problem) FC_MUST_USE;

struct fc_pair;

/* One line of the list `namespaces` in flatcaked's file (namespaces.c), and what can be said once all are there. */
int fc_config_namespace_pair(struct fc_config *config, const char *path, const struct fc_pair *pair,
			     struct fc_config_problem *problem) FC_MUST_USE;
int fc_config_namespaces_check(const struct fc_config *config, const char *path,
			       struct fc_config_problem *problem) FC_MUST_USE;

/* Row `index` of what an entry of `namespaces` takes, or NULL behind the last: for the manual page. */
const struct fc_option *fc_config_namespace_option(size_t index);

/* Writes the sentence for an unknown name, with a suggestion, and the list of names that exist. Returns FC_ENOENT. */
int fc_config_unknown(struct fc_config_problem *problem, const char *place, enum fc_option_spelling spelling,
		      const char *name, size_t name_len, enum fc_command_bit command);

#endif
