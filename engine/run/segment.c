/* segment.c - the launcher and the reaper of a segment.
 *
 * The launcher takes the longest row of consecutive ready frames whose length is a
 * power of two and whose first slot is a multiple of it, and queues it on an idle
 * stream: as an exec built before frame 0 (launch: graph), or directly (launch: stream,
 * irregular launches, see frame.h, and the first whole frame, see unwritten.c). What a
 * launch does is in launch.c. The reaper waits for the launches
 * in flight in frame order, retires them and publishes. Neither holds a lock while
 * it calls the device.
 *
 * Invariant: frames [reaped, next) are in flight, at most `depth` of them, so
 * that slots inside the segment are free when they are written again. */
#include <sched.h>
#include <string.h>
#include <time.h>
#include "run/measure.h"
#include "run/nvtx.h"
#include "run/regroup.h"
#include "run/segment.h"

/* ---- setting up ------------------------------------------------------ */

/* Says which frames a lost device took with it: [from, end), which may be none. */
static void say_lost(const gp_actorrt *p, uint64_t from, uint64_t end, gp_errs *errs)
{
    char frames[80] = " before frame 0";
    if (p->run->options.isolate)       /* the stage said why */
        return;
    if (from < end)
        snprintf(frames, sizeof frames, "; frames %llu to %llu are not finished",
                 (unsigned long long)from, (unsigned long long)end - 1);
    gp_fail(errs, GP_E_RUN, gp_actor_at(p), "the device failed in segment '%s'%s; "
            "to learn which stage it was: gpipe run --isolate %s", p->name, frames,
            p->run->graph->file);
}

static bool reset(gp_actorrt *p, gp_errs *errs)
{
    const gp_backend *be = p->run->dev->backend;
    return be->direct(p->run->dev, p->seg->stream0, gp_segment_reset, p, errs)
        && be->wait(p->run->dev, p->seg->stream0, GP_SYNC_BLOCK, errs) == 1;
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
        while (s->part[made].stage != &p->run->graph->stage[p->run->graph->buffer[part->stage->in[0]].producer.stage])
            made++;
        part->next = s->part[made].lets, s->part[made].lets = part;
        any = true;
    }
    return any;
}

/* Loads the kernels of the first slot's launch, and forgets what a library of a stage
 * may have left in its carried state. */
static bool warm_up(gp_actorrt *p, gp_errs *errs)
{
    gp_run *run = p->run;
    const gp_backend *be = run->dev->backend;
    gp_batch once = { .p = p, .n = 1, .bare = true };
    int stream = p->seg->stream0;
    atomic_store(&run->warming, p);
    bool ok = be->load(run->dev, gp_segment_record, &once, errs) && reset(p, errs);
    atomic_store(&run->warming, NULL);
    atomic_fetch_add(&run->steps, 1);
    if (!ok && be->query(run->dev, stream, errs) < 0)      /* else the stage said why */
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
    s->resident = run->dev->backend->resident_create(run->dev, gp_segment_record, arg, slots,
                                            p->segment->depth, run->plan->nsegments, errs);
    return s->resident;
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

bool gp_segment_init(gp_actorrt *p, int stream0, int order0, int *stamps, gp_errs *errs)
{
    gp_run *run = p->run;
    const gp_plan *plan = run->plan;
    const gp_segment *seg = p->segment;
    gp_arena *a = &run->arena;
    gp_segmentrt *s = p->seg = GP_NEW_LINES(a, gp_segmentrt, 1);
    const gp_backend *be = run->dev->backend;
    int deps = 1, infos = 0;

    gp_eventcount_init(&s->done);
    for (int o = 0; o < p->nout; o++)
        s->bytes += gp_bytes(&p->out[o]->buffer->type);
    s->stream0 = stream0, s->order0 = order0;
    s->type = GP_NEW(a, gp_type, run->graph->nbuffers);
    s->hole = GP_NEW(a, gp_hole, run->graph->nbuffers);
    gp_frame_set_whole(p);
    s->part = GP_NEW(a, gp_taskrt, seg->ntasks);
    s->part_of = GP_NEW(a, int, plan->ntasks);
    s->nparts = seg->ntasks;
    for (int i = 0; i < seg->ntasks; i++) {
        gp_taskrt *part = &s->part[i];
        part->task = &plan->task[seg->task[i]];
        part->stage = part->task->stage >= 0 ? &run->graph->stage[part->task->stage] : NULL;
        part->info = part->stage && part->stage->frame_info ? infos++ : 0;
        part->order = part->stage && (gp_stage_in_order(part->stage) || gp_stage_circles_back(part->stage))
                    ? s->order0 + s->ordered++ : -1;
        s->part_of[seg->task[i]] = i;
        deps += part->task->ndeps;
    }
    s->most = most_in_exec(seg);
    bool carries = find_carried(p);
    s->dep = GP_NEW(a, int, ((size_t)deps + (size_t)seg->ntasks) * (size_t)seg->batch + 1);
    s->stamp0 = *stamps;
    int stamped = gp_stamps_init(p);
    *stamps += stamped;
    if (stamped && !be->stamps(run->dev, *stamps, errs))
        return false;
    if (run->options.timed)
        s->time = GP_NEW(a, gp_hist, 1);
    s->busy = GP_NEW(a, atomic_bool, seg->streams);
    s->ninflight = (uint64_t)seg->depth + 1;
    s->inflight = GP_NEW(a, gp_inflight, s->ninflight);
    bool ready = be->load ? warm_up(p, errs) : !carries || reset(p, errs);
    if (!ready || !gp_unwritten_init(p, errs))
        return false;
    if (run->graph->launch == GP_LAUNCH_STREAM || run->options.isolate || p->regroup)
        return true;
    if (run->graph->launch == GP_LAUNCH_PERSISTENT && be->resident_create)
        return make_resident(p, errs);

    while (1 << s->sizes <= seg->batch)
        s->sizes++;
    s->exec = GP_NEW(a, gp_exec **, s->sizes);
    for (int k = 0; k < s->sizes; k++) {
        int n = 1 << k, per_turn = seg->depth / n;
        s->exec[k] = GP_NEW(a, gp_exec *, seg->period / n + 1);
        for (int turn = 0; turn < seg->period / seg->depth; turn++)
            for (int i = 0; i < per_turn; i++) {
                gp_batch o = { .p = p, .first = (uint64_t)(turn * seg->depth + i * n), .n = n,
                               .again = true };
                gp_exec **x = &s->exec[k][turn * per_turn + i];
                if (!(*x = be->build(run->dev, gp_segment_record, &o, errs)))
                    return false;
            }
    }
    return true;
}

void gp_segment_fini(gp_actorrt *p)
{
    gp_segmentrt *s = p->seg;
    gp_errs ignored = { .n = 0 };
    if (!s)
        return;
    for (int i = 0; i < p->segment->streams; i++)      /* it may still read and write */
        p->run->dev->backend->wait(p->run->dev, s->stream0 + i, GP_SYNC_BLOCK, &ignored);
    for (int k = 0; k < s->sizes && s->exec; k++)
        for (int i = 0; s->exec[k] && i < p->segment->period / (1 << k) + 1; i++)
            if (s->exec[k][i])
                p->run->dev->backend->discard(p->run->dev, s->exec[k][i]);
    if (s->resident)
        p->run->dev->backend->resident_destroy(s->resident);
    gp_unwritten_fini(p);
    gp_eventcount_fini(&s->done);
}

void gp_segment_stop_resident(gp_actorrt *p)
{
    if (p->seg && p->seg->resident)
        p->run->dev->backend->resident_stop(p->seg->resident);
}

uint64_t gp_segment_computed(const gp_actorrt *p)
{
    uint64_t ns = 0;
    gp_dev *d = p->run->dev;
    for (int i = 0; p->segment && d->backend->computed && i < p->segment->streams; i++)
        ns += d->backend->computed(d, p->seg->stream0 + i);
    return ns;
}

/* ---- the launcher ---------------------------------------------------- */

static int idle_stream(const gp_actorrt *p)
{
    for (int i = 0; i < p->segment->streams; i++)
        if (!atomic_load(&p->seg->busy[i]))
            return i;
    return -1;
}

typedef struct gp_asking { gp_actorrt *p; gp_look look; int n; } gp_asking;

static bool may_launch(void *arg)
{
    gp_asking *a = arg;
    gp_actorrt *p = a->p;
    uint64_t next = atomic_load(&p->next);
    int room = p->segment->depth - (int)(next - atomic_load(&p->seg->reaped));
    int most = p->run->options.isolate ? 1 : p->segment->batch;
    int first = atomic_load(&p->seg->first);
    a->look = first == GP_FIRST_FAILED ? GP_LOOK_OVER
            : gp_actor_look(p, next, room < most ? room : most, &a->n);
    if (a->look == GP_LOOK_GO)
        return idle_stream(p) >= 0 && first != GP_FIRST_LAUNCHED
            && !(p->run->options.isolate && room < p->segment->depth);
    return a->look != GP_LOOK_WAIT;
}

/* The longest aligned power of two of frames from f, at most n. */
static int aligned(const gp_actorrt *p, uint64_t f, int n)
{
    int slot = (int)(f % (uint64_t)p->segment->depth), m = 1;
    while (2 * m <= n && slot % (2 * m) == 0 && slot + 2 * m <= p->segment->depth)
        m *= 2;
    return m;
}

/* Cuts [f, f + n) before the first frame that is not whole, or behind f when f is not. */
static int alike(const gp_actorrt *p, uint64_t f, int n)
{
    for (int i = 0; i < n; i++)
        if (!gp_frame_is_whole(p, f + (uint64_t)i))
            return i ? i : 1;
    return n;
}

static void poison_outputs(gp_actorrt *p, uint64_t f, int n)
{
    uint64_t end = gp_actor_made(p, f + (uint64_t)n) + !n;
    if (p->regroup && gp_firing_carries(p->regroup))
        return;                        /* it may need the frame that the slot has */
    for (int i = 0; i < p->nout; i++) {
        const gp_type *t = &p->out[i]->buffer->type;
        for (uint64_t k = gp_actor_made(p, f); k < end && !p->out[i]->ring->place.device; k++)
            memset(gp_slot(p->out[i], k), gp_poison(t->dtype), gp_bytes(t));
    }
}

typedef enum gp_launched { LAUNCHED, NOT_LAUNCHED, DEVICE_LOST } gp_launched;

/* Queues n frames from f; puts them in flight. NOT_LAUNCHED: the frame cannot be
 * computed (a shape or an argument of a partial frame), the device is well.
 * `failed`: that was so, and the frame goes on as a hole. */
static gp_launched launch(gp_threadrt *t, uint64_t f, int n, bool failed)
{
    gp_actorrt *p = t->actor;
    gp_run *run = p->run;
    gp_segmentrt *s = p->seg;
    const gp_backend *be = run->dev->backend;
    gp_batch o = { .p = p, .first = f, .n = n, .irregular = failed || (!p->regroup && !gp_frame_is_whole(p, f)),
                   .again = f >= (uint64_t)p->segment->period };
    bool gathers = p->gathers;
    if (gathers) {
        o.emits = gp_gather_emits(p, f, failed ? 1 : n) && !(failed && !s->gathered.added);
        o.irregular = failed || (n && gp_meta_of(p->in[0].ring, f)->hole);
    }
    int stream = idle_stream(p);
    bool ok;

    o.check = !o.irregular && atomic_load(&s->first) == GP_FIRST_DUE;
    if (o.irregular && !p->regroup && !gp_frame_set_irregular(p, f, failed, &t->errs))
        return NOT_LAUNCHED;
    bool resident = s->resident && !o.irregular && !o.check && (!run->options.ncached || o.again);
    if (resident)
        stream = GP_RESIDENT;
    else if (o.irregular && (p->regroup ? !gathers : !gp_frame_needs_device(p)))
        stream = GP_NO_STREAM;
    for (int i = 0; i < n; i++)
        gp_frame_write_infos(p, f + (uint64_t)i);
    if (run->options.poison && !run->plan->unified)
        poison_outputs(p, f, n);
    if (stream >= 0)
        atomic_store(&s->busy[stream], true);
    gp_nvtx_push(p, f);
    int64_t start = gp_measure_now(run);
    if (run->watched)
        be->tag(run->dev, gp_trace_tag(p, f, n));
    uint64_t number = 0;
    if (stream < 0) {
        for (int i = 0; resident && i < n; i++)
            number = be->resident_submit(s->resident, (int)((f + (uint64_t)i) % (uint64_t)p->segment->period));
        ok = true;
    } else if (o.irregular || o.check || !s->exec || (run->options.ncached && !o.again)) {
        ok = be->direct(run->dev, s->stream0 + stream, gp_segment_record, &o, &t->errs);
        if (!ok && be->wait(run->dev, s->stream0 + stream, GP_SYNC_BLOCK, &t->errs) == 1) {
            gp_nvtx_pop(p);
            if (run->watched)
                be->tag(run->dev, 0);
            atomic_store(&s->busy[stream], false);
            return NOT_LAUNCHED;
        }
    } else {
        int k = 0, slot = (int)(f % (uint64_t)p->segment->period), d = p->segment->depth;
        while (1 << k < n)
            k++;
        ok = be->launch(run->dev, s->stream0 + stream,
                        s->exec[k][slot / d * (d / n) + slot % d / n], &t->errs);
    }
    gp_nvtx_pop(p);
    if (run->watched)
        be->tag(run->dev, 0);
    gp_measure_launch(t, start, f, n);
    if (!ok)
        return DEVICE_LOST;
    if (o.check)
        atomic_store(&s->first, GP_FIRST_LAUNCHED);
    if (gathers)                       /* while the device works */
        gp_gather_note(p, f, n, failed, o.emits);
    else if (p->regroup)
        gp_regroup_write_metas(p, f, n, failed);
    for (int i = 0; !p->regroup && i < n; i++)
        gp_frame_write_metas(p, f + (uint64_t)i);
    if (o.irregular)
        gp_frame_set_whole(p);
    uint64_t k = atomic_load(&s->issued);
    s->inflight[k % s->ninflight] = (gp_inflight){ f, n, stream, o.irregular, o.check, number, start };
    /* In this order: who sees a launch that was issued sees its frames below `next`, so that
       reaped <= next holds for the reaper, and what it says of a lost device is true. */
    atomic_store(&p->next, f + (uint64_t)n);
    atomic_store(&s->issued, k + 1);
    gp_eventcount_wake(&s->done);
    return LAUNCHED;
}

/* Frame f fails, and with it the run; what is before it comes out. */
static void fail_frame(gp_threadrt *t, uint64_t f)
{
    gp_run_fail(t->run, &t->errs);
    gp_actor_failed(t->actor, f);
}

/* The device is lost. It tells only one of its threads why, and that one
 * reports; frames [reaped, end) are not finished. */
static void fault(gp_threadrt *t, uint64_t end)
{
    if (t->errs.failed) {
        say_lost(t->actor, atomic_load(&t->actor->seg->reaped), end, &t->errs);
        gp_run_fail(t->run, &t->errs);
    }
    gp_run_level(t->run, 2);
}

/* Are there frames at the end that make one, although they are too few? */
static bool has_rest(const gp_actorrt *p)
{
    uint64_t end = p->nin ? atomic_load(&p->in[0].ring->end) : 0;
    return p->gathers && !p->regroup->drop_tail && p->seg->gathered.frames
        && end == atomic_load(&p->next);
}

static bool may_flush(void *thread)
{
    const gp_actorrt *p = ((gp_threadrt *)thread)->actor;
    bool room = idle_stream(p) >= 0, wanted = false;
    for (int o = 0; o < p->nout; o++) {
        const gp_ringrt *r = p->out[o];
        for (int c = 0; c < r->ring->nconsumers; c++) {
            bool open = !atomic_load(&r->consumed[c].closed);
            wanted |= open;
            room &= !open || atomic_load(&r->consumed[c].at) + (uint64_t)r->ring->depth
                             > gp_actor_made(p, atomic_load(&p->next));
        }
    }
    return room || !wanted || atomic_load(&p->run->level) >= 2;
}

/* Makes a frame of the last few: a launch of none. */
static void flush(gp_threadrt *t)
{
    gp_actorrt *p = t->actor;
    uint64_t f = atomic_load(&p->next);
    if (!has_rest(p) || atomic_load(&p->run->level) >= 2)
        return;
    if (!may_flush(t)) {
        gp_thread_doing(t, GP_DOING_WAIT, f);
        gp_pause_begin(t, f);
        gp_eventcount_wait(&p->changed, may_flush, t, p->run->spin_ns);
        gp_pause_end(t, f);
    }
    if (atomic_load(&p->run->level) >= 2)
        return;
    gp_thread_doing(t, GP_DOING_WORK, f);
    gp_launched r = launch(t, f, 0, false);
    if (r == NOT_LAUNCHED && p->seg->gathered.lost && !gp_frame_is_fatal(t))
        r = launch(t, f, 0, true);
    if (r == NOT_LAUNCHED)
        fail_frame(t, f);
    else if (r == DEVICE_LOST)
        fault(t, f);
}

void *gp_segment_launcher(void *thread)
{
    gp_threadrt *t = thread;
    gp_actorrt *p = t->actor;
    gp_segmentrt *s = p->seg;
    bool lost = s->resident && !p->run->dev->backend->resident_start(s->resident, &t->errs);

    if (lost)
        fault(t, 0);
    while (!lost) {
        gp_asking a = { .p = p };
        uint64_t f = atomic_load(&p->next);
        if (!may_launch(&a)) {
            gp_thread_doing(t, GP_DOING_WAIT, f);
            gp_pause_begin(t, f);
            gp_eventcount_wait(&p->changed, may_launch, &a, p->run->spin_ns);
            gp_pause_end(t, f);
        }
        if (a.look == GP_LOOK_DIFFER)
            gp_actor_ends_differ(p, f);
        if (a.look != GP_LOOK_GO)
            break;
        gp_thread_doing(t, GP_DOING_WORK, f);
        int n = p->regroup ? (p->gathers ? gp_gather_good : gp_regroup_good)(p, f, a.n, &t->errs)
              : atomic_load(&s->first) ? 1 : aligned(p, f, alike(p, f, a.n));
        gp_launched r = n ? launch(t, f, n, false) : NOT_LAUNCHED;
        n = n ? n : 1;
        if (r == NOT_LAUNCHED && (n == 1 || s->gathered.lost) && !gp_frame_is_fatal(t)) {
            gp_frame_set_whole(p);
            r = launch(t, f, n, true);
        }
        if (r == NOT_LAUNCHED)
            fail_frame(t, f);
        else if (r == DEVICE_LOST)
            fault(t, f + (uint64_t)n);
        if (r != LAUNCHED)
            break;
    }
    if (!lost)
        flush(t);
    atomic_store(&s->over, true);
    gp_eventcount_wake(&s->done);
    return NULL;
}

/* ---- the reaper ------------------------------------------------------ */

static bool has_inflight(void *arg)
{
    gp_segmentrt *s = arg;
    return atomic_load(&s->issued) > atomic_load(&s->retired) || atomic_load(&s->over);
}

/* For the status: a frame that is not whole may be a hole in some outputs, or have few rows. */
static void count(gp_actorrt *p, const gp_inflight *fl)
{
    unsigned long long there = (unsigned)fl->n, bytes = p->seg->bytes * (unsigned)fl->n;
    if (fl->irregular || p->regroup)
        there = bytes = 0;
    for (uint64_t f = gp_actor_made(p, fl->first), end = gp_actor_made(p, fl->first + (uint64_t)fl->n) + !fl->n;
         (fl->irregular || p->regroup) && f < end; f++) {
        bool some = false;
        for (int o = 0; o < p->nout; o++) {
            gp_type t = gp_type_of(p->out[o], f);
            if (!gp_meta_of(p->out[o], f)->hole)
                bytes += gp_bytes(&t), some = true;
        }
        there += some;
    }
    atomic_fetch_add_explicit(&p->frames, there, memory_order_relaxed);
    atomic_fetch_add_explicit(&p->bytes, bytes, memory_order_relaxed);
}

/* Until frame `number` of the resident kernel is done: as gp_backend.wait. It looks
 * at memory that the device writes, and asks the driver now and then. */
static int await_resident(const gp_actorrt *p, uint64_t number, gp_errs *errs)
{
    enum { LOOKS = 1000, SLEEP_NS = 20000 };
    const gp_backend *be = p->run->dev->backend;
    gp_sync sync = p->run->graph->sync;
    int64_t start = 0;
    for (;;) {
        for (int i = 0; i < (sync == GP_SYNC_BLOCK ? 1 : LOOKS); i++)
            if (be->resident_done(p->seg->resident, number, NULL))
                return 1;
        int r = be->resident_done(p->seg->resident, number, errs);
        if (r)
            return r;
        int64_t now = gp_now_ns();
        if (!start)
            start = now;
        if (sync == GP_SYNC_YIELD)
            sched_yield();
        else if (sync == GP_SYNC_BLOCK || (sync == GP_SYNC_AUTO && now - start > p->run->spin_ns))
            nanosleep(&(struct timespec){ .tv_nsec = SLEEP_NS }, NULL);
    }
}

/* They are done in any order. */
static int await_residents(const gp_actorrt *p, const gp_inflight *fl, gp_errs *errs)
{
    int r = 1;
    for (int i = fl->n - 1; r == 1 && i >= 0; i--)
        r = await_resident(p, fl->number - (uint64_t)i, errs);
    return r;
}

/* Has the first whole frame, which is done, been written in full? `*lost`: the device is lost meanwhile. */
static bool is_written(gp_threadrt *t, const gp_inflight *fl, bool *lost)
{
    gp_actorrt *p = t->actor;
    const gp_backend *be = p->run->dev->backend;
    int stream = p->seg->stream0 + fl->stream, r;
    gp_batch o = { .p = p, .first = fl->first, .n = 1, .check = true, .recheck = true, .again = true,
                   .bare = true };
    while (!(r = gp_unwritten_look(p->seg->unwritten, fl->first, &t->errs)))
        if (!be->direct(p->run->dev, stream, gp_segment_record, &o, &t->errs)
            || be->wait(p->run->dev, stream, GP_SYNC_BLOCK, &t->errs) != 1) {
            *lost = true;
            return false;
        }
    return r > 0;
}

void *gp_segment_reaper(void *thread)
{
    gp_threadrt *t = thread;
    gp_actorrt *p = t->actor;
    gp_segmentrt *s = p->seg;
    gp_run *run = p->run;
    const gp_backend *be = run->dev->backend;

    bool lost = false;
    for (;;) {
        uint64_t k = atomic_load(&s->retired);
        if (!has_inflight(s)) {
            gp_thread_doing(t, GP_DOING_WAIT, atomic_load(&s->reaped));
            gp_eventcount_wait(&s->done, has_inflight, s, run->spin_ns);
        }
        if (atomic_load(&s->issued) == k)
            break;
        gp_inflight fl = s->inflight[k % s->ninflight];
        gp_thread_doing(t, GP_DOING_WORK, fl.first);
        bool lost_now = false, done = fl.stream == GP_NO_STREAM
            || (fl.stream == GP_RESIDENT
                    ? await_residents(p, &fl, &t->errs)
                    : be->wait(run->dev, s->stream0 + fl.stream, run->graph->sync, &t->errs)) == 1;
        bool written = !done || lost || !fl.check || is_written(t, &fl, &lost_now);
        done &= !lost_now;
        if (!done && !lost)
            fault(t, atomic_load(&p->next));
        if (done && !written)
            fail_frame(t, fl.first);
        lost |= !done || !written;     /* then it only waits for what is in flight */
        if (fl.check)
            atomic_store(&s->first, written ? GP_FIRST_DONE : GP_FIRST_FAILED);
        if (!lost)
            gp_stamps_read(p, &fl);
        atomic_store(&s->retired, k + 1);
        if (fl.stream >= 0)
            atomic_store(&s->busy[fl.stream], false);
        if (!lost) {
            count(p, &fl);
            atomic_store(&p->flushed, !fl.n);
            gp_actor_publish(p, fl.first, fl.n);
            atomic_store(&s->reaped, fl.first + (uint64_t)fl.n);   /* behind: it has looked at the metas */
        }
        gp_eventcount_wake(&p->changed);
    }
    gp_segment_stop_resident(p);
    gp_actor_end(p, atomic_load(&s->reaped), p->nin > 1);
    return NULL;
}
