#include "report/page.h"

#include "host/whole_file.h"

#include <stdio.h>
#include <string.h>

/* Colours that colour-blind readers can tell apart, a darker set of them for paper and light screens, a lighter one for
 * dark screens: c for lines and bars that stand for something by name, p for parts of a whole, l for the cells of a
 * map. */
static const char style[] =
	":root{color-scheme:light;--paper:#fff;--ink:#1a1c1e;--quiet:#55606a;--rule:#dfe3e7;--mark:#fff6d6;--free:#"
	"eef0f2;"
	"--mixed:#8b949d;--c0:#c2410c;--c1:#0b6bb5;--c2:#1b7f5c;--c3:#8a3ea8;--c4:#a67c00;--c5:#c12a6b;--c6:#4a5560;"
	"--c7:#2a9db0;--p0:#b9c2cb;--p1:#6d83f2;--p2:#8c949c;--p3:#3f4a56}\n"
	"@media screen and (prefers-color-scheme:dark){:root{color-scheme:dark;--paper:#15181b;--ink:#e8eaed;"
	"--quiet:#a3adb7;--rule:#333a41;--mark:#3a3418;--free:#23282d;--mixed:#77818b;--c0:#fb8b5a;--c1:#62b0f0;"
	"--c2:#4fc79a;--c3:#c58be0;--c4:#e0b63c;--c5:#f078a8;--c6:#a8b3bd;--c7:#63cfe0;--p0:#4d5761;--p1:#8ea0ff;"
	"--p2:#737d87;--p3:#b9c4cf}}\n"
	"*{box-sizing:border-box}body{margin:0 auto;max-width:60rem;padding:1.5rem 1rem 3rem;background:var(--paper);"
	"color:var(--ink);font:16px/1.5 system-ui,sans-serif}\n"
	"h1{font-size:1.6rem;line-height:1.2;margin:0 0 .3rem;overflow-wrap:anywhere}h2{font-size:1.25rem;"
	"margin:2.5rem 0 .3rem;border-top:1px solid var(--rule);padding-top:1rem;break-after:avoid}"
	"h3{font-size:1rem;margin:0 0 .5rem}p{margin:.3rem 0 1rem}.words{padding-left:1.2rem}.words li{margin:.4rem "
	"0}\n"
	".lead,figcaption,footer,summary{color:var(--quiet)}figure{margin:1.5rem 0;break-inside:avoid}"
	"figcaption{font-size:.9rem;margin-top:.3rem}svg{display:block;width:100%;height:auto}\n"
	"svg text{font:13px system-ui,sans-serif;fill:var(--quiet)}.grid{stroke:var(--rule);fill:none}"
	".axis{stroke:var(--quiet);fill:none}\n"
	".line{fill:none;stroke-width:2;stroke-linejoin:round}.dashed{stroke-dasharray:7 4}.dotted{stroke-dasharray:2 "
	"3}"
	".strong{stroke-width:5}\n"
	".line.c0{stroke:var(--c0)}.line.c1{stroke:var(--c1)}.line.c2{stroke:var(--c2)}.line.c3{stroke:var(--c3)}"
	".line.c4{stroke:var(--c4)}.line.c5{stroke:var(--c5)}.line.c6{stroke:var(--c6)}.line.c7{stroke:var(--c7)}\n"
	".c0{fill:var(--c0)}.c1{fill:var(--c1)}.c2{fill:var(--c2)}.c3{fill:var(--c3)}.c4{fill:var(--c4)}"
	".c5{fill:var(--c5)}.c6{fill:var(--c6)}.c7{fill:var(--c7)}.line{fill:none}"
	".cut{stroke:var(--paper);stroke-width:4;fill:none}.p0{fill:var(--p0)}.p1{fill:var(--p1)}.p2{fill:var(--p2)}."
	"p3{fill:var(--p3)}\n"
	".cell{fill:none;stroke-width:13}.l0{stroke:var(--free)}.l1{stroke:var(--mixed)}.l2{stroke:var(--ink)}"
	".l3,.l10{stroke:var(--c1)}.l4,.l11{stroke:var(--c4)}.l5,.l12{stroke:var(--c3)}.l6,.l13{stroke:var(--c2)}"
	".l7,.l14{stroke:var(--c5)}.l8,.l15{stroke:var(--c7)}.l9,.l16{stroke:var(--c0)}"
	".l10,.l11,.l12,.l13,.l14,.l15,.l16{stroke-opacity:.5}\n"
	".columns{display:grid;gap:0 1.5rem}.of2{grid-template-columns:1fr 1fr}.of3{grid-template-columns:1fr 1fr 1fr}"
	".keys{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;padding:0;margin:.4rem 0;font-size:.9rem}"
	".keys li{display:flex;align-items:center;gap:.4rem}.key{width:28px;flex:none}\n"
	".wide,pre{overflow-x:auto}pre{font:.8rem/1.4 "
	"ui-monospace,monospace}table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}"
	"th,td{padding:.25rem .5rem;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap}"
	"th{white-space:normal;vertical-align:bottom}th:first-child{text-align:left;white-space:nowrap}tr.marked{"
	"background:var(--mark)}\n"
	"details{font-size:.9rem}details>div{overflow-x:auto}summary{cursor:pointer}code{font:.85rem "
	"ui-monospace,monospace;overflow-wrap:anywhere}\n"
	"footer{margin-top:3rem;border-top:1px solid var(--rule);padding-top:1rem;font-size:.9rem}\n"
	"@media screen and (max-width:44rem){.columns{display:block}}"
	"@media screen and (max-width:36rem){svg text{font-size:23px}svg.bars "
	"text{font-size:19px}.minor{display:none}.x{transform:translateY(9px)}}"
	"@media print{body{max-width:none;padding:0;font-size:10pt}details{display:none}table{font-size:8pt}"
	"th,td{padding:.15rem .4rem}pre{font-size:7.5pt;white-space:pre-wrap}.wide,pre{overflow:visible}"
	"figure{margin:1rem 0}.plot{max-width:15cm}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}\n";

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

void fc_page_begin_words(struct fc_page *page)
{
	fc_page_add(page, "<ul class=\"words\">");
}

void fc_page_add_words(struct fc_page *page, const char *about, const char *string)
{
	fc_page_add(page, "<li>");
	if (about != NULL)
		add_element(page, "<b>", about, "</b>");
	fc_page_add_text(page, string);
	fc_page_add(page, "</li>\n");
}

void fc_page_end_words(struct fc_page *page)
{
	fc_page_add(page, "</ul>\n");
}

void fc_page_begin_columns(struct fc_page *page, unsigned count)
{
	fc_page_add(page, "<div class=\"columns of%u\">\n", count);
}

void fc_page_end_columns(struct fc_page *page)
{
	fc_page_add(page, "</div>\n");
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
