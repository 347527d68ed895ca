/* The manual page. Its option sections come from the table, so that no option can be missing from it; a test compares
 * packaging/flatcake.1 with what this prints, and `make man` writes that file anew. */
#include "cli/help.h"

#include "config/option.h"

#include <string.h>

/* Text as roff takes it: hyphens and backslashes escaped, no line that starts with a request. */
static void print_escaped(const char *text, FILE *file)
{
	for (; *text != '\0'; text++) {
		if (*text == '-' || *text == '\\')
			fputc('\\', file);
		if (*text == '\\')
			fputc('e', file);
		else
			fputc(*text, file);
	}
}

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
		print_escaped(command->summary, file);
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
	char name[FC_OPTION_NAME_BYTES], allowed[256];
	fc_option_spell(option, FC_SPELLING_FLAG, name);
	fc_option_describe(option, allowed, sizeof(allowed));
	fputs(".TP\n\\fB", file);
	print_escaped(name, file);
	fputs("\\fR", file);
	if (option->value_name != NULL)
		fprintf(file, " \\fI%s\\fR", option->value_name);
	fputc('\n', file);
	print_escaped(option->help, file);
	fputs(".\n", file);
	if (option->type != FC_OPTION_TEXT) {
		fputs("Allowed: ", file);
		print_escaped(allowed, file);
		fputs(".\n", file);
	}
	if (option->default_text != NULL) {
		fputs("Default: \\fB", file);
		print_escaped(option->default_text, file);
		fputs("\\fR\n.br\n", file);
	}
	print_option_commands(option, file);
}

static void print_settings(FILE *file)
{
	char key[FC_OPTION_NAME_BYTES], variable[FC_OPTION_NAME_BYTES];
	fc_option_spell(fc_option_at(0), FC_SPELLING_KEY, key);
	fc_option_spell(fc_option_at(0), FC_SPELLING_VARIABLE, variable);
	fprintf(file,
		".SH SETTINGS\nEach option can also stand in the environment, in capitals behind FLATCAKE_ (%s), and "
		"in the\n"
		"YAML file that \\-\\-config names, with _ for \\- (%s). The file yields to the environment, and that "
		"to options.\n"
		"Unknown names, repeated keys and values that do not fit stop the program.\n",
		variable, key);
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
	print_settings(file);
	fputs(".SH EXIT STATUS\n0: done. 1: the command failed; standard error says why. 2: the call was wrong.\n",
	      file);
}
