/* ranks_report.c - what is left of a run of several ranks beside its data: one report, one trace, one account of where
 * the time went. See ranks.h.
 *
 * * When the runs of all are over, each rank says in a few numbers how it went. From these rank 0 finds the one that
 * bounds the whole, and tells each where its clock is. Then it hears the texts of all, one sort after the other and
 * one rank after the other. Both sides go through the same steps; who is lost, or does not answer in time, is left
 * out. */
#include <stdlib.h>
#include <string.h>
#include "base/memfile.h"
#include "cli/ranks_whole.h"

/* ---- the texts of each ------------------------------------------------- */

static bool write_report(void *arg, FILE *to)
{
    gp_whole *w = arg;
    if (w->own.report)
        gp_report_json(w->own.report, w->p, &w->own.about, to);
    return w->own.report;
}

static bool write_account(void *arg, FILE *to)
{
    gp_whole *w = arg;
    fprintf(to, "gpipe: %s\n", w->told.head);
    gp_print_account(to, w->own.report);
    return true;
}

static bool write_plan(void *arg, FILE *to)
{
    gp_whole *w = arg;
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
    snprintf(name, sizeof name, "rank %d on %s", gp_rank(), gp_ranks_host(gp_rank()));
    gp_trace_part part = { gp_rank(), gp_ranks(), name, w->told.clock, w->told.zero };
    return w->mine.traces && gp_trace_events(w->p, &part, most, to, w->errs);
}

static bool write_all_events(void *arg, FILE *to)
{
    return write_events(arg, 0, to);
}

static bool write_page_events(void *arg, FILE *to)
{
    return write_events(arg, (size_t)(GP_PAGE_SLICES / gp_ranks()) + 1, to);
}

static bool is_of(const gp_whole *w, gp_rank_text which, int r)
{
    bool of_one = which == GP_RANK_ACCOUNT || which == GP_RANK_PLAN;
    return w->told.wanted[which] && (!of_one || r == w->told.bound);
}

static gp_ranks_writer *const writer[GP_RANK_TEXTS] = {
    [GP_RANK_REPORT] = write_report, [GP_RANK_ACCOUNT] = write_account, [GP_RANK_PLAN] = write_plan,
    [GP_RANK_PAGE_EVENTS] = write_page_events, [GP_RANK_EVENTS] = write_all_events,
};

/* The verdict of the rank that bounds the whole names it, where ranks differ, and says what follows from all. */
static void name_rank(gp_whole *w)
{
    if (w->told.bound != gp_rank() || !w->own.report)
        return;
    char *text = w->own.report->verdict.text, was[sizeof w->mine.verdict];
    strcpy(was, text);
    snprintf(text, sizeof was, "%s%.*s%s", w->told.before,
             (int)(sizeof was - sizeof w->told.before - strlen(w->told.after)), was, w->told.after);
}

/* ---- the side of rank 0 ------------------------------------------------ */

/* Rank r answers, or (`why`) it does not any more. */
static void answers(gp_whole *w, int r, const char *why)
{
    if (!why || w->gone[r])
        return;
    w->gone[r] = GP_RANK_SILENT;
    gp_fail(w->errs, GP_E_RUN, (gp_loc){ 0 }, "rank %d does not answer, so that what it has to report is missing: %s",
            r, why);
}

bool gp_whole_hear(gp_whole *w, gp_rank_text which, int r, FILE *to)
{
    bool whole = false;
    if (r == gp_rank())
        return to && writer[which](w, to);
    if (!w->gone[r])
        answers(w, r, gp_ranks_hear(r, to, &whole, gp_ranks_patience()));
    return whole;
}

/* What `write` writes in memory, for free(); NULL: it is not whole. Without memory it writes nowhere: an error. */
typedef struct heard { gp_whole *w; gp_rank_text which; int rank; } heard;

static bool hear_one(void *arg, FILE *to)
{
    const heard *h = arg;
    return gp_whole_hear(h->w, h->which, h->rank, to);
}

static bool hear_trace(void *arg, FILE *to)
{
    const heard *h = arg;
    return gp_whole_trace(h->w, h->which, to);
}

static char *text_of(gp_ranks_writer *write, gp_whole *w, gp_rank_text which, int rank)
{
    gp_memfile m;
    size_t n;
    bool room = gp_memfile_open(&m), ok = write(&(heard){ w, which, rank }, room ? m.f : NULL);
    char *text = room ? gp_memfile_close(&m, &n) : NULL;
    if (!text)
        gp_fail(w->errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    if (!ok)
        free(text);
    return ok ? text : NULL;
}

static bool merge(void *arg, FILE *to)
{
    return to && gp_whole_report(((const heard *)arg)->w, to);
}

static bool write_page(void *arg, FILE *to)
{
    gp_whole *w = arg;
    char *report = text_of(merge, w, GP_RANK_REPORT, 0);
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

static bool asks_clocks(const gp_whole *w)
{
    return w->files->reports || w->files->traces;
}

static const char *hear_brief(gp_whole *w, int r)
{
    const char *why = asks_clocks(w) ? gp_ranks_clock_end(r, gp_ranks_patience()) : NULL;
    return why ? why : gp_ranks_pass(r, 0, &w->of[r], sizeof *w->of, gp_ranks_patience());
}

static void hear_briefs(gp_whole *w)
{
    const bool *lost = gp_ranks_lost();
    w->of[0] = w->mine;
    for (int r = 1; r < gp_ranks(); r++) {
        w->gone[r] = lost && lost[r] ? GP_RANK_LOST : GP_RANK_THERE;
        if (!w->gone[r])
            answers(w, r, hear_brief(w, r));
        if (w->gone[r])
            w->of[r] = (gp_rank_brief){ .began = 0 };
    }
    gp_whole_decide(w);
    w->told = w->answer[0];
    for (int r = 1; r < gp_ranks(); r++)
        if (!w->gone[r])
            answers(w, r, gp_ranks_pass(0, r, &w->answer[r], sizeof *w->answer, gp_ranks_patience()));
}

static void write_files(gp_whole *w)
{
    gp_report_files *f = w->files;
    int bound = w->told.bound;
    for (int r = 0; r < gp_ranks(); r++) {
        w->report[r] = is_of(w, GP_RANK_REPORT, r) ? text_of(hear_one, w, GP_RANK_REPORT, r) : NULL;
        if (is_of(w, GP_RANK_REPORT, r) && w->of[r].reports && !w->report[r] && !w->gone[r] && r != bound)
            gp_fail(w->errs, GP_E_RUN, (gp_loc){ .file = f->report.path }, "without that of rank %d, which did not "
                    "come whole", r);
    }
    char *account = is_of(w, GP_RANK_ACCOUNT, bound) ? text_of(hear_one, w, GP_RANK_ACCOUNT, bound) : NULL;
    fputs(account ? account : "", stderr);
    free(account);
    if (is_of(w, GP_RANK_PLAN, bound))
        w->picture = text_of(hear_one, w, GP_RANK_PLAN, bound);
    if (w->told.wanted[GP_RANK_PAGE_EVENTS])
        w->trace = text_of(hear_trace, w, GP_RANK_PAGE_EVENTS, 0);
    if (w->told.wanted[GP_RANK_REPORT] && !w->report[bound])
        gp_fail(w->errs, GP_E_RUN, (gp_loc){ .file = f->report.path }, "not written: the report of rank %d did not "
                "come", bound);
    else if (w->told.wanted[GP_RANK_REPORT])
        gp_report_put(&f->report, f->html ? write_page : gp_whole_report, w, w->errs);
    if (w->told.wanted[GP_RANK_EVENTS])
        gp_report_put(&f->trace, write_trace, w, w->errs);
    if (w->told.wanted[GP_RANK_EVENTS] && !w->events_heard)
        gp_whole_trace(w, GP_RANK_EVENTS, NULL);
}

/* They wait for that, and for whether all of them answered: one that ends by itself ends all, in the eyes of most
 * launchers, and an end together waits for all. */
static void tell_all_is_written(const gp_whole *w)
{
    int silent = 0;
    gp_ranks_alive_end();              /* after this they hear nothing */
    for (int r = 1; r < gp_ranks(); r++)
        silent += w->gone[r] == GP_RANK_SILENT;
    for (int r = 1; r < gp_ranks(); r++)
        if (!w->gone[r])
            gp_ranks_pass(0, r, &silent, sizeof silent, gp_ranks_patience());
    if (silent)
        gp_ranks_part();
}

static void lead(gp_whole *w, int status)
{
    size_t n = (size_t)gp_ranks();
    bool began = false;
    w->of = gp_ranks_room(n, sizeof *w->of), w->answer = gp_ranks_room(n, sizeof *w->answer);
    w->gone = gp_ranks_room(n, sizeof *w->gone), w->report = gp_ranks_room(n, sizeof *w->report);
    w->account = gp_ranks_room((size_t)w->own.now.nsources, sizeof *w->account);
    hear_briefs(w);
    name_rank(w);
    if (w->told.bound >= 0)
        snprintf(w->files->verdict, sizeof w->files->verdict, "%s%s%s", w->told.before, w->of[w->told.bound].verdict,
                 w->told.after);
    bool retuned = true;
    for (size_t r = 0; r < n; r++)
        retuned &= w->of[r].retuned;
    if (w->files->account && retuned)
        gp_say_not_measured(true);
    write_files(w);
    tell_all_is_written(w);
    for (size_t r = 0; r < n; r++)
        began |= w->of[r].began != 0;
    if (!began && !status && asks_clocks(w))
        gp_fail(w->errs, GP_E_RUN, (gp_loc){ 0 }, "there is nothing to report: no frame was begun");
    for (size_t r = 0; r < n; r++)
        free(w->report[r]);
    free(w->of), free(w->answer), free(w->gone), free(w->report), free(w->account), free(w->picture), free(w->trace);
}

/* ---- the side of the others -------------------------------------------- */

/* Rank 0 may hear many others before this one. It ends when all is written: until then others tell. */
static void follow(gp_whole *w)
{
    const int64_t ns = gp_ranks_join_ns();
    int silent = 0;
    const char *why = asks_clocks(w) ? gp_ranks_clock_end(gp_rank(), ns) : NULL;
    if (!why)
        why = gp_ranks_pass(gp_rank(), 0, &w->mine, sizeof w->mine, ns);
    if (!why)
        why = gp_ranks_pass(0, gp_rank(), &w->told, sizeof w->told, ns);
    if (!why)
        name_rank(w);
    for (int which = 0; !why && which < GP_RANK_TEXTS; which++)
        if (is_of(w, which, gp_rank()))
            why = gp_ranks_tell(writer[which], w, ns);
    gp_ranks_alive_end();
    if (!why)
        why = gp_ranks_pass(0, gp_rank(), &silent, sizeof silent, ns);
    if (why)
        gp_fail(w->errs, GP_E_STALL, (gp_loc){ 0 }, "rank 0 does not answer, which writes the report and the trace of "
                "all: %s", why);
    if (why || silent)
        gp_ranks_part();
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
    gp_errs none = { .n = 0 };
    gp_whole w = { .files = f, .p = p, .errs = errs };
    if (!gp_ranks_over(asks_clocks(&w)) || !(asks_clocks(&w) || gp_ranks_account()))
        return;
    if (lost && *lost && gp_ranks_is_first() && asks_clocks(&w))
        gp_fail(errs, GP_E_RUN, (gp_loc){ 0 }, "rank 0 is lost, which writes the report and the trace of all: there "
                "are none");
    if (lost && *lost) {
        show_own(&w, outcome);
        return;
    }
    gp_ranks_alive_begin();
    gp_own_report_make(&w.own, f, p, outcome, &none);
    if (none.n && none.e->code == GP_E_RESOURCE)       /* else it began no frame: others may have */
        gp_errs_add(errs, &none);
    w.mine = gp_rank_brief_of(&w, outcome);
    if (gp_rank())
        follow(&w);
    else
        lead(&w, status);
    gp_own_report_free(&w.own);
    gp_report_drop(f);
}
