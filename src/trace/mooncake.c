/* The Mooncake format: each record is a request,
 *
 *   {"timestamp": ms, "input_length": tokens, "output_length": tokens, "hash_ids": [block, ...]}
 *
 * Ids are global and cover the whole input, the last, partial block included. There are no sessions; who replays such a
 * trace finds out from the blocks which requests belong together. */
#include "trace/reader.h"

int fc_mooncake_read(struct fc_reader *reader, const struct fc_json_text *text, const struct fc_json_at *at,
		     const json_t *request, struct fc_error *error)
{
	uint32_t block_tokens = reader->opts->mooncake_block_tokens;
	struct fc_json_at timestamp = {.parent = at, .key = "timestamp"};
	struct fc_build_request made = {0};
	int result =
		fc_json_time(text, &timestamp, json_object_get(request, "timestamp"), 1000000, &made.time_ns, error);
	if (result == 0)
		result =
			fc_json_member_integer(text, at, request, "input_length", INT64_MAX, &made.input_tokens, error);
	if (result == 0)
		result = fc_json_member_integer(text, at, request, "output_length", INT64_MAX, &made.output_tokens,
						error);
	if (result == 0)
		result = fc_reader_ids(reader, text, at, request, made.input_tokens, block_tokens, error);
	if (result != 0)
		return result;
	made.ids = reader->ids.items;
	made.id_count = reader->ids.count;
	return fc_build_loose_request(reader->build, block_tokens, &made, error);
}
