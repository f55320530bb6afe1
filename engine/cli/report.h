/* report.h - what a run leaves beside its data (report.c, account.c). */
#ifndef GP_CLI_REPORT_H
#define GP_CLI_REPORT_H

#include "cli/cli.h"
#include "base/outfile.h"
#include "report/report.h"
#include "simulate/simulate.h"

typedef struct gp_report_files {
    gp_outfile report, trace;
    bool html;
    bool account;              /* a table on stderr; as JSON: the verdict alone */
    const char *const *set; int nset;  /* what --set said */
    char verdict[700];         /* after gp_report_close; "": none was found */
} gp_report_files;

/* Opens the files that are asked for; sets in `o` what has to be measured. False with
 * an error, then gp_report_drop is to be called. */
bool gp_report_open(gp_report_files *f, const gp_args *args, gp_pipeline *p, gp_run_options *o,
                    gp_errs *errs);
/* After the run. What went wrong is added to `errs`. */
void gp_report_close(gp_report_files *f, const gp_pipeline *p, gp_outcome outcome, gp_errs *errs);
/* The file of `simulate --report`: JSON, or a page. False after errors. */
bool gp_report_simulated(const char *path, const gp_pipeline *p, const gp_simulated *s, const gp_report_about *about,
                         gp_errs *errs);
/* Removes what is not written. */
void gp_report_drop(gp_report_files *f);

#endif
