/* report.h - what a run leaves beside its data (report.c, account.c). */
#ifndef GP_CLI_REPORT_H
#define GP_CLI_REPORT_H

#include "cli/cli.h"
#include "base/outfile.h"
#include "report/report.h"
#include "simulate/simulate.h"

typedef struct gp_report_files {
    gp_outfile report, trace;  /* of several ranks open on rank 0 alone; */
    bool reports, traces;      /* ... they are asked for */
    bool html;
    bool account;              /* a table on stderr; as JSON: the verdict alone */
    const char *const *set; int nset;  /* what --set said */
    bool retuned;              /* the run was: what it measured is of its last part */
    char verdict[1124];        /* after gp_report_close; "": none was found */
} gp_report_files;

/* Opens the files that are asked for; sets in `o` what has to be measured. False with
 * an error, then gp_report_drop is to be called. */
bool gp_report_open(gp_report_files *f, const gp_args *args, gp_pipeline *p, gp_run_options *o,
                    gp_errs *errs);
bool gp_report_accounts(const gp_args *args);          /* what `account` is in one process */
/* After the run. What went wrong is added to `errs`. */
void gp_report_close(gp_report_files *f, const gp_pipeline *p, gp_outcome outcome, gp_errs *errs);
/* The file of `simulate --report`: JSON, or a page. False after errors. */
bool gp_report_simulated(const char *path, const gp_pipeline *p, const gp_simulated *s, const gp_report_about *about,
                         gp_errs *errs);
/* Why there is no table, of one process or of `all` ranks. */
void gp_say_not_measured(bool all);
/* Removes what is not written. */
void gp_report_drop(gp_report_files *f);

/* For reports of several ranks. The numbers of this process; report: NULL where there are none, and `errs` says why. */
typedef struct gp_own_report {
    gp_arena arena;
    gp_counters now;
    gp_report *report;
    gp_report_about about;
} gp_own_report;
void gp_own_report_make(gp_own_report *own, const gp_report_files *f, const gp_pipeline *p, gp_outcome outcome,
                        gp_errs *errs);
void gp_own_report_free(gp_own_report *own);
/* The plan as a picture, colored by a report's JSON. */
bool gp_report_draw(const gp_pipeline *p, const char *report, size_t bytes, FILE *to, gp_errs *errs);
/* Writes a file, if it is open, and gives it its name. `write` adds to `errs` what goes wrong beside writing. */
void gp_report_put(gp_outfile *f, bool (*write)(void *arg, FILE *to), void *arg, gp_errs *errs);
/* page.c. Writes one HTML page that needs nothing else: `report_json` as figures, `trace_json`
 * (Chrome's trace format, a JSON object) as a timeline, `plan_svg` (gp_dump_svg) as it
 * is. The texts are UTF-8. Of a NULL the page says that it is not there. false: `f`
 * cannot be written. */
bool gp_page_write(FILE *f, const char *report_json, const char *trace_json,
                   const char *plan_svg);
enum { GP_PAGE_SLICES = 20000 };       /* the most on a page */

#endif
