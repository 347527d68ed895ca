#include "replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
	"flatcake-llama-replay --model FILE.gguf [options]\n"
	"\n"
	"Runs agent sessions through llama.cpp with a KV memory that holds few of them, once for each system, and says "
	"how\n"
	"long each took to the first token and whether it answered as if nothing had been forgotten.\n"
	"\n"
	"  --model FILE       any model that llama.cpp loads and flatcake-llama can keep\n"
	"  --trace PATH       sessions of a trace (flatcake help replay says which formats); may be repeated\n"
	"  --text FILE        one session: paragraphs are turns; may be repeated. Neither: a generated agent trace\n"
	"  --sessions N       first so many sessions of a trace (12)\n"
	"  --turns N          first so many turns of each (8)\n"
	"  --history N        tokens of the longest prompt; a trace is scaled to it (4096)\n"
	"  --slots N          sessions that the engine's KV memory holds (2)\n"
	"  --reply N          tokens to generate in each turn, 0 to 64 (4)\n"
	"  --systems LIST     of unlimited,recompute,file,file-cold,memory,ssd,ssd-ahead (all)\n"
	"  --worth LIST       instead: time to first token for histories of so many tokens, for example 1024,4096\n"
	"  --repeat N         measurements of each length (5)\n"
	"  --block N          tokens of a block (64)\n"
	"  --batch N          tokens that are computed at once (512)\n"
	"  --threads N        of the engine (1)\n"
	"  --type-k, --type-v f16 or q8_0: the engine's KV (f16)\n"
	"  --memory, --ssd N  MiB of the store (2048, 4096)\n"
	"  --seed N           of generated traces and of the order in which sessions take turns (1)\n"
	"  --dir FOLDER       for stores and files; what is put there is removed at the end (a new folder in /tmp)\n"
	"  --libraries DIR    where llama.cpp's back ends lie\n"
	"  --json FILE, --svg FILE\n";

/* ---- options ---- */

struct number_option {
	const char *name;
	uint64_t *value, min, max;
};

static int bad_value(const char *name, const char *text, const char *allowed, struct fc_error *error)
{
	return fc_error_set(error, FC_EINVAL, "%s %s: %s", name, text, allowed);
}

static int read_number(const char *name, const char *text, uint64_t min, uint64_t max, uint64_t *value,
		       struct fc_error *error)
{
	char *end;
	errno = 0;
	*value = strtoull(text, &end, 10);
	if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *value >= min && *value <= max)
		return FC_OK;
	return fc_error_set(error, FC_EINVAL, "%s %s: a number from %llu to %llu is allowed", name, text,
			    (unsigned long long)min, (unsigned long long)max);
}

/* 1 when the option is a number. */
static int try_numbers(struct replay_opts *opts, const char *name, const char *text, struct fc_error *error)
{
	const struct number_option options[] = {
		{"--sessions", &opts->sessions, 1, 255},
		{"--turns", &opts->turns, 1, 1000000},
		{"--history", &opts->history, 16, 1 << 20},
		{"--slots", &opts->slots, 1, 255},
		{"--reply", &opts->reply, 0, REPLAY_REPLY_MAX},
		{"--repeat", &opts->repeat, 1, 1000},
		{"--block", &opts->block, 1, 4096},
		{"--batch", &opts->batch, 1, 65536},
		{"--threads", &opts->threads, 1, 256},
		{"--memory", &opts->memory_bytes, 1, 1 << 20},
		{"--ssd", &opts->ssd_bytes, 1, 1 << 24},
		{"--seed", &opts->seed, 0, UINT64_MAX},
	};
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
		if (strcmp(name, options[i].name) != 0)
			continue;
		int code = read_number(name, text, options[i].min, options[i].max, options[i].value, error);
		return code == FC_OK ? 1 : code;
	}
	return 0;
}

static int try_texts(struct replay_opts *opts, const char *name, const char *text)
{
	const struct {
		const char *name, **value;
	} options[] = {
		{"--model", &opts->model}, {"--dir", &opts->folder},          {"--json", &opts->json},
		{"--svg", &opts->svg},     {"--libraries", &opts->libraries},
	};
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
		if (strcmp(name, options[i].name) == 0) {
			*options[i].value = text;
			return 1;
		}
	}
	return 0;
}

static int add_path(const char **paths, size_t *count, const char *name, const char *text, struct fc_error *error)
{
	if (*count == REPLAY_PATHS_MAX)
		return fc_error_set(error, FC_ELIMIT, "%s %s: at most %d are allowed", name, text, REPLAY_PATHS_MAX);
	paths[(*count)++] = text;
	return 1;
}

static int read_type(const char *name, const char *text, enum ggml_type *type, struct fc_error *error)
{
	if (strcmp(text, "f16") != 0 && strcmp(text, "q8_0") != 0)
		return bad_value(name, text, "f16 and q8_0 are allowed", error);
	*type = strcmp(text, "f16") == 0 ? GGML_TYPE_F16 : GGML_TYPE_Q8_0;
	return 1;
}

static int read_systems(struct replay_opts *opts, const char *text, struct fc_error *error)
{
	memset(opts->is_run, 0, sizeof(opts->is_run));
	while (*text != '\0') {
		size_t bytes = strcspn(text, ",");
		int kind = 0;
		while (kind < SYSTEM_COUNT && (strlen(system_name((enum system_kind)kind)) != bytes ||
					       strncmp(text, system_name((enum system_kind)kind), bytes) != 0))
			kind++;
		if (kind == SYSTEM_COUNT)
			return bad_value("--systems", text,
					 "unlimited, recompute, file, file-cold, memory, ssd, ssd-ahead are allowed",
					 error);
		opts->is_run[kind] = true;
		text += bytes + (text[bytes] == ',');
	}
	return 1;
}

static int read_lengths(struct replay_opts *opts, const char *text, struct fc_error *error)
{
	char item[24];
	while (*text != '\0') {
		size_t bytes = strcspn(text, ",");
		if (opts->length_count == REPLAY_LENGTHS_MAX || bytes >= sizeof(item))
			return bad_value("--worth", text, "at most 16 lengths are allowed", error);
		snprintf(item, sizeof(item), "%.*s", (int)bytes, text);
		int code = read_number("--worth", item, 16, 1 << 20, &opts->lengths[opts->length_count++], error);
		if (code != FC_OK)
			return code;
		text += bytes + (text[bytes] == ',');
	}
	return 1;
}

/* 1 when it was taken, 0 when no such option is known, or an error. */
static int take_option(struct replay_opts *opts, const char *name, const char *text, struct fc_error *error)
{
	int code = try_numbers(opts, name, text, error);
	if (code == 0)
		code = try_texts(opts, name, text);
	if (code != 0)
		return code;
	if (strcmp(name, "--trace") == 0)
		return add_path(opts->traces, &opts->trace_count, name, text, error);
	if (strcmp(name, "--text") == 0)
		return add_path(opts->texts, &opts->text_count, name, text, error);
	if (strcmp(name, "--type-k") == 0)
		return read_type(name, text, &opts->type_k, error);
	if (strcmp(name, "--type-v") == 0)
		return read_type(name, text, &opts->type_v, error);
	if (strcmp(name, "--systems") == 0)
		return read_systems(opts, text, error);
	if (strcmp(name, "--worth") == 0)
		return read_lengths(opts, text, error);
	return 0;
}

static int read_options(struct replay_opts *opts, int argc, char **argv, struct fc_error *error)
{
	for (int i = 1; i < argc; i += 2) {
		if (i + 1 == argc)
			return fc_error_set(error, FC_EINVAL, "%s: a value is missing, or it is no option", argv[i]);
		int code = take_option(opts, argv[i], argv[i + 1], error);
		if (code == 0)
			return fc_error_set(error, FC_EINVAL, "%s: no such option; --help lists them", argv[i]);
		if (code < 0)
			return code;
	}
	if (opts->model == NULL)
		return fc_error_set(error, FC_EINVAL, "--model is missing");
	if (opts->trace_count > 0 && opts->text_count > 0)
		return fc_error_set(error, FC_EINVAL, "--trace and --text cannot be given together");
	if (opts->svg != NULL && opts->length_count == 0)
		return fc_error_set(error, FC_EINVAL, "--svg: there is a plot of --worth only");
	opts->memory_bytes <<= 20;
	opts->ssd_bytes <<= 20;
	for (size_t i = 0; i < opts->length_count; i++)
		opts->history = opts->lengths[i] > opts->history ? opts->lengths[i] : opts->history;
	return FC_OK;
}

/* ---- runs ---- */

static uint64_t round_up(uint64_t tokens)
{
	return (tokens + 255) / 256 * 256;
}

static int run_system(enum system_kind kind, struct engine *engine, struct replay_opts *opts,
		      const struct replay_input *input, const char *folder, const struct turn_result *expected,
		      struct turn_result *found, struct run_result *result, struct fc_error *error)
{
	struct system system = {0};
	uint32_t slots = kind == SYSTEM_UNLIMITED ? input->session_count : (uint32_t)opts->slots;
	int code = engine_start(engine, slots, round_up(input->history_max + opts->reply + 1), error);
	if (code == FC_OK)
		code = system_open(&system, kind, engine, opts, folder, error);
	if (code == FC_OK) {
		code = replay_run(&system, input, slots, expected, found, result, error);
		system_close(&system);
	}
	engine_stop(engine);
	return code == FC_OK ? code : fc_error_wrap(error, code, "%s", system_name(kind));
}

static int run_all(struct engine *engine, struct replay_opts *opts, const struct replay_input *input,
		   const char *folder, struct run_result results[SYSTEM_COUNT], struct fc_error *error)
{
	struct turn_result *expected = calloc(input->turn_count, sizeof(*expected));
	struct turn_result *found = calloc(input->turn_count, sizeof(*found));
	int code = expected == NULL || found == NULL ? fc_error_set(error, FC_ENOMEM, "%s", fc_code_text(FC_ENOMEM))
						     : FC_OK;
	bool is_first = true; /* what the others are compared with: unlimited, unless it was left out */
	for (int kind = 0; kind < SYSTEM_COUNT && code == FC_OK; kind++) {
		if (!opts->is_run[kind])
			continue;
		code = run_system((enum system_kind)kind, engine, opts, input, folder, is_first ? NULL : expected,
				  is_first ? expected : found, &results[kind], error);
		if (is_first)
			results[kind].bits_equal = results[kind].reply_equal = results[kind].turns;
		is_first = false;
	}
	free(expected);
	free(found);
	return code;
}

static int replay_all(struct engine *engine, struct replay_opts *opts, const char *folder, struct fc_error *error)
{
	struct replay_input input;
	struct run_result *results = calloc(SYSTEM_COUNT, sizeof(*results));
	int code = results == NULL ? fc_error_set(error, FC_ENOMEM, "%s", fc_code_text(FC_ENOMEM)) : FC_OK;
	if (code != FC_OK)
		return code;
	code = replay_input_init(&input, opts, llama_model_get_vocab(engine->model), error);
	opts->kv_tokens = opts->slots * round_up(input.history_max + opts->reply + 1);
	if (code == FC_OK)
		code = run_all(engine, opts, &input, folder, results, error);
	if (code == FC_OK)
		replay_print_run(opts, &input, results);
	if (code == FC_OK && opts->json != NULL)
		code = replay_write_json(opts, &input, results, NULL, error);
	replay_input_deinit(&input);
	free(results);
	return code;
}

static int measure_worth(struct engine *engine, struct replay_opts *opts, const char *folder, struct fc_error *error)
{
	struct worth_row rows[REPLAY_LENGTHS_MAX];
	const struct replay_input no_input = {0};
	int code = replay_worth(engine, opts, folder, rows, error);
	if (code != FC_OK)
		return code;
	replay_print_worth(opts, rows);
	if (opts->json != NULL)
		code = replay_write_json(opts, &no_input, NULL, rows, error);
	if (code == FC_OK && opts->svg != NULL)
		code = replay_write_svg(opts, rows, error);
	return code;
}

static int make_folder(const struct replay_opts *opts, char folder[256], struct fc_error *error)
{
	const char *parent = opts->folder != NULL ? opts->folder : getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp";
	if (snprintf(folder, 256, "%s/flatcake-llama-XXXXXX", parent) >= 256)
		return fc_error_set(error, FC_EINVAL, "--dir %s: the name is too long", parent);
	if (mkdtemp(folder) == NULL)
		return fc_error_set(error, FC_ESYSTEM, "mkdtemp %s: %s", folder, strerror(errno));
	return FC_OK;
}

static int run(struct replay_opts *opts, struct fc_error *error)
{
	char folder[256];
	struct engine engine;
	int code = make_folder(opts, folder, error);
	if (code != FC_OK)
		return code;
	code = engine_load(&engine, opts, error);
	if (code == FC_OK) {
		code = opts->length_count > 0 ? measure_worth(&engine, opts, folder, error)
					      : replay_all(&engine, opts, folder, error);
		engine_free(&engine);
	}
	rmdir(folder);
	return code;
}

int main(int argc, char **argv)
{
	struct replay_opts opts = {
		.libraries = LLAMA_LIB,
		.sessions = 12,
		.turns = 8,
		.history = 4096,
		.slots = 2,
		.reply = 4,
		.repeat = 5,
		.block = 64,
		.batch = 512,
		.threads = 1,
		.memory_bytes = 2048,
		.ssd_bytes = 4096,
		.seed = 1,
		.type_k = GGML_TYPE_F16,
		.type_v = GGML_TYPE_F16,
	};
	struct fc_error error = {0};
	for (int kind = 0; kind < SYSTEM_COUNT; kind++)
		opts.is_run[kind] = true;
	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		fputs(usage, stdout);
		return 0;
	}
	int code = read_options(&opts, argc, argv, &error);
	if (code == FC_OK)
		code = run(&opts, &error);
	if (code == FC_OK)
		return 0;
	fprintf(stderr, "flatcake-llama-replay: %s\n", error.text);
	return code == FC_EINVAL ? 2 : 1;
}
