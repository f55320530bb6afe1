/* retune.c - makes a plan ready while a run goes on, and pauses that run at once.
 *
 * Whatever takes long, or may fail, is done before the pause: memory is taken, kernels are compiled and put on the
 * device, stages that are new are opened, threads are started. Where the plan that comes has shallower rings, the run
 * goes on with these depths until no more waits in any than will fit; then it stops where it is, and nothing has to
 * come out first.
 *
 * Ranks pause by themselves. One that stops where it is may be in a collective for which another, that has
 * stopped, has not come; that one goes on soon, if it waits for nobody. With two collectives it may wait in one of
 * them for the first, which has stopped before it. So with more than one the frames that sources have made go
 * through first: the rank whose sources made fewest needs none that others have not made, and so pauses and goes on,
 * then the next one. */
#include <stdlib.h>
#include <unistd.h>
#include "base/c_locale.h"
#include "base/filetable.h"
#include "run/host.h"
#include "run/paused.h"
#include "run/setup.h"

/* The slots that ring r needs for what waits in it, with what its producer is making. Before a stage that nobody waits
 * for it needs none. */
static uint64_t needed(const gp_run *run, const gp_ringrt *r)
{
    uint64_t made = atomic_load(&r->produced.at), least = UINT64_MAX;
    if (r->ring->producer >= 0 && run->actor[r->ring->producer].leak)
        return 0;
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
    return least == UINT64_MAX || made < least ? 0 : made - least;
}

/* Rings of the run take no more than those of `plan`, NULL: than they can. The first in which more waits; or NULL. */
static const gp_ringrt *bound_rings(const gp_run *run, const gp_plan *plan)
{
    const gp_ringrt *full = NULL;
    for (int i = 0; i < run->plan->nrings; i++) {
        gp_ringrt *r = &run->ring[i];
        int own = r->ring->depth, next = plan ? plan->ring[i].depth : own;
        if (r->ring->segment >= 0 || !r->buffer)
            continue;
        atomic_store(&r->limit, next < own ? next : own);
        full = full || needed(run, r) <= (uint64_t)next ? full : r;
    }
    return full;
}

enum { LOOK_US = 500, NOBODY_READS_S = 5 };

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

static bool meets_twice(const gp_run *run)
{
    int n = 0;
    for (int i = 0; i < run->plan->nactors; i++)
        n += run->actor[i].together;
    return n > 1;
}

/* Does the stage need frames of a source that is marked, or, with `not`, of one that is not? *which: that one. */
static bool needs(const gp_graph *g, const gp_stage *s, const bool *marked, bool not, int *which)
{
    for (*which = 0; *which < g->nstages; (*which)++)
        if (!g->stage[*which].nin && gp_comes_from(s, *which) && marked[*which] != not)
            return true;
    return false;
}

/* Do all sources that collectives need stop after as many frames, as those do that are joined somewhere? Else each
 * of two ranks may have made fewest of one of them. */
static bool ends_alike(const gp_run *run, gp_errs *errs)
{
    const gp_graph *g = run->graph;
    bool *marked = calloc((size_t)g->nstages + 1, sizeof *marked);
    const gp_stage *first = NULL, *other = NULL;
    int i;
    if (!marked)
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ .file = g->file }, "out of memory");
    for (int a = 0; !first && a < run->plan->nactors; a++)
        if (run->actor[a].together && needs(g, run->actor[a].stage, marked, true, &i))
            marked[i] = true, first = &g->stage[i];
    for (bool more = true; more;) {
        more = false;
        for (const gp_stage *s = g->stage; s < g->stage + g->nstages; s++)
            while (needs(g, s, marked, false, &i) && needs(g, s, marked, true, &i))
                marked[i] = more = true;
    }
    for (int a = 0; a < run->plan->nactors; a++)
        if (run->actor[a].together && needs(g, run->actor[a].stage, marked, true, &i))
            other = &g->stage[i];
    free(marked);
    return !other || gp_fail(errs, GP_E_SPEC, other->at, "collectives need frames of '%s' and of '%s', which no stage "
                             "joins: ranks cannot pause after the same frames of both, so that the run cannot be "
                             "retuned", first->name, other->name);
}

/* Does a stage that is done with its frames wait for who takes them, which it cannot begin anew? */
static bool finishes(const gp_run *run)
{
    bool is = false;
    for (int i = 0; i < run->plan->nactors; i++)
        is |= atomic_load(&run->actor[i].finishes);
    return is;
}

/* The sink of the branch of ring r, which nobody waits for (leak.c), that waits for somebody to take what it has. */
static const gp_actorrt *waits_for_reader(const gp_run *run, const gp_ringrt *r)
{
    const gp_graph *g = run->graph;
    const gp_stage *st = &g->stage[r->buffer->use[0].stage];
    for (int i = 0; i < g->nstages; i++)
        for (int a = 0; a < run->plan->nactors && gp_is_leaky(&g->stage[i]) && gp_comes_from(st, i); a++) {
            const gp_actorrt *p = &run->actor[a];
            if (p->host && !p->nout && gp_comes_from(p->stage, i) && atomic_load(&p->thread->doing) == GP_DOING_IDLE)
                return p;
        }
    return NULL;
}

/* The ring whose frames are in the way of a smaller depth, from when on nobody took any of them; bound: rings have theirs. */
typedef struct in_the_way { const gp_ringrt *ring; uint64_t taken; int64_t since_ns; bool bound; } in_the_way;

/* Who reads what a branch writes that nobody waits for may never come: frames that are in the way then stay there. */
static bool stays(const gp_run *run, in_the_way *w, const gp_ringrt *r, const gp_plan *plan, gp_errs *errs)
{
    const gp_buffer *b = &plan->graph->buffer[r->ring->buffer];
    uint64_t taken = 0;
    for (int c = 0; c < r->ring->nconsumers; c++)
        taken += atomic_load(&r->consumed[c].at);
    const gp_actorrt *sink = waits_for_reader(run, r);
    if (r != w->ring || taken != w->taken || !sink)
        w->ring = r, w->taken = taken, w->since_ns = gp_now_ns();
    if (gp_now_ns() - w->since_ns < NOBODY_READS_S * INT64_C(1000000000))
        return false;
    gp_fail(errs, GP_E_RUN, b->depth_at.file ? b->depth_at : b->at, "the depth of buffer '%s' cannot be %d yet: %llu frames "
            "wait in it, as nobody has taken what '%s' writes for %d s", b->name, plan->ring[r->ring - run->plan->ring].depth,
            (unsigned long long)needed(run, r), sink->name, NOBODY_READS_S);
    return true;
}

typedef enum { WAITS, OVER, PAUSES } progress;

static progress try_to_pause(gp_pipeline *p, gp_pipeline *from, in_the_way *w, gp_errs *errs)
{
    progress is = OVER;
    gp_run *run = gp_pipeline_lock_run(from);
    if (!atomic_load(&from->running)) {
        is = OVER;
    } else if (!run || !run->ready || !atomic_load(&run->live)) {
        is = WAITS;                    /* its threads are to start, or it is about to be over */
    } else if (finishes(run)) {
        is = WAITS;
    } else if (!atomic_load(&run->level) && !atomic_load(&run->failed)) {
        const gp_ringrt *full = bound_rings(run, p->plan);
        bool first = !w->bound;        /* who looked at a depth before has taken frames by the second time */
        w->bound = true;
        is = full && stays(run, w, full, p->plan, errs) ? OVER : full || first ? WAITS : PAUSES;
        if (is == PAUSES) {
            atomic_store(&from->told_ns, gp_now_ns());
            atomic_store(&p->running, false);      /* the run goes on under p once it has paused */
            if (meets_twice(run))
                gp_run_pause(run);
            else
                gp_run_pause_at_once(run);
        }
    }
    gp_pipeline_unlock_run(from);
    return is;
}

static bool pause_at_once(gp_pipeline *p, gp_pipeline *from, gp_errs *errs)
{
    in_the_way w = { 0 };
    progress is = try_to_pause(p, from, &w, errs);
    while (is == WAITS) {
        usleep(LOOK_US);
        is = atomic_load(&p->cancel) ? OVER : try_to_pause(p, from, &w, errs);
    }
    if (is != PAUSES) {                /* the run goes on as it was, if it does */
        gp_run *run = gp_pipeline_lock_run(from);
        if (run && run->ready)
            bound_rings(run, NULL);
        gp_pipeline_unlock_run(from);
    }
    return is == PAUSES;
}

/* The stage that waits for other ranks to end, while a source here goes on, which would stand still until then; NULL:
 * none does. */
static const gp_stage *waits_to_end(const gp_run *run)
{
    const gp_stage *waits = NULL;
    bool goes_on = false;
    for (int i = 0; i < run->plan->nactors; i++) {
        const gp_actorrt *p = &run->actor[i];
        goes_on |= gp_source_goes_on(p);
        waits = p->host && atomic_load(&p->host->waits) ? p->stage : waits;
    }
    return goes_on ? waits : NULL;
}

static bool may_pause(gp_pipeline *from, gp_errs *errs)
{
    gp_run *run = gp_pipeline_lock_run(from);
    bool set_up = run && run->ready, may = !set_up || !meets_twice(run) || ends_alike(run, errs);
    const gp_stage *waits = set_up && may ? waits_to_end(run) : NULL;
    if (waits)
        may = gp_fail(errs, GP_E_RUN, waits->at, "stage '%s' has no more frames here, and waits until those of other ranks "
                      "have ended: the run can be changed after that", waits->name);
    gp_pipeline_unlock_run(from);
    return may;
}

/* Nothing that others do with the device may be in the way of kernels that stay there. */
static bool can_prepare(const gp_pipeline *p, const gp_pipeline *from)
{
    return p->plan->unified || (p->graph->launch != GP_LAUNCH_PERSISTENT && from->graph->launch != GP_LAUNCH_PERSISTENT);
}

/* The table of a run that may be over at any moment: it stays until the run that is prepared is destroyed. */
static struct gp_filetable *hold_files(gp_pipeline *from)
{
    atomic_fetch_add(&from->cancelling, 1);    /* see gp_pipeline_forget_files */
    struct gp_filetable *t = atomic_load(&from->files);
    if (t)
        gp_filetable_hold(t);
    atomic_fetch_sub(&from->cancelling, 1);
    return t;
}

static bool prepare(gp_pipeline *p, gp_pipeline *from, const gp_run_options *o, gp_errs *errs)
{
    gp_run *run = gp_run_new(p, from, o, errs);
    if (!run)
        return false;
    run->files = run->held_files = hold_files(from);
    if (!gp_run_set_up(run)) {         /* a thread uses it still */
        p->stuck = true;
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

/* The threads that p needs beside those of the run of `from`; or, not to `begin`, they end. */
static bool reserve(gp_pipeline *p, gp_pipeline *from, bool begin, gp_errs *errs)
{
    bool ok = true;
    gp_pipeline_lock_run(from);
    if (p->prepared && from->threads && begin)
        ok = gp_threads_reserve(from->threads, p->prepared, errs);
    else if (p->prepared && from->threads)
        gp_threads_release(from->threads, p->prepared);
    gp_pipeline_unlock_run(from);
    return ok;
}

bool gp_pipeline_retune(gp_pipeline *p, gp_pipeline *from, const gp_run_options *o, gp_errs *errs)
{
    GP_C_LOCALE;
    if (p == from || p->paused || atomic_exchange(&p->running, true))
        return gp_fail(errs, GP_E_RUN, (gp_loc){ .file = p->graph->file }, "this pipeline has a run of its own");
    gp_pipeline_open_stop(p);
    gp_pipeline_drop_prepared(p);
    if (gp_endpoints_asked(p, false, errs) && gp_paused_fits(p, from, errs) && is_set_up(p, from) && may_pause(from, errs)
        && (!can_prepare(p, from) || prepare(p, from, o, errs))
        && reserve(p, from, true, errs)
        && (!o || !o->pause || o->pause(o->pause_arg)) && pause_at_once(p, from, errs))
        return true;
    reserve(p, from, false, errs);
    gp_pipeline_drop_prepared(p);
    atomic_store(&p->running, p->stuck);
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
