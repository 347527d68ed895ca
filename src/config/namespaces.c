/* The list of namespaces in flatcaked's file:
 *
 *   namespaces:
 *     - name: team-a
 *       uid: 1001
 *       quota: 100GiB
 *
 * An empty list means nobody; without the list, every name is taken as it comes.
 *
 * An entry's keys have a table of their own, read by the same functions as every other setting. */
#include "base/check.h"
#include "config/option.h"
#include "config/pairs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMESPACES_MAX 1024
#define NAME_BYTES 64 /* as in the protocol, with the 0 at its end */

#define FIELD(name) offsetof(struct fc_config_namespace, name)

static const struct fc_option rows[] = {
	{"name", "NAME", FC_OPTION_TEXT, FIELD(name), 0, NULL,
	 .help = "of the namespace: up to 63 letters, digits, and characters of ._-"},
	{"uid", "N", FC_OPTION_COUNT, FIELD(uid), 0, NULL,
	 .help = "user whose processes may use it; without uid and gid: everybody who may connect",
	 .max = UINT32_MAX - 1},
	{"gid", "N", FC_OPTION_COUNT, FIELD(gid), 0, NULL, .help = "group whose processes may use it",
	 .max = UINT32_MAX - 1},
	{"quota", "SIZE", FC_OPTION_SIZE, FIELD(quota_bytes), 0, "0",
	 .help = "bytes that it may have on all media together; 0: no limit of its own", .max = 256ull << 40},
};

const struct fc_option *fc_config_namespace_option(size_t index)
{
	return index < fc_array_len(rows) ? &rows[index] : NULL;
}

static const struct fc_option *find_row(const struct fc_pair *pair)
{
	for (size_t row = 0; row < fc_array_len(rows); row++)
		if (strlen(rows[row].name) == pair->key_len && memcmp(rows[row].name, pair->key, pair->key_len) == 0)
			return &rows[row];
	return NULL;
}

static bool is_name(const char *text)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t len = strlen(text);
	return len > 0 && len < NAME_BYTES && strspn(text, allowed) == len;
}

static int add_namespace(struct fc_config *config, const char *path, const struct fc_pair *pair,
			 struct fc_config_problem *problem)
{
	if (config->namespace_count == NAMESPACES_MAX)
		return fc_error_set(&problem->error, FC_ELIMIT, "%s:%zu: namespaces: more than %d", path, pair->line,
				    NAMESPACES_MAX);
	size_t bytes = (config->namespace_count + 1) * sizeof(*config->namespaces);
	struct fc_config_namespace *larger = realloc(config->namespaces, bytes);
	if (larger == NULL)
		return fc_error_set(&problem->error, FC_ENOMEM, "%s:%zu: no memory", path, pair->line);
	config->namespaces = larger;
	larger[config->namespace_count++] =
		(struct fc_config_namespace){.uid = FC_CONFIG_ANYBODY, .gid = FC_CONFIG_ANYBODY, .line = pair->line};
	return FC_OK;
}

/* A field that nobody has set yet has the value that an entry begins with. */
static bool is_set(const struct fc_config_namespace *entry, const struct fc_option *row)
{
	static const struct fc_config_namespace blank = {.uid = FC_CONFIG_ANYBODY, .gid = FC_CONFIG_ANYBODY};
	size_t bytes = row->type == FC_OPTION_TEXT ? sizeof(const char *) : sizeof(uint64_t);
	return memcmp((const char *)entry + row->field_offset, (const char *)&blank + row->field_offset, bytes) != 0;
}

static int set_row(struct fc_config_namespace *entry, const struct fc_option *row, const struct fc_pair *pair,
		   const char *place, struct fc_error *error)
{
	if (is_set(entry, row))
		return fc_error_set(error, FC_EINVAL, "%s: stands twice in this entry", place);
	if (row->type != FC_OPTION_TEXT)
		return fc_option_set_in(row, pair->value, entry, place, error);
	if (!is_name(pair->value))
		return fc_error_set(
			error, FC_EINVAL,
			"%s: \"%.80s\" does not fit; allowed: 1 to %d letters, digits, and characters of ._-", place,
			pair->value, NAME_BYTES - 1);
	entry->name = strdup(pair->value);
	return entry->name != NULL ? FC_OK : fc_error_set(error, FC_ENOMEM, "%s: no memory", place);
}

int fc_config_namespace_pair(struct fc_config *config, const char *path, const struct fc_pair *pair,
			     struct fc_config_problem *problem)
{
	static const char list[] = "namespaces";
	if (pair->list_len != sizeof(list) - 1 || memcmp(pair->list, list, sizeof(list) - 1) != 0)
		return fc_error_set(&problem->error, FC_EINVAL, "%s:%zu: only \"%s\" takes a list, not \"%.40s\"", path,
				    pair->line, list, pair->list);
	if ((pair->is_empty || (pair->is_first && pair->item == 0)) && config->has_namespaces)
		return fc_error_set(&problem->error, FC_EINVAL, "%s:%zu: key \"%s\" stands twice", path, pair->line,
				    list);
	config->has_namespaces = true;
	if (pair->is_empty)
		return FC_OK;
	const struct fc_option *row = find_row(pair);
	if (row == NULL)
		return fc_error_set(&problem->error, FC_ENOENT,
				    "%s:%zu: unknown key \"%.40s\" of a namespace; allowed: name, uid, gid, quota",
				    path, pair->line, pair->key);
	int code = pair->is_first ? add_namespace(config, path, pair, problem) : FC_OK;
	if (code != FC_OK)
		return code;
	char place[FC_ERROR_TEXT_BYTES / 2];
	snprintf(place, sizeof(place), "%s:%zu: namespaces: %s", path, pair->line, row->name);
	return set_row(&config->namespaces[config->namespace_count - 1], row, pair, place, &problem->error);
}

int fc_config_namespaces_check(const struct fc_config *config, const char *path, struct fc_config_problem *problem)
{
	for (size_t at = 0; at < config->namespace_count; at++) {
		const struct fc_config_namespace *entry = &config->namespaces[at];
		if (entry->name == NULL)
			return fc_error_set(&problem->error, FC_EINVAL, "%s:%zu: a namespace without a name", path,
					    entry->line);
		for (size_t before = 0; before < at; before++)
			if (strcmp(config->namespaces[before].name, entry->name) == 0)
				return fc_error_set(&problem->error, FC_EINVAL,
						    "%s:%zu: namespace \"%s\" stands twice, first in line %zu", path,
						    entry->line, entry->name, config->namespaces[before].line);
	}
	return FC_OK;
}
