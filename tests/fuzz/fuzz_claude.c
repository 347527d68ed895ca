/* Claude Code sessions: one byte of options (trace_input.h), then the text of a file. The corpus says what sets it
 * apart from fuzz_mooncake. */
#include "fuzz/fuzz.h"
#include "fuzz/trace_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, size};
	struct fc_trace_opts opts = fuzz_trace_opts(fuzz_u8(&input));
	fuzz_trace_run(&opts, input.bytes, input.left, true);
	return 0;
}
