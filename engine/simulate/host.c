/* host.c - host stages: workers take consecutive firings, and hand them in; they are published in order. A firing has a
 * core for a while, then sleeps for a while. A source with a pace waits for its time first. To go on after a wait takes
 * the time to wake a thread, if it sleeps; the turn of a cheap stage, which the thread before it does, takes some time
 * beside, up to what makes it cheap. */
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
    uint64_t able = gp_model_able(x, p, &why);
    int idle = 0;
    for (int w = 0; w < p->nworkers; w++) {
        piece *q = &p->worker[w];
        if (q->busy)
            continue;
        bool room = p->next - p->head < p->window;
        if (p->next >= able || !room) {
            idle++, q->since = q->since < 0 ? x->now : q->since;
            why = p->next < able ? FOR_OUTPUT : why;
            continue;
        }
        double wake = to_wake(x, q->since, p->carried ? 0 : p->looks), factor = varied(p, p->next);
        wake = p->carried && wake > CHEAP_NS ? CHEAP_NS : wake;
        q->busy = true, q->first = p->next++, q->since = AWAKE;
        q->work = p->cost->cpu_ns * factor, q->sleep = p->cost->wait_ns * factor;
        p->nbusy++;
        if (wake > 0)
            gp_model_share_cores(x, wake, WOKEN, a, w);
        else
            gp_model_begin_host(x, a, w);
    }
    set_idle(x, p, idle, why);
}

void gp_model_hand_in(simulation *x, int a, int w)
{
    actor *p = &x->actor[a];
    piece *q = &p->worker[w];
    int64_t took = (int64_t)(x->now - q->start);
    p->report->busy_ns += took;
    gp_hist_add(&p->report->time, took, 1);
    keep(x, (gp_slice){ GP_SLICE_STAGE, a, w, 0, (int64_t)q->start, (int64_t)x->now, q->first, 1 });
    q->busy = false, q->since = AWAKE;
    p->nbusy--;
    uint64_t first = p->head, end = first, at = q->first % p->window;
    p->handed[at] = 1;
    for (at = q->first > first ? first % p->window : at; end < p->next && p->handed[at]; end++) {
        p->handed[at] = 0;
        at = at + 1 < p->window ? at + 1 : 0;
    }
    if (end > first)
        gp_model_publish(x, a, first, (int)(end - first));
    look_at(x, a);
}
