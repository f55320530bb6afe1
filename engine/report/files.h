/* files.h - what a run leaves beside its data: the files of --report and --trace, and what they are made of. */
#pragma once

#include "base/outfile.h"
#include "report/counters.h"
#include "report/report.h"

typedef struct gp_report_files {
    gp_outfile report, trace;  /* of several ranks open on rank 0 alone; */
    bool reports, traces;      /* ... they are asked for */
    bool html;
    bool account, table;       /* what held the run back is asked for; and a table, on stderr */
    const char *const *set; int nset;  /* what --set said */
    const char *commit;        /* of this build */
    bool retuned;              /* the run was: what it measured is of its last part */
    char verdict[1124];        /* after gp_report_close; "": none was found */
} gp_report_files;

enum { GP_PAGE_SLICES = 20000 };       /* the most on a page */

/* Writes a file, if it is open, and gives it its name. `write` adds to `errs` what goes wrong beside writing. */
void gp_report_put(gp_outfile *f, bool (*write)(void *arg, FILE *to), void *arg, gp_errs *errs);

/* The numbers of this process; report: NULL where there are none, and `errs` says why. */
typedef struct gp_own_report {
    gp_arena arena;
    gp_counters now;
    gp_report *report;
    gp_report_about about;
} gp_own_report;
void gp_own_report_make(gp_own_report *own, const gp_report_files *f, const gp_pipeline *p, gp_outcome outcome,
                        gp_errs *errs);
void gp_own_report_free(gp_own_report *own);
