#include "fuzz/trace_input.h"

#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

struct fc_trace_opts fuzz_trace_opts(uint8_t choice)
{
	struct fc_trace_opts opts;
	fc_trace_opts_init(&opts);
	opts.is_lenient = choice & 1;
	opts.share_prompts = !(choice & 2);
	opts.include_subagents = !(choice & 4);
	opts.limit = choice & 8 ? 1 : 0;
	opts.concurrent_sessions = choice & 16 ? 3 : 1;
	opts.block_tokens = 16;
	opts.seed = choice;
	return opts;
}

/* ---- lists ---- */

/* `ids` is the request's list. */
static void check_list(const struct fc_trace *trace, uint32_t index, const uint64_t *ids)
{
	const struct fc_trace_request *request = &trace->requests[index];
	uint64_t count = fc_trace_id_count(request);
	uint64_t blocks =
		request->input_tokens / trace->block_tokens + (request->input_tokens % trace->block_tokens != 0);
	fuzz_check(count <= blocks, "request %u: %llu blocks of %llu", index, (unsigned long long)count,
		   (unsigned long long)blocks);
	for (uint64_t i = 0; i < count; i++)
		fuzz_check(trace->id_bound == 0 || ids[i] < trace->id_bound, "request %u: id %llu is beyond the bound",
			   index, (unsigned long long)ids[i]);
	for (int with_replies = 0; with_replies < 2; with_replies++) {
		uint64_t stored = fc_trace_stored_count(trace, index, with_replies != 0);
		uint64_t most =
			request->next == FC_TRACE_NONE ? count : fc_trace_id_count(&trace->requests[request->next]);
		fuzz_check(stored == count || (stored > count && stored <= most), "request %u: %llu blocks are stored",
			   index, (unsigned long long)stored);
	}
}

static void check_lists(const struct fc_trace *trace)
{
	struct fc_trace_lists *lists;
	uint64_t reference_count = 0;
	fuzz_check(fc_trace_lists_new(trace, &lists) == 0, "no memory");
	for (uint32_t i = 0; i < trace->request_count; i++) {
		const struct fc_trace_request *request = &trace->requests[i];
		uint64_t count = fc_trace_id_count(request), walked_count;
		const uint64_t *walked;
		uint64_t *ids = malloc((count + 1) * sizeof(*ids));
		fuzz_check(ids != NULL, "no memory");
		fc_trace_request_ids(trace, i, ids);
		fuzz_check(fc_trace_lists_get(lists, i, &walked, &walked_count) == 0 && walked_count == count &&
				   (count == 0 || memcmp(walked, ids, count * sizeof(*ids)) == 0),
			   "request %u: two ways to its list disagree", i);
		check_list(trace, i, ids);
		reference_count += count;
		free(ids);
	}
	fc_trace_lists_free(lists);
	fuzz_check(reference_count == trace->reference_count, "the references are counted wrong");
}

/* ---- requests and sessions ---- */

static void check_links(const struct fc_trace *trace, uint32_t index)
{
	const struct fc_trace_request *request = &trace->requests[index];
	uint64_t before_count = 0;
	if (request->previous != FC_TRACE_NONE) {
		fuzz_check(request->previous < index, "request %u: %u comes before it", index, request->previous);
		const struct fc_trace_request *before = &trace->requests[request->previous];
		fuzz_check(before->next == index && before->line == request->line &&
				   before->turn + 1 == request->turn && before->session == request->session,
			   "request %u is not the next of the one before it", index);
		before_count = fc_trace_id_count(before);
	} else {
		fuzz_check(request->turn == 0, "request %u begins its line with turn %u", index, request->turn);
	}
	fuzz_check(request->prefix_count <= before_count, "request %u: a prefix of %u", index, request->prefix_count);
	if (request->next != FC_TRACE_NONE)
		fuzz_check(request->next > index && request->next < trace->request_count &&
				   trace->requests[request->next].previous == index,
			   "request %u: %u comes after it", index, request->next);
}

static void check_request(const struct fc_trace *trace, uint32_t index)
{
	const struct fc_trace_request *request = &trace->requests[index];
	bool has_session = trace->session_count > 0;
	fuzz_check(index == 0 ? request->arrival_ns == 0 : request->arrival_ns >= request[-1].arrival_ns,
		   "request %u arrives out of order", index);
	fuzz_check(request->input_tokens <= INT64_MAX && request->output_tokens <= INT64_MAX, "request %u: tokens",
		   index);
	fuzz_check(request->shared_tokens <= request->input_tokens, "request %u: %llu of %llu tokens are shared", index,
		   (unsigned long long)request->shared_tokens, (unsigned long long)request->input_tokens);
	fuzz_check(request->suffix_start <= trace->suffix_id_count &&
			   request->suffix_count <= trace->suffix_id_count - request->suffix_start,
		   "request %u: its ids lie outside", index);
	fuzz_check(has_session ? request->session < trace->session_count && request->line < trace->line_count
			       : request->session == FC_TRACE_NONE && request->line == FC_TRACE_NONE,
		   "request %u: session %u, line %u", index, request->session, request->line);
	check_links(trace, index);
}

static void check_session(const struct fc_trace *trace, uint32_t index, uint32_t *requests_start)
{
	const struct fc_trace_session *session = &trace->sessions[index];
	fuzz_check(session->request_count > 0 && session->requests_start == *requests_start &&
			   session->request_count <= trace->request_count - *requests_start,
		   "session %u: requests %u and %u more", index, session->requests_start, session->request_count);
	fuzz_check(index == 0 || strcmp(session[-1].name, session->name) < 0, "session %u: \"%s\" is out of order",
		   index, session->name);
	for (uint32_t i = 0; i < session->request_count; i++) {
		const uint32_t *place = &trace->session_requests[session->requests_start + i];
		fuzz_check(*place < trace->request_count && trace->requests[*place].session == index &&
				   (i == 0 || place[-1] < *place),
			   "session %u lists request %u", index, *place);
		uint64_t arrival_ns = trace->requests[*place].arrival_ns;
		fuzz_check(arrival_ns >= session->start_ns && arrival_ns - session->start_ns <= session->duration_ns,
			   "request %u arrives outside its session", *place);
	}
	*requests_start += session->request_count;
}

static void check_trace(const struct fc_trace *trace)
{
	uint32_t requests_start = 0;
	fuzz_check(trace->request_count > 0 && trace->block_tokens > 0, "an empty trace");
	for (uint32_t i = 0; i < trace->request_count; i++)
		check_request(trace, i);
	for (uint32_t i = 0; i < trace->session_count; i++)
		check_session(trace, i, &requests_start);
	fuzz_check(requests_start == (trace->session_count > 0 ? trace->request_count : 0), "sessions have %u requests",
		   requests_start);
	check_lists(trace);
}

/* ---- loading ---- */

static struct fc_trace *load(const char *path, const struct fc_trace_opts *opts)
{
	struct fc_trace *trace;
	struct fc_error error = {0};
	int code = fc_trace_load(&path, 1, opts, &trace, &error);
	fuzz_check((code == 0) == (trace != NULL), "code %d, and %s trace", code, trace == NULL ? "no" : "a");
	if (code != 0) {
		fuzz_check_refusal(code, &error);
		return NULL;
	}
	fuzz_check(opts->is_lenient || trace->skipped_count == 0, "a strict load left records out");
	if (trace->skipped_count > 0)
		fuzz_check_refusal(trace->skipped_first.code, &trace->skipped_first);
	check_trace(trace);
	return trace;
}

/* What loads strictly loads leniently to the same. */
static void check_lenient(const char *path, const struct fc_trace_opts *opts, const struct fc_trace *strict)
{
	struct fc_trace_opts lenient_opts = *opts;
	lenient_opts.is_lenient = true;
	struct fc_trace *lenient = load(path, &lenient_opts);
	fuzz_check(lenient != NULL && lenient->skipped_count == 0 && lenient->request_count == strict->request_count &&
			   lenient->session_count == strict->session_count && lenient->id_bound == strict->id_bound &&
			   lenient->reference_count == strict->reference_count,
		   "loads otherwise when bad records may be left out, and there are none");
	fc_trace_free(lenient);
}

/* Ids of 2^63 and above can be read from lists only: the parser of JSON has no numbers for them. */
static bool has_long_number(const char *bytes, size_t count)
{
	size_t digits = 0;
	for (size_t i = 0; i < count && digits < 19; i++)
		digits = bytes[i] >= '0' && bytes[i] <= '9' ? digits + 1 : 0;
	return digits >= 19;
}

/* The same text with an escape in the name "hash_ids", which only the parser of JSON resolves: nothing is cut out of
 * the records then (trace/cut.h), and all must be as before. */
static void check_uncut(const struct fc_trace_opts *opts, const char *bytes, size_t count, const struct fc_trace *trace)
{
	static const char key[] = "\"hash_ids\"", spelled[] = "\"hash\\u005fids\"";
	char *text = malloc(2 * count + 1);
	size_t used = 0;
	fuzz_check(text != NULL, "no memory");
	for (size_t at = 0; at < count;) {
		bool is_key = count - at >= sizeof(key) - 1 && memcmp(bytes + at, key, sizeof(key) - 1) == 0;
		memcpy(text + used, is_key ? spelled : bytes + at, is_key ? sizeof(spelled) - 1 : 1);
		used += is_key ? sizeof(spelled) - 1 : 1;
		at += is_key ? sizeof(key) - 1 : 1;
	}
	struct fc_trace *uncut = load(fuzz_file(text, used), opts);
	fuzz_check((uncut == NULL) == (trace == NULL), "%s when its lists are cut out",
		   trace == NULL ? "refused" : "loads");
	if (trace != NULL)
		fuzz_check(uncut->request_count == trace->request_count && uncut->id_bound == trace->id_bound &&
				   uncut->suffix_id_count == trace->suffix_id_count &&
				   memcmp(uncut->suffix_ids, trace->suffix_ids,
					  trace->suffix_id_count * sizeof(*trace->suffix_ids)) == 0,
			   "another trace when its lists are cut out");
	fc_trace_free(uncut);
	free(text);
}

void fuzz_trace_run(const struct fc_trace_opts *opts, const void *bytes, size_t count, bool is_text)
{
	const char *path = fuzz_file(bytes, count);
	struct fc_trace *trace = load(path, opts);
	if (trace != NULL && !opts->is_lenient)
		check_lenient(path, opts, trace);
	if (is_text && !has_long_number(bytes, count))
		check_uncut(opts, bytes, count, trace);
	fc_trace_free(trace);
}
