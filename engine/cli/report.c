/* report.c - what is left of a run beside its data: the files of --report and
 * --trace, and the account on a terminal.
 *
 * The files are opened before frame 0, so that a place that cannot be written is known
 * then, and get their names when they are whole. Those of several ranks: ranks/report.c. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "api/forms.h"
#include "base/memfile.h"
#include "base/why.h"
#include "cli/report.h"
#include "draw/dump.h"

/* Where there are several ranks, rank 0 alone opens the file. */
static bool open_file(gp_outfile *f, gp_removed which, bool first, gp_pipeline *p, const char *option,
                      const char *path, gp_errs *errs)
{
    char why[GP_WHY];
    f->needs_folder = true;
    if (path && !gp_pipeline_writes(p, option, path, errs))
        return false;
    if (path && first && !gp_outfile_open(f, path, why))
        return gp_fail(errs, GP_E_USAGE, (gp_loc){ .file = path }, "%s", why);
    if (f->open && !f->in_place)
        gp_signals_remove(which, f->tmp);
    return true;
}

static bool has_end(const char *path, const char *end)
{
    size_t n = strlen(path), k = strlen(end);
    return n >= k && !strcmp(path + n - k, end);
}

/* Is a report's file to be a page? */
static bool check_name(const char *path, bool *html, gp_errs *errs)
{
    *html = has_end(path, ".html");
    return *html || has_end(path, ".json")
        || gp_usage(errs, "--report %s: the name must end in .json or .html", path);
}

bool gp_report_accounts(const gp_args *args)
{
    return args->verbose || (!args->quiet && gp_says_json())
        || (!args->quiet && isatty(STDERR_FILENO) && args->progress <= GP_PROGRESS_BAR);
}

bool gp_report_open(gp_report_files *f, const gp_args *args, gp_pipeline *p, gp_run_options *o,
                    gp_errs *errs)
{
    const int64_t keep = 30000000000;
    const bool first = !gp_rank(args->ranks);
    *f = (gp_report_files){ .set = args->set, .nset = args->nset, .commit = gp_commit, .reports = args->report,
                            .traces = args->trace };
    f->account = gp_ranks_n(args->ranks) > 1 ? gp_ranks_account(args->ranks) : gp_report_accounts(args);
    f->table = f->account && !gp_says_json();
    if (args->report && !check_name(args->report, &f->html, errs))
        return false;
    if (args->trace && has_end(args->trace, ".html"))
        return gp_usage(errs, "--trace %s: a trace is JSON, for ui.perfetto.dev; --report %s writes a page",
                        args->trace, args->trace);
    if ((args->trace_ns || args->trace_gpu) && !args->trace && !f->html)
        return gp_usage(errs, "'--trace-%s' is for --trace and for a --report in .html", args->trace_ns ? "last" :
                        "gpu");
    o->timed |= f->account || args->report || args->trace;
    o->trace_full = args->trace_gpu;
    o->stamped = args->report || args->trace;
    o->trace_ns = !args->trace && !f->html ? 0 : args->trace_ns ? args->trace_ns : keep;
    return open_file(&f->report, GP_REMOVED_REPORT, first, p, "--report", args->report, errs)
        && open_file(&f->trace, GP_REMOVED_TRACE, first, p, "--trace", args->trace, errs);
}

void gp_report_drop(gp_report_files *f)
{
    gp_outfile_drop(&f->report);
    gp_outfile_drop(&f->trace);
    gp_signals_remove(GP_REMOVED_REPORT, NULL);
    gp_signals_remove(GP_REMOVED_TRACE, NULL);
}

/* ---- writing --------------------------------------------------------- */

typedef struct gp_writing {
    const gp_pipeline *pipeline;
    const gp_report *report;
    const gp_report_about *about;
    const gp_simulated *simulated;     /* NULL: it was a run */
    gp_errs *errs;
} gp_writing;

/* Without dot, which the rest of the page does not need, why there is no drawing. */
static void draw(const gp_pipeline *p, const char *report, size_t bytes, FILE *to)
{
    gp_errs why = { .n = 0 };
    if (!gp_draw(to, gp_pipeline_plan(p), &(gp_drawing){ .report = report, .len = bytes, .file = "the report" }, &why))
        fprintf(to, "<p>%s</p>", why.e[0].msg);
}

static bool write_page(void *arg, FILE *to)
{
    const gp_writing *w = arg;
    char *text[3] = { NULL };
    size_t n[3];
    bool ok = true;
    for (int i = 0; ok && i < 3; i++) {
        gp_memfile m;
        if (!gp_memfile_open(&m)) {
            ok = gp_no_memory(w->errs);
            break;
        }
        if (i == 0)
            gp_report_json(w->report, w->pipeline, w->about, m.f);
        else if (i == 1 && w->simulated)
            gp_timeline_json(m.f, gp_pipeline_plan(w->pipeline), w->simulated);
        else if (i == 1)
            ok = gp_trace_json(w->pipeline, GP_PAGE_SLICES, m.f, w->errs);
        else
            draw(w->pipeline, text[0], n[0], m.f);
        if (!(text[i] = gp_memfile_close(&m, &n[i])) && ok)
            ok = gp_no_memory(w->errs);
    }
    if (ok)
        gp_page_write(to, text[0], text[1], text[2]);
    for (int i = 0; i < 3; i++)
        free(text[i]);
    return ok;
}

bool gp_report_page_of_all(FILE *to, const gp_pipeline *p, const char *report, const char *trace, const char *own,
                           gp_errs *errs)
{
    gp_memfile m;
    size_t n;
    if (!gp_memfile_open(&m))
        return gp_no_memory(errs);
    if (own)
        draw(p, own, strlen(own), m.f);
    char *picture = gp_memfile_close(&m, &n);
    if (picture)
        gp_page_write(to, report, trace, own ? picture : NULL);
    free(picture);
    return picture || gp_no_memory(errs);
}

static bool write_report(void *arg, FILE *to)
{
    const gp_writing *w = arg;
    gp_report_json(w->report, w->pipeline, w->about, to);
    return true;
}

static bool write_trace(void *arg, FILE *to)
{
    const gp_writing *w = arg;
    return gp_trace_json(w->pipeline, 0, to, w->errs);
}

bool gp_report_simulated(const char *path, const gp_pipeline *p, const gp_simulated *s, const gp_report_about *about,
                         gp_errs *errs)
{
    gp_outfile f = { .needs_folder = true };
    bool html;
    gp_writing w = { p, s->report, about, s, errs };
    char why[GP_WHY];
    int before = errs->failed;
    if (!check_name(path, &html, errs))
        return false;
    if (!gp_outfile_open(&f, path, why))
        return gp_fail(errs, GP_E_USAGE, (gp_loc){ .file = path }, "%s", why);
    gp_report_put(&f, html ? write_page : write_report, &w, errs);
    return errs->failed == before;
}

void gp_say_not_measured(bool all)
{
    if (!gp_says_json())
        fprintf(stderr, "gpipe: there is no account of where the time went: %s, and times are measured from the last "
                "change on\n", all ? "all ranks were changed while they ran" : "the run was changed while it went on");
}

void gp_report_close(gp_report_files *f, const gp_pipeline *p, gp_outcome outcome, gp_errs *errs)
{
    if (!f->report.open && !f->trace.open && !f->account)
        return;
    if (f->retuned) {                  /* so there are no files */
        gp_say_not_measured(false);
        return;
    }
    gp_errs said = { .n = 0 };
    gp_own_report own;
    gp_own_report_make(&own, f, p, outcome, &said);
    gp_report *r = own.report;
    gp_writing w = { p, r, &own.about, NULL, &said };
    if (r) {
        gp_report_put(&f->report, f->html ? write_page : write_report, &w, &said);
        snprintf(f->verdict, sizeof f->verdict, "%s", r->verdict.text);
        if (f->table)
            gp_print_account(stderr, r);
    }
    if (r || outcome == GP_STUCK)      /* a trace shows how a run got stuck */
        gp_report_put(&f->trace, write_trace, &w, &said);
    bool early = !r && (outcome == GP_DRAINED || outcome == GP_NOT_DRAINED);   /* no error: stopped */
    if (!early && (r || f->report.open || f->trace.open))
        gp_errs_add(errs, &said);
    gp_report_drop(f);
    gp_own_report_free(&own);
}
