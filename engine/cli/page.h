/* page.h - the page of `gpipe run --report FILE.html`. */
#ifndef GP_CLI_PAGE_H
#define GP_CLI_PAGE_H

#include <stdbool.h>
#include <stdio.h>

/* Writes one HTML page that needs nothing else: `report_json` as figures, `trace_json`
 * (Chrome's trace format, a JSON object) as a timeline, `plan_svg` (gp_dump_svg) as it
 * is. The texts are UTF-8. Of a NULL the page says that it is not there. false: `f`
 * cannot be written. */
bool gp_page_write(FILE *f, const char *report_json, const char *trace_json,
                   const char *plan_svg);

#endif
