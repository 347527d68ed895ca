#include "sim/order.h"

bool fc_sim_may_go_before(const struct fc_sched_item *a, const struct fc_sched_item *b, uint64_t now_ns)
{
	uint64_t wait_a = now_ns > a->arrival_ns ? now_ns - a->arrival_ns : 0;
	uint64_t wait_b = now_ns > b->arrival_ns ? now_ns - b->arrival_ns : 0;
	unsigned __int128 left = (unsigned __int128)wait_a * b->ssd_bytes;
	unsigned __int128 right = (unsigned __int128)wait_b * a->ssd_bytes;
	return left > right || (left == right && (a->arrival_ns < b->arrival_ns ||
						  (a->arrival_ns == b->arrival_ns && a->sequence < b->sequence)));
}

static const struct fc_gate_line *line_of(const struct fc_link *link)
{
	return fc_container_of(link, struct fc_gate_line, link);
}

/* Whether a line of loads, or of others, has commands that could go. */
static bool does_one_wait(const struct fc_gate *gate, bool is_load)
{
	fc_list_for_each(link, &gate->lines)
	{
		const struct fc_gate_line *line = line_of(link);
		if (line->is_load == is_load && !line->is_lost && !fc_list_is_empty(&line->waiting))
			return true;
	}
	return false;
}

struct with_medium {
	uint64_t cost, count;
};

static struct with_medium count_with_medium(const struct fc_gate *gate)
{
	struct with_medium sum = {0};
	fc_list_for_each(link, &gate->lines)
	{
		const struct fc_gate_line *line = line_of(link);
		sum.cost += line->is_lost ? 0 : line->in_flight_cost;
		sum.count += line->is_lost ? 0 : line->in_flight_count;
	}
	return sum;
}

static void check_beside(struct fc_sim_notes *notes, const struct fc_gate_line *line, const struct fc_gate_line *other,
			 struct with_medium sum)
{
	uint64_t room = fc_max_u64(fc_gate_beside_bytes(line->gate), other->part_bytes);
	if (!fc_list_is_empty(&other->waiting) && line->is_load)
		fc_sim_broken(notes,
			      "gate: a command of a load of %llu bytes goes before that of one of %llu, against the "
			      "priority",
			      (unsigned long long)line->item.ssd_bytes, (unsigned long long)other->item.ssd_bytes);
	if (sum.count > 1 && sum.cost > room)
		fc_sim_broken(notes, "gate: beside a load that reads %llu bytes at a time, %llu are with the medium",
			      (unsigned long long)other->part_bytes, (unsigned long long)sum.cost);
}

/* Those before which it goes, or beside which. */
static void check_loads(struct fc_sim_notes *notes, const struct fc_gate_line *line)
{
	const struct fc_gate *gate = line->gate;
	uint64_t now_ns = fc_clock_now_ns(&gate->clock);
	struct with_medium sum = count_with_medium(gate);
	if (sum.count > 1 && sum.cost > FC_GATE_ALONE_MAX)
		fc_sim_broken(notes, "gate: %llu bytes are with the medium", (unsigned long long)sum.cost);
	fc_list_for_each(link, &gate->lines)
	{
		const struct fc_gate_line *other = line_of(link);
		if (other == line || !other->is_load || other->is_lost)
			continue;
		if (!line->is_load || fc_sim_may_go_before(&other->item, &line->item, now_ns))
			check_beside(notes, line, other, sum);
	}
}

static void check_share(struct fc_sim_order *order, struct fc_sim_notes *notes, const struct fc_gate *gate,
			const struct fc_io *io)
{
	if (does_one_wait(gate, true) && order->read_bytes < io->bytes * FC_GATE_WRITE_SHARE)
		fc_sim_broken(notes, "gate: %llu bytes are written before a load may read, and only %llu were read",
			      (unsigned long long)io->bytes, (unsigned long long)order->read_bytes);
}

void fc_sim_order_check(struct fc_sim_order *order, struct fc_sim_notes *notes, const struct fc_io *io)
{
	const struct fc_gate_line *line = fc_stream_line_of(io);
	if (line == NULL)
		return;
	const struct fc_gate *gate = line->gate;
	uint64_t waited_ns = fc_clock_now_ns(&gate->clock) - line->waiting_since_ns;
	bool is_owed = line->in_flight_count == 1 && waited_ns >= gate->patience_ns;
	if (!is_owed)
		check_loads(notes, line);
	if (!is_owed && !line->is_load)
		check_share(order, notes, gate, io);
	if (!line->is_load)
		order->read_bytes -= fc_min_u64(order->read_bytes, io->bytes * FC_GATE_WRITE_SHARE);
	else
		order->read_bytes = does_one_wait(gate, false) ? order->read_bytes + io->bytes : 0;
}
