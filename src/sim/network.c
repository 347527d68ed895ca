#include "sim/network.h"

#include <stdlib.h>
#include <string.h>

static uint64_t choose_due(const struct fc_sim_stream *stream, struct fc_sim_network *network)
{
	uint64_t now_ns = network->notes->now_ns;
	uint64_t due_ns = now_ns + fc_random_below(&network->random, network->delay_ns_max + 1);
	if (stream->piece_count > 0)
		due_ns = fc_max_u64(due_ns, stream->pieces[stream->piece_count - 1].due_ns);
	return due_ns;
}

static void append(struct fc_sim_stream *stream, const uint8_t *bytes, uint64_t count)
{
	if (stream->used + count > stream->room) {
		stream->room = fc_max_u64(2 * stream->room, stream->used + count);
		stream->bytes = realloc(stream->bytes, stream->room);
		fc_check(stream->bytes != NULL);
	}
	memcpy(stream->bytes + stream->used, bytes, count);
	stream->used += count;
}

/* Most pieces are as long as they can be; some are cut short, down to a byte. */
static uint64_t choose_length(struct fc_sim_network *network, uint64_t count)
{
	uint64_t longest = fc_min_u64(count, network->piece_bytes_max);
	return fc_random_below(&network->random, 4) == 0 ? fc_random_between(&network->random, 1, longest) : longest;
}

uint64_t fc_sim_stream_send(struct fc_sim_stream *stream, struct fc_sim_network *network, const uint8_t *bytes,
			    uint64_t count)
{
	uint64_t taken = 0;
	if (stream->is_ended)
		return count;
	while (taken < count && stream->piece_count < FC_SIM_PIECES_MAX && stream->used < network->stream_bytes_max) {
		uint64_t length =
			choose_length(network, fc_min_u64(count - taken, network->stream_bytes_max - stream->used));
		uint64_t due_ns = choose_due(stream, network);
		append(stream, bytes + taken, length);
		stream->pieces[stream->piece_count++] = (struct fc_sim_piece){.bytes = length, .due_ns = due_ns};
		taken += length;
	}
	return taken;
}

uint64_t fc_sim_stream_due(const struct fc_sim_stream *stream, const struct fc_sim_network *network)
{
	bool is_due = stream->piece_count > 0 && stream->pieces[0].due_ns <= network->notes->now_ns;
	return is_due ? stream->pieces[0].bytes : 0;
}

void fc_sim_stream_drop(struct fc_sim_stream *stream)
{
	fc_check(stream->piece_count > 0);
	uint64_t bytes = stream->pieces[0].bytes;
	stream->used -= bytes;
	memmove(stream->bytes, stream->bytes + bytes, stream->used);
	stream->piece_count--;
	memmove(stream->pieces, stream->pieces + 1, stream->piece_count * sizeof(*stream->pieces));
}

void fc_sim_stream_end(struct fc_sim_stream *stream, struct fc_sim_network *network)
{
	if (stream->is_ended)
		return;
	stream->end_ns = choose_due(stream, network);
	stream->is_ended = true;
}

void fc_sim_stream_cut(struct fc_sim_stream *stream, struct fc_sim_network *network)
{
	uint64_t kept = fc_random_below(&network->random, stream->used + 1), sum = 0;
	uint32_t count = 0;
	for (; count < stream->piece_count && sum < kept; count++) {
		struct fc_sim_piece *piece = &stream->pieces[count];
		piece->bytes = fc_min_u64(piece->bytes, kept - sum);
		sum += piece->bytes;
	}
	stream->piece_count = count;
	stream->used = kept;
	fc_sim_stream_end(stream, network);
}

bool fc_sim_stream_is_over(const struct fc_sim_stream *stream, const struct fc_sim_network *network)
{
	return stream->is_ended && stream->piece_count == 0 && stream->end_ns <= network->notes->now_ns;
}

uint64_t fc_sim_stream_next_ns(const struct fc_sim_stream *stream)
{
	if (stream->piece_count > 0)
		return stream->pieces[0].due_ns;
	return stream->is_ended ? stream->end_ns : UINT64_MAX;
}

void fc_sim_stream_deinit(struct fc_sim_stream *stream)
{
	free(stream->bytes);
	*stream = (struct fc_sim_stream){0};
}
