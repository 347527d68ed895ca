/* Inspect: a store that nobody uses is opened for reading only, in the caller's thread, to be looked at. Recovery
 * happens in memory alone; nothing on a medium changes.
 *
 * The scan reads every slice of every segment, spare copies included, and holds it against its checksum: what `verify`
 * does. One thread. */
#ifndef FC_STORE_INSPECT_H
#define FC_STORE_INSPECT_H

#include "catalog/catalog.h"
#include "store/probe.h"

struct fc_inspect;

/* FC_EBUSY names the process that has the store open; else the errors of fc_store_probe(), FC_EIO and FC_ENOMEM. */
FC_MUST_USE int fc_inspect_open(struct fc_inspect **inspect, const struct fc_probe_opts *opts, struct fc_error *error);
/* NULL is allowed. */
void fc_inspect_close(struct fc_inspect *inspect);

struct fc_catalog *fc_inspect_catalog(struct fc_inspect *inspect);
const struct fc_probe *fc_inspect_probe(const struct fc_inspect *inspect);

struct fc_damage {
	struct fc_segment_info segment;
	uint32_t group, layer;
	uint64_t block;  /* counted in its group */
	bool is_unread;  /* the medium failed; else the checksum does not match */
	uint64_t offset; /* of the slice in its arena */
};

struct fc_scan_sums {
	uint64_t segments;      /* of sessions */
	uint64_t bytes_kept;    /* their chunks */
	uint64_t bytes_dropped; /* chunks of segments that recovery left out: unnamed, or without their head */
	uint64_t slices, bytes; /* that were read */
	uint64_t slices_damaged;
};

struct fc_scan {
	/* set by the caller; both may be NULL */
	void (*damage_cb)(void *context, const struct fc_damage *damage);
	void (*progress_cb)(void *context, uint64_t bytes_done); /* of the sum of bytes_kept */
	void *context;
	/* results */
	struct fc_scan_sums media[FC_MEDIUM_COUNT];
};

/* Reads everything. Damage is no error: it is counted and told. FC_ENOMEM. */
FC_MUST_USE int fc_inspect_scan(struct fc_inspect *inspect, struct fc_scan *scan, struct fc_error *error);

/* Bytes of kept segments: the end of the progress. */
uint64_t fc_inspect_bytes(struct fc_inspect *inspect);

#endif
