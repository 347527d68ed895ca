/* One page that needs nothing else: no network, no script, no font, no file beside it. It reads on a phone, on a wide
 * screen, in the dark, and on paper.
 *
 *     struct fc_page page = {0};
 *     fc_page_begin(&page, "FlatCake: trace.jsonl", "30,376 requests, 426 sessions");
 *     fc_page_section(&page, "Who delivers what was stored", "The share of ...");
 *     fc_plot_add(&page, &plot);
 *     fc_page_end(&page, "flatcake replay --simulate ...");
 *     code = fc_page_write(&page, path, error);
 *     fc_page_deinit(&page); */
#ifndef FC_REPORT_PAGE_H
#define FC_REPORT_PAGE_H

#include "report/text.h"

void fc_page_begin(struct fc_page *page, const char *title, const char *lead);

/* A heading, and a paragraph below it; `lead` may be NULL. */
void fc_page_section(struct fc_page *page, const char *heading, const char *lead);

/* Lines whose columns stay where they are. */
void fc_page_add_lines(struct fc_page *page, const char *string);

void fc_page_paragraph(struct fc_page *page, const char *string);

/* A list of sentences; `about`, what one is about, stands out at its head, and may be NULL. */
void fc_page_begin_words(struct fc_page *page);
void fc_page_add_words(struct fc_page *page, const char *about, const char *string);
void fc_page_end_words(struct fc_page *page);

/* What is added in between stands side by side, in two or three columns where there is room. */
void fc_page_begin_columns(struct fc_page *page, unsigned count);
void fc_page_end_columns(struct fc_page *page);

/* A table of texts, cells[row * column_count + column]. The first column names the row, the others are numbers and
 * stand to the right. A row whose `is_marked` is set stands out; is_marked may be NULL. */
struct fc_page_table {
	const char *const *headings;
	const char *const *cells;
	const bool *is_marked;
	size_t column_count, row_count;
};

void fc_page_add_table(struct fc_page *page, const struct fc_page_table *table);

/* `command` is what makes the page again. */
void fc_page_end(struct fc_page *page, const char *command);

/* FC_ENOMEM when the page found no memory, FC_ESYSTEM. */
FC_MUST_USE int fc_page_write(const struct fc_page *page, const char *path, struct fc_error *error);

#endif
