/* What operators want to know: the daemon's statistics, a session's blocks, a client's report. */
#include "wire/codec.h"

#include "base/check.h"

/* Both structs are counters one after the other, in memory as on the wire; a field that is added changes the protocol,
 * and this says so. */
_Static_assert(sizeof(struct fc_stats) == FC_WIRE_STATS_FIELDS * sizeof(uint64_t), "fields of STATED");

/* ---- STATED ---- */

int fc_wire_put_stated(struct fc_wire_buffer *buffer, uint64_t request, const struct fc_stats *stats)
{
	uint64_t fields[FC_WIRE_STATS_FIELDS];
	struct fc_writer writer;
	memcpy(fields, stats, sizeof(fields));
	fc_writer_begin(&writer, buffer, FC_WIRE_STATED, request);
	fc_put_u64(&writer, FC_WIRE_STATS_FIELDS);
	for (uint32_t i = 0; i < FC_WIRE_STATS_FIELDS; i++)
		fc_put_u64(&writer, fields[i]);
	return fc_writer_end(&writer);
}

int fc_wire_get_stated(struct fc_stats *stats, const uint8_t *body, uint64_t bytes, struct fc_error *error)
{
	uint64_t fields[FC_WIRE_STATS_FIELDS];
	struct fc_reader reader;
	fc_reader_begin(&reader, FC_WIRE_STATED, body, bytes, error);
	uint64_t count = fc_take_u64(&reader, "number of fields");
	if (count < FC_WIRE_STATS_FIELDS || count > FC_WIRE_STATS_FIELDS_MAX)
		fc_reader_fail(&reader, "%llu fields; allowed are %u to %u", (unsigned long long)count,
			       FC_WIRE_STATS_FIELDS, FC_WIRE_STATS_FIELDS_MAX);
	for (uint32_t i = 0; i < FC_WIRE_STATS_FIELDS; i++)
		fields[i] = fc_take_u64(&reader, "field");
	if (reader.code == FC_OK) /* what a later daemon knows more of */
		(void)fc_take_bytes(&reader, (count - FC_WIRE_STATS_FIELDS) * sizeof(uint64_t), "further fields");
	memcpy(stats, fields, sizeof(fields));
	return fc_reader_end(&reader);
}

/* ---- SESSION ---- */

int fc_wire_put_session(struct fc_wire_buffer *buffer, uint64_t request, struct fc_session_id id)
{
	struct fc_writer writer;
	fc_writer_begin(&writer, buffer, FC_WIRE_SESSION, request);
	fc_put_u64(&writer, id.high);
	fc_put_u64(&writer, id.low);
	return fc_writer_end(&writer);
}

int fc_wire_get_session(struct fc_session_id *id, const uint8_t *body, uint64_t bytes, struct fc_error *error)
{
	struct fc_reader reader;
	fc_reader_begin(&reader, FC_WIRE_SESSION, body, bytes, error);
	id->high = fc_take_u64(&reader, "session");
	id->low = fc_take_u64(&reader, "session");
	return fc_reader_end(&reader);
}

int fc_wire_put_session_found(struct fc_wire_buffer *buffer, uint64_t request, int code, uint64_t blocks)
{
	struct fc_writer writer;
	fc_writer_begin(&writer, buffer, FC_WIRE_SESSION_FOUND, request);
	fc_put_u32(&writer, (uint32_t)code);
	fc_put_u32(&writer, 0);
	fc_put_u64(&writer, blocks);
	return fc_writer_end(&writer);
}

int fc_wire_get_session_found(int *code, uint64_t *blocks, const uint8_t *body, uint64_t bytes, struct fc_error *error)
{
	struct fc_reader reader;
	fc_reader_begin(&reader, FC_WIRE_SESSION_FOUND, body, bytes, error);
	*code = fc_take_code(&reader);
	fc_take_zero(&reader);
	*blocks = fc_take_u64(&reader, "blocks");
	return fc_reader_end(&reader);
}

/* ---- REPORT ---- */

/* Bounds 1 ms * 2^(i/2), by integers: squared and in microseconds, 10^6 * 2^i. */
uint32_t fc_wire_time_bucket(uint64_t duration_ns)
{
	uint64_t duration_us = fc_min_u64(duration_ns / 1000 + (duration_ns % 1000 != 0), UINT32_MAX);
	uint64_t bound = 1000000;
	uint32_t bucket = 0;
	for (; bucket < FC_WIRE_TIME_BUCKETS - 1 && duration_us * duration_us > bound; bucket++)
		bound *= 2;
	return bucket;
}

/* The counters of a report, in the order of the wire. */
static void list_counters(struct fc_wire_report *report, uint64_t *counters[FC_WIRE_REPORT_COUNTERS])
{
	uint64_t *listed[FC_WIRE_REPORT_COUNTERS] = {
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
		&report->ready_length,
		&report->prepare_length,
		&report->loads_active,
		&report->saves_active,
	};
	memcpy(counters, listed, sizeof(listed));
}

static void put_times(struct fc_writer *writer, const struct fc_wire_times *times)
{
	for (uint32_t i = 0; i < FC_WIRE_TIME_BUCKETS; i++)
		fc_put_u64(writer, times->counts[i]);
	fc_put_u64(writer, times->sum_ns);
}

int fc_wire_put_report(struct fc_wire_buffer *buffer, const struct fc_wire_report *report)
{
	struct fc_wire_report copy = *report;
	uint64_t *counters[FC_WIRE_REPORT_COUNTERS];
	struct fc_writer writer;
	fc_check(report->waiter_count <= FC_WIRE_WAITERS_MAX);
	list_counters(&copy, counters);
	fc_writer_begin(&writer, buffer, FC_WIRE_REPORT, 0);
	for (uint32_t i = 0; i < FC_WIRE_REPORT_COUNTERS; i++)
		fc_put_u64(&writer, *counters[i]);
	put_times(&writer, &report->load_time);
	put_times(&writer, &report->first_layer_time);
	put_times(&writer, &report->queue_wait);
	fc_put_u32(&writer, report->waiter_count);
	fc_put_u32(&writer, 0);
	for (uint32_t i = 0; i < report->waiter_count; i++) {
		fc_put_u64(&writer, report->waiters[i].request);
		fc_put_u64(&writer, report->waiters[i].ssd_bytes);
		fc_put_u64(&writer, report->waiters[i].waited_ns);
		fc_put_double(&writer, report->waiters[i].priority);
	}
	return fc_writer_end(&writer);
}

static void take_times(struct fc_reader *reader, struct fc_wire_times *times, const char *what)
{
	uint64_t count = 0;
	for (uint32_t i = 0; i < FC_WIRE_TIME_BUCKETS; i++) {
		times->counts[i] = fc_take_u64(reader, what);
		if (fc_add_overflows(count, times->counts[i], &count))
			fc_reader_fail(reader, "%s: more times than can be counted", what);
	}
	times->sum_ns = fc_take_u64(reader, what);
}

int fc_wire_get_report(struct fc_wire_report *report, const uint8_t *body, uint64_t bytes, struct fc_error *error)
{
	uint64_t *counters[FC_WIRE_REPORT_COUNTERS];
	struct fc_reader reader;
	fc_reader_begin(&reader, FC_WIRE_REPORT, body, bytes, error);
	*report = (struct fc_wire_report){0};
	list_counters(report, counters);
	for (uint32_t i = 0; i < FC_WIRE_REPORT_COUNTERS; i++)
		*counters[i] = fc_take_u64(&reader, "counter");
	take_times(&reader, &report->load_time, "load times");
	take_times(&reader, &report->first_layer_time, "times to the first layer");
	take_times(&reader, &report->queue_wait, "waits");
	uint32_t waiter_count = fc_take_u32(&reader, "number of waiters");
	fc_take_zero(&reader);
	if (waiter_count > FC_WIRE_WAITERS_MAX)
		fc_reader_fail(&reader, "%u waiters; at most %d are allowed", waiter_count, FC_WIRE_WAITERS_MAX);
	for (uint32_t i = 0; i < waiter_count && reader.code == FC_OK; i++) {
		struct fc_wire_waiter *waiter = &report->waiters[i];
		waiter->request = fc_take_u64(&reader, "request of a waiter");
		waiter->ssd_bytes = fc_take_u64(&reader, "bytes of a waiter");
		waiter->waited_ns = fc_take_u64(&reader, "wait of a waiter");
		waiter->priority = fc_take_double(&reader, "priority of a waiter");
	}
	if (reader.code == FC_OK)
		report->waiter_count = waiter_count;
	return fc_reader_end(&reader);
}
