/* `flatcake verify`: a full scan of a store that nobody uses. Every counter is recomputed, every slice is read and held
 * against its checksum, and nothing is changed. What is damaged is named; the exit status is then 1. */
#include "cli/closed_store.h"
#include "cli/commands.h"
#include "cli/json_file.h"
#include "cli/progress.h"
#include "cli/table.h"

#include <inttypes.h>
#include <jansson.h>

#define DAMAGE_LISTED_MAX 100 /* the rest is counted */

struct verification {
	const struct fc_probe *probe;
	struct fc_inspect *inspect;
	struct fc_stats stats;
	struct fc_scan scan;
	struct fc_progress progress;
	int check_code;
	struct fc_error check_error;
	struct fc_damage damages[DAMAGE_LISTED_MAX];
	uint64_t damage_count;
};

/* ---- gathering ---- */

static void on_damage(void *context, const struct fc_damage *damage)
{
	struct verification *verification = context;
	if (verification->damage_count < DAMAGE_LISTED_MAX)
		verification->damages[verification->damage_count] = *damage;
	verification->damage_count++;
}

static void on_progress(void *context, uint64_t bytes_done)
{
	fc_progress_set(&((struct verification *)context)->progress, bytes_done >> 20);
}

static uint64_t bytes_scanned(const struct verification *verification, int medium)
{
	return verification->scan.media[medium].bytes_kept + verification->scan.media[medium].bytes_dropped;
}

static int verify(struct verification *verification, struct fc_error *error)
{
	struct fc_catalog *catalog = fc_inspect_catalog(verification->inspect);
	verification->check_code = fc_catalog_check(catalog, &verification->check_error);
	fc_catalog_stats(catalog, &verification->stats);
	fc_progress_init(&verification->progress, stderr, fc_clock_real(), "verify, MiB",
			 fc_inspect_bytes(verification->inspect) >> 20);
	int code = fc_inspect_scan(verification->inspect, &verification->scan, error);
	fc_progress_deinit(&verification->progress);
	for (int medium = 0; medium < FC_MEDIUM_COUNT && verification->check_code == FC_OK; medium++)
		if (bytes_scanned(verification, medium) != verification->stats.media[medium].bytes_used)
			verification->check_code = fc_error_set(&verification->check_error, FC_ECORRUPT,
								"%s: segments hold %" PRIu64 " bytes, counted %" PRIu64,
								fc_medium_name((enum fc_medium)medium),
								bytes_scanned(verification, medium),
								verification->stats.media[medium].bytes_used);
	return code;
}

/* ---- text ---- */

static int print_media(const struct verification *verification)
{
	static const char *const titles[] = {"medium",        "segments", "blocks", "used, counted",
					     "used, scanned", "slices",   "read",   "damaged"};
	struct fc_table table;
	char text[FC_HUMAN_BYTES];
	fc_table_init(&table, "lrrrrrrr");
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		fc_table_cell(&table, "%s", titles[i]);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		const struct fc_scan_sums *sums = &verification->scan.media[medium];
		if (!verification->probe->has_arena[medium])
			continue;
		fc_table_cell(&table, "%s", fc_medium_name((enum fc_medium)medium));
		fc_table_cell(&table, "%s", fc_human_count(sums->segments, text));
		fc_table_cell(&table, "%s", fc_human_count(verification->stats.media[medium].blocks, text));
		fc_table_cell(&table, "%s", fc_human_bytes(verification->stats.media[medium].bytes_used, text));
		fc_table_cell(&table, "%s", fc_human_bytes(bytes_scanned(verification, medium), text));
		fc_table_cell(&table, "%s", fc_human_count(sums->slices, text));
		fc_table_cell(&table, "%s", fc_human_bytes(sums->bytes, text));
		fc_table_cell(&table, "%s", fc_human_count(sums->slices_damaged, text));
	}
	int code = fc_table_print(&table, stdout);
	fc_table_deinit(&table);
	return code;
}

static uint64_t listed_count(const struct verification *verification)
{
	return verification->damage_count < DAMAGE_LISTED_MAX ? verification->damage_count : DAMAGE_LISTED_MAX;
}

static void print_damage(const struct verification *verification)
{
	char session[FC_SESSION_TEXT_BYTES];
	for (uint64_t i = 0; i < listed_count(verification); i++) {
		const struct fc_damage *damage = &verification->damages[i];
		printf("damaged: %s session %s turn %" PRIu64 " group %u layer %u block %" PRIu64 " at offset %" PRIu64
		       ": %s\n",
		       fc_medium_name(fc_gva_medium(damage->segment.placed.base)),
		       fc_session_text(damage->segment.session, session), damage->segment.turn, damage->group,
		       damage->layer, damage->block, damage->offset,
		       damage->is_unread ? "the medium failed" : "the checksum does not match");
	}
	if (verification->damage_count > DAMAGE_LISTED_MAX)
		printf("... and %" PRIu64 " more\n", verification->damage_count - DAMAGE_LISTED_MAX);
}

static int print_result(const struct verification *verification)
{
	char text[FC_HUMAN_BYTES];
	int code = print_media(verification);
	print_damage(verification);
	if (verification->stats.dropped_segments > 0)
		printf("%s segments are not whole, or have lost their head; the next open drops them\n",
		       fc_human_count(verification->stats.dropped_segments, text));
	return code;
}

/* ---- JSON ---- */

static json_t *sums_to_json(const struct verification *verification, enum fc_medium medium)
{
	const struct fc_scan_sums *sums = &verification->scan.media[medium];
	const struct fc_medium_stats *stats = &verification->stats.media[medium];
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "segments", (json_int_t)sums->segments, "blocks",
			 (json_int_t)stats->blocks, "bytes_used_counted", (json_int_t)stats->bytes_used,
			 "bytes_used_scanned", (json_int_t)bytes_scanned(verification, (int)medium), "slices",
			 (json_int_t)sums->slices, "bytes_read", (json_int_t)sums->bytes, "slices_damaged",
			 (json_int_t)sums->slices_damaged);
}

static json_t *damage_to_json(const struct fc_damage *damage)
{
	char session[FC_SESSION_TEXT_BYTES];
	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:b}", "medium",
			 fc_medium_name(fc_gva_medium(damage->segment.placed.base)), "session",
			 fc_session_text(damage->segment.session, session), "turn", (json_int_t)damage->segment.turn,
			 "group", (json_int_t)damage->group, "layer", (json_int_t)damage->layer, "block",
			 (json_int_t)damage->block, "offset", (json_int_t)damage->offset, "unread",
			 (int)damage->is_unread);
}

static json_t *result_to_json(const struct verification *verification)
{
	json_t *list = json_array();
	for (uint64_t i = 0; list != NULL && i < listed_count(verification); i++)
		json_array_append_new(list, damage_to_json(&verification->damages[i]));
	bool is_whole = verification->damage_count == 0 && verification->check_code == FC_OK;
	json_t *object = json_pack("{s:b, s:I, s:I, s:s, s:o}", "whole", (int)is_whole, "slices_damaged",
				   (json_int_t)verification->damage_count, "dropped_segments",
				   (json_int_t)verification->stats.dropped_segments, "accounting",
				   verification->check_code == FC_OK ? "exact" : verification->check_error.text,
				   "damaged", list);
	for (int medium = 0; object != NULL && medium < FC_MEDIUM_COUNT; medium++)
		if (verification->probe->has_arena[medium])
			json_object_set_new(object, fc_medium_name((enum fc_medium)medium),
					    sums_to_json(verification, (enum fc_medium)medium));
	return object;
}

/* ---- the command ---- */

static int judge(const struct verification *verification, struct fc_error *error)
{
	if (verification->check_code != FC_OK)
		return fc_error_set(error, FC_ECORRUPT, "accounting: %s", verification->check_error.text);
	if (verification->damage_count > 0)
		return fc_error_set(error, FC_ECORRUPT,
				    "%" PRIu64 " slices are damaged; what needs them is a miss, and the rest is right",
				    verification->damage_count);
	return FC_OK;
}

int fc_command_verify(const struct fc_config *config, struct fc_error *error)
{
	struct verification verification = {.scan = {.damage_cb = on_damage, .progress_cb = on_progress}};
	int code = fc_closed_store_open(&verification.inspect, config, error);
	if (code != FC_OK)
		return code;
	verification.scan.context = &verification;
	verification.probe = fc_inspect_probe(verification.inspect);
	code = verify(&verification, error);
	if (code == FC_OK && !fc_json_replaces_text(config) && print_result(&verification) != FC_OK)
		code = fc_error_set(error, FC_ENOMEM, "no memory to print the table");
	if (code == FC_OK && config->json_path != NULL)
		code = fc_json_write(config->json_path, result_to_json(&verification), error);
	if (code == FC_OK)
		code = judge(&verification, error);
	fc_inspect_close(verification.inspect);
	return code;
}
