/* segment.c - a segment: its launcher, what its launches do on a device, its reaper.
 *
 * The launcher queues one launch after the other: as many consecutive frames as are ready, a power of two of them from
 * an aligned slot on, for an idle stream; with `batch_wait` it waits for more, and with `latency` timely.c chooses.
 * Launches are published in order, and a stream is free when its launch is.
 *
 * A launch copies in, copies from another device, runs kernels, copies out. It goes through the copy engine for each
 * direction, which takes one copy after the other; copies in and out of all devices of a machine share what its memory
 * gives, by their rates. Where kernels copy, or use the host's memory themselves (compile/mapped.c), that takes the
 * same link, but no copy engine: it is a part of their time. Its kernels fill a part of the device (costs_for.c), and
 * run beside those of other launches, all as fast as alone, until it is full; then they share it evenly. Stages whose
 * frames take turns wait for the launch before. With several devices frames take turns on them, and each has engines of
 * its own. On the CPU back end all of it is work of the cores. */
#include "simulate/model.h"

/* ---- on the device ---------------------------------------------------- */

/* The device that a launch is on. */
static gpu *gpu_of(const actor *p, const piece *q)
{
    return p->on[gp_lane(p->segment->place, q->first)];
}

static void copied(simulation *x, int a, int lane), took_turn(simulation *x, int a, int lane);
static void launch_done(simulation *x, int a, int lane);

/* Its jobs weigh so much more from now on; what is left of sums that are not exact goes when it has none. */
static void weigh(simulation *x, share *s, double more)
{
    gp_model_touch(x, s);
    s->always = s->jobs.n ? s->always + more : more;
}

static void begin_kernels(simulation *x, actor *p, piece *q)
{
    gpu *d = gpu_of(p, q);
    if (q->computes)
        return;
    q->computes = true, q->computes_since = x->now;
    if (!d->computing++)
        d->computing_since = x->now;
}

static void end_kernels(simulation *x, actor *p, piece *q)
{
    gpu *d = gpu_of(p, q);
    q->computes = false;
    keep(x, (gp_slice){ GP_SLICE_COMPUTE, (int)(p - x->actor), q->stream, 0, (int64_t)q->computes_since, (int64_t)x->now,
                        q->first, q->n });
    if (!--d->computing)
        d->busy[GP_ENGINE_COMPUTE] += x->now - d->computing_since;
}

static gp_crossing crossing(const simulation *x, const actor *p, const piece *q, gp_engine e)
{
    return p->bytes[e] ? gp_costs_crossing(x->plan, p->segment, e, q->n) : (gp_crossing){ 0 };
}

/* Copies in and out weigh as much as their rates. */
static void begin_copy(simulation *x, int a, int lane, gp_engine e)
{
    actor *p = &x->actor[a];
    piece *q = &p->flight[lane];
    gp_crossing c = crossing(x, p, q, e);
    double took = gp_crossing_ns(x->c, c, e, q->n);
    q->began = x->now, q->engine = e;
    gpu_of(p, q)->bytes[e] += c.copied * (size_t)q->n;
    if (!c.copied)
        begin_kernels(x, p, q);
    if (x->on_cores) {
        gp_model_share_cores(x, took, copied, a, lane);
    } else if (e == GP_ENGINE_COPY_PEER) {
        gp_model_add(x, &x->agenda, x->now + took, copied, a, lane);
    } else {
        weigh(x, p->host->copies, x->rate[e] - 1);
        gp_model_share(x, p->host->copies, took, copied, a, lane);
    }
}

/* An engine takes one copy after the other. */
static void copy(simulation *x, int a, int lane, gp_engine e)
{
    gpu *d = gpu_of(&x->actor[a], &x->actor[a].flight[lane]);
    if (d->copies[e]) {
        gp_model_add(x, &d->waiting[e], 0, NULL, a, lane);
        return;
    }
    d->copies[e] = !x->on_cores;
    begin_copy(x, a, lane, e);
}

/* How much of its device a launch fills: all go on alike, and as fast as alone, as long as there is room. */
static double fills(const actor *p, const piece *q)
{
    return p->launch->part > 0 ? fmin(p->launch->part * q->n, 1) : 1;
}

/* Kernels, of which `part` are to do. */
static void compute(simulation *x, int a, int lane, double part, what then)
{
    actor *p = &x->actor[a];
    piece *q = &p->flight[lane];
    double firings = p->launch->part > 0 ? fmax(p->launch->part * q->n, 1) : q->n;
    double ns = p->launch->kernels_ns * firings * varied(p, q->first) * part;
    if (x->on_cores) {
        ns += q->woken ? 0 : x->c->wake_ns;            /* its thread sleeps between launches */
        q->woken = true;
        gp_model_share_cores(x, ns, then, a, lane);
    } else {
        weigh(x, gpu_of(p, q)->kernels, fills(p, q) - 1);
        gp_model_share(x, gpu_of(p, q)->kernels, ns, then, a, lane);
    }
}

static void end_compute(simulation *x, int a, int lane)
{
    actor *p = &x->actor[a];
    piece *q = &p->flight[lane];
    gp_crossing out = crossing(x, p, q, GP_ENGINE_COPY_OUT);
    bool makes = !p->regroup || made_by(p, q->first + (uint64_t)q->n) > made_by(p, q->first);
    bool copies = makes && out.copied + out.on_link > 0;
    if (!copies || out.copied)
        end_kernels(x, p, q);
    if (copies)
        copy(x, a, lane, GP_ENGINE_COPY_OUT);
    else
        launch_done(x, a, lane);
}

/* The part that waits for the launch before. */
static void take_turn(simulation *x, int a, int lane)
{
    actor *p = &x->actor[a];
    if (p->flight[lane].number == p->turns)
        compute(x, a, lane, p->turn, took_turn);
    else
        p->flight[lane].rested = true;
}

/* Kernels no longer fill the device. */
static void leave(simulation *x, int a, int lane)
{
    const actor *p = &x->actor[a];
    if (!x->on_cores)
        weigh(x, gpu_of(p, &p->flight[lane])->kernels, 1 - fills(p, &p->flight[lane]));
}

/* All of it is done that need not wait for the launch before. */
static void computed(simulation *x, int a, int lane)
{
    leave(x, a, lane);
    (x->actor[a].turn > 0 ? take_turn : end_compute)(x, a, lane);
}

static void took_turn(simulation *x, int a, int lane)
{
    actor *p = &x->actor[a];
    piece *next = flight_of(p, ++p->turns);
    leave(x, a, lane);
    if (p->turns < p->launched && next->rested) {
        next->rested = false;
        take_turn(x, a, (int)(next - p->flight));
    }
    end_compute(x, a, lane);
}

static void begin_compute(simulation *x, int a, int lane)
{
    actor *p = &x->actor[a];
    begin_kernels(x, p, &p->flight[lane]);
    if (p->turn < 1)
        compute(x, a, lane, 1 - p->turn, computed);
    else
        take_turn(x, a, lane);
}

/* The next of what a launch does before its copy out: in, peer: these copies are to do. */
static void go_on(simulation *x, int a, int lane, bool in, bool peer)
{
    const actor *p = &x->actor[a];
    gp_crossing c = crossing(x, p, &p->flight[lane], GP_ENGINE_COPY_IN);
    if (in && c.copied + c.on_link > 0)
        copy(x, a, lane, GP_ENGINE_COPY_IN);
    else if (p->bytes[GP_ENGINE_COPY_PEER] && peer)
        copy(x, a, lane, GP_ENGINE_COPY_PEER);
    else
        begin_compute(x, a, lane);
}

/* An engine is done with a copy, and takes the next. */
static void copied(simulation *x, int a, int lane)
{
    actor *p = &x->actor[a];
    piece *q = &p->flight[lane];
    gpu *d = gpu_of(p, q);
    gp_engine e = q->engine;
    if (crossing(x, p, q, e).copied) {
        d->busy[e] += x->now - q->began;
        keep(x, (gp_slice){ GP_SLICE_COPY_IN + (int)e, a, q->stream, d->index, (int64_t)q->began, (int64_t)x->now,
                            q->first, q->n });
    } else if (e == GP_ENGINE_COPY_OUT) {
        end_kernels(x, p, q);
    }
    if (!x->on_cores && e != GP_ENGINE_COPY_PEER)
        weigh(x, p->host->copies, 1 - x->rate[e]);
    d->copies[e] = d->waiting[e].n > 0;
    if (d->copies[e]) {
        event next = gp_model_take(&d->waiting[e]);
        begin_copy(x, next.who, next.lane, e);
    }
    if (e == GP_ENGINE_COPY_OUT)
        launch_done(x, a, lane);
    else
        go_on(x, a, lane, false, e == GP_ENGINE_COPY_IN);
}

/* ---- the launcher ------------------------------------------------------ */

/* An idle stream of the device that frame f is on. */
static int idle_stream(const actor *p, uint64_t f)
{
    int first = gp_lane(p->segment->place, f) * p->segment->streams;
    for (int i = first; i < first + p->segment->streams; i++)
        if (!p->stream[i])
            return i;
    return -1;
}

/* May more frames than these come before they are launched? */
static bool may_grow(const simulation *x, const actor *p, reason why)
{
    bool more = why != FOR_NOTHING;
    for (int i = 0; more && i < p->nin; i++) {
        const ring *r = &x->ring[p->in[i].ring];
        more = !r->carried && (p->regroup || p->head < p->next || r->made - p->next < (uint64_t)r->ring->depth);
    }
    return more;
}

static void note_launch(simulation *x, actor *p, const piece *q)
{
    int size = gp_timely_size(q->n);
    gp_timely_launched(p->timely, size);
    for (int i = 0; i < q->n; i++) {
        since s = gp_model_since(x, p, q->first + (uint64_t)i);
        gp_model_tell_launcher(x, &s, q->due + (double)gp_timely_tail(p->timely, size));
    }
}

static void look_again(simulation *x, int a, int lane)
{
    gp_model_look_at(x, a);
}

/* As the launcher's: does it wait for more frames than the n that are ready? */
static bool waits_to_fill(simulation *x, int a, int n, reason why)
{
    actor *p = &x->actor[a];
    int most = p->segment->batch;
    bool more = n < (p->regroup ? most : gp_timely_row(p->segment->depth, p->next, most)) && may_grow(x, p, why);
    if (more && !(p->fill_until > 0)) {
        p->fill_until = x->now + (double)x->g->batch_wait_ns;
        gp_model_add(x, &x->agenda, p->fill_until, look_again, a, 0);
    }
    if (more && x->now < p->fill_until)
        return true;
    p->fill_until = 0;
    return false;
}

/* As the launcher's, with `latency`: how many of the n frames that are ready a launch takes; 0: it waits for more. */
static int choose(simulation *x, int a, int n, uint64_t all, reason why)
{
    actor *p = &x->actor[a];
    int64_t now = (int64_t)x->now;
    gp_timely_ready w = { .now_ns = now, .n = n, .born_ns = (int64_t)gp_model_since(x, p, p->next).born,
                          .able = gp_timely_size(gp_timely_row(p->segment->depth, p->next, n)), .all = (int)all,
                          .lanes = p->segment->streams,
                          .newest_ns = (int64_t)gp_model_since(x, p, p->next + all - 1).born };
    int row = gp_timely_row(p->segment->depth, p->next, p->segment->batch);
    w.most = may_grow(x, p, why) ? gp_timely_size(row) : w.able;
    for (uint64_t k = p->seen > p->next ? p->seen : p->next; k < p->next + (uint64_t)n; k++) {
        gp_timely_came(p->timely, (int64_t)gp_model_since(x, p, k).born);
        p->came_ns = now, p->seen = k + 1;
    }
    w.came_ns = p->came_ns;
    gp_timely_choice c = gp_timely_choose(p->timely, &w);
    if (c.until_ns <= now)
        return 1 << c.size;
    gp_model_add(x, &x->agenda, (double)c.until_ns, look_again, a, 0);
    return 0;
}

static void queued(simulation *x, int a, int lane)
{
    actor *p = &x->actor[a];
    piece *q = &p->flight[lane];
    p->launched++;
    p->launching = false;
    p->next += (uint64_t)q->n;
    p->stream[q->stream] = true;
    p->report->busy_ns += (int64_t)(x->now - q->start);
    p->report->launches++;
    keep(x, (gp_slice){ GP_SLICE_LAUNCH, a, 0, 0, (int64_t)q->start, (int64_t)x->now, q->first, q->n });
    q->start = x->now;
    for (int e = 0; e < GP_ENGINES; e++)
        gpu_of(p, q)->by_kernels[e] += crossing(x, p, q, (gp_engine)e).by_kernels * (size_t)q->n;
    gp_model_look_at(x, a);
    go_on(x, a, lane, true, true);
}

static void launch(simulation *x, int a, int lane)
{
    actor *p = &x->actor[a];
    p->flight[lane].start = x->now;
    gp_model_share_cores(x, p->launch->launch_ns, queued, a, lane);
}

void gp_model_look_segment(simulation *x, int a)
{
    actor *p = &x->actor[a];
    reason why;
    uint64_t able = gp_model_able(x, p, &why), room = p->head + (uint64_t)p->segment->depth;
    int stream = idle_stream(p, p->next), most = p->segment->batch, take = 0;
    if (room < able)
        able = room, why = FOR_OUTPUT;
    if (p->next < able && stream < 0) {
        why = FOR_STREAM;
    } else if (p->next < able) {
        take = able - p->next < (uint64_t)most ? (int)(able - p->next) : most;
        take = p->timely ? choose(x, a, take, able - p->next, why)
             : x->g->batch_wait_ns && waits_to_fill(x, a, take, why) ? 0 : take;
        why = FOR_INPUT;
    }
    if (!take) {
        p->launcher_since = p->launcher_since < 0 ? x->now : p->launcher_since;
        gp_model_set_idle(x, p, 1, why);
        return;
    }
    piece *q = flight_of(p, p->launched);
    double wake = gp_model_to_wake(x, p, p->launcher_since, p->looks);
    *q = (piece){ .first = p->next, .stream = stream,
                  .n = p->regroup ? take : gp_timely_row(p->segment->depth, p->next, take),
                  .number = p->launched, .due = x->now };
    if (p->timely)
        note_launch(x, p, q);
    p->launching = true, p->launcher_since = AWAKE;
    gp_model_set_idle(x, p, 0, FOR_NOTHING);
    if (wake > 0)
        gp_model_share_cores(x, wake, launch, a, (int)(q - p->flight));
    else
        launch(x, a, (int)(q - p->flight));
}

/* ---- the reaper -------------------------------------------------------- */

/* Publishes launches that are done, in order. */
static void reap(simulation *x, int a, int lane)
{
    actor *p = &x->actor[a];
    p->reaping = false;
    while (p->retired < p->launched && flight_of(p, p->retired)->done) {
        piece *q = flight_of(p, p->retired++);
        p->stream[q->stream] = false;
        gp_model_publish(x, a, q->first, q->n);
    }
    p->reaper_since = x->now;
    gp_model_look_at(x, a);
}

/* What it takes until the reaper sees that launch q is done: it was asleep without a launch, and is woken by this one
 * while the device works; or it has looked at the device for long, and sleeps until that is done. */
static double reaper_wakes(simulation *x, const actor *p, const piece *q)
{
    bool waited = p->reaper_since > q->start, slept = !waited && q->start - p->reaper_since > p->looks;
    double wake = gp_model_to_wake(x, p, waited ? p->reaper_since : q->start, x->polls);
    return wake > 0 || !slept ? wake : x->c->wake_ns - (x->now - q->start);
}

static void launch_done(simulation *x, int a, int lane)
{
    actor *p = &x->actor[a];
    piece *q = &p->flight[lane];
    gp_hist_add(&p->report->time, (int64_t)(x->now - q->start) / q->n, (uint64_t)q->n);
    q->done = true;
    if (q->number != p->retired || p->reaping)
        return;
    double wake = reaper_wakes(x, p, q);
    p->reaping = wake > 0;
    if (p->reaping)
        gp_model_share_cores(x, wake, reap, a, 0);
    else
        reap(x, a, 0);
}
