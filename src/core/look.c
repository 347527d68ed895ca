/* Looks after the arenas between commits: a medium finds out at a sync, at the latest, that its arena was removed,
 * replaced or made shorter (media/media.h), and an idle store has none.
 *
 *     asked for --> WANTED --nothing is being looked at--> BEGUN: a sync of each arena --all have ended--> ENDED
 *
 * What is asked for meanwhile begins afterwards, once for all who ask: an answer is never older than the question. A
 * look that takes longer than an I/O may has ended for all who wait, or ask before it returns: with FC_ETIMEOUT. */
#include "core/state.h"

static void begin(struct fc_core *core);

static void on_looked(struct fc_io *io)
{
	struct fc_arena_look *look = fc_container_of(io, struct fc_arena_look, io);
	struct fc_core *core = look->core;
	if (fc_io_code(io) != FC_OK)
		fc_io_explain(look->media, io, &core->look_error);
	if (--core->looks_open > 0)
		return;
	core->looks_ended = fc_max_u64(core->looks_ended, core->looks_begun);
	begin(core);
}

static void submit(struct fc_core *core, struct fc_arena_look *look, struct fc_media *media)
{
	*look = (struct fc_arena_look){.core = core, .media = media, .io = {.op = FC_IO_SYNC, .done_cb = on_looked}};
	core->looks_open++;
	fc_media_submit(media, &look->io);
}

static void begin(struct fc_core *core)
{
	if (core->looks_open > 0 || core->looks_ended == core->looks_wanted)
		return;
	core->looks_begun = core->looks_wanted;
	core->look_begun_ns = fc_core_now_ns(core);
	core->look_error = (struct fc_error){0};
	for (int medium = 0; medium < FC_MEDIUM_COUNT && core->catalog != NULL; medium++) {
		struct fc_media *media = core->opts.catalog.media[medium];
		if (media != NULL && media->is_durable)
			submit(core, &core->looks[medium], media);
	}
	if (core->looks_open == 0)
		core->looks_ended = core->looks_begun;
}

uint64_t fc_core_look(struct fc_core *core)
{
	core->looks_wanted = fc_max_u64(core->looks_begun, core->looks_ended) + 1;
	begin(core);
	return core->looks_wanted;
}

uint64_t fc_core_look_late_ns(const struct fc_core *core)
{
	uint64_t late_ns;
	bool is_waited_for = core->looks_open > 0 && core->looks_ended < core->looks_wanted;
	if (!is_waited_for || fc_add_overflows(core->look_begun_ns, core->opts.io_timeout_ns, &late_ns))
		return UINT64_MAX;
	return late_ns;
}

void fc_core_check_looks(struct fc_core *core, uint64_t now_ns)
{
	if (now_ns < fc_core_look_late_ns(core))
		return;
	fc_error_set(&core->look_error, FC_ETIMEOUT, "an arena does not answer: a sync has not ended for %llu ms",
		     (unsigned long long)core->opts.io_timeout_ns / 1000000);
	core->looks_ended = core->looks_wanted;
}

uint64_t fc_core_looks_ended(const struct fc_core *core)
{
	return core->looks_ended;
}

const struct fc_error *fc_core_look_error(const struct fc_core *core)
{
	return &core->look_error;
}
