/* The command line again, from the settings that somebody gave: for pages that say what makes them again. Paths are cut
 * to the names of files, so that a page tells nothing about the machine that it was made on. */
#ifndef FC_CLI_GIVEN_H
#define FC_CLI_GIVEN_H

#include "config/option.h"
#include "report/text.h"

/* Appends "flatcake COMMAND ARGUMENT... --option value ...". */
void fc_given_add(const struct fc_config *config, const char *command, struct fc_page *text);

/* What is behind the last slash. */
const char *fc_given_name(const char *path);

/* The value of one option, which lies at `field`, as the option would take it; of a path, the name only. */
void fc_given_add_value(struct fc_page *text, const struct fc_option *option, const void *field);

#endif
