/* The settings of one run of the program, from three places: a YAML file, FLATCAKE_... variables, and flags. A later
 * place wins over an earlier one; what none of them names keeps its default.
 *
 * One table (options.c) holds all that is known of a setting: its names, type, range, default, field and help. The
 * reader of each place, the help and the manual page are driven by it, so that they cannot disagree. That is why the
 * YAML file is read as libyaml's events and not through a schema library: a schema would be a second description of the
 * same settings.
 *
 * Everything is checked here, once: unknown and repeated names, malformed numbers, numbers out of range. Nothing is
 * guessed and nothing is cut. */
#ifndef FC_CONFIG_CONFIG_H
#define FC_CONFIG_CONFIG_H

#include "base/error.h"

/* Which command is being run; a bit each, for the options' lists of commands. */
enum fc_command_bit {
	FC_COMMAND_REPLAY = 1 << 0,
	FC_COMMAND_GEN = 1 << 1,
	FC_COMMAND_BENCH = 1 << 2,
	FC_COMMAND_VERIFY = 1 << 3,
	FC_COMMAND_SESSIONS = 1 << 4,
	FC_COMMAND_STAT = 1 << 5,
	FC_COMMAND_DOCTOR = 1 << 6,
	FC_COMMAND_ANALYZE = 1 << 7,
	FC_COMMAND_TUNE = 1 << 8,
	FC_COMMAND_DAEMON = 1 << 9, /* flatcaked, a program of its own */
	FC_COMMAND_TOP = 1 << 10,
};

/* What `flatcake tune` makes small. */
enum fc_tune_objective {
	FC_TUNE_TTFT_MEAN,
	FC_TUNE_TTFT_P99,
	FC_TUNE_MISSES, /* input blocks that were not delivered */
	FC_TUNE_SSD_WRITES,
};

/* Rows of the option table never exceed this. */
#define FC_OPTIONS_MAX 128

/* Who may connect to flatcaked, from where in its descriptor's file system. */
enum fc_socket_mode { FC_SOCKET_OWNER, FC_SOCKET_GROUP, FC_SOCKET_ALL };

/* One entry of the list `namespaces` of flatcaked's file. */
struct fc_config_namespace {
	const char *name;
	uint64_t uid, gid;    /* of processes that may use it; FC_CONFIG_ANYBODY */
	uint64_t quota_bytes; /* on all media together; 0: none */
	size_t line;          /* where it begins in the file */
};
#define FC_CONFIG_ANYBODY UINT64_MAX

struct fc_config {
	enum fc_command_bit command;

	/* the store */
	const char *dir;
	const char *daemon;      /* socket of a flatcaked whose store is used instead; NULL: none */
	const char *name_space;  /* there; NULL: the default one */
	const char *ssd_path;    /* NULL: in `dir` */
	const char *memory_path; /* NULL: memory of the process */
	uint64_t memory_bytes;
	uint64_t ssd_bytes;
	uint64_t chunk_bytes; /* 0: chosen by the store */
	const char *model;    /* a preset's name */
	uint64_t block_tokens;
	uint64_t scale; /* slices are divided by this */

	/* placement and reclaim */
	uint64_t agent_context_tokens;
	uint64_t long_reply_tokens;
	double high_watermark;
	double low_watermark;
	enum fc_reclaim_order reclaim_order;
	enum fc_memory_reclaim memory_reclaim;
	double consolidate_ratio;

	/* input and output of the store */
	uint64_t streams;
	uint64_t window_bytes;
	uint64_t gap_bytes;
	uint64_t transfer_bytes; /* 0: what the device takes */
	uint64_t queue_depth;
	uint64_t io_timeout_ns;

	/* replay */
	double rate_per_s;    /* requests per second; INFINITY: as fast as possible */
	double speed;         /* the trace's times are divided by this, instead of a rate; 0: they do not count */
	double prefill_per_s; /* tokens per second of the modelled engine; INFINITY: prefill takes no time */
	bool is_checking;     /* replay, live: compare what is delivered */
	bool is_storing_replies;
	bool is_sharing_prompts;
	bool has_subagents;
	bool is_lenient;
	uint64_t session_count; /* replay: at most so many, 0 = all; gen: so many */
	uint64_t skip_count;    /* the first so many are left out */
	uint64_t concurrency;   /* sessions that are active at once */

	/* analyze */
	uint64_t dram_bytes; /* of the tiered cache that is modelled */

	/* replay --simulate */
	bool is_simulated;
	const char *hardware;          /* a profile's name or path */
	const char *policies;          /* names with commas, or "all" */
	const char *policy_settings;   /* NULL: none */
	uint64_t concurrency_per_rate; /* of each rate, so many times it instead of `concurrency`; 0: not */
	const char *memories;          /* several instead of `memory_bytes`, with commas; NULL: none */
	const char *rates;             /* several instead of `rate_per_s`, with commas; NULL: none */
	const char *mix;               /* shares of the traces, with commas; NULL: all arguments are one trace */
	uint64_t node_count;           /* of a fleet; 0: one node without a router */
	uint64_t request_count;        /* of a fleet; 0: 1,000 a node */
	const char *routes;            /* of a fleet: names with commas, or "all" */
	uint64_t job_count;            /* processes at once; 0: one a core */

	/* tune */
	enum fc_tune_objective objective;
	double tolerance;
	double hold_out_ratio;
	uint64_t writes_per_day_max; /* bytes; 0: no limit */

	/* gen */
	uint64_t turn_count;
	double length_ratio;
	const char *output_path;
	bool is_replacing; /* --force: of what a later run reads; what a run reports is always replaced */

	/* bench */
	const char *only;
	uint64_t run_count;
	uint64_t size_bytes;
	const char *trace_path; /* NULL: none */

	/* top */
	const char *url;
	const char *token_path; /* NULL: none */
	uint64_t interval_ns;
	bool is_once;

	/* flatcaked */
	const char *socket_path;
	int socket_mode;          /* an enum fc_socket_mode */
	const char *socket_group; /* NULL: the process's own */
	const char *lock_path;
	const char *http_listen;     /* "off", or ADDRESS:PORT */
	const char *http_token_path; /* NULL: nothing that changes state is served */
	uint64_t http_connections_max;
	uint64_t ssd_read_limit_bytes; /* a second; 0: not known */
	uint64_t clients_max;
	uint64_t requests_max;       /* of one client */
	uint64_t reserved_bytes_max; /* of one client */
	double reserved_share;       /* of an arena, of one process */
	uint64_t reserved_old_ns;    /* when a reservation is told of */
	uint64_t unsent_bytes_max;   /* of one client */
	uint64_t lease_timeout_ns, fence_timeout_ns, drain_timeout_ns, hello_timeout_ns;
	int log_format, log_level; /* enums of daemon/log.h */
	uint64_t log_burst;
	bool is_check_only; /* --check-config */
	struct fc_config_namespace *namespaces;
	size_t namespace_count;
	bool has_namespaces; /* the list is there, with or without entries */

	uint64_t seed;
	const char *json_path; /* NULL: none; "-": standard output */
	const char *report_path;
	const char *validation_path; /* what bench/validate wrote */
	const char *profile_path;    /* bench: where a hardware profile goes */
	const char *config_path;

	const char **arguments; /* what is not an option, in order; the strings are argv's */
	int argument_count;

	bool is_given[FC_OPTIONS_MAX];     /* by row of the option table: set by somebody, not a default */
	bool is_flag[FC_OPTIONS_MAX];      /* the same: stands on the command line */
	char *owned_texts[FC_OPTIONS_MAX]; /* texts that came from the YAML file, by row of the option table */
};

/* Where settings come from. All of it is borrowed until fc_config_free(). */
struct fc_config_sources {
	enum fc_command_bit command;
	int argument_count; /* behind the command's name */
	char *const *arguments;
	char *const *environment; /* "NAME=value", NULL at the end; NULL for none */
};

#define FC_CONFIG_ALLOWED_BYTES 2048

/* What went wrong, for a person: the place and the value, and behind it all the names that would have been right (empty
 * when the sentence says it all). */
struct fc_config_problem {
	struct fc_error error;
	char allowed[FC_CONFIG_ALLOWED_BYTES];
};

/* Fills `config`, to be freed with fc_config_free() also after a failure. FC_EINVAL for a bad value or syntax,
 * FC_ENOENT for a name that does not exist, FC_ESYSTEM for a file that cannot be read, FC_ENOMEM. */
int fc_config_load(struct fc_config *config, const struct fc_config_sources *sources,
		   struct fc_config_problem *problem) FC_MUST_USE;
void fc_config_free(struct fc_config *config);

/* Whether somebody set this option (its name as a flag, without the dashes), so that what stands in its field is more
 * than a default. */
bool fc_config_is_given(const struct fc_config *config, const char *name);

/* The same, on the command line. */
bool fc_config_is_flag(const struct fc_config *config, const char *name);

/* The model and the options of a store as `config` describes them. `opts` refers to `geometry` and to `config`. */
int fc_config_store_opts(const struct fc_config *config, struct fc_geometry *geometry, struct fc_store_opts *opts,
			 struct fc_error *error) FC_MUST_USE;

#endif
