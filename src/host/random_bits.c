#include "host/random_bits.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

int fc_random_bits(void *bits, size_t bytes, struct fc_error *error)
{
	if (getrandom(bits, bytes, 0) == (ssize_t)bytes)
		return FC_OK;
	return fc_error_set(error, FC_ESYSTEM, "getrandom: %s", strerror(errno));
}
