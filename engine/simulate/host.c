/* host.c - host stages: workers take consecutive firings, up to so many in a turn, and hand them in; they are published
 * in order. A turn has a core for a while, for the kind's code and for what moves the frames, then sleeps for a while.
 * A source with a pace waits for its time first. Which thread does the turns of a stage with one worker: turns.c. */
#include <math.h>
#include "simulate/model.h"

void gp_model_work(simulation *x, int a, int w)
{
    gp_model_share_cores(x, x->actor[a].worker[w].work, WORKED, a, w);
}

void gp_model_begin_host(simulation *x, int a, int w)
{
    actor *p = &x->actor[a];
    piece *q = &p->worker[w];
    bool shared = p->stage->shared;    /* frames of all ranks come at that pace */
    uint64_t number = shared ? q->first * (uint64_t)x->ranks + (uint64_t)p->rank : q->first;
    double due = (double)number * p->cost->pace_ns;
    q->start = x->now;
    if (due > x->now) {
        q->apart = due - x->now;
        p->report->idle_ns += (int64_t)q->apart;
        gp_agenda_add(&x->agenda, due, PACED, a, w);
    } else {
        gp_model_work(x, a, w);
    }
}

int gp_model_ready(const simulation *x, const actor *p, reason *why)
{
    uint64_t able = gp_model_able(x, p, why), room = p->window - (p->next - p->head), n;
    if (p->next >= able)
        return 0;
    *why = FOR_OUTPUT;
    n = able - p->next < room ? able - p->next : room;
    return n < (uint64_t)p->most ? (int)n : p->most;
}

void gp_model_take(simulation *x, int a, int w, int n, int by)
{
    actor *p = &x->actor[a];
    piece *q = &p->worker[w];
    double factor = 0;
    for (int i = 0; i < n; i++)
        factor += varied(p, p->next + (uint64_t)i);
    *q = (piece){ .busy = true, .first = p->next, .n = n, .since = AWAKE, .by = by, .start = x->now };
    q->beside = p->cost->turn_ns + n * p->cost->frame_ns;
    q->work = q->beside + p->cost->cpu_ns * factor, q->sleep = p->cost->wait_ns * factor;
    p->next += (uint64_t)n;
    p->nbusy++, p->taken++;
}

void gp_model_look_host(simulation *x, int a)
{
    actor *p = &x->actor[a];
    reason why = FOR_NOTHING;
    int idle = 0;
    for (int w = 0; w < p->nworkers; w++) {
        piece *q = &p->worker[w];
        if (q->busy)
            continue;
        int n = gp_model_ready(x, p, &why);
        if (!n) {
            idle++, q->since = q->since < 0 ? x->now : q->since;
            continue;
        }
        double wake = to_wake(x, p, q->since, p->looks);
        gp_model_take(x, a, w, n, a);
        if (wake > 0)
            gp_model_share_cores(x, wake, WOKEN, a, w);
        else
            gp_model_begin_host(x, a, w);
    }
    set_idle(x, p, idle, why);
}

/* Of what a turn took, that of the kind's code, with its part of what it waited for a core, and what it was apart. */
static int64_t worked(const simulation *x, const piece *q)
{
    double took = x->now - q->start - q->apart, all = q->work + q->sleep;
    return (int64_t)(q->apart + (all > 0 ? took * (1 - (q->beside + q->owed) / all) : took));
}

void gp_model_hand_in(simulation *x, int a, int w)
{
    actor *p = &x->actor[a];
    piece *q = &p->worker[w];
    int64_t took = worked(x, q);
    p->report->busy_ns += took;
    gp_hist_add(&p->report->time, took / q->n, (uint64_t)q->n);
    keep(x, (gp_slice){ GP_SLICE_STAGE, a, w, 0, (int64_t)q->start, (int64_t)x->now, q->first, q->n });
    q->busy = false, q->since = AWAKE;
    p->nbusy--;
    uint64_t first = p->head, end = first, at = q->first % p->window;
    for (int i = 0; i < q->n; i++, at = at + 1 < p->window ? at + 1 : 0)
        p->handed[at] = 1;
    for (at = first % p->window; end < p->next && p->handed[at]; end++) {
        p->handed[at] = 0;
        at = at + 1 < p->window ? at + 1 : 0;
    }
    if (end > first)
        gp_model_publish(x, a, first, (int)(end - first));
    if (!p->lends)
        look_at(x, a);
}

/* ---- stages in which ranks meet ---------------------------------------- */

/* A round begins when the last rank has come. All tell each other what they have;
 * what then goes over the slowest link (links.c) takes it for a while, one round after the other, whatever stage it is
 * of. On one machine, by MPI, a thread of each rank copies. */

/* The worker that has this round. */
static int worker_of(const actor *p, uint64_t k)
{
    int w = 0;
    while (!p->worker[w].busy || p->worker[w].first != k)
        w++;
    return w;
}

static bool all_came(const simulation *x, int index, uint64_t k)
{
    const actor *meet = &x->actor[index];
    int ranks = 0;
    for (int r = 0; r < x->ranks; r++)
        ranks += k < x->actor[r * x->each + index].total;
    return ranks && meet->came[k % (uint64_t)meet->nworkers] == ranks;
}

/* Of the ranks that have a round k of this stage, all have come: it is over after a while. */
static void begin_round(simulation *x, int index, uint64_t k)
{
    actor *meet = &x->actor[index];
    bool on_cores = gp_round_takes_cores(x->c, meet->stage);
    double ns = gp_round_ns(x->c, meet->stage), told = gp_round_told_ns(x->c);
    double from = on_cores ? x->now : fmax(fmax(x->now, meet->tells) + told, x->link_free) - told;
    if (!on_cores)
        meet->tells = fmax(x->now, meet->tells) + told, x->link_free = from + ns;
    meet->came[k % (uint64_t)meet->nworkers] = 0, meet->round = k + 1;
    for (int r = 0; r < x->ranks; r++) {
        int a = r * x->each + index;
        actor *p = &x->actor[a];
        if (k >= p->total)
            continue;
        int w = worker_of(p, k);
        p->report->idle_ns += (int64_t)(from - p->worker[w].due);
        if (on_cores)
            gp_model_share_cores(x, ns, MET, a, w);
        else
            gp_agenda_add(&x->agenda, from + ns, MET, a, w);
    }
}

/* Workers come to their rounds in any order, and begin them in that of frames. */
void gp_model_meet(simulation *x, int a, int w)
{
    int index = x->actor[a].index;
    actor *meet = &x->actor[index];
    piece *q = &x->actor[a].worker[w];
    q->due = x->now;
    meet->came[q->first % (uint64_t)meet->nworkers]++;
    while (all_came(x, index, meet->round))
        begin_round(x, index, meet->round);
}
