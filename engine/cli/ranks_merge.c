/* ranks_merge.c - the reports of all ranks as one, and their traces: see ranks_whole.h.
 *
 * The report is that of the rank that bounds the whole, so that whatever reads a report can read it, too; behind it
 * stands what is of all, and the report of each. */
#include <math.h>
#include <string.h>
#include "cli/ranks_whole.h"

static void write_whole(gp_whole *w, gp_json *j)
{
    int n = w->own.now.nsources;
    int64_t wall_ns = 0;
    for (int r = 0; r < gp_ranks(); r++)
        wall_ns = w->of[r].wall_ns > wall_ns ? w->of[r].wall_ns : wall_ns;
    memcpy(w->account, w->own.now.source, (size_t)n * sizeof *w->account);
    gp_ranks_sum(w->account, n);
    gp_json_open(j, "whole", '{');
    gp_json_int(j, "ranks", gp_ranks());
    gp_json_num(j, "wall_s", 1e-9 * (double)wall_ns);
    gp_json_num(j, "frames_per_s", 1e9 * (double)gp_frames_done(w->account, n) / (double)wall_ns);
    gp_accounts_json(j, w->account, n, "cancelled");
    gp_json_close(j, '}');
}

static void write_rank(gp_whole *w, gp_json *j, int r)
{
    double error;
    gp_clock clock = gp_ranks_clock(r, &error);
    gp_json_open(j, NULL, '{');
    gp_json_int(j, "rank", r);
    gp_json_str(j, "host", gp_ranks_host(r));
    gp_json_bool(j, "lost", w->gone[r] == GP_RANK_LOST);
    gp_json_bool(j, "answered", !w->gone[r]);
    gp_json_num(j, "clock_offset_us", w->gone[r] ? NAN : 1e-3 * clock.ahead);
    gp_json_num(j, "clock_error_us", w->gone[r] ? NAN : 1e-3 * error);
    memcpy(w->account, w->own.now.source, (size_t)w->own.now.nsources * sizeof *w->account);
    if (r != gp_rank())                /* the numbers of this one are its own */
        gp_ranks_told(r, w->account, w->own.now.nsources);
    gp_accounts_json(j, w->account, w->own.now.nsources, "cancelled");
    if (w->report[r])
        gp_json_raw(j, "report", w->report[r]);
    else
        gp_json_str(j, "report", NULL);
    gp_json_close(j, '}');
}

/* The report of the rank that bounds the whole goes on with what is of all. */
bool gp_whole_report(void *arg, FILE *to)
{
    gp_whole *w = arg;
    const char *text = w->report[w->bound], *end = strrchr(text, '}');
    while (end[-1] == '\n')
        end--;
    fwrite(text, 1, (size_t)(end - text), to);
    gp_json j = { .f = to, .level = 1, .some = true };
    gp_json_int(&j, "rank", w->bound);
    write_whole(w, &j);
    gp_json_open(&j, "ranks", '[');
    for (int r = 0; r < gp_ranks(); r++)
        write_rank(w, &j, r);
    gp_json_close(&j, ']');
    gp_json_close(&j, '}');
    return true;
}

/* Events of one rank behind those of others. Counts what comes. */
typedef struct joined { FILE *to; bool others, some; } joined;

static ssize_t join(void *cookie, const char *text, size_t n)
{
    joined *x = cookie;
    if (n && !x->some && x->others)
        fputc(',', x->to);
    x->some |= n > 0;
    return fwrite(text, 1, n, x->to) == n ? (ssize_t)n : 0;
}

/* Of rank r something lacks, or all; a rank that does not answer was named. False: what there is of it is no JSON, and
 * so nothing is. */
static bool lacks(gp_whole *w, gp_rank_text which, int r, bool some)
{
    bool page = which == GP_RANK_PAGE_EVENTS;
    gp_loc at = { .file = page ? w->files->report.path : w->files->trace.path };
    if (some)
        return gp_fail(w->errs, GP_E_RUN, at, "%s: what rank %d told of it is not whole",
                       page ? "without a trace" : "not written", r);
    if (w->of[r].traces && !w->gone[r] && r != gp_rank())
        gp_fail(w->errs, GP_E_RUN, at, "rank %d is not in the trace: it could not tell its own", r);
    return true;
}

bool gp_whole_trace(gp_whole *w, gp_rank_text which, FILE *to)
{
    gp_json j = { .f = to };
    joined x = { .to = to };
    bool ok = to;
    if (to)
        gp_trace_begin(&j);
    for (int r = 0; r < gp_ranks(); r++, x.others |= x.some, x.some = false) {
        FILE *f = to ? fopencookie(&x, "w", (cookie_io_functions_t){ .write = join }) : NULL;
        bool whole = gp_whole_hear(w, which, r, f);
        if (f)
            fclose(f);
        else if (to)
            to = NULL, ok = gp_fail(w->errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
        if (to && !whole)
            ok = lacks(w, which, r, x.some) && ok;
    }
    gp_pipeline_info is;
    gp_pipeline_about(w->p, &is);
    if (to)
        gp_trace_end(&j, is.name, gp_ranks(), 0, 0);
    return ok;
}
