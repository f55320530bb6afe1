/* report.h - what a run leaves beside its data (report.c, account.c). */
#pragma once

#include "cli/cli.h"
#include "report/files.h"
#include "base/embed.h"
#include "simulate/simulate.h"

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

/* gp_ranks_host.page. */
bool gp_report_page_of_all(FILE *to, const gp_pipeline *p, const char *report, const char *trace, const char *own,
                           gp_errs *errs);
/* page.c. Writes one HTML page that needs nothing else: `report_json` as figures, `trace_json`
 * (Chrome's trace format, a JSON object) as a timeline, `plan_svg` (gp_dump_svg) as it
 * is. The texts are UTF-8. Of a NULL the page says that it is not there. false: `f`
 * cannot be written. */
bool gp_page_write(FILE *f, const char *report_json, const char *trace_json, const char *plan_svg);
/* Writes a page of this folder. A mark is one of the parts, of which the last has none, or a file beside the page. */
typedef struct gp_page_part { const char *mark, *text; bool json; } gp_page_part;
void gp_page_fill(FILE *f, const char *page, const gp_page_part *part);
