/* The disk below a folder: space, direct I/O, and how fast it writes and reads, through the same SSD medium that a
 * store uses. The test file loses its name as soon as it is open, so that it cannot outlive the program. */
#include "cli/doctor.h"

#include "base/check.h"
#include "cli/table.h"
#include "clock/clock.h"
#include "host/pages.h"
#include "media/ssd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define TEST_FILE_BYTES (256ull << 20)
#define COMMAND_BYTES (1ull << 20)
#define COMMANDS_IN_FLIGHT 8
#define PASS_NS_MAX 5000000000ull     /* a slow disk is measured on less than the whole file */
#define SILENCE_NS_MAX 30000000000ull /* a disk that answers nothing for so long is given up */
#define SLOW_BYTES_PER_S 500e6

struct pass;

struct command {
	struct fc_io io;
	struct pass *pass;
};

/* One way through the file, writing or reading, with a fixed number of commands in flight. */
struct pass {
	struct fc_media *media;
	struct fc_clock clock;
	enum fc_io_op op;
	uint64_t next_offset;
	uint64_t stop_ns;
	uint64_t done_bytes;
	unsigned in_flight_count;
	int64_t failure; /* 0, or the first bad result */
	struct command commands[COMMANDS_IN_FLIGHT];
};

static void start_next(struct command *command)
{
	struct pass *pass = command->pass;
	if (pass->next_offset >= TEST_FILE_BYTES || pass->failure != 0 || fc_clock_now_ns(&pass->clock) > pass->stop_ns)
		return;
	command->io.op = pass->op;
	command->io.offset = pass->next_offset;
	command->io.bytes = COMMAND_BYTES;
	pass->next_offset += COMMAND_BYTES;
	pass->in_flight_count++;
	fc_media_submit(pass->media, &command->io);
}

static void command_done(struct fc_io *io)
{
	struct command *command = fc_container_of(io, struct command, io);
	struct pass *pass = command->pass;
	pass->in_flight_count--;
	if (io->result == (int64_t)COMMAND_BYTES)
		pass->done_bytes += COMMAND_BYTES;
	else if (pass->failure == 0)
		pass->failure = io->result < 0 ? io->result : FC_EIO;
	start_next(command);
}

/* Runs a pass; bytes per second, or a negative FC_E... code. FC_ETIMEOUT leaves commands in flight. */
static double run_pass(struct fc_media *media, enum fc_io_op op, uint8_t *buffer)
{
	static struct pass pass; /* outlives this call, for a silent disk still holds commands of it */
	pass = (struct pass){.media = media, .clock = fc_clock_real(), .op = op};
	uint64_t start_ns = fc_clock_now_ns(&pass.clock);
	pass.stop_ns = start_ns + PASS_NS_MAX;
	for (size_t index = 0; index < COMMANDS_IN_FLIGHT; index++) {
		struct command *command = &pass.commands[index];
		*command = (struct command){.pass = &pass, .io = {.buffer = buffer + index * COMMAND_BYTES}};
		command->io.done_cb = command_done;
		start_next(command);
	}
	uint64_t answered_ns = start_ns;
	while (pass.in_flight_count > 0) {
		if (fc_media_wait(media, 100000000) > 0)
			answered_ns = fc_clock_now_ns(&pass.clock);
		else if (fc_clock_now_ns(&pass.clock) - answered_ns > SILENCE_NS_MAX)
			return FC_ETIMEOUT;
	}
	uint64_t elapsed_ns = fc_clock_now_ns(&pass.clock) - start_ns;
	return pass.failure != 0 ? (double)pass.failure : (double)pass.done_bytes * 1e9 / (double)(elapsed_ns + 1);
}

static void report_speed(struct fc_doctor *doctor, const char *name, double bytes_per_s)
{
	struct fc_finding *finding = fc_doctor_add(doctor, name, FC_FINDING_GOOD, "%.0f MB/s", bytes_per_s / 1e6);
	finding->number = bytes_per_s;
	finding->unit = "bytes/s";
	if (bytes_per_s >= SLOW_BYTES_PER_S)
		return;
	finding->state = FC_FINDING_LACK;
	fc_doctor_advise(finding,
			 "below %.0f MB/s a long history may be computed sooner than read; use a local NVMe drive",
			 SLOW_BYTES_PER_S / 1e6);
}

static bool report_pass(struct fc_doctor *doctor, const char *name, double result)
{
	if (result > 0) {
		report_speed(doctor, name, result);
		return true;
	}
	struct fc_finding *finding =
		fc_doctor_add(doctor, name, FC_FINDING_FATAL, "fails: %s", fc_code_text((int)result));
	fc_doctor_advise(finding, "see the kernel's log (dmesg) for errors of this disk");
	return false;
}

/* False when the disk stopped answering and the medium must not be touched again. */
static bool measure_speed(struct fc_doctor *doctor, struct fc_media *media)
{
	uint64_t buffer_bytes = COMMANDS_IN_FLIGHT * COMMAND_BYTES;
	uint8_t *buffer = fc_pages_alloc(buffer_bytes);
	if (buffer == NULL) {
		fc_doctor_add(doctor, "disk write", FC_FINDING_FATAL, "no memory for the test");
		return true;
	}
	for (uint64_t offset = 0; offset < buffer_bytes; offset++)
		buffer[offset] = (uint8_t)(offset * 2654435761u >> 13); /* nothing that a disk could compress away */
	double result = run_pass(media, FC_IO_WRITE, buffer);
	if (report_pass(doctor, "disk write", result)) {
		result = run_pass(media, FC_IO_READ, buffer);
		report_pass(doctor, "disk read", result);
	}
	if (result == FC_ETIMEOUT)
		return false;
	fc_pages_free(buffer, buffer_bytes);
	return true;
}

static void report_direct(struct fc_doctor *doctor, const struct fc_media *media)
{
	char transfer[FC_HUMAN_BYTES];
	bool is_direct = fc_ssd_is_direct(media);
	struct fc_finding *finding = fc_doctor_add(
		doctor, "direct I/O", is_direct ? FC_FINDING_GOOD : FC_FINDING_LACK,
		"%s; alignment %u bytes, largest transfer %s, through %s", is_direct ? "yes" : "no", media->align,
		fc_human_bytes(media->transfer_bytes_max, transfer), fc_ssd_engine_name(media));
	finding->number = media->align;
	finding->unit = "bytes";
	if (!is_direct)
		fc_doctor_advise(finding,
				 "this file system has no O_DIRECT: reads pass through the page cache; use ext4, "
				 "XFS or a block device");
	else if (media->notice[0] != '\0')
		fc_doctor_advise(finding, "%s", media->notice);
}

static void report_space(struct fc_doctor *doctor, const char *dir)
{
	struct statvfs status;
	char free_text[FC_HUMAN_BYTES], total_text[FC_HUMAN_BYTES];
	if (statvfs(dir, &status) != 0) {
		struct fc_finding *finding =
			fc_doctor_add(doctor, "folder", FC_FINDING_FATAL, "%s: %s", dir, strerror(errno));
		fc_doctor_advise(finding, "name an existing folder on the disk that is meant, with --dir");
		return;
	}
	uint64_t free_bytes = (uint64_t)status.f_bavail * status.f_frsize;
	struct fc_finding *finding =
		fc_doctor_add(doctor, "disk space", free_bytes < (8ull << 30) ? FC_FINDING_LACK : FC_FINDING_GOOD,
			      "%s free of %s below %s", fc_human_bytes(free_bytes, free_text),
			      fc_human_bytes((uint64_t)status.f_blocks * status.f_frsize, total_text), dir);
	finding->number = (double)free_bytes;
	finding->unit = "bytes";
	if (finding->state == FC_FINDING_LACK)
		fc_doctor_advise(finding,
				 "the default SSD budget is 8 GiB: free some, give a smaller --ssd, or another --dir");
}

void fc_doctor_examine_disk(struct fc_doctor *doctor, const char *dir)
{
	char path[4096];
	struct fc_error error = {.code = FC_OK};
	struct fc_media *media = NULL;
	report_space(doctor, dir);
	if (snprintf(path, sizeof(path), "%s/.flatcake-doctor-%d", dir, (int)getpid()) >= (int)sizeof(path)) {
		fc_doctor_add(doctor, "test file", FC_FINDING_FATAL, "the folder's name is too long");
		return;
	}
	struct fc_ssd_opts opts = {.path = path, .bytes = TEST_FILE_BYTES};
	if (fc_ssd_open(&opts, &media, &error) != FC_OK) {
		struct fc_finding *finding = fc_doctor_add(doctor, "test file", FC_FINDING_FATAL, "%s", error.text);
		fc_doctor_advise(finding, "name a folder that you may write to and that has 256 MiB free, with --dir");
		return;
	}
	unlink(path);
	report_direct(doctor, media);
	if (measure_speed(doctor, media))
		fc_media_close(media);
}
