/* Entries lie in the order of their numbers; an open-addressing table of numbers finds them by key. */
#include "replay/oracle.h"

#include "format/shape.h"

#include <stdlib.h>

#define BLOCKS_MAX (1u << 31)

enum {
	IS_COMPUTED = 1 << 0,
	IS_STORED = 1 << 1,
	IS_RESUME_POINT = 1 << 2, /* a prefix that ends with this block can be resumed */
	IS_SHARED = 1 << 3,
	IS_BEGUN = 1 << 4,
};

struct entry {
	struct fc_key key;
	uint32_t session;      /* that used it first */
	uint32_t next;         /* the block that followed first */
	uint32_t losses;       /* before it was last acknowledged */
	uint32_t point_losses; /* the same for what resuming behind it needs, which can be lost alone */
	uint32_t flags;
};

struct fc_oracle {
	uint64_t granule;
	bool has_resume_groups; /* a prefix cannot end just anywhere */
	struct entry *entries;
	uint32_t entry_count;
	uint32_t entry_room;
	uint32_t *places; /* number + 1; 0: empty */
	uint64_t place_count;
};

int fc_oracle_new(struct fc_oracle **result, const struct fc_geometry *geometry)
{
	struct fc_oracle *oracle = calloc(1, sizeof(*oracle));
	if (oracle == NULL)
		return FC_ENOMEM;
	oracle->granule = fc_resume_granule(geometry);
	for (uint32_t group = 0; group < geometry->group_count; group++)
		oracle->has_resume_groups |= geometry->groups[group].rule != FC_RULE_ALL;
	*result = oracle;
	return FC_OK;
}

void fc_oracle_free(struct fc_oracle *oracle)
{
	if (oracle == NULL)
		return;
	free(oracle->entries);
	free(oracle->places);
	free(oracle);
}

/* ---- numbers ---- */

static uint64_t place_of(const struct fc_oracle *oracle, struct fc_key key)
{
	uint64_t place = key.low & (oracle->place_count - 1);
	while (oracle->places[place] != 0) {
		const struct entry *entry = &oracle->entries[oracle->places[place] - 1];
		if (entry->key.high == key.high && entry->key.low == key.low)
			break;
		place = (place + 1) & (oracle->place_count - 1);
	}
	return place;
}

/* Doubles both arrays; the table stays at most half full. */
static int grow(struct fc_oracle *oracle)
{
	uint32_t room = oracle->entry_room == 0 ? 1024 : oracle->entry_room * 2;
	if (oracle->entry_room >= BLOCKS_MAX)
		return FC_ELIMIT;
	struct entry *entries = realloc(oracle->entries, room * sizeof(*entries));
	if (entries == NULL)
		return FC_ENOMEM;
	oracle->entries = entries;
	uint32_t *places = calloc((size_t)room * 2, sizeof(*places));
	if (places == NULL)
		return FC_ENOMEM;
	free(oracle->places);
	oracle->places = places;
	oracle->place_count = (uint64_t)room * 2;
	oracle->entry_room = room;
	for (uint32_t number = 0; number < oracle->entry_count; number++)
		oracle->places[place_of(oracle, entries[number].key)] = number + 1;
	return FC_OK;
}

int fc_oracle_number(struct fc_oracle *oracle, struct fc_key key, uint32_t *number)
{
	if (oracle->entry_count == oracle->entry_room) {
		int code = grow(oracle);
		if (code != FC_OK)
			return code;
	}
	uint64_t place = place_of(oracle, key);
	if (oracle->places[place] == 0) {
		oracle->entries[oracle->entry_count++] =
			(struct entry){.key = key, .session = FC_ORACLE_NONE, .next = FC_ORACLE_NONE};
		oracle->places[place] = oracle->entry_count;
	}
	*number = oracle->places[place] - 1;
	return FC_OK;
}

uint32_t fc_oracle_count(const struct fc_oracle *oracle)
{
	return oracle->entry_count;
}

int fc_oracle_give(struct fc_oracle *oracle, uint32_t count)
{
	fc_check(oracle->entry_count == 0 && oracle->entries == NULL);
	oracle->entries = malloc((count + 1ull) * sizeof(*oracle->entries));
	if (oracle->entries == NULL)
		return FC_ENOMEM;
	for (uint32_t number = 0; number < count; number++)
		oracle->entries[number] = (struct entry){.session = FC_ORACLE_NONE, .next = FC_ORACLE_NONE};
	oracle->entry_count = oracle->entry_room = count;
	return FC_OK;
}

/* ---- who uses what ---- */

void fc_oracle_use(struct fc_oracle *oracle, const uint32_t *path, uint64_t count, uint32_t session)
{
	for (uint64_t i = 0; i < count && session != FC_ORACLE_NONE; i++) {
		struct entry *entry = &oracle->entries[path[i]];
		if (entry->session == FC_ORACLE_NONE)
			entry->session = session;
		else if (entry->session != session)
			entry->flags |= IS_SHARED;
	}
	for (uint64_t i = 0; i + 1 < count && session == FC_ORACLE_NONE; i++) {
		struct entry *entry = &oracle->entries[path[i]];
		if (entry->next == FC_ORACLE_NONE)
			entry->next = path[i + 1];
		else if (entry->next != path[i + 1])
			entry->flags |= IS_SHARED;
	}
}

/* Sessions: blocks are shared from the front. Forks: only the block before a fork is marked, and speaks for all before
 * it. So the last marked block counts in both cases. */
uint64_t fc_oracle_shared(const struct fc_oracle *oracle, const uint32_t *path, uint64_t count)
{
	while (count > 0 && (oracle->entries[path[count - 1]].flags & IS_SHARED) == 0)
		count--;
	return count;
}

/* ---- what there was ---- */

static void set_flag(struct fc_oracle *oracle, const uint32_t *path, uint64_t count, uint32_t flag)
{
	for (uint64_t i = 0; i < count; i++)
		oracle->entries[path[i]].flags |= flag;
}

static uint64_t count_flag(const struct fc_oracle *oracle, const uint32_t *path, uint64_t count, uint32_t flag)
{
	uint64_t leading = 0;
	while (leading < count && (oracle->entries[path[leading]].flags & flag) != 0)
		leading++;
	return leading;
}

void fc_oracle_begun(struct fc_oracle *oracle, const uint32_t *path, uint64_t count)
{
	set_flag(oracle, path, count, IS_BEGUN);
}

uint64_t fc_oracle_begun_prefix(const struct fc_oracle *oracle, const uint32_t *path, uint64_t count)
{
	return count_flag(oracle, path, count, IS_BEGUN);
}

void fc_oracle_computed(struct fc_oracle *oracle, const uint32_t *path, uint64_t count)
{
	set_flag(oracle, path, count, IS_COMPUTED);
}

uint64_t fc_oracle_prefix(const struct fc_oracle *oracle, const uint32_t *path, uint64_t count)
{
	return count_flag(oracle, path, count, IS_COMPUTED);
}

static void mark_resume_point(struct fc_oracle *oracle, const uint32_t *path, uint64_t blocks, uint64_t losses)
{
	if (blocks == 0)
		return;
	struct entry *entry = &oracle->entries[path[blocks - 1]];
	entry->flags |= IS_RESUME_POINT;
	entry->point_losses = (uint32_t)losses;
}

void fc_oracle_saved(struct fc_oracle *oracle, const uint32_t *path, uint64_t count, const uint64_t *resume_points,
		     uint64_t resume_point_count, uint64_t losses)
{
	uint64_t end = count - count % oracle->granule;
	set_flag(oracle, path, end, IS_STORED);
	for (uint64_t i = 0; i < end; i++)
		oracle->entries[path[i]].losses = (uint32_t)losses;
	mark_resume_point(oracle, path, end, losses);
	for (uint64_t i = 0; i < resume_point_count; i++)
		mark_resume_point(oracle, path, resume_points[i], losses);
}

uint64_t fc_oracle_possible(const struct fc_oracle *oracle, const uint32_t *path, uint64_t count)
{
	uint64_t stored = count_flag(oracle, path, count, IS_STORED);
	uint64_t point = stored - stored % oracle->granule;
	while (oracle->has_resume_groups && point > 0 &&
	       (oracle->entries[path[point - 1]].flags & IS_RESUME_POINT) == 0)
		point -= oracle->granule;
	return point;
}

bool fc_oracle_explains(const struct fc_oracle *oracle, const uint32_t *path, uint64_t delivered, uint64_t possible,
			uint64_t losses)
{
	for (uint64_t i = delivered; i < possible; i++)
		if (oracle->entries[path[i]].losses < losses)
			return true;
	return oracle->has_resume_groups && possible > 0 && oracle->entries[path[possible - 1]].point_losses < losses;
}
