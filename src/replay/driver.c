/* One request under way:
 *
 *     LOADING --ready, taken--> TAKEN --in place--> PREFILL --time is up: first token--> SAVING --visible--> gone
 *
 * TAKEN and PREFILL occupy the engine. A request whose load failed is taken like a ready one, with nothing delivered.
 *
 * Checking what was delivered, and making up what was not, stands for the engine's own work: it happens within PREFILL
 * and is not added to the modelled time. */
#include "replay/driver.h"

#include "base/list.h"
#include "format/shape.h"
#include "replay/oracle.h"
#include "replay/paths.h"

#include <math.h>
#include <stdlib.h>

struct request {
	struct fc_replay_turn turn;
	struct fc_link link; /* driver->active */
	uint32_t number;
	const struct fc_trace_request *traced;
	struct fc_turn_path *path;
	uint64_t possible_blocks, prefix_blocks, begun_blocks;
	struct fc_load_result load;
	bool is_loaded, has_failed;
	uint64_t submitted_ns, losses;
	uint64_t prefill_start_ns, prefill_end_ns;
};

struct driver {
	const struct fc_driver_opts *opts;
	struct fc_backend *backend;
	struct fc_replay_result *result;
	struct fc_error *error;
	struct fc_oracle *oracle;
	struct fc_paths paths;
	struct fc_arrivals arrivals;
	struct fc_link active;
	uint32_t active_count;
	struct request *waiting; /* has arrived, and waits for room in the paged KV */
	struct request *engine;  /* what the engine works on */
	bool is_computing;       /* ... and its prefill has begun */
	uint64_t ready_count;    /* to be taken, at least */
	uint64_t granule;
};

static uint64_t now_ns(const struct driver *driver)
{
	return driver->backend->ops->now_ns(driver->backend);
}

static struct request *request_of(struct fc_replay_turn *turn)
{
	return fc_container_of(turn, struct request, turn);
}

static void note_error(struct driver *driver, int code, const struct request *request, const char *what,
		       const struct fc_error *error)
{
	if (driver->result->errors++ == 0)
		fc_error_set(&driver->result->first_error, code, "request %u: %s: %s", request->number, what,
			     error->text[0] != '\0' ? error->text : fc_code_text(code));
}

/* Sessions that the store has given up so far. */
static uint64_t count_losses(struct driver *driver)
{
	struct fc_stats stats;
	if (driver->backend->ops->stats(driver->backend, &stats) != FC_OK)
		return 0;
	return stats.media[FC_MEMORY].sessions_reclaimed + stats.media[FC_SSD].sessions_reclaimed + stats.sessions_cut;
}

/* ---- arrival ---- */

static struct request *make_request(struct driver *driver, uint32_t number, uint64_t arrival_ns)
{
	const struct fc_trace *trace = driver->opts->trace;
	struct request *request = calloc(1, sizeof(*request));
	if (request == NULL)
		return NULL;
	request->number = number;
	request->traced = &trace->requests[number];
	if (fc_paths_begin(&driver->paths, number, &request->path) != FC_OK) {
		free(request);
		return NULL;
	}
	uint32_t previous = request->traced->previous;
	request->turn = (struct fc_replay_turn){
		.keys = request->path->keys,
		.input_blocks = request->path->input_count,
		.stored_blocks = request->path->count,
		.session = fc_turn_session(trace, request->traced->session),
		.arrival_ns = arrival_ns,
		.turn = request->traced->turn,
		.previous_reply_tokens = previous == FC_TRACE_NONE ? 0 : trace->requests[previous].output_tokens,
	};
	return request;
}

static void free_request(struct driver *driver, struct request *request)
{
	fc_list_remove(&request->link);
	fc_paths_end(&driver->paths, request->path);
	free(request);
}

static void finish(struct driver *driver, struct request *request)
{
	fc_oracle_computed(driver->oracle, request->path->numbers, request->path->count);
	driver->backend->ops->end(driver->backend, &request->turn);
	fc_arrivals_done(&driver->arrivals, request->number, now_ns(driver));
	driver->active_count--;
	driver->result->requests++;
	free_request(driver, request);
	if (driver->opts->progress_cb != NULL)
		driver->opts->progress_cb(driver->opts->context, driver->result->requests);
}

/* What the request could find is decided now, as it is for the store. */
static void submit_load(struct driver *driver, struct request *request)
{
	const uint32_t *numbers = request->path->numbers;
	uint64_t count = request->path->input_count;
	struct fc_error error = {0};
	fc_oracle_use(driver->oracle, numbers, request->path->count, request->traced->session);
	request->prefix_blocks = fc_oracle_prefix(driver->oracle, numbers, count);
	request->possible_blocks = fc_oracle_possible(driver->oracle, numbers, count);
	request->begun_blocks = fc_oracle_begun_prefix(driver->oracle, numbers, count);
	fc_oracle_begun(driver->oracle, numbers, request->path->count);
	request->submitted_ns = now_ns(driver);
	int code = driver->backend->ops->load(driver->backend, &request->turn, &error);
	if (code == FC_OK)
		return;
	note_error(driver, code, request, "load", &error);
	request->is_loaded = request->has_failed = true;
}

/* 1: the request has begun; 0: it has to wait for room. */
static int begin(struct driver *driver, struct request *request)
{
	int code = driver->backend->ops->begin(driver->backend, &request->turn);
	if (code == FC_EAGAIN)
		return 0;
	if (code != FC_OK)
		return fc_error_set(driver->error, code, "no memory for request %u", request->number);
	fc_list_push(&driver->active, &request->link);
	driver->active_count++;
	driver->waiting = NULL;
	submit_load(driver, request);
	return 1;
}

/* The next request, once it is due and the engine may hold another. Those behind one that waits for room wait too. */
static int admit(struct driver *driver)
{
	uint32_t number;
	uint64_t due_ns, current_ns = now_ns(driver);
	if (driver->active_count >= driver->opts->active_max)
		return 0;
	if (driver->waiting != NULL)
		return begin(driver, driver->waiting);
	if (!fc_arrivals_peek(&driver->arrivals, &number, &due_ns) || due_ns > current_ns)
		return 0;
	uint64_t arrival_ns = driver->arrivals.is_paced ? due_ns : current_ns;
	driver->waiting = make_request(driver, number, arrival_ns);
	if (driver->waiting == NULL)
		return fc_error_set(driver->error, FC_ENOMEM, "no memory for request %u", number);
	fc_arrivals_pop(&driver->arrivals);
	return begin(driver, driver->waiting);
}

/* ---- the engine ---- */

static struct request *take_failed(struct driver *driver)
{
	fc_list_for_each(link, &driver->active)
	{
		struct request *request = fc_container_of(link, struct request, link);
		if (request->has_failed) {
			request->has_failed = false;
			return request;
		}
	}
	return NULL;
}

static bool take(struct driver *driver)
{
	struct fc_replay_turn *turn = NULL;
	driver->engine = take_failed(driver);
	if (driver->engine == NULL && driver->ready_count > 0) {
		if (driver->backend->ops->take(driver->backend, &turn) == FC_OK) {
			driver->engine = request_of(turn);
			driver->ready_count--;
		} else {
			driver->ready_count = 0;
		}
	}
	driver->is_computing = false;
	return driver->engine != NULL;
}

static void count_load(struct driver *driver, const struct request *request)
{
	const struct fc_load_result *load = &request->load;
	struct fc_replay_result *result = driver->result;
	uint64_t start_ns = request->submitted_ns + load->queue_ns;
	result->loads += load->matched_blocks > 0;
	result->bytes_read += load->bytes_read;
	result->segments_touched += load->segments;
	result->planned_runs += load->planned_runs;
	result->read_commands += load->read_commands;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		result->media_bytes[medium] += load->bytes[medium];
	if (load->bytes[FC_SSD] > 0) {
		fc_busy_add(&result->busy[FC_SSD], start_ns, start_ns + load->read_ns);
	} else if (load->bytes[FC_MEMORY] > 0) {
		result->memory_only_bytes += load->bytes[FC_MEMORY];
		fc_busy_add(&result->busy[FC_MEMORY], start_ns, start_ns + load->read_ns);
	}
}

/* What was possible is at least what was delivered: a store may know more than this run has seen of it. */
static void count_blocks(struct driver *driver, struct request *request)
{
	struct fc_replay_result *result = driver->result;
	uint64_t delivered = request->load.blocks;
	uint64_t possible = fc_max_u64(request->possible_blocks, delivered);
	result->blocks += request->path->input_count;
	uint64_t prefix = fc_max_u64(request->prefix_blocks, delivered);
	result->prefix_blocks += prefix;
	result->under_way_blocks += fc_max_u64(request->begun_blocks, prefix) - prefix;
	result->possible_blocks += possible;
	result->delivered_blocks += delivered;
	if (delivered == possible)
		return;
	result->short_loads++;
	if (!fc_oracle_explains(driver->oracle, request->path->numbers, delivered, possible, count_losses(driver)))
		result->unexplained_blocks += possible - delivered;
}

static uint64_t prefill_ns(const struct driver *driver, const struct request *request)
{
	uint64_t delivered_tokens = request->load.blocks * driver->opts->geometry->block_tokens;
	uint64_t input_tokens = request->traced->input_tokens;
	/* The last token is always computed: the first one of the reply follows from it. */
	uint64_t tokens = input_tokens > delivered_tokens ? input_tokens - delivered_tokens : 1;
	double time_ns = (double)tokens * 1e9 / driver->opts->prefill_per_s;
	return isfinite(driver->opts->prefill_per_s) ? (uint64_t)time_ns : 0;
}

static void start_prefill(struct driver *driver, struct request *request)
{
	struct fc_error wrong = {0};
	driver->is_computing = true;
	request->prefill_start_ns = now_ns(driver);
	request->prefill_end_ns = request->prefill_start_ns + prefill_ns(driver, request);
	count_load(driver, request);
	count_blocks(driver, request);
	uint64_t wrong_count =
		driver->backend->ops->keep(driver->backend, &request->turn, request->load.blocks, &wrong);
	if (wrong_count > 0 && driver->result->mismatches == 0)
		fc_error_set(&driver->result->first_mismatch, FC_ECORRUPT, "request %u: %s", request->number,
			     wrong.text);
	driver->result->mismatches += wrong_count;
}

static void count_times(struct driver *driver, const struct request *request)
{
	struct fc_replay_result *result = driver->result;
	uint64_t parts[FC_TTFT_PART_COUNT];
	uint64_t whole_ns = request->prefill_end_ns - request->turn.arrival_ns;
	uint64_t waited_ns = request->prefill_start_ns - request->submitted_ns;
	uint64_t before_ns = request->submitted_ns - request->turn.arrival_ns;
	parts[FC_TTFT_PREFILL] = request->prefill_end_ns - request->prefill_start_ns;
	parts[FC_TTFT_READ] = fc_min_u64(request->load.read_ns, waited_ns);
	uint64_t rest_ns = waited_ns - parts[FC_TTFT_READ];
	/* A copy from memory begins when the engine takes the request, so what came before was waiting for the engine.
	 */
	uint64_t queue_ns = request->load.bytes[FC_SSD] > 0 ? fc_min_u64(request->load.queue_ns, rest_ns) : 0;
	parts[FC_TTFT_QUEUE] = before_ns + queue_ns;
	parts[FC_TTFT_READY] = rest_ns - queue_ns;
	for (int part = 0; part < FC_TTFT_PART_COUNT; part++)
		fc_histogram_add(&result->ttft_parts[part], parts[part]);
	fc_histogram_add(&result->ttft, whole_ns);
}

static void set_signals(struct driver *driver, struct request *request)
{
	struct fc_replay_turn *turn = &request->turn;
	uint64_t prompt_blocks = request->traced->shared_tokens / driver->opts->geometry->block_tokens;
	turn->shared_blocks = fc_oracle_shared(driver->oracle, request->path->numbers, request->path->count);
	fc_turn_set_points(turn, prompt_blocks, request->load.blocks, driver->granule);
}

static void end_prefill(struct driver *driver, struct request *request)
{
	struct fc_error error = {0};
	count_times(driver, request);
	set_signals(driver, request);
	driver->engine = NULL;
	request->losses = count_losses(driver);
	int code = driver->backend->ops->save(driver->backend, &request->turn, &error);
	if (code == FC_OK)
		return;
	note_error(driver, code, request, "save", &error);
	finish(driver, request);
}

static bool run_engine(struct driver *driver)
{
	if (driver->engine == NULL)
		return take(driver);
	if (!driver->is_computing) {
		if (!driver->engine->is_loaded)
			return false;
		start_prefill(driver, driver->engine);
		return true;
	}
	if (now_ns(driver) < driver->engine->prefill_end_ns)
		return false;
	end_prefill(driver, driver->engine);
	return true;
}

/* ---- events ---- */

static void on_loaded(struct driver *driver, struct request *request)
{
	driver->backend->ops->loaded(driver->backend, &request->turn, &request->load);
	request->is_loaded = true;
	if (request->load.code == FC_OK)
		return;
	note_error(driver, request->load.code, request, "load", &request->load.error);
	request->load.blocks = request->load.bytes[FC_MEMORY] = request->load.bytes[FC_SSD] = 0;
	request->has_failed = driver->engine != request; /* else it was taken before it failed */
}

static void on_saved(struct driver *driver, struct request *request)
{
	struct fc_save_result save;
	struct fc_replay_result *result = driver->result;
	driver->backend->ops->saved(driver->backend, &request->turn, &save);
	if (save.code == FC_OK) {
		result->saves++;
		result->blocks_new += save.blocks_new;
		result->bytes_new += save.bytes_new;
		result->bytes_saved += save.bytes_written[FC_MEMORY] + save.bytes_written[FC_SSD];
		result->segments_absorbed += save.segments_absorbed;
		fc_oracle_saved(driver->oracle, request->path->numbers, request->path->count,
				request->turn.resume_points, request->turn.resume_point_count, request->losses);
	} else if (save.code == FC_EFULL) {
		result->saves_refused++;
	} else {
		note_error(driver, save.code, request, "save", &save.error);
	}
	finish(driver, request);
}

static bool handle_events(struct driver *driver)
{
	struct fc_replay_event event;
	bool has_any = false;
	for (; driver->backend->ops->next_event(driver->backend, &event); has_any = true) {
		if (event.kind == FC_EVENT_READY)
			driver->ready_count++;
		else if (event.kind == FC_EVENT_LOADED)
			on_loaded(driver, request_of(event.turn));
		else
			on_saved(driver, request_of(event.turn));
	}
	return has_any;
}

/* ---- the run ---- */

static uint64_t wake_ns(const struct driver *driver)
{
	uint32_t number;
	uint64_t due_ns, time_ns = UINT64_MAX;
	if (driver->engine != NULL && driver->is_computing)
		time_ns = driver->engine->prefill_end_ns;
	if (driver->waiting == NULL && driver->active_count < driver->opts->active_max &&
	    fc_arrivals_peek(&driver->arrivals, &number, &due_ns))
		time_ns = fc_min_u64(time_ns, due_ns);
	return time_ns;
}

static int run(struct driver *driver)
{
	struct fc_backend *backend = driver->backend;
	struct fc_replay_result *result = driver->result;
	while (result->requests < driver->opts->trace->request_count) {
		if (backend->ops->is_interrupted(backend)) {
			result->is_interrupted = true;
			break;
		}
		bool has_moved = handle_events(driver);
		int code = admit(driver);
		if (code < 0)
			return code;
		has_moved |= code > 0;
		has_moved |= run_engine(driver);
		if (!has_moved)
			backend->ops->wait(backend, wake_ns(driver));
	}
	return FC_OK;
}

static void drop_active(struct driver *driver)
{
	if (driver->waiting != NULL)
		free_request(driver, driver->waiting);
	fc_list_for_each_safe(link, &driver->active)
	{
		struct request *request = fc_container_of(link, struct request, link);
		driver->backend->ops->end(driver->backend, &request->turn);
		free_request(driver, request);
	}
}

static int start(struct driver *driver)
{
	const struct fc_driver_opts *opts = driver->opts;
	int code = driver->backend->ops->stats(driver->backend, &driver->result->before);
	driver->result->is_warm = driver->result->before.blocks > 0;
	if (code == FC_OK)
		code = fc_oracle_new(&driver->oracle, opts->geometry);
	if (code == FC_OK)
		code = fc_paths_init(&driver->paths, opts->trace, driver->oracle, opts->model,
				     opts->is_storing_replies);
	if (code == FC_OK)
		code = fc_arrivals_init(&driver->arrivals, opts->trace, opts->pace, opts->seed, now_ns(driver));
	return code == FC_OK ? code : fc_error_set(driver->error, code, "replay: %s", fc_code_text(code));
}

static int run_and_settle(struct driver *driver)
{
	struct fc_replay_result *result = driver->result;
	struct fc_error error = {0};
	uint64_t start_ns = now_ns(driver);
	int code = run(driver);
	result->elapsed_ns = now_ns(driver) - start_ns;
	drop_active(driver);
	if (driver->backend->ops->sync(driver->backend, &error) != FC_OK && result->errors++ == 0)
		result->first_error = error;
	int stats_code = driver->backend->ops->stats(driver->backend, &result->after);
	return code != FC_OK ? code : stats_code;
}

int fc_driver_run(const struct fc_driver_opts *opts, struct fc_backend *backend, struct fc_replay_result *result,
		  struct fc_error *error)
{
	struct driver driver = {
		.opts = opts,
		.backend = backend,
		.result = result,
		.error = error,
		.granule = fc_resume_granule(opts->geometry),
	};
	fc_list_init(&driver.active);
	int code = start(&driver);
	if (code == FC_OK)
		code = run_and_settle(&driver);
	fc_arrivals_deinit(&driver.arrivals);
	fc_paths_deinit(&driver.paths);
	fc_oracle_free(driver.oracle);
	return code;
}

uint64_t fc_driver_turn_blocks_max(const struct fc_trace *trace, bool is_storing_replies)
{
	uint64_t blocks_max = 0;
	for (uint32_t i = 0; i < trace->request_count; i++)
		blocks_max = fc_max_u64(blocks_max, fc_trace_stored_count(trace, i, is_storing_replies));
	return blocks_max;
}
