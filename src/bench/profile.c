/* The figures of a hardware profile, each from a small experiment of its own:
 *
 *   disk      the store's medium on a file of --size: large commands written and read, small ones many at once (a
 *             command's share) and alone (latency), and syncs. The thread's CPU time during the small ones is what a
 *             command costs the sender. A small one ahead of a large one shows whether the disk reports each.
 *   copies    sessions in a memory-only store, loaded through the public interface: one of large slices, one of small
 *             slices with as many bytes (a slice's share), and ones of hardly any bytes with many layers and with one
 *             (a layer's share, and the rest: hand-offs between threads and look-ups). From SSD it is the processor
 * time that is measured, of the latter two and of slices of several sizes: what the store's thread does for a layer
 * besides its commands, and for a slice kernel    small and large reads out of the page cache, opening a file
 *
 * A share is the difference of two experiments over the difference of their counts. Where noise makes it negative it is
 * smaller than what can be measured here, and zero. */
#define _GNU_SOURCE
#include "bench/profile.h"

#include "base/check.h"
#include "base/random.h"
#include "bench/engine.h"
#include "device/host.h"
#include "host/pages.h"
#include "media/ssd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEPTH_LARGE 16u
#define DEPTH_SMALL 64u
#define SMALL_BYTES 4096u
#define SMALL_COUNT 32768u /* commands, at the default size */
#define LONE_COUNT 512u
#define SYNC_COUNT 16u
#define CURVE_BYTES_MIN (64ull << 10)
#define CURVE_DEPTH 4u
#define CURVE_READ_BYTES (64ull << 20) /* at each point, at the default size */
#define CURVE_BURSTS_MIN 4u
#define PAIRS 15u
#define JOINT_SHARE 0.75 /* of a pair's time: a first report that comes later is one of both */
#define WAIT_MS 1000
#define ARENA_BYTES_MIN (64ull << 20)
#define SMALL_SLICE_BYTES 1024u
#define LARGE_BLOCKS 256u
#define SLICE_BYTES_MIN 64u /* of the points, each eight times the one before */
#define SLICE_SHIFT 3
#define SLICE_ODD_BYTES 8u
#define SAVE_POINT (LARGE_SLICES_S + 2) /* of slices of some KiB */
#define SLICE_KV_BYTES (1ull << 30)     /* of the engine whose slots they are, at the default size */
#define TINY_LOADS 64u
#define KERNEL_READS 4096u
#define KERNEL_LARGE_BYTES (1u << 20)
#define FILE_OPENS 256u

/* What is measured in one run; the profile's figures are the medians of each, and of what follows from several. */
enum figure {
	READ_S, /* of a large command */
	WRITE_S,
	SMALL_S, /* of a small one, many at once */
	LONE_S,  /* alone, and slept for */
	AWAKE_S, /* alone, and waited for awake */
	SYNC_S,
	CPU_S, /* of the sender, for a small command */
	KERNEL_SMALL_S,
	KERNEL_LARGE_S,
	OPEN_S,
	MEMCPY_S, /* a byte */
	MEMORY_LARGE_SLICES_S,
	MEMORY_SMALL_SLICES_S,
	MANY_LAYERS_S,
	ONE_LAYER_S,
	MANY_WINDOWS_S, /* processor time of a load from SSD, as the two below */
	ONE_WINDOW_S,
	SAVE_CPU_S, /* processor time of a save to SSD */
	CURVE_S,    /* of a command, or of a burst, at the first point; the others follow */
	SLICES_S = CURVE_S + FC_BENCH_CURVE_POINTS,        /* processor time of a load from SSD, at the first point */
	LARGE_SLICES_S = SLICES_S + FC_BENCH_SLICE_POINTS, /* the same in large batches */
	FIGURE_COUNT = LARGE_SLICES_S + FC_BENCH_SLICE_POINTS,
};

struct prober {
	struct fc_bench *bench;
	struct fc_media *media;
	char path[FC_BENCH_PATH_BYTES];
	uint8_t *buffers;
	uint64_t buffers_bytes;
	struct fc_random random;
	double *figures[FIGURE_COUNT]; /* by run */
	uint64_t session_bytes;        /* of the sessions of large slices, as they came out */
	uint64_t small_slices, large_slices;
	uint64_t commands[FIGURE_COUNT], slices[FIGURE_COUNT]; /* of a load from SSD */
	double first_write_s;                                  /* of a large command */
	bool has_joint_reports;
};

static double thread_seconds(void)
{
	struct timespec time;
	fc_check(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* ---- the disk ---- */

/* Commands of one kind, a number of them always under way. */
struct burst {
	struct fc_media *media;
	struct fc_random *random; /* of the offsets; NULL: one behind the other */
	enum fc_io_op op;
	uint64_t bytes, left, under_way, next_offset;
	int code;
	bool is_awake;  /* nobody sleeps until one ends */
	double first_s; /* when the first one was heard of */
};

struct command {
	struct fc_io io;
	struct burst *burst;
};

static void send_next(struct command *command)
{
	struct burst *burst = command->burst;
	uint64_t places = burst->media->bytes / burst->bytes;
	uint64_t place = burst->random != NULL ? fc_random_below(burst->random, places) : burst->next_offset++ % places;
	command->io.op = burst->op;
	command->io.offset = place * burst->bytes;
	command->io.bytes = burst->op == FC_IO_SYNC ? 0 : burst->bytes;
	burst->left--;
	burst->under_way++;
	fc_media_submit(burst->media, &command->io);
}

static void on_done(struct fc_io *io)
{
	struct command *command = fc_container_of(io, struct command, io);
	struct burst *burst = command->burst;
	burst->under_way--;
	if (burst->first_s == 0)
		burst->first_s = fc_bench_seconds();
	if (fc_io_code(io) != FC_OK)
		burst->code = fc_io_code(io);
	if (burst->left > 0 && burst->code == FC_OK)
		send_next(command);
}

/* As the store's thread sleeps: waking up through a descriptor is part of a command's time. */
static void sleep_until_one_ends(struct fc_media *media)
{
	struct pollfd fd = {.fd = fc_media_event_fd(media), .events = POLLIN};
	(void)poll(&fd, 1, WAIT_MS);
}

static int finish(struct prober *prober, struct burst *burst, struct fc_error *error)
{
	while (burst->under_way > 0)
		if (fc_media_poll(prober->media) == 0 && burst->under_way > 0 && !burst->is_awake)
			sleep_until_one_ends(prober->media);
	return burst->code == FC_OK ? FC_OK : fc_error_set(error, burst->code, "%s: an I/O failed", prober->path);
}

static int run_burst(struct prober *prober, struct burst *burst, uint32_t depth, double *wall_s, double *cpu_s,
		     struct fc_error *error)
{
	struct command commands[DEPTH_SMALL] = {0};
	burst->media = prober->media;
	fc_check(depth <= DEPTH_SMALL && depth * burst->bytes <= prober->buffers_bytes);
	double start_s = fc_bench_seconds(), start_cpu_s = thread_seconds();
	for (uint32_t i = 0; i < depth && burst->left > 0; i++) {
		commands[i].burst = burst;
		commands[i].io.buffer = prober->buffers + i * burst->bytes;
		commands[i].io.done_cb = on_done;
		send_next(&commands[i]);
	}
	int code = finish(prober, burst, error);
	*wall_s = fc_bench_seconds() - start_s;
	if (cpu_s != NULL)
		*cpu_s = thread_seconds() - start_cpu_s;
	return code;
}

/* Seconds of each of `count` commands. */
static int time_commands(struct prober *prober, enum figure figure, uint64_t run, struct burst burst, uint32_t depth,
			 struct fc_error *error)
{
	double wall_s, cpu_s, count = (double)burst.left;
	int code = run_burst(prober, &burst, depth, &wall_s, &cpu_s, error);
	prober->figures[figure][run] = wall_s / count;
	if (figure == SMALL_S)
		prober->figures[CPU_S][run] = cpu_s / count;
	return code;
}

static int time_syncs(struct prober *prober, uint64_t run, struct fc_error *error)
{
	double sum_s = 0, wall_s = 0;
	int code = FC_OK;
	for (uint32_t i = 0; i < SYNC_COUNT && code == FC_OK; i++) {
		struct burst write = {.op = FC_IO_WRITE, .bytes = SMALL_BYTES, .left = 1, .random = &prober->random};
		struct burst sync = {.op = FC_IO_SYNC, .bytes = SMALL_BYTES, .left = 1};
		code = run_burst(prober, &write, 1, &wall_s, NULL, error);
		if (code == FC_OK)
			code = run_burst(prober, &sync, 1, &wall_s, NULL, error);
		sum_s += wall_s;
	}
	prober->figures[SYNC_S][run] = sum_s / SYNC_COUNT;
	return code;
}

/* ---- how the disk reports ---- */

/* A small read, and a large one behind it: the share of both's time after which the first was heard of. */
static int time_pair(struct prober *prober, double *share, struct fc_error *error)
{
	struct burst burst = {.under_way = 2, .is_awake = true};
	struct command commands[2];
	uint64_t large_bytes = prober->media->transfer_bytes_max;
	double start_s = fc_bench_seconds();
	for (uint64_t i = 0; i < 2; i++) {
		commands[i] = (struct command){.burst = &burst};
		commands[i].io = (struct fc_io){
			.op = FC_IO_READ,
			.offset = i * large_bytes,
			.bytes = i == 0 ? SMALL_BYTES : large_bytes,
			.buffer = prober->buffers + i * large_bytes,
			.done_cb = on_done,
		};
		fc_media_submit(prober->media, &commands[i].io);
	}
	int code = finish(prober, &burst, error);
	double whole_s = fc_bench_seconds() - start_s;
	*share = whole_s > 0 ? (burst.first_s - start_s) / whole_s : 0;
	return code;
}

static int find_reports(struct prober *prober, struct fc_error *error)
{
	double shares[PAIRS];
	int code = FC_OK;
	for (uint32_t i = 0; i < PAIRS && code == FC_OK; i++)
		code = time_pair(prober, &shares[i], error);
	prober->has_joint_reports = code == FC_OK && fc_bench_median(shares, PAIRS) > JOINT_SHARE;
	return code;
}

/* ---- how much has to be under way ---- */

static uint64_t curve_bytes(int point)
{
	return CURVE_BYTES_MIN << point;
}

static uint64_t curve_command_bytes(uint64_t transfer_bytes, int point)
{
	return fc_min_u64(curve_bytes(point) / CURVE_DEPTH, transfer_bytes);
}

/* Several bursts, whose data is copied elsewhere before the next: where memory was written by another processor last,
 * a disk that a processor serves finds it in that one's caches. What a burst takes is the figure. */
static int time_bursts(struct prober *prober, enum figure figure, uint64_t run, struct burst burst, uint32_t depth,
		       struct fc_error *error)
{
	uint64_t burst_bytes = depth * burst.bytes, count = fc_max_u64(burst.left / depth, CURVE_BURSTS_MIN);
	uint64_t places = prober->buffers_bytes / burst_bytes;
	double sum_s = 0, wall_s;
	int code = FC_OK;
	for (uint64_t i = 0; i < count && code == FC_OK; i++) {
		burst.left = depth;
		code = run_burst(prober, &burst, depth, &wall_s, NULL, error);
		memcpy(prober->buffers + (1 + i % (places - 1)) * burst_bytes, prober->buffers, burst_bytes);
		sum_s += wall_s;
	}
	prober->figures[figure][run] = sum_s / (double)count;
	return code;
}

/* A disk that reports jointly is read in bursts, whatever the reader does; another one as steadily as it wants. */
static int run_curve(struct prober *prober, uint64_t run, struct fc_error *error)
{
	const struct fc_bench *bench = prober->bench;
	int code = FC_OK;
	for (int point = 0; point < FC_BENCH_CURVE_POINTS && code == FC_OK; point++) {
		uint64_t bytes = curve_command_bytes(prober->media->transfer_bytes_max, point);
		uint64_t depth = fc_min_u64(curve_bytes(point) / bytes, DEPTH_SMALL);
		enum figure figure = (enum figure)(CURVE_S + point);
		struct burst burst = {
			.op = FC_IO_READ,
			.bytes = bytes,
			.left = fc_max_u64(fc_bench_scaled(bench, CURVE_READ_BYTES, 0) / bytes, 4 * depth),
			.random = &prober->random, /* neighbours would be joined on their way to the disk */
		};
		code = prober->has_joint_reports ? time_bursts(prober, figure, run, burst, (uint32_t)depth, error)
						 : time_commands(prober, figure, run, burst, (uint32_t)depth, error);
	}
	return code;
}

static int run_disk(struct prober *prober, uint64_t run, struct fc_error *error)
{
	uint64_t large_bytes = prober->media->transfer_bytes_max, large_count = prober->media->bytes / large_bytes;
	uint64_t small_count = fc_bench_scaled(prober->bench, SMALL_COUNT, LONE_COUNT);
	struct burst large = {.op = FC_IO_WRITE, .bytes = large_bytes, .left = large_count};
	struct burst small = {.op = FC_IO_READ, .bytes = SMALL_BYTES, .left = small_count, .random = &prober->random};
	int code = FC_OK;
	if (run == 0) { /* the only one that finds the file as it was made */
		code = time_commands(prober, WRITE_S, run, large, DEPTH_LARGE, error);
		prober->first_write_s = prober->figures[WRITE_S][run];
	}
	if (code == FC_OK)
		code = time_commands(prober, WRITE_S, run, large, DEPTH_LARGE, error);
	if (code == FC_OK)
		code = time_syncs(prober, run, error);
	if (code == FC_OK && run == 0)
		code = find_reports(prober, error);
	large.op = FC_IO_READ;
	if (code == FC_OK)
		code = time_commands(prober, READ_S, run, large, DEPTH_LARGE, error);
	if (code == FC_OK)
		code = time_commands(prober, SMALL_S, run, small, DEPTH_SMALL, error);
	small.left = LONE_COUNT;
	if (code == FC_OK)
		code = time_commands(prober, LONE_S, run, small, 1, error);
	small.is_awake = true;
	if (code == FC_OK)
		code = time_commands(prober, AWAKE_S, run, small, 1, error);
	return code == FC_OK ? run_curve(prober, run, error) : code;
}

static int open_disk(struct prober *prober, struct fc_bench_profile *profile, struct fc_error *error)
{
	struct fc_bench *bench = prober->bench;
	struct fc_ssd_opts opts = {
		.path = prober->path,
		.bytes = fc_max_u64(bench->size_bytes, ARENA_BYTES_MIN),
		.queue_depth = DEPTH_SMALL,
		.transfer_bytes = bench->store.transfer_bytes,
	};
	snprintf(prober->path, sizeof(prober->path), "%s/disk", bench->work_dir);
	int code = fc_ssd_open(&opts, &prober->media, error);
	if (code != FC_OK)
		return code;
	profile->ssd_align_bytes = prober->media->align;
	profile->ssd_transfer_bytes = prober->media->transfer_bytes_max;
	profile->is_direct = fc_ssd_is_direct(prober->media);
	prober->buffers_bytes =
		fc_max_u64(DEPTH_LARGE * prober->media->transfer_bytes_max, CURVE_BYTES_MIN << FC_BENCH_CURVE_POINTS);
	prober->buffers = fc_pages_alloc(prober->buffers_bytes);
	if (prober->buffers == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for buffers");
	fc_random_init(&prober->random, bench->seed);
	for (uint64_t i = 0; i + 8 <= prober->buffers_bytes; i += 8) {
		uint64_t bits = fc_random_u64(&prober->random);
		memcpy(prober->buffers + i, &bits, sizeof(bits));
	}
	if (prober->media->ops->register_buffers != NULL) /* slower without, as for the store */
		(void)prober->media->ops->register_buffers(prober->media, prober->buffers, prober->buffers_bytes);
	return FC_OK;
}

/* ---- the kernel ---- */

static int read_cached(int fd, uint8_t *buffer, uint64_t bytes, uint64_t count, double *each_s)
{
	double start_s = fc_bench_seconds();
	for (uint64_t i = 0; i < count; i++)
		if (pread(fd, buffer, bytes, (off_t)(i * bytes % KERNEL_LARGE_BYTES)) != (ssize_t)bytes)
			return FC_EIO;
	*each_s = (fc_bench_seconds() - start_s) / (double)count;
	return FC_OK;
}

static int time_opens(const char *path, double *each_s)
{
	double start_s = fc_bench_seconds();
	for (uint32_t i = 0; i < FILE_OPENS; i++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || close(fd) != 0)
			return FC_EIO;
	}
	*each_s = (fc_bench_seconds() - start_s) / FILE_OPENS;
	return FC_OK;
}

static int run_kernel(struct prober *prober, uint64_t run, struct fc_error *error)
{
	char path[FC_BENCH_PATH_BYTES];
	double unused;
	uint64_t large_count = fc_bench_scaled(prober->bench, 64, 4);
	snprintf(path, sizeof(path), "%s/cached", prober->bench->work_dir);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int code = fd < 0 || pwrite(fd, prober->buffers, KERNEL_LARGE_BYTES, 0) != KERNEL_LARGE_BYTES ? FC_EIO : FC_OK;
	if (code == FC_OK)
		code = read_cached(fd, prober->buffers, KERNEL_LARGE_BYTES, 1, &unused);
	if (code == FC_OK)
		code = read_cached(fd, prober->buffers, SMALL_BYTES, KERNEL_READS,
				   &prober->figures[KERNEL_SMALL_S][run]);
	if (code == FC_OK)
		code = read_cached(fd, prober->buffers, KERNEL_LARGE_BYTES, large_count,
				   &prober->figures[KERNEL_LARGE_S][run]);
	if (code == FC_OK)
		code = time_opens(path, &prober->figures[OPEN_S][run]);
	if (code != FC_OK)
		fc_error_set(error, code, "%s: %s", path, strerror(errno));
	if (fd >= 0)
		(void)close(fd);
	return code;
}

/* ---- memory ---- */

struct copier {
	pthread_t thread;
	uint8_t *from, *to;
	uint64_t bytes;
};

static void *copy(void *context)
{
	struct copier *copier = context;
	memcpy(copier->to, copier->from, copier->bytes);
	return NULL;
}

/* Two copies at once show what two threads get together; on a machine with one processor they get what one does. */
static int run_memcpy(struct prober *prober, uint64_t run, struct fc_error *error)
{
	struct copier copiers[2] = {0};
	uint64_t bytes = fc_bench_scaled(prober->bench, 64ull << 20, 1ull << 20);
	uint8_t *memory = fc_pages_alloc(4 * bytes);
	int started = 0, failure = 0;
	if (memory == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for a copy");
	memset(memory, 1, 4 * bytes);
	double start_s = fc_bench_seconds();
	for (; started < 2 && failure == 0; started += failure == 0) {
		copiers[started] = (struct copier){.from = memory + 2 * (uint64_t)started * bytes, .bytes = bytes};
		copiers[started].to = copiers[started].from + bytes;
		failure = pthread_create(&copiers[started].thread, NULL, copy, &copiers[started]);
	}
	for (int i = 0; i < started; i++)
		fc_check(pthread_join(copiers[i].thread, NULL) == 0);
	prober->figures[MEMCPY_S][run] = (fc_bench_seconds() - start_s) / (2 * (double)bytes);
	fc_pages_free(memory, 4 * bytes);
	return failure == 0 ? FC_OK : fc_error_set(error, FC_ESYSTEM, "pthread_create: %s", strerror(failure));
}

/* ---- the store's copies ---- */

struct session_test {
	enum figure load, save; /* save FIGURE_COUNT: not measured */
	bool is_on_ssd;         /* and then processor time is what is measured */
	uint32_t layers;
	uint64_t blocks, slots, slice_bytes, loads;
};

static double seconds_for(const struct session_test *test)
{
	return test->is_on_ssd ? fc_bench_cpu_seconds() : fc_bench_seconds();
}

static int run_sessions(struct prober *prober, const struct session_test *test, struct fc_bench_engine *engine,
			struct fc_error *error)
{
	struct fc_bench *bench = prober->bench;
	struct fc_bench_turn turn = {.block_count = test->blocks};
	struct fc_load_result result;
	int code = FC_OK;
	for (uint64_t run = 0; run < bench->run_count && code == FC_OK; run++) {
		turn.session = run;
		fc_bench_engine_use(engine, bench->seed, run);
		double start_s = seconds_for(test);
		code = fc_bench_engine_save(engine, &turn, false, NULL, error);
		if (test->save != FIGURE_COUNT)
			prober->figures[test->save][run] = seconds_for(test) - start_s;
	}
	for (uint64_t run = 0; run < bench->run_count && code == FC_OK; run++) {
		fc_bench_engine_use(engine, bench->seed, run);
		code = fc_bench_step(bench, error);
		double start_s = seconds_for(test);
		for (uint64_t i = 0; i < test->loads && code == FC_OK; i++)
			code = fc_bench_engine_load(engine, &result, error);
		prober->figures[test->load][run] = (seconds_for(test) - start_s) / (double)test->loads;
		if (code == FC_OK)
			prober->commands[test->load] = result.read_commands;
	}
	prober->slices[test->load] = test->layers * test->blocks;
	return code;
}

/* Sessions of their own for every run, so that none is found in a cache. */
static int test_sessions(struct prober *prober, const struct session_test *test, struct fc_error *error)
{
	struct fc_bench *bench = prober->bench;
	struct fc_bench_engine engine;
	int code = fc_bench_engine_init_among(&engine, test->layers, test->blocks, test->slots, test->slice_bytes,
					      bench->seed, error);
	/* Room for the slices, their checksums, and headers with a key for each block. */
	uint64_t block_bytes = test->layers * (test->slice_bytes + 4) + 64;
	uint64_t budget_bytes = (test->blocks * block_bytes + (4ull << 20)) * bench->run_count + (64ull << 20);
	if (code == FC_OK)
		code = fc_bench_engine_open(&engine, bench, test->is_on_ssd ? 0 : budget_bytes,
					    test->is_on_ssd ? budget_bytes : 0, error);
	if (code == FC_OK)
		code = run_sessions(prober, test, &engine, error);
	fc_bench_engine_close(&engine);
	if (test->is_on_ssd)
		(void)unlink(engine.arena_path); /* the next test's sessions have another shape */
	fc_bench_engine_deinit(&engine);
	return code;
}

/* Hardly any model's slices are whole lines of the processor's caches. */
static uint64_t slice_bytes(int point)
{
	return (SLICE_BYTES_MIN << (SLICE_SHIFT * point)) + SLICE_ODD_BYTES;
}

/* A layer is one batch. One of small slices has fewer bytes than a whole one would: it is their number that takes time.
 */
static int run_slices(struct prober *prober, enum figure first, uint64_t layer_bytes, struct fc_error *error)
{
	const struct fc_bench *bench = prober->bench;
	uint64_t kv_bytes = fc_bench_scaled(bench, SLICE_KV_BYTES, 0);
	int code = FC_OK;
	for (int point = 0; point < FC_BENCH_SLICE_POINTS && code == FC_OK; point++) {
		uint64_t scaled_bytes = fc_bench_scaled(bench, layer_bytes, slice_bytes(point));
		uint64_t blocks = scaled_bytes / slice_bytes(point);
		struct session_test test = {
			.load = (enum figure)(first + point),
			.save = first + point == SAVE_POINT ? SAVE_CPU_S : FIGURE_COUNT,
			.is_on_ssd = true,
			.layers = FC_BENCH_LAYERS,
			.blocks = blocks,
			.slots = fc_max_u64(blocks, kv_bytes / FC_BENCH_LAYERS / slice_bytes(point)),
			.slice_bytes = slice_bytes(point),
			.loads = 1,
		};
		code = test_sessions(prober, &test, error);
	}
	return code;
}

static int run_copies(struct prober *prober, struct fc_error *error)
{
	uint64_t layer_bytes = fc_bench_scaled(prober->bench, 64ull << 20, 4ull << 20) / FC_BENCH_LAYERS;
	uint64_t small_blocks = layer_bytes / SMALL_SLICE_BYTES, large_bytes = layer_bytes / LARGE_BLOCKS;
	const uint32_t many = FC_BENCH_LAYERS, small = SMALL_SLICE_BYTES;
	const struct session_test tests[] = {
		{MEMORY_LARGE_SLICES_S, FIGURE_COUNT, false, many, LARGE_BLOCKS, LARGE_BLOCKS, large_bytes, 1},
		{MEMORY_SMALL_SLICES_S, FIGURE_COUNT, false, many, small_blocks, small_blocks, small, 1},
		{MANY_LAYERS_S, FIGURE_COUNT, false, many, 1, 1, small, TINY_LOADS},
		{ONE_LAYER_S, FIGURE_COUNT, false, 1, 1, 1, small, TINY_LOADS},
		{MANY_WINDOWS_S, FIGURE_COUNT, true, many, 1, 1, small, TINY_LOADS},
		{ONE_WINDOW_S, FIGURE_COUNT, true, 1, 1, 1, small, TINY_LOADS},
	};
	int code = FC_OK;
	prober->session_bytes = many * LARGE_BLOCKS * large_bytes;
	prober->large_slices = (uint64_t)many * LARGE_BLOCKS;
	prober->small_slices = many * small_blocks;
	for (size_t i = 0; i < fc_array_len(tests) && code == FC_OK; i++)
		code = test_sessions(prober, &tests[i], error);
	if (code == FC_OK)
		code = run_slices(prober, SLICES_S, FC_HOST_STREAMING_BYTES / 2, error);
	return code == FC_OK ? run_slices(prober, LARGE_SLICES_S, FC_HOST_STREAMING_BYTES * 3 / 2, error) : code;
}

/* ---- the whole ---- */

static double median(const struct prober *prober, enum figure figure)
{
	return fc_bench_median(prober->figures[figure], prober->bench->run_count);
}

static double at_least_zero(double value)
{
	return value > 0 ? value : 0;
}

/* Bytes per second besides a fixed part; all of the time is the bytes' where noise leaves nothing. */
static double speed(double bytes, double whole_s, double fixed_s)
{
	return bytes / (whole_s > fixed_s ? whole_s - fixed_s : whole_s);
}

/* Of a burst, the bytes' part: besides its commands, waking the disk (what a lone command takes besides itself) and
 * waking up. */
static void conclude_curve(const struct prober *prober, struct fc_bench_profile *profile)
{
	double waking_s = at_least_zero(profile->latency_s - profile->command_s) + profile->wake_s;
	for (int point = 0; point < FC_BENCH_CURVE_POINTS; point++) {
		double bytes = (double)curve_command_bytes(profile->ssd_transfer_bytes, point);
		double time_s = median(prober, (enum figure)(CURVE_S + point));
		double count = (double)curve_bytes(point) / bytes;
		profile->curve_bytes[point] = curve_bytes(point);
		profile->curve_bytes_per_s[point] =
			profile->has_joint_reports ? speed(count * bytes, time_s, count * profile->command_s + waking_s)
						   : speed(bytes, time_s, profile->command_s);
	}
}

static double slice_speed(const struct prober *prober, enum figure first, int point, double fixed_s, double command_s)
{
	enum figure figure = (enum figure)(first + point);
	return speed((double)(prober->slices[figure] * slice_bytes(point)), median(prober, figure),
		     fixed_s + (double)prober->commands[figure] * command_s);
}

/* Of loads from SSD: what each has besides one of hardly any bytes is its commands' and its slices'. */
static void conclude_windows(const struct prober *prober, struct fc_bench_profile *profile)
{
	double command_s = profile->direct_command_s;
	double many_s = median(prober, MANY_WINDOWS_S), one_s = median(prober, ONE_WINDOW_S);
	double many_commands = (double)prober->commands[MANY_WINDOWS_S];
	double layers_s = many_s - one_s - (many_commands - (double)prober->commands[ONE_WINDOW_S]) * command_s;
	double fixed_s = many_s - many_commands * command_s;
	profile->window_copy_s = at_least_zero(layers_s / (FC_BENCH_LAYERS - 1));
	for (int point = 0; point < FC_BENCH_SLICE_POINTS; point++) {
		profile->slice_bytes[point] = slice_bytes(point);
		profile->slice_bytes_per_s[point] = slice_speed(prober, SLICES_S, point, fixed_s, command_s);
		profile->large_slice_bytes_per_s[point] =
			slice_speed(prober, LARGE_SLICES_S, point, fixed_s, command_s);
	}
	double slices = (double)prober->slices[SAVE_POINT];
	profile->save_bytes_per_s =
		speed(slices * (double)slice_bytes(SAVE_POINT - LARGE_SLICES_S), median(prober, SAVE_CPU_S),
		      FC_BENCH_LAYERS * profile->copy_s + slices * profile->slice_s);
}

static void conclude(const struct prober *prober, struct fc_bench_profile *profile)
{
	double large_bytes = (double)profile->ssd_transfer_bytes, session_bytes = (double)prober->session_bytes;
	profile->command_s = median(prober, SMALL_S);
	profile->read_bytes_per_s = speed(large_bytes, median(prober, READ_S), profile->command_s);
	profile->write_bytes_per_s = speed(large_bytes, median(prober, WRITE_S), profile->command_s);
	profile->first_write_bytes_per_s = speed(large_bytes, prober->first_write_s, profile->command_s);
	profile->latency_s = median(prober, AWAKE_S);
	profile->wake_s = at_least_zero(median(prober, LONE_S) - profile->latency_s);
	profile->has_joint_reports = prober->has_joint_reports;
	conclude_curve(prober, profile);
	profile->sync_s = median(prober, SYNC_S);
	profile->direct_command_s = median(prober, CPU_S);
	profile->kernel_copy_bytes_per_s = KERNEL_LARGE_BYTES / median(prober, KERNEL_LARGE_S);
	profile->kernel_command_s =
		at_least_zero(median(prober, KERNEL_SMALL_S) - SMALL_BYTES / profile->kernel_copy_bytes_per_s);
	profile->file_open_s = median(prober, OPEN_S);
	profile->memcpy_bytes_per_s = 1 / median(prober, MEMCPY_S);
	double layers_s = median(prober, MANY_LAYERS_S) - median(prober, ONE_LAYER_S);
	double large_s = median(prober, MEMORY_LARGE_SLICES_S);
	profile->copy_s = at_least_zero(layers_s / (FC_BENCH_LAYERS - 1));
	profile->load_s = at_least_zero(median(prober, ONE_LAYER_S) - profile->copy_s);
	profile->slice_s = at_least_zero((median(prober, MEMORY_SMALL_SLICES_S) - large_s) /
					 ((double)prober->small_slices - (double)prober->large_slices));
	double fixed_s =
		profile->load_s + FC_BENCH_LAYERS * profile->copy_s + (double)prober->large_slices * profile->slice_s;
	profile->load_bytes_per_s = speed(session_bytes, large_s, fixed_s);
	conclude_windows(prober, profile);
}

static int measure(struct prober *prober, struct fc_bench_profile *profile, struct fc_error *error)
{
	struct fc_bench *bench = prober->bench;
	int code = open_disk(prober, profile, error);
	for (uint64_t run = 0; run < bench->run_count && code == FC_OK; run++) {
		code = fc_bench_step(bench, error);
		if (code == FC_OK)
			code = run_disk(prober, run, error);
		if (code == FC_OK)
			code = run_kernel(prober, run, error);
		if (code == FC_OK)
			code = run_memcpy(prober, run, error);
	}
	fc_media_close(prober->media);
	fc_pages_free(prober->buffers, prober->buffers_bytes);
	return code == FC_OK ? run_copies(prober, error) : code;
}

static int measure_in_folder(struct fc_bench *bench, struct fc_error *error)
{
	struct prober prober = {.bench = bench};
	bool has_memory = true;
	*bench->profile = (struct fc_bench_profile){0};
	for (int i = 0; i < FIGURE_COUNT; i++) {
		prober.figures[i] = calloc(bench->run_count, sizeof(double));
		has_memory = has_memory && prober.figures[i] != NULL;
	}
	int code = has_memory ? measure(&prober, bench->profile, error)
			      : fc_error_set(error, FC_ENOMEM, "no memory for the result");
	if (code == FC_OK)
		conclude(&prober, bench->profile);
	for (int i = 0; i < FIGURE_COUNT; i++)
		free(prober.figures[i]);
	return code;
}

int fc_bench_profile(struct fc_bench *bench, struct fc_bench_profile *profile, struct fc_error *error)
{
	static const struct fc_bench_measurement measurement = {"profile", "what a hardware profile needs",
								measure_in_folder};
	bench->profile = profile;
	return fc_bench_run(bench, &measurement, error);
}
