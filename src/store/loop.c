/* The store's thread: runs commands, steps the core, and sleeps when neither has anything to do. */
#include "store/state.h"

#include "base/check.h"
#include "device/host.h"
#include "store/fork.h"
#include "store/core_opts.h"
#include "store/arenas.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define NS_PER_MS 1000000ull
#define OPEN_WAIT_NS (20 * NS_PER_MS)
#define PATIENCE_NS_MIN (5000 * NS_PER_MS) /* so that a thread that gets no processor does not pass for a dead one */
#define ANSWER_TIMEOUT_NS (10000 * NS_PER_MS)

void fc_store_announce(struct fc_store *store)
{
	pthread_cond_broadcast(&store->changed);
	if (!fc_list_is_empty(&store->pending))
		eventfd_write(store->event_fd, 1);
}

bool fc_store_run(struct fc_store *store, struct fc_command *command)
{
	command->is_done = command->is_refused = false;
	pthread_mutex_lock(&store->mutex);
	if (store->has_ended) {
		command->is_done = command->is_refused = true;
	} else {
		fc_list_push(&store->commands, &command->link);
		eventfd_write(store->wake_fd, 1);
	}
	while (!command->is_done)
		pthread_cond_wait(&store->changed, &store->mutex);
	bool has_run = !command->is_refused;
	pthread_mutex_unlock(&store->mutex);
	return has_run;
}

void fc_store_answer(struct fc_store *store, struct fc_command *command)
{
	pthread_mutex_lock(&store->mutex);
	command->is_done = true;
	pthread_cond_broadcast(&store->changed);
	pthread_mutex_unlock(&store->mutex);
}

/* ---- what does not end ---- */

uint64_t fc_store_patience_ns(const struct fc_store *store)
{
	return fc_max_u64(store->opts.io_timeout_ns, PATIENCE_NS_MIN);
}

static uint64_t stall_ns(const struct fc_store *store)
{
	uint64_t limit_ns;
	return fc_add_overflows(store->moved_ns, fc_store_patience_ns(store), &limit_ns) ? UINT64_MAX : limit_ns;
}

/* `count` completions were seen. */
static void watch(struct fc_store *store, unsigned count)
{
	uint64_t now_ns = fc_clock_real_ns();
	if (count > 0)
		store->moved_ns = now_ns;
	bool is_stalled = now_ns >= stall_ns(store);
	if (is_stalled == store->is_stalled)
		return;
	pthread_mutex_lock(&store->mutex);
	store->is_stalled = is_stalled;
	pthread_cond_broadcast(&store->changed);
	pthread_mutex_unlock(&store->mutex);
}

static void begin_to_watch(struct fc_store *store)
{
	watch(store, 1);
}

static bool is_closing(struct fc_store *store)
{
	pthread_mutex_lock(&store->mutex);
	bool is_closing = store->is_closing;
	pthread_mutex_unlock(&store->mutex);
	return is_closing;
}

/* ---- opening ---- */

static void on_opened(void *context, int code, const struct fc_error *error)
{
	struct fc_store *store = context;
	store->is_opened = true;
	store->open_code = code;
	if (code == FC_OK)
		return;
	store->open_error = *error;
	fc_error_wrap(&store->open_error, code, "%s", store->dir);
}

/* A daemon's arenas and rules instead of ones of our own. */
static void use_remote(const struct fc_store *store, struct fc_core_opts *core_opts)
{
	struct fc_client *client = fc_remote_client(store->remote);
	core_opts->directory = fc_client_directory(client);
	core_opts->is_ssd_shared = true;
	core_opts->key_salt = fc_client_welcome(client)->key_salt;
	core_opts->catalog.area_bytes_max = fc_client_welcome(client)->area_bytes_max;
}

static int open_core(struct fc_store *store)
{
	struct fc_core_opts core_opts;
	struct fc_error *error = &store->open_error;
	int code = fc_store_core_opts(&core_opts, &store->opts, store->media, &store->alloc, error);
	if (code != FC_OK)
		return code;
	core_opts.device = store->device;
	core_opts.event_cb = fc_store_on_event;
	core_opts.context = store;
	if (store->remote != NULL)
		use_remote(store, &core_opts);
	return fc_core_open(&store->core, &core_opts, on_opened, error);
}

/* Media add to their notices until the core has registered its windows with them. */
static int join_notices(struct fc_store *store)
{
	const char *notices[FC_MEDIUM_COUNT] = {"", ""};
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (store->media[medium] != NULL)
			notices[medium] = store->media[medium]->notice;
	bool has_both = notices[FC_MEMORY][0] != 0 && notices[FC_SSD][0] != 0;
	if (asprintf(&store->notice, "%s%s%s", notices[FC_SSD], has_both ? "; " : "", notices[FC_MEMORY]) >= 0)
		return FC_OK;
	store->notice = NULL;
	return fc_error_set(&store->open_error, FC_ENOMEM, "notice");
}

static int open_remote(struct fc_store *store)
{
	const struct fc_store_opts *opts = &store->opts;
	struct fc_remote_opts remote_opts = {
		.path = store->socket_path,
		.alloc = &store->alloc,
		.geometry = &store->geometry,
		.name_space = opts->daemon_namespace == NULL ? "" : opts->daemon_namespace,
		.program = opts->daemon_program == NULL ? "" : opts->daemon_program,
		.reconnect_timeout_ns = opts->reconnect_timeout_ns,
		.answer_timeout_ns = ANSWER_TIMEOUT_NS,
		.claim_timeout_ns = opts->io_timeout_ns,
		.queue_depth = opts->queue_depth,
		.transfer_bytes = opts->transfer_bytes,
	};
	int code = fc_remote_open(&store->remote, &remote_opts, &store->open_error);
	for (int medium = 0; medium < FC_MEDIUM_COUNT && code == FC_OK; medium++)
		store->media[medium] = fc_remote_take_media(store->remote, (enum fc_medium)medium);
	return code;
}

static int make_dir(const char *path, struct fc_error *error)
{
	if (mkdir(path, 0700) == 0 || errno == EEXIST)
		return FC_OK;
	return fc_error_set(error, FC_ESYSTEM, "%s: mkdir: %s", path, strerror(errno));
}

static int open_arenas(struct fc_store *store)
{
	const struct fc_store_opts *opts = &store->opts;
	struct fc_arenas_opts arenas = {
		.geometry = &store->geometry,
		.memory_bytes = opts->memory_bytes,
		.ssd_bytes = opts->ssd_bytes,
		.memory_path = store->memory_path,
		.ssd_path = store->ssd_path,
		.queue_depth = opts->queue_depth,
		.transfer_bytes = opts->transfer_bytes,
	};
	int code = FC_OK;
	if (opts->ssd_bytes > 0 && opts->ssd_path == NULL)
		code = make_dir(store->dir, &store->open_error);
	return code == FC_OK ? fc_arenas_open(store->media, &arenas, &store->open_error) : code;
}

/* Media and core are opened on the thread that uses them: a ring belongs to one thread. */
static int open_all(struct fc_store *store)
{
	int code = fc_device_host(&store->device, &store->open_error);
	if (code == FC_OK)
		code = store->socket_path != NULL ? open_remote(store) : open_arenas(store);
	if (code == FC_OK && is_closing(store))
		code = fc_error_set(&store->open_error, FC_ECANCELED, "open: it was given up");
	if (code == FC_OK)
		code = open_core(store);
	if (code != FC_OK)
		return code;
	begin_to_watch(store);
	while (!store->is_opened) {
		unsigned count = fc_core_step(store->core);
		if (count == 0 && store->media[FC_SSD] != NULL)
			count = fc_media_wait(store->media[FC_SSD], OPEN_WAIT_NS);
		watch(store, count);
	}
	return store->open_code == FC_OK ? join_notices(store) : store->open_code;
}

/* ---- running ---- */

static struct fc_command *next_command(struct fc_store *store)
{
	pthread_mutex_lock(&store->mutex);
	struct fc_link *link = fc_list_pop(&store->commands);
	pthread_mutex_unlock(&store->mutex);
	return link == NULL ? NULL : fc_container_of(link, struct fc_command, link);
}

static unsigned run_commands(struct fc_store *store)
{
	unsigned count = 0;
	for (struct fc_command *command; (command = next_command(store)) != NULL; count++)
		command->run(store, command);
	return count;
}

static int sleep_ms(const struct fc_store *store)
{
	uint64_t wake_ns = fc_core_wake_ns(store->core);
	if (store->remote != NULL)
		wake_ns = fc_min_u64(wake_ns,
				     fc_min_u64(fc_remote_wake_ns(store->remote), fc_report_wake_ns(&store->report)));
	if (store->is_ending && !store->is_stalled)
		wake_ns = fc_min_u64(wake_ns, stall_ns(store));
	uint64_t now_ns = fc_clock_real_ns();
	if (wake_ns == UINT64_MAX)
		return -1;
	return wake_ns <= now_ns ? 0 : (int)fc_min_u64((wake_ns - now_ns) / NS_PER_MS + 1, 1000000);
}

static void sleep_until_something(struct fc_store *store)
{
	int ssd_fd = store->media[FC_SSD] == NULL ? -1 : fc_media_event_fd(store->media[FC_SSD]);
	/* poll() passes over what is -1. */
	struct pollfd fds[] = {{.fd = store->wake_fd, .events = POLLIN}, {.fd = ssd_fd, .events = POLLIN}, {.fd = -1}};
	if (store->remote != NULL)
		fds[2].fd = fc_remote_fd(store->remote, &fds[2].events);
	if (poll(fds, fc_array_len(fds), sleep_ms(store)) <= 0)
		return;
	eventfd_t count;
	if ((fds[0].revents & POLLIN) != 0)
		(void)eventfd_read(store->wake_fd, &count);
}

struct sync_command {
	struct fc_command command;
	uint64_t sequence;
	uint64_t failures; /* before */
	uint64_t look;
	struct fc_error error;
};

static void check_syncs(struct fc_store *store)
{
	fc_list_for_each_safe(link, &store->syncs)
	{
		struct fc_command *command = fc_container_of(link, struct fc_command, link);
		struct sync_command *sync = fc_container_of(command, struct sync_command, command);
		if (fc_core_durable_sequence(store->core) < sync->sequence ||
		    fc_core_looks_ended(store->core) < sync->look)
			continue;
		sync->error = *fc_core_look_error(store->core);
		if (fc_core_durable_failures(store->core) > sync->failures)
			sync->error = *fc_core_durable_error(store->core);
		fc_list_remove(link);
		fc_store_answer(store, command);
	}
}

static void run_sync(struct fc_store *store, struct fc_command *command)
{
	struct sync_command *sync = fc_container_of(command, struct sync_command, command);
	sync->sequence = fc_core_save_sequence(store->core);
	sync->failures = fc_core_durable_failures(store->core);
	sync->look = fc_core_look(store->core); /* also when nothing has to become durable any more */
	fc_list_push(&store->syncs, &command->link);
}

int fc_store_sync(struct fc_store *store, struct fc_error *error)
{
	struct sync_command sync = {.command.run = run_sync};
	if (store == NULL)
		return fc_store_check_pointer("sync: store", store, error);
	if (!fc_store_run(store, &sync.command))
		return fc_fork_refuse(store, "sync", error);
	return sync.error.code == FC_OK ? FC_OK : fc_error_set(error, sync.error.code, "sync: %s", sync.error.text);
}

static bool may_stop(struct fc_store *store)
{
	bool was_ending = store->is_ending;
	store->is_ending = is_closing(store);
	if (store->is_ending && !was_ending)
		begin_to_watch(store);
	if (store->is_ending) {
		fc_core_free_all(store->core);
		fc_store_refuse_looks(store);
		if (store->remote != NULL)
			fc_client_cancel_questions(fc_remote_client(store->remote));
	}
	return store->is_ending && fc_core_is_idle(store->core);
}

static void refuse_commands(struct fc_store *store)
{
	struct fc_link *link;
	pthread_mutex_lock(&store->mutex);
	store->has_ended = true;
	while ((link = fc_list_pop(&store->commands)) != NULL) {
		struct fc_command *command = fc_container_of(link, struct fc_command, link);
		command->is_done = command->is_refused = true;
	}
	pthread_cond_broadcast(&store->changed);
	pthread_mutex_unlock(&store->mutex);
}

static unsigned step_remote(struct fc_store *store)
{
	fc_report_step(&store->report, store->core, fc_remote_client(store->remote), fc_clock_real_ns());
	pthread_mutex_lock(&store->descriptors);
	unsigned count = fc_remote_step(store->remote);
	pthread_mutex_unlock(&store->descriptors);
	return count;
}

/* What has happened since the last report must not be missing from the daemon's sums. */
static void leave_report(struct fc_store *store)
{
	store->report.next_ns = 0;
	(void)step_remote(store);
}

static void close_all(struct fc_store *store)
{
	if (store->remote != NULL && store->core != NULL)
		leave_report(store);
	fc_core_free(store->core);
	fc_remote_close(store->remote);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		fc_media_close(store->media[medium]);
	fc_device_close(store->device);
}

void *fc_store_thread(void *context)
{
	struct fc_store *store = context;
	int code = open_all(store);
	if (code == FC_OK)
		fc_fork_watch(store);
	pthread_mutex_lock(&store->mutex);
	store->open_code = code;
	store->is_ready = true;
	pthread_cond_broadcast(&store->changed);
	pthread_mutex_unlock(&store->mutex);
	while (code == FC_OK && !may_stop(store)) {
		unsigned count = run_commands(store);
		unsigned ended = fc_core_step(store->core);
		if (store->is_ending)
			watch(store, ended);
		count += ended;
		if (store->remote != NULL)
			count += step_remote(store);
		check_syncs(store);
		if (count == 0)
			sleep_until_something(store);
	}
	refuse_commands(store);
	fc_fork_unwatch(store);
	close_all(store);
	fc_store_thread_ends(store);
	return NULL;
}
