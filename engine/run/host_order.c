/* host_order.c - what workers of one stage wait for of one another.
 *
 * Some calls of run() need what all frames before have come to (gp_wait_turn). And stages whose frames take turns may
 * have several workers nevertheless, which begin in order: each when the one before has returned, or lets it
 * (gp_let_next_begin), as it only waits for a device by then. */
#include "run/host.h"
#include "run/measure.h"

typedef struct gp_turn { const gp_hostrt *host; uint64_t first, frame; } gp_turn;

static bool has_turn(void *place)
{
    const gp_turn *w = place;
    return atomic_load(&w->host->head) >= w->first || atomic_load(&w->host->end) <= w->frame;
}

bool gp_host_await_turn(gp_threadrt *t, uint64_t frame)
{
    gp_actorrt *p = t->actor;
    gp_turn w = { p->host, p->host->view[t->worker].first, frame };
    gp_eventcount_wait(&p->changed, has_turn, &w, 0);
    return atomic_load(&p->host->end) > frame;
}

static bool may_begin(void *place)
{
    const gp_turn *w = place;
    return atomic_load(&w->host->begun) >= w->first || atomic_load(&w->host->end) <= w->first;
}

bool gp_host_await_begin(gp_threadrt *t)
{
    gp_actorrt *p = t->actor;
    gp_turn w = { p->host, p->host->view[t->worker].first, 0 };
    if (!may_begin(&w)) {
        gp_pause_begin(t, w.first);
        gp_eventcount_wait(&p->changed, may_begin, &w, p->run->spin_ns);
    }
    return atomic_load(&p->host->end) > w.first;
}

/* It only rises: who let the next begin before it returned may come here after that one. */
void gp_host_let_begin(gp_actorrt *p, uint64_t end)
{
    uint64_t was = atomic_load(&p->host->begun);
    while (was < end && !atomic_compare_exchange_weak(&p->host->begun, &was, end))
        ;
    if (was < end)
        gp_eventcount_wake(&p->changed);
}

/* The firing that the first frame of a call is of. */
static uint64_t frame_of(const gp_threadrt *t)
{
    const gp_actorrt *p = t->actor;
    return gp_firing_of(p->run->graph, p->shared, p->host->view[t->worker].frame->index);
}

bool gp_wait_turn(gp_call *c)
{
    gp_threadrt *t = c->ctx;
    return t->actor->stage->workers == 1 || gp_host_await_turn(t, frame_of(t));
}

void gp_let_next_begin(gp_call *c, int n)
{
    gp_threadrt *t = c->ctx;
    gp_actorrt *p = t->actor;
    if (p->stage->in_order)
        gp_host_let_begin(p, frame_of(t) + (uint64_t)n);
}

/* ---- ends of several ranks ------------------------------------------- */

static bool none_waits(void *arg)
{
    gp_run *run = arg;
    bool none = true;
    for (int i = 0; i < run->plan->nactors; i++)
        none &= !run->actor[i].host || !atomic_load(&run->actor[i].host->waits);
    return none || atomic_load(&run->failed) || atomic_load(&run->level) >= 2;
}

/* One that writes a file together with other ranks agrees with them itself. */
void gp_host_await_ranks(gp_actorrt *p)
{
    bool ended = !p->nout && !p->together;
    for (int i = 0; i < p->nin; i++)
        ended &= atomic_load(&p->in[i].ring->end) <= atomic_load(&p->host->head);
    if (ended && !none_waits(p->run))
        gp_eventcount_wait(&p->changed, none_waits, p->run, p->run->spin_ns);
}

void gp_host_waits(gp_actorrt *p, bool waits)
{
    gp_run *run = p->run;
    atomic_store(&p->host->waits, waits);
    for (int i = 0; i < run->plan->nactors; i++)
        if (!run->actor[i].nout)
            gp_eventcount_wake(&run->actor[i].changed);
}
