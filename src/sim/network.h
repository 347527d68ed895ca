/* A stream of bytes on its way, as a socket carries it: in order, in pieces of any length, each of which takes its
 * time. Streams do not wait for each other. A stream can be cut at any byte; whoever reads it comes to its end then. */
#ifndef FC_SIM_NETWORK_H
#define FC_SIM_NETWORK_H

#include "base/alloc.h"
#include "base/random.h"
#include "sim/note.h"

#define FC_SIM_PIECES_MAX 48u

/* What the seed decides. */
struct fc_sim_network {
	struct fc_sim_notes *notes;
	struct fc_alloc alloc; /* of nobody in the world */
	struct fc_random random;
	uint64_t delay_ns_max;
	uint64_t piece_bytes_max;
	uint64_t stream_bytes_max; /* under way: more is not taken from who sends */
};

struct fc_sim_piece {
	uint64_t bytes, due_ns;
};

struct fc_sim_stream {
	uint8_t *bytes; /* of all pieces */
	uint64_t used, room;
	struct fc_sim_piece pieces[FC_SIM_PIECES_MAX];
	uint32_t piece_count;
	bool is_ended; /* nothing follows the last piece */
	uint64_t end_ns;
};

/* Takes as much from the front of `bytes` as there is room for; returns how much. What is sent behind the end is lost.
 */
uint64_t fc_sim_stream_send(struct fc_sim_stream *stream, struct fc_sim_network *network, const uint8_t *bytes,
			    uint64_t count);
/* The first piece if it is due: its bytes lie at stream->bytes. 0: none. */
uint64_t fc_sim_stream_due(const struct fc_sim_stream *stream, const struct fc_sim_network *network);
void fc_sim_stream_drop(struct fc_sim_stream *stream);
/* Whoever sends has closed it. */
void fc_sim_stream_end(struct fc_sim_stream *stream, struct fc_sim_network *network);
/* The same, and what is under way is lost from some byte on. */
void fc_sim_stream_cut(struct fc_sim_stream *stream, struct fc_sim_network *network);
/* Everything has been read, and the end is due. */
bool fc_sim_stream_is_over(const struct fc_sim_stream *stream, const struct fc_sim_network *network);
/* When there is something to read; UINT64_MAX: nothing. */
uint64_t fc_sim_stream_next_ns(const struct fc_sim_stream *stream);
void fc_sim_stream_deinit(struct fc_sim_stream *stream);

#endif
