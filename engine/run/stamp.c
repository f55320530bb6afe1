/* stamp.c - when a device did what: stamps in the bodies of launches, read by the
 * reaper before their slots are used again.
 *
 * A stamp is taken when all work of its kind (copies in, peer copies, stages, copies out) in the
 * launch is done; nothing waits for it, so it moves no work. What kernels copy, or is mapped, is of the stages' kind:
 * each stamp makes a short launch longer. On the CPU back end, which
 * runs a launch in the order recorded, each stage has one. */
#include <string.h>
#include "run/segment.h"
#include "run/trace.h"

static gp_engine engine_of(const gp_task *t)
{
    return t->op == GP_TASK_COPY_IN ? GP_ENGINE_COPY_IN
        : t->op == GP_TASK_COPY_OUT ? GP_ENGINE_COPY_OUT
        : t->op == GP_TASK_COPY_PEER ? GP_ENGINE_COPY_PEER : GP_ENGINE_COMPUTE;
}

static bool stamped(const gp_run *run)
{
    return run->options.stamped && !run->options.isolate && run->dev[0] && run->dev[0]->backend->stamps;
}

/* Who does it in this launch. */
static gp_engine engine_in(const gp_batch *o, const gp_taskrt *part)
{
    return gp_batch_copying(o, part->task) == GP_COPY_DMA ? part->engine : GP_ENGINE_COMPUTE;
}

/* The stamp behind it; 0: there is none, as the same engine does a later part, too. */
static int stamp_behind(const gp_batch *o, const gp_taskrt *part)
{
    const gp_segmentrt *s = o->p->seg;
    if (!s->nstamps || o->p->run->plan->unified)
        return part->stamp;
    gp_engine e = engine_in(o, part);
    for (const gp_taskrt *b = part + 1; b < s->part + s->nparts; b++)
        if (engine_in(o, b) == e)
            return 0;
    return s->stamp[e];
}

/* Marks the parts that no later part of their engine waits for. */
static void mark_leaves(gp_segmentrt *s)
{
    for (int i = 0; i < s->nparts; i++)
        s->part[i].leaf = true;
    for (int i = 0; i < s->nparts; i++)
        for (int d = 0; d < s->part[i].task->ndeps; d++) {
            gp_taskrt *before = &s->part[s->part_of[s->part[i].task->dep[d]]];
            if (before->engine == s->part[i].engine)
                before->leaf = false;
        }
}

int gp_stamps_init(gp_actorrt *p)
{
    const gp_run *run = p->run;
    gp_segmentrt *s = p->seg;
    for (int i = 0; i < s->nparts; i++)
        s->part[i].engine = engine_of(s->part[i].task);
    if (!stamped(run))
        return 0;
    mark_leaves(s);
    s->nstamps = 1;
    for (int i = 0; i < s->nparts; i++) {
        gp_taskrt *part = &s->part[i];
        if (run->plan->unified)
            part->stamp = s->nstamps++;
        else if (!s->stamp[part->engine])
            s->stamp[part->engine] = s->nstamps++;
    }
    return s->nstamps * (p->segment->depth / p->segment->place.lanes);
}

static int stamp_of(const gp_actorrt *p, uint64_t first, int k)
{
    return gp_lane_of(p, first)->stamp0 + gp_slot_in_lane(p, first) * p->seg->nstamps + k;
}

bool gp_stamps_begin(gp_rec *r, const gp_batch *o, int *id)
{
    return !o->p->seg->nstamps || o->bare
        || (r->ops->item(r, (*id)++, NULL, 0) && r->ops->stamp(r, stamp_of(o->p, o->first, 0)));
}

bool gp_stamps_after(gp_rec *r, const gp_batch *o, const gp_taskrt *part, int *id)
{
    gp_segmentrt *s = o->p->seg;
    int n = 0, stamp = o->bare ? 0 : stamp_behind(o, part);
    gp_engine e = engine_in(o, part);
    if (!stamp)
        return true;
    /* in the order recorded no deps are needed, and there are as many stamps as stages */
    for (const gp_taskrt *b = o->p->run->plan->unified ? part : s->part; b <= part; b++)
        for (int i = 0; engine_in(o, b) == e && (b->leaf || b->engine != part->engine) && i < b->items; i++)
            s->dep[n++] = b->item + i;
    return r->ops->item(r, (*id)++, s->dep, n) && r->ops->stamp(r, stamp_of(o->p, o->first, stamp));
}

/* ---- reading --------------------------------------------------------- */

static void add_gap(gp_engine_time *t, int64_t from, int64_t to)
{
    if (from >= to)
        return;
    if (t->ngaps == GP_GAPS)           /* the oldest stays one */
        memmove(t->gap, t->gap + 1, sizeof *t->gap * (size_t)--t->ngaps);
    t->gap[t->ngaps++] = (gp_gap){ from, to };
}

/* Launches of several segments are read in the order they end: one that was long fills
 * gaps between those that began after it. */
static void fill_gaps(gp_engine_time *t, int64_t start, int64_t end)
{
    gp_gap late[GP_GAPS];
    int n = 0;
    while (t->ngaps && t->gap[t->ngaps - 1].to > start)
        late[n++] = t->gap[--t->ngaps];
    while (n--) {
        int64_t from = late[n].from > start ? late[n].from : start;
        int64_t to = late[n].to < end ? late[n].to : end;
        if (from >= to) {
            add_gap(t, late[n].from, late[n].to);
            continue;
        }
        t->busy_ns += to - from;
        add_gap(t, late[n].from, from);
        add_gap(t, to, late[n].to);
    }
}

/* Engine e of a device worked from start to end for a launch. A copy engine takes one copy after
 * the other: it has begun when the one before was done. */
static int64_t worked(gp_run *run, int device, gp_engine e, int64_t start, int64_t end)
{
    gp_engine_time *t = &run->engine[device][e];
    pthread_mutex_lock(&run->engine_lock);
    if (!t->used)
        add_gap(t, 0, INT64_MAX);
    int64_t until = t->gap[t->ngaps - 1].from, from = start > until ? start : until;
    fill_gaps(t, start, end);
    t->used = true;
    pthread_mutex_unlock(&run->engine_lock);
    return e == GP_ENGINE_COMPUTE || from > end ? start : from;
}

static void read_stamps(gp_actorrt *p, const gp_inflight *fl, const gp_batch *o)
{
    gp_run *run = p->run;
    gp_segmentrt *s = p->seg;
    const gp_lanert *lane = gp_lane_of(p, fl->first);
    gp_dev *dev = lane->dev;
    int64_t first = dev->backend->stamped(dev, stamp_of(p, fl->first, 0)), before = first;
    for (int i = 0; i < s->nparts; i++) {
        const gp_taskrt *part = &s->part[i];
        int stamp = stamp_behind(o, part);
        if (!stamp)
            continue;
        gp_engine e = engine_in(o, part);
        int64_t at = dev->backend->stamped(dev, stamp_of(p, fl->first, stamp));
        bool begins = e == GP_ENGINE_COPY_IN || e == GP_ENGINE_COPY_PEER;      /* it waits for no other work */
        int64_t start = worked(run, lane->device, e, begins ? first : before, at);
        gp_trace_slice(!run->trace || run->watched ? NULL : s->copy_track[lane - s->lane][e] ? s->copy_track[lane - s->lane][e]
                       : s->stream_track[fl->stream], (gp_trace_what)(GP_TRACE_COPY_IN + (int)e),
                       e != GP_ENGINE_COMPUTE ? gp_engine_name(e)
                       : run->plan->unified ? part->stage->name : p->name,
                       start, at > start ? at : start, fl->first, fl->n);
        before = at > before ? at : before;
    }
    gp_hist_add(s->time, (before - first) / fl->n, (uint64_t)fl->n);
}

void gp_stamps_read(gp_actorrt *p, const gp_inflight *fl)
{
    gp_run *run = p->run;
    gp_segmentrt *s = p->seg;
    if (!run->options.timed || fl->stream == GP_NO_STREAM || !fl->n)
        return;
    bool stamps = s->nstamps && fl->stream >= 0;
    uint64_t made = gp_actor_made(p, fl->first + (uint64_t)fl->n) - gp_actor_made(p, fl->first);
    int device = gp_lane_of(p, fl->first)->device;
    gp_batch o = { .p = p, .first = fl->first, .n = fl->stream == GP_RESIDENT ? 1 : fl->n, .irregular = fl->irregular,
                   .check = fl->check };
    pthread_mutex_lock(&run->engine_lock);
    for (int i = 0; i < s->nparts; i++) {
        const gp_taskrt *part = &s->part[i];
        gp_engine_time *t = &run->engine[device][part->engine];
        if (!part->stage)
            *(engine_in(&o, part) == part->engine ? &t->bytes : &t->by_kernels)
                += gp_copy_bytes(run->plan, part->task) * (part->engine == GP_ENGINE_COPY_OUT ? made : (uint64_t)fl->n);
    }
    for (int e = 0; e < GP_ENGINES; e++)
        run->engine[device][e].estimated |= !stamps;
    pthread_mutex_unlock(&run->engine_lock);
    if (stamps) {
        read_stamps(p, fl, &o);
        return;
    }
    int64_t now = gp_now_ns();         /* from when it was queued until it was seen to be done */
    worked(run, device, GP_ENGINE_COMPUTE, fl->queued_ns, now);
    gp_hist_add(s->time, (now - fl->queued_ns) / fl->n, (uint64_t)fl->n);
    if (run->trace)
        gp_trace_slice(s->stream_track[fl->stream >= 0 ? fl->stream : 0], GP_TRACE_COMPUTE, p->name,
                       fl->queued_ns, now, fl->first, fl->n);
}
