#include "config/describe.h"

#include <string.h>

#define LINE_CHARACTERS 100
#define NAME_CHARACTERS 34

/* Bytes of what the line may not be broken in: a word, and with a number also what it counts ("5.2 % of" is two). */
static int piece_bytes(const char *text)
{
	size_t word = strcspn(text, " ");
	bool is_number = text[0] >= '0' && text[0] <= '9' && strspn(text, "0123456789.,") == word;
	if (is_number && text[word] == ' ' && text[word + 1] != '\0' && text[word + 1] != ' ')
		word += 1 + strcspn(text + word + 1, " ");
	return (int)word;
}

void fc_describe_wrapped(const char *text, int indent, int column, FILE *file)
{
	bool is_line_start = true;
	while (*text != '\0') {
		int word_len = piece_bytes(text);
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

void fc_describe_help(const struct fc_option *option, FILE *file)
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
	fc_describe_wrapped(text, NAME_CHARACTERS, column, file);
}

void fc_describe_roff(const char *text, FILE *file)
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

void fc_describe_manual(const struct fc_option *option, enum fc_option_spelling spelling, FILE *file)
{
	char name[FC_OPTION_NAME_BYTES], allowed[256];
	fc_option_spell(option, spelling, name);
	fc_option_describe(option, allowed, sizeof(allowed));
	fputs(".TP\n\\fB", file);
	fc_describe_roff(name, file);
	fputs("\\fR", file);
	if (option->value_name != NULL)
		fprintf(file, " \\fI%s\\fR", option->value_name);
	fputc('\n', file);
	fc_describe_roff(option->help, file);
	fputs(".\n", file);
	if (option->type != FC_OPTION_TEXT) {
		fputs("Allowed: ", file);
		fc_describe_roff(allowed, file);
		fputs(".\n", file);
	}
	if (option->default_text != NULL) {
		fputs("Default: \\fB", file);
		fc_describe_roff(option->default_text, file);
		fputs("\\fR\n.br\n", file);
	}
}

void fc_describe_settings(unsigned commands, FILE *file)
{
	size_t row = 0;
	while (fc_option_at(row + 1) != NULL && (fc_option_at(row)->commands & commands) == 0)
		row++;
	char key[FC_OPTION_NAME_BYTES], variable[FC_OPTION_NAME_BYTES];
	fc_option_spell(fc_option_at(row), FC_SPELLING_KEY, key);
	fc_option_spell(fc_option_at(row), FC_SPELLING_VARIABLE, variable);
	fprintf(file,
		".SH SETTINGS\nEach option can also stand in the environment, in capitals behind FLATCAKE_ (%s), and "
		"in the\n"
		"YAML file that \\-\\-config names, with _ for \\- (%s). The file yields to the environment, and that "
		"to options.\n"
		"Unknown names, repeated keys and values that do not fit stop the program.\n",
		variable, key);
}
