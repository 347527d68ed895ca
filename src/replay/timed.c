#include "replay/timed.h"

#include "base/list.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ARENA_ALIGN 4096u
#define WRITTEN_UNIT_BYTES (64ull << 10)

/* One command or batch under way. */
struct flight {
	struct fc_world_event event;
	struct fc_link link; /* free, held, waiting, or done */
	struct fc_timed *timed;
	struct fc_io *io;
	struct fc_copy_batch *batch;
	uint64_t busy_ns; /* of a batch that a CPU copies */
	bool is_reported; /* an I/O: by its drives */
	bool has_woken;   /* an I/O that found the thread asleep: it is awake by now */
};

struct timed_medium {
	struct fc_media media;
	struct fc_timed *timed;
	struct fc_link done; /* I/O of memory, which ends at once */
};

struct fc_timed {
	struct fc_timed_opts opts;
	struct timed_medium memory, ssd;
	struct fc_device device;
	uint8_t *windows;
	uint64_t windows_bytes;
	struct fc_pipe *paths; /* by stream: software, and the link that its commands share */
	uint64_t path_count;
	struct fc_pipe hbm; /* one for all: scatters are short */
	/* With a CPU for a device: its thread, what it copies now and what it will copy, and what has ended meanwhile
	 * and is seen when that copy is done. */
	struct fc_pipe thread;
	bool is_copying;
	struct fc_link waiting_batches, held_ios;
	struct fc_link free_flights, done_ios, done_batches;
	struct fc_paged_layer *layers;
	uint64_t layer_count; /* of a worker */
	bool *is_written;     /* by unit of the SSD's arena; NULL: it makes no difference */
};

static struct fc_timed *timed_of(struct fc_media *media)
{
	return fc_container_of(media, struct timed_medium, media)->timed;
}

static struct fc_world *world_of(const struct fc_timed *timed)
{
	return timed->opts.machine->world;
}

static bool is_in_window(const struct fc_timed *timed, const void *address)
{
	uintptr_t at = (uintptr_t)address, begin = (uintptr_t)timed->windows;
	return timed->windows != NULL && at >= begin && at - begin < timed->windows_bytes;
}

static const struct fc_hardware *hardware_of(const struct fc_timed *timed)
{
	return timed->opts.machine->hardware;
}

/* ---- flights ---- */

static void start_copy(struct fc_timed *timed);

static bool is_read_for_a_load(const struct flight *flight)
{
	return flight->io != NULL ? flight->io->op == FC_IO_READ && is_in_window(flight->timed, flight->io->buffer)
				  : flight->batch->direction == FC_COPY_SCATTER;
}

/* More was sent to drives that report jointly. */
static bool is_put_off(struct flight *flight)
{
	struct fc_timed *timed = flight->timed;
	uint64_t report_ns = fc_machine_report_ns(timed->opts.machine, flight->io->offset, flight->io->bytes);
	if (flight->is_reported || report_ns <= world_of(timed)->now_ns) {
		flight->is_reported = true;
		return false;
	}
	fc_world_at(world_of(timed), &flight->event, report_ns);
	return true;
}

/* The thread that copies sees only afterwards what the drives have done meanwhile, and before it copies again. A thread
 * that has nothing to do is asleep. */
static void on_due(struct fc_world_event *event)
{
	struct flight *flight = fc_container_of(event, struct flight, event);
	struct fc_timed *timed = flight->timed;
	bool is_reading = is_read_for_a_load(flight);
	if (flight->io != NULL && is_put_off(flight))
		return;
	if (flight->io != NULL && timed->is_copying) {
		fc_list_push(&timed->held_ios, &flight->link);
		return;
	}
	if (flight->io != NULL && hardware_of(timed)->has_cpu_device && !flight->has_woken) {
		flight->has_woken = true;
		fc_world_at(world_of(timed), event, world_of(timed)->now_ns + hardware_of(timed)->wake_ns);
		return;
	}
	if (flight->batch != NULL)
		timed->is_copying = false;
	fc_list_push(flight->io != NULL ? &timed->done_ios : &timed->done_batches, &flight->link);
	for (struct fc_link *held; flight->batch != NULL && (held = fc_list_pop(&timed->held_ios)) != NULL;) {
		is_reading = is_reading && is_read_for_a_load(fc_container_of(held, struct flight, link));
		fc_list_push(&timed->done_ios, held);
	}
	timed->opts.pump_cb(timed->opts.context, is_reading);
	start_copy(timed);
}

static struct flight *take_flight(struct fc_timed *timed, struct fc_io *io, struct fc_copy_batch *batch)
{
	struct fc_link *link = fc_list_pop(&timed->free_flights);
	struct flight *flight = link == NULL ? calloc(1, sizeof(*flight)) : fc_container_of(link, struct flight, link);
	fc_check(flight != NULL); /* a few hundred bytes, of a simulation: there is nobody to tell */
	flight->event.fire = on_due;
	flight->timed = timed;
	flight->io = io;
	flight->batch = batch;
	flight->is_reported = flight->has_woken = false;
	return flight;
}

static void launch(struct fc_timed *timed, struct fc_io *io, struct fc_copy_batch *batch, uint64_t due_ns)
{
	fc_world_at(world_of(timed), &take_flight(timed, io, batch)->event, due_ns);
}

/* The next batch of a CPU that has done the one before. */
static void start_copy(struct fc_timed *timed)
{
	struct fc_link *link = timed->is_copying ? NULL : fc_list_pop(&timed->waiting_batches);
	if (link == NULL)
		return;
	struct flight *flight = fc_container_of(link, struct flight, link);
	uint64_t end_ns = fc_pipe_occupy(&timed->thread, world_of(timed)->now_ns, flight->busy_ns);
	timed->is_copying = true;
	fc_world_at(world_of(timed), &flight->event, end_ns);
}

static unsigned land(struct fc_timed *timed, struct fc_link *done)
{
	struct fc_link *last = done->prev;
	unsigned count = 0;
	for (bool is_last = fc_list_is_empty(done); !is_last; count++) {
		struct fc_link *link = fc_list_pop(done);
		struct flight *flight = fc_container_of(link, struct flight, link);
		struct fc_io *io = flight->io;
		struct fc_copy_batch *batch = flight->batch;
		is_last = link == last;
		fc_list_push(&timed->free_flights, link);
		if (io != NULL)
			io->done_cb(io);
		else
			batch->done_cb(batch);
	}
	return count;
}

void fc_timed_poll(struct fc_timed *timed)
{
	while (land(timed, &timed->done_ios) + land(timed, &timed->done_batches) > 0)
		;
}

/* ---- SSD ---- */

/* The software of a command takes its stream's time, and what it reads the link of the device that the stream's window
 * lies on. Metadata that goes to no window belongs to no stream. */
static uint64_t through_path(struct fc_timed *timed, const struct fc_io *io, uint64_t commands, uint64_t *from_ns)
{
	const struct fc_hardware *hardware = hardware_of(timed);
	*from_ns = world_of(timed)->now_ns;
	if (hardware->has_cpu_device) /* memory beside the drive: no link between them */
		return *from_ns = fc_pipe_occupy(&timed->thread, *from_ns, commands * hardware->direct_command_ns);
	if (!is_in_window(timed, io->buffer))
		return *from_ns;
	uint64_t stream = (uint64_t)((const uint8_t *)io->buffer - timed->windows) / timed->opts.window_bytes;
	struct fc_pipe *software = &timed->paths[2 * stream], *link = &timed->paths[2 * stream + 1];
	link->bytes_per_s = io->op == FC_IO_READ ? hardware->link_up_bytes_per_s : hardware->link_down_bytes_per_s;
	*from_ns = fc_pipe_occupy(software, *from_ns, commands * hardware->direct_command_ns);
	return fc_pipe_move(link, *from_ns, io->bytes);
}

/* Notes what is written to. A command is about space that was all in use before, or none of it, but for a header's. */
static bool is_first_write(struct fc_timed *timed, const struct fc_io *io)
{
	bool is_first = false;
	if (timed->is_written == NULL)
		return false;
	for (uint64_t at = io->offset / WRITTEN_UNIT_BYTES; at <= (io->offset + io->bytes - 1) / WRITTEN_UNIT_BYTES;
	     at++) {
		is_first = is_first || !timed->is_written[at];
		timed->is_written[at] = true;
	}
	return is_first;
}

static void ssd_submit(struct fc_media *media, struct fc_io *io)
{
	struct fc_timed *timed = timed_of(media);
	struct fc_machine *machine = timed->opts.machine;
	uint64_t unit_bytes = io->op == FC_IO_READ ? timed->opts.unit_bytes : 0;
	uint64_t commands = unit_bytes == 0 ? 1 : (io->bytes + unit_bytes - 1) / unit_bytes;
	uint64_t end_ns = world_of(timed)->now_ns, from_ns, link_end_ns;
	io->result = (int64_t)io->bytes;
	if (io->op == FC_IO_SYNC) {
		media->counters.sync_commands++;
		if (hardware_of(timed)->has_cpu_device) /* behind what its thread has sent before */
			end_ns = fc_pipe_occupy(&timed->thread, end_ns, 0);
		launch(timed, io, NULL, fc_machine_sync(machine, end_ns));
		return;
	}
	fc_check(io->offset + io->bytes <= media->bytes);
	link_end_ns = through_path(timed, io, commands, &from_ns);
	if (io->op == FC_IO_READ) {
		if (!is_in_window(timed, io->buffer))
			memset(io->buffer, 0, io->bytes);
		end_ns = fc_machine_read(machine, from_ns, io->offset, io->bytes, unit_bytes);
		media->counters.read_commands += commands;
		media->counters.bytes_read += io->bytes;
	} else {
		end_ns = fc_machine_write(machine, from_ns, io->offset, io->bytes, is_first_write(timed, io));
		media->counters.write_commands++;
		media->counters.bytes_written += io->bytes;
	}
	launch(timed, io, NULL, fc_max_u64(end_ns, link_end_ns));
}

static unsigned ssd_poll(struct fc_media *media)
{
	struct fc_timed *timed = timed_of(media);
	return land(timed, &timed->done_ios);
}

static void medium_close(struct fc_media *media)
{
	(void)media; /* both go with fc_timed_free() */
}

/* ---- memory ---- */

static void memory_submit(struct fc_media *media, struct fc_io *io)
{
	struct timed_medium *memory = fc_container_of(media, struct timed_medium, media);
	io->result = (int64_t)io->bytes;
	if (io->op == FC_IO_READ)
		memcpy(io->buffer, media->map + io->offset, io->bytes);
	else if (io->op == FC_IO_WRITE)
		memcpy(media->map + io->offset, io->buffer, io->bytes);
	if (io->op == FC_IO_WRITE)
		media->counters.bytes_written += io->bytes;
	fc_list_push(&memory->done, &io->link);
}

static unsigned memory_poll(struct fc_media *media)
{
	struct timed_medium *memory = fc_container_of(media, struct timed_medium, media);
	struct fc_link *last = memory->done.prev;
	unsigned count = 0;
	for (bool is_last = fc_list_is_empty(&memory->done); !is_last; count++) {
		struct fc_link *link = fc_list_pop(&memory->done);
		struct fc_io *io = fc_container_of(link, struct fc_io, link);
		is_last = link == last;
		io->done_cb(io);
	}
	return count;
}

/* ---- device ---- */

static uint32_t worker_of(const struct fc_timed *timed, const struct fc_copy *copy)
{
	return copy->paged == NULL ? 0 : (uint32_t)((uint64_t)(copy->paged - timed->layers) / timed->layer_count);
}

/* A copy is a piece of many slices (fc_device.takes_pieces), or one slice between two arenas. */
static uint64_t slice_count(const struct fc_copy *copy)
{
	return copy->paged == NULL ? 1 : fc_max_u64(copy->bytes / copy->paged->piece_stride_bytes, 1);
}

/* A GPU: what lies in a window is on the device already; what lies in the arena comes over the link. Returns the end.
 */
static uint64_t copy_by_device(struct fc_timed *timed, const struct fc_copy_batch *batch, uint64_t window_bytes,
			       uint64_t link_bytes)
{
	struct fc_machine *machine = timed->opts.machine;
	uint64_t now_ns = world_of(timed)->now_ns, slices = 0;
	uint64_t end_ns = fc_pipe_move(&timed->hbm, now_ns, window_bytes);
	for (uint64_t i = 0; i < batch->copy_count; i++)
		slices += slice_count(&batch->copies[i]);
	if (link_bytes > 0) {
		struct fc_link_pair *links = &machine->links[worker_of(timed, &batch->copies[0])];
		bool is_up = batch->direction != FC_COPY_GATHER;
		uint64_t link_end_ns = fc_pipe_move(is_up ? &links->up : &links->down, now_ns, link_bytes);
		end_ns = fc_max_u64(end_ns, fc_max_u64(link_end_ns, fc_pipe_move(&machine->dram, now_ns, link_bytes)));
	}
	return end_ns + machine->hardware->copy_ns + slices * machine->hardware->slice_ns;
}

static uint64_t thread_copy_ns(const struct fc_timed *timed, const struct fc_copy *copy, bool is_gather, bool is_large)
{
	const struct fc_hardware *hardware = hardware_of(timed);
	bool is_from_window = !is_gather && is_in_window(timed, copy->flat);
	uint64_t slices = slice_count(copy), bytes_per_s = hardware->link_up_bytes_per_s;
	const struct fc_speed_curve *curve = is_large ? &hardware->large_slice_curve : &hardware->slice_curve;
	if (is_from_window && curve->count > 0)
		return fc_transfer_ns(copy->bytes, fc_speed_at(curve, copy->bytes / slices));
	if (is_gather)
		bytes_per_s = hardware->link_down_bytes_per_s;
	else if (is_from_window)
		bytes_per_s = hardware->hbm_bytes_per_s;
	return fc_transfer_ns(copy->bytes, bytes_per_s) + slices * hardware->slice_ns;
}

/* A CPU does one batch after the other, wherever the bytes lie. */
static void copy_by_thread(struct fc_timed *timed, struct fc_copy_batch *batch, uint64_t window_bytes,
			   uint64_t link_bytes)
{
	const struct fc_hardware *hardware = hardware_of(timed);
	struct flight *flight = take_flight(timed, NULL, batch);
	bool is_gather = batch->direction == FC_COPY_GATHER;
	bool is_large = window_bytes + link_bytes >= hardware->window_large_bytes;
	flight->busy_ns = !is_gather && window_bytes > 0 ? hardware->window_copy_ns : hardware->copy_ns;
	for (uint64_t i = 0; i < batch->copy_count; i++)
		flight->busy_ns += thread_copy_ns(timed, &batch->copies[i], is_gather, is_large);
	fc_list_push(&timed->waiting_batches, &flight->link);
	start_copy(timed);
}

static void device_submit(struct fc_device *device, struct fc_copy_batch *batch)
{
	struct fc_timed *timed = fc_container_of(device, struct fc_timed, device);
	uint64_t window_bytes = 0, link_bytes = 0;
	for (uint64_t i = 0; i < batch->copy_count; i++)
		*(is_in_window(timed, batch->copies[i].flat) ? &window_bytes : &link_bytes) += batch->copies[i].bytes;
	batch->result = FC_OK;
	batch->bad_first = batch->copy_count;
	*(batch->direction == FC_COPY_GATHER ? &device->bytes_gathered : &device->bytes_scattered) +=
		window_bytes + link_bytes;
	if (hardware_of(timed)->has_cpu_device)
		copy_by_thread(timed, batch, window_bytes, link_bytes);
	else
		launch(timed, NULL, batch, copy_by_device(timed, batch, window_bytes, link_bytes));
}

static unsigned device_poll(struct fc_device *device)
{
	struct fc_timed *timed = fc_container_of(device, struct fc_timed, device);
	return land(timed, &timed->done_batches);
}

static void *map_nothing(uint64_t bytes)
{
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return map == MAP_FAILED ? NULL : map;
}

static void *window_alloc(struct fc_device *device, uint64_t bytes)
{
	struct fc_timed *timed = fc_container_of(device, struct fc_timed, device);
	fc_check(timed->windows == NULL);
	timed->path_count = bytes / timed->opts.window_bytes;
	timed->paths = calloc(2 * timed->path_count, sizeof(*timed->paths));
	timed->windows = timed->paths == NULL ? NULL : map_nothing(bytes);
	timed->windows_bytes = timed->windows == NULL ? 0 : bytes;
	return timed->windows;
}

static void window_free(struct fc_device *device, void *memory, uint64_t bytes)
{
	struct fc_timed *timed = fc_container_of(device, struct fc_timed, device);
	fc_check(munmap(memory, bytes) == 0);
	timed->windows = NULL;
	timed->windows_bytes = 0;
}

static void device_close(struct fc_device *device)
{
	(void)device;
}

/* ---- open and close ---- */

static const struct fc_media_ops ssd_ops = {.submit = ssd_submit, .poll = ssd_poll, .close = medium_close};
static const struct fc_media_ops memory_ops = {.submit = memory_submit, .poll = memory_poll, .close = medium_close};
static const struct fc_device_ops device_ops = {
	.submit = device_submit,
	.poll = device_poll,
	.window_alloc = window_alloc,
	.window_free = window_free,
	.close = device_close,
};

static int make_media(struct fc_timed *timed)
{
	const struct fc_timed_opts *opts = &timed->opts;
	timed->ssd.timed = timed->memory.timed = timed;
	timed->ssd.media = (struct fc_media){
		.ops = &ssd_ops,
		.bytes = fc_align_down(opts->ssd_bytes, ARENA_ALIGN),
		.align = (uint32_t)opts->machine->hardware->ssd_align_bytes,
		.transfer_bytes_max = opts->transfer_bytes,
		.queue_depth = opts->queue_depth,
		.is_durable = true,
		.is_new = true,
	};
	const struct fc_hardware *hardware = opts->machine->hardware;
	if (hardware->ssd_first_write_bytes_per_s != hardware->ssd_write_bytes_per_s) {
		timed->is_written = calloc(opts->ssd_bytes / WRITTEN_UNIT_BYTES + 1, sizeof(*timed->is_written));
		if (timed->is_written == NULL)
			return FC_ENOMEM;
	}
	fc_list_init(&timed->memory.done);
	timed->memory.media = (struct fc_media){
		.ops = &memory_ops,
		.bytes = opts->memory_bytes,
		.align = 1,
		.transfer_bytes_max = UINT64_MAX,
		.queue_depth = UINT32_MAX,
		.is_new = true,
	};
	if (opts->memory_bytes == 0)
		return FC_OK;
	timed->memory.media.map = map_nothing(opts->memory_bytes);
	return timed->memory.media.map == NULL ? FC_ENOMEM : FC_OK;
}

/* One array of layers a worker; nobody looks behind their bases. */
static int make_layers(struct fc_timed *timed)
{
	const struct fc_geometry *geometry = timed->opts.geometry;
	uint64_t workers = timed->opts.machine->hardware->workers;
	timed->layer_count = (uint64_t)geometry->group_count * geometry->layer_count;
	timed->layers = calloc(workers * timed->layer_count, sizeof(*timed->layers));
	if (timed->layers == NULL)
		return FC_ENOMEM;
	for (uint64_t i = 0; i < workers * timed->layer_count; i++) {
		uint64_t group = i % timed->layer_count / geometry->layer_count;
		uint64_t slice_bytes = geometry->groups[group].slice_bytes[i % geometry->layer_count];
		timed->layers[i] = (struct fc_paged_layer){
			.base = timed->layers,
			.slot_stride_bytes = slice_bytes,
			.slot_count = 1,
			.piece_stride_bytes = slice_bytes,
			.piece_count = 1,
		};
	}
	return FC_OK;
}

int fc_timed_new(struct fc_timed **result, const struct fc_timed_opts *opts)
{
	struct fc_timed *timed = calloc(1, sizeof(*timed));
	if (timed == NULL)
		return FC_ENOMEM;
	timed->opts = *opts;
	timed->device.ops = &device_ops;
	timed->device.takes_pieces = true;
	timed->hbm.bytes_per_s = opts->machine->hardware->hbm_bytes_per_s;
	fc_list_init(&timed->waiting_batches);
	fc_list_init(&timed->held_ios);
	fc_list_init(&timed->free_flights);
	fc_list_init(&timed->done_ios);
	fc_list_init(&timed->done_batches);
	int code = make_media(timed);
	if (code == FC_OK)
		code = make_layers(timed);
	if (code == FC_OK)
		*result = timed;
	else
		fc_timed_free(timed);
	return code;
}

void fc_timed_free(struct fc_timed *timed)
{
	if (timed == NULL)
		return;
	struct fc_link *link;
	while ((link = fc_list_pop(&timed->free_flights)) != NULL)
		free(fc_container_of(link, struct flight, link));
	if (timed->memory.media.map != NULL)
		fc_check(munmap(timed->memory.media.map, timed->opts.memory_bytes) == 0);
	free(timed->paths);
	free(timed->layers);
	free(timed->is_written);
	free(timed);
}

struct fc_media *fc_timed_medium(struct fc_timed *timed, enum fc_medium medium)
{
	struct fc_media *media = medium == FC_MEMORY ? &timed->memory.media : &timed->ssd.media;
	return media->bytes == 0 ? NULL : media;
}

struct fc_device *fc_timed_device(struct fc_timed *timed)
{
	return &timed->device;
}

const struct fc_paged_layer *fc_timed_layers(const struct fc_timed *timed, uint32_t worker)
{
	return timed->layers + worker * timed->layer_count;
}
