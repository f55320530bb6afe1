/* report.c - what is left of a run of several ranks beside its data: one report, one trace, one account of where
 * the time went. See ranks.h.
 *
 * When the runs of all are over, each rank says in a few numbers how it went, and rank 0 tells all what each said.
 * From these all find alike which rank bounds the whole. Then rank 0 hears the texts of all, one sort after the other
 * and one rank after the other. Both sides go through the same steps; who is lost, or does not answer in time, is left
 * out.
 *
 * The report is that of the rank that bounds the whole, so that whatever reads a report can read it, too; behind it
 * stands what is of all, and the report of each.
 *
 * A text comes in pieces, each after its length, so that memory for one piece is enough, and rank 0 notices at each
 * that a rank is gone. Length 0 ends the text; -1 says that it is not whole. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/memfile.h"
#include "ranks/whole.h"

enum { PIECE = 1 << 20 };

/* ---- the texts of each ------------------------------------------------- */

static bool write_events(gp_whole *w, size_t most, FILE *to)
{
    char name[100];
    double error;
    snprintf(name, sizeof name, "rank %d on %s", w->us->rank, gp_ranks_machine(w->us, w->us->rank));
    gp_trace_part part = { w->us->rank, w->us->n, name, gp_ranks_clock(w->us, w->us->rank, &error), w->zero };
    return w->of[w->us->rank].traces && gp_trace_events(w->p, &part, most, to, w->errs);
}

/* That of this rank; false: it has none, or it is not whole. */
static bool write_text(gp_whole *w, gp_rank_text which, FILE *to)
{
    if (which >= GP_RANK_PAGE_EVENTS)
        return write_events(w, which == GP_RANK_EVENTS ? 0 : (size_t)(GP_PAGE_SLICES / w->us->n) + 1, to);
    if (which == GP_RANK_ACCOUNT) {
        fprintf(to, "gpipe: %s\n", w->head);
        w->us->host->account(to, w->own.report);
    } else if (w->own.report) {
        gp_report_json(w->own.report, w->p, &w->own.about, to);
    }
    return w->own.report;
}

static bool is_of(const gp_whole *w, gp_rank_text which, int r)
{
    return w->wanted[which] && (which != GP_RANK_ACCOUNT || r == w->bound);
}

/* The verdict of the rank that bounds the whole names it, where ranks differ, and says what follows from all. */
static void name_rank(const gp_whole *w)
{
    if (w->bound != w->us->rank || !w->own.report)
        return;
    char *text = w->own.report->verdict.text, was[sizeof w->of->verdict.text];
    strcpy(was, text);
    snprintf(text, sizeof was, "%s%.*s%s", w->before, (int)(sizeof was - sizeof w->before - strlen(w->after)), was,
             w->after);
}

/* ---- from one to another ----------------------------------------------- */

/* The other rank answers, or (`why`) it does not any more. */
static bool answers(gp_whole *w, int other, const char *why)
{
    if (!why || w->gone[other])
        return !w->gone[other];
    w->gone[other] = GP_RANK_SILENT;
    w->us->run.named = true;
    if (other)
        return gp_fail(w->errs, GP_E_RUN, (gp_loc){ 0 }, "rank %d does not answer, so that what it has to report is "
                       "missing: %s", other, why);
    return gp_fail(w->errs, GP_E_STALL, (gp_loc){ 0 }, "rank 0 does not answer, which writes the report and the trace "
                   "of all: %s", why);
}

/* Between rank 0 and rank r, which both call this; from whom `from` is. False: the other does not answer. */
static bool pass(gp_whole *w, int from, int r, void *data, size_t n)
{
    int other = w->us->rank ? 0 : r;
    return !w->gone[other]
        && answers(w, other, gp_ranks_pass(w->us, from, from ? 0 : r, data, (int)n));
}

static ssize_t send_pieces(void *cookie, const char *text, size_t n)
{
    gp_whole *w = cookie;
    for (size_t done = 0; done < n;) {
        int me = w->us->rank, size = n - done < PIECE ? (int)(n - done) : PIECE;
        if (!pass(w, me, me, &size, sizeof size) || !pass(w, me, me, (char *)text + done, (size_t)size))
            return 0;
        done += (size_t)size;
    }
    return (ssize_t)n;
}

static void tell(gp_whole *w, gp_rank_text which)
{
    FILE *f = fopencookie(w, "w", (cookie_io_functions_t){ .write = send_pieces });
    if (f)
        setvbuf(f, NULL, _IOFBF, PIECE);
    bool ok = f && write_text(w, which, f);
    ok = f && !fclose(f) && ok;
    int end = ok ? 0 : -1;
    pass(w, w->us->rank, w->us->rank, &end, sizeof end);
}

static bool hear(gp_whole *w, gp_rank_text which, int r, FILE *to)
{
    if (r == w->us->rank)
        return to && write_text(w, which, to);
    char *piece = gp_ranks_room(w->us, PIECE, 1);
    int size = 1;
    while (size > 0 && pass(w, r, r, &size, sizeof size) && size > 0 && size <= PIECE
           && pass(w, r, r, piece, (size_t)size))
        if (to)
            fwrite(piece, 1, (size_t)size, to);
    free(piece);
    return !w->gone[r] && !size;
}

static bool asks_files(const gp_whole *w)
{
    return w->files->reports || w->files->traces;
}

/* Rank 0 hears of each how its run went, and then tells all of it to each. */
static void exchange_briefs(gp_whole *w)
{
    const int me = w->us->rank, first = me ? me : 1, last = me ? me : w->us->n - 1;
    for (int r = first; r <= last; r++)
        if (!pass(w, r, r, &w->of[r], sizeof *w->of) && !me)
            w->of[r] = (gp_rank_brief){ .began = 0 };
    for (int r = first; r <= last; r++)
        pass(w, 0, r, w->of, (size_t)w->us->n * sizeof *w->of);
}

/* The others wait for rank 0 until all is written: one that ends by itself ends all, in the eyes of most launchers. */
static void end_together(gp_whole *w)
{
    char written = 0;
    if (w->us->rank)
        pass(w, 0, w->us->rank, &written, 1);
    for (int r = 1; !w->us->rank && r < w->us->n; r++)
        if (!w->gone[r])
            gp_ranks_pass(w->us, 0, r, &written, 1);
}

/* ---- the reports and traces of all, as one ------------------------------ */

static void write_whole(gp_whole *w, gp_json *j)
{
    int n = w->own.now.nsources;
    int64_t wall_ns = 0;
    for (int r = 0; r < w->us->n; r++)
        wall_ns = w->of[r].wall_ns > wall_ns ? w->of[r].wall_ns : wall_ns;
    memcpy(w->account, w->own.now.source, (size_t)n * sizeof *w->account);
    gp_ranks_sum(w->us, w->account, n);
    gp_json_put(j, "whole: {ranks: %d, wall_s: %g, frames_per_s: %g", w->us->n, 1e-9 * (double)wall_ns,
                1e9 * (double)gp_frames_done(w->account, n) / (double)wall_ns);
    gp_accounts_json(j, w->account, n, "cancelled");
    gp_json_close(j, '}');
}

static void write_rank(gp_whole *w, gp_json *j, int r)
{
    double error;
    gp_clock clock = gp_ranks_clock(w->us, r, &error);
    gp_json_put(j, "{rank: %d, host: %s, lost: %d?, answered: %d?, clock_offset_us: %g, clock_error_us: %g", r,
                gp_ranks_machine(w->us, r), w->gone[r] == GP_RANK_LOST, !w->gone[r],
                w->gone[r] ? NAN : 1e-3 * clock.ahead, w->gone[r] ? NAN : 1e-3 * error);
    memcpy(w->account, w->own.now.source, (size_t)w->own.now.nsources * sizeof *w->account);
    if (r != w->us->rank)                /* the numbers of this one are its own */
        gp_told_sources(w->us, r, w->account, w->own.now.nsources);
    gp_accounts_json(j, w->account, w->own.now.nsources, "cancelled");
    if (w->report[r])
        gp_json_raw(j, "report", w->report[r]);
    else
        gp_json_str(j, "report", NULL);
    gp_json_close(j, '}');
}

/* The report of the rank that bounds the whole goes on with what is of all. */
static bool write_reports(void *arg, FILE *to)
{
    gp_whole *w = arg;
    const char *text = w->report[w->bound], *end = strrchr(text, '}');
    while (end[-1] == '\n')
        end--;
    fwrite(text, 1, (size_t)(end - text), to);
    gp_json j = { .f = to, .level = 1, .some = true };
    gp_json_int(&j, "rank", w->bound);
    write_whole(w, &j);
    GP_JSON_EACH(&j, "ranks", r, w->us->n)
        write_rank(w, &j, r);
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

/* Tells that something of rank r lacks, or all; a rank that does not answer was named. False: what there is of it is no
 * JSON, and so nothing is. */
static bool lacks(gp_whole *w, gp_rank_text which, int r, bool some)
{
    bool page = which == GP_RANK_PAGE_EVENTS;
    gp_loc at = { .file = page ? w->files->report.path : w->files->trace.path };
    if (some)
        return gp_fail(w->errs, GP_E_RUN, at, "%s: what rank %d told of it is not whole",
                       page ? "without a trace" : "not written", r);
    if (w->of[r].traces && !w->gone[r] && r != w->us->rank)
        gp_fail(w->errs, GP_E_RUN, at, "rank %d is not in the trace: it could not tell its own", r);
    return true;
}

static bool write_traces(gp_whole *w, gp_rank_text which, FILE *to)
{
    gp_json j = { .f = to };
    joined x = { .to = to };
    bool ok = to;
    if (to)
        gp_trace_begin(&j);
    for (int r = 0; r < w->us->n; r++, x.others |= x.some, x.some = false) {
        FILE *f = to ? fopencookie(&x, "w", (cookie_io_functions_t){ .write = join }) : NULL;
        bool whole = hear(w, which, r, f);
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
        gp_trace_end(&j, is.name, w->us->n, 0, 0);
    return ok;
}

/* ---- what rank 0 writes ------------------------------------------------ */

/* In memory, for free(): a text of rank r; ALL: the report, or the trace, of all. NULL: it is not whole. Without memory
 * it goes nowhere: an error. */
enum { ALL = -1 };

static char *text_of(gp_whole *w, gp_rank_text which, int r)
{
    gp_memfile m;
    size_t n;
    bool room = gp_memfile_open(&m);
    FILE *to = room ? m.f : NULL;
    bool ok = r != ALL ? hear(w, which, r, to)
        : which == GP_RANK_REPORT ? to && write_reports(w, to) : write_traces(w, which, to);
    char *text = room ? gp_memfile_close(&m, &n) : NULL;
    if (!text)
        gp_fail(w->errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    if (!ok)
        free(text);
    return ok ? text : NULL;
}

static bool write_page(void *arg, FILE *to)
{
    gp_whole *w = arg;
    char *report = text_of(w, GP_RANK_REPORT, ALL);
    bool ok = report && w->us->host->page(to, w->p, report, w->trace, w->report[0], w->errs);
    free(report);
    return ok;
}

static bool write_trace(void *arg, FILE *to)
{
    gp_whole *w = arg;
    w->events_heard = true;
    return write_traces(w, GP_RANK_EVENTS, to);
}

static void write_files(gp_whole *w)
{
    gp_report_files *f = w->files;
    int bound = w->bound;
    for (int r = 0; w->wanted[GP_RANK_REPORT] && r < w->us->n; r++) {
        w->report[r] = text_of(w, GP_RANK_REPORT, r);
        if (w->of[r].reports && !w->report[r] && !w->gone[r] && r != bound)
            gp_fail(w->errs, GP_E_RUN, (gp_loc){ .file = f->report.path }, "without that of rank %d, which did not "
                    "come whole", r);
    }
    char *account = is_of(w, GP_RANK_ACCOUNT, bound) ? text_of(w, GP_RANK_ACCOUNT, bound) : NULL;
    fputs(account ? account : "", stderr);
    free(account);
    if (w->wanted[GP_RANK_PAGE_EVENTS])
        w->trace = text_of(w, GP_RANK_PAGE_EVENTS, ALL);
    if (w->wanted[GP_RANK_REPORT] && !w->report[bound])
        gp_fail(w->errs, GP_E_RUN, (gp_loc){ .file = f->report.path }, "not written: the report of rank %d did not "
                "come", bound);
    else if (w->wanted[GP_RANK_REPORT])
        gp_report_put(&f->report, f->html ? write_page : write_reports, w, w->errs);
    if (w->wanted[GP_RANK_EVENTS])
        gp_report_put(&f->trace, write_trace, w, w->errs);
    if (w->wanted[GP_RANK_EVENTS] && !w->events_heard)
        write_traces(w, GP_RANK_EVENTS, NULL);
}

static void lead(gp_whole *w, int status)
{
    bool began = false, retuned = true;
    for (int r = 0; r < w->us->n; r++)
        began |= w->of[r].began != 0, retuned &= w->of[r].retuned;
    if (w->bound >= 0)
        snprintf(w->files->verdict, sizeof w->files->verdict, "%s%s%s", w->before, w->of[w->bound].verdict.text,
                 w->after);
    if (w->files->account && retuned)
        w->us->host->not_measured(true);
    write_files(w);
    if (!began && !status && asks_files(w))
        gp_fail(w->errs, GP_E_RUN, (gp_loc){ 0 }, "there is nothing to report: no frame was begun");
}

/* Without rank 0 nobody hears the others: the first of those that are left shows its own account. */
static void show_own(gp_whole *w, gp_outcome outcome)
{
    gp_errs none = { .n = 0 };
    if (!w->files->account || !gp_ranks_is_first(w->us))
        return;
    if (w->files->retuned) {
        w->us->host->not_measured(true);
        return;
    }
    gp_own_report_make(&w->own, w->files, w->p, outcome, &none);
    if (w->own.report)
        snprintf(w->files->verdict, sizeof w->files->verdict, "rank %d: %s", w->us->rank, w->own.report->verdict.text);
    if (w->own.report && w->files->table) {
        fprintf(stderr, "gpipe: rank 0, which compares ranks, is lost; this is rank %d\n", w->us->rank);
        w->us->host->account(stderr, w->own.report);
    }
    gp_own_report_free(&w->own);
}

void gp_ranks_report(gp_ranks *us, gp_report_files *f, const gp_pipeline *p, gp_outcome outcome, int status,
                     gp_errs *errs)
{
    const bool *lost = gp_ranks_lost(us);
    const size_t n = (size_t)us->n;
    gp_errs none = { .n = 0 };
    gp_whole w = { .us = us, .files = f, .p = p, .errs = errs };
    if (!us->run.begun || !(asks_files(&w) || us->account))
        return;
    if (lost && *lost && gp_ranks_is_first(us) && asks_files(&w))
        gp_fail(errs, GP_E_RUN, (gp_loc){ 0 }, "rank 0 is lost, which writes the report and the trace of all: there "
                "are none");
    if (lost && *lost) {
        show_own(&w, outcome);
        return;
    }
    w.of = gp_ranks_room(us, n, sizeof *w.of), w.gone = gp_ranks_room(us, n, sizeof *w.gone);
    w.report = gp_ranks_room(us, n, sizeof *w.report);
    for (size_t r = 0; lost && r < n; r++)
        w.gone[r] = lost[r] ? GP_RANK_LOST : GP_RANK_THERE;
    gp_own_report_make(&w.own, f, p, outcome, &none);
    w.account = gp_ranks_room(us, (size_t)w.own.now.nsources, sizeof *w.account);
    if (none.n && none.e->code == GP_E_RESOURCE)       /* else it began no frame: others may have */
        gp_errs_add(errs, &none);
    w.of[us->rank] = gp_rank_brief_of(&w, outcome);
    exchange_briefs(&w);
    gp_whole_decide(&w);
    name_rank(&w);
    if (!us->rank)
        lead(&w, status);
    for (int which = 0; us->rank && !w.gone[0] && which < GP_RANK_TEXTS; which++)
        if (is_of(&w, which, us->rank))
            tell(&w, which);
    end_together(&w);
    for (size_t r = 0; r < n; r++)
        free(w.report[r]);
    free(w.of), free(w.gone), free(w.report), free(w.account), free(w.trace);
    gp_own_report_free(&w.own);
}
