/* calibrate.c - what a report does not say of the costs, so that the plan of its run, simulated, does what the run did.
 *
 *   wait_ns   of each host stage: what its busy time was beside CPU time, less what threads wait for a core in the
 *             simulation: it slept then, for a disk or another process
 *   kernels_ns of those that leave room for others on a GPU: their launches take as long as those of the run
 *   all       times are scaled, where the rate still differs: caches, memory and the clock of the cores are shared, too
 */
#include <math.h>
#include "simulate/measured.h"

enum { FRAMES = 20000, WAITS = 4, SCALINGS = 8 };
static const double CLOSE = 0.0025;

typedef struct calibration {
    gp_arena *arena;
    gp_measured_costs *m;
    const gp_plan *plan;
    gp_errs *errs;
} calibration;

/* Threads sleep for what firings took that simulated ones do not. */
static void find_waits(calibration *x, const gp_actor_report *p)
{
    double busy = (double)(p->busy_ns - p->idle_ns) / (double)p->time.n;
    gp_stage_cost *stage = &x->m->costs.stage[p->stage];
    stage->wait_ns = fmax(stage->wait_ns + x->m->busy_ns[p->stage] - busy, 0);
}

/* What launches took more than simulated ones is of their kernels: of several that share the device each has a part. */
static void find_kernels(calibration *x, const gp_actor_report *p)
{
    int k = p->segment;
    const gp_segment *s = &x->plan->segment[k];
    gp_segment_cost *c = &x->m->costs.segment[k];
    double each = x->m->each[k], fill = fmin(each * c->part, 1);
    double more = each * (x->m->took_ns[k] - (double)gp_hist_at(&p->time, 0.5));
    more /= fmax(s->streams * fill, 1) * fmax(each * c->part, 1);
    c->kernels_ns = fmax(c->kernels_ns + more, x->m->least_ns[k]);
}

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
            if (p->stage >= 0 && p->time.n)
                find_waits(x, p);
            if (p->segment >= 0 && p->time.n && x->m->least_ns[p->segment] > 0)
                find_kernels(x, p);
        }
    }
    return ratio;
}

static void scale(gp_measured_costs *m, double by)
{
    m->costs.slower *= by;
    for (int v = 0; v < m->costs.nstages; v++)
        m->costs.stage[v].cpu_ns *= by, m->costs.stage[v].wait_ns *= by, m->costs.stage[v].turn_ns *= by,
        m->costs.stage[v].frame_ns *= by;
    for (int k = 0; k < m->costs.nsegments; k++)
        m->costs.segment[k].kernels_ns *= by, m->costs.segment[k].launch_ns *= by;
}

gp_costs *gp_costs_read(gp_arena *a, const gp_source_report *r, const gp_plan *plan, gp_errs *errs)
{
    calibration x = { a, gp_measured_costs_read(a, r, plan, errs), plan, errs };
    if (x.m)
        x.m->costs.slower = 1;
    if (!x.m || ratio_of(&x, true) < 0)
        return NULL;
    for (int i = 0; i < SCALINGS; i++) {
        double ratio = ratio_of(&x, false);
        if (!(ratio > 0) || fabs(ratio - 1) < CLOSE)
            break;
        scale(x.m, fmax(fmin(ratio, 2), 0.5));
    }
    return &x.m->costs;
}
