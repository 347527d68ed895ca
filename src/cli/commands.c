/* The table of commands. */
#include "cli/commands.h"

#include "base/check.h"

#include <limits.h>
#include <string.h>

static const struct fc_command commands[] = {
	{"analyze", FC_COMMAND_ANALYZE, "say what a trace is made of, and whether tiering would do for it", "TRACE...",
	 1, INT_MAX, fc_command_analyze},
	{"bench", FC_COMMAND_BENCH, "measure this machine and FlatCake on it against the targets", "", 0, 0,
	 fc_command_bench},
	{"doctor", FC_COMMAND_DOCTOR, "say what this machine offers and what to do about each lack", "", 0, 0,
	 fc_command_doctor},
	{"gen", FC_COMMAND_GEN, "generate a trace of agent sessions", "", 0, 0, fc_command_gen},
	{"replay", FC_COMMAND_REPLAY, "replay traces through a real store and check every byte that comes back",
	 "TRACE...", 1, INT_MAX, fc_command_replay},
	{"sessions", FC_COMMAND_SESSIONS, "list the sessions of a store that nobody uses", "", 0, 0,
	 fc_command_sessions},
	{"stat", FC_COMMAND_STAT, "say what a store that nobody uses holds", "", 0, 0, fc_command_stat},
	{"top", FC_COMMAND_TOP, "show what a running flatcaked does, each second", "", 0, 0, fc_command_top},
	{"tune", FC_COMMAND_TUNE, "find the settings that serve a trace best, by simulation, and write them down",
	 "TRACE...", 1, INT_MAX, fc_command_tune},
	{"verify", FC_COMMAND_VERIFY, "scan a store that nobody uses: accounting, headers, checksums", "", 0, 0,
	 fc_command_verify},
};

const struct fc_command *fc_command_at(size_t index)
{
	return index < fc_array_len(commands) ? &commands[index] : NULL;
}

const struct fc_command *fc_command_find(const char *name)
{
	for (size_t row = 0; row < fc_array_len(commands); row++) {
		if (strcmp(commands[row].name, name) == 0)
			return &commands[row];
	}
	return NULL;
}
