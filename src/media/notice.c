#include "media/media.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void fc_media_note(struct fc_media *media, const char *format, ...)
{
	size_t used = strlen(media->notice);
	va_list arguments;

	if (used > 0 && used + 2 < sizeof(media->notice)) {
		memcpy(media->notice + used, "; ", 3);
		used += 2;
	}
	va_start(arguments, format);
	vsnprintf(media->notice + used, sizeof(media->notice) - used, format, arguments);
	va_end(arguments);
}
