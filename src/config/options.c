/* The option table itself, and finding rows in it by any of an option's three names.
 *
 * Defaults and ranges that concern the store equal those of fc_store_opts_init() and fc_store_opts_check();
 * tests/config holds them against each other. */
#include "base/check.h"
#include "config/option.h"

#include <string.h>

#define MIB (1ull << 20)
#define GIB (1ull << 30)
#define TIB (1ull << 40)

#define MILLISECOND_NS 1000000ull
#define SECOND_NS 1000000000ull
#define DAY_NS (24 * 3600 * SECOND_NS)

enum {
	/* commands that open a store, that only look at one, and that generate or time something */
	RUNS_STORE = FC_COMMAND_REPLAY | FC_COMMAND_TUNE,
	KEEPS_STORE = RUNS_STORE | FC_COMMAND_DAEMON,
	SIZES_STORE = KEEPS_STORE | FC_COMMAND_BENCH,
	LOOKS_AT_STORE = FC_COMMAND_VERIFY | FC_COMMAND_SESSIONS | FC_COMMAND_STAT,
	NAMES_STORE = FC_COMMAND_REPLAY | LOOKS_AT_STORE,
	READS_TRACE = FC_COMMAND_REPLAY | FC_COMMAND_ANALYZE | FC_COMMAND_TUNE,
	SIMULATES = FC_COMMAND_REPLAY | FC_COMMAND_TUNE,
	REPORTS = RUNS_STORE | LOOKS_AT_STORE | FC_COMMAND_DOCTOR | FC_COMMAND_ANALYZE | FC_COMMAND_BENCH,
	GUARDS_OUTPUT = FC_COMMAND_GEN | FC_COMMAND_TUNE | FC_COMMAND_BENCH,
	EVERY_COMMAND = REPORTS | FC_COMMAND_GEN | FC_COMMAND_TOP, /* of flatcake */
};

#define FIELD(name) offsetof(struct fc_config, name)

static const char *const reclaim_orders[] = {
	[FC_RECLAIM_LEAST_RECENTLY_USED] = "lru", [FC_RECLAIM_OLDEST_CREATED] = "created", NULL};
static const char *const memory_reclaims[] = {[FC_MEMORY_DROP] = "drop", [FC_MEMORY_SPILL] = "spill", NULL};

static const char *const objectives[] = {[FC_TUNE_TTFT_MEAN] = "ttft-mean",
					 [FC_TUNE_TTFT_P99] = "ttft-p99",
					 [FC_TUNE_MISSES] = "misses",
					 [FC_TUNE_SSD_WRITES] = "ssd-writes",
					 NULL};

static const char *const socket_modes[] = {
	[FC_SOCKET_OWNER] = "owner", [FC_SOCKET_GROUP] = "group", [FC_SOCKET_ALL] = "all", NULL};
static const char *const log_formats[] = {"auto", "text", "json", "journald", NULL};
static const char *const log_levels[] = {"error", "warning", "info", "debug", NULL};

static const struct fc_option options[] = {
	{"dir", "PATH", FC_OPTION_TEXT, FIELD(dir), NAMES_STORE, "flatcake-store",
	 .help = "folder of the store; made when missing"},
	{"daemon", "PATH", FC_OPTION_TEXT, FIELD(daemon), FC_COMMAND_REPLAY, NULL,
	 .help = "socket of a flatcaked whose store is used instead of one in a folder; its arenas and rules count "
		 "then"},
	{"namespace", "NAME", FC_OPTION_TEXT, FIELD(name_space), FC_COMMAND_REPLAY, NULL,
	 .help = "with --daemon: the namespace there"},
	{"dir", "PATH", FC_OPTION_TEXT, FIELD(dir), FC_COMMAND_DOCTOR | FC_COMMAND_BENCH, ".",
	 .help = "folder on the disk that is measured"},
	{"ssd-path", "PATH", FC_OPTION_TEXT, FIELD(ssd_path), NAMES_STORE, NULL,
	 .help = "file or block device of the SSD arena, instead of ssd.arena in the store's folder"},
	{"memory-path", "PATH", FC_OPTION_TEXT, FIELD(memory_path), NAMES_STORE, NULL,
	 .help = "file of the memory arena on tmpfs or hugetlbfs, which outlives the process; without it memory ends "
		 "with the process"},
	{"ssd-path", "PATH", FC_OPTION_TEXT, FIELD(ssd_path), FC_COMMAND_DAEMON, "/var/lib/flatcake/ssd.arena",
	 .help = "file or block device of the SSD arena; a file is made and given its space when missing"},
	{"memory-path", "PATH", FC_OPTION_TEXT, FIELD(memory_path), FC_COMMAND_DAEMON, "/dev/shm/flatcake/memory.arena",
	 .help = "file of the memory arena on tmpfs or hugetlbfs; it outlives the daemon"},
	{"memory", "SIZE", FC_OPTION_SIZE, FIELD(memory_bytes), SIZES_STORE, "1GiB",
	 .help = "memory budget; 0 for none", .max = FC_ARENA_BYTES_MAX},
	{"memory", "SIZE", FC_OPTION_SIZE, FIELD(dram_bytes), FC_COMMAND_ANALYZE, "64GiB",
	 .help = "DRAM of the tiered cache that is modelled: LRU in DRAM, everything on SSD", .max = 256 * TIB},
	{"ssd", "SIZE", FC_OPTION_SIZE, FIELD(ssd_bytes), SIZES_STORE, "8GiB", .help = "SSD budget; 0 for none",
	 .max = FC_ARENA_BYTES_MAX},
	{"chunk", "SIZE", FC_OPTION_SIZE, FIELD(chunk_bytes), KEEPS_STORE, "0",
	 .help = "unit of allocation, a power of two from 4KiB; 0: chosen from the arena's size",
	 .max = FC_CHUNK_BYTES_MAX},
	{"model", "NAME", FC_OPTION_TEXT, FIELD(model), SIZES_STORE | FC_COMMAND_ANALYZE, "deepseek-v4-flash",
	 .help = "model whose KV is stored, the name of a preset"},
	{"block-tokens", "N", FC_OPTION_COUNT, FIELD(block_tokens), RUNS_STORE | FC_COMMAND_ANALYZE, "0",
	 .help = "tokens in a block, where a trace does not say; 0: 512 of Mooncake's, 16 of Bailian's, 64 of a "
		 "table",
	 .max = FC_BLOCK_TOKENS_MAX},
	{"block-tokens", "N", FC_OPTION_COUNT, FIELD(block_tokens), FC_COMMAND_DAEMON, "0",
	 .help = "tokens in a block, as the engines have them; 0: 64", .max = FC_BLOCK_TOKENS_MAX},
	{"scale", "N", FC_OPTION_COUNT, FIELD(scale), SIZES_STORE | FC_COMMAND_ANALYZE, "1",
	 .help = "divide every slice by this, so that a large trace fits a small disk", .min = 1, .max = FC_SCALE_MAX},

	{"agent-context", "TOKENS", FC_OPTION_COUNT, FIELD(agent_context_tokens), KEEPS_STORE | FC_COMMAND_ANALYZE,
	 "32768", .help = "a context above this is an agent's and goes to SSD", .max = FC_CONTEXT_TOKENS_MAX},
	{"long-reply", "TOKENS", FC_OPTION_COUNT, FIELD(long_reply_tokens), KEEPS_STORE, "1024",
	 .help = "a turn whose previous reply had at least this many tokens goes to SSD", .max = FC_CONTEXT_TOKENS_MAX},
	{"high-watermark", "RATIO", FC_OPTION_RATIO, FIELD(high_watermark), KEEPS_STORE, "0.95",
	 .help = "share of an arena in use above which whole sessions are reclaimed", .ratio_min = FC_WATERMARK_MIN,
	 .ratio_max = 1},
	{"low-watermark", "RATIO", FC_OPTION_RATIO, FIELD(low_watermark), KEEPS_STORE, "0.85",
	 .help = "share of an arena in use at which reclaiming ends; no more than the high watermark",
	 .ratio_min = FC_WATERMARK_MIN, .ratio_max = 1},
	{"reclaim-order", "lru|created", FC_OPTION_CHOICE, FIELD(reclaim_order), KEEPS_STORE, "lru",
	 .help = "which session is the oldest: the least recently used, or the first created",
	 .choices = reclaim_orders},
	{"memory-reclaim", "drop|spill", FC_OPTION_CHOICE, FIELD(memory_reclaim), KEEPS_STORE, "spill",
	 .help = "what becomes of a session that memory has no room for: dropped, or, if it was ever reused and there "
		 "is SSD, written there once",
	 .choices = memory_reclaims},
	{"consolidate", "RATIO", FC_OPTION_RATIO, FIELD(consolidate_ratio), KEEPS_STORE, "1",
	 .help = "a turn absorbs the segment before it while that is no larger than this times the new one; 0: never",
	 .ratio_max = FC_CONSOLIDATE_RATIO_MAX},

	{"streams", "N", FC_OPTION_COUNT, FIELD(streams), RUNS_STORE, "4", .help = "loads from SSD that run at once",
	 .min = 1, .max = FC_STREAMS_MAX},
	{"window", "SIZE", FC_OPTION_SIZE, FIELD(window_bytes), KEEPS_STORE, "64MiB",
	 .help = "double buffer of one stream", .min = FC_WINDOW_BYTES_MIN, .max = FC_WINDOW_BYTES_MAX},
	{"gap", "SIZE", FC_OPTION_SIZE, FIELD(gap_bytes), RUNS_STORE, "64KiB",
	 .help = "gaps smaller than this are read through", .max = FC_GAP_BYTES_MAX},
	{"transfer", "SIZE", FC_OPTION_SIZE, FIELD(transfer_bytes), RUNS_STORE, "0",
	 .help = "largest single command, never more than 1MiB; 0: what the device takes",
	 .max = FC_TRANSFER_BYTES_MAX},
	{"queue-depth", "N", FC_OPTION_COUNT, FIELD(queue_depth), KEEPS_STORE, "64",
	 .help = "commands in flight on the SSD", .min = 1, .max = FC_QUEUE_DEPTH_MAX},
	{"io-timeout", "DURATION", FC_OPTION_DURATION, FIELD(io_timeout_ns), FC_COMMAND_REPLAY | FC_COMMAND_DAEMON,
	 "30s", .help = "an I/O that takes longer ends its request", .min = FC_IO_TIMEOUT_NS_MIN,
	 .max = FC_IO_TIMEOUT_NS_MAX},

	{"rate", "R|max", FC_OPTION_RATE, FIELD(rate_per_s), SIMULATES, "max",
	 .help = "requests started per second, or as fast as possible", .ratio_min = 0.001, .ratio_max = 1000000},
	{"speed", "RATIO", FC_OPTION_RATIO, FIELD(speed), FC_COMMAND_REPLAY, "0",
	 .help = "start requests when the trace says, this many times as fast, instead of at --rate; "
		 "1: at its own pace; 0: the trace's times do not count",
	 .ratio_max = 1000000},
	{"prefill", "TOKENS_PER_S|max", FC_OPTION_RATE, FIELD(prefill_per_s), SIMULATES, "max",
	 .help = "speed at which the modelled engine computes tokens that were not stored, or in no time",
	 .ratio_min = 1, .ratio_max = 1e12},
	{"check", "on|off", FC_OPTION_BOOL, FIELD(is_checking), FC_COMMAND_REPLAY, "on",
	 .help = "compare every delivered byte with what was saved; off where times count: no engine does it, and the "
		 "requests behind wait for it"},
	{"store-replies", "on|off", FC_OPTION_BOOL, FIELD(is_storing_replies), READS_TRACE, "on",
	 .help = "save a reply's blocks with its request when the session's next request shows them"},
	{"share-prompts", "on|off", FC_OPTION_BOOL, FIELD(is_sharing_prompts), READS_TRACE, "on",
	 .help = "sessions with equal tools and system prompt share those blocks"},
	{"subagents", "on|off", FC_OPTION_BOOL, FIELD(has_subagents), READS_TRACE, "on",
	 .help = "read the requests of subagents too"},
	{"lenient", NULL, FC_OPTION_SWITCH, FIELD(is_lenient), READS_TRACE, "off",
	 .help = "skip and count damaged records of a trace instead of stopping at the first"},
	{"sessions", "N", FC_OPTION_COUNT, FIELD(session_count), READS_TRACE, "0",
	 .help = "read the first N sessions only, or requests where a trace lists those; 0: all", .max = 1ull << 32},
	{"sessions", "N", FC_OPTION_COUNT, FIELD(session_count), FC_COMMAND_GEN, "40", .help = "sessions to generate",
	 .min = 1, .max = 1000000},
	{"skip", "N", FC_OPTION_COUNT, FIELD(skip_count), READS_TRACE, "0",
	 .help = "leave out the first N sessions, or requests where a trace lists those", .max = 1ull << 32},
	{"concurrency", "N", FC_OPTION_COUNT, FIELD(concurrency), READS_TRACE, "8",
	 .help = "sessions that are active at once, on average, where the trace does not say when each began", .min = 1,
	 .max = 1000000},

	{"simulate", NULL, FC_OPTION_SWITCH, FIELD(is_simulated), FC_COMMAND_REPLAY, "off",
	 .help = "replay on a simulated node in virtual time instead of through a real store on this machine"},
	{"policy", "NAMES", FC_OPTION_TEXT, FIELD(policies), FC_COMMAND_REPLAY, "flat",
	 .help = "with --simulate: caches to compare, names with commas, or all; flatcake help policies lists them"},
	{"hardware", "PROFILE", FC_OPTION_TEXT, FIELD(hardware), SIMULATES, "8xb200-deepseek-v4-flash",
	 .help = "with --simulate: the node, the name of a profile or the path of one; its model and budgets are used "
		 "where --model, --memory and --ssd are not given"},
	{"set", "SETTINGS", FC_OPTION_TEXT, FIELD(policy_settings), SIMULATES, NULL,
	 .help = "with --simulate: settings of policies, POLICY.KEY=VALUE with commas; flatcake help policies lists "
		 "them"},
	{"memories", "LIST", FC_OPTION_TEXT, FIELD(memories), FC_COMMAND_REPLAY, NULL,
	 .help = "with --simulate: several values of --memory, with commas"},
	{"rates", "LIST", FC_OPTION_TEXT, FIELD(rates), FC_COMMAND_REPLAY, NULL,
	 .help = "with --simulate: several values of --rate, with commas"},
	{"concurrency-per-rate", "N", FC_OPTION_COUNT, FIELD(concurrency_per_rate), FC_COMMAND_REPLAY, "0",
	 .help = "with --simulate: N sessions active at once for each request a second, at every rate, instead of "
		 "--concurrency; 0: --concurrency at every rate",
	 .max = 1000000},
	{"mix", "SHARES", FC_OPTION_TEXT, FIELD(mix), FC_COMMAND_REPLAY, NULL,
	 .help = "with --simulate: every TRACE is one for itself, and requests are drawn from them in these shares, as "
		 "1,3; each is reported separately"},
	{"nodes", "N", FC_OPTION_COUNT, FIELD(node_count), FC_COMMAND_REPLAY, "0",
	 .help = "with --simulate: a fleet of so many nodes, each with --memory, --ssd, --concurrency and, on average, "
		 "--rate; 0: one node, without a router",
	 .max = 100000},
	{"requests", "N", FC_OPTION_COUNT, FIELD(request_count), FC_COMMAND_REPLAY, "0",
	 .help = "with --nodes: requests of the fleet; the trace is repeated with other content until it has them; 0: "
		 "1,000 a node",
	 .max = 1u << 31},
	{"route", "NAMES", FC_OPTION_TEXT, FIELD(routes), FC_COMMAND_REPLAY, "session",
	 .help = "with --nodes: who serves a request, names with commas, or all. session: the node that the session's "
		 "name is hashed to; least: the node that had the fewest active sessions when the session began; "
		 "round-robin and random: any node, request by request"},
	{"jobs", "N", FC_OPTION_COUNT, FIELD(job_count), SIMULATES, "0",
	 .help = "with --simulate: runs at once; 0: one a core. Results do not depend on it", .max = 1024},

	{"objective", "NAME", FC_OPTION_CHOICE, FIELD(objective), FC_COMMAND_TUNE, "ttft-mean",
	 .help = "what is made small: the mean or 99th percentile of the time to first token, the input blocks that "
		 "were "
		 "not delivered, or the bytes written to SSD",
	 .choices = objectives},
	{"tolerance", "RATIO", FC_OPTION_RATIO, FIELD(tolerance), FC_COMMAND_TUNE, "0.01",
	 .help = "differences of the objective that do not count", .ratio_min = 0, .ratio_max = 1},
	{"writes-per-day", "SIZE", FC_OPTION_SIZE, FIELD(writes_per_day_max), FC_COMMAND_TUNE, "0",
	 .help = "most that may be written to SSD in a day, as drives are specified; 0: no limit", .max = 256 * TIB},
	{"hold-out", "RATIO", FC_OPTION_RATIO, FIELD(hold_out_ratio), FC_COMMAND_TUNE, "0.3",
	 .help = "share of the sessions, the last ones, that only judge the result", .ratio_min = 0.05,
	 .ratio_max = 0.95},
	{"output", "FILE", FC_OPTION_TEXT, FIELD(output_path), FC_COMMAND_TUNE, NULL,
	 .help = "write the settings as a file for --config; - for standard output", .output = FC_OUTPUT_KEPT},

	{"turns", "N", FC_OPTION_COUNT, FIELD(turn_count), FC_COMMAND_GEN, "45",
	 .help = "requests of the median session", .min = 1, .max = 100000},
	{"length", "RATIO", FC_OPTION_RATIO, FIELD(length_ratio), FC_COMMAND_GEN, "1",
	 .help = "prompts and replies are this many times as long as in the recorded sessions", .ratio_min = 0.001,
	 .ratio_max = 1000},
	{"output", "PATH", FC_OPTION_TEXT, FIELD(output_path), FC_COMMAND_GEN, NULL,
	 .help = "where the trace goes: a folder, one file when the name ends in .tar, .tar.gz, .tar.zst or .jsonl, "
		 "or - for standard output"},
	{"force", NULL, FC_OPTION_SWITCH, FIELD(is_replacing), GUARDS_OUTPUT, "off",
	 .help = "replace a file that is there; without it one that a later run reads (a trace, settings, a "
		 "profile) is left alone"},

	{"only", "NAMES", FC_OPTION_TEXT, FIELD(only), FC_COMMAND_BENCH, NULL,
	 .help = "run these measurements only, names with commas"},
	{"runs", "N", FC_OPTION_COUNT, FIELD(run_count), FC_COMMAND_BENCH, "9",
	 .help = "interleaved runs of which the median is reported", .min = 1, .max = 1000},
	{"size", "SIZE", FC_OPTION_SIZE, FIELD(size_bytes), FC_COMMAND_BENCH, "1GiB",
	 .help = "size of the session that is measured; other sizes are in proportion", .min = MIB, .max = TIB},
	{"trace", "PATH", FC_OPTION_TEXT, FIELD(trace_path), FC_COMMAND_BENCH, NULL,
	 .help = "recorded trace that the measurement `trace` replays, with the given --model, --scale, --ssd and "
		 "--memory"},

	{"validation", "FILE", FC_OPTION_TEXT, FIELD(validation_path), FC_COMMAND_REPLAY, NULL,
	 .help = "with --simulate and --report: what bench/validate found, to be shown on the page"},
	{"profile", "FILE", FC_OPTION_TEXT, FIELD(profile_path), FC_COMMAND_BENCH, NULL,
	 .help = "measure what a hardware profile needs and write one for replay --simulate; other measurements only "
		 "as --only names them",
	 .output = FC_OUTPUT_KEPT},

	{"socket", "PATH", FC_OPTION_TEXT, FIELD(socket_path), FC_COMMAND_DAEMON, "/run/flatcake/flatcaked.sock",
	 .help = "Unix socket that engines open with the address unix:PATH"},
	{"socket-mode", "owner|group|all", FC_OPTION_CHOICE, FIELD(socket_mode), FC_COMMAND_DAEMON, "owner",
	 .help = "who may connect: the daemon's user (mode 0600), its group too (0660), or everybody (0666)",
	 .choices = socket_modes},
	{"socket-group", "NAME", FC_OPTION_TEXT, FIELD(socket_group), FC_COMMAND_DAEMON, NULL,
	 .help = "group that the socket is given to; the daemon has to be a member of it"},
	{"lock-path", "PATH", FC_OPTION_TEXT, FIELD(lock_path), FC_COMMAND_DAEMON, "/var/lib/flatcake/clients.lock",
	 .help = "file whose locks tell which clients may still write; it has to outlive the daemon"},
	{"http-listen", "ADDRESS:PORT", FC_OPTION_TEXT, FIELD(http_listen), FC_COMMAND_DAEMON, "127.0.0.1:9117",
	 .help = "where metrics, health, administration and the status page are served, or off; an address that is not "
		 "of the loopback needs a token for everything"},
	{"http-token-file", "PATH", FC_OPTION_TEXT, FIELD(http_token_path), FC_COMMAND_DAEMON, NULL,
	 .help = "file with the token (16 to 256 characters, mode 0600) that requests which change something have to "
		 "bring; without it there are none"},
	{"http-connections", "N", FC_OPTION_COUNT, FIELD(http_connections_max), FC_COMMAND_DAEMON, "64",
	 .help = "HTTP connections at once; one more ends the one that has asked nothing for longest", .min = 1,
	 .max = 1024},
	{"ssd-read-limit", "SIZE", FC_OPTION_SIZE, FIELD(ssd_read_limit_bytes), FC_COMMAND_DAEMON, "0",
	 .help = "bytes a second that the disk gives at best (flatcake doctor measures it), which the status page "
		 "compares with; 0: not known",
	 .max = TIB},
	{"clients-max", "N", FC_OPTION_COUNT, FIELD(clients_max), FC_COMMAND_DAEMON, "256",
	 .help = "connections of engines at once", .min = 1, .max = 4096},
	{"requests-max", "N", FC_OPTION_COUNT, FIELD(requests_max), FC_COMMAND_DAEMON, "1024",
	 .help = "requests, leases and reservations that one client may have open", .min = 1, .max = 65536},
	{"reserved-max", "SIZE", FC_OPTION_SIZE, FIELD(reserved_bytes_max), FC_COMMAND_DAEMON, "64GiB",
	 .help = "bytes that one client may have reserved and not committed", .min = MIB, .max = 256 * TIB},
	{"reserved-share", "RATIO", FC_OPTION_RATIO, FIELD(reserved_share), FC_COMMAND_DAEMON, "0.25",
	 .help = "share of an arena that one process may have reserved and not committed; a single save may be larger "
		 "while as much as a share stays without reservations",
	 .ratio_min = 0.001, .ratio_max = 1},
	{"reserved-old", "DURATION", FC_OPTION_DURATION, FIELD(reserved_old_ns), FC_COMMAND_DAEMON, "1min",
	 .help = "a client that keeps a reservation longer is named in the log", .min = SECOND_NS, .max = DAY_NS},
	{"unsent-max", "SIZE", FC_OPTION_SIZE, FIELD(unsent_bytes_max), FC_COMMAND_DAEMON, "64MiB",
	 .help = "bytes of answers that may wait for a client that does not read; then its connection ends", .min = MIB,
	 .max = 4 * GIB},
	{"lease-timeout", "DURATION", FC_OPTION_DURATION, FIELD(lease_timeout_ns), FC_COMMAND_DAEMON, "10min",
	 .help = "a client that keeps a lease longer loses its connection", .min = SECOND_NS, .max = DAY_NS},
	{"fence-timeout", "DURATION", FC_OPTION_DURATION, FIELD(fence_timeout_ns), FC_COMMAND_DAEMON, "30s",
	 .help = "how long a new daemon waits for the clients of the last one before it reserves space",
	 .min = 10 * MILLISECOND_NS, .max = DAY_NS},
	{"drain-timeout", "DURATION", FC_OPTION_DURATION, FIELD(drain_timeout_ns), FC_COMMAND_DAEMON, "30s",
	 .help = "how long a stop waits for open reservations", .min = 10 * MILLISECOND_NS, .max = DAY_NS},
	{"hello-timeout", "DURATION", FC_OPTION_DURATION, FIELD(hello_timeout_ns), FC_COMMAND_DAEMON, "5s",
	 .help = "a connection that does not say who it is in this time ends", .min = 10 * MILLISECOND_NS,
	 .max = DAY_NS},
	{"log-format", "FORMAT", FC_OPTION_CHOICE, FIELD(log_format), FC_COMMAND_DAEMON, "auto",
	 .help = "auto: journald when standard error goes to the journal, else text", .choices = log_formats},
	{"log-level", "LEVEL", FC_OPTION_CHOICE, FIELD(log_level), FC_COMMAND_DAEMON, "info",
	 .help = "what is less important is not logged", .choices = log_levels},
	{"log-burst", "N", FC_OPTION_COUNT, FIELD(log_burst), FC_COMMAND_DAEMON, "50",
	 .help = "messages of one kind that are logged in ten seconds, the others being counted; 0: all",
	 .max = 1000000},
	{"check-config", NULL, FC_OPTION_SWITCH, FIELD(is_check_only), FC_COMMAND_DAEMON, "off",
	 .help = "check the settings, say what they mean, and start nothing", .is_command_line_only = true},

	{"url", "URL", FC_OPTION_TEXT, FIELD(url), FC_COMMAND_TOP, "http://127.0.0.1:9117",
	 .help = "where flatcaked serves HTTP (its http_listen)"},
	{"token-file", "PATH", FC_OPTION_TEXT, FIELD(token_path), FC_COMMAND_TOP, NULL,
	 .help = "file with the token, for a daemon that does not listen on the loopback"},
	{"interval", "DURATION", FC_OPTION_DURATION, FIELD(interval_ns), FC_COMMAND_TOP, "1s",
	 .help = "time between two screens", .min = 100 * MILLISECOND_NS, .max = 3600 * SECOND_NS},
	{"once", NULL, FC_OPTION_SWITCH, FIELD(is_once), FC_COMMAND_TOP, "off", .help = "print one screen and exit"},

	{"seed", "N", FC_OPTION_COUNT, FIELD(seed), READS_TRACE | FC_COMMAND_GEN | FC_COMMAND_BENCH, "1",
	 .help = "equal seeds give equal runs", .max = UINT64_MAX},
	{"json", "FILE", FC_OPTION_TEXT, FIELD(json_path), REPORTS, NULL,
	 .help = "write the result as JSON too; - for standard output, without the table", .output = FC_OUTPUT_REPORT},
	{"report", "FILE", FC_OPTION_TEXT, FIELD(report_path), FC_COMMAND_REPLAY | FC_COMMAND_ANALYZE, NULL,
	 .help = "write a page with plots too, one HTML file that needs nothing else; replay: with --simulate only",
	 .output = FC_OUTPUT_REPORT},
	{"config", "FILE", FC_OPTION_TEXT, FIELD(config_path), EVERY_COMMAND | FC_COMMAND_DAEMON, NULL,
	 .help = "YAML file of settings: one \"key: value\" a line, keys as the long options with _ for -",
	 .is_command_line_only = true},
};
_Static_assert(sizeof(options) / sizeof(options[0]) <= FC_OPTIONS_MAX, "raise FC_OPTIONS_MAX");

const struct fc_option *fc_option_at(size_t index)
{
	return index < fc_array_len(options) ? &options[index] : NULL;
}

void fc_option_spell(const struct fc_option *option, enum fc_option_spelling spelling, char name[FC_OPTION_NAME_BYTES])
{
	const char *prefix = spelling == FC_SPELLING_FLAG ? "--" : spelling == FC_SPELLING_VARIABLE ? "FLATCAKE_" : "";
	size_t used = strlen(prefix);
	fc_check(used + strlen(option->name) < FC_OPTION_NAME_BYTES);
	memcpy(name, prefix, used);
	for (const char *letter = option->name; *letter != '\0'; letter++) {
		char spelled = *letter;
		if (spelling != FC_SPELLING_FLAG && spelled == '-')
			spelled = '_';
		if (spelling == FC_SPELLING_VARIABLE && spelled >= 'a' && spelled <= 'z')
			spelled = (char)(spelled - 'a' + 'A');
		name[used++] = spelled;
	}
	name[used] = '\0';
}

const struct fc_option *fc_option_find(enum fc_option_spelling spelling, const char *name, size_t name_len,
				       enum fc_command_bit command)
{
	const struct fc_option *found = NULL;
	for (size_t row = 0; row < fc_array_len(options); row++) {
		char spelled[FC_OPTION_NAME_BYTES];
		fc_option_spell(&options[row], spelling, spelled);
		if (strlen(spelled) != name_len || memcmp(spelled, name, name_len) != 0)
			continue;
		if ((options[row].commands & command) != 0)
			return &options[row];
		if (found == NULL)
			found = &options[row];
	}
	return found;
}
