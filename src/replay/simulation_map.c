/* Sessions keep their colour over all pictures of the page. Colours are given in the order in which sessions lie in
 * the first picture, so that neighbours differ there. */
#include "replay/simulation_map.h"

#include "cli/table.h"
#include "replay/simulation_numbers.h"
#include "report/page.h"
#include "report/plot.h"

#include <stdlib.h>

#define TINTS (1u << 18) /* more than twice the cells of all pictures of a page */
#define COLUMNS 8

struct tint {
	uint32_t owner; /* 0: none here */
	unsigned char look;
};

struct mapping {
	struct fc_page *page;
	struct fc_simulation_shape shape;
	struct tint *tints;
	unsigned next_colour;
	const struct fc_simulated *first, *second; /* whose pictures are shown; second may be NULL */
};

static const struct fc_arena_map *last_map(const struct fc_simulated *run)
{
	return &run->maps[FC_MAP_MOMENTS - 1];
}

static bool has_map(const struct fc_simulated *run)
{
	return fc_run_has_ended(run) && run->maps != NULL && last_map(run)->arena_bytes > 0 &&
	       last_map(run)->extent_count > 0;
}

/* ---- colours ---- */

static unsigned char look_of(struct mapping *mapping, uint32_t owner)
{
	if (owner < FC_MAP_SESSIONS)
		return owner == FC_MAP_FREE ? FC_CELL_FREE : owner == FC_MAP_MIXED ? FC_CELL_MIXED : FC_CELL_SHARED;
	uint32_t at = owner * 0x9e3779b1u % TINTS;
	while (mapping->tints[at].owner != 0 && mapping->tints[at].owner != owner)
		at = (at + 1) % TINTS;
	if (mapping->tints[at].owner == 0) {
		unsigned colour = mapping->next_colour++ % FC_CELL_COLOURS;
		mapping->tints[at] = (struct tint){owner, (unsigned char)(FC_CELL_OWNED + colour)};
	}
	return mapping->tints[at].look;
}

/* ---- pictures ---- */

static void add_picture(struct mapping *mapping, const struct fc_map_picture *picture, const char *title,
			const char *note)
{
	unsigned char looks[FC_MAP_CELLS];
	for (size_t i = 0; i < FC_MAP_CELLS; i++)
		looks[i] = look_of(mapping, picture->cells[i]);
	struct fc_map map = {
		.title = title, .note = note, .looks = looks, .row_count = FC_MAP_ROWS, .column_count = FC_MAP_COLUMNS};
	fc_map_add(mapping->page, &map);
}

static void add_whole(struct mapping *mapping, const struct fc_simulated *run)
{
	char title[FC_HUMAN_BYTES + 16], note[160], size[FC_HUMAN_BYTES], used[FC_HUMAN_BYTES], cell[FC_HUMAN_BYTES];
	const struct fc_arena_map *map = last_map(run);
	snprintf(title, sizeof(title), "%s, at the end", run->policy->name);
	snprintf(note, sizeof(note), "%s of %s in use; a cell is %s.", fc_human_bytes(map->used_bytes, used),
		 fc_human_bytes(map->arena_bytes, size), fc_human_bytes(map->whole.cell_bytes, cell));
	add_picture(mapping, &map->whole, title, note);
}

static void add_near(struct mapping *mapping, const struct fc_simulated *run)
{
	char title[FC_HUMAN_BYTES + 16], note[160], size[FC_HUMAN_BYTES], cell[FC_HUMAN_BYTES];
	const struct fc_map_picture *picture = &last_map(run)->near;
	snprintf(title, sizeof(title), "%s, from nearby", run->policy->name);
	snprintf(note, sizeof(note), "The fullest %s of it; a cell is as long as a block, %s.",
		 fc_human_bytes(picture->cell_bytes * FC_MAP_CELLS, size), fc_human_bytes(picture->cell_bytes, cell));
	add_picture(mapping, picture, title, note);
}

/* Of a small arena the whole is shown as near as it gets. */
static bool is_nearer(const struct fc_simulated *run)
{
	return last_map(run)->near.cell_bytes < last_map(run)->whole.cell_bytes;
}

static void add_pair(struct mapping *mapping, void (*add)(struct mapping *mapping, const struct fc_simulated *run))
{
	fc_page_begin_columns(mapping->page, 2);
	add(mapping, mapping->first);
	if (mapping->second != NULL)
		add(mapping, mapping->second);
	fc_page_end_columns(mapping->page);
}

static void add_moments(struct mapping *mapping)
{
	fc_page_paragraph(mapping->page,
			  "The same arena on the way there: as it fills, and as whole sessions are reclaimed "
			  "and others take their room.");
	fc_page_begin_columns(mapping->page, FC_MAP_MOMENTS - 1);
	for (int moment = 0; moment < FC_MAP_MOMENTS - 1; moment++) {
		char title[FC_HUMAN_BYTES + 16], note[160], used[FC_HUMAN_BYTES], requests[FC_HUMAN_BYTES];
		const struct fc_arena_map *map = &mapping->first->maps[moment];
		snprintf(title, sizeof(title), "%s, after %d %%", mapping->first->policy->name,
			 (moment + 1) * 100 / FC_MAP_MOMENTS);
		snprintf(note, sizeof(note), "%s requests; %s in use.", fc_human_count(map->request_count, requests),
			 fc_human_bytes(map->used_bytes, used));
		add_picture(mapping, &map->whole, title, note);
	}
	fc_page_end_columns(mapping->page);
}

/* ---- numbers ---- */

static void print_cells(const struct fc_simulated *run, char cells[COLUMNS][FC_HUMAN_BYTES])
{
	const struct fc_arena_map *map = last_map(run);
	snprintf(cells[0], FC_HUMAN_BYTES, "%s", run->policy->name);
	fc_human_bytes(map->used_bytes, cells[1]);
	fc_human_count(map->session_count, cells[2]);
	fc_human_count(map->extents_p50, cells[3]);
	fc_human_count(map->extents_p90, cells[4]);
	fc_human_count(map->extents_max, cells[5]);
	fc_human_bytes(map->extent_bytes / map->extent_count, cells[6]);
	fc_human_bytes(map->gap_bytes_max, cells[7]);
}

static int add_table(struct mapping *mapping)
{
	static const char *const headings[COLUMNS] = {"policy", "in use", "sessions",    "extents of one, p50",
						      "p90",    "most",   "mean extent", "largest gap"};
	size_t count = 0, room = mapping->shape.policy_count;
	char(*texts)[COLUMNS][FC_HUMAN_BYTES] = calloc(room, sizeof(*texts));
	const char **cells = calloc(room * COLUMNS, sizeof(*cells));
	bool *is_marked = calloc(room, sizeof(*is_marked));
	int code = texts == NULL || cells == NULL || is_marked == NULL ? FC_ENOMEM : FC_OK;
	for (size_t i = 0; i < room && code == FC_OK; i++) {
		const struct fc_simulated *run = &mapping->shape.last[i];
		if (!has_map(run))
			continue;
		print_cells(run, texts[count]);
		is_marked[count] = fc_policy_is_flat(run->policy);
		for (size_t column = 0; column < COLUMNS; column++)
			cells[count * COLUMNS + column] = texts[count][column];
		count++;
	}
	struct fc_page_table table = {headings, cells, is_marked, COLUMNS, count};
	if (code == FC_OK)
		fc_page_add_table(mapping->page, &table);
	free(texts);
	free(cells);
	free(is_marked);
	return code;
}

/* ---- the section ---- */

/* FlatCake itself if it ran, and the first other that is none of its variants. */
static void choose(struct mapping *mapping)
{
	for (size_t i = 0; i < mapping->shape.policy_count; i++) {
		const struct fc_simulated *run = &mapping->shape.last[i];
		if (!has_map(run) || fc_policy_is_variant(run->policy))
			continue;
		if (mapping->first == NULL || fc_policy_is_flat(run->policy)) {
			mapping->second = mapping->second == NULL ? mapping->first : mapping->second;
			mapping->first = run;
		} else if (mapping->second == NULL) {
			mapping->second = run;
		}
	}
}

static void add_keys(const struct mapping *mapping)
{
	static const char *const texts[FC_CELL_OWNED + 1] = {
		[FC_CELL_FREE] = "free",
		[FC_CELL_MIXED] = "several sessions in a cell, none with half of it",
		[FC_CELL_SHARED] = "prompts that sessions share",
		[FC_CELL_OWNED] = "a session each; colours repeat",
	};
	fc_map_add_keys(mapping->page, texts);
}

int fc_simulation_add_map(const struct fc_simulation *simulation, struct fc_page *page)
{
	struct mapping mapping = {.page = page, .shape = fc_simulation_shape(simulation)};
	choose(&mapping);
	if (mapping.first == NULL)
		return FC_OK;
	mapping.tints = calloc(TINTS, sizeof(*mapping.tints));
	if (mapping.tints == NULL)
		return FC_ENOMEM;
	fc_page_section(
		page, "Where sessions lie on the SSD",
		"The arena from its first byte to its last, row by row. An extent is a piece of it in which "
		"everything belongs to one session: the fewer a session has, the fewer reads bring it back. "
		"Pieces that hold nothing but resume points are drawn, and not counted as extents: a load reads "
		"one of them.");
	int code = add_table(&mapping);
	add_keys(&mapping);
	add_pair(&mapping, add_whole);
	if (is_nearer(mapping.first) || (mapping.second != NULL && is_nearer(mapping.second))) {
		fc_page_paragraph(page, "A cell of these shows whose most of it is, not in how many pieces it lies. "
					"From nearby:");
		add_pair(&mapping, add_near);
	}
	add_moments(&mapping);
	free(mapping.tints);
	return code;
}
