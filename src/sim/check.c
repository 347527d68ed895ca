#include "sim/check.h"

#include "format/arena.h"
#include "format/checksum.h"

#include <string.h>

#define STARTS_MAX 40u
#define STARTS_WIRED_MAX 64u /* each time it does without what it found damaged: the core's own limit */

/* ---- what the store says of itself ---- */

static struct fc_sim_reclaimed reclaimed_now(struct fc_sim *sim, const struct fc_stats *stats)
{
	struct fc_sim_reclaimed reclaimed = {0};
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		reclaimed.for_room += stats->media[medium].sessions_reclaimed;
	for (uint32_t i = 0; i < sim->settings.core.catalog.owner_count; i++) {
		struct fc_owner_stats owner;
		if (fc_catalog_owner_stats(fc_core_catalog(sim->holder.core), sim->settings.owners[i].tag, &owner) !=
		    FC_OK)
			fc_sim_broken(&sim->notes, "owner %u is not known", sim->settings.owners[i].tag);
		reclaimed.for_owner[i] = owner.sessions_reclaimed;
	}
	return reclaimed;
}

static uint64_t sum_of_losses(struct fc_sim *sim)
{
	struct fc_stats stats;
	if (!sim->holder.is_opened)
		return 0;
	fc_core_stats(sim->holder.core, &stats);
	uint64_t sum = stats.sessions_cut;
	struct fc_sim_reclaimed reclaimed = reclaimed_now(sim, &stats);
	sum += reclaimed.for_room;
	for (uint32_t i = 0; i < sim->settings.core.catalog.owner_count; i++)
		sum += reclaimed.for_owner[i];
	return sum;
}

/* Commands that failed where what they withdraw is heard of later: of the daemon in a wired world, and of batches that
 * nobody waits for any more. */
static uint64_t sum_of_failures(const struct fc_sim *sim)
{
	bool is_heard_later = sim->is_wired || sim->late_count > 0;
	uint64_t sum = 0;
	for (int medium = 0; medium < FC_MEDIUM_COUNT && is_heard_later; medium++)
		sum += sim->media[medium] == NULL ? 0 : sim->media[medium]->media.counters.errors;
	return sum;
}

uint64_t fc_sim_losses(struct fc_sim *sim)
{
	return sim->losses + sim->withdrawals + sum_of_losses(sim) + fc_sim_fired(sim) + sum_of_failures(sim);
}

/* A segment that lacks memory for its names may go without a word, so lacking memory counts. */
uint64_t fc_sim_reclaims(struct fc_sim *sim)
{
	return sim->losses + sum_of_losses(sim) + sim->holder.memory.failed_count;
}

uint64_t fc_sim_process_cuts(const struct fc_sim_process *process)
{
	struct fc_stats stats;
	if (process->core == NULL)
		return 0;
	fc_core_stats(process->core, &stats);
	return stats.sessions_cut + stats.checksum_failures;
}

/* Reads that failed where one had failed before: what fails once is read again, and costs nothing. */
static uint64_t sum_of_rereads(const struct fc_sim *sim)
{
	uint64_t sum = 0;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		sum += sim->media[medium] == NULL ? 0 : sim->media[medium]->reread_failures;
	return sum;
}

uint64_t fc_sim_cuts(struct fc_sim *sim)
{
	uint64_t cuts = sim->cuts_before + fc_sim_process_cuts(&sim->holder) + sum_of_rereads(sim);
	for (uint32_t i = 0; i < sim->settings.engine_count; i++)
		cuts += fc_sim_process_cuts(&sim->engines[i].process);
	return cuts;
}

static struct fc_key mix(struct fc_key key, struct fc_key salt)
{
	return (struct fc_key){key.high ^ salt.high, key.low ^ salt.low};
}

int fc_sim_match(struct fc_sim *sim, uint32_t node, uint64_t limit, struct fc_key *keys, struct fc_path *path)
{
	struct fc_key stored[FC_SIM_PATH_BLOCKS_MAX];
	double probability = sim->holder.memory.fail_probability;
	sim->holder.memory.fail_probability = 0;
	uint32_t depth = fc_sim_model_keys(&sim->model, node, keys);
	for (uint32_t i = 0; i < depth; i++)
		stored[i] = mix(keys[i], sim->spaces[sim->model.nodes[node].space].salt);
	int code = fc_catalog_match(fc_core_catalog(sim->holder.core), stored, depth, limit, false, path);
	sim->holder.memory.fail_probability = probability;
	return code;
}

uint64_t fc_sim_matched(struct fc_sim *sim, uint32_t node, uint64_t limit)
{
	struct fc_key keys[FC_SIM_PATH_BLOCKS_MAX];
	struct fc_path path = {0};
	if (!sim->holder.is_opened)
		return 0; /* nobody would answer */
	if (fc_sim_match(sim, node, limit, keys, &path) != FC_OK)
		fc_sim_broken(&sim->notes, "a match fails");
	uint64_t blocks = path.blocks;
	fc_path_deinit(&path, &sim->holder.memory.alloc);
	return blocks;
}

static uint64_t depth_of(const struct fc_sim *sim, uint32_t node)
{
	return sim->model.nodes[node].depth;
}

static bool is_stored(struct fc_sim *sim, uint32_t node)
{
	return fc_sim_matched(sim, node, 0) == depth_of(sim, node);
}

/* ---- bytes where they lie ---- */

static void compare_block(struct fc_sim *sim, const struct fc_placed *placed, uint32_t group, uint64_t entry,
			  struct fc_key key)
{
	const struct fc_geometry *geometry = &sim->settings.geometry;
	const uint8_t *segment = sim->media[fc_gva_medium(placed->base)]->image + fc_gva_offset(placed->base);
	const struct fc_range *range = fc_shape_range_of(placed->shape, entry);
	struct fc_layer_area area;
	fc_layer_first(geometry, placed->shape, placed->header_bytes, &area);
	do {
		uint64_t bytes = geometry->groups[group].slice_bytes[area.layer];
		if (bytes == 0)
			continue;
		struct fc_range_area where = fc_range_area_in(geometry, placed->shape, &area, range);
		const uint8_t *slice = segment + where.slice_offset + (entry - range->entry_first) * bytes;
		if (!fc_sim_slice_is(key, group, area.layer, slice, bytes))
			fc_sim_broken(&sim->notes, "the bytes at %llx are not those of group %u, layer %u, entry %llu",
				      (unsigned long long)placed->base.bits, group, area.layer,
				      (unsigned long long)entry);
	} while (fc_layer_next(geometry, placed->shape, placed->align, &area));
}

static void compare_path(struct fc_sim *sim, const struct fc_path *path, const struct fc_key *keys, uint32_t space)
{
	struct fc_key secret = sim->spaces[space].secret;
	if (sim->payload_flips > 0)
		return; /* the loads find them */
	for (uint32_t i = 0; i < path->span_count; i++) {
		const struct fc_span *span = &path->spans[i];
		uint64_t width = fc_group_span(&sim->settings.geometry, span->group);
		for (uint64_t j = 0; j < span->count; j++)
			compare_block(sim, &path->placed[span->placed], span->group, span->entry_first + j,
				      mix(keys[fc_group_key_position(width, span->block_first + j)], secret));
	}
}

static void compare_stored(struct fc_sim *sim, uint32_t node)
{
	struct fc_key keys[FC_SIM_PATH_BLOCKS_MAX];
	struct fc_path path = {0};
	if (fc_sim_match(sim, node, 0, keys, &path) != FC_OK)
		fc_sim_broken(&sim->notes, "a match fails");
	compare_path(sim, &path, keys, sim->model.nodes[node].space);
	fc_path_deinit(&path, &sim->holder.memory.alloc);
}

void fc_sim_check_lease(struct fc_sim *sim, const struct fc_sim_client *client)
{
	if (client->load != NULL && client->load->path.is_leased && fc_sim_is_undisturbed(sim, client))
		compare_path(sim, &client->load->path, client->keys, sim->sessions[client->session].space);
}

/* ---- sessions that were lost ---- */

static bool on_session(void *context, const struct fc_session_info *info)
{
	struct fc_sim *sim = context;
	bool is_alone = true;
	for (uint32_t i = 1; i < sim->lost_count; i++)
		is_alone &= sim->lost[i].high == sim->lost[0].high && sim->lost[i].low == sim->lost[0].low;
	for (uint32_t i = 0; i < sim->lost_count; i++) {
		if (info->id.high != sim->lost[i].high || info->id.low != sim->lost[i].low)
			continue;
		if (info->leases > 0)
			fc_sim_broken(&sim->notes, "session %llx was reclaimed while it was read",
				      (unsigned long long)info->id.high);
		if (info->segments > 0 && is_alone && sim->settings.prompt_count == 0)
			fc_sim_broken(&sim->notes, "session %llx was reclaimed, and %llu segments of it are left",
				      (unsigned long long)info->id.high, (unsigned long long)info->segments);
	}
	return true;
}

static bool is_quota_spent(const struct fc_sim *sim, const struct fc_sim_reclaimed *now, struct fc_session_id id)
{
	for (uint32_t i = 0; i < sim->settings.core.catalog.owner_count; i++)
		if (sim->settings.owners[i].tag == fc_session_tag(id))
			return now->for_owner[i] > sim->reclaimed.for_owner[i];
	return false;
}

/* A quota takes sessions of its owner only: who was lost while no arena lacked room is one of them. */
static void check_quotas(struct fc_sim *sim)
{
	struct fc_stats stats;
	fc_core_stats(sim->holder.core, &stats);
	struct fc_sim_reclaimed now = reclaimed_now(sim, &stats);
	bool is_for_quotas = now.for_room == sim->reclaimed.for_room && fc_sim_fired(sim) == 0;
	for (uint32_t i = 0; i < sim->lost_count && is_for_quotas; i++)
		if (!is_quota_spent(sim, &now, sim->lost[i]))
			fc_sim_broken(&sim->notes,
				      "session %llx is lost, and neither an arena nor its owner wanted room",
				      (unsigned long long)sim->lost[i].high);
	for (uint32_t i = 0; i < sim->settings.core.catalog.owner_count; i++)
		if (now.for_owner[i] > sim->reclaimed.for_owner[i])
			fc_sim_note(&sim->notes, "  the quota of owner %llu took %llu sessions",
				    sim->settings.owners[i].tag, now.for_owner[i] - sim->reclaimed.for_owner[i], 0, 0);
	sim->reclaimed = now;
}

static bool is_being_saved(struct fc_sim *sim)
{
	if (fc_sim_daemon_has_committed(sim))
		return true;
	for (uint32_t i = 0; i < sim->settings.client_count; i++)
		if (sim->clients[i].is_fresh)
			return true;
	return false;
}

/* Reclaim takes whole sessions, and none that is read. Damage takes parts, and a turn may come back at once; where
 * sessions stand on each other in a circle, one goes whole and the others lose what stood on it; if that one is a
 * prompt's, nobody hears of it. */
void fc_sim_check_lost(struct fc_sim *sim)
{
	if (!sim->holder.is_opened)
		return;
	check_quotas(sim);
	if (sim->lost_count > 0 && fc_sim_fired(sim) == 0 && !is_being_saved(sim))
		fc_catalog_sessions(fc_core_catalog(sim->holder.core), on_session, sim);
	sim->lost_count = 0;
}

/* ---- files that are lost ---- */

void fc_sim_check_durable(struct fc_sim *sim, const struct fc_sim_client *client, const struct fc_save_result *result)
{
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (result->is_durable && sim->media[medium] != NULL && sim->media[medium]->is_lost &&
		    sim->media[medium]->lost_ns < client->saved_ns && result->bytes_written[medium] > 0)
			fc_sim_broken(&sim->notes, "client %u: a save is durable on medium %d, whose file is lost",
				      client->number, medium);
}

void fc_sim_look(struct fc_sim *sim)
{
	if (!sim->holder.is_opened || sim->look != 0)
		return;
	sim->is_look_at_lost = false;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		sim->is_look_at_lost |= sim->media[medium] != NULL && sim->media[medium]->is_lost;
	sim->look = fc_core_look(sim->holder.core);
}

static void check_look(struct fc_sim *sim)
{
	if (!sim->holder.is_opened || sim->look == 0 || fc_core_looks_ended(sim->holder.core) < sim->look)
		return;
	int code = fc_core_look_error(sim->holder.core)->code;
	fc_sim_note(&sim->notes, "looked at the arenas: %lld", (uint64_t)(int64_t)code, 0, 0, 0);
	sim->look = 0;
	if (sim->is_look_at_lost && code == FC_OK)
		fc_sim_broken(&sim->notes, "a look finds the arenas in their place, and a file is lost");
	if (code != FC_OK && fc_sim_fired(sim) == 0)
		fc_sim_broken(&sim->notes, "a look fails (%s), and nothing failed", fc_code_text(code));
}

/* ---- around a step ---- */

void fc_sim_check_before_step(struct fc_sim *sim, struct fc_sim_process *process)
{
	fc_sim_check_lost(sim); /* of what an operation did */
	for (uint32_t i = 0; i < sim->settings.client_count; i++) {
		struct fc_sim_client *client = &sim->clients[i];
		if (client->load == NULL || client->process != process)
			continue;
		client->seen_state = client->load->state;
		client->seen_attempts = client->load->attempts;
	}
}

static bool was_waiting(const struct fc_sim_client *client)
{
	return client->load != NULL && client->seen_state == FC_LOAD_PREPARE &&
	       client->load->attempts == client->seen_attempts;
}

/* The express stream is for what is short beside all that the others read. */
static void check_express(struct fc_sim *sim, const struct fc_sim_client *started)
{
	for (uint32_t i = 0; i < sim->settings.client_count; i++) {
		const struct fc_sim_client *other = &sim->clients[i];
		if (other->process != started->process || other->load == NULL ||
		    other->load->state != FC_LOAD_READING || other->load->is_express)
			continue;
		if (started->load->sched.ssd_bytes > other->load->sched.ssd_bytes / FC_CORE_EXPRESS_RATIO)
			fc_sim_broken(&sim->notes, "client %u takes the express stream, but client %u reads no more",
				      started->number, other->number);
	}
}

static void check_order(struct fc_sim *sim, const struct fc_sim_client *started)
{
	uint64_t now_ns = sim->notes.now_ns + sim->clock_skew_ns;
	for (uint32_t i = 0; i < sim->settings.client_count; i++) {
		const struct fc_sim_client *other = &sim->clients[i];
		if (other->process != started->process || !was_waiting(other) || other->load->state != FC_LOAD_PREPARE)
			continue;
		/* What is too long for the express stream waits for another. */
		if (started->load->is_express && other->load->sched.ssd_bytes > started->load->sched.ssd_bytes)
			continue;
		if (!fc_sim_may_go_before(&started->load->sched, &other->load->sched, now_ns))
			fc_sim_broken(&sim->notes, "client %u is read before client %u, against the priority",
				      started->number, other->number);
	}
}

/* A path that was lost meanwhile may be there again by this save, and not yet be durable: nobody promised that. */
static void forget_promises(struct fc_sim *sim, const struct fc_sim_client *client)
{
	uint64_t reclaims = fc_sim_reclaims(sim);
	for (uint32_t i = 0; i < sim->model.claim_count; i++) {
		struct fc_sim_claim *claim = &sim->model.claims[i];
		uint64_t depth = depth_of(sim, claim->node);
		if (claim->is_durable && claim->durable_reclaims != reclaims &&
		    depth <= depth_of(sim, client->reply_tip) &&
		    fc_sim_model_ancestor(&sim->model, client->reply_tip, (uint32_t)depth) == claim->node)
			claim->is_durable = false;
	}
}

static void check_fresh(struct fc_sim *sim, struct fc_sim_client *client)
{
	uint32_t node = fc_sim_model_ancestor(&sim->model, client->reply_tip, (uint32_t)client->saved_blocks);
	uint64_t losses = fc_sim_losses(sim);
	bool is_excused = sim->is_wired ? losses != client->losses || !fc_sim_is_undisturbed(sim, client)
					: losses != sim->operation_losses;
	client->is_fresh = false;
	forget_promises(sim, client);
	if (!is_stored(sim, node) && !is_excused)
		fc_sim_broken(&sim->notes, "client %u: path %u is saved, but only %llu of its %llu blocks are there",
			      client->number, node, (unsigned long long)fc_sim_matched(sim, node, 0),
			      (unsigned long long)client->saved_blocks);
	client->was_kept = is_stored(sim, node);
	fc_sim_model_claim(&sim->model, node, client->was_kept ? losses : UINT64_MAX, false);
	fc_sim_client_is_durable(sim, client);
}

/* What a daemon does not answer ends when its own time is over, whatever else is answered meanwhile. */
static void check_claim(struct fc_sim *sim, const struct fc_sim_client *client)
{
	const struct fc_sim_engine *engine = fc_sim_engine_of(sim, client->process);
	const struct fc_core_save *save = client->save;
	if (engine == NULL || save == NULL || save->claim.state != FC_CLAIM_ASKED ||
	    fc_client_state(engine->client) != FC_CLIENT_UP)
		return;
	uint64_t waited_ns = fc_sim_now_ns(sim) - save->claim.asked_ns;
	if (waited_ns >= sim->settings.core.io_timeout_ns)
		fc_sim_broken(&sim->notes, "client %u: its save has waited %llu ns for an answer", client->number,
			      (unsigned long long)waited_ns);
}

void fc_sim_check_after_step(struct fc_sim *sim, struct fc_sim_process *process)
{
	fc_sim_check_lost(sim);
	check_look(sim);
	for (uint32_t i = 0; i < sim->settings.client_count; i++) {
		struct fc_sim_client *client = &sim->clients[i];
		if (client->process != process)
			continue;
		if (client->load != NULL && client->load->attempts > (sim->is_wired ? STARTS_WIRED_MAX : STARTS_MAX))
			fc_sim_broken(&sim->notes, "client %u: the load starts over for ever", client->number);
		if (was_waiting(client) && client->load->state == FC_LOAD_READING)
			check_order(sim, client);
		if (was_waiting(client) && client->load->state == FC_LOAD_READING && client->load->is_express)
			check_express(sim, client);
		if (client->is_fresh)
			check_fresh(sim, client);
		check_claim(sim, client);
	}
}

/* Whatever the media do: time that is over ends a load, and memory is always there. Only a copy is waited for. */
void fc_sim_check_liveness(struct fc_sim *sim, const struct fc_sim_process *process)
{
	uint64_t now_ns = fc_sim_now_ns(sim);
	if (fc_sim_device_next_ns(&process->device) != UINT64_MAX)
		return;
	for (uint32_t i = 0; i < sim->settings.client_count; i++) {
		const struct fc_sim_client *client = &sim->clients[i];
		const struct fc_core_load *load = client->load;
		if (client->process != process || load == NULL || load->state == FC_LOAD_ENDED || load->is_in_place)
			continue;
		if (load->is_cancelled || (load->deadline_ns != 0 && now_ns >= load->deadline_ns))
			fc_sim_broken(&sim->notes, "client %u: the load %s, and goes on", client->number,
				      load->is_cancelled ? "was cancelled" : "has had its time");
		if (load->state == FC_LOAD_COPYING)
			fc_sim_broken(&sim->notes, "client %u: all is in memory, and nothing is copied",
				      client->number);
	}
}

/* ---- after an operation ---- */

static void check_lengths(struct fc_sim *sim, const struct fc_sim_process *process, const struct fc_stats *stats)
{
	uint64_t loads = 0, saves = 0, ready = 0, prepare = 0;
	for (uint32_t i = 0; i < sim->settings.client_count; i++) {
		const struct fc_sim_client *client = &sim->clients[i];
		if (client->process != process)
			continue;
		loads += client->load != NULL || (client->state == FC_SIM_LINGERING && !client->has_ended);
		saves += client->save != NULL;
		ready += client->load != NULL && client->load->state == FC_LOAD_READY;
		prepare += client->load != NULL && client->load->state == FC_LOAD_PREPARE;
	}
	if (stats->loads_active != loads || stats->saves_active < saves)
		fc_sim_broken(&sim->notes, "%llu loads and %llu saves are open, counted %llu and %llu",
			      (unsigned long long)loads, (unsigned long long)saves,
			      (unsigned long long)stats->loads_active, (unsigned long long)stats->saves_active);
	if (stats->ready_length != ready || stats->prepare_length != prepare)
		fc_sim_broken(&sim->notes, "%llu are ready and %llu in the prepare queue, counted %llu and %llu",
			      (unsigned long long)ready, (unsigned long long)prepare,
			      (unsigned long long)stats->ready_length, (unsigned long long)stats->prepare_length);
	if (!sim->is_wired && stats->leases > stats->loads_active + stats->saves_active + 1)
		fc_sim_broken(&sim->notes, "%llu leases for %llu loads and %llu saves",
			      (unsigned long long)stats->leases, (unsigned long long)stats->loads_active,
			      (unsigned long long)stats->saves_active);
}

/* An engine that was cut off may read what its lease has ceased to protect: its checksums say so. */
static bool may_read_wrong(const struct fc_sim *sim, struct fc_sim_process *process)
{
	const struct fc_sim_engine *engine = fc_sim_engine_of(sim, process);
	return sim->payload_flips > 0 || (engine != NULL && engine->disturbances > 0);
}

/* Data is cut where it is damaged, or where it could not be read by two loads that tried twice each. What engines
 * report, the daemon looks at, once for each report, however the engine came by it. */
static bool may_be_cut(const struct fc_sim *sim)
{
	uint32_t wanted = sim->is_wired ? 2 : 4;
	bool may_be = sim->payload_flips > 0;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		may_be |= sim->media[medium] != NULL && sim->media[medium]->unread_near_max >= wanted;
	return may_be;
}

static void check_process(struct fc_sim *sim, struct fc_sim_process *process)
{
	struct fc_stats stats;
	if (!process->is_opened)
		return;
	fc_core_stats(process->core, &stats);
	check_lengths(sim, process, &stats);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (stats.media[medium].bytes_used > stats.media[medium].bytes)
			fc_sim_broken(&sim->notes, "medium %d: %llu bytes used of %llu", medium,
				      (unsigned long long)stats.media[medium].bytes_used,
				      (unsigned long long)stats.media[medium].bytes);
	if (stats.checksum_failures > 0 && !may_read_wrong(sim, process))
		fc_sim_broken(&sim->notes, "%llu checksums fail, and nothing was damaged",
			      (unsigned long long)stats.checksum_failures);
	if (stats.io_errors > 0 && fc_sim_fired(sim) == 0)
		fc_sim_broken(&sim->notes, "%llu I/O errors, and nothing failed", (unsigned long long)stats.io_errors);
	if (stats.sessions_cut > 0 && !may_be_cut(sim))
		fc_sim_broken(&sim->notes, "%llu sessions are cut, and what they held is good",
			      (unsigned long long)stats.sessions_cut);
}

void fc_sim_check_counters(struct fc_sim *sim)
{
	check_process(sim, &sim->holder);
	for (uint32_t i = 0; i < sim->settings.engine_count; i++)
		check_process(sim, &sim->engines[i].process);
	if (sim->is_wired)
		fc_sim_daemon_check(sim);
}

void fc_sim_check_scan(struct fc_sim *sim)
{
	struct fc_error error = {0};
	if (fc_catalog_check(fc_core_catalog(sim->holder.core), &error) != FC_OK)
		fc_sim_broken(&sim->notes, "scan: %s", error.text);
}

void fc_sim_check_claims(struct fc_sim *sim, uint32_t compared_count)
{
	struct fc_sim_model *model = &sim->model;
	uint64_t losses = fc_sim_losses(sim);
	uint32_t first = compared_count >= model->claim_count || model->claim_count == 0
				 ? 0
				 : (uint32_t)fc_random_below(&sim->breakage, model->claim_count);
	for (uint32_t i = 0; i < model->claim_count; i++) {
		struct fc_sim_claim *claim = &model->claims[(first + i) % model->claim_count];
		if (!is_stored(sim, claim->node)) {
			/* What the daemon cannot make durable is withdrawn when its batch has ended; it is heard of
			 * later. */
			bool may_be_withdrawn = !claim->is_durable && sum_of_failures(sim) > 0;
			if (claim->losses == losses && !may_be_withdrawn)
				fc_sim_broken(
					&sim->notes,
					"path %u of %llu blocks was saved, and %llu are there, though nothing was "
					"lost",
					claim->node, (unsigned long long)depth_of(sim, claim->node),
					(unsigned long long)fc_sim_matched(sim, claim->node, 0));
			if (claim->is_durable && claim->durable_reclaims == fc_sim_reclaims(sim))
				fc_sim_broken(
					&sim->notes,
					"path %u of %llu blocks was durable, and %llu are there after a write was "
					"refused",
					claim->node, (unsigned long long)depth_of(sim, claim->node),
					(unsigned long long)fc_sim_matched(sim, claim->node, 0));
			claim->losses = UINT64_MAX;
			continue;
		}
		if (claim->losses != losses)
			claim->losses = losses; /* it has lived through them: claimed anew */
		if (i < compared_count)
			compare_stored(sim, claim->node);
	}
}

static bool on_segment(void *context, const struct fc_segment_info *info)
{
	struct fc_sim *sim = context;
	if (!info->is_kept && fc_sim_fired(sim) == 0) /* else what was to free it may have failed */
		fc_sim_broken(&sim->notes, "at rest: %llu bytes at %llx are reserved, or never freed",
			      (unsigned long long)info->bytes, (unsigned long long)info->placed.base.bits);
	return true;
}

void fc_sim_check_idle(struct fc_sim *sim)
{
	struct fc_stats stats;
	fc_core_stats(sim->holder.core, &stats);
	if (stats.leases + stats.loads_active + stats.saves_active + stats.ready_length + stats.prepare_length > 0)
		fc_sim_broken(&sim->notes, "at rest: %llu leases, %llu loads, %llu saves",
			      (unsigned long long)stats.leases, (unsigned long long)stats.loads_active,
			      (unsigned long long)stats.saves_active);
	for (uint32_t i = 0; i < sim->settings.client_count; i++)
		if (sim->clients[i].state != FC_SIM_IDLE)
			fc_sim_broken(&sim->notes, "at rest: client %u never had the last word about its request", i);
	fc_catalog_segments(fc_core_catalog(sim->holder.core), on_segment, sim);
	fc_sim_check_scan(sim);
}

/* ---- promises ---- */

static bool is_wholly_durable(const struct fc_sim *sim, uint32_t node)
{
	for (uint32_t at = node; at != FC_SIM_ROOT; at = sim->model.nodes[at].parent)
		if (!sim->model.nodes[at].is_durable)
			return false;
	return true;
}

/* Since the last reclaim or cut, that is. */
static bool is_durable_since(struct fc_sim *sim, uint32_t node)
{
	uint64_t reclaims = fc_sim_reclaims(sim);
	for (uint32_t at = node; at != FC_SIM_ROOT; at = sim->model.nodes[at].parent)
		if (sim->model.nodes[at].durable_reclaims != reclaims)
			return false;
	return true;
}

/* A reclaim may have taken the durable copy of blocks that another session keeps in memory; as long as nothing was
 * lost, or all of it lies where it outlives the process, it has to be there afterwards. */
static bool must_survive(struct fc_sim *sim, const struct fc_sim_claim *claim)
{
	struct fc_key keys[FC_SIM_PATH_BLOCKS_MAX];
	struct fc_path path = {0};
	bool is_volatile = false;
	if (!claim->is_durable || !is_wholly_durable(sim, claim->node) || !is_stored(sim, claim->node))
		return false;
	if (claim->durable_reclaims == fc_sim_reclaims(sim) && is_durable_since(sim, claim->node))
		return true;
	if (sim->is_wired)
		return false; /* it may be there again by a save whose end has not been heard of */
	if (fc_sim_match(sim, claim->node, 0, keys, &path) != FC_OK)
		fc_sim_broken(&sim->notes, "a match fails");
	for (uint32_t i = 0; i < path.placed_count; i++)
		is_volatile |= !sim->settings.media[fc_gva_medium(path.placed[i].base)].is_durable;
	fc_path_deinit(&path, &sim->holder.memory.alloc);
	return !is_volatile;
}

/* Where a path lies, for who reads the log. */
static void note_path(struct fc_sim *sim, uint32_t node)
{
	struct fc_key keys[FC_SIM_PATH_BLOCKS_MAX];
	struct fc_path path = {0};
	if (sim->notes.log == NULL || fc_sim_match(sim, node, 0, keys, &path) != FC_OK)
		return;
	fprintf(sim->notes.log, "%22s path %u:", "", node);
	for (uint32_t i = 0; i < path.span_count; i++)
		fprintf(sim->notes.log, " %u:%llu+%llu@%llx", path.spans[i].group,
			(unsigned long long)path.spans[i].block_first, (unsigned long long)path.spans[i].count,
			(unsigned long long)path.placed[path.spans[i].placed].base.bits);
	fputc('\n', sim->notes.log);
	fc_path_deinit(&path, &sim->holder.memory.alloc);
}

void fc_sim_promises_take(struct fc_sim *sim)
{
	const struct fc_sim_model *model = &sim->model;
	sim->promised_count = 0;
	for (uint32_t i = 0; i < model->claim_count; i++) {
		const struct fc_sim_claim *claim = &model->claims[i];
		if (must_survive(sim, claim))
			sim->promised[sim->promised_count++] = claim->node;
	}
	for (uint32_t i = 0; i < sim->promised_count; i++)
		note_path(sim, sim->promised[i]);
	sim->losses += sum_of_losses(sim) + 1; /* its counters end with the process */
	fc_sim_note(&sim->notes, "%llu paths of %llu must survive", sim->promised_count, model->claim_count, 0, 0);
}

/* A header that was damaged at rest, and is still what it was then, must not have been believed. */
static void check_damaged_headers(struct fc_sim *sim, uint32_t node)
{
	struct fc_key keys[FC_SIM_PATH_BLOCKS_MAX];
	struct fc_path path = {0};
	if (sim->damaged_count == 0 || fc_sim_match(sim, node, 0, keys, &path) != FC_OK)
		return;
	for (uint32_t i = 0; i < path.placed_count; i++)
		for (uint32_t j = 0; j < sim->damaged_count; j++) {
			const struct fc_sim_damaged_header *damaged = &sim->damaged[j];
			const struct fc_sim_medium *medium = sim->media[damaged->medium];
			if (fc_gva_medium(path.placed[i].base) == damaged->medium &&
			    fc_gva_offset(path.placed[i].base) == damaged->offset &&
			    fc_checksum(medium->image + damaged->offset, damaged->bytes, 0) == damaged->digest)
				fc_sim_broken(&sim->notes, "the damaged header at %llu was believed",
					      (unsigned long long)damaged->offset);
		}
	fc_path_deinit(&path, &sim->holder.memory.alloc);
}

static void set_node_durable(struct fc_sim_node *node, uint64_t reclaims)
{
	node->is_durable = true;
	node->durable_reclaims = reclaims;
}

/* What has survived the process is durable; what has not is no claim any more. */
static void begin_anew(struct fc_sim *sim)
{
	struct fc_sim_model *model = &sim->model;
	uint64_t losses = fc_sim_losses(sim);
	for (uint32_t node = 0; node < model->node_count; node++)
		model->nodes[node].is_durable = false;
	for (uint32_t i = 0; i < model->claim_count; i++) {
		struct fc_sim_claim *claim = &model->claims[i];
		claim->is_durable = is_stored(sim, claim->node);
		claim->losses = claim->is_durable ? losses : UINT64_MAX;
		claim->durable_reclaims = fc_sim_reclaims(sim);
		for (uint32_t at = claim->node; at != FC_SIM_ROOT && claim->is_durable; at = model->nodes[at].parent)
			set_node_durable(&model->nodes[at], fc_sim_reclaims(sim));
	}
}

/* What an opening finds whole it keeps, copies too: nobody has read yet which of two is the good one. */
static void check_kept(struct fc_sim *sim)
{
	struct fc_stats stats;
	uint64_t kept = 0;
	fc_core_stats(sim->holder.core, &stats);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		kept += stats.media[medium].segments;
	if (kept + stats.dropped_segments < stats.recovered_segments)
		fc_sim_broken(&sim->notes, "%llu segments are found whole, %llu are dropped, and %llu are kept",
			      (unsigned long long)stats.recovered_segments, (unsigned long long)stats.dropped_segments,
			      (unsigned long long)kept);
}

void fc_sim_promises_check(struct fc_sim *sim, bool is_excused)
{
	check_kept(sim);
	for (uint32_t i = 0; i < sim->promised_count && !is_excused; i++)
		if (!is_stored(sim, sim->promised[i]))
			fc_sim_broken(&sim->notes, "path %u of %llu blocks was durable, and %llu are left",
				      sim->promised[i], (unsigned long long)depth_of(sim, sim->promised[i]),
				      (unsigned long long)fc_sim_matched(sim, sim->promised[i], 0));
	for (uint32_t i = 0; i < sim->promised_count; i++)
		compare_stored(sim, sim->promised[i]);
	for (uint32_t i = 0; i < sim->model.claim_count; i++)
		check_damaged_headers(sim, sim->model.claims[i].node);
	sim->promised_count = sim->damaged_count = 0;
	begin_anew(sim);
}

/* ---- ends of requests ---- */

/* However full the store is: what a save asks for is never what makes room for it. In a wired world the word of it
 * travels, and the next save may have come meanwhile. */
void fc_sim_check_saved(struct fc_sim *sim, const struct fc_sim_client *client)
{
	uint32_t node = fc_sim_model_ancestor(&sim->model, client->reply_tip, (uint32_t)client->saved_blocks);
	bool is_excused = sim->is_wired || fc_sim_cuts(sim) != client->cuts || fc_sim_fired(sim) != client->fired;
	if (!is_excused && !is_stored(sim, node))
		fc_sim_broken(
			&sim->notes,
			"client %u: path %u is acknowledged, and at that moment %llu of its %llu blocks are there",
			client->number, node, (unsigned long long)fc_sim_matched(sim, node, 0),
			(unsigned long long)client->saved_blocks);
}

static bool may_run_out_of_time(const struct fc_sim *sim)
{
	const double *probability = sim->faults.probability;
	return probability[FC_FAULT_STUCK] + probability[FC_FAULT_LATE] + probability[FC_FAULT_BLOCKED] +
		       probability[FC_FAULT_CLOCK_JUMP] >
	       0;
}

static bool may_lack_memory(const struct fc_sim *sim)
{
	return sim->faults.probability[FC_FAULT_ALLOCATION] > 0;
}

void fc_sim_check_load_code(struct fc_sim *sim, const struct fc_sim_client *client, int code)
{
	bool is_allowed = code == FC_OK || (code == FC_ECANCELED && client->is_cancelled) ||
			  (code == FC_ETIMEOUT && (client->has_timeout || may_run_out_of_time(sim))) ||
			  (code == FC_ENOMEM && may_lack_memory(sim));
	if (!is_allowed)
		fc_sim_broken(&sim->notes, "client %u: a load ends with: %s (%s)", client->number, fc_code_text(code),
			      client->load == NULL ? "" : client->load->result.error.text);
}

void fc_sim_check_save_code(struct fc_sim *sim, const struct fc_sim_client *client, int code)
{
	bool is_disturbed = !fc_sim_is_undisturbed(sim, client);
	bool is_allowed = false;
	switch (code) {
	case FC_OK:
	case FC_EFULL:
		is_allowed = true;
		break;
	case FC_ECANCELED:
		is_allowed = client->is_cancelled;
		break;
	case FC_EIO:
		is_allowed = fc_sim_fired(sim) > 0;
		break;
	case FC_ENOMEM:
		is_allowed = may_lack_memory(sim);
		break;
	case FC_ETIMEOUT: /* or the answer to its reservation was lost, or that of one before it */
		is_allowed = may_run_out_of_time(sim) || is_disturbed || sim->faults.probability[FC_FAULT_MUTE] > 0;
		break;
	case FC_EAGAIN: /* no connection for too long */
		is_allowed = is_disturbed;
		break;
	case FC_ELIMIT: /* its process's share of what may be reserved */
		is_allowed = sim->is_wired;
		break;
	case FC_EINVAL: /* what the client thought was stored has gone meanwhile */
		is_allowed = client->is_partly_resident;
		break;
	case FC_ENOENT:
		is_allowed = fc_sim_cuts(sim) > 0 || fc_sim_fired(sim) > 0 || is_disturbed;
		break;
	case FC_ECORRUPT:
		is_allowed = sim->payload_flips > 0 || is_disturbed;
		break;
	}
	if (!is_allowed)
		fc_sim_broken(&sim->notes, "client %u: a save ends with: %s (%s)", client->number, fc_code_text(code),
			      client->save == NULL ? "" : client->save->result.error.text);
}
