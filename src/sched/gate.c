#include "sched/gate.h"

#include "base/plant.h"

#define NS_PER_S 1000000000ull
#define BUSY_NS 3000000ull
#define BUSY_ANSWERS 4          /* of the quickest kind that `busy` lasts for */
#define ALONE_NS NS_PER_S       /* after a small load */
#define SPAN_BYTES (8ull << 20) /* that one measurement goes over */

void fc_gate_init(struct fc_gate *gate, struct fc_media *media, struct fc_clock clock, uint64_t patience_ns,
		  bool is_shared)
{
	*gate = (struct fc_gate){.media = media, .clock = clock, .patience_ns = patience_ns, .is_shared = is_shared};
	fc_list_init(&gate->lines);
}

void fc_gate_open(struct fc_gate *gate, struct fc_gate_line *line, const struct fc_sched_item *load)
{
	*line = (struct fc_gate_line){.gate = gate, .is_load = load != NULL};
	if (load != NULL) {
		line->item.arrival_ns = load->arrival_ns;
		line->item.sequence = load->sequence;
		line->item.ssd_bytes = load->ssd_bytes;
	}
	fc_list_init(&line->waiting);
	fc_list_push(&gate->lines, &line->link);
}

static struct fc_gate_line *line_of(struct fc_link *link)
{
	return fc_container_of(link, struct fc_gate_line, link);
}

static struct fc_io *first_of(const struct fc_gate_line *line)
{
	return fc_container_of(line->waiting.next, struct fc_io, link);
}

/* ---- how much ---- */

static uint64_t moved_in(uint64_t bytes_per_s, uint64_t ns)
{
	return (uint64_t)((unsigned __int128)bytes_per_s * ns / NS_PER_S);
}

uint64_t fc_gate_busy_bytes(const struct fc_gate *gate)
{
	uint64_t bytes = moved_in(gate->bytes_per_s, fc_max_u64(BUSY_NS, BUSY_ANSWERS * gate->quickest_ns));
	if (gate->bytes_per_s == 0)
		bytes = FC_GATE_BUSY_MAX;
	bytes = fc_min_u64(fc_max_u64(bytes, FC_GATE_BUSY_MIN),
			   gate->is_shared ? FC_GATE_SHARED_MAX : FC_GATE_BUSY_MAX);
	return gate->is_alone ? FC_GATE_ALONE_FACTOR * bytes : bytes;
}

uint64_t fc_gate_beside_bytes(const struct fc_gate *gate)
{
	uint64_t bytes = moved_in(gate->bytes_per_s, gate->quickest_ns);
	return fc_min_u64(fc_max_u64(bytes, FC_GATE_BESIDE_MIN), fc_gate_busy_bytes(gate));
}

static uint64_t cost_of(const struct fc_io *io)
{
	return fc_max_u64(io->bytes, FC_GATE_COST_MIN);
}

static void begin_span(struct fc_gate *gate, uint64_t now_ns)
{
	gate->span_begin_ns = now_ns;
	gate->span_bytes = 0;
	gate->is_span_full = false;
}

static void measure_answer(struct fc_gate *gate, uint64_t now_ns)
{
	uint64_t answer_ns = now_ns - gate->alone_since_ns;
	if (gate->alone_since_ns != 0)
		gate->quickest_ns = gate->quickest_ns == 0 ? answer_ns : fc_min_u64(gate->quickest_ns, answer_ns);
	gate->alone_since_ns = 0;
}

/* Half old, half new, so that one slow span does not undo the others. */
static void measure_speed(struct fc_gate *gate, uint64_t bytes, uint64_t now_ns)
{
	gate->span_bytes += bytes;
	if (gate->span_bytes < SPAN_BYTES)
		return;
	uint64_t span_ns = now_ns - gate->span_begin_ns;
	if (gate->is_span_full && span_ns > 0) {
		uint64_t bytes_per_s = (uint64_t)((unsigned __int128)gate->span_bytes * NS_PER_S / span_ns);
		gate->bytes_per_s = gate->bytes_per_s == 0 ? bytes_per_s : gate->bytes_per_s / 2 + bytes_per_s / 2;
	}
	begin_span(gate, now_ns);
}

/* ---- who is about ---- */

static bool is_small(const struct fc_gate_line *line)
{
	return line->is_load && line->item.ssd_bytes < FC_GATE_ALONE_MAX;
}

static void look_for_small(struct fc_gate *gate, uint64_t now_ns)
{
	fc_list_for_each(link, &gate->lines)
	{
		if (is_small(line_of(link)))
			gate->small_seen_ns = now_ns;
	}
	bool is_long_ago = gate->small_seen_ns == 0 || now_ns - gate->small_seen_ns >= ALONE_NS;
	gate->is_alone = is_long_ago && !gate->is_shared;
}

/* ---- in which order ---- */

static bool goes_before(const struct fc_gate_line *a, const struct fc_gate_line *b, uint64_t now_ns)
{
	if (fc_is_planted(FC_PLANT_GATE_IN_ORDER))
		return false;
	if (a->is_load != b->is_load)
		return a->is_load;
	return a->is_load && fc_sched_goes_before(&a->item, &b->item, now_ns);
}

/* The line to send of, loads or others; NULL: none waits. Earlier opened ones first among equals. */
static struct fc_gate_line *first_line(struct fc_gate *gate, bool is_load, uint64_t now_ns)
{
	struct fc_gate_line *best = NULL;
	fc_list_for_each(link, &gate->lines)
	{
		struct fc_gate_line *line = line_of(link);
		if (fc_list_is_empty(&line->waiting) || line->is_lost || line->is_load != is_load)
			continue;
		if (best == NULL || goes_before(line, best, now_ns))
			best = line;
	}
	return best;
}

/* Most bytes that may be with the medium when a command of the line has gone. */
static uint64_t room_of(const struct fc_gate_line *line, uint64_t now_ns)
{
	const struct fc_gate *gate = line->gate;
	uint64_t room = fc_gate_busy_bytes(gate), beside = fc_gate_beside_bytes(gate);
	fc_list_for_each(link, &gate->lines)
	{
		const struct fc_gate_line *other = line_of(link);
		bool is_before = other != line && other->is_load && !other->is_lost && goes_before(other, line, now_ns);
		if (is_before && !fc_is_planted(FC_PLANT_FULL_BESIDE))
			room = fc_min_u64(room, fc_max_u64(beside, other->part_bytes));
	}
	return room;
}

static bool has_room(struct fc_gate_line *line, uint64_t now_ns)
{
	struct fc_gate *gate = line->gate;
	if (gate->in_flight_count == 0)
		return true;
	if (gate->in_flight_count >= gate->media->queue_depth)
		return false;
	uint64_t wanted = gate->in_flight_cost + cost_of(first_of(line));
	if (wanted > fc_gate_busy_bytes(gate))
		gate->is_span_full = true;
	return wanted <= room_of(line, now_ns);
}

static bool is_out_of_patience(const struct fc_gate_line *line, uint64_t now_ns)
{
	return line->in_flight_count == 0 && !fc_list_is_empty(&line->waiting) &&
	       now_ns - line->waiting_since_ns >= line->gate->patience_ns;
}

/* ---- sending ---- */

static void count_credit(struct fc_gate *gate, const struct fc_gate_line *line, uint64_t bytes, uint64_t now_ns)
{
	if (!line->is_load)
		gate->write_credit -= fc_min_u64(gate->write_credit, bytes);
	else if (first_line(gate, false, now_ns) != NULL)
		gate->write_credit = fc_min_u64(gate->write_credit + bytes / FC_GATE_WRITE_SHARE, FC_GATE_BUSY_MAX);
	else
		gate->write_credit = 0;
}

static void send(struct fc_gate_line *line, uint64_t now_ns)
{
	struct fc_gate *gate = line->gate;
	struct fc_io *io = first_of(line);
	fc_list_remove(&io->link);
	if (!gate->is_busy)
		begin_span(gate, now_ns);
	gate->is_busy = true;
	gate->alone_since_ns = gate->in_flight_count == 0 && io->op == FC_IO_READ ? now_ns : 0;
	gate->in_flight_cost += cost_of(io);
	gate->in_flight_count++;
	line->in_flight_cost += cost_of(io);
	line->in_flight_count++;
	count_credit(gate, line, io->bytes, now_ns);
	fc_media_submit(gate->media, io);
}

static void send_impatient(struct fc_gate *gate, uint64_t now_ns)
{
	fc_list_for_each(link, &gate->lines)
	{
		if (is_out_of_patience(line_of(link), now_ns))
			send(line_of(link), now_ns);
	}
}

/* The line whose turn it is: one of saves if they have a share to claim and room to do so. */
static struct fc_gate_line *next_line(struct fc_gate *gate, uint64_t now_ns)
{
	struct fc_gate_line *write = first_line(gate, false, now_ns);
	struct fc_gate_line *load = first_line(gate, true, now_ns);
	bool is_due = write != NULL &&
		      (gate->write_credit >= first_of(write)->bytes || fc_is_planted(FC_PLANT_SAVE_BEFORE_LOAD));
	if (load == NULL || (is_due && has_room(write, now_ns)))
		return write;
	return load;
}

void fc_gate_step(struct fc_gate *gate)
{
	if (fc_list_is_empty(&gate->lines))
		return;
	uint64_t now_ns = fc_clock_now_ns(&gate->clock);
	look_for_small(gate, now_ns);
	send_impatient(gate, now_ns);
	for (;;) {
		struct fc_gate_line *line = next_line(gate, now_ns);
		if (line == NULL || !has_room(line, now_ns))
			break;
		send(line, now_ns);
	}
	gate->is_busy = gate->in_flight_count > 0;
}

void fc_gate_close(struct fc_gate_line *line)
{
	fc_check(fc_list_is_empty(&line->waiting) && line->in_flight_count == 0);
	look_for_small(line->gate, fc_clock_now_ns(&line->gate->clock));
	fc_list_remove(&line->link);
}

void fc_gate_add(struct fc_gate_line *line, struct fc_io *io)
{
	if (fc_list_is_empty(&line->waiting) && line->in_flight_count == 0)
		line->waiting_since_ns = fc_clock_now_ns(&line->gate->clock);
	fc_list_push(&line->waiting, &io->link);
}

void fc_gate_send(struct fc_gate_line *line, uint64_t bytes)
{
	line->part_bytes = fc_max_u64(line->part_bytes, bytes);
	fc_gate_step(line->gate);
}

void fc_gate_ended(struct fc_gate_line *line, const struct fc_io *io)
{
	struct fc_gate *gate = line->gate;
	uint64_t now_ns = fc_clock_now_ns(&gate->clock);
	line->in_flight_cost -= cost_of(io);
	line->in_flight_count--;
	if (line->in_flight_count == 0)
		line->waiting_since_ns = now_ns;
	if (!line->is_lost) {
		gate->in_flight_cost -= cost_of(io);
		gate->in_flight_count--;
		measure_answer(gate, now_ns);
		measure_speed(gate, io->bytes, now_ns);
	}
	line->is_lost = line->is_lost && line->in_flight_count > 0;
	fc_gate_step(gate);
}

void fc_gate_give_up(struct fc_gate_line *line)
{
	struct fc_gate *gate = line->gate;
	if (line->is_lost || line->in_flight_count == 0)
		return;
	line->is_lost = true;
	gate->in_flight_cost -= line->in_flight_cost;
	gate->in_flight_count -= line->in_flight_count;
	gate->alone_since_ns = 0;
	fc_gate_step(gate);
}

uint64_t fc_gate_wake_ns(const struct fc_gate *gate)
{
	uint64_t wake_ns = UINT64_MAX, limit_ns;
	fc_list_for_each(link, &gate->lines)
	{
		const struct fc_gate_line *line = line_of(link);
		if (line->in_flight_count == 0 && !fc_list_is_empty(&line->waiting) &&
		    !fc_add_overflows(line->waiting_since_ns, gate->patience_ns, &limit_ns))
			wake_ns = fc_min_u64(wake_ns, limit_ns);
	}
	return wake_ns;
}
