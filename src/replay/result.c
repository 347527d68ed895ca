#include "replay/result.h"

#include "base/check.h"

#include <stdlib.h>

const char *fc_ttft_part_name(enum fc_ttft_part part)
{
	static const char *const names[] = {
		[FC_TTFT_QUEUE] = "queue",
		[FC_TTFT_READ] = "read",
		[FC_TTFT_READY] = "ready",
		[FC_TTFT_PREFILL] = "prefill",
	};
	return names[part];
}

int fc_replay_result_new(struct fc_replay_result **made, uint64_t request_total)
{
	struct fc_replay_result *result = calloc(1, sizeof(*result));
	if (result == NULL)
		return FC_ENOMEM;
	result->request_total = request_total;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		result->busy[medium].intervals = calloc(request_total + 1, sizeof(struct fc_interval));
		if (result->busy[medium].intervals == NULL) {
			fc_replay_result_free(result);
			return FC_ENOMEM;
		}
	}
	*made = result;
	return FC_OK;
}

void fc_replay_result_free(struct fc_replay_result *result)
{
	if (result == NULL)
		return;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		free(result->busy[medium].intervals);
	free(result);
}

uint64_t fc_replay_bytes_written(const struct fc_replay_result *result)
{
	uint64_t bytes = 0;
	if (result->is_shared)
		return result->bytes_saved;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		bytes += result->after.media[medium].bytes_written - result->before.media[medium].bytes_written;
	return bytes;
}

uint64_t fc_replay_bytes_stored(const struct fc_replay_result *result)
{
	return result->after.media[FC_MEMORY].bytes_stored + result->after.media[FC_SSD].bytes_stored;
}

uint64_t fc_replay_sessions_reclaimed(const struct fc_replay_result *result, enum fc_medium medium)
{
	return result->after.media[medium].sessions_reclaimed - result->before.media[medium].sessions_reclaimed;
}
