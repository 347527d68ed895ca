/* The writer of the kill campaign: a process of its own that saves conversations without pause and tells, through a
 * pipe, what it began and what was acknowledged as durable. The pipe's other end is with the test, which survives.
 * Which keys a session has, and from them which bytes, follows from its number alone. */
#ifndef FC_TESTS_REAL_WRITER_H
#define FC_TESTS_REAL_WRITER_H

#include "flatcake.h"

#define WRITER_BLOCKS 24 /* of a whole session */
#define WRITER_TURNS 3   /* that save 8, 16 and 24 of them */
#define WRITER_LANES 4   /* saves in flight */

enum writer_world {
	WRITER_ROOMY,  /* nothing is ever reclaimed */
	WRITER_TIGHT,  /* reclaim all the time */
	WRITER_MEMORY, /* roomy, with later turns in memory that outlives the process */
	WRITER_SPARSE, /* the arena is larger than its file system */
	WRITER_WORLD_COUNT,
};

enum writer_event {
	WRITER_OPENED = 1,
	WRITER_SUBMITTED, /* before the save is submitted */
	WRITER_DURABLE,   /* acknowledged: the first `blocks` of the session */
	WRITER_REFUSED,   /* visible or not, it will not be durable: code and text */
};

/* One write() to the pipe; smaller than PIPE_BUF, so whole or not there. */
struct writer_record {
	uint32_t event;
	int32_t code;
	uint64_t session;
	uint64_t blocks;
	char text[200];
};

struct writer_opts {
	enum writer_world world;
	bool is_hybrid;        /* geometry with windows and states */
	bool is_consolidating; /* small segments are written once more */
	bool is_uring_denied;
	uint64_t session_first; /* nobody used this number, or a higher one, before */
	const char *dir;
	const char *memory_path; /* WRITER_MEMORY */
	int pipe_fd;
};

/* The store's geometry and options, the same for whoever opens it. */
struct fc_geometry writer_geometry(const struct writer_opts *opts);
void writer_store_opts(const struct writer_opts *opts, const struct fc_geometry *geometry,
		       struct fc_store_opts *store_opts);

/* keys[0..WRITER_BLOCKS). The first *shared_blocks of them are those of session *base too; 0 for none. */
void writer_session_keys(uint64_t session, struct fc_key *keys, uint64_t *base, uint64_t *shared_blocks);

/* Starts the writer as a new process, this very program; returns its id. The caller closes opts->pipe_fd. */
int writer_start(const struct writer_opts *opts);
/* What main() calls first: does not return if this process was started as a writer. */
void writer_main(int argc, char **argv);

#endif
