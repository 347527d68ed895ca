/* Text that grows, for answers. Lack of memory is remembered, not returned by every call: what is added after it is
 * lost, and whoever uses the text looks at is_out_of_memory first. */
#ifndef FC_DAEMON_TEXT_H
#define FC_DAEMON_TEXT_H

#include "base/error.h"

struct fc_text {
	char *bytes; /* from malloc; ends with a zero once there is something */
	size_t used, room;
	bool is_out_of_memory;
};

void fc_text_deinit(struct fc_text *text);
void fc_text_add(struct fc_text *text, const char *string);
void fc_text_addf(struct fc_text *text, const char *format, ...) FC_PRINTF(2, 3);
/* A number and a byte behind it, without the machinery of printf: the map has hundreds of thousands. */
void fc_text_add_number(struct fc_text *text, uint64_t number, char behind);

#endif
