/* The format of the Qwen Bailian usage traces: each record is a request of a conversation,
 *
 *   {"chat_id": n, "parent_chat_id": n or -1, "timestamp": seconds, "input_length": tokens, "output_length": tokens,
 *    "type": "text", "turn": n, "hash_ids": [block, ...]}
 *
 * Blocks have 16 tokens; ids are global and cover the whole input, the last, partial block included, which is left out.
 * Every request has a chat of its own and names the one that it goes on with, so a session is a tree of chats; it has
 * the name of its root, or, where a trace begins in the middle of a conversation, of the first chat that is missing. */
#include "trace/reader.h"

#include <stdio.h>

#define BLOCK_TOKENS 16

/* The session of a chat; one that has none yet begins it under its own number. */
static int session_of(struct fc_reader *reader, uint64_t chat, uint32_t *session, struct fc_error *error)
{
	char name[32];
	bool is_new;
	*session = fc_build_session_number(reader->build);
	if (fc_idmap_enter(&reader->chats, chat, session, &is_new) != 0)
		return fc_error_set(error, FC_ENOMEM, "no memory for chats");
	if (!is_new)
		return 0;
	snprintf(name, sizeof(name), "%llu", (unsigned long long)chat);
	return fc_build_timed_session(reader->build, name, session, error);
}

static int read_session(struct fc_reader *reader, const struct fc_json_text *text, const struct fc_json_at *at,
			const json_t *request, uint32_t *session, struct fc_error *error)
{
	struct fc_json_at parent_at = {.parent = at, .key = "parent_chat_id"};
	const json_t *parent = json_object_get(request, "parent_chat_id");
	uint64_t chat, parent_chat = 0;
	bool is_root = parent == NULL || (json_is_integer(parent) && json_integer_value(parent) == -1);
	int result = fc_json_member_integer(text, at, request, "chat_id", INT64_MAX, &chat, error);
	if (result == 0 && !is_root && !(json_is_integer(parent) && json_integer_value(parent) >= 0))
		return fc_json_refuse(text, &parent_at, "-1, or an integer from 0 to 9223372036854775807", error);
	if (result == 0 && !is_root)
		result = fc_json_integer(text, &parent_at, parent, 0, INT64_MAX, &parent_chat, error);
	if (result == 0)
		result = session_of(reader, is_root ? chat : parent_chat, session, error);
	bool is_new;
	uint32_t known = *session;
	if (result == 0 && fc_idmap_enter(&reader->chats, chat, &known, &is_new) != 0)
		return fc_error_set(error, FC_ENOMEM, "no memory for chats");
	return result;
}

int fc_bailian_read(struct fc_reader *reader, const struct fc_json_text *text, const struct fc_json_at *at,
		    const json_t *request, struct fc_error *error)
{
	struct fc_build_request made = {.has_session = true};
	uint32_t block_tokens = reader->opts->block_tokens != 0 ? reader->opts->block_tokens : BLOCK_TOKENS;
	int result = fc_reader_timed(reader, text, at, request, 1000000000, block_tokens, &made, error);
	if (result == 0)
		result = fc_reader_check_session(reader, text, at, "chat_id", FC_READER_SESSIONS_BY_CHAT, error);
	if (result == 0)
		result = read_session(reader, text, at, request, &made.session, error); /* others may go on with it */
	if (result == 0 && fc_reader_is_without_input(reader, &made))
		return 0;
	return result != 0 ? result : fc_build_timed_request(reader->build, block_tokens, &made, error);
}
