/* What `flatcake help` and `flatcake help COMMAND` print. */
#include "cli/help.h"

#include "config/option.h"

#include <string.h>

#define LINE_CHARACTERS 100
#define NAME_CHARACTERS 34

void fc_help_wrapped(const char *text, int indent, int column, FILE *file)
{
	bool is_line_start = true;
	while (*text != '\0') {
		int word_len = (int)strcspn(text, " ");
		if (!is_line_start && column + 1 + word_len > LINE_CHARACTERS) {
			fputc('\n', file);
			column = 0;
			is_line_start = true;
		}
		int spaces = is_line_start ? indent - column : 1;
		fprintf(file, "%*s%.*s", spaces, "", word_len, text);
		column += spaces + word_len;
		is_line_start = false;
		text += word_len;
		text += strspn(text, " ");
	}
	fputc('\n', file);
}

void fc_help_program(FILE *file)
{
	fputs("FlatCake keeps the attention KV cache of LLM servers, in memory and on SSD as peers.\n\n"
	      "usage: flatcake COMMAND [options] [arguments]\n\ncommands:\n",
	      file);
	for (size_t row = 0; fc_command_at(row) != NULL; row++)
		fprintf(file, "  %-10s %s\n", fc_command_at(row)->name, fc_command_at(row)->summary);
	fputs("\n  flatcake help COMMAND   a command's options\n"
	      "  flatcake help manual    the manual page, for `man -l -`\n"
	      "  flatcake --version\n\n"
	      "Settings come from a YAML file (--config FILE), FLATCAKE_... variables and options; the later wins.\n",
	      file);
}

static void print_option(const struct fc_option *option, FILE *file)
{
	char name[FC_OPTION_NAME_BYTES], text[512], preset[64] = "";
	fc_option_spell(option, FC_SPELLING_FLAG, name);
	int column = fprintf(file, "  %s%s%s", name, option->value_name != NULL ? " " : "",
			     option->value_name != NULL ? option->value_name : "");
	if (column >= NAME_CHARACTERS) {
		fputc('\n', file);
		column = 0;
	}
	if (option->default_text != NULL && option->type != FC_OPTION_SWITCH)
		snprintf(preset, sizeof(preset), " [%s]", option->default_text);
	snprintf(text, sizeof(text), "%s%s", option->help, preset);
	fc_help_wrapped(text, NAME_CHARACTERS, column, file);
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
			print_option(fc_option_at(row), file);
	}
	fputs("\nSizes: bytes, or with K, M, G or T (times 1024), such as 4GiB. Durations: 5ms, 30s, 2min.\n"
	      "Each option is also a variable (FLATCAKE_BLOCK_TOKENS) and a key of the --config file (block_tokens).\n",
	      file);
}
