/* Engines: processes that use the store of another one. Each is what store/remote.c makes of a real one, with a
 * simulated network for a socket: it connects, is welcomed, opens a core whose directory is the connection, and
 * connects again when that has ended, after its last write for it has.
 *
 *     (start) --> DOWN --connect--> GREETING --welcome--> UP --cut, end, no answer--> FENCING --writes ended--> DOWN
 *        ^                                                 |
 *        '---------------- killed at any moment -----------'   its writes are adrift, and hold its lock until they land
 */
#include "sim/check.h"

#include "wire/wire.h"

/* ---- the lock ---- */

static bool has_writes(const struct fc_sim_front *front)
{
	const struct fc_sim_medium *medium = front->medium;
	for (uint32_t i = 0; i < medium->flight_count; i++)
		if (medium->flights[i].via == &front->media && medium->flights[i].io->op == FC_IO_WRITE)
			return true;
	return false;
}

/* The daemon may give the lock's reservations to others from now on. */
static void unlock(struct fc_sim *sim, struct fc_sim_engine *engine)
{
	struct fc_sim_connection *fence = engine->fence;
	engine->fence = NULL;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (sim->media[medium] != NULL && has_writes(&engine->fronts[medium]))
			fc_sim_broken(&sim->notes, "engine %u gives back its lock, and still writes", engine->number);
	if (fence->lock == FC_SIM_LOCKED_BY_ENGINE && fence->life == engine->life)
		fence->lock = FC_SIM_UNLOCKED;
	fc_sim_note(&sim->notes, "  engine %llu gives back its lock", engine->number, 0, 0, 0);
}

/* ---- welcome ---- */

static void check_arena(struct fc_sim *sim, enum fc_medium medium, const struct fc_wire_arena *arena)
{
	const struct fc_sim_medium *of = sim->media[medium];
	bool is_same = arena->is_there == (of != NULL);
	if (is_same && of != NULL)
		is_same = arena->bytes <= of->media.bytes && arena->align % of->media.align == 0 &&
			  arena->is_durable == of->media.is_durable;
	if (!is_same)
		fc_sim_broken(&sim->notes, "WELCOME: arena %d is described as %llu bytes, aligned to %u", medium,
			      (unsigned long long)arena->bytes, arena->align);
}

static int on_welcome(void *context, const struct fc_wire_welcome *welcome, struct fc_error *error)
{
	struct fc_sim_engine *engine = context;
	struct fc_sim *sim = engine->process.sim;
	struct fc_sim_space *space = &sim->spaces[engine->space];
	(void)error;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		check_arena(sim, (enum fc_medium)medium, &welcome->arenas[medium]);
	if (space->is_salt_known &&
	    (space->salt.high != welcome->key_salt.high || space->salt.low != welcome->key_salt.low))
		fc_sim_broken(&sim->notes, "WELCOME: another salt of namespace %u", engine->space);
	space->salt = welcome->key_salt;
	space->is_salt_known = true;
	engine->connection->lock = FC_SIM_LOCKED_BY_ENGINE;
	engine->connection->life = engine->life;
	fc_sim_note(&sim->notes, "engine %llu: welcome, client %llu", engine->number, welcome->client, 0, 0);
	return FC_OK;
}

static void ignore_opened(void *context, int code, const struct fc_error *error)
{
	(void)context;
	(void)code;
	(void)error;
}

/* The first welcome of its life says what it needs for its core. Without memory for one it dies. */
static void open_core(struct fc_sim *sim, struct fc_sim_engine *engine)
{
	const struct fc_wire_welcome *welcome = fc_client_welcome(engine->client);
	struct fc_sim_process *process = &engine->process;
	struct fc_core_opts opts;
	fc_sim_core_opts(sim, process, &opts);
	opts.directory = fc_client_directory(engine->client);
	opts.is_ssd_shared = true;
	opts.key_salt = welcome->key_salt;
	opts.catalog.area_bytes_max = welcome->area_bytes_max;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		opts.catalog.media[medium] = sim->media[medium] == NULL ? NULL : &engine->fronts[medium].media;
	int code = fc_core_open(&process->core, &opts, ignore_opened, &process->open_error);
	process->is_opened = code == FC_OK;
	if (code == FC_OK)
		return;
	process->core = NULL;
	if (code != FC_ENOMEM || process->memory.fail_probability == 0)
		fc_sim_broken(&sim->notes, "engine %u: open: %s", engine->number, process->open_error.text);
	fc_sim_engine_kill(sim, engine, sim->settings.retry_ns);
}

/* ---- the beginning and the end of a life ---- */

static void start(struct fc_sim *sim, struct fc_sim_engine *engine)
{
	struct fc_client_opts opts = {
		.alloc = &engine->process.memory.alloc,
		.clock = {fc_sim_now_ns, sim},
		.geometry = &sim->settings.geometry,
		.name_space = fc_sim_space_name(engine->space),
		.program = "simulated engine",
		.reconnect_timeout_ns = sim->settings.reconnect_timeout_ns,
		.answer_timeout_ns = sim->settings.answer_timeout_ns,
		.claim_timeout_ns = sim->settings.core.io_timeout_ns,
		.welcome_cb = on_welcome,
		.context = engine,
	};
	engine->next_try_ns = engine->start_ns = sim->notes.now_ns + 1;
	if (fc_client_open(&engine->client, &opts, NULL) != FC_OK) {
		engine->client = NULL;
		engine->start_ns += sim->settings.retry_ns;
		return;
	}
	engine->life = ++sim->next_life;
	engine->deaf_until_ns = 0;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (sim->media[medium] != NULL)
			fc_sim_front_init(&engine->fronts[medium], sim->media[medium]);
	fc_sim_note(&sim->notes, "engine %llu runs, namespace %llu, life %llu", engine->number, engine->space,
		    engine->life, 0);
}

/* What the kernel still does for a process that is gone keeps its lock. */
static void leave_lock(struct fc_sim_engine *engine, struct fc_sim_connection *connection)
{
	if (connection == NULL)
		return;
	if (connection->lock == FC_SIM_LOCKED_BY_ENGINE && connection->life == engine->life)
		connection->lock = FC_SIM_LOCKED_BY_WRITES;
	connection->engine = NULL;
}

static void end_life(struct fc_sim *sim, struct fc_sim_engine *engine, uint64_t away_ns)
{
	leave_lock(engine, engine->connection);
	leave_lock(engine, engine->fence);
	engine->connection = engine->fence = NULL;
	engine->client = NULL;
	engine->disturbances++;
	engine->start_ns = sim->notes.now_ns + away_ns;
}

/* ---- stopped ---- */

static void look_at_media(struct fc_sim *sim, struct fc_sim_engine *engine, bool is_stopped)
{
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (sim->media[medium] != NULL)
			fc_sim_medium_stop(sim->media[medium], &engine->fronts[medium].media, is_stopped);
}

void fc_sim_engine_stop(struct fc_sim *sim, struct fc_sim_engine *engine, uint64_t until_ns)
{
	if (engine->client == NULL)
		return;
	engine->stopped_until_ns = until_ns;
	engine->disturbances++;
	look_at_media(sim, engine, true);
	fc_sim_note(&sim->notes, "engine %llu is stopped until %llu", engine->number, until_ns, 0, 0);
}

void fc_sim_engine_resume(struct fc_sim *sim, struct fc_sim_engine *engine)
{
	if (engine->stopped_until_ns == 0)
		return;
	engine->stopped_until_ns = 0;
	engine->disturbances++;
	look_at_media(sim, engine, false);
	fc_sim_note(&sim->notes, "engine %llu goes on", engine->number, 0, 0, 0);
}

void fc_sim_engine_kill(struct fc_sim *sim, struct fc_sim_engine *engine, uint64_t away_ns)
{
	if (engine->client == NULL)
		return;
	fc_sim_engine_resume(sim, engine);
	fc_sim_note(&sim->notes, "engine %llu is killed", engine->number, 0, 0, 0);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (sim->media[medium] != NULL)
			fc_sim_front_kill(&engine->fronts[medium], engine->life);
	if (engine->connection != NULL) {
		fc_sim_stream_cut(&engine->connection->up, &sim->network);
		fc_sim_stream_deinit(&engine->connection->down);
	}
	end_life(sim, engine, away_ns);
	sim->cuts_before += fc_sim_process_cuts(&engine->process);
	fc_sim_process_forget(sim, &engine->process);
	sim->counts.engine_crashes++;
}

void fc_sim_engine_close(struct fc_sim *sim, struct fc_sim_engine *engine)
{
	if (engine->client == NULL)
		return;
	fc_sim_engine_resume(sim, engine);
	if (engine->connection != NULL)
		fc_sim_engine_cut(sim, engine);
	if (engine->fence != NULL && !fc_client_may_unlock(engine->client))
		fc_sim_broken(&sim->notes, "close: engine %u cannot give back its lock", engine->number);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (sim->media[medium] != NULL &&
		    fc_sim_medium_flights(sim->media[medium], &engine->fronts[medium].media) > 0)
			fc_sim_broken(&sim->notes, "close: engine %u has commands under way", engine->number);
	sim->cuts_before += fc_sim_process_cuts(&engine->process);
	fc_core_free(engine->process.core);
	engine->process.core = NULL;
	engine->process.is_opened = false;
	fc_client_free(engine->client);
	if (engine->process.memory.bytes > 0)
		fc_sim_broken(&sim->notes, "close: engine %u does not give back %llu bytes of memory", engine->number,
			      (unsigned long long)engine->process.memory.bytes);
	end_life(sim, engine, FC_SIM_NEVER_NS - sim->notes.now_ns);
}

/* ---- the connection ---- */

/* This end is closed; what has been sent arrives, or, when it is cut, some of it. */
static void disconnect(struct fc_sim *sim, struct fc_sim_engine *engine, bool is_cut)
{
	struct fc_sim_connection *connection = engine->connection;
	fc_sim_note(&sim->notes, "engine %llu is disconnected", engine->number, 0, 0, 0);
	if (is_cut)
		fc_sim_stream_cut(&connection->up, &sim->network);
	else
		fc_sim_stream_end(&connection->up, &sim->network);
	fc_sim_stream_deinit(&connection->down);
	connection->engine = NULL;
	engine->connection = NULL;
	engine->fence = connection;
	engine->disturbances++;
	engine->next_try_ns = sim->notes.now_ns + sim->settings.retry_ns;
	fc_client_disconnected(engine->client);
}

void fc_sim_engine_cut(struct fc_sim *sim, struct fc_sim_engine *engine)
{
	if (engine->connection != NULL && engine->stopped_until_ns == 0)
		disconnect(sim, engine, true);
}

static unsigned transmit(struct fc_sim *sim, struct fc_sim_engine *engine)
{
	struct fc_wire_buffer *output = fc_client_output(engine->client);
	uint64_t sent = fc_sim_stream_send(&engine->connection->up, &sim->network, output->bytes, output->used);
	fc_wire_buffer_drop(output, sent);
	return sent > 0;
}

static void check_refusal(struct fc_sim *sim, const struct fc_sim_engine *engine, const struct fc_error *error)
{
	bool is_allowed = error->code == FC_ENOMEM || error->code == FC_EAGAIN || error->code == FC_ELIMIT;
	if (!is_allowed || fc_client_state(engine->client) == FC_CLIENT_REFUSED)
		fc_sim_broken(&sim->notes, "engine %u: %s", engine->number, error->text);
}

static unsigned receive(struct fc_sim *sim, struct fc_sim_engine *engine)
{
	struct fc_sim_stream *down = &engine->connection->down;
	struct fc_error error = {0};
	uint64_t count = 0;
	if (engine->deaf_until_ns > sim->notes.now_ns)
		return 0;
	if (fc_sim_stream_is_over(down, &sim->network)) {
		disconnect(sim, engine, false);
		return 1;
	}
	count = fc_sim_stream_due(down, &sim->network);
	if (count == 0)
		return 0;
	if (fc_client_received(engine->client, down->bytes, count, &error) != FC_OK)
		check_refusal(sim, engine, &error);
	fc_sim_stream_drop(down);
	if (fc_client_state(engine->client) == FC_CLIENT_UP && engine->process.core == NULL)
		open_core(sim, engine);
	return 1;
}

static unsigned connect_again(struct fc_sim *sim, struct fc_sim_engine *engine)
{
	if (engine->fence != NULL && fc_client_may_unlock(engine->client)) {
		unlock(sim, engine);
		return 1;
	}
	if (engine->fence != NULL || sim->notes.now_ns < engine->next_try_ns)
		return 0;
	engine->next_try_ns = sim->notes.now_ns + sim->settings.retry_ns;
	struct fc_sim_connection *connection = fc_sim_accept(sim, (int32_t)engine->number + 1);
	if (connection == NULL)
		return 0;
	connection->engine = engine;
	engine->connection = connection;
	fc_client_connected(engine->client);
	return 1;
}

static unsigned step(struct fc_sim *sim, struct fc_sim_engine *engine)
{
	unsigned count = 0;
	if (engine->stopped_until_ns > sim->notes.now_ns)
		return 0;
	fc_sim_engine_resume(sim, engine);
	if (engine->client == NULL && engine->start_ns <= sim->notes.now_ns)
		start(sim, engine);
	if (engine->client != NULL && engine->connection == NULL)
		count += connect_again(sim, engine);
	if (engine->connection != NULL)
		count += transmit(sim, engine);
	if (engine->connection != NULL)
		count += receive(sim, engine);
	if (engine->connection != NULL && fc_client_wants_close(engine->client)) {
		disconnect(sim, engine, false);
		count++;
	}
	return count;
}

unsigned fc_sim_engines_step(struct fc_sim *sim)
{
	unsigned count = 0;
	for (uint32_t i = 0; i < sim->settings.engine_count; i++)
		count += step(sim, &sim->engines[i]);
	return count;
}

static bool is_output_wanted(const struct fc_sim *sim, const struct fc_sim_engine *engine)
{
	const struct fc_sim_stream *up = &engine->connection->up;
	return fc_client_output(engine->client)->used > 0 && up->piece_count < FC_SIM_PIECES_MAX &&
	       up->used < sim->network.stream_bytes_max;
}

bool fc_sim_engines_are_pending(const struct fc_sim *sim)
{
	for (uint32_t i = 0; i < sim->settings.engine_count; i++) {
		const struct fc_sim_engine *engine = &sim->engines[i];
		if (engine->client == NULL || engine->stopped_until_ns != 0)
			continue;
		if (engine->connection != NULL &&
		    (fc_client_wants_close(engine->client) || is_output_wanted(sim, engine)))
			return true;
		if (engine->fence != NULL && fc_client_may_unlock(engine->client))
			return true;
	}
	return false;
}

static uint64_t next_ns(const struct fc_sim *sim, const struct fc_sim_engine *engine)
{
	(void)sim;
	if (engine->client == NULL)
		return engine->start_ns;
	if (engine->stopped_until_ns != 0)
		return engine->stopped_until_ns;
	if (engine->connection == NULL)
		return engine->fence == NULL ? engine->next_try_ns : UINT64_MAX;
	return fc_max_u64(fc_sim_stream_next_ns(&engine->connection->down), engine->deaf_until_ns);
}

uint64_t fc_sim_engines_next_ns(const struct fc_sim *sim)
{
	uint64_t next = UINT64_MAX;
	for (uint32_t i = 0; i < sim->settings.engine_count; i++)
		next = fc_min_u64(next, next_ns(sim, &sim->engines[i]));
	return next;
}

/* ---- from outside ---- */

void fc_sim_engines_init(struct fc_sim *sim, uint64_t seed)
{
	for (uint32_t i = 0; i < sim->settings.engine_count; i++) {
		struct fc_sim_engine *engine = &sim->engines[i];
		engine->number = i;
		engine->space = i % sim->settings.space_count;
		engine->process.sim = sim;
		fc_sim_memory_init(&engine->process.memory, &sim->notes, fc_random_split(&seed));
		fc_sim_device_init(&engine->process.device, &sim->notes, &engine->process.memory,
				   fc_random_split(&seed));
		engine->start_ns = fc_random_split(&seed) % (sim->settings.retry_ns + 1);
	}
}

/* What it names is sound, or was: the daemon is to find that out. */
void fc_sim_engine_lie(struct fc_sim *sim, struct fc_sim_client *client)
{
	const struct fc_sim_engine *engine = fc_sim_engine_of(sim, client->process);
	const struct fc_core_load *load = client->load;
	if (load == NULL || !load->path.is_leased || !fc_sim_is_undisturbed(sim, client))
		return;
	uint32_t placed = (uint32_t)fc_random_below(&sim->random, load->path.placed_count);
	struct fc_wire_damage damage = {
		.placed = placed,
		.entry = fc_random_below(&sim->random, load->path.placed[placed].shape->entry_count),
		.is_checksum = true,
	};
	fc_sim_note(&sim->notes, "engine %llu reports damage, segment %llu, entry %llu", engine->number, placed,
		    damage.entry, 0);
	if (fc_wire_put_damage(fc_client_output(engine->client), load->path.request, &damage) != FC_OK)
		sim->counts.refused++;
}
