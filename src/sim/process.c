/* Time, and the process that holds the store: it opens, steps as virtual time goes on, is restarted in order, or is
 * killed. */
#include "sim/check.h"

#include <string.h>

#define STEPS_MAX 20000u
#define EVENTS_MAX 100000u
#define TURNS_MAX 3000000u
#define OPENS_FAULTY_MAX 3u
#define OPENS_MAX 8u
#define SECOND_NS 1000000000ull
#define OPEN_LIMIT_NS (600 * SECOND_NS)

/* ---- time ---- */

uint64_t fc_sim_now_ns(void *context)
{
	const struct fc_sim *sim = context;
	return sim->notes.now_ns + sim->clock_skew_ns;
}

uint64_t fc_sim_fired(const struct fc_sim *sim)
{
	uint64_t fired = sim->faults_fired + sim->holder.memory.failed_count;
	for (uint32_t i = 0; i < sim->settings.engine_count; i++)
		fired += sim->engines[i].process.memory.failed_count;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (sim->media[medium] != NULL)
			fired += sim->media[medium]->fired_count;
	return fired;
}

/* When a process wants to be woken, by the clock of the run. */
static uint64_t wake_ns(const struct fc_sim *sim, const struct fc_sim_process *process)
{
	uint64_t wake = process->is_opened ? fc_core_wake_ns(process->core) : UINT64_MAX;
	if (wake == UINT64_MAX)
		return UINT64_MAX;
	return wake > sim->clock_skew_ns ? wake - sim->clock_skew_ns : 0;
}

static uint64_t next_event_ns(const struct fc_sim *sim)
{
	uint64_t next_ns = fc_min_u64(fc_sim_device_next_ns(&sim->holder.device), wake_ns(sim, &sim->holder));
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (sim->media[medium] != NULL)
			next_ns = fc_min_u64(next_ns, fc_sim_medium_next_ns(sim->media[medium]));
	if (!sim->is_wired)
		return next_ns;
	for (uint32_t i = 0; i < sim->settings.engine_count; i++) {
		const struct fc_sim_process *process = &sim->engines[i].process;
		if (sim->engines[i].stopped_until_ns != 0)
			continue;
		next_ns = fc_min_u64(next_ns, fc_sim_device_next_ns(&process->device));
		next_ns = fc_min_u64(next_ns, wake_ns(sim, process));
	}
	next_ns = fc_min_u64(next_ns, fc_sim_engines_next_ns(sim));
	return fc_min_u64(next_ns, fc_sim_daemon_next_ns(sim));
}

static unsigned step_process(struct fc_sim *sim, struct fc_sim_process *process)
{
	if (!process->is_opened)
		return 0;
	fc_sim_check_before_step(sim, process);
	unsigned count = fc_core_step(process->core);
	sim->counts.steps++;
	fc_sim_check_after_step(sim, process);
	if (count == 0)
		fc_sim_check_liveness(sim, process);
	fc_sim_clients_settle(sim, process);
	return count;
}

/* A write that its process had given up, or had died over, has landed where it may not belong to anybody any more. */
static void note_strays(struct fc_sim *sim)
{
	uint64_t strays = 0;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		strays += sim->media[medium] == NULL ? 0 : sim->media[medium]->stray_count;
	if (strays == sim->strays_seen)
		return;
	sim->strays_seen = strays;
	sim->payload_flips++;
	sim->losses++;
	sim->faults_fired++;
	sim->has_structure_flips = true;
}

/* All but the holder's core. */
static unsigned step_wires(struct fc_sim *sim)
{
	unsigned count = 0;
	if (!sim->is_wired)
		return 0;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (sim->media[medium] != NULL)
			count += fc_sim_medium_land(sim->media[medium]);
	note_strays(sim);
	count += fc_sim_daemon_step(sim);
	count += fc_sim_engines_step(sim);
	for (uint32_t i = 0; i < sim->settings.engine_count; i++)
		if (sim->engines[i].stopped_until_ns == 0)
			count += step_process(sim, &sim->engines[i].process);
	note_strays(sim);
	return count + fc_sim_engines_are_pending(sim);
}

/* An engine may ask for something that has already waited too long, as its connection has. */
static unsigned are_woken(const struct fc_sim *sim)
{
	unsigned count = 0;
	for (uint32_t i = 0; i < sim->settings.engine_count; i++)
		count += sim->engines[i].stopped_until_ns == 0 &&
			 wake_ns(sim, &sim->engines[i].process) <= sim->notes.now_ns;
	return count;
}

/* What goes on for ever goes on in turns of these loops, at one time or through the years of virtual time, and is a
 * finding at the same turn on every machine. (What never leaves one call of the core is left to the campaign's
 * watchdog.) */
static void count_turn(struct fc_sim *sim)
{
	if (++sim->turns > TURNS_MAX)
		fc_sim_broken(&sim->notes, "the run does not end: %u turns since the last operation", TURNS_MAX);
}

void fc_sim_step(struct fc_sim *sim)
{
	for (unsigned steps = 0;; steps++) {
		count_turn(sim);
		if (steps == STEPS_MAX)
			fc_sim_broken(&sim->notes, "the core is busy for ever: %u steps at one time", STEPS_MAX);
		unsigned count = step_wires(sim);
		count += step_process(sim, &sim->holder);
		if (count + are_woken(sim) == 0)
			break;
	}
	uint64_t wake = wake_ns(sim, &sim->holder);
	if (wake <= sim->notes.now_ns)
		fc_sim_broken(&sim->notes, "the core has nothing to do, and asks to be woken %llu ns ago",
			      (unsigned long long)(sim->notes.now_ns - wake));
}

void fc_sim_advance(struct fc_sim *sim, uint64_t duration_ns)
{
	uint64_t end_ns = sim->notes.now_ns + duration_ns;
	for (;;) {
		fc_sim_step(sim);
		uint64_t next_ns = next_event_ns(sim);
		if (next_ns > end_ns)
			break;
		sim->notes.now_ns = fc_max_u64(next_ns, sim->notes.now_ns);
	}
	sim->notes.now_ns = end_ns;
	fc_sim_step(sim);
}

bool fc_sim_advance_until(struct fc_sim *sim, bool (*is_reached)(struct fc_sim *sim), uint64_t limit_ns)
{
	uint64_t end_ns = sim->notes.now_ns + limit_ns;
	for (unsigned events = 0; events < EVENTS_MAX; events++) {
		fc_sim_step(sim);
		if (is_reached(sim))
			return true;
		uint64_t next_ns = next_event_ns(sim);
		if (next_ns > end_ns)
			return false;
		sim->notes.now_ns = fc_max_u64(next_ns, sim->notes.now_ns);
	}
	return false; /* busy, but for nobody */
}

/* ---- opening ---- */

static void on_opened(void *context, int code, const struct fc_error *error)
{
	struct fc_sim *sim = context; /* the holder's; an engine's core is open at once */
	if (sim->holder.is_opened)
		fc_sim_broken(&sim->notes, "open: its end is told twice");
	sim->holder.is_opened = true;
	sim->holder.open_code = code;
	sim->holder.open_error = *error;
}

static void on_loss(void *context, struct fc_session_id id)
{
	struct fc_sim *sim = context;
	sim->losses++;
	if (sim->lost_count < FC_SIM_LOST_MAX)
		sim->lost[sim->lost_count++] = id;
	fc_sim_note(&sim->notes, "  session %llx:%llx is lost in part or whole", id.high, id.low, 0, 0);
}

/* What all processes have alike. */
void fc_sim_core_opts(struct fc_sim *sim, struct fc_sim_process *process, struct fc_core_opts *opts)
{
	*opts = sim->settings.core;
	opts->catalog.geometry = &sim->settings.geometry;
	opts->catalog.owners = sim->settings.owners;
	opts->catalog.alloc = &process->memory.alloc;
	opts->device = &process->device.device;
	opts->clock = (struct fc_clock){fc_sim_now_ns, sim};
	opts->event_cb = fc_sim_on_event;
	opts->context = sim;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		opts->catalog.media[medium] = sim->media[medium] == NULL ? NULL : &sim->media[medium]->media;
}

/* Steps until the open has ended; false when the process was killed on the way. */
static bool wait_for_open(struct fc_sim *sim, uint64_t kill_after)
{
	uint64_t limit_ns = sim->notes.now_ns + OPEN_LIMIT_NS;
	for (uint64_t events = 0; !sim->holder.is_opened; events++) {
		if (events == kill_after)
			return false;
		count_turn(sim);
		sim->counts.steps++;
		if (fc_core_step(sim->holder.core) + step_wires(sim) > 0)
			continue;
		uint64_t next_ns = next_event_ns(sim);
		if (next_ns > limit_ns)
			fc_sim_broken(&sim->notes, "open: does not end");
		sim->notes.now_ns = fc_max_u64(next_ns, sim->notes.now_ns);
	}
	return true;
}

void fc_sim_process_forget(struct fc_sim *sim, struct fc_sim_process *process)
{
	fc_sim_clients_forget(sim, process);
	fc_sim_device_kill(&process->device);
	fc_sim_memory_forget(&process->memory);
	process->core = NULL;
	process->is_opened = false;
}

static void kill_holder(struct fc_sim *sim, bool is_power)
{
	for (uint32_t i = 0; i < sim->settings.engine_count && is_power; i++)
		fc_sim_engine_kill(sim, &sim->engines[i], 0);
	if (sim->is_wired)
		fc_sim_daemon_kill(sim);
	fc_sim_clients_forget(sim, &sim->holder);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (sim->media[medium] != NULL && is_power)
			fc_sim_medium_power_off(sim->media[medium]);
		else if (sim->media[medium] != NULL)
			fc_sim_medium_kill(sim->media[medium]);
	fc_sim_process_forget(sim, &sim->holder);
	sim->counts.crashes++;
}

static void check_nothing_is_left(struct fc_sim *sim, const char *when)
{
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		const struct fc_sim_medium *of = sim->media[medium];
		uint32_t flights = of == NULL ? 0 : fc_sim_medium_flights(of, &of->media);
		if (flights > 0)
			fc_sim_broken(&sim->notes, "%s: %u commands are still under way", when, flights);
	}
	if (sim->holder.device.flight_count > 0)
		fc_sim_broken(&sim->notes, "%s: copies are still under way", when);
	if (sim->holder.memory.bytes > 0)
		fc_sim_broken(&sim->notes, "%s: %llu bytes of memory are not given back", when,
			      (unsigned long long)sim->holder.memory.bytes);
}

static void set_faults(struct fc_sim *sim, bool are_on)
{
	double allocation = are_on ? sim->faults.probability[FC_FAULT_ALLOCATION] / 4 : 0;
	sim->holder.memory.fail_probability = allocation;
	for (uint32_t i = 0; i < sim->settings.engine_count; i++)
		sim->engines[i].process.memory.fail_probability = allocation;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (sim->media[medium] != NULL && are_on)
			sim->media[medium]->is_healed = false;
		else if (sim->media[medium] != NULL)
			fc_sim_medium_heal(sim->media[medium]);
}

#define KILLED 1

static int open_once(struct fc_sim *sim, uint64_t kill_after, bool is_power)
{
	struct fc_core_opts opts;
	fc_sim_core_opts(sim, &sim->holder, &opts);
	sim->holder.is_opened = false;
	sim->holder.open_error = (struct fc_error){0};
	int code = fc_core_open(&sim->holder.core, &opts, on_opened, &sim->holder.open_error);
	if (code != FC_OK) {
		sim->holder.core = NULL;
		check_nothing_is_left(sim, "an open that was refused");
		return code;
	}
	if (!wait_for_open(sim, kill_after)) {
		fc_sim_note(&sim->notes, "killed while it opens", 0, 0, 0, 0);
		kill_holder(sim, is_power);
		return KILLED;
	}
	if (sim->holder.open_code == FC_OK)
		return FC_OK;
	fc_core_free(sim->holder.core);
	sim->holder.core = NULL;
	sim->holder.is_opened = false;
	check_nothing_is_left(sim, "an open that failed");
	return sim->holder.open_code;
}

static void check_open_code(struct fc_sim *sim, int code, bool has_fired)
{
	bool is_failure = code == FC_EIO || code == FC_EFULL || code == FC_ENOMEM;
	bool is_allowed =
		code == KILLED || (is_failure && has_fired) || (code == FC_EFORMAT && sim->has_superblock_flips);
	if (!is_allowed)
		fc_sim_broken(&sim->notes, "open: %s (%s)", fc_code_text(code), sim->holder.open_error.text);
	if (code != FC_EFORMAT)
		return;
	/* Both superblocks are damaged: said by name, and nothing changed. The operator starts anew. */
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (sim->media[medium] != NULL)
			fc_sim_medium_blank(sim->media[medium]);
	sim->payload_flips += sim->is_wired; /* engines may still be reading what was there */
}

static uint64_t choose_kill(struct fc_sim *sim, bool are_faults_on)
{
	double probability = sim->faults.probability[FC_FAULT_CRASH] + sim->faults.probability[FC_FAULT_POWER];
	if (!are_faults_on || !fc_sim_happens(&sim->breakage, 4 * probability))
		return UINT64_MAX;
	return fc_random_below(&sim->breakage, 40);
}

static bool is_power_possible(const struct fc_sim *sim)
{
	return !(sim->settings.has_medium[FC_MEMORY] && sim->settings.media[FC_MEMORY].is_durable);
}

int fc_sim_open(struct fc_sim *sim)
{
	int code = KILLED;
	bool has_fired_ever = false;
	sim->look = 0;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (sim->media[medium] != NULL)
			fc_sim_medium_find(sim->media[medium]);
	for (unsigned opens = 0; code != FC_OK; opens++) {
		if (opens == OPENS_MAX)
			fc_sim_broken(&sim->notes, "open: fails without a fault");
		bool are_faults_on = opens < OPENS_FAULTY_MAX && !sim->is_healed;
		uint64_t fired = fc_sim_fired(sim);
		set_faults(sim, are_faults_on);
		if (sim->media[FC_SSD] != NULL)
			sim->media[FC_SSD]->never_sticks = true;
		bool is_power = is_power_possible(sim) && sim->faults.probability[FC_FAULT_POWER] > 0;
		code = open_once(sim, choose_kill(sim, are_faults_on), is_power);
		bool has_fired = fc_sim_fired(sim) != fired;
		has_fired_ever |= has_fired;
		fc_sim_note(&sim->notes, "open: %lld", (uint64_t)(int64_t)code, 0, 0, 0);
		if (code != FC_OK)
			check_open_code(sim, code, has_fired);
	}
	set_faults(sim, !sim->is_healed);
	if (sim->media[FC_SSD] != NULL)
		sim->media[FC_SSD]->never_sticks = false;
	sim->lost_count = 0;
	sim->reclaimed = (struct fc_sim_reclaimed){0};
	fc_catalog_on_loss(fc_core_catalog(sim->holder.core), on_loss, sim);
	bool is_damaged = sim->has_structure_flips || has_fired_ever;
	sim->has_structure_flips = sim->has_superblock_flips = false;
	if (sim->is_wired)
		fc_sim_daemon_start(sim);
	return is_damaged ? FC_ECORRUPT : FC_OK;
}

/* ---- the end of a process ---- */

static bool is_idle(struct fc_sim *sim)
{
	return fc_core_is_idle(sim->holder.core);
}

static uint64_t drain_limit_ns(const struct fc_sim *sim)
{
	return (sim->settings.core.requests_max + 4ull) * 8 * sim->settings.core.io_timeout_ns + 3600 * SECOND_NS;
}

/* A process that closes in order waits for what it has sent; what never returns would keep it for ever. */
static void release_stuck(struct fc_sim *sim, bool of_all)
{
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		struct fc_sim_medium *of = sim->media[medium];
		if (of == NULL)
			continue;
		fc_sim_medium_release(of, of_all ? NULL : &of->media, SECOND_NS);
		of->never_sticks = true;
	}
}

/* What is visible becomes durable, and the store is freed. */
static void close_holder(struct fc_sim *sim)
{
	if (sim->is_wired)
		fc_sim_daemon_stop(sim);
	if (!fc_sim_advance_until(sim, is_idle, drain_limit_ns(sim)))
		fc_sim_broken(&sim->notes, "close: the store does not come to rest");
	if (!sim->is_wired)
		fc_sim_check_idle(sim);
	fc_sim_promises_take(sim);
	sim->cuts_before += sim->is_wired ? fc_sim_process_cuts(&sim->holder) : 0;
	fc_core_free(sim->holder.core);
	sim->holder.core = NULL;
	sim->holder.is_opened = false;
	check_nothing_is_left(sim, "close");
}

static void vanish_all(struct fc_sim *sim)
{
	for (uint32_t i = 0; i < sim->settings.client_count; i++)
		fc_sim_client_vanish(sim, &sim->clients[i]);
}

/* Every request is cancelled. */
void fc_sim_close(struct fc_sim *sim)
{
	release_stuck(sim, false);
	if (!sim->is_wired)
		vanish_all(sim);
	close_holder(sim);
}

static bool all_are_idle(struct fc_sim *sim)
{
	for (uint32_t i = 0; i < sim->settings.engine_count; i++) {
		const struct fc_sim_engine *engine = &sim->engines[i];
		if (engine->process.core == NULL || !fc_core_is_idle(engine->process.core))
			return false;
	}
	return is_idle(sim) && (!sim->is_wired || fc_sim_daemon_is_idle(sim));
}

/* Every request ends, and nobody holds anything of anybody. */
static void rest(struct fc_sim *sim)
{
	release_stuck(sim, true);
	vanish_all(sim);
	if (!fc_sim_advance_until(sim, all_are_idle, drain_limit_ns(sim)))
		fc_sim_broken(&sim->notes, "the store does not come to rest");
	fc_sim_check_idle(sim);
}

static void close_all(struct fc_sim *sim)
{
	rest(sim);
	for (uint32_t i = 0; i < sim->settings.engine_count; i++)
		fc_sim_engine_close(sim, &sim->engines[i]);
	close_holder(sim);
}

static bool all_requests_have_ended(struct fc_sim *sim)
{
	for (uint32_t i = 0; i < sim->settings.client_count; i++) {
		const struct fc_sim_client *client = &sim->clients[i];
		if ((client->load != NULL && !client->has_ended && !client->is_ready_told) ||
		    (client->save != NULL && !client->is_save_closed))
			return false;
	}
	return true;
}

/* Nothing breaks any more, but what is stuck stays so: every request has to end all the same. */
static void check_every_request_ends(struct fc_sim *sim)
{
	uint64_t limit_ns = drain_limit_ns(sim);
	while (!fc_sim_advance_until(sim, all_requests_have_ended, limit_ns))
		fc_sim_broken(&sim->notes, "a request does not end");
	if (!sim->is_wired)
		fc_sim_client_take(sim, &sim->holder);
	for (uint32_t i = 0; i < sim->settings.engine_count; i++)
		if (sim->engines[i].process.is_opened)
			fc_sim_client_take(sim, &sim->engines[i].process);
}

void fc_sim_drain(struct fc_sim *sim)
{
	fc_sim_note(&sim->notes, "heal", 0, 0, 0, 0);
	sim->is_healed = true;
	set_faults(sim, false);
	for (uint32_t i = 0; i < sim->settings.engine_count; i++)
		fc_sim_engine_resume(sim, &sim->engines[i]);
	check_every_request_ends(sim);
	fc_sim_check_claims(sim, UINT32_MAX);
	if (sim->is_wired)
		rest(sim); /* a connection that ends would take with it what it has left behind */
	fc_sim_restart(sim);
	fc_sim_check_claims(sim, UINT32_MAX);
	fc_sim_check_scan(sim);
	close_all(sim);
}

/* ---- between two processes ---- */

static void expect_geometry_refused(struct fc_sim *sim, const char *what)
{
	uint64_t before = fc_sim_medium_digest(sim->media[FC_SSD]);
	set_faults(sim, false);
	int code = open_once(sim, UINT64_MAX, false);
	if (code != FC_EGEOMETRY)
		fc_sim_broken(&sim->notes, "open with %s: %s", what, fc_code_text(code));
	if (fc_sim_medium_digest(sim->media[FC_SSD]) != before)
		fc_sim_broken(&sim->notes, "open with %s: it was refused, and the arena has changed", what);
}

/* An engine of another geometry, or of another model of equal sizes, is refused by name, and changes nothing. */
static void try_other_geometry(struct fc_sim *sim)
{
	struct fc_geometry *geometry = &sim->settings.geometry;
	if (!sim->settings.has_medium[FC_SSD] || sim->has_structure_flips)
		return;
	geometry->name[0]++;
	expect_geometry_refused(sim, "another model of equal sizes");
	geometry->name[0]--;
	uint64_t *slice_bytes = NULL;
	for (uint32_t layer = 0; layer < geometry->layer_count && slice_bytes == NULL; layer++)
		if (geometry->groups[0].slice_bytes[layer] > 1)
			slice_bytes = &geometry->groups[0].slice_bytes[layer];
	if (slice_bytes == NULL)
		return;
	--*slice_bytes;
	expect_geometry_refused(sim, "another geometry");
	++*slice_bytes;
}

/* The SSD arena gets larger or smaller. True when something may have been cut off. */
static bool resize(struct fc_sim *sim)
{
	struct fc_sim_medium *ssd = sim->media[FC_SSD];
	uint64_t chunk_bytes = sim->settings.core.catalog.chunk_bytes;
	if (ssd == NULL)
		return false;
	uint64_t more = fc_random_between(&sim->random, 1, 20) * chunk_bytes;
	bool is_smaller =
		fc_random_below(&sim->random, 2) == 0 && ssd->media.bytes > FC_TABLE_OFFSET + (256u << 10) + more;
	fc_sim_note(&sim->notes, "resize by %llu bytes, smaller: %llu", more, is_smaller, 0, 0);
	fc_check(fc_sim_medium_resize(ssd, ssd->media.bytes + (is_smaller ? 0 - more : more)) == FC_OK);
	return is_smaller;
}

static void reopen(struct fc_sim *sim, bool is_excused)
{
	bool is_damaged = fc_sim_open(sim) != FC_OK;
	fc_sim_check_scan(sim);
	fc_sim_promises_check(sim, is_excused || is_damaged);
}

/* The engines go on without a daemon, now and then for longer than they are patient. */
static void be_away(struct fc_sim *sim)
{
	uint64_t longest_ns = sim->settings.reconnect_timeout_ns / (fc_random_below(&sim->breakage, 4) == 0 ? 2 : 40);
	for (uint64_t i = fc_random_below(&sim->breakage, 5); i > 0; i--) {
		fc_sim_engines_operation(sim);
		fc_sim_advance(sim, fc_random_below(&sim->breakage, longest_ns + 1));
	}
}

void fc_sim_restart(struct fc_sim *sim)
{
	bool is_excused = false;
	sim->counts.restarts++;
	fc_sim_note(&sim->notes, "restart", 0, 0, 0, 0);
	fc_sim_close(sim);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (sim->media[medium] != NULL)
			fc_sim_medium_kill(sim->media[medium]);
	if (sim->is_wired)
		be_away(sim);
	if (fc_random_below(&sim->random, 4) == 0 && !sim->is_wired)
		try_other_geometry(sim);
	if (fc_random_below(&sim->random, 8) == 0 && !sim->is_wired)
		is_excused = resize(sim); /* whoever has mapped an arena would have to open it again */
	if (fc_random_below(&sim->random, 3) == 0)
		fc_sim_settings_choose_quotas(&sim->settings, &sim->random);
	reopen(sim, is_excused);
}

void fc_sim_crash(struct fc_sim *sim, bool is_power)
{
	is_power = is_power && is_power_possible(sim);
	fc_sim_note(&sim->notes, is_power ? "the power fails" : "the process is killed", 0, 0, 0, 0);
	fc_sim_promises_take(sim);
	kill_holder(sim, is_power);
	if (sim->is_wired)
		be_away(sim);
	reopen(sim, false);
}
