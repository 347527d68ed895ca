/* Mounts that nobody else sees. */
#ifndef FC_TESTS_REAL_NAMESPACES_H
#define FC_TESTS_REAL_NAMESPACES_H

/* This process has a mount namespace of its own from now on, with a user namespace where it is not root. Skips the test
 * (alone.h) where that is not allowed. */
void enter_namespace(void);

#endif
