/* One example of every message, and every message by its type: what the tests of the wire, its fuzz target and the
 * seeds of that share. Whatever does not hold is an fc_check(). */
#ifndef FC_TESTS_WIRE_MESSAGES_H
#define FC_TESTS_WIRE_MESSAGES_H

#include "base/tracked_alloc.h"
#include "wire/wire.h"

/* What both sides know, and a path of six blocks of geometry_hybrid(1), one more than which is stored:
 *
 *     segment    medium   blocks of group 0   1        2        3
 *     0          memory   0 to 3              0, 1
 *     1          SSD      4, 5                2
 *     2          SSD                                   4, 5     5      */
struct messages {
	struct fc_geometry geometry;
	struct fc_wire_welcome welcome;
	struct fc_range ranges[3][2];
	struct fc_shape shapes[3];
	struct fc_placed placed[3];
	struct fc_span spans[6];
	struct fc_path path; /* of the arrays above: never deinit it */
	struct fc_grant grants[2];
	struct fc_reservation reservation;
	struct fc_key keys[7];
	uint64_t points[2];
};

void messages_init(struct messages *messages);

/* Appends example `number` of them, a whole frame; false when there is none of this number. */
bool messages_put(const struct messages *messages, unsigned number, struct fc_wire_buffer *buffer);

/* What messages are decoded into, again and again. */
struct decoded {
	const struct messages *messages;
	const struct fc_alloc *alloc;
	struct fc_path path;
	struct fc_reservation reservation;
	struct fc_key *keys;
	uint64_t key_room;
	uint64_t points[FC_WIRE_POINTS_MAX];
};

void decoded_init(struct decoded *decoded, const struct messages *messages, const struct fc_alloc *alloc);
void decoded_deinit(struct decoded *decoded);

/* Decodes a body, holds what comes of it against what wire.h promises, and appends it to `again` as a frame, which must
 * be the same bytes. Returns the code of the decoder; nothing is appended then. */
int decode_any(struct decoded *decoded, uint32_t type, uint64_t request, const uint8_t *body, uint64_t bytes,
	       struct fc_wire_buffer *again, struct fc_error *error);

#endif
