/* launcher.c - the thread that queues the launches of a segment.
 *
 * It takes the longest row of consecutive ready frames whose length is a power of two and whose first slot is a
 * multiple of it. With `batch_wait` it waits so long for that row to get longer, with `latency` as long as its frames
 * can, and takes no more of them than end in time (timely.h). It queues the row on an idle stream: as an exec built
 * before frame 0 (launch: graph), or directly (launch: stream, irregular launches, see frame.h, and the first frames,
 * see unwritten.c). It holds no lock while it calls the device.
 *
 * Invariant: frames [reaped, next) are in flight, at most `depth` of them, so that slots inside the segment are free
 * when they are written again. */
#include <string.h>
#include "run/latency.h"
#include "run/measure.h"
#include "run/nvtx.h"
#include "run/regroup.h"
#include "run/segment.h"

/* A stream of the device that frame f is on. */
static int idle_stream(const gp_actorrt *p, uint64_t f)
{
    int first = gp_lane(p->segment->place, f) * p->segment->streams;
    for (int i = first; i < first + p->segment->streams; i++)
        if (!atomic_load(&p->seg->busy[i]))
            return i;
    return -1;
}

/* Are there frames at the end that make one, although they are too few? */
static bool has_rest(const gp_actorrt *p)
{
    return p->gathers && !p->regroup->drop_tail && p->seg->gathered.frames && !atomic_load(&p->run->failed)
        && gp_ring_frames(p->in[0].ring) == atomic_load(&p->next);
}

static bool may_flush(void *actor)
{
    const gp_actorrt *p = actor;
    bool room = idle_stream(p, atomic_load(&p->next)) >= 0, wanted = false;
    for (int o = 0; o < p->nout; o++) {
        const gp_ringrt *r = p->out[o];
        for (int c = 0; c < r->ring->nconsumers; c++) {
            bool open = !atomic_load(&r->consumed[c].closed);
            wanted |= open;
            room &= !open || atomic_load(&r->consumed[c].at) + (uint64_t)gp_ring_room(r)
                             > gp_actor_made(p, atomic_load(&p->next));
        }
    }
    return room || !wanted || atomic_load(&p->run->level) >= 2;
}

/* Frames of the longest launch that may begin with frame f. */
static int longest(const gp_actorrt *p, uint64_t f)
{
    return gp_states_most(p, f, p->segment->batch);
}

typedef struct gp_asking { gp_actorrt *p; gp_look look; int n; } gp_asking;

static bool may_launch(void *arg)
{
    gp_asking *a = arg;
    gp_actorrt *p = a->p;
    uint64_t next = atomic_load(&p->next);
    int room = p->segment->depth - (int)(next - atomic_load(&p->seg->reaped));
    int most = p->run->options.isolate ? 1 : longest(p, next);
    int first = atomic_load(&p->seg->first);
    a->look = first == GP_FIRST_FAILED ? GP_LOOK_OVER
            : gp_actor_look(p, next, room < most ? room : most, &a->n);
    if (a->look == GP_LOOK_GO)
        return idle_stream(p, next) >= 0 && first != GP_FIRST_LAUNCHED
            && !(p->run->options.isolate && room < p->segment->depth);
    return a->look != GP_LOOK_WAIT || (has_rest(p) && may_flush(p));
}

/* Cuts [f, f + n) before the first frame that is not regular, or behind f when f is not. */
static int alike(const gp_actorrt *p, uint64_t f, int n)
{
    for (int i = 0; i < n; i++)
        if (!gp_frame_is_regular(p, f + (uint64_t)i))
            return i ? i : 1;
    return n;
}

/* ---- waiting for more frames ------------------------------------------ */

/* want: frames, at which it waits no more. */
typedef struct gp_filling { gp_asking *asking; int want; } gp_filling;

/* Does a frame need what the launch before makes? Then no more frames come while one waits. */
static bool carries(const gp_actorrt *p)
{
    for (int i = 0; i < p->nin; i++)
        if (gp_follows(p, p->in[i].ring->buffer))
            return true;
    return false;
}

/* Can a frame behind the n from f not come before these are launched: an input has ended, or its slots are full? */
static bool none_can_come(const gp_actorrt *p, uint64_t f, int n)
{
    bool idle = atomic_load(&p->seg->reaped) == f;
    for (int i = 0; i < p->nin; i++) {
        gp_ringrt *r = p->in[i].ring;
        if (atomic_load(&r->end) <= f + (uint64_t)n
            || (idle && atomic_load(&r->produced.at) - f >= (uint64_t)gp_ring_room(r)))
            return true;
    }
    return false;
}

/* Is the launch as long as it may be, or can it not get longer, or must it not begin? */
static bool is_filled(void *arg)
{
    const gp_filling *w = arg;
    gp_asking *a = w->asking;
    const gp_actorrt *p = a->p;
    uint64_t f = atomic_load(&p->next);
    may_launch(a);
    if (a->look != GP_LOOK_GO || a->n >= w->want)
        return true;
    return !p->regroup && (none_can_come(p, f, a->n) || !gp_frame_is_regular(p, f) || alike(p, f, a->n) < a->n);
}

/* With `batch_wait`: a->n frames are ready, and a launch may take more. */
static void fill(gp_threadrt *t, gp_asking *a)
{
    gp_actorrt *p = t->actor;
    uint64_t f = atomic_load(&p->next);
    int most = longest(p, f);
    gp_filling w = { a, p->regroup ? most : gp_timely_row(p->segment->depth, f, most) };
    if (atomic_load(&p->seg->first) || carries(p) || p->run->options.isolate || is_filled(&w))
        return;
    gp_thread_doing(t, GP_DOING_WAIT, f);
    gp_pause_begin(t, f + (uint64_t)a->n);         /* for what comes behind those that are ready */
    gp_eventcount_wait_until(&p->changed, is_filled, &w, p->run->spin_ns, gp_now_ns() + p->run->graph->batch_wait_ns);
    gp_pause_end(t, f);
    is_filled(&w);
}

/* May a launch begin with frame f that is as long as the device allows? */
static bool may_share(const gp_actorrt *p, uint64_t f)
{
    return !atomic_load(&p->seg->first) && !carries(p) && !p->run->options.isolate && gp_frame_is_regular(p, f);
}

/* With `latency`: how many of the frames that are ready a launch takes. It may wait for more. */
static int choose(gp_threadrt *t, gp_asking *a)
{
    gp_actorrt *p = t->actor;
    uint64_t f = atomic_load(&p->next);
    gp_timely_choice c = { .size = 0 };
    for (bool goes_on = true; goes_on && a->look == GP_LOOK_GO;) {
        bool shares = may_share(p, f);
        int alike_n = shares ? alike(p, f, a->n) : 1;
        gp_timely_ready w = { .now_ns = gp_now_ns(), .n = alike_n,
                              .able = gp_timely_size(gp_timely_row(p->segment->depth, f, alike_n)) };
        bool grows = shares && alike_n == a->n && !none_can_come(p, f, a->n);
        w.most = grows ? gp_timely_size(gp_timely_row(p->segment->depth, f, longest(p, f))) : w.able;
        p->seg->latency->due_ns = c.until_ns && c.until_ns < w.now_ns ? c.until_ns : w.now_ns;
        c = gp_latency_choose(p, f, &w);
        goes_on = c.until_ns > w.now_ns;
        if (!goes_on)
            break;
        gp_filling more = { a, 2 << w.able };
        gp_thread_doing(t, GP_DOING_WAIT, f);
        gp_pause_begin(t, f + (uint64_t)a->n);
        gp_eventcount_wait_until(&p->changed, is_filled, &more, p->run->spin_ns, c.until_ns);
        gp_pause_end(t, f);
        is_filled(&more);
    }
    return 1 << c.size;
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
 * computed (an argument of a partial frame, or, without `on_error: drop`, a shape), the device is well.
 * `failed`: that was so, and the frame goes on as a hole. */
static gp_launched launch(gp_threadrt *t, uint64_t f, int n, bool failed)
{
    gp_actorrt *p = t->actor;
    gp_run *run = p->run;
    gp_segmentrt *s = p->seg;
    gp_dev *dev = gp_lane_of(p, f)->dev;
    const gp_backend *be = dev->backend;
    gp_batch o = { .p = p, .first = f, .n = n, .irregular = failed || (!p->regroup && !gp_frame_is_regular(p, f)),
                   .again = f >= (uint64_t)p->segment->period };
    bool gathers = p->gathers;
    if (gathers) {
        o.emits = gp_gather_emits(p, f, failed ? 1 : n) && !(failed && !s->gathered.added);
        o.irregular = failed || (n && gp_meta_of(p->in[0].ring, f)->hole);
    }
    int stream = idle_stream(p, f);
    bool ok;

    if (o.irregular && !p->regroup && !gp_frame_set_irregular(p, f, failed, &t->errs)) {
        gp_fail(&t->errs, GP_E_NOTE, (gp_loc){ 0 }, "in frame %llu", (unsigned long long)gp_actor_number(p, f));
        if (gp_frame_drop_or_fail(t))
            return NOT_LAUNCHED;
    }
    gp_first first = (gp_first)atomic_load(&s->first);
    o.check = !o.irregular ? first == GP_FIRST_DUE : !p->regroup && !failed && gp_unwritten_due(p);
    if (o.check)
        gp_unwritten_begin(s->unwritten);
    bool resident = s->resident && !o.irregular && !o.check && (!run->options.ncached || o.again);
    if (resident)
        stream = GP_RESIDENT;
    else if (o.irregular && (p->regroup ? !gathers : !gp_frame_needs_device(p)))
        stream = GP_NO_STREAM;
    for (int i = 0; i < n; i++)
        gp_frame_write_infos(p, f + (uint64_t)i);
    if (run->options.poison && !run->plan->unified)
        poison_outputs(p, f, n);
    if (stream >= 0 && n && s->nmanaged && !gp_ahead_bring(p, f, n, &t->errs))
        return DEVICE_LOST;
    if (p->marked && !gp_marks_await(p, f, n, stream, &t->errs))
        return DEVICE_LOST;
    if (stream >= 0)
        atomic_store(&s->busy[stream], true);
    gp_nvtx_push(p, f);
    int64_t start = gp_measure_now(run);
    if (run->watched)
        be->tag(dev, gp_trace_tag(p, f, n));
    uint64_t number = 0;
    if (stream < 0) {
        for (int i = 0; resident && i < n; i++)
            number = be->resident_submit(s->resident, (int)((f + (uint64_t)i) % (uint64_t)p->segment->period));
        ok = true;
    } else if (o.irregular || o.check || !s->exec || (run->options.ncached && !o.again)) {
        ok = gp_segment_direct(p, stream, gp_segment_record, &o, &t->errs);
        if (!ok && gp_segment_wait(p, stream, GP_SYNC_BLOCK, &t->errs) == 1) {
            gp_nvtx_pop(p);
            if (run->watched)
                be->tag(dev, 0);
            atomic_store(&s->busy[stream], false);
            return NOT_LAUNCHED;
        }
    } else {
        int k = 0, slot = (int)(f % (uint64_t)p->segment->period), d = p->segment->depth, queue;
        gp_stream_lane(p, stream, &queue);
        while (1 << k < n)
            k++;
        ok = be->launch(dev, queue,
                        s->exec[k][slot / d * (d / n) + slot % d / n], &t->errs);
    }
    gp_nvtx_pop(p);
    if (run->watched)
        be->tag(dev, 0);
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
    if (s->latency)
        gp_latency_launched(p, f, n);
    if (o.irregular && !o.check)       /* else the reaper does, which looks at what was written */
        gp_frame_set_whole(p);
    uint64_t k = atomic_load(&s->issued);
    first = o.check && (!o.irregular || gp_frame_is_whole(p, f)) ? GP_FIRST_DONE : first;
    s->inflight[k % s->ninflight] = (gp_inflight){ f, n, stream, o.irregular, o.check, first, number, start };
    /* In this order: who sees a launch that was issued sees its frames below `next`, so that
       reaped <= next holds for the reaper, and what it says of a lost device is true. */
    atomic_store(&p->next, f + (uint64_t)n);
    atomic_store(&s->issued, k + 1);
    gp_eventcount_wake(&s->done);
    return LAUNCHED;
}

/* Makes a frame of the last few, if there is one: a launch of none. */
static bool flush(gp_threadrt *t)
{
    gp_actorrt *p = t->actor;
    uint64_t f = atomic_load(&p->next);
    if (!has_rest(p) || atomic_load(&p->run->level) >= 2)
        return true;
    if (!may_flush(p)) {
        gp_thread_doing(t, GP_DOING_WAIT, f);
        gp_pause_begin(t, f);
        gp_eventcount_wait(&p->changed, may_flush, p, p->run->spin_ns);
        gp_pause_end(t, f);
    }
    if (atomic_load(&p->run->level) >= 2)
        return true;
    gp_thread_doing(t, GP_DOING_WORK, f);
    gp_launched r = launch(t, f, 0, false);
    if (r == NOT_LAUNCHED && p->seg->gathered.lost && !gp_frame_drop_or_fail(t))
        r = launch(t, f, 0, true);
    if (r == NOT_LAUNCHED)
        gp_segment_fail_frame(t, f);
    else if (r == DEVICE_LOST)
        gp_segment_fault(t, f);
    return r == LAUNCHED;
}

void *gp_segment_launcher(void *thread)
{
    gp_threadrt *t = thread;
    gp_actorrt *p = t->actor;
    gp_segmentrt *s = p->seg;
    bool lost = !atomic_load(&p->over) && s->resident && !s->lane[0].dev->backend->resident_start(s->resident, &t->errs);

    if (lost)
        gp_segment_fault(t, 0);
    while (!lost && !atomic_load(&p->over)) {
        gp_asking a = { .p = p };
        uint64_t f = atomic_load(&p->next);
        if (!may_launch(&a)) {
            gp_thread_doing(t, GP_DOING_WAIT, f);
            gp_pause_begin(t, f);
            gp_eventcount_wait(&p->changed, may_launch, &a, p->run->spin_ns);
            gp_pause_end(t, f);
        }
        int most = p->segment->batch;
        if (a.look == GP_LOOK_GO && s->latency)
            most = choose(t, &a);
        else if (a.look == GP_LOOK_GO && p->run->graph->batch_wait_ns)
            fill(t, &a);
        if (a.look == GP_LOOK_WAIT) {  /* all frames are there; or a plan with shallower rings was asked for meanwhile */
            if (flush(t))
                continue;
            break;
        }
        if (a.look == GP_LOOK_DIFFER)
            gp_actor_ends_differ(p, f);
        if (a.look == GP_LOOK_PAUSED)
            atomic_store(&p->paused, true);
        if (a.look != GP_LOOK_GO)
            break;
        gp_thread_doing(t, GP_DOING_WORK, f);
        int n = p->regroup ? (p->gathers ? gp_gather_good : gp_regroup_good)(p, f, a.n, &t->errs)
              : atomic_load(&s->first) ? 1 : gp_timely_row(p->segment->depth, f, alike(p, f, a.n < most ? a.n : most));
        gp_launched r = n ? launch(t, f, n, false) : NOT_LAUNCHED;
        n = n ? n : 1;
        if (r == NOT_LAUNCHED && (n == 1 || s->gathered.lost) && !gp_frame_drop_or_fail(t)) {
            gp_frame_set_whole(p);
            r = launch(t, f, n, true);
        }
        if (r == NOT_LAUNCHED)
            gp_segment_fail_frame(t, f);
        else if (r == DEVICE_LOST)
            gp_segment_fault(t, f + (uint64_t)n);
        if (r == LAUNCHED && !gp_states_launched(t)) {
            gp_segment_fault(t, f + (uint64_t)n);
            break;
        }
        if (r != LAUNCHED)
            break;
        gp_room_launched(p);
    }
    if (!lost && !atomic_load(&p->paused))
        flush(t);
    atomic_store(&s->over, true);
    gp_eventcount_wake(&s->done);
    return NULL;
}
