/* launcher.c - the launcher and the reaper of a segment.
 *
 * The launcher queues one launch after the other: as many consecutive frames as are ready, a power of two of them from
 * an aligned slot on, for an idle stream; with `batch_wait` it waits for more, and with `latency` timely.c chooses.
 * Launches are published in order, and a stream is free when its launch is. What a launch does is in device.c. */
#include "simulate/model.h"

/* Of the device that frame f is on. */
static int idle_stream(const actor *p, uint64_t f)
{
    int first = gp_lane(p->segment->place, f) * p->segment->streams;
    for (int i = first; i < first + p->segment->streams; i++)
        if (!p->stream[i])
            return i;
    return -1;
}

/* As the launcher's: the longest aligned power of two. */
static int aligned(const actor *p, uint64_t f, int n)
{
    int slot = (int)(f % (uint64_t)p->segment->depth), m = 1;
    while (2 * m <= n && slot % (2 * m) == 0 && slot + 2 * m <= p->segment->depth)
        m *= 2;
    return m;
}

void gp_model_launch(simulation *x, int a)
{
    actor *p = &x->actor[a];
    flight_of(p, p->launched)->start = x->now;
    gp_model_share_cores(x, p->launch->launch_ns, QUEUED, a, 0);
}

/* May more frames than these come before they are launched? */
static bool may_grow(const simulation *x, const actor *p, reason why)
{
    bool more = why != FOR_NOTHING;
    for (int i = 0; more && i < p->nin; i++) {
        const ring *r = &x->ring[p->in[i].ring];
        more = !r->carried
            && (p->regroup || p->head < p->next || r->made - p->next < (uint64_t)r->ring->depth);
    }
    return more;
}

static void note_launch(simulation *x, actor *p, const piece *q)
{
    int size = size_of(q->n);
    gp_timely_launched(p->timely, size);
    for (int i = 0; i < q->n; i++) {
        since s = gp_model_since(x, p, q->first + (uint64_t)i);
        gp_model_tell_launcher(x, &s, q->due + (double)gp_timely_tail(p->timely, size));
    }
}

/* As the launcher's: does it wait for more frames than the n that are ready? */
static bool waits_to_fill(simulation *x, int a, int n, reason why)
{
    actor *p = &x->actor[a];
    int most = p->segment->batch;
    bool more = n < (p->regroup ? most : aligned(p, p->next, most)) && may_grow(x, p, why);
    if (more && !(p->fill_until > 0)) {
        p->fill_until = x->now + (double)x->g->batch_wait_ns;
        gp_agenda_add(&x->agenda, p->fill_until, FILLED, a, 0);
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
                     .able = size_of(aligned(p, p->next, n)), .all = (int)all, .lanes = p->segment->streams,
                          .newest_ns = (int64_t)gp_model_since(x, p, p->next + all - 1).born };
    w.most = may_grow(x, p, why) ? size_of(aligned(p, p->next, p->segment->batch)) : w.able;
    for (uint64_t k = p->seen > p->next ? p->seen : p->next; k < p->next + (uint64_t)n; k++) {
        gp_timely_came(p->timely, (int64_t)gp_model_since(x, p, k).born);
        p->came_ns = now, p->seen = k + 1;
    }
    w.came_ns = p->came_ns;
    gp_timely_choice c = gp_timely_choose(p->timely, &w);
    if (c.until_ns <= now)
        return 1 << c.size;
    gp_agenda_add(&x->agenda, (double)c.until_ns, FILLED, a, 0);
    return 0;
}

void gp_model_look_segment(simulation *x, int a)
{
    actor *p = &x->actor[a];
    reason why;
    uint64_t able = gp_model_able(x, p, &why);
    uint64_t room = p->head + (uint64_t)p->segment->depth;
    int stream = idle_stream(p, p->next), most = p->segment->batch;
    if (room < able)
        able = room, why = FOR_OUTPUT;
    if (p->next < able && stream < 0)
        why = FOR_STREAM;
    if (p->next >= able || stream < 0) {
        p->launcher_since = p->launcher_since < 0 ? x->now : p->launcher_since;
        set_idle(x, p, 1, why);
        return;
    }
    int n = able - p->next < (uint64_t)most ? (int)(able - p->next) : most;
    int take = p->timely ? choose(x, a, n, able - p->next, why)
             : x->g->batch_wait_ns && waits_to_fill(x, a, n, why) ? 0 : n;
    if (!take) {
        p->launcher_since = p->launcher_since < 0 ? x->now : p->launcher_since;
        set_idle(x, p, 1, FOR_INPUT);
        return;
    }
    n = p->regroup ? take : aligned(p, p->next, take);
    double wake = to_wake(x, p, p->launcher_since, p->looks);
    *flight_of(p, p->launched) = (piece){ .first = p->next, .n = n, .stream = stream, .due = x->now };
    if (p->timely)
        note_launch(x, p, flight_of(p, p->launched));
    p->launching = true, p->launcher_since = AWAKE;
    set_idle(x, p, 0, FOR_NOTHING);
    if (wake > 0)
        gp_model_share_cores(x, wake, LAUNCHER_WOKEN, a, 0);
    else
        gp_model_launch(x, a);
}

uint64_t gp_model_queued(simulation *x, int a)
{
    actor *p = &x->actor[a];
    uint64_t k = p->launched++;
    piece *q = flight_of(p, k);
    p->launching = false;
    p->next += (uint64_t)q->n;
    p->stream[q->stream] = true;
    p->report->busy_ns += (int64_t)(x->now - q->start);
    p->report->launches++;
    keep(x, (gp_slice){ GP_SLICE_LAUNCH, a, 0, 0, (int64_t)q->start, (int64_t)x->now, q->first, q->n });
    q->start = x->now;
    look_at(x, a);
    return k;
}

/* Publishes launches that are done, in order. */
void gp_model_reap(simulation *x, int a)
{
    actor *p = &x->actor[a];
    while (p->retired < p->launched && flight_of(p, p->retired)->done) {
        piece *q = flight_of(p, p->retired++);
        p->stream[q->stream] = false;
        gp_model_publish(x, a, q->first, q->n);
    }
    p->reaper_since = x->now;
    look_at(x, a);
}

/* What it takes until the reaper sees that launch q is done: it was asleep without a launch, and is woken by this one
 * while the device works; or it has looked at the device for long, and sleeps until that is done. */
static double reaper_wakes(simulation *x, const actor *p, const piece *q)
{
    bool waited = p->reaper_since > q->start, slept = !waited && q->start - p->reaper_since > p->looks;
    double wake = to_wake(x, p, waited ? p->reaper_since : q->start, x->polls);
    return wake > 0 || !slept ? wake : x->wake - (x->now - q->start);
}

void gp_model_launch_done(simulation *x, int a, uint64_t k)
{
    actor *p = &x->actor[a];
    piece *q = flight_of(p, k);
    gp_hist_add(&p->report->time, (int64_t)(x->now - q->start) / q->n, (uint64_t)q->n);
    q->done = true;
    if (k != p->retired || p->reaping)
        return;
    double wake = reaper_wakes(x, p, q);
    if (wake > 0) {
        p->reaping = true;
        gp_model_share_cores(x, wake, REAPED, a, 0);
    } else {
        gp_model_reap(x, a);
    }
}
