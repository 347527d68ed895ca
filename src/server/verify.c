/* Looking at what a client says is damaged. A client's word is not enough to cut a session, or any client could cut
 * any; so the daemon reads the slices of that entry itself, layer by layer, compares each with its checksum, and cuts
 * when one does not match, or when it stays so that one cannot be read (core/directory.h).
 *
 *     DAMAGE --> waits in `damages` --> looked at, one at a time --> confirmed: cut
 *                    |                                          '--> unconfirmed: nothing
 *                    '-- the client is gone, or too many wait: dropped, counted
 *
 * What lies in memory is hashed in place, what lies on SSD is read into one small buffer piece by piece. The lease, or
 * the reservation's sources, that the report is about keep the segment until the look is over (state.h, `wish`). A read
 * that does not return in io_timeout_ns is abandoned: nobody is kept waiting for it; the buffer is, until it returns.
 *
 * At most LOOK_BYTES_MAX are hashed in one step: other clients wait meanwhile. */
#include "server/state.h"

#include "base/plant.h"
#include "format/checksum.h"

#include <string.h>
#define XXH_STATIC_LINKING_ONLY /* the size of a running hash */
#include <xxhash.h>

#define LOOK_BUFFER_BYTES (1u << 20)
#define LOOK_BYTES_MAX (4u << 20)
#define ALIGN_MAX FC_TABLE_PAGE_BYTES

enum outcome { OUTCOME_GOING_ON, OUTCOME_WAITING, OUTCOME_SOUND, OUTCOME_DAMAGED, OUTCOME_UNREAD };

static XXH3_state_t *hash_of(const struct fc_look *look)
{
	return look->hash;
}

int fc_verify_init(struct fc_server *server)
{
	const struct fc_alloc *alloc = server->opts.alloc;
	uint64_t damage_count = server->opts.limits.clients_max * (uint64_t)server->opts.limits.damages_max;
	server->damage_count = fc_min_u64(damage_count, 65536);
	fc_list_init(&server->damages);
	fc_list_init(&server->free_damages);
	server->damage_pool = fc_alloc_zeroed(alloc, server->damage_count * sizeof(*server->damage_pool));
	server->look_memory_bytes = LOOK_BUFFER_BYTES + ALIGN_MAX;
	server->look_memory = fc_alloc_zeroed(alloc, server->look_memory_bytes);
	server->look.hash = fc_alloc_zeroed(alloc, sizeof(XXH3_state_t));
	if (server->damage_pool == NULL || server->look_memory == NULL || server->look.hash == NULL)
		return FC_ENOMEM;
	server->look_buffer = (uint8_t *)fc_align_up((uintptr_t)server->look_memory, ALIGN_MAX);
	for (uint64_t i = 0; i < server->damage_count; i++)
		fc_list_push(&server->free_damages, &server->damage_pool[i].link);
	return FC_OK;
}

void fc_verify_deinit(struct fc_server *server)
{
	const struct fc_alloc *alloc = server->opts.alloc;
	fc_check(server->damages_waiting == 0 && !server->look.is_io_open);
	fc_alloc_free(alloc, server->damage_pool, server->damage_count * sizeof(*server->damage_pool));
	fc_alloc_free(alloc, server->look_memory, server->look_memory_bytes);
	fc_alloc_free(alloc, server->look.hash, sizeof(XXH3_state_t));
}

/* ---- reports ---- */

static void count(struct fc_server_client *client, size_t offset)
{
	struct fc_server_counters *books[] = {&client->server->counters, &client->space->counters, &client->counters};
	for (size_t i = 0; i < fc_array_len(books); i++)
		++*(uint64_t *)(void *)((char *)books[i] + offset);
}

#define COUNT(client, field) count(client, offsetof(struct fc_server_counters, field))

static bool is_waiting_already(const struct fc_server *server, const struct fc_damage *wanted)
{
	fc_list_for_each(link, &server->damages)
	{
		const struct fc_damage *damage = fc_container_of(link, struct fc_damage, link);
		if (damage->request == wanted->request && damage->placed == wanted->placed &&
		    damage->entry == wanted->entry)
			return true;
	}
	return false;
}

static void queue(struct fc_server_client *client, const struct fc_damage *wanted)
{
	struct fc_server *server = client->server;
	if (client->damage_count >= server->opts.limits.damages_max || fc_list_is_empty(&server->free_damages) ||
	    is_waiting_already(server, wanted)) {
		COUNT(client, damages_dropped);
		return;
	}
	struct fc_damage *damage = fc_container_of(fc_list_pop(&server->free_damages), struct fc_damage, link);
	damage->request = wanted->request;
	damage->placed = wanted->placed;
	damage->entry = wanted->entry;
	fc_list_push(&server->damages, &damage->link);
	server->damages_waiting++;
	client->damage_count++;
	damage->request->damage_count++;
}

void fc_server_client_damage(struct fc_server_client *client, uint64_t number, const uint8_t *body, uint64_t bytes)
{
	struct fc_wire_damage message;
	struct fc_error error = {0};
	if (fc_wire_get_damage(&message, body, bytes, &error) != FC_OK) {
		fc_server_client_fail(client, FC_SERVER_PROTOCOL_ERROR, "%s", error.text);
		return;
	}
	if (number > client->last_request) {
		fc_server_client_fail(client, FC_SERVER_PROTOCOL_ERROR, "DAMAGE in request %llu, which was never made",
				      (unsigned long long)number);
		return;
	}
	COUNT(client, damages);
	struct fc_server_request *request = fc_server_client_find(client, number);
	const struct fc_path *path = request == NULL ? NULL : fc_request_path(request);
	if (path == NULL) {
		COUNT(client, damages_dropped);
		return;
	}
	if (message.placed >= path->placed_count || message.entry >= path->placed[message.placed].shape->entry_count) {
		fc_server_client_fail(client, FC_SERVER_PROTOCOL_ERROR,
				      "DAMAGE of entry %llu of segment %u in request %llu, which has no such",
				      (unsigned long long)message.entry, message.placed, (unsigned long long)number);
		return;
	}
	queue(client, &(struct fc_damage){.request = request, .placed = message.placed, .entry = message.entry});
}

/* The report is decided, or nobody wants to know any more. */
static void free_damage(struct fc_server *server, struct fc_damage *damage)
{
	fc_list_remove(&damage->link);
	fc_list_push(&server->free_damages, &damage->link);
	server->damages_waiting--;
	damage->request->client->damage_count--;
	damage->request->damage_count--;
	if (server->look.damage == damage)
		server->look.damage = NULL;
}

void fc_verify_drop(struct fc_server *server, struct fc_server_request *request)
{
	if (request->damage_count == 0)
		return;
	fc_list_for_each_safe(link, &server->damages)
	{
		struct fc_damage *damage = fc_container_of(link, struct fc_damage, link);
		if (damage->request != request)
			continue;
		COUNT(request->client, damages_dropped);
		free_damage(server, damage);
	}
}

/* ---- looking ---- */

static struct fc_media *media_of(const struct fc_server *server)
{
	return server->opts.media[fc_gva_medium(server->look.placed->base)];
}

/* Where the entry's slice of the area's layer lies; false when it has none. */
static bool find_slice(struct fc_server *server)
{
	struct fc_look *look = &server->look;
	const struct fc_geometry *geometry = server->opts.geometry;
	if (geometry->groups[look->range->group].slice_bytes[look->area.layer] == 0)
		return false;
	struct fc_range_area area = fc_range_area_in(geometry, look->placed->shape, &look->area, look->range);
	uint64_t position = look->entry - look->range->entry_first;
	uint64_t base = fc_gva_offset(look->placed->base);
	look->slice_bytes = area.slice_bytes;
	look->slice_offset = base + area.slice_offset + position * area.slice_bytes;
	look->checksum_offset = base + area.checksum_offset + position * FC_CHECKSUM_BYTES;
	look->done_bytes = 0;
	look->has_checksum = false;
	fc_check(XXH3_64bits_reset(hash_of(look)) == XXH_OK);
	return true;
}

/* To the next layer in which the entry has a slice; false behind the last. */
static bool next_layer(struct fc_server *server)
{
	struct fc_look *look = &server->look;
	while (fc_layer_next(server->opts.geometry, look->placed->shape, look->placed->align, &look->area))
		if (find_slice(server))
			return true;
	return false;
}

static void begin(struct fc_server *server, struct fc_damage *damage)
{
	struct fc_look *look = &server->look;
	look->damage = damage;
	look->placed = &fc_request_path(damage->request)->placed[damage->placed];
	look->entry = damage->entry;
	look->range = fc_shape_range_of(look->placed->shape, damage->entry);
	look->key = fc_catalog_segment_key(look->placed->segment, damage->entry);
	look->started_ns = fc_server_now_ns(server);
	fc_layer_first(server->opts.geometry, look->placed->shape, look->placed->header_bytes, &look->area);
	if (!find_slice(server))
		fc_check(next_layer(server)); /* a group without a slice in any layer is no geometry */
}

/* The whole slice has been hashed. */
static enum outcome compare(struct fc_server *server)
{
	struct fc_look *look = &server->look;
	uint64_t seed = fc_slice_seed(look->key, look->range->group, look->area.layer);
	if (fc_slice_fold(XXH3_64bits_digest(hash_of(look)), seed) != look->checksum ||
	    fc_is_planted(FC_PLANT_TRUSTED_REPORT))
		return OUTCOME_DAMAGED;
	return next_layer(server) ? OUTCOME_GOING_ON : OUTCOME_SOUND;
}

static enum outcome look_in_memory(struct fc_server *server, const struct fc_media *media, uint64_t *budget_bytes)
{
	struct fc_look *look = &server->look;
	uint64_t bytes = fc_min_u64(look->slice_bytes - look->done_bytes, *budget_bytes);
	if (!look->has_checksum)
		memcpy(&look->checksum, media->map + look->checksum_offset, sizeof(look->checksum));
	look->has_checksum = true;
	fc_check(XXH3_64bits_update(hash_of(look), media->map + look->slice_offset + look->done_bytes, bytes) ==
		 XXH_OK);
	look->done_bytes += bytes;
	*budget_bytes -= bytes;
	return look->done_bytes == look->slice_bytes ? compare(server) : OUTCOME_GOING_ON;
}

static void on_io(struct fc_io *io)
{
	struct fc_look *look = fc_container_of(io, struct fc_look, io);
	look->is_io_open = false;
	look->has_io_ended = look->damage != NULL;
}

/* Reads what is wanted next: the checksum, then the slice. */
static enum outcome read_next(struct fc_server *server, struct fc_media *media)
{
	struct fc_look *look = &server->look;
	uint64_t align = media->align;
	uint64_t offset = look->has_checksum ? look->slice_offset + look->done_bytes : look->checksum_offset;
	uint64_t bytes = look->has_checksum ? look->slice_bytes - look->done_bytes : sizeof(look->checksum);
	uint64_t from = fc_align_down(offset, align);
	uint64_t end = fc_min_u64(fc_align_up(offset + bytes, align), from + LOOK_BUFFER_BYTES);
	look->io_offset = offset;
	look->io = (struct fc_io){
		.op = FC_IO_READ,
		.offset = from,
		.bytes = end - from,
		.buffer = server->look_buffer,
		.done_cb = on_io,
	};
	look->is_io_open = true;
	fc_media_submit(media, &look->io);
	return OUTCOME_WAITING;
}

static enum outcome take_read(struct fc_server *server, uint64_t *budget_bytes)
{
	struct fc_look *look = &server->look;
	look->has_io_ended = false;
	if (fc_io_code(&look->io) != FC_OK)
		return OUTCOME_UNREAD;
	const uint8_t *bytes = server->look_buffer + (look->io_offset - look->io.offset);
	uint64_t count = look->io.offset + look->io.bytes - look->io_offset;
	if (!look->has_checksum) {
		memcpy(&look->checksum, bytes, sizeof(look->checksum));
		look->has_checksum = true;
		return OUTCOME_GOING_ON;
	}
	count = fc_min_u64(count, look->slice_bytes - look->done_bytes);
	fc_check(XXH3_64bits_update(hash_of(look), bytes, count) == XXH_OK);
	look->done_bytes += count;
	*budget_bytes -= fc_min_u64(*budget_bytes, count);
	return look->done_bytes == look->slice_bytes ? compare(server) : OUTCOME_GOING_ON;
}

static enum outcome look_further(struct fc_server *server, uint64_t *budget_bytes)
{
	struct fc_media *media = media_of(server);
	if (media->map != NULL)
		return look_in_memory(server, media, budget_bytes);
	if (server->look.has_io_ended)
		return take_read(server, budget_bytes);
	return read_next(server, media);
}

/* ---- deciding ---- */

static void decide(struct fc_server *server, enum outcome outcome)
{
	struct fc_damage *damage = server->look.damage;
	struct fc_server_request *request = damage->request;
	struct fc_server_client *client = request->client;
	bool is_bad = outcome == OUTCOME_DAMAGED || outcome == OUTCOME_UNREAD;
	bool is_cut = is_bad && server->directory->ops->cut(server->directory, fc_request_path(request), damage->placed,
							    damage->entry, outcome == OUTCOME_DAMAGED);
	if (is_cut) {
		COUNT(client, damages_confirmed);
		fc_server_tell(server, FC_SERVER_DAMAGE_CONFIRMED, client,
			       "client %llu: damage at 0x%016llx, entry %llu, layer %u is real: its session is cut",
			       (unsigned long long)client->number, (unsigned long long)server->look.placed->base.bits,
			       (unsigned long long)damage->entry, server->look.area.layer);
	} else {
		COUNT(client, damages_unconfirmed);
		fc_server_tell(server, FC_SERVER_DAMAGE_UNCONFIRMED, client, "client %llu: %s at 0x%016llx, entry %llu",
			       (unsigned long long)client->number,
			       is_bad ? "what cannot be read is kept until that is told once more," : "no damage found",
			       (unsigned long long)server->look.placed->base.bits, (unsigned long long)damage->entry);
	}
	free_damage(server, damage);
	fc_request_is_decided(request);
}

static uint64_t limit_ns(const struct fc_server *server)
{
	uint64_t limit;
	return fc_add_overflows(server->look.started_ns, server->opts.limits.io_timeout_ns, &limit) ? UINT64_MAX
												    : limit;
}

uint64_t fc_verify_wake_ns(const struct fc_server *server)
{
	if (server->look.damage != NULL)
		return server->look.is_io_open ? limit_ns(server) : 0;
	return server->damages_waiting > 0 && !server->look.is_io_open ? 0 : UINT64_MAX;
}

unsigned fc_verify_step(struct fc_server *server)
{
	struct fc_look *look = &server->look;
	uint64_t budget_bytes = LOOK_BYTES_MAX;
	unsigned done = 0;
	while (budget_bytes > 0 && (look->damage != NULL || !look->is_io_open)) {
		if (look->damage == NULL) {
			if (fc_list_is_empty(&server->damages))
				break;
			begin(server, fc_container_of(server->damages.next, struct fc_damage, link));
			done++;
		}
		if (look->is_io_open) {
			if (fc_server_now_ns(server) < limit_ns(server))
				break;
			decide(server, OUTCOME_WAITING);
			done++;
			continue;
		}
		enum outcome outcome = look_further(server, &budget_bytes);
		done++;
		if (outcome != OUTCOME_GOING_ON && outcome != OUTCOME_WAITING)
			decide(server, outcome);
	}
	return done;
}
