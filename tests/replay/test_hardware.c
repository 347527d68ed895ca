/* Profiles are read strictly, the ones that come with the program are complete, and their parts take the time that is
 * worked out here by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "replay/machine.h"
#include "replay/series.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void profiles_of_the_program_are_complete(void **state)
{
	static const char *const names[] = {"8xb200-deepseek-v4-flash", "8xh100-llama-3.1-70b", "this-machine"};
	(void)state;
	for (size_t i = 0; i < fc_array_len(names); i++) {
		struct fc_hardware hardware;
		struct fc_error error = {0};
		if (fc_hardware_load(&hardware, names[i], &error) != FC_OK)
			fail_msg("%s", error.text);
		assert_string_equal(hardware.name, names[i]);
		assert_true(strcmp(names[i], "this-machine") == 0 || strstr(names[i], hardware.model) != NULL);
		fc_hardware_deinit(&hardware);
	}
}

/* The text of a whole profile, with one line replaced: NULL leaves `line` out. */
static void write_profile(const char *path, const char *key, const char *line)
{
	char source[4096], text[256];
	const char *folder = getenv("FC_SOURCE_DIR");
	snprintf(source, sizeof(source), "%s/profiles/8xb200-deepseek-v4-flash.yaml", folder == NULL ? "." : folder);
	FILE *from = fopen(source, "r"), *to = fopen(path, "w");
	assert_non_null(from);
	assert_non_null(to);
	while (fgets(text, sizeof(text), from) != NULL) {
		bool is_replaced = strncmp(text, key, strlen(key)) == 0 && text[strlen(key)] == ':';
		if (!is_replaced)
			fputs(text, to);
		else if (line != NULL)
			fprintf(to, "%s\n", line);
	}
	fclose(from);
	fclose(to);
}

static void a_profile_is_read_strictly(void **state)
{
	static const struct {
		const char *key, *line, *text;
	} cases[] = {
		{"workers", NULL, "\"workers\" is missing"},
		{"workers", "workers: many", "workers: \"many\" does not fit"},
		{"workers", "workers: 0", "workers: \"0\" does not fit"},
		{"workers", "workers: 4\nworkers: 4", "\"workers\" stands twice"},
		{"workers", "wrokers: 4", "a profile has no \"wrokers\""},
		{"workers", "workers: [4]", "not a list"},
		{"ssd_align_bytes", "ssd_align_bytes: 1000", "a power of two"},
		{"ssd_transfer_bytes", "ssd_transfer_bytes: 5000", "a multiple of 4096"},
		{"ssd_read_curve", "ssd_read_curve: 4096", "ssd_read_curve: \"4096\" does not fit; none, or up to 16"},
		{"ssd_read_curve", "ssd_read_curve: 4096=1000000,", "does not fit"},
		{"ssd_read_curve", "ssd_read_curve: 4096=1000000,4096=2000000", "does not fit"},
		{"ssd_read_curve", "ssd_read_curve: 4096=-5", "does not fit"},
		{"ssd_read_curve", "ssd_read_curve: 4096=99999999999999999999", "does not fit"},
	};
	char path[] = "/tmp/flatcake-profile-XXXXXX";
	int fd = mkstemp(path);
	(void)state;
	assert_true(fd >= 0);
	close(fd);
	for (size_t i = 0; i < fc_array_len(cases); i++) {
		struct fc_hardware hardware;
		struct fc_error error = {0};
		write_profile(path, cases[i].key, cases[i].line);
		assert_int_equal(fc_hardware_load(&hardware, path, &error), FC_EINVAL);
		if (strstr(error.text, cases[i].text) == NULL)
			fail_msg("%s", error.text);
		assert_non_null(strstr(error.text, path));
		fc_hardware_deinit(&hardware);
	}
	unlink(path);
}

static void an_unknown_profile_is_answered_with_the_known_ones(void **state)
{
	struct fc_hardware hardware;
	struct fc_error error = {0};
	(void)state;
	assert_int_equal(fc_hardware_load(&hardware, "9xb200", &error), FC_ENOENT);
	assert_non_null(strstr(error.text, "8xb200-deepseek-v4-flash"));
	fc_hardware_deinit(&hardware);
}

static void prefill_and_decoding_follow_their_formulas(void **state)
{
	struct fc_hardware hardware = {.prefill_tokens_per_s = 1000,
				       .prefill_context_tokens = 2000,
				       .decode_step_ns = 1000,
				       .decode_request_ns = 10,
				       .hbm_bytes_per_s = 1000000000};
	(void)state;
	assert_int_equal(fc_hardware_prefill_ns(&hardware, 100, 0), 102500000);    /* 0.1 s x (1 + 50 / 2000) */
	assert_int_equal(fc_hardware_prefill_ns(&hardware, 100, 1950), 200000000); /* x (1 + 2000 / 2000) */
	assert_int_equal(fc_hardware_decode_ns(&hardware, 3, 500), 1000 + 30 + 500);
	assert_int_equal(fc_hardware_decode_ns(&hardware, 0, 0), 0);
}

static void a_pipe_serves_one_after_the_other(void **state)
{
	struct fc_pipe pipe = {.bytes_per_s = 1000000000};
	(void)state;
	assert_int_equal(fc_pipe_move(&pipe, 100, 50), 150);
	assert_int_equal(fc_pipe_move(&pipe, 120, 10), 160); /* waits for the first */
	assert_int_equal(fc_pipe_move(&pipe, 500, 10), 510); /* was idle */
	assert_int_equal(pipe.busy_ns, 70);
	assert_int_equal(fc_transfer_ns(1, 3000000000u), 1); /* rounded up */
}

static void reads_are_striped_over_the_drives(void **state)
{
	struct fc_hardware hardware = {.workers = 1,
				       .ssd_count = 2,
				       .ssd_stripe_bytes = 4096,
				       .ssd_read_bytes_per_s = 4096000000, /* a stripe in 1 us */
				       .ssd_write_bytes_per_s = 2048000000,
				       .ssd_command_ns = 100,
				       .ssd_latency_ns = 10000,
				       .dram_bytes_per_s = 1000};
	struct fc_world world;
	struct fc_machine machine;
	(void)state;
	assert_int_equal(fc_world_init(&world), FC_OK);
	assert_int_equal(fc_machine_init(&machine, &hardware, &world), FC_OK);
	/* two stripes on two drives at once */
	assert_int_equal(fc_machine_read(&machine, 0, 0, 8192, 0), 1000 + 100 + 10000);
	/* three: the first drive has two more */
	assert_int_equal(fc_machine_read(&machine, 0, 8192, 12288, 0), 1100 + 2 * 1100 + 10000);
	assert_int_equal(machine.read_commands, 5);
	/* the second drive, idle since 2200: one stripe as four commands */
	assert_int_equal(fc_machine_read(&machine, 5000, 4096, 4096, 1024), 5000 + 1000 + 400 + 10000);
	assert_int_equal(machine.read_commands, 9);
	assert_int_equal(fc_machine_write(&machine, 20000, 0, 4096, false), 20000 + 2000 + 100 + 10000);
	assert_int_equal(machine.bytes_read, 8192 + 12288 + 4096);
	fc_machine_deinit(&machine);
	fc_world_deinit(&world);
}

static void a_drive_is_faster_with_more_under_way(void **state)
{
	struct fc_hardware hardware = {.workers = 1,
				       .ssd_count = 1,
				       .ssd_stripe_bytes = 1 << 20,
				       .ssd_read_bytes_per_s = 1, /* the curve's speeds count instead */
				       .ssd_write_bytes_per_s = 1000000000,
				       .ssd_latency_ns = 500,
				       .dram_bytes_per_s = 1000};
	hardware.read_curve =
		(struct fc_speed_curve){.bytes = {1000, 4000}, .bytes_per_s = {1000000000, 2000000000}, .count = 2};
	struct fc_world world;
	struct fc_machine machine;
	(void)state;
	assert_int_equal(fc_speed_at(&hardware.read_curve, 1), 1000000000);
	assert_int_equal(fc_speed_at(&hardware.read_curve, 2000), 1500000000); /* half of the way from 1000 to 4000 */
	assert_int_equal(fc_speed_at(&hardware.read_curve, 1 << 20), 2000000000);
	assert_int_equal(fc_world_init(&world), FC_OK);
	assert_int_equal(fc_machine_init(&machine, &hardware, &world), FC_OK);
	assert_int_equal(fc_machine_read(&machine, 0, 0, 1000, 0), 1000);         /* alone */
	assert_int_equal(fc_machine_read(&machine, 0, 0, 1000, 0), 1000 + 667);   /* beside the first */
	assert_int_equal(fc_machine_read(&machine, 5000, 0, 100, 0), 5000 + 500); /* no less than the latency */
	for (uint64_t i = 0; i < 2 * FC_DRIVE_COMMANDS_MAX; i++)
		(void)fc_machine_read(&machine, 6000, 0, 10, 0);
	assert_int_equal(machine.drives[0].count, FC_DRIVE_COMMANDS_MAX);
	assert_int_equal(machine.drives[0].bytes, 10 * FC_DRIVE_COMMANDS_MAX);
	fc_machine_deinit(&machine);
	fc_world_deinit(&world);
}

static void a_series_doubles_its_intervals(void **state)
{
	struct fc_series series = {0};
	(void)state;
	fc_series_add(&series, 0, 5);
	fc_series_add(&series, 255 * 1000000ull, 7);
	assert_int_equal(series.interval_ns, 1000000);
	assert_int_equal(series.amounts[255], 7);
	fc_series_add(&series, 256 * 1000000ull, 11);
	assert_int_equal(series.interval_ns, 2000000);
	assert_int_equal(series.amounts[0], 5);
	assert_int_equal(series.amounts[127], 7);
	assert_int_equal(series.amounts[128], 11);
}

struct bell {
	struct fc_world_event event;
	int *rung;
	int number;
};

static void ring(struct fc_world_event *event)
{
	struct bell *bell = fc_container_of(event, struct bell, event);
	*bell->rung = *bell->rung * 10 + bell->number;
}

static void events_of_one_moment_fire_in_the_order_of_scheduling(void **state)
{
	struct fc_world world;
	struct bell bells[4];
	int rung = 0;
	(void)state;
	assert_int_equal(fc_world_init(&world), FC_OK);
	for (int i = 0; i < 4; i++)
		bells[i] = (struct bell){.event.fire = ring, .rung = &rung, .number = i + 1};
	fc_world_at(&world, &bells[0].event, 50);
	fc_world_at(&world, &bells[1].event, 20);
	fc_world_at(&world, &bells[2].event, 20);
	fc_world_at(&world, &bells[3].event, 10);
	fc_world_at(&world, &bells[1].event, 20); /* moved: behind the third */
	fc_world_cancel(&world, &bells[3].event);
	while (fc_world_step(&world))
		;
	assert_int_equal(rung, 321);
	assert_int_equal(world.now_ns, 50);
	fc_world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profiles_of_the_program_are_complete),
		cmocka_unit_test(a_profile_is_read_strictly),
		cmocka_unit_test(an_unknown_profile_is_answered_with_the_known_ones),
		cmocka_unit_test(prefill_and_decoding_follow_their_formulas),
		cmocka_unit_test(a_pipe_serves_one_after_the_other),
		cmocka_unit_test(reads_are_striped_over_the_drives),
		cmocka_unit_test(a_drive_is_faster_with_more_under_way),
		cmocka_unit_test(a_series_doubles_its_intervals),
		cmocka_unit_test(events_of_one_moment_fire_in_the_order_of_scheduling),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
