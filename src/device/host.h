/* The host device: slots lie in ordinary memory and the CPU copies. */
#ifndef FC_DEVICE_HOST_H
#define FC_DEVICE_HOST_H

#include "device/device.h"

/* A batch of so many bytes is copied past the processor's caches: it would only push other things out of them. */
#define FC_HOST_STREAMING_BYTES ((uint64_t)2 << 20)

/* Opens a host device; close it with fc_device_close(). Each poll() does one batch, with its checksums, at close to
 * the speed of memcpy(), and calls its done_cb; 0 means that none waits.
 *
 * A copy that cannot be done as described (a slot behind the last, pieces that do not divide the slice) ends its batch
 * with FC_EINVAL: `bad_first` is its index, and nothing from it on has been copied. FC_ENOMEM is the only error of the
 * open. */
int fc_device_host(struct fc_device **device, struct fc_error *error) FC_MUST_USE;

#endif
