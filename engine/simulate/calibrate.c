/* calibrate.c - what a report does not say of the costs, so that the plan of its run, simulated, does what the run did.
 *
 *   wait_ns   of each host stage: what its busy time was beside CPU time, less what threads wait for a core in the
 *             simulation: it slept then, for a disk or another process
 *   wake_ns   what it takes to wake a thread: as much as makes up for the difference of the rates; as is usual, where
 *             that makes none
 *   all       times are scaled, where the rate still differs: caches, memory and the clock of the cores are shared, too
 */
#include <math.h>
#include "simulate/measured.h"

enum { FRAMES = 2000, WAITS = 4, HALVINGS = 9, SCALINGS = 4 };
static const double USUAL_WAKE = 8e3, MOST_WAKE = 200e3, CLOSE = 0.01;

typedef struct calibration {
    gp_arena *arena;
    gp_measured_costs *m;
    const gp_plan *plan;
    gp_errs *errs;
} calibration;

/* What the run took over what the simulation takes; < 0: it failed. */
static double ratio_of(calibration *x, bool waits)
{
    gp_costs *c = &x->m->costs;
    double ratio = -1;
    for (int round = 0; round < (waits ? WAITS : 1); round++) {
        const gp_simulated *s = gp_simulate(x->arena, x->plan, c, FRAMES, 0, x->errs);
        if (!s)
            break;
        bool whole = x->m->frames <= FRAMES;
        double simulated = whole ? (double)s->report->wall_ns / x->m->frames : 1e9 / s->frames_per_s;
        ratio = x->m->wall_ns / x->m->frames / simulated;
        for (int i = 0; waits && i < s->report->nactors; i++) {
            const gp_actor_report *p = &s->report->actor[i];
            if (p->stage < 0 || !p->time.n)
                continue;
            double busy = (double)(p->busy_ns - p->idle_ns) / (double)p->time.n;
            gp_stage_cost *stage = &c->stage[p->stage];
            stage->wait_ns = fmax(stage->wait_ns + x->m->busy_ns[p->stage] - busy, 0);
        }
    }
    return ratio;
}

static void scale(gp_measured_costs *m, double by)
{
    for (int v = 0; v < m->costs.nstages; v++)
        m->costs.stage[v].cpu_ns *= by, m->costs.stage[v].wait_ns *= by;
    for (int k = 0; k < m->costs.nsegments; k++)
        m->costs.segment[k].kernels_ns *= by, m->costs.segment[k].launch_ns *= by;
}

gp_costs *gp_costs_read(gp_arena *a, const gp_source_report *r, const gp_plan *plan, gp_errs *errs)
{
    calibration x = { a, gp_measured_costs_read(a, r, plan, errs), plan, errs };
    if (!x.m)
        return NULL;
    gp_costs *c = &x.m->costs;
    c->wake_ns = USUAL_WAKE;
    double ratio = ratio_of(&x, true);
    if (ratio < 0)
        return NULL;
    if (fabs(ratio - 1) > CLOSE) {
        double low = ratio > 1 ? USUAL_WAKE : 0, high = ratio > 1 ? MOST_WAKE : USUAL_WAKE;
        for (int i = 0; i < HALVINGS; i++) {
            c->wake_ns = (low + high) / 2;
            if (ratio_of(&x, true) > 1)
                low = c->wake_ns;
            else
                high = c->wake_ns;
        }
    }
    for (int i = 0; i < SCALINGS; i++)
        if ((ratio = ratio_of(&x, false)) > 0 && fabs(ratio - 1) > CLOSE / 4)
            scale(x.m, fmax(fmin(ratio, 2), 0.5));
    return c;
}
