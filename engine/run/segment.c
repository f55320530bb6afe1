/* segment.c - a segment is set up and taken down: its execs, or what stays on the device.
 *
 * launcher.c queues its launches, reaper.c waits for them, and launch_body.c says what a launch does. */
#include "compile/plan.h"
#include "run/measure.h"
#include "run/latency.h"

/* ---- errors ---------------------------------------------------------- */

/* Says which frames a lost device took with it: [from, end), which may be none. */
static void say_lost(const gp_actorrt *p, uint64_t from, uint64_t end, gp_errs *errs)
{
    char frames[80] = " before frame 0";
    if (p->run->options.isolate)       /* the stage said why */
        return;
    if (from < end)
        snprintf(frames, sizeof frames, "; frames %llu to %llu are not finished",
                 (unsigned long long)gp_actor_number(p, from), (unsigned long long)gp_actor_number(p, end - 1));
    bool several = p->run->graph->ndevices > 1;
    char place[24];
    gp_fail(errs, GP_E_RUN, gp_actor_at(p), "the device failed in segment '%s'%s%s%s; "
            "to learn which stage it was: gpipe run --isolate %s", p->name, several ? ", which is on " : "",
            several ? gp_place_text(p->run->plan, p->segment->place, place) : "", frames, p->run->graph->file);
}

void gp_segment_fail_frame(gp_threadrt *t, uint64_t f)
{
    gp_run_fail(t->run, &t->errs);
    gp_actor_failed(t->actor, f);
}

void gp_segment_fault(gp_threadrt *t, uint64_t end)
{
    if (t->errs.failed) {
        say_lost(t->actor, atomic_load(&t->actor->seg->reaped), end, &t->errs);
        gp_run_fail(t->run, &t->errs);
    }
    gp_run_level(t->run, 2);
}

/* ---- setting up ------------------------------------------------------ */

bool gp_segment_direct(const gp_actorrt *p, int stream, gp_body body, void *arg, gp_errs *errs)
{
    int number;
    gp_dev *dev = gp_stream_lane(p, stream, &number)->dev;
    return dev->backend->direct(dev, number, body, arg, errs);
}

int gp_segment_wait(const gp_actorrt *p, int stream, gp_sync sync, gp_errs *errs)
{
    int number;
    gp_dev *dev = gp_stream_lane(p, stream, &number)->dev;
    return dev->backend->wait(dev, number, sync, errs);
}

/* What carries from frame to frame is on one device. */
static bool reset(gp_actorrt *p, gp_errs *errs)
{
    return gp_segment_direct(p, 0, gp_segment_reset, p, errs) && gp_segment_wait(p, 0, GP_SYNC_BLOCK, errs) == 1;
}

/* Tells the parts that make what is carried inside the segment. Is there any? */
static bool find_carried(gp_actorrt *p)
{
    gp_segmentrt *s = p->seg;
    bool any = false;
    for (int i = 0; i < s->nparts; i++) {
        gp_taskrt *part = &s->part[i];
        if (!part->stage || !gp_stage_circles_back(part->stage))
            continue;
        int made = 0;
        while (s->part[made].stage != &p->run->graph->stage[part->stage->last])
            made++;
        part->next_carrier = s->part[made].carriers, s->part[made].carriers = part, part->carried = &s->part[made];
        any = true;
    }
    return any;
}

/* Loads the kernels of the first slot's launch on each device, and forgets what a library of a stage
 * may have left in its carried state. */
static bool warm_up(gp_actorrt *p, gp_errs *errs)
{
    gp_run *run = p->run;
    gp_place place = p->segment->place;
    bool ok = true, lost = false;
    atomic_store(&run->warming, p);
    for (int l = 0; l < place.lanes && ok; l++) {
        const gp_lanert *lane = &p->seg->lane[l];
        gp_batch once = { .p = p, .first = (uint64_t)(l * place.run), .n = 1, .bare = true };
        ok = lane->dev->backend->load(lane->dev, gp_segment_record, &once, errs) && (l || reset(p, errs));
        lost = !ok && lane->dev->backend->query(lane->dev, lane->stream0, errs) < 0;   /* else the stage said why */
    }
    atomic_store(&run->warming, NULL);
    atomic_fetch_add(&run->steps, 1);
    if (lost)
        say_lost(p, 0, 0, errs);
    return ok;
}

/* Makes what stays on the device, of the body of every slot. */
static bool make_resident(gp_actorrt *p, gp_errs *errs)
{
    gp_run *run = p->run;
    gp_segmentrt *s = p->seg;
    int slots = p->segment->period;
    gp_batch *slot = GP_NEW(&run->arena, gp_batch, slots);
    void **arg = GP_NEW(&run->arena, void *, slots);
    for (int i = 0; i < slots; i++) {
        slot[i] = (gp_batch){ .p = p, .first = (uint64_t)i, .n = 1, .again = true, .bare = true };
        arg[i] = &slot[i];
    }
    s->resident = run->dev[0]->backend->resident_create(run->dev[0], gp_segment_record, arg, slots,
                                            p->segment->depth, run->plan->nsegments, errs);
    return s->resident;
}

/* Its devices, on which it takes its streams, orders and stamps. */
static void take_lanes(gp_actorrt *p, gp_device_use *used)
{
    gp_segmentrt *s = p->seg;
    gp_place place = p->segment->place;
    s->lane = GP_NEW(&p->run->arena, gp_lanert, place.lanes);
    s->order0 = used[place.index].orders;
    for (int l = 0; l < place.lanes; l++) {
        gp_device_use *u = &used[place.index + l];
        s->lane[l] = (gp_lanert){ .dev = p->run->dev[place.index + l], .device = place.index + l, .stream0 = u->streams,
                                  .stamp0 = u->stamps };
        u->streams += p->segment->streams;
    }
}

static bool take_stamps(gp_actorrt *p, gp_device_use *used, gp_errs *errs)
{
    int n = gp_stamps_init(p);
    bool ok = true;
    for (int l = 0; l < p->segment->place.lanes && n && ok; l++) {
        const gp_lanert *lane = &p->seg->lane[l];
        used[lane->device].stamps += n;
        ok = lane->dev->backend->stamps(lane->dev, used[lane->device].stamps, errs);
    }
    return ok;
}

/* What a stage may record of a frame: an exec has a node for each, and there is an exec for each row of slots. */
static int64_t most_in_exec(const gp_segment *seg)
{
    enum { LEAST = 64, ALL = 1 << 16 };
    int64_t frames = seg->period;      /* of the execs of one size */
    for (int n = 2; n <= seg->batch; n *= 2)
        frames += seg->period;
    return ALL / frames > LEAST ? ALL / frames : LEAST;
}

/* The first frame of exec `i` of those of 2^k frames. */
static uint64_t exec_first(const gp_segment *seg, int k, int i)
{
    int n = 1 << k, per_turn = seg->depth / n;
    return (uint64_t)(i / per_turn * seg->depth + i % per_turn * n);
}

/* How many there are of 2^k frames. */
static int execs_of(const gp_segment *seg, int k)
{
    return seg->period / seg->depth * (seg->depth >> k);
}

/* The plan does not know how many bytes they take. */
static void say_too_many(const gp_actorrt *p, int built, gp_errs *errs)
{
    const gp_segment *seg = p->segment;
    long long all = gp_segment_execs(seg);
    if (all > 1 && errs->n && errs->e[errs->n - 1].code == GP_E_RESOURCE)
        gp_fail(errs, GP_E_RESOURCE, gp_actor_at(p), "memory has room for %d of the %lld graphs of segment '%s', one for each "
                "batch that its slots can have: lower the largest 'depth' of its buffers (%d), or set 'launch: stream'", built,
                all, p->name, seg->period / seg->place.lanes);
}

static bool build_execs(gp_actorrt *p, gp_errs *errs)
{
    const gp_segment *seg = p->segment;
    gp_segmentrt *s = p->seg;
    int built = 0;
    while (1 << s->sizes <= seg->batch)
        s->sizes++;
    s->exec = GP_NEW(&p->run->arena, gp_exec **, s->sizes);
    for (int k = 0; k < s->sizes; k++) {
        int n = 1 << k;
        s->exec[k] = GP_NEW(&p->run->arena, gp_exec *, seg->period / n + 1);
        for (int i = 0; i < execs_of(seg, k); i++, built++) {
            gp_batch o = { .p = p, .first = exec_first(seg, k, i), .n = n, .again = true };
            const gp_lanert *lane = gp_lane_of(p, o.first);
            if (atomic_load(&p->run->level))       /* there may be thousands */
                return false;
            s->exec[k][i] = lane->dev->backend->build(lane->dev, lane->stream0, gp_segment_record, &o, errs);
            if (!s->exec[k][i])
                return say_too_many(p, built, errs), false;
        }
    }
    return true;
}

/* Notes which copies there need not be, and what a launch ends with. */
static void note_mapped(gp_actorrt *p)
{
    gp_run *run = p->run;
    gp_segmentrt *s = p->seg;
    bool any = false;
    for (int i = 0; i < s->nparts; i++)
        s->part[i].last = true;
    for (int i = 0; i < s->nparts; i++) {
        const gp_task *t = s->part[i].task;
        for (int d = 0; d < t->ndeps; d++)
            s->part[s->part_of[t->dep[d]]].last = false;
        any |= t->copying != GP_COPY_DMA;
    }
    if (!any || run->options.poison || run->options.check_kernels || run->options.check_finite || run->options.isolate
        || run->options.ncached)
        return;
    s->mapped = GP_NEW(&run->arena, const gp_task *, run->plan->nrings);
    for (int i = 0; i < s->nparts; i++) {
        const gp_task *t = s->part[i].task;
        for (int k = 0; k < t->nin && t->copying == GP_COPY_MAPPED; k++)
            s->mapped[t->op == GP_TASK_COPY_IN ? t->out[k] : t->in[k]] = t;
    }
}

/* Does a task read frames of which consecutive ones may not lie side by side? */
static bool reads_carried(const gp_plan *plan, const gp_task *t)
{
    bool is = false;
    for (int i = 0; i < t->nin; i++)
        is |= t->in[i] >= 0 && plan->ring[t->in[i]].before >= 0;
    return is;
}

static void make_parts(gp_actorrt *p)
{
    gp_run *run = p->run;
    const gp_plan *plan = run->plan;
    const gp_segment *seg = p->segment;
    gp_segmentrt *s = p->seg;
    int infos = 0;
    s->part = GP_NEW(&run->arena, gp_taskrt, seg->ntasks);
    s->part_of = GP_NEW(&run->arena, int, plan->ntasks);
    for (gp_task_turn now = GP_TURN_BEFORE; now <= GP_TURN_BEHIND; now++) {
        if (now == GP_TURN_IN)
            s->circle = s->nparts;
        for (int i = 0; i < seg->ntasks; i++) {
            gp_taskrt *part = &s->part[s->nparts];
            if (plan->task[seg->task[i]].turn != now)
                continue;
            part->task = &plan->task[seg->task[i]];
            const gp_stage *st = part->stage = part->task->stage >= 0 ? &run->graph->stage[part->task->stage] : NULL;
            part->info = st && st->frame_info ? infos++ : 0;
            part->order = st && gp_stage_takes_turns(st) && !part->task->follows ? s->order0 + s->ordered++ : -1;
            part->at_once = now != GP_TURN_IN && !reads_carried(plan, part->task)
                         && (!st || st->regroups || (st->batched && part->order < 0));
            part->item = GP_NEW(&run->arena, int, seg->batch);
            s->part_of[seg->task[i]] = s->nparts++;
        }
        if (now == GP_TURN_IN)
            s->circle_end = s->nparts;
    }
}

/* Origins are numbers of buffers before stages were fused, of which there were more. */
static int origins_end(const gp_actorrt *p)
{
    int end = 0;
    for (int i = 0; i < p->nin; i++)
        for (int l = 0; l < p->in[i].ring->buffer->norigins; l++)
            end = p->in[i].ring->buffer->origins[l] < end ? end : p->in[i].ring->buffer->origins[l] + 1;
    return end;
}

/* Which inputs are in each buffer: those whose origins all are (metadata.c), in that order, whatever is fused. */
static void find_from(gp_actorrt *p)
{
    const gp_graph *g = p->run->graph;
    gp_segmentrt *s = p->seg;
    gp_arena *a = &p->run->arena;
    if (p->nin < 2 || p->regroup)
        return;
    const int end = origins_end(p);        /* what no input has does not matter */
    int *head = GP_NEW(a, int, end), *next = GP_NEW(a, int, p->nin + 1), *seen = GP_NEW(a, int, end);
    s->from = GP_NEW(a, const int *, g->nbuffers);
    for (int i = p->nin - 1; i >= 0; i--) {        /* head, next: numbers of inputs by their first origin, plus 1; 0: none */
        const gp_buffer *b = p->in[i].ring->buffer;
        if (b->norigins)
            next[i + 1] = head[b->origins[0]], head[b->origins[0]] = i + 1;
    }
    for (int k = 0; k < s->nparts; k++) {
        const gp_stage *st = s->part[k].stage;
        const gp_buffer *b;
        for (int o = 0; st && o < st->nout; o++) {
            int *from = GP_NEW(a, int, p->nin + 1), n = 0;
            b = &g->buffer[st->out[o]];
            for (int l = 0; l < b->norigins; l++)
                if (b->origins[l] < end)
                    seen[b->origins[l]] = st->out[o] + 1;
            for (int l = 0; l < b->norigins; l++)
                for (int i = b->origins[l] < end ? head[b->origins[l]] : 0; i; i = next[i]) {
                    const gp_buffer *in = p->in[i - 1].ring->buffer;
                    int all = 0;
                    while (all < in->norigins && seen[in->origins[all]] == st->out[o] + 1)
                        all++;
                    if (all == in->norigins)
                        from[n++] = i - 1;
                }
            from[n] = -1;
            s->from[st->out[o]] = n ? from : NULL;
        }
    }
}

bool gp_segment_init(gp_actorrt *p, gp_device_use *used, gp_errs *errs)
{
    gp_run *run = p->run;
    const gp_segment *seg = p->segment;
    gp_arena *a = &run->arena;
    gp_segmentrt *s = p->seg = GP_NEW_LINES(a, gp_segmentrt, 1);
    int deps = 1;

    gp_eventcount_init(&s->done);
    s->done.wakes = gp_wakes_new(run);
    for (int o = 0; o < p->nout; o++)
        s->bytes += gp_bytes(&p->out[o]->buffer->type);
    take_lanes(p, used);
    const gp_backend *be = s->lane[0].dev->backend;
    s->type = GP_NEW(a, gp_type, run->graph->nbuffers);
    s->hole = GP_NEW(a, gp_hole, run->graph->nbuffers);
    s->gaps = GP_NEW(a, uint64_t, run->graph->nbuffers);
    s->behind = GP_NEW(a, unsigned char, run->graph->nbuffers);
    gp_frame_set_whole(p);
    make_parts(p);
    find_from(p);
    for (int i = 0; i < s->nparts; i++)
        deps += s->part[i].task->ndeps;
    used[seg->place.index].orders += s->ordered;
    note_mapped(p);
    s->most = most_in_exec(seg);
    gp_ahead_begin(p);
    bool carries = find_carried(p);
    s->dep = GP_NEW(a, int, ((size_t)deps + (size_t)seg->ntasks) * (size_t)seg->batch + GP_REC_STAMPS + 1);
    if (!take_stamps(p, used, errs))
        return false;
    if (run->graph->latency_ns && !p->regroup)
        gp_latency_init(p);
    if (run->options.timed)
        s->time = GP_NEW(a, gp_hist, 1);
    s->busy = GP_NEW(a, atomic_bool, seg->streams * seg->place.lanes);
    s->ninflight = (uint64_t)seg->depth + 1;
    s->inflight = GP_NEW(a, gp_inflight, s->ninflight);
    bool ready = be->load ? warm_up(p, errs) : !carries || reset(p, errs);
    if (!ready || !gp_unwritten_init(p, errs))
        return false;
    if (run->graph->launch == GP_LAUNCH_STREAM || run->options.isolate || p->regroup || seg->each_shape
        || seg->uncaptured >= 0)
        return true;
    if (run->graph->launch == GP_LAUNCH_PERSISTENT && be->resident_create)
        return make_resident(p, errs);
    if (seg->sparse)
        return true;
    return build_execs(p, errs);
}

void gp_segment_fini(gp_actorrt *p)
{
    gp_segmentrt *s = p->seg;
    gp_errs ignored = { .n = 0 };
    if (!s)
        return;
    for (int i = 0; s->lane && i < p->segment->streams * p->segment->place.lanes; i++)         /* it may still read and write */
        gp_segment_wait(p, i, GP_SYNC_BLOCK, &ignored);
    for (int k = 0; k < s->sizes && s->exec; k++)
        for (int i = 0; s->exec[k] && i < p->segment->period / (1 << k) + 1; i++)
            if (s->exec[k][i]) {
                gp_dev *dev = gp_lane_of(p, exec_first(p->segment, k, i))->dev;
                dev->backend->discard(dev, s->exec[k][i]);
            }
    if (s->resident)
        s->lane[0].dev->backend->resident_destroy(s->resident);
    gp_unwritten_fini(p);
    gp_latency_fini(p);
    gp_eventcount_fini(&s->done);
}

void gp_segment_stop_resident(gp_actorrt *p)
{
    if (p->seg && p->seg->resident)
        p->seg->lane[0].dev->backend->resident_stop(p->seg->resident);
}

uint64_t gp_segment_computed(const gp_actorrt *p)
{
    uint64_t ns = 0;
    for (int i = 0; p->segment && i < p->segment->streams * p->segment->place.lanes; i++) {
        int number;
        gp_dev *dev = gp_stream_lane(p, i, &number)->dev;
        ns += dev->backend->computed ? dev->backend->computed(dev, number) : 0;
    }
    return ns;
}
