/* Options for people: lines of help, entries of a manual page. Written from the table alone, for every program that has
 * rows in it. */
#ifndef FC_CONFIG_DESCRIBE_H
#define FC_CONFIG_DESCRIBE_H

#include "config/option.h"

#include <stdio.h>

/* Prints words from column `indent` on, broken into lines; the cursor stands at `column`, at most `indent`. */
void fc_describe_wrapped(const char *text, int indent, int column, FILE *file);

/* "  --memory SIZE       memory budget; 0 for none [1GiB]" */
void fc_describe_help(const struct fc_option *option, FILE *file);

/* Text as roff takes it: hyphens and backslashes escaped. */
void fc_describe_roff(const char *text, FILE *file);

/* The entry of a manual page, its name in the given spelling; ends within a paragraph. */
void fc_describe_manual(const struct fc_option *option, enum fc_option_spelling spelling, FILE *file);

/* How each option is also a variable and a key, by the example of the first row that `commands` take. */
void fc_describe_settings(unsigned commands, FILE *file);

#endif
