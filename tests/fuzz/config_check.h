/* What the targets of the settings share: everything that an accepted configuration must be. */
#ifndef FC_TESTS_FUZZ_CONFIG_CHECK_H
#define FC_TESTS_FUZZ_CONFIG_CHECK_H

#include "config/config.h"

/* The command out of a byte. */
enum fc_command_bit fuzz_command(uint8_t choice);

/* Loads the settings, checks them or the refusal, and frees them. */
void fuzz_config_run(const struct fc_config_sources *sources);

#endif
