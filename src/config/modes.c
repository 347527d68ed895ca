/* Options that have an effect in one mode of a command only. Each row says of which mode, so that one which has none is
 * refused by its name instead of being passed over.
 *
 * Only what stands on the command line is refused: a file and the environment serve several commands and modes, and say
 * more than one run of one of them uses. */
#include "base/check.h"
#include "config/option.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum mode_kind {
	NEEDS,    /* no effect unless the other option is on */
	NOT_WITH, /* no effect if it is */
};

struct mode {
	unsigned commands;
	const char *name;
	enum mode_kind kind;
	const char *other;
};

static const struct mode modes[] = {
	/* a simulation's */
	{FC_COMMAND_REPLAY, "policy", NEEDS, "simulate"},
	{FC_COMMAND_REPLAY, "hardware", NEEDS, "simulate"},
	{FC_COMMAND_REPLAY, "set", NEEDS, "simulate"},
	{FC_COMMAND_REPLAY, "memories", NEEDS, "simulate"},
	{FC_COMMAND_REPLAY, "rates", NEEDS, "simulate"},
	{FC_COMMAND_REPLAY, "concurrency-per-rate", NEEDS, "simulate"},
	{FC_COMMAND_REPLAY, "mix", NEEDS, "simulate"},
	{FC_COMMAND_REPLAY, "nodes", NEEDS, "simulate"},
	{FC_COMMAND_REPLAY, "jobs", NEEDS, "simulate"},
	{FC_COMMAND_REPLAY, "report", NEEDS, "simulate"},
	{FC_COMMAND_REPLAY, "validation", NEEDS, "simulate"},
	{FC_COMMAND_REPLAY, "validation", NEEDS, "report"},
	{FC_COMMAND_REPLAY, "memory", NOT_WITH, "memories"},
	{FC_COMMAND_REPLAY, "rate", NOT_WITH, "rates"},
	{FC_COMMAND_REPLAY, "concurrency", NOT_WITH, "concurrency-per-rate"},
	{FC_COMMAND_REPLAY, "concurrency-per-rate", NOT_WITH, "mix"},
	{FC_COMMAND_REPLAY, "rate", NOT_WITH, "speed"},
	{FC_COMMAND_REPLAY, "rates", NOT_WITH, "speed"},
	{FC_COMMAND_REPLAY, "concurrency-per-rate", NOT_WITH, "speed"},
	{FC_COMMAND_REPLAY, "speed", NOT_WITH, "mix"},

	/* a fleet's */
	{FC_COMMAND_REPLAY, "requests", NEEDS, "nodes"},
	{FC_COMMAND_REPLAY, "route", NEEDS, "nodes"},
	{FC_COMMAND_REPLAY, "rates", NOT_WITH, "nodes"},
	{FC_COMMAND_REPLAY, "memories", NOT_WITH, "nodes"},
	{FC_COMMAND_REPLAY, "concurrency-per-rate", NOT_WITH, "nodes"},
	{FC_COMMAND_REPLAY, "mix", NOT_WITH, "nodes"},
	{FC_COMMAND_REPLAY, "speed", NOT_WITH, "nodes"},
	{FC_COMMAND_REPLAY, "report", NOT_WITH, "nodes"},
	{FC_COMMAND_REPLAY, "validation", NOT_WITH, "nodes"},

	/* a real store's */
	{FC_COMMAND_REPLAY, "dir", NOT_WITH, "simulate"},
	{FC_COMMAND_REPLAY, "daemon", NOT_WITH, "simulate"},
	{FC_COMMAND_REPLAY, "ssd-path", NOT_WITH, "simulate"},
	{FC_COMMAND_REPLAY, "memory-path", NOT_WITH, "simulate"},
	{FC_COMMAND_REPLAY, "io-timeout", NOT_WITH, "simulate"},
	{FC_COMMAND_REPLAY, "check", NOT_WITH, "simulate"},
	{FC_COMMAND_REPLAY | FC_COMMAND_DAEMON, "ssd-path", NEEDS, "ssd"},
	{FC_COMMAND_REPLAY | FC_COMMAND_DAEMON, "memory-path", NEEDS, "memory"},

	/* a store's that is no daemon's, whose arenas and rules are its own */
	{FC_COMMAND_REPLAY, "namespace", NEEDS, "daemon"},
	{FC_COMMAND_REPLAY, "dir", NOT_WITH, "daemon"},
	{FC_COMMAND_REPLAY, "ssd-path", NOT_WITH, "daemon"},
	{FC_COMMAND_REPLAY, "memory-path", NOT_WITH, "daemon"},
	{FC_COMMAND_REPLAY, "memory", NOT_WITH, "daemon"},
	{FC_COMMAND_REPLAY, "ssd", NOT_WITH, "daemon"},
	{FC_COMMAND_REPLAY, "chunk", NOT_WITH, "daemon"},
	{FC_COMMAND_REPLAY, "agent-context", NOT_WITH, "daemon"},
	{FC_COMMAND_REPLAY, "long-reply", NOT_WITH, "daemon"},
	{FC_COMMAND_REPLAY, "high-watermark", NOT_WITH, "daemon"},
	{FC_COMMAND_REPLAY, "low-watermark", NOT_WITH, "daemon"},
	{FC_COMMAND_REPLAY, "reclaim-order", NOT_WITH, "daemon"},
	{FC_COMMAND_REPLAY, "memory-reclaim", NOT_WITH, "daemon"},
	{FC_COMMAND_REPLAY, "consolidate", NOT_WITH, "daemon"},

	/* other commands' */
	{FC_COMMAND_BENCH, "scale", NEEDS, "trace"},
	{FC_COMMAND_BENCH, "force", NEEDS, "profile"},
	{FC_COMMAND_TUNE, "force", NEEDS, "output"},
	{FC_COMMAND_TOP, "interval", NOT_WITH, "once"},
	{FC_COMMAND_DAEMON, "http-token-file", NEEDS, "http-listen"},
	{FC_COMMAND_DAEMON, "http-connections", NEEDS, "http-listen"},
	{FC_COMMAND_DAEMON, "ssd-read-limit", NEEDS, "http-listen"},
};

static const struct fc_option *option_of(const char *name, enum fc_command_bit command)
{
	char flag[FC_OPTION_NAME_BYTES];
	snprintf(flag, sizeof(flag), "--%s", name);
	const struct fc_option *option = fc_option_find(FC_SPELLING_FLAG, flag, strlen(flag), command);
	fc_check(option != NULL && (option->commands & command) != 0);
	return option;
}

/* Whether an option's value, a default or not, turns on what it stands for. */
static bool is_on(const struct fc_config *config, const struct fc_option *option)
{
	const void *field = (const char *)config + option->field_offset;
	switch (option->type) {
	case FC_OPTION_SIZE:
	case FC_OPTION_COUNT:
	case FC_OPTION_DURATION:
		return *(const uint64_t *)field != 0;
	case FC_OPTION_RATIO:
		return *(const double *)field > 0;
	case FC_OPTION_RATE:
		return isfinite(*(const double *)field);
	case FC_OPTION_CHOICE:
		return *(const int *)field != 0;
	case FC_OPTION_BOOL:
	case FC_OPTION_SWITCH:
		return *(const bool *)field;
	case FC_OPTION_TEXT:
		return *(const char *const *)field != NULL && strcmp(*(const char *const *)field, "off") != 0;
	}
	return false;
}

int fc_config_check_modes(const struct fc_config *config, struct fc_error *error)
{
	for (size_t i = 0; i < fc_array_len(modes); i++) {
		const struct mode *mode = &modes[i];
		if ((mode->commands & config->command) == 0)
			continue;
		const struct fc_option *option = option_of(mode->name, config->command);
		const struct fc_option *other = option_of(mode->other, config->command);
		if (!config->is_flag[option - fc_option_at(0)] || is_on(config, other) == (mode->kind == NEEDS))
			continue;
		if (mode->kind == NEEDS)
			return fc_error_set(error, FC_EINVAL, "--%s: has no effect alone; add --%s", mode->name,
					    mode->other);
		return fc_error_set(error, FC_EINVAL, "--%s: not with --%s, where it has no effect", mode->name,
				    mode->other);
	}
	return FC_OK;
}
