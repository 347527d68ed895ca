/* Namespaces: who may use one, and what keeps them apart.
 *
 * Two things of a namespace are mixed into what its clients name: the salt, 128 bits that are exclusive-ored with every
 * key, and the tag, 16 bits at the top of every session id. Both follow from the name (the salt also from the store),
 * so the next daemon finds what this one stored. The default namespace has no salt: its keys are those of an embedded
 * store, so a folder's store can be given to a daemon, and the other way round, with what it holds. This keeps apart
 * what clients name, also by mistake or by guessing keys. It does not stop somebody who reads other namespaces' keys
 * out of the arenas, as whoever was handed their descriptors can: tenants who do not trust each other with that need a
 * daemon each (docs/daemon.md). */
#include "server/state.h"

#include "base/plant.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#define TAG_BITS 16
#define REST_MASK ((1ull << (64 - TAG_BITS)) - 1)

/* ---- hashes ---- */

/* Every field with its length in front, so that two different inputs never give the same bytes. */
static void hash_field(crypto_generichash_state *state, const void *bytes, uint64_t count)
{
	unsigned char length[8];
	for (int i = 0; i < 8; i++)
		length[i] = (unsigned char)(count >> (8 * i));
	fc_check(crypto_generichash_update(state, length, sizeof(length)) == 0);
	fc_check(crypto_generichash_update(state, bytes, count) == 0);
}

static void hash_number(crypto_generichash_state *state, uint64_t number)
{
	unsigned char bytes[8];
	for (int i = 0; i < 8; i++)
		bytes[i] = (unsigned char)(number >> (8 * i));
	hash_field(state, bytes, sizeof(bytes));
}

static void hash_begin(crypto_generichash_state *state, const char *purpose, const char *name)
{
	fc_check(crypto_generichash_init(state, NULL, 0, 16) == 0);
	hash_field(state, purpose, strlen(purpose));
	hash_field(state, name, strlen(name));
}

static struct fc_key hash_end(crypto_generichash_state *state)
{
	unsigned char bytes[16];
	struct fc_key key = {0};
	fc_check(crypto_generichash_final(state, bytes, sizeof(bytes)) == 0);
	for (int i = 0; i < 8; i++) {
		key.high = key.high << 8 | bytes[i];
		key.low = key.low << 8 | bytes[8 + i];
	}
	return key;
}

uint16_t fc_server_namespace_tag(const char *name)
{
	crypto_generichash_state state;
	hash_begin(&state, "flatcake namespace tag 1", name);
	uint16_t tag = (uint16_t)(hash_end(&state).high >> (64 - TAG_BITS));
	return tag == 0 ? 1 : tag;
}

static struct fc_key salt_of(struct fc_uuid store, const char *name)
{
	crypto_generichash_state state;
	if (name[0] == 0 || fc_is_planted(FC_PLANT_COMMON_SALT))
		return (struct fc_key){0, 0};
	hash_begin(&state, "flatcake namespace salt 1", name);
	hash_number(&state, store.high);
	hash_number(&state, store.low);
	return hash_end(&state);
}

struct fc_session_id fc_server_session_id(const char *name_space, struct fc_session_id id)
{
	uint64_t tag = fc_server_namespace_tag(name_space);
	if ((id.high == 0 && id.low == 0) || id.high >> (64 - TAG_BITS) == tag)
		return id; /* to be inferred, or what a client was told */
	crypto_generichash_state state;
	hash_begin(&state, "flatcake namespace session 1", name_space);
	hash_number(&state, id.high);
	hash_number(&state, id.low);
	struct fc_key hash = hash_end(&state);
	return (struct fc_session_id){tag << (64 - TAG_BITS) | (hash.high & REST_MASK), hash.low};
}

/* ---- the table ---- */

static struct fc_server_space *find(struct fc_server *server, const char *name)
{
	fc_list_for_each(link, &server->spaces)
	{
		struct fc_server_space *space = fc_container_of(link, struct fc_server_space, link);
		if (strcmp(space->name, name) == 0)
			return space;
	}
	return NULL;
}

static const struct fc_server_space *find_tag(const struct fc_server *server, uint16_t tag)
{
	fc_list_for_each(link, &server->spaces)
	{
		const struct fc_server_space *space = fc_container_of(link, struct fc_server_space, link);
		if (space->tag == tag)
			return space;
	}
	return NULL;
}

static void delete_space(struct fc_server *server, struct fc_server_space *space)
{
	fc_list_remove(&space->link);
	server->space_count--;
	fc_alloc_free(server->opts.alloc, space, sizeof(*space));
}

/* Names that were taken as they came make room for others when nobody uses them; their counters remain in the sums. */
static void make_room(struct fc_server *server)
{
	if (server->space_count < FC_SERVER_NAMESPACES_MAX)
		return;
	fc_list_for_each(link, &server->spaces)
	{
		struct fc_server_space *space = fc_container_of(link, struct fc_server_space, link);
		if (space->client_count == 0 && space->request_count == 0 && space->opts == NULL) {
			delete_space(server, space);
			return;
		}
	}
}

static int add(struct fc_server *server, const char *name, const struct fc_server_namespace_opts *opts,
	       struct fc_server_space **result, struct fc_error *error)
{
	if (strlen(name) >= FC_WIRE_NAMESPACE_BYTES)
		return fc_error_set(error, FC_EINVAL,
				    "namespace \"%s\": the name has %zu bytes; at most %u are allowed", name,
				    strlen(name), FC_WIRE_NAMESPACE_BYTES - 1);
	uint16_t tag = fc_server_namespace_tag(name);
	const struct fc_server_space *other = find_tag(server, tag);
	if (other != NULL && strcmp(other->name, name) == 0)
		return fc_error_set(error, FC_EINVAL, "namespace \"%s\" is given twice", name);
	if (other != NULL)
		return fc_error_set(error, FC_EINVAL,
				    "namespace \"%s\" has the same 16-bit tag (%04x) as \"%s\"; one of them needs "
				    "another name",
				    name, tag, other->name);
	make_room(server);
	if (server->space_count >= FC_SERVER_NAMESPACES_MAX)
		return fc_error_set(error, FC_ELIMIT, "namespace \"%s\": there are %u already, which is the limit",
				    name, FC_SERVER_NAMESPACES_MAX);
	struct fc_server_space *space = fc_alloc_zeroed(server->opts.alloc, sizeof(*space));
	if (space == NULL)
		return fc_error_set(error, FC_ENOMEM, "namespace \"%s\": no memory", name);
	space->server = server;
	snprintf(space->name, sizeof(space->name), "%s", name);
	space->tag = tag;
	space->salt = salt_of(server->opts.store, name);
	space->opts = opts;
	struct fc_owner_stats stats;
	space->owner = fc_catalog_owner_stats(server->catalog, tag, &stats) == FC_OK ? tag : 0;
	fc_list_push(&server->spaces, &space->link);
	server->space_count++;
	*result = space;
	return FC_OK;
}

static bool is_in(uint32_t id, const uint32_t *ids, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (ids[i] == id)
			return true;
	return false;
}

static bool is_in_a_group_of(const struct fc_server_peer *peer, const struct fc_server_namespace_opts *opts)
{
	bool is_found = is_in(peer->gid, opts->gids, opts->gid_count);
	for (uint32_t i = 0; i < peer->group_count && !is_found; i++)
		is_found = is_in(peer->groups[i], opts->gids, opts->gid_count);
	return is_found;
}

static int check_peer(const struct fc_server_space *space, const struct fc_server_peer *peer, struct fc_error *error)
{
	const struct fc_server_namespace_opts *opts = space->opts;
	if (opts == NULL || (opts->uid_count == 0 && opts->gid_count == 0) ||
	    is_in(peer->uid, opts->uids, opts->uid_count) || is_in_a_group_of(peer, opts))
		return FC_OK;
	return fc_error_set(error, FC_EINVAL, "namespace \"%s\": user %u of group %u may not use it", space->name,
			    peer->uid, peer->gid);
}

int fc_space_for(struct fc_server *server, const char *name, const struct fc_server_peer *peer,
		 struct fc_server_space **space, struct fc_error *error)
{
	*space = find(server, name);
	if (*space == NULL && name[0] == 0 && server->opts.namespace_count > 0)
		*space = find(server, "default");
	if (*space != NULL)
		return check_peer(*space, peer, error);
	if (server->opts.namespace_count > 0 || server->opts.is_closed)
		return fc_error_set(error, FC_EINVAL, "namespace \"%s\": the daemon knows none of this name", name);
	return add(server, name, NULL, space, error);
}

int fc_spaces_init(struct fc_server *server, struct fc_error *error)
{
	for (uint32_t i = 0; i < server->opts.namespace_count; i++) {
		const struct fc_server_namespace_opts *opts = &server->opts.namespaces[i];
		struct fc_server_space *space;
		int code = add(server, opts->name, opts, &space, error);
		if (code != FC_OK)
			return code;
	}
	return FC_OK;
}

void fc_spaces_deinit(struct fc_server *server)
{
	fc_list_for_each_safe(link, &server->spaces)
	{
		delete_space(server, fc_container_of(link, struct fc_server_space, link));
	}
}
