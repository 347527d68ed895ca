#include "daemon/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fc_text_deinit(struct fc_text *text)
{
	free(text->bytes);
	*text = (struct fc_text){.bytes = NULL};
}

/* Room for `more` bytes and the zero behind them. */
static bool make_room(struct fc_text *text, size_t more)
{
	if (text->is_out_of_memory)
		return false;
	if (more < text->room - text->used)
		return true;
	size_t room = text->room < 2048 ? 4096 : text->room * 2;
	if (room - text->used <= more)
		room = text->used + more + 1;
	char *bytes = realloc(text->bytes, room);
	text->is_out_of_memory = bytes == NULL;
	if (bytes == NULL)
		return false;
	text->bytes = bytes;
	text->room = room;
	return true;
}

static void add_bytes(struct fc_text *text, const char *bytes, size_t count)
{
	if (!make_room(text, count))
		return;
	memcpy(text->bytes + text->used, bytes, count);
	text->used += count;
	text->bytes[text->used] = '\0';
}

void fc_text_add(struct fc_text *text, const char *string)
{
	add_bytes(text, string, strlen(string));
}

void fc_text_addf(struct fc_text *text, const char *format, ...)
{
	va_list arguments, again;
	va_start(arguments, format);
	va_copy(again, arguments);
	int len = vsnprintf(NULL, 0, format, arguments);
	if (len >= 0 && make_room(text, (size_t)len)) {
		vsnprintf(text->bytes + text->used, (size_t)len + 1, format, again);
		text->used += (size_t)len;
	}
	va_end(again);
	va_end(arguments);
}

void fc_text_add_number(struct fc_text *text, uint64_t number, char behind)
{
	char digits[24];
	size_t at = sizeof(digits);
	digits[--at] = behind;
	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0);
	add_bytes(text, digits + at, sizeof(digits) - at);
}
