/* The messages between a client and flatcaked, as structs, and their bytes. docs/daemon.md has every offset.
 *
 * A frame is a header and a body:
 *
 *     0        4       6       8            16        24
 *     | magic  | type  | flags | body bytes | request | body ...
 *
 * Integers are little-endian. `request` is chosen by the client and names the request, and from then on the lease or
 * the reservation that came of it: RELEASE, FORGET, COMMIT, ABORT and DAMAGE carry the number of the MATCH or RESERVE
 * that they are about. A number is used once in a connection. It is never 0, except in the messages about none: HELLO,
 * WELCOME, REFUSED, REPORT, GOODBYE.
 *
 *     client                              daemon
 *     HELLO    versions, geometry         WELCOME, with descriptors, or REFUSED
 *     MATCH    keys, lease?               MATCHED: code, path
 *     RELEASE  ends the lease
 *     RESERVE  turn                       RESERVED: code, grants, sources
 *     COMMIT   of a reservation           COMMITTED: code; then DURABLE, if it says so
 *     ABORT    takes a reservation back
 *     FORGET   the answer of a MATCH or a RESERVE is no longer wanted: when it comes, it holds nothing
 *     DAMAGE   a slice of a lease, or of a reservation's sources, was bad
 *     REPORT   what the client's queues and streams are doing
 *     STATS                               STATED
 *     SESSION  id                         SESSION_FOUND: code, blocks
 *     GOODBYE  (either side) no more requests; what is under way is finished
 *
 * Everything that decodes takes bytes from outside: lengths, counts, indices, sums and order are checked before they
 * are used, and what is left over at the end of a body is an error. Pure: no I/O, and memory only through fc_alloc. */
#ifndef FC_WIRE_WIRE_H
#define FC_WIRE_WIRE_H

#include "catalog/catalog.h"

#define FC_WIRE_MAGIC 0x31574346u /* "FCW1" */
#define FC_WIRE_VERSION_MIN 1u
#define FC_WIRE_VERSION_MAX 1u
#define FC_WIRE_HEADER_BYTES 24u
/* Of a body: 2 million keys and what goes with them. */
#define FC_WIRE_BODY_BYTES_MAX (32u << 20)
#define FC_WIRE_NAMESPACE_BYTES 64u

enum fc_wire_type {
	FC_WIRE_HELLO = 1,
	FC_WIRE_MATCH = 2,
	FC_WIRE_RELEASE = 3,
	FC_WIRE_FORGET = 4,
	FC_WIRE_RESERVE = 5,
	FC_WIRE_COMMIT = 6,
	FC_WIRE_ABORT = 7,
	FC_WIRE_DAMAGE = 8,
	FC_WIRE_REPORT = 9,
	FC_WIRE_STATS = 10,
	FC_WIRE_SESSION = 11,
	FC_WIRE_GOODBYE = 12,
	FC_WIRE_WELCOME = 33,
	FC_WIRE_REFUSED = 34,
	FC_WIRE_MATCHED = 35,
	FC_WIRE_RESERVED = 36,
	FC_WIRE_COMMITTED = 37,
	FC_WIRE_DURABLE = 38,
	FC_WIRE_STATED = 39,
	FC_WIRE_SESSION_FOUND = 40,
};

/* "MATCH", for logs; "unknown" for what is none. */
const char *fc_wire_type_name(uint32_t type);
/* Whether a text may stand in a name: UTF-8, without what could forge lines of a log. */
bool fc_wire_is_printable(const char *text);

struct fc_wire_header {
	uint16_t type;
	uint64_t body_bytes;
	uint64_t request;
};

/* `buffer` has FC_WIRE_HEADER_BYTES. FC_EFORMAT with text: wrong magic, unknown type, flags that are not 0, a body that
 * is longer than its type allows, a request number where there is none or none where there is one. */
FC_MUST_USE int fc_wire_header_decode(struct fc_wire_header *header, const uint8_t *buffer, struct fc_error *error);

/* ---- bytes under construction: a growing buffer that frames are appended to ---- */

struct fc_wire_buffer {
	const struct fc_alloc *alloc;
	uint8_t *bytes;       /* the first that is in it */
	uint64_t used;        /* bytes that are in it */
	uint64_t front, room; /* of the memory: in front of `bytes`, and in all */
};

void fc_wire_buffer_init(struct fc_wire_buffer *buffer, const struct fc_alloc *alloc);
void fc_wire_buffer_deinit(struct fc_wire_buffer *buffer);
/* Takes the first `bytes` away, in constant time. A buffer that has become empty gives large memory back. */
void fc_wire_buffer_drop(struct fc_wire_buffer *buffer, uint64_t bytes);
/* Appends bytes as they are: what a socket delivered. FC_ENOMEM. */
FC_MUST_USE int fc_wire_buffer_add(struct fc_wire_buffer *buffer, const void *bytes, uint64_t count);

/* What lies at the front of a buffer of received bytes: FC_OK with header and body (in place, until the buffer
 * changes), FC_EAGAIN when the frame is not whole yet, FC_EFORMAT. */
FC_MUST_USE int fc_wire_next(const struct fc_wire_buffer *buffer, struct fc_wire_header *header, const uint8_t **body,
			     struct fc_error *error);

/* ---- messages ----
 *
 * fc_wire_put_X() appends a whole frame. FC_ENOMEM; FC_ELIMIT when there is more than a frame takes (keys, resume
 * points); then the buffer is as it was. fc_wire_get_X() decodes a body: FC_EFORMAT with text that names message, field
 * and value, and FC_ENOMEM where a path is decoded; then what was decoded means nothing. Arrays of a decoded message
 * point into the body where they can (keys are copied by the caller), and into `path` or the struct's own arrays
 * elsewhere. Texts that decode are whole UTF-8 without control characters: they may be shown and logged. */

struct fc_wire_hello {
	uint32_t version_min, version_max;
	char name_space[FC_WIRE_NAMESPACE_BYTES]; /* text, ends with 0; "" for the default one */
	char program[FC_NAME_BYTES];              /* of the client, for people: "vllm worker 3" */
	struct fc_geometry geometry;
};
FC_MUST_USE int fc_wire_put_hello(struct fc_wire_buffer *buffer, const struct fc_wire_hello *hello);
FC_MUST_USE int fc_wire_get_hello(struct fc_wire_hello *hello, const uint8_t *body, uint64_t bytes,
				  struct fc_error *error);
/* The highest version that both sides speak. HELLO and REFUSED are the same in all versions. FC_EINVAL with text. */
FC_MUST_USE int fc_wire_choose_version(const struct fc_wire_hello *hello, uint32_t *version, struct fc_error *error);

struct fc_wire_arena {
	bool is_there; /* then a descriptor comes with the message, in the order lock, memory, SSD */
	bool is_durable;
	uint32_t align; /* of its superblock: what every segment in it has */
	uint64_t bytes;
};

struct fc_wire_welcome {
	uint32_t version;
	uint64_t client;         /* number of this client, for logs */
	struct fc_uuid instance; /* of this run of the daemon */
	/* Every key is exclusive-ored with it by the daemon: namespaces stay apart. Clients work with the keys that are
	 * stored (checksums are mixed with them) and send them without the salt. */
	struct fc_key key_salt;
	uint64_t area_bytes_max; /* no layer of a segment is longer: windows must take it */
	uint32_t requests_max;   /* open at once */
	struct fc_wire_arena arenas[FC_MEDIUM_COUNT];
};
FC_MUST_USE int fc_wire_put_welcome(struct fc_wire_buffer *buffer, const struct fc_wire_welcome *welcome);
FC_MUST_USE int fc_wire_get_welcome(struct fc_wire_welcome *welcome, const uint8_t *body, uint64_t bytes,
				    struct fc_error *error);

struct fc_wire_refused {
	struct fc_error error; /* FC_EINVAL, FC_EGEOMETRY, FC_ELIMIT, FC_EFORMAT ... */
	bool is_final;         /* asking again later will not help */
};
FC_MUST_USE int fc_wire_put_refused(struct fc_wire_buffer *buffer, const struct fc_wire_refused *refused);
FC_MUST_USE int fc_wire_get_refused(struct fc_wire_refused *refused, const uint8_t *body, uint64_t bytes,
				    struct fc_error *error);

/* Keys lie in the body, 16 bytes each; fc_wire_keys_copy() takes them out. */
struct fc_wire_keys {
	const uint8_t *bytes;
	uint64_t count;
};
void fc_wire_keys_copy(const struct fc_wire_keys *keys, struct fc_key salt, struct fc_key *to); /* exclusive-or salt */

struct fc_wire_match {
	uint64_t blocks_max;
	bool is_leased;
	const struct fc_key *keys; /* put */
	uint64_t key_count;
	struct fc_key salt;        /* put: exclusive-ored with every key on the way out */
	struct fc_wire_keys found; /* get */
};
FC_MUST_USE int fc_wire_put_match(struct fc_wire_buffer *buffer, uint64_t request, const struct fc_wire_match *match);
FC_MUST_USE int fc_wire_get_match(struct fc_wire_match *match, const uint8_t *body, uint64_t bytes,
				  struct fc_error *error);

/* The path of an answer; of none when `code` is not FC_OK. Decoding fills a caller's fc_path, which holds no lease,
 * with shapes in memory of the path's own, and checks it against geometry and arenas: every segment inside its arena,
 * every span inside its segment, and together exactly the blocks that resuming at path->blocks needs. Whether that is
 * no more than was asked for, and whether a lease was, the caller compares; path->request is the caller's. After an
 * error, or a `code` that is not FC_OK, the path is empty and not leased, and keeps its memory. */
FC_MUST_USE int fc_wire_put_matched(struct fc_wire_buffer *buffer, uint64_t request, int code,
				    const struct fc_path *path);
FC_MUST_USE int fc_wire_get_matched(int *code, struct fc_path *path, const struct fc_wire_welcome *welcome,
				    const struct fc_geometry *geometry, const struct fc_alloc *alloc,
				    const uint8_t *body, uint64_t bytes, struct fc_error *error);

/* RELEASE, FORGET, COMMIT, ABORT, STATS, GOODBYE, of either side: no body. */
FC_MUST_USE int fc_wire_put_plain(struct fc_wire_buffer *buffer, enum fc_wire_type type, uint64_t request);

struct fc_wire_damage {
	uint32_t placed; /* in the path of the lease, or in the sources of the reservation, that `request` names */
	uint64_t entry;
	bool is_checksum; /* else it could not be read */
};
FC_MUST_USE int fc_wire_put_damage(struct fc_wire_buffer *buffer, uint64_t request,
				   const struct fc_wire_damage *damage);
FC_MUST_USE int fc_wire_get_damage(struct fc_wire_damage *damage, const uint8_t *body, uint64_t bytes,
				   struct fc_error *error);

/* `turn`'s arrays are borrowed by put; get leaves turn.keys NULL and fills `found`, and resume points go to an array
 * that the caller provides (FC_WIRE_POINTS_MAX). Put: FC_EINVAL for resident blocks that cannot be (their numbers do
 * not fit 32 bits). What a turn means is checked by the catalog, not here. */
#define FC_WIRE_POINTS_MAX 4096u
struct fc_wire_reserve {
	struct fc_turn turn;
	struct fc_key salt;
	struct fc_wire_keys found;
};
FC_MUST_USE int fc_wire_put_reserve(struct fc_wire_buffer *buffer, uint64_t request,
				    const struct fc_wire_reserve *reserve);
FC_MUST_USE int fc_wire_get_reserve(struct fc_wire_reserve *reserve, uint64_t *points,
				    const struct fc_geometry *geometry, const uint8_t *body, uint64_t bytes,
				    struct fc_error *error);

/* `why` goes along when `code` is not FC_OK (NULL: the code's own text). Decoding: on success `reservation`, which held
 * nothing, has grants, sources, session, blocks_new, bytes_new; the sources are a path like any other, but need not
 * cover anything, and no layer of a grant is longer than the welcome says. All else in it is the caller's. After an
 * error, or a `code` that is not FC_OK, it holds nothing. `why` may be NULL. */
FC_MUST_USE int fc_wire_put_reserved(struct fc_wire_buffer *buffer, uint64_t request, int code,
				     const struct fc_reservation *reservation, const struct fc_error *why);
FC_MUST_USE int fc_wire_get_reserved(int *code, struct fc_reservation *reservation, struct fc_error *why,
				     const struct fc_wire_welcome *welcome, const struct fc_geometry *geometry,
				     const struct fc_alloc *alloc, const uint8_t *body, uint64_t bytes,
				     struct fc_error *error);

struct fc_wire_committed {
	int code;
	uint64_t segments_absorbed;
	bool is_durable_coming; /* DURABLE follows */
};
FC_MUST_USE int fc_wire_put_committed(struct fc_wire_buffer *buffer, uint64_t request,
				      const struct fc_wire_committed *committed);
FC_MUST_USE int fc_wire_get_committed(struct fc_wire_committed *committed, const uint8_t *body, uint64_t bytes,
				      struct fc_error *error);

FC_MUST_USE int fc_wire_put_durable(struct fc_wire_buffer *buffer, uint64_t request, int code);
FC_MUST_USE int fc_wire_get_durable(int *code, const uint8_t *body, uint64_t bytes, struct fc_error *error);

/* STATED: the daemon's statistics; field by field, so that a later version can add some at the end. */
FC_MUST_USE int fc_wire_put_stated(struct fc_wire_buffer *buffer, uint64_t request, const struct fc_stats *stats);
FC_MUST_USE int fc_wire_get_stated(struct fc_stats *stats, const uint8_t *body, uint64_t bytes, struct fc_error *error);

FC_MUST_USE int fc_wire_put_session(struct fc_wire_buffer *buffer, uint64_t request, struct fc_session_id id);
FC_MUST_USE int fc_wire_get_session(struct fc_session_id *id, const uint8_t *body, uint64_t bytes,
				    struct fc_error *error);
FC_MUST_USE int fc_wire_put_session_found(struct fc_wire_buffer *buffer, uint64_t request, int code, uint64_t blocks);
FC_MUST_USE int fc_wire_get_session_found(int *code, uint64_t *blocks, const uint8_t *body, uint64_t bytes,
					  struct fc_error *error);

/* REPORT: what a client's own queues and streams do, for the operator; all counters are since the connection began and
 * never fall. */
#define FC_WIRE_TIME_BUCKETS 24 /* of histograms: up to 1 ms * 2^(i/2), the last one has all that is longer */
#define FC_WIRE_WAITERS_MAX 16

struct fc_wire_times {
	uint64_t counts[FC_WIRE_TIME_BUCKETS];
	uint64_t sum_ns;
};

/* Which of the counts a duration belongs to. */
uint32_t fc_wire_time_bucket(uint64_t duration_ns);

struct fc_wire_waiter {
	uint64_t request; /* of its MATCH */
	uint64_t ssd_bytes, waited_ns;
	double priority; /* 0 in the ready queue */
};

struct fc_wire_report {
	uint64_t loads, loads_hit, saves, loads_failed, saves_failed;
	uint64_t blocks_possible, blocks_delivered; /* as matched, as in place */
	uint64_t bytes_wanted[FC_MEDIUM_COUNT];
	uint64_t bytes_read, read_commands, bytes_written[FC_MEDIUM_COUNT];
	uint64_t checksum_failures, io_errors;
	uint64_t ready_length, prepare_length, loads_active, saves_active; /* now */
	struct fc_wire_times load_time, first_layer_time, queue_wait;
	uint32_t waiter_count; /* the longest waits of the prepare queue, and why: their sizes */
	struct fc_wire_waiter waiters[FC_WIRE_WAITERS_MAX];
};
FC_MUST_USE int fc_wire_put_report(struct fc_wire_buffer *buffer, const struct fc_wire_report *report);
FC_MUST_USE int fc_wire_get_report(struct fc_wire_report *report, const uint8_t *body, uint64_t bytes,
				   struct fc_error *error);

#endif
