/* Reports of clients about their own queues and streams, and their sum.
 *
 * What a client counts must not fall while it is connected, or the sum would; what it says of itself is believed beyond
 * that, and shown as its own. Sums are kept in place: a report adds what has been added since the last one. */
#include "server/state.h"

#include <string.h>

/* A sum of as many counters as there can be connections stays below 2^64 when each stays below this. */
#define COUNTER_MAX (1ull << 56)

#define TIMES_FIELDS (FC_WIRE_TIME_BUCKETS + 1)
#define COUNTER_FIELDS (15 + 3 * TIMES_FIELDS)
#define NOW_FIELDS 4

static void list_times(struct fc_wire_times *times, uint64_t **fields)
{
	for (int i = 0; i < FC_WIRE_TIME_BUCKETS; i++)
		fields[i] = &times->counts[i];
	fields[FC_WIRE_TIME_BUCKETS] = &times->sum_ns;
}

/* Everything of a report that only grows. */
static void list_counters(struct fc_wire_report *report, uint64_t *fields[COUNTER_FIELDS])
{
	uint64_t *listed[] = {
		&report->loads,
		&report->loads_hit,
		&report->saves,
		&report->loads_failed,
		&report->saves_failed,
		&report->blocks_possible,
		&report->blocks_delivered,
		&report->bytes_wanted[FC_MEMORY],
		&report->bytes_wanted[FC_SSD],
		&report->bytes_read,
		&report->read_commands,
		&report->bytes_written[FC_MEMORY],
		&report->bytes_written[FC_SSD],
		&report->checksum_failures,
		&report->io_errors,
	};
	_Static_assert(fc_array_len(listed) + 3 * TIMES_FIELDS == COUNTER_FIELDS, "every counter is listed");
	memcpy(fields, listed, sizeof(listed));
	list_times(&report->load_time, fields + fc_array_len(listed));
	list_times(&report->first_layer_time, fields + fc_array_len(listed) + TIMES_FIELDS);
	list_times(&report->queue_wait, fields + fc_array_len(listed) + 2 * TIMES_FIELDS);
}

static void list_now(struct fc_wire_report *report, uint64_t *fields[NOW_FIELDS])
{
	fields[0] = &report->ready_length;
	fields[1] = &report->prepare_length;
	fields[2] = &report->loads_active;
	fields[3] = &report->saves_active;
}

/* Which field is wrong, by its place in the list, or -1. */
static int find_bad(struct fc_wire_report *before, struct fc_wire_report *after)
{
	uint64_t *old[COUNTER_FIELDS], *new[COUNTER_FIELDS], *now[NOW_FIELDS];
	list_counters(before, old);
	list_counters(after, new);
	list_now(after, now);
	for (int i = 0; i < COUNTER_FIELDS; i++)
		if (*new[i] < *old[i] || *new[i] > COUNTER_MAX)
			return i;
	for (int i = 0; i < NOW_FIELDS; i++)
		if (*now[i] > COUNTER_MAX)
			return COUNTER_FIELDS + i;
	return -1;
}

static uint64_t add_up_to_max(uint64_t sum, uint64_t more)
{
	uint64_t result;
	return fc_add_overflows(sum, more, &result) ? UINT64_MAX : result;
}

static void add(struct fc_wire_report *sum, struct fc_wire_report *before, struct fc_wire_report *after)
{
	uint64_t *sums[COUNTER_FIELDS], *old[COUNTER_FIELDS], *new[COUNTER_FIELDS];
	list_counters(sum, sums);
	list_counters(before, old);
	list_counters(after, new);
	for (int i = 0; i < COUNTER_FIELDS; i++)
		*sums[i] = add_up_to_max(*sums[i], *new[i] - *old[i]);
	list_now(sum, sums);
	list_now(before, old);
	list_now(after, new);
	for (int i = 0; i < NOW_FIELDS; i++)
		*sums[i] = *sums[i] - *old[i] + *new[i];
}

static void apply(struct fc_server_client *client, struct fc_wire_report *report)
{
	add(&client->server->report, &client->report, report);
	add(&client->space->report, &client->report, report);
	client->report = *report;
}

void fc_server_client_report(struct fc_server_client *client, const uint8_t *body, uint64_t bytes)
{
	struct fc_wire_report *report = &client->server->report_in;
	struct fc_error error = {0};
	if (fc_wire_get_report(report, body, bytes, &error) != FC_OK) {
		fc_server_client_fail(client, FC_SERVER_PROTOCOL_ERROR, "%s", error.text);
		return;
	}
	int bad = find_bad(&client->report, report);
	if (bad >= 0) {
		fc_server_client_fail(client, FC_SERVER_PROTOCOL_ERROR,
				      "REPORT: field %d has fallen, or is above 2^56; counters only grow", bad);
		return;
	}
	apply(client, report);
	client->reported_ns = fc_server_now_ns(client->server);
}

void fc_report_forget(struct fc_server_client *client)
{
	if (client->space == NULL)
		return;
	struct fc_wire_report *last = &client->server->report_in;
	*last = client->report;
	last->ready_length = last->prepare_length = last->loads_active = last->saves_active = 0;
	last->waiter_count = 0;
	apply(client, last);
}
