/* The files that a command is asked to write, looked at before it begins: a run of hours does not end in a folder that
 * is missing. */
#ifndef FC_CLI_OUTPUTS_H
#define FC_CLI_OUTPUTS_H

#include "config/config.h"

/* FC_ESYSTEM for a file that cannot be written. FC_EINVAL for two options that name the same file, and for a file that
 * is there and that later runs read, unless --force was given. Leaves nothing behind. */
FC_MUST_USE int fc_outputs_check(const struct fc_config *config, struct fc_error *error);

#endif
