/* Sessions: found by id, ordered by use, and knowing what they stand on and what stands on them.
 *
 * catalog->sessions has all of them, least recently used first. A session that is used moves to the recent end, and
 * then everything that it stands on moves behind it. So what others need is always more recent than they are, and
 * reclaim that begins at the old end (reclaim.c) meets dependents before what they depend on.
 *
 *      session.deps:  | dep | dep | dep |        a dep is in the array of the one that stands,
 *                        |                       and in the list of the one that is stood upon
 *      on.dependents: <--o--> ... <-->
 *
 * A session has at most one dep on another, and none on itself. It is *loose* where the session has only spare copies
 * of what the other names and can be without it: then the other may go, and the session takes over. Only the others
 * count as dependents. Invariants, besides those of catalog.h: whoever names an entry that a segment has too is known
 * to the segment's session, at least loosely; dependent_count and busy_dependent_count are what the list says. Deps are
 * added when blocks are published, move or are taken over, and go with either session.
 *
 * Adding one looks at the session's deps; forgetting a session at its deps and dependents; nothing looks at all. */
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
		fc_list_init(&session->dependents);
		fc_list_push(&catalog->session_table[bucket_of(catalog, id)], &session->table_link);
		fc_list_push(&catalog->sessions, &session->all_link);
		catalog->session_count++;
		session->owner = fc_owner_find(catalog, fc_session_tag(id));
		if (session->owner != NULL)
			session->owner->session_count++;
	}
	*result = session;
	return FC_OK;
}

/* ---- what stands on what ---- */

static void count_dependent(struct fc_catalog *catalog, const struct fc_dep *dep, int32_t sign)
{
	struct fc_session *on = dep->on;
	on->dependent_count += (uint32_t)sign;
	if (dep->from->owner != on->owner)
		on->foreign_count += (uint32_t)sign;
	if (dep->from->is_busy)
		on->busy_dependent_count += (uint32_t)sign;
	fc_reclaim_sort(catalog, on);
}

/* The dep lies elsewhere than its neighbours think. */
static void relink(struct fc_dep *dep)
{
	dep->link.prev->next = dep->link.next->prev = &dep->link;
}

static struct fc_dep *find_dep(const struct fc_session *session, const struct fc_session *on)
{
	for (uint32_t i = 0; i < session->dep_count; i++)
		if (session->deps[i].on == on)
			return &session->deps[i];
	return NULL;
}

static int add_dep(struct fc_catalog *catalog, struct fc_session *session, struct fc_session *on, bool is_loose)
{
	struct fc_dep *dep = find_dep(session, on);
	if (session == on || (dep != NULL && (is_loose || !dep->is_loose)))
		return FC_OK;
	if (dep == NULL) {
		struct fc_dep *before = session->deps;
		int code = fc_alloc_reserve(catalog->alloc, (void **)&session->deps, &session->dep_room,
					    session->dep_count + 1ull, sizeof(*session->deps));
		if (code != FC_OK)
			return code;
		for (uint32_t i = 0; i < session->dep_count && session->deps != before; i++)
			relink(&session->deps[i]);
		dep = &session->deps[session->dep_count++];
		*dep = (struct fc_dep){.from = session, .on = on};
		fc_list_push(&on->dependents, &dep->link);
	}
	dep->is_loose = is_loose;
	if (!is_loose)
		count_dependent(catalog, dep, 1);
	return FC_OK;
}

int fc_session_depend(struct fc_catalog *catalog, struct fc_session *session, struct fc_session *on)
{
	return add_dep(catalog, session, on, false);
}

int fc_session_depend_loosely(struct fc_catalog *catalog, struct fc_session *session, struct fc_session *on)
{
	return add_dep(catalog, session, on, true);
}

int fc_session_depend_after_move(struct fc_catalog *catalog, struct fc_session *from, struct fc_session *to)
{
	int code = fc_session_depend(catalog, from, to);
	fc_list_for_each_safe(link, &from->dependents)
	{
		const struct fc_dep *dep = fc_container_of(link, struct fc_dep, link);
		catalog->sessions_examined++;
		if (code == FC_OK)
			code = add_dep(catalog, dep->from, to, dep->is_loose);
	}
	return code;
}

static void forget_deps(struct fc_catalog *catalog, struct fc_session *session)
{
	for (uint32_t i = 0; i < session->dep_count; i++) {
		struct fc_dep *dep = &session->deps[i];
		fc_list_remove(&dep->link);
		if (!dep->is_loose)
			count_dependent(catalog, dep, -1);
	}
	fc_alloc_free(catalog->alloc, session->deps, session->dep_room * sizeof(*session->deps));
	session->deps = NULL;
	session->dep_count = 0;
	session->dep_room = 0;
}

/* Nobody may point at a session that is deleted: those that stood on it lose the dep. They keep no segment behind it.
 */
static void forget_dependents(struct fc_catalog *catalog, struct fc_session *session)
{
	struct fc_link *link;
	while ((link = fc_list_pop(&session->dependents)) != NULL) {
		struct fc_dep *dep = fc_container_of(link, struct fc_dep, link);
		struct fc_session *from = dep->from;
		const struct fc_dep *last = &from->deps[--from->dep_count];
		catalog->sessions_examined++;
		if (dep == last)
			continue;
		*dep = *last;
		relink(dep);
	}
}

/* ---- coming and going ---- */

void fc_session_settle(struct fc_catalog *catalog, struct fc_session *session)
{
	if (!fc_list_is_empty(&session->segments) || session->reserved_count > 0 || session->lease_count > 0 ||
	    session->keep_count > 0)
		return;
	forget_deps(catalog, session);
	forget_dependents(catalog, session);
	fc_check(!fc_link_is_linked(&session->spill_link));
	fc_reclaim_forget(catalog, session);
	fc_list_remove(&session->table_link);
	fc_list_remove(&session->all_link);
	catalog->session_count--;
	if (session->owner != NULL)
		session->owner->session_count--;
	fc_alloc_free(catalog->alloc, session, sizeof(*session));
}

void fc_session_let_go(struct fc_catalog *catalog, struct fc_session *session)
{
	fc_check(session->keep_count > 0);
	session->keep_count--;
	fc_session_settle(catalog, session);
}

void fc_session_add_lease(struct fc_catalog *catalog, struct fc_session *session)
{
	if (session->lease_count++ == 0)
		fc_reclaim_sort(catalog, session);
}

void fc_session_drop_lease(struct fc_catalog *catalog, struct fc_session *session)
{
	fc_check(session->lease_count > 0);
	if (--session->lease_count == 0)
		fc_reclaim_sort(catalog, session);
}

void fc_session_add_reserved(struct fc_catalog *catalog, struct fc_session *session)
{
	if (session->reserved_count++ == 0)
		fc_reclaim_sort(catalog, session);
}

void fc_session_drop_reserved(struct fc_catalog *catalog, struct fc_session *session)
{
	fc_check(session->reserved_count > 0);
	if (--session->reserved_count == 0)
		fc_reclaim_sort(catalog, session);
}

/* ---- use ---- */

static void move_to_recent_end(struct fc_catalog *catalog, struct fc_session *session)
{
	session->used_seq = ++catalog->use_seq;
	fc_list_remove(&session->all_link);
	fc_list_push(&catalog->sessions, &session->all_link);
	fc_reclaim_sort(catalog, session);
}

void fc_session_touch(struct fc_catalog *catalog, struct fc_session *session)
{
	/* `deps` begin at the root of the path, which must end up as the most recent. */
	move_to_recent_end(catalog, session);
	for (uint32_t i = session->dep_count; i-- > 0;)
		if (!session->deps[i].is_loose)
			move_to_recent_end(catalog, session->deps[i].on);
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
