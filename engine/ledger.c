/* ledger.c - what became of the frames of one source.
 *
 * A frame is out when every sink it reaches has consumed it; a sink that ended
 * before it does not count. Sinks are apart by at most the frames that fit into
 * all rings together, so a window of that many entries is enough: an entry is
 * used again only when its frame has been counted. */
#include <stdlib.h>
#include "run.h"

bool gp_ledger_init(gp_ledger *l, const gp_plan *plan, int source)
{
    const gp_graph *g = plan->graph;
    uint64_t window = 64, n = 64;
    l->source = source;
    pthread_mutex_init(&l->lock, NULL);
    for (int i = 0; i < plan->nrings; i++)
        window += (uint64_t)plan->ring[i].depth;
    while (n < window)
        n *= 2;
    l->mask = n - 1;
    l->entry = calloc(n, sizeof *l->entry);
    l->sink = calloc((size_t)g->nstages, sizeof *l->sink);
    l->end = calloc((size_t)g->nstages, sizeof *l->end);
    if (!l->entry || !l->sink || !l->end)
        return false;
    for (int i = 0; i < g->nstages; i++)
        if (!g->stage[i].nout && g->stage[i].sources[source / 32] >> source % 32 & 1) {
            l->end[l->nsinks] = GP_UNKNOWN;
            l->sink[l->nsinks++] = i;
        }
    return true;
}

void gp_ledger_fini(gp_ledger *l)
{
    free(l->entry), free(l->sink), free(l->end);
    l->entry = NULL;
    pthread_mutex_destroy(&l->lock);
}

/* Counts frame f if all sinks that it reaches have seen it. */
static void settle(gp_ledger *l, uint64_t f)
{
    struct gp_entry *e = &l->entry[f & l->mask];
    int wanted = 0;
    for (int i = 0; i < l->nsinks; i++)
        wanted += l->end[i] > f;
    if (!e->seen || e->seen < wanted)
        return;
    if (!e->failed)
        atomic_fetch_add(e->hole == GP_HOLE_FAILED    ? &l->failed
                         : e->hole == GP_HOLE_DROPPED ? &l->dropped
                                                      : &l->out,
                         1);
    *e = (struct gp_entry){ 0 };
}

void gp_ledger_seen(gp_ledger *l, uint64_t f, gp_hole hole)
{
    pthread_mutex_lock(&l->lock);
    struct gp_entry *e = &l->entry[f & l->mask];
    e->seen++;
    if (hole > e->hole)
        e->hole = hole;
    settle(l, f);
    pthread_mutex_unlock(&l->lock);
}

void gp_ledger_end(gp_ledger *l, int stage, uint64_t end)
{
    pthread_mutex_lock(&l->lock);
    for (int i = 0; i < l->nsinks; i++)
        if (l->sink[i] == stage)
            l->end[i] = end;
    uint64_t in = atomic_load(&l->in);
    for (uint64_t f = end; f < in && f <= end + l->mask; f++)
        settle(l, f);
    pthread_mutex_unlock(&l->lock);
}

void gp_ledger_fail(gp_ledger *l, uint64_t f)
{
    pthread_mutex_lock(&l->lock);
    struct gp_entry *e = &l->entry[f & l->mask];
    if (!e->failed)
        atomic_fetch_add(&l->failed, 1);
    e->failed = true;
    pthread_mutex_unlock(&l->lock);
}
