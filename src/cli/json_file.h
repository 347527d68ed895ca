/* Results for machines: the --json option of every command that reports. */
#ifndef FC_CLI_JSON_FILE_H
#define FC_CLI_JSON_FILE_H

#include "config/config.h"

#include <jansson.h>

/* Whether the JSON goes to standard output, where the text for people must then not be. */
bool fc_json_replaces_text(const struct fc_config *config);

/* A number that JSON readers take for an integer. */
json_t *fc_json_count(uint64_t value);

/* part / whole, null for 0/0. */
json_t *fc_json_ratio(double part, double whole);

/* Writes `json` to a file (0600, replaced as a whole or not at all), or to standard output for "-". Takes the
 * reference; NULL, from a builder that found no memory, is FC_ENOMEM. */
int fc_json_write(const char *path, json_t *json, struct fc_error *error) FC_MUST_USE;

#endif
