/* FC-GVA: where every block is, and where the next one goes.
 *
 * The catalog owns the index, the sessions and the space of the arenas. It answers *where* and never moves a slice;
 * what it does write are superblocks, chunk tables and segment headers (catalog/commit.c), through the media it is
 * given.
 *
 *   a turn       fc_catalog_reserve()  places it: its segments, space taken, invisible
 *                (the client writes the slices)
 *                fc_catalog_commit()   visible at once, durable later (durable_cb)       or fc_catalog_abort(): no
 * trace a load       fc_catalog_match()    longest resumable prefix, as spans of placed segments, and a lease on them
 *                fc_catalog_release()  ends the lease
 *
 * States of a segment, and of the chunks under it:
 *
 *   RESERVED --commit--> VISIBLE --synced, header and entry written--> DURABLE
 *      |                    |  (the write failed: withdrawn)              |
 *      abort                +----------------> RETIRED <------------------+  superseded, reclaimed, cut
 *      |                                          | no lease, no pin, not in a commit batch
 *      v                                          v
 *   chunks free                       entry zeroed, synced --> chunks free
 *
 * Invariants (checked by fc_catalog_check()):
 *   1. An index entry names a VISIBLE or DURABLE segment, and the segment's own key at that entry is the entry's key.
 *   2. The block before a segment's first block is named (no tail without its head).
 *   3. Chunks in use = sum over the segments that are not yet freed; no chunk has two owners.
 *   4. A segment that others replaced stays on its medium until what replaced it is durable (it is pinned).
 *   5. The session of every block on the path of a session's segment is that session, or one of its `deps`.
 *   6. A leased segment is not freed, and its session is not reclaimed.
 *   7. What an owner uses = sum over the segments whose session's id has its tag, and not more than its limit, or than
 *      there was when the arenas were opened.
 *
 * One thread. No call waits; what needs I/O ends in a callback from inside a medium's poll. */
#ifndef FC_CATALOG_CATALOG_H
#define FC_CATALOG_CATALOG_H

#include "base/alloc.h"
#include "clock/clock.h"
#include "format/arena.h"
#include "media/media.h"

struct fc_catalog;

/* ---- open and close ---- */

/* Somebody whose sessions count together: a namespace of the daemon. The top 16 bits of a session's id are its owner's
 * tag (catalog/owners.c). */
struct fc_owner {
	uint16_t tag;       /* at least 1 */
	uint64_t bytes_max; /* of chunks, on both media together; 0: no limit */
	const char *name;   /* for messages; borrowed until the catalog is freed. NULL: the tag stands for it */
};
#define FC_OWNERS_MAX 1024u

static inline uint16_t fc_session_tag(struct fc_session_id id)
{
	return (uint16_t)(id.high >> 48);
}

struct fc_catalog_opts {
	const struct fc_geometry *geometry;
	const struct fc_alloc *alloc;
	uint32_t node;
	struct fc_media *media[FC_MEDIUM_COUNT]; /* NULL: this medium has no arena. Borrowed */
	uint64_t chunk_bytes;                    /* for arenas that are formatted; 0: chosen */
	struct fc_uuid uuid;                     /* for arenas that are formatted: random bits from the caller */
	uint64_t hash_seed;                      /* random bits for the index */
	uint32_t index_shards;                   /* 0: as a large store needs; fewer make checks of a small one fast */
	uint64_t agent_context_tokens, long_reply_tokens;
	double high_watermark, low_watermark, consolidate_ratio;
	uint64_t area_bytes_max; /* no layer of a segment is longer: what a window takes at once; 0: no limit */
	enum fc_reclaim_order reclaim_order;
	enum fc_memory_reclaim memory_reclaim;
	const struct fc_owner *owners; /* tags differ; needed only while fc_catalog_open() runs */
	uint32_t owner_count;          /* at most FC_OWNERS_MAX; 0: ids of sessions have no owners' tags */
	bool is_read_only; /* nothing is ever written to a medium: turns are refused, and what recovery would drop stays
			      where it is */
};

/* The least `area_bytes_max` that this geometry needs: a layer of one granule of blocks with those of a resume point.
 */
uint64_t fc_catalog_area_bytes_min(const struct fc_geometry *geometry);

/* Starts opening: formats blank arenas, recovers the others. `opened_cb` follows from a medium's poll with 0 or an
 * error (then only fc_catalog_free() is allowed). A failure changes nothing on a medium that is not a FlatCake arena of
 * this geometry. FC_EINVAL: owners that are not allowed, with text. FC_EINVAL without any medium, FC_ENOMEM: then there
 * is no catalog and no callback. */
FC_MUST_USE int fc_catalog_open(struct fc_catalog **catalog, const struct fc_catalog_opts *opts,
				void (*opened_cb)(void *context, int code, const struct fc_error *error),
				void *context);

/* No request may be open. Commits still under way are abandoned: drain with fc_catalog_is_settled() first. */
void fc_catalog_free(struct fc_catalog *catalog);

/* True when nothing waits to become durable or to be freed on a medium (refused writes are retried at the next commit).
 */
bool fc_catalog_is_settled(const struct fc_catalog *catalog);

/* True while a batch of the medium is under way: I/O that something waits for to become durable, or free. `progress`
 * changes whenever some of it has ended. */
bool fc_catalog_is_committing(const struct fc_catalog *catalog, enum fc_medium medium, uint64_t *progress);

/* The batch under way has been waited for long enough. Whoever waits for the medium's durability is told FC_ETIMEOUT,
 * here, and what the batch may still write stays as it is until its I/O ends: visible, and not free. Until something of
 * it has ended the medium is silent: nothing more is reserved there (FC_ETIMEOUT); call this again for what is
 * committed meanwhile. */
void fc_catalog_commit_is_late(struct fc_catalog *catalog, enum fc_medium medium);
bool fc_catalog_is_silent(const struct fc_catalog *catalog, enum fc_medium medium);

/* Of an open catalog; NULL when that medium has no arena. The catalog's. */
const struct fc_superblock *fc_catalog_superblock(const struct fc_catalog *catalog, enum fc_medium medium);

/* ---- what clients see of a segment ---- */

struct fc_segment;

struct fc_placed {
	struct fc_segment *segment; /* opaque outside the catalog; NULL when it is another process's */
	struct fc_gva base;
	uint64_t header_bytes;
	uint32_t align;
	const struct fc_shape *shape; /* valid under the lease or the reservation */
};

/* Memory for the shapes of segments that another process's catalog described (wire/wire.h). Empty for those of this
 * process: the catalog has their shapes. */
struct fc_shape_store {
	struct fc_shape *shapes;
	uint64_t shape_room;
	struct fc_range *ranges;
	uint64_t range_room;
};

/* Consecutive blocks of one group that lie side by side in one segment. */
struct fc_span {
	uint32_t placed; /* index in the path's segments */
	uint32_t group;
	uint64_t block_first;
	uint64_t count;
	uint64_t entry_first; /* in the segment's shape */
};

/* The arrays belong to the path, grow as needed and are reused; fc_path_deinit() frees them. */
struct fc_path {
	uint64_t blocks;        /* resume point */
	uint64_t stored_blocks; /* leading blocks stored in every FC_RULE_ALL group */
	uint64_t bytes[FC_MEDIUM_COUNT];
	struct fc_placed *placed;
	uint64_t placed_room;
	uint32_t placed_count;
	struct fc_span *spans;
	uint64_t span_room;
	uint32_t span_count;
	bool is_leased;
	uint64_t request; /* of the lease, where it is another process's to give */
	struct fc_shape_store shapes;
};

void fc_path_deinit(struct fc_path *path, const struct fc_alloc *alloc);
void fc_shape_store_deinit(struct fc_shape_store *store, const struct fc_alloc *alloc);

/* ---- match ---- */

/* Fills `path` with the deepest resume point that is stored, at most `blocks_max` (0: key_count) blocks deep. With
 * `lease`, the segments stay until fc_catalog_release(), and their sessions count as used now; without, nothing
 * changes. */
FC_MUST_USE int fc_catalog_match(struct fc_catalog *catalog, const struct fc_key *keys, uint64_t key_count,
				 uint64_t blocks_max, bool lease, struct fc_path *path);
void fc_catalog_release(struct fc_catalog *catalog, struct fc_path *path);

/* A slice of this segment failed its checksum: the session is cut there, with everything that stands on it. */
void fc_catalog_cut(struct fc_catalog *catalog, struct fc_segment *segment, uint64_t entry);

/* ---- a turn ---- */

struct fc_turn {
	struct fc_session_id session; /* {0, 0}: inferred; else it has the owner's tag, or where there is no owner, none
					 of an owner's */
	uint16_t owner;               /* tag of one of the catalog's owners; 0: nobody's */
	const struct fc_key *keys;
	uint64_t key_count;
	uint64_t shared_blocks;
	uint64_t turn;
	uint64_t previous_reply_tokens;
	struct {
		uint64_t first_block, count;
	} resident[FC_GROUPS_MAX]; /* blocks that the device holds */
	const uint64_t *resume_points;
	uint64_t resume_point_count;
};

/* One segment to write: every entry of its shape comes from the device, except blocks below device_from[group], which
 * come from the reservation's `sources` (they lie in memory). */
struct fc_grant {
	struct fc_placed placed;
};

struct fc_reservation {
	struct fc_grant *grants; /* grows as needed, reused, freed by fc_reservation_deinit() */
	uint64_t grant_room;
	uint32_t grant_count; /* 0: everything is stored already */
	struct fc_shape_store shapes;
	struct fc_path sources; /* the stored part of the path; spans in memory may serve as source */
	struct fc_session_id session;
	uint64_t blocks_new, bytes_new;
	uint64_t segments_absorbed; /* known after the commit */
	bool is_over_quota;         /* after FC_EFULL: it is the owner's quota that has no room */
	const struct fc_key *keys;  /* the turn's, until the commit; NULL for a spill */
	uint64_t key_count;         /* of these */
	/* durability, from the commit on */
	uint32_t durable_pending;
	int durable_code;
	struct fc_error durable_error; /* why, when that is not 0 */
	void (*durable_cb)(struct fc_reservation *reservation);
	/* waiting for space, after FC_EAGAIN */
	struct fc_link wait_link;
	uint32_t space_attempts; /* set to 0 by the caller before the first try: how often it has been told FC_EAGAIN */
	uint32_t space_stalls;   /* of these, the last ones in a row during which nothing became free */
	uint64_t space_freed;    /* what had become free when it was told last */
	enum fc_medium wait_medium;
	uint64_t wait_chunks;                                 /* that it wants there */
	void (*space_cb)(struct fc_reservation *reservation); /* only notes it: called from inside other calls */
};

/* Errors: FC_ETIMEOUT with text (the medium is silent), FC_EINVAL with text (a block that is new and not on the device,
 * an owner or an owner's id that is not right), FC_EFULL (no room for the turn in the arenas or in its owner's quota,
 * and none to be had: then no session was reclaimed for it), FC_EAGAIN (room is being freed: space_cb will be called
 * once, try again then), FC_ENOMEM. After an error nothing is held. */
FC_MUST_USE int fc_catalog_reserve(struct fc_catalog *catalog, const struct fc_turn *turn,
				   struct fc_reservation *reservation, struct fc_error *error);
/* Makes the segments visible, and then makes room up to the watermarks; what was saved and what it stands on stay.
 * FC_ENOENT when the path before them has vanished meanwhile (cut by damage), FC_ENOMEM:
 * then it acts like an abort. On success durable_cb follows once, from a medium's poll, if durable_pending is not 0; if
 * it is, nothing of the turn has to become durable. */
FC_MUST_USE int fc_catalog_commit(struct fc_catalog *catalog, struct fc_reservation *reservation);
void fc_catalog_abort(struct fc_catalog *catalog, struct fc_reservation *reservation);
void fc_reservation_deinit(struct fc_reservation *reservation, const struct fc_alloc *alloc);

/* ---- moving a session's memory to SSD (reclaim setting `spill`; sessions that became an agent's) ---- */

/* Takes the next segment that should be copied to SSD, with a place for it: `from` is leased and in memory, `to` is
 * reserved in `reservation`, with the same shape. FC_EAGAIN when there is none, or no room. */
FC_MUST_USE int fc_catalog_spill_next(struct fc_catalog *catalog, struct fc_path *from,
				      struct fc_reservation *reservation);
/* The copy could not be written: call it while `from` is leased. FC_ECORRUPT: the original goes, with what stands on
 * it. */
void fc_catalog_spill_failed(struct fc_catalog *catalog, const struct fc_path *from, int code);
/* Key of an entry of a segment (the path's key, without the group's mark). */
struct fc_key fc_catalog_segment_key(const struct fc_segment *segment, uint64_t entry);

/* ---- sessions, statistics, checks ---- */

struct fc_session_info {
	struct fc_session_id id;
	enum fc_session_kind kind;
	uint64_t turns, blocks, segments, extents, leases, dependents;
	uint64_t bytes[FC_MEDIUM_COUNT];
	uint64_t created_seq, used_seq; /* order of creation and of last use */
};

/* Calls `each` for every session, least recently used first; stops when it returns false. */
void fc_catalog_sessions(struct fc_catalog *catalog, bool (*each)(void *context, const struct fc_session_info *info),
			 void *context);
/* Blocks of all groups that the index finds in a session. FC_ENOENT. */
FC_MUST_USE int fc_catalog_session_blocks(struct fc_catalog *catalog, struct fc_session_id id, uint64_t *blocks);

struct fc_segment_info {
	struct fc_placed placed;
	struct fc_session_id session; /* of what is named or kept as a spare; else {0, 0} */
	enum fc_session_kind session_kind;
	uint64_t turn, seq, start_block, end_block;
	uint64_t bytes;        /* in whole chunks */
	uint64_t blocks_named; /* by the index */
	bool is_kept;          /* false: reserved, or on its way to be freed */
};

/* Calls `each` for every segment that holds chunks; stops when it returns false. */
void fc_catalog_segments(struct fc_catalog *catalog, bool (*each)(void *context, const struct fc_segment_info *info),
			 void *context);

/* Frees a session and all that stands on it. FC_ENOENT, FC_EBUSY (leased). */
FC_MUST_USE int fc_catalog_evict(struct fc_catalog *catalog, struct fc_session_id id);

/* Called with every session that is reclaimed, evicted or cut, before it goes. */
void fc_catalog_on_loss(struct fc_catalog *catalog, void (*loss_cb)(void *context, struct fc_session_id id),
			void *context);

void fc_catalog_stats(const struct fc_catalog *catalog, struct fc_stats *stats);

/* The longest piece of an arena that is free; 0 when there is no such arena. */
uint64_t fc_catalog_largest_free_bytes(const struct fc_catalog *catalog, enum fc_medium medium);

struct fc_owner_stats {
	uint64_t bytes_used, bytes_max;
	uint64_t sessions;
	uint64_t sessions_reclaimed; /* for its quota; those that made room in an arena are the arena's */
	uint64_t saves_refused;      /* for its quota */
};
/* FC_ENOENT: none of the owners has this tag. */
FC_MUST_USE int fc_catalog_owner_stats(const struct fc_catalog *catalog, uint16_t tag, struct fc_owner_stats *stats);
/* fc_catalog_stats() of what is one owner's: capacities are those of the arenas, and what no owner has of its own is 0.
 * Its sessions that were reclaimed are counted whether it was for its quota (once, on SSD where they had anything
 * there) or for room in an arena. Counters only. FC_ENOENT: none of the owners has this tag. */
FC_MUST_USE int fc_catalog_stats_of(const struct fc_catalog *catalog, uint16_t tag, struct fc_stats *stats);

/* Full scan of everything in memory against every counter and invariant; the error names the first that does not hold.
 */
FC_MUST_USE int fc_catalog_check(struct fc_catalog *catalog, struct fc_error *error);

#endif
