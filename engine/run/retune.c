/* retune.c - makes a plan ready while a run goes on, and pauses that run at once.
 *
 * Whatever takes long is done before the pause: memory is taken, kernels are compiled and put on the device, stages that
 * are new are opened. Where the plan that comes has shallower rings, the run goes on with these depths until no more
 * waits in any than will fit; then it stops where it is, and nothing has to come out first. */
#include <unistd.h>
#include "run/fits.h"
#include "run/paused.h"
#include "run/setup.h"

/* Does what waits in ring r, with what its producer is making, fit its depth in the next plan? */
static bool has_room(const gp_run *run, const gp_ringrt *r, int depth)
{
    uint64_t made = atomic_load(&r->produced.at), least = UINT64_MAX;
    if (r->ring->producer >= 0) {
        const gp_actorrt *p = &run->actor[r->ring->producer];
        uint64_t will = gp_actor_made(p, atomic_load(&p->next));
        made = will > made ? will : made;
    }
    for (int c = 0; c < r->ring->nconsumers; c++) {
        uint64_t at = atomic_load(&r->consumed[c].at);
        if (!atomic_load(&r->consumed[c].closed) && at < least)
            least = at;
    }
    return least == UINT64_MAX || made < least || made - least <= (uint64_t)depth;
}

/* Rings of the run take no more than those of `plan`, NULL: than they can. Does all that waits fit? */
static bool bound_rings(const gp_run *run, const gp_plan *plan)
{
    bool fit = true;
    for (int i = 0; i < run->plan->nrings; i++) {
        gp_ringrt *r = &run->ring[i];
        int own = r->ring->depth, next = plan ? plan->ring[i].depth : own;
        if (r->ring->segment >= 0 || !r->buffer)
            continue;
        atomic_store(&r->room, next < own ? next : own);
        fit &= has_room(run, r, next);
    }
    return fit;
}

enum { LOOK_US = 500 };

/* Waits until the run of `from` is set up: until then it is not known what it writes. False: it is over, or p was
 * cancelled. */
static bool is_set_up(gp_pipeline *p, gp_pipeline *from)
{
    bool up = false;
    while (!up && atomic_load(&from->running) && !atomic_load(&p->cancel)) {
        gp_run *run = gp_pipeline_lock_run(from);
        up = run && run->ready;
        gp_pipeline_unlock_run(from);
        if (!up)
            usleep(LOOK_US);
    }
    return up;
}

typedef enum { WAITS, OVER, PAUSES } progress;

/* The thread of the run goes on under p as soon as it has paused: p is free then. */

static progress try_to_pause(gp_pipeline *p, gp_pipeline *from, bool first)
{
    progress is = OVER;
    gp_run *run = gp_pipeline_lock_run(from);
    if (!atomic_load(&from->running)) {
        is = OVER;
    } else if (!run || !run->ready || !atomic_load(&run->live)) {
        is = WAITS;                    /* its threads are to start, or it is about to be over */
    } else if (!atomic_load(&run->level) && !atomic_load(&run->failed)) {
        bool fit = bound_rings(run, p->plan);
        is = fit && !first ? PAUSES : WAITS;           /* who looked at a depth before has taken frames by now */
        if (is == PAUSES) {
            atomic_store(&from->told_ns, gp_now_ns());
            atomic_store(&p->running, false);
            gp_run_pause_at_once(run);
        }
    }
    gp_pipeline_unlock_run(from);
    return is;
}

static bool pause_at_once(gp_pipeline *p, gp_pipeline *from)
{
    progress is = try_to_pause(p, from, true);
    while (is == WAITS) {
        usleep(LOOK_US);
        is = atomic_load(&p->cancel) ? OVER : try_to_pause(p, from, false);
    }
    if (is != PAUSES) {                /* the run goes on as it was, if it does */
        gp_run *run = gp_pipeline_lock_run(from);
        if (run && run->ready)
            bound_rings(run, NULL);
        gp_pipeline_unlock_run(from);
    }
    return is == PAUSES;
}

/* Nothing that others do with the device may be in the way of kernels that stay there. */
static bool can_prepare(const gp_pipeline *p, const gp_pipeline *from)
{
    return p->plan->unified || (p->graph->launch != GP_LAUNCH_PERSISTENT && from->graph->launch != GP_LAUNCH_PERSISTENT);
}

static bool prepare(gp_pipeline *p, gp_pipeline *from, const gp_run_options *o, gp_errs *errs)
{
    gp_run *run = gp_run_new(p, from, o, errs);
    if (!run)
        return false;
    run->files = from->files;
    if (!gp_run_set_up(run)) {         /* a thread uses it still */
        gp_fail(errs, GP_E_RUN, (gp_loc){ .file = p->graph->file }, "the plan cannot be set up: a stage does not come back");
        return false;
    }
    gp_errs_add(errs, &run->errs);
    p->prepared = run;
    if (run->ready)
        run->ready = false;            /* that it will be when it goes on */
    else
        gp_pipeline_drop_prepared(p);
    return p->prepared;
}

bool gp_pipeline_retune(gp_pipeline *p, gp_pipeline *from, const gp_run_options *o, gp_errs *errs)
{
    if (p == from || p->paused || atomic_exchange(&p->running, true))
        return gp_fail(errs, GP_E_RUN, (gp_loc){ .file = p->graph->file }, "this pipeline has a run of its own");
    gp_pipeline_drop_prepared(p);
    if (gp_paused_fits(p, from, errs) && is_set_up(p, from) && (!can_prepare(p, from) || prepare(p, from, o, errs))
        && pause_at_once(p, from))
        return true;
    gp_pipeline_drop_prepared(p);
    atomic_store(&p->running, false);
    return false;
}

int64_t gp_pipeline_paused_ns(const gp_pipeline *p, int64_t *since_told)
{
    if (since_told)
        *since_told = atomic_load(&p->since_told_ns);
    return atomic_load(&p->paused_ns);
}

bool gp_pipeline_is_paused(const gp_pipeline *p)
{
    gp_pipeline_lock_run(p);
    bool is = p->paused;
    gp_pipeline_unlock_run(p);
    return is;
}
