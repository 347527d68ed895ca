/* Help and the manual page, written from the tables of commands and options. */
#ifndef FC_CLI_HELP_H
#define FC_CLI_HELP_H

#include "cli/commands.h"

#include <stdio.h>

/* The program as a whole: its commands. */
void fc_help_program(FILE *file);

/* How a command is called, without an end of line. */
void fc_help_usage(const struct fc_command *command, char *text, size_t text_bytes);

/* One command: its usage and its options. */
void fc_help_command(const struct fc_command *command, FILE *file);

/* The policies that can be simulated, and their settings. */
void fc_help_policies(FILE *file);

/* The manual page in roff; packaging/flatcake.1 is this text. */
void fc_help_manual(FILE *file);

#endif
