/* FlatCake: a store for the attention KV cache of LLM servers, in which DRAM and SSD are peers.
 *
 * This is the whole public interface. A program opens a store, describes once where its paged KV lies, and then, for
 * each request of each conversation, loads the longest stored prefix and saves what the turn added.
 *
 * Units: bytes, tokens, blocks, nanoseconds; the name of every field says which.
 *
 * Errors: functions return 0 or a negative FC_E... code; `struct fc_error` (may be NULL) receives a sentence for a
 * person.
 *
 * Threads: any thread may call any function on an open store; calls on one load or save are made from one thread at a
 * time. Inside, one thread of the store's own does all work, so no call but the ..._wait ones ever waits on I/O.
 *
 * Processes: a store belongs to the process that opened it. In a child that was forked later every call on it returns
 * FC_ECANCELED, what frees only frees, and nothing of the store is kept open; the parent goes on. A child that needs a
 * store opens one.
 *
 * Pointers: where a NULL is not allowed, a function that returns a code answers FC_EINVAL, and any other does nothing
 * and returns 0, NULL or "" (fc_store_fd(): -1). What a function hands out through a pointer is NULL when it fails.
 * Handles that have been freed, or are none, cannot be told from good ones.
 *
 * Ownership: the caller keeps what it passes in; memory named by a load or a save (slots, keys) is borrowed as each
 * function says; what a function hands out is freed by the matching ..._free or ..._close.
 */
#ifndef FLATCAKE_H
#define FLATCAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FC_VERSION_MAJOR 0
#define FC_VERSION_MINOR 1
#define FC_VERSION_PATCH 0

/* ---- errors -------------------------------------------------------------------------------------------------------
 */

enum fc_code {
	FC_OK = 0,
	FC_EINVAL = -1,     /* an argument, option or file is wrong; the error text names it */
	FC_ENOMEM = -2,     /* no memory */
	FC_EIO = -3,        /* the medium failed, or moved fewer bytes than asked */
	FC_EFULL = -4,      /* no room, and nothing that may be reclaimed */
	FC_ENOENT = -5,     /* no such thing */
	FC_EBUSY = -6,      /* somebody else holds it; the error text names the holder */
	FC_EFORMAT = -7,    /* not a FlatCake arena, or one of another version or byte order */
	FC_EGEOMETRY = -8,  /* an arena of another geometry */
	FC_ECORRUPT = -9,   /* a checksum does not match */
	FC_ETIMEOUT = -10,  /* a time limit passed */
	FC_ECANCELED = -11, /* the caller cancelled it */
	FC_ELIMIT = -12,    /* a documented limit is reached */
	FC_ESYSTEM = -13,   /* a system call failed; the error text names it */
	FC_EAGAIN = -14,    /* not now; try after the next event */
};

#define FC_ERROR_TEXT_BYTES 512

struct fc_error {
	int code; /* an enum fc_code */
	char text[FC_ERROR_TEXT_BYTES];
};

/* A short fixed text for a code ("no room"); never NULL. */
const char *fc_code_text(int code);

/* ---- keys and namespaces ------------------------------------------------------------------------------------------
 */

/* The 128-bit name of a block. Two blocks have one key only if they were computed from the same tokens, after the same
 * tokens, in the same namespace. */
struct fc_key {
	uint64_t high;
	uint64_t low;
};

/* Everything besides the tokens that a block's bytes depend on. NULL strings count as empty. */
struct fc_namespace_opts {
	const char *model;       /* name or path as the operator knows it */
	const char *revision;    /* hash of the weights, or a version */
	const char *dtype;       /* of the KV, for example "fp8_e4m3" */
	const char *layout;      /* of a slice inside, for example "NHD" */
	const char *adapter;     /* LoRA or other, best as a hash of its weights (names are reused); "" for none */
	const char *tenant_salt; /* secret that separates tenants, "" for none */
	uint32_t rank;           /* of the tensor-parallel worker whose part of the heads this is */
	uint32_t rank_count;     /* 1 without tensor parallelism */
};

struct fc_namespace {
	unsigned char bytes[32];
};

/* Derives the secret that keys every hash of a namespace (BLAKE2b over length-prefixed fields). */
int fc_namespace_init(struct fc_namespace *name_space, const struct fc_namespace_opts *opts, struct fc_error *error);

/* Computes the keys of `block_count` consecutive blocks of `block_tokens` tokens each:
 * key[i] = BLAKE2b-128 keyed with the namespace over (key[i-1], tokens of block i). `parent` is the key before the
 * first of them, NULL at the start of a sequence. Callers with keys of their own (128 bits, chained) need not use this.
 */
int fc_key_chain(const struct fc_namespace *name_space, const struct fc_key *parent, const uint32_t *tokens,
		 uint32_t block_tokens, uint64_t block_count, struct fc_key *keys);

/* For tokens that only hold the place of something else, such as an image or a sound: two images have the same
 * placeholders. The key returned stands for `parent` (NULL at the start of a sequence) followed by that content, of
 * which a hash will do; give it to fc_key_chain() as the parent of the first block with such a token. FC_EINVAL without
 * content. */
int fc_key_for_content(const struct fc_namespace *name_space, const struct fc_key *parent, const void *content,
		       uint64_t content_bytes, struct fc_key *key);

/* ---- geometry -----------------------------------------------------------------------------------------------------
 */

#define FC_LAYERS_MAX 256
#define FC_GROUPS_MAX 8
#define FC_NAME_BYTES 64
#define FC_BLOCK_TOKENS_MAX 65536u
#define FC_SCALE_MAX 1000000u

/* What a prefix of T tokens needs of a group before an engine can resume from it. */
enum fc_rule {
	FC_RULE_ALL = 0,    /* every block of [0, T): full attention, MLA */
	FC_RULE_WINDOW = 1, /* the blocks that cover [T - window_tokens, T): sliding-window layers */
	FC_RULE_STATE = 2,  /* the one snapshot taken exactly at T: Mamba, linear attention */
};

/* Layers that share tokens per block and rule. A slice is one layer of one block; sizes may differ from layer to layer,
 * and 0 means that the layer has no part in this group. A model's layer may belong to several groups. */
struct fc_group {
	enum fc_rule rule;
	uint32_t tokens_per_block; /* a multiple of the geometry's block_tokens; ignored for FC_RULE_STATE */
	uint32_t window_tokens;    /* FC_RULE_WINDOW only */
	uint64_t slice_bytes[FC_LAYERS_MAX];
};

/* Two geometries are one when all of their fields are equal, the name among them: models of equal sizes differ in
 * nothing else. So the name says whatever the sizes do not (model, dtype of the KV), and stays as it is once something
 * is stored under it: an arena of another name is refused with FC_EGEOMETRY. Adapter, revision of the weights and
 * layout belong in the keys' namespace instead, where they share an arena. */
struct fc_geometry {
	char name[FC_NAME_BYTES]; /* 1 to 63 printable ASCII characters */
	uint32_t block_tokens;    /* tokens that one key names, 1 to FC_BLOCK_TOKENS_MAX */
	uint32_t layer_count;
	uint32_t group_count;
	struct fc_group groups[FC_GROUPS_MAX];
};

/* Checks every field and limit; the error names the group, the layer and the allowed range. */
int fc_geometry_check(const struct fc_geometry *geometry, struct fc_error *error);

/* Fills in a known model: "deepseek-v4-flash", "deepseek-v4-flash-bf16", "deepseek-v3", "llama-3.1-70b",
 * "llama-3.1-70b-fp8", "llama-3.1-8b", "qwen3-32b". Every slice is divided by `scale` (1 to FC_SCALE_MAX; at least 1
 * byte remains), which keeps the number of blocks, layers and commands and makes a trace fit a small disk.
 * `block_tokens` 0 means 64. FC_ENOENT with the list of names for an unknown one. */
int fc_geometry_preset(struct fc_geometry *geometry, const char *name, uint32_t block_tokens, uint32_t scale,
		       struct fc_error *error);

/* Name of the index-th preset, or NULL behind the last. */
const char *fc_geometry_preset_name(size_t index);

/* Bytes of one token over all layers of the groups with rule FC_RULE_ALL; 0 of what fc_geometry_check()
 * refuses. */
double fc_geometry_bytes_per_token(const struct fc_geometry *geometry);

/* ---- addresses ----------------------------------------------------------------------------------------------------
 */

enum fc_medium {
	FC_MEMORY = 0,
	FC_SSD = 1,
};
#define FC_MEDIUM_COUNT 2

/* A global virtual address: 4 bits medium, 12 bits node, 48 bits byte offset in that node's arena of that medium. */
struct fc_gva {
	uint64_t bits;
};

#define FC_GVA_OFFSET_BITS 48
#define FC_GVA_NODE_BITS 12

static inline struct fc_gva fc_gva_make(enum fc_medium medium, uint32_t node, uint64_t offset)
{
	struct fc_gva gva = {((uint64_t)medium << 60) | ((uint64_t)(node & 0xfff) << FC_GVA_OFFSET_BITS) |
			     (offset & ((1ull << FC_GVA_OFFSET_BITS) - 1))};
	return gva;
}
static inline enum fc_medium fc_gva_medium(struct fc_gva gva)
{
	return (enum fc_medium)(gva.bits >> 60);
}
static inline uint32_t fc_gva_node(struct fc_gva gva)
{
	return (uint32_t)(gva.bits >> FC_GVA_OFFSET_BITS) & 0xfff;
}
static inline uint64_t fc_gva_offset(struct fc_gva gva)
{
	return gva.bits & ((1ull << FC_GVA_OFFSET_BITS) - 1);
}

/* ---- the store ----------------------------------------------------------------------------------------------------
 */

struct fc_store;

enum fc_reclaim_order { FC_RECLAIM_LEAST_RECENTLY_USED = 0, FC_RECLAIM_OLDEST_CREATED = 1 };
enum fc_memory_reclaim { FC_MEMORY_DROP = 0, FC_MEMORY_SPILL = 1 };

/* Limits of the options below. What lies outside is refused by fc_store_open() before anything is made, with the name
 * of the option; the program's options have the same limits. */
#define FC_ARENA_BYTES_MAX (1ull << FC_GVA_OFFSET_BITS)
#define FC_CHUNK_BYTES_MIN (1u << 12)
#define FC_CHUNK_BYTES_MAX (1u << 30)
#define FC_CONTEXT_TOKENS_MAX (1ull << 40)
#define FC_WATERMARK_MIN 0.01
#define FC_CONSOLIDATE_RATIO_MAX 100
#define FC_STREAMS_MAX 1024u
#define FC_WINDOW_BYTES_MIN (1ull << 16)
#define FC_WINDOW_BYTES_MAX (1ull << 36)
#define FC_GAP_BYTES_MAX (1ull << 30)
#define FC_TRANSFER_BYTES_MAX (1ull << 30)
#define FC_QUEUE_DEPTH_MAX 4096u
#define FC_REQUESTS_MAX (1u << 20)
#define FC_IO_TIMEOUT_NS_MIN 1000000ull
#define FC_IO_TIMEOUT_NS_MAX 3600000000000ull

/* Fill with fc_store_opts_init(), then change what should differ. Sizes are bytes. */
struct fc_store_opts {
	size_t size;                        /* sizeof(struct fc_store_opts), set by fc_store_opts_init() */
	const struct fc_geometry *geometry; /* required */
	uint32_t node;                      /* 0 to 4095, stands in every address */

	uint64_t memory_bytes;   /* budget of the memory arena, up to FC_ARENA_BYTES_MAX; 0 for none */
	const char *memory_path; /* NULL: memory that ends with the process; else a file on tmpfs or hugetlbfs that
				    outlives it */
	uint64_t ssd_bytes;      /* budget of the SSD arena, up to FC_ARENA_BYTES_MAX; 0 for none */
	const char *ssd_path;    /* NULL: "ssd.arena" in the store's folder; else a file or block device */
	uint64_t chunk_bytes;    /* unit of allocation, a power of two, FC_CHUNK_BYTES_MIN to _MAX; 0: chosen from the
				    arena's size */

	/* FC-GVA: placement and reclaim */
	uint64_t agent_context_tokens; /* a context above this is an agent's and goes to SSD; up to
					  FC_CONTEXT_TOKENS_MAX */
	uint64_t long_reply_tokens;    /* a previous reply of at least this goes to SSD; up to FC_CONTEXT_TOKENS_MAX */
	double high_watermark; /* share of an arena in use above which sessions are reclaimed, FC_WATERMARK_MIN to 1 */
	double low_watermark;  /* ... until it is below this; no more than the high one */
	enum fc_reclaim_order reclaim_order;
	enum fc_memory_reclaim memory_reclaim; /* of a session that memory has no room for: FC_MEMORY_SPILL writes it
						  to SSD once if it was ever reused */
	double consolidate_ratio; /* absorb the last segment while it is no larger than this times the new one, up to
				   * FC_CONSOLIDATE_RATIO_MAX; 0: never
				   */

	/* FC-CIO and FC-MAS */
	uint32_t streams;        /* loads from SSD that run at once, each with a window of its own; 1 to FC_STREAMS_MAX.
				    One more, with a window of 4 MiB (or what one slice needs, or `window_bytes` if
				    that is less), is for loads that are short beside all of those */
	uint64_t window_bytes;   /* one stream's double buffer, FC_WINDOW_BYTES_MIN to _MAX, in multiples of 8 KiB; a
				    layer that exceeds half of it is read in parts. Two further windows are for saves */
	uint64_t gap_bytes;      /* gaps smaller than this are read through; up to FC_GAP_BYTES_MAX */
	uint64_t transfer_bytes; /* largest single command, up to FC_TRANSFER_BYTES_MAX, and never more than 1 MiB; 0:
				    what the device takes */
	uint32_t queue_depth;    /* commands in flight on the SSD, 1 to FC_QUEUE_DEPTH_MAX */
	uint32_t requests_max;   /* loads and saves that may exist at once, 1 to FC_REQUESTS_MAX */
	/* How long I/O may stand still, FC_IO_TIMEOUT_NS_MIN to _MAX. Whoever waits for I/O of which nothing has ended
	 * for so long is told FC_ETIMEOUT: loads, saves, and what waits to become durable. What that I/O may still
	 * touch stays out of use until it returns: the load's window, the save's space. While an arena does not answer,
	 * saves to it are refused with FC_ETIMEOUT; what is in memory is still loaded. With a daemon, a save that has
	 * waited so long for room ends with FC_ETIMEOUT. */
	uint64_t io_timeout_ns;

	/* with "unix:PATH": what flatcaked is told. The arenas, their sizes and the rules of placement are the daemon's
	 * then, and of the options above only those under FC-CIO and FC-MAS count, and the geometry must be the same */
	const char *daemon_namespace;  /* whose keys and quota; NULL: the default one */
	const char *daemon_program;    /* who this is, for its operator; NULL: nothing */
	uint64_t reconnect_timeout_ns; /* without a daemon for so long, nothing is stored as far as anybody can tell:
					* loads end with no blocks, saves with FC_EAGAIN. UINT64_MAX: waits without end
					*/
};

void fc_store_opts_init(struct fc_store_opts *opts);

/* Opens the store at `address`:
 *
 *   "dir:PATH"   embedded; PATH is a folder, made when missing with mode 0700. Formats arenas that do not exist,
 *                recovers those that do. FC_EBUSY names the process that holds it
 *   "unix:PATH"  the store of the flatcaked that listens at this socket, shared with its other clients. FC_ENOENT when
 *                nobody listens. When the daemon goes, what is being read goes on, the rest waits for the next one
 *                as long as `reconnect_timeout_ns` says, and nothing hangs. A daemon that leaves a match, a question or
 *                a commit without an answer for 10 s counts as gone; for the open, too, it has 10 s
 *
 * FC_EFORMAT and FC_EGEOMETRY say what was found and what was wanted, FC_EINVAL whose an arena is that belongs to
 * neither this user nor root; nothing is changed in those cases. FC_ETIMEOUT: the open stands
 * still, since a file system or device has not answered for io_timeout_ns, at least 5 s; it is given up, and what it
 * holds is let go of when it is answered. */
int fc_store_open(struct fc_store **store, const char *address, const struct fc_store_opts *opts,
		  struct fc_error *error);

/* What is not as was asked for: what works only by a fallback here (no io_uring, no direct I/O, memory that may not be
 * locked ...), an arena that cannot become as large, files that others could read. In sentences for the operator, to be
 * logged once after the open; "" when there is nothing to say. The store's, until it is closed. */
const char *fc_store_notice(const struct fc_store *store);

/* Ends every request (FC_ECANCELED), makes everything committed durable, and frees the store. NULL is allowed. Of the
 * store's functions none may be running or follow; loads, saves and KV descriptions that are still there can be waited
 * for, and are freed by their own functions as ever.
 *
 * It returns in any case: I/O of which nothing has ended for io_timeout_ns, at least 5 s, is left behind. A thread of
 * the store's then goes on until it returns, and keeps the store's memory and its lock on the arenas; until then they
 * cannot be opened again (FC_EBUSY), and this library must not be unloaded. The end of the process ends all of it. */
void fc_store_close(struct fc_store *store);

/* Returns once everything that was saved before the call is durable, or the error that prevented it: FC_ETIMEOUT when
 * what makes it durable has stood still for io_timeout_ns. It may become durable all the same. */
int fc_store_sync(struct fc_store *store, struct fc_error *error);

/* ---- where the engine's KV lies -----------------------------------------------------------------------------------
 */

/* One layer of one group in paged slots: slot s, piece p of a slice starts at base + s * slot_stride + p * piece_stride
 * and is slice_bytes / piece_count long. Two pieces serve layouts that keep K and V apart. */
struct fc_paged_layer {
	void *base;
	uint64_t slot_stride_bytes;
	uint64_t slot_count;
	uint64_t piece_stride_bytes;
	uint32_t piece_count; /* divides the slice's size */
};

struct fc_kv;

/* Describes an engine's KV: `layers[group * geometry.layer_count + layer]`. The array is copied; the KV memory must
 * stay until fc_kv_free(). Entries of layers that are not in a group are ignored. */
int fc_kv_register(struct fc_store *store, const struct fc_paged_layer *layers, struct fc_kv **kv,
		   struct fc_error *error);
void fc_kv_free(struct fc_kv *kv);

/* Slots of consecutive blocks of one group: slots[i] holds block `first_block + i`, counted in the group's own blocks
 * (position in tokens / tokens_per_block). For FC_RULE_STATE, block b is the snapshot taken behind key b. */
struct fc_slots {
	uint64_t first_block;
	uint64_t count;
	const uint64_t *slots;
};

/* ---- sessions -----------------------------------------------------------------------------------------------------
 */

/* Names a conversation. {0, 0} lets the store infer it from the deepest block that matches. */
struct fc_session_id {
	uint64_t high;
	uint64_t low;
};

/* Hashes any string (a header, a chat id) to a session id; never {0, 0}. */
struct fc_session_id fc_session_id_from_text(const char *text);

/* How many blocks of all groups the index finds in a session's segments; what it stands on counts for their owners.
 * FC_ENOENT when the store does not know it: it was never saved, or has been reclaimed. Waits for the store's thread,
 * never for I/O. */
int fc_session_blocks(struct fc_store *store, struct fc_session_id id, uint64_t *blocks);

/* ---- match and load -----------------------------------------------------------------------------------------------
 */

struct fc_match {
	uint64_t blocks;                 /* deepest resume point, in blocks of the geometry's block_tokens */
	uint64_t tokens;                 /* the same in tokens */
	uint64_t stored_blocks;          /* leading blocks present in every group with FC_RULE_ALL; at least `blocks` */
	uint64_t bytes[FC_MEDIUM_COUNT]; /* that a load would read, by medium */
	uint64_t segments;               /* that hold them */
};

/* How much of the path keys[0..key_count) is stored. Takes no lease, changes nothing. Waits for the store's thread,
 * never for I/O. */
int fc_match(struct fc_store *store, const struct fc_key *keys, uint64_t key_count, struct fc_match *match);

struct fc_load;

struct fc_load_opts {
	const struct fc_key *keys; /* the whole path; copied */
	uint64_t key_count;
	uint64_t blocks_max; /* load at most this many blocks; 0: all of key_count */
	struct fc_kv *kv;
	struct fc_slots slots[FC_GROUPS_MAX]; /* where each group's blocks go; copied. Groups under FC_RULE_ALL need all
						 blocks from 0 */
	uint64_t arrival_ns; /* the request's arrival on CLOCK_MONOTONIC; 0: now. Orders the ready queue */
	/* The load ends after this with FC_ETIMEOUT and no blocks, wherever it is, reading included; only a copy to the
	 * slots that is under way is waited for. 0: no limit but io_timeout_ns */
	uint64_t timeout_ns;
	bool is_started_when_ready; /* copy from memory at once instead of after fc_ready_take() */
	void *user;
};

struct fc_load_result {
	int code; /* 0, also for a prefix of 0 blocks; FC_ECANCELED, FC_ETIMEOUT; damage only shortens the prefix */
	uint64_t blocks; /* in place in every layer: a resume point */
	uint64_t tokens;
	uint64_t matched_blocks;         /* what the index promised */
	uint64_t bytes[FC_MEDIUM_COUNT]; /* wanted and delivered, by medium */
	uint64_t bytes_read;             /* from SSD, with gaps, checksums and alignment */
	uint64_t segments;               /* on SSD that were read from; planned_runs is at most this times the layers */
	uint64_t segments_in_memory;
	uint64_t planned_runs, read_commands;
	uint64_t queue_ns;     /* from submission to the first read or copy */
	uint64_t read_ns;      /* from then to the last byte in place */
	struct fc_error error; /* why, when code is not 0 */
};

int fc_load_submit(struct fc_store *store, const struct fc_load_opts *opts, struct fc_load **load,
		   struct fc_error *error);

/* Asks the load to end; its FC_EVENT_LOADED follows with FC_ECANCELED unless it was done already, as soon as nothing is
 * being copied to the slots. They may be touched until then. */
void fc_load_cancel(struct fc_load *load);

/* Waits until the load has ended. */
int fc_load_wait(struct fc_load *load, struct fc_load_result *result);

/* Frees the load and its lease; cancels and waits first when it has not ended. NULL is allowed. */
void fc_load_free(struct fc_load *load);

/* The next request to prefill, in order of arrival (FC-MAS): its prefix is in place, or entirely in memory, in which
 * case its copy starts now. FC_EAGAIN when none is ready. */
int fc_ready_take(struct fc_store *store, struct fc_load **load);

/* ---- save ---------------------------------------------------------------------------------------------------------
 */

struct fc_save;

struct fc_save_opts {
	struct fc_session_id session;
	const struct fc_key *keys; /* the whole path, from its first block; copied */
	uint64_t key_count;
	uint64_t shared_blocks; /* leading blocks that more than one conversation uses, by the engine's prefix tree; 0:
				   none known */
	uint64_t turn;          /* 0 for the first of a session */
	uint64_t previous_reply_tokens;
	struct fc_kv *kv;
	struct fc_slots
		slots[FC_GROUPS_MAX];  /* blocks that the device holds now; those already stored may be missing */
	const uint64_t *resume_points; /* further block counts to resume from, besides key_count; copied, may be NULL */
	uint64_t resume_point_count;
	void *user;
};

struct fc_save_result {
	int code; /* 0, FC_EFULL, FC_EIO, FC_ECANCELED ... : on failure nothing of the save is visible */
	struct fc_session_id session;            /* given or inferred */
	uint64_t blocks_new;                     /* not stored before */
	uint64_t bytes_written[FC_MEDIUM_COUNT]; /* with absorbed segments, headers and padding */
	uint64_t bytes_new;                      /* slices that were not stored before */
	uint64_t segments_absorbed;
	int durable_code; /* 0, or why it was visible and could not be made durable; FC_ETIMEOUT: nobody knows yet */
	bool is_durable;  /* what this save wrote outlives the process: none of it lies in memory that does not */
	struct fc_error error; /* why, when code or durable_code is not 0 */
};

/* Saves a turn: the blocks of the path that are not stored. Saving what is stored is free. The slots are borrowed until
 * FC_EVENT_SAVED. */
int fc_save_submit(struct fc_store *store, const struct fc_save_opts *opts, struct fc_save **save,
		   struct fc_error *error);
void fc_save_cancel(struct fc_save *save);

/* Waits until the save is visible to readers, or durable, or has failed. */
int fc_save_wait(struct fc_save *save, bool until_durable, struct fc_save_result *result);
void fc_save_free(struct fc_save *save);

/* ---- events -------------------------------------------------------------------------------------------------------
 */

enum fc_event_kind {
	FC_EVENT_LAYER = 1,   /* `layer` of the load is in place for its first `blocks` blocks, as are all before it. If
			       * damage is found on the way, layers start again from 0 with a smaller `blocks` */
	FC_EVENT_READY = 2,   /* the load has entered the ready queue */
	FC_EVENT_LOADED = 3,  /* the load has ended: fc_load_wait() returns at once */
	FC_EVENT_SAVED = 4,   /* the save is visible, or has failed */
	FC_EVENT_DURABLE = 5, /* the save has reached the disk, or could not */
};

struct fc_event {
	enum fc_event_kind kind;
	uint32_t layer;
	uint64_t blocks;
	struct fc_load *load;
	struct fc_save *save;
	void *user;
};

/* A descriptor that is readable while events wait. Owned by the store. */
int fc_store_fd(const struct fc_store *store);

/* Takes up to `event_max` events; returns how many. Never waits. Programs that use only the ..._wait calls need not
 * take events. */
size_t fc_store_events(struct fc_store *store, struct fc_event *events, size_t event_max);

/* ---- what the store says of itself --------------------------------------------------------------------------------
 */

/* Of an embedded store, and of a client of flatcaked: what is stored, and what was done with it, by all of its clients.
 * A client whose namespace stands in the daemon's settings is told what is its namespace's own: bytes_used,
 * bytes_stored, sessions, segments, extents, blocks, leases, what of it was reclaimed, absorbed and cut, the saves
 * refused for its quota, and what its clients have done; `bytes` is the arena's, and all else is 0. What clients of a
 * daemon have done is what they have reported to it, once a second: loads and saves, active ones too, queue lengths,
 * checksum_failures and io_errors. */
struct fc_medium_stats {
	uint64_t bytes;        /* capacity that segments may use */
	uint64_t bytes_used;   /* in chunks that are owned, quarantined ones included */
	uint64_t bytes_stored; /* slices named by the index */
	uint64_t sessions, segments, extents, blocks;
	uint64_t bytes_read, bytes_written, read_commands, write_commands;
	uint64_t sessions_reclaimed, bytes_reclaimed, segments_absorbed;
};

struct fc_stats {
	struct fc_medium_stats media[FC_MEDIUM_COUNT];
	uint64_t blocks;      /* in the index */
	uint64_t index_bytes; /* memory of the index and the keys */
	uint64_t loads, loads_active, saves, saves_active, leases;
	uint64_t ready_length, prepare_length;
	uint64_t bytes_wanted, planned_runs, segments_touched;
	uint64_t checksum_failures, io_errors, sessions_cut, segments_spilled, saves_refused;
	uint64_t recovered_segments, dropped_segments;
};

/* Counters only, however much is stored. Waits for the store's thread, and for the daemon's answer (at most 10 s).
 * FC_EINVAL: a NULL. FC_ECANCELED: the store is closing, or the daemon is gone. */
int fc_store_stats(struct fc_store *store, struct fc_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
