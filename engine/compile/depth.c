/* depth.c - how deep each buffer and each ring is, and why: nothing else writes gp_buffer.depth or gp_ring.depth but
 * the reader of the file, carry.c, which gives constants one slot, and lower.c, which hands a buffer's depth to its
 * rings.
 *
 * Of buffers: what the file says; else the default of small or of large frames, and what rates need (gp_set_depths());
 * then what workers need (gp_raise_depth()). Of rings (gp_ring_depths()): fewer for those that say no depth around a
 * segment whose frames are large, or take long, as more of them in flight would be of no use, and all that is inside
 * the segment, its work areas and its graphs are there for each frame in flight; where a buffer inside it says a
 * smaller depth, which is that of the whole; and everywhere where memory is scarce. Then more where regrouping needs it
 * (deepen.c), and many around a segment whose frames are small, of which a run uses those before at first and others once
 * the segment is what holds it back (run/room.c). Last they are aligned:
 *
 * Segments that share a ring with counters are a component. Let D be the smallest depth in the file among the buffers
 * of its rings with counters: every other such depth is rounded up to D * 2^k. So the smallest depth d that a segment
 * touches divides all others it touches, the slots of a frame repeat after `period` frames, the largest of them, and a
 * segment has at most 2 * period ranges of slots, each an exec: but where a period is many times d, they would be built
 * for little, and launches are queued anew. What never leaves a segment has depth d: no more than d frames of a segment
 * are in flight. But where a frame is read there once more, as what the next frame carries, there are 2 d slots.
 *
 * Depths in the file are those on each device: a component whose frames take turns on several has as many times the
 * depth, and every `run` frames, which are no fewer than those of a launch, are on the next device. So a slot on the
 * host decides on which device, and in which slot there, its frames are.
 *
 * A stage that regroups is a segment that takes any slots, as a host stage does: it is in no component, and is launched
 * directly. What it makes on the device and copies to the host has one depth in both. */
#include "compile/firing.h"
#include "compile/loop.h"
#include "compile/resolve.h"
#include "compile/schedule.h"

/* ---- of buffers ------------------------------------------------------- */

static int least_of(int64_t a, int64_t b)
{
    return (int)(a < b ? a : b);
}

static bool set_depth(const gp_graph *g, gp_buffer *b, gp_errs *errs)
{
    const gp_stage *by;
    int64_t least = gp_least_slots(g, b, &by);
    b->shallow = b->depth;
    if (b->depth_said)
        return b->depth >= least
            || gp_fail(errs, GP_E_SPEC, b->depth_at, "buffer '%s' has depth %d, and stage '%s' needs room for %lld "
                       "frames of it: write 'depth: %lld' or more, or leave 'depth' out", b->name, b->depth, by->name,
                       (long long)least, (long long)least);
    int64_t depth = gp_default_slots(g, b, GP_DEPTH_SMALL), shallow = gp_default_slots(g, b, GP_DEPTH_LARGE);
    b->depth = least_of(depth < least ? least : depth, GP_DEPTH_MAX);
    b->shallow = least_of(shallow < least ? least : shallow, GP_DEPTH_MAX);
    b->why = g->depth && b->depth == g->depth ? GP_DEPTH_BY_ASKED : g->depth ? GP_DEPTH_BY_RATES
           : b->depth == GP_DEPTH_SMALL && b->shallow < b->depth ? GP_DEPTH_BY_SMALL
           : b->depth == GP_DEPTH_LARGE ? GP_DEPTH_BY_DEFAULT : GP_DEPTH_BY_RATES;
    return least <= GP_DEPTH_MAX
        || gp_fail(errs, GP_E_SPEC, by->at, "stage '%s' needs room for %lld frames of '%s', and a buffer has at most %d",
                   by->name, (long long)least, b->name, GP_DEPTH_MAX);
}

/* Before an input that does not wait, as many frames wait as the buffer has slots that it would read: in slots, or where
 * the oldest is dropped, in the queue before one slot (run/leak.c). */
static void set_queue(const gp_graph *g, gp_buffer *b)
{
    const gp_stage *by = &g->stage[b->producer.stage];
    const gp_buffer *in = &g->buffer[by->in[0]];
    bool one = gp_leaky_when(by) == GP_WHEN_FULL_DROP_OLDEST;
    b->depth = one ? 1 : in->depth, b->shallow = one ? 1 : in->shallow;
    b->why = one ? GP_DEPTH_BY_QUEUE : in->why;
}

bool gp_set_depths(gp_graph *g, gp_errs *errs)
{
    bool ok = true;
    for (int b = 0; b < g->nbuffers; b++)
        if (g->buffer[b].producer.stage >= 0)
            ok &= set_depth(g, &g->buffer[b], errs);
    for (int b = 0; b < g->nbuffers; b++)
        if (g->buffer[b].producer.stage >= 0 && gp_is_leaky(&g->stage[g->buffer[b].producer.stage]))
            set_queue(g, &g->buffer[b]);
    return ok;
}

void gp_raise_depth(gp_buffer *b, int need)
{
    if (need > b->depth)
        b->depth = need, b->why = GP_DEPTH_BY_WORKERS;
    if (need > b->shallow)
        b->shallow = need;
}

/* ---- of rings: fewer --------------------------------------------------- */

/* A large work area of a stage: libraries ask for some MiB for frames of any size. */
enum { AREA = 8 << 20 };

static int64_t kernels_of(const gp_plan *p, const gp_task *t)
{
    const gp_loop *l = t->stage < 0 ? NULL : gp_stage_loop(&p->graph->stage[t->stage]);
    int64_t launches = l ? gp_loop_launches(l, l->times) : 1;
    return !l ? 1 : launches < GP_REC_ITEMS ? launches * l->graph->nstages : GP_REC_ITEMS;
}

int64_t gp_segment_kernels(const gp_plan *p, const gp_segment *s)
{
    int64_t n = 0;
    for (int i = 0; i < s->ntasks; i++)
        n += kernels_of(p, &p->task[s->task[i]]);
    return n;
}

/* At port i of a task, inputs first; -1: a constant, frame infos, or nothing. */
static int buffer_of(const gp_plan *p, const gp_task *t, int i)
{
    int ring = i < t->nin ? t->in[i] : t->out[i - t->nin];
    return ring < 0 ? -1 : p->ring[ring].buffer;
}

static bool is_long(const gp_plan *p, const gp_segment *s)
{
    bool is = gp_segment_kernels(p, s) >= GP_LONG;
    for (int i = 0; i < s->ntasks && !is; i++) {
        const gp_task *t = &p->task[s->task[i]];
        is = t->scratch >= 0 && p->extra[t->scratch].stride >= AREA;
        for (int k = 0; k < t->nin + t->nout && !is; k++) {
            int b = buffer_of(p, t, k);
            is = b >= 0 && gp_bytes(&p->graph->buffer[b].type) >= GP_DEPTH_BYTES;
        }
    }
    return is;
}

/* Sets is[segment] where a buffer that never leaves it says that there are fewer slots. */
static void find_said(const gp_plan *p, bool *is)
{
    for (int i = 0; i < p->nrings; i++) {
        const gp_ring *r = &p->ring[i];
        const gp_buffer *b = r->buffer < 0 ? NULL : &p->graph->buffer[r->buffer];
        bool alone = (!i || r[-1].buffer != r->buffer) && (i + 1 == p->nrings || r[1].buffer != r->buffer);
        if (b && alone && r->segment >= 0 && b->depth_said && b->depth < GP_DEPTH_SMALL)
            is[r->segment] = true;
    }
}

/* Fewer slots where more are of no use; `scarce`: everywhere. */
static void make_shallow(gp_arena *a, gp_plan *p, bool scarce)
{
    bool *less = GP_NEW(a, bool, p->graph->nbuffers + 1), *is = GP_NEW(a, bool, p->nsegments + 1);
    find_said(p, is);
    for (int k = 0; k < p->nsegments; k++) {
        const gp_segment *s = &p->segment[k];
        is[k] = is[k] || is_long(p, s);
        for (int i = 0; i < s->ntasks && is[k]; i++)
            for (int n = 0, b; n < p->task[s->task[i]].nin + p->task[s->task[i]].nout; n++)
                if ((b = buffer_of(p, &p->task[s->task[i]], n)) >= 0)
                    less[b] = true;
    }
    for (int i = 0; i < p->nrings; i++) {
        int b = p->ring[i].buffer;
        if (b >= 0 && (scarce || less[b]) && p->ring[i].depth != p->graph->buffer[b].shallow)
            p->ring[i].depth = p->graph->buffer[b].shallow, p->ring[i].why = less[b] ? GP_DEPTH_BY_BESIDE : GP_DEPTH_BY_SCARCE;
    }
}

/* ---- of rings: aligned -------------------------------------------------- */

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
static int slots_segment(const gp_scheduling *w, int ring)
{
    int k = ring_segment(w->p, &w->p->ring[ring]), other = w->copied[ring];
    return k < 0 && other >= 0 ? ring_segment(w->p, &w->p->ring[other]) : k;
}

static void find_copied(gp_scheduling *w)
{
    gp_plan *p = w->p;
    for (int i = 0; i < p->ntasks; i++) {
        const gp_task *t = &p->task[i];
        if (t->op != GP_TASK_COPY_OUT || p->ring[t->in[0]].segment >= 0 || p->ring[t->out[0]].segment >= 0)
            continue;
        gp_ring *a = &p->ring[t->in[0]], *b = &p->ring[t->out[0]];
        w->copied[t->in[0]] = t->out[0], w->copied[t->out[0]] = t->in[0];
        a->depth = b->depth = a->depth > b->depth ? a->depth : b->depth;
    }
}

static void find_components(gp_scheduling *w)
{
    gp_plan *p = w->p;
    for (int k = 0; k < p->nsegments; k++)
        w->root[k] = k;
    for (int i = 0; i < p->nrings; i++) {
        int k = ring_segment(p, &p->ring[i]), other = w->copied[i] < 0 ? -1 : ring_segment(p, &p->ring[w->copied[i]]);
        if (k >= 0 && other >= 0)
            w->root[gp_root(w->root, other)] = gp_root(w->root, k);
    }
    for (int i = 0; i < p->nrings; i++) {
        const gp_ring *r = &p->ring[i];
        int k = ring_segment(p, r);
        for (int j = 0, q; r->segment < 0 && (q = ring_actor(r, j)) >= 0; j++)
            if (aligned_segment(p, q) >= 0)
                w->root[gp_root(w->root, aligned_segment(p, q))] = gp_root(w->root, k);
    }
    for (int k = 0; k < p->nsegments; k++)
        w->root[k] = gp_root(w->root, k);
}

static void lower_to(int *least, int depth)
{
    if (*least == 0 || depth < *least)
        *least = depth;
}

/* The frames of a launch are of one lane: a depth whose slots are whole launches. */
static int whole_runs(const gp_scheduling *w, int depth, int lanes)
{
    int run = gp_power_below(w->g->batch && w->g->batch < depth ? w->g->batch : !w->g->batch && depth > 2 ? depth / 3 : depth);
    return lanes > 1 ? (depth + run - 1) / run * run : depth;
}

/* Has the ring to have twice as many slots as frames are in flight, and may it? */
static bool twice(const gp_scheduling *w, const gp_ring *r, int slots)
{
    return r->buffer >= 0 && w->twice[r->buffer] && slots <= GP_DEPTH_MAX;
}

static void set_depths(gp_scheduling *w)
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
        r->unit = depth / lanes, r->turns = lanes;
        while (depth < lanes * r->depth || (depth < 2 * base && twice(w, r, 2 * depth)))
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

/* The depth in the file, which is that on each device, of a ring of a component. */
static int said_depth(const gp_scheduling *w, int root, int depth)
{
    int lanes = w->lanes[root], base = w->base[root];
    return lanes > 1 ? depth / (lanes * whole_runs(w, base, lanes)) * base : depth;
}

/* Rings inside segments: as deep as the ring they are copied from or to, or as their
 * segment; an error if the file asks for another depth. */
static void set_inner_depths(gp_scheduling *w, gp_errs *errs)
{
    gp_plan *p = w->p;
    int *other = GP_NEW(w->a, int, p->nrings);         /* end of a copy, plus 1 */
    for (int i = 0; i < p->ntasks; i++)
        if (gp_is_copy(&p->task[i]))
            other[gp_device_side(&p->task[i])] = gp_host_side(&p->task[i]) + 1;
        else if (p->task[i].op == GP_TASK_COPY_PEER)
            other[p->task[i].out[0]] = p->task[i].in[0] + 1;
    for (int i = 0; i < p->nrings; i++) {
        gp_ring *r = &p->ring[i];
        const gp_buffer *b = r->buffer < 0 ? NULL : &w->g->buffer[r->buffer];
        if (r->segment < 0)
            continue;
        if (b && other[i]) {
            const gp_ring *o = &p->ring[other[i] - 1];
            r->depth = o->depth, r->given = o->given, r->why = o->why, r->unit = o->unit, r->turns = o->turns;
            continue;
        }
        gp_segment *s = &p->segment[r->segment];
        r->depth = s->depth;
        if (twice(w, r, 2 * s->depth)) {
            r->depth = r->given = 2 * s->depth, r->why = GP_DEPTH_BY_CARRY;
            s->period = s->period < r->depth ? r->depth : s->period;
        }
        int each = said_depth(w, w->root[r->segment], r->depth);
        if (b && b->depth_said && b->depth != each)
            gp_fail(errs, GP_E_SPEC, b->depth_at,
                    "buffer '%s' cannot have depth %d: it never leaves the device and "
                    "takes the smallest depth of the buffers around it (%d); remove its "
                    "'depth'", b->name, b->depth, each);
    }
}

/* ---- of rings: many ------------------------------------------------------ */

/* So many frames in flight that a launch takes many; fewer where the device's memory, or building an exec for each row of
 * slots, would cost too much. Of 3 * 2^k; 0: a depth around the segment is not that of small frames, or many would be of
 * no use. */
static int many(const gp_scheduling *w, const gp_segment *s)
{
    enum { DEVICE_BYTES = 64 << 20, NODES = 3072 };
    const gp_plan *p = w->p;
    size_t most = 0, inside = 0;
    int64_t once = 0, each = 0;
    int n = GP_DEPTH_SMALL;
    bool circles = false, can = w->g->launch != GP_LAUNCH_PERSISTENT && w->g->batch != 1 && s->regroups < 0 && !s->each_shape
            && s->uncaptured < 0 && s->place.lanes == 1 && !is_long(p, s);
    for (int k = 0; k < s->nin + s->nout && can; k++) {
        const gp_ring *r = &p->ring[k < s->nin ? s->in[k] : s->out[k - s->nin]];
        can = r->why == GP_DEPTH_BY_SMALL || r->why == GP_DEPTH_BY_WORKERS || r->why == GP_DEPTH_BY_RATES;
        most = r->bytes > most ? r->bytes : most;
    }
    for (int i = 0; i < s->ntasks && can; i++) {
        const gp_task *t = &p->task[s->task[i]];
        const gp_stage *st = t->stage < 0 ? NULL : &w->g->stage[t->stage];
        bool at_once = !st || (st->batched && !gp_stage_in_order(st) && !st->circles);
        *(at_once ? &once : &each) += kernels_of(p, t);
        can = !st || !((st->cycle && (!st->circles || st->within))         /* it waits for the host in each frame */
                       || (st->calls_library && !at_once));          /* it has something for each slot */
        for (int k = 0; k < t->nout && can; k++) {
            if (t->out[k] < 0)     /* nobody reads it */
                continue;
            const gp_ring *r = &p->ring[t->out[k]];
            const gp_buffer *b = r->buffer < 0 ? NULL : &w->g->buffer[r->buffer];
            can = r->segment < 0 || !b || !b->depth_said;
            inside += r->segment < 0 || (b && b->state) ? 0 : r->bytes;
        }
        circles |= st && st->circles;
        inside += t->scratch >= 0 ? p->extra[t->scratch].stride : 0;
    }
    for (int sizes = 2; can && 2 * n <= GP_DEPTH_MANY; n *= 2, sizes++)        /* of launches: 1, 2, ... a third of them */
        if (2 * n * most > GP_DEPTH_MANY_BYTES || 2 * n * inside > DEVICE_BYTES
            || (circles ? 4 : 2) * n * (2 * once + sizes * each) > NODES)
            break;
    return can && n > GP_DEPTH_SMALL ? n : 0;
}

/* All segments of a component get as many: with other depths beside it, a multiple of which each has to be, there would
 * be many more slots than are of use. */
static void give_many(gp_scheduling *w)
{
    gp_plan *p = w->p;
    int *most = GP_NEW(w->a, int, p->nsegments + 1);               /* per component; 0: not */
    for (int k = 0; k < p->nsegments; k++)
        most[k] = w->g->depth ? 0 : GP_DEPTH_MANY;
    for (int k = 0; k < p->nsegments; k++) {
        int *least = &most[w->root[k]], n = *least ? many(w, &p->segment[k]) : 0;
        *least = n < *least ? n : *least;
    }
    for (int i = 0; i < p->nrings; i++) {
        gp_ring *r = &p->ring[i];
        int k = r->segment < 0 && r->buffer >= 0 ? slots_segment(w, i) : -1, n = k < 0 ? 0 : most[w->root[k]];
        int64_t slots = n ? gp_default_slots(w->g, &w->g->buffer[r->buffer], n) : 0;
        if (slots > r->depth && slots <= GP_DEPTH_MAX)
            r->depth = (int)slots, r->why = GP_DEPTH_BY_LAUNCHES;
    }
}

/* ---- of rings: carried ---------------------------------------------------- */

/* Is what the stage carries carried once more? */
static bool is_carried_on(const gp_graph *g, const gp_stage *carry)
{
    const gp_buffer *u = &g->buffer[carry->out[0]], *v = &g->buffer[carry->in[0]];
    bool on = gp_is_carry(&g->stage[v->producer.stage]);
    for (int i = 0; i < u->nuse && !on; i++)
        on = gp_is_carry(&g->stage[u->use[i].stage]);
    return on;
}

/* What is carried inside a segment, and read by stages of it alone, is read where it was made: frame k of ring u is frame
 * k - 1 of ring v. With twice as many slots as frames are in flight, that one is not made anew before frame k is done.
 * Finds such rings u; those of buffer v need that, of which w->twice is told. */
static void find_shared(gp_scheduling *w)
{
    gp_plan *p = w->p;
    bool *copied = GP_NEW(w->a, bool, p->nrings);
    for (int i = 0; i < p->ntasks; i++)
        if (p->task[i].stage < 0)
            copied[p->task[i].in[0]] = copied[p->task[i].out[0]] = true;
    for (int i = 0; i < p->ntasks; i++) {
        const gp_task *t = &p->task[i];
        const gp_stage *st = t->stage < 0 ? NULL : &w->g->stage[t->stage];
        if (!st || !gp_stage_circles_back(st) || w->g->buffer[st->out[0]].state || is_carried_on(w->g, st) || copied[t->out[0]]
            || p->ring[t->out[0]].segment < 0 || w->g->buffer[st->in[0]].depth_said)
            continue;
        p->ring[t->out[0]].before = t->in[0];
        w->twice[st->in[0]] = true;
    }
}

/* Behind all depths: what shares slots has as many as there are, unless that is too few. */
static void share_slots(gp_scheduling *w)
{
    gp_plan *p = w->p;
    for (int i = 0; i < p->nrings; i++) {
        gp_ring *u = &p->ring[i];
        const gp_ring *v = u->before < 0 ? NULL : &p->ring[u->before];
        if (v && v->depth >= 2 * p->segment[u->segment].depth)
            u->depth = v->depth, u->given = v->given, u->why = v->why, u->unit = v->unit;
        else
            u->before = -1;
    }
}

bool gp_ring_depths(gp_scheduling *w, gp_slots slots, gp_errs *errs)
{
    gp_plan *p = w->p;
    make_shallow(w->a, p, slots == GP_SLOTS_FEW);
    int *depth = GP_NEW(w->a, int, p->nrings);
    for (int i = 0; i < p->nrings; i++)
        depth[i] = p->ring[i].depth;
    if (!gp_deepen(w->a, p, depth, errs))
        return false;
    for (int i = 0; i < p->nrings; i++) {
        gp_ring *r = &p->ring[i];
        if (depth[i] != r->depth)
            r->depth = depth[i], r->why = GP_DEPTH_BY_RATES;
        r->begins = r->depth;
    }
    find_copied(w);
    find_components(w);
    if (slots == GP_SLOTS_MANY)
        give_many(w);
    for (int i = 0; i < p->nrings; i++)
        p->ring[i].given = p->ring[i].depth, p->ring[i].turns = 1;
    for (int k = 0; k < p->nsegments; k++)
        w->lanes[k] = 1;
    find_shared(w);
    set_depths(w);
    set_inner_depths(w, errs);
    share_slots(w);
    for (int i = 0; i < p->nrings; i++)
        if (p->ring[i].why != GP_DEPTH_BY_LAUNCHES || p->ring[i].segment >= 0)
            p->ring[i].begins = p->ring[i].depth;
    return true;
}

/* Consecutive frames that one device takes, of which every depth is a multiple: as many as the largest launch of the
 * segments that share frames. */
void gp_set_runs(gp_scheduling *w)
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
