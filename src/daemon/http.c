/* Requests go through a table of endpoints: found by path and method, let in or not, answered from a view. */
#include "daemon/http.h"

#include "base/check.h"
#include "base/list.h"
#include "clock/clock.h"
#include "daemon/log.h"
#include "daemon/metrics.h"
#include "daemon/page.h"
#include "daemon/status.h"
#include "daemon/token.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SILENCE_BYTES 1024
#define MAP_AGE_NS 1000000000ull
#define SESSIONS_PAGE 100u
#define SESSIONS_PAGE_MAX 1000u
#define HEADER_BYTES_MAX 16384u
#define SILENCE_S 30u
#define JSON_TYPE "application/json"

struct fc_http {
	struct MHD_Daemon *daemon;
	struct fc_link connections; /* who was heard longest ago first */
	uint64_t connection_count, connections_max;
	struct fc_daemon_callbacks callbacks;
	bool is_loopback;
	struct fc_token token;
	uint64_t (*now_ns)(void);
	uint16_t port;
	int fd;
	char page_policy[512]; /* Content-Security-Policy of the status page */
	struct fc_text map;
	uint64_t map_at_ns;
	struct fc_metrics_own own;
};

struct connection {
	struct fc_link link; /* http->connections, until it has to make room */
	int fd;
	bool is_ending;
};

struct request {
	struct fc_http *http;
	struct MHD_Connection *connection;
	const char *method, *path;
	const char *rest; /* of the path, behind the endpoint's own */
};

/* ---- answers ---- */

static enum MHD_Result queue(const struct request *request, unsigned status, struct MHD_Response *response,
			     const char *type)
{
	static const char *const headers[][2] = {
		{"Cache-Control", "no-store"},
		{"X-Content-Type-Options", "nosniff"},
		{"X-Frame-Options", "DENY"},
		{"Referrer-Policy", "no-referrer"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
	};
	bool is_page = strncmp(type, "text/html", 9) == 0;
	if (response == NULL)
		return MHD_NO;
	bool is_whole = MHD_add_response_header(response, "Content-Type", type) == MHD_YES;
	for (size_t at = 0; at < fc_array_len(headers); at++)
		is_whole &= MHD_add_response_header(response, headers[at][0], headers[at][1]) == MHD_YES;
	is_whole &= MHD_add_response_header(response, "Content-Security-Policy",
					    is_page ? request->http->page_policy
						    : "default-src 'none'; frame-ancestors 'none'") == MHD_YES;
	enum MHD_Result result = is_whole ? MHD_queue_response(request->connection, status, response) : MHD_NO;
	if (status / 100 < fc_array_len(request->http->own.http_requests))
		request->http->own.http_requests[status / 100]++;
	MHD_destroy_response(response);
	return result;
}

/* Takes over `bytes`, from malloc. */
static enum MHD_Result answer_bytes(const struct request *request, unsigned status, char *bytes, size_t count,
				    const char *type)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(count, bytes, MHD_RESPMEM_MUST_FREE);
	if (response == NULL)
		free(bytes);
	return queue(request, status, response, type);
}

static struct MHD_Response *error_response(const char *code, const char *sentence)
{
	json_t *object = json_pack("{s:{s:s, s:s}}", "error", "code", code, "text", sentence);
	char *bytes = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;
	json_decref(object);
	if (bytes == NULL)
		return NULL;
	struct MHD_Response *response = MHD_create_response_from_buffer(strlen(bytes), bytes, MHD_RESPMEM_MUST_FREE);
	if (response == NULL)
		free(bytes);
	return response;
}

static enum MHD_Result answer_error(const struct request *request, unsigned status, const char *code,
				    const char *sentence)
{
	return queue(request, status, error_response(code, sentence), JSON_TYPE);
}

/* Takes the reference; NULL is lack of memory. */
static enum MHD_Result answer_json(const struct request *request, unsigned status, json_t *object)
{
	char *bytes = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;
	json_decref(object);
	if (bytes == NULL)
		return answer_error(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "no_memory", "no memory for the answer");
	return answer_bytes(request, status, bytes, strlen(bytes), JSON_TYPE);
}

/* ---- endpoints that read ---- */

/* A view is large: 64 clients with their reports are pointed to, but the sums are in it. */
static const struct fc_daemon_view *take_view(const struct request *request)
{
	static struct fc_daemon_view view;
	memset(&view, 0, sizeof(view));
	request->http->callbacks.view(request->http->callbacks.context, &view);
	return &view;
}

static enum MHD_Result on_page(const struct request *request)
{
	void *bytes = (void *)(uintptr_t)fc_page_bytes; /* never written to */
	return queue(request, MHD_HTTP_OK,
		     MHD_create_response_from_buffer(fc_page_byte_count, bytes, MHD_RESPMEM_PERSISTENT),
		     "text/html; charset=utf-8");
}

static enum MHD_Result on_metrics(const struct request *request)
{
	struct fc_text text = {.bytes = NULL};
	fc_log_lost(&request->http->own.log_held_back, &request->http->own.log_unwritten);
	fc_metrics_write(&text, take_view(request), &request->http->own);
	if (text.is_out_of_memory) {
		fc_text_deinit(&text);
		return answer_error(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "no_memory", "no memory for the answer");
	}
	return answer_bytes(request, MHD_HTTP_OK, text.bytes, text.used, "text/plain; version=0.0.4; charset=utf-8");
}

/* A sentence of the arenas that do not answer; "" when all do. */
static void tell_silence(const struct fc_daemon_view *view, char *text, size_t room)
{
	text[0] = 0;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		const struct fc_view_arena *arena = &view->arenas[medium];
		size_t used = strlen(text);
		if (arena->silent_ns > 0)
			snprintf(text + used, room - used, "%s%s, the %s arena, has not answered for %llu s",
				 used > 0 ? "; " : "", arena->path == NULL ? "" : arena->path,
				 fc_medium_text((enum fc_medium)medium),
				 (unsigned long long)(arena->silent_ns / 1000000000));
	}
}

/* The process lives, whatever its arenas do: to restart it does not make them answer. */
static enum MHD_Result on_healthz(const struct request *request)
{
	char silence[SILENCE_BYTES];
	tell_silence(take_view(request), silence, sizeof(silence));
	return answer_json(request, MHD_HTTP_OK, json_pack("{s:b, s:s}", "alive", 1, "silent", silence));
}

static enum MHD_Result on_readyz(const struct request *request)
{
	const struct fc_daemon_view *view = take_view(request);
	char silence[SILENCE_BYTES];
	tell_silence(view, silence, sizeof(silence));
	bool is_ready = fc_view_is_ready(view);
	return answer_json(request, is_ready ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE,
			   json_pack("{s:b, s:s, s:s}", "ready", is_ready, "state", fc_daemon_state_text(view->state),
				     "reason", silence[0] != 0 ? silence : view->reason));
}

static enum MHD_Result on_status(const struct request *request)
{
	return answer_json(request, MHD_HTTP_OK, fc_status_json(take_view(request)));
}

static enum MHD_Result on_clients(const struct request *request)
{
	return answer_json(request, MHD_HTTP_OK, fc_status_clients_json(take_view(request)));
}

static enum MHD_Result on_namespaces(const struct request *request)
{
	return answer_json(request, MHD_HTTP_OK, fc_status_namespaces_json(take_view(request)));
}

static enum MHD_Result on_map(const struct request *request)
{
	struct fc_http *http = request->http;
	uint64_t now_ns = http->now_ns();
	if (http->map.bytes == NULL || http->map.is_out_of_memory || now_ns - http->map_at_ns >= MAP_AGE_NS) {
		fc_text_deinit(&http->map);
		fc_status_map(&http->map, &http->callbacks, take_view(request));
		http->map_at_ns = now_ns;
	}
	if (http->map.is_out_of_memory)
		return answer_error(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "no_memory", "no memory for the map");
	return queue(request, MHD_HTTP_OK,
		     MHD_create_response_from_buffer(http->map.used, http->map.bytes, MHD_RESPMEM_MUST_COPY),
		     JSON_TYPE);
}

/* A number of the query; false when it is there and is none, or not within the bounds. */
static bool read_argument(const struct request *request, const char *name, uint64_t max, uint64_t *value)
{
	const char *text = MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
	if (text == NULL || text[0] == '\0')
		return true;
	uint64_t number = 0;
	for (; *text != '\0'; text++)
		if (*text < '0' || *text > '9' || fc_mul_overflows(number, 10, &number) ||
		    fc_add_overflows(number, (uint64_t)(*text - '0'), &number))
			return false;
	*value = number;
	return number <= max;
}

static enum MHD_Result on_sessions(const struct request *request)
{
	uint64_t limit = SESSIONS_PAGE, cursor = 0;
	if (!read_argument(request, "limit", SESSIONS_PAGE_MAX, &limit) || limit == 0)
		return answer_error(request, MHD_HTTP_BAD_REQUEST, "bad_limit", "limit: a whole number, 1 to 1000");
	if (!read_argument(request, "cursor", UINT64_MAX, &cursor))
		return answer_error(request, MHD_HTTP_BAD_REQUEST, "bad_cursor",
				    "cursor: what next_cursor of the page before was");
	return answer_json(request, MHD_HTTP_OK, fc_status_sessions_json(&request->http->callbacks, limit, cursor));
}

/* ---- endpoints that change something ---- */

static bool parse_half(const char *text, uint64_t *value)
{
	*value = 0;
	for (int at = 0; at < 16; at++) {
		char letter = text[at];
		int digit = letter >= '0' && letter <= '9'   ? letter - '0'
			    : letter >= 'a' && letter <= 'f' ? letter - 'a' + 10
							     : -1;
		if (digit < 0)
			return false;
		*value = *value << 4 | (uint64_t)digit;
	}
	return true;
}

static enum MHD_Result on_evict(const struct request *request)
{
	struct fc_session_id id;
	if (strlen(request->rest) != 32 || !parse_half(request->rest, &id.high) ||
	    !parse_half(request->rest + 16, &id.low))
		return answer_error(request, MHD_HTTP_BAD_REQUEST, "bad_session",
				    "a session is named by 32 hexadecimal digits in lower case");
	int code = request->http->callbacks.evict(request->http->callbacks.context, id);
	struct fc_log_field fields[] = {{"session", FC_LOG_TEXT(request->rest)},
					{"result", FC_LOG_TEXT(fc_code_text(code))}};
	fc_log_write(FC_LOG_INFO, "session-evicted", fields, 2, "session %s is to be evicted, as asked over HTTP",
		     request->rest);
	switch (code) {
	case FC_OK:
		request->http->map_at_ns = request->http->now_ns() - MAP_AGE_NS; /* is to be seen at once */
		return answer_json(request, MHD_HTTP_OK, json_pack("{s:s}", "evicted", request->rest));
	case FC_ENOENT:
		return answer_error(request, MHD_HTTP_NOT_FOUND, "no_session", "there is no such session");
	case FC_EBUSY:
		return answer_error(request, MHD_HTTP_CONFLICT, "busy", "the session is being read; try again later");
	case FC_EAGAIN:
		return answer_error(request, MHD_HTTP_SERVICE_UNAVAILABLE, "not_now",
				    "the daemon is opening or draining");
	default:
		return answer_error(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "failed", fc_code_text(code));
	}
}

static enum MHD_Result on_drain(const struct request *request)
{
	fc_log(FC_LOG_INFO, "drain-asked", "the daemon is to drain, as asked over HTTP");
	int code = request->http->callbacks.drain(request->http->callbacks.context);
	if (code != FC_OK)
		return answer_error(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "failed", fc_code_text(code));
	return answer_json(request, MHD_HTTP_ACCEPTED, json_pack("{s:b}", "draining", 1));
}

/* ---- finding the endpoint, letting in ---- */

struct endpoint {
	const char *method, *path; /* a path that ends with / takes a rest, but for the root */
	enum MHD_Result (*answer)(const struct request *request);
};

static const struct endpoint endpoints[] = {
	{"GET", "/", on_page},
	{"GET", "/metrics", on_metrics},
	{"GET", "/healthz", on_healthz},
	{"GET", "/readyz", on_readyz},
	{"GET", "/v1/status", on_status},
	{"GET", "/v1/clients", on_clients},
	{"GET", "/v1/namespaces", on_namespaces},
	{"GET", "/v1/map", on_map},
	{"GET", "/v1/sessions", on_sessions},
	{"DELETE", "/v1/sessions/", on_evict},
	{"POST", "/v1/drain", on_drain},
};

static bool is_at(const struct endpoint *endpoint, const char *path, const char **rest)
{
	size_t len = strlen(endpoint->path);
	bool takes_rest = len > 1 && endpoint->path[len - 1] == '/';
	*rest = strlen(path) >= len ? path + len : "";
	return takes_rest ? strncmp(path, endpoint->path, len) == 0 : strcmp(path, endpoint->path) == 0;
}

/* `*allowed`: the method that the path takes, NULL when there is no such path. */
static const struct endpoint *find_endpoint(struct request *request, const char **allowed)
{
	bool is_head = strcmp(request->method, "HEAD") == 0; /* libmicrohttpd leaves the body out */
	const char *method = is_head ? "GET" : request->method;
	*allowed = NULL;
	for (size_t at = 0; at < fc_array_len(endpoints); at++) {
		if (!is_at(&endpoints[at], request->path, &request->rest))
			continue;
		*allowed = endpoints[at].method;
		if (strcmp(endpoints[at].method, method) == 0)
			return &endpoints[at];
	}
	return NULL;
}

/* Whether the Host header names the loopback, as it does unless a page of elsewhere is behind it. */
static bool is_host_local(const char *host)
{
	if (host == NULL)
		return true; /* no browser leaves it out */
	size_t len = strlen(host);
	const char *colon = strrchr(host, ':');
	const char *bracket = strrchr(host, ']');
	if (colon != NULL && (bracket == NULL || colon > bracket))
		len = (size_t)(colon - host);
	char name[64];
	struct in_addr four;
	if (len >= sizeof(name))
		return false;
	memcpy(name, host, len);
	name[len] = '\0';
	if (strcasecmp(name, "localhost") == 0 || strcmp(name, "[::1]") == 0)
		return true;
	return inet_pton(AF_INET, name, &four) == 1 && ntohl(four.s_addr) >> 24 == 127;
}

static const char *header(const struct request *request, const char *name)
{
	return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

static enum MHD_Result refuse_token(const struct request *request, bool is_change)
{
	bool has_token = request->http->token.is_there;
	const char *sentence = has_token ? "this needs the token: Authorization: Bearer TOKEN"
					 : "nothing can be changed over HTTP: the daemon has no http_token_file";
	struct MHD_Response *response = error_response(has_token ? "no_token" : "not_enabled", sentence);
	if (response != NULL && has_token)
		(void)MHD_add_response_header(response, "WWW-Authenticate",
					      is_change ? "Bearer realm=\"flatcaked\"" : "Basic realm=\"flatcaked\"");
	fc_log(FC_LOG_WARNING, "http-refused", "%s %s without the token", request->method, request->path);
	return queue(request, has_token ? MHD_HTTP_UNAUTHORIZED : MHD_HTTP_FORBIDDEN, response, JSON_TYPE);
}

static enum MHD_Result refuse_method(const struct request *request, const char *allowed)
{
	struct MHD_Response *response = error_response("bad_method", "another method is needed here, see Allow");
	if (response != NULL)
		(void)MHD_add_response_header(response, "Allow", allowed);
	return queue(request, MHD_HTTP_METHOD_NOT_ALLOWED, response, JSON_TYPE);
}

static bool has_body(const struct request *request)
{
	const char *length = header(request, "Content-Length");
	return header(request, "Transfer-Encoding") != NULL || (length != NULL && strcmp(length, "0") != 0);
}

static enum MHD_Result answer_request(struct request *request)
{
	const struct fc_http *http = request->http;
	if (http->is_loopback && !is_host_local(header(request, "Host")))
		return answer_error(request, 421, "bad_host", "the Host header does not name this machine's loopback");
	bool is_change = strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0;
	bool needs_token = is_change || !http->is_loopback;
	const char *allowed;
	const struct endpoint *endpoint = find_endpoint(request, &allowed);
	if (endpoint == NULL && http->is_loopback && allowed == NULL)
		return answer_error(request, MHD_HTTP_NOT_FOUND, "no_such_path", "there is nothing at this path");
	if (endpoint == NULL && http->is_loopback)
		return refuse_method(request, allowed);
	if (needs_token && !fc_token_matches(&http->token, header(request, "Authorization"), !is_change))
		return refuse_token(request, is_change);
	if (endpoint == NULL && allowed != NULL)
		return refuse_method(request, allowed);
	if (endpoint == NULL)
		return answer_error(request, MHD_HTTP_NOT_FOUND, "no_such_path", "there is nothing at this path");
	if (has_body(request))
		return answer_error(request, MHD_HTTP_CONTENT_TOO_LARGE, "body", "no request here has a body");
	return endpoint->answer(request);
}

/* ---- who may stay connected ---- */

/* Nobody keeps others out by saying nothing, or little at a time: who comes when all places are taken gets the place of
 * the one whose last whole request is the oldest. */
static void make_room(struct fc_http *http)
{
	if (http->connection_count <= http->connections_max)
		return;
	struct connection *oldest = fc_container_of(http->connections.next, struct connection, link);
	fc_list_remove(&oldest->link);
	oldest->is_ending = true;
	http->connection_count--;
	(void)shutdown(oldest->fd, SHUT_RDWR); /* libmicrohttpd sees its end, and closes it */
}

static void begin_connection(struct fc_http *http, struct MHD_Connection *library, void **socket_context)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(library, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct connection *connection = calloc(1, sizeof(*connection));
	*socket_context = connection;
	if (connection == NULL)
		return; /* without memory for it, it is not counted */
	fc_check(info != NULL);
	connection->fd = info->connect_fd;
	fc_list_push(&http->connections, &connection->link);
	http->connection_count++;
	make_room(http);
}

static void on_connection(void *context, struct MHD_Connection *library, void **socket_context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct fc_http *http = context;
	struct connection *connection = *socket_context;
	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		begin_connection(http, library, socket_context);
		return;
	}
	if (connection == NULL)
		return;
	http->connection_count -= !connection->is_ending;
	fc_list_remove(&connection->link);
	free(connection);
}

/* A whole request has come: from now on others are heard longer ago. */
static void note_request(struct fc_http *http, struct MHD_Connection *library)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(library, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct connection *connection = info == NULL ? NULL : info->socket_context;
	if (connection == NULL || connection->is_ending)
		return;
	fc_list_remove(&connection->link);
	fc_list_push(&http->connections, &connection->link);
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url, const char *method,
				  const char *version, const char *upload, size_t *upload_bytes, void **request_context)
{
	(void)version;
	(void)upload;
	(void)upload_bytes;
	(void)request_context;
	note_request(context, connection);
	struct request request = {.http = context, .connection = connection, .method = method, .path = url, .rest = ""};
	return answer_request(&request);
}

/* ---- open and close ---- */

static void log_library(void *context, const char *format, va_list arguments) FC_PRINTF(2, 0);
static void log_library(void *context, const char *format, va_list arguments)
{
	char text[512];
	(void)context;
	vsnprintf(text, sizeof(text), format, arguments);
	fc_log(FC_LOG_DEBUG, "http-library", "%s", text);
}

/* Appends "'sha256-...'" of what stands between two tags of the page. */
static void add_policy(struct fc_http *http, const char *directive, const char *open_tag, const char *close_tag)
{
	const char *page = (const char *)fc_page_bytes;
	const char *from = strstr(page, open_tag);
	fc_check(from != NULL);
	from += strlen(open_tag);
	const char *to = strstr(from, close_tag);
	fc_check(to != NULL);
	unsigned char hash[crypto_hash_sha256_BYTES];
	char encoded[sodium_base64_ENCODED_LEN(crypto_hash_sha256_BYTES, sodium_base64_VARIANT_ORIGINAL)];
	crypto_hash_sha256(hash, (const unsigned char *)from, (unsigned long long)(to - from));
	sodium_bin2base64(encoded, sizeof(encoded), hash, sizeof(hash), sodium_base64_VARIANT_ORIGINAL);
	size_t used = strlen(http->page_policy);
	snprintf(http->page_policy + used, sizeof(http->page_policy) - used, "; %s 'sha256-%s'", directive, encoded);
}

/* The page's own style and script, by their hashes, and requests to where it came from; nothing else. */
static void make_policy(struct fc_http *http)
{
	strcpy(http->page_policy, "default-src 'none'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
				  "frame-ancestors 'none'");
	add_policy(http, "style-src", "<style>", "</style>");
	add_policy(http, "script-src", "<script>", "</script>");
}

static int open_socket(struct fc_http *http, const struct fc_http_opts *opts, struct fc_error *error)
{
	const int on = 1;
	struct sockaddr_storage bound;
	socklen_t bound_len = sizeof(bound);
	http->fd = socket(opts->address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (http->fd < 0)
		return fc_error_set(error, FC_ESYSTEM, "http_listen: socket: %s", strerror(errno));
	(void)setsockopt(http->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(http->fd, opts->address, opts->address_len) != 0)
		return fc_error_set(error, errno == EADDRINUSE ? FC_EBUSY : FC_ESYSTEM, "http_listen: bind: %s%s",
				    strerror(errno), errno == EADDRINUSE ? "; choose another port, or off" : "");
	if (listen(http->fd, 64) != 0 || getsockname(http->fd, (struct sockaddr *)(void *)&bound, &bound_len) != 0)
		return fc_error_set(error, FC_ESYSTEM, "http_listen: listen: %s", strerror(errno));
	http->port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)(void *)&bound)->sin6_port
						       : ((struct sockaddr_in *)(void *)&bound)->sin_port);
	return FC_OK;
}

static int start(struct fc_http *http, const struct fc_http_opts *opts, struct fc_error *error)
{
	http->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_request, http, MHD_OPTION_EXTERNAL_LOGGER,
		log_library, NULL, MHD_OPTION_LISTEN_SOCKET, http->fd, MHD_OPTION_CONNECTION_LIMIT,
		2 * (unsigned)opts->connections_max, MHD_OPTION_NOTIFY_CONNECTION, on_connection, http,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES_MAX, MHD_OPTION_CONNECTION_TIMEOUT, SILENCE_S,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
	if (http->daemon == NULL)
		return fc_error_set(error, FC_ESYSTEM, "http_listen: libmicrohttpd does not start: %s",
				    strerror(errno));
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	fc_check(info != NULL && info->epoll_fd >= 0);
	http->fd = info->epoll_fd; /* the listening socket is the library's now */
	return FC_OK;
}

int fc_http_open(struct fc_http **out, const struct fc_http_opts *opts, const struct fc_daemon_callbacks *callbacks,
		 struct fc_error *error)
{
	*out = NULL;
	if (sodium_init() < 0)
		return fc_error_set(error, FC_ESYSTEM, "libsodium does not start");
	struct fc_http *http = calloc(1, sizeof(*http));
	if (http == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for HTTP");
	http->callbacks = *callbacks;
	http->is_loopback = opts->is_loopback;
	http->connections_max = opts->connections_max;
	fc_list_init(&http->connections);
	http->now_ns = opts->now_ns != NULL ? opts->now_ns : fc_clock_real_ns;
	http->fd = -1;
	make_policy(http);
	int code = opts->token_path != NULL ? fc_token_read(&http->token, opts->token_path, error) : FC_OK;
	if (code == FC_OK && !opts->is_loopback && !http->token.is_there)
		code = fc_error_set(error, FC_EINVAL,
				    "http_listen: no address of the loopback, and no http_token_file");
	if (code == FC_OK)
		code = open_socket(http, opts, error);
	if (code == FC_OK)
		code = start(http, opts, error);
	if (code != FC_OK) {
		if (http->fd >= 0)
			close(http->fd);
		free(http);
		return code;
	}
	*out = http;
	return FC_OK;
}

int fc_http_fd(const struct fc_http *http)
{
	return http->fd;
}

uint16_t fc_http_port(const struct fc_http *http)
{
	return http->port;
}

void fc_http_run(struct fc_http *http)
{
	if (MHD_run(http->daemon) != MHD_YES)
		fc_log(FC_LOG_ERROR, "http-failed", "libmicrohttpd does not run");
}

int fc_http_timeout_ms(const struct fc_http *http)
{
	MHD_UNSIGNED_LONG_LONG timeout_ms;
	if (MHD_get_timeout(http->daemon, &timeout_ms) != MHD_YES)
		return -1;
	return timeout_ms > INT_MAX ? INT_MAX : (int)timeout_ms;
}

void fc_http_close(struct fc_http *http)
{
	if (http == NULL)
		return;
	MHD_stop_daemon(http->daemon);
	fc_text_deinit(&http->map);
	free(http);
}
