/* What happens in a run: conversations of several kinds, now and then an operator, and what breaks from outside.
 *
 *   agent      long: grows by several blocks a turn until it is compacted to its head
 *   chat       short turns, short replies
 *   prompted   begins with a prompt that others share
 *   twin       goes on from where another conversation stands: a subagent, a branch, or the same text typed twice
 *
 * Any of them may edit its history: the next turn then branches off somewhere before its end. */
#include "sim/check.h"

#include "format/arena.h"
#include "format/checksum.h"

#define ROOM_FOR_TURN 12u

/* ---- sessions ---- */

uint32_t fc_sim_next_block(struct fc_sim *sim, uint32_t space, uint32_t tip)
{
	bool is_common = fc_random_below(&sim->random, 6) == 0;
	uint64_t tokens = is_common ? fc_random_below(&sim->random, 8) : fc_random_u64(&sim->random) | 3;
	return fc_sim_model_child(&sim->model, space, tip, tokens);
}

static uint32_t grow_path(struct fc_sim *sim, uint32_t tip, uint64_t blocks)
{
	for (uint64_t i = 0; i < blocks; i++)
		tip = fc_sim_next_block(sim, 0, tip);
	return tip;
}

static void give_owner(struct fc_sim *sim, struct fc_sim_session *session)
{
	uint32_t count = sim->settings.core.catalog.owner_count;
	if (sim->is_wired) /* the owner is the namespace, and the daemon says so */
		session->space = (uint32_t)fc_random_below(&sim->random, sim->settings.space_count);
	if (count == 0 || sim->is_wired)
		return;
	session->owner = sim->settings.owners[fc_random_below(&sim->random, count)].tag;
	session->id.high = (uint64_t)session->owner << 48 | (session->id.high & (UINT64_MAX >> 16));
}

static void begin_session(struct fc_sim *sim, struct fc_sim_session *session)
{
	struct fc_random *random = &sim->random;
	*session = (struct fc_sim_session){
		.id = {fc_random_u64(random), fc_random_u64(random) | 1},
		.kind = (enum fc_sim_session_kind)fc_random_below(random, FC_SIM_KIND_COUNT),
		.turn_max = fc_random_between(random, 2, 8),
	};
	give_owner(sim, session);
	const struct fc_sim_session *other = &sim->sessions[fc_random_below(random, sim->settings.session_count)];
	bool has_prompt = sim->settings.prompt_count > 0;
	uint32_t prompt = has_prompt ? sim->prompts[fc_random_below(random, sim->settings.prompt_count)] : FC_SIM_ROOT;
	prompt = fc_sim_model_translate(&sim->model, prompt, session->space);
	if (fc_random_below(random, 4) == 0)
		session->id = (struct fc_session_id){0, 0};
	if (session->kind == FC_SIM_AGENT)
		session->turn_max = 60;
	if (session->kind == FC_SIM_PROMPTED || (session->kind == FC_SIM_AGENT && fc_random_below(random, 2) == 0)) {
		session->tip = prompt;
		session->shared_blocks = sim->model.nodes[prompt].depth;
	}
	if (session->kind == FC_SIM_TWIN) {
		session->tip = fc_sim_model_translate(&sim->model, other->tip, session->space);
		session->shared_blocks = other->shared_blocks;
		if (fc_random_below(random, 2) == 0) {
			session->id = other->id;
			session->owner = other->owner;
		}
	}
}

static void edit_history(struct fc_sim *sim, struct fc_sim_session *session)
{
	uint32_t depth = sim->model.nodes[session->tip].depth;
	session->tip =
		fc_sim_model_ancestor(&sim->model, session->tip, (uint32_t)fc_random_below(&sim->random, depth + 1ull));
	if (session->shared_blocks > sim->model.nodes[session->tip].depth)
		session->shared_blocks = 0;
}

static void start_turn(struct fc_sim *sim)
{
	uint32_t first = (uint32_t)fc_random_below(&sim->random, sim->settings.client_count);
	uint32_t number = (uint32_t)fc_random_below(&sim->random, sim->settings.session_count);
	struct fc_sim_session *session = &sim->sessions[number];
	uint32_t depth = sim->model.nodes[session->tip].depth;
	if (session->is_busy)
		return;
	if (session->turn >= session->turn_max)
		begin_session(sim, session);
	else if (depth + ROOM_FOR_TURN > FC_SIM_PATH_BLOCKS_MAX || fc_random_below(&sim->random, 12) == 0)
		edit_history(sim, session);
	if (sim->model.nodes[session->tip].depth + ROOM_FOR_TURN > FC_SIM_PATH_BLOCKS_MAX)
		return;
	for (uint32_t i = 0; i < sim->settings.client_count; i++) {
		struct fc_sim_client *client = &sim->clients[(first + i) % sim->settings.client_count];
		if (!fc_sim_client_may_start(sim, client, session->space))
			continue;
		fc_sim_client_start(sim, client, number);
		return;
	}
}

void fc_sim_workload_init(struct fc_sim *sim)
{
	for (uint32_t i = 0; i < sim->settings.prompt_count; i++)
		sim->prompts[i] = grow_path(sim, FC_SIM_ROOT, fc_random_between(&sim->random, 1, 16));
	for (uint32_t i = 0; i < sim->settings.session_count; i++)
		begin_session(sim, &sim->sessions[i]);
}

struct fc_session_id fc_sim_stored_id(const struct fc_sim *sim, const struct fc_sim_session *session)
{
	return sim->is_wired ? fc_server_session_id(fc_sim_space_name(session->space), session->id) : session->id;
}

/* ---- the operator ---- */

static void evict(struct fc_sim *sim)
{
	const struct fc_sim_session *session =
		&sim->sessions[fc_random_below(&sim->random, sim->settings.session_count)];
	int code = fc_catalog_evict(fc_core_catalog(sim->holder.core), fc_sim_stored_id(sim, session));
	fc_sim_note(&sim->notes, "evict session %llx: %lld", session->id.high, (uint64_t)(int64_t)code, 0, 0);
	if (code != FC_OK && code != FC_ENOENT && code != FC_EBUSY)
		fc_sim_broken(&sim->notes, "evict: %s", fc_code_text(code));
	sim->losses += code == FC_OK;
	sim->lost_count = 0; /* those who stood on it have lost a part */
}

/* ---- damage at rest ---- */

static bool pick_segment(struct fc_sim *sim, struct fc_placed *placed, uint64_t *bytes)
{
	struct fc_key keys[FC_SIM_PATH_BLOCKS_MAX];
	struct fc_path path = {0};
	if (sim->model.claim_count == 0)
		return false;
	uint32_t node = sim->model.claims[fc_random_below(&sim->breakage, sim->model.claim_count)].node;
	bool is_found = fc_sim_match(sim, node, 0, keys, &path) == FC_OK && path.placed_count > 0;
	if (is_found) {
		*placed = path.placed[fc_random_below(&sim->breakage, path.placed_count)];
		is_found = fc_shape_bytes(&sim->settings.geometry, placed->shape, placed->align, bytes) == FC_OK;
	}
	fc_path_deinit(&path, &sim->holder.memory.alloc);
	return is_found;
}

static uint64_t table_offset(const struct fc_sim *sim, enum fc_medium medium, const struct fc_placed *placed)
{
	struct fc_superblock superblock;
	const uint8_t *image = sim->media[medium]->image;
	if (fc_superblock_decode(&superblock, image, NULL) != FC_OK &&
	    fc_superblock_decode(&superblock, image + FC_SUPERBLOCK_BYTES, NULL) != FC_OK)
		return 0;
	uint64_t chunk = (fc_gva_offset(placed->base) - superblock.data_offset) / superblock.chunk_bytes;
	return FC_TABLE_OFFSET + chunk * FC_TABLE_ENTRY_BYTES;
}

/* Remembers how the header is now. One that is hit again may be whole again, and is forgotten. */
static void note_damaged_header(struct fc_sim *sim, enum fc_medium medium, uint64_t offset, uint64_t bytes)
{
	for (uint32_t i = 0; i < sim->damaged_count; i++)
		if (sim->damaged[i].medium == medium && sim->damaged[i].offset == offset) {
			sim->damaged[i] = sim->damaged[--sim->damaged_count];
			return;
		}
	if (sim->damaged_count < FC_SIM_DAMAGED_MAX)
		sim->damaged[sim->damaged_count++] = (struct fc_sim_damaged_header){
			.medium = medium,
			.offset = offset,
			.bytes = bytes,
			.digest = fc_checksum(sim->media[medium]->image + offset, bytes, 0),
		};
}

static void flip(struct fc_sim *sim, enum fc_sim_fault fault)
{
	struct fc_placed placed;
	uint64_t bytes;
	if (!pick_segment(sim, &placed, &bytes))
		return;
	enum fc_medium medium = fc_gva_medium(placed.base);
	uint64_t base = fc_gva_offset(placed.base), offset = 0;
	if (fault != FC_FAULT_FLIP_PAYLOAD && !sim->settings.media[medium].is_durable)
		return; /* nothing of that is ever read there */
	if (fault == FC_FAULT_FLIP_PAYLOAD)
		offset = base + placed.header_bytes + fc_random_below(&sim->breakage, bytes - placed.header_bytes);
	else if (fault == FC_FAULT_FLIP_HEADER)
		offset = base + fc_random_below(&sim->breakage, fc_header_encoded_bytes(placed.shape));
	else if (fault == FC_FAULT_FLIP_TABLE)
		offset = table_offset(sim, medium, &placed) + fc_random_below(&sim->breakage, FC_TABLE_ENTRY_BYTES);
	else
		offset = fc_random_below(&sim->breakage, FC_TABLE_OFFSET);
	fc_sim_note(&sim->notes, "bit flip, kind %llu, medium %llu, offset %llu", (uint64_t)fault, medium, offset, 0);
	fc_sim_medium_flip(sim->media[medium], offset, (unsigned)fc_random_below(&sim->breakage, 8));
	if (fault == FC_FAULT_FLIP_HEADER)
		note_damaged_header(sim, medium, base, fc_header_encoded_bytes(placed.shape));
	sim->faults_fired++;
	sim->payload_flips += fault == FC_FAULT_FLIP_PAYLOAD;
	sim->has_structure_flips |= fault != FC_FAULT_FLIP_PAYLOAD;
	sim->has_superblock_flips |= fault == FC_FAULT_FLIP_SUPERBLOCK;
}

/* To nothing, or to somewhere in the segments. What the superblocks say is whole or not there. */
static uint64_t choose_end(struct fc_sim *sim, const struct fc_sim_medium *medium)
{
	uint64_t rest_bytes = medium->media.bytes - FC_TABLE_OFFSET;
	if (fc_random_below(&sim->breakage, 4) == 0)
		return 0;
	return FC_TABLE_OFFSET +
	       fc_random_below(&sim->breakage, rest_bytes / medium->media.align) * medium->media.align;
}

/* All that was there may be gone, durable or not, and nothing that comes later may pass for durable. */
static void lose_file(struct fc_sim *sim, enum fc_sim_fault fault)
{
	enum fc_medium number = fc_random_below(&sim->breakage, 4) == 0 ? FC_MEMORY : FC_SSD;
	struct fc_sim_medium *medium = sim->media[number];
	if (medium == NULL || !medium->opts.is_durable || medium->is_lost ||
	    (fault == FC_FAULT_TRUNCATED && medium->opts.is_mapped))
		return;
	uint64_t end = fault == FC_FAULT_TRUNCATED ? choose_end(sim, medium) : 0;
	fc_sim_note(&sim->notes, "the file of medium %llu is lost, kind %llu, end %llu", number, (uint64_t)fault, end,
		    0);
	fc_sim_medium_lose(medium, fault, end);
	sim->payload_flips++;
	sim->losses++;
	sim->has_structure_flips = true;
}

static void jump(struct fc_sim *sim)
{
	uint64_t io_timeout_ns = sim->settings.core.io_timeout_ns;
	uint64_t leap_ns = fc_random_below(&sim->breakage, 3 * io_timeout_ns);
	sim->clock_skew_ns += leap_ns;
	sim->faults_fired++;
	fc_sim_note(&sim->notes, "the clock leaps %llu ns", leap_ns, 0, 0, 0);
}

/* ---- one operation ---- */

static struct fc_sim_client *any_client(struct fc_sim *sim, struct fc_random *random)
{
	return &sim->clients[fc_random_below(random, sim->settings.client_count)];
}

static struct fc_sim_engine *any_engine(struct fc_sim *sim, struct fc_random *random)
{
	return &sim->engines[fc_random_below(random, sim->settings.engine_count)];
}

static void go_deaf(struct fc_sim *sim, struct fc_sim_engine *engine)
{
	uint64_t longest_ns = 2 * sim->settings.answer_timeout_ns;
	engine->deaf_until_ns = sim->notes.now_ns + fc_random_below(&sim->breakage, longest_ns);
	engine->disturbances++;
	fc_sim_note(&sim->notes, "engine %llu reads nothing until %llu", engine->number, engine->deaf_until_ns, 0, 0);
}

/* For a few operations, or for longer than its answers, its I/O and the daemon's patience take. */
static void stop_engine(struct fc_sim *sim, struct fc_sim_engine *engine)
{
	bool is_long = fc_random_below(&sim->breakage, 2) == 0;
	uint64_t longest_ns = is_long ? 20 * sim->settings.answer_timeout_ns : 50 * sim->settings.pace_ns;
	fc_sim_engine_stop(sim, engine, sim->notes.now_ns + 1 + fc_random_below(&sim->breakage, longest_ns));
}

static void break_wires(struct fc_sim *sim)
{
	const double *probability = sim->faults.probability;
	struct fc_random *random = &sim->breakage;
	if (fc_sim_happens(random, probability[FC_FAULT_ENGINE_CRASH]))
		fc_sim_engine_kill(sim, any_engine(sim, random), fc_random_below(random, 4 * sim->settings.retry_ns));
	if (fc_sim_happens(random, probability[FC_FAULT_CUT]))
		fc_sim_engine_cut(sim, any_engine(sim, random));
	if (fc_sim_happens(random, probability[FC_FAULT_DEAF]))
		go_deaf(sim, any_engine(sim, random));
	if (fc_sim_happens(random, probability[FC_FAULT_STOPPED]))
		stop_engine(sim, any_engine(sim, random));
	if (fc_sim_happens(random, probability[FC_FAULT_STRANGER]))
		fc_sim_stranger(sim);
}

static void break_something(struct fc_sim *sim)
{
	const double *probability = sim->faults.probability;
	struct fc_random *random = &sim->breakage;
	for (int fault = FC_FAULT_FLIP_PAYLOAD; fault <= FC_FAULT_FLIP_SUPERBLOCK; fault++)
		if (fc_sim_happens(random, probability[fault]))
			flip(sim, (enum fc_sim_fault)fault);
	for (int fault = FC_FAULT_TRUNCATED; fault <= FC_FAULT_REPLACED; fault++)
		if (fc_sim_happens(random, probability[fault]))
			lose_file(sim, (enum fc_sim_fault)fault);
	if (fc_sim_happens(random, probability[FC_FAULT_CLOCK_JUMP]))
		jump(sim);
	if (fc_sim_happens(random, probability[FC_FAULT_VANISH]))
		fc_sim_client_vanish(sim, any_client(sim, random));
	if (sim->is_wired)
		break_wires(sim);
	if (fc_sim_happens(random, probability[FC_FAULT_CRASH]))
		fc_sim_crash(sim, false);
	if (fc_sim_happens(random, probability[FC_FAULT_POWER]))
		fc_sim_crash(sim, true);
}

static void continue_some(struct fc_sim *sim)
{
	uint32_t first = (uint32_t)fc_random_below(&sim->random, sim->settings.client_count);
	for (uint32_t i = 0; i < sim->settings.client_count; i++)
		fc_sim_client_continue(sim, &sim->clients[(first + i) % sim->settings.client_count]);
}

static void take_some(struct fc_sim *sim)
{
	struct fc_sim_process *process = &sim->holder;
	if (sim->is_wired)
		process = &any_engine(sim, &sim->random)->process;
	if (process->is_opened)
		fc_sim_client_take(sim, process);
}

void fc_sim_engines_operation(struct fc_sim *sim)
{
	uint64_t choice = fc_random_below(&sim->random, 4);
	if (choice == 0)
		start_turn(sim);
	else if (choice == 1)
		take_some(sim);
	else if (choice == 2)
		continue_some(sim);
	else if (fc_random_below(&sim->random, 4) == 0)
		fc_sim_client_cancel(sim, any_client(sim, &sim->random));
}

static void do_something(struct fc_sim *sim)
{
	uint64_t choice = fc_random_below(&sim->random, 1000);
	if (choice < 400) {
		start_turn(sim);
	} else if (choice < 600) {
		take_some(sim);
	} else if (choice < 900) {
		continue_some(sim);
	} else if (choice < 930) {
		fc_sim_client_cancel(sim, any_client(sim, &sim->random));
	} else if (choice < 940) {
		evict(sim);
	} else if (choice < 944) {
		fc_sim_restart(sim);
	} else {
		fc_sim_check_lease(sim, any_client(sim, &sim->random));
		fc_sim_check_claims(sim, 2);
		if (choice % 8 == 0)
			fc_sim_look(sim);
		if (sim->is_wired && choice % 4 == 0)
			fc_sim_engine_lie(sim, any_client(sim, &sim->random));
	}
}

void fc_sim_operation(struct fc_sim *sim)
{
	sim->operation_losses = fc_sim_losses(sim);
	sim->counts.operations++;
	sim->turns = 0;
	break_something(sim);
	do_something(sim);
	if (fc_random_below(&sim->random, 3) != 0)
		fc_sim_advance(sim, fc_random_below(&sim->random, 2 * sim->settings.pace_ns));
	fc_sim_check_counters(sim);
	if (sim->counts.operations % 8 == 0)
		fc_sim_check_scan(sim);
}
