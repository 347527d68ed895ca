/* What sockets, scheduler and memory allow a server of matches: a process that takes requests of as many bytes, makes
 * as many probes (probes.h) in a table of as many keys, and answers with as many bytes. It parses, checks and leases
 * nothing, and knows no client by name. flatcaked, which has one thread for this as well, is held against it. */
#ifndef FC_BENCH_BARE_H
#define FC_BENCH_BARE_H

#include "bench/history.h"
#include "bench/probes.h"

#include <sys/types.h>

#define FC_BENCH_BARE_CLIENTS 16

struct fc_bench_bare {
	struct fc_bench_probes probes;
	uint64_t probe_count, request_bytes, answer_bytes;
	uint8_t *bytes; /* a request and an answer */
	int clients[FC_BENCH_BARE_CLIENTS], servers[FC_BENCH_BARE_CLIENTS];
	pid_t pid;
};

/* For matches of `history`. To be stopped also after a failure. */
int fc_bench_bare_start(struct fc_bench_bare *bare, const struct fc_bench_history *history, uint64_t seed,
			struct fc_error *error) FC_MUST_USE;
void fc_bench_bare_stop(struct fc_bench_bare *bare);

/* One request and its answer, over connection `number`. */
int fc_bench_bare_ask(const struct fc_bench_bare *bare, uint64_t number, struct fc_error *error) FC_MUST_USE;

#endif
