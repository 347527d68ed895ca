/* flatcaked over HTTP: every endpoint by a plain socket, who may do what, and what hostile requests come to. The daemon
 * behind it is made up (fake_daemon.h).
 *
 * `test_http serve PORT_FILE [big]` serves such a daemon until it is killed, one step a second: page.sh, alerts.sh and
 * top.sh use it. `test_http get URL` and
 * `test_http change METHOD URL TOKEN` print what comes of it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "daemon/fake_daemon.h"
#include "daemon/http.h"
#include "daemon/log.h"

#define TOKEN "0123456789abcdef-token"

static struct fake_daemon fake;
static struct fc_http *http;
static char token_path[64];
static uint64_t fake_now;
static char reply[8 << 20];

static uint64_t fake_now_ns(void)
{
	return fake_now;
}

static void write_token(const char *text, mode_t mode)
{
	FILE *file = fopen(token_path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	fclose(file);
	assert_int_equal(chmod(token_path, mode), 0);
}

static int open_http(bool is_loopback, const char *token, struct fc_error *error)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct fc_http_opts opts = {
		.address = (const struct sockaddr *)(const void *)&address,
		.address_len = sizeof(address),
		.is_loopback = is_loopback,
		.token_path = token,
		.connections_max = 8,
		.now_ns = fake_now_ns,
	};
	struct fc_daemon_callbacks callbacks = fake_daemon_callbacks(&fake);
	return fc_http_open(&http, &opts, &callbacks, error);
}

static int set_up(void **state)
{
	struct fc_error error;
	(void)state;
	fake_daemon_init(&fake, 256, 1024);
	fake_daemon_step(&fake, 2000, 1000000000);
	strcpy(token_path, "/tmp/flatcake-token-XXXXXX");
	close(mkstemp(token_path));
	write_token(TOKEN "\n", 0600);
	return open_http(true, token_path, &error);
}

static int tear_down(void **state)
{
	(void)state;
	fc_http_close(http);
	http = NULL;
	fake_daemon_deinit(&fake);
	return unlink(token_path);
}

static int dial(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				      .sin_port = htons(fc_http_port(http))};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)(const void *)&address, sizeof(address)), 0);
	return fd;
}

/* Runs the server until the peer has closed or `fd` is silent for a while; returns the bytes that came. */
static size_t converse(int fd)
{
	size_t used = 0;
	for (int idle = 0; idle < 40;) {
		struct pollfd fds[2] = {{.fd = fc_http_fd(http), .events = POLLIN}, {.fd = fd, .events = POLLIN}};
		int wait_ms = fc_http_timeout_ms(http);
		idle = poll(fds, 2, wait_ms >= 0 && wait_ms < 10 ? wait_ms : 10) > 0 ? 0 : idle + 1;
		fc_http_run(http);
		if ((fds[1].revents & (POLLIN | POLLHUP)) == 0)
			continue;
		ssize_t count = recv(fd, reply + used, sizeof(reply) - 1 - used, MSG_DONTWAIT);
		if (count == 0 || (count < 0 && errno != EAGAIN))
			break;
		used += count > 0 ? (size_t)count : 0;
	}
	reply[used] = '\0';
	return used;
}

/* One request of its own connection; `headers` are whole lines. Returns the status, with the body in `body`. */
static int ask_with(const char *method, const char *path, const char *headers, const char **body)
{
	char text[4096];
	int status = 0, fd = dial();
	int len = snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nConnection: close\r\n%s\r\n", method, path, headers);
	assert_int_equal(send(fd, text, (size_t)len, MSG_NOSIGNAL), len);
	converse(fd);
	close(fd);
	if (sscanf(reply, "HTTP/1.1 %d", &status) != 1)
		status = 0;
	const char *end = strstr(reply, "\r\n\r\n");
	*body = end != NULL ? end + 4 : "";
	return status;
}

static int ask(const char *method, const char *path, const char *authorization, const char **body)
{
	char headers[1024];
	snprintf(headers, sizeof(headers), "Host: localhost\r\n%s%s%s", authorization != NULL ? "Authorization: " : "",
		 authorization != NULL ? authorization : "", authorization != NULL ? "\r\n" : "");
	return ask_with(method, path, headers, body);
}

static json_t *ask_json(const char *path)
{
	const char *body;
	assert_int_equal(ask("GET", path, NULL, &body), 200);
	json_error_t why;
	json_t *object = json_loads(body, 0, &why);
	if (object == NULL)
		fail_msg("%s: %s: %.200s", path, why.text, body);
	return object;
}

static uint64_t number(const json_t *object, const char *name)
{
	json_t *value = json_object_get(object, name);
	assert_true(json_is_integer(value));
	return (uint64_t)json_integer_value(value);
}

static void expect_error(int status, const char *body, int wanted, const char *code)
{
	json_t *object = json_loads(body, 0, NULL);
	const char *told = json_string_value(json_object_get(json_object_get(object, "error"), "code"));
	const char *text = json_string_value(json_object_get(json_object_get(object, "error"), "text"));
	if (status != wanted || told == NULL || strcmp(told, code) != 0 || text == NULL || strlen(text) < 10)
		fail_msg("wanted %d %s, got %d %s", wanted, code, status, body);
	json_decref(object);
}

/* ---- reading ---- */

static void status_has_what_the_view_has(void **state)
{
	(void)state;
	struct fc_daemon_view view;
	struct fc_daemon_callbacks callbacks = fake_daemon_callbacks(&fake);
	memset(&view, 0, sizeof(view));
	callbacks.view(&fake, &view);
	json_t *status = ask_json("/v1/status");
	json_t *reports = json_object_get(status, "reports");
	assert_string_equal(json_string_value(json_object_get(status, "state")), "ready");
	assert_int_equal(number(reports, "loads"), view.reports.loads);
	assert_int_equal(number(reports, "blocks_delivered"), view.reports.blocks_delivered);
	assert_int_equal(number(json_object_get(status, "load_time"), "count"), view.reports.loads);
	json_t *ssd = json_array_get(json_object_get(status, "arenas"), 1);
	assert_string_equal(json_string_value(json_object_get(ssd, "medium")), "ssd");
	assert_int_equal(number(ssd, "bytes_used"), view.stats.media[FC_SSD].bytes_used);
	assert_true(json_is_null(
		json_object_get(json_array_get(json_object_get(status, "arenas"), 0), "read_limit_bytes_per_second")));
	json_decref(status);
	json_t *clients = ask_json("/v1/clients");
	assert_int_equal(json_array_size(json_object_get(clients, "clients")), FAKE_CLIENTS);
	json_decref(clients);
	json_t *spaces = json_object_get(status = ask_json("/v1/namespaces"), "namespaces");
	assert_int_equal(json_array_size(spaces), FAKE_NAMESPACES);
	assert_true(json_is_null(json_object_get(json_array_get(spaces, 2), "bytes_max")));
	json_decref(status);
}

static void the_map_has_every_segment_once_and_is_made_once_a_second(void **state)
{
	(void)state;
	unsigned walks = fake.map_walks;
	json_t *map = ask_json("/v1/map"), *segments = json_object_get(map, "segments");
	json_t *sessions = json_object_get(map, "sessions");
	uint64_t bytes[2] = {0, 0};
	assert_int_equal(json_array_size(segments) % 5, 0);
	assert_int_equal(json_array_size(segments) / 5,
			 fake.arenas[FC_MEMORY].segment_count + fake.arenas[FC_SSD].segment_count);
	for (size_t at = 0; at < json_array_size(segments); at += 5) {
		json_int_t which = json_integer_value(json_array_get(segments, at));
		json_int_t session = json_integer_value(json_array_get(segments, at + 3));
		assert_in_range(which, 0, 1);
		assert_true(session < (json_int_t)json_array_size(sessions));
		assert_int_equal(session >= 0, json_integer_value(json_array_get(segments, at + 4)));
		bytes[which] += (uint64_t)json_integer_value(json_array_get(segments, at + 2));
	}
	assert_int_equal(bytes[0], fake.arenas[FC_MEMORY].used_count * fake.arenas[FC_MEMORY].chunk_bytes);
	assert_int_equal(bytes[1], fake.arenas[FC_SSD].used_count * fake.arenas[FC_SSD].chunk_bytes);
	for (size_t at = 1; at < json_array_size(sessions); at++)
		assert_string_not_equal(json_string_value(json_array_get(sessions, at - 1)),
					json_string_value(json_array_get(sessions, at)));
	json_decref(map);
	json_decref(ask_json("/v1/map"));
	assert_int_equal(fake.map_walks, walks + 1);
	fake_now += 1000000000;
	json_decref(ask_json("/v1/map"));
	assert_int_equal(fake.map_walks, walks + 2);
}

static void sessions_come_in_pages_without_a_gap(void **state)
{
	(void)state;
	char path[128] = "/v1/sessions?limit=37";
	uint64_t count = 0, sequence = 0, wanted = 0;
	for (uint32_t at = 0; at < fake.session_room; at++)
		wanted += fake.sessions[at].number != 0;
	for (bool is_more = true; is_more;) {
		json_t *page = ask_json(path), *array = json_object_get(page, "sessions");
		for (size_t at = 0; at < json_array_size(array); at++) {
			uint64_t used_seq = number(json_array_get(array, at), "used_seq");
			assert_true(used_seq > sequence);
			sequence = used_seq;
		}
		count += json_array_size(array);
		const char *cursor = json_string_value(json_object_get(page, "next_cursor"));
		is_more = cursor != NULL;
		if (is_more)
			snprintf(path, sizeof(path), "/v1/sessions?limit=37&cursor=%s", cursor);
		json_decref(page);
	}
	assert_int_equal(count, wanted);
	const char *body;
	int status = ask("GET", "/v1/sessions?limit=1001", NULL, &body);
	expect_error(status, body, 400, "bad_limit");
	status = ask("GET", "/v1/sessions?limit=0", NULL, &body);
	expect_error(status, body, 400, "bad_limit");
	status = ask("GET", "/v1/sessions?cursor=-1", NULL, &body);
	expect_error(status, body, 400, "bad_cursor");
	status = ask("GET", "/v1/sessions?cursor=99999999999999999999", NULL, &body);
	expect_error(status, body, 400, "bad_cursor");
}

static void readiness_follows_the_state_and_health_does_not(void **state)
{
	(void)state;
	const char *body;
	assert_int_equal(ask("GET", "/readyz", NULL, &body), 200);
	fake.view.state = FC_DAEMON_FENCING;
	fake.view.reason = "waits for 2 clients of the last run";
	assert_int_equal(ask("GET", "/readyz", NULL, &body), 503);
	assert_non_null(strstr(body, "\"fencing\""));
	assert_non_null(strstr(body, "waits for 2 clients"));
	fake.view.state = FC_DAEMON_OPENING;
	assert_int_equal(ask("GET", "/readyz", NULL, &body), 503);
	assert_int_equal(ask("GET", "/healthz", NULL, &body), 200);
	assert_int_equal(ask("HEAD", "/healthz", NULL, &body), 200);
	assert_string_equal(body, "");
}

static void the_page_is_whole_and_may_load_nothing_from_elsewhere(void **state)
{
	(void)state;
	const char *body;
	assert_int_equal(ask("GET", "/", NULL, &body), 200);
	assert_non_null(strstr(body, "</html>"));
	assert_null(strstr(body, "http://"));
	assert_null(strstr(body, "https://"));
	assert_null(strstr(body, "onclick="));
	assert_null(strstr(body, "innerHTML"));
	assert_non_null(strstr(reply, "Content-Security-Policy: default-src 'none'; connect-src 'self'"));
	assert_non_null(strstr(reply, "script-src 'sha256-"));
	assert_non_null(strstr(reply, "X-Content-Type-Options: nosniff"));
	assert_non_null(strstr(reply, "X-Frame-Options: DENY"));
}

/* ---- changing ---- */

static void expect_evicted(uint64_t session_number, const char *authorization, int wanted, const char *code)
{
	char path[128];
	const char *body;
	struct fc_session_id id = fake_session_id(session_number);
	snprintf(path, sizeof(path), "/v1/sessions/%016llx%016llx", (unsigned long long)id.high,
		 (unsigned long long)id.low);
	int status = ask("DELETE", path, authorization, &body);
	if (code == NULL)
		assert_int_equal(status, wanted);
	else
		expect_error(status, body, wanted, code);
}

static void only_the_token_lets_change_anything(void **state)
{
	(void)state;
	uint64_t last = fake.session_numbers;
	struct fake_session *session = &fake.sessions[last % fake.session_room];
	expect_evicted(last, NULL, 401, "no_token");
	expect_evicted(last, "Bearer " TOKEN "x", 401, "no_token");
	expect_evicted(last, "Bearer 0123456789abcdef-toke", 401, "no_token");
	expect_evicted(last, "Basic eDowMTIzNDU2Nzg5YWJjZGVmLXRva2Vu", 401, "no_token"); /* x:TOKEN */
	assert_int_equal(session->number, last);
	session->is_leased = true;
	expect_evicted(last, "Bearer " TOKEN, 409, "busy");
	session->is_leased = false;
	expect_evicted(last, "Bearer " TOKEN, 200, NULL);
	assert_int_equal(session->number, 0);
	expect_evicted(last, "Bearer " TOKEN, 404, "no_session");
	const char *body;
	int status = ask("DELETE", "/v1/sessions/..%2f..%2fetc", "Bearer " TOKEN, &body);
	expect_error(status, body, 400, "bad_session");
	status = ask("DELETE", "/v1/sessions/000000000000000000000000000000zz", "Bearer " TOKEN, &body);
	expect_error(status, body, 400, "bad_session");
	status = ask("POST", "/v1/drain", NULL, &body);
	expect_error(status, body, 401, "no_token");
	assert_int_equal(fake.drains, 0);
	assert_int_equal(ask("POST", "/v1/drain", "Bearer " TOKEN, &body), 202);
	assert_int_equal(fake.drains, 1);
	assert_int_equal(ask("GET", "/readyz", NULL, &body), 503);
}

static void without_a_token_file_nothing_can_be_changed(void **state)
{
	(void)state;
	const char *body;
	struct fc_error error;
	fc_http_close(http);
	assert_int_equal(open_http(true, NULL, &error), FC_OK);
	int status = ask("POST", "/v1/drain", "Bearer " TOKEN, &body);
	expect_error(status, body, 403, "not_enabled");
	status = ask("POST", "/v1/drain", "Bearer ", &body);
	expect_error(status, body, 403, "not_enabled");
	assert_int_equal(fake.drains, 0);
}

static void elsewhere_everything_needs_the_token(void **state)
{
	(void)state;
	const char *body;
	struct fc_error error;
	fc_http_close(http);
	assert_int_equal(open_http(false, NULL, &error), FC_EINVAL);
	assert_int_equal(open_http(false, token_path, &error), FC_OK);
	static const char *const paths[] = {"/",          "/metrics", "/healthz", "/readyz",
					    "/v1/status", "/v1/map",  "/nothing"};
	for (size_t at = 0; at < fc_array_len(paths); at++) {
		int status = ask("GET", paths[at], NULL, &body);
		expect_error(status, body, 401, "no_token");
		assert_non_null(strstr(reply, "WWW-Authenticate: Basic"));
	}
	assert_int_equal(ask("GET", "/metrics", "Bearer " TOKEN, &body), 200);
	/* x:TOKEN, as browsers send it: reads, and changes nothing */
	assert_int_equal(ask("GET", "/", "Basic eDowMTIzNDU2Nzg5YWJjZGVmLXRva2Vu", &body), 200);
	int status = ask("POST", "/v1/drain", "Basic eDowMTIzNDU2Nzg5YWJjZGVmLXRva2Vu", &body);
	expect_error(status, body, 401, "no_token");
	assert_int_equal(
		ask_with("GET", "/healthz", "Host: cache.example\r\nAuthorization: Bearer " TOKEN "\r\n", &body), 200);
}

static void a_token_file_that_will_not_do_is_refused_by_name(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		mode_t mode;
		const char *words;
	} cases[] = {
		{TOKEN "\n", 0640, "mode 0640"},
		{"short\n", 0600, "16 to 256"},
		{"0123456789abcdef with spaces\n", 0600, "without spaces"},
		{TOKEN "\n" TOKEN "\n", 0600, "one line"},
		{"", 0600, "16 to 256"},
	};
	struct fc_error error;
	fc_http_close(http);
	for (size_t at = 0; at < fc_array_len(cases); at++) {
		write_token(cases[at].text, cases[at].mode);
		assert_int_equal(open_http(true, token_path, &error), FC_EINVAL);
		assert_null(http);
		assert_non_null(strstr(error.text, token_path));
		assert_non_null(strstr(error.text, cases[at].words));
	}
	assert_int_equal(open_http(true, "/dev/null", &error), FC_EINVAL);
	assert_int_equal(open_http(true, "/nowhere/token", &error), FC_ESYSTEM);
}

static void a_port_that_is_taken_is_named(void **state)
{
	(void)state;
	struct fc_error error;
	struct fc_http *first = http, *second = NULL;
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				      .sin_port = htons(fc_http_port(first))};
	struct fc_http_opts opts = {.address = (const struct sockaddr *)(const void *)&address,
				    .address_len = sizeof(address),
				    .is_loopback = true,
				    .connections_max = 8};
	struct fc_daemon_callbacks callbacks = fake_daemon_callbacks(&fake);
	assert_int_equal(fc_http_open(&second, &opts, &callbacks, &error), FC_EBUSY);
	assert_non_null(strstr(error.text, "http_listen"));
	assert_null(second);
}

/* ---- hostile requests ---- */

static void what_does_not_exist_is_said_in_json(void **state)
{
	(void)state;
	const char *body;
	int status = ask("GET", "/etc/passwd", NULL, &body);
	expect_error(status, body, 404, "no_such_path");
	status = ask("GET", "/../../etc/passwd", NULL, &body);
	expect_error(status, body, 404, "no_such_path");
	status = ask("PUT", "/v1/status", NULL, &body);
	expect_error(status, body, 405, "bad_method");
	assert_non_null(strstr(reply, "Allow: GET"));
	status = ask("GET", "/v1/drain", NULL, &body);
	expect_error(status, body, 405, "bad_method");
	status = ask("DELETE", "/v1/sessions", NULL, &body);
	expect_error(status, body, 405, "bad_method");
}

static void another_host_name_reads_nothing(void **state)
{
	(void)state;
	static const char *const bad[] = {"evil.example",
					  "evil.example:9117",
					  "localhost.evil.example",
					  "10.0.0.1",
					  "127.0.0.1.evil.example",
					  "0x7f000001",
					  ""};
	static const char *const good[] = {"localhost", "localhost:9117", "127.0.0.1:80", "[::1]:9117", "127.1.2.3"};
	const char *body;
	char headers[256];
	for (size_t at = 0; at < fc_array_len(bad); at++) {
		snprintf(headers, sizeof(headers), "Host: %s\r\n", bad[at]);
		int status = ask_with("GET", "/v1/status", headers, &body);
		expect_error(status, body, 421, "bad_host");
	}
	for (size_t at = 0; at < fc_array_len(good); at++) {
		snprintf(headers, sizeof(headers), "Host: %s\r\n", good[at]);
		assert_int_equal(ask_with("GET", "/v1/status", headers, &body), 200);
	}
}

static void a_body_is_refused_and_never_read(void **state)
{
	(void)state;
	const char *body;
	int status = ask_with("POST", "/v1/drain",
			      "Host: localhost\r\nAuthorization: Bearer " TOKEN "\r\nContent-Length: 99999999999\r\n",
			      &body);
	expect_error(status, body, 413, "body");
	status =
		ask_with("POST", "/v1/drain",
			 "Host: localhost\r\nAuthorization: Bearer " TOKEN "\r\nTransfer-Encoding: chunked\r\n", &body);
	expect_error(status, body, 413, "body");
	assert_int_equal(fake.drains, 0);
}

static void headers_without_end_and_garbage_end_the_connection_only(void **state)
{
	(void)state;
	static char large[65536];
	const char *body;
	int fd = dial();
	memset(large, 'a', sizeof(large));
	memcpy(large, "GET / HTTP/1.1\r\nX: ", 19);
	(void)!send(fd, large, sizeof(large), MSG_NOSIGNAL);
	converse(fd);
	close(fd);
	assert_null(strstr(reply, " 200 "));
	fd = dial();
	(void)!send(fd, "\x16\x03\x01\x02\x00\r\n\r\n", 9, MSG_NOSIGNAL);
	converse(fd);
	close(fd);
	assert_int_equal(ask("GET", "/healthz", NULL, &body), 200);
}

static bool is_closed(int fd)
{
	char byte;
	ssize_t count = recv(fd, &byte, 1, MSG_DONTWAIT);
	return count == 0 || (count < 0 && errno != EAGAIN);
}

static void who_says_little_keeps_nobody_out(void **state)
{
	(void)state;
	static const char part[] = "GET / HTTP/1.1\r\nX: y\r\n";
	const char *body;
	int held[24];
	size_t closed = 0;
	for (size_t at = 0; at < fc_array_len(held); at++) {
		held[at] = dial();
		assert_int_equal(send(held[at], part, sizeof(part) - 1, MSG_NOSIGNAL), sizeof(part) - 1);
		assert_int_equal(ask("GET", "/healthz", NULL, &body), 200);
	}
	for (size_t at = 0; at < fc_array_len(held); at++) {
		closed += is_closed(held[at]);
		close(held[at]);
	}
	/* Nor are more ended than there must be. */
	assert_in_range(closed, fc_array_len(held) - 8, fc_array_len(held) - 7);
}

/* ---- a server for the scripts ---- */

static int serve(const char *port_path, bool is_big)
{
	struct fc_error error = {0};
	fake_daemon_init(&fake, is_big ? 4096 : 1024, is_big ? 131072 : 16384);
	fake_daemon_step(&fake, is_big ? 3000 : 9000, 1000000000);
	if (is_big) { /* a hundred thousand segments of one chunk each, a session for every 40 */
		struct fake_arena *arena = &fake.arenas[FC_SSD];
		for (uint32_t chunk = 0; chunk < 110000; chunk++)
			if (arena->owners[chunk] == 0) {
				uint32_t owner = 1000 + chunk / 40;
				if (fake.sessions[owner].number == 0)
					fake.sessions[owner] = (struct fake_session){.number = 1000000 + owner,
										     .turns = 40,
										     .used_seq = ++fake.seq,
										     .medium = FC_SSD};
				arena->owners[chunk] = owner + 1;
				arena->begins[chunk] = true;
				arena->used_count++;
				arena->segment_count++;
			}
	}
	const char *token = getenv("FAKE_TOKEN_FILE");
	if (open_http(true, token, &error) != FC_OK) {
		fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	FILE *file = fopen(port_path, "w");
	fprintf(file, "%u\n", fc_http_port(http));
	fclose(file);
	time_t last = time(NULL);
	while (fake.drains == 0) {
		struct pollfd poll_fd = {.fd = fc_http_fd(http), .events = POLLIN};
		int wait_ms = fc_http_timeout_ms(http);
		poll(&poll_fd, 1, wait_ms >= 0 && wait_ms < 100 ? wait_ms : 100);
		fc_http_run(http);
		time_t now = time(NULL);
		fake_now += 1000000000;
		if (now != last)
			fake_daemon_step(&fake, 12, (uint64_t)(now - last) * 1000000000ull);
		last = now;
	}
	for (int rounds = 0; rounds < 20; rounds++) { /* so that the answer to the drain leaves */
		struct pollfd poll_fd = {.fd = fc_http_fd(http), .events = POLLIN};
		poll(&poll_fd, 1, 10);
		fc_http_run(http);
	}
	fc_http_close(http);
	fake_daemon_deinit(&fake);
	return 0;
}

/* Prints what a request to a URL of this machine brings; `token` may be NULL. */
static int request(const char *method, const char *url, const char *token)
{
	unsigned port;
	char path[256] = "", text[1024];
	if (sscanf(url, "http://127.0.0.1:%u%255s", &port, path) != 2)
		return 2;
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int len = snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s%s%s\r\n",
			   method, path, token != NULL ? "Authorization: Bearer " : "", token != NULL ? token : "",
			   token != NULL ? "\r\n" : "");
	if (connect(fd, (const struct sockaddr *)(const void *)&address, sizeof(address)) != 0 ||
	    send(fd, text, (size_t)len, MSG_NOSIGNAL) != len)
		return 1;
	size_t used = 0;
	for (ssize_t count; (count = recv(fd, reply + used, sizeof(reply) - 1 - used, 0)) > 0;)
		used += (size_t)count;
	reply[used] = '\0';
	close(fd);
	const char *end = strstr(reply, "\r\n\r\n");
	bool is_good = strncmp(reply, "HTTP/1.1 2", 10) == 0;
	return end != NULL && fputs(end + 4, stdout) >= 0 && is_good ? 0 : 1;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "get") == 0)
		return request("GET", argv[2], NULL);
	if (argc == 5 && strcmp(argv[1], "change") == 0)
		return request(argv[2], argv[3], argv[4]);
	if (argc >= 3 && strcmp(argv[1], "serve") == 0)
		return serve(argv[2], argc > 3 && strcmp(argv[3], "big") == 0);
	const struct fc_log_opts quiet = {.format = FC_LOG_FORMAT_TEXT, .level = FC_LOG_ERROR, .fd = STDERR_FILENO};
	struct fc_error error;
	if (fc_log_open(&quiet, &error) != FC_OK)
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(status_has_what_the_view_has, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_map_has_every_segment_once_and_is_made_once_a_second, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(sessions_come_in_pages_without_a_gap, set_up, tear_down),
		cmocka_unit_test_setup_teardown(readiness_follows_the_state_and_health_does_not, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_page_is_whole_and_may_load_nothing_from_elsewhere, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(only_the_token_lets_change_anything, set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_a_token_file_nothing_can_be_changed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(elsewhere_everything_needs_the_token, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_token_file_that_will_not_do_is_refused_by_name, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_port_that_is_taken_is_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_does_not_exist_is_said_in_json, set_up, tear_down),
		cmocka_unit_test_setup_teardown(another_host_name_reads_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_body_is_refused_and_never_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_says_little_keeps_nobody_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(headers_without_end_and_garbage_end_the_connection_only, set_up,
						tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
