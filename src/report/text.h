/* Text that grows: a page is put together here and written in one go.
 *
 * Lack of memory is remembered instead of returned by every call, and what is added after it is lost; who uses the text
 * looks at is_out_of_memory first. */
#ifndef FC_REPORT_TEXT_H
#define FC_REPORT_TEXT_H

#include "base/error.h"

struct fc_page {
	char *bytes; /* with a zero behind, once there is something */
	size_t length, room;
	bool is_out_of_memory;
};

void fc_page_deinit(struct fc_page *text);

void fc_page_add(struct fc_page *text, const char *format, ...) FC_PRINTF(2, 3);

/* As character data, or an attribute's value in double quotes, of HTML and SVG. NULL is nothing. */
void fc_page_add_text(struct fc_page *text, const char *string);

#endif
