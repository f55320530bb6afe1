/* rounds.c - stages in which ranks meet: a round begins when the last rank has come. All tell each other what they have;
 * what then goes over the slowest link (links.c) takes it for a while, one round after the other, whatever stage it is
 * of. On one machine, by MPI, a thread of each rank copies. */
#include <math.h>
#include "simulate/model.h"

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
