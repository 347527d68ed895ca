/* States of a request:
 *
 *   WAITING --room on a worker--> LOADING --may start--> READY --taken--> PREFILL --first token--> DECODE --> SAVING
 * --> gone
 *
 * A worker is in a phase: one step with prefill, or a run of equal steps of decoding that ends when a reply does or a
 * request becomes ready. Runs make a simulation cost events, not tokens. */
#include "replay/engine.h"

#include "base/list.h"
#include "format/shape.h"
#include "host/alloc.h"
#include "replay/arrivals.h"
#include "replay/paths.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NUMBERS_MAX (1ull << 31)
#define TURNS_BEYOND_STREAMS 2 /* without a rate: one that is computed, one that is saved, as in a live replay */

struct engine;

struct request {
	struct fc_policy_turn turn;
	struct fc_link link; /* engine->waiting, worker->ready or worker->prefills */
	struct fc_link all_link;
	struct fc_heap_node decode_node;
	uint32_t number;
	const struct fc_trace_request *traced;
	struct fc_turn_path *path;
	uint64_t seen_blocks, begun_blocks, possible_blocks, kv_bytes;
	uint64_t submitted_ns, ready_ns, start_ns;
	uint64_t prefilled_tokens; /* with what was delivered, once it has started */
	uint64_t chunk_tokens;     /* in the present step */
	uint64_t end_step;         /* of its worker, when the reply is complete */
	bool has_begun, is_loaded, has_started, is_counted;
};

struct worker {
	struct engine *engine;
	struct fc_world_event event; /* the end of the phase */
	struct fc_world_event kick;  /* the beginning of one, when all that comes in the same moment is there */
	uint32_t number;
	struct fc_link ready, prefills;
	struct fc_heap decodes; /* by end_step */
	uint64_t step;
	uint64_t request_count, kv_bytes; /* all of the worker's */
	uint64_t decode_kv_bytes;
	uint64_t phase_start_ns, phase_step_ns, phase_steps, phase_prefill_ns;
	bool is_running, has_prefill, is_stalled;
	bool is_choosing; /* between two phases; what happens then is seen when the next one is chosen */
};

struct engine {
	const struct fc_engine_opts *opts;
	struct fc_outcome *outcome;
	struct fc_error *error;
	int code;
	struct fc_world world;
	struct fc_machine machine;
	struct fc_policy_env env;
	struct fc_policy_host host;
	struct fc_policy *policy;
	void *settings;
	struct fc_oracle *oracle;
	struct fc_paths paths;
	struct fc_arrivals arrivals;
	struct fc_world_event arrival;
	struct fc_map_taker maps;
	struct fc_link waiting, requests; /* those that wait for room; all that are under way */
	struct worker *workers;
	uint64_t active_count, active_max;
	uint64_t granule;
	bool is_admitting;
};

static void run_worker(struct worker *worker);
static void admit(struct engine *engine);

static struct request *request_of(struct fc_policy_turn *turn)
{
	return fc_container_of(turn, struct request, turn);
}

static uint64_t now_ns(const struct engine *engine)
{
	return engine->world.now_ns;
}

static struct worker *worker_of(struct engine *engine, const struct request *request)
{
	return &engine->workers[request->turn.worker];
}

static void fail(struct engine *engine, int code, const struct fc_error *error, uint32_t number)
{
	if (engine->code != FC_OK)
		return;
	engine->code = fc_error_set(engine->error, code, "request %u: %s", number,
				    error->text[0] != '\0' ? error->text : fc_code_text(code));
}

/* ---- requests come and go ---- */

static struct request *make_request(struct engine *engine, uint32_t number, uint64_t arrival_ns)
{
	const struct fc_trace *trace = engine->opts->trace;
	struct request *request = calloc(1, sizeof(*request));
	if (request == NULL || fc_paths_begin(&engine->paths, number, &request->path) != FC_OK) {
		free(request);
		return NULL;
	}
	request->number = number;
	request->traced = &trace->requests[number];
	uint32_t previous = request->traced->previous;
	request->turn.turn = (struct fc_replay_turn){
		.keys = request->path->keys,
		.input_blocks = request->path->input_count,
		.stored_blocks = request->path->count,
		.session = fc_turn_session(trace, request->traced->session),
		.arrival_ns = arrival_ns,
		.turn = request->traced->turn,
		.previous_reply_tokens = previous == FC_TRACE_NONE ? 0 : trace->requests[previous].output_tokens,
	};
	request->turn.numbers = request->path->numbers;
	request->turn.prefill_tokens_of_input = fc_max_u64(1, request->traced->input_tokens);
	uint64_t tokens = request->traced->input_tokens + request->traced->output_tokens;
	request->kv_bytes = (tokens + engine->opts->geometry->block_tokens - 1) / engine->opts->geometry->block_tokens *
			    engine->env.block_bytes;
	return request;
}

static void free_request(struct engine *engine, struct request *request)
{
	fc_list_remove(&request->link);
	fc_list_remove(&request->all_link);
	fc_paths_end(&engine->paths, request->path);
	free(request);
}

static void finish(struct engine *engine, struct request *request)
{
	struct worker *worker = worker_of(engine, request);
	fc_oracle_computed(engine->oracle, request->path->numbers, request->path->count);
	fc_oracle_saved(engine->oracle, request->path->numbers, request->path->count, request->turn.turn.resume_points,
			request->turn.turn.resume_point_count, 0);
	engine->policy->ops->end(engine->policy, &request->turn);
	fc_arrivals_done(&engine->arrivals, request->number, now_ns(engine));
	worker->request_count--;
	worker->kv_bytes -= request->kv_bytes;
	engine->active_count--;
	engine->outcome->requests++;
	free_request(engine, request);
	admit(engine);
}

/* ---- what is counted ---- */

static void count_source_load(struct fc_source_outcome *source, const struct request *request, uint64_t possible)
{
	source->requests++;
	source->blocks += request->path->input_count;
	source->possible_blocks += possible;
	source->delivered_blocks += request->turn.load.blocks;
}

static void count_load(struct engine *engine, struct request *request)
{
	struct fc_outcome *outcome = engine->outcome;
	const struct fc_policy_load *load = &request->turn.load;
	uint64_t possible = fc_max_u64(request->possible_blocks, load->blocks);
	fc_check(load->blocks <= request->path->input_count);
	outcome->blocks += request->path->input_count;
	uint64_t seen = fc_max_u64(request->seen_blocks, load->blocks);
	outcome->seen_blocks += seen;
	outcome->under_way_blocks += fc_max_u64(request->begun_blocks, seen) - seen;
	outcome->possible_blocks += possible;
	outcome->delivered_blocks += load->blocks;
	outcome->cancelled_blocks += load->cancelled_blocks;
	outcome->cancelled_loads += load->cancelled_blocks > 0;
	outcome->short_loads += load->blocks < possible;
	outcome->loads += load->blocks > 0;
	outcome->bytes_read += load->bytes_read;
	outcome->commands += load->commands;
	outcome->segments += load->segments;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		outcome->media_bytes[medium] += load->bytes[medium];
	if (engine->opts->trace->source_count > 0)
		count_source_load(&outcome->sources[request->traced->source], request, possible);
	fc_series_add(&outcome->delivered_series, request->turn.turn.arrival_ns, load->blocks);
	fc_series_add(&outcome->possible_series, request->turn.turn.arrival_ns, possible);
	if (load->bytes_read == 0)
		return;
	outcome->ssd_loads++;
	fc_histogram_add(&outcome->prefetch, load->prefetched_ns - request->turn.turn.arrival_ns);
	fc_histogram_add(&outcome->read, load->prefetched_ns - load->start_ns);
	outcome->read_busy_ns += load->prefetched_ns - load->start_ns;
}

/* The parts add up to the whole. What is read while the prefill already runs counts as prefill. */
static void count_times(struct engine *engine, const struct request *request)
{
	struct fc_outcome *outcome = engine->outcome;
	const struct fc_policy_load *load = &request->turn.load;
	uint64_t arrival_ns = request->turn.turn.arrival_ns, parts[FC_TTFT_PART_COUNT] = {0};
	uint64_t waited_ns = request->start_ns - arrival_ns;
	uint64_t end_ns = fc_min_u64(load->prefetched_ns, request->start_ns);
	if (end_ns > load->start_ns)
		parts[FC_TTFT_READ] = end_ns - load->start_ns;
	uint64_t rest_ns = waited_ns - fc_min_u64(waited_ns, parts[FC_TTFT_READ]);
	bool is_prefetched = parts[FC_TTFT_READ] > 0;
	uint64_t before_ns = (is_prefetched ? load->start_ns : request->submitted_ns) - arrival_ns;
	parts[FC_TTFT_QUEUE] = fc_min_u64(before_ns, rest_ns);
	parts[FC_TTFT_READY] = rest_ns - parts[FC_TTFT_QUEUE];
	parts[FC_TTFT_PREFILL] = now_ns(engine) - request->start_ns;
	for (int part = 0; part < FC_TTFT_PART_COUNT; part++)
		fc_histogram_add(&outcome->parts[part], parts[part]);
	fc_histogram_add(&outcome->ttft, now_ns(engine) - arrival_ns);
	if (engine->opts->trace->source_count > 0) {
		struct fc_source_outcome *source = &outcome->sources[request->traced->source];
		fc_histogram_add(&source->ttft, now_ns(engine) - arrival_ns);
		fc_histogram_add(&source->waited, waited_ns);
	}
	if (load->bytes_read > 0)
		fc_histogram_add(&outcome->ttft_ssd, now_ns(engine) - arrival_ns);
}

/* ---- steps ---- */

static bool ends_before(const struct fc_heap_node *a, const struct fc_heap_node *b, void *context)
{
	const struct request *first = fc_container_of(a, struct request, decode_node);
	const struct request *second = fc_container_of(b, struct request, decode_node);
	(void)context;
	return first->end_step != second->end_step ? first->end_step < second->end_step
						   : first->number < second->number;
}

static void save(struct engine *engine, struct request *request)
{
	struct fc_error error = {0};
	struct fc_replay_turn *turn = &request->turn.turn;
	uint64_t prompt_blocks = request->traced->shared_tokens / engine->opts->geometry->block_tokens;
	engine->outcome->output_tokens += request->traced->output_tokens;
	turn->shared_blocks = fc_oracle_shared(engine->oracle, request->path->numbers, request->path->count);
	fc_turn_set_points(turn, prompt_blocks, request->turn.load.blocks, engine->granule);
	fc_map_taker_saving(&engine->maps, &request->turn);
	int code = engine->policy->ops->save(engine->policy, &request->turn, &error);
	if (code != FC_OK)
		fail(engine, code, &error, request->number);
}

/* The first token is there: the reply begins, or is complete. */
static void end_prefill(struct worker *worker, struct request *request)
{
	struct engine *engine = worker->engine;
	uint64_t output_tokens = request->traced->output_tokens;
	count_times(engine, request);
	fc_list_remove(&request->link);
	if (!engine->opts->hardware->is_decoding || output_tokens <= 1) {
		save(engine, request);
		return;
	}
	request->end_step = worker->step + output_tokens - 1;
	worker->decode_kv_bytes += request->kv_bytes;
	fc_check(fc_heap_push(&worker->decodes, &request->decode_node) == FC_OK);
}

/* Those of the present step that have all their tokens. */
static void advance_prefills(struct worker *worker)
{
	fc_list_for_each_safe(link, &worker->prefills)
	{
		struct request *request = fc_container_of(link, struct request, link);
		request->prefilled_tokens += request->chunk_tokens;
		bool is_complete =
			request->chunk_tokens > 0 && request->prefilled_tokens >= request->turn.prefill_tokens_of_input;
		request->chunk_tokens = 0;
		if (is_complete)
			end_prefill(worker, request);
	}
}

static void end_replies(struct worker *worker)
{
	struct fc_heap_node *node;
	while ((node = fc_heap_peek(&worker->decodes)) != NULL) {
		struct request *request = fc_container_of(node, struct request, decode_node);
		if (request->end_step > worker->step)
			return;
		(void)fc_heap_pop(&worker->decodes);
		worker->decode_kv_bytes -= request->kv_bytes;
		save(worker->engine, request);
	}
}

static bool is_waited_for(const struct worker *worker)
{
	fc_list_for_each(link, &worker->prefills)
	{
		const struct request *request = fc_container_of(link, struct request, link);
		if (request->chunk_tokens > 0 && !request->is_loaded)
			return true;
	}
	return false;
}

static void end_phase(struct worker *worker)
{
	if (worker->has_prefill && is_waited_for(worker)) {
		worker->is_stalled = true; /* until the last layer is in place */
		return;
	}
	worker->is_running = worker->is_stalled = false;
	worker->is_choosing = true;
	worker->step += worker->phase_steps;
	if (worker->has_prefill)
		advance_prefills(worker);
	end_replies(worker);
	worker->is_choosing = false;
	run_worker(worker);
}

static void on_phase_end(struct fc_world_event *event)
{
	end_phase(fc_container_of(event, struct worker, event));
}

/* What a history brings is known when it is in place, or, with overlapping layers, when it was let start. */
static void begin_tokens(struct engine *engine, struct request *request)
{
	uint64_t input_tokens = request->turn.prefill_tokens_of_input;
	uint64_t delivered_tokens = request->turn.load.blocks * engine->opts->geometry->block_tokens;
	/* The last token is always computed: the first one of the reply follows from it. */
	request->prefilled_tokens = fc_min_u64(delivered_tokens, input_tokens - 1);
	request->is_counted = true;
}

/* Takes requests that may start, until the step is full. One that has to be waited for is taken too, so that what is
 * left to do for it begins, and fills no more of the step than it will. */
static void take_ready(struct worker *worker)
{
	struct engine *engine = worker->engine;
	uint64_t tokens = 0;
	fc_list_for_each(link, &worker->prefills)
	{
		const struct request *request = fc_container_of(link, struct request, link);
		tokens += request->turn.prefill_tokens_of_input - request->prefilled_tokens;
	}
	uint64_t computed = fc_heap_count(&worker->decodes);
	while (tokens < engine->opts->hardware->chunk_tokens && !fc_list_is_empty(&worker->ready) &&
	       computed < engine->opts->hardware->batch_max) {
		struct request *request = fc_container_of(worker->ready.next, struct request, link);
		fc_list_remove(&request->link);
		fc_list_push(&worker->prefills, &request->link);
		request->has_started = true;
		request->start_ns = now_ns(engine);
		if (request->is_loaded || request->turn.load.is_overlapping)
			begin_tokens(engine, request);
		engine->policy->ops->start(engine->policy, &request->turn);
		tokens += request->turn.prefill_tokens_of_input - request->prefilled_tokens;
		computed++;
	}
}

/* Fills the step with chunks, in order; returns its time. */
static uint64_t choose_chunks(struct worker *worker)
{
	const struct fc_hardware *hardware = worker->engine->opts->hardware;
	uint64_t room = hardware->chunk_tokens, time_ns = 0;
	worker->has_prefill = false;
	fc_list_for_each(link, &worker->prefills)
	{
		struct request *request = fc_container_of(link, struct request, link);
		bool can_run = request->is_counted && (request->is_loaded || request->turn.load.is_overlapping);
		if (!can_run || room == 0)
			continue;
		uint64_t left = request->turn.prefill_tokens_of_input - request->prefilled_tokens;
		request->chunk_tokens = fc_min_u64(left, room);
		room -= request->chunk_tokens;
		time_ns += fc_hardware_prefill_ns(hardware, request->chunk_tokens, request->prefilled_tokens);
		worker->has_prefill = true;
	}
	return time_ns;
}

static uint64_t steps_until_reply(const struct worker *worker)
{
	const struct fc_heap_node *node = fc_heap_peek(&worker->decodes);
	return fc_container_of((struct fc_heap_node *)(uintptr_t)node, struct request, decode_node)->end_step -
	       worker->step;
}

/* Begins the next phase of an idle worker, if there is anything to do. */
static void run_worker(struct worker *worker)
{
	struct engine *engine = worker->engine;
	const struct fc_hardware *hardware = engine->opts->hardware;
	worker->is_choosing = true;
	take_ready(worker);
	worker->is_choosing = false;
	uint64_t replies = fc_heap_count(&worker->decodes);
	worker->phase_prefill_ns = choose_chunks(worker);
	worker->is_running = worker->has_prefill || replies > 0;
	if (!worker->is_running)
		return;
	worker->phase_start_ns = now_ns(engine);
	worker->phase_steps = worker->has_prefill ? 1 : steps_until_reply(worker);
	worker->phase_step_ns = hardware->step_ns + worker->phase_prefill_ns +
				fc_hardware_decode_ns(hardware, replies, worker->decode_kv_bytes);
	engine->outcome->prefill_busy_ns += worker->phase_prefill_ns;
	uint64_t phase_ns;
	if (fc_mul_overflows(worker->phase_steps, worker->phase_step_ns, &phase_ns))
		phase_ns = UINT64_MAX / 4;
	fc_world_at(&engine->world, &worker->event, now_ns(engine) + phase_ns);
}

/* A run of decoding ends with the present step, because there is something to prefill. */
static void cut_phase(struct worker *worker)
{
	if (!worker->is_running || worker->has_prefill || worker->phase_step_ns == 0)
		return;
	struct engine *engine = worker->engine;
	uint64_t steps = (now_ns(engine) - worker->phase_start_ns) / worker->phase_step_ns + 1;
	if (steps >= worker->phase_steps)
		return;
	worker->phase_steps = steps;
	fc_world_at(&engine->world, &worker->event, worker->phase_start_ns + steps * worker->phase_step_ns);
}

static void wake_worker(struct worker *worker)
{
	if (worker->is_choosing)
		return;
	if (worker->is_running)
		cut_phase(worker);
	else
		fc_world_at(&worker->engine->world, &worker->kick, worker->engine->world.now_ns);
}

static void on_kick(struct fc_world_event *event)
{
	struct worker *worker = fc_container_of(event, struct worker, kick);
	if (!worker->is_running)
		run_worker(worker);
}

/* ---- what the policy tells ---- */

static struct engine *engine_of(struct fc_policy_host *host)
{
	return fc_container_of(host, struct engine, host);
}

static void host_may_start(struct fc_policy_host *host, struct fc_policy_turn *turn)
{
	struct engine *engine = engine_of(host);
	struct request *request = request_of(turn);
	struct worker *worker = worker_of(engine, request);
	struct fc_link *after = worker->ready.prev;
	request->ready_ns = now_ns(engine);
	while (after != &worker->ready) {
		const struct request *other = fc_container_of(after, struct request, link);
		if (other->turn.turn.arrival_ns < turn->turn.arrival_ns ||
		    (other->turn.turn.arrival_ns == turn->turn.arrival_ns && other->number < request->number))
			break;
		after = after->prev;
	}
	fc_list_insert_before(after->next, &request->link);
	wake_worker(worker);
}

static void host_loaded(struct fc_policy_host *host, struct fc_policy_turn *turn)
{
	struct engine *engine = engine_of(host);
	struct request *request = request_of(turn);
	struct worker *worker = worker_of(engine, request);
	fc_check(!request->is_loaded);
	request->is_loaded = true;
	count_load(engine, request);
	if (!request->has_started)
		return;
	if (!request->is_counted)
		begin_tokens(engine, request);
	if (worker->is_stalled && !is_waited_for(worker)) {
		uint64_t layer_ns = worker->phase_prefill_ns / engine->opts->geometry->layer_count;
		worker->is_stalled = false;
		fc_world_at(&engine->world, &worker->event, now_ns(engine) + layer_ns);
	} else {
		wake_worker(worker);
	}
}

static void host_saved(struct fc_policy_host *host, struct fc_policy_turn *turn, int code)
{
	struct engine *engine = engine_of(host);
	struct request *request = request_of(turn);
	if (code == FC_EFULL)
		engine->outcome->saves_refused++;
	else if (code != FC_OK)
		fail(engine, code, &(struct fc_error){0}, request->number);
	finish(engine, request);
}

static uint64_t host_resume_at(struct fc_policy_host *host, const struct fc_policy_turn *turn, uint64_t blocks)
{
	return fc_oracle_possible(engine_of(host)->oracle, turn->numbers, blocks);
}

/* ---- arrival ---- */

/* The worker with the fewest requests that has room, or NULL. */
static struct worker *choose_worker(struct engine *engine, const struct request *request)
{
	const struct fc_hardware *hardware = engine->opts->hardware;
	struct worker *best = NULL;
	for (uint64_t i = 0; i < hardware->workers; i++) {
		struct worker *worker = &engine->workers[i];
		if (worker->kv_bytes + request->kv_bytes <= hardware->hbm_kv_bytes &&
		    (best == NULL || worker->request_count < best->request_count))
			best = worker;
	}
	return best;
}

static void begin(struct engine *engine, struct request *request, struct worker *worker)
{
	struct fc_error error = {0};
	const struct fc_turn_path *path = request->path;
	worker->request_count++;
	worker->kv_bytes += request->kv_bytes;
	request->turn.worker = worker->number;
	request->submitted_ns = now_ns(engine);
	request->has_begun = true;
	fc_oracle_use(engine->oracle, path->numbers, path->count, request->traced->session);
	request->seen_blocks = fc_oracle_prefix(engine->oracle, path->numbers, path->input_count);
	request->possible_blocks = fc_oracle_possible(engine->oracle, path->numbers, path->input_count);
	request->begun_blocks = fc_oracle_begun_prefix(engine->oracle, path->numbers, path->input_count);
	fc_oracle_begun(engine->oracle, path->numbers, path->count);
	int code = engine->policy->ops->load(engine->policy, &request->turn, &error);
	if (code != FC_OK)
		fail(engine, code, &error, request->number);
}

static bool begin_waiting(struct engine *engine)
{
	struct request *request = fc_container_of(engine->waiting.next, struct request, link);
	struct worker *worker = choose_worker(engine, request);
	if (request->kv_bytes > engine->opts->hardware->hbm_kv_bytes) {
		struct fc_error error = {0};
		fc_error_set(&error, FC_ELIMIT, "it needs %llu bytes of KV; a worker of %s has %llu (hbm_kv_bytes)",
			     (unsigned long long)request->kv_bytes, engine->opts->hardware->name,
			     (unsigned long long)engine->opts->hardware->hbm_kv_bytes);
		fail(engine, FC_ELIMIT, &error, request->number);
		return false;
	}
	if (worker == NULL)
		return false;
	fc_list_remove(&request->link);
	begin(engine, request, worker);
	return true;
}

/* Brings in the next request that is due. */
static bool arrive(struct engine *engine)
{
	uint32_t number;
	uint64_t due_ns;
	if (engine->active_count >= engine->active_max || !fc_arrivals_peek(&engine->arrivals, &number, &due_ns))
		return false;
	if (due_ns > now_ns(engine)) {
		fc_world_at(&engine->world, &engine->arrival, due_ns);
		return false;
	}
	fc_arrivals_pop(&engine->arrivals);
	struct request *request = make_request(engine, number, engine->arrivals.is_paced ? due_ns : now_ns(engine));
	if (request == NULL) {
		fail(engine, FC_ENOMEM, &(struct fc_error){0}, number);
		return false;
	}
	engine->active_count++;
	fc_list_push(&engine->requests, &request->all_link);
	fc_list_push(&engine->waiting, &request->link);
	return true;
}

/* Whoever ends inside of what begins here must not begin the next one there. */
static void admit(struct engine *engine)
{
	if (engine->is_admitting)
		return;
	engine->is_admitting = true;
	while (engine->code == FC_OK) {
		bool has_moved = !fc_list_is_empty(&engine->waiting) && begin_waiting(engine);
		has_moved |= arrive(engine);
		if (!has_moved)
			break;
	}
	engine->is_admitting = false;
}

static void on_arrival(struct fc_world_event *event)
{
	admit(fc_container_of(event, struct engine, arrival));
}

/* ---- the run ---- */

static int init_workers(struct engine *engine)
{
	const struct fc_hardware *hardware = engine->opts->hardware;
	struct fc_alloc alloc = fc_alloc_system();
	engine->workers = calloc(hardware->workers, sizeof(*engine->workers));
	if (engine->workers == NULL)
		return FC_ENOMEM;
	for (uint64_t i = 0; i < hardware->workers; i++) {
		struct worker *worker = &engine->workers[i];
		worker->engine = engine;
		worker->number = (uint32_t)i;
		worker->event.fire = on_phase_end;
		worker->kick.fire = on_kick;
		fc_list_init(&worker->ready);
		fc_list_init(&worker->prefills);
		int code = fc_heap_init(&worker->decodes, &alloc, hardware->batch_max, ends_before, NULL);
		if (code != FC_OK)
			return code;
	}
	return FC_OK;
}

static uint64_t block_bytes(const struct fc_geometry *geometry)
{
	return (uint64_t)(fc_geometry_bytes_per_token(geometry) * geometry->block_tokens + 0.5);
}

static int init_env(struct engine *engine)
{
	const struct fc_engine_opts *opts = engine->opts;
	engine->host = (struct fc_policy_host){
		.may_start = host_may_start, .loaded = host_loaded, .saved = host_saved, .resume_at = host_resume_at};
	engine->settings = calloc(1, opts->policy->settings_bytes + 1);
	if (engine->settings == NULL)
		return FC_ENOMEM;
	int code = fc_policy_settings(opts->policy, opts->settings, engine->settings, engine->error);
	uint64_t turn_blocks_max = 0;
	for (uint32_t i = 0; i < opts->trace->request_count; i++)
		turn_blocks_max = fc_max_u64(turn_blocks_max, fc_trace_stored_count(opts->trace, i, true));
	engine->env = (struct fc_policy_env){
		.world = &engine->world,
		.machine = &engine->machine,
		.hardware = opts->hardware,
		.geometry = opts->geometry,
		.config = opts->config,
		.type = opts->policy,
		.memory_bytes = opts->policy->has_no_memory ? 0 : opts->memory_bytes,
		.ssd_bytes = opts->policy->has_no_ssd ? 0 : opts->ssd_bytes,
		.block_bytes = block_bytes(opts->geometry),
		.turn_blocks_max = turn_blocks_max,
		.number_max = fc_min_u64(NUMBERS_MAX, opts->trace->suffix_id_count + 1),
		.seed = opts->config->seed,
		.host = &engine->host,
		.settings = engine->settings,
	};
	return code;
}

/* Without a rate: as many as are computed at once, and no fewer than keep the streams busy. */
static uint64_t unpaced_max(const struct fc_engine_opts *opts)
{
	uint64_t each = fc_max_u64(opts->hardware->batch_max, opts->config->streams + TURNS_BEYOND_STREAMS);
	return opts->hardware->workers * each;
}

static int init(struct engine *engine)
{
	const struct fc_engine_opts *opts = engine->opts;
	engine->arrival.fire = on_arrival;
	engine->granule = fc_resume_granule(opts->geometry);
	struct fc_pace pace = {.rate_per_s = opts->rate_per_s, .speed = opts->config->speed};
	engine->active_max = fc_pace_is_set(pace) ? UINT64_MAX : unpaced_max(opts);
	fc_list_init(&engine->waiting);
	fc_list_init(&engine->requests);
	int code = fc_world_init(&engine->world);
	if (code == FC_OK)
		code = fc_machine_init(&engine->machine, opts->hardware, &engine->world);
	if (code == FC_OK)
		code = init_workers(engine);
	if (code == FC_OK)
		code = init_env(engine);
	if (code == FC_OK)
		code = opts->policy->open(&engine->policy, &engine->env, engine->error);
	if (code == FC_OK)
		code = fc_oracle_new(&engine->oracle, opts->geometry);
	if (code == FC_OK && opts->paths != NULL)
		code = fc_paths_init_from(&engine->paths, opts->paths, engine->oracle,
					  opts->config->is_storing_replies);
	else if (code == FC_OK)
		code = fc_paths_init(&engine->paths, opts->trace, engine->oracle, opts->geometry->name,
				     opts->config->is_storing_replies);
	if (code == FC_OK)
		code = fc_map_taker_init(&engine->maps, opts->maps, engine->env.number_max, opts->trace->request_count);
	if (code == FC_OK)
		code = fc_arrivals_init(&engine->arrivals, opts->trace, pace, opts->config->seed, now_ns(engine));
	if (code != FC_OK && engine->error->code == FC_OK)
		fc_error_set(engine->error, code, "simulation: %s", fc_code_text(code));
	return code;
}

static void note_machine(struct engine *engine)
{
	struct fc_outcome *outcome = engine->outcome;
	const struct fc_machine *machine = &engine->machine;
	outcome->drive_bytes_read = machine->bytes_read;
	outcome->drive_bytes_written = machine->bytes_written;
	outcome->ssd_series = machine->read_series;
	for (uint64_t i = 0; i < machine->hardware->ssd_count; i++)
		outcome->drive_busy_ns += machine->drives[i].pipe.busy_ns;
}

static bool step(struct engine *engine)
{
	if (!fc_world_step(&engine->world))
		return false;
	int code = fc_map_taker_take(&engine->maps, engine->policy, engine->outcome->requests);
	if (code != FC_OK && engine->code == FC_OK)
		engine->code = fc_error_set(engine->error, code, "no memory for a map of the arena");
	return true;
}

static int run(struct engine *engine)
{
	uint64_t start_ns = now_ns(engine);
	uint32_t total = engine->opts->trace->request_count;
	admit(engine);
	while (engine->code == FC_OK && engine->outcome->requests < total && step(engine))
		;
	fc_check(engine->code != FC_OK || engine->outcome->requests == total); /* nobody waits for nothing */
	engine->outcome->elapsed_ns = now_ns(engine) - start_ns;
	note_machine(engine);
	engine->policy->ops->stats(engine->policy, &engine->outcome->stats);
	return engine->code;
}

/* After a failure requests are still under way. */
static void drop_requests(struct engine *engine)
{
	fc_list_for_each_safe(link, &engine->requests)
	{
		struct request *request = fc_container_of(link, struct request, all_link);
		if (request->has_begun)
			engine->policy->ops->end(engine->policy, &request->turn);
		free_request(engine, request);
	}
}

static void deinit(struct engine *engine)
{
	if (engine->policy != NULL) {
		drop_requests(engine);
		engine->policy->ops->close(engine->policy);
	}
	fc_map_taker_deinit(&engine->maps);
	fc_arrivals_deinit(&engine->arrivals);
	fc_paths_deinit(&engine->paths);
	fc_oracle_free(engine->oracle);
	for (uint64_t i = 0; engine->workers != NULL && i < engine->opts->hardware->workers; i++)
		fc_heap_deinit(&engine->workers[i].decodes);
	free(engine->workers);
	free(engine->settings);
	fc_machine_deinit(&engine->machine);
	fc_world_deinit(&engine->world);
}

int fc_engine_run(const struct fc_engine_opts *opts, struct fc_outcome *outcome, struct fc_error *error)
{
	struct fc_error local = {0};
	struct engine engine = {.opts = opts, .outcome = outcome, .error = error == NULL ? &local : error};
	memset(outcome, 0, sizeof(*outcome));
	*engine.error = (struct fc_error){0};
	int code = init(&engine);
	if (code == FC_OK)
		code = run(&engine);
	deinit(&engine);
	return code;
}
