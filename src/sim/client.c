/* Clients: engines that load a history, prefill what is new, and save the turn. And that cancel, or vanish.
 *
 *   IDLE --start--> LOADING --(ended, taken)--> continue: prefill and save --> SAVING --(durable, or failed)--> IDLE
 *                      |                                                         |
 *                      '------------- vanish: freed in the middle ---------------+--> LINGERING --(last word)--> IDLE
 *
 * What the store says is checked inside the event, because that is when an engine would believe it. Events must not
 * call back, so all calls are made between steps. A client's paged memory belongs to the store from the submission to
 * the last word about it; after that it is wiped, and must be found wiped when it is used again. */
#include "sim/check.h"

#include <string.h>

static struct fc_sim_node *node_at(struct fc_sim *sim, uint32_t tip, uint32_t depth)
{
	return &sim->model.nodes[fc_sim_model_ancestor(&sim->model, tip, depth)];
}

static uint64_t whole_granules(const struct fc_sim *sim, uint64_t blocks)
{
	return blocks - blocks % fc_resume_granule(&sim->settings.geometry);
}

static void give_back_memory(struct fc_sim_client *client)
{
	client->is_kv_lent = false;
	fc_sim_kv_wipe(&client->kv);
}

static void go_idle(struct fc_sim *sim, struct fc_sim_client *client)
{
	if (sim->sessions[client->session].is_busy && client->state != FC_SIM_LINGERING)
		sim->sessions[client->session].is_busy = false;
	client->state = FC_SIM_IDLE;
	client->load = NULL;
	client->save = NULL;
	give_back_memory(client);
}

/* ---- loading ---- */

/* Since it submitted its load, or its save. */
bool fc_sim_is_undisturbed(const struct fc_sim *sim, const struct fc_sim_client *client)
{
	const struct fc_sim_engine *engine = fc_sim_engine_of(sim, client->process);
	return engine == NULL || (engine->disturbances == client->disturbances &&
				  fc_client_state(engine->client) == FC_CLIENT_UP && engine->connection->is_open);
}

bool fc_sim_client_may_start(const struct fc_sim *sim, const struct fc_sim_client *client, uint32_t space)
{
	const struct fc_sim_engine *engine = fc_sim_engine_of(sim, client->process);
	return client->state == FC_SIM_IDLE && client->process->is_opened && (engine == NULL || engine->space == space);
}

/* What it will be held against. */
static void note_beginning(struct fc_sim *sim, struct fc_sim_client *client)
{
	const struct fc_sim_engine *engine = fc_sim_engine_of(sim, client->process);
	client->submitted_ns = sim->notes.now_ns;
	client->losses = fc_sim_losses(sim);
	client->disturbances = engine == NULL ? 0 : engine->disturbances;
	if (engine != NULL &&
	    (fc_client_state(engine->client) != FC_CLIENT_UP || engine->deaf_until_ns > sim->notes.now_ns ||
	     engine->stopped_until_ns != 0 || sim->daemon.is_fenced))
		client->disturbances = UINT64_MAX; /* it begins disturbed */
	client->cuts = fc_sim_cuts(sim);
	client->fired = fc_sim_fired(sim);
	client->saved_reclaims = fc_sim_reclaims(sim);
}

static void check_limit(struct fc_sim *sim, const struct fc_sim_client *client, int code, uint64_t active,
			const char *what)
{
	bool is_full = active == sim->settings.core.requests_max;
	bool is_allowed =
		(code == FC_ELIMIT && is_full) || (code == FC_ENOMEM && client->process->memory.fail_probability > 0);
	if (!is_allowed)
		fc_sim_broken(&sim->notes, "%s is refused: %s", what, fc_code_text(code));
	sim->counts.refused++;
}

static uint64_t active_count(const struct fc_sim_process *process, bool of_loads)
{
	struct fc_stats stats;
	fc_core_stats(process->core, &stats);
	return of_loads ? stats.loads_active : stats.saves_active;
}

static void begin_load(struct fc_sim *sim, struct fc_sim_client *client)
{
	client->state = FC_SIM_LOADING;
	client->is_kv_lent = true;
	note_beginning(sim, client);
	client->is_started_when_ready = fc_random_below(&sim->random, 2) == 0;
	client->has_timeout = fc_random_below(&sim->random, 10) == 0;
	client->has_ended = client->is_taken = client->is_ready_told = client->is_cancelled = false;
	client->is_saved_told = client->is_save_closed = client->is_fresh = client->is_durable = false;
	client->loaded_blocks = 0;
	client->next_layer = 0;
	client->seen_state = 0;
}

static void submit_load(struct fc_sim *sim, struct fc_sim_client *client)
{
	const struct fc_geometry *geometry = &sim->settings.geometry;
	uint32_t depth = sim->model.nodes[client->prompt_tip].depth;
	struct fc_load_opts opts = {
		.keys = client->keys,
		.key_count = depth,
		.is_started_when_ready = client->is_started_when_ready,
	};
	if (fc_random_below(&sim->random, 10) == 0)
		opts.blocks_max = fc_random_between(&sim->random, 1, depth);
	if (client->has_timeout)
		opts.timeout_ns = fc_random_between(&sim->random, 1, 50000000);
	for (uint32_t group = 0; group < geometry->group_count; group++)
		opts.slots[group] = fc_sim_kv_slots(&client->kv, group, 0, depth / fc_group_span(geometry, group));
	uint64_t limit = opts.blocks_max == 0 ? depth : fc_min_u64(depth, opts.blocks_max);
	client->matched_blocks = fc_sim_matched(sim, client->prompt_tip, limit);
	sim->counts.loads++;
	fc_sim_note(&sim->notes, "client %llu: load of %llu blocks, %llu stored, path %llu", client->number, depth,
		    client->matched_blocks, client->prompt_tip);
	int code = fc_core_load_submit(client->process->core, &opts, client->kv.layers, client, &client->load, NULL);
	if (code == FC_OK)
		return;
	check_limit(sim, client, code, active_count(client->process, true), "load");
	go_idle(sim, client);
}

/* The prompt of the next turn, and the reply that will follow it. */
void fc_sim_client_start(struct fc_sim *sim, struct fc_sim_client *client, uint32_t session_number)
{
	struct fc_sim_session *session = &sim->sessions[session_number];
	uint32_t tip = session->tip;
	uint64_t growth = session->kind == FC_SIM_AGENT ? 6 : 3;
	for (uint64_t more = fc_random_between(&sim->random, 1, growth); more > 0; more--)
		tip = fc_sim_next_block(sim, session->space, tip);
	client->prompt_tip = tip;
	for (uint64_t more = fc_random_below(&sim->random, growth); more > 0; more--)
		tip = fc_sim_next_block(sim, session->space, tip);
	client->reply_tip = tip;
	client->session = session_number;
	session->is_busy = true;
	fc_sim_model_keys(&sim->model, tip, client->keys);
	if (!fc_sim_kv_is_wiped(&client->kv))
		fc_sim_broken(&sim->notes, "client %u: memory that was given back has been written to", client->number);
	begin_load(sim, client);
	submit_load(sim, client);
}

static void on_layer(struct fc_sim *sim, struct fc_sim_client *client, const struct fc_core_load *load, uint32_t layer)
{
	uint32_t group = 0;
	uint64_t block = 0;
	if (client->has_ended)
		fc_sim_broken(&sim->notes, "client %u: layer %u after the end", client->number, layer);
	if (layer == 0)
		client->next_layer = 0; /* it started over */
	if (layer != client->next_layer)
		fc_sim_broken(&sim->notes, "client %u: layer %u is announced, layer %u is next", client->number, layer,
			      client->next_layer);
	client->next_layer++;
	if (!fc_sim_kv_has_layer(&client->kv, client->keys, load->result.blocks, layer, &group, &block))
		fc_sim_broken(
			&sim->notes,
			"client %u: layer %u is announced for %llu blocks, and block %llu of group %u is not right",
			client->number, layer, (unsigned long long)load->result.blocks, (unsigned long long)block,
			group);
}

static void check_delivered(struct fc_sim *sim, struct fc_sim_client *client, const struct fc_core_load *load)
{
	const struct fc_geometry *geometry = &sim->settings.geometry;
	uint64_t blocks = load->result.blocks;
	if (blocks > load->key_count || blocks != whole_granules(sim, blocks) ||
	    (load->blocks_max > 0 && blocks > load->blocks_max))
		fc_sim_broken(&sim->notes, "client %u: %llu blocks are delivered, which is no resume point of %llu",
			      client->number, (unsigned long long)blocks, (unsigned long long)load->key_count);
	bool is_asked_at_once = !sim->is_wired && load->attempts == 0; /* later it may find more */
	if (blocks > client->matched_blocks && is_asked_at_once)
		fc_sim_broken(&sim->notes, "client %u: %llu blocks are delivered, %llu were stored", client->number,
			      (unsigned long long)blocks, (unsigned long long)client->matched_blocks);
	bool is_late = sim->is_wired && (!fc_sim_is_undisturbed(sim, client) || fc_sim_losses(sim) != client->losses);
	if (blocks < client->matched_blocks && fc_sim_cuts(sim) == client->cuts && !is_late)
		fc_sim_broken(&sim->notes, "client %u: %llu blocks are delivered of %llu, and nothing was cut",
			      client->number, (unsigned long long)blocks, (unsigned long long)client->matched_blocks);
	if (blocks > 0 && client->next_layer != geometry->layer_count)
		fc_sim_broken(&sim->notes, "client %u: ended after %u of %u layers", client->number, client->next_layer,
			      geometry->layer_count);
	for (uint32_t layer = 0; layer < geometry->layer_count; layer++) {
		uint32_t group = 0;
		uint64_t block = 0;
		if (!fc_sim_kv_has_layer(&client->kv, client->keys, blocks, layer, &group, &block))
			fc_sim_broken(&sim->notes, "client %u: block %llu of group %u, layer %u is not what was saved",
				      client->number, (unsigned long long)block, group, layer);
	}
	for (uint32_t depth = 1; depth <= blocks; depth++) {
		const struct fc_sim_node *node = node_at(sim, client->prompt_tip, depth);
		if (!node->is_saved && node->open_saves == 0)
			fc_sim_broken(&sim->notes, "client %u: block %u is delivered, and nobody saved it",
				      client->number, depth - 1);
	}
	sim->counts.blocks_delivered += blocks;
}

static void on_loaded(struct fc_sim *sim, struct fc_sim_client *client, const struct fc_core_load *load)
{
	const struct fc_load_result *result = &load->result;
	if (client->has_ended)
		fc_sim_broken(&sim->notes, "client %u: the load ends twice", client->number);
	if (load->path.is_leased)
		fc_sim_broken(&sim->notes, "client %u: the load has ended, its lease has not", client->number);
	client->has_ended = true;
	fc_sim_note(&sim->notes, "  client %llu: loaded %llu of %llu blocks, code %lld", client->number, result->blocks,
		    client->matched_blocks, (uint64_t)(int64_t)result->code);
	fc_sim_check_load_code(sim, client, result->code);
	if (result->code == FC_OK)
		check_delivered(sim, client, load);
	else if (result->blocks != 0)
		fc_sim_broken(&sim->notes, "client %u: a load that failed promises blocks", client->number);
	client->loaded_blocks = result->blocks;
	if (client->state == FC_SIM_LINGERING || result->code != FC_OK)
		give_back_memory(client);
}

static void on_ready(struct fc_sim *sim, struct fc_sim_client *client)
{
	if (client->is_ready_told || client->is_started_when_ready || client->is_taken)
		fc_sim_broken(&sim->notes, "client %u: ready is told when it should not be", client->number);
	client->is_ready_told = true;
}

/* Everything that is ready, in the order in which the store hands it out: by arrival. */
void fc_sim_client_take(struct fc_sim *sim, struct fc_sim_process *process)
{
	const struct fc_core_load *first = NULL;
	for (uint32_t i = 0; i < sim->settings.client_count; i++) {
		const struct fc_core_load *load = sim->clients[i].load;
		if (load == NULL || load->state != FC_LOAD_READY || sim->clients[i].process != process)
			continue;
		bool is_earlier = first == NULL || load->sched.arrival_ns < first->sched.arrival_ns ||
				  (load->sched.arrival_ns == first->sched.arrival_ns &&
				   load->sched.sequence < first->sched.sequence);
		if (is_earlier)
			first = load;
	}
	struct fc_core_load *taken = NULL;
	int code = fc_core_ready_take(process->core, &taken);
	if ((code == FC_OK) != (first != NULL) || (code == FC_OK && taken != first))
		fc_sim_broken(&sim->notes, "the ready queue does not hand out who arrived first");
	if (code != FC_OK)
		return;
	struct fc_sim_client *client = taken->owner;
	client->is_taken = true;
	fc_sim_note(&sim->notes, "client %llu: taken", client->number, 0, 0, 0);
}

/* ---- saving ---- */

static void count_open_saves(struct fc_sim *sim, const struct fc_sim_client *client, int sign)
{
	for (uint32_t at = client->reply_tip; at != FC_SIM_ROOT; at = sim->model.nodes[at].parent)
		sim->model.nodes[at].open_saves += (uint32_t)sign;
}

/* The deepest end of the turn, now and then the end of the prompt that others will share, and any other. */
static uint64_t choose_resume_points(struct fc_sim *sim, const struct fc_sim_client *client, uint64_t points[2])
{
	uint64_t count = 0;
	uint64_t shared = whole_granules(sim, client->shared_blocks);
	uint64_t end = client->saved_blocks;
	if (shared > 0 && shared < end && fc_random_below(&sim->random, 2) == 0)
		points[count++] = shared;
	uint64_t other = whole_granules(sim, fc_random_below(&sim->random, end + 1));
	if (fc_random_below(&sim->random, 4) == 0 && other > (count > 0 ? points[0] : 0))
		points[count++] = other;
	return count;
}

static void choose_slots(struct fc_sim *sim, struct fc_sim_client *client, struct fc_save_opts *opts)
{
	const struct fc_geometry *geometry = &sim->settings.geometry;
	uint64_t from = client->is_partly_resident ? client->loaded_blocks : 0;
	uint64_t lowest = opts->resume_point_count > 0 ? opts->resume_points[0] : client->saved_blocks;
	uint64_t shared = whole_granules(sim, client->shared_blocks);
	if (shared > 0 && fc_random_below(&sim->random, 2) == 0)
		lowest = fc_min_u64(lowest, shared);
	for (uint32_t group = 0; group < geometry->group_count; group++) {
		uint64_t first, count, span = fc_group_span(geometry, group);
		fc_group_needed(geometry, group, lowest, &first, &count);
		uint64_t end = opts->key_count / span;
		if (geometry->groups[group].rule == FC_RULE_ALL)
			first = from / span;
		opts->slots[group] = fc_sim_kv_slots(&client->kv, group, first, end - first);
		uint64_t have = geometry->groups[group].rule == FC_RULE_ALL ? client->loaded_blocks / span : first;
		fc_sim_kv_fill(&client->kv, client->keys, group, fc_max_u64(first, have),
			       end - fc_max_u64(first, have));
	}
}

static void check_still_loaded(struct fc_sim *sim, const struct fc_sim_client *client)
{
	for (uint32_t layer = 0; layer < sim->settings.geometry.layer_count; layer++) {
		uint32_t group = 0;
		uint64_t block = 0;
		if (!fc_sim_kv_has_layer(&client->kv, client->keys, client->loaded_blocks, layer, &group, &block))
			fc_sim_broken(&sim->notes, "client %u: block %llu of group %u changed after the load had ended",
				      client->number, (unsigned long long)block, group);
	}
}

static void submit_save(struct fc_sim *sim, struct fc_sim_client *client)
{
	const struct fc_sim_session *session = &sim->sessions[client->session];
	uint64_t points[2];
	uint32_t depth = sim->model.nodes[client->reply_tip].depth;
	client->saved_blocks = whole_granules(sim, depth);
	client->shared_blocks = fc_random_below(&sim->random, 4) == 0 ? 0 : session->shared_blocks;
	client->is_partly_resident = client->loaded_blocks > 0 && fc_random_below(&sim->random, 3) == 0;
	struct fc_save_opts opts = {
		.session = session->id,
		.keys = client->keys,
		.key_count = depth,
		.shared_blocks = client->shared_blocks,
		.turn = session->turn,
		.previous_reply_tokens = session->reply_tokens,
		.resume_points = points,
	};
	opts.resume_point_count = choose_resume_points(sim, client, points);
	choose_slots(sim, client, &opts);
	client->state = FC_SIM_SAVING;
	client->is_kv_lent = true;
	note_beginning(sim, client);
	client->is_cancelled = false;
	sim->counts.saves++;
	fc_sim_note(&sim->notes, "client %llu: save of %llu blocks, %llu shared, path %llu", client->number, depth,
		    client->shared_blocks, client->reply_tip);
	fc_sim_note(&sim->notes, "  session %llx, turn %llu, previous reply of %llu tokens, slots from block %llu",
		    session->id.high, session->turn, session->reply_tokens, opts.slots[0].first_block);
	fc_sim_note(&sim->notes, "  owner %llu", session->owner, 0, 0, 0);
	int code = fc_core_save_submit(client->process->core, &opts, client->kv.layers, client, &client->save, NULL);
	if (code == FC_OK) {
		client->save->claim.turn.owner = session->owner;
		count_open_saves(sim, client, 1);
		return;
	}
	check_limit(sim, client, code, active_count(client->process, false), "save");
	go_idle(sim, client);
}

static void set_saved(struct fc_sim *sim, const struct fc_sim_client *client, uint64_t depth_max)
{
	for (uint32_t depth = 1; depth <= depth_max; depth++)
		node_at(sim, client->reply_tip, depth)->is_saved = true;
}

static void set_durable(struct fc_sim *sim, const struct fc_sim_client *client, bool is_durable)
{
	uint64_t reclaims = fc_sim_reclaims(sim);
	for (uint32_t depth = client->durable_from; depth <= client->saved_blocks; depth++) {
		struct fc_sim_node *node = node_at(sim, client->reply_tip, depth);
		node->is_durable = is_durable;
		node->durable_reclaims = reclaims;
	}
}

static void on_saved(struct fc_sim *sim, struct fc_sim_client *client, const struct fc_core_save *save)
{
	const struct fc_save_result *result = &save->result;
	if (client->is_saved_told)
		fc_sim_broken(&sim->notes, "client %u: the save ends twice", client->number);
	client->is_saved_told = true;
	client->saved_ns = sim->notes.now_ns;
	fc_sim_note(&sim->notes, "  client %llu: saved, code %lld, %llu new, %llu absorbed", client->number,
		    (uint64_t)(int64_t)result->code, result->blocks_new, result->segments_absorbed);
	fc_sim_check_save_code(sim, client, result->code);
	bool is_unknown = result->code != FC_OK && !fc_sim_is_undisturbed(sim, client);
	if (!is_unknown) /* else a commit may have been taken whose answer was lost */
		count_open_saves(sim, client, -1);
	give_back_memory(client);
	if (result->code != FC_OK) {
		/* A prompt is whole without the turn that brought it. */
		if (result->code == FC_ENOENT || result->code == FC_ENOMEM)
			set_saved(sim, client, client->shared_blocks);
		client->is_save_closed = true;
		return;
	}
	if (result->blocks_new > client->saved_blocks)
		fc_sim_broken(&sim->notes, "client %u: %llu blocks are new of %llu", client->number,
			      (unsigned long long)result->blocks_new, (unsigned long long)client->saved_blocks);
	fc_sim_check_saved(sim, client);
	client->durable_from = (uint32_t)(client->saved_blocks - result->blocks_new) + 1;
	set_saved(sim, client, client->saved_blocks);
	set_durable(sim, client, false);
	client->is_fresh = client->saved_blocks > 0;
	client->was_kept = false;
	if (!sim->is_wired) /* else it was visible before it was heard of */
		client->saved_reclaims = fc_sim_reclaims(sim);
	sim->counts.blocks_saved += result->blocks_new;
}

static void on_durable(struct fc_sim *sim, struct fc_sim_client *client, const struct fc_core_save *save)
{
	const struct fc_save_result *result = &save->result;
	if (!client->is_saved_told || client->is_save_closed)
		fc_sim_broken(&sim->notes, "client %u: durable is told when it should not be", client->number);
	client->is_save_closed = true;
	fc_sim_note(&sim->notes, "  client %llu: durable, code %lld, outlives the process: %llu", client->number,
		    (uint64_t)(int64_t)result->durable_code, result->is_durable, 0);
	bool is_disturbed = !fc_sim_is_undisturbed(sim, client);
	if (result->durable_code == FC_ECANCELED && sim->is_wired && is_disturbed)
		return; /* nobody knows */
	if (result->durable_code == FC_ENOMEM)
		fc_sim_broken(&sim->notes, "client %u: what was acknowledged is withdrawn for want of memory",
			      client->number);
	if (result->durable_code != FC_OK) {
		sim->withdrawals++;
		sim->late_count += result->durable_code == FC_ETIMEOUT;
		if (fc_sim_fired(sim) == 0)
			fc_sim_broken(&sim->notes, "client %u: not durable (%s), and nothing failed", client->number,
				      fc_code_text(result->durable_code));
		return;
	}
	fc_sim_check_durable(sim, client, result);
	client->is_durable = result->is_durable && result->blocks_new > 0;
	if (!client->is_fresh) /* else it is looked at first whether it is there */
		fc_sim_client_is_durable(sim, client);
}

/* What was reclaimed before it was written may be there again by another's save. */
void fc_sim_client_is_durable(struct fc_sim *sim, struct fc_sim_client *client)
{
	if (client->is_durable && client->was_kept && client->saved_reclaims == fc_sim_reclaims(sim)) {
		set_durable(sim, client, true);
		fc_sim_model_mark_durable(
			&sim->model,
			fc_sim_model_ancestor(&sim->model, client->reply_tip, (uint32_t)client->saved_blocks),
			fc_sim_reclaims(sim));
	}
}

void fc_sim_on_event(void *context, enum fc_event_kind kind, struct fc_core_load *load, struct fc_core_save *save,
		     uint32_t layer)
{
	struct fc_sim *sim = context;
	struct fc_sim_client *client = load != NULL ? load->owner : save->owner;
	switch (kind) {
	case FC_EVENT_LAYER:
		on_layer(sim, client, load, layer);
		break;
	case FC_EVENT_READY:
		on_ready(sim, client);
		break;
	case FC_EVENT_LOADED:
		on_loaded(sim, client, load);
		break;
	case FC_EVENT_SAVED:
		on_saved(sim, client, save);
		break;
	case FC_EVENT_DURABLE:
		on_durable(sim, client, save);
		break;
	}
}

/* ---- going on ---- */

static bool is_load_over(const struct fc_sim_client *client)
{
	return client->has_ended && (client->is_started_when_ready || client->is_taken || client->is_cancelled ||
				     client->load->result.code != FC_OK);
}

void fc_sim_client_continue(struct fc_sim *sim, struct fc_sim_client *client)
{
	if (client->state != FC_SIM_LOADING || !is_load_over(client))
		return;
	bool has_failed = client->load->result.code != FC_OK;
	fc_core_load_free(client->process->core, client->load);
	client->load = NULL;
	client->state = FC_SIM_LOADED;
	if (has_failed && fc_random_below(&sim->random, 2) == 0) {
		go_idle(sim, client);
		return;
	}
	check_still_loaded(sim, client);
	submit_save(sim, client);
}

void fc_sim_client_cancel(struct fc_sim *sim, struct fc_sim_client *client)
{
	fc_sim_note(&sim->notes, "client %llu: cancels", client->number, 0, 0, 0);
	if (client->state == FC_SIM_LOADING) {
		client->is_cancelled = true;
		fc_core_load_cancel(client->process->core, client->load);
	} else if (client->state == FC_SIM_SAVING) {
		client->is_cancelled = true;
		fc_core_save_cancel(client->process->core, client->save);
	}
}

static void end_turn(struct fc_sim *sim, struct fc_sim_client *client)
{
	struct fc_sim_session *session = &sim->sessions[client->session];
	uint64_t block_tokens = sim->settings.geometry.block_tokens;
	session->reply_tokens =
		(sim->model.nodes[client->reply_tip].depth - sim->model.nodes[client->prompt_tip].depth) * block_tokens;
	session->tip = client->reply_tip;
	session->turn++;
	session->is_busy = false;
}

void fc_sim_client_vanish(struct fc_sim *sim, struct fc_sim_client *client)
{
	if (client->state != FC_SIM_LOADING && client->state != FC_SIM_SAVING)
		return;
	fc_sim_note(&sim->notes, "client %llu: vanishes", client->number, 0, 0, 0);
	enum fc_sim_client_state state = client->state;
	sim->sessions[client->session].is_busy = false;
	client->state = FC_SIM_LINGERING;
	client->is_cancelled = true;
	if (state == FC_SIM_LOADING) {
		bool has_ended = client->has_ended;
		struct fc_core_load *load = client->load;
		client->load = NULL;
		fc_core_load_free(client->process->core, load);
		if (has_ended)
			go_idle(sim, client);
	} else {
		struct fc_core_save *save = client->save;
		client->save = NULL;
		fc_core_save_free(client->process->core, save);
	}
}

static bool has_had_last_word(const struct fc_sim_client *client)
{
	return client->is_saved_told ? client->is_save_closed : client->has_ended && !client->is_kv_lent;
}

static void settle(struct fc_sim *sim, struct fc_sim_client *client)
{
	bool is_early = fc_random_below(&sim->random, 4) == 0;
	if (client->state == FC_SIM_SAVING && client->is_saved_told && (client->is_save_closed || is_early)) {
		struct fc_core_save *save = client->save;
		client->save = NULL;
		end_turn(sim, client);
		client->state = FC_SIM_LINGERING;
		fc_core_save_free(client->process->core, save);
	}
	if (client->state == FC_SIM_LINGERING && has_had_last_word(client))
		go_idle(sim, client);
}

void fc_sim_clients_settle(struct fc_sim *sim, struct fc_sim_process *process)
{
	for (uint32_t i = 0; i < sim->settings.client_count; i++)
		if (sim->clients[i].process == process &&
		    (sim->clients[i].state == FC_SIM_SAVING || sim->clients[i].state == FC_SIM_LINGERING))
			settle(sim, &sim->clients[i]);
}

/* Saves that were under way may have reached the medium: whoever opens it next may find them. */
void fc_sim_clients_forget(struct fc_sim *sim, struct fc_sim_process *process)
{
	for (uint32_t i = 0; i < sim->settings.client_count; i++) {
		struct fc_sim_client *client = &sim->clients[i];
		if (client->process != process)
			continue;
		if (client->state != FC_SIM_IDLE && client->state != FC_SIM_LINGERING)
			sim->sessions[client->session].is_busy = false;
		client->state = FC_SIM_IDLE;
		client->load = NULL;
		client->save = NULL;
		give_back_memory(client);
	}
}
