#define _GNU_SOURCE
#include "real/namespaces.h"

#include "real/alone.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		skip_alone("a user namespace cannot be set up here");
	close(fd);
}

void enter_namespace(void)
{
	char map[64];
	uid_t user = geteuid();
	gid_t group = getegid();
	if (unshare(CLONE_NEWNS | (user == 0 ? 0 : CLONE_NEWUSER)) != 0)
		skip_alone("no mount namespace may be made here");
	if (user != 0) {
		write_file("/proc/self/setgroups", "deny");
		snprintf(map, sizeof(map), "0 %u 1", user);
		write_file("/proc/self/uid_map", map);
		snprintf(map, sizeof(map), "0 %u 1", group);
		write_file("/proc/self/gid_map", map);
	}
	/* In a chroot that is no mount point this fails, and mounts could be seen by others. */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		skip_alone("mounts cannot be kept private here");
}
