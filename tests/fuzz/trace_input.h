/* What the targets of the trace readers share: loading bytes as a trace, and what every trace that loads must be. */
#ifndef FC_TESTS_FUZZ_TRACE_INPUT_H
#define FC_TESTS_FUZZ_TRACE_INPUT_H

#include "trace/trace.h"

/* Options out of one byte, so that letters of the alphabet name all of them:
 * bit 0 lenient, bit 1 without shared prompts, bit 2 without subagents, bit 3 a limit of 1, bit 4 three at once. */
struct fc_trace_opts fuzz_trace_opts(uint8_t choice);

/* Loads these bytes as one file, strictly and leniently, and checks what comes of it: see trace.h. `is_text`: the bytes
 * are no archive. */
void fuzz_trace_run(const struct fc_trace_opts *opts, const void *bytes, size_t count, bool is_text);

#endif
