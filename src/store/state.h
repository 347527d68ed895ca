/* What the files of the store share. Nobody outside src/store includes this.
 *
 * One thread of the store's own runs the core. Callers reach it through a queue of commands: a command lies on the
 * caller's stack, the store's thread runs it between two steps of the core, and the caller sleeps until then. No
 * command waits for I/O. What happens later (layers, ends) is noted in the public request under `mutex` and announced
 * through `event_fd`.
 *
 * Closing: the core takes every request back (their public halves are told that they have ended), the thread ends, and
 * whatever public halves are left keep only this struct alive.
 *
 * The thread may be held up for ever: by the kernel, where it opens and closes arenas, or because I/O does not end,
 * without which it must not end either. Nobody is kept waiting for that: whoever opens or closes leaves a thread that
 * has stood still for long enough (fc_store_patience_ns()), which then frees the store when it ends.
 *
 *     opening -> ready -> closing -> has_closed, joined by who closes it
 *         '---------'---------'----> left: has_closed one day, and frees the store
 *
 * With a daemon, `remote` is the directory that the core asks, and the media are the daemon's arenas. */
#ifndef FC_STORE_STATE_H
#define FC_STORE_STATE_H

#include "core/core.h"
#include "store/remote.h"
#include "store/report.h"

#include <pthread.h>

struct fc_request;

struct fc_command {
	struct fc_link link;
	void (*run)(struct fc_store *store, struct fc_command *command);
	bool is_done;
	bool is_refused; /* it has not run, because the store's thread has ended */
};

struct fc_store {
	/* the store's thread alone */
	struct fc_core *core;
	struct fc_alloc alloc;
	struct fc_media *media[FC_MEDIUM_COUNT];
	struct fc_device *device;
	bool is_opened;
	int open_code;
	bool is_ending;           /* the core has taken every request back; new ones are refused */
	uint64_t moved_ns;        /* while it opens or ends: when something last did */
	struct fc_link syncs;     /* sync commands that wait */
	struct fc_link looks;     /* match commands that have not been answered */
	struct fc_remote *remote; /* NULL: embedded */
	struct fc_report report;  /* for its daemon */

	/* set at open */
	struct fc_geometry geometry;
	struct fc_store_opts opts;
	char *dir, *ssd_path, *memory_path;
	char *socket_path; /* of the daemon; NULL: embedded */
	pthread_t thread;
	int wake_fd;  /* commands wait */
	int event_fd; /* events wait */
	struct fc_error open_error;
	char *notice; /* of all media; never NULL once the store is open */

	/* fork.c */
	struct fc_link fork_link;    /* in the list of open stores */
	pthread_mutex_t descriptors; /* held while the remote opens or closes some; before `mutex` */

	pthread_mutex_t mutex; /* everything below */
	pthread_cond_t changed;
	struct fc_link commands;
	struct fc_link pending; /* requests with events to be taken */
	bool is_ready, is_closing;
	bool has_ended;         /* the thread runs no more commands */
	bool is_inherited;      /* this is the copy of a process that was forked */
	bool is_closed;         /* only requests keep the store alive, or a thread that was left */
	bool is_stalled;        /* the thread waits for I/O that does not end */
	bool has_closed;        /* the thread has given everything back */
	bool is_left;           /* nobody joins the thread */
	uint64_t request_count; /* public loads and saves that are not freed */
};

/* Part of a public load or save: its place in the list of those that have events. */
struct fc_request {
	struct fc_store *store;
	struct fc_link pending_link;
	void *user;
	bool is_load;
};

struct fc_load {
	struct fc_request request;
	struct fc_core_load *core_load;
	uint32_t layers_in_place, layers_told;
	uint64_t blocks;
	bool has_ended, tell_ready, tell_loaded;
	struct fc_load_result result;
};

struct fc_save {
	struct fc_request request;
	struct fc_core_save *core_save;
	bool is_saved, is_final, tell_saved, tell_durable;
	struct fc_save_result result;
};

struct fc_kv {
	struct fc_store *store;
	uint64_t layer_count; /* of all groups */
	struct fc_paged_layer layers[];
};

/* store.c: FC_EINVAL says that it is NULL */
int fc_store_check_pointer(const char *name, const void *pointer, struct fc_error *error);

/* loop.c */
void *fc_store_thread(void *store);
/* How long the thread may stand still before nobody waits for it to open or close any more. */
uint64_t fc_store_patience_ns(const struct fc_store *store);
/* Runs a command on the store's thread and returns when it has run. False: the thread has ended, and nothing ran. */
bool fc_store_run(struct fc_store *store, struct fc_command *command);
/* A command's last act: after it the caller's stack, and the command on it, are gone. */
void fc_store_answer(struct fc_store *store, struct fc_command *command);
/* Wakes every caller that waits, and marks `event_fd` readable. The mutex is held. */
void fc_store_announce(struct fc_store *store);

/* store.c: requests keep the store's memory until the last of them is freed, be that after the close */
void fc_store_hold(struct fc_store *store);
void fc_store_release(struct fc_store *store, struct fc_request *request);
/* The thread's last act. */
void fc_store_thread_ends(struct fc_store *store);

/* store.c: matches that the daemon has not answered are refused */
void fc_store_refuse_looks(struct fc_store *store);

/* events.c: the core's callback, and the list of requests with events */
void fc_store_on_event(void *store, enum fc_event_kind kind, struct fc_core_load *load, struct fc_core_save *save,
		       uint32_t layer);

#endif
