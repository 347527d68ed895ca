/* What to say of a name that does not exist: the nearest one that does, and the list of all. */
#include "base/check.h"
#include "config/option.h"

#include <stdio.h>
#include <string.h>

#define COMPARED_BYTES_MAX FC_OPTION_NAME_BYTES

/* Letters to insert, delete or replace to turn one name into the other (Levenshtein), computed row by row. */
static size_t edit_distance(const char *from, size_t from_len, const char *to, size_t to_len)
{
	size_t row[COMPARED_BYTES_MAX + 1];
	for (size_t column = 0; column <= to_len; column++)
		row[column] = column;
	for (size_t line = 1; line <= from_len; line++) {
		size_t diagonal = row[0];
		row[0] = line;
		for (size_t column = 1; column <= to_len; column++) {
			size_t replaced = diagonal + (from[line - 1] != to[column - 1]);
			diagonal = row[column];
			size_t shorter = row[column] < row[column - 1] ? row[column] : row[column - 1];
			row[column] = replaced < shorter + 1 ? replaced : shorter + 1;
		}
	}
	return row[to_len];
}

const struct fc_option *fc_option_suggest(enum fc_option_spelling spelling, const char *name, size_t name_len,
					  unsigned commands)
{
	if (name_len > COMPARED_BYTES_MAX)
		return NULL;
	const struct fc_option *nearest = NULL;
	size_t nearest_distance = 4;
	for (size_t row = 0; fc_option_at(row) != NULL; row++) {
		const struct fc_option *option = fc_option_at(row);
		if ((option->commands & commands) == 0)
			continue;
		char spelled[FC_OPTION_NAME_BYTES];
		fc_option_spell(option, spelling, spelled);
		size_t distance = edit_distance(name, name_len, spelled, strlen(spelled));
		/* a name of which more than half is wrong is another name; two swapped letters count as two wrong ones
		 */
		if (distance < nearest_distance && distance * 2 <= strlen(option->name) + 1) {
			nearest = option;
			nearest_distance = distance;
		}
	}
	return nearest;
}

static bool is_listed(size_t row, enum fc_option_spelling spelling, unsigned commands)
{
	const struct fc_option *option = fc_option_at(row);
	return (option->commands & commands) != 0 && !(spelling == FC_SPELLING_KEY && option->is_command_line_only);
}

/* Commands may have options of the same name. */
static bool is_listed_before(size_t row, enum fc_option_spelling spelling, unsigned commands)
{
	for (size_t before = 0; before < row; before++)
		if (strcmp(fc_option_at(before)->name, fc_option_at(row)->name) == 0 &&
		    is_listed(before, spelling, commands))
			return true;
	return false;
}

static void list_names(enum fc_option_spelling spelling, unsigned commands, char *text, size_t text_bytes)
{
	size_t used = 0;
	text[0] = '\0';
	for (size_t row = 0; fc_option_at(row) != NULL; row++) {
		if (!is_listed(row, spelling, commands) || is_listed_before(row, spelling, commands))
			continue;
		char spelled[FC_OPTION_NAME_BYTES];
		fc_option_spell(fc_option_at(row), spelling, spelled);
		int written = snprintf(text + used, text_bytes - used, "%s%s", used > 0 ? ", " : "", spelled);
		fc_check(written > 0 && (size_t)written < text_bytes - used);
		used += (size_t)written;
	}
}

int fc_config_unknown(struct fc_config_problem *problem, const char *place, enum fc_option_spelling spelling,
		      const char *name, size_t name_len, enum fc_command_bit command)
{
	/* a file or a variable serves all commands, a flag only its own; flatcaked's file is its own */
	bool is_own = spelling == FC_SPELLING_FLAG || command == FC_COMMAND_DAEMON;
	unsigned commands = is_own ? (unsigned)command : ~(unsigned)FC_COMMAND_DAEMON;
	list_names(spelling, commands, problem->allowed, sizeof(problem->allowed));

	const char *kind = spelling == FC_SPELLING_FLAG ? "option" : spelling == FC_SPELLING_KEY ? "key" : "variable";
	char hint[FC_OPTION_NAME_BYTES + 32] = "";
	const struct fc_option *near = fc_option_suggest(spelling, name, name_len, commands);
	if (near != NULL) {
		char spelled[FC_OPTION_NAME_BYTES];
		fc_option_spell(near, spelling, spelled);
		snprintf(hint, sizeof(hint), " (did you mean %s?)", spelled);
	}
	int shown_len = name_len > 80 ? 80 : (int)name_len;
	return fc_error_set(&problem->error, FC_ENOENT, "%sunknown %s \"%.*s\"%s", place, kind, shown_len, name, hint);
}
