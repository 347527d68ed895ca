/* A profile has three kinds of numbers: what bench/profile.h measures, what the live replay models instead of measuring
 * (its engine: replay/driver.c), and the budgets of the options. Each says which it is. */
#include "cli/bench_profile.h"

#include "base/check.h"
#include "bench/profile.h"
#include "device/host.h"
#include "host/whole_file.h"
#include "replay/hardware.h"
#include "replay/live.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NO_STRIPES (1ull << 40) /* one drive: all of an arena is on it */
#define NS_PER_S 1e9
#define CURVE_TEXT_BYTES (FC_BENCH_CURVE_POINTS * 48)

static uint64_t rounded(double value)
{
	return (uint64_t)llround(value);
}

static uint64_t in_ns(double seconds)
{
	return rounded(seconds * NS_PER_S);
}

/* As the live replay's engine is: it computes one request at a time, at --prefill, and has no replies to wait for. */
static void set_engine(struct fc_hardware *hardware, const struct fc_bench_profile *profile)
{
	hardware->workers = 1;
	hardware->hbm_kv_bytes = fc_live_pool_bytes_max();
	hardware->hbm_bytes_per_s = rounded(profile->large_slice_bytes_per_s[FC_BENCH_SLICE_POINTS - 1]);
	hardware->prefill_tokens_per_s = INFINITY;
	hardware->chunk_tokens = 1ull << 32;
	hardware->batch_max = 1;
	hardware->has_cpu_device = true;
}

static void print_curve(const uint64_t *bytes, const double *bytes_per_s, int count, char text[CURVE_TEXT_BYTES])
{
	size_t used = 0;
	for (int i = 0; i < count; i++) {
		used += (size_t)snprintf(text + used, CURVE_TEXT_BYTES - used, "%s%llu=%llu", i > 0 ? "," : "",
					 (unsigned long long)bytes[i], (unsigned long long)rounded(bytes_per_s[i]));
		fc_check(used < CURVE_TEXT_BYTES);
	}
}

/* Texts of a profile's curves. */
struct curves {
	char read[CURVE_TEXT_BYTES], slices[CURVE_TEXT_BYTES], large_slices[CURVE_TEXT_BYTES];
};

/* `curves` is borrowed. */
static void set_node(struct fc_hardware *hardware, const struct fc_bench_profile *profile,
		     const struct fc_config *config, const struct curves *curves)
{
	hardware->model = config->model;
	hardware->memory_bytes = config->memory_bytes;
	hardware->ssd_bytes = config->ssd_bytes;
	hardware->dram_bytes_per_s = rounded(profile->memcpy_bytes_per_s);
	hardware->link_up_bytes_per_s = rounded(profile->load_bytes_per_s);
	hardware->link_down_bytes_per_s = rounded(profile->save_bytes_per_s);
	hardware->copy_ns = in_ns(profile->copy_s);
	hardware->slice_ns = in_ns(profile->slice_s);
	hardware->window_copy_ns = in_ns(profile->window_copy_s);
	hardware->window_curve = curves->slices;
	hardware->window_large_curve = curves->large_slices;
	hardware->window_large_bytes = FC_HOST_STREAMING_BYTES;
	hardware->wake_ns = in_ns(profile->wake_s);
	hardware->load_ns = in_ns(profile->load_s);
	hardware->ssd_count = 1;
	hardware->ssd_align_bytes = profile->ssd_align_bytes;
	hardware->ssd_stripe_bytes = NO_STRIPES;
	hardware->ssd_transfer_bytes = profile->ssd_transfer_bytes;
	hardware->ssd_read_bytes_per_s = rounded(profile->read_bytes_per_s);
	hardware->ssd_read_curve = curves->read;
	hardware->ssd_write_bytes_per_s = rounded(profile->write_bytes_per_s);
	hardware->ssd_first_write_bytes_per_s = rounded(profile->first_write_bytes_per_s);
	hardware->ssd_command_ns = in_ns(profile->command_s);
	hardware->ssd_latency_ns = in_ns(profile->latency_s);
	hardware->ssd_sync_ns = in_ns(profile->sync_s);
	hardware->has_joint_reports = profile->has_joint_reports;
	hardware->direct_command_ns = in_ns(profile->direct_command_s);
	hardware->kernel_command_ns = in_ns(profile->kernel_command_s);
	hardware->kernel_copy_bytes_per_s = rounded(profile->kernel_copy_bytes_per_s);
	hardware->file_open_ns = in_ns(profile->file_open_s);
}

static const struct fc_hardware_origin origins[] = {
	{"model", "--model"},
	{"workers", "a live replay has one engine"},
	{"hbm_kv_bytes", "what a live replay gives its engine at most, 40 % of memory"},
	{"hbm_bytes_per_s", "measured: the last speed of window_large_curve"},
	{"prefill_tokens_per_s", "modelled by a live replay as well: --prefill"},
	{"prefill_context_tokens", "a live replay's engine knows no context"},
	{"step_ns", "nor anything besides tokens"},
	{"decode_step_ns", "a live replay's replies take no time"},
	{"decode_request_ns", "the same"},
	{"decode", "the same"},
	{"chunk_tokens", "one prefill is one step"},
	{"batch_max", "one at a time"},
	{"overlap", "a live replay waits for the whole history"},
	{"cpu_device", "the store's thread copies"},
	{"memory_bytes", "--memory"},
	{"ssd_bytes", "--ssd"},
	{"dram_bytes_per_s", "measured: memcpy, two threads"},
	{"link_up_bytes_per_s", "measured: load of a session in memory with its checksums, besides its fixed parts"},
	{"link_down_bytes_per_s", "measured: processor time of a session saved to SSD, besides its fixed parts"},
	{"copy_ns", "measured: what a layer adds to a load of next to nothing"},
	{"slice_ns", "measured: what a slice adds, sessions of small and of large slices"},
	{"window_copy_ns",
	 "measured: processor time that a layer adds to a load from SSD of next to nothing, besides its commands"},
	{"window_curve",
	 "measured: speed by the bytes of a slice, processor time of loads from SSD besides commands and layers"},
	{"window_large_curve", "measured: the same with layers that are copied past the caches"},
	{"window_large_bytes", "from so many on they are"},
	{"wake_ns", "measured: reads of 4 KiB, one after the other, by a thread that sleeps and one that does not"},
	{"load_ns", "measured: a load of next to nothing, from another thread"},
	{"ssd_count", "one file system"},
	{"ssd_align_bytes", "of direct I/O on it"},
	{"ssd_stripe_bytes", "no stripes"},
	{"ssd_transfer_bytes", "what the device takes"},
	{"ssd_read_bytes_per_s", "measured: commands of ssd_transfer_bytes, 16 at once, sequential"},
	{"ssd_read_curve", "measured: speed with so many bytes under way, in 4 commands or as many as they take"},
	{"ssd_write_bytes_per_s", "measured: commands of ssd_transfer_bytes, 16 at once, sequential"},
	{"ssd_first_write_bytes_per_s", "measured: the first of these over the new file"},
	{"ssd_command_ns", "measured: reads of 4 KiB, 64 at once, random places; one's share"},
	{"ssd_latency_ns", "measured: reads of 4 KiB, one after the other, by a thread that does not sleep"},
	{"ssd_sync_ns", "measured: after a write of 4 KiB"},
	{"ssd_joint_reports", "measured: whether a read of 4 KiB is reported with a large one that was sent behind it"},
	{"direct_command_ns", "measured: time of the sending thread for a read of 4 KiB, 64 at once"},
	{"kernel_command_ns", "measured: read of 4 KiB out of the page cache, besides its bytes"},
	{"kernel_copy_bytes_per_s", "measured: reads of 1 MiB out of the page cache"},
	{"file_open_ns", "measured: open and close"},
};

static int print(const struct fc_hardware *hardware, const struct fc_bench_profile *profile, uint64_t run_count,
		 FILE *file)
{
	char head[512], day[32] = "";
	time_t now = time(NULL);
	struct tm local;
	if (localtime_r(&now, &local) != NULL)
		(void)strftime(day, sizeof(day), "%Y-%m-%d", &local);
	snprintf(head, sizeof(head),
		 "A machine without a GPU, measured by `flatcake bench --profile` on %s: medians of %llu runs,\n%s.\n"
		 "The \"device\" is host memory. The engine is the one that a live replay models.",
		 day, (unsigned long long)run_count,
		 profile->is_direct ? "past the page cache"
				    : "through the page cache: its file system knows no other way");
	return fc_hardware_print(hardware, head, origins, fc_array_len(origins), file);
}

/* A profile that a simulation would refuse is a mistake of this program, and is better known at once. */
static int read_back(const char *path, struct fc_error *error)
{
	struct fc_hardware hardware;
	int code = fc_hardware_load(&hardware, path, error);
	fc_hardware_deinit(&hardware);
	return code;
}

/* Made in memory first, so that a profile is replaced as a whole or not at all. */
static int write_file(const struct fc_bench *bench, const struct fc_bench_profile *profile,
		      const struct fc_hardware *hardware, const char *path, struct fc_error *error)
{
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);
	int code = stream == NULL ? FC_ENOMEM : print(hardware, profile, bench->run_count, stream);
	if (stream != NULL && fclose(stream) != 0)
		code = FC_ENOMEM;
	if (code == FC_OK)
		code = fc_whole_file_write(path, text, length, "--profile", error);
	else
		fc_error_set(error, code, "--profile: no memory for the text");
	free(text);
	return code;
}

int fc_bench_write_profile(struct fc_bench *bench, const struct fc_config *config, struct fc_error *error)
{
	struct fc_bench_profile profile;
	struct fc_hardware hardware = {0};
	struct curves curves;
	int code = fc_bench_profile(bench, &profile, error);
	if (code != FC_OK)
		return code;
	print_curve(profile.curve_bytes, profile.curve_bytes_per_s, FC_BENCH_CURVE_POINTS, curves.read);
	print_curve(profile.slice_bytes, profile.slice_bytes_per_s, FC_BENCH_SLICE_POINTS, curves.slices);
	print_curve(profile.slice_bytes, profile.large_slice_bytes_per_s, FC_BENCH_SLICE_POINTS, curves.large_slices);
	set_engine(&hardware, &profile);
	set_node(&hardware, &profile, config, &curves);
	code = write_file(bench, &profile, &hardware, config->profile_path, error);
	return code == FC_OK && strcmp(config->profile_path, "-") != 0 ? read_back(config->profile_path, error) : code;
}
