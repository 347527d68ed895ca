/* The memory of a simulated process: an allocator that counts, checks and fails, and that forgets everything at once
 * when the process is killed. */
#ifndef FC_SIM_MEMORY_H
#define FC_SIM_MEMORY_H

#include "base/alloc.h"
#include "base/list.h"
#include "base/random.h"
#include "sim/note.h"

struct fc_sim_memory {
	struct fc_alloc alloc; /* what the core is handed */
	struct fc_link blocks;
	uint64_t bytes; /* that are allocated now */
	uint64_t failed_count;
	double fail_probability;
	struct fc_random random;
	struct fc_sim_notes *notes;
};

void fc_sim_memory_init(struct fc_sim_memory *memory, struct fc_sim_notes *notes, uint64_t seed);

/* The process is gone. */
void fc_sim_memory_forget(struct fc_sim_memory *memory);

/* Never fails on purpose; aligned to 4 KiB. Goes with fc_sim_memory_forget() or fc_sim_pages_free(). */
void *fc_sim_pages_alloc(struct fc_sim_memory *memory, uint64_t bytes);
void fc_sim_pages_free(struct fc_sim_memory *memory, void *pages, uint64_t bytes);

#endif
