/* flatcaked's settings: from its YAML file, the environment and flags, as those of the flatcake program
 * (config/config.h), checked together and turned into what the daemon opens. main() is:
 *
 *     int status = fc_daemon_front(argc, argv, environ, stdout, stderr, &settings);
 *     if (status >= 0)
 *             return status;          (--help, --version, --manual, --check-config, or a mistake that was told)
 *     ... run ...
 *     fc_daemon_settings_free(&settings);
 *
 * Namespaces: without a list of them every name is taken as it comes, by everybody who may connect. With a list those
 * are all there is; a client that names none gets the entry called "default", if there is one. */
#ifndef FC_DAEMON_SETTINGS_H
#define FC_DAEMON_SETTINGS_H

#include "config/config.h"
#include "daemon/log.h"

#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

struct fc_daemon_address {
	bool is_on;
	bool is_loopback;
	struct sockaddr_storage address;
	socklen_t address_len;
};

struct fc_daemon_settings {
	struct fc_config
		config; /* what of it is the daemon's: src/config/config.h, "flatcaked", and the store's part */
	struct fc_geometry geometry;
	struct fc_store_opts store; /* arenas, placement, reclaim; refers to this struct, which must not move */
	struct fc_daemon_address http;
	enum fc_log_format log_format;
	enum fc_log_level log_level;
};

/* Fills `settings`, to be freed also after a failure. */
FC_MUST_USE int fc_daemon_settings_load(struct fc_daemon_settings *settings, int argument_count, char *const *arguments,
					char *const *environment, struct fc_config_problem *problem);
void fc_daemon_settings_free(struct fc_daemon_settings *settings);

/* "127.0.0.1:9117", "[::1]:9117", "localhost:9117" or "off". Port 0 is any that is free. FC_EINVAL with text. */
FC_MUST_USE int fc_daemon_address_parse(struct fc_daemon_address *address, const char *text, struct fc_error *error);

/* What a call of the program comes to: -1 when the daemon should run with `settings`; else the process's exit status
 * (0; 1: it failed; 2: the call or the file was wrong), everything having been said on `out` or `err`, and nothing is
 * left to be freed. */
FC_MUST_USE int fc_daemon_front(int argc, char *const *argv, char *const *environment, FILE *out, FILE *err,
				struct fc_daemon_settings *settings);

void fc_daemon_help(FILE *file);
/* The manual page in roff; packaging/flatcaked.8 is this text. */
void fc_daemon_manual(FILE *file);

#endif
