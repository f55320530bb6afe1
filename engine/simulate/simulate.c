/* simulate.c - a plan on paper: actors, rings, and what they wait for, as in engine/run, moved by an agenda.
 *
 *   host stage   workers that take firings: host.c; whose thread does that: turns.c
 *   segment      a launcher and a reaper: launcher.c; what a launch does: device.c
 *   cores        shared evenly by all threads that have work: host stages, launchers, threads that wake up, and on the
 *                CPU back end kernels. With `sync: spin` every thread that waits has a part of them, too. Else a thread
 *                that has waited for longer than it looks has to be woken (init_waiting() in setup.c)
 *   ranks        each has actors and rings of its own; those of one machine share its cores. In a collective stage all
 *                meet: host.c
 *
 * A slot is free, and a frame is there, as ring.c says. What happens at one time happens in the order in which it was
 * decided; then all look that may have something to do. */
#include <math.h>
#include "simulate/model.h"

/* The launch in slot `lane` of its actor's launches in flight. */
static uint64_t launch_at(const actor *p, int lane)
{
    uint64_t n = (uint64_t)(p->segment->depth + 1), k = p->retired / n * n + (uint64_t)lane;
    return k < p->retired ? k + n : k;
}

static void handed_in(simulation *x, int a, int w)
{
    gp_model_hand_in(x, a, w);
    if (x->actor[a].lends)
        gp_model_turned(x, a);
}

/* What a worker does is done, but for what ranks exchange. */
static void worked(simulation *x, int a, int w)
{
    if (x->actor[a].came)
        gp_model_meet(x, a, w);
    else
        handed_in(x, a, w);
}

static void happen(simulation *x, gp_due e)
{
    actor *p = &x->actor[e.who];
    switch ((what)e.what) {
    case WOKEN:
        if (p->lends)
            gp_model_go_on(x, e.who);
        else
            gp_model_begin_host(x, e.who, e.lane);
        break;
    case LAUNCHER_WOKEN: gp_model_launch(x, e.who); break;
    case FILLED:     look_at(x, e.who); break;
    case PACED:      gp_model_work(x, e.who, e.lane); break;
    case WORKED:
        if (p->worker[e.lane].sleep > 0)
            gp_agenda_add(&x->agenda, x->now + p->worker[e.lane].sleep, SLEPT, e.who, e.lane);
        else
            worked(x, e.who, e.lane);
        break;
    case SLEPT:      worked(x, e.who, e.lane); break;
    case MET:
        p->worker[e.lane].apart += x->now - p->worker[e.lane].due;
        handed_in(x, e.who, e.lane);
        break;
    case QUEUED:     gp_model_begin_launch(x, e.who, gp_model_queued(x, e.who)); break;
    case COPIED_IN: case COPIED_PEER: case COMPUTED: case TOOK_TURN: case COPIED_OUT: {
        uint64_t k = launch_at(p, e.lane);
        if (gp_model_device_did(x, (what)e.what, e.who, k))
            gp_model_launch_done(x, e.who, k);
        break;
    }
    case REAPED:     p->reaping = false, gp_model_reap(x, e.who); break;
    }
}

static void look(simulation *x)
{
    for (int i = 0; i < x->nlook; i++) {
        actor *p = &x->actor[x->look[i]];
        p->listed = false;
        if (p->segment)
            gp_model_look_segment(x, x->look[i]);
        else if (p->lends)
            gp_model_look_lender(x, x->look[i]);
        else
            gp_model_look_host(x, x->look[i]);
    }
    x->nlook = 0;
}

/* The share whose next job is done first. */
static gp_share *first_share(simulation *x)
{
    while (x->ntouched) {
        int i = x->touched[--x->ntouched];
        x->share[i].touched = false;
        x->at[i] = gp_share_next(&x->share[i]);
        for (int k = (x->leaves + i) / 2; k; k /= 2) {
            int a = x->winner[2 * k], b = x->winner[2 * k + 1];
            x->winner[k] = x->at[b] < x->at[a] ? b : a;
        }
    }
    return &x->share[x->winner[1]];
}

/* The next thing that happens. False: nothing does. */
static bool step(simulation *x)
{
    double at = x->agenda.n ? x->agenda.due[0].at : INFINITY;
    gp_share *of = first_share(x);
    double next = x->at[of - x->share];
    bool shared = next < at;
    if (shared)
        at = next;
    if (at == INFINITY)
        return false;
    x->now = at;
    if (shared)
        touch(x, of);
    happen(x, gp_agenda_take(shared ? &of->jobs : &x->agenda));
    look(x);
    return true;
}

gp_simulated *gp_simulate(gp_arena *a, const gp_plan *plan, const gp_costs *costs, uint64_t frames, int slices,
                          gp_errs *errs)
{
    gp_simulated *s = GP_NEW(a, gp_simulated, 1);
    gp_report *r = s->report = GP_NEW(a, gp_report, 1);
    int ranks = costs->ranks > 1 ? costs->ranks : 1;
    simulation x = { .arena = a, .plan = plan, .g = plan->graph, .c = costs, .ranks = ranks, .each = plan->nactors,
                     .nactors = ranks * plan->nactors, .out = s, .slices = slices, .agenda.arena = a,
                     .wake = costs->wake_ns, .call = costs->call_ns, .spins = plan->graph->sync == GP_SYNC_SPIN };
    r->actor = GP_NEW(a, gp_actor_report, x.nactors);
    r->nactors = plan->nactors;
    s->slice = GP_NEW(a, gp_slice, slices);
    gp_model_init(&x, frames);
    if (x.last < 0) {
        gp_fail(errs, GP_E_USAGE, (gp_loc){ .file = plan->graph->file }, "no stage takes what comes out: there is "
                "nothing to simulate");
        return NULL;
    }
    for (int i = 0; i < x.nactors; i++)
        look_at(&x, i);
    look(&x);
    while (x.sinks && step(&x))
        ;
    if (x.sinks) {
        gp_fail(errs, GP_E_BUG, (gp_loc){ .file = plan->graph->file }, "the simulation stands still after %.3g ms",
                1e-6 * x.now);
        return NULL;
    }
    for (int i = 0; i < x.nactors; i++)
        gp_model_count_waits(&x, &x.actor[i]);
    for (int i = 0; i < x.nshares; i++)
        gp_share_go_on(&x.share[i], x.now);
    gp_model_report(&x);
    return s;
}
