#include "cli/http_get.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define SILENCE_S 5
#define ANSWER_BYTES_MAX (16u << 20)

/* ---- where to ----*/

static int read_token(struct fc_http_source *source, const char *path, struct fc_error *error)
{
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return fc_error_set(error, FC_ESYSTEM, "--token-file: %s: %s", path, strerror(errno));
	size_t count = fread(source->token, 1, sizeof(source->token) - 1, file);
	fclose(file);
	source->token[count] = '\0';
	source->token[strcspn(source->token, "\r\n")] = '\0';
	for (const char *at = source->token; *at != '\0'; at++)
		if (*at <= ' ' || *at > '~')
			return fc_error_set(error, FC_EINVAL, "--token-file: %s does not hold a token", path);
	if (source->token[0] == '\0')
		return fc_error_set(error, FC_EINVAL, "--token-file: %s is empty", path);
	return FC_OK;
}

static int refuse_url(const char *url, struct fc_error *error)
{
	return fc_error_set(error, FC_EINVAL,
			    "--url: \"%.100s\" does not fit; allowed: http://HOST or http://HOST:PORT", url);
}

int fc_http_source_init(struct fc_http_source *source, const char *url, const char *token_path, struct fc_error *error)
{
	static const char scheme[] = "http://";
	*source = (struct fc_http_source){.port = "9117"};
	if (strncmp(url, scheme, sizeof(scheme) - 1) != 0)
		return refuse_url(url, error);
	const char *host = url + sizeof(scheme) - 1;
	const char *host_end = host[0] == '[' ? strchr(host, ']') : host + strcspn(host, ":/");
	if (host_end == NULL)
		return refuse_url(url, error);
	const char *behind = host_end + (host[0] == '[');
	host += host[0] == '[';
	size_t port_len = behind[0] == ':' ? strspn(behind + 1, "0123456789") : 0;
	if (behind[0] == ':' && (port_len == 0 || port_len >= sizeof(source->port)))
		return refuse_url(url, error);
	const char *rest = behind + (behind[0] == ':' ? 1 + port_len : 0);
	if (host_end == host || (size_t)(host_end - host) >= sizeof(source->host) ||
	    (rest[0] != '\0' && strcmp(rest, "/") != 0))
		return refuse_url(url, error);
	memcpy(source->host, host, (size_t)(host_end - host));
	if (port_len > 0) {
		memcpy(source->port, behind + 1, port_len);
		source->port[port_len] = '\0';
	}
	return token_path != NULL ? read_token(source, token_path, error) : FC_OK;
}

/* ---- the conversation ---- */

static int dial(const struct fc_http_source *source, int *out, struct fc_error *error)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	const struct timeval silence = {.tv_sec = SILENCE_S};
	struct addrinfo *found = NULL;
	int failed = getaddrinfo(source->host, source->port, &hints, &found);
	if (failed != 0)
		return fc_error_set(error, FC_ESYSTEM, "--url: %s: %s", source->host, gai_strerror(failed));
	int fd = -1, why = 0;
	for (const struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next) {
		fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof(silence)) != 0 ||
		    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &silence, sizeof(silence)) != 0 ||
		    connect(fd, at->ai_addr, at->ai_addrlen) != 0) {
			why = errno;
			if (fd >= 0)
				close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(found);
	*out = fd;
	if (fd < 0)
		return fc_error_set(error, FC_ESYSTEM, "%s port %s: %s; is flatcaked there, and http_listen not off?",
				    source->host, source->port, strerror(why));
	return FC_OK;
}

static int ask(int fd, const struct fc_http_source *source, const char *path, struct fc_error *error)
{
	char text[1024];
	bool is_six = strchr(source->host, ':') != NULL;
	int len = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: %s%s%s:%s\r\nConnection: close\r\n%s%s%s\r\n",
			   path, is_six ? "[" : "", source->host, is_six ? "]" : "", source->port,
			   source->token[0] != '\0' ? "Authorization: Bearer " : "", source->token,
			   source->token[0] != '\0' ? "\r\n" : "");
	if (len < 0 || (size_t)len >= sizeof(text))
		return fc_error_set(error, FC_EINVAL, "--url: too long");
	if (send(fd, text, (size_t)len, MSG_NOSIGNAL) != len)
		return fc_error_set(error, FC_ESYSTEM, "%s port %s: %s", source->host, source->port, strerror(errno));
	return FC_OK;
}

/* Everything until the daemon closes; ends with a zero. */
static int receive(int fd, char **bytes, struct fc_error *error)
{
	size_t used = 0, room = 0;
	for (;;) {
		if (room - used < 2) {
			room = room == 0 ? 65536 : room * 2;
			char *larger = room <= ANSWER_BYTES_MAX ? realloc(*bytes, room) : NULL;
			if (larger == NULL)
				return fc_error_set(error, FC_EFORMAT, "the daemon's answer is larger than %u bytes",
						    ANSWER_BYTES_MAX);
			*bytes = larger;
		}
		ssize_t count = recv(fd, *bytes + used, room - used - 1, 0);
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return fc_error_set(error, errno == EAGAIN ? FC_ETIMEOUT : FC_ESYSTEM,
					    "the daemon's answer: %s",
					    errno == EAGAIN ? "nothing comes" : strerror(errno));
		used += (size_t)count;
		(*bytes)[used] = '\0';
		if (count == 0)
			return FC_OK;
	}
}

static int take_answer(const char *bytes, const char *path, json_t **json, struct fc_error *error)
{
	int status;
	const char *end = strstr(bytes, "\r\n\r\n");
	if (sscanf(bytes, "HTTP/1.%*1d %d", &status) != 1 || end == NULL)
		return fc_error_set(error, FC_EFORMAT, "%s: the answer is no HTTP", path);
	*json = json_loads(end + 4, 0, NULL);
	if (status != 200) {
		const json_t *told = json_object_get(json_object_get(*json, "error"), "text");
		const char *sentence = json_is_string(told) ? json_string_value(told) : "no reason is given";
		int code = fc_error_set(error, FC_EINVAL, "%s: refused with %d: %s", path, status, sentence);
		json_decref(*json);
		*json = NULL;
		return code;
	}
	if (!json_is_object(*json)) {
		json_decref(*json);
		*json = NULL;
		return fc_error_set(error, FC_EFORMAT, "%s: the answer is no JSON object", path);
	}
	return FC_OK;
}

int fc_http_get(const struct fc_http_source *source, const char *path, json_t **json, struct fc_error *error)
{
	int fd;
	char *bytes = NULL;
	*json = NULL;
	int code = dial(source, &fd, error);
	if (code != FC_OK)
		return code;
	code = ask(fd, source, path, error);
	if (code == FC_OK)
		code = receive(fd, &bytes, error);
	if (code == FC_OK)
		code = take_answer(bytes, path, json, error);
	free(bytes);
	close(fd);
	return code;
}
