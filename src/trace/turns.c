#include "trace/turns.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

/* A list whose head was taken off still has it in front of its suffix. */
static const uint64_t *whole_list(const struct fc_trace *trace, const struct fc_trace_request *request)
{
	return trace->suffix_ids + request->suffix_start - request->prefix_count;
}

static void continue_line(const struct fc_trace *trace, uint32_t previous, uint32_t number)
{
	struct fc_trace_request *before = &trace->requests[previous], *request = &trace->requests[number];
	const uint64_t *one = whole_list(trace, before), *other = whole_list(trace, request);
	uint64_t count = fc_min_u64(fc_trace_id_count(before), request->suffix_count);
	uint32_t common = 0;
	while (common < count && one[common] == other[common])
		common++;
	before->next = number;
	request->previous = previous;
	request->turn = before->turn + 1;
	request->prefix_count = common;
	request->suffix_start += common;
	request->suffix_count -= common;
}

int fc_turns_link(struct fc_trace *trace)
{
	uint32_t *last = malloc(((size_t)trace->session_count + 1) * sizeof(*last));
	if (last == NULL)
		return FC_ENOMEM;
	memset(last, 0xff, ((size_t)trace->session_count + 1) * sizeof(*last)); /* FC_TRACE_NONE */
	for (uint32_t i = 0; i < trace->request_count; i++) {
		uint32_t session = trace->requests[i].session;
		trace->requests[i].line = session;
		if (last[session] != FC_TRACE_NONE)
			continue_line(trace, last[session], i);
		last[session] = i;
	}
	trace->line_count = trace->session_count;
	free(last);
	return 0;
}
