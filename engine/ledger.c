/* ledger.c - what became of the frames of one source.
 *
 * A frame is out when every sink it reaches has consumed it. Sinks are apart by
 * at most the frames that fit into all rings together, so a window of that many
 * entries is enough: an entry is used again only when its frame has been seen by
 * every sink. */
#include <stdlib.h>
#include "run.h"

bool gp_ledger_init(gp_ledger *l, const gp_plan *plan, int source)
{
    uint64_t window = 64;
    l->source = source;
    for (int i = 0; i < plan->nrings; i++)
        window += (uint64_t)plan->ring[i].depth;
    for (int i = 0; i < plan->graph->nstages; i++) {
        const gp_stage *s = &plan->graph->stage[i];
        if (!s->nout && s->sources[source / 32] >> source % 32 & 1)
            l->sinks++;
    }
    uint64_t n = 64;
    while (n < window)
        n *= 2;
    l->mask = n - 1;
    l->entry = calloc(n, sizeof *l->entry);
    return l->entry != NULL;
}

void gp_ledger_fini(gp_ledger *l)
{
    free(l->entry);
    l->entry = NULL;
}

void gp_ledger_seen(gp_ledger *l, uint64_t f, gp_hole hole)
{
    struct gp_entry *e = &l->entry[f & l->mask];
    int worst = atomic_load(&e->hole);
    while ((int)hole > worst && !atomic_compare_exchange_weak(&e->hole, &worst, (int)hole))
        ;
    if (atomic_fetch_add(&e->seen, 1) + 1 < l->sinks)
        return;
    worst = atomic_load(&e->hole);
    atomic_store(&e->hole, GP_WHOLE);
    atomic_store(&e->seen, 0);
    atomic_fetch_add(worst == GP_HOLE_FAILED    ? &l->failed
                     : worst == GP_HOLE_DROPPED ? &l->dropped
                                                : &l->out,
                     1);
}
