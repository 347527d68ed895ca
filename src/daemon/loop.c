/* The loop. libuv waits for sockets, signals, the clock and the SSD; before it does, the core and the server are
 * stepped until neither has anything to do, or, when there is too much of it, a while, with the sockets looked at in
 * between.
 *
 * Timers of libuv count milliseconds, which is enough: nothing here is woken by one on the way of a request. */
#define _GNU_SOURCE
#include "daemon/daemon.h"

#include "base/check.h"
#include "media/ssd.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NS_PER_MS 1000000ull
#define STEPS_MAX 64 /* in a row */
#define LOOK_NS (10 * NS_PER_MS)
#define FLIGHT_NS (1000 * NS_PER_MS) /* that commands of dead clients are waited for at start */
#define REST_NS (5000 * NS_PER_MS)   /* that the core may take to come to rest when it stops */
#define TIMER_MS_MAX 60000
#define ARENA_LOOK_NS (5000 * NS_PER_MS)  /* between two looks whether the arenas are still there */
#define START_MORE_NS (60000 * NS_PER_MS) /* that the service manager is asked for while arenas are recovered */

/* ---- states ---- */

static void set_state(struct fc_daemon *daemon, enum fc_daemon_state state)
{
	daemon->state = state;
	if (state != FC_DAEMON_DRAINING)
		fc_notify_status(&daemon->notify, fc_daemon_state_text(state));
}

void fc_daemon_fail(struct fc_daemon *daemon, const struct fc_error *error)
{
	fc_log(FC_LOG_ERROR, "failed", "%s", error->text);
	daemon->exit_code = EXIT_FAILURE;
	fc_daemon_drain(daemon, "it failed");
}

/* `what` is what an operator may want to know at once. */
static void tell_what_is_open(struct fc_daemon *daemon)
{
	struct fc_stats stats = {0};
	fc_core_stats(daemon->core, &stats);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (daemon->media[medium] != NULL && daemon->media[medium]->notice[0] != '\0')
			fc_log(FC_LOG_WARNING, "fallback", "%s", daemon->media[medium]->notice);
	fc_log(FC_LOG_INFO, "open", "%llu blocks in %llu segments found, %llu segments dropped, in %llu ms",
	       (unsigned long long)stats.blocks, (unsigned long long)stats.recovered_segments,
	       (unsigned long long)stats.dropped_segments,
	       (unsigned long long)((fc_daemon_now_ns() - daemon->started_ns) / NS_PER_MS));
}

static void begin_to_serve(struct fc_daemon *daemon)
{
	struct fc_error error = {0};
	uint64_t now_ns = fc_daemon_now_ns();
	tell_what_is_open(daemon);
	int code = fc_daemon_open_arena(daemon, &error);
	if (code == FC_OK)
		code = fc_daemon_open_server(daemon, &error);
	if (code == FC_OK)
		code = fc_daemon_listen(daemon, &error);
	if (code != FC_OK) {
		fc_daemon_fail(daemon, &error);
		return;
	}
	daemon->fence_end_ns = now_ns + daemon->settings->config.fence_timeout_ns;
	daemon->fence_flight_end_ns = now_ns + FLIGHT_NS;
	set_state(daemon, FC_DAEMON_FENCING);
	fc_log(FC_LOG_INFO, "listening", "clients connect to %s", daemon->settings->config.socket_path);
	fc_notify_ready(&daemon->notify, "serving");
}

void fc_daemon_on_opened(void *context, int code, const struct fc_error *error)
{
	struct fc_daemon *daemon = context;
	daemon->is_core_open = code == FC_OK;
	daemon->has_open_ended = true;
	if (code != FC_OK)
		fc_daemon_fail(daemon, error);
	fc_daemon_hint(daemon, code);
}

static void look_at_fence(struct fc_daemon *daemon, uint64_t now_ns)
{
	enum fc_lock_state state = fc_locks_state_before(daemon->locks);
	bool is_over = state == FC_LOCK_FREE || (state == FC_LOCK_IN_FLIGHT && now_ns >= daemon->fence_flight_end_ns);
	if (!is_over && now_ns < daemon->fence_end_ns)
		return;
	if (!is_over)
		fc_log(FC_LOG_WARNING, "fence-timeout",
		       "a client of an earlier run still holds its lock; what it overwrites will fail its checksums");
	set_state(daemon, FC_DAEMON_READY);
	fc_server_fence_is_over(daemon->server);
}

/* ---- stopping ---- */

static void close_handle(uv_handle_t *handle, void *context)
{
	(void)context;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

void fc_daemon_drain(struct fc_daemon *daemon, const char *why)
{
	if (daemon->state == FC_DAEMON_DRAINING)
		return;
	set_state(daemon, FC_DAEMON_DRAINING);
	fc_log(FC_LOG_INFO, "stopping", "%s", why);
	fc_notify_stopping(&daemon->notify, why);
	daemon->drain_end_ns = fc_daemon_now_ns() + daemon->settings->config.drain_timeout_ns;
	if (daemon->server != NULL)
		fc_server_drain(daemon->server);
}

/* Every connection ends; then the core has to come to rest. */
static void begin_to_close(struct fc_daemon *daemon, uint64_t now_ns)
{
	if (daemon->server != NULL && !fc_server_is_drained(daemon->server))
		fc_log(FC_LOG_WARNING, "drain-timeout", "clients still had something to commit");
	daemon->is_closing = true;
	/* What does not answer is not waited for longer than it was asked for. */
	if (fc_daemon_silence_ns(daemon, now_ns) == 0)
		daemon->drain_end_ns = now_ns + REST_NS;
	fc_daemon_flush(daemon);
	fc_daemon_end_connections(daemon);
	fc_daemon_stop_listening(daemon);
	if (daemon->server != NULL)
		fc_server_end_orphans(daemon->server);
}

/* The process may stay as a zombie for as long as the kernel waits for what does not answer. */
static _Noreturn void leave(const struct fc_daemon *daemon)
{
	fc_log(FC_LOG_ERROR, "not-at-rest",
	       "I/O on %s does not end; the process does, with what it had under way, and the next start recovers the "
	       "arenas",
	       daemon->settings->config.ssd_path);
	fc_log_close();
	_exit(daemon->exit_code);
}

static void go_on_stopping(struct fc_daemon *daemon, uint64_t now_ns)
{
	bool is_drained = daemon->server == NULL || fc_server_is_drained(daemon->server);
	if (!daemon->is_closing && (is_drained || now_ns >= daemon->drain_end_ns))
		begin_to_close(daemon, now_ns);
	if (!daemon->is_closing)
		return;
	bool is_at_rest = daemon->has_open_ended && (!daemon->is_core_open || fc_core_is_idle(daemon->core)) &&
			  (daemon->server == NULL || fc_server_is_at_rest(daemon->server)) &&
			  !fc_daemon_arena_is_asked(daemon);
	if (is_at_rest)
		uv_stop(&daemon->loop);
	else if (now_ns >= daemon->drain_end_ns)
		leave(daemon);
}

/* ---- between two waits ---- */

static bool step(struct fc_daemon *daemon)
{
	for (int i = 0; i < STEPS_MAX; i++) {
		unsigned count = fc_core_step(daemon->core);
		if (daemon->server != NULL) {
			count += fc_server_step(daemon->server);
			fc_daemon_flush(daemon);
		}
		if (daemon->is_core_open && daemon->server == NULL && daemon->state == FC_DAEMON_OPENING)
			begin_to_serve(daemon);
		if (count == 0)
			return false;
	}
	return true;
}

/* True while something is to be looked at again soon. */
static bool look_around(struct fc_daemon *daemon, uint64_t now_ns)
{
	if (daemon->server == NULL)
		return false;
	bool is_one_held = fc_daemon_look_at_locks(daemon, now_ns);
	if (daemon->state == FC_DAEMON_FENCING)
		look_at_fence(daemon, now_ns);
	return is_one_held || daemon->state == FC_DAEMON_FENCING;
}

static void on_timer(uv_timer_t *timer)
{
	(void)timer; /* the step before the next wait does what is due */
}

static void on_idle(uv_idle_t *idle)
{
	(void)idle; /* keeps the loop from waiting */
}

static void set_timer(struct fc_daemon *daemon, uint64_t now_ns)
{
	uint64_t wake_ns = daemon->is_core_open ? fc_core_wake_ns(daemon->core) : UINT64_MAX;
	if (daemon->server != NULL)
		wake_ns = fc_min_u64(wake_ns, fc_server_wake_ns(daemon->server));
	wake_ns = fc_min_u64(wake_ns, daemon->next_lock_look_ns);
	if (daemon->state == FC_DAEMON_DRAINING)
		wake_ns = fc_min_u64(wake_ns, daemon->drain_end_ns);
	uint64_t wait_ms = wake_ns <= now_ns ? 0 : fc_min_u64((wake_ns - now_ns) / NS_PER_MS + 1, TIMER_MS_MAX);
	uv_update_time(&daemon->loop);
	uv_timer_start(&daemon->timer, on_timer, wait_ms, 0);
}

static void on_prepare(uv_prepare_t *prepare)
{
	struct fc_daemon *daemon = prepare->data;
	bool is_busy = step(daemon);
	uint64_t now_ns = fc_daemon_now_ns();
	if (now_ns >= daemon->next_lock_look_ns || daemon->state == FC_DAEMON_FENCING)
		daemon->next_lock_look_ns = look_around(daemon, now_ns) ? now_ns + LOOK_NS : UINT64_MAX;
	if (!fc_list_is_empty(&daemon->gone))
		daemon->next_lock_look_ns = fc_min_u64(daemon->next_lock_look_ns, now_ns + LOOK_NS);
	if (daemon->state == FC_DAEMON_DRAINING)
		go_on_stopping(daemon, now_ns);
	if (is_busy)
		uv_idle_start(&daemon->idle, on_idle);
	else
		uv_idle_stop(&daemon->idle);
	set_timer(daemon, now_ns);
}

static void on_ssd(uv_poll_t *poll, int status, int events)
{
	(void)poll; /* what has ended is taken by the next step */
	(void)status;
	(void)events;
}

/* Commits find out too, but there may be none for hours, while another daemon takes the place. */
static void look_at_arenas(struct fc_daemon *daemon)
{
	uint64_t now_ns = fc_daemon_now_ns();
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		const struct fc_media *media = daemon->media[medium];
		if (media == NULL || media->lost == NULL || daemon->is_loss_told[medium])
			continue;
		daemon->is_loss_told[medium] = true;
		fc_log(FC_LOG_ERROR, "arena-lost", "%s: %s", media->name, media->lost);
	}
	if (!daemon->is_core_open || daemon->state == FC_DAEMON_DRAINING || now_ns < daemon->next_arena_look_ns)
		return;
	daemon->next_arena_look_ns = now_ns + ARENA_LOOK_NS;
	(void)fc_core_look(daemon->core);
}

static void on_second(uv_timer_t *timer)
{
	struct fc_daemon *daemon = timer->data;
	fc_log_tick();
	fc_daemon_look_at_arena(daemon, fc_daemon_now_ns());
	fc_daemon_look_at_socket(daemon);
	look_at_arenas(daemon);
	if (daemon->state == FC_DAEMON_OPENING)
		fc_notify_extend(&daemon->notify, START_MORE_NS);
}

static void on_alive(uv_timer_t *timer)
{
	const struct fc_daemon *daemon = timer->data;
	fc_notify_alive(&daemon->notify);
}

/* To a service it means that settings may have changed; to what runs in a terminal, that the terminal is gone. */
static bool is_no_reason_to_stop(int number)
{
	if (number != SIGHUP || isatty(STDERR_FILENO))
		return false;
	fc_log(FC_LOG_WARNING, "hangup", "SIGHUP: settings are read at the start only; a restart keeps what is stored");
	return true;
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct fc_daemon *daemon = handle->data;
	char why[64];
	if (is_no_reason_to_stop(number))
		return;
	snprintf(why, sizeof(why), "signal %d (SIG%s)", number, sigabbrev_np(number));
	if (daemon->state != FC_DAEMON_DRAINING) {
		fc_daemon_drain(daemon, why);
		return;
	}
	fc_log(FC_LOG_WARNING, "stopped-at-once", "%s again: ends now, as after a crash", why);
	fc_log_close();
	_exit(EXIT_FAILURE);
}

/* ---- the loop ---- */

static void init_loop(struct fc_daemon *daemon)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
	uv_loop_t *loop = &daemon->loop;
	fc_check(uv_loop_init(loop) == 0);
	fc_check(uv_prepare_init(loop, &daemon->prepare) == 0 && uv_idle_init(loop, &daemon->idle) == 0);
	fc_check(uv_timer_init(loop, &daemon->timer) == 0 && uv_timer_init(loop, &daemon->second) == 0);
	fc_check(uv_timer_init(loop, &daemon->alive) == 0);
	daemon->prepare.data = daemon->alive.data = daemon->second.data = daemon;
	for (size_t i = 0; i < fc_array_len(numbers); i++) {
		fc_check(uv_signal_init(loop, &daemon->signals[i]) == 0);
		daemon->signals[i].data = daemon;
		fc_check(uv_signal_start(&daemon->signals[i], on_signal, numbers[i]) == 0);
	}
	int ssd_fd = daemon->media[FC_SSD] == NULL ? -1 : fc_media_event_fd(daemon->media[FC_SSD]);
	if (ssd_fd >= 0) {
		fc_check(uv_poll_init(loop, &daemon->ssd_poll, ssd_fd) == 0);
		fc_check(uv_poll_start(&daemon->ssd_poll, UV_READABLE, on_ssd) == 0);
	}
	fc_check(uv_prepare_start(&daemon->prepare, on_prepare) == 0);
	fc_check(uv_timer_start(&daemon->second, on_second, 1000, 1000) == 0);
	if (daemon->notify.watchdog_ns > 0) {
		uint64_t period_ms = fc_max_u64(daemon->notify.watchdog_ns / 2 / NS_PER_MS, 1);
		fc_check(uv_timer_start(&daemon->alive, on_alive, period_ms, period_ms) == 0);
	}
}

int fc_daemon_run(struct fc_daemon *daemon)
{
	struct fc_error error = {0};
	init_loop(daemon);
	if (fc_daemon_open_http(daemon, &error) != FC_OK)
		fc_daemon_fail(daemon, &error);
	(void)uv_run(&daemon->loop, UV_RUN_DEFAULT);
	uv_walk(&daemon->loop, close_handle, NULL);
	(void)uv_run(&daemon->loop, UV_RUN_DEFAULT);
	fc_check(uv_loop_close(&daemon->loop) == 0);
	fc_daemon_close_http(daemon);
	return daemon->exit_code;
}
