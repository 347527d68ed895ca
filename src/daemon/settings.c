/* From the program's arguments to checked settings, and what is done instead of running. */
#include "daemon/settings.h"

#include "base/check.h"
#include "config/describe.h"
#include "daemon/token.h"
#include "store/opts.h"

#include <arpa/inet.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_WRONG_CALL = 2, RUN = -1 };

/* ---- the address ---- */

static bool parse_port(const char *text, uint16_t *port)
{
	uint32_t value = 0;
	if (text[0] == '\0' || strlen(text) > 5)
		return false;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9')
			return false;
		value = value * 10 + (uint32_t)(*text - '0');
	}
	*port = (uint16_t)value;
	return value <= UINT16_MAX;
}

static bool set_address(struct fc_daemon_address *address, const char *host, uint16_t port)
{
	struct sockaddr_in *four = (struct sockaddr_in *)(void *)&address->address;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)&address->address;
	if (inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons(port);
		address->is_loopback = (ntohl(four->sin_addr.s_addr) >> 24) == 127;
		address->address_len = sizeof(*four);
		return true;
	}
	if (inet_pton(AF_INET6, host, &six->sin6_addr) != 1)
		return false;
	six->sin6_family = AF_INET6;
	six->sin6_port = htons(port);
	address->is_loopback = IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
	address->address_len = sizeof(*six);
	return true;
}

int fc_daemon_address_parse(struct fc_daemon_address *address, const char *text, struct fc_error *error)
{
	char host[64];
	uint16_t port = 0;
	*address = (struct fc_daemon_address){.is_on = strcmp(text, "off") != 0};
	if (!address->is_on)
		return FC_OK;
	const char *colon = strrchr(text, ':');
	const char *from = text, *to = colon;
	if (colon != NULL && text[0] == '[' && colon > text && colon[-1] == ']') {
		from++;
		to--;
	}
	bool is_right =
		colon != NULL && to > from && (size_t)(to - from) < sizeof(host) && parse_port(colon + 1, &port);
	bool is_bare_six = is_right && from == text && memchr(from, ':', (size_t)(to - from)) != NULL;
	if (is_right && !is_bare_six) {
		memcpy(host, from, (size_t)(to - from));
		host[to - from] = '\0';
		if (set_address(address, host, port))
			return FC_OK;
	}
	return fc_error_set(
		error, FC_EINVAL,
		"http_listen: \"%.80s\" does not fit; allowed: off, or a numeric address and a port, such as "
		"127.0.0.1:9117 or [::1]:9117",
		text);
}

/* ---- together ---- */

/* A socket's path has little room, and it is better to hear of it here than at bind(). */
static int check_paths(const struct fc_config *config, struct fc_error *error)
{
	const struct {
		const char *name, *path;
		size_t bytes_max;
	} paths[] = {
		{"socket", config->socket_path, 107},
		{"lock_path", config->lock_path, 4095},
		{"ssd_path", config->ssd_path, 4095},
		{"memory_path", config->memory_path, 4095},
		{"http_token_file", config->http_token_path, 4095},
	};
	for (size_t at = 0; at < fc_array_len(paths); at++) {
		if (paths[at].path == NULL)
			continue;
		if (paths[at].path[0] != '/')
			return fc_error_set(error, FC_EINVAL, "%s: \"%.80s\" does not fit; allowed: an absolute path",
					    paths[at].name, paths[at].path);
		if (strlen(paths[at].path) > paths[at].bytes_max)
			return fc_error_set(error, FC_EINVAL, "%s: a path of %zu bytes; allowed: %zu", paths[at].name,
					    strlen(paths[at].path), paths[at].bytes_max);
	}
	return FC_OK;
}

static int check_together(const struct fc_daemon_settings *settings, struct fc_error *error)
{
	const struct fc_config *config = &settings->config;
	if (config->argument_count > 0)
		return fc_error_set(error, FC_EINVAL, "unexpected argument \"%s\"; flatcaked takes options only",
				    config->arguments[0]);
	if (config->memory_bytes == 0 && config->ssd_bytes == 0)
		return fc_error_set(error, FC_EINVAL, "memory and ssd are both 0: there is nothing to keep blocks in");
	if (settings->http.is_on && !settings->http.is_loopback && config->http_token_path == NULL)
		return fc_error_set(error, FC_EINVAL,
				    "http_listen: %s is no address of the loopback, and then http_token_file is needed",
				    config->http_listen);
	if (config->socket_group != NULL && config->socket_mode == FC_SOCKET_OWNER)
		return fc_error_set(error, FC_EINVAL,
				    "socket_group: \"%s\" could not connect while socket_mode is owner",
				    config->socket_group);
	return FC_OK;
}

/* log.h has `auto` first, as the table has. */
static void set_log(struct fc_daemon_settings *settings)
{
	static const enum fc_log_format formats[] = {FC_LOG_AUTO, FC_LOG_FORMAT_TEXT, FC_LOG_FORMAT_JSON,
						     FC_LOG_FORMAT_JOURNALD};
	static const enum fc_log_level levels[] = {FC_LOG_ERROR, FC_LOG_WARNING, FC_LOG_INFO, FC_LOG_DEBUG};
	settings->log_format = formats[settings->config.log_format];
	settings->log_level = levels[settings->config.log_level];
}

int fc_daemon_settings_load(struct fc_daemon_settings *settings, int argument_count, char *const *arguments,
			    char *const *environment, struct fc_config_problem *problem)
{
	memset(settings, 0, sizeof(*settings));
	struct fc_config_sources sources = {FC_COMMAND_DAEMON, argument_count, arguments, environment};
	int code = fc_config_load(&settings->config, &sources, problem);
	if (code == FC_OK)
		code = fc_daemon_address_parse(&settings->http, settings->config.http_listen, &problem->error);
	if (code == FC_OK)
		code = check_paths(&settings->config, &problem->error);
	if (code == FC_OK)
		code = check_together(settings, &problem->error);
	if (code == FC_OK)
		code = fc_config_store_opts(&settings->config, &settings->geometry, &settings->store, &problem->error);
	if (code == FC_OK)
		code = fc_store_opts_check(&settings->store, &problem->error);
	if (code == FC_OK)
		set_log(settings);
	return code;
}

void fc_daemon_settings_free(struct fc_daemon_settings *settings)
{
	fc_config_free(&settings->config);
}

/* ---- what is done instead of running ---- */

static int complain(const struct fc_config_problem *problem, FILE *err)
{
	const struct fc_error *error = &problem->error;
	fprintf(err, "flatcaked: %s\n", error->text[0] != '\0' ? error->text : fc_code_text(error->code));
	if (problem->allowed[0] != '\0') {
		fputs("allowed:\n", err);
		fc_describe_wrapped(problem->allowed, 2, 0, err);
	}
	return error->code == FC_EINVAL || error->code == FC_ENOENT ? EXIT_WRONG_CALL : EXIT_FAILED;
}

static void print_summary(const struct fc_daemon_settings *settings, FILE *out)
{
	const struct fc_config *config = &settings->config;
	fprintf(out, "model: %s, %u layers, %u tokens a block\n", settings->geometry.name,
		settings->geometry.layer_count, settings->geometry.block_tokens);
	if (config->memory_bytes > 0)
		fprintf(out, "memory: %llu bytes in %s\n", (unsigned long long)config->memory_bytes,
			config->memory_path);
	if (config->ssd_bytes > 0)
		fprintf(out, "ssd: %llu bytes in %s\n", (unsigned long long)config->ssd_bytes, config->ssd_path);
	fprintf(out, "socket: %s\nhttp: %s, %s\n", config->socket_path, config->http_listen,
		config->http_token_path != NULL ? "changes with the token" : "no changes, for want of http_token_file");
	for (size_t at = 0; at < config->namespace_count; at++)
		fprintf(out, "namespace: %s\n", config->namespaces[at].name);
	if (config->has_namespaces && config->namespace_count == 0)
		fputs("namespaces: none, so nobody is let in\n", out);
	fputs("the settings are right\n", out);
}

/* --help and its like, wherever they stand. */
static bool is_answered(int argc, char *const *argv, FILE *out)
{
	for (int at = 1; at < argc; at++) {
		if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0)
			fc_daemon_help(out);
		else if (strcmp(argv[at], "--manual") == 0)
			fc_daemon_manual(out);
		else if (strcmp(argv[at], "--version") == 0 || strcmp(argv[at], "-V") == 0)
			fprintf(out, "flatcaked %d.%d.%d\n", FC_VERSION_MAJOR, FC_VERSION_MINOR, FC_VERSION_PATCH);
		else
			continue;
		return true;
	}
	return false;
}

/* By what the start reads it with, and under the same condition. */
static int check_token(const struct fc_daemon_settings *settings, struct fc_error *error)
{
	struct fc_token token;
	if (!settings->http.is_on || settings->config.http_token_path == NULL)
		return FC_OK;
	int code = fc_token_read(&token, settings->config.http_token_path, error);
	sodium_memzero(&token, sizeof(token));
	return code;
}

int fc_daemon_front(int argc, char *const *argv, char *const *environment, FILE *out, FILE *err,
		    struct fc_daemon_settings *settings)
{
	struct fc_config_problem problem;
	int status = EXIT_DONE;
	if (!is_answered(argc, argv, out)) {
		int code = fc_daemon_settings_load(settings, argc > 0 ? argc - 1 : 0, argv + 1, environment, &problem);
		if (code == FC_OK && settings->config.is_check_only)
			code = check_token(settings, &problem.error);
		if (code == FC_OK && !settings->config.is_check_only)
			return RUN;
		if (code == FC_OK)
			print_summary(settings, out);
		else
			status = complain(&problem, err);
		fc_daemon_settings_free(settings);
	}
	return fflush(out) == 0 && !ferror(out) ? status : EXIT_FAILED;
}
