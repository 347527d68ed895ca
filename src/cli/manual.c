/* The manual page. Its option sections come from the table, so that no option can be missing from it; a test compares
 * packaging/flatcake.1 with what this prints, and `make man` writes that file anew. */
#include "cli/help.h"

#include "config/describe.h"

static void print_head(FILE *file)
{
	fprintf(file,
		".TH FLATCAKE 1 \"\" \"FlatCake %d.%d.%d\" \"User Commands\"\n"
		".SH NAME\nflatcake \\- keep the attention KV cache of LLM servers in memory and on SSD as peers\n"
		".SH SYNOPSIS\n",
		FC_VERSION_MAJOR, FC_VERSION_MINOR, FC_VERSION_PATCH);
	fputs(".B flatcake\n.I COMMAND\n[\\fIoptions\\fR] [\\fIarguments\\fR]\n.br\n.B flatcake "
	      "help\n[\\fICOMMAND\\fR]\n",
	      file);
	fputs(".SH DESCRIPTION\nFlatCake stores each block of KV once, in memory or on SSD, where it stays.\n"
	      "This program replays request traces through a store, generates such traces, measures and checks "
	      "stores,\n"
	      "and says what a machine offers to them.\n",
	      file);
}

static void print_commands(FILE *file)
{
	fputs(".SH COMMANDS\n", file);
	for (size_t row = 0; fc_command_at(row) != NULL; row++) {
		const struct fc_command *command = fc_command_at(row);
		fprintf(file, ".TP\n.B %s\n", command->name);
		if (command->arguments[0] != '\0')
			fprintf(file, ".I %s\n.br\n", command->arguments);
		fc_describe_roff(command->summary, file);
		fputs(".\n", file);
	}
}

static void print_option_commands(const struct fc_option *option, FILE *file)
{
	const char *separator = "Commands: ";
	for (size_t row = 0; fc_command_at(row) != NULL; row++) {
		if ((option->commands & fc_command_at(row)->bit) == 0)
			continue;
		fprintf(file, "%s%s", separator, fc_command_at(row)->name);
		separator = ", ";
	}
	fputs(".\n", file);
}

static bool has_command(const struct fc_option *option)
{
	for (size_t row = 0; fc_command_at(row) != NULL; row++) {
		if ((option->commands & fc_command_at(row)->bit) != 0)
			return true;
	}
	return false;
}

static void print_option(const struct fc_option *option, FILE *file)
{
	fc_describe_manual(option, FC_SPELLING_FLAG, file);
	print_option_commands(option, file);
}

void fc_help_manual(FILE *file)
{
	print_head(file);
	print_commands(file);
	fputs(".SH OPTIONS\n", file);
	for (size_t row = 0; fc_option_at(row) != NULL; row++) {
		if (has_command(fc_option_at(row)))
			print_option(fc_option_at(row), file);
	}
	fc_describe_settings(~(unsigned)FC_COMMAND_DAEMON, file);
	fputs(".SH EXIT STATUS\n0: done. 1: the command failed; standard error says why. 2: the call was wrong.\n",
	      file);
}
