/* reportrig.h - runs a pipeline and keeps what it says of itself: its report and its trace. */
#pragma once

#include "cases.h"
#include "report/report.h"

typedef struct report_seen {
    gp_arena arena;
    gp_report *report;
    char *trace;               /* a line for each event */
    bool made;                 /* the trace was */
} report_seen;

extern const char *report_on;  /* the device or devices, if not `on` (cases.h) */

/* `script` is its work.lua. Fails the test unless the run is done. */
report_seen report_run(const char *text, const char *script, gp_run_options options);
void report_done(report_seen *s);

/* The number behind "key": in a line of the trace, which may end with the text; is `text` in the line? */
double line_member(const char *line, const char *key);
bool line_has(const char *line, const char *text);
