/* launch_body.c - what a launch of a segment does: its copies and stages, recorded.
 *
 * The same body is built into an exec or run directly (launcher.c). It depends
 * on the slots of its frames only, unless the launch is irregular: then shapes, and
 * what is left out, are those that gp_frame_set_irregular found. Only true
 * dependencies are recorded. */
#include "run/regroup.h"
#include "run/segment.h"

enum { MOST_SPANS = 2 * GP_MAXPORT + 4 };

/* ---- recording ------------------------------------------------------- */

static gp_view view_of(const gp_actorrt *p, int ring, int buffer, uint64_t f)
{
    const gp_ringrt *r = &p->run->ring[ring];
    return (gp_view){ .data = gp_slot(r, f), .type = p->seg->type[buffer],
                      .rows = r->buffer->type.dim[0], .stride = r->stride };
}

/* Opens item r->id of `part` for frame j of the launch, behind the items its
 * task depends on and, for a stage whose frames take turns, behind its previous frame's; one that carries comes behind
 * what was made of that. */
static bool open_item(gp_rec *r, gp_segmentrt *s, gp_taskrt *part, int id, int j)
{
    int n = 0;
    for (int d = 0; d < part->task->ndeps; d++) {
        const gp_taskrt *before = &s->part[s->part_of[part->task->dep[d]]];
        if (before->items == 1)
            s->dep[n++] = before->item[0];
        else if (part->items > 1)
            s->dep[n++] = before->item[j];
        else
            for (int i = 0; i < before->items; i++)
                s->dep[n++] = before->item[i];
    }
    if (part->order >= 0 && j > 0)
        s->dep[n++] = (part->carried ? part->carried : part)->item[j - 1];
    return r->ops->item(r, id, s->dep, n);
}

/* The ring in which a stage finds, or makes, what has its slots in `ring`. */
static int ring_of(const gp_batch *o, int ring)
{
    const gp_task *t = o->p->seg->mapped ? o->p->seg->mapped[ring] : NULL;
    bool in = t && t->op == GP_TASK_COPY_IN;
    if (!t || gp_batch_copying(o, t) != GP_COPY_MAPPED)
        return ring;
    int k = 0;
    while ((in ? t->out[k] : t->in[k]) != ring)
        k++;
    return in ? t->in[k] : t->out[k];
}

/* Does the launch say in a word that it is done? What ends with a copy engine is as well waited for by asking the
 * driver. */
static bool tells(const gp_rec *r, const gp_batch *o)
{
    const gp_segmentrt *s = o->p->seg;
    bool kernels = false, engines = false;
    for (int i = 0; i < s->nparts; i++) {
        const gp_task *t = s->part[i].task;
        kernels |= gp_batch_copying(o, t) != GP_COPY_DMA;
        engines |= t->op == GP_TASK_COPY_OUT && gp_batch_copying(o, t) == GP_COPY_DMA;
    }
    return r->ops->done && kernels && !engines && !o->bare && !o->p->run->watched;
}

static char *slot_of(const gp_run *run, int pool, uint64_t f)
{
    const gp_pool *q = &run->plan->pool[pool];
    return (char *)gp_pool_on(run, pool, gp_lane(q->place, f)) + gp_lane_slot(q->place, f, q->depth) * q->stride;
}

/* Frames from f on, of at most n, whose slots in the ring are one piece of memory. */
static uint64_t in_one_piece(const gp_ringrt *r, uint64_t f, uint64_t n)
{
    gp_place p = r->ring->place;
    uint64_t each = (uint64_t)(p.lanes > 1 ? p.run : r->ring->depth), left = each - f % each;
    return r->stride != r->ring->bytes ? 1 : n < left ? n : left;
}

static bool record_peer_copy(gp_rec *r, gp_actorrt *p, const gp_task *t, uint64_t first, int n)
{
    const gp_ringrt *from = &p->run->ring[t->in[0]], *to = &p->run->ring[t->out[0]];
    for (uint64_t f = first, end = first + (uint64_t)n, k; f < end; f += k) {
        k = in_one_piece(to, f, in_one_piece(from, f, end - f));
        if (!r->ops->copy(r, gp_slot(to, f), gp_slot(from, f), from->ring->bytes * (size_t)k))
            return false;
    }
    return true;
}

static bool record_copy(gp_rec *r, const gp_batch *o, const gp_task *t, uint64_t first, int n)
{
    gp_actorrt *p = o->p;
    if (gp_batch_copying(o, t) == GP_COPY_MAPPED)
        return true;
    if (t->op == GP_TASK_COPY_PEER)
        return record_peer_copy(r, p, t, first, n);
    const gp_plan *plan = p->run->plan;
    const gp_pool *to = &plan->pool[t->to_pool];
    bool out = t->op == GP_TASK_COPY_OUT;
    uint64_t f = out ? gp_actor_made(p, first) : first;
    uint64_t end = out ? gp_actor_made(p, first + (uint64_t)n) + !n : first + (uint64_t)n;     /* n 0: of the last few */
    while (f < end) {                  /* at once, but where slots are not aligned */
        uint64_t slot = f % (uint64_t)to->depth, left = (uint64_t)to->depth - slot;
        uint64_t k = end - f < left ? end - f : left;
        r->by_kernel = gp_batch_copying(o, t) == GP_COPY_KERNEL;
        bool ok = r->ops->copy(r, slot_of(p->run, t->to_pool, f), slot_of(p->run, t->from_pool, f), to->stride * (size_t)k);
        r->by_kernel = false;
        if (!ok)
            return false;
        f += k;
    }
    return true;
}

/* Do frames that a task copies differ in shape? */
static bool copies_varying(const gp_actorrt *p, const gp_task *t)
{
    bool varying = false;
    for (int i = 0; i < t->nin; i++)
        varying |= p->run->ring[t->in[i]].type != NULL;
    return varying;
}

/* Copies the rows that one frame has, ring by ring. */
static bool record_exact(gp_rec *r, gp_actorrt *p, const gp_task *t, uint64_t f)
{
    for (int i = 0; i < t->nin; i++) {
        const gp_ringrt *from = &p->run->ring[t->in[i]], *to = &p->run->ring[t->out[i]];
        size_t bytes = from->buffer ? gp_bytes(&p->seg->type[from->ring->buffer]) : from->ring->bytes;
        if (bytes && !r->ops->copy(r, gp_slot(to, f), gp_slot(from, f), bytes))
            return false;
    }
    return true;
}

gp_span gp_span_of(const char *name, const gp_view *v, const gp_type *whole, int n, bool output)
{
    size_t before = (size_t)(n - 1) * v->stride;
    return (gp_span){ .name = name, .data = v->data, .bytes = before + gp_bytes(&v->type),
                      .room = before + gp_bytes(whole), .dtype = v->type.dtype, .output = output };
}

static gp_span span_of_extra(const char *name, const gp_run *run, int extra, int device, bool output)
{
    size_t bytes = run->plan->extra[extra].bytes;
    return (gp_span){ .name = name, .data = gp_extra_on(run, extra, device), .bytes = bytes, .room = bytes,
                      .output = output };
}

bool gp_fill_of_none(gp_dcall *c, const gp_stage *st, const gp_view *out)
{
    static const int byte[] = { [GP_NONE_ZERO] = 0, [GP_NONE_ONE] = 1, [GP_NONE_NAN] = 0xff };
    for (int i = 0; i < st->nout; i++)
        if (st->none[i] && !gp_fill(c, out[i].data, byte[st->none[i]], gp_bytes(&out[i].type)))
            return false;
    return true;
}

static bool changes(const gp_graph *g, const gp_stage *st, const char *state)
{
    bool is = false;
    for (int o = 0; o < st->nout && state; o++)
        is |= g->buffer[st->out[o]].state == state;
    return is;
}

/* All that the stage has been given, for the checks of what it does with that. */
static int list_spans(const gp_dcall *c, const gp_run *run, const gp_stage *st, const gp_taskrt *part,
                      int device, gp_span span[MOST_SPANS])
{
    const gp_task *t = part->task;
    int n = 0;
    for (int i = 0; i < st->nin; i++)
        if (st->in[i] >= 0 && !changes(run->graph, st, run->graph->buffer[st->in[i]].state))
            span[n++] = gp_span_of(st->in_name[i], &c->in[i], &run->graph->buffer[st->in[i]].type,
                                t->in[i] >= 0 ? c->n : 1, false);
    for (int i = 0; i < st->nout; i++)
        span[n++] = gp_span_of(st->out_name[i], &c->out[i], &run->graph->buffer[st->out[i]].type,
                            c->n, true);
    if (t->state >= 0)
        span[n++] = span_of_extra("its state", run, t->state, device, true);
    if (t->table >= 0)
        span[n++] = span_of_extra("its table", run, t->table, device, false);
    if (t->scratch >= 0) {
        span[n] = span_of_extra("its scratch memory", run, t->scratch, device, true);
        span[n].data = c->scratch;
        span[n].bytes = span[n].room = (size_t)(c->n - 1) * c->scratch_stride + st->scratch;
        n++;
    }
    if (c->frame) {
        size_t bytes = (size_t)c->n * run->plan->ring[run->plan->segment[t->segment].info_dev].bytes
                     - (size_t)part->info * GP_INFO_BYTES;
        span[n++] = (gp_span){ .name = "frame", .data = (char *)(uintptr_t)c->frame, .bytes = bytes,
                               .room = bytes };
    }
    return n;
}

/* With --isolate: waits for a stage, which says what it failed on. */
static bool is_done(gp_rec *r, const gp_run *run, const gp_stage *st, uint64_t frame)
{
    return !run->options.isolate || r->ops->wait(r)
        || gp_fail(r->errs, GP_E_RUN, st->at, "stage '%s' failed on the device in frame %llu", st->name,
                   (unsigned long long)frame);
}

/* n frames of one stage, from `first`. */
static bool record_stage(gp_rec *r, const gp_batch *o, const gp_taskrt *part, uint64_t first, int n)
{
    gp_actorrt *p = o->p;
    gp_run *run = p->run;
    const gp_graph *g = run->graph;
    const gp_stage *st = part->stage;
    const gp_task *t = part->task;
    const gp_segment *seg = p->segment;
    gp_view in[GP_MAXPORT] = { { 0 } }, out[GP_MAXPORT] = { { 0 } };
    int device = gp_lane_of(p, first)->device;
    gp_dcall c = { .opts = st->opts, .user = st->kind->user, .state = gp_state_on(run, st, device), .n = n, .in = in,
                   .out = out, .scope = &g->scope, .name = st->name, .rec = r,
                   .errs = r->errs, .slot = gp_slot_in_lane(p, first), .index = gp_actor_number(p, first) };

    for (int i = 0; i < st->nin; i++) {
        if (t->in[i] >= 0 && gp_stage_circles_back(st)) {      /* the frame before, all of its slot */
            in[i] = view_of(p, t->in[i], st->in[i], first + (uint64_t)run->ring[t->in[i]].ring->depth - 1);
            in[i].type = g->buffer[st->in[i]].type;
        } else if (t->in[i] >= 0) {
            in[i] = view_of(p, ring_of(o, t->in[i]), st->in[i], first);
        } else if (st->in[i] >= 0) {
            const gp_buffer *b = &g->buffer[st->in[i]];
            in[i] = (gp_view){ .data = gp_konst_on(run, t->konst[i], device), .type = b->type,
                               .rows = b->type.dim[0] };
            c.constants |= 1u << i;
        }
    }
    for (int i = 0; i < st->nout; i++) {
        out[i] = view_of(p, ring_of(o, t->out[i]), st->out[i], first);
        int fill = g->buffer[st->out[i]].state ? -1 : st->zero || (o->irregular && !g->buffer[st->out[i]].varies) ? 0
                 : run->options.poison ? gp_poison(out[i].type.dtype) : -1;
        for (int j = 0; fill >= 0 && j < n; j++)
            if (!gp_fill(&c, (char *)out[i].data + (size_t)j * out[i].stride, fill,
                         gp_bytes(&g->buffer[st->out[i]].type)))
                return false;
    }
    if (t->state >= 0)
        c.carried = gp_extra_on(run, t->state, device);
    if (t->table >= 0)
        c.table = gp_extra_on(run, t->table, device);
    if (t->scratch >= 0) {
        c.scratch_stride = run->plan->extra[t->scratch].stride;
        c.scratch = (char *)gp_extra_on(run, t->scratch, device) + (size_t)c.slot * c.scratch_stride;
    }
    if (o->check && !gp_unwritten_fill(r, p, part, &c))
        return false;
    if (seg->info_dev >= 0)
        c.frame = gp_info_of(p, seg->info_dev, part, first);
    if (o->irregular && gp_frame_stage_is_empty(p->seg, part))
        return gp_fill_of_none(&c, st, out);
    gp_span span[MOST_SPANS];
    r->nspans = list_spans(&c, run, st, part, device, span);
    r->span = span, r->frame = gp_actor_number(p, first);
    r->check_kernels = run->options.check_kernels;
    r->most = p->seg->most;
    r->priority = seg->priorities ? &st->priority : NULL;
    int before = r->errs->failed;
    bool ok = st->kind->record(&c);
    r->priority = NULL;
    r->span = NULL, r->nspans = 0, r->check_kernels = false;
    if (!ok && r->errs->failed == before)
        gp_fail(r->errs, GP_E_RUN, st->at, "stage '%s' cannot queue frame %llu and does not say why",
                st->name, (unsigned long long)gp_actor_number(p, first));
    if (r->errs->failed > before)
        return false;
    return is_done(r, run, st, gp_actor_number(p, first))
        && (!o->check || gp_unwritten_fetch(r, p->seg->unwritten, part, &c));
}

/* A stage with emit(): all frames of the launch. */
static bool record_gather(gp_rec *r, const gp_batch *o, const gp_taskrt *part)
{
    gp_run *run = o->p->run;
    const gp_stage *st = part->stage;
    int device = o->p->segment->place.index;
    gp_dcall c = { .opts = st->opts, .user = st->kind->user, .state = gp_state_on(run, st, device),
                   .carried = gp_extra_on(run, part->task->state, device), .scope = &run->graph->scope,
                   .name = st->name, .rec = r,
                   .errs = r->errs };
    int before = r->errs->failed;
    if (!gp_gather_record(r, o, part, &c) && r->errs->failed == before)
        gp_fail(r->errs, GP_E_RUN, st->at, "stage '%s' cannot queue frame %llu and does not say why", st->name,
                (unsigned long long)o->first);
    return r->errs->failed == before && is_done(r, run, st, o->n ? o->first : o->first - 1);
}

/* Writes what a stage that carries gives in place of the frame before the first. */
static bool put_first(gp_rec *r, const gp_actorrt *p, const gp_task *t, void *to, size_t bytes)
{
    return t->konst[1] < 0 ? r->ops->fill(r, to, 0, bytes)
                           : r->ops->copy(r, to, gp_konst_on(p->run, t->konst[1], p->segment->place.index), bytes);
}

/* Frame f of what a stage carries is a hole: its slot gets what is carried in its place, the first frame, or what frame
 * f itself was given, as does a state that nothing was done to. All that carry one buffer agree on that. */
static bool fill_carried(gp_rec *r, const gp_batch *o, const gp_taskrt *c, uint64_t f)
{
    const gp_ringrt *v = &o->p->run->ring[c->task->in[0]], *u = &o->p->run->ring[c->task->out[0]];
    size_t bytes = gp_bytes(&v->buffer->type);
    if (c->stage->on_hole != GP_ON_HOLE_SPLICE && o->p->seg->hole[c->stage->in[0]] != GP_HOLE_UNDONE)
        return put_first(r, o->p, c->task, gp_slot(v, f), bytes);
    return gp_slot(u, f) == gp_slot(v, f) || r->ops->copy(r, gp_slot(v, f), gp_slot(u, f), bytes);
}

/* Behind the last part that frame f + 1 of what is carried waits for: it may begin, which is of another launch where f is
 * the last of this one. */
static bool pass_to_carriers(gp_rec *r, const gp_batch *o, const gp_taskrt *part, uint64_t f, bool last)
{
    uint64_t slots = (uint64_t)o->p->segment->depth;
    const gp_buffer *filled = NULL;
    for (const gp_taskrt *c = part->carriers; c; c = c->next_carrier) {
        const gp_buffer *v = o->p->run->ring[c->task->in[0]].buffer;
        if (o->irregular && o->p->seg->hole[c->stage->in[0]] && v != filled && !fill_carried(r, o, c, f))
            return false;
        filled = v;
        if (last && c->order >= 0 && !r->ops->order_pass(r, c->order, (int)(f % slots)))
            return false;
    }
    return true;
}

/* One item: n frames from f. A stage whose frames take turns waits for the frame before and
 * lets the one after go on; one that carries state forgets it at a hole, unless it splices. */
static bool record_item(gp_rec *r, const gp_batch *o, const gp_taskrt *part, uint64_t f, int n,
                        bool first, bool last)
{
    gp_actorrt *p = o->p;
    const gp_run *run = p->run;
    const gp_stage *st = part->stage;
    uint64_t slots = (uint64_t)p->segment->depth;
    int state = part->task->state;

    if (o->recheck)
        return !st || !gp_unwritten_asks(p->seg->unwritten, part) || record_stage(r, o, part, f, n);
    if (!st && o->irregular && copies_varying(p, part->task))
        return record_exact(r, p, part->task, f);
    if (!st)
        return record_copy(r, o, part->task, f, n);
    if (p->regroup && o->again && run->cached[st - run->graph->stage])
        return true;
    if (st->kind->emit)
        return record_gather(r, o, part);
    if (p->regroup)
        return o->irregular
            || (gp_regroup_record(r, p, f, n, o->bare) && is_done(r, run, st, gp_firing_frame(p->regroup, f)));
    if (o->again && run->cached[st - run->graph->stage])
        return true;
    if (part->order >= 0 && first
        && !r->ops->order_wait(r, part->order, (int)((f + slots - 1) % slots)))
        return false;
    if (o->irregular && gp_frame_stage_hole(p->seg, st)) {
        if (state >= 0 && st->on_hole == GP_ON_HOLE_RESET
            && !r->ops->fill(r, gp_extra_on(run, state, p->segment->place.index), 0, run->plan->extra[state].bytes))
            return false;
    } else if (!gp_task_is_nothing(run->plan, part->task) && !record_stage(r, o, part, f, n)) {
        return false;
    }
    bool passes = part->order >= 0 && last && !gp_stage_circles_back(st);
    return (!passes || r->ops->order_pass(r, part->order, (int)(f % slots))) && pass_to_carriers(r, o, part, f, last);
}

/* Behind all: what no part waits for, and stamps. */
static bool record_done(gp_rec *r, const gp_batch *o, int id)
{
    gp_segmentrt *s = o->p->seg;
    int n = 0;
    for (int i = 0; i < s->stamps; i++)
        s->dep[n++] = s->stamp[i];
    for (int i = 0; i < s->nparts; i++)
        for (int j = 0; j < s->part[i].items; j++)
            if (s->part[i].last && (s->part[i].order < 0 || j == s->part[i].items - 1))
                s->dep[n++] = s->part[i].item[j];
    return r->ops->item(r, id, s->dep, n) && r->ops->done(r);
}

/* Frames [from, to) of the launch of a part. */
static bool record_part(gp_rec *r, const gp_batch *o, int i, int from, int to, int *id, gp_loc at)
{
    gp_segmentrt *s = o->p->seg;
    gp_taskrt *part = &s->part[i];
    part->items = part->at_once ? 1 : o->n;
    r->errs->at = part->stage ? part->stage->at : at;
    if (o->p->run->watched && !o->bare)
        r->ops->label(r, i);
    for (int j = from; j < to && j < part->items; j++) {
        part->item[j] = (*id)++;
        if (!open_item(r, s, part, part->item[j], j)
            || !record_item(r, o, part, o->first + (uint64_t)j, part->at_once ? o->n : 1, j == 0, j == part->items - 1))
            return false;
    }
    return gp_stamps_after(r, o, part, to - 1, id);
}

/* `at`: the place of what is no stage's. */
static bool record_parts(gp_rec *r, const gp_batch *o, gp_loc at)
{
    gp_segmentrt *s = o->p->seg;
    int id = 0;

    if (!gp_stamps_begin(r, o, &id))
        return false;
    int all = o->n ? o->n : 1;         /* 0: see gp_batch.emits */
    for (int i = 0; i < s->circle; i++)
        if (!record_part(r, o, i, 0, all, &id, at))
            return false;
    for (int j = 0; j < o->n; j++)
        for (int i = s->circle; i < s->circle_end; i++)
            if (!record_part(r, o, i, j, j + 1, &id, at))
                return false;
    for (int i = s->circle_end; i < s->nparts; i++)
        if (!record_part(r, o, i, 0, all, &id, at))
            return false;
    return !tells(r, o) || record_done(r, o, id);
}

bool gp_segment_record(gp_rec *r, void *arg)
{
    gp_loc at = r->errs->at;
    bool ok = record_parts(r, arg, at);
    r->errs->at = at;
    return ok;
}

bool gp_segment_reset(gp_rec *r, void *arg)
{
    gp_actorrt *p = arg;
    gp_segmentrt *s = p->seg;
    for (int i = 0, id = 0; i < s->nparts; i++) {
        const gp_task *t = s->part[i].task;
        int state = s->part[i].stage ? t->state : -1;
        if (s->part[i].stage && gp_stage_circles_back(s->part[i].stage)) {
            const gp_ringrt *v = &p->run->ring[t->in[0]];
            if (!r->ops->item(r, id++, NULL, 0)
                || !put_first(r, p, t, gp_slot(v, (uint64_t)v->ring->depth - 1), gp_bytes(&v->buffer->type)))
                return false;
        }
        if (state >= 0
            && (!r->ops->item(r, id++, NULL, 0)
                || !r->ops->fill(r, gp_extra_on(p->run, state, p->segment->place.index), 0, p->run->plan->extra[state].bytes)))
            return false;
    }
    return true;
}
