#include "report/page.h"

#include "host/whole_file.h"

#include <stdio.h>
#include <string.h>

/* Colours that colour-blind readers can tell apart, a darker set of them for paper and light screens, a lighter one for
 * the dark. */
static const char style[] =
	":root{--paper:#fff;--ink:#1a1c1e;--quiet:#5c6670;--rule:#dfe3e7;--mark:#fff6d6;"
	"--c0:#c2410c;--c1:#0b6bb5;--c2:#1b7f5c;--c3:#8a3ea8;--c4:#a67c00;--c5:#c12a6b;--c6:#4a5560;--c7:#2a9db0}\n"
	"@media(prefers-color-scheme:dark){:root{--paper:#15181b;--ink:#e8eaed;--quiet:#9aa4ae;--rule:#333a41;"
	"--mark:#3a3418;--c0:#fb8b5a;--c1:#62b0f0;--c2:#4fc79a;--c3:#c58be0;--c4:#e0b63c;--c5:#f078a8;"
	"--c6:#a8b3bd;--c7:#63cfe0}}\n"
	"*{box-sizing:border-box}body{margin:0 auto;max-width:60rem;padding:1.5rem 1rem 3rem;background:var(--paper);"
	"color:var(--ink);font:16px/1.5 system-ui,sans-serif}\n"
	"h1{font-size:1.6rem;line-height:1.2;margin:0 0 .3rem}h2{font-size:1.25rem;margin:2.5rem 0 .3rem;"
	"border-top:1px solid var(--rule);padding-top:1rem}h3{font-size:1rem;margin:0 0 .5rem}p{margin:.3rem 0 1rem}\n"
	".lead,figcaption,footer,summary{color:var(--quiet)}figure{margin:1.5rem 0;break-inside:avoid}"
	"figcaption{font-size:.9rem;margin-top:.3rem}svg{display:block;width:100%;height:auto}\n"
	"svg text{font:12px system-ui,sans-serif;fill:var(--quiet)}.grid{stroke:var(--rule);fill:none}"
	".axis{stroke:var(--quiet);fill:none}\n"
	".line{fill:none;stroke-width:2;stroke-linejoin:round}.dashed{stroke-dasharray:5 4}\n"
	".line.c0{stroke:var(--c0)}.line.c1{stroke:var(--c1)}.line.c2{stroke:var(--c2)}.line.c3{stroke:var(--c3)}"
	".line.c4{stroke:var(--c4)}.line.c5{stroke:var(--c5)}.line.c6{stroke:var(--c6)}.line.c7{stroke:var(--c7)}\n"
	".c0{fill:var(--c0)}.c1{fill:var(--c1)}.c2{fill:var(--c2)}.c3{fill:var(--c3)}.c4{fill:var(--c4)}"
	".c5{fill:var(--c5)}.c6{fill:var(--c6)}.c7{fill:var(--c7)}.line{fill:none}\n"
	".keys{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;padding:0;margin:.4rem 0;font-size:.9rem}"
	".keys li{display:flex;align-items:center;gap:.4rem}.key{width:24px}\n"
	".wide,pre{overflow-x:auto}pre{font:.8rem/1.4 "
	"ui-monospace,monospace}table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}"
	"th,td{padding:.25rem .7rem;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap}"
	"th:first-child{text-align:left}tr.marked{background:var(--mark)}\n"
	"details{font-size:.9rem}summary{cursor:pointer}code{font:.85rem "
	"ui-monospace,monospace;overflow-wrap:anywhere}\n"
	"footer{margin-top:3rem;border-top:1px solid var(--rule);padding-top:1rem;font-size:.9rem}\n"
	"@media(max-width:36rem){svg text{font-size:17px}}"
	"@media print{body{max-width:none;font-size:11pt}details{display:none}}\n";

static void add_element(struct fc_page *page, const char *begin, const char *string, const char *end)
{
	fc_page_add(page, "%s", begin);
	fc_page_add_text(page, string);
	fc_page_add(page, "%s\n", end);
}

void fc_page_begin(struct fc_page *page, const char *title, const char *lead)
{
	fc_page_add(page, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
			  "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
			  "<meta name=\"color-scheme\" content=\"light dark\">\n");
	add_element(page, "<title>", title, "</title>");
	fc_page_add(page, "<style>%s</style></head><body>\n", style);
	add_element(page, "<h1>", title, "</h1>");
	if (lead != NULL)
		add_element(page, "<p class=\"lead\">", lead, "</p>");
}

void fc_page_section(struct fc_page *page, const char *heading, const char *lead)
{
	add_element(page, "<h2>", heading, "</h2>");
	if (lead != NULL)
		fc_page_paragraph(page, lead);
}

void fc_page_paragraph(struct fc_page *page, const char *string)
{
	add_element(page, "<p>", string, "</p>");
}

/* Line by line: escaping makes spaces of control characters, which ends of lines are too. */
void fc_page_add_lines(struct fc_page *page, const char *string)
{
	fc_page_add(page, "<pre>");
	while (*string != 0) {
		int length = (int)strcspn(string, "\n");
		char line[1024];
		snprintf(line, sizeof(line), "%.*s", length, string);
		fc_page_add_text(page, line);
		fc_page_add(page, "\n");
		string += length + (string[length] != 0);
	}
	fc_page_add(page, "</pre>\n");
}

void fc_page_add_table(struct fc_page *page, const struct fc_page_table *table)
{
	fc_page_add(page, "<div class=\"wide\"><table><tr>");
	for (size_t column = 0; column < table->column_count; column++)
		add_element(page, "<th>", table->headings[column], "</th>");
	fc_page_add(page, "</tr>\n");
	for (size_t row = 0; row < table->row_count; row++) {
		bool is_marked = table->is_marked != NULL && table->is_marked[row];
		fc_page_add(page, is_marked ? "<tr class=\"marked\">" : "<tr>");
		for (size_t column = 0; column < table->column_count; column++)
			add_element(page, column == 0 ? "<th>" : "<td>",
				    table->cells[row * table->column_count + column], column == 0 ? "</th>" : "</td>");
		fc_page_add(page, "</tr>\n");
	}
	fc_page_add(page, "</table></div>\n");
}

void fc_page_end(struct fc_page *page, const char *command)
{
	add_element(page, "<footer>Made by <code>", command, "</code></footer></body></html>");
}

int fc_page_write(const struct fc_page *page, const char *path, struct fc_error *error)
{
	if (page->is_out_of_memory)
		return fc_error_set(error, FC_ENOMEM, "--report: no memory for the page");
	return fc_whole_file_write(path, page->bytes, page->length, "--report", error);
}
