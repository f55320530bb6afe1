/* schedule.c - plan -> plan: how deep each ring is, which copies are one, where
 * slots lie in memory, and how much of a segment is in flight.
 *
 * Depths. Segments that share a ring with counters are a component. Let D be
 * the smallest depth in the file among the buffers of its rings with counters:
 * every other such depth is rounded up to D * 2^k. So the smallest depth d that
 * a segment touches divides all others it touches, the slots of a frame repeat
 * after `period` frames, the largest of them, and a segment has at most
 * 2 * period ranges of slots, each an exec: but where a period is many times d, they would be built for little, and launches
 * are queued anew. What never leaves a segment has
 * depth d: no more than d frames of a segment are in flight.
 *
 * Lanes. Depths in the file are those on each device: a component whose frames take turns on several has as many times the
 * depth, and every `run` frames, which are no fewer than those of a launch, are on the next device. So a slot on the host
 * decides on which device, and in which slot there, its frames are.
 *
 * A stage that regroups is a segment that takes any slots, as a host stage does: it is
 * in no component, and is launched directly. What it makes on the device and copies to the host has one depth in both.
 *
 * Copies. Rings with the same depth that the same segments copy the same way
 * share a pool on each side with one layout: the slots of a range of frames,
 * of all these rings, are one piece of memory and one copy. A peer copy is of one ring, in whatever pool that is. */
#include "compile/loop.h"
#include "compile/plan.h"

enum { COPY_PER_LAUNCH = 1 << 20, ITEMS_PER_LAUNCH = 4096, STREAMS = 8 };

typedef struct scheduling {
    gp_arena *a;
    const gp_graph *g;
    gp_plan *p;
    int *root;                 /* of each segment: its component */
    int *base;                 /* of each component: D, */
    int *lanes;                /* ... and on how many devices its frames take turns */
    const bool *late;          /* of each stage */
    int *copied;               /* of each ring with counters that a segment copies to another of the kind, or from it: that one,
                                  or -1 */
    int pool_cap;
} scheduling;

static void *dup(gp_arena *a, const void *v, size_t bytes)
{
    return gp_regrow(a, v, bytes, bytes);
}

#define DUP(a, v, n) dup((a), (v), sizeof *(v) * (size_t)(n))

/* ---- depths ---------------------------------------------------------- */

static int find(int *up, int v)
{
    while (up[v] != v)
        v = up[v] = up[up[v]];
    return v;
}

/* The i-th actor of a ring, its producer first; -1 past the last. */
static int ring_actor(const gp_ring *r, int i)
{
    return i == 0 ? r->producer : i <= r->nconsumers ? r->consumer[i - 1] : -1;
}

/* The segment that an actor is, if slots have to be aligned for it, or -1. */
static int aligned_segment(const gp_plan *p, int actor)
{
    const gp_actor *q = &p->actor[actor];
    return q->kind == GP_ACTOR_SEGMENT && p->segment[q->segment].regroups < 0 ? q->segment : -1;
}

/* Such a segment that a ring with counters touches, or -1. */
static int ring_segment(const gp_plan *p, const gp_ring *r)
{
    for (int i = 0, q; (q = ring_actor(r, i)) >= 0; i++)
        if (aligned_segment(p, q) >= 0)
            return aligned_segment(p, q);
    return -1;
}

/* Such a segment that the ring touches, or that which it is copied to or from; they have one depth. */
static int slots_segment(const scheduling *w, int ring)
{
    int k = ring_segment(w->p, &w->p->ring[ring]), other = w->copied[ring];
    return k < 0 && other >= 0 ? ring_segment(w->p, &w->p->ring[other]) : k;
}

static void find_copied(scheduling *w)
{
    gp_plan *p = w->p;
    for (int i = 0; i < p->nrings; i++)
        w->copied[i] = -1;
    for (int i = 0; i < p->ntasks; i++) {
        const gp_task *t = &p->task[i];
        if (t->op != GP_TASK_COPY_OUT || p->ring[t->in[0]].segment >= 0 || p->ring[t->out[0]].segment >= 0)
            continue;
        gp_ring *a = &p->ring[t->in[0]], *b = &p->ring[t->out[0]];
        w->copied[t->in[0]] = t->out[0], w->copied[t->out[0]] = t->in[0];
        a->depth = b->depth = a->depth > b->depth ? a->depth : b->depth;
    }
}

static void find_components(scheduling *w)
{
    gp_plan *p = w->p;
    for (int k = 0; k < p->nsegments; k++)
        w->root[k] = k;
    for (int i = 0; i < p->nrings; i++) {
        int k = ring_segment(p, &p->ring[i]), other = w->copied[i] < 0 ? -1 : ring_segment(p, &p->ring[w->copied[i]]);
        if (k >= 0 && other >= 0)
            w->root[find(w->root, other)] = find(w->root, k);
    }
    for (int i = 0; i < p->nrings; i++) {
        const gp_ring *r = &p->ring[i];
        int k = ring_segment(p, r);
        for (int j = 0, q; r->segment < 0 && (q = ring_actor(r, j)) >= 0; j++)
            if (aligned_segment(p, q) >= 0)
                w->root[find(w->root, aligned_segment(p, q))] = find(w->root, k);
    }
    for (int k = 0; k < p->nsegments; k++)
        w->root[k] = find(w->root, k);
}

static void lower_to(int *least, int depth)
{
    if (*least == 0 || depth < *least)
        *least = depth;
}

static int power_below(int n)
{
    int m = 1;
    while (m <= n / 2)
        m *= 2;
    return m;
}

/* The frames of a launch are of one lane: a depth whose slots are whole launches. */
static int whole_runs(const scheduling *w, int depth, int lanes)
{
    int run = power_below(w->g->batch && w->g->batch < depth ? w->g->batch : !w->g->batch && depth > 2 ? depth / 3 : depth);
    return lanes > 1 ? (depth + run - 1) / run * run : depth;
}

static void set_depths(scheduling *w)
{
    gp_plan *p = w->p;
    for (int i = 0; i < p->nrings; i++) {
        int k = slots_segment(w, i);
        if (p->ring[i].segment < 0 && k >= 0)
            lower_to(&w->base[w->root[k]], p->ring[i].depth);
    }
    for (int k = 0; k < p->nsegments; k++)
        if (p->segment[k].place.lanes > 1)
            w->lanes[w->root[k]] = p->segment[k].place.lanes;
    for (int i = 0; i < p->nrings; i++) {
        gp_ring *r = &p->ring[i];
        int k = slots_segment(w, i);
        if (r->segment >= 0 || k < 0)
            continue;
        int lanes = w->lanes[w->root[k]], base = w->base[w->root[k]], depth = lanes * whole_runs(w, base, lanes);
        while (depth < lanes * r->depth)
            depth *= 2;
        r->depth = depth;
    }
    for (int k = 0; k < p->nsegments; k++) {
        gp_segment *s = &p->segment[k];
        int each = whole_runs(w, w->base[w->root[k]], s->place.lanes);
        s->place.run = s->place.lanes > 1 ? each & -each : 1;          /* at most: see set_runs() */
        if (s->regroups >= 0) {
            const gp_regroup *r = &w->g->stage[s->regroups].regroup;
            w->base[k] = p->ring[r->every > 1 ? s->in[0] : s->out[0]].depth;
            s->depth = s->period = w->base[k] > r->make ? w->base[k] / (int)r->make : 1;
            continue;
        }
        for (int i = 0; i < s->nin + s->nout; i++) {
            int depth = p->ring[i < s->nin ? s->in[i] : s->out[i - s->nin]].depth;
            lower_to(&s->depth, depth);
            s->period = s->period < depth ? depth : s->period;
        }
    }
}

/* The ring on the host and the ring on the device of a copy. */
static int host_side(const gp_task *t)
{
    return t->op == GP_TASK_COPY_IN ? t->in[0] : t->out[0];
}

static int device_side(const gp_task *t)
{
    return t->op == GP_TASK_COPY_IN ? t->out[0] : t->in[0];
}

static bool is_copy(const gp_task *t)
{
    return t->op == GP_TASK_COPY_IN || t->op == GP_TASK_COPY_OUT;
}

static bool is_peer_copy(const gp_task *t)
{
    return t->op == GP_TASK_COPY_PEER;
}

/* The depth in the file, which is that on each device, of a ring of a component. */
static int said_depth(const scheduling *w, int root, int depth)
{
    int lanes = w->lanes[root], base = w->base[root];
    return lanes > 1 ? depth / (lanes * whole_runs(w, base, lanes)) * base : depth;
}

/* Rings inside segments: as deep as the ring they are copied from or to, or as their
 * segment; an error if the file asks for another depth. */
static bool set_inner_depths(scheduling *w, gp_errs *errs)
{
    gp_plan *p = w->p;
    int *other = GP_NEW(w->a, int, p->nrings);         /* end of a copy, plus 1 */
    bool ok = true;
    for (int i = 0; i < p->ntasks; i++)
        if (is_copy(&p->task[i]))
            other[device_side(&p->task[i])] = host_side(&p->task[i]) + 1;
        else if (is_peer_copy(&p->task[i]))
            other[p->task[i].out[0]] = p->task[i].in[0] + 1;
    for (int i = 0; i < p->nrings; i++) {
        gp_ring *r = &p->ring[i];
        const gp_buffer *b = r->buffer < 0 ? NULL : &w->g->buffer[r->buffer];
        if (r->segment < 0)
            continue;
        if (b && other[i]) {
            r->depth = p->ring[other[i] - 1].depth;
            continue;
        }
        r->depth = p->segment[r->segment].depth;
        int each = said_depth(w, w->root[r->segment], r->depth);
        if (b && b->depth_said && b->depth != each)
            ok = gp_fail(errs, GP_E_SPEC, b->depth_at,
                         "buffer '%s' cannot have depth %d: it never leaves the device and "
                         "takes the smallest depth of the buffers around it (%d); remove its "
                         "'depth'", b->name, b->depth, each);
    }
    return ok;
}

/* ---- copies ---------------------------------------------------------- */

/* Are its slots on a device to be in managed memory? On the CPU all memory is the same. */
static bool is_managed(const scheduling *w, int ring)
{
    int b = w->p->ring[ring].buffer;
    return b >= 0 && w->g->buffer[b].managed && !w->p->unified;
}

/* The class of each host ring that is copied, -1 for other rings: equal where
 * direction, depth and the set of copying segments are equal. Frame infos stay
 * by themselves: batched kernels rely on 256 bytes from one to the next. Starts
 * with one class per direction and depth; each segment splits every class in
 * those it copies and those it does not. Returns how many there may be. */
static int classify(scheduling *w, int *class)
{
    gp_plan *p = w->p;
    enum { KINDS = 6, FIRST = 32 * KINDS };        /* depth D * 2^k, k < 32 */
    int n = FIRST, max = FIRST + p->ntasks;
    int *split = GP_NEW(w->a, int, max), *by = GP_NEW(w->a, int, max);
    for (int i = 0; i < max; i++)
        by[i] = -1;
    for (int i = 0; i < p->nrings; i++)
        class[i] = -1;
    for (int i = 0; i < p->ntasks; i++) {  /* the tasks of a segment are neighbors */
        const gp_task *t = &p->task[i];
        if (!is_copy(t))
            continue;
        int h = host_side(t), c = class[h], k = t->segment;
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

static int add_pool(scheduling *w, gp_pool pool)
{
    *GP_PUSH(w->a, w->p->pool, w->p->npools, w->pool_cap) = pool;
    return w->p->npools - 1;
}

/* Puts ring `i` at the end of the slots of `pool`; -1: of a new one. */
static int place_ring(scheduling *w, int i, int pool, bool pinned)
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

/* Slots in steps of whole pages would all use the same few sets of a CPU's caches. */
static void spread(scheduling *w, int pool)
{
    gp_pool *q = &w->p->pool[pool];
    if (!q->place.device && q->stride % 4096 == 0)
        q->stride = gp_size_add(q->stride, 256);
}

/* Host rings of one class share a pool; what is not copied has its own. The
 * device's side of a copy gets its pool with the copy. */
static void place_rings(scheduling *w, const int *class, int *pool)
{
    gp_plan *p = w->p;
    bool *across = GP_NEW(w->a, bool, p->nrings);
    for (int i = 0; i < p->ntasks; i++)
        if (is_copy(&p->task[i]))
            across[device_side(&p->task[i])] = true;
    for (int i = 0; i < p->nrings; i++)
        if (class[i] >= 0)
            pool[class[i]] = place_ring(w, i, pool[class[i]], true);
        else if (!across[i])
            spread(w, place_ring(w, i, -1, false));
}

/* The copy task of all rings in host pool `host`, so far without rings. */
static gp_task merged_copy(scheduling *w, const gp_task *t, int host)
{
    gp_pool pool = w->p->pool[host];
    pool.place = w->p->ring[device_side(t)].place;
    pool.pinned = false, pool.managed = is_managed(w, device_side(t));
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
static void merge_copies(scheduling *w)
{
    gp_plan *p = w->p;
    const gp_task *old = p->task;
    int nold = p->ntasks, *class = GP_NEW(w->a, int, p->nrings), nclasses = classify(w, class);
    struct { int segment, task; } *of = gp_alloc(w->a, sizeof *of * (size_t)nclasses);
    int *pool = GP_NEW(w->a, int, nclasses);
    for (int c = 0; c < nclasses; c++)
        pool[c] = of[c].segment = -1;
    place_rings(w, class, pool);

    struct { int in, out, dep; } *cap = gp_alloc(w->a, sizeof *cap * (size_t)nold);
    int *now = GP_NEW(w->a, int, nold), *order = GP_NEW(w->a, int, nold);
    p->task = GP_NEW(w->a, gp_task, nold);
    p->ntasks = 0;
    for (int i = 0, last = -1; i < nold; i++) {
        const gp_task *t = &old[i];
        int c = is_copy(t) ? class[host_side(t)] : -1;
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
            gp_ring *d = &p->ring[device_side(t)];
            d->pool = t->op == GP_TASK_COPY_IN ? n->to_pool : n->from_pool;
            d->offset = p->ring[host_side(t)].offset;
            *GP_PUSH(w->a, n->in, n->nin, cap[now[i]].in) = t->in[0];
            *GP_PUSH(w->a, n->out, n->nout, cap[now[i]].out) = t->out[0];
        }
        for (int j = 0; j < t->ndeps; j++)
            *GP_PUSH(w->a, n->dep, n->ndeps, cap[now[i]].dep) = now[t->dep[j]];
    }
    int *seen = GP_NEW(w->a, int, nold);   /* each dep once */
    for (int i = 0; i < p->ntasks; i++) {
        gp_task *t = &p->task[i];
        int n = 0;
        for (int j = 0; j < t->ndeps; j++)
            if (seen[t->dep[j]] != i + 1) {
                seen[t->dep[j]] = i + 1;
                t->dep[n++] = t->dep[j];
            }
        t->ndeps = n;
        if (is_peer_copy(t))
            t->from_pool = p->ring[t->in[0]].pool, t->to_pool = p->ring[t->out[0]].pool;
    }
}

/* ---- streams, launches, totals --------------------------------------- */

/* The nodes that loops have in an exec at least: run/loop.c records all iterations between two looks at `until`, else a
 * few, if there are some 64 nodes for them. */
static int64_t loop_nodes(const gp_plan *p, const gp_segment *s)
{
    enum { FEW = 4, ROOM = 64 };
    int64_t n = 0;
    for (int i = 0; i < s->ntasks; i++) {
        int v = p->task[s->task[i]].stage;
        const gp_loop *l = v < 0 ? NULL : gp_stage_loop(&p->graph->stage[v]);
        if (!l)
            continue;
        int64_t stages = l->graph->nstages, once = l->flag >= 0 ? 2 * l->every : ROOM / stages > FEW ? ROOM / stages : FEW;
        n += stages * (once < l->times ? once : l->times);
    }
    return n;
}

/* Do slots come again so seldom, beside what is in flight, that graphs would be built for little? On a GPU a graph of a
 * frame with many kernels is built sooner than these are launched once. */
static bool is_sparse(const gp_plan *p, const gp_segment *s)
{
    enum { TURNS = 64, FEW = 512, MORE = 1024, NODES = 1 << 17 };
    int few = !p->unified && gp_segment_kernels(p, s) >= GP_LONG ? MORE : FEW;
    return s->period / s->depth > TURNS && (s->period > few || s->period * loop_nodes(p, s) > NODES);
}

int64_t gp_segment_execs(const gp_segment *s)
{
    int64_t n = 0;
    bool graphs = s->regroups < 0 && !s->each_shape && s->uncaptured < 0 && !s->sparse;
    for (int m = 1; m <= s->batch && graphs; m *= 2)
        n += s->depth / m;
    return n * (s->period / s->depth);
}

size_t gp_segment_copied(const gp_plan *p, const gp_segment *s, gp_task_kind way)
{
    size_t bytes = 0;
    for (int i = 0; i < s->ntasks; i++)
        if (p->task[s->task[i]].op == way)
            bytes = gp_size_add(bytes, gp_copy_bytes(p, &p->task[s->task[i]]));
    return bytes;
}

size_t gp_segment_copied_all(const gp_plan *p, const gp_segment *s)
{
    size_t in = gp_segment_copied(p, s, GP_TASK_COPY_IN), out = gp_segment_copied(p, s, GP_TASK_COPY_OUT);
    return gp_size_add(gp_size_add(in, out), gp_segment_copied(p, s, GP_TASK_COPY_PEER));
}

int gp_segment_batch(const gp_plan *p, const gp_segment *s, int asked)
{
    for (int i = 0; i < s->ntasks; i++)        /* a frame needs what was made last of the one before */
        if (p->task[s->task[i]].stage >= 0 && gp_stage_circles_back(&p->graph->stage[p->task[s->task[i]].stage]))
            return 1;
    if (s->each_shape)
        return 1;
    int depth = s->depth / s->place.lanes;
    int64_t batch = asked ? asked : depth / 3;
    size_t copied = gp_segment_copied_all(p, s);
    if (!asked && copied && (size_t)batch > COPY_PER_LAUNCH / copied)
        batch = (int64_t)(COPY_PER_LAUNCH / copied);
    if (batch > depth)
        batch = depth;
    if (batch > ITEMS_PER_LAUNCH / s->ntasks)          /* larger graphs are not faster */
        batch = ITEMS_PER_LAUNCH / s->ntasks;
    if (s->place.lanes > 1 && batch > s->place.run)
        batch = s->place.run;
    return power_below((int)batch);
}

/* A resident kernel has no order between frames, takes no work of a library's, and no other may ask for the whole GPU. */
static bool may_persist(const gp_graph *g, const gp_stage *st, gp_errs *errs)
{
    return g->launch != GP_LAUNCH_PERSISTENT || st->regroups
        || (!gp_stage_in_order(st) && !st->cooperative && !st->calls_library)
        || gp_fail(errs, GP_E_SPEC, st->at, "stage '%s' %s, which 'launch: persistent' does not support: set "
                   "'launch: graph'", st->name, st->cooperative ? "has a cooperative kernel"
                   : st->calls_library ? "calls a library"
                   : st->state ? "carries state from frame to frame" : "takes frames in order");
}

/* Nor may anything ask the device for memory while it runs, as libraries do. What they make is on one device. */
static bool may_fill(const gp_graph *g, const gp_stage *st, gp_errs *errs)
{
    bool persists = g->launch == GP_LAUNCH_PERSISTENT;
    return !st->fills_device || !g->ndevices || (!persists && g->ndevices == 1)
        || gp_fail(errs, GP_E_SPEC, st->at, "stage '%s' calls a library on the device, which %s: set %s, or an option of "
                   "the stage that keeps it on the CPU ('gpipe stages %s')", st->name,
                   persists ? "'launch: persistent' does not support" : "is not possible with several devices",
                   persists ? "'launch: graph'" : "'device' to one", st->kind->name);
}

/* How many frames of a period a segment copies that way: none where they come once, at the end. */
static size_t copies(const scheduling *w, const gp_segment *s, gp_task_kind way)
{
    int at = 0;
    while (w->p->task[s->task[at]].stage < 0)
        at++;
    int v = w->p->task[s->task[at]].stage;
    const gp_stage *st = &w->g->stage[v];
    if (w->late[v])
        return 0;
    return (size_t)(way != GP_TASK_COPY_OUT ? st->rate : st->rate * st->regroup.make / st->regroup.every);
}

static bool set_launches(scheduling *w, gp_errs *errs)
{
    gp_plan *p = w->p;
    bool ok = true;
    for (int v = 0; v < w->g->nstages; v++)
        ok &= may_fill(w->g, &w->g->stage[v], errs);
    for (int k = 0; k < p->nsegments; k++) {
        gp_segment *s = &p->segment[k];
        size_t in = gp_segment_copied(p, s, GP_TASK_COPY_IN);
        size_t out = gp_segment_copied(p, s, GP_TASK_COPY_OUT);
        size_t peer = gp_segment_copied(p, s, GP_TASK_COPY_PEER);
        for (int i = 0; i < s->ntasks; i++)
            if (p->task[s->task[i]].stage >= 0)
                ok &= may_persist(w->g, &w->g->stage[p->task[s->task[i]].stage], errs);
        p->copy_in_bytes = gp_size_add(p->copy_in_bytes, gp_size_mul(in, copies(w, s, GP_TASK_COPY_IN)));
        p->copy_out_bytes = gp_size_add(p->copy_out_bytes, gp_size_mul(out, copies(w, s, GP_TASK_COPY_OUT)));
        p->copy_peer_bytes = gp_size_add(p->copy_peer_bytes, gp_size_mul(peer, copies(w, s, GP_TASK_COPY_PEER)));

        int streams = w->g->streams ? w->g->streams : STREAMS;
        int depth = s->depth / s->place.lanes;
        s->streams = streams < depth ? streams : depth;
        if (s->regroups >= 0 && ((w->g->stage[s->regroups].kind->emit && !in && !peer)
                                 || gp_is_carry(&w->g->stage[s->regroups])))
            s->streams = 1;            /* frames take turns, and there is nothing else to do meanwhile */
        s->batch = gp_segment_batch(p, s, w->g->batch);
        s->sparse = is_sparse(p, s);
        if (s->ntasks > GP_REC_ITEMS) {
            int v = -1;
            for (int i = 0; v < 0; i++)
                v = p->task[s->task[i]].stage;
            ok = gp_fail(errs, GP_E_SPEC, w->g->stage[v].at,
                         "stage '%s' begins a segment of %d tasks, a launch takes at most %d; put "
                         "a host stage between, such as 'lua'", w->g->stage[v].name, s->ntasks,
                         (int)GP_REC_ITEMS);
        }
    }
    return ok;
}

static bool touches(const gp_plan *p, const gp_segment *s, int pool)
{
    for (int i = 0; i < s->ntasks; i++) {
        const gp_task *t = &p->task[s->task[i]];
        for (int k = 0; k < t->nin + t->nout; k++) {
            int ring = k < t->nin ? t->in[k] : t->out[k - t->nin];
            if (ring >= 0 && p->ring[ring].pool == pool)
                return true;
        }
    }
    return false;
}

int gp_pool_at_once(const gp_plan *p, int pool)
{
    const gp_pool *q = &p->pool[pool];
    int64_t slots = 0, all = q->depth / q->place.lanes;
    for (int k = 0; k < p->nsegments; k++)
        if (touches(p, &p->segment[k], pool))
            slots += (int64_t)p->segment[k].batch * (p->segment[k].streams + 1);
    return (int)(slots < all ? slots : all);
}

/* `bytes` on each device, or on the host. */
static void count(gp_plan *p, gp_place place, bool pinned, size_t bytes)
{
    bool device = place.device && !p->unified;
    for (int i = 0; i < place.lanes && device; i++) {
        size_t *total = &p->on_device[place.index + i];
        *total = gp_size_add(*total, bytes);
        p->device_bytes = gp_size_add(p->device_bytes, bytes);
    }
    if (!device)
        p->host_bytes = gp_size_add(p->host_bytes, bytes);
    if (pinned)
        p->pinned_bytes = gp_size_add(p->pinned_bytes, bytes);
}

static void set_totals(gp_plan *p)
{
    for (int i = 0; i < p->ntasks; i++)
        if (p->task[i].scratch >= 0) {
            gp_extra *e = &p->extra[p->task[i].scratch];
            e->bytes = gp_size_mul(e->stride, (size_t)(p->segment[p->task[i].segment].depth / e->place.lanes));
        }
    for (int i = 0; i < p->nextras; i++)
        count(p, p->extra[i].place, false, p->extra[i].bytes);
    for (int i = 0; i < p->npools; i++) {
        const gp_pool *q = &p->pool[i];
        size_t bytes = gp_size_mul(q->stride, (size_t)(q->depth / q->place.lanes));
        if (q->managed) {
            const gp_place host = { .lanes = 1 };
            count(p, host, false, gp_size_mul(bytes, (size_t)q->place.lanes));
            bytes = gp_size_mul(q->stride, (size_t)gp_pool_at_once(p, i));
        }
        count(p, q->place, q->pinned, bytes);
    }
}

/* Consecutive frames that one device takes, of which every depth is a multiple: as many as the largest launch of the
 * segments that share frames. */
static void set_runs(scheduling *w)
{
    gp_plan *p = w->p;
    int *run = GP_NEW(w->a, int, p->nsegments);
    for (int k = 0; k < p->nsegments; k++)
        if (p->segment[k].place.lanes > 1 && p->segment[k].batch > run[w->root[k]])
            run[w->root[k]] = p->segment[k].batch;
    for (int k = 0; k < p->nsegments; k++)
        p->segment[k].place.run = p->segment[k].place.lanes > 1 ? run[w->root[k]] : 1;
    for (int i = 0; i < p->nrings; i++) {
        gp_ring *r = &p->ring[i];
        int k = r->segment >= 0 ? r->segment : ring_segment(p, r);
        r->place.run = k >= 0 && r->place.lanes > 1 ? p->segment[k].place.run : 1;
        p->pool[r->pool].place.run = r->place.run;
    }
}

static gp_plan *schedule(gp_arena *a, const gp_plan *from, bool scarce, gp_errs *errs)
{
    gp_plan *p = DUP(a, from, 1);
    p->ring = DUP(a, from->ring, from->nrings);
    p->extra = DUP(a, from->extra, from->nextras);
    p->segment = DUP(a, from->segment, from->nsegments);
    p->host_task = DUP(a, from->host_task, from->graph->nstages);
    p->on_device = GP_NEW(a, size_t, from->graph->ndevices);
    scheduling w = {
        .a = a, .g = from->graph, .p = p,
        .late = gp_late_stages(a, from->graph), .root = GP_NEW(a, int, from->nsegments), .base = GP_NEW(a, int, from->nsegments),
        .lanes = GP_NEW(a, int, from->nsegments), .copied = GP_NEW(a, int, from->nrings),
    };
    for (int k = 0; k < from->nsegments; k++)
        w.lanes[k] = 1;
    gp_make_shallow(a, p, scarce);
    if (!gp_deepen(a, p, errs))
        return NULL;
    find_copied(&w);
    find_components(&w);
    set_depths(&w);
    bool ok = set_inner_depths(&w, errs);
    merge_copies(&w);
    ok &= set_launches(&w, errs);
    set_runs(&w);
    set_totals(p);
    return ok ? p : NULL;
}

gp_plan *gp_schedule(gp_arena *a, const gp_plan *from, const gp_machine *m, gp_errs *errs)
{
    gp_errs ignored = { .n = 0 };
    gp_plan *p = schedule(a, from, false, errs);
    return p && !gp_budgets(p, m, &ignored) ? schedule(a, from, true, errs) : p;
}
