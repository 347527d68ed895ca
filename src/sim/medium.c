#include "sim/medium.h"

#include "base/plant.h"
#include "format/checksum.h"

#include <stdlib.h>
#include <string.h>

#define SECTOR_BYTES 512u
#define PAGE_BYTES 4096u

static struct fc_sim_medium *medium_of(struct fc_media *media)
{
	return fc_container_of(media, struct fc_sim_medium, media);
}

/* ---- the contract ---- */

static bool overlaps(uint64_t offset, uint64_t bytes, uint64_t other_offset, uint64_t other_bytes)
{
	return offset < other_offset + other_bytes && other_offset < offset + bytes;
}

static void check_contract(const struct fc_sim_medium *medium, const struct fc_io *io)
{
	const struct fc_media *media = &medium->media;
	if (io->done_cb == NULL)
		fc_sim_broken(medium->notes, "medium: a command without done_cb");
	for (uint32_t i = 0; i < medium->flight_count; i++) {
		const struct fc_io *other = medium->flights[i].io;
		if (other == io)
			fc_sim_broken(medium->notes, "medium: a command is submitted while it is under way");
		if (io->op == FC_IO_WRITE && other->op == FC_IO_WRITE && !medium->flights[i].is_stray &&
		    overlaps(io->offset, io->bytes, other->offset, other->bytes))
			fc_sim_broken(medium->notes, "medium: two writes of offset %llu at a time",
				      (unsigned long long)io->offset);
	}
	if (io->op == FC_IO_SYNC)
		return;
	if (io->bytes == 0 || io->offset > media->bytes || io->bytes > media->bytes - io->offset)
		fc_sim_broken(medium->notes, "medium: %llu bytes at %llu of %llu", (unsigned long long)io->bytes,
			      (unsigned long long)io->offset, (unsigned long long)media->bytes);
	if (io->offset % media->align != 0 || io->bytes % media->align != 0 ||
	    (uintptr_t)io->buffer % media->align != 0)
		fc_sim_broken(medium->notes, "medium: %llu bytes at %llu are not aligned to %u",
			      (unsigned long long)io->bytes, (unsigned long long)io->offset, media->align);
}

/* ---- fate ---- */

static bool is_sticky(const struct fc_sim_medium *medium, const struct fc_io *io)
{
	for (uint32_t i = 0; i < medium->sticky_count; i++)
		if (io->op != FC_IO_SYNC &&
		    overlaps(io->offset, io->bytes, medium->sticky[i].offset, medium->sticky[i].bytes))
			return true;
	return false;
}

static bool fires(struct fc_sim_medium *medium, enum fc_sim_fault fault)
{
	if (medium->is_healed || medium->opts.is_mapped ||
	    !fc_sim_happens(&medium->random, medium->faults->probability[fault]))
		return false;
	medium->fired_count++;
	fc_sim_note(medium->notes, "  fault %llu", (uint64_t)fault, 0, 0, 0);
	return true;
}

static void make_sticky(struct fc_sim_medium *medium, const struct fc_io *io)
{
	if (medium->sticky_count == FC_SIM_STICKY_MAX)
		return;
	medium->sticky[medium->sticky_count].offset = io->offset;
	medium->sticky[medium->sticky_count++].bytes = io->bytes;
}

static enum fc_sim_fate choose_fate(struct fc_sim_medium *medium, const struct fc_io *io)
{
	if (is_sticky(medium, io)) {
		medium->fired_count++;
		return FC_FATE_ERROR;
	}
	switch (io->op) {
	case FC_IO_SYNC:
		return fires(medium, FC_FAULT_SYNC_ERROR) ? FC_FATE_ERROR : FC_FATE_DONE;
	case FC_IO_READ:
		if (fires(medium, FC_FAULT_SHORT_READ))
			return FC_FATE_SHORT;
		if (fires(medium, FC_FAULT_READ_ERROR))
			return FC_FATE_ERROR;
		break;
	case FC_IO_WRITE:
		if (fires(medium, FC_FAULT_SHORT_WRITE))
			return FC_FATE_SHORT;
		if (fires(medium, FC_FAULT_WRITE_ERROR))
			return FC_FATE_ERROR;
		if (fires(medium, FC_FAULT_FULL))
			return FC_FATE_FULL;
		break;
	}
	if (fires(medium, FC_FAULT_STICKY_ERROR)) {
		make_sticky(medium, io);
		return FC_FATE_ERROR;
	}
	return FC_FATE_DONE;
}

/* As a file system that does not answer: whoever submits is not told, and what is under way does not end either. */
static void block(struct fc_sim_medium *medium)
{
	uint64_t now_ns = medium->notes->now_ns;
	bool is_for_good = fc_random_below(&medium->random, 2) == 0;
	uint64_t pause_ns = fc_random_below(&medium->random, 3 * medium->opts.late_ns);
	medium->blocked_until_ns = is_for_good ? FC_SIM_NEVER_NS : now_ns + pause_ns;
	for (uint32_t i = 0; i < medium->flight_count; i++) {
		struct fc_sim_flight *flight = &medium->flights[i];
		if (is_for_good)
			flight->due_ns = FC_SIM_NEVER_NS;
		else if (flight->due_ns != FC_SIM_NEVER_NS)
			flight->due_ns = fc_max_u64(flight->due_ns, now_ns) + pause_ns;
	}
}

static uint64_t choose_due(struct fc_sim_medium *medium, const struct fc_io *io)
{
	uint64_t now_ns = medium->notes->now_ns;
	uint32_t place = 0;
	if (medium->opts.is_mapped)
		return now_ns;
	if (!medium->never_sticks && fires(medium, FC_FAULT_STUCK))
		return FC_SIM_NEVER_NS;
	if (!medium->never_sticks && fires(medium, FC_FAULT_BLOCKED))
		block(medium);
	if (medium->blocked_until_ns == FC_SIM_NEVER_NS && !medium->never_sticks)
		return FC_SIM_NEVER_NS;
	if (!medium->never_sticks)
		now_ns = fc_max_u64(now_ns, medium->blocked_until_ns);
	for (uint32_t i = 1; i < medium->opts.queue_depth; i++)
		if (medium->place_free_ns[i] < medium->place_free_ns[place])
			place = i;
	uint64_t start_ns = fc_max_u64(now_ns, medium->place_free_ns[place]);
	uint64_t jitter_ns = fc_random_below(&medium->random, medium->opts.latency_ns / 2 + 1);
	uint64_t moving_ns = (uint64_t)((double)io->bytes * 1e9 / (double)medium->opts.bytes_per_s);
	uint64_t due_ns = start_ns + medium->opts.latency_ns + jitter_ns + moving_ns;
	medium->place_free_ns[place] = due_ns;
	if (fires(medium, FC_FAULT_LATE))
		due_ns += medium->opts.late_ns + fc_random_below(&medium->random, medium->opts.late_ns);
	return due_ns;
}

static void submit(struct fc_sim_medium *medium, struct fc_media *via, struct fc_io *io)
{
	check_contract(medium, io);
	if (medium->flight_count == medium->flight_room) {
		medium->flight_room = medium->flight_room == 0 ? 64 : medium->flight_room * 2;
		medium->flights = realloc(medium->flights, medium->flight_room * sizeof(*medium->flights));
		fc_check(medium->flights != NULL);
	}
	struct fc_sim_flight *flight = &medium->flights[medium->flight_count++];
	*flight = (struct fc_sim_flight){.io = io, .via = via, .number = medium->next_number++};
	flight->fate = choose_fate(medium, io);
	flight->due_ns = choose_due(medium, io);
	if (flight->fate == FC_FATE_ERROR || flight->fate == FC_FATE_SHORT)
		flight->moved_bytes =
			fc_random_below(&medium->random, io->bytes / medium->media.align + 1) * medium->media.align;
	if (flight->fate == FC_FATE_SHORT && flight->moved_bytes == io->bytes)
		flight->moved_bytes = 0;
}

static void sim_submit(struct fc_media *media, struct fc_io *io)
{
	fc_sim_order_check(&medium_of(media)->order, medium_of(media)->notes, io);
	submit(medium_of(media), media, io);
}

/* ---- ending ---- */

static void store(struct fc_sim_medium *medium, const struct fc_io *io, uint64_t bytes)
{
	if (bytes == 0)
		return;
	memcpy(medium->image + io->offset, io->buffer, bytes);
	if (medium->stable == NULL)
		return;
	struct fc_sim_write *write = malloc(sizeof(*write) + bytes);
	fc_check(write != NULL);
	*write = (struct fc_sim_write){.offset = io->offset, .bytes = bytes, .ended_at = medium->next_number};
	memcpy(write->data, io->buffer, bytes);
	fc_list_push(&medium->unsynced, &write->link);
}

static void make_stable(struct fc_sim_medium *medium, uint64_t submitted_at)
{
	fc_list_for_each_safe(link, &medium->unsynced)
	{
		struct fc_sim_write *write = fc_container_of(link, struct fc_sim_write, link);
		if (write->ended_at > submitted_at)
			continue;
		memcpy(medium->stable + write->offset, write->data, write->bytes);
		fc_list_remove(&write->link);
		free(write);
	}
}

static int64_t result_of(const struct fc_sim_flight *flight)
{
	switch (flight->fate) {
	case FC_FATE_ERROR:
		return FC_EIO;
	case FC_FATE_FULL:
		return FC_EFULL;
	case FC_FATE_SHORT:
		return (int64_t)flight->moved_bytes;
	case FC_FATE_DONE:
		break;
	}
	return (int64_t)flight->io->bytes;
}

static void note_unread(struct fc_sim_medium *medium, const struct fc_io *io)
{
	uint32_t near_count = 1;
	bool has_failed_before = false;
	for (uint32_t i = 0; i < medium->unread_count; i++) {
		const struct fc_sim_place *place = &medium->unread[i];
		has_failed_before |= overlaps(io->offset, io->bytes, place->offset, place->bytes);
		near_count += overlaps(io->offset, io->bytes + FC_SIM_NEAR_BYTES, place->offset,
				       place->bytes + FC_SIM_NEAR_BYTES);
	}
	medium->reread_failures += has_failed_before;
	medium->unread_near_max = near_count > medium->unread_near_max ? near_count : medium->unread_near_max;
	if (medium->unread_count == medium->unread_room) {
		medium->unread_room = medium->unread_room == 0 ? 64 : medium->unread_room * 2;
		medium->unread = realloc(medium->unread, medium->unread_room * sizeof(*medium->unread));
		fc_check(medium->unread != NULL);
	}
	medium->unread[medium->unread_count++] = (struct fc_sim_place){io->offset, io->bytes};
}

static void run(struct fc_sim_medium *medium, const struct fc_sim_flight *flight)
{
	struct fc_io *io = flight->io;
	struct fc_media_counters nobodys = {0};
	struct fc_media_counters *counters = flight->via == NULL ? &nobodys : &flight->via->counters;
	uint64_t bytes = flight->fate == FC_FATE_DONE ? io->bytes : flight->moved_bytes;
	switch (io->op) {
	case FC_IO_READ:
		memcpy(io->buffer, medium->image + io->offset, bytes);
		counters->read_commands++;
		counters->bytes_read += bytes;
		if (flight->fate != FC_FATE_DONE)
			note_unread(medium, io);
		break;
	case FC_IO_WRITE:
		store(medium, io, bytes);
		counters->write_commands++;
		counters->bytes_written += bytes;
		break;
	case FC_IO_SYNC:
		if (flight->fate == FC_FATE_DONE)
			make_stable(medium, flight->number);
		counters->sync_commands++;
		break;
	}
	counters->errors += flight->fate != FC_FATE_DONE;
}

/* Number in `flights` of what ends next, of those of a front that are due; flight_count if none is. */
static uint32_t next_due(const struct fc_sim_medium *medium, const struct fc_media *via, uint64_t number_max)
{
	uint32_t best = medium->flight_count;
	for (uint32_t i = 0; i < medium->flight_count; i++) {
		const struct fc_sim_flight *flight = &medium->flights[i];
		if (flight->via != via || flight->due_ns > medium->notes->now_ns || flight->number > number_max)
			continue;
		const struct fc_sim_flight *first = best < medium->flight_count ? &medium->flights[best] : NULL;
		if (first == NULL || flight->due_ns < first->due_ns ||
		    (flight->due_ns == first->due_ns && flight->number < first->number))
			best = i;
	}
	return best;
}

/* What a medium finds out: at a sync all of it, before a write and behind a read that the file is short. */
static bool comes_out(const struct fc_sim_medium *medium, const struct fc_io *io)
{
	if (io->op == FC_IO_READ)
		return io->offset + io->bytes > medium->end;
	if (io->op == FC_IO_WRITE)
		return medium->end < medium->media.bytes;
	return medium->is_lost && !fc_is_planted(FC_PLANT_UNCHECKED_SYNC);
}

static void look_at_file(struct fc_sim_medium *medium, struct fc_sim_flight *flight)
{
	if (comes_out(medium, flight->io))
		medium->media.lost = "the simulated file is lost";
	else if (medium->media.lost == NULL || flight->io->op == FC_IO_READ)
		return;
	flight->fate = FC_FATE_ERROR;
	flight->moved_bytes = 0;
}

static struct fc_sim_flight take_flight(struct fc_sim_medium *medium, uint32_t number)
{
	struct fc_sim_flight flight = medium->flights[number];
	medium->flights[number] = medium->flights[--medium->flight_count];
	look_at_file(medium, &flight);
	run(medium, &flight);
	flight.io->result = result_of(&flight);
	flight.io->failure = "a simulated fault";
	fc_sim_note(medium->notes, "  io %llu at %llu, %llu bytes: %lld", (uint64_t)flight.io->op,
		    flight.io->op == FC_IO_SYNC ? 0 : flight.io->offset, flight.io->bytes, (uint64_t)flight.io->result);
	medium->stray_count += flight.is_stray;
	return flight;
}

static unsigned poll_front(struct fc_sim_medium *medium, const struct fc_media *via)
{
	unsigned count = 0;
	/* Only what waits now: a done_cb that submits the next one must not keep poll() here for ever. */
	uint64_t number_max = medium->next_number == 0 ? 0 : medium->next_number - 1;
	for (;;) {
		uint32_t next = next_due(medium, via, number_max);
		if (next == medium->flight_count)
			return count;
		struct fc_sim_flight flight = take_flight(medium, next);
		flight.io->done_cb(flight.io);
		count++;
	}
}

static unsigned sim_poll(struct fc_media *media)
{
	return poll_front(medium_of(media), media);
}

static int sim_register_buffers(struct fc_media *media, void *memory, uint64_t bytes)
{
	(void)media, (void)memory, (void)bytes;
	return FC_OK;
}

static void sim_close(struct fc_media *media)
{
	fc_sim_medium_free(medium_of(media));
}

/* ---- new and free ---- */

struct fc_sim_medium *fc_sim_medium_new(const struct fc_sim_medium_opts *opts, struct fc_sim_notes *notes,
					const struct fc_sim_faults *faults)
{
	static const struct fc_media_ops ops = {
		.submit = sim_submit,
		.poll = sim_poll,
		.register_buffers = sim_register_buffers,
		.close = sim_close,
	};
	struct fc_sim_medium *medium = calloc(1, sizeof(*medium));
	if (medium == NULL)
		return NULL;
	medium->opts = *opts;
	medium->notes = notes;
	medium->faults = faults;
	fc_random_init(&medium->random, opts->seed);
	fc_list_init(&medium->unsynced);
	medium->end = UINT64_MAX;
	medium->image = calloc(1, opts->bytes);
	medium->stable = opts->is_mapped ? NULL : calloc(1, opts->bytes);
	medium->media = (struct fc_media){
		.ops = &ops,
		.bytes = opts->bytes,
		.align = opts->align,
		.transfer_bytes_max = opts->bytes,
		.queue_depth = opts->queue_depth,
		.map = opts->is_mapped ? medium->image : NULL,
		.is_durable = opts->is_durable,
		.is_new = true,
	};
	if (medium->image == NULL || (medium->stable == NULL && !opts->is_mapped)) {
		fc_sim_medium_free(medium);
		return NULL;
	}
	return medium;
}

/* ---- fronts ---- */

static struct fc_sim_front *front_of(struct fc_media *media)
{
	return fc_container_of(media, struct fc_sim_front, media);
}

static void front_submit(struct fc_media *media, struct fc_io *io)
{
	fc_sim_order_check(&front_of(media)->order, front_of(media)->medium->notes, io);
	submit(front_of(media)->medium, media, io);
}

static unsigned front_poll(struct fc_media *media)
{
	return poll_front(front_of(media)->medium, media);
}

static void front_close(struct fc_media *media)
{
	(void)media; /* the medium is its owner's */
}

void fc_sim_front_init(struct fc_sim_front *front, struct fc_sim_medium *medium)
{
	static const struct fc_media_ops ops = {
		.submit = front_submit,
		.poll = front_poll,
		.register_buffers = sim_register_buffers,
		.close = front_close,
	};
	*front = (struct fc_sim_front){.media = medium->media, .medium = medium};
	front->media.ops = &ops;
	front->media.is_new = false;
	front->media.counters = (struct fc_media_counters){0};
}

uint32_t fc_sim_medium_flights(const struct fc_sim_medium *medium, const struct fc_media *via)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < medium->flight_count; i++)
		count += medium->flights[i].via == via;
	return count;
}

/* A write that goes on without the process it came from: the pages that it is made of are the kernel's. */
static struct fc_io *copy_io(const struct fc_io *io)
{
	struct fc_io *copy = malloc(sizeof(*copy) + io->bytes);
	fc_check(copy != NULL);
	*copy = *io;
	copy->buffer = copy + 1;
	memcpy(copy->buffer, io->buffer, io->bytes);
	return copy;
}

static void set_adrift(struct fc_sim_medium *medium, struct fc_sim_flight *flight, uint64_t life)
{
	flight->via = NULL;
	flight->life = life;
	flight->io = copy_io(flight->io);
	if (flight->fate == FC_FATE_DONE && fc_random_below(&medium->random, 3) == 0) {
		flight->fate = FC_FATE_SHORT;
		flight->moved_bytes = fc_random_below(&medium->random, flight->io->bytes / medium->media.align + 1) *
				      medium->media.align;
	}
}

void fc_sim_front_kill(struct fc_sim_front *front, uint64_t life)
{
	struct fc_sim_medium *medium = front->medium;
	for (uint32_t i = medium->flight_count; i > 0; i--) {
		struct fc_sim_flight *flight = &medium->flights[i - 1];
		if (flight->via != &front->media)
			continue;
		if (flight->io->op == FC_IO_WRITE && fc_random_below(&medium->random, 4) != 0)
			set_adrift(medium, flight, life);
		else
			*flight = medium->flights[--medium->flight_count];
	}
}

uint32_t fc_sim_medium_adrift(const struct fc_sim_medium *medium, uint64_t life)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < medium->flight_count; i++)
		count += medium->flights[i].via == NULL && medium->flights[i].life == life;
	return count;
}

unsigned fc_sim_medium_land(struct fc_sim_medium *medium)
{
	for (unsigned count = 0;; count++) {
		uint32_t next = next_due(medium, NULL, UINT64_MAX);
		if (next == medium->flight_count)
			return count;
		free(take_flight(medium, next).io);
	}
}

void fc_sim_medium_stop(struct fc_sim_medium *medium, const struct fc_media *via, bool is_stopped)
{
	for (uint32_t i = 0; i < medium->flight_count; i++)
		if (medium->flights[i].via == via)
			medium->flights[i].is_unseen = is_stopped;
}

void fc_sim_medium_stray(struct fc_sim_medium *medium, const struct fc_media *via, uint64_t life)
{
	for (uint32_t i = 0; i < medium->flight_count; i++) {
		struct fc_sim_flight *flight = &medium->flights[i];
		if (flight->io->op == FC_IO_WRITE && flight->via == via && (via != NULL || flight->life == life))
			flight->is_stray = true;
	}
}

static void free_adrift(const struct fc_sim_flight *flight)
{
	if (flight->via == NULL)
		free(flight->io);
}

static void drop_unsynced(struct fc_sim_medium *medium)
{
	struct fc_link *link;
	while ((link = fc_list_pop(&medium->unsynced)) != NULL)
		free(fc_container_of(link, struct fc_sim_write, link));
}

void fc_sim_medium_free(struct fc_sim_medium *medium)
{
	if (medium == NULL)
		return;
	drop_unsynced(medium);
	for (uint32_t i = 0; i < medium->flight_count; i++)
		free_adrift(&medium->flights[i]);
	free(medium->flights);
	free(medium->unread);
	free(medium->image);
	free(medium->stable);
	free(medium);
}

/* ---- from outside ---- */

uint64_t fc_sim_medium_next_ns(const struct fc_sim_medium *medium)
{
	uint64_t next_ns = FC_SIM_NEVER_NS;
	for (uint32_t i = 0; i < medium->flight_count; i++)
		if (!medium->flights[i].is_unseen)
			next_ns = fc_min_u64(next_ns, medium->flights[i].due_ns);
	return next_ns;
}

uint32_t fc_sim_medium_stuck_count(const struct fc_sim_medium *medium)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < medium->flight_count; i++)
		count += medium->flights[i].due_ns == FC_SIM_NEVER_NS;
	return count;
}

void fc_sim_medium_heal(struct fc_sim_medium *medium)
{
	medium->is_healed = true;
	medium->sticky_count = 0;
}

void fc_sim_medium_release(struct fc_sim_medium *medium, const struct fc_media *via, uint64_t within_ns)
{
	medium->blocked_until_ns = 0;
	for (uint32_t i = 0; i < medium->flight_count; i++)
		if (medium->flights[i].due_ns == FC_SIM_NEVER_NS && (via == NULL || medium->flights[i].via == via))
			medium->flights[i].due_ns =
				medium->notes->now_ns + fc_random_below(&medium->random, within_ns + 1);
}

static void tear(struct fc_sim_medium *medium, uint8_t *to, uint64_t offset, const uint8_t *data, uint64_t bytes)
{
	uint64_t sector = fc_random_below(&medium->random, 2) == 0 ? SECTOR_BYTES : PAGE_BYTES;
	for (uint64_t done = 0; done < bytes;) {
		uint64_t piece = fc_min_u64(sector - (offset + done) % sector, bytes - done);
		if (fc_random_below(&medium->random, 2) == 0)
			memcpy(to + offset + done, data + done, piece);
		done += piece;
	}
}

static void end_write(struct fc_sim_medium *medium, const struct fc_io *io, bool may_tear)
{
	uint8_t *before = malloc(io->bytes);
	fc_check(before != NULL);
	memcpy(before, medium->image + io->offset, io->bytes);
	store(medium, io, io->bytes);
	if (may_tear && fc_sim_happens(&medium->random, medium->faults->probability[FC_FAULT_TORN])) {
		tear(medium, medium->image, io->offset, before, io->bytes);
		if (medium->stable != NULL) {
			struct fc_sim_write *last = fc_container_of(medium->unsynced.prev, struct fc_sim_write, link);
			memcpy(last->data, medium->image + io->offset, io->bytes);
		}
	}
	free(before);
}

/* Commands under way when their process ends: the device may still do them. `via` NULL: all of them. */
static void end_flights(struct fc_sim_medium *medium, const struct fc_media *via)
{
	uint32_t kept_count = 0;
	for (uint32_t i = 0; i < medium->flight_count; i++) {
		const struct fc_sim_flight *flight = &medium->flights[i];
		if (via != NULL && flight->via != via) {
			medium->flights[kept_count++] = *flight;
			continue;
		}
		uint64_t kind = fc_random_below(&medium->random, 3);
		if (flight->io->op == FC_IO_WRITE && kind != 0)
			end_write(medium, flight->io, kind == 1);
		free_adrift(flight);
	}
	medium->flight_count = kept_count;
	medium->blocked_until_ns = 0;
	memset(medium->place_free_ns, 0, sizeof(medium->place_free_ns));
}

void fc_sim_medium_kill(struct fc_sim_medium *medium)
{
	end_flights(medium, &medium->media);
	medium->order = (struct fc_sim_order){0};
	medium->media.is_new = !medium->opts.is_durable;
	if (!medium->opts.is_durable)
		memset(medium->image, 0, medium->media.bytes);
}

void fc_sim_medium_power_off(struct fc_sim_medium *medium)
{
	end_flights(medium, NULL);
	medium->media.is_new = medium->stable == NULL;
	if (medium->stable == NULL) {
		memset(medium->image, 0, medium->media.bytes);
		return;
	}
	uint64_t count = 0, number = 0;
	fc_list_for_each(link, &medium->unsynced)
	{
		count++;
	}
	bool is_reordered = fc_sim_happens(&medium->random, medium->faults->probability[FC_FAULT_REORDERED]);
	uint64_t kept_count = fc_random_below(&medium->random, count + 1);
	fc_list_for_each(link, &medium->unsynced)
	{
		const struct fc_sim_write *write = fc_container_of(link, struct fc_sim_write, link);
		bool is_kept = is_reordered ? fc_random_below(&medium->random, 2) == 0 : number < kept_count;
		bool is_torn = is_kept && (is_reordered || number + 1 == kept_count) &&
			       fc_sim_happens(&medium->random, medium->faults->probability[FC_FAULT_TORN]);
		if (is_torn)
			tear(medium, medium->stable, write->offset, write->data, write->bytes);
		else if (is_kept)
			memcpy(medium->stable + write->offset, write->data, write->bytes);
		number++;
	}
	fc_sim_note(medium->notes, "  power off: %llu unsynced writes, %llu kept, in order: %llu", count, kept_count,
		    !is_reordered, 0);
	drop_unsynced(medium);
	memcpy(medium->image, medium->stable, medium->media.bytes);
}

static int resize_one(uint8_t **memory, uint64_t old_bytes, uint64_t bytes)
{
	uint8_t *other = calloc(1, bytes);
	if (other == NULL)
		return FC_ENOMEM;
	memcpy(other, *memory, fc_min_u64(old_bytes, bytes));
	free(*memory);
	*memory = other;
	return FC_OK;
}

int fc_sim_medium_resize(struct fc_sim_medium *medium, uint64_t bytes)
{
	fc_check(medium->flight_count == 0 && medium->stable != NULL);
	make_stable(medium, UINT64_MAX);
	int code = resize_one(&medium->image, medium->media.bytes, bytes);
	if (code == FC_OK)
		code = resize_one(&medium->stable, medium->media.bytes, bytes);
	medium->media.bytes = bytes;
	return code;
}

void fc_sim_medium_blank(struct fc_sim_medium *medium)
{
	fc_check(fc_sim_medium_flights(medium, &medium->media) == 0);
	drop_unsynced(medium);
	memset(medium->image, 0, medium->media.bytes);
	if (medium->stable != NULL)
		memset(medium->stable, 0, medium->media.bytes);
	medium->media.is_new = true;
}

static void cut(struct fc_sim_medium *medium, uint64_t end)
{
	memset(medium->image + end, 0, medium->media.bytes - end);
	if (medium->stable != NULL)
		memset(medium->stable + end, 0, medium->media.bytes - end);
	fc_list_for_each(link, &medium->unsynced)
	{
		struct fc_sim_write *write = fc_container_of(link, struct fc_sim_write, link);
		uint64_t kept_bytes = write->offset >= end ? 0 : fc_min_u64(end - write->offset, write->bytes);
		memset(write->data + kept_bytes, 0, write->bytes - kept_bytes);
	}
	medium->end = end;
}

void fc_sim_medium_lose(struct fc_sim_medium *medium, enum fc_sim_fault fault, uint64_t end)
{
	medium->is_lost = true;
	medium->lost_ns = medium->notes->now_ns;
	if (fault == FC_FAULT_TRUNCATED)
		cut(medium, end);
	else
		medium->is_gone = true;
	medium->fired_count++;
}

void fc_sim_medium_find(struct fc_sim_medium *medium)
{
	if (medium->is_gone)
		fc_sim_medium_blank(medium);
	medium->is_lost = medium->is_gone = false;
	medium->end = UINT64_MAX;
	medium->media.lost = NULL;
}

void fc_sim_medium_flip(struct fc_sim_medium *medium, uint64_t offset, unsigned bit)
{
	fc_check(offset < medium->media.bytes && bit < 8);
	if (offset >= medium->end)
		return;
	medium->image[offset] ^= (uint8_t)(1u << bit);
	if (medium->stable != NULL)
		medium->stable[offset] ^= (uint8_t)(1u << bit);
	fc_list_for_each(link, &medium->unsynced)
	{
		struct fc_sim_write *write = fc_container_of(link, struct fc_sim_write, link);
		if (offset >= write->offset && offset - write->offset < write->bytes)
			write->data[offset - write->offset] = medium->image[offset];
	}
}

uint64_t fc_sim_medium_digest(const struct fc_sim_medium *medium)
{
	return fc_checksum(medium->image, medium->media.bytes, 0);
}
