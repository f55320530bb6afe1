/* segment.c - the launcher and the reaper of a segment.
 *
 * The launcher takes the longest ready run of frames that is an aligned power
 * of two of slots, and queues it on an idle stream: as an exec built before
 * frame 0 (launch: graph), or directly (launch: stream; odd frames: partial
 * ones, and those with a hole in some input). Each launch is a ticket; the reaper waits for the tickets in frame order and
 * publishes. Neither holds a lock while it calls the device.
 *
 * Invariant: frames [reaped, next) are in flight, at most `depth` of them, so
 * that slots inside the segment are free when they are written again. */
#include <string.h>
#include <time.h>
#include "nvtx.h"
#include "run.h"

typedef struct gp_ticket {
    uint64_t first;
    int n;
    int stream;                /* -1: nothing was queued */
} gp_ticket;

/* What a stage of the segment needs to be recorded. */
typedef struct gp_part {
    const gp_task *task;
    const gp_stage *stage;     /* NULL: a copy */
    int order;                 /* of a carrying stage, else -1 */
    int info;                  /* which of a frame's infos is this stage's */
    int item, items;           /* while a body runs: its items */
} gp_part;

typedef struct gp_segmentrt {
    gp_part *part; int nparts; /* in task order */
    int *part_of;              /* per task of the plan */
    int carrying;              /* parts that carry state */
    int stream0, order0;       /* of this segment among the device's */
    gp_exec ***exec;           /* [log2 frames][slot / frames] */
    int sizes;
    gp_ticket *ticket;         /* a ring of ntickets */
    uint64_t ntickets;
    _Atomic uint64_t issued, redeemed;     /* tickets */
    _Atomic uint64_t reaped;   /* frames */
    atomic_bool over;          /* the launcher issues no more */
    atomic_bool *busy;         /* per stream */
    gp_point done;             /* the reaper sleeps here */
    gp_type *type;             /* per buffer: of the frame being launched */
    gp_hole *hole;             /* per buffer: likewise */
    int *dep;                  /* room for a body */
} gp_segmentrt;

/* What a body records: frames [first, first + n). `odd`: one frame that is
 * partial or has a hole in some input, see odd_frame. */
typedef struct gp_order { gp_partyrt *p; uint64_t first; int n; bool odd; } gp_order;

/* ---- the body -------------------------------------------------------- */

static gp_view view_of(const gp_partyrt *p, int ring, int buffer, uint64_t f)
{
    const gp_ringrt *r = &p->run->ring[ring];
    return (gp_view){ .data = gp_slot(r, f), .type = p->seg->type[buffer],
                      .rows = r->buffer->type.dim[0], .stride = r->stride };
}

/* Opens item r->id of `part` for frame j of the launch, behind the items its
 * task depends on and, for a carrying stage, behind its previous frame's. */
static bool open_item(gp_rec *r, gp_segmentrt *s, gp_part *part, int id, int j)
{
    int n = 0;
    for (int d = 0; d < part->task->ndeps; d++) {
        const gp_part *before = &s->part[s->part_of[part->task->dep[d]]];
        if (before->items == 1)
            s->dep[n++] = before->item;
        else if (part->items > 1)
            s->dep[n++] = before->item + j;
        else
            for (int i = 0; i < before->items; i++)
                s->dep[n++] = before->item + i;
    }
    if (part->order >= 0 && j > 0)
        s->dep[n++] = id - 1;
    return r->ops->item(r, id, s->dep, n);
}

static gp_frame_info *info_of(const gp_partyrt *p, int ring, const gp_part *part, uint64_t f)
{
    return (void *)((char *)gp_slot(&p->run->ring[ring], f) + part->info * GP_INFO_BYTES);
}

static bool record_copy(gp_rec *r, gp_partyrt *p, const gp_task *t, uint64_t first, int n)
{
    const gp_plan *plan = p->run->plan;
    const gp_pool *from = &plan->pool[t->from_pool], *to = &plan->pool[t->to_pool];
    const char *src = p->run->pool[t->from_pool];
    char *dst = p->run->pool[t->to_pool];
    return r->ops->copy(r, dst + first % (uint64_t)to->depth * to->stride,
                        src + first % (uint64_t)from->depth * from->stride,
                        to->stride * (size_t)n);
}

/* Has a stage no rows to work on? Then it has no rows to give either. */
static bool is_empty(const gp_segmentrt *s, const gp_part *part)
{
    for (int i = 0; i < part->stage->nin; i++)
        if (part->task->in[i] >= 0 && !s->type[part->stage->in[i]].dim[0])
            return true;
    return false;
}

/* n frames of one stage, from `first`. */
static bool record_stage(gp_rec *r, gp_partyrt *p, const gp_part *part, uint64_t first, int n,
                         bool odd)
{
    gp_run *run = p->run;
    const gp_graph *g = run->graph;
    const gp_stage *st = part->stage;
    const gp_task *t = part->task;
    const gp_segment *seg = p->segment;
    gp_view in[GP_MAXPORT] = { { 0 } }, out[GP_MAXPORT] = { { 0 } };
    gp_dcall c = { .opts = st->opts, .state = run->state[st - g->stage], .n = n, .in = in,
                   .out = out, .scope = &g->scope, .name = st->name, .rec = r,
                   .errs = r->errs };

    for (int i = 0; i < st->nin; i++) {
        if (t->in[i] >= 0) {
            in[i] = view_of(p, t->in[i], st->in[i], first);
        } else if (st->in[i] >= 0) {
            const gp_buffer *b = &g->buffer[st->in[i]];
            in[i] = (gp_view){ .data = run->extra[t->konst[i]], .type = b->type,
                               .rows = b->type.dim[0] };
        }
    }
    for (int o = 0; o < st->nout; o++) {
        out[o] = view_of(p, t->out[o], st->out[o], first);
        int fill = st->zero || odd ? 0 : run->options.poison ? 0xa5 : -1;
        for (int j = 0; fill >= 0 && j < n; j++)
            if (!gp_fill(&c, (char *)out[o].data + (size_t)j * out[o].stride, fill,
                         gp_bytes(&g->buffer[st->out[o]].type)))
                return false;
    }
    if (t->state >= 0)
        c.carried = run->extra[t->state];
    if (t->table >= 0)
        c.table = run->extra[t->table];
    if (t->scratch >= 0) {
        c.scratch_stride = run->plan->extra[t->scratch].stride;
        c.scratch = (char *)run->extra[t->scratch]
                  + first % (uint64_t)seg->depth * c.scratch_stride;
    }
    if (seg->info_dev >= 0)
        c.frame = info_of(p, seg->info_dev, part, first);
    if (odd && is_empty(p->seg, part))
        return true;
    int before = r->errs->n;
    if (!st->kind->record(&c)) {
        for (int i = before; i < r->errs->n; i++)
            if (!r->errs->e[i].at.file)
                r->errs->e[i].at = st->at;
        return false;
    }
    if (!run->options.isolate)
        return true;
    if (r->ops->wait(r))
        return true;
    return gp_fail(r->errs, GP_E_RUN, st->at, "stage '%s' failed on the device in frame %llu",
                   st->name, (unsigned long long)first);
}

/* The worst hole among a stage's inputs: it has no such frame then. */
static gp_hole hole_of(const gp_segmentrt *s, const gp_stage *st)
{
    gp_hole hole = GP_WHOLE;
    for (int i = 0; i < st->nin; i++)
        if (st->in[i] >= 0 && s->hole[st->in[i]] > hole)
            hole = s->hole[st->in[i]];
    return hole;
}

/* One item: n frames from f. A carrying stage waits for the frame before, lets
 * the one after go on, and forgets what it carries at a hole, unless it splices. */
static bool record_item(gp_rec *r, gp_partyrt *p, const gp_part *part, uint64_t f, int n,
                        bool first, bool last, bool odd)
{
    const gp_stage *st = part->stage;
    uint64_t slots = (uint64_t)p->segment->depth;
    int state = part->task->state;

    if (!st)
        return record_copy(r, p, part->task, f, n);
    if (part->order >= 0 && first
        && !r->ops->order_wait(r, part->order, (int)((f + slots - 1) % slots)))
        return false;
    if (odd && hole_of(p->seg, st)) {
        if (part->order >= 0 && st->on_hole == GP_ON_HOLE_RESET
            && !r->ops->fill(r, p->run->extra[state], 0, p->run->plan->extra[state].bytes))
            return false;
    } else if (!record_stage(r, p, part, f, n, odd)) {
        return false;
    }
    return part->order < 0 || !last || r->ops->order_pass(r, part->order, (int)(f % slots));
}

static bool record(gp_rec *r, void *arg)
{
    gp_order *o = arg;
    gp_segmentrt *s = o->p->seg;
    int id = 0;

    for (int i = 0; i < s->nparts; i++) {
        gp_part *part = &s->part[i];
        bool whole = !part->stage || (part->stage->batched && part->order < 0);
        part->item = id;
        part->items = whole ? 1 : o->n;
        for (int j = 0; j < part->items; j++, id++)
            if (!open_item(r, s, part, id, j)
                || !record_item(r, o->p, part, o->first + (uint64_t)j, whole ? o->n : 1, j == 0,
                                j == part->items - 1, o->odd))
                return false;
    }
    return true;
}

static bool record_reset(gp_rec *r, void *arg)
{
    gp_partyrt *p = arg;
    gp_segmentrt *s = p->seg;
    for (int i = 0, id = 0; i < s->nparts; i++) {
        int state = s->part[i].stage ? s->part[i].task->state : -1;
        if (state >= 0
            && (!r->ops->item(r, id++, NULL, 0)
                || !r->ops->fill(r, p->run->extra[state], 0, p->run->plan->extra[state].bytes)))
            return false;
    }
    return true;
}

/* ---- setting up ------------------------------------------------------ */

/* Every buffer is whole and has all its rows. */
static void even_frame(gp_partyrt *p)
{
    for (int b = 0; b < p->run->graph->nbuffers; b++) {
        p->seg->type[b] = p->run->graph->buffer[b].type;
        p->seg->hole[b] = GP_WHOLE;
    }
}

/* Says which frames a lost device took with it. */
static void say_lost(const gp_partyrt *p, uint64_t from, uint64_t to, gp_errs *errs)
{
    if (!p->run->options.isolate)
        gp_fail(errs, GP_E_RUN, gp_party_at(p),
                "the device failed in segment '%s'; frames %llu to %llu are not finished; "
                "to learn which stage it was: gpipe run --isolate %s",
                p->name, (unsigned long long)from, (unsigned long long)to, p->run->graph->file);
}

/* Waits for what was queued before frame 0, as long as the user has patience:
 * nobody watches yet. */
static bool finish_early(gp_partyrt *p, gp_errs *errs)
{
    gp_run *run = p->run;
    const gp_backend *be = run->dev->backend;
    int64_t start = gp_now_ns(), stall = run->graph->stall_ns;
    for (;;) {
        int done = be->query(run->dev, p->seg->stream0, errs);
        if (done)
            return done == 1;
        int64_t waited = gp_now_ns() - start;
        bool stalled = stall && waited > stall;
        if (stalled)
            gp_fail(errs, GP_E_STALL, gp_party_at(p),
                    "nothing moved for %.3g s: segment '%s' is busy with its first frame",
                    (double)waited / 1e9, p->name);
        if (stalled || atomic_load(&run->pipeline->cancel) >= 2) {
            run->stuck = true;
            return false;
        }
        struct timespec nap = { 0, 20000 };
        nanosleep(&nap, NULL);
    }
}

/* Runs everything once, so that kernels are loaded and libraries have what
 * they need, and forgets what that left in the carried state. */
static bool warm_up(gp_partyrt *p, gp_errs *errs)
{
    const gp_backend *be = p->run->dev->backend;
    gp_order once = { p, 0, 1, false };
    bool queued = be->direct(p->run->dev, p->seg->stream0, record, &once, errs);
    if (!queued && be->query(p->run->dev, p->seg->stream0, errs) >= 0)
        return false;              /* the stage said why */
    if (queued && finish_early(p, errs)
        && be->direct(p->run->dev, p->seg->stream0, record_reset, p, errs) && finish_early(p, errs))
        return true;
    if (!p->run->stuck)
        say_lost(p, 0, 0, errs);
    return false;
}

bool gp_segment_init(gp_partyrt *p, int stream0, int order0, gp_errs *errs)
{
    gp_run *run = p->run;
    const gp_plan *plan = run->plan;
    const gp_segment *seg = p->segment;
    gp_arena *a = &run->arena;
    gp_segmentrt *s = p->seg = GP_NEW(a, gp_segmentrt, 1);
    const gp_backend *be = run->dev->backend;
    int deps = 1, infos = 0;

    gp_point_init(&s->done);
    s->stream0 = stream0, s->order0 = order0;
    s->type = GP_NEW(a, gp_type, run->graph->nbuffers);
    s->hole = GP_NEW(a, gp_hole, run->graph->nbuffers);
    even_frame(p);
    s->part = GP_NEW(a, gp_part, seg->ntasks);
    s->part_of = GP_NEW(a, int, plan->ntasks);
    s->nparts = seg->ntasks;
    for (int i = 0; i < seg->ntasks; i++) {
        gp_part *part = &s->part[i];
        part->task = &plan->task[seg->task[i]];
        part->stage = part->task->stage >= 0 ? &run->graph->stage[part->task->stage] : NULL;
        part->info = part->stage && part->stage->frame_info ? infos++ : 0;
        part->order = part->stage && part->stage->state ? s->order0 + s->carrying++ : -1;
        s->part_of[seg->task[i]] = i;
        deps += part->task->ndeps;
    }
    s->dep = GP_NEW(a, int, (size_t)deps * (size_t)seg->batch + 1);
    s->busy = GP_NEW(a, atomic_bool, seg->streams);
    s->ntickets = (uint64_t)seg->depth + 1;
    s->ticket = GP_NEW(a, gp_ticket, s->ntickets);
    if (!plan->unified && !warm_up(p, errs))
        return false;
    if (run->graph->launch != GP_LAUNCH_GRAPH || run->options.isolate)
        return true;

    while (1 << s->sizes <= seg->batch)
        s->sizes++;
    s->exec = GP_NEW(a, gp_exec **, s->sizes);
    for (int k = 0; k < s->sizes; k++) {
        int n = 1 << k, per_turn = seg->depth / n;
        s->exec[k] = GP_NEW(a, gp_exec *, seg->period / n + 1);
        for (int turn = 0; turn < seg->period / seg->depth; turn++)
            for (int i = 0; i < per_turn; i++) {
                gp_order o = { p, (uint64_t)(turn * seg->depth + i * n), n, false };
                gp_exec **x = &s->exec[k][turn * per_turn + i];
                if (!(*x = be->build(run->dev, record, &o, errs)))
                    return false;
            }
    }
    return true;
}

void gp_segment_fini(gp_partyrt *p)
{
    gp_segmentrt *s = p->seg;
    if (!s)
        return;
    for (int k = 0; k < s->sizes && s->exec; k++)
        for (int i = 0; s->exec[k] && i < p->segment->period / (1 << k) + 1; i++)
            if (s->exec[k][i])
                p->run->dev->backend->discard(p->run->dev, s->exec[k][i]);
    gp_point_fini(&s->done);
}

/* ---- the launcher ---------------------------------------------------- */

static int idle_stream(const gp_partyrt *p)
{
    for (int i = 0; i < p->segment->streams; i++)
        if (!atomic_load(&p->seg->busy[i]))
            return i;
    return -1;
}

typedef struct gp_asking { gp_partyrt *p; gp_look look; int n; } gp_asking;

static bool may_launch(void *arg)
{
    gp_asking *a = arg;
    gp_partyrt *p = a->p;
    uint64_t next = atomic_load(&p->next);
    int room = p->segment->depth - (int)(next - atomic_load(&p->seg->reaped));
    int most = p->run->options.isolate ? 1 : p->segment->batch;
    a->look = gp_party_look(p, next, room < most ? room : most, &a->n);
    if (a->look == GP_LOOK_GO)
        return idle_stream(p) >= 0
            && !(p->run->options.isolate && room < p->segment->depth);
    return a->look != GP_LOOK_WAIT;
}

/* The longest aligned power of two of frames from f, at most n. */
static int aligned(const gp_partyrt *p, uint64_t f, int n)
{
    int slot = (int)(f % (uint64_t)p->segment->depth), m = 1;
    while (2 * m <= n && slot % (2 * m) == 0 && slot + 2 * m <= p->segment->depth)
        m *= 2;
    return m;
}

static bool is_odd(const gp_partyrt *p, uint64_t f)
{
    for (int i = 0; i < p->nin; i++) {
        const gp_ringrt *r = p->in[i].ring;
        const gp_meta *m = gp_meta_of(r, f);
        if (m->hole || m->rows != r->buffer->type.dim[0])
            return true;
    }
    return false;
}

/* Cuts [f, f + n) before the first odd frame, or after it when f is odd. */
static int alike(const gp_partyrt *p, uint64_t f, int n)
{
    for (int i = 0; i < n; i++)
        if (is_odd(p, f + (uint64_t)i))
            return i ? i : 1;
    return n;
}

/* The shapes and holes of the segment's buffers for one odd frame. */
static bool odd_frame(gp_partyrt *p, uint64_t f, gp_errs *errs)
{
    gp_segmentrt *s = p->seg;
    for (int i = 0; i < p->nin; i++) {
        const gp_ringrt *r = p->in[i].ring;
        s->type[r->ring->buffer].dim[0] = gp_meta_of(r, f)->rows;
        s->hole[r->ring->buffer] = gp_meta_of(r, f)->hole;
    }
    for (int i = 0; i < s->nparts; i++) {
        const gp_stage *st = s->part[i].stage;
        gp_type in[GP_MAXPORT] = { { 0 } }, out[GP_MAXPORT];
        if (!st)
            continue;
        gp_hole hole = hole_of(s, st);
        bool empty = is_empty(s, &s->part[i]);
        for (int k = 0; k < st->nin; k++)
            if (st->in[k] >= 0)
                in[k] = s->type[st->in[k]];
        if (!hole && !empty && !gp_partial_shape(p->run->graph, st, in, out, errs))
            return false;
        for (int k = 0; k < st->nout; k++) {
            if (empty)
                s->type[st->out[k]].dim[0] = 0;
            else if (!hole)
                s->type[st->out[k]] = out[k];
            s->hole[st->out[k]] = hole;
        }
    }
    return true;
}

/* Writes the metas of frame f's outputs, and its info. */
static void sign(gp_partyrt *p, uint64_t f)
{
    const gp_segmentrt *s = p->seg;
    gp_meta m = gp_party_meta(p, f);
    for (int o = 0; o < p->nout; o++) {
        gp_ringrt *r = p->out[o];
        m.rows = s->type[r->ring->buffer].dim[0];
        m.hole = s->hole[r->ring->buffer];
        *gp_meta_of(r, f) = m;
    }
    for (int i = 0; p->segment->info_host >= 0 && i < s->nparts; i++) {
        const gp_part *part = &s->part[i];
        if (!part->stage || !part->stage->frame_info)
            continue;
        int64_t rows = 0;
        for (int k = part->stage->nin - 1; k >= 0; k--)
            if (part->task->in[k] >= 0)
                rows = s->type[part->stage->in[k]].dim[0];
        *info_of(p, p->segment->info_host, part, f) =
            (gp_frame_info){ .index = f, .valid = (uint32_t)rows, .time_ns = m.time_ns };
    }
}

/* Does an odd frame give the device nothing to do? */
static bool all_holes(const gp_partyrt *p)
{
    const gp_segmentrt *s = p->seg;
    for (int i = 0; i < s->nparts; i++)
        if (s->part[i].stage && (s->part[i].order >= 0 || !hole_of(s, s->part[i].stage)))
            return false;
    return true;
}

static void poison_outputs(gp_partyrt *p, uint64_t f, int n)
{
    for (int i = 0; i < p->nout; i++)
        for (int j = 0; j < n && !p->out[i]->ring->place.device; j++)
            memset(gp_slot(p->out[i], f + (uint64_t)j), 0xa5,
                   gp_bytes(&p->out[i]->buffer->type));
}

typedef enum gp_launched { LAUNCHED, NOT_LAUNCHED, DEVICE_LOST } gp_launched;

/* Queues n frames from f; adds the ticket. NOT_LAUNCHED: the frame cannot be
 * computed (a shape or an argument of a partial frame), the device is well. */
static gp_launched launch(gp_threadrt *t, uint64_t f, int n)
{
    gp_partyrt *p = t->party;
    gp_run *run = p->run;
    gp_segmentrt *s = p->seg;
    const gp_backend *be = run->dev->backend;
    gp_order o = { p, f, n, is_odd(p, f) };
    int stream = idle_stream(p);
    bool ok;

    if (o.odd && !odd_frame(p, f, &t->errs))
        return NOT_LAUNCHED;
    if (o.odd && all_holes(p))
        stream = -1;
    for (int i = 0; i < n; i++)
        sign(p, f + (uint64_t)i);
    if (run->options.poison && !run->plan->unified)
        poison_outputs(p, f, n);
    if (stream >= 0)
        atomic_store(&s->busy[stream], true);
    gp_nvtx_push(run->nvtx, p->name, f);
    if (stream < 0) {
        ok = true;
    } else if (o.odd || !s->exec) {
        ok = be->direct(run->dev, s->stream0 + stream, record, &o, &t->errs);
        if (!ok && be->wait(run->dev, s->stream0 + stream, GP_SYNC_BLOCK, &t->errs) == 1)
            return NOT_LAUNCHED;
    } else {
        int k = 0, slot = (int)(f % (uint64_t)p->segment->period), d = p->segment->depth;
        while (1 << k < n)
            k++;
        ok = be->launch(run->dev, s->stream0 + stream,
                        s->exec[k][slot / d * (d / n) + slot % d / n], &t->errs);
    }
    gp_nvtx_pop(run->nvtx);
    if (o.odd)
        even_frame(p);
    if (!ok)
        return DEVICE_LOST;
    uint64_t k = atomic_load(&s->issued);
    s->ticket[k % s->ntickets] = (gp_ticket){ f, n, stream };
    atomic_store(&s->issued, k + 1);
    atomic_store(&p->next, f + (uint64_t)n);
    gp_point_wake(&s->done);
    return LAUNCHED;
}

/* Frame f fails, and with it the run; what is before it comes out. */
static void fail_frame(gp_threadrt *t, uint64_t f)
{
    gp_partyrt *p = t->party;
    gp_run_fail(p->run, &t->errs);
    for (int l = 0; l < p->run->nledgers; l++) {
        int source = p->run->ledger[l].source;
        bool feeds = false;
        for (int i = 0; i < p->seg->nparts; i++) {
            const gp_stage *st = p->seg->part[i].stage;
            feeds |= st && (st->sources[source / 32] >> source % 32 & 1);
        }
        if (feeds)
            gp_ledger_fail(&p->run->ledger[l], f);
    }
}

/* The device is lost. It tells only one of its threads why, and that one
 * reports; frames up to `to` are not finished. */
static void fault(gp_threadrt *t, uint64_t to)
{
    if (t->errs.failed) {
        say_lost(t->party, atomic_load(&t->party->seg->reaped), to, &t->errs);
        gp_run_fail(t->run, &t->errs);
    }
    gp_run_level(t->run, 2);
}

void *gp_segment_launcher(void *thread)
{
    gp_threadrt *t = thread;
    gp_partyrt *p = t->party;
    gp_segmentrt *s = p->seg;

    for (;;) {
        gp_asking a = { .p = p };
        uint64_t f = atomic_load(&p->next);
        if (!may_launch(&a)) {
            gp_thread_doing(t, GP_DOING_WAIT, f);
            gp_point_wait(&p->point, may_launch, &a, p->run->spin_ns);
        }
        if (a.look == GP_LOOK_DIFFER)
            gp_party_ends_differ(p, f);
        if (a.look != GP_LOOK_GO)
            break;
        gp_thread_doing(t, GP_DOING_WORK, f);
        gp_launched r = launch(t, f, aligned(p, f, alike(p, f, a.n)));
        if (r == NOT_LAUNCHED)
            fail_frame(t, f);
        else if (r == DEVICE_LOST)
            fault(t, f + (uint64_t)a.n - 1);
        if (r != LAUNCHED)
            break;
    }
    atomic_store(&s->over, true);
    gp_point_wake(&s->done);
    return NULL;
}

/* ---- the reaper ------------------------------------------------------ */

static bool has_ticket(void *arg)
{
    gp_segmentrt *s = arg;
    return atomic_load(&s->issued) > atomic_load(&s->redeemed) || atomic_load(&s->over);
}

/* For the status: frames that are no holes, and what was made of them. */
static void count(gp_partyrt *p, uint64_t first, int n)
{
    unsigned long long whole = 0, bytes = 0;
    for (int i = 0; i < n; i++) {
        bool some = false;
        for (int o = 0; o < p->nout; o++) {
            const gp_type *t = &p->out[o]->buffer->type;
            const gp_meta *m = gp_meta_of(p->out[o], first + (uint64_t)i);
            if (!m->hole)
                bytes += gp_bytes(t) / (size_t)t->dim[0] * (size_t)m->rows;
            some |= !m->hole;
        }
        whole += some;
    }
    atomic_fetch_add_explicit(&p->frames, whole, memory_order_relaxed);
    atomic_fetch_add_explicit(&p->bytes, bytes, memory_order_relaxed);
}

void *gp_segment_reaper(void *thread)
{
    gp_threadrt *t = thread;
    gp_partyrt *p = t->party;
    gp_segmentrt *s = p->seg;
    gp_run *run = p->run;
    const gp_backend *be = run->dev->backend;

    for (;;) {
        uint64_t k = atomic_load(&s->redeemed);
        if (!has_ticket(s)) {
            gp_thread_doing(t, GP_DOING_WAIT, atomic_load(&s->reaped));
            gp_point_wait(&s->done, has_ticket, s, run->spin_ns);
        }
        if (atomic_load(&s->issued) == k)
            break;
        gp_ticket tk = s->ticket[k % s->ntickets];
        gp_thread_doing(t, GP_DOING_WORK, tk.first);
        if (tk.stream >= 0 && be->wait(run->dev, s->stream0 + tk.stream, run->graph->sync, &t->errs) != 1) {
            fault(t, atomic_load(&p->next) - 1);
            break;
        }
        count(p, tk.first, tk.n);
        gp_party_publish(p, tk.first, tk.n);
        atomic_store(&s->reaped, tk.first + (uint64_t)tk.n);
        atomic_store(&s->redeemed, k + 1);
        if (tk.stream >= 0)
            atomic_store(&s->busy[tk.stream], false);
        gp_point_wake(&p->point);
    }
    gp_party_end(p, atomic_load(&s->reaped));
    return NULL;
}
