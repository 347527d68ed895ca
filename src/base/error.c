#include "base/error.h"

#include <stdio.h>
#include <string.h>

/* Sentences quote names and values from outside, and may be shown on a terminal, which control characters could steer.
 */
static void make_printable(char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < ' ' || *text == 127)
			*text = '?';
}

int fc_error_set(struct fc_error *error, int code, const char *format, ...)
{
	if (error == NULL)
		return code;
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(error->text, sizeof(error->text), format, arguments);
	va_end(arguments);
	make_printable(error->text);
	error->code = code;
	return code;
}

/* Whether a sentence begins with the place, or with something inside it: "DIR/ssd.arena: ..." in DIR. */
static bool names_already(const char *sentence, const char *place)
{
	size_t len = strlen(place);
	return len > 0 && strncmp(sentence, place, len) == 0 && (sentence[len] == ':' || sentence[len] == '/');
}

int fc_error_wrap(struct fc_error *error, int code, const char *format, ...)
{
	if (error == NULL)
		return code;
	char text[FC_ERROR_TEXT_BYTES];
	va_list arguments;
	va_start(arguments, format);
	int used = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (names_already(error->text, text))
		memcpy(text, error->text, sizeof(text));
	else if (used >= 0 && (size_t)used < sizeof(text))
		snprintf(text + used, sizeof(text) - (size_t)used, ": %s", error->text);
	make_printable(text);
	memcpy(error->text, text, sizeof(text));
	error->code = code;
	return code;
}

const char *fc_code_text(int code)
{
	static const char *const texts[] = {
		[-FC_OK] = "success",
		[-FC_EINVAL] = "invalid argument",
		[-FC_ENOMEM] = "out of memory",
		[-FC_EIO] = "input/output failed",
		[-FC_EFULL] = "no room",
		[-FC_ENOENT] = "no such thing",
		[-FC_EBUSY] = "held by somebody else",
		[-FC_EFORMAT] = "not an arena of this format",
		[-FC_EGEOMETRY] = "an arena of another geometry",
		[-FC_ECORRUPT] = "checksum mismatch",
		[-FC_ETIMEOUT] = "time limit passed",
		[-FC_ECANCELED] = "cancelled",
		[-FC_ELIMIT] = "limit reached",
		[-FC_ESYSTEM] = "system call failed",
		[-FC_EAGAIN] = "nothing now, try later",
	};
	if (code > 0 || (size_t)-code >= sizeof(texts) / sizeof(texts[0]))
		return "unknown code";
	return texts[-code];
}
