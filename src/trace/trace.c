/* Reading a trace that is in memory: whole lists put together from differences.
 *
 * A list of n ids lies scattered over earlier requests of its line, as in this line of three requests:
 *
 *   request 0   suffix A B C D                   list A B C D
 *   request 1   prefix 4, suffix E F             list A B C D E F
 *   request 2   prefix 2, suffix G               list A B G
 *
 * One list is collected backwards: each request on the way gives the part of its suffix that lies below what is still
 * missing. A walk keeps the list of each line and only cuts and appends. */
#include "trace/trace.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fc_trace_free(struct fc_trace *trace)
{
	if (trace == NULL)
		return;
	for (uint32_t i = 0; i < trace->session_count; i++)
		free(trace->sessions[i].name);
	free(trace->sessions);
	free(trace->session_requests);
	free(trace->requests);
	free(trace->suffix_ids);
	free(trace);
}

bool fc_trace_print_left_out(const struct fc_trace *trace, FILE *file)
{
	if (trace->skipped_count > 0)
		fprintf(file, "damaged records left out: %llu; the first: %s\n",
			(unsigned long long)trace->skipped_count, trace->skipped_first.text);
	if (trace->without_input_count > 0)
		fprintf(file, "requests without input left out: %llu\n",
			(unsigned long long)trace->without_input_count);
	return trace->skipped_count + trace->without_input_count > 0;
}

const char *fc_trace_sessions_text(const struct fc_trace *trace, char text[FC_TRACE_SESSIONS_BYTES])
{
	if (trace->session_count == 0)
		snprintf(text, FC_TRACE_SESSIONS_BYTES, "sessions not named");
	else
		snprintf(text, FC_TRACE_SESSIONS_BYTES, "%u session%s", trace->session_count,
			 trace->session_count == 1 ? "" : "s");
	return text;
}

void fc_trace_request_ids(const struct fc_trace *trace, uint32_t request, uint64_t *ids)
{
	fc_check(request < trace->request_count);
	const struct fc_trace_request *from = &trace->requests[request];
	uint64_t missing = fc_trace_id_count(from);
	while (missing > 0) {
		if (from->prefix_count < missing) {
			memcpy(ids + from->prefix_count, trace->suffix_ids + from->suffix_start,
			       (missing - from->prefix_count) * sizeof(*ids));
			missing = from->prefix_count;
		}
		if (missing > 0)
			from = &trace->requests[from->previous];
	}
}

uint64_t fc_trace_stored_count(const struct fc_trace *trace, uint32_t request, bool store_replies)
{
	fc_check(request < trace->request_count);
	const struct fc_trace_request *own = &trace->requests[request];
	uint64_t own_count = fc_trace_id_count(own);
	if (!store_replies || own->next == FC_TRACE_NONE)
		return own_count;
	const struct fc_trace_request *next = &trace->requests[own->next];
	if (next->prefix_count != own_count)
		return own_count;
	uint64_t computed = (own->input_tokens + own->output_tokens) / trace->block_tokens;
	return fc_max_u64(own_count, fc_min_u64(computed, fc_trace_id_count(next)));
}

/* The current list of a line. */
struct list {
	uint64_t *ids;
	uint64_t capacity;
	uint32_t request;
};

struct fc_trace_lists {
	const struct fc_trace *trace;
	struct list *lines;
	uint32_t finished_line; /* whose last request the previous call asked for */
};

int fc_trace_lists_new(const struct fc_trace *trace, struct fc_trace_lists **lists)
{
	*lists = NULL;
	struct fc_trace_lists *made = calloc(1, sizeof(*made));
	if (made == NULL)
		return FC_ENOMEM;
	made->lines = calloc((size_t)trace->line_count + 1, sizeof(*made->lines));
	if (made->lines == NULL) {
		free(made);
		return FC_ENOMEM;
	}
	made->trace = trace;
	made->finished_line = FC_TRACE_NONE;
	*lists = made;
	return 0;
}

void fc_trace_lists_free(struct fc_trace_lists *lists)
{
	if (lists == NULL)
		return;
	for (uint32_t i = 0; i < lists->trace->line_count; i++)
		free(lists->lines[i].ids);
	free(lists->lines);
	free(lists);
}

static void list_free(struct list *list)
{
	free(list->ids);
	*list = (struct list){0};
}

static int list_reserve(struct list *list, uint64_t count)
{
	if (count <= list->capacity)
		return 0;
	uint64_t capacity = count + count / 2;
	uint64_t *ids = realloc(list->ids, capacity * sizeof(*ids));
	if (ids == NULL)
		return FC_ENOMEM;
	list->ids = ids;
	list->capacity = capacity;
	return 0;
}

/* Makes the list that of `request`: from the list before it when that is what it holds, else from the whole trace. */
static int list_step(const struct fc_trace *trace, struct list *list, uint32_t request)
{
	const struct fc_trace_request *wanted = &trace->requests[request];
	bool is_empty = list->ids == NULL;
	if (!is_empty && list->request == request)
		return 0;
	uint64_t count = fc_trace_id_count(wanted);
	if (list_reserve(list, fc_max_u64(count, 1)) != 0)
		return FC_ENOMEM;
	if (wanted->prefix_count == 0 || (!is_empty && list->request == wanted->previous))
		memcpy(list->ids + wanted->prefix_count, trace->suffix_ids + wanted->suffix_start,
		       wanted->suffix_count * sizeof(*list->ids));
	else
		fc_trace_request_ids(trace, request, list->ids);
	list->request = request;
	return 0;
}

int fc_trace_lists_get(struct fc_trace_lists *lists, uint32_t request, const uint64_t **ids, uint64_t *id_count)
{
	const struct fc_trace *trace = lists->trace;
	fc_check(request < trace->request_count);
	const struct fc_trace_request *wanted = &trace->requests[request];
	*id_count = fc_trace_id_count(wanted);
	if (wanted->line == FC_TRACE_NONE) {
		*ids = trace->suffix_ids + wanted->suffix_start;
		return 0;
	}
	if (lists->finished_line != FC_TRACE_NONE && lists->finished_line != wanted->line)
		list_free(&lists->lines[lists->finished_line]);
	lists->finished_line = wanted->next == FC_TRACE_NONE ? wanted->line : FC_TRACE_NONE;
	struct list *list = &lists->lines[wanted->line];
	int result = list_step(trace, list, request);
	*ids = list->ids;
	return result;
}
