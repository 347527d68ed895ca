/* A daemon that is made up: arenas that fill, sessions that grow contiguously and are reclaimed whole, clients with
 * queues and reports. Everything follows from the seed and the steps, so that tests can expect figures. */
#ifndef FC_TESTS_DAEMON_FAKE_DAEMON_H
#define FC_TESTS_DAEMON_FAKE_DAEMON_H

#include "daemon/view.h"

#define FAKE_CLIENTS 6
#define FAKE_NAMESPACES 3

struct fake_session {
	uint64_t number; /* 0: free */
	uint64_t used_seq, created_seq, turns, chunk_count;
	uint32_t last_chunk;
	int medium;
	bool is_leased;
};

struct fake_arena {
	uint32_t chunk_count, used_count, segment_count;
	uint64_t chunk_bytes;
	uint32_t *owners; /* of each chunk: index of the session plus 1 */
	bool *begins;     /* whether a segment begins there */
	uint64_t sessions_reclaimed, bytes_reclaimed;
};

struct fake_daemon {
	struct fc_daemon_view view;
	struct fc_geometry geometry;
	struct fc_view_client clients[FAKE_CLIENTS];
	struct fc_view_namespace namespaces[FAKE_NAMESPACES];
	struct fake_arena arenas[FC_MEDIUM_COUNT];
	struct fake_session *sessions;
	uint32_t session_room;
	uint64_t random, seq, session_numbers;
	unsigned drains, views, map_walks;
};

/* Chunks of the memory and of the SSD arena; 0: none. */
void fake_daemon_init(struct fake_daemon *fake, uint32_t memory_chunks, uint32_t ssd_chunks);
void fake_daemon_deinit(struct fake_daemon *fake);
/* `turns` more turns, in a time of `passed_ns`. */
void fake_daemon_step(struct fake_daemon *fake, unsigned turns, uint64_t passed_ns);
struct fc_daemon_callbacks fake_daemon_callbacks(struct fake_daemon *fake);
struct fc_session_id fake_session_id(uint64_t number);

#endif
