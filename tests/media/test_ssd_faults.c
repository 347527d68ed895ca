/* What the kernel does only on bad days: a scripted engine in place of the real one moves no bytes and answers what
 * each test wants. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "media/ssd_internal.h"
#include "media/ssd_world.h"

#define ANSWERS_MAX 8
#define ALL_ASKED INT64_MAX /* answers with what was asked for */

static struct {
	int64_t answers[ANSWERS_MAX]; /* the last one is repeated */
	unsigned answer_count;
	unsigned command_count;
	struct fc_ssd_command commands[ANSWERS_MAX];
	struct fc_link started;
} script;

static void scripted_start(struct fc_ssd *ssd, struct fc_io *io)
{
	(void)ssd;
	if (script.command_count < ANSWERS_MAX && io->op != FC_IO_SYNC)
		script.commands[script.command_count] = fc_ssd_command_of(io);
	fc_list_push(&script.started, &io->link);
}

static void scripted_poll(struct fc_ssd *ssd)
{
	struct fc_link *link;

	while ((link = fc_list_pop(&script.started)) != NULL) {
		struct fc_io *io = fc_container_of(link, struct fc_io, link);
		unsigned at = script.command_count++;
		int64_t answer = script.answers[at < script.answer_count ? at : script.answer_count - 1];
		fc_ssd_ended(ssd, io, answer == ALL_ASKED ? (int64_t)fc_ssd_command_of(io).bytes : answer);
	}
}

static void scripted_wait(struct fc_ssd *ssd, uint64_t timeout_ns)
{
	(void)timeout_ns;
	scripted_poll(ssd);
}

static const struct fc_ssd_engine scripted_engine = {
	.name = "scripted", .start = scripted_start, .poll = scripted_poll, .wait = scripted_wait};

/* Opens for real, then puts the script in the engine's place. Returns the real engine. */
static const struct fc_ssd_engine *use_script(struct ssd_world *world, const int64_t *answers, unsigned answer_count)
{
	if (world->media == NULL)
		world_open(world, (struct fc_ssd_opts){.bytes = ARENA_BYTES});
	struct fc_ssd *ssd = fc_container_of(world->media, struct fc_ssd, media);
	const struct fc_ssd_engine *real = ssd->engine;
	memset(&script, 0, sizeof(script));
	fc_list_init(&script.started);
	memcpy(script.answers, answers, answer_count * sizeof(*answers));
	script.answer_count = answer_count;
	ssd->engine = &scripted_engine;
	return real;
}

static void use_real(struct ssd_world *world, const struct fc_ssd_engine *real)
{
	fc_container_of(world->media, struct fc_ssd, media)->engine = real;
}

/* One I/O of 16 KiB at 64 KiB under the script. */
static int64_t run_scripted(struct ssd_world *world, enum fc_io_op op, const int64_t *answers, unsigned answer_count)
{
	const struct fc_ssd_engine *real = use_script(world, answers, answer_count);
	int64_t result = medium_run(world->media, op, 65536, world->buffer, 16384);
	use_real(world, real);
	return result;
}

/* Or a thread that sleeps on the descriptor would wait for something that is not in flight. */
static void poll_starts_what_came_back_short_before_it_returns(void **state)
{
	struct ssd_world *world = *state;
	const struct fc_ssd_engine *real = use_script(world, (int64_t[]){4096, -EAGAIN, ALL_ASKED}, 3);
	struct medium_io read;

	medium_io_init(&read, FC_IO_READ, 0, world->buffer, 16384);
	fc_media_submit(world->media, &read.io);
	assert_int_equal(fc_media_poll(world->media), 1);
	assert_int_equal(read.io.result, 16384);
	assert_int_equal(script.command_count, 3);
	use_real(world, real);
	fc_media_close(world->media);
}

static void a_short_transfer_goes_on_where_it_stopped(void **state)
{
	struct ssd_world *world = *state;

	assert_int_equal(run_scripted(world, FC_IO_READ, (int64_t[]){4096, 8192, ALL_ASKED}, 3), 16384);
	assert_int_equal(script.command_count, 3);
	assert_int_equal(script.commands[1].offset, 65536 + 4096);
	assert_ptr_equal(script.commands[1].buffer, world->buffer + 4096);
	assert_int_equal(script.commands[1].bytes, 16384 - 4096);
	assert_int_equal(script.commands[2].offset, 65536 + 12288);
	assert_int_equal(script.commands[2].bytes, 4096);
	assert_int_equal(world->media->counters.read_commands, 3);
	assert_int_equal(world->media->counters.bytes_read, 16384);
	assert_int_equal(world->media->counters.errors, 0);
	fc_media_close(world->media);
}

static void a_ragged_transfer_goes_on_at_the_last_aligned_byte(void **state)
{
	struct ssd_world *world = *state;

	assert_int_equal(run_scripted(world, FC_IO_WRITE, (int64_t[]){8192 + 100, ALL_ASKED}, 2), 16384);
	assert_int_equal(script.commands[1].offset, 65536 + 8192);
	assert_int_equal(script.commands[1].bytes, 8192);
	fc_media_close(world->media);
}

static void the_end_of_the_file_is_an_error(void **state)
{
	struct ssd_world *world = *state;

	assert_int_equal(run_scripted(world, FC_IO_READ, (int64_t[]){8192, 0}, 2), FC_EIO);
	assert_int_equal(run_scripted(world, FC_IO_READ, (int64_t[]){100}, 1), FC_EIO);
	assert_int_equal(run_scripted(world, FC_IO_WRITE, (int64_t[]){0}, 1), FC_EIO);
	assert_int_equal(world->media->counters.errors, 3);
	assert_int_equal(world->media->counters.bytes_read, 0);
	assert_int_equal(world->media->counters.bytes_written, 0);
	fc_media_close(world->media);
}

static void interruptions_are_tried_again_but_not_for_ever(void **state)
{
	struct ssd_world *world = *state;

	assert_int_equal(run_scripted(world, FC_IO_READ, (int64_t[]){-EINTR, -EAGAIN, ALL_ASKED}, 3), 16384);
	assert_int_equal(world->media->counters.errors, 0);
	assert_int_equal(run_scripted(world, FC_IO_SYNC, (int64_t[]){-EINTR, 0}, 2), 16384);
	assert_int_equal(run_scripted(world, FC_IO_READ, (int64_t[]){-EAGAIN}, 1), FC_EIO);
	assert_int_equal(script.command_count, 1000);
	assert_int_equal(world->media->counters.errors, 1);
	fc_media_close(world->media);
}

static void errors_are_told_apart_and_counted(void **state)
{
	struct ssd_world *world = *state;

	assert_int_equal(run_scripted(world, FC_IO_WRITE, (int64_t[]){-ENOSPC}, 1), FC_EFULL);
	assert_int_equal(run_scripted(world, FC_IO_WRITE, (int64_t[]){4096, -EDQUOT}, 2), FC_EFULL);
	assert_int_equal(run_scripted(world, FC_IO_READ, (int64_t[]){-EIO}, 1), FC_EIO);
	assert_int_equal(run_scripted(world, FC_IO_SYNC, (int64_t[]){-EIO}, 1), FC_EIO);
	assert_int_equal(world->media->counters.errors, 4);
	fc_media_close(world->media);
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, world_init, world_deinit)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_WORLD(a_short_transfer_goes_on_where_it_stopped),
		WITH_WORLD(a_ragged_transfer_goes_on_at_the_last_aligned_byte),
		WITH_WORLD(poll_starts_what_came_back_short_before_it_returns),
		WITH_WORLD(the_end_of_the_file_is_an_error),
		WITH_WORLD(interruptions_are_tried_again_but_not_for_ever),
		WITH_WORLD(errors_are_told_apart_and_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
