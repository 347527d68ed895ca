/* What a container, a cgroup or an administrator takes away. Each of these lasts for the rest of the process. */
#ifndef FC_TESTS_REAL_DENY_H
#define FC_TESTS_REAL_DENY_H

#include <stdbool.h>

/* From now on the system call fails with `error`. False where seccomp is not to be had. */
bool deny_call(unsigned call, int error);

/* Root becomes an ordinary user, whom permissions and limits apply to; for others nothing changes. */
bool deny_privileges(void);

#endif
