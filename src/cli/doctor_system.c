/* What the processor and the kernel offer: memory, huge pages, io_uring, locked memory. */
#include "cli/doctor.h"

#include "cli/table.h"
#include "host/pages.h"

#include <errno.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Windows of the default four streams: what a store wants to register with io_uring. */
#define WINDOWS_BYTES (256ull << 20)

/* The first line of a small file, without its end; false when it cannot be read. */
static bool read_line(const char *path, char *line, size_t line_bytes)
{
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return false;
	bool is_read = fgets(line, (int)line_bytes, file) != NULL;
	fclose(file);
	if (is_read)
		line[strcspn(line, "\n")] = '\0';
	return is_read;
}

/* A field of /proc/meminfo as it stands there, in KiB or pages; 0 when it is missing. */
static uint64_t read_meminfo(const char *field)
{
	FILE *file = fopen("/proc/meminfo", "re");
	char line[160];
	unsigned long long value = 0;
	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		size_t field_len = strlen(field);
		if (strncmp(line, field, field_len) == 0 && line[field_len] == ':' &&
		    sscanf(line + field_len + 1, "%llu", &value) == 1)
			break;
	}
	if (file != NULL)
		fclose(file);
	return value;
}

static const char *vector_instructions(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx512f"))
		return ", AVX-512";
	return __builtin_cpu_supports("avx2") ? ", AVX2" : ", no AVX2";
#else
	return "";
#endif
}

static void examine_machine(struct fc_doctor *doctor)
{
	struct utsname name = {.release = "unknown"};
	uname(&name);
	fc_doctor_add(doctor, "kernel", FC_FINDING_GOOD, "%s %s, %s", name.sysname, name.release, name.machine);
	fc_doctor_add(doctor, "processor", FC_FINDING_GOOD, "%ld cores%s", sysconf(_SC_NPROCESSORS_ONLN),
		      vector_instructions());
	char total[FC_HUMAN_BYTES], available[FC_HUMAN_BYTES];
	struct fc_finding *memory = fc_doctor_add(doctor, "memory", FC_FINDING_GOOD, "%s, of which %s available",
						  fc_human_bytes(read_meminfo("MemTotal") * 1024, total),
						  fc_human_bytes(read_meminfo("MemAvailable") * 1024, available));
	memory->number = (double)read_meminfo("MemAvailable") * 1024;
	memory->unit = "bytes";
}

static void examine_huge_pages(struct fc_doctor *doctor)
{
	char mode[128] = "absent", shared[128] = "absent", huge[FC_HUMAN_BYTES];
	read_line("/sys/kernel/mm/transparent_hugepage/enabled", mode, sizeof(mode));
	read_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled", shared, sizeof(shared));
	uint64_t page_bytes = read_meminfo("Hugepagesize") * 1024;
	uint64_t free_pages = read_meminfo("HugePages_Free");
	bool has_private = strstr(mode, "[always]") != NULL || strstr(mode, "[madvise]") != NULL;
	bool has_shared = strstr(shared, "[always]") != NULL || strstr(shared, "[advise]") != NULL ||
			  strstr(shared, "[within_size]") != NULL || strstr(shared, "[force]") != NULL;
	struct fc_finding *finding =
		fc_doctor_add(doctor, "huge pages", has_private && has_shared ? FC_FINDING_GOOD : FC_FINDING_LACK,
			      "reserved and free: %llu of %s; transparent: %s; for shared memory: %s",
			      (unsigned long long)free_pages, fc_human_bytes(page_bytes, huge), mode, shared);
	if (!has_private)
		fc_doctor_advise(finding, "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
	else if (!has_shared && free_pages > 0)
		finding->state = FC_FINDING_GOOD;
	else if (!has_shared)
		fc_doctor_advise(finding, "as root: echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled, "
					  "or reserve some with vm.nr_hugepages");
}

/* Why the kernel gives no ring, and what would help. */
static void advise_ring(struct fc_finding *finding, int failure)
{
	char disabled[16] = "0";
	read_line("/proc/sys/kernel/io_uring_disabled", disabled, sizeof(disabled));
	if (failure == ENOSYS)
		fc_doctor_advise(finding, "this kernel was built without io_uring, or a seccomp filter hides it; "
					  "I/O uses threads, which cost more CPU time");
	else if (failure == ENOMEM)
		fc_doctor_advise(finding, "raise the limit of locked memory (see below)");
	else if (disabled[0] != '0')
		fc_doctor_advise(finding,
				 "as root: sysctl kernel.io_uring_disabled=0 (it is %s); until then I/O uses "
				 "threads, which cost more CPU time",
				 disabled);
	else
		fc_doctor_advise(finding,
				 "a seccomp filter refuses it, as containers do: run with a profile that allows "
				 "io_uring; until then I/O uses threads, which cost more CPU time");
}

/* Windows are registered with the kernel once, so that no command has to map them again; that counts as locked memory.
 */
static void examine_locked_memory(struct fc_doctor *doctor, struct io_uring *ring)
{
	struct rlimit limit = {.rlim_cur = 0};
	char limit_text[FC_HUMAN_BYTES] = "unlimited", wanted[FC_HUMAN_BYTES];
	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur != RLIM_INFINITY)
		fc_human_bytes(limit.rlim_cur, limit_text);
	fc_human_bytes(WINDOWS_BYTES, wanted);

	struct iovec windows = {.iov_base = fc_pages_alloc(WINDOWS_BYTES), .iov_len = WINDOWS_BYTES};
	int result = windows.iov_base == NULL ? -ENOMEM : io_uring_register_buffers(ring, &windows, 1);
	struct fc_finding *finding =
		fc_doctor_add(doctor, "locked memory", result == 0 ? FC_FINDING_GOOD : FC_FINDING_LACK,
			      "limit %s; registering %s of windows %s%s", limit_text, wanted,
			      result == 0 ? "works" : "fails: ", result == 0 ? "" : strerror(-result));
	if (result != 0)
		fc_doctor_advise(finding, "ulimit -l unlimited, or LimitMEMLOCK=infinity in the service's unit; works "
					  "without, with more CPU time for each read");
	if (result == 0)
		io_uring_unregister_buffers(ring);
	fc_pages_free(windows.iov_base, WINDOWS_BYTES);
}

static void examine_ring(struct fc_doctor *doctor)
{
	struct io_uring ring;
	int result = io_uring_queue_init(8, &ring, 0);
	if (result != 0) {
		struct fc_finding *finding =
			fc_doctor_add(doctor, "io_uring", FC_FINDING_LACK, "refused: %s", strerror(-result));
		advise_ring(finding, -result);
		return;
	}
	fc_doctor_add(doctor, "io_uring", FC_FINDING_GOOD, "works");
	examine_locked_memory(doctor, &ring);
	io_uring_queue_exit(&ring);
}

/* Where a shell would find the program; false when it would not. */
static bool find_program(const char *name, char *path, size_t path_bytes)
{
	const char *folders = getenv("PATH");
	while (folders != NULL && *folders != '\0') {
		int length = (int)strcspn(folders, ":");
		snprintf(path, path_bytes, "%.*s/%s", length, folders, name);
		if (access(path, X_OK) == 0)
			return true;
		folders += length;
		folders += *folders == ':';
	}
	return false;
}

/* What `flatcake bench` holds the disk's targets against. */
static void examine_fio(struct fc_doctor *doctor)
{
	char path[160];
	if (find_program("fio", path, sizeof(path))) {
		fc_doctor_add(doctor, "fio", FC_FINDING_GOOD, "%s", path);
		return;
	}
	fc_doctor_advise(
		fc_doctor_add(doctor, "fio", FC_FINDING_ABSENT, "not installed"),
		"apt-get install fio: without it `flatcake bench` does not measure load, save and interleaved");
}

void fc_doctor_examine_system(struct fc_doctor *doctor)
{
	examine_machine(doctor);
	examine_huge_pages(doctor);
	examine_ring(doctor);
	examine_fio(doctor);
}
