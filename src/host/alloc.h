/* The allocator that production hands to the pure folders. Any thread may use it. */
#ifndef FC_HOST_ALLOC_H
#define FC_HOST_ALLOC_H

#include "base/alloc.h"

/* Pieces of 2 MiB and more are mapped with huge pages advised (and cost memory only where they are touched); smaller
 * ones come from the C library. */
struct fc_alloc fc_alloc_system(void);

#endif
