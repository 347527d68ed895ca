/* The core's frame: opening, stepping, closing. */
#include "core/state.h"

#include "base/plant.h"

#define EXPRESS_WINDOW_BYTES (4ull << 20)
#define PATIENCE_NS 10000000ull /* of a command that may go (sched/gate.h) */

/* ---- open ---- */

static uint32_t slot_align(const struct fc_core_opts *opts)
{
	const struct fc_media *ssd = opts->catalog.media[FC_SSD];
	return ssd == NULL || ssd->align < 64 ? 64 : ssd->align;
}

/* Reading goes slice by slice if need be; writing puts a layer of the shortest possible segment together whole. */
static uint64_t slot_bytes_min(const struct fc_geometry *geometry, uint32_t align)
{
	uint64_t area_bytes = fc_align_up(fc_catalog_area_bytes_min(geometry), align);
	return fc_max_u64(fc_plan_slot_bytes_min(geometry, align), area_bytes + align);
}

/* Short loads need little, but one slice at least. */
static uint64_t express_window_bytes(const struct fc_core_opts *opts)
{
	uint64_t slices_bytes = FC_STREAM_SLOTS * fc_plan_slot_bytes_min(opts->catalog.geometry, slot_align(opts));
	uint64_t bytes = fc_align_up(fc_max_u64(EXPRESS_WINDOW_BYTES, slices_bytes),
				     FC_STREAM_SLOTS * (uint64_t)slot_align(opts));
	return fc_min_u64(bytes, opts->window_bytes);
}

static uint64_t window_bytes_of(const struct fc_core *core, const struct fc_worker *worker)
{
	if (worker == fc_core_copy_worker(core))
		return 0;
	return worker == fc_core_express_worker(core) ? express_window_bytes(&core->opts) : core->opts.window_bytes;
}

/* The longest layer that a slot takes with everything that reading (an interval's two ends, twice) and writing (whole
 * blocks) round up. A tiny window would be all rounding; there a layer may have to be read in two parts. */
static uint64_t area_bytes_max(const struct fc_core_opts *opts)
{
	uint64_t slot_bytes = opts->window_bytes / FC_STREAM_SLOTS;
	uint64_t rounding_bytes = fc_max_u64(4ull * slot_align(opts), 2ull * FC_SAVE_BLOCK_BYTES);
	return slot_bytes - (slot_bytes >= 8 * rounding_bytes ? rounding_bytes : slot_align(opts));
}

int fc_core_check_window(const struct fc_geometry *geometry, uint64_t window_bytes, uint32_t align,
			 struct fc_error *error)
{
	uint64_t needed = FC_STREAM_SLOTS * slot_bytes_min(geometry, align);
	if (window_bytes >= needed && window_bytes <= FC_WINDOW_BYTES_MAX &&
	    window_bytes % (FC_STREAM_SLOTS * (uint64_t)align) == 0)
		return FC_OK;
	return fc_error_set(
		error, FC_EINVAL,
		"window_bytes %llu; from %llu, which this geometry needs, to %llu are allowed, in multiples "
		"of %u",
		(unsigned long long)window_bytes, (unsigned long long)needed, (unsigned long long)FC_WINDOW_BYTES_MAX,
		FC_STREAM_SLOTS * align);
}

static int check_opts(const struct fc_core_opts *opts, struct fc_error *error)
{
	const struct fc_catalog_opts *catalog = &opts->catalog;
	int code = fc_geometry_check(catalog->geometry, error);
	if (code != FC_OK)
		return code;
	if (catalog->media[FC_MEMORY] == NULL && catalog->media[FC_SSD] == NULL)
		return fc_error_set(error, FC_EINVAL,
				    "memory_bytes and ssd_bytes are both 0; at least one arena is needed");
	if (opts->directory != NULL && area_bytes_max(opts) < catalog->area_bytes_max)
		return fc_error_set(error, FC_EINVAL,
				    "window_bytes %llu takes layers of %llu bytes; the store's are up to %llu long",
				    (unsigned long long)opts->window_bytes, (unsigned long long)area_bytes_max(opts),
				    (unsigned long long)catalog->area_bytes_max);
	if (!(catalog->low_watermark > 0 && catalog->low_watermark <= catalog->high_watermark &&
	      catalog->high_watermark <= 1))
		return fc_error_set(error, FC_EINVAL, "watermarks: low %g, high %g; 0 < low <= high <= 1 is allowed",
				    catalog->low_watermark, catalog->high_watermark);
	if (!(catalog->consolidate_ratio >= 0 && catalog->consolidate_ratio <= FC_CONSOLIDATE_RATIO_MAX))
		return fc_error_set(error, FC_EINVAL, "consolidate_ratio %g; 0 to %d is allowed",
				    catalog->consolidate_ratio, FC_CONSOLIDATE_RATIO_MAX);
	if (opts->load_streams < 1 || opts->load_streams > FC_STREAMS_MAX || opts->save_streams < 1 ||
	    opts->save_streams > FC_STREAMS_MAX)
		return fc_error_set(error, FC_EINVAL, "streams: %u to load, %u to save; 1 to %u are allowed",
				    opts->load_streams, opts->save_streams, FC_STREAMS_MAX);
	if (opts->requests_max < 1 || opts->requests_max > FC_REQUESTS_MAX)
		return fc_error_set(error, FC_EINVAL, "requests_max %u; 1 to %u is allowed", opts->requests_max,
				    FC_REQUESTS_MAX);
	if (opts->io_timeout_ns == 0)
		return fc_error_set(error, FC_EINVAL, "io_timeout_ns 0; at least 1 is allowed");
	code = fc_core_check_window(catalog->geometry, opts->window_bytes, slot_align(opts), error);
	if (code != FC_OK)
		return code;
	if (opts->transfer_bytes == 0 || opts->transfer_bytes % slot_align(opts) != 0)
		return fc_error_set(error, FC_EINVAL, "transfer_bytes %llu; a multiple of %u is allowed",
				    (unsigned long long)opts->transfer_bytes, slot_align(opts));
	return FC_OK;
}

/* All windows are one piece of the device's memory, registered with the SSD at once. The copy worker needs none. */
static int make_workers(struct fc_core *core)
{
	const struct fc_core_opts *opts = &core->opts;
	uint32_t windowed = opts->load_streams + opts->save_streams;
	core->worker_count = windowed + EXPRESS_WORKERS + COPY_WORKERS;
	core->windows_bytes = windowed * opts->window_bytes + express_window_bytes(opts);
	core->windows = opts->device->ops->window_alloc(opts->device, core->windows_bytes);
	if (core->windows == NULL)
		return FC_ENOMEM;
	core->workers = fc_alloc_zeroed(core->alloc, core->worker_count * sizeof(*core->workers));
	if (core->workers == NULL)
		return FC_ENOMEM;
	struct fc_media *ssd = opts->catalog.media[FC_SSD];
	fc_gate_init(&core->gate, ssd, opts->clock, fc_min_u64(PATIENCE_NS, opts->io_timeout_ns / 4),
		     opts->is_ssd_shared);
	uint8_t *window = core->windows;
	for (uint32_t i = 0; i < core->worker_count; i++) {
		struct fc_worker *worker = &core->workers[i];
		struct fc_stream_opts stream_opts = {
			.alloc = core->alloc,
			.device = opts->device,
			.window_bytes = window_bytes_of(core, worker),
			.transfer_bytes = fc_min_u64(opts->transfer_bytes, FC_GATE_COMMAND_BYTES),
			.gate = &core->gate,
		};
		worker->core = core;
		fc_stream_init(&worker->stream, &stream_opts, window);
		window += stream_opts.window_bytes;
	}
	if (ssd != NULL && ssd->ops->register_buffers != NULL)
		(void)ssd->ops->register_buffers(ssd, core->windows,
						 core->windows_bytes); /* slower without, and noted there */
	return FC_OK;
}

static void on_opened(void *context, int code, const struct fc_error *error)
{
	struct fc_core *core = context;
	core->is_open = code == FC_OK;
	core->opened_cb(core->opts.context, code, error);
}

static int open_catalog(struct fc_core *core)
{
	core->opts.catalog.area_bytes_max = area_bytes_max(&core->opts);
	int code = fc_catalog_open(&core->catalog, &core->opts.catalog, on_opened, core);
	if (code != FC_OK)
		return code;
	fc_local_directory_init(&core->local, core->catalog, core->opts.catalog.media);
	core->directory = &core->local.directory;
	return FC_OK;
}

static int make_pools(struct fc_core *core)
{
	uint32_t count = core->opts.requests_max;
	core->load_pool = fc_alloc_zeroed(core->alloc, count * sizeof(*core->load_pool));
	core->save_pool = fc_alloc_zeroed(core->alloc, count * sizeof(*core->save_pool));
	if (core->load_pool == NULL || core->save_pool == NULL)
		return FC_ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		fc_list_push(&core->free_loads, &core->load_pool[i].link);
		fc_list_push(&core->free_saves, &core->save_pool[i].link);
	}
	return FC_OK;
}

int fc_core_open(struct fc_core **result, const struct fc_core_opts *opts,
		 void (*opened_cb)(void *context, int code, const struct fc_error *error), struct fc_error *error)
{
	int code = check_opts(opts, error);
	if (code != FC_OK)
		return code;
	struct fc_core *core = fc_alloc_zeroed(opts->catalog.alloc, sizeof(*core));
	if (core == NULL)
		return fc_error_set(error, FC_ENOMEM, "open: %s", fc_code_text(FC_ENOMEM));
	core->opts = *opts;
	core->alloc = opts->catalog.alloc;
	core->opened_cb = opened_cb;
	core->directory = opts->directory;
	fc_sched_init(&core->sched);
	struct fc_link *lists[] = {&core->free_loads, &core->free_saves, &core->loads,
				   &core->saves,      &core->copies,     &core->save_queue};
	for (size_t i = 0; i < fc_array_len(lists); i++)
		fc_list_init(lists[i]);
	code = make_workers(core);
	if (code == FC_OK)
		code = make_pools(core);
	if (code == FC_OK && core->directory == NULL)
		code = open_catalog(core);
	if (code != FC_OK) {
		fc_core_free(core);
		return fc_error_set(error, code, "open: %s", fc_code_text(code));
	}
	*result = core;
	if (opts->directory != NULL)
		on_opened(core, FC_OK, NULL);
	return FC_OK;
}

/* ---- close ---- */

static void free_pools(struct fc_core *core)
{
	uint32_t count = core->opts.requests_max;
	for (uint32_t i = 0; i < count && core->load_pool != NULL; i++) {
		struct fc_core_load *load = &core->load_pool[i];
		fc_path_deinit(&load->path, core->alloc);
		if (!fc_is_planted(FC_PLANT_LEAK))
			fc_alloc_free(core->alloc, load->keys, load->key_room * sizeof(*load->keys));
		fc_alloc_free(core->alloc, load->slot_memory, load->slot_room * sizeof(*load->slot_memory));
	}
	for (uint32_t i = 0; i < count && core->save_pool != NULL; i++) {
		struct fc_core_save *save = &core->save_pool[i];
		fc_reservation_deinit(&save->claim.reservation, core->alloc);
		fc_alloc_free(core->alloc, save->keys, save->key_room * sizeof(*save->keys));
		fc_alloc_free(core->alloc, save->slot_memory, save->slot_room * sizeof(*save->slot_memory));
		fc_alloc_free(core->alloc, save->resume_points, save->resume_room * sizeof(*save->resume_points));
	}
	fc_alloc_free(core->alloc, core->load_pool, count * sizeof(*core->load_pool));
	fc_alloc_free(core->alloc, core->save_pool, count * sizeof(*core->save_pool));
}

void fc_core_free(struct fc_core *core)
{
	if (core == NULL)
		return;
	const struct fc_alloc *alloc = core->alloc;
	free_pools(core);
	fc_path_deinit(&core->spill_from, alloc);
	fc_reservation_deinit(&core->spill, alloc);
	fc_catalog_free(core->catalog);
	for (uint32_t i = 0; i < core->worker_count && core->workers != NULL; i++)
		fc_stream_deinit(&core->workers[i].stream);
	fc_alloc_free(alloc, core->workers, core->worker_count * sizeof(*core->workers));
	if (core->windows != NULL)
		core->opts.device->ops->window_free(core->opts.device, core->windows, core->windows_bytes);
	fc_alloc_free(alloc, core, sizeof(*core));
}

void fc_core_free_all(struct fc_core *core)
{
	fc_list_for_each_safe(link, &core->loads)
	{
		fc_core_load_free(core, fc_container_of(link, struct fc_core_load, link));
	}
	fc_list_for_each_safe(link, &core->saves)
	{
		fc_core_save_free(core, fc_container_of(link, struct fc_core_save, link));
	}
}

/* ---- step ---- */

bool fc_core_are_stuck(const struct fc_core *core, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++)
		if (!core->workers[i].is_stuck)
			return false;
	return true;
}

/* Batches of the catalog that stand still are late, and whoever waits for them is told. */
static void check_commits(struct fc_core *core, uint64_t now_ns)
{
	for (int medium = 0; medium < FC_MEDIUM_COUNT && core->catalog != NULL; medium++) {
		uint64_t progress;
		bool is_committing = fc_catalog_is_committing(core->catalog, (enum fc_medium)medium, &progress);
		if (!is_committing || progress != core->commits[medium].progress) {
			core->commits[medium].progress = progress;
			core->commits[medium].progress_ns = now_ns;
		}
		if (!is_committing || now_ns - core->commits[medium].progress_ns < core->opts.io_timeout_ns ||
		    fc_is_planted(FC_PLANT_ENDLESS_SYNC))
			continue;
		core->stuck_count += !fc_catalog_is_silent(core->catalog, (enum fc_medium)medium);
		fc_catalog_commit_is_late(core->catalog, (enum fc_medium)medium);
	}
}

static void check_progress(struct fc_core *core, uint64_t now_ns)
{
	if (core->directory_progress != core->directory->progress) {
		core->directory_progress = core->directory->progress;
		core->save_progress_ns = now_ns;
	}
	for (uint32_t i = 0; i < core->worker_count; i++) {
		struct fc_worker *worker = &core->workers[i];
		if (worker->progress != worker->stream.completions && i >= fc_core_first_save_worker(core))
			core->save_progress_ns = now_ns;
		if (worker->progress != worker->stream.completions || !worker->stream.is_busy) {
			worker->progress = worker->stream.completions;
			worker->progress_ns = now_ns;
			worker->is_stuck = false;
		}
		if (worker->is_stuck || fc_is_planted(FC_PLANT_ENDLESS_WAIT) ||
		    now_ns - worker->progress_ns < core->opts.io_timeout_ns)
			continue;
		if (fc_stream_is_copying(&worker->stream)) {
			/* The engine's slots must not be written to after their request has ended. Copies end by
			 * themselves; what does not is looked at again. */
			worker->progress_ns = now_ns;
			continue;
		}
		worker->is_stuck = true;
		core->stuck_count++;
		fc_gate_give_up(&worker->stream.line);
		if (worker->load != NULL)
			fc_core_load_is_stuck(core, worker);
		else if (worker->save != NULL)
			fc_core_save_is_stuck(core, worker);
	}
}

/* What has ended lets more be submitted; that is handed over before a copy keeps the CPU busy. */
static unsigned poll_all(struct fc_core *core)
{
	unsigned count = 0;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		struct fc_media *media = core->opts.catalog.media[medium];
		unsigned ended = media == NULL ? 0 : fc_media_poll(media);
		if (ended > 0)
			count += ended + fc_media_poll(media);
	}
	return count + fc_device_poll(core->opts.device);
}

unsigned fc_core_step(struct fc_core *core)
{
	unsigned count = poll_all(core);
	if (!core->is_open)
		return count;
	count += core->directory->ops->poll(core->directory);
	uint64_t now_ns = fc_core_now_ns(core);
	fc_gate_step(&core->gate);
	check_progress(core, now_ns);
	fc_core_check_looks(core, now_ns);
	check_commits(core, now_ns);
	fc_core_check_deadlines(core, now_ns);
	fc_core_check_save_queue(core, now_ns);
	fc_core_dispatch_loads(core);
	fc_core_dispatch_saves(core);
	return count + poll_all(core);
}

/* When the first batch that is under way will be late. */
static uint64_t commits_late_ns(const struct fc_core *core)
{
	uint64_t first_ns = UINT64_MAX, late_ns, progress;
	for (int medium = 0; medium < FC_MEDIUM_COUNT && core->catalog != NULL; medium++)
		if (fc_catalog_is_committing(core->catalog, (enum fc_medium)medium, &progress) &&
		    !fc_catalog_is_silent(core->catalog, (enum fc_medium)medium) &&
		    !fc_add_overflows(core->commits[medium].progress_ns, core->opts.io_timeout_ns, &late_ns))
			first_ns = fc_min_u64(first_ns, late_ns);
	return first_ns;
}

uint64_t fc_core_wake_ns(const struct fc_core *core)
{
	uint64_t wake_ns = core->directory->ops->wake_ns(core->directory), limit_ns;
	wake_ns = fc_min_u64(wake_ns, fc_gate_wake_ns(&core->gate));
	if (!fc_list_is_empty(&core->save_queue) &&
	    !fc_add_overflows(core->save_progress_ns, core->opts.io_timeout_ns, &limit_ns))
		wake_ns = fc_min_u64(wake_ns, limit_ns);
	for (uint32_t i = 0; i < core->worker_count; i++) {
		const struct fc_worker *worker = &core->workers[i];
		if (worker->stream.is_busy && !worker->is_stuck &&
		    !fc_add_overflows(worker->progress_ns, core->opts.io_timeout_ns, &limit_ns))
			wake_ns = fc_min_u64(wake_ns, limit_ns);
	}
	wake_ns = fc_min_u64(wake_ns, fc_min_u64(commits_late_ns(core), fc_core_look_late_ns(core)));
	fc_list_for_each(link, &core->loads)
	{
		const struct fc_core_load *load = fc_container_of(link, struct fc_core_load, link);
		if (load->deadline_ns != 0 && !load->is_in_place &&
		    (!load->is_cancelled || fc_is_planted(FC_PLANT_WAKE_IN_PAST)))
			wake_ns = fc_min_u64(wake_ns, load->deadline_ns);
	}
	return wake_ns;
}

uint64_t fc_core_save_sequence(const struct fc_core *core)
{
	return core->saves_total;
}

uint64_t fc_core_durable_sequence(const struct fc_core *core)
{
	uint64_t sequence = core->saves_total;
	fc_list_for_each(link, &core->saves)
	{
		const struct fc_core_save *save = fc_container_of(link, struct fc_core_save, link);
		bool has_ended = save->state == FC_SAVE_DURABLE || (save->is_reported && save->result.code != FC_OK);
		if (!has_ended)
			sequence = fc_min_u64(sequence, save->sequence);
	}
	return sequence;
}

uint64_t fc_core_durable_failures(const struct fc_core *core)
{
	return core->durable_failures;
}

const struct fc_error *fc_core_durable_error(const struct fc_core *core)
{
	return &core->durable_error;
}

bool fc_core_is_idle(const struct fc_core *core)
{
	for (uint32_t i = 0; i < core->worker_count; i++)
		if (core->workers[i].stream.is_busy)
			return false;
	return (core->catalog == NULL || fc_catalog_is_settled(core->catalog)) && !core->is_spill_open &&
	       !fc_core_is_looking(core) && core->load_count == 0 && core->save_count == 0 &&
	       core->spill.durable_pending == 0;
}

struct fc_directory *fc_core_directory(struct fc_core *core)
{
	return core->directory;
}

uint64_t fc_core_area_bytes_max(const struct fc_core *core)
{
	return core->opts.catalog.area_bytes_max;
}

struct fc_catalog *fc_core_catalog(struct fc_core *core)
{
	return core->catalog;
}

/* The loads are listed in order of submission, which is nearly that of arrival. */
uint32_t fc_core_waiters(const struct fc_core *core, struct fc_core_waiter *waiters, uint32_t room)
{
	uint64_t now_ns = fc_core_now_ns(core);
	uint32_t count = 0;
	fc_list_for_each(link, &core->loads)
	{
		const struct fc_core_load *load = fc_container_of(link, struct fc_core_load, link);
		if (load->state != FC_LOAD_PREPARE)
			continue;
		if (count == room)
			break;
		waiters[count++] = (struct fc_core_waiter){
			.request = load->lookup.request,
			.ssd_bytes = load->sched.ssd_bytes,
			.waited_ns = now_ns > load->sched.arrival_ns ? now_ns - load->sched.arrival_ns : 0,
			.priority = fc_sched_priority(&load->sched, now_ns),
		};
	}
	return count;
}

/* Every command that failed, whoever sent it, and what never returned. */
static uint64_t count_io_errors(const struct fc_core *core)
{
	uint64_t count = core->stuck_count;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (core->opts.catalog.media[medium] != NULL)
			count += core->opts.catalog.media[medium]->counters.errors;
	return count;
}

void fc_core_stats(const struct fc_core *core, struct fc_stats *stats)
{
	*stats = (struct fc_stats){
		.loads = core->loads_total,
		.loads_active = core->load_count,
		.saves = core->saves_total,
		.saves_active = core->save_count,
		.ready_length = core->sched.ready_length,
		.prepare_length = core->sched.prepare_length,
		.bytes_wanted = core->bytes_wanted,
		.planned_runs = core->planned_runs,
		.segments_touched = core->segments_touched,
		.checksum_failures = core->checksum_failures,
		.io_errors = count_io_errors(core),
		.segments_spilled = core->segments_spilled,
	};
	if (core->catalog != NULL)
		fc_catalog_stats(core->catalog, stats);
}
