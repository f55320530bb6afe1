/* ranks_bound.c - which rank bounds the whole, from a few numbers of each: see ranks_whole.h.
 *
 * It is the one with the lowest rate of frames; of those whose rates are like that, the one whose busiest stage (per
 * worker) or engine was busy longest. */
#include <math.h>
#include "cli/ranks_whole.h"

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
    const gp_report *r = f->reports || f->traces || f->account ? w->own.report : NULL;     /* NULL: it was retuned */
    gp_rank_brief b = { .began = gp_run_began(w->p), .reports = r != NULL };
    b.traces = (f->traces || f->html) && b.began && (r || outcome == GP_STUCK);
    if (r) {
        b.wall_ns = r->wall_ns, b.busiest_ns = busiest_of(r);
        b.done = gp_frames_done(w->own.now.source, w->own.now.nsources);
        snprintf(b.verdict, sizeof b.verdict, "%s", r->verdict.text);
    }
    return b;
}

static double rate_of(const gp_rank_brief *b)
{
    return b->reports && b->wall_ns > 0 ? 1e9 * (double)b->done / (double)b->wall_ns : 0;
}

static int find_bound(const gp_whole *w, double *fastest)
{
    double slowest = INFINITY;
    int bound = -1;
    *fastest = 0;
    for (int r = 0; r < gp_ranks(); r++) {
        double rate = rate_of(&w->of[r]);
        slowest = rate > 0 && rate < slowest ? rate : slowest;
        *fastest = rate > *fastest ? rate : *fastest;
    }
    for (int r = 0; r < gp_ranks(); r++) {
        const gp_rank_brief *b = &w->of[r];
        if (b->reports && !(rate_of(b) > slowest * (1 + ALIKE)) && (rate_of(b) > 0 || slowest == INFINITY)
            && (bound < 0 || b->busiest_ns > w->of[bound].busiest_ns))
            bound = r;
    }
    return bound;
}

void gp_whole_decide(gp_whole *w)
{
    double fastest, rate;
    int64_t zero = INT64_MAX;
    bool busier = false;
    gp_rank_answer a = { .bound = find_bound(w, &fastest) };
    const gp_report_files *f = w->files;
    bool any = a.bound >= 0, traces = false;
    rate = a.bound >= 0 ? rate_of(&w->of[a.bound]) : 0;
    for (int r = 0; a.bound >= 0 && r < gp_ranks(); r++)
        busier |= w->of[r].reports && (double)(w->of[a.bound].busiest_ns - w->of[r].busiest_ns)
            > DIFFER * (double)w->of[a.bound].wall_ns;
    bool slower = fastest > (1 + DIFFER) * rate;
    if (slower)
        snprintf(a.head, sizeof a.head, "of %d ranks rank %d is the slowest: %.0f frames/s, up to %.0f in others",
                 gp_ranks(), a.bound, rate, fastest);
    else
        snprintf(a.head, sizeof a.head, busier ? "of %d ranks rank %d is the busiest"
                 : "%d ranks, which are alike; this is rank %d", gp_ranks(), a.bound);
    if (slower || busier)
        snprintf(a.before, sizeof a.before, "rank %d: ", a.bound);
    for (int r = 0; r < gp_ranks(); r++) {
        double error;
        w->answer[r].clock = gp_ranks_clock(r, &error);
        int64_t began = gp_clock_other(&w->answer[r].clock, w->of[r].began);
        zero = w->of[r].traces && began < zero ? began : zero;
        traces |= w->of[r].traces;
    }
    a.wanted[GP_RANK_REPORT] = any && f->report.open, a.wanted[GP_RANK_ACCOUNT] = any && f->account && !gp_says_json();
    a.wanted[GP_RANK_PLAN] = a.wanted[GP_RANK_PAGE_EVENTS] = any && f->html && f->report.open;
    a.wanted[GP_RANK_EVENTS] = traces && f->trace.open;
    for (int r = 0; r < gp_ranks(); r++) {
        a.clock = w->answer[r].clock, a.zero = zero;
        w->answer[r] = a;
    }
}
