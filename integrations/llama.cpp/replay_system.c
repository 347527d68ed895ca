/* Where a session's KV comes from when it is wanted again. */
#include "replay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
	const char *name, *title;
} systems[SYSTEM_COUNT] = {
	[SYSTEM_UNLIMITED] = {"unlimited", "never forgotten"},
	[SYSTEM_RECOMPUTE] = {"recompute", "no store: computed again"},
	[SYSTEM_FILE] = {"file", "llama.cpp's files, in the page cache"},
	[SYSTEM_FILE_COLD] = {"file-cold", "llama.cpp's files, from the disk"},
	[SYSTEM_MEMORY] = {"memory", "FlatCake, memory"},
	[SYSTEM_SSD] = {"ssd", "FlatCake, SSD"},
	[SYSTEM_SSD_AHEAD] = {"ssd-ahead", "FlatCake, SSD, next load ahead"},
};

const char *system_name(enum system_kind kind)
{
	return systems[kind].name;
}

const char *system_title(enum system_kind kind)
{
	return systems[kind].title;
}

static bool is_file(const struct system *system)
{
	return system->kind == SYSTEM_FILE || system->kind == SYSTEM_FILE_COLD;
}

static int open_bridge(struct system *system, struct fc_error *error)
{
	char address[sizeof(system->folder) + 8];
	struct fc_llama_opts opts;
	snprintf(address, sizeof(address), "dir:%s", system->folder);
	fc_llama_opts_init(&opts);
	opts.context = system->engine->context;
	opts.params = &system->engine->params;
	opts.model_path = system->opts->model;
	opts.block_tokens = (uint32_t)system->opts->block;
	opts.address = address;
	opts.store_opts.memory_bytes = system->kind == SYSTEM_MEMORY ? system->opts->memory_bytes : 0;
	opts.store_opts.ssd_bytes = system->kind == SYSTEM_MEMORY ? 0 : system->opts->ssd_bytes;
	return fc_llama_open(&system->bridge, &opts, error);
}

int system_open(struct system *system, enum system_kind kind, struct engine *engine, const struct replay_opts *opts,
		const char *folder, struct fc_error *error)
{
	*system = (struct system){.kind = kind, .engine = engine, .opts = opts};
	snprintf(system->folder, sizeof(system->folder), "%s/%s", folder, system_name(kind));
	if (is_file(system) && mkdir(system->folder, 0700) != 0)
		return fc_error_set(error, FC_ESYSTEM, "mkdir %s: %s", system->folder, strerror(errno));
	return kind >= SYSTEM_MEMORY ? open_bridge(system, error) : FC_OK;
}

static void remove_folder(const char *folder)
{
	char command[640];
	snprintf(command, sizeof(command), "rm -rf -- '%s'", folder);
	if (system(command) != 0)
		fprintf(stderr, "could not remove %s\n", folder);
}

void system_close(struct system *system)
{
	fc_llama_load_cancel(system->ahead);
	fc_llama_close(system->bridge);
	if (is_file(system) || system->kind >= SYSTEM_MEMORY)
		remove_folder(system->folder);
}

/* ---- llama.cpp's files ---- */

static void file_path(const struct system *system, uint32_t session, char path[600])
{
	snprintf(path, 600, "%s/%u.state", system->folder, session);
}

/* Written and taken out of the page cache: where a file is once there are more files than memory. */
static int make_cold(const char *path, struct fc_error *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fdatasync(fd) != 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0) {
		int reason = errno;
		if (fd >= 0)
			close(fd);
		return fc_error_set(error, FC_ESYSTEM, "%s: %s", path, strerror(reason));
	}
	close(fd);
	return FC_OK;
}

int system_cool(struct system *system, uint32_t session, struct fc_error *error)
{
	char path[600];
	file_path(system, session, path);
	return system->kind == SYSTEM_FILE_COLD ? make_cold(path, error) : FC_OK;
}

static int save_file(struct system *system, uint32_t session, llama_seq_id sequence, const llama_token *tokens,
		     size_t count, struct fc_error *error)
{
	char path[600];
	file_path(system, session, path);
	size_t bytes = llama_state_seq_save_file(system->engine->context, path, sequence, tokens, count);
	if (bytes == 0)
		return fc_error_set(error, FC_ESYSTEM, "llama.cpp could not write %s", path);
	system->bytes_written += bytes;
	return system_cool(system, session, error);
}

static size_t equal_tokens(const llama_token *left, size_t left_count, const llama_token *right, size_t right_count)
{
	size_t count = 0;
	while (count < left_count && count < right_count && left[count] == right[count])
		count++;
	return count;
}

/* A file holds the whole of one session as it last was: what of it the prompt does not continue is read in vain. */
static int load_file(struct system *system, uint32_t session, llama_seq_id sequence, const llama_token *prompt,
		     size_t count, size_t *start, struct fc_error *error)
{
	char path[600];
	file_path(system, session, path);
	*start = 0;
	if (access(path, R_OK) != 0)
		return FC_OK;
	size_t room = system->opts->history + system->opts->reply + 1, held = 0;
	llama_token *tokens = calloc(room, sizeof(*tokens));
	if (tokens == NULL)
		return fc_error_set(error, FC_ENOMEM, "%s", fc_code_text(FC_ENOMEM));
	int code = FC_OK;
	if (llama_state_seq_load_file(system->engine->context, path, sequence, tokens, room, &held) == 0)
		code = fc_error_set(error, FC_EIO, "llama.cpp could not read %s", path);
	size_t block = system->opts->block;
	*start = equal_tokens(tokens, held, prompt, count - 1) / block * block;
	free(tokens);
	return code;
}

/* ---- all ---- */

static int load_from_store(struct system *system, llama_seq_id sequence, const llama_token *prompt, size_t count,
			   size_t live, size_t *start, struct fc_error *error)
{
	struct fc_llama_load *load = system->ahead;
	struct fc_llama_restored restored = {0};
	int code = FC_OK;
	system->ahead = NULL;
	if (load == NULL)
		code = fc_llama_load_begin(system->bridge, prompt, count, &load, error);
	if (code == FC_OK)
		code = fc_llama_load_finish(load, sequence, live, &restored, error);
	*start = restored.tokens;
	return code;
}

int system_restore(struct system *system, uint32_t session, llama_seq_id sequence, const llama_token *prompt,
		   size_t count, size_t live, size_t *start, struct fc_error *error)
{
	int code = FC_OK;
	*start = live;
	if (system->kind >= SYSTEM_MEMORY)
		return load_from_store(system, sequence, prompt, count, live, start, error);
	if (is_file(system) && live == 0)
		code = load_file(system, session, sequence, prompt, count, start, error);
	llama_memory_seq_rm(system->engine->memory, sequence, (llama_pos)*start, -1);
	return code;
}

int system_settle(struct system *system, struct fc_error *error)
{
	struct fc_llama_saved saved;
	if (system->saving == NULL)
		return FC_OK;
	int code = fc_llama_save_finish(system->saving, false, &saved, error);
	system->saving = NULL;
	system->bytes_written += saved.bytes_written[FC_MEMORY] + saved.bytes_written[FC_SSD];
	return code == FC_EFULL ? FC_OK : code; /* then it is computed again */
}

int system_save(struct system *system, const struct replay_turn *turn, llama_seq_id sequence, const llama_token *tokens,
		size_t count, struct fc_error *error)
{
	if (is_file(system))
		return save_file(system, turn->session, sequence, tokens, count, error);
	if (system->kind < SYSTEM_MEMORY)
		return FC_OK;
	char name[32];
	snprintf(name, sizeof(name), "session %u", turn->session);
	struct fc_llama_turn stored = {
		.session = fc_session_id_from_text(name),
		.sequence = sequence,
		.tokens = tokens,
		.token_count = count,
		.shared_tokens = turn->shared_tokens < count ? turn->shared_tokens : count,
		.turn = turn->number,
	};
	int code = system_settle(system, error);
	return code == FC_OK ? fc_llama_save_begin(system->bridge, &stored, &system->saving, error) : code;
}

int system_look_ahead(struct system *system, const llama_token *prompt, size_t count, struct fc_error *error)
{
	if (system->kind != SYSTEM_SSD_AHEAD || system->ahead != NULL)
		return FC_OK;
	int code = system_settle(system, error); /* what it will find must be visible */
	return code == FC_OK ? fc_llama_load_begin(system->bridge, prompt, count, &system->ahead, error) : code;
}
