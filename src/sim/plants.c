#include "sim/plants.h"

#include <stddef.h>
#include <string.h>

#ifdef FLATCAKE_PLANTS
enum fc_plant fc_planted = FC_PLANT_NONE;
#endif

static const char *const names[FC_PLANT_COUNT] = {
	[FC_PLANT_NONE] = "none",
	[FC_PLANT_SKIP_CHECKSUM] = "skip-checksum",
	[FC_PLANT_HEADER_FIRST] = "header-first",
	[FC_PLANT_NO_FINAL_SYNC] = "no-final-sync",
	[FC_PLANT_SHORT_HEADER] = "short-header",
	[FC_PLANT_FREE_AT_ONCE] = "free-at-once",
	[FC_PLANT_NO_REVIVE] = "no-revive",
	[FC_PLANT_KEPT_LEASE] = "kept-lease",
	[FC_PLANT_LOST_REQUEST] = "lost-request",
	[FC_PLANT_HALF_SESSION] = "half-session",
	[FC_PLANT_RECLAIM_LEASED] = "reclaim-leased",
	[FC_PLANT_NO_CUT] = "no-cut",
	[FC_PLANT_SWAP_LAYERS] = "swap-layers",
	[FC_PLANT_SWAP_BLOCKS] = "swap-blocks",
	[FC_PLANT_SHORT_READ] = "short-read",
	[FC_PLANT_EARLY_LAYER] = "early-layer",
	[FC_PLANT_BUSY_SLOT] = "busy-slot",
	[FC_PLANT_HALF_KEY] = "half-key",
	[FC_PLANT_NO_RESUME_RULE] = "no-resume-rule",
	[FC_PLANT_SHORT_WINDOW] = "short-window",
	[FC_PLANT_READY_AT_TAIL] = "ready-at-tail",
	[FC_PLANT_PREPARE_IN_ORDER] = "prepare-in-order",
	[FC_PLANT_NO_PIN] = "no-pin",
	[FC_PLANT_NO_BACKUP] = "no-backup",
	[FC_PLANT_CHUNK_COUNT] = "chunk-count",
	[FC_PLANT_UNCHECKED_HEADER] = "unchecked-header",
	[FC_PLANT_ANY_GEOMETRY] = "any-geometry",
	[FC_PLANT_NAME_ONCE] = "name-once",
	[FC_PLANT_DURABLE_TWICE] = "durable-twice",
	[FC_PLANT_ENDLESS_WAIT] = "endless-wait",
	[FC_PLANT_WAKE_IN_PAST] = "wake-in-past",
	[FC_PLANT_ENDLESS_SPILL] = "endless-spill",
	[FC_PLANT_FOREIGN_QUOTA] = "foreign-quota",
	[FC_PLANT_LEAK] = "leak",
	[FC_PLANT_NO_FENCE] = "no-fence",
	[FC_PLANT_DEAD_LEASE] = "dead-lease",
	[FC_PLANT_EARLY_ORPHAN] = "early-orphan",
	[FC_PLANT_FORGET_CROSSED] = "forget-crossed",
	[FC_PLANT_DURABLE_UNHEARD] = "durable-unheard",
	[FC_PLANT_TRUSTED_REPORT] = "trusted-report",
	[FC_PLANT_COMMON_SALT] = "common-salt",
	[FC_PLANT_ANY_VERSION] = "any-version",
	[FC_PLANT_SILENT_ABORT] = "silent-abort",
	[FC_PLANT_COMMIT_OF_THE_LOST] = "commit-of-the-lost",
	[FC_PLANT_EARLY_UNLOCK] = "early-unlock",
	[FC_PLANT_NUMBERS_ANEW] = "numbers-anew",
	[FC_PLANT_NOT_ASKED_AGAIN] = "not-asked-again",
	[FC_PLANT_ANY_NAME] = "any-name",
	[FC_PLANT_RECLAIM_SAVED] = "reclaim-saved",
	[FC_PLANT_LATE_MEMORY] = "late-memory",
	[FC_PLANT_DROP_COPIES] = "drop-copies",
	[FC_PLANT_READ_OUTLASTS_DEADLINE] = "read-outlasts-deadline",
	[FC_PLANT_LEFT_COPY] = "left-copy",
	[FC_PLANT_ENDLESS_SYNC] = "endless-sync",
	[FC_PLANT_LATE_TWICE] = "late-twice",
	[FC_PLANT_CUT_ON_ERROR] = "cut-on-error",
	[FC_PLANT_UNCHECKED_SYNC] = "unchecked-sync",
	[FC_PLANT_GATE_IN_ORDER] = "gate-in-order",
	[FC_PLANT_SAVE_BEFORE_LOAD] = "save-before-load",
	[FC_PLANT_FULL_BESIDE] = "full-beside",
	[FC_PLANT_LONG_EXPRESS] = "long-express",
	[FC_PLANT_WAKE_FOR_NOTHING] = "wake-for-nothing",
	[FC_PLANT_NO_SHARE] = "no-share",
	[FC_PLANT_ANY_PROGRESS] = "any-progress",
	[FC_PLANT_KEPT_PART] = "kept-part",
};

const char *fc_sim_plant_name(int plant)
{
	return plant < 0 || plant >= FC_PLANT_COUNT ? NULL : names[plant];
}

bool fc_sim_plant_choose(const char *name)
{
#ifdef FLATCAKE_PLANTS
	for (int plant = 0; plant < FC_PLANT_COUNT; plant++) {
		if (strcmp(name, names[plant]) != 0)
			continue;
		fc_planted = (enum fc_plant)plant;
		return true;
	}
#endif
	(void)name;
	return false;
}
