/* The Mooncake format: each record is a request,
 *
 *   {"timestamp": ms, "input_length": tokens, "output_length": tokens, "hash_ids": [block, ...]}
 *
 * Ids are global and cover the whole input, the last, partial block included, which is left out. The file does not say
 * how many tokens a block has: 512 in Mooncake's own, other numbers in what other tools write. Those may also add
 * "session_id", a text or a number. Without it there are no sessions; who replays such a trace finds out from the
 * blocks which requests belong together. */
#include "trace/reader.h"

#include <stdio.h>

#define BLOCK_TOKENS 512
#define NUMBER_BYTES 32

static int read_session(struct fc_reader *reader, const struct fc_json_text *text, const struct fc_json_at *at,
			const json_t *id, uint32_t *session, struct fc_error *error)
{
	struct fc_json_at id_at = {.parent = at, .key = "session_id"};
	const char *name = json_string_value(id);
	char number[NUMBER_BYTES];
	if (json_is_integer(id)) {
		snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(id));
		name = number;
	}
	if (name == NULL || name[0] == '\0')
		return fc_json_refuse(text, &id_at, "a text that is not empty, or an integer", error);
	return fc_build_timed_session(reader->build, name, session, error);
}

int fc_mooncake_read(struct fc_reader *reader, const struct fc_json_text *text, const struct fc_json_at *at,
		     const json_t *request, struct fc_error *error)
{
	const json_t *id = json_object_get(request, "session_id");
	struct fc_build_request made = {.has_session = id != NULL};
	uint32_t block_tokens = reader->opts->block_tokens != 0 ? reader->opts->block_tokens : BLOCK_TOKENS;
	int result = fc_reader_timed(reader, text, at, request, 1000000, block_tokens, &made, error);
	if (result == 0)
		result = fc_reader_check_session(reader, text, at, "session_id",
						 made.has_session ? FC_READER_SESSIONS_BY_ID : FC_READER_SESSIONS_NONE,
						 error);
	if (result == 0 && fc_reader_is_without_input(reader, &made))
		return 0;
	if (result == 0 && made.has_session)
		result = read_session(reader, text, at, id, &made.session, error);
	return result != 0 ? result : fc_build_timed_request(reader->build, block_tokens, &made, error);
}
