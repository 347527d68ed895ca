/* The YAML file of settings: one byte that chooses the command, then the file. */
#include "fuzz/config_check.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, size};
	enum fc_command_bit command = fuzz_command(fuzz_u8(&input));
	const char *path = fuzz_file(input.bytes, input.left);
	char *const arguments[] = {"--config", (char *)path};
	struct fc_config_sources sources = {.command = command, .argument_count = 2, .arguments = arguments};
	fuzz_config_run(&sources);
	return 0;
}
