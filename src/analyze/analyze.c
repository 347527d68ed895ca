/* See analyze.h. One walk over the requests fills the tree, the stack and all that is by request; what is by session or
 * by block is read from the finished tree. */
#include "analyze/analyze.h"

#include "analyze/sessions.h"
#include "analyze/spread.h"
#include "analyze/stack.h"
#include "base/check.h"

#include <stdlib.h>

#define SECOND_NS 1000000000ull
#define MINUTE_NS (60 * SECOND_NS)

const uint64_t fc_analyze_windows_ns[FC_WINDOW_COUNT] = {MINUTE_NS, 10 * MINUTE_NS, 60 * MINUTE_NS};

/* One number a request each. */
enum column { INPUT_TOKENS, OUTPUT_TOKENS, NEW_TOKENS, HISTORY_TOKENS, SSD_BLOCKS, REUSE_WEIGHTS, COLUMN_COUNT };

struct walk {
	const struct fc_trace *trace;
	const struct fc_analyze_opts *opts;
	struct fc_analysis *analysis;
	struct fc_tree tree;
	struct fc_stack stack;
	struct fc_sessions sessions;
	uint64_t *columns[COLUMN_COUNT];
	struct fc_histogram reuse_ns;
	unsigned __int128 window_sums[FC_WINDOW_COUNT]; /* blocks x nanoseconds */
	uint64_t minute;                                /* of the request before, and what has come in it: */
	uint64_t minute_blocks, minute_requests;
};

static int walk_init(struct walk *walk, const struct fc_trace *trace)
{
	size_t count = (size_t)trace->request_count + 1;
	walk->sessions.of_request = calloc(count, sizeof(*walk->sessions.of_request));
	if (walk->sessions.of_request == NULL)
		return FC_ENOMEM;
	for (int column = 0; column < COLUMN_COUNT; column++) {
		walk->columns[column] = calloc(count, sizeof(uint64_t));
		if (walk->columns[column] == NULL)
			return FC_ENOMEM;
	}
	int result = fc_curve_init(&walk->analysis->curve, trace->suffix_id_count);
	if (result == 0)
		result = fc_tree_init(&walk->tree, trace);
	return result != 0 ? result : fc_stack_init(&walk->stack, &walk->tree);
}

static void walk_deinit(struct walk *walk)
{
	fc_stack_deinit(&walk->stack);
	fc_tree_deinit(&walk->tree);
	for (int column = 0; column < COLUMN_COUNT; column++)
		free(walk->columns[column]);
	free(walk->sessions.of_request);
}

/* Blocks that were not touched for `gap_ns` lay in the windows of all spans that began before them by less than that.
 */
static void add_to_windows(struct walk *walk, uint64_t gap_ns, uint64_t blocks)
{
	for (int i = 0; i < FC_WINDOW_COUNT; i++)
		walk->window_sums[i] += (unsigned __int128)fc_min_u64(gap_ns, fc_analyze_windows_ns[i]) * blocks;
}

/* Adds one piece of a request's list; returns its blocks that a tiered cache reads from SSD. */
static uint64_t add_piece(struct walk *walk, uint32_t request, const struct fc_stack_piece *piece)
{
	const struct fc_trace_request *requests = walk->trace->requests;
	uint32_t last = piece->last_request;
	uint64_t gap_ns = requests[request].arrival_ns - requests[last].arrival_ns;
	add_to_windows(walk, gap_ns, piece->move_count);
	if (piece->list_count == 0)
		return 0;
	walk->columns[REUSE_WEIGHTS][request - last] += piece->list_count;
	fc_histogram_add_many(&walk->reuse_ns, gap_ns, piece->list_count);
	fc_curve_add(&walk->analysis->curve, piece->above, piece->list_count);
	if (walk->sessions.of_request[request] != walk->sessions.of_request[last])
		walk->analysis->other_session_hits += piece->list_count;
	uint64_t dram = walk->opts->dram_blocks;
	uint64_t in_dram = dram > piece->above ? fc_min_u64(dram - piece->above, piece->list_count) : 0;
	return piece->list_count - in_dram;
}

/* Requests come in the order of time, so one minute at a time is enough, however long the trace is. */
static void add_to_minute(struct walk *walk, uint64_t arrival_ns, uint64_t ssd_blocks)
{
	struct fc_analysis *analysis = walk->analysis;
	uint64_t minute = arrival_ns / MINUTE_NS;
	if (minute != walk->minute)
		walk->minute_blocks = walk->minute_requests = 0;
	walk->minute = minute;
	walk->minute_blocks += ssd_blocks;
	walk->minute_requests++;
	analysis->minute_blocks_max = fc_max_u64(analysis->minute_blocks_max, walk->minute_blocks);
	analysis->minute_requests_max = fc_max_u64(analysis->minute_requests_max, walk->minute_requests);
}

static void add_request(struct walk *walk, uint32_t index)
{
	const struct fc_trace_request *request = &walk->trace->requests[index];
	struct fc_analysis *analysis = walk->analysis;
	uint64_t hit_tokens = (uint64_t)walk->stack.list_stored * walk->trace->block_tokens, ssd_blocks = 0;
	hit_tokens = fc_min_u64(hit_tokens, request->input_tokens);
	walk->columns[INPUT_TOKENS][index] = request->input_tokens;
	walk->columns[OUTPUT_TOKENS][index] = request->output_tokens;
	walk->columns[HISTORY_TOKENS][index] = hit_tokens;
	walk->columns[NEW_TOKENS][index] = request->input_tokens - hit_tokens;
	analysis->reference_count += fc_trace_id_count(request);
	analysis->list_hits += walk->stack.list_known;
	analysis->hits += walk->stack.list_stored;
	for (uint64_t i = 0; i < walk->stack.piece_count; i++)
		ssd_blocks += add_piece(walk, index, &walk->stack.pieces[i]);
	walk->columns[SSD_BLOCKS][index] = ssd_blocks;
	analysis->tier_blocks += ssd_blocks;
	add_to_minute(walk, request->arrival_ns, ssd_blocks);
}

/* Puts the blocks of the reply into the tree; *end is the last block that the request leaves stored. */
static int add_reply(struct walk *walk, uint32_t index, uint32_t *end)
{
	const struct fc_trace_request *request = &walk->trace->requests[index];
	uint64_t own_count = fc_trace_id_count(request);
	uint64_t stored_count = fc_trace_stored_count(walk->trace, index, walk->opts->store_replies);
	*end = walk->tree.ends[index];
	if (stored_count == own_count)
		return 0;
	uint64_t label = walk->trace->requests[request->next].suffix_start;
	return fc_tree_extend(&walk->tree, *end, label, (uint32_t)(stored_count - own_count), end);
}

static int take_request(struct walk *walk, uint32_t index)
{
	uint32_t session = walk->trace->requests[index].session, end;
	bool is_given = session != FC_TRACE_NONE;
	struct fc_tree_match match;
	int result = fc_tree_add(&walk->tree, index, is_given ? NULL : &match);
	if (result != 0)
		return result;
	if (is_given)
		walk->sessions.of_request[index] = session;
	else
		fc_sessions_infer(&walk->sessions, &walk->tree, index, &match);
	result = add_reply(walk, index, &end);
	if (result == 0)
		result = fc_stack_take(&walk->stack, index, end);
	if (result == 0)
		add_request(walk, index);
	return result;
}

static void finish_blocks(struct walk *walk)
{
	const struct fc_trace_request *requests = walk->trace->requests;
	struct fc_analysis *analysis = walk->analysis;
	for (uint32_t i = 1; i < walk->tree.node_count; i++) {
		const struct fc_tree_node *node = &walk->tree.nodes[i];
		analysis->unique_count += node->list_count > 0 ? node->length : 0;
		analysis->once_count += node->list_count == 1 ? node->length : 0;
		add_to_windows(walk, analysis->span_ns - requests[node->last_request].arrival_ns, node->length);
	}
	for (int i = 0; i < FC_WINDOW_COUNT && analysis->span_ns > 0; i++)
		analysis->window_blocks[i] = (double)walk->window_sums[i] / (double)analysis->span_ns;
}

static void finish_spreads(struct walk *walk)
{
	struct fc_analysis *analysis = walk->analysis;
	uint64_t count = analysis->request_count;
	fc_spread_of_values(&analysis->input_tokens, walk->columns[INPUT_TOKENS], count);
	fc_spread_of_values(&analysis->output_tokens, walk->columns[OUTPUT_TOKENS], count);
	fc_spread_of_values(&analysis->new_tokens, walk->columns[NEW_TOKENS], count);
	fc_spread_of_values(&analysis->history_tokens, walk->columns[HISTORY_TOKENS], count);
	fc_spread_of_values(&analysis->request_blocks, walk->columns[SSD_BLOCKS], count);
	fc_spread_of_weights(&analysis->reuse_requests, walk->columns[REUSE_WEIGHTS], count);
	fc_spread_of_histogram(&analysis->reuse_ns, &walk->reuse_ns);
	fc_curve_finish(&analysis->curve, walk->stack.block_count);
	fc_spread_of_curve(&analysis->reuse_blocks, &analysis->curve);
}

static int walk_all(struct walk *walk)
{
	int result = walk_init(walk, walk->trace);
	for (uint32_t i = 0; result == 0 && i < walk->trace->request_count; i++)
		result = take_request(walk, i);
	if (result != 0)
		return result;
	if (!walk->analysis->are_sessions_inferred)
		walk->sessions.count = walk->trace->session_count;
	finish_blocks(walk);
	finish_spreads(walk);
	return fc_sessions_measure(&walk->sessions, &walk->tree, walk->analysis);
}

int fc_analyze(const struct fc_trace *trace, const struct fc_analyze_opts *opts, struct fc_analysis *analysis)
{
	uint32_t count = trace->request_count;
	*analysis = (struct fc_analysis){
		.request_count = count,
		.are_sessions_inferred = trace->session_count == 0,
		.span_ns = count > 0 ? trace->requests[count - 1].arrival_ns - trace->requests[0].arrival_ns : 0,
		.block_tokens = trace->block_tokens,
		.dram_blocks = opts->dram_blocks,
		.agent_context_tokens = opts->agent_context_tokens,
	};
	struct walk *walk = calloc(1, sizeof(*walk));
	if (walk == NULL)
		return FC_ENOMEM;
	walk->trace = trace;
	walk->opts = opts;
	walk->analysis = analysis;
	int result = walk_all(walk);
	walk_deinit(walk);
	free(walk);
	if (result != 0)
		fc_analysis_deinit(analysis);
	return result;
}

void fc_analysis_deinit(struct fc_analysis *analysis)
{
	fc_curve_deinit(&analysis->curve);
}
