#define _GNU_SOURCE
#include "media/map_guard.h"

#include "base/check.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define GUARDS_MAX 64

/* The handler reads what open and close write, so every field is atomic, and `begin` is set last and cleared first. */
struct fc_map_guard {
	_Atomic uintptr_t begin; /* 0: nobody's, or not ready */
	_Atomic uint64_t bytes, page_bytes;
	atomic_int fd;
	atomic_bool is_taken, is_broken;
};

static struct fc_map_guard guards[GUARDS_MAX];
static struct sigaction action_before;

static struct fc_map_guard *find_guard(uintptr_t address)
{
	for (size_t i = 0; i < GUARDS_MAX; i++) {
		uintptr_t begin = atomic_load(&guards[i].begin);
		if (begin != 0 && address >= begin && address - begin < atomic_load(&guards[i].bytes))
			return &guards[i];
	}
	return NULL;
}

/* Zeros from the end of the file to the end of the mapping, or, where the file has not ended, over the one page that
 * could not be had. */
static bool replace_lost_pages(struct fc_map_guard *guard, uintptr_t address)
{
	struct stat status;
	uint64_t page_bytes = atomic_load(&guard->page_bytes);
	uint64_t lost = fc_align_down(address - guard->begin, page_bytes);
	uint64_t lost_end = lost + page_bytes;

	if (fstat(atomic_load(&guard->fd), &status) == 0 && (uint64_t)status.st_size <= lost) {
		lost = fc_align_up((uint64_t)status.st_size, page_bytes);
		lost_end = fc_align_up(atomic_load(&guard->bytes), page_bytes);
	}
	atomic_store(&guard->is_broken, true);
	return mmap((void *)(guard->begin + lost), lost_end - lost, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

static void pass_on(int number, siginfo_t *info, void *context)
{
	if ((action_before.sa_flags & SA_SIGINFO) != 0) {
		action_before.sa_sigaction(number, info, context);
	} else if (action_before.sa_handler != SIG_DFL && action_before.sa_handler != SIG_IGN) {
		action_before.sa_handler(number);
	} else if (info->si_code > 0 || action_before.sa_handler == SIG_DFL) {
		/* The access is repeated, or the signal sent again, and ends the process where it should. */
		(void)signal(number, SIG_DFL);
		if (info->si_code <= 0)
			(void)raise(number);
	}
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
	int errno_before = errno;
	uintptr_t address = (uintptr_t)info->si_addr;
	struct fc_map_guard *guard = info->si_code == BUS_ADRERR ? find_guard(address) : NULL;

	if (guard == NULL || !replace_lost_pages(guard, address))
		pass_on(number, info, context);
	errno = errno_before;
}

static void install(void)
{
	struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	sigemptyset(&action.sa_mask);
	fc_check(sigaction(SIGBUS, &action, &action_before) == 0);
}

int fc_map_guard_new(struct fc_map_guard **result, uint8_t *map, uint64_t bytes, uint64_t page_bytes, int fd,
		     struct fc_error *error)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	fc_check(pthread_once(&once, install) == 0);
	for (size_t i = 0; i < GUARDS_MAX; i++) {
		struct fc_map_guard *guard = &guards[i];
		if (atomic_exchange(&guard->is_taken, true))
			continue;
		atomic_store(&guard->bytes, bytes);
		atomic_store(&guard->page_bytes, page_bytes);
		atomic_store(&guard->fd, fd);
		atomic_store(&guard->is_broken, false);
		atomic_store(&guard->begin, (uintptr_t)map);
		*result = guard;
		return 0;
	}
	return fc_error_set(error, FC_ELIMIT, "memory arena: more than %d with a path are open in this process",
			    GUARDS_MAX);
}

void fc_map_guard_free(struct fc_map_guard *guard)
{
	if (guard == NULL)
		return;
	atomic_store(&guard->begin, 0);
	atomic_store(&guard->is_taken, false);
}

bool fc_map_guard_is_broken(struct fc_map_guard *guard)
{
	struct stat status;

	if (fstat(atomic_load(&guard->fd), &status) != 0 || (uint64_t)status.st_size < atomic_load(&guard->bytes))
		atomic_store(&guard->is_broken, true);
	return atomic_load(&guard->is_broken);
}
