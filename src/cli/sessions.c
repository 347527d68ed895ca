/* `flatcake sessions`: the conversations and shared prompts in a store that nobody uses, most recently used first. */
#include "cli/closed_store.h"
#include "cli/commands.h"
#include "cli/json_file.h"
#include "cli/table.h"

#include <jansson.h>
#include <stdlib.h>

struct session_list {
	struct fc_session_info *sessions; /* least recently used first */
	size_t count, room;
	bool is_out_of_memory;
};

static bool add_session(void *context, const struct fc_session_info *info)
{
	struct session_list *list = context;
	if (list->count == list->room) {
		size_t room = list->room == 0 ? 256 : list->room * 2;
		struct fc_session_info *larger = reallocarray(list->sessions, room, sizeof(*larger));
		list->is_out_of_memory = larger == NULL;
		if (larger == NULL)
			return false;
		list->sessions = larger;
		list->room = room;
	}
	list->sessions[list->count++] = *info;
	return true;
}

static const char *kind_text(const struct fc_session_info *session)
{
	return session->kind == FC_SESSION_PROMPT ? "prompt" : "conversation";
}

static int print_list(const struct session_list *list)
{
	static const char *const titles[] = {"session", "kind",    "turns",    "blocks", "memory",
					     "ssd",     "extents", "segments", "used by"};
	struct fc_table table;
	char text[FC_SESSION_TEXT_BYTES], number[FC_HUMAN_BYTES];
	fc_table_init(&table, "llrrrrrrr");
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		fc_table_cell(&table, "%s", titles[i]);
	for (size_t i = list->count; i-- > 0;) {
		const struct fc_session_info *session = &list->sessions[i];
		fc_table_cell(&table, "%s", fc_session_text(session->id, text));
		fc_table_cell(&table, "%s", kind_text(session));
		fc_table_cell(&table, "%s", fc_human_count(session->turns, number));
		fc_table_cell(&table, "%s", fc_human_count(session->blocks, number));
		fc_table_cell(&table, "%s", fc_human_bytes(session->bytes[FC_MEMORY], number));
		fc_table_cell(&table, "%s", fc_human_bytes(session->bytes[FC_SSD], number));
		fc_table_cell(&table, "%s", fc_human_count(session->extents, number));
		fc_table_cell(&table, "%s", fc_human_count(session->segments, number));
		fc_table_cell(&table, "%s", fc_human_count(session->dependents, number));
	}
	int code = fc_table_print(&table, stdout);
	fc_table_deinit(&table);
	return code;
}

/* `order` counts from 1, the most recently used. What the medium tells of the time of use is this order alone. */
static json_t *session_to_json(const struct fc_session_info *session, size_t order)
{
	char text[FC_SESSION_TEXT_BYTES];
	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "session",
			 fc_session_text(session->id, text), "kind", kind_text(session), "turns",
			 (json_int_t)session->turns, "blocks", (json_int_t)session->blocks, "memory_bytes",
			 (json_int_t)session->bytes[FC_MEMORY], "ssd_bytes", (json_int_t)session->bytes[FC_SSD],
			 "extents", (json_int_t)session->extents, "segments", (json_int_t)session->segments,
			 "dependents", (json_int_t)session->dependents, "last_use", (json_int_t)order);
}

static json_t *list_to_json(const struct session_list *list)
{
	json_t *array = json_array();
	for (size_t i = list->count; array != NULL && i-- > 0;) {
		if (json_array_append_new(array, session_to_json(&list->sessions[i], list->count - i)) != 0) {
			json_decref(array);
			array = NULL;
		}
	}
	return array;
}

int fc_command_sessions(const struct fc_config *config, struct fc_error *error)
{
	struct fc_inspect *inspect;
	struct session_list list = {0};
	int code = fc_closed_store_open(&inspect, config, error);
	if (code != FC_OK)
		return code;
	fc_catalog_sessions(fc_inspect_catalog(inspect), add_session, &list);
	if (list.is_out_of_memory || (!fc_json_replaces_text(config) && print_list(&list) != FC_OK))
		code = fc_error_set(error, FC_ENOMEM, "no memory for the list of sessions");
	if (code == FC_OK && config->json_path != NULL)
		code = fc_json_write(config->json_path, list_to_json(&list), error);
	free(list.sessions);
	fc_inspect_close(inspect);
	return code;
}
