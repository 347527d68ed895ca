/* What the files of the catalog share. Nobody outside src/catalog includes this. */
#ifndef FC_CATALOG_STATE_H
#define FC_CATALOG_STATE_H

#include "base/check.h"
#include "base/list.h"
#include "base/order.h"
#include "catalog/catalog.h"
#include "catalog/index.h"
#include "catalog/space.h"

enum fc_segment_state {
	FC_SEGMENT_RESERVED = 1,
	FC_SEGMENT_VISIBLE = 2,
	FC_SEGMENT_DURABLE = 3,
	FC_SEGMENT_RETIRED = 4,
};

#define FC_SPACE_STALLS_MAX 64u /* so often in a row a turn waits for space while nothing becomes free */

/* What is in an arena, or of that one owner's: exact counters. */
struct fc_holdings {
	uint64_t chunks_used;
	uint64_t bytes_stored, blocks_named;
	uint64_t segment_count;
	uint64_t seam_count;    /* of these, so often one lies directly behind another of the same session */
	uint64_t session_count; /* with segments here */
};

/* What has made room there since the opening. */
struct fc_removals {
	uint64_t sessions_reclaimed, bytes_reclaimed, segments_absorbed;
};

/* An owner, as the options say, and what it has. */
struct fc_owner_state {
	uint16_t tag;
	const char *name; /* or NULL */
	uint64_t bytes_max;
	struct fc_order order; /* those that may be reclaimed for its quota, reclaim.c */
	uint64_t session_count;
	/* exact counters */
	uint64_t bytes_used;
	uint64_t bytes_leaving;                     /* of these, in segments that are RETIRED */
	uint64_t bytes_to_go;                       /* of these, in sessions of the order */
	uint64_t bytes_opened;                      /* used when the arenas were opened */
	uint64_t sessions_reclaimed, saves_refused; /* for its quota */
	uint64_t sessions_cut;
	struct fc_holdings held[FC_MEDIUM_COUNT];
	struct fc_removals removed[FC_MEDIUM_COUNT]; /* for its quota, and for room in the arenas */
};

struct fc_segment {
	uint32_t number; /* in catalog->segments and in the index */
	enum fc_segment_state state;
	enum fc_medium medium;
	struct fc_session *session;      /* NULL once it is RETIRED and not leased */
	struct fc_session_id session_id; /* the same, for ever */
	enum fc_session_kind session_kind;
	struct fc_owner_state *owner; /* the session's; NULL: nobody */
	struct fc_link session_link;  /* session->segments, while VISIBLE or DURABLE */
	struct fc_link commit_link;   /* arena->committing or ->freeing */
	struct fc_link pin_link;      /* the replacing segment's `pinned` */
	struct fc_link pins_link;     /* catalog->pins, as long as pin_link is linked */
	struct fc_link pinned;        /* segments that must stay until this one is durable */
	struct fc_link spare_link;    /* catalog->spares */
	bool is_committing;           /* waits for, or is in, a commit batch */
	bool is_refused;              /* its batch has failed (revive.c) */
	bool is_on_table;             /* its entry may be on the medium */
	bool was_durable;             /* header and entry are on the medium, synced */
	bool is_backup;               /* unnamed, kept because what names its blocks would not survive a restart, or
					 has not been read since the last one */
	uint64_t seq, turn;
	uint64_t sound_from;          /* entries that begin before this path block are given up: never named again */
	uint64_t sound_blocks;        /* entries that end behind this many path blocks are damaged: never named again */
	bool are_resume_blocks_sound; /* the same for those of window and state groups */
	uint64_t start_block, end_block; /* path blocks it adds; equal for a segment of resume points only */
	struct fc_key parent;
	uint64_t chunk_first, chunk_count;
	uint64_t header_bytes;
	struct fc_shape shape;
	struct fc_key *keys; /* entry keys: marked with their group */
	uint64_t named_count;
	uint32_t lease_count;
	uint8_t *header_memory;             /* for the write of its header; NULL: not needed, or the write has it */
	struct fc_reservation *reservation; /* told when durable; NULL when nobody waits */
	size_t allocated_bytes;
};

/* That `from` stands on `on`. */
struct fc_dep {
	struct fc_session *from, *on;
	struct fc_link link; /* on->dependents */
	bool is_loose;       /* `from` only has spare copies of what `on` names, and can be without it */
};

struct fc_session {
	struct fc_session_id id;
	enum fc_session_kind kind;
	struct fc_link table_link;               /* bucket of the session table */
	struct fc_link all_link;                 /* catalog->sessions */
	struct fc_owner_state *owner;            /* NULL: nobody */
	struct fc_link segments;                 /* by time of commit */
	uint64_t segment_count[FC_MEDIUM_COUNT]; /* linked ones, backups included */
	uint64_t chunks[FC_MEDIUM_COUNT];        /* of these */
	uint64_t backup_count;                   /* of the segments, with is_backup */
	uint64_t reserved_count;                 /* RESERVED segments: an empty session lives while it has some */
	uint64_t keep_count;                     /* so many of the callers above still look at it: it is not deleted */
	uint64_t turns;
	uint64_t created_seq, used_seq; /* catalog->use_seq at creation and last use */
	uint64_t lease_count;
	uint64_t load_count;
	struct fc_dep *deps; /* on the sessions that this one stands on */
	uint32_t dep_count;
	uint64_t dep_room;
	struct fc_link dependents;     /* deps of others on this one */
	uint32_t dependent_count;      /* of these, not loose */
	uint32_t busy_dependent_count; /* of these, of sessions with is_busy */
	uint32_t foreign_count;        /* of these, of another owner's sessions */
	struct fc_link spill_link;     /* catalog->spills, while its memory is to go to SSD */
	uint32_t spill_failures;       /* since it was last put there */
	bool is_spilled_for_room;      /* wanted by reclaim, and nothing was saved in it since: it may go for good */

	/* reclaim.c: what follows from the above, and its place among what may be reclaimed */
	bool is_busy;                                /* leased or reserved */
	bool is_backed_up;                           /* all of its memory has a whole backup of its own */
	struct fc_order_node order[FC_MEDIUM_COUNT]; /* arena->order */
	struct fc_order_node owner_order;            /* owner->order */
	uint64_t chunks_to_go[FC_MEDIUM_COUNT];      /* as counted in the arena */
	uint64_t bytes_to_go;                        /* as counted in the owner */
	struct fc_order_node affected;               /* catalog->affected, by used_seq */
	struct fc_link work_link;                    /* catalog->work */
};

struct fc_arena {
	struct fc_catalog *catalog;
	enum fc_medium medium;
	struct fc_media *media;
	struct fc_superblock superblock;
	struct fc_space space;
	uint64_t chunk_count;
	uint32_t *owner; /* per chunk: 1 + number of the segment that begins there, or 0 */
	uint32_t *ender; /* per chunk: 1 + number of the segment whose last chunk it is, or 0 */
	uint64_t next_seq;
	bool is_open;
	bool is_durable;
	struct fc_order order; /* sessions with segments here that may be reclaimed, reclaim.c */

	/* commit.c */
	struct fc_link committing;          /* data written, waiting for a batch */
	struct fc_link freeing;             /* retired, waiting for their entry to be zeroed */
	struct fc_commit_batch *batch;      /* under way, or NULL */
	struct fc_commit_batch *idle_batch; /* its memory; NULL where nothing is ever written */
	uint64_t commit_progress;           /* batches that were begun, and I/Os of them that have ended, ever */
	bool is_silent;                     /* one has been waited for long enough, and nobody waits for it any more */

	/* exact counters */
	struct fc_holdings held;
	uint64_t chunks_freeing;    /* of those used, on their way to be free */
	uint64_t chunks_linked;     /* of these, in segments of sessions: not reserved, and not retired */
	uint64_t chunks_leaving;    /* of these, retired, and read by nobody */
	uint64_t chunks_to_go;      /* of those linked, in sessions of the order that are not in use */
	uint64_t chunks_awaited;    /* what those in catalog->space_waiters want here */
	struct fc_removals removed; /* for room here */
};

struct fc_catalog {
	struct fc_geometry geometry;
	const struct fc_alloc *alloc;
	struct fc_catalog_opts opts;
	uint64_t granule; /* resume granule in path blocks */
	uint64_t block_bytes[FC_GROUPS_MAX];
	uint64_t segment_blocks_max; /* path blocks in one segment, so that opts.area_bytes_max holds */
	bool has_resume_groups;      /* some group is FC_RULE_WINDOW or FC_RULE_STATE */
	struct fc_arena arenas[FC_MEDIUM_COUNT];
	struct fc_index index;

	struct fc_segment **segments; /* by number; free numbers are chained in free_numbers */
	uint32_t *free_numbers;
	uint32_t segment_room, segment_top, free_number_count;

	struct fc_link *session_table; /* buckets, a power of two */
	uint64_t session_bucket_count, session_count;
	struct fc_link sessions; /* all, least recently used first */
	uint64_t use_seq;
	struct fc_order affected;   /* by a loss that is being worked off (reclaim.c) */
	struct fc_link work;        /* sessions that are still to be looked at for it */
	uint64_t sessions_examined; /* so often reclaim, or what follows from a loss, has looked at a session */

	struct fc_owner_state *owners; /* by tag */
	uint32_t owner_count;

	struct fc_link space_waiters; /* reservations after FC_EAGAIN */
	uint64_t key_bytes;           /* of all segments */
	uint64_t chunks_freed;        /* that were on their way to be free, and are: never falls */
	struct fc_link spills;        /* sessions whose memory is to go to SSD, in the order they were asked to */
	struct fc_link spares;        /* copies that were found at the opening and have named nothing then, rebuild.c */
	struct fc_link pins;        /* segments that others have replaced and that must stay until those are durable */
	uint64_t segments_examined; /* so often a segment was looked at because others were refused */
	uint64_t lease_count;
	uint64_t sessions_cut, saves_refused, recovered_segments, dropped_segments;

	struct fc_location *locations; /* scratch: one per path block */
	uint64_t location_room;

	struct fc_open_job *open_job; /* recover.c */
	bool is_open;                 /* commit batches may start */
	void (*loss_cb)(void *context, struct fc_session_id id);
	void *loss_context;
};

/* segment.c: allocation of segments, and which of their entries the index names */
FC_MUST_USE int fc_segment_new(struct fc_catalog *catalog, enum fc_medium medium, const struct fc_shape *shape,
			       struct fc_segment **segment);
void fc_segment_delete(struct fc_catalog *catalog, struct fc_segment *segment);
void fc_segment_assign(struct fc_segment *segment, struct fc_session *session);
/* Takes chunks for it. FC_EFULL. */
FC_MUST_USE int fc_segment_place(struct fc_catalog *catalog, struct fc_segment *segment);
/* It has its chunks: from `chunk_first` on. */
void fc_segment_own_chunks(struct fc_catalog *catalog, struct fc_segment *segment);
/* One of its session's lies directly behind it, and both are linked. */
bool fc_segment_has_seam(const struct fc_catalog *catalog, const struct fc_segment *segment);
/* Becomes one of its session's, which is its newest. */
void fc_segment_adopt(struct fc_catalog *catalog, struct fc_segment *segment, struct fc_session *session);
/* Of a linked one. */
void fc_segment_set_backup(struct fc_catalog *catalog, struct fc_segment *segment, bool is_backup);
/* Points the index at entry `entry` unless it is damaged; `replace`: also when another segment holds that key.
 * FC_ENOMEM. */
FC_MUST_USE int fc_segment_name(struct fc_catalog *catalog, struct fc_segment *segment, uint64_t entry, bool replace);
/* Its entry is not known to be damaged. */
bool fc_segment_is_sound(const struct fc_catalog *catalog, const struct fc_segment *segment, uint64_t entry);
/* Some block that it has, and that is sound, is named by nobody. */
bool fc_segment_has_unnamed(const struct fc_catalog *catalog, const struct fc_segment *segment);
/* It never names again what it does not name when this returns: entries of path blocks from `path_block` on, or of the
 * window and state groups. */
void fc_segment_spoil(struct fc_catalog *catalog, struct fc_segment *segment, uint64_t path_block,
		      bool are_resume_blocks_spoiled);
void fc_segment_unname(struct fc_catalog *catalog, struct fc_segment *segment, uint64_t entry);
/* The block before its first one is named by nobody: a tail without its head. */
bool fc_segment_is_orphan(const struct fc_catalog *catalog, const struct fc_segment *segment);
bool fc_segment_is_named(struct fc_catalog *catalog, struct fc_segment *segment, uint64_t entry);
/* Out of the session and the index; freed when nothing holds it any more. */
void fc_segment_retire(struct fc_catalog *catalog, struct fc_segment *segment);
/* It stays on its medium until `by`, which has replaced it, is durable; or no longer. */
void fc_segment_pin(struct fc_catalog *catalog, struct fc_segment *segment, struct fc_segment *by);
void fc_segment_unpin(struct fc_segment *segment);
void fc_segment_release_pinned(struct fc_catalog *catalog, struct fc_segment *segment); /* and settles them */
/* It is RETIRED, and nobody reads it any more. */
void fc_segment_leave(struct fc_catalog *catalog, struct fc_segment *segment);
/* Frees a RETIRED segment if nothing holds it. */
void fc_segment_settle(struct fc_catalog *catalog, struct fc_segment *segment);
struct fc_placed fc_segment_placed(struct fc_catalog *catalog, struct fc_segment *segment);
static inline uint64_t fc_segment_bytes(const struct fc_catalog *catalog, const struct fc_segment *segment)
{
	return segment->chunk_count * catalog->arenas[segment->medium].superblock.chunk_bytes;
}
static inline bool fc_segment_is_linked(const struct fc_segment *segment)
{
	return segment->state == FC_SEGMENT_VISIBLE || segment->state == FC_SEGMENT_DURABLE;
}

/* session.c */
struct fc_session *fc_session_find(struct fc_catalog *catalog, struct fc_session_id id);
FC_MUST_USE int fc_session_obtain(struct fc_catalog *catalog, struct fc_session_id id, enum fc_session_kind kind,
				  struct fc_session **session);
/* Deletes a session that has no segments, linked, reserved or leased, and that nobody keeps. */
void fc_session_settle(struct fc_catalog *catalog, struct fc_session *session);
static inline void fc_session_keep(struct fc_session *session)
{
	session->keep_count++;
}
void fc_session_let_go(struct fc_catalog *catalog, struct fc_session *session); /* and settles it */
/* One lease, or one reserved segment, more or less. Less: settle it then. */
void fc_session_add_lease(struct fc_catalog *catalog, struct fc_session *session);
void fc_session_drop_lease(struct fc_catalog *catalog, struct fc_session *session);
void fc_session_add_reserved(struct fc_catalog *catalog, struct fc_session *session);
void fc_session_drop_reserved(struct fc_catalog *catalog, struct fc_session *session);
/* Counts as used now, and so does everything it stands on. */
void fc_session_touch(struct fc_catalog *catalog, struct fc_session *session);
FC_MUST_USE int fc_session_depend(struct fc_catalog *catalog, struct fc_session *session, struct fc_session *on);
/* It has spare copies of blocks that the other names; only a loss of those is of interest to it. */
FC_MUST_USE int fc_session_depend_loosely(struct fc_catalog *catalog, struct fc_session *session,
					  struct fc_session *on);
/* Blocks have moved from one session to another: it, and all that stand on it, stand on the other from now on. */
FC_MUST_USE int fc_session_depend_after_move(struct fc_catalog *catalog, struct fc_session *from,
					     struct fc_session *to);
void fc_session_table_deinit(struct fc_catalog *catalog);

/* match.c: leading path blocks that are stored in every FC_RULE_ALL group. Leaves the location of every path block's
 * group-0 entry in catalog->locations. */
FC_MUST_USE int fc_match_prefix(struct fc_catalog *catalog, const struct fc_key *keys, uint64_t key_count,
				uint64_t *stored);
/* Adds the group's blocks [first, first + count) on the path to `path`'s spans. All of them must be named. */
FC_MUST_USE int fc_match_add_spans(struct fc_catalog *catalog, struct fc_path *path, const struct fc_key *keys,
				   uint32_t group, uint64_t block_first, uint64_t count);
void fc_path_reset(struct fc_path *path);
void fc_path_lease(struct fc_catalog *catalog, struct fc_path *path);

/* room.c: path blocks of a segment none of whose layer areas is longer than `area_bytes_max`, resume blocks included;
 * at least one granule. */
uint64_t fc_segment_blocks_max(const struct fc_geometry *geometry, uint64_t area_bytes_max);
uint64_t fc_room_chunks(const struct fc_superblock *superblock, uint64_t bytes);
/* How long its header and how many chunks it is. FC_EFULL when it could never fit. */
FC_MUST_USE int fc_segment_measure(struct fc_catalog *catalog, struct fc_segment *segment);
/* Places it, and reclaims for that what was used before `before`, or anything where that is NULL. FC_EFULL; FC_EAGAIN
 * when it is worth waiting: then the reservation goes to fc_space_wait(). */
FC_MUST_USE int fc_segment_take_room(struct fc_catalog *catalog, struct fc_segment *segment,
				     struct fc_reservation *reservation, const struct fc_session *before);
/* Something is on its way to be free, and that has not been waited for in vain too often. */
bool fc_space_is_worth_waiting(struct fc_catalog *catalog, struct fc_reservation *reservation);
void fc_space_wait(struct fc_catalog *catalog, struct fc_reservation *reservation);
void fc_space_wait_no_more(struct fc_catalog *catalog, struct fc_reservation *reservation);
/* All of them are tried again. */
void fc_space_wake(struct fc_catalog *catalog);

/* publish.c: notes a placed segment as the reservation's. */
FC_MUST_USE int fc_reservation_add(struct fc_catalog *catalog, struct fc_reservation *reservation,
				   struct fc_segment *segment);
/* What an abort does, but wakes nobody: who waits for space waits for a batch (commit.c), and each try
 * counts against it. */
void fc_reservation_undo(struct fc_catalog *catalog, struct fc_reservation *reservation);
/* publish.c: the segment's session holds those who keep the name of blocks that the segment has too. `takes_names`: it
 * publishes, and takes the names that it wins; else it only names what nobody names. */
FC_MUST_USE int fc_publish_depend_on_keepers(struct fc_catalog *catalog, struct fc_segment *segment, bool takes_names);
/* Some block of it would be gone after a restart without it. */
bool fc_publish_is_needed_as_backup(struct fc_catalog *catalog, const struct fc_segment *segment);

/* owners.c */
FC_MUST_USE int fc_owners_init(struct fc_catalog *catalog, const struct fc_owner *owners, uint32_t count,
			       struct fc_error *error);
void fc_owners_deinit(struct fc_catalog *catalog);
struct fc_owner_state *fc_owner_find(const struct fc_catalog *catalog, uint16_t tag);
/* All segments of the arenas are counted. */
void fc_owners_opened(struct fc_catalog *catalog);
bool fc_owner_has_room(const struct fc_owner_state *owner, uint64_t bytes); /* NULL has no limit */
/* What it could use more, at most, if all of its sessions that may be reclaimed were. NULL has no limit. */
uint64_t fc_owner_room_max(const struct fc_owner_state *owner);
/* Makes room in the quota of the segment's owner, which the segment must not yet use. FC_EFULL, FC_EAGAIN as in
 * fc_segment_take_room(). */
FC_MUST_USE int fc_owner_take_room(struct fc_catalog *catalog, const struct fc_segment *segment, bool may_reclaim,
				   struct fc_reservation *reservation);
/* Counts a save of `bytes_new` for which the quota has no `need_bytes`, and says why in `error`. */
void fc_owner_refuse(struct fc_owner_state *owner, uint64_t bytes_new, uint64_t need_bytes, struct fc_error *error);

/* placement.c: the rule of design FC-GVA, from the signals alone */
enum fc_medium fc_placement_choose(const struct fc_catalog_opts *opts, uint64_t turn, uint64_t context_tokens,
				   uint64_t previous_reply_tokens);

/* reclaim.c */
#define FC_STOOD_UPON (1ull << 63) /* in the orders: above all that may go alone */
/* Where the session belongs in the order of the medium's arena, and of its owner; 0: nowhere. */
uint64_t fc_reclaim_rank(const struct fc_catalog *catalog, const struct fc_session *session, enum fc_medium medium);
uint64_t fc_reclaim_owner_rank(const struct fc_session *session);
/* What its going would bring, where it has a place. */
uint64_t fc_reclaim_chunks_to_go(const struct fc_session *session, enum fc_medium medium);
uint64_t fc_reclaim_bytes_to_go(const struct fc_catalog *catalog, const struct fc_session *session);
/* All of its memory has a whole backup of its own: the scan behind session->is_backed_up. */
bool fc_reclaim_has_backups(const struct fc_session *session);
/* After anything that the ranks depend on has changed. */
void fc_reclaim_sort(struct fc_catalog *catalog, struct fc_session *session);
/* The same, after its segments have changed, or what they back up. */
void fc_reclaim_segments_changed(struct fc_catalog *catalog, struct fc_session *session);
/* It is about to be deleted. */
void fc_reclaim_forget(struct fc_catalog *catalog, struct fc_session *session);
/* Retires whole sessions, oldest first, until `chunks_wanted` more chunks are free or on their way to be, besides those
 * that others wait for. With `before`, none that was used after that session. */
void fc_reclaim_for(struct fc_catalog *catalog, struct fc_arena *arena, uint64_t chunks_wanted,
		    const struct fc_session *before);
/* Second copies that an opening has found go: they cost nobody anything. */
void fc_reclaim_spares(struct fc_catalog *catalog);
/* Chunks that could be had, free ones included, if all were reclaimed that may be. */
uint64_t fc_reclaim_room_max(const struct fc_arena *arena);
/* Some arena is used beyond its high watermark. */
bool fc_reclaim_is_wanted(const struct fc_catalog *catalog);
/* Keeps use below the high watermark, of all arenas. */
void fc_reclaim_to_watermarks(struct fc_catalog *catalog);
void fc_reclaim_tell_loss(struct fc_catalog *catalog, const struct fc_session *session);
/* Frees the session and all that stand on it; none of them is leased. */
void fc_reclaim_session(struct fc_catalog *catalog, struct fc_session *session);
/* The same for want of room in `arena`, which counts it. */
void fc_reclaim_counted(struct fc_catalog *catalog, struct fc_arena *arena, struct fc_session *session);
/* Retires whole sessions of the owner, least recently used first, until `bytes` more are leaving or free, or nothing
 * more of it can go. Never a session that one of another owner's stands on. */
void fc_reclaim_for_owner(struct fc_catalog *catalog, struct fc_owner_state *owner, uint64_t bytes);
/* `session` has lost blocks. Segments that have them too name them now; those whose head is gone are retired. */
void fc_reclaim_orphans(struct fc_catalog *catalog, struct fc_session *session);
/* The same in steps, for several sessions: they are noted, and kept; segments that have the blocks too name them now,
 * true if there were some; and all of it, until nothing is left to do. */
void fc_reclaim_has_lost(struct fc_catalog *catalog, struct fc_session *session);
bool fc_reclaim_take_over_lost(struct fc_catalog *catalog);
void fc_reclaim_work_off_losses(struct fc_catalog *catalog);

/* revive.c: these VISIBLE segments, by their commit_link, could not be made durable, and go. Segments that they
 * replaced, and that are still whole on their medium, are named again where nothing else names their blocks. */
void fc_withdraw(struct fc_catalog *catalog, struct fc_link *refused);

/* spill.c: the session's memory is to go to SSD; it has some. `is_for_room`: or nowhere, if it finds none there. */
void fc_spill_want(struct fc_catalog *catalog, struct fc_session *session, bool is_for_room);
/* A copy could not be written, or not made durable. After a few the session wants it no more. */
void fc_spill_has_failed(struct fc_session *session);

/* commit.c */
FC_MUST_USE int fc_commit_init(struct fc_arena *arena);
/* Takes the memory that making the segment durable needs: before it is visible. FC_ENOMEM. */
FC_MUST_USE int fc_commit_prepare(struct fc_catalog *catalog, struct fc_segment *segment);
void fc_commit_forget(const struct fc_catalog *catalog, struct fc_segment *segment); /* gives it back */
void fc_commit_queue(struct fc_catalog *catalog, struct fc_segment *segment);
void fc_free_queue(struct fc_catalog *catalog, struct fc_segment *segment);
/* Starts a batch if there is something to do and none runs: after one that failed. */
void fc_commit_kick(struct fc_arena *arena);
void fc_commit_deinit(struct fc_arena *arena);
/* rebuild.c: after the segments of all arenas are there, with their chunks and sessions but not adopted */
FC_MUST_USE int fc_rebuild(struct fc_catalog *catalog);

/* recover.c */
void fc_open_deinit(struct fc_catalog *catalog);

#endif
