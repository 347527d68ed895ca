#include "fuzz/fuzz.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void fuzz_fail(const char *file, int line, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	fprintf(stderr, "%s:%d: ", file, line);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	abort();
}

void fuzz_check_refusal(int code, const struct fc_error *error)
{
	fuzz_check(code < 0, "refused with code %d", code);
	fuzz_check(error->code == code, "returned %d, and the error says %d", code, error->code);
	fuzz_check(error->text[0] != '\0', "refused with code %d, but without a word", code);
	for (const char *letter = error->text; *letter != '\0'; letter++)
		fuzz_check((unsigned char)*letter >= ' ' && *letter != 127, "byte 0x%02x in the error \"%s\"",
			   (unsigned char)*letter, error->text);
}

/* ---- taking an input apart ---- */

static uint64_t take_number(struct fuzz_input *input, size_t width)
{
	uint64_t number = 0;
	const uint8_t *bytes;
	size_t count = fuzz_bytes(input, width, &bytes);
	for (size_t i = 0; i < count; i++)
		number |= (uint64_t)bytes[i] << 8 * i;
	return number;
}

uint8_t fuzz_u8(struct fuzz_input *input)
{
	return (uint8_t)take_number(input, 1);
}

uint16_t fuzz_u16(struct fuzz_input *input)
{
	return (uint16_t)take_number(input, 2);
}

uint64_t fuzz_u64(struct fuzz_input *input)
{
	return take_number(input, 8);
}

size_t fuzz_bytes(struct fuzz_input *input, size_t count, const uint8_t **bytes)
{
	if (count > input->left)
		count = input->left;
	*bytes = input->bytes;
	input->bytes += count;
	input->left -= count;
	return count;
}

void *fuzz_exact(const void *bytes, size_t count)
{
	void *copy = malloc(count > 0 ? count : 1);
	fuzz_check(copy != NULL, "no memory for %zu bytes", count);
	if (count > 0)
		memcpy(copy, bytes, count);
	return copy;
}

const char *fuzz_file(const void *bytes, size_t count)
{
	static char path[64];
	static int fd = -1;
	if (fd < 0) {
		fd = memfd_create("fuzz", MFD_CLOEXEC);
		fuzz_check(fd >= 0, "no file in memory");
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	fuzz_check(ftruncate(fd, 0) == 0 && pwrite(fd, bytes, count, 0) == (ssize_t)count,
		   "cannot write %zu bytes to a file in memory", count);
	return path;
}
