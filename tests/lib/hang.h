/* How long a test waits for what has to come. No verdict depends on how fast a machine is: what a test does is bounded
 * by counts, and this limit is that of something that hangs. It lies below CTest's (tests/CMakeLists.txt), so that the
 * test itself can say what hung. tests/lib/await is the same for scripts. */
#ifndef FC_TESTS_LIB_HANG_H
#define FC_TESTS_LIB_HANG_H

#define HANG_S 1800u
#define HANG_MS ((int)(HANG_S * 1000))

#endif
