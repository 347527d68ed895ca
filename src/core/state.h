/* What the files of the core share. Nobody outside src/core includes this. */
#ifndef FC_CORE_STATE_H
#define FC_CORE_STATE_H

#include "core/core.h"

#define EXPRESS_WORKERS 1u
#define COPY_WORKERS 1u

/* A stream and whom it serves. The job lives here and not in the request, because an I/O that never returns outlives
 * that. */
struct fc_worker {
	struct fc_core *core;
	struct fc_stream stream;
	union {
		struct fc_load_job load_job;
		struct fc_save_job save_job;
	};
	struct fc_core_load *load; /* NULL: idle, or abandoned */
	struct fc_core_save *save; /* NULL: idle, or at a spill */
	bool is_spilling;
	bool is_stuck;                  /* its I/O has taken longer than allowed, and whoever waited has been told */
	uint64_t progress, progress_ns; /* last seen count of completions, and when it changed */
};

/* A sync that asks whether an arena is still there (look.c). */
struct fc_arena_look {
	struct fc_core *core;
	struct fc_media *media;
	struct fc_io io;
};

struct fc_core {
	struct fc_core_opts opts;
	const struct fc_alloc *alloc;
	struct fc_catalog *catalog; /* NULL: somebody else's */
	struct fc_local_directory local;
	struct fc_directory *directory;
	uint64_t directory_progress; /* as last seen */
	struct fc_sched sched;
	uint8_t *windows;
	uint64_t windows_bytes;
	struct fc_gate gate;
	struct fc_worker *workers; /* load_streams, the express one, one for copies from memory, save_streams */
	uint32_t worker_count;

	struct fc_core_load *load_pool;
	struct fc_core_save *save_pool;
	struct fc_link free_loads, free_saves;
	struct fc_link loads, saves; /* open ones */
	struct fc_link copies;       /* loads that are taken and wait for the copy worker, by arrival */
	struct fc_link save_queue;
	struct {
		uint64_t progress, progress_ns; /* of the catalog's batches, and when that changed or none was there */
	} commits[FC_MEDIUM_COUNT];
	uint64_t save_progress_ns; /* when the queue last moved, or something that it waits for did */
	uint64_t load_count, save_count;

	struct fc_path spill_from;
	struct fc_reservation spill;
	bool is_spill_open;
	bool is_open;
	void (*opened_cb)(void *context, int code, const struct fc_error *error);

	struct fc_arena_look looks[FC_MEDIUM_COUNT];
	uint32_t looks_open;
	uint64_t looks_wanted, looks_begun, looks_ended; /* numbers of the last */
	uint64_t look_begun_ns;
	struct fc_error look_error;

	uint64_t loads_total, saves_total, durable_failures, segments_spilled, checksum_failures;
	struct fc_error durable_error; /* the last of durable_failures */
	uint64_t stuck_count;          /* streams and commit batches whose I/O did not return in time */
	uint64_t bytes_wanted, planned_runs, segments_touched;
};

static inline uint8_t *fc_core_memory_map(const struct fc_core *core)
{
	const struct fc_media *memory = core->opts.catalog.media[FC_MEMORY];
	return memory == NULL ? NULL : memory->map;
}
static inline struct fc_worker *fc_core_express_worker(const struct fc_core *core)
{
	return &core->workers[core->opts.load_streams];
}
static inline struct fc_worker *fc_core_copy_worker(const struct fc_core *core)
{
	return &core->workers[core->opts.load_streams + EXPRESS_WORKERS];
}
static inline uint32_t fc_core_first_save_worker(const struct fc_core *core)
{
	return core->opts.load_streams + EXPRESS_WORKERS + COPY_WORKERS;
}
/* True when all of workers [first, end) wait for an I/O that never returned. */
bool fc_core_are_stuck(const struct fc_core *core, uint32_t first, uint32_t end);
static inline uint64_t fc_core_now_ns(const struct fc_core *core)
{
	return fc_clock_now_ns(&core->opts.clock);
}
static inline void fc_core_tell(struct fc_core *core, enum fc_event_kind kind, struct fc_core_load *load,
				struct fc_core_save *save, uint32_t layer)
{
	core->opts.event_cb(core->opts.context, kind, load, save, layer);
}

/* requests.c: copying what the caller passed into a request's own memory */
FC_MUST_USE int fc_core_copy_array(const struct fc_alloc *alloc, void **memory, uint64_t *room, const void *from,
				   uint64_t count, size_t item_bytes);
FC_MUST_USE int fc_core_copy_slots(const struct fc_core *core, struct fc_target *target, uint64_t **memory,
				   uint64_t *room, const struct fc_slots *slots);
FC_MUST_USE int fc_core_check_slots(const struct fc_core *core, const struct fc_slots *slots,
				    const struct fc_paged_layer *layers, const char *what, struct fc_error *error);

/* look.c */
static inline bool fc_core_is_looking(const struct fc_core *core)
{
	return core->looks_ended < core->looks_wanted || core->looks_open > 0;
}
/* When the look under way is late; UINT64_MAX: there is none that anybody waits for. */
uint64_t fc_core_look_late_ns(const struct fc_core *core);
void fc_core_check_looks(struct fc_core *core, uint64_t now_ns);

/* loads.c */
void fc_core_dispatch_loads(struct fc_core *core);
void fc_core_check_deadlines(struct fc_core *core, uint64_t now_ns);
void fc_core_load_is_stuck(struct fc_core *core, struct fc_worker *worker);
void fc_core_load_settle(struct fc_core *core, struct fc_core_load *load);

/* saves.c */
void fc_core_dispatch_saves(struct fc_core *core);
void fc_core_save_is_stuck(struct fc_core *core, struct fc_worker *worker);
/* Ends what is queued when nothing will serve it any more: all save streams are stuck, or room never comes because the
 * batch that frees it never ends. */
void fc_core_check_save_queue(struct fc_core *core, uint64_t now_ns);

#endif
