/* bound.c - which rank bounds the whole, from a few numbers of each: see whole.h.
 *
 * It is the one with the lowest rate of frames; of those whose rates are like that, one that is not bound by where
 * ranks meet; of those, the one whose busiest stage (per worker) or engine was busy longest. If all are bound there, it
 * is the one that waits least: others wait for it. Where they wait alike, the exchange itself takes that time. */
#include <math.h>
#include "ranks/whole.h"

static const double ALIKE = 0.05, DIFFER = 0.1;        /* of rates; worth a word: of rates, of the time of the run */

static int64_t busiest_of(const gp_report *r)
{
    int64_t most = 0;
    for (int i = 0; i < r->nactors; i++) {
        const gp_actor_report *p = &r->actor[i];
        int64_t busy = p->stage >= 0 && p->workers > 0 ? (p->busy_ns - p->idle_ns) / p->workers : 0;
        most = busy > most ? busy : most;
    }
    for (int i = 0; i < r->nall; i++)
        most = r->all[i].busy_ns > most ? r->all[i].busy_ns : most;
    return most;
}

gp_rank_brief gp_rank_brief_of(const gp_whole *w, gp_outcome outcome)
{
    const gp_report_files *f = w->files;
    const gp_report *r = (f->reports || f->traces || f->account) && !f->retuned ? w->own.report : NULL;
    gp_rank_brief b = { .began = gp_run_began(w->p), .reports = r != NULL, .retuned = f->retuned };
    b.traces = (f->traces || f->html) && b.began && (r || outcome == GP_STUCK);
    b.writes[GP_RANK_REPORT] = f->report.open, b.writes[GP_RANK_ACCOUNT] = f->table;
    b.writes[GP_RANK_PAGE_EVENTS] = f->html && f->report.open;
    b.writes[GP_RANK_EVENTS] = f->trace.open;
    if (r) {
        b.wall_ns = r->wall_ns, b.busiest_ns = busiest_of(r);
        b.done = gp_frames_done(w->own.now.source, w->own.now.nsources);
        b.verdict = r->verdict;
    }
    return b;
}

static double rate_of(const gp_rank_brief *b)
{
    return b->reports && b->wall_ns > 0 ? 1e9 * (double)b->done / (double)b->wall_ns : 0;
}

/* Does a hold back more than b, where both have like rates? */
static bool bounds_more(const gp_rank_brief *a, const gp_rank_brief *b)
{
    const gp_verdict *v = &a->verdict, *u = &b->verdict;
    return v->waits != u->waits ? u->waits : v->waits ? v->meets < u->meets : a->busiest_ns > b->busiest_ns;
}

static int find_bound(const gp_whole *w, double *fastest)
{
    double slowest = INFINITY;
    int bound = -1;
    *fastest = 0;
    for (int r = 0; r < w->us->n; r++) {
        double rate = rate_of(&w->of[r]);
        slowest = rate > 0 && rate < slowest ? rate : slowest;
        *fastest = rate > *fastest ? rate : *fastest;
    }
    for (int r = 0; r < w->us->n; r++) {
        const gp_rank_brief *b = &w->of[r];
        if (b->reports && !(rate_of(b) > slowest * (1 + ALIKE)) && (rate_of(b) > 0 || slowest == INFINITY)
            && (bound < 0 || bounds_more(b, &w->of[bound])))
            bound = r;
    }
    return bound;
}

/* How the rank that bounds the whole differs from the others, of which some may have no report: those that were retuned
 * are not measured. */
static void compare(gp_whole *w, double fastest)
{
    const gp_rank_brief *b = &w->of[w->bound];
    const gp_verdict *v = &b->verdict;
    double rate = rate_of(b), least = (double)b->busiest_ns;
    double meets = v->meets;
    bool waits = false;
    int n = 0;
    char all[80];
    for (int r = 0; r < w->us->n; r++) {
        if (!w->of[r].reports)
            continue;
        n++, waits |= w->of[r].verdict.waits && !v->waits;
        meets = fmax(meets, w->of[r].verdict.meets);
        least = fmin(least, (double)w->of[r].busiest_ns);
    }
    snprintf(all, sizeof all, n < w->us->n ? "of %d ranks %d were measured" : "of %d ranks", w->us->n, n);
    bool last = v->waits && v->meets < meets / 2;      /* others wait longer, and so for this one */
    bool slower = fastest > (1 + DIFFER) * rate, busier = (double)b->busiest_ns - least > DIFFER * (double)b->wall_ns;
    if (n == 1)
        snprintf(w->head, sizeof w->head, "of %d ranks only rank %d was measured", w->us->n, w->bound);
    else if (slower)
        snprintf(w->head, sizeof w->head, "%s%s rank %d is the slowest: %.0f frames/s, up to %.0f in others", all,
                 n < w->us->n ? ", of which" : "", w->bound, rate, fastest);
    else if (waits || last || busier)
        snprintf(w->head, sizeof w->head, "%s%s rank %d is %s", all, n < w->us->n ? ", of which" : "", w->bound,
                 waits || last ? "the one for which others wait" : "the busiest");
    else if (n < w->us->n)
        snprintf(w->head, sizeof w->head, "%s, which are alike; this is rank %d", all, w->bound);
    else
        snprintf(w->head, sizeof w->head, "%d ranks, which are alike; this is rank %d", n, w->bound);
    if (n == 1 || slower || waits || last || busier)
        snprintf(w->before, sizeof w->before, "rank %d: ", w->bound);
    if (last)
        snprintf(w->after, sizeof w->after, ". Others wait longer, up to %.0f %%, so this rank comes last%s%s",
                 100 * fmin(meets, 1), *v->busiest ? ": beside that its busiest is " : "", v->busiest);
    else if (v->waits && !slower && n == w->us->n)
        snprintf(w->after, sizeof w->after, ". No rank comes last, so the exchange takes that time, or ranks are late "
                 "in turns: %s", v->less);
}

void gp_whole_decide(gp_whole *w)
{
    double fastest;
    bool traces = false;
    w->bound = find_bound(w, &fastest), w->zero = INT64_MAX;
    if (w->bound >= 0)
        compare(w, fastest);
    for (int r = 0; r < w->us->n; r++) {
        double error;
        gp_clock clock = gp_ranks_clock(w->us, r, &error);
        int64_t began = gp_clock_other(&clock, w->of[r].began);
        w->zero = w->of[r].traces && began < w->zero ? began : w->zero;
        traces |= w->of[r].traces;
    }
    for (int which = 0; which < GP_RANK_TEXTS; which++)
        w->wanted[which] = w->of->writes[which] && (which == GP_RANK_EVENTS ? traces : w->bound >= 0);
}
