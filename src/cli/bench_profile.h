/* `flatcake bench --profile FILE`: this machine as a hardware profile. */
#ifndef FC_CLI_BENCH_PROFILE_H
#define FC_CLI_BENCH_PROFILE_H

#include "bench/bench.h"
#include "config/config.h"

/* Measures, writes config->profile_path (- for standard output), and reads it back as a simulation would. A profile
 * that was there stays as it was when measuring or writing fails. */
FC_MUST_USE int fc_bench_write_profile(struct fc_bench *bench, const struct fc_config *config, struct fc_error *error);

#endif
