/* The directory: what the core asks for everything that only the owner of the arenas knows.
 *
 * core/local.c answers from a catalog in the same process, at once, or later when room has to be made. client/ asks a
 * daemon and answers when its reply has come (docs/daemon.md). The core cannot tell them apart: an answer may come from
 * inside the call that asked, or from inside any later poll().
 *
 *   match     asked --answered--> the path is leased (if it has blocks) --release--> gone
 *                '---forget-----> never answered; a lease that it still gets is given back by the directory
 *   claim     asked --answered--> RESERVED --commit--> asked again --answered--> visible --> durable_cb, if announced
 *                |                   |
 *                '------abort--------'----> never answered; nothing of it stays
 *
 * Every question is answered, in bounded time, also when the other side is dead: with an error, with a path of no
 * blocks, or, for a claim that was lost after it had been answered, through `lost_cb`. One thread; memory of a question
 * is the asker's and must stay until it is answered, forgotten or aborted. */
#ifndef FC_CORE_DIRECTORY_H
#define FC_CORE_DIRECTORY_H

#include "catalog/catalog.h"

struct fc_directory;

struct fc_lookup {
	struct fc_link link; /* the directory's while it is asked */
	uint64_t request;    /* the directory's */
	uint64_t asked_ns;   /* the directory's */
	const struct fc_key *keys;
	uint64_t key_count;
	uint64_t blocks_max; /* 0: key_count */
	bool is_unleased;    /* only to know: the path's segments may go at any time */
	struct fc_path *path;
	int code; /* FC_OK or FC_ENOMEM */
	void (*answered_cb)(struct fc_lookup *lookup);
};

enum fc_claim_state {
	FC_CLAIM_NONE = 0,
	FC_CLAIM_ASKED = 1,    /* for space */
	FC_CLAIM_RESERVED = 2, /* may be written */
	FC_CLAIM_COMMITTING = 3,
	FC_CLAIM_VISIBLE = 4, /* until durable_cb */
	FC_CLAIM_LOST = 5,    /* until abort() */
};

/* A turn on its way into the store. */
struct fc_claim {
	struct fc_link link;       /* the directory's */
	enum fc_claim_state state; /* the directory's */
	uint64_t request;          /* the directory's */
	uint64_t asked_ns;         /* the directory's */
	bool may_try;              /* the directory's */
	struct fc_turn turn;       /* its arrays stay until the commit has been answered */
	struct fc_reservation
		reservation;   /* reservation.durable_cb is the directory's, claim->durable_cb the asker's */
	int code;              /* of the last answer */
	struct fc_error error; /* why, when the code of a reserve is not 0 */
	void (*reserved_cb)(struct fc_claim *claim); /* not FC_OK: nothing is held */
	void (*visible_cb)(struct fc_claim *claim);  /* not FC_OK: nothing is held */
	void (*durable_cb)(
		struct fc_claim *claim);         /* after visible_cb, if reservation.durable_pending was not 0 then */
	void (*lost_cb)(struct fc_claim *claim); /* RESERVED, and not held any more: what is written of it must not be
						  * committed. The asker stops writing and aborts */
};

enum fc_question_kind {
	FC_QUESTION_SESSION = 1, /* session -> blocks, or FC_ENOENT */
	FC_QUESTION_STATS = 2,   /* -> stats of the arenas and the index */
};

struct fc_question {
	struct fc_link link; /* the directory's while it is asked */
	uint64_t request;    /* the directory's */
	uint64_t asked_ns;   /* the directory's */
	enum fc_question_kind kind;
	struct fc_session_id session;
	uint64_t blocks;
	struct fc_stats stats;
	int code; /* FC_EAGAIN: whoever knows cannot be reached */
	void (*answered_cb)(struct fc_question *question);
};

struct fc_directory_ops {
	void (*match)(struct fc_directory *directory, struct fc_lookup *lookup);
	void (*forget)(struct fc_directory *directory, struct fc_lookup *lookup);
	void (*release)(struct fc_directory *directory, struct fc_path *path);
	/* A slice of a leased path, or of a claim's sources, was bad: its checksum did not match, or it could not be
	 * read, also not when that was tried again. True: it is cut, and the next match does not find it. False:
	 * whoever owns the arena looks for itself, or waits and sees (below), so the asker must not rely on that. */
	bool (*cut)(struct fc_directory *directory, const struct fc_path *path, uint32_t placed, uint64_t entry,
		    bool is_checksum);
	void (*reserve)(struct fc_directory *directory, struct fc_claim *claim);
	void (*commit)(struct fc_directory *directory, struct fc_claim *claim);
	/* Of a claim that is ASKED, RESERVED or LOST; allowed, and nothing, in FC_CLAIM_NONE. */
	void (*abort)(struct fc_directory *directory, struct fc_claim *claim);
	void (*ask)(struct fc_directory *directory, struct fc_question *question);
	/* Gives answers that have become possible; returns how many. */
	unsigned (*poll)(struct fc_directory *directory);
	/* When poll() should be called at the latest; UINT64_MAX: whenever something else happens. */
	uint64_t (*wake_ns)(const struct fc_directory *directory);
};

struct fc_directory {
	const struct fc_directory_ops *ops;
	uint64_t progress; /* grows whenever something that a claim may wait for has moved */
};

/* ---- the catalog of this process as a directory (local.c) ---- */

#define FC_SUSPECTS_MAX 64u

/* A slice that could not be read. The drive may have been away for a moment, or for an hour, and all that it holds is
 * still good then. So nothing is cut before the error has shown that it stays:
 *
 *   good --told unreadable--> SUSPECT --told again, and its medium has moved bytes in between--> cut
 *                               ^  '--told again, and it has not: nothing is known of this place alone--.
 *                               '-----------------------------------------------------------------------'
 *
 * Only so many are remembered; the oldest is forgotten for a new one. */
struct fc_suspect {
	struct fc_gva base; /* of its segment */
	struct fc_key key;
	uint64_t moved_bytes; /* by its medium, until it was told */
};

struct fc_local_directory {
	struct fc_directory directory;
	struct fc_catalog *catalog;
	struct fc_media *media[FC_MEDIUM_COUNT];
	struct fc_link waiting; /* claims that wait for room, in the order they came */
	struct fc_suspect suspects[FC_SUSPECTS_MAX];
	uint32_t suspect_count, next_suspect;
};

/* `media` are the catalog's; borrowed. */
void fc_local_directory_init(struct fc_local_directory *local, struct fc_catalog *catalog,
			     struct fc_media *const media[FC_MEDIUM_COUNT]);

#endif
