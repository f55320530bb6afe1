/* files.c - see files.h. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include "base/c_locale.h"
#include "base/why.h"
#include "report/files.h"

void gp_report_put(gp_outfile *f, bool (*write)(void *arg, FILE *to), void *arg, gp_errs *errs)
{
    char why[GP_WHY];
    if (!f->open)
        return;
    int fd = dup(f->fd);
    FILE *to = fd < 0 ? NULL : fdopen(fd, "w");
    bool ok = to && write(arg, to), bad = to && ferror(to);
    if (!to || (fclose(to) | bad)) {
        if (ok || !to)
            gp_fail(errs, errno == ENOMEM ? GP_E_RESOURCE : GP_E_RUN,
                    (gp_loc){ .file = f->path }, "cannot be written: %s", gp_strerror(errno));
        ok = false;
    }
    if (ok && !gp_outfile_commit(f, why))
        gp_fail(errs, GP_E_RUN, (gp_loc){ .file = f->path }, "%s", why);
    gp_outfile_drop(f);
}

void gp_own_report_make(gp_own_report *own, const gp_report_files *f, const gp_pipeline *p, gp_outcome outcome,
                        gp_errs *errs)
{
    gp_pipeline_info is;
    *own = (gp_own_report){ .report = NULL };
    own->report = gp_report_make(&own->arena, p, errs);
    gp_counters_read(&own->now, p);
    own->about = (gp_report_about){ .outcome = outcome, .account = own->now.source, .naccounts = own->now.nsources,
                                    .set = f->set, .nset = f->nset };
    gp_pipeline_about(p, &is);
    gp_environment_read(&own->about.environment, is.device, f->commit);
    if (own->report)
        gp_verdict_find(own->report, p);
}

void gp_own_report_free(gp_own_report *own)
{
    gp_counters_free(&own->now);
    gp_arena_free(&own->arena);
}

bool gp_pipeline_print_report(const gp_pipeline *p, gp_report_form form, gp_outcome outcome, const char *const *set, int nset,
                              FILE *to, gp_errs *errs)
{
    GP_C_LOCALE;
    gp_own_report own;
    gp_own_report_make(&own, &(gp_report_files){ .set = set, .nset = nset, .commit = "" }, p, outcome, errs);
    bool ok = own.report;
    if (ok && form == GP_REPORT_TEXT)
        gp_print_account(to, own.report);
    else if (ok)
        gp_report_json(own.report, p, &own.about, to);
    gp_own_report_free(&own);
    return ok;
}
