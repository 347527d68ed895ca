#include "report/text.h"

#include "base/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_BYTES_MIN 4096u

void fc_page_deinit(struct fc_page *text)
{
	free(text->bytes);
	*text = (struct fc_page){0};
}

/* Room for `bytes` more and the zero. */
static bool reserve(struct fc_page *text, size_t bytes)
{
	if (text->is_out_of_memory)
		return false;
	size_t needed = text->length + bytes + 1;
	if (needed <= text->room)
		return true;
	size_t room = needed > 2 * text->room ? needed : 2 * text->room;
	room = room < ROOM_BYTES_MIN ? ROOM_BYTES_MIN : room;
	char *grown = realloc(text->bytes, room);
	if (grown == NULL) {
		text->is_out_of_memory = true;
		return false;
	}
	text->bytes = grown;
	text->room = room;
	return true;
}

void fc_page_add(struct fc_page *text, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	fc_check(length >= 0);
	if (!reserve(text, (size_t)length))
		return;
	va_start(arguments, format);
	vsnprintf(text->bytes + text->length, (size_t)length + 1, format, arguments);
	va_end(arguments);
	text->length += (size_t)length;
}

static void add_bytes(struct fc_page *text, const char *bytes, size_t length)
{
	if (!reserve(text, length))
		return;
	memcpy(text->bytes + text->length, bytes, length);
	text->length += length;
	text->bytes[text->length] = 0;
}

static const char *reference_of(char byte)
{
	switch (byte) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	default:
		return NULL;
	}
}

void fc_page_add_text(struct fc_page *text, const char *string)
{
	for (; string != NULL && *string != 0; string++) {
		const char *reference = reference_of(*string);
		bool is_control = (unsigned char)*string < ' ' || *string == 0x7f;
		if (reference != NULL)
			add_bytes(text, reference, strlen(reference));
		else
			add_bytes(text, is_control ? " " : string, 1);
	}
}
