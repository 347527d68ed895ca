/* Sessions: found by id, ordered by use, and knowing what they stand on.
 *
 * `order` keeps, per medium, the sessions with segments there, least recently used first. A session that is used moves
 * to the recent end, and then everything that it stands on moves behind it. So what others need is always more recent
 * than they are, and reclaim that begins at the old end meets dependents before what they depend on. The sessions of an
 * owner are in a list of the same order. */
#include "catalog/state.h"

#define BUCKETS_FIRST 256u

static uint64_t bucket_of(const struct fc_catalog *catalog, struct fc_session_id id)
{
	uint64_t mixed = (id.high ^ catalog->opts.hash_seed) * 0x9e3779b97f4a7c15ull ^ id.low;
	mixed = (mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9ull;
	return (mixed ^ (mixed >> 32)) & (catalog->session_bucket_count - 1);
}

struct fc_session *fc_session_find(struct fc_catalog *catalog, struct fc_session_id id)
{
	if (catalog->session_bucket_count == 0)
		return NULL;
	fc_list_for_each(link, &catalog->session_table[bucket_of(catalog, id)])
	{
		struct fc_session *session = fc_container_of(link, struct fc_session, table_link);
		if (session->id.high == id.high && session->id.low == id.low)
			return session;
	}
	return NULL;
}

static int grow_table(struct fc_catalog *catalog)
{
	uint64_t old_count = catalog->session_bucket_count;
	uint64_t new_count = old_count == 0 ? BUCKETS_FIRST : old_count * 2;
	struct fc_link *table = fc_alloc_zeroed(catalog->alloc, new_count * sizeof(*table));
	if (table == NULL)
		return FC_ENOMEM;
	for (uint64_t i = 0; i < new_count; i++)
		fc_list_init(&table[i]);
	struct fc_link *old_table = catalog->session_table;
	catalog->session_table = table;
	catalog->session_bucket_count = new_count;
	for (uint64_t i = 0; i < old_count; i++) {
		struct fc_link *link;
		while ((link = fc_list_pop(&old_table[i])) != NULL) {
			struct fc_session *session = fc_container_of(link, struct fc_session, table_link);
			fc_list_push(&table[bucket_of(catalog, session->id)], link);
		}
	}
	fc_alloc_free(catalog->alloc, old_table, old_count * sizeof(*table));
	return FC_OK;
}

int fc_session_obtain(struct fc_catalog *catalog, struct fc_session_id id, enum fc_session_kind kind,
		      struct fc_session **result)
{
	struct fc_session *session = fc_session_find(catalog, id);
	if (session == NULL) {
		if (catalog->session_count >= catalog->session_bucket_count && grow_table(catalog) != FC_OK)
			return FC_ENOMEM;
		session = fc_alloc_zeroed(catalog->alloc, sizeof(*session));
		if (session == NULL)
			return FC_ENOMEM;
		session->id = id;
		session->kind = kind;
		session->created_seq = session->used_seq = ++catalog->use_seq;
		fc_list_init(&session->segments);
		fc_list_push(&catalog->session_table[bucket_of(catalog, id)], &session->table_link);
		fc_list_push(&catalog->sessions, &session->all_link);
		catalog->session_count++;
		session->owner = fc_owner_find(catalog, fc_session_tag(id));
		if (session->owner != NULL) {
			fc_list_push(&session->owner->sessions, &session->owner_link);
			session->owner->session_count++;
		}
	}
	*result = session;
	return FC_OK;
}

static void forget_deps(struct fc_catalog *catalog, struct fc_session *session)
{
	for (uint32_t i = 0; i < session->dep_count; i++)
		session->deps[i]->dependent_count--;
	fc_alloc_free(catalog->alloc, session->deps, session->dep_room * sizeof(*session->deps));
	session->deps = NULL;
	session->dep_count = 0;
	session->dep_room = 0;
}

/* Nobody may point at a session that is deleted: those that stood on it lose the edge. They keep no segment behind it.
 */
static void forget_dependents(struct fc_catalog *catalog, struct fc_session *session)
{
	fc_list_for_each(link, &catalog->sessions)
	{
		if (session->dependent_count == 0)
			return;
		struct fc_session *other = fc_container_of(link, struct fc_session, all_link);
		for (uint32_t i = 0; i < other->dep_count; i++) {
			if (other->deps[i] != session)
				continue;
			other->deps[i--] = other->deps[--other->dep_count];
			session->dependent_count--;
		}
	}
}

void fc_session_settle(struct fc_catalog *catalog, struct fc_session *session)
{
	if (!fc_list_is_empty(&session->segments) || session->reserved_count > 0 || session->lease_count > 0)
		return;
	forget_deps(catalog, session);
	forget_dependents(catalog, session);
	fc_check(!fc_link_is_linked(&session->spill_link));
	fc_list_remove(&session->table_link);
	fc_list_remove(&session->all_link);
	catalog->session_count--;
	if (session->owner != NULL) {
		fc_list_remove(&session->owner_link);
		session->owner->session_count--;
	}
	fc_alloc_free(catalog->alloc, session, sizeof(*session));
}

static void move_to_recent_end(struct fc_catalog *catalog, struct fc_session *session)
{
	session->used_seq = ++catalog->use_seq;
	fc_list_remove(&session->all_link);
	fc_list_push(&catalog->sessions, &session->all_link);
	if (session->owner != NULL) {
		fc_list_remove(&session->owner_link);
		fc_list_push(&session->owner->sessions, &session->owner_link);
	}
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		if (session->segment_count[medium] == 0)
			continue;
		fc_list_remove(&session->order[medium]);
		fc_list_push(&catalog->arenas[medium].sessions, &session->order[medium]);
	}
}

void fc_session_touch(struct fc_catalog *catalog, struct fc_session *session)
{
	/* `deps` begin at the root of the path, which must end up as the most recent. */
	move_to_recent_end(catalog, session);
	for (uint32_t i = session->dep_count; i-- > 0;)
		move_to_recent_end(catalog, session->deps[i]);
}

int fc_session_depend(struct fc_catalog *catalog, struct fc_session *session, struct fc_session *on)
{
	if (session == on)
		return FC_OK;
	for (uint32_t i = 0; i < session->dep_count; i++)
		if (session->deps[i] == on)
			return FC_OK;
	int code = fc_alloc_reserve(catalog->alloc, (void **)&session->deps, &session->dep_room,
				    session->dep_count + 1ull, sizeof(*session->deps));
	if (code != FC_OK)
		return code;
	session->deps[session->dep_count++] = on;
	on->dependent_count++;
	return FC_OK;
}

int fc_session_depend_after_move(struct fc_catalog *catalog, struct fc_session *from, struct fc_session *to)
{
	int code = fc_session_depend(catalog, from, to);
	fc_list_for_each(link, &catalog->sessions)
	{
		struct fc_session *other = fc_container_of(link, struct fc_session, all_link);
		bool stands_on_from = false;
		for (uint32_t i = 0; i < other->dep_count; i++)
			stands_on_from |= other->deps[i] == from;
		if (stands_on_from && code == FC_OK)
			code = fc_session_depend(catalog, other, to);
	}
	return code;
}

void fc_session_table_deinit(struct fc_catalog *catalog)
{
	struct fc_link *link;
	while ((link = fc_list_pop(&catalog->sessions)) != NULL) {
		struct fc_session *session = fc_container_of(link, struct fc_session, all_link);
		fc_alloc_free(catalog->alloc, session->deps, session->dep_room * sizeof(*session->deps));
		fc_alloc_free(catalog->alloc, session, sizeof(*session));
	}
	fc_alloc_free(catalog->alloc, catalog->session_table,
		      catalog->session_bucket_count * sizeof(*catalog->session_table));
}
