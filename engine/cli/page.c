/* page.c - a report as one HTML page.
 *
 * page.html has a mark for each part: {{page.css}}, {{report}}, ... What comes from a
 * run is data to the page: it is never read as HTML, but for the drawing. */
#include <string.h>
#include "cli/report.h"
#include "base/embed.h"

const gp_blob *gp_embedded(const char *name)
{
    const gp_blob *b = gp_blobs;
    while (strcmp(b->name, name))
        b++;
    return b;
}

static const char *embedded(const char *name)
{
    return (const char *)gp_embedded(name)->data;
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

bool gp_page_write(FILE *f, const char *report_json, const char *trace_json,
                   const char *plan_svg)
{
    const struct { const char *mark, *text; bool json; } part[] = {
        { "page.css", embedded("engine/cli/page.css"), false },
        { "page.js", embedded("engine/cli/page.js"), false },
        { "page_trace.js", embedded("engine/cli/page_trace.js"), false },
        { "page_timeline.js", embedded("engine/cli/page_timeline.js"), false },
        { "page_hands.js", embedded("engine/cli/page_hands.js"), false },
        { "report", report_json, true },
        { "trace", trace_json, true },
        { "plan", plan_svg ? plan_svg : "", false },
    };
    const char *s = embedded("engine/cli/page.html"), *mark;
    while ((mark = strstr(s, "{{"))) {
        const char *end = strstr(mark, "}}");
        size_t n = (size_t)(end - mark) - 2, i = 0;
        fwrite(s, 1, (size_t)(mark - s), f);
        while (strlen(part[i].mark) != n || strncmp(part[i].mark, mark + 2, n))
            i++;
        if (part[i].json)
            put_json(f, part[i].text);
        else
            fputs(part[i].text, f);
        s = end + 2;
    }
    fputs(s, f);
    return !ferror(f);
}
