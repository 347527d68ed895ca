/* A message goes through three steps: may it pass (level, limit of its kind), what does it say (sentence and fields,
 * made harmless), and how is it written (text, JSON, journald). All three use fixed memory, so that logging works when
 * there is none left. */
#include "daemon/log.h"

#include "base/check.h"
#include "clock/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define INTERVAL_NS (10 * 1000000000ull)
#define KINDS_MAX 64
#define FIELDS_MAX 12
#define VALUE_BYTES 1024
#define LINE_BYTES 8192
#define JOURNAL_PATH "/run/systemd/journal/socket"

struct kind {
	const char *name;
	uint64_t interval_from_ns;
	uint32_t passed;
	uint64_t held_back;
	enum fc_log_level level;
};

static struct {
	struct fc_log_opts opts;
	bool is_open;
	int journal_fd;
	struct kind kinds[KINDS_MAX]; /* the last one is shared by all that find no place of their own */
	size_t kind_count;
	uint64_t held_back, unwritten;
} the_log = {.opts = {.format = FC_LOG_FORMAT_TEXT, .level = FC_LOG_INFO, .fd = STDERR_FILENO}, .journal_fd = -1};

/* ---- making text harmless ---- */

struct line {
	char bytes[LINE_BYTES];
	size_t used;
};

static void add_bytes(struct line *line, const char *bytes, size_t count)
{
	if (count > sizeof(line->bytes) - 1 - line->used)
		return; /* the line is full: what does not fit is left out as a whole */
	memcpy(line->bytes + line->used, bytes, count);
	line->used += count;
	line->bytes[line->used] = '\0';
}

static void add_text(struct line *line, const char *text)
{
	add_bytes(line, text, strlen(text));
}

/* Bytes of the printable UTF-8 character at `text`, 0 when there is none: controls, broken and overlong sequences. */
static size_t printable_len(const unsigned char *text)
{
	if (text[0] < 0x80)
		return text[0] >= ' ' && text[0] != 127 ? 1 : 0;
	size_t len = (text[0] & 0xe0) == 0xc0 ? 2 : (text[0] & 0xf0) == 0xe0 ? 3 : (text[0] & 0xf8) == 0xf0 ? 4 : 0;
	static const uint32_t least[] = {0, 0, 0xa0, 0x800, 0x10000}; /* U+0080 to U+009F are controls */
	uint32_t point = len == 0 ? 0 : text[0] & (0x7fu >> len);
	for (size_t at = 1; at < len; at++) {
		if ((text[at] & 0xc0) != 0x80)
			return 0;
		point = point << 6 | (text[at] & 0x3f);
	}
	bool is_surrogate = point >= 0xd800 && point < 0xe000;
	bool is_direction = (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
	bool is_separator = point == 0x2028 || point == 0x2029;
	if (len == 0 || point < least[len] || point > 0x10ffff || is_surrogate || is_direction || is_separator)
		return 0;
	return len;
}

/* Copies text with everything that is not printable as \xNN, cut with "..." where it is too long. */
static void make_harmless(const char *text, char shown[VALUE_BYTES])
{
	size_t used = 0;
	const unsigned char *at = (const unsigned char *)text;
	while (*at != '\0' && used < VALUE_BYTES - 8) {
		size_t len = printable_len(at);
		if (len > 0)
			memcpy(shown + used, at, len);
		else
			snprintf(shown + used, 5, "\\x%02x", *at);
		used += len > 0 ? len : 4;
		at += len > 0 ? len : 1;
	}
	strcpy(shown + used, *at != '\0' ? "..." : "");
}

static void add_quoted(struct line *line, const char *text)
{
	add_text(line, "\"");
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			add_text(line, "\\");
		add_bytes(line, text, 1);
	}
	add_text(line, "\"");
}

/* ---- one message ---- */

struct message {
	enum fc_log_level level;
	const char *kind;
	char text[VALUE_BYTES];
	size_t field_count;
	struct {
		const char *name;
		bool is_count;
		char value[VALUE_BYTES];
	} fields[FIELDS_MAX];
};

static const char *level_text(enum fc_log_level level)
{
	static const char *const texts[] = {"error", "warning", "info", "debug"};
	return texts[level];
}

static void add_time(struct line *line)
{
	struct timespec now;
	struct tm parts;
	char text[64];
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &parts);
	size_t used = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
	snprintf(text + used, sizeof(text) - used, ".%03ldZ", now.tv_nsec / 1000000);
	add_text(line, text);
}

static void format_text(struct line *line, const struct message *message)
{
	add_time(line);
	add_text(line, " ");
	add_text(line, level_text(message->level));
	add_text(line, " ");
	add_text(line, message->kind);
	add_text(line, ": ");
	add_text(line, message->text);
	for (size_t at = 0; at < message->field_count; at++) {
		const char *value = message->fields[at].value;
		add_text(line, " ");
		add_text(line, message->fields[at].name);
		add_text(line, "=");
		if (value[0] == '\0' || strpbrk(value, " \"=\\") != NULL)
			add_quoted(line, value);
		else
			add_text(line, value);
	}
	add_text(line, "\n");
}

static void add_json_pair(struct line *line, const char *name, const char *value, bool is_count)
{
	add_text(line, ",\"");
	add_text(line, name);
	add_text(line, "\":");
	if (is_count)
		add_text(line, value);
	else
		add_quoted(line, value);
}

static void format_json(struct line *line, const struct message *message)
{
	add_text(line, "{\"time\":\"");
	add_time(line);
	add_text(line, "\"");
	add_json_pair(line, "level", level_text(message->level), false);
	add_json_pair(line, "kind", message->kind, false);
	add_json_pair(line, "message", message->text, false);
	for (size_t at = 0; at < message->field_count; at++)
		add_json_pair(line, message->fields[at].name, message->fields[at].value, message->fields[at].is_count);
	add_text(line, "}\n");
}

/* Values have no line ends any more, so the plain form NAME=value is enough. */
static void format_journal(struct line *line, const struct message *message)
{
	static const char *const priorities[] = {"3", "4", "6", "7"}; /* syslog's numbers */
	add_text(line, "MESSAGE=");
	add_text(line, message->text);
	add_text(line, "\nPRIORITY=");
	add_text(line, priorities[message->level]);
	add_text(line, "\nSYSLOG_IDENTIFIER=flatcaked\nFLATCAKE_KIND=");
	add_text(line, message->kind);
	for (size_t at = 0; at < message->field_count; at++) {
		add_text(line, "\nFLATCAKE_");
		for (const char *letter = message->fields[at].name; *letter != '\0'; letter++) {
			char upper = *letter >= 'a' && *letter <= 'z' ? (char)(*letter - 'a' + 'A') : *letter;
			add_bytes(line, &upper, 1);
		}
		add_text(line, "=");
		add_text(line, message->fields[at].value);
	}
	add_text(line, "\n");
}

/* A reader that has stopped reading stops no daemon: what does not fit into its pipe is counted as unwritten. */
static bool write_line(const struct line *line)
{
	struct pollfd room = {.fd = the_log.opts.fd, .events = POLLOUT};
	ssize_t written;
	if (poll(&room, 1, 0) == 0)
		return false;
	do {
		written = write(the_log.opts.fd, line->bytes, line->used);
	} while (written < 0 && errno == EINTR);
	return written == (ssize_t)line->used;
}

static void write_message(const struct message *message)
{
	static struct line line;
	line.used = 0;
	bool is_written;
	switch (the_log.opts.format) {
	case FC_LOG_FORMAT_JOURNALD:
		format_journal(&line, message);
		is_written = send(the_log.journal_fd, line.bytes, line.used, MSG_NOSIGNAL | MSG_DONTWAIT) ==
			     (ssize_t)line.used;
		break;
	case FC_LOG_FORMAT_JSON:
		format_json(&line, message);
		is_written = write_line(&line);
		break;
	default:
		format_text(&line, message);
		is_written = write_line(&line);
		break;
	}
	the_log.unwritten += !is_written;
}

/* ---- the limit ---- */

static uint64_t now_ns(void)
{
	return the_log.opts.now_ns != NULL ? the_log.opts.now_ns() : fc_clock_real_ns();
}

static struct kind *find_kind(const char *name, enum fc_log_level level)
{
	for (size_t at = 0; at < the_log.kind_count; at++)
		if (strcmp(the_log.kinds[at].name, name) == 0)
			return &the_log.kinds[at];
	if (the_log.kind_count == KINDS_MAX)
		return &the_log.kinds[KINDS_MAX - 1];
	struct kind *kind = &the_log.kinds[the_log.kind_count++];
	*kind = (struct kind){.name = name, .interval_from_ns = now_ns(), .level = level};
	return kind;
}

static void tell_held_back(struct kind *kind)
{
	static struct message message;
	uint64_t held_back = kind->held_back;
	kind->held_back = 0;
	if (held_back == 0)
		return;
	message.level = kind->level;
	message.kind = kind->name;
	message.field_count = 1;
	message.fields[0].name = "held_back";
	message.fields[0].is_count = true;
	snprintf(message.fields[0].value, VALUE_BYTES, "%llu", (unsigned long long)held_back);
	snprintf(message.text, sizeof(message.text), "%llu more messages of this kind were held back",
		 (unsigned long long)held_back);
	write_message(&message);
}

static void renew(struct kind *kind, uint64_t now)
{
	if (now - kind->interval_from_ns < INTERVAL_NS)
		return;
	tell_held_back(kind);
	kind->interval_from_ns = now;
	kind->passed = 0;
}

static bool may_pass(const char *name, enum fc_log_level level)
{
	if (level > the_log.opts.level)
		return false;
	if (the_log.opts.burst == 0)
		return true;
	struct kind *kind = find_kind(name, level);
	renew(kind, now_ns());
	if (kind->passed < the_log.opts.burst) {
		kind->passed++;
		return true;
	}
	kind->held_back++;
	the_log.held_back++;
	return false;
}

void fc_log_tick(void)
{
	uint64_t now = now_ns();
	for (size_t at = 0; at < the_log.kind_count; at++)
		renew(&the_log.kinds[at], now);
}

void fc_log_write(enum fc_log_level level, const char *kind, const struct fc_log_field *fields, size_t field_count,
		  const char *format, ...)
{
	static struct message message;
	char text[VALUE_BYTES];
	fc_check(field_count <= FIELDS_MAX);
	if (!may_pass(kind, level))
		return;
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	message.level = level;
	message.kind = kind;
	make_harmless(text, message.text);
	message.field_count = field_count;
	for (size_t at = 0; at < field_count; at++) {
		message.fields[at].name = fields[at].name;
		message.fields[at].is_count = fields[at].text == NULL;
		if (fields[at].text != NULL)
			make_harmless(fields[at].text, message.fields[at].value);
		else
			snprintf(message.fields[at].value, VALUE_BYTES, "%llu", (unsigned long long)fields[at].count);
	}
	write_message(&message);
}

void fc_log_lost(uint64_t *held_back, uint64_t *unwritten)
{
	*held_back = the_log.held_back;
	*unwritten = the_log.unwritten;
}

/* ---- open and close ---- */

/* JOURNAL_STREAM holds device and inode of the stream that systemd connected; only while standard error still is that
 * stream does anything written there reach the journal. */
static bool is_fd_journal(int fd)
{
	const char *text = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat status;
	char rest;
	if (text == NULL || sscanf(text, "%llu:%llu%c", &device, &inode, &rest) != 2 || fstat(fd, &status) != 0)
		return false;
	return (unsigned long long)status.st_dev == device && (unsigned long long)status.st_ino == inode;
}

static int connect_journal(const char *path, struct fc_error *error)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(address.sun_path))
		return fc_error_set(error, FC_EINVAL, "journald's socket: %s: a path of more than %zu bytes", path,
				    sizeof(address.sun_path) - 1);
	strcpy(address.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)(const void *)&address, sizeof(address)) != 0) {
		int code =
			fc_error_set(error, FC_ESYSTEM, "journald's socket %s: %s; the log is text on standard error",
				     path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return code;
	}
	the_log.journal_fd = fd;
	return FC_OK;
}

int fc_log_open(const struct fc_log_opts *opts, struct fc_error *error)
{
	fc_check(!the_log.is_open);
	the_log.opts = *opts;
	the_log.is_open = true;
	the_log.kind_count = 0;
	bool is_automatic = opts->format == FC_LOG_AUTO;
	if (is_automatic)
		the_log.opts.format = is_fd_journal(opts->fd) ? FC_LOG_FORMAT_JOURNALD : FC_LOG_FORMAT_TEXT;
	if (the_log.opts.format != FC_LOG_FORMAT_JOURNALD)
		return FC_OK;
	int code = connect_journal(opts->journal_path != NULL ? opts->journal_path : JOURNAL_PATH, error);
	if (code != FC_OK)
		the_log.opts.format = FC_LOG_FORMAT_TEXT;
	return is_automatic ? FC_OK
			    : code; /* what goes to standard error reaches the journal as well, as plain lines */
}

void fc_log_close(void)
{
	for (size_t at = 0; at < the_log.kind_count; at++)
		tell_held_back(&the_log.kinds[at]);
	if (the_log.journal_fd >= 0)
		close(the_log.journal_fd);
	the_log.journal_fd = -1;
	the_log.kind_count = 0;
	the_log.is_open = false;
	the_log.opts = (struct fc_log_opts){.format = FC_LOG_FORMAT_TEXT, .level = FC_LOG_INFO, .fd = STDERR_FILENO};
}
