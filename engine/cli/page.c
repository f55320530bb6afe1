/* page.c - HTML pages that need nothing else: a report, frames of a run.
 *
 * A page has a mark for each part: {{page.css}}, {{report}}, ... What comes from a
 * run is data to the page: it is never read as HTML, but for the drawing. */
#include <string.h>
#include "cli/report.h"
#include "base/embed.h"

static const char *file_of(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "engine/cli/%s", name);
    return (const char *)gp_blob_find(path)->data;
}

/* JSON in an element of HTML: a '<', which only strings have, could end that. */
static void put_json(FILE *f, const char *json)
{
    for (const char *s = json ? json : "null"; *s;) {
        size_t n = strcspn(s, "<");
        fwrite(s, 1, n, f);
        s += n;
        if (*s) {
            fputs("\\u003c", f);
            s++;
        }
    }
}

static void put_part(FILE *f, const char *mark, const gp_page_part *part)
{
    while (part && part->mark && strcmp(part->mark, mark))
        part++;
    if (!part || !part->mark)
        fputs(file_of(mark), f);
    else if (part->json)
        put_json(f, part->text);
    else
        fputs(part->text, f);
}

void gp_page_fill(FILE *f, const char *page, const gp_page_part *part)
{
    const char *s = file_of(page), *at;
    char mark[32];
    for (; (at = strstr(s, "{{")); s = strstr(at, "}}") + 2) {
        fwrite(s, 1, (size_t)(at - s), f);
        snprintf(mark, sizeof mark, "%.*s", (int)strcspn(at + 2, "}"), at + 2);
        put_part(f, mark, part);
    }
    fputs(s, f);
}

bool gp_page_write(FILE *f, const char *report_json, const char *trace_json, const char *plan_svg)
{
    gp_page_fill(f, "page.html", (const gp_page_part[]){ { "report", report_json, true }, { "trace", trace_json, true },
                                                         { "plan", plan_svg ? plan_svg : "", false }, { 0 } });
    return !ferror(f);
}
