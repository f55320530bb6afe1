/* ranks_report.c - what is left of a run of several ranks beside its data: one report, one trace, one account of where
 * the time went. See ranks.h.
 *
 * When the runs of all are over, each rank says in a few numbers how it went, and rank 0 tells all what each said.
 * From these all find alike which rank bounds the whole. Then rank 0 hears the texts of all, one sort after the other
 * and one rank after the other. Both sides go through the same steps; who is lost, or does not answer in time, is left
 * out.
 *
 * A text comes in pieces, each after its length, so that memory for one piece is enough, and rank 0 notices at each
 * that a rank is gone. Length 0 ends the text; -1 says that it is not whole. */
#include <stdlib.h>
#include <string.h>
#include "base/memfile.h"
#include "cli/ranks_whole.h"

enum { PIECE = 1 << 20 };

/* ---- the texts of each ------------------------------------------------- */

static bool write_plan(gp_whole *w, FILE *to)
{
    gp_memfile m;
    size_t n = 0;
    if (!gp_memfile_open(&m))
        return false;
    gp_report_json(w->own.report, w->p, &w->own.about, m.f);
    char *text = gp_memfile_close(&m, &n);
    bool ok = text && gp_report_draw(w->p, text, n, to, w->errs);
    free(text);
    return ok;
}

static bool write_events(gp_whole *w, size_t most, FILE *to)
{
    char name[100];
    double error;
    snprintf(name, sizeof name, "rank %d on %s", gp_rank(), gp_ranks_host(gp_rank()));
    gp_trace_part part = { gp_rank(), gp_ranks(), name, gp_ranks_clock(gp_rank(), &error), w->zero };
    return w->of[gp_rank()].traces && gp_trace_events(w->p, &part, most, to, w->errs);
}

/* That of this rank; false: it has none, or it is not whole. */
static bool write_text(gp_whole *w, gp_rank_text which, FILE *to)
{
    if (which == GP_RANK_PLAN)
        return write_plan(w, to);
    if (which >= GP_RANK_PAGE_EVENTS)
        return write_events(w, which == GP_RANK_EVENTS ? 0 : (size_t)(GP_PAGE_SLICES / gp_ranks()) + 1, to);
    if (which == GP_RANK_ACCOUNT) {
        fprintf(to, "gpipe: %s\n", w->head);
        gp_print_account(to, w->own.report);
    } else if (w->own.report) {
        gp_report_json(w->own.report, w->p, &w->own.about, to);
    }
    return w->own.report;
}

static bool is_of(const gp_whole *w, gp_rank_text which, int r)
{
    bool of_one = which == GP_RANK_ACCOUNT || which == GP_RANK_PLAN;
    return w->wanted[which] && (!of_one || r == w->bound);
}

/* The verdict of the rank that bounds the whole names it, where ranks differ, and says what follows from all. */
static void name_rank(const gp_whole *w)
{
    if (w->bound != gp_rank() || !w->own.report)
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
    gp_ranks_are_named();
    if (other)
        return gp_fail(w->errs, GP_E_RUN, (gp_loc){ 0 }, "rank %d does not answer, so that what it has to report is "
                       "missing: %s", other, why);
    return gp_fail(w->errs, GP_E_STALL, (gp_loc){ 0 }, "rank 0 does not answer, which writes the report and the trace "
                   "of all: %s", why);
}

/* Between rank 0 and rank r, which both call this; from whom `from` is. False: the other does not answer. */
static bool pass(gp_whole *w, int from, int r, void *data, size_t n)
{
    int other = gp_rank() ? 0 : r;
    return !w->gone[other]
        && answers(w, other, gp_ranks_pass(from, from ? 0 : r, data, (int)n));
}

static ssize_t send_pieces(void *cookie, const char *text, size_t n)
{
    gp_whole *w = cookie;
    for (size_t done = 0; done < n;) {
        int me = gp_rank(), size = n - done < PIECE ? (int)(n - done) : PIECE;
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
    pass(w, gp_rank(), gp_rank(), &end, sizeof end);
}

bool gp_whole_hear(gp_whole *w, gp_rank_text which, int r, FILE *to)
{
    if (r == gp_rank())
        return to && write_text(w, which, to);
    char *piece = gp_ranks_room(PIECE, 1);
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
    const int me = gp_rank(), first = me ? me : 1, last = me ? me : gp_ranks() - 1;
    for (int r = first; r <= last; r++)
        if (!pass(w, r, r, &w->of[r], sizeof *w->of) && !me)
            w->of[r] = (gp_rank_brief){ .began = 0 };
    for (int r = first; r <= last; r++)
        pass(w, 0, r, w->of, (size_t)gp_ranks() * sizeof *w->of);
}

/* The others wait for rank 0 until all is written: one that ends by itself ends all, in the eyes of most launchers. */
static void end_together(gp_whole *w)
{
    char written = 0;
    if (gp_rank())
        pass(w, 0, gp_rank(), &written, 1);
    for (int r = 1; !gp_rank() && r < gp_ranks(); r++)
        if (!w->gone[r])
            gp_ranks_pass(0, r, &written, 1);
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
    bool ok = r != ALL ? gp_whole_hear(w, which, r, to)
        : which == GP_RANK_REPORT ? to && gp_whole_report(w, to) : gp_whole_trace(w, which, to);
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
    if (report)
        gp_page_write(to, report, w->trace, w->picture);
    free(report);
    return report;
}

static bool write_trace(void *arg, FILE *to)
{
    gp_whole *w = arg;
    w->events_heard = true;
    return gp_whole_trace(w, GP_RANK_EVENTS, to);
}

static void write_files(gp_whole *w)
{
    gp_report_files *f = w->files;
    int bound = w->bound;
    for (int r = 0; w->wanted[GP_RANK_REPORT] && r < gp_ranks(); r++) {
        w->report[r] = text_of(w, GP_RANK_REPORT, r);
        if (w->of[r].reports && !w->report[r] && !w->gone[r] && r != bound)
            gp_fail(w->errs, GP_E_RUN, (gp_loc){ .file = f->report.path }, "without that of rank %d, which did not "
                    "come whole", r);
    }
    char *account = is_of(w, GP_RANK_ACCOUNT, bound) ? text_of(w, GP_RANK_ACCOUNT, bound) : NULL;
    fputs(account ? account : "", stderr);
    free(account);
    if (is_of(w, GP_RANK_PLAN, bound))
        w->picture = text_of(w, GP_RANK_PLAN, bound);
    if (w->wanted[GP_RANK_PAGE_EVENTS])
        w->trace = text_of(w, GP_RANK_PAGE_EVENTS, ALL);
    if (w->wanted[GP_RANK_REPORT] && !w->report[bound])
        gp_fail(w->errs, GP_E_RUN, (gp_loc){ .file = f->report.path }, "not written: the report of rank %d did not "
                "come", bound);
    else if (w->wanted[GP_RANK_REPORT])
        gp_report_put(&f->report, f->html ? write_page : gp_whole_report, w, w->errs);
    if (w->wanted[GP_RANK_EVENTS])
        gp_report_put(&f->trace, write_trace, w, w->errs);
    if (w->wanted[GP_RANK_EVENTS] && !w->events_heard)
        gp_whole_trace(w, GP_RANK_EVENTS, NULL);
}

static void lead(gp_whole *w, int status)
{
    bool began = false, retuned = true;
    for (int r = 0; r < gp_ranks(); r++)
        began |= w->of[r].began != 0, retuned &= w->of[r].retuned;
    if (w->bound >= 0)
        snprintf(w->files->verdict, sizeof w->files->verdict, "%s%s%s", w->before, w->of[w->bound].verdict.text,
                 w->after);
    if (w->files->account && retuned)
        gp_say_not_measured(true);
    write_files(w);
    if (!began && !status && asks_files(w))
        gp_fail(w->errs, GP_E_RUN, (gp_loc){ 0 }, "there is nothing to report: no frame was begun");
}

/* Without rank 0 nobody hears the others: the first of those that are left shows its own account. */
static void show_own(gp_whole *w, gp_outcome outcome)
{
    gp_errs none = { .n = 0 };
    if (!w->files->account || !gp_ranks_is_first())
        return;
    if (w->files->retuned) {
        gp_say_not_measured(true);
        return;
    }
    gp_own_report_make(&w->own, w->files, w->p, outcome, &none);
    if (w->own.report)
        snprintf(w->files->verdict, sizeof w->files->verdict, "rank %d: %s", gp_rank(), w->own.report->verdict.text);
    if (w->own.report && !gp_says_json()) {
        fprintf(stderr, "gpipe: rank 0, which compares ranks, is lost; this is rank %d\n", gp_rank());
        gp_print_account(stderr, w->own.report);
    }
    gp_own_report_free(&w->own);
}

void gp_ranks_report(gp_report_files *f, const gp_pipeline *p, gp_outcome outcome, int status, gp_errs *errs)
{
    const bool *lost = gp_ranks_lost();
    const size_t n = (size_t)gp_ranks();
    gp_errs none = { .n = 0 };
    gp_whole w = { .files = f, .p = p, .errs = errs };
    if (!gp_ranks_over() || !(asks_files(&w) || gp_ranks_account()))
        return;
    if (lost && *lost && gp_ranks_is_first() && asks_files(&w))
        gp_fail(errs, GP_E_RUN, (gp_loc){ 0 }, "rank 0 is lost, which writes the report and the trace of all: there "
                "are none");
    if (lost && *lost) {
        show_own(&w, outcome);
        return;
    }
    w.of = gp_ranks_room(n, sizeof *w.of), w.gone = gp_ranks_room(n, sizeof *w.gone);
    w.report = gp_ranks_room(n, sizeof *w.report);
    for (size_t r = 0; lost && r < n; r++)
        w.gone[r] = lost[r] ? GP_RANK_LOST : GP_RANK_THERE;
    gp_own_report_make(&w.own, f, p, outcome, &none);
    w.account = gp_ranks_room((size_t)w.own.now.nsources, sizeof *w.account);
    if (none.n && none.e->code == GP_E_RESOURCE)       /* else it began no frame: others may have */
        gp_errs_add(errs, &none);
    w.of[gp_rank()] = gp_rank_brief_of(&w, outcome);
    exchange_briefs(&w);
    gp_whole_decide(&w);
    name_rank(&w);
    if (!gp_rank())
        lead(&w, status);
    for (int which = 0; gp_rank() && !w.gone[0] && which < GP_RANK_TEXTS; which++)
        if (is_of(&w, which, gp_rank()))
            tell(&w, which);
    end_together(&w);
    for (size_t r = 0; r < n; r++)
        free(w.report[r]);
    free(w.of), free(w.gone), free(w.report), free(w.account), free(w.picture), free(w.trace);
    gp_own_report_free(&w.own);
    gp_report_drop(f);
}
