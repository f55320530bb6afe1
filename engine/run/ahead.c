/* ahead.c - slots in managed memory come to the device before the launch that needs them.
 *
 * Each launch prefetches the slots of its own frames and of as many frames behind it, on a separate stream, so that the
 * next slots arrive while it computes. Slots that are there already stay. Output does not depend on it: a kernel
 * fetches what has not arrived page by page. */
#include "run/segment.h"

/* Brings the slots of frames [f, end) of one pool, in pieces of memory that lie together. */
static bool bring(const gp_run *run, int pool, uint64_t f, uint64_t end, gp_errs *errs)
{
    const gp_pool *q = &run->plan->pool[pool];
    uint64_t depth = (uint64_t)q->depth;
    if (end > f + depth)
        end = f + depth;
    while (f < end) {
        int lane = gp_lane(q->place, f);
        uint64_t n = 1, slot = gp_lane_slot(q->place, f, q->depth);
        while (f + n < end && gp_lane(q->place, f + n) == lane && gp_lane_slot(q->place, f + n, q->depth) == slot + n)
            n++;
        int device = q->place.index + lane;
        gp_dev *dev = run->dev[device];
        char *at = (char *)gp_pool_on(run, pool, lane) + slot * q->stride;
        if (!dev->backend->bring(dev, at, (size_t)n * q->stride, errs))
            return false;
        f += n;
    }
    return true;
}

static void add(gp_segmentrt *s, const gp_plan *plan, int ring)
{
    int pool = ring >= 0 ? plan->ring[ring].pool : -1;
    bool known = pool < 0 || !plan->pool[pool].managed;
    for (int i = 0; i < s->nmanaged; i++)
        known |= s->managed[i] == pool;
    if (!known)
        s->managed[s->nmanaged++] = pool;
}

void gp_ahead_begin(gp_actorrt *p)
{
    const gp_plan *plan = p->run->plan;
    gp_segmentrt *s = p->seg;
    s->managed = GP_NEW(&p->run->arena, int, plan->npools);
    for (int i = 0; i < s->nparts; i++) {
        const gp_task *t = s->part[i].task;
        for (int k = 0; k < t->nin; k++)
            add(s, plan, t->in[k]);
        for (int k = 0; k < t->nout; k++)
            add(s, plan, t->out[k]);
    }
}

/* A segment that regroups frames brings those of its inputs, and those of its outputs. */
bool gp_ahead_bring(gp_actorrt *p, uint64_t f, int n, gp_errs *errs)
{
    gp_segmentrt *s = p->seg;
    uint64_t from = s->brought > f ? s->brought : f, end = f + 2 * (uint64_t)n;
    for (int i = 0; i < s->nmanaged && from < end; i++) {
        bool ok = true;
        if (!p->regroup)
            ok = bring(p->run, s->managed[i], from, end, errs);
        for (int k = 0; ok && p->regroup && k < p->nin; k++)
            if (p->in[k].ring->ring->pool == s->managed[i])
                ok = bring(p->run, s->managed[i], gp_actor_used(p, from), gp_actor_used(p, end), errs);
        for (int k = 0; ok && p->regroup && k < p->nout; k++)
            if (p->out[k]->ring->pool == s->managed[i])
                ok = bring(p->run, s->managed[i], gp_actor_made(p, from), gp_actor_made(p, end), errs);
        if (!ok)
            return false;
    }
    s->brought = end > s->brought ? end : s->brought;
    return true;
}
