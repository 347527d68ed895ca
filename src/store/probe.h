/* Probe: what lies in a store's folder, without opening, locking or changing anything. How a tool that was told no
 * model learns the geometry of a store. */
#ifndef FC_STORE_PROBE_H
#define FC_STORE_PROBE_H

#include "format/arena.h"

struct fc_probe_opts {
	const char *dir;         /* the store's folder */
	const char *ssd_path;    /* NULL: "ssd.arena" in the folder */
	const char *memory_path; /* NULL: the store has no memory that outlives a process */
};

struct fc_probe {
	bool has_arena[FC_MEDIUM_COUNT];
	uint64_t bytes[FC_MEDIUM_COUNT]; /* of the file or device */
	struct fc_superblock superblocks[FC_MEDIUM_COUNT];
};

/* FC_ENOENT when there is no arena at all; FC_EFORMAT for a file that is none; FC_EGEOMETRY when the two arenas of a
 * store disagree; FC_ESYSTEM. The error names the path. */
FC_MUST_USE int fc_store_probe(struct fc_probe *probe, const struct fc_probe_opts *opts, struct fc_error *error);

/* Of the arena that was found, the SSD's first. */
const struct fc_geometry *fc_probe_geometry(const struct fc_probe *probe);

/* Path of the SSD arena, to be freed; NULL without memory. */
char *fc_probe_ssd_path(const struct fc_probe_opts *opts);

#endif
