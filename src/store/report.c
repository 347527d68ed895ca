#include "store/report.h"

#include "base/check.h"

#define INTERVAL_NS 1000000000ull
#define BUCKET_FIRST_NS 1000000ull /* wire.h: bucket i ends at 1 ms x 2^(i/2) */

/* Bounds of every second bucket are powers of two; the ones between are sqrt(2) above. */
static void add_time(struct fc_wire_times *times, uint64_t ns)
{
	uint64_t bound_ns = BUCKET_FIRST_NS;
	uint32_t bucket = 0;
	for (; bucket + 1 < FC_WIRE_TIME_BUCKETS; bucket++) {
		uint64_t end_ns = bucket % 2 == 0 ? bound_ns : bound_ns + bound_ns * 41421 / 100000;
		if (ns <= end_ns)
			break;
		if (bucket % 2 == 1)
			bound_ns *= 2;
	}
	times->counts[bucket]++;
	times->sum_ns += ns;
}

static void add_load(struct fc_wire_report *sums, const struct fc_core_load *load, uint64_t now_ns)
{
	const struct fc_load_result *result = &load->result;
	sums->loads++;
	sums->loads_hit += result->code == FC_OK && result->blocks > 0;
	sums->loads_failed += result->code != FC_OK;
	sums->blocks_possible += result->matched_blocks;
	sums->blocks_delivered += result->blocks;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		sums->bytes_wanted[medium] += result->bytes[medium];
	sums->bytes_read += result->bytes_read;
	sums->read_commands += result->read_commands;
	if (result->code != FC_OK || result->blocks == 0)
		return;
	add_time(&sums->load_time, now_ns - load->submitted_ns);
	add_time(&sums->queue_wait, result->queue_ns);
}

static void add_save(struct fc_wire_report *sums, const struct fc_core_save *save)
{
	sums->saves++;
	sums->saves_failed += save->result.code != FC_OK;
	for (int medium = 0; medium < FC_MEDIUM_COUNT && save->result.code == FC_OK; medium++)
		sums->bytes_written[medium] += save->result.bytes_written[medium];
}

void fc_report_event(struct fc_report *report, enum fc_event_kind kind, const struct fc_core_load *load,
		     const struct fc_core_save *save, uint32_t layer, uint64_t now_ns)
{
	if (kind == FC_EVENT_LOADED)
		add_load(&report->sums, load, now_ns);
	else if (kind == FC_EVENT_SAVED)
		add_save(&report->sums, save);
	else if (kind == FC_EVENT_LAYER && layer == 0)
		add_time(&report->sums.first_layer_time, now_ns - load->submitted_ns);
	report->is_changed = true;
}

static void note_queues(struct fc_wire_report *sums, const struct fc_core *core)
{
	struct fc_stats stats;
	struct fc_core_waiter waiters[FC_WIRE_WAITERS_MAX];
	fc_core_stats(core, &stats);
	sums->checksum_failures = stats.checksum_failures;
	sums->io_errors = stats.io_errors;
	sums->ready_length = stats.ready_length;
	sums->prepare_length = stats.prepare_length;
	sums->loads_active = stats.loads_active;
	sums->saves_active = stats.saves_active;
	sums->waiter_count = fc_core_waiters(core, waiters, FC_WIRE_WAITERS_MAX);
	for (uint32_t i = 0; i < sums->waiter_count; i++)
		sums->waiters[i] = (struct fc_wire_waiter){
			.request = waiters[i].request,
			.ssd_bytes = waiters[i].ssd_bytes,
			.waited_ns = waiters[i].waited_ns,
			.priority = waiters[i].priority,
		};
}

static void take_times_away(struct fc_wire_times *from, const struct fc_wire_times *what)
{
	for (uint32_t i = 0; i < FC_WIRE_TIME_BUCKETS; i++)
		from->counts[i] -= what->counts[i];
	from->sum_ns -= what->sum_ns;
}

static void take_away(struct fc_wire_report *from, const struct fc_wire_report *what)
{
	from->loads -= what->loads;
	from->loads_hit -= what->loads_hit;
	from->loads_failed -= what->loads_failed;
	from->saves -= what->saves;
	from->saves_failed -= what->saves_failed;
	from->blocks_possible -= what->blocks_possible;
	from->blocks_delivered -= what->blocks_delivered;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		from->bytes_wanted[medium] -= what->bytes_wanted[medium];
		from->bytes_written[medium] -= what->bytes_written[medium];
	}
	from->bytes_read -= what->bytes_read;
	from->read_commands -= what->read_commands;
	from->checksum_failures -= what->checksum_failures;
	from->io_errors -= what->io_errors;
	take_times_away(&from->load_time, &what->load_time);
	take_times_away(&from->first_layer_time, &what->first_layer_time);
	take_times_away(&from->queue_wait, &what->queue_wait);
}

void fc_report_step(struct fc_report *report, const struct fc_core *core, struct fc_client *client, uint64_t now_ns)
{
	if (now_ns < report->next_ns || !report->is_changed)
		return;
	report->next_ns = now_ns + INTERVAL_NS;
	if (fc_client_state(client) != FC_CLIENT_UP)
		return;
	uint64_t connection = fc_client_welcome_count(client);
	if (report->connection != connection)
		report->base = report->sent;
	report->connection = connection;
	note_queues(&report->sums, core);
	report->sent = report->sums;
	struct fc_wire_report since = report->sums;
	take_away(&since, &report->base);
	fc_client_report(client, &since);
	bool is_at_rest = report->sums.loads_active + report->sums.saves_active == 0;
	report->is_changed = !is_at_rest; /* queues move without events, too */
}

uint64_t fc_report_wake_ns(const struct fc_report *report)
{
	return report->is_changed ? report->next_ns : UINT64_MAX;
}
