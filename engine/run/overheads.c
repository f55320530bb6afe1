/* overheads.c - what it takes to hand frames over, as a timed run measures it: what a turn of a host stage takes beside
 * the kind's code (turn.c measures one in a few), and what it takes to wake a thread. Simulations ask for both. */
#include "run/measure.h"

/* ---- waking ----------------------------------------------------------- */

struct gp_wakes {
    int64_t since;                     /* who sleeps was woken then; 0: nobody was. With the eventcount's lock, */
    gp_hist late, calls;               /* ... and these */
    struct gp_wakes *next;             /* of the run's */
};

struct gp_wakes *gp_wakes_new(gp_run *run)
{
    if (!run->options.timed)
        return NULL;
    struct gp_wakes *w = GP_NEW(&run->arena, struct gp_wakes, 1);
    w->next = run->wakes;
    return run->wakes = w;
}

void gp_wakes_begin(struct gp_wakes *w, int64_t start)
{
    if (w && !w->since)
        w->since = start;
}

void gp_wakes_awake(struct gp_wakes *w)
{
    if (w && w->since)
        gp_hist_add(&w->late, gp_now_ns() - w->since, 1);
    gp_wakes_forget(w);
}

void gp_wakes_forget(struct gp_wakes *w)
{
    if (w)
        w->since = 0;
}

/* A wake of threads that were woken before takes no time. */
void gp_wakes_end(struct gp_wakes *w, int64_t start)
{
    if (w && w->since == start)
        gp_hist_add(&w->calls, gp_now_ns() - start, 1);
}

void gp_measured_wakes(const gp_run *run, gp_hist *late, gp_hist *calls)
{
    for (const struct gp_wakes *w = run->wakes; w; w = w->next)
        gp_hist_merge(late, &w->late), gp_hist_merge(calls, &w->calls);
}

/* ---- turns ------------------------------------------------------------ */

void gp_measure_turn(gp_threadrt *t, int64_t ns, int n)
{
    enum { LONG_NS = 20000 };          /* it takes a few us at most: else it waited for a core, or for a lock */
    double rest = (double)(ns - t->worked_ns), frames = n;
    gp_turn_sums *s = &t->measured;
    if (rest >= LONG_NS || rest < 0)
        return;
    s->turns++, s->frames += frames, s->frames_squared += frames * frames;
    s->ns += rest, s->frames_ns += frames * rest;
}

/* The line does not fall, nor does it begin below 0. */
gp_turn_cost gp_measured_turns(const gp_actorrt *p)
{
    const double DIFFER = 0.01;        /* numbers of frames, by so much of their mean squared: else no line is known */
    gp_turn_sums s = { 0 };
    double all = 0;
    for (int i = 0; i < p->nthreads; i++) {
        const gp_turn_sums *t = &p->thread[i].measured;
        s.turns += t->turns, s.frames += t->frames, s.frames_squared += t->frames_squared;
        s.ns += t->ns, s.frames_ns += t->frames_ns;
        s.ended_early += t->ended_early, s.frames_of_ended += t->frames_of_ended, all += p->thread[i].turns;
    }
    double stop = s.ended_early > all / 2 ? s.frames_of_ended / s.ended_early : 0;
    if (s.turns < 1 || s.frames < 1)
        return (gp_turn_cost){ -1, -1, stop };
    double mean = s.frames / s.turns, ns = s.ns / s.turns, differ = s.frames_squared / s.turns - mean * mean;
    double slope = differ > DIFFER * mean * mean ? (s.frames_ns / s.turns - mean * ns) / differ : 0;
    slope = slope < 0 ? 0 : slope * mean < ns ? slope : ns / mean;
    return (gp_turn_cost){ ns - slope * mean, slope, stop };
}
