/* host.c - host stages: workers take consecutive firings, and hand them in; they are published in order. A firing has a
 * core for a while, then sleeps for a while. A source with a pace waits for its time first. */
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
        p->report->idle_ns += (int64_t)(due - x->now);
        gp_agenda_add(&x->agenda, due, PACED, a, w);
    } else {
        gp_model_work(x, a, w);
    }
}

void gp_model_look_host(simulation *x, int a)
{
    actor *p = &x->actor[a];
    reason why;
    if (p->nbusy == p->nworkers)
        return;
    uint64_t able = gp_model_able(x, p, &why);
    int idle = 0;
    for (int w = 0; w < p->nworkers; w++) {
        piece *q = &p->worker[w];
        if (q->busy)
            continue;
        bool room = p->next - p->head < p->window;
        if (p->next >= able || !room) {
            idle++, q->rested = true;
            why = p->next < able ? FOR_OUTPUT : why;
            continue;
        }
        bool rested = q->rested && !x->spins && x->wake > 0;
        double factor = varied(p, p->next);
        *q = (piece){ .busy = true, .first = p->next++, .n = 1, .work = p->cost->cpu_ns * factor,
                      .sleep = p->cost->wait_ns * factor };
        p->nbusy++;
        if (rested)
            gp_model_share_cores(x, x->wake, WOKEN, a, w);
        else
            gp_model_begin_host(x, a, w);
    }
    gp_model_set_idle(x, p, idle, why);
}

void gp_model_hand_in(simulation *x, int a, int w)
{
    actor *p = &x->actor[a];
    piece *q = &p->worker[w];
    int64_t took = (int64_t)(x->now - q->start);
    p->report->busy_ns += took;
    gp_hist_add(&p->report->time, took, 1);
    keep(x, (gp_slice){ GP_SLICE_STAGE, a, w, 0, (int64_t)q->start, (int64_t)x->now, q->first, 1 });
    q->busy = q->rested = false;
    p->nbusy--;
    p->handed[q->first % p->window] = 1;
    uint64_t first = p->head, end = first;
    while (end < p->next && p->handed[end % p->window])
        p->handed[end++ % p->window] = 0;
    if (end > first)
        gp_model_publish(x, a, first, (int)(end - first));
    look_at(x, a);
}
