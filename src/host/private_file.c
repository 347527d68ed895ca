#include "host/private_file.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODE_BITS 07777

int fc_private_check_owner(int fd, const char *path, struct fc_error *error)
{
	struct stat status;
	if (fstat(fd, &status) != 0)
		return fc_error_set(error, FC_ESYSTEM, "%s: fstat: %s", path, strerror(errno));
	if (status.st_uid == geteuid() || status.st_uid == 0)
		return FC_OK;
	return fc_error_set(error, FC_EINVAL,
			    "%s: belongs to user %u, who can read and change all of it; this process is user %u and "
			    "takes what is its own or root's: chown it, or name another file",
			    path, (unsigned)status.st_uid, (unsigned)geteuid());
}

/* Through a group that root gave it, this process may have its own access. */
static mode_t bits_of_others(const struct stat *status)
{
	bool is_owner = status->st_uid == geteuid();
	return status->st_mode & (is_owner && S_ISREG(status->st_mode) ? S_IRWXG | S_IRWXO : S_IRWXO);
}

/* Device nodes are the operator's, like folders. Some file systems take a new mode and keep the old one. */
static bool take_away(int fd, struct stat *status)
{
	mode_t mode = status->st_mode & MODE_BITS & ~bits_of_others(status);
	return S_ISREG(status->st_mode) && fchmod(fd, mode) == 0 && fstat(fd, status) == 0 &&
	       bits_of_others(status) == 0;
}

void fc_private_close_to_others(int fd, const char *path, char notice[FC_PRIVATE_NOTICE_BYTES])
{
	struct stat status;
	notice[0] = '\0';
	if (fstat(fd, &status) != 0 || bits_of_others(&status) == 0)
		return;
	unsigned before = status.st_mode & MODE_BITS;
	if (take_away(fd, &status))
		snprintf(notice, FC_PRIVATE_NOTICE_BYTES,
			 "%s: had mode %04o, so that others could read or change what it holds; it has %04o now", path,
			 before, (unsigned)status.st_mode & MODE_BITS);
	else
		snprintf(notice, FC_PRIVATE_NOTICE_BYTES,
			 "%s: has mode %04o, so others can read or change what it holds, and this process cannot take "
			 "that from them; chmod o-rwx",
			 path, before);
}

void fc_private_look_at_links(int fd, const char *path, char notice[FC_PRIVATE_NOTICE_BYTES])
{
	struct stat status;
	notice[0] = '\0';
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink > 1)
		snprintf(notice, FC_PRIVATE_NOTICE_BYTES,
			 "%s: has %lu names (hard links), and what is written to it is read under each of them; find "
			 "-samefile lists them",
			 path, (unsigned long)status.st_nlink);
}

void fc_private_look_at_folder(const char *path, char notice[FC_PRIVATE_NOTICE_BYTES])
{
	struct stat status;
	char *copy = strdup(path);
	notice[0] = '\0';
	if (copy == NULL)
		return;
	const char *folder = dirname(copy);
	/* In a sticky folder, as /tmp is, only who owns a file can take it away. */
	if (stat(folder, &status) == 0 && (status.st_mode & S_IWOTH) != 0 && (status.st_mode & S_ISVTX) == 0)
		snprintf(notice, FC_PRIVATE_NOTICE_BYTES,
			 "%s: a folder of mode %04o, in which anybody can take away or replace %s; chmod o-w", folder,
			 (unsigned)status.st_mode & MODE_BITS, path);
	free(copy);
}
