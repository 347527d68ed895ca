/* The keys of a request's blocks, and the oracle's numbers for them.
 *
 * A trace names blocks by ids; a key is the hash of an id and the key before it, as an engine would hash tokens. A
 * request shares nearly all of its path with the one before it on its line, so a line keeps one path, of which each
 * request changes the end. The reply's blocks, which the trace shows in the line's next request, lie behind the
 * input's. */
#ifndef FC_REPLAY_PATHS_H
#define FC_REPLAY_PATHS_H

#include "replay/oracle.h"
#include "trace/trace.h"

struct fc_turn_path {
	struct fc_key *keys;
	uint32_t *numbers;
	uint64_t room;
	uint64_t input_count; /* blocks of the request's input */
	uint64_t count;       /* with those of its reply */
	uint32_t request;     /* that it was made for */
};

/* Keys and numbers of all that a trace names, made once for several replays of it; constant then. By place in
 * trace->suffix_ids: what stands there belongs to one request, and so has one path. */
struct fc_path_table {
	const struct fc_trace *trace;
	struct fc_key *keys;
	uint32_t *numbers;
	uint32_t number_count;
};

/* FC_ENOMEM, FC_ELIMIT. fc_path_table_deinit() also after a failure. */
FC_MUST_USE int fc_path_table_init(struct fc_path_table *table, const struct fc_trace *trace, const char *model);
void fc_path_table_deinit(struct fc_path_table *table);

struct fc_paths {
	const struct fc_trace *trace;
	struct fc_oracle *oracle;
	struct fc_namespace name_space;
	bool is_storing_replies;
	const struct fc_path_table *table; /* NULL: hashed on the way */
	struct fc_turn_path *lines;
};

/* `model`: what the keys are to depend on besides the ids. FC_ENOMEM. */
FC_MUST_USE int fc_paths_init(struct fc_paths *paths, const struct fc_trace *trace, struct fc_oracle *oracle,
			      const char *model, bool is_storing_replies);
void fc_paths_deinit(struct fc_paths *paths);

/* The same from a table, which has given the new oracle its numbers. */
FC_MUST_USE int fc_paths_init_from(struct fc_paths *paths, const struct fc_path_table *table, struct fc_oracle *oracle,
				   bool is_storing_replies);

/* The path of a request; those before it on its line must have been asked for, and ended, before. Borrowed until
 * fc_paths_end() is called for the request. FC_ENOMEM, FC_ELIMIT. */
FC_MUST_USE int fc_paths_begin(struct fc_paths *paths, uint32_t request, struct fc_turn_path **path);
void fc_paths_end(struct fc_paths *paths, struct fc_turn_path *path);

#endif
