/* Loads: from a request to data in place; the states are drawn in core.h. */
#include "core/state.h"

#include "base/plant.h"

#define ATTEMPTS_MAX 64
#define NS_PER_MS 1000000u

static void route(struct fc_core *core, struct fc_core_load *load);

static void release(struct fc_core *core, struct fc_path *path)
{
	if (path->is_leased)
		core->directory->ops->release(core->directory, path);
}

/* ---- the end of a load ---- */

void fc_core_load_settle(struct fc_core *core, struct fc_core_load *load)
{
	if (!load->is_freed || load->state != FC_LOAD_ENDED)
		return;
	load->is_freed = false; /* given back once, however often it is settled */
	fc_list_remove(&load->link);
	if (load->result.code == FC_OK || !fc_is_planted(FC_PLANT_LOST_REQUEST))
		fc_list_push(&core->free_loads, &load->link);
	core->load_count--;
}

static void count_result(struct fc_core *core, struct fc_core_load *load)
{
	core->bytes_wanted += load->result.bytes[FC_MEMORY] + load->result.bytes[FC_SSD];
	core->planned_runs += load->result.planned_runs;
	core->segments_touched += load->result.segments;
}

/* Reports the load; one that a caller shall take stays in the ready queue, in place of its arrival. */
static void end(struct fc_core *core, struct fc_core_load *load, int code)
{
	if (code == FC_OK || !fc_is_planted(FC_PLANT_KEPT_LEASE))
		release(core, &load->path);
	load->worker = NULL;
	load->result.code = code;
	if (code != FC_OK)
		load->result.blocks = load->result.tokens = 0;
	if (code != FC_OK && load->result.error.code == FC_OK)
		fc_error_set(&load->result.error, code, "load: %s", fc_code_text(code));
	uint64_t now_ns = fc_core_now_ns(core);
	if (load->started_ns == 0)
		load->started_ns = now_ns;
	load->result.queue_ns = load->started_ns - load->submitted_ns;
	load->result.read_ns = now_ns - load->started_ns;
	load->is_in_place = true;
	count_result(core, load);
	bool enters_ready = code == FC_OK && !load->is_taken && !load->is_started_when_ready;
	load->state = enters_ready ? FC_LOAD_READY : FC_LOAD_ENDED;
	if (enters_ready) {
		fc_sched_add_ready(&core->sched, &load->sched);
		fc_core_tell(core, FC_EVENT_READY, load, NULL, 0);
	}
	fc_core_tell(core, FC_EVENT_LOADED, load, NULL, 0);
	fc_core_load_settle(core, load);
}

static void end_cancelled(struct fc_core *core, struct fc_core_load *load, int code)
{
	if (load->state == FC_LOAD_PREPARE)
		fc_sched_remove_prepare(&core->sched, &load->sched);
	if (load->state == FC_LOAD_READY)
		fc_sched_remove_ready(&core->sched, &load->sched);
	fc_list_remove(&load->copy_link);
	end(core, load, code);
}

/* ---- jobs ---- */

static void on_layer(struct fc_load_job *job, uint32_t layer)
{
	struct fc_worker *worker = fc_container_of(job, struct fc_worker, load_job);
	if (worker->load != NULL)
		fc_core_tell(worker->core, FC_EVENT_LAYER, worker->load, NULL, layer);
}

static void add_counts(struct fc_core_load *load, const struct fc_load_job *job)
{
	load->core->checksum_failures += job->flickers;
	load->result.bytes_read += job->bytes_read;
	load->result.planned_runs += job->planned_runs;
	load->result.read_commands += job->commands;
}

/* The deepest prefix that does without the damaged slice. */
static uint64_t blocks_before(const struct fc_core *core, const struct fc_path *path, const struct fc_bad_slice *bad)
{
	const struct fc_geometry *geometry = core->opts.catalog.geometry;
	const struct fc_range *range = fc_shape_range_of(path->placed[bad->placed].shape, bad->entry);
	uint64_t block = range->block_first + (bad->entry - range->entry_first);
	if (geometry->groups[range->group].rule != FC_RULE_ALL)
		return path->blocks - 1; /* the resume point itself */
	return fc_min_u64(path->blocks - 1, block * fc_group_span(geometry, range->group));
}

/* Damage: the sessions are cut where it is, and the load starts over with what is left. Where the directory does not
 * take the load's word for it, or waits and sees whether it stays so, the load does without. */
static void start_over(struct fc_core *core, struct fc_core_load *load, const struct fc_load_job *job)
{
	uint64_t limit = load->path.blocks;
	for (uint32_t i = 0; i < job->bad_count; i++) {
		const struct fc_bad_slice *bad = &job->bad[i];
		core->checksum_failures += bad->is_checksum;
		if (!core->directory->ops->cut(core->directory, &load->path, bad->placed, bad->entry, bad->is_checksum))
			limit = fc_min_u64(limit, blocks_before(core, &load->path, bad));
	}
	if (limit < load->path.blocks)
		load->blocks_max = limit;
	release(core, &load->path);
	load->worker = NULL;
	load->is_worthless = limit == 0;
	load->attempts++;
	route(core, load);
}

static void on_ended(struct fc_load_job *job)
{
	struct fc_worker *worker = fc_container_of(job, struct fc_worker, load_job);
	struct fc_core *core = worker->core;
	struct fc_core_load *load = worker->load;
	worker->load = NULL;
	if (load == NULL)
		return; /* abandoned: it was stuck, and has been reported */
	add_counts(load, job);
	if (load->is_cancelled) {
		end(core, load, load->result.code);
		return;
	}
	if (job->code == FC_ECORRUPT) {
		start_over(core, load, job);
		return;
	}
	load->result.bytes[FC_MEMORY] = job->bytes_wanted[FC_MEMORY];
	load->result.bytes[FC_SSD] = job->bytes_wanted[FC_SSD];
	end(core, load, job->code);
}

static void start_job(struct fc_core *core, struct fc_core_load *load, struct fc_worker *worker)
{
	struct fc_load_job *job = &worker->load_job;
	*job = (struct fc_load_job){
		.plan =
			{
				.geometry = core->opts.catalog.geometry,
				.path = &load->path,
				.keys = load->keys,
				.target = &load->target,
				.memory_map = fc_core_memory_map(core),
				.gap_bytes = core->opts.gap_bytes,
			},
		.place = &load->sched,
		.layer_cb = on_layer,
		.ended_cb = on_ended,
	};
	worker->load = load;
	load->worker = worker;
	load->is_express = worker == fc_core_express_worker(core);
	if (load->started_ns == 0)
		load->started_ns = fc_core_now_ns(core);
	worker->progress_ns = fc_core_now_ns(core);
	int code = fc_load_job_start(job, &worker->stream, &load->result.error);
	if (code == FC_OK)
		return;
	worker->load = NULL;
	end(core, load, code);
}

/* ---- routing: where a matched load goes ---- */

static void queue_copy(struct fc_core *core, struct fc_core_load *load)
{
	struct fc_link *after = core->copies.prev;
	load->state = FC_LOAD_COPYING;
	while (after != &core->copies &&
	       fc_container_of(after, struct fc_core_load, copy_link)->sched.arrival_ns > load->sched.arrival_ns)
		after = after->prev;
	fc_list_insert_before(after->next, &load->copy_link);
}

static void count_segments(struct fc_core_load *load, uint32_t count)
{
	load->result.segments = load->result.segments_in_memory = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (fc_gva_medium(load->path.placed[i].base) == FC_SSD)
			load->result.segments++;
		else
			load->result.segments_in_memory++;
	}
}

/* What is there is known: `path`, or nothing. */
static void routed(struct fc_core *core, struct fc_core_load *load, const struct fc_path *path)
{
	uint64_t blocks = path == NULL ? 0 : path->blocks;
	load->result.blocks = blocks;
	load->result.tokens = blocks * core->opts.catalog.geometry->block_tokens;
	if (load->attempts == 0)
		load->result.matched_blocks = blocks;
	count_segments(load, path == NULL ? 0 : path->placed_count);
	load->sched.ssd_bytes = path == NULL ? 0 : path->bytes[FC_SSD];
	if (blocks == 0) {
		end(core, load, FC_OK);
	} else if (load->sched.ssd_bytes > 0) {
		load->state = FC_LOAD_PREPARE;
		fc_sched_add_prepare(&core->sched, &load->sched);
	} else if (load->is_started_when_ready || load->is_taken) {
		queue_copy(core, load);
	} else {
		load->state = FC_LOAD_READY;
		fc_sched_add_ready(&core->sched, &load->sched);
		fc_core_tell(core, FC_EVENT_READY, load, NULL, 0);
	}
}

static void on_matched(struct fc_lookup *lookup)
{
	struct fc_core_load *load = fc_container_of(lookup, struct fc_core_load, lookup);
	if (lookup->code == FC_OK)
		routed(load->core, load, &load->path);
	else
		end_cancelled(load->core, load, lookup->code);
}

static void route(struct fc_core *core, struct fc_core_load *load)
{
	if (load->attempts >= ATTEMPTS_MAX || load->is_worthless) {
		routed(core, load, NULL);
		return;
	}
	load->state = FC_LOAD_MATCHING;
	load->lookup = (struct fc_lookup){
		.keys = load->keys,
		.key_count = load->key_count,
		.blocks_max = load->blocks_max,
		.path = &load->path,
		.answered_cb = on_matched,
	};
	core->directory->ops->match(core->directory, &load->lookup);
}

static bool start_next(struct fc_core *core, struct fc_worker *worker, uint64_t bytes_max)
{
	struct fc_sched_item *item = fc_sched_take_prepare(&core->sched, fc_core_now_ns(core), bytes_max);
	if (item == NULL)
		return false;
	struct fc_core_load *load = fc_container_of(item, struct fc_core_load, sched);
	load->state = FC_LOAD_READING;
	start_job(core, load, worker);
	return true;
}

/* What the express stream takes: loads of which a slot holds a layer, more or less, and that are short beside whatever
 * the other streams read. What is about as long will soon find one of them free. Nothing when all of them are stuck:
 * that is the drive then. */
static uint64_t express_bytes_max(const struct fc_core *core)
{
	uint64_t slot_bytes = fc_core_express_worker(core)->stream.slot_bytes;
	uint64_t bytes = slot_bytes * core->opts.catalog.geometry->layer_count;
	if (fc_core_are_stuck(core, 0, core->opts.load_streams))
		return 0;
	if (fc_is_planted(FC_PLANT_LONG_EXPRESS))
		return UINT64_MAX;
	for (uint32_t i = 0; i < core->opts.load_streams; i++)
		if (core->workers[i].load != NULL)
			bytes = fc_min_u64(bytes, core->workers[i].load->sched.ssd_bytes / FC_CORE_EXPRESS_RATIO);
	return bytes;
}

void fc_core_dispatch_loads(struct fc_core *core)
{
	bool has_free_stream = false;
	for (uint32_t i = 0; i < core->opts.load_streams; i++) {
		struct fc_worker *worker = &core->workers[i];
		while (!worker->stream.is_busy && start_next(core, worker, UINT64_MAX))
			;
		has_free_stream = has_free_stream || !worker->stream.is_busy;
	}
	struct fc_worker *express = fc_core_express_worker(core);
	if (!has_free_stream && !express->stream.is_busy)
		(void)start_next(core, express, express_bytes_max(core));
	struct fc_worker *copier = fc_core_copy_worker(core);
	while (!copier->stream.is_busy && !fc_list_is_empty(&core->copies)) {
		struct fc_core_load *load = fc_container_of(fc_list_pop(&core->copies), struct fc_core_load, copy_link);
		start_job(core, load, copier);
	}
}

int fc_core_ready_take(struct fc_core *core, struct fc_core_load **result)
{
	struct fc_sched_item *item = fc_sched_take_ready(&core->sched);
	if (item == NULL)
		return FC_EAGAIN;
	struct fc_core_load *load = fc_container_of(item, struct fc_core_load, sched);
	load->is_taken = true;
	if (load->is_in_place)
		load->state = FC_LOAD_ENDED;
	else
		queue_copy(core, load);
	*result = load;
	return FC_OK;
}

/* ---- submit, cancel, free ---- */

static int check_load(const struct fc_core *core, const struct fc_load_opts *opts, const struct fc_paged_layer *layers,
		      struct fc_error *error)
{
	if (opts->keys == NULL && opts->key_count > 0)
		return fc_error_set(error, FC_EINVAL, "load: %llu keys, but the array is NULL",
				    (unsigned long long)opts->key_count);
	if (opts->key_count > UINT32_MAX)
		return fc_error_set(error, FC_EINVAL, "load: %llu keys; at most %u are allowed",
				    (unsigned long long)opts->key_count, UINT32_MAX);
	return fc_core_check_slots(core, opts->slots, layers, "load", error);
}

static int copy_request(struct fc_core *core, struct fc_core_load *load, const struct fc_load_opts *opts)
{
	int code = fc_core_copy_keys(core, &load->keys, &load->key_room, opts->keys, opts->key_count);
	if (code == FC_OK)
		code = fc_core_copy_slots(core, &load->target, &load->slot_memory, &load->slot_room, opts->slots);
	return code;
}

int fc_core_load_submit(struct fc_core *core, const struct fc_load_opts *opts, const struct fc_paged_layer *layers,
			void *owner, struct fc_core_load **result, struct fc_error *error)
{
	int code = check_load(core, opts, layers, error);
	if (code != FC_OK)
		return code;
	if (fc_list_is_empty(&core->free_loads))
		return fc_error_set(error, FC_ELIMIT, "load: %u loads are open, which is the limit (requests_max)",
				    core->opts.requests_max);
	struct fc_core_load *load = fc_container_of(core->free_loads.next, struct fc_core_load, link);
	code = copy_request(core, load, opts);
	if (code != FC_OK)
		return fc_error_set(error, code, "load: %s", fc_code_text(code));
	uint64_t now_ns = fc_core_now_ns(core);
	load->key_count = opts->key_count;
	load->blocks_max = opts->blocks_max;
	load->target.layers = layers;
	load->is_started_when_ready = opts->is_started_when_ready;
	load->owner = owner;
	load->submitted_ns = now_ns;
	load->deadline_ns = 0;
	if (opts->timeout_ns != 0 && fc_add_overflows(now_ns, opts->timeout_ns, &load->deadline_ns))
		load->deadline_ns = UINT64_MAX;
	load->started_ns = 0;
	load->attempts = 0;
	load->worker = NULL;
	load->is_in_place = load->is_taken = load->is_express = load->is_cancelled = load->is_freed = false;
	load->is_worthless = false;
	load->core = core;
	load->result = (struct fc_load_result){0};
	load->sched.arrival_ns = opts->arrival_ns == 0 ? now_ns : opts->arrival_ns;
	fc_sched_number(&core->sched, &load->sched);
	fc_list_remove(&load->link);
	fc_list_push(&core->loads, &load->link);
	core->load_count++;
	core->loads_total++;
	*result = load;
	route(core, load);
	return FC_OK;
}

/* Of an interrupted load: it ends as soon as nothing copies to its slots, which are the engine's again then. What is
 * still being read goes to the window, which stays out of use until the I/O returns. */
static void leave_worker(struct fc_core *core, struct fc_core_load *load)
{
	struct fc_worker *worker = load->worker;
	bool is_copying = fc_stream_is_copying(&worker->stream) && !fc_is_planted(FC_PLANT_LEFT_COPY);
	if (is_copying || fc_is_planted(FC_PLANT_READ_OUTLASTS_DEADLINE))
		return;
	worker->load = NULL;
	add_counts(load, &worker->load_job);
	end(core, load, load->result.code);
}

static void interrupt(struct fc_core *core, struct fc_core_load *load, int code)
{
	if (load->state == FC_LOAD_ENDED || load->is_cancelled)
		return;
	if (load->is_in_place) {
		/* Ended, but still to be taken: it only leaves the queue. */
		fc_sched_remove_ready(&core->sched, &load->sched);
		load->state = FC_LOAD_ENDED;
		return;
	}
	load->is_cancelled = true;
	load->result.code = code;
	if (load->state == FC_LOAD_MATCHING)
		core->directory->ops->forget(core->directory, &load->lookup);
	if (load->worker == NULL) {
		end_cancelled(core, load, code);
		return;
	}
	fc_load_job_stop(&load->worker->load_job);
	leave_worker(core, load);
}

void fc_core_load_cancel(struct fc_core *core, struct fc_core_load *load)
{
	interrupt(core, load, FC_ECANCELED);
}

void fc_core_load_free(struct fc_core *core, struct fc_core_load *load)
{
	load->is_freed = true;
	interrupt(core, load, FC_ECANCELED);
	fc_core_load_settle(core, load);
}

static void end_late(struct fc_core *core, struct fc_core_load *load)
{
	if (!load->is_cancelled && load->state != FC_LOAD_ENDED)
		fc_error_set(&load->result.error, FC_ETIMEOUT, "load: its time, timeout_ns, is over");
	interrupt(core, load, FC_ETIMEOUT);
}

static void end_unserved(struct fc_core *core, struct fc_core_load *load)
{
	fc_error_set(
		&load->result.error, FC_ETIMEOUT,
		"load: every stream waits for reads that have not returned for io_timeout_ns, %llu ms; the SSD arena "
		"does not answer",
		(unsigned long long)core->opts.io_timeout_ns / NS_PER_MS);
	interrupt(core, load, FC_ETIMEOUT);
}

void fc_core_check_deadlines(struct fc_core *core, uint64_t now_ns)
{
	bool is_hopeless = fc_core_are_stuck(core, 0, core->opts.load_streams); /* for the prepare queue */
	fc_list_for_each_safe(link, &core->loads)
	{
		struct fc_core_load *load = fc_container_of(link, struct fc_core_load, link);
		if (load->is_cancelled && load->worker != NULL)
			leave_worker(core, load);
		else if (load->deadline_ns != 0 && now_ns >= load->deadline_ns && !load->is_in_place)
			end_late(core, load);
		else if (is_hopeless && load->state == FC_LOAD_PREPARE)
			end_unserved(core, load);
	}
}

void fc_core_load_is_stuck(struct fc_core *core, struct fc_worker *worker)
{
	struct fc_core_load *load = worker->load;
	if (!load->is_cancelled)
		fc_error_set(&load->result.error, FC_ETIMEOUT,
			     "load: nothing was read for io_timeout_ns, %llu ms; the SSD arena does not answer",
			     (unsigned long long)core->opts.io_timeout_ns / NS_PER_MS);
	interrupt(core, load, FC_ETIMEOUT);
}
