/* copies.c - which copies are one, and where slots lie in memory, see schedule.h.
 *
 * Rings with the same depth that the same segments copy the same way share a pool on each side with one layout: the
 * slots of a range of frames, of all these rings, are one piece of memory and one copy. A peer copy is of one ring, in
 * whatever pool that is. */
#include "compile/schedule.h"

/* Are its slots on a device to be in managed memory? On the CPU all memory is the same. */
static bool is_managed(const gp_scheduling *w, int ring)
{
    int b = w->p->ring[ring].buffer;
    return b >= 0 && w->g->buffer[b].managed && !w->p->unified;
}

/* Sets the class of each host ring that is copied, of others it stays -1: equal where
 * direction, depth and the set of copying segments are equal. Frame infos stay
 * by themselves: batched kernels rely on 256 bytes from one to the next. Starts
 * with one class per direction and depth; each segment splits every class in
 * those it copies and those it does not. Returns how many there may be. */
static int classify(gp_scheduling *w, int *class)
{
    gp_plan *p = w->p;
    enum { KINDS = 6, FIRST = 32 * KINDS };        /* depth D * 2^k, k < 32 */
    int n = FIRST, max = FIRST + p->ntasks;
    int *split = GP_NEW(w->a, int, max), *by = gp_nones(w->a, max);
    for (int i = 0; i < p->ntasks; i++) {  /* the tasks of a segment are neighbors */
        const gp_task *t = &p->task[i];
        if (!gp_is_copy(t))
            continue;
        int h = gp_host_side(t), c = class[h], k = t->segment;
        if (c < 0) {
            c = p->ring[h].buffer < 0 ? 2 : (t->op == GP_TASK_COPY_OUT) + 3 * is_managed(w, h);
            for (int d = w->base[w->root[k]]; d < p->ring[h].depth; d *= 2)
                c += KINDS;
        }
        if (by[c] != k) {
            by[c] = k;
            split[c] = n++;
        }
        class[h] = split[c];
    }
    return n;
}

static int add_pool(gp_scheduling *w, gp_pool pool)
{
    *GP_PUSH(w->a, w->p->pool, w->p->npools, w->pool_cap) = pool;
    return w->p->npools - 1;
}

/* Puts ring `i` at the end of the slots of `pool`; -1: of a new one. */
static int place_ring(gp_scheduling *w, int i, int pool, bool pinned)
{
    gp_ring *r = &w->p->ring[i];
    if (pool < 0)
        pool = add_pool(w, (gp_pool){ .place = r->place, .pinned = pinned, .depth = r->depth,
                                      .managed = r->place.device && is_managed(w, i) });
    gp_pool *q = &w->p->pool[pool];
    r->pool = pool;
    r->offset = q->stride;
    q->stride = gp_size_add(q->stride, r->bytes);
    return pool;
}

/* What a state is between stages is in one slot, whatever the frame. */
static void place_state(gp_scheduling *w, int i, gp_table *states)
{
    const char *state = w->g->buffer[w->p->ring[i].buffer].state;
    int pool = gp_table_index(states, state);
    if (pool < 0)
        gp_table_put(states, state, pool = place_ring(w, i, -1, false));
    w->p->pool[pool].one = true, w->p->ring[i].pool = pool;
}

/* Slots in steps of whole pages would all use the same few sets of a CPU's caches. */
static void spread(gp_scheduling *w, int pool)
{
    gp_pool *q = &w->p->pool[pool];
    if (!q->place.device && q->stride % 4096 == 0)
        q->stride = gp_size_add(q->stride, 256);
}

/* Host rings of one class share a pool; what is not copied has its own. The
 * device's side of a copy gets its pool with the copy. */
static void place_rings(gp_scheduling *w, const int *class, int *pool)
{
    gp_plan *p = w->p;
    bool *across = GP_NEW(w->a, bool, p->nrings);
    gp_table states = { .arena = w->a };
    for (int i = 0; i < p->ntasks; i++)
        if (gp_is_copy(&p->task[i]))
            across[gp_device_side(&p->task[i])] = true;
    for (int i = 0; i < p->nrings; i++)
        if (class[i] >= 0)
            pool[class[i]] = place_ring(w, i, pool[class[i]], true);
        else if (p->ring[i].buffer >= 0 && w->g->buffer[p->ring[i].buffer].state)
            place_state(w, i, &states);
        else if (!across[i] && p->ring[i].before < 0)
            spread(w, place_ring(w, i, -1, false));
}

/* The copy task of all rings in host pool `host`, so far without rings. */
static gp_task merged_copy(gp_scheduling *w, const gp_task *t, int host)
{
    gp_pool pool = w->p->pool[host];
    pool.place = w->p->ring[gp_device_side(t)].place;
    pool.pinned = false, pool.managed = is_managed(w, gp_device_side(t));
    int device = add_pool(w, pool);
    gp_task n = *t;
    n.in = n.out = NULL;
    n.nin = n.nout = 0;
    n.from_pool = t->op == GP_TASK_COPY_IN ? host : device;
    n.to_pool = t->op == GP_TASK_COPY_IN ? device : host;
    return n;
}

/* One copy task for all copies of a segment between the same two pools. Tasks
 * get new numbers; a merged copy waits for all that its parts waited for. */
void gp_merge_copies(gp_scheduling *w)
{
    gp_plan *p = w->p;
    const gp_task *old = p->task;
    int nold = p->ntasks, *class = gp_nones(w->a, p->nrings), nclasses = classify(w, class);
    struct { int segment, task; } *of = gp_alloc(w->a, sizeof *of * (size_t)nclasses);
    int *pool = gp_nones(w->a, nclasses);
    for (int c = 0; c < nclasses; c++)
        of[c].segment = -1;
    place_rings(w, class, pool);

    struct { int in, out, dep; } *cap = gp_alloc(w->a, sizeof *cap * (size_t)nold);
    int *now = GP_NEW(w->a, int, nold), *order = GP_NEW(w->a, int, nold);
    p->task = GP_NEW(w->a, gp_task, nold);
    p->ntasks = 0;
    for (int i = 0, last = -1; i < nold; i++) {
        const gp_task *t = &old[i];
        int c = gp_is_copy(t) ? class[gp_host_side(t)] : -1;
        if (c >= 0 && of[c].segment == t->segment) {
            now[i] = of[c].task;
        } else {
            now[i] = p->ntasks++;
            p->task[now[i]] = c < 0 ? *t : merged_copy(w, t, pool[c]);
            p->task[now[i]].dep = NULL;
            p->task[now[i]].ndeps = 0;
            if (c >= 0) {
                of[c].segment = t->segment;
                of[c].task = now[i];
            }
            if (t->op == GP_TASK_HOST) {
                p->host_task[t->stage] = now[i];
            } else {
                gp_segment *s = &p->segment[t->segment];
                if (t->segment != last) {
                    last = t->segment;
                    s->task = order + now[i];
                    s->ntasks = 0;
                }
                s->task[s->ntasks++] = now[i];
            }
        }
        gp_task *n = &p->task[now[i]];
        if (c >= 0) {
            gp_ring *d = &p->ring[gp_device_side(t)];
            d->pool = t->op == GP_TASK_COPY_IN ? n->to_pool : n->from_pool;
            d->offset = p->ring[gp_host_side(t)].offset;
            *GP_PUSH(w->a, n->in, n->nin, cap[now[i]].in) = t->in[0];
            *GP_PUSH(w->a, n->out, n->nout, cap[now[i]].out) = t->out[0];
        }
        for (int j = 0; j < t->ndeps; j++)
            *GP_PUSH(w->a, n->dep, n->ndeps, cap[now[i]].dep) = now[t->dep[j]];
    }
    for (int i = 0; i < p->nrings; i++)
        if (p->ring[i].before >= 0)
            p->ring[i].pool = p->ring[p->ring[i].before].pool, p->ring[i].offset = p->ring[p->ring[i].before].offset;
    for (int i = 0; i < p->ntasks; i++) {
        gp_task *t = &p->task[i];
        if (t->op == GP_TASK_COPY_PEER)
            t->from_pool = p->ring[t->in[0]].pool, t->to_pool = p->ring[t->out[0]].pool;
    }
}
