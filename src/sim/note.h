/* What every part of the simulated world may do besides its own work: leave a line in the log, and stop the run because
 * an invariant is broken.
 *
 * The log is the run's identity: two runs of one seed give the same bytes. So nothing that differs between runs goes
 * into it: no address, no real time, no order of a hash table. Whether it is printed or not, every line also goes into
 * a digest, which is cheap enough to be kept always and tells at a glance that two runs were the same. */
#ifndef FC_SIM_NOTE_H
#define FC_SIM_NOTE_H

#include "base/error.h"

#include <setjmp.h>
#include <stdio.h>

struct fc_sim_notes {
	FILE *log; /* NULL: digest only */
	uint64_t now_ns;
	uint64_t digest;
	uint64_t line_count;
	jmp_buf escape; /* set by the run; fc_sim_broken() goes there */
	char broken[FC_ERROR_TEXT_BYTES];
};

/* `format` takes up to four conversions of 64-bit integers (%llu, %lld, %llx); unused values are 0. */
void fc_sim_note(struct fc_sim_notes *notes, const char *format, uint64_t a, uint64_t b, uint64_t c, uint64_t d);

/* An invariant does not hold: says which, and ends the run. */
void fc_sim_broken(struct fc_sim_notes *notes, const char *format, ...) FC_PRINTF(2, 3) __attribute__((noreturn));

#endif
