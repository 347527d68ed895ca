/* What `flatcake help` and `flatcake help COMMAND` print. */
#include "cli/help.h"

#include "config/describe.h"

void fc_help_program(FILE *file)
{
	fputs("FlatCake keeps the attention KV cache of LLM servers, in memory and on SSD as peers.\n\n"
	      "usage: flatcake COMMAND [options] [arguments]\n\ncommands:\n",
	      file);
	for (size_t row = 0; fc_command_at(row) != NULL; row++)
		fprintf(file, "  %-10s %s\n", fc_command_at(row)->name, fc_command_at(row)->summary);
	fputs("\n  flatcake help COMMAND   a command's options\n"
	      "  flatcake help policies  what --policy and --set take\n"
	      "  flatcake help manual    the manual page, for `man -l -`\n"
	      "  flatcake --version\n\n"
	      "Settings come from a YAML file (--config FILE), FLATCAKE_... variables and options; the later wins.\n",
	      file);
}

void fc_help_usage(const struct fc_command *command, char *text, size_t text_bytes)
{
	snprintf(text, text_bytes, "flatcake %s [options]%s%s", command->name, command->arguments[0] != '\0' ? " " : "",
		 command->arguments);
}

void fc_help_command(const struct fc_command *command, FILE *file)
{
	char usage[128];
	fc_help_usage(command, usage, sizeof(usage));
	fprintf(file, "usage: %s\n\n", usage);
	fprintf(file, "%s\n\noptions, with their defaults:\n", command->summary);
	for (size_t row = 0; fc_option_at(row) != NULL; row++) {
		if ((fc_option_at(row)->commands & command->bit) != 0)
			fc_describe_help(fc_option_at(row), file);
	}
	fputs("\nSizes: bytes, or with K, M, G or T (times 1024), such as 4GiB. Durations: 5ms, 30s, 2min.\n"
	      "Each option is also a variable (FLATCAKE_BLOCK_TOKENS) and a key of the --config file (block_tokens).\n",
	      file);
}
