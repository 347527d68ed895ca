/* Saves, in the order they came, and spills when there is nothing to save; the states are drawn in core.h. */
#include "core/state.h"

#include "base/plant.h"

/* ---- the end of a save ---- */

static void settle(struct fc_core *core, struct fc_core_save *save)
{
	bool has_ended = save->state == FC_SAVE_DURABLE || save->state == FC_SAVE_FAILED;
	if (!save->is_freed || !has_ended || save->worker != NULL)
		return;
	save->is_freed = false; /* given back once, however often it is settled */
	fc_list_remove(&save->link);
	fc_list_push(&core->free_saves, &save->link);
	core->save_count--;
}

static void report(struct fc_core *core, struct fc_core_save *save, int code)
{
	if (save->is_reported)
		return;
	save->is_reported = true;
	save->result.code = code;
	if (code != FC_OK && save->result.error.code == FC_OK)
		fc_error_set(&save->result.error, code, "save: %s", fc_code_text(code));
	save->result.session = save->claim.reservation.session;
	save->result.blocks_new = save->claim.reservation.blocks_new;
	save->result.bytes_new = save->claim.reservation.bytes_new;
	save->result.segments_absorbed = save->claim.reservation.segments_absorbed;
	fc_core_tell(core, FC_EVENT_SAVED, NULL, save, 0);
}

static void fail(struct fc_core *core, struct fc_core_save *save, int code)
{
	fc_list_remove(&save->queue_link);
	core->directory->ops->abort(core->directory, &save->claim);
	save->state = FC_SAVE_FAILED;
	report(core, save, code);
	settle(core, save);
}

/* Whoever found out may have said why. */
static void explain_loss(struct fc_core *core, struct fc_core_save *save, int code)
{
	struct fc_error *error = &save->result.error;
	*error = save->claim.reservation.durable_error;
	if (error->code == FC_OK)
		fc_error_set(error, code, "%s", fc_code_text(code));
	fc_error_wrap(error, code, "save: visible, and could not be made durable");
	core->durable_failures++;
	core->durable_error = *error;
}

/* What was written there, or had been stored there before, ends with the process. */
static bool is_lost(const struct fc_core *core, const struct fc_core_save *save)
{
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		const struct fc_media *media = core->opts.catalog.media[medium];
		if (media != NULL && media->lost != NULL &&
		    (save->result.bytes_written[medium] > 0 || save->claim.reservation.bytes_new == 0))
			return true;
	}
	return false;
}

static void is_durable(struct fc_core *core, struct fc_core_save *save, int code)
{
	save->state = FC_SAVE_DURABLE;
	bool is_volatile =
		save->result.bytes_written[FC_MEMORY] > 0 && !core->opts.catalog.media[FC_MEMORY]->is_durable;
	save->result.durable_code = code;
	save->result.is_durable = code == FC_OK && !is_volatile && !is_lost(core, save);
	if (code != FC_OK)
		explain_loss(core, save, code);
	fc_core_tell(core, FC_EVENT_DURABLE, NULL, save, 0);
	settle(core, save);
}

static struct fc_core_save *save_of(struct fc_claim *claim)
{
	return fc_container_of(claim, struct fc_core_save, claim);
}

static void on_durable(struct fc_claim *claim)
{
	struct fc_core_save *save = save_of(claim);
	is_durable(save->core, save, claim->reservation.durable_code);
}

static void on_visible(struct fc_claim *claim)
{
	struct fc_core_save *save = save_of(claim);
	if (claim->code != FC_OK) {
		fail(save->core, save, claim->code);
		return;
	}
	save->state = FC_SAVE_VISIBLE;
	report(save->core, save, FC_OK);
	if (claim->reservation.durable_pending == 0 || fc_is_planted(FC_PLANT_DURABLE_TWICE))
		is_durable(save->core, save, FC_OK);
}

static void commit(struct fc_core *core, struct fc_core_save *save)
{
	save->state = FC_SAVE_COMMITTING;
	core->directory->ops->commit(core->directory, &save->claim);
}

/* ---- claims ---- */

static void on_reserved(struct fc_claim *claim)
{
	struct fc_core_save *save = save_of(claim);
	struct fc_core *core = save->core;
	core->save_progress_ns = fc_core_now_ns(core);
	save->state = FC_SAVE_RESERVED;
	if (claim->code == FC_OK)
		return;
	save->result.error = claim->error;
	fail(core, save, claim->code);
}

/* What it wrote will never be named. It is the first of the queue again, with slots that are still the caller's loan.
 */
static void queue_again(struct fc_core *core, struct fc_core_save *save)
{
	core->directory->ops->abort(core->directory, &save->claim);
	save->is_lost = false;
	save->state = FC_SAVE_QUEUED;
	if (fc_list_is_empty(&core->save_queue))
		core->save_progress_ns = fc_core_now_ns(core);
	if (!fc_link_is_linked(&save->queue_link))
		fc_list_insert_before(core->save_queue.next, &save->queue_link);
}

static void on_lost(struct fc_claim *claim)
{
	struct fc_core_save *save = save_of(claim);
	save->is_lost = true;
	if (save->worker != NULL)
		fc_save_job_stop(&save->worker->save_job);
	else
		queue_again(save->core, save);
}

static void ask_for_space(struct fc_core *core, struct fc_core_save *save)
{
	save->state = FC_SAVE_RESERVING;
	save->claim.error = (struct fc_error){0};
	core->directory->ops->reserve(core->directory, &save->claim);
}

/* ---- jobs ---- */

static void set_job(struct fc_core *core, struct fc_worker *worker, const struct fc_reservation *reservation)
{
	worker->save_job = (struct fc_save_job){
		.geometry = core->opts.catalog.geometry,
		.grants = reservation->grants,
		.grant_count = reservation->grant_count,
		.sources = &reservation->sources,
		.memory_map = fc_core_memory_map(core),
	};
	worker->progress_ns = fc_core_now_ns(core);
}

/* A source in memory failed its checksum: cut it, so that it is not tried for ever. */
static void cut_source(struct fc_core *core, const struct fc_save_job *job, const struct fc_path *path)
{
	if (!job->is_source_bad)
		return;
	core->checksum_failures++;
	(void)core->directory->ops->cut(core->directory, path, job->bad_placed, job->bad_entry, true);
}

/* The catalog writes the headers, where the medium outlives the process. */
static void count_written(const struct fc_core *core, struct fc_core_save *save, const struct fc_save_job *job)
{
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		save->result.bytes_written[medium] = job->bytes_written[medium];
	for (uint32_t i = 0; i < job->grant_count; i++) {
		const struct fc_placed *placed = &job->grants[i].placed;
		enum fc_medium medium = fc_gva_medium(placed->base);
		if (core->opts.catalog.media[medium]->is_durable)
			save->result.bytes_written[medium] += placed->header_bytes;
	}
}

/* The catalog had room, so an operator must hear that it is the medium that has none. */
static void fail_writing(struct fc_core *core, struct fc_core_save *save, const struct fc_save_job *job)
{
	if (job->error.code != FC_OK) {
		save->result.error = job->error;
		fc_error_wrap(&save->result.error, job->code, "save: writing%s",
			      job->code == FC_EFULL ? ": the arena's own file system or device is full" : "");
	}
	fail(core, save, job->code);
}

static void on_save_ended(struct fc_save_job *job)
{
	struct fc_worker *worker = fc_container_of(job, struct fc_worker, save_job);
	struct fc_core *core = worker->core;
	struct fc_core_save *save = worker->save;
	worker->save = NULL;
	save->worker = NULL;
	count_written(core, save, job);
	cut_source(core, job, &save->claim.reservation.sources);
	if (save->is_cancelled)
		fail(core, save, FC_ECANCELED);
	else if (save->is_lost)
		queue_again(core, save);
	else if (job->code != FC_OK)
		fail_writing(core, save, job);
	else
		commit(core, save);
}

static void start_job(struct fc_core *core, struct fc_core_save *save, struct fc_worker *worker)
{
	set_job(core, worker, &save->claim.reservation);
	worker->save_job.keys = save->keys;
	worker->save_job.target = &save->target;
	worker->save_job.ended_cb = on_save_ended;
	worker->save = save;
	save->worker = worker;
	save->state = FC_SAVE_WRITING;
	int code = fc_save_job_start(&worker->save_job, &worker->stream, &save->result.error);
	if (code == FC_OK)
		return;
	worker->save = NULL;
	save->worker = NULL;
	fail(core, save, code);
}

static void start_save(struct fc_core *core, struct fc_core_save *save, struct fc_worker *worker)
{
	fc_list_remove(&save->queue_link);
	core->save_progress_ns = fc_core_now_ns(core);
	if (save->claim.reservation.grant_count == 0)
		commit(core, save);
	else
		start_job(core, save, worker);
}

/* ---- spills ---- */

static void on_spill_ended(struct fc_save_job *job)
{
	struct fc_worker *worker = fc_container_of(job, struct fc_worker, save_job);
	struct fc_core *core = worker->core;
	worker->is_spilling = core->is_spill_open = false;
	cut_source(core, job, &core->spill_from);
	if (job->code != FC_OK)
		fc_catalog_spill_failed(core->catalog, &core->spill_from, job->code);
	fc_catalog_release(core->catalog, &core->spill_from);
	if (job->code != FC_OK)
		fc_catalog_abort(core->catalog, &core->spill);
	else if (fc_catalog_commit(core->catalog, &core->spill) == FC_OK)
		core->segments_spilled++;
}

static void on_spill_durable(struct fc_reservation *reservation)
{
	(void)reservation;
}

static void start_spill(struct fc_core *core, struct fc_worker *worker)
{
	/* Until the last one is durable, or room for the next has been tried to make, its reservation is in use. */
	if (core->catalog == NULL || core->is_spill_open || core->spill.durable_pending > 0 ||
	    fc_link_is_linked(&core->spill.wait_link))
		return;
	core->spill.durable_cb = on_spill_durable;
	core->spill.space_cb = on_spill_durable;
	if (fc_catalog_spill_next(core->catalog, &core->spill_from, &core->spill) != FC_OK)
		return;
	set_job(core, worker, &core->spill);
	worker->save_job.original = &core->spill_from.placed[0];
	worker->save_job.ended_cb = on_spill_ended;
	worker->is_spilling = core->is_spill_open = true;
	int code = fc_save_job_start(&worker->save_job, &worker->stream, NULL);
	if (code == FC_OK)
		return;
	worker->is_spilling = core->is_spill_open = false;
	fc_catalog_spill_failed(core->catalog, &core->spill_from, code);
	fc_catalog_release(core->catalog, &core->spill_from);
	fc_catalog_abort(core->catalog, &core->spill);
}

void fc_core_dispatch_saves(struct fc_core *core)
{
	for (uint32_t i = fc_core_first_save_worker(core); i < core->worker_count; i++) {
		struct fc_worker *worker = &core->workers[i];
		while (!worker->stream.is_busy && !fc_list_is_empty(&core->save_queue)) {
			struct fc_core_save *save =
				fc_container_of(core->save_queue.next, struct fc_core_save, queue_link);
			if (save->state == FC_SAVE_QUEUED)
				ask_for_space(core, save);
			if (save->state == FC_SAVE_RESERVING)
				break; /* and those behind it wait too */
			if (save->state == FC_SAVE_RESERVED)
				start_save(core, save, worker);
		}
		if (!worker->stream.is_busy)
			start_spill(core, worker);
	}
}

void fc_core_check_save_queue(struct fc_core *core, uint64_t now_ns)
{
	bool is_late = now_ns - core->save_progress_ns >= core->opts.io_timeout_ns;
	if (!is_late && !fc_core_are_stuck(core, fc_core_first_save_worker(core), core->worker_count))
		return;
	fc_list_for_each_safe(link, &core->save_queue)
	{
		fail(core, fc_container_of(link, struct fc_core_save, queue_link), FC_ETIMEOUT);
	}
}

/* ---- submit, cancel, free ---- */

static int check_save(const struct fc_core *core, const struct fc_save_opts *opts, const struct fc_paged_layer *layers,
		      struct fc_error *error)
{
	if ((opts->keys == NULL && opts->key_count > 0) ||
	    (opts->resume_points == NULL && opts->resume_point_count > 0))
		return fc_error_set(error, FC_EINVAL, "save: an array is NULL, but its count is not 0");
	if (opts->key_count > UINT32_MAX)
		return fc_error_set(error, FC_EINVAL, "save: %llu keys; at most %u are allowed",
				    (unsigned long long)opts->key_count, UINT32_MAX);
	if (opts->resume_point_count > opts->key_count)
		return fc_error_set(error, FC_EINVAL, "save: %llu resume points on a path of %llu blocks",
				    (unsigned long long)opts->resume_point_count, (unsigned long long)opts->key_count);
	if (opts->shared_blocks > opts->key_count)
		return fc_error_set(error, FC_EINVAL, "save: %llu shared blocks of %llu",
				    (unsigned long long)opts->shared_blocks, (unsigned long long)opts->key_count);
	return fc_core_check_slots(core, opts->slots, layers, "save", error);
}

static int copy_request(struct fc_core *core, struct fc_core_save *save, const struct fc_save_opts *opts)
{
	int code = fc_core_copy_keys(core, &save->keys, &save->key_room, opts->keys, opts->key_count);
	if (code == FC_OK)
		code = fc_core_copy_array(core->alloc, (void **)&save->resume_points, &save->resume_room,
					  opts->resume_points, opts->resume_point_count, sizeof(*save->resume_points));
	if (code == FC_OK)
		code = fc_core_copy_slots(core, &save->target, &save->slot_memory, &save->slot_room, opts->slots);
	return code;
}

static void set_claim(struct fc_core_save *save, const struct fc_save_opts *opts)
{
	const struct fc_geometry *geometry = save->core->opts.catalog.geometry;
	struct fc_claim *claim = &save->claim;
	claim->turn = (struct fc_turn){
		.session = opts->session,
		.keys = save->keys,
		.key_count = opts->key_count,
		.shared_blocks = opts->shared_blocks,
		.turn = opts->turn,
		.previous_reply_tokens = opts->previous_reply_tokens,
		.resume_points = save->resume_points,
		.resume_point_count = opts->resume_point_count,
	};
	for (uint32_t group = 0; group < geometry->group_count; group++) {
		claim->turn.resident[group].first_block = save->target.slots[group].first_block;
		claim->turn.resident[group].count = save->target.slots[group].count;
	}
	claim->reservation.session = opts->session; /* what a save that is cancelled before it began reports */
	claim->reservation.blocks_new = claim->reservation.bytes_new = claim->reservation.segments_absorbed = 0;
	claim->reserved_cb = on_reserved;
	claim->visible_cb = on_visible;
	claim->durable_cb = on_durable;
	claim->lost_cb = on_lost;
}

int fc_core_save_submit(struct fc_core *core, const struct fc_save_opts *opts, const struct fc_paged_layer *layers,
			void *owner, struct fc_core_save **result, struct fc_error *error)
{
	int code = check_save(core, opts, layers, error);
	if (code != FC_OK)
		return code;
	if (fc_list_is_empty(&core->free_saves))
		return fc_error_set(error, FC_ELIMIT, "save: %u saves are open, which is the limit (requests_max)",
				    core->opts.requests_max);
	struct fc_core_save *save = fc_container_of(core->free_saves.next, struct fc_core_save, link);
	code = copy_request(core, save, opts);
	if (code != FC_OK)
		return fc_error_set(error, code, "save: %s", fc_code_text(code));
	save->core = core;
	save->target.layers = layers;
	save->owner = owner;
	save->worker = NULL;
	save->state = FC_SAVE_QUEUED;
	save->is_cancelled = save->is_lost = save->is_freed = save->is_reported = false;
	save->result = (struct fc_save_result){0};
	set_claim(save, opts);
	fc_list_remove(&save->link);
	if (fc_list_is_empty(&core->save_queue))
		core->save_progress_ns = fc_core_now_ns(core);
	fc_list_push(&core->saves, &save->link);
	fc_list_push(&core->save_queue, &save->queue_link);
	core->save_count++;
	save->sequence = core->saves_total++;
	*result = save;
	return FC_OK;
}

void fc_core_save_cancel(struct fc_core *core, struct fc_core_save *save)
{
	if (save->state <= FC_SAVE_RESERVED) { /* in the queue */
		fail(core, save, FC_ECANCELED);
	} else if (save->state == FC_SAVE_WRITING && !save->is_cancelled) {
		save->is_cancelled = true;
		fc_save_job_stop(&save->worker->save_job);
	}
}

void fc_core_save_free(struct fc_core *core, struct fc_core_save *save)
{
	save->is_freed = true;
	fc_core_save_cancel(core, save);
	settle(core, save);
}

/* The caller is told; the reservation stays until the write returns, because it may still land. */
void fc_core_save_is_stuck(struct fc_core *core, struct fc_worker *worker)
{
	struct fc_core_save *save = worker->save;
	save->is_cancelled = true;
	fc_save_job_stop(&worker->save_job);
	if (!save->is_reported)
		fc_error_set(&save->result.error, FC_ETIMEOUT,
			     "save: nothing was written for io_timeout_ns, %llu ms; the SSD arena does not answer",
			     (unsigned long long)core->opts.io_timeout_ns / 1000000);
	report(core, save, FC_ETIMEOUT);
}
