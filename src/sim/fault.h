/* The faults that a run may meet, each with a name, a probability of its own, and a switch.
 *
 * By default a seed decides which faults its run has ("swarm testing"): a quarter of the seeds have none, so that the
 * strictest invariants are tested; an eighth have all; the others a random few, because faults hide each other. */
#ifndef FC_SIM_FAULT_H
#define FC_SIM_FAULT_H

#include "base/error.h"
#include "base/random.h"

enum fc_sim_fault {
	FC_FAULT_READ_ERROR,      /* a read ends with FC_EIO */
	FC_FAULT_WRITE_ERROR,     /* a write ends with FC_EIO, and part of it has happened */
	FC_FAULT_SYNC_ERROR,      /* a sync ends with FC_EIO and makes nothing durable */
	FC_FAULT_STICKY_ERROR,    /* the place fails from now on */
	FC_FAULT_SHORT_READ,      /* a read moves fewer bytes than asked, and says so */
	FC_FAULT_SHORT_WRITE,     /* a write does */
	FC_FAULT_FULL,            /* a write finds no space behind the file */
	FC_FAULT_STUCK,           /* an I/O never returns */
	FC_FAULT_LATE,            /* an I/O returns long after its time limit */
	FC_FAULT_FLIP_PAYLOAD,    /* at rest, one bit of a slice or a checksum */
	FC_FAULT_FLIP_HEADER,     /* of a segment's header */
	FC_FAULT_FLIP_TABLE,      /* of the chunk table */
	FC_FAULT_FLIP_SUPERBLOCK, /* of one copy of the superblock */
	FC_FAULT_CRASH,           /* the process is killed */
	FC_FAULT_POWER,           /* the power fails: what was not synced may be lost */
	FC_FAULT_TORN,            /* at a crash: a write happens in part, by sectors of 512 or 4096 bytes */
	FC_FAULT_REORDERED,       /* at a power failure: any subset of the unsynced writes is lost, not only the last */
	FC_FAULT_CLOCK_JUMP,      /* the clock leaps forward */
	FC_FAULT_ALLOCATION,      /* there is no memory */
	FC_FAULT_VANISH,          /* a client frees its request in the middle of whatever it is */
	/* of the wired world only */
	FC_FAULT_ENGINE_CRASH, /* an engine is killed; its writes may still land */
	FC_FAULT_CUT,          /* a connection ends in the middle of whatever is under way */
	FC_FAULT_DEAF,         /* an engine reads nothing of its connection for a while */
	FC_FAULT_STRANGER,     /* somebody connects who speaks another version, garbage, or nothing */
	FC_FAULT_STOPPED,      /* an engine is stopped for a while, with all that it holds, and goes on */
	FC_FAULT_MUTE,         /* the answer to a reservation never comes, while others do */
	/* of both */
	FC_FAULT_BLOCKED, /* the medium stands still as a whole, for a while or until it is released */
	/* of plain worlds only, since a daemon's clients keep the file that they were given */
	FC_FAULT_TRUNCATED, /* an arena's file is cut under the store */
	FC_FAULT_REMOVED,   /* it is removed: reads, writes and syncs go on, and all of it ends with the process */
	FC_FAULT_REPLACED,  /* another file takes its name: the same, and the next process finds that one */
	FC_FAULT_COUNT
};

struct fc_sim_faults {
	double probability[FC_FAULT_COUNT]; /* per occasion: I/O, allocation, or operation of the workload */
	bool is_fixed[FC_FAULT_COUNT];      /* given by the caller, the seed does not decide */
};

const char *fc_sim_fault_name(enum fc_sim_fault fault);
double fc_sim_fault_default(enum fc_sim_fault fault);

/* "NAME=P", 0 <= P <= 1. FC_EINVAL with the list of names. */
FC_MUST_USE int fc_sim_fault_parse(struct fc_sim_faults *faults, const char *text, struct fc_error *error);

/* Fills in what is not fixed. */
void fc_sim_faults_choose(struct fc_sim_faults *faults, struct fc_random *random);

static inline bool fc_sim_happens(struct fc_random *random, double probability)
{
	return probability > 0 && fc_random_unit(random) < probability;
}

#endif
