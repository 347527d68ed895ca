/* The list of policies, and how their settings are read. */
#include "replay/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_BYTES (FC_ERROR_TEXT_BYTES / 2)
#define SETTINGS_MAX 256 /* of one --set */

#define POLICY(name) extern const struct fc_policy_type name
POLICY(fc_policy_flat);
POLICY(fc_policy_flat_one_queue);
POLICY(fc_policy_flat_no_merge);
POLICY(fc_policy_flat_no_overlap);
POLICY(fc_policy_flat_fifo);
POLICY(fc_policy_flat_no_consolidate);
POLICY(fc_policy_recompute);
POLICY(fc_policy_hicache);
POLICY(fc_policy_mooncake);
POLICY(fc_policy_mooncake_gds);
POLICY(fc_policy_lmcache);
POLICY(fc_policy_lmcache_raw);
POLICY(fc_policy_vllm_offload);
POLICY(fc_policy_file_per_block);
POLICY(fc_policy_infinite_dram);
#undef POLICY

/* In the order of `--policy all`. */
static const struct fc_policy_type *const types[] = {
	&fc_policy_flat,          &fc_policy_flat_one_queue,  &fc_policy_flat_fifo,
	&fc_policy_flat_no_merge, &fc_policy_flat_no_overlap, &fc_policy_flat_no_consolidate,
	&fc_policy_recompute,     &fc_policy_hicache,         &fc_policy_mooncake,
	&fc_policy_mooncake_gds,  &fc_policy_lmcache,         &fc_policy_lmcache_raw,
	&fc_policy_vllm_offload,  &fc_policy_file_per_block,  &fc_policy_infinite_dram,
};

const struct fc_policy_type *fc_policy_at(size_t index)
{
	return index < fc_array_len(types) ? types[index] : NULL;
}

const struct fc_policy_type *fc_policy_find(const char *name, size_t name_len)
{
	for (size_t i = 0; i < fc_array_len(types); i++)
		if (strlen(types[i]->name) == name_len && memcmp(types[i]->name, name, name_len) == 0)
			return types[i];
	return NULL;
}

/* The names that there are, into `names`: of policies, or of a policy's settings. */
static void list_policies(char names[NAMES_BYTES])
{
	size_t used = 0;
	for (size_t i = 0; fc_policy_at(i) != NULL; i++)
		used += (size_t)snprintf(names + used, NAMES_BYTES - used, "%s%s", i == 0 ? "" : ", ",
					 fc_policy_at(i)->name);
	fc_check(used < NAMES_BYTES);
}

static void list_settings(const struct fc_policy_type *type, char names[NAMES_BYTES])
{
	size_t used = (size_t)snprintf(names, NAMES_BYTES, "%s", type->settings_count == 0 ? "none" : "");
	for (size_t i = 0; i < type->settings_count; i++)
		used += (size_t)snprintf(names + used, NAMES_BYTES - used, "%s%s", i == 0 ? "" : ", ",
					 type->settings[i].name);
	fc_check(used < NAMES_BYTES);
}

static int unknown_policy(const char *name, struct fc_error *error)
{
	char names[NAMES_BYTES];
	list_policies(names);
	return fc_error_set(error, FC_EINVAL, "--policy: there is no \"%.80s\"; there are %s, and all", name, names);
}

/* A policy twice would stand twice in tables and plots, as if it were two. */
static int list_one(const struct fc_policy_type *type, const struct fc_policy_type **listed, size_t *count,
		    struct fc_error *error)
{
	for (size_t i = 0; i < *count; i++)
		if (listed[i] == type)
			return fc_error_set(error, FC_EINVAL, "--policy: %s is named twice; allowed: once", type->name);
	listed[(*count)++] = type;
	return FC_OK;
}

int fc_policy_list(const char *text, const struct fc_policy_type *listed[FC_POLICIES_MAX], size_t *count,
		   struct fc_error *error)
{
	char copy[1024];
	*count = 0;
	if (strlen(text) >= sizeof(copy))
		return fc_error_set(error, FC_EINVAL, "--policy: more than %zu characters", sizeof(copy) - 1);
	strcpy(copy, text);
	for (char *rest = copy, *name; (name = strsep(&rest, ",")) != NULL;) {
		bool is_all = strcmp(name, "all") == 0;
		const struct fc_policy_type *type = fc_policy_find(name, strlen(name));
		if (type == NULL && !is_all)
			return unknown_policy(name, error);
		int code = is_all ? FC_OK : list_one(type, listed, count, error);
		for (size_t i = 0; is_all && code == FC_OK && fc_policy_at(i) != NULL; i++)
			code = list_one(fc_policy_at(i), listed, count, error);
		if (code != FC_OK)
			return code;
	}
	return FC_OK;
}

static const struct fc_option *find_setting(const struct fc_policy_type *type, const char *key)
{
	for (size_t i = 0; i < type->settings_count; i++)
		if (strcmp(type->settings[i].name, key) == 0)
			return &type->settings[i];
	return NULL;
}

/* One "NAME.KEY=VALUE", which is cut in two. */
static int read_setting(const struct fc_policy_type *type, char *text, void *settings, struct fc_error *error)
{
	char names[NAMES_BYTES], place[FC_OPTION_NAME_BYTES * 2 + 16];
	char *dot = strchr(text, '.'), *equals = strchr(text, '=');
	if (dot == NULL || equals == NULL || equals < dot)
		return fc_error_set(error, FC_EINVAL, "--set: \"%.80s\"; POLICY.KEY=VALUE is allowed", text);
	*equals = '\0';
	const struct fc_policy_type *named = fc_policy_find(text, (size_t)(dot - text));
	if (named == NULL) {
		list_policies(names);
		return fc_error_set(error, FC_EINVAL, "--set: there is no policy \"%.*s\"; there are %s",
				    (int)fc_min_u64((uint64_t)(dot - text), 80), text, names);
	}
	const struct fc_option *setting = find_setting(named, dot + 1);
	if (setting == NULL) {
		list_settings(named, names);
		return fc_error_set(error, FC_EINVAL, "--set: policy %s has no setting \"%.80s\"; it has %s",
				    named->name, dot + 1, names);
	}
	if (named != type)
		return FC_OK;
	snprintf(place, sizeof(place), "--set %.90s", text);
	return fc_option_set_in(setting, equals + 1, settings, place, error);
}

int fc_policy_settings(const struct fc_policy_type *type, const char *text, void *settings, struct fc_error *error)
{
	char copy[4096], *words[SETTINGS_MAX];
	size_t count = 0;
	if (type->settings_bytes > 0)
		memcpy(settings, type->defaults, type->settings_bytes);
	if (text == NULL)
		return FC_OK;
	if (strlen(text) >= sizeof(copy))
		return fc_error_set(error, FC_EINVAL, "--set: more than %zu characters", sizeof(copy) - 1);
	strcpy(copy, text);
	for (char *rest = copy, *word; (word = strsep(&rest, ",")) != NULL; words[count++] = word) {
		if (count == SETTINGS_MAX)
			return fc_error_set(error, FC_EINVAL, "--set: more than %d settings", SETTINGS_MAX);
		int code = read_setting(type, word, settings, error);
		for (size_t i = 0; i < count && code == FC_OK; i++)
			if (strcmp(words[i], word) == 0) /* up to the value */
				code = fc_error_set(error, FC_EINVAL, "--set: %s is set twice; allowed: once", word);
		if (code != FC_OK)
			return code;
	}
	return FC_OK;
}

static int check_settings_of(const struct fc_policy_type *type, const char *text, struct fc_error *error)
{
	void *settings = calloc(1, type->settings_bytes + 1);
	if (settings == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for settings");
	int code = fc_policy_settings(type, text, settings, error);
	free(settings);
	return code;
}

int fc_policy_check_settings(const char *text, struct fc_error *error)
{
	int code = FC_OK;
	for (size_t i = 0; fc_policy_at(i) != NULL && code == FC_OK; i++)
		code = check_settings_of(fc_policy_at(i), text, error);
	return code;
}

int fc_policy_check_used(const char *text, const struct fc_policy_type *const *running, size_t count,
			 struct fc_error *error)
{
	for (const char *word = text; word != NULL; word = strchr(word, ',')) {
		word += *word == ',';
		size_t bytes = strcspn(word, ".");
		const struct fc_policy_type *named = fc_policy_find(word, bytes);
		bool is_used = false;
		for (size_t i = 0; i < count; i++)
			is_used |= running[i] == named;
		if (!is_used)
			return fc_error_set(error, FC_EINVAL,
					    "--set %.*s: has no effect alone; add policy %.*s, which does not run",
					    (int)strcspn(word, "=,"), word, (int)bytes, word);
	}
	return FC_OK;
}

uint64_t fc_policy_prefill_ns(const struct fc_policy_env *env, const struct fc_policy_turn *turn, uint64_t blocks)
{
	uint64_t context = fc_min_u64(blocks * env->geometry->block_tokens, turn->prefill_tokens_of_input - 1);
	return fc_hardware_prefill_ns(env->hardware, turn->prefill_tokens_of_input - context, context);
}
