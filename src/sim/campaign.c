#include "sim/campaign.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_RIGHT 0
#define EXIT_BROKEN 1

/* What a worker and its parent share. The run itself lies here, so that a worker that died can be asked where it was.
 */
struct worker {
	pid_t process;
	uint64_t seed;
	struct fc_sim sim;
	struct fc_sim_counts counts;
	uint64_t seed_count, digest;
};

struct board {
	atomic_uint_fast64_t seed_limit; /* seeds above it are not worth starting */
	struct worker workers[];
};

static void add_counts(struct fc_sim_counts *sum, const struct fc_sim_counts *counts)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = (const uint64_t *)counts;
	for (size_t i = 0; i < sizeof(*sum) / sizeof(uint64_t); i++)
		to[i] += from[i];
}

static bool run_seed(struct worker *worker, const struct fc_sim_campaign *campaign, uint64_t seed,
		     uint64_t operation_count)
{
	struct fc_sim_opts opts = {
		.is_wired = campaign->is_wired,
		.seed = seed,
		.operation_count = operation_count,
		.faults = campaign->faults,
		.log = campaign->log,
	};
	memset(&worker->sim, 0, sizeof(worker->sim));
	worker->seed = seed;
	alarm(campaign->watchdog_s);
	bool is_right = fc_sim_run(&worker->sim, &opts);
	alarm(0);
	add_counts(&worker->counts, &worker->sim.counts);
	worker->digest ^= worker->sim.notes.digest;
	worker->seed_count++;
	return is_right;
}

static void prepare_child(bool is_silent)
{
	struct rlimit none = {0, 0};
	(void)setrlimit(RLIMIT_CORE, &none);
	signal(SIGALRM, SIG_DFL);
	int silence = is_silent ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
	if (silence >= 0)
		(void)dup2(silence, STDERR_FILENO);
}

static void run_worker(struct board *board, const struct fc_sim_campaign *campaign, unsigned number)
{
	struct worker *worker = &board->workers[number];
	for (uint64_t seed = campaign->first_seed + number; seed <= campaign->last_seed; seed += campaign->job_count) {
		if (seed > atomic_load(&board->seed_limit))
			return;
		if (run_seed(worker, campaign, seed, campaign->operation_count))
			continue;
		exit(EXIT_BROKEN);
	}
}

static void describe_end(const struct worker *worker, int status, char text[FC_ERROR_TEXT_BYTES])
{
	if (WIFEXITED(status))
		snprintf(text, FC_ERROR_TEXT_BYTES, "%s", worker->sim.notes.broken);
	else if (WTERMSIG(status) == SIGALRM)
		snprintf(text, FC_ERROR_TEXT_BYTES, "the run does not end: something computes for ever");
	else
		snprintf(text, FC_ERROR_TEXT_BYTES, "the process died: %s (a broken invariant is named above)",
			 strsignal(WTERMSIG(status)));
}

static int start(struct board *board, const struct fc_sim_campaign *campaign, unsigned number, struct fc_error *error)
{
	fflush(NULL);
	pid_t process = fork();
	if (process < 0)
		return fc_error_set(error, FC_ESYSTEM, "fork: %s", strerror(errno));
	if (process == 0) {
		prepare_child(false);
		run_worker(board, campaign, number);
		exit(EXIT_RIGHT); /* not _exit(): what was counted for `make coverage` is written at exit */
	}
	board->workers[number].process = process;
	return FC_OK;
}

static void note_failure(struct board *board, struct fc_sim_verdict *verdict, const struct worker *worker, int status)
{
	if (verdict->is_broken && verdict->seed < worker->seed)
		return;
	verdict->is_broken = true;
	verdict->seed = worker->seed;
	verdict->operation_count = worker->sim.counts.operations;
	describe_end(worker, status, verdict->text);
	atomic_store(&board->seed_limit, worker->seed);
}

static void wait_for_all(struct board *board, const struct fc_sim_campaign *campaign, unsigned started,
			 struct fc_sim_verdict *verdict)
{
	for (unsigned left = started; left > 0; left--) {
		int status = 0;
		pid_t process = wait(&status);
		if (process < 0)
			return;
		for (unsigned i = 0; i < started; i++)
			if (board->workers[i].process == process &&
			    !(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_RIGHT))
				note_failure(board, verdict, &board->workers[i], status);
	}
	for (unsigned i = 0; i < campaign->job_count; i++) {
		add_counts(&verdict->counts, &board->workers[i].counts);
		verdict->seed_count += board->workers[i].seed_count;
		verdict->digest ^= board->workers[i].digest;
	}
}

/* ---- the shortest prefix ---- */

static bool breaks(struct board *board, const struct fc_sim_campaign *campaign, struct fc_sim_verdict *verdict,
		   uint64_t operation_count)
{
	struct worker *worker = &board->workers[0];
	int status = 0;
	fflush(NULL);
	pid_t process = fork();
	if (process < 0)
		return false;
	if (process == 0) {
		struct fc_sim_campaign quiet = *campaign;
		quiet.log = NULL;
		prepare_child(true);
		_exit(run_seed(worker, &quiet, verdict->seed, operation_count) ? EXIT_RIGHT : EXIT_BROKEN);
	}
	if (waitpid(process, &status, 0) != process || (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_RIGHT))
		return false;
	verdict->operation_count = operation_count;
	describe_end(worker, status, verdict->text);
	return true;
}

/* A run of n operations is the beginning of a run of n + 1, so a break stays once it is there; what a shorter run meets
 * at its end (healing, draining) may break as well, and is as good. */
static void shorten(struct board *board, const struct fc_sim_campaign *campaign, struct fc_sim_verdict *verdict)
{
	uint64_t low = 0, high = verdict->operation_count;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (breaks(board, campaign, verdict, middle))
			high = middle;
		else
			low = middle + 1;
	}
}

int fc_sim_campaign_run(const struct fc_sim_campaign *campaign, struct fc_sim_verdict *verdict, struct fc_error *error)
{
	size_t bytes = sizeof(struct board) + campaign->job_count * sizeof(struct worker);
	struct board *board = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	*verdict = (struct fc_sim_verdict){0};
	if (board == MAP_FAILED)
		return fc_error_set(error, FC_ESYSTEM, "mmap of %zu bytes: %s", bytes, strerror(errno));
	atomic_init(&board->seed_limit, UINT64_MAX);
	unsigned started = 0;
	int code = FC_OK;
	while (started < campaign->job_count && code == FC_OK)
		if ((code = start(board, campaign, started, error)) == FC_OK)
			started++;
	wait_for_all(board, campaign, started, verdict);
	if (verdict->is_broken)
		shorten(board, campaign, verdict);
	(void)munmap(board, bytes);
	return code;
}
