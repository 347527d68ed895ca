/* The status page, src/daemon/page.html, as it lies in the program: cmake/EmbedFile.cmake writes the bytes. They have a
 * zero behind them. */
#ifndef FC_DAEMON_PAGE_H
#define FC_DAEMON_PAGE_H

#include <stddef.h>

extern const unsigned char fc_page_bytes[];
extern const size_t fc_page_byte_count;

#endif
