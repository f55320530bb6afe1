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
    return s->engine_stamp[e];
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
        else if (!s->engine_stamp[part->engine])
            s->engine_stamp[part->engine] = s->nstamps++;
    }
    return s->nstamps * (p->segment->depth / p->segment->place.lanes);
}

static int stamp_of(const gp_actorrt *p, uint64_t first, int k)
{
    return gp_lane_of(p, first)->stamp0 + gp_slot_in_lane(p, first) * p->seg->nstamps + k;
}

bool gp_stamps_begin(gp_rec *r, const gp_batch *o, int *id)
{
    gp_segmentrt *s = o->p->seg;
    s->stamps = 0;
    if (!s->nstamps || o->bare)
        return true;
    s->stamp[s->stamps++] = *id;
    return r->ops->item(r, (*id)++, NULL, 0) && r->ops->stamp(r, stamp_of(o->p, o->first, 0));
}

/* Frames of a circle are done one by one, and have stamps of their own on the CPU back end: how many? */
static int stamped_frames(const gp_actorrt *p, const gp_taskrt *part, int n)
{
    return p->run->plan->unified && part->task->turn == GP_TURN_IN ? n : 1;
}

bool gp_stamps_after(gp_rec *r, const gp_batch *o, const gp_taskrt *part, int j, int *id)
{
    gp_segmentrt *s = o->p->seg;
    int n = 0, frames = stamped_frames(o->p, part, o->n), stamp = o->bare ? 0 : stamp_behind(o, part);
    gp_engine e = engine_in(o, part);
    if (!stamp || (frames == 1 && j < o->n - 1))
        return true;
    bool unified = o->p->run->plan->unified;
    /* in the order recorded no deps are needed, and there are as many stamps as stages */
    for (const gp_taskrt *b = s->part; b <= part && !unified; b++)
        for (int i = 0; engine_in(o, b) == e && (b->leaf || b->engine != part->engine) && i < b->items; i++)
            s->dep[n++] = b->item[i];
    if (!unified)
        s->stamp[s->stamps++] = *id;
    return r->ops->item(r, (*id)++, s->dep, n)
        && r->ops->stamp(r, stamp_of(o->p, o->first + (uint64_t)(frames > 1 ? j : 0), stamp));
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

/* Of frame j of the launch, or of all; `before`: the latest stamp so far. */
static void read_stamp(gp_actorrt *p, const gp_inflight *fl, const gp_batch *o, const gp_taskrt *part, int j,
                       int64_t first, int64_t *before)
{
    gp_run *run = p->run;
    gp_segmentrt *s = p->seg;
    const gp_lanert *lane = gp_lane_of(p, fl->first);
    gp_dev *dev = lane->dev;
    gp_engine e = engine_in(o, part);
    int64_t at = dev->backend->stamped(dev, stamp_of(p, fl->first + (uint64_t)j, stamp_behind(o, part)));
    bool begins = e == GP_ENGINE_COPY_IN || e == GP_ENGINE_COPY_PEER, all = stamped_frames(p, part, fl->n) == 1;
    int64_t start = worked(run, lane->device, e, begins ? first : *before, at);     /* `begins` waits for no other work */
    gp_trace_slice(!run->trace || run->watched ? NULL : s->copy_track[lane - s->lane][e] ? s->copy_track[lane - s->lane][e]
                   : s->stream_track[fl->stream], (gp_trace_what)(GP_TRACE_COPY_IN + (int)e),
                   e != GP_ENGINE_COMPUTE ? gp_engine_name(e)
                   : run->plan->unified ? part->stage->name : p->name,
                   start, at > start ? at : start, fl->first + (uint64_t)j, all ? fl->n : 1);
    *before = at > *before ? at : *before;
}

static void read_stamps(gp_actorrt *p, const gp_inflight *fl, const gp_batch *o)
{
    gp_segmentrt *s = p->seg;
    gp_dev *dev = gp_lane_of(p, fl->first)->dev;
    int64_t first = dev->backend->stamped(dev, stamp_of(p, fl->first, 0)), before = first;
    for (int i = 0, end; i < s->nparts; i = end) {
        bool circle = i == s->circle && i < s->circle_end;
        int n = stamped_frames(p, &s->part[i], fl->n);
        end = circle ? s->circle_end : i + 1;
        for (int j = 0; j < n; j++)
            for (int k = i; k < end; k++)
                if (stamp_behind(o, &s->part[k]))
                    read_stamp(p, fl, o, &s->part[k], j, first, &before);
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
