/* Who else may do what with a file that holds what people wrote, or that others wait for. A file belongs to the user
 * whom this process runs as, or to root; anybody else who owns it could read and change it, and is refused. What the
 * mode gives to others is taken away where this process may do that, and told where it may not. Folders are the
 * operator's: that one lets others replace what lies in it is told only. */
#ifndef FC_HOST_PRIVATE_FILE_H
#define FC_HOST_PRIVATE_FILE_H

#include "base/error.h"

#define FC_PRIVATE_NOTICE_BYTES 512

/* FC_EINVAL names the user to whom the file belongs. */
int fc_private_check_owner(int fd, const char *path, struct fc_error *error) FC_MUST_USE;

/* Takes from others what they may do with an open file. To be called once it is known to be ours: another's file that
 * was named by mistake keeps its mode. Leaves in `notice` what was done or could not be, in a sentence for the
 * operator, or "". */
void fc_private_close_to_others(int fd, const char *path, char notice[FC_PRIVATE_NOTICE_BYTES]);

/* The same about further names (hard links) of a file, and about the folder that `path` lies in: both are only told. */
void fc_private_look_at_links(int fd, const char *path, char notice[FC_PRIVATE_NOTICE_BYTES]);
void fc_private_look_at_folder(const char *path, char notice[FC_PRIVATE_NOTICE_BYTES]);

#endif
