/* Open and close a store, and the questions one asks it. */
#include "store/state.h"

#include "base/check.h"
#include "host/alloc.h"
#include "store/opts.h"

#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS 50000000ull /* at the thread that is waited for */

/* ---- open and close ---- */

static char *copy_text(const char *text)
{
	return text == NULL ? NULL : strdup(text);
}

/* NULL when the address is of another kind, or there is nothing behind the prefix. */
static const char *path_behind(const char *address, const char *prefix)
{
	size_t length = strlen(prefix);
	return address == NULL || strncmp(address, prefix, length) != 0 || address[length] == 0 ? NULL
												: address + length;
}

static int set_paths(struct fc_store *store, const char *address, struct fc_error *error)
{
	const char *dir = path_behind(address, "dir:"), *socket_path = path_behind(address, "unix:");
	if (dir == NULL && socket_path == NULL)
		return fc_error_set(error, FC_EINVAL, "address \"%s\"; \"dir:PATH\" and \"unix:PATH\" are allowed",
				    address == NULL ? "" : address);
	store->dir = strdup(dir != NULL ? dir : socket_path);
	store->socket_path = copy_text(socket_path);
	store->memory_path = copy_text(store->opts.memory_path);
	store->ssd_path = copy_text(store->opts.ssd_path);
	if (store->opts.ssd_path == NULL && store->dir != NULL &&
	    asprintf(&store->ssd_path, "%s/ssd.arena", store->dir) < 0)
		store->ssd_path = NULL;
	bool has_all = store->dir != NULL && store->ssd_path != NULL &&
		       (socket_path == NULL || store->socket_path != NULL) &&
		       (store->opts.memory_path == NULL || store->memory_path != NULL);
	return has_all ? FC_OK : fc_error_set(error, FC_ENOMEM, "open: %s", fc_code_text(FC_ENOMEM));
}

static int make_store(struct fc_store **result, const char *address, const struct fc_store_opts *opts,
		      struct fc_error *error)
{
	struct fc_store *store = calloc(1, sizeof(*store));
	if (store == NULL)
		return fc_error_set(error, FC_ENOMEM, "open: %s", fc_code_text(FC_ENOMEM));
	*result = store;
	store->alloc = fc_alloc_system();
	store->geometry = *opts->geometry;
	store->opts = *opts;
	store->opts.geometry = &store->geometry;
	fc_list_init(&store->commands);
	fc_list_init(&store->pending);
	fc_list_init(&store->syncs);
	fc_list_init(&store->looks);
	pthread_mutex_init(&store->descriptors, NULL);
	pthread_mutex_init(&store->mutex, NULL);
	pthread_cond_init(&store->changed, NULL);
	store->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	store->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (store->wake_fd < 0 || store->event_fd < 0)
		return fc_error_set(error, FC_ESYSTEM, "eventfd: %s", strerror(errno));
	return set_paths(store, address, error);
}

static void free_store(struct fc_store *store)
{
	if (store->wake_fd >= 0)
		close(store->wake_fd);
	if (store->event_fd >= 0)
		close(store->event_fd);
	pthread_cond_destroy(&store->changed);
	pthread_mutex_destroy(&store->mutex);
	pthread_mutex_destroy(&store->descriptors);
	free(store->dir);
	free(store->ssd_path);
	free(store->memory_path);
	free(store->socket_path);
	free(store->notice);
	free(store);
}

/* The mutex is held. */
static void unlock_or_free(struct fc_store *store)
{
	bool is_last = store->is_closed && store->request_count == 0 && (!store->is_left || store->has_closed);
	pthread_mutex_unlock(&store->mutex);
	if (is_last)
		free_store(store);
}

void fc_store_hold(struct fc_store *store)
{
	pthread_mutex_lock(&store->mutex);
	store->request_count++;
	pthread_mutex_unlock(&store->mutex);
}

void fc_store_release(struct fc_store *store, struct fc_request *request)
{
	pthread_mutex_lock(&store->mutex);
	fc_list_remove(&request->pending_link);
	store->request_count--;
	unlock_or_free(store);
}

void fc_store_thread_ends(struct fc_store *store)
{
	pthread_mutex_lock(&store->mutex);
	store->has_closed = true;
	pthread_cond_broadcast(&store->changed);
	if (store->is_left)
		unlock_or_free(store);
	else
		pthread_mutex_unlock(&store->mutex);
}

/* The program's signals are for the program's threads. Those that tell of a thread's own mistake are not kept away:
 * blocked, they would end the process without its handlers (media/map_guard.h has one). */
static int create_thread(struct fc_store *store)
{
	static const int own_signals[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
	sigset_t all, before;
	sigfillset(&all);
	for (size_t i = 0; i < fc_array_len(own_signals); i++)
		sigdelset(&all, own_signals[i]);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int failed = pthread_create(&store->thread, NULL, fc_store_thread, store);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return failed;
}

/* Time that the thread has spent on a processor: while it stands still, so does the thread. */
static uint64_t life_ns(const struct fc_store *store)
{
	clockid_t clock;
	struct timespec time = {0};
	if (pthread_getcpuclockid(store->thread, &clock) != 0 || clock_gettime(clock, &time) != 0)
		return 0;
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void sleep_a_while(struct fc_store *store)
{
	struct timespec until;
	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	uint64_t until_ns = (uint64_t)until.tv_nsec + LOOK_NS;
	until.tv_sec += (time_t)(until_ns / 1000000000u);
	until.tv_nsec = (long)(until_ns % 1000000000u);
	(void)pthread_cond_clockwait(&store->changed, &store->mutex, CLOCK_MONOTONIC, &until);
}

/* Sleeps until the thread has set `is_done`, or has stood still for too long, in the kernel or for its I/O: false. The
 * mutex is held. */
static bool wait_for_thread(struct fc_store *store, const bool *is_done)
{
	uint64_t seen_ns = life_ns(store), moved_ns = fc_clock_real_ns();
	while (!*is_done && !store->is_stalled && fc_clock_real_ns() - moved_ns < fc_store_patience_ns(store)) {
		sleep_a_while(store);
		if (*is_done)
			break;
		uint64_t now_ns = life_ns(store);
		if (now_ns != seen_ns)
			moved_ns = fc_clock_real_ns();
		seen_ns = now_ns;
	}
	return *is_done;
}

static int start_thread(struct fc_store *store, struct fc_error *error)
{
	int failed = create_thread(store);
	if (failed != 0) {
		free_store(store);
		return fc_error_set(error, FC_ESYSTEM, "pthread_create: %s", strerror(failed));
	}
	pthread_mutex_lock(&store->mutex);
	bool is_ready = wait_for_thread(store, &store->is_ready);
	int code = is_ready ? store->open_code : FC_ETIMEOUT;
	if (is_ready && code != FC_OK)
		fc_error_set(error, code, "%s", store->open_error.text);
	if (!is_ready)
		fc_error_set(error, code,
			     "%s: opening it has stood still for %llu s: its file system or device does not answer",
			     store->socket_path != NULL ? store->dir : store->ssd_path,
			     (unsigned long long)fc_store_patience_ns(store) / 1000000000u);
	pthread_mutex_unlock(&store->mutex);
	if (code != FC_OK)
		fc_store_close(store);
	return code;
}

int fc_store_check_pointer(const char *name, const void *pointer, struct fc_error *error)
{
	return pointer != NULL ? FC_OK : fc_error_set(error, FC_EINVAL, "%s is NULL", name);
}

int fc_store_open(struct fc_store **result, const char *address, const struct fc_store_opts *opts,
		  struct fc_error *error)
{
	struct fc_store *store = NULL;
	if (result == NULL)
		return fc_store_check_pointer("open: result", result, error);
	*result = NULL;
	if (sodium_init() < 0) /* chooses the fast hash for this processor */
		return fc_error_set(error, FC_ESYSTEM, "sodium_init failed");
	int code = fc_store_opts_check(opts, error);
	if (code == FC_OK)
		code = make_store(&store, address, opts, error);
	if (code != FC_OK) {
		if (store != NULL)
			free_store(store);
		return code;
	}
	code = start_thread(store, error);
	if (code == FC_OK)
		*result = store;
	return code;
}

void fc_store_close(struct fc_store *store)
{
	if (store == NULL)
		return;
	pthread_mutex_lock(&store->mutex);
	bool is_inherited = store->is_inherited;
	store->is_closing = true;
	if (!is_inherited) {
		eventfd_write(store->wake_fd, 1);
		if (wait_for_thread(store, &store->has_closed)) {
			pthread_mutex_unlock(&store->mutex);
			pthread_join(store->thread, NULL);
			pthread_mutex_lock(&store->mutex);
		} else {
			store->is_left = true;
			pthread_detach(store->thread);
		}
	}
	store->is_closed = true;
	unlock_or_free(store);
}

/* ---- questions ---- */

const char *fc_store_notice(const struct fc_store *store)
{
	return store == NULL ? "" : store->notice;
}

struct match_command {
	struct fc_command command;
	struct fc_link link; /* store->looks, until it is answered */
	const struct fc_key *keys;
	uint64_t key_count;
	struct fc_key *salted; /* copy, where the daemon's keys are others */
	uint64_t salted_room;
	struct fc_match *match;
	struct fc_store *store;
	struct fc_lookup lookup;
	struct fc_path path;
	int code;
};

static void end_match(struct match_command *match, int code)
{
	struct fc_store *store = match->store;
	const struct fc_path *path = &match->path;
	*match->match = (struct fc_match){0};
	if (code == FC_OK)
		*match->match = (struct fc_match){
			.blocks = path->blocks,
			.tokens = path->blocks * store->geometry.block_tokens,
			.stored_blocks = path->stored_blocks,
			.bytes = {path->bytes[FC_MEMORY], path->bytes[FC_SSD]},
			.segments = path->placed_count,
		};
	match->code = code;
	fc_list_remove(&match->link);
	fc_path_deinit(&match->path, &store->alloc);
	fc_alloc_free(&store->alloc, match->salted, match->salted_room * sizeof(*match->salted));
	fc_store_answer(store, &match->command);
}

static void on_looked_up(struct fc_lookup *lookup)
{
	end_match(fc_container_of(lookup, struct match_command, lookup), lookup->code);
}

static void run_match(struct fc_store *store, struct fc_command *command)
{
	struct match_command *match = fc_container_of(command, struct match_command, command);
	struct fc_directory *directory = fc_core_directory(store->core);
	match->store = store;
	fc_list_push(&store->looks, &match->link);
	int code = store->is_ending ? FC_ECANCELED
				    : fc_core_copy_keys(store->core, &match->salted, &match->salted_room, match->keys,
							match->key_count);
	if (code != FC_OK) {
		end_match(match, code);
		return;
	}
	match->lookup = (struct fc_lookup){
		.keys = match->salted,
		.key_count = match->key_count,
		.is_unleased = true,
		.path = &match->path,
		.answered_cb = on_looked_up,
	};
	directory->ops->match(directory, &match->lookup);
}

void fc_store_refuse_looks(struct fc_store *store)
{
	struct fc_directory *directory = fc_core_directory(store->core);
	fc_list_for_each_safe(link, &store->looks)
	{
		struct match_command *match = fc_container_of(link, struct match_command, link);
		directory->ops->forget(directory, &match->lookup);
		end_match(match, FC_ECANCELED);
	}
}

int fc_match(struct fc_store *store, const struct fc_key *keys, uint64_t key_count, struct fc_match *match)
{
	struct match_command command = {.command.run = run_match, .keys = keys, .key_count = key_count, .match = match};
	if (store == NULL || match == NULL || (keys == NULL && key_count > 0) || key_count > UINT32_MAX)
		return FC_EINVAL;
	return fc_store_run(store, &command.command) ? command.code : FC_ECANCELED;
}

/* ---- what only the owner of the arenas knows ---- */

struct question_command {
	struct fc_command command;
	struct fc_store *store;
	struct fc_question question;
};

static void on_answered(struct fc_question *question)
{
	struct question_command *command = fc_container_of(question, struct question_command, question);
	fc_store_answer(command->store, &command->command);
}

static void run_question(struct fc_store *store, struct fc_command *command)
{
	struct question_command *asked = fc_container_of(command, struct question_command, command);
	struct fc_directory *directory = fc_core_directory(store->core);
	asked->store = store;
	asked->question.answered_cb = on_answered;
	if (asked->question.kind == FC_QUESTION_STATS)
		fc_core_stats(store->core, &asked->question.stats);
	directory->ops->ask(directory, &asked->question);
}

int fc_session_blocks(struct fc_store *store, struct fc_session_id id, uint64_t *blocks)
{
	struct question_command asked = {
		.command.run = run_question,
		.question = {.kind = FC_QUESTION_SESSION, .session = id},
	};
	if (store == NULL || blocks == NULL)
		return FC_EINVAL;
	if (!fc_store_run(store, &asked.command))
		return FC_ECANCELED;
	*blocks = asked.question.blocks;
	return asked.question.code;
}

int fc_store_stats(struct fc_store *store, struct fc_stats *stats)
{
	struct question_command asked = {.command.run = run_question, .question = {.kind = FC_QUESTION_STATS}};
	if (store == NULL || stats == NULL)
		return FC_EINVAL;
	if (!fc_store_run(store, &asked.command))
		return FC_ECANCELED;
	*stats = asked.question.stats;
	return asked.question.code;
}
