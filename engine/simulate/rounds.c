/* rounds.c - stages in which ranks meet: a round begins when the last rank has come, and takes what goes over the
 * slowest link (links.c): one round after the other, whatever stage it is of. On one machine, by MPI, a thread of each
 * rank copies. */
#include <math.h>
#include "simulate/model.h"

/* Of the ranks that have a round k of this stage, all have come: it is over after a while. */
static void begin_round(simulation *x, int index, uint64_t k)
{
    const gp_stage *st = x->actor[index].stage;
    bool on_cores = gp_round_takes_cores(x->c, st);
    double ns = gp_round_ns(x->c, st), from = on_cores ? x->now : fmax(x->now, x->link_free);
    x->link_free = on_cores ? x->link_free : from + ns;
    x->came[index] = 0;
    for (int r = 0; r < x->ranks; r++) {
        actor *p = &x->actor[r * x->each + index];
        if (k >= p->total)
            continue;
        p->report->idle_ns += (int64_t)(from - p->worker[0].due);
        if (on_cores)
            gp_model_share_cores(x, ns, MET, r * x->each + index, 0);
        else
            gp_agenda_add(&x->agenda, from + ns, MET, r * x->each + index, 0);
    }
}

void gp_model_meet(simulation *x, int a, int w)
{
    const actor *p = &x->actor[a];
    piece *q = &p->worker[w];
    int ranks = 0;
    q->due = x->now;
    for (int r = 0; r < x->ranks; r++)
        ranks += q->first < x->actor[r * x->each + p->index].total;
    if (++x->came[p->index] == ranks)
        begin_round(x, p->index, q->first);
}
