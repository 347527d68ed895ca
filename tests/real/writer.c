#include "real/writer.h"

#include "lib/engine.h"
#include "lib/world.h"
#include "real/deny.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MIB (1ull << 20)
#define TURN_BLOCKS (WRITER_BLOCKS / WRITER_TURNS)
#define SLICE_SCALE 300
#define ARGUMENT "writer"

/* ---- what both sides know ---- */

struct fc_geometry writer_geometry(const struct writer_opts *opts)
{
	return opts->is_hybrid ? geometry_hybrid(SLICE_SCALE) : geometry_plain(SLICE_SCALE);
}

void writer_store_opts(const struct writer_opts *opts, const struct fc_geometry *geometry,
		       struct fc_store_opts *store_opts)
{
	static const uint64_t ssd_bytes[WRITER_WORLD_COUNT] = {
		[WRITER_ROOMY] = 64 * MIB,
		[WRITER_TIGHT] = 2 * MIB,
		[WRITER_MEMORY] = 32 * MIB,
		[WRITER_SPARSE] = 64 * MIB,
	};
	fc_store_opts_init(store_opts);
	store_opts->geometry = geometry;
	store_opts->ssd_bytes = ssd_bytes[opts->world];
	store_opts->memory_bytes = opts->world == WRITER_MEMORY ? 16 * MIB : 0;
	store_opts->memory_path = opts->world == WRITER_MEMORY ? opts->memory_path : NULL;
	store_opts->window_bytes = MIB;
	store_opts->consolidate_ratio = opts->is_consolidating ? 1 : 0;
}

void writer_session_keys(uint64_t session, struct fc_key *keys, uint64_t *base, uint64_t *shared_blocks)
{
	bool is_branch = session / WRITER_LANES % 4 == 3;
	*base = is_branch ? session - WRITER_LANES : 0;
	*shared_blocks = is_branch ? WRITER_BLOCKS / 2 : 0;
	if (is_branch)
		path_keys(*base, 0, keys, *shared_blocks);
	path_keys(session, *shared_blocks, keys, WRITER_BLOCKS);
}

int writer_start(const struct writer_opts *opts)
{
	char numbers[5][24];
	snprintf(numbers[0], sizeof(numbers[0]), "%d", (int)opts->world);
	snprintf(numbers[1], sizeof(numbers[1]), "%d", opts->is_hybrid);
	snprintf(numbers[2], sizeof(numbers[2]), "%d", opts->is_consolidating + 2 * opts->is_uring_denied);
	snprintf(numbers[3], sizeof(numbers[3]), "%llu", (unsigned long long)opts->session_first);
	snprintf(numbers[4], sizeof(numbers[4]), "%d", opts->pipe_fd);
	pid_t parent = getpid();
	pid_t child = fork();
	if (child != 0)
		return child;
	/* The writer must not outlive a test that is killed itself. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
		_exit(1);
	execl("/proc/self/exe", "test", ARGUMENT, numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], opts->dir,
	      opts->memory_path, (char *)NULL);
	_exit(1);
}

/* ---- the writer ---- */

struct lane {
	struct engine engine;
	struct fc_kv *kv;
	uint64_t session, turn;
	struct fc_key keys[WRITER_BLOCKS];
	struct fc_save *save;
};

static void tell(int fd, enum writer_event event, const struct lane *lane, int code, const char *text)
{
	struct writer_record record = {.event = event, .code = code};
	if (lane != NULL) {
		record.session = lane->session;
		record.blocks = (lane->turn + 1) * TURN_BLOCKS;
	}
	snprintf(record.text, sizeof(record.text), "%s", text);
	if (write(fd, &record, sizeof(record)) != sizeof(record))
		_exit(1);
}

static _Noreturn void give_up(int fd, const struct lane *lane, int code, const char *text)
{
	tell(fd, WRITER_REFUSED, lane, code, text);
	_exit(1);
}

static void begin_save(struct lane *lane, struct fc_store *store, int pipe_fd)
{
	struct fc_error error = {0};
	uint64_t blocks = (lane->turn + 1) * TURN_BLOCKS;
	struct fc_save_opts opts = {.session = {0, lane->session},
				    .keys = lane->keys,
				    .key_count = blocks,
				    .turn = lane->turn,
				    .kv = lane->kv};
	engine_fill(&lane->engine, lane->keys, blocks);
	engine_slots(&lane->engine, blocks, opts.slots);
	tell(pipe_fd, WRITER_SUBMITTED, lane, 0, "");
	int code = fc_save_submit(store, &opts, &lane->save, &error);
	if (code != FC_OK)
		give_up(pipe_fd, lane, code, error.text);
}

static void begin_session(struct lane *lane, uint64_t session)
{
	uint64_t base, shared_blocks;
	lane->session = session;
	lane->turn = 0;
	writer_session_keys(session, lane->keys, &base, &shared_blocks);
}

/* The lane's next turn, or the first one of its next session. */
static void go_on(struct lane *lane, bool is_durable)
{
	if (is_durable && lane->turn + 1 < WRITER_TURNS)
		lane->turn++;
	else
		begin_session(lane, lane->session + WRITER_LANES);
}

static void end_save(struct lane *lane, int pipe_fd)
{
	struct fc_save_result result;
	(void)fc_save_wait(lane->save, true, &result);
	fc_save_free(lane->save);
	int code = result.code != FC_OK ? result.code : result.durable_code;
	if (code != FC_OK)
		tell(pipe_fd, WRITER_REFUSED, lane, code, result.error.text);
	else if (!result.is_durable)
		give_up(pipe_fd, lane, code, "a save ended that nothing will make durable");
	else
		tell(pipe_fd, WRITER_DURABLE, lane, 0, "");
	go_on(lane, code == FC_OK);
}

static _Noreturn void write_until_killed(const struct writer_opts *opts)
{
	static struct lane lanes[WRITER_LANES];
	struct fc_geometry geometry = writer_geometry(opts);
	struct fc_store_opts store_opts;
	struct fc_store *store = NULL;
	struct fc_error error = {0};
	char address[4200];
	snprintf(address, sizeof(address), "dir:%s", opts->dir);
	writer_store_opts(opts, &geometry, &store_opts);
	int code = fc_store_open(&store, address, &store_opts, &error);
	if (code != FC_OK)
		give_up(opts->pipe_fd, NULL, code, error.text);
	tell(opts->pipe_fd, WRITER_OPENED, NULL, 0, "");
	for (uint64_t i = 0; i < WRITER_LANES; i++) {
		struct lane *lane = &lanes[i];
		engine_init(&lane->engine, &geometry, WRITER_BLOCKS, 1);
		code = fc_kv_register(store, lane->engine.layers, &lane->kv, &error);
		if (code != FC_OK)
			give_up(opts->pipe_fd, NULL, code, error.text);
		begin_session(lane, opts->session_first + i);
		begin_save(lane, store, opts->pipe_fd);
	}
	for (uint64_t i = 0;; i = (i + 1) % WRITER_LANES) {
		end_save(&lanes[i], opts->pipe_fd);
		begin_save(&lanes[i], store, opts->pipe_fd);
	}
}

void writer_main(int argc, char **argv)
{
	if (argc < 8 || strcmp(argv[1], ARGUMENT) != 0)
		return;
	int flags = atoi(argv[4]);
	struct writer_opts opts = {
		.world = (enum writer_world)atoi(argv[2]),
		.is_hybrid = atoi(argv[3]) != 0,
		.is_consolidating = (flags & 1) != 0,
		.is_uring_denied = (flags & 2) != 0,
		.session_first = strtoull(argv[5], NULL, 10),
		.pipe_fd = atoi(argv[6]),
		.dir = argv[7],
		.memory_path = argc > 8 ? argv[8] : NULL,
	};
	if (opts.is_uring_denied && !deny_call(SYS_io_uring_setup, EPERM))
		give_up(opts.pipe_fd, NULL, FC_ESYSTEM, "seccomp");
	write_until_killed(&opts);
}
