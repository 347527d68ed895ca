/* Random bits of the kernel's, for names and seeds that nobody may guess or repeat. */
#ifndef FC_HOST_RANDOM_BITS_H
#define FC_HOST_RANDOM_BITS_H

#include "base/error.h"

/* At most 256 bytes. FC_ESYSTEM. */
FC_MUST_USE int fc_random_bits(void *bits, size_t bytes, struct fc_error *error);

#endif
