/* simulate.c - a plan on paper: actors, rings, and what they wait for, as in engine/run, moved by an agenda.
 *
 *   host stage   `workers` take consecutive firings, and publish them in order. A firing has a core for a while, then
 *                sleeps for a while. A source with a pace waits for its time first.
 *   segment      a launcher, one launch after the other: as many consecutive frames as are ready, a power of two of
 *                them from an aligned slot on, for an idle stream; with `batch_wait` it waits for more, and with
 *                `latency` timely.c chooses. The launch goes through the copy engine for that direction, which takes
 *                one copy after the other; its kernels share the device evenly with those of other launches, as if each
 *                launch alone filled it; stages whose frames take turns wait for the launch before. Launches are
 *                published in order, and a stream is free when its launch is. With several devices frames take turns on
 *                them, each has streams and engines of its own, and a copy from another one comes before the kernels.
 *   copies       in and out of all devices of a machine share what its memory gives, by their rates
 *   cores        shared evenly by all threads that have work: host stages, launchers, threads that wake up, and on the
 *                CPU back end kernels. With `sync: spin` every thread that waits has a part of them, too.
 *   ranks        each has actors and rings of its own; those of one machine share its cores. In a collective stage a
 *                round begins when the last rank has come, and takes what goes over the slowest link (machine.c): one
 *                round after the other, whatever stage it is of. On one machine, by MPI, a thread of each rank copies.
 *
 * A slot is free, and a frame is there, as ring.c says. */
#include <math.h>
#include "simulate/model.h"

/* ---- rings ----------------------------------------------------------- */

static uint64_t firings_ready(const actor *p, const ring *r)
{
    return p->regroup ? gp_firings_ready(p->regroup, r->made) : r->made;
}

static uint64_t firings_with_room(const actor *p, const ring *r)
{
    uint64_t used = UINT64_MAX;
    for (int i = 0; i < r->ring->nconsumers; i++)
        used = r->reader[i].used < used ? r->reader[i].used : used;
    if (!r->ring->nconsumers)
        return UINT64_MAX / 2;
    uint64_t frames = used + (uint64_t)r->ring->depth;
    const gp_regroup *g = p->regroup;
    if (g && g->every > 1)
        return g->every == INT64_MAX ? UINT64_MAX / 2 : frames * (uint64_t)g->every + (uint64_t)g->every - 1;
    return g ? frames / (uint64_t)g->make : frames;
}

static bool is_over(const simulation *x, const ring *r)
{
    const actor *p = &x->actor[r->producer];
    return p->head >= p->total;
}

/* The firings that may begin up to now; *why there are no more. */
static uint64_t firings_able(const simulation *x, const actor *p, reason *why)
{
    uint64_t able = p->total;
    *why = FOR_NOTHING;
    for (int i = 0; i < p->nin; i++) {
        const ring *r = &x->ring[p->in[i].ring];
        uint64_t k = firings_ready(p, r);
        if (k < able && !is_over(x, r))
            able = k, *why = FOR_INPUT;
    }
    for (int i = 0; i < p->nout && able > p->next; i++) {
        uint64_t k = firings_with_room(p, &x->ring[p->out[i]]);
        if (k < able)
            able = k, *why = FOR_OUTPUT;
    }
    return able;
}

static double varied(const actor *p, uint64_t firing)
{
    return p->variant ? (double)p->variant[firing % VARIANTS] : 1;
}

/* ---- waiting --------------------------------------------------------- */

/* Adds what its idle threads waited up to now. */
static void count_waits(simulation *x, actor *p)
{
    int64_t ns = (int64_t)((x->now - p->since) * p->nidle);
    gp_actor_report *r = p->report;
    if (p->why == FOR_INPUT)
        r->wait_in_ns += ns;
    else if (p->why == FOR_OUTPUT)
        r->wait_out_ns += ns;
    else if (p->why == FOR_STREAM)
        r->wait_stream_ns += ns;
    p->since = x->now;
}

/* Before its jobs change. */
static void touch(simulation *x, gp_share *s)
{
    gp_share_go_on(s, x->now);
    if (!s->touched)
        x->touched[x->ntouched++] = (int)(s - x->share);
    s->touched = true;
}

static void set_idle(simulation *x, actor *p, int n, reason why)
{
    count_waits(x, p);
    if (x->spins) {
        touch(x, p->host->cores);
        p->host->cores->always += n - p->nidle;
    }
    p->nidle = n, p->why = why;
}

/* Of the first rank. */
static void keep(simulation *x, gp_slice s)
{
    if (s.actor < x->each && x->out->nslices < x->slices)
        x->out->slice[x->out->nslices++] = s;
}

/* ---- moving on ------------------------------------------------------- */

static void look(simulation *x, int a);

/* Since when the frames of its firing k, the oldest of them, are under way. */
static since since_of(const simulation *x, const actor *p, uint64_t k)
{
    since s = { .born = INFINITY };
    for (int i = 0; i < p->nin; i++) {
        const ring *r = &x->ring[p->in[i].ring];
        uint64_t f = p->regroup ? gp_firing_from(p->regroup, k) : k;
        const since *in = &r->since[f % (uint64_t)r->ring->depth];
        if (f < r->made && !x->g->buffer[r->ring->buffer].carried && in->born < s.born)
            s = *in;
    }
    if (!(s.born < INFINITY))
        s.born = x->now;
    return s;
}

/* With `latency`: a frame has ended, or is launched again. */
static void tell_launcher(simulation *x, const since *s, double end)
{
    if (s->due > 0)
        gp_timely_ended(x->actor[s->by].timely, s->size, (int64_t)(end - s->due));
}

static int size_of(int n)
{
    return 31 - __builtin_clz((unsigned)n);
}

static void add_to_line(simulation *x, uint64_t firing)
{
    line *l = &x->line;
    if (l->n < 1)
        l->start = x->now;
    l->end = x->now;
    double t = x->now - l->start, k = (double)(firing - l->from);
    l->n++, l->t += t, l->k += k, l->tt += t * t, l->tk += t * k;
}

static piece *flight_of(const actor *p, uint64_t k)
{
    return &p->flight[k % (uint64_t)(p->segment->depth + 1)];
}

/* Firings [first, first + n) are done, and all before them. */
static void publish(simulation *x, int a, uint64_t first, int n)
{
    actor *p = &x->actor[a];
    uint64_t end = first + (uint64_t)n;
    for (int i = 0; i < p->nout; i++) {
        ring *r = &x->ring[p->out[i]];
        for (uint64_t k = first; k < end; k++) {
            since s = since_of(x, p, k);
            if (p->timely)             /* it is the launch that was retired last */
                s.due = flight_of(p, p->retired - 1)->due, s.by = a, s.size = size_of(n);
            for (uint64_t f = made_by(p, k), to = made_by(p, k + 1); f < to; f++)
                r->since[f % (uint64_t)r->ring->depth] = s;
        }
        uint64_t made = made_by(p, end);
        r->put += (double)(made - r->made) * x->now;
        r->made = made;
    }
    for (uint64_t k = first; !p->nout && k < end; k++) {
        since s = since_of(x, p, k);
        gp_hist_add(&x->out->report->latency, (int64_t)(x->now - s.born), 1);
        x->late += x->now - s.born > (double)x->g->latency_ns;
        tell_launcher(x, &s, x->now);
    }
    for (int i = 0; i < p->nin; i++) {
        reader *r = &x->ring[p->in[i].ring].reader[p->in[i].reader];
        uint64_t used = used_by(p, end);
        r->got += (double)(used - r->used) * x->now;
        r->used = used;
    }
    p->head = end;
    for (uint64_t k = first; k < end && a == x->last; k++)
        if (k >= x->line.from && k < x->line.to)
            add_to_line(x, k);
    if (end >= p->total)
        p->report->end_ns = (int64_t)x->now, x->sinks -= !p->nout;
    for (int i = 0; i < p->nout; i++)
        for (int k = 0; k < x->ring[p->out[i]].ring->nconsumers; k++)
            look(x, x->ring[p->out[i]].reader[k].actor);
    for (int i = 0; i < p->nin; i++)
        look(x, x->ring[p->in[i].ring].producer);
}

/* ---- host stages ----------------------------------------------------- */

static void share_cores(simulation *x, double work, what then, int a, int lane)
{
    gp_share *cores = x->actor[a].host->cores;
    touch(x, cores);
    gp_share_add(cores, work, then, a, lane);
}

static void work(simulation *x, int a, int w)
{
    share_cores(x, x->actor[a].worker[w].work, WORKED, a, w);
}

static void begin_work(simulation *x, int a, int w)
{
    actor *p = &x->actor[a];
    piece *q = &p->worker[w];
    bool shared = p->stage->shared;    /* frames of all ranks come at that pace */
    uint64_t number = shared ? q->first * (uint64_t)x->ranks + (uint64_t)p->rank : q->first;
    double due = (double)number * p->cost->pace_ns;
    q->start = x->now;
    if (due > x->now) {
        p->report->idle_ns += (int64_t)(due - x->now);
        gp_agenda_add(&x->agenda, due, PACED, a, w);
    } else {
        work(x, a, w);
    }
}

static void look_host(simulation *x, int a)
{
    actor *p = &x->actor[a];
    reason why;
    if (p->nbusy == p->nworkers)
        return;
    uint64_t able = firings_able(x, p, &why);
    int idle = 0;
    for (int w = 0; w < p->nworkers; w++) {
        piece *q = &p->worker[w];
        if (q->busy)
            continue;
        bool room = p->next - p->head < p->window;
        if (p->next >= able || !room) {
            idle++, q->rested = true;
            why = p->next < able ? FOR_OUTPUT : why;
            continue;
        }
        bool rested = q->rested && !x->spins && x->wake > 0;
        double factor = varied(p, p->next);
        *q = (piece){ .busy = true, .first = p->next++, .n = 1, .work = p->cost->cpu_ns * factor,
                      .sleep = p->cost->wait_ns * factor };
        p->nbusy++;
        if (rested)
            share_cores(x, x->wake, WOKEN, a, w);
        else
            begin_work(x, a, w);
    }
    set_idle(x, p, idle, why);
}

static void hand_in(simulation *x, int a, int w)
{
    actor *p = &x->actor[a];
    piece *q = &p->worker[w];
    int64_t took = (int64_t)(x->now - q->start);
    p->report->busy_ns += took;
    gp_hist_add(&p->report->time, took, 1);
    keep(x, (gp_slice){ GP_SLICE_STAGE, a, w, 0, (int64_t)q->start, (int64_t)x->now, q->first, 1 });
    q->busy = q->rested = false;
    p->nbusy--;
    p->handed[q->first % p->window] = 1;
    uint64_t first = p->head, end = first;
    while (end < p->next && p->handed[end % p->window])
        p->handed[end++ % p->window] = 0;
    if (end > first)
        publish(x, a, first, (int)(end - first));
    look(x, a);
}

/* ---- ranks ------------------------------------------------------------ */

/* Of the ranks that have a round k of this stage, all have come: it is over after a while. */
static void begin_round(simulation *x, int index, uint64_t k)
{
    const gp_stage *st = x->actor[index].stage;
    bool on_cores = gp_round_takes_cores(x->c, st);
    double ns = gp_round_ns(x->c, st), from = on_cores ? x->now : fmax(x->now, x->link_free);
    x->link_free = on_cores ? x->link_free : from + ns;
    x->came[index] = 0;
    for (int r = 0; r < x->ranks; r++) {
        actor *p = &x->actor[r * x->each + index];
        if (k >= p->total)
            continue;
        p->report->idle_ns += (int64_t)(from - p->worker[0].due);
        if (on_cores)
            share_cores(x, ns, MET, r * x->each + index, 0);
        else
            gp_agenda_add(&x->agenda, from + ns, MET, r * x->each + index, 0);
    }
}

/* What a host stage does is done: it hands it in, or waits for other ranks. */
static void done_on_host(simulation *x, int a, int w)
{
    actor *p = &x->actor[a];
    piece *q = &p->worker[w];
    if (!x->came || !p->stage->kind->collective) {
        hand_in(x, a, w);
        return;
    }
    int ranks = 0;
    q->due = x->now;
    for (int r = 0; r < x->ranks; r++)
        ranks += q->first < x->actor[r * x->each + p->index].total;
    if (++x->came[p->index] == ranks)
        begin_round(x, p->index, q->first);
}

/* ---- segments -------------------------------------------------------- */

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

static void launch(simulation *x, int a)
{
    actor *p = &x->actor[a];
    flight_of(p, p->launched)->start = x->now;
    share_cores(x, p->launch->launch_ns, QUEUED, a, 0);
}

/* May more frames than these come before they are launched? */
static bool may_grow(const simulation *x, const actor *p, reason why)
{
    bool more = why != FOR_NOTHING;
    for (int i = 0; more && i < p->nin; i++) {
        const ring *r = &x->ring[p->in[i].ring];
        more = !x->g->buffer[r->ring->buffer].carried
            && (p->regroup || p->head < p->next || r->made - p->next < (uint64_t)r->ring->depth);
    }
    return more;
}

static void note_launch(simulation *x, actor *p, const piece *q)
{
    int size = size_of(q->n);
    gp_timely_launched(p->timely, size);
    for (int i = 0; i < q->n; i++) {
        since s = since_of(x, p, q->first + (uint64_t)i);
        tell_launcher(x, &s, q->due + (double)gp_timely_tail(p->timely, size));
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
    gp_timely_ready w = { .now_ns = now, .n = n, .born_ns = (int64_t)since_of(x, p, p->next).born,
                     .able = size_of(aligned(p, p->next, n)), .all = (int)all, .lanes = p->segment->streams,
                          .newest_ns = (int64_t)since_of(x, p, p->next + all - 1).born };
    w.most = may_grow(x, p, why) ? size_of(aligned(p, p->next, p->segment->batch)) : w.able;
    for (uint64_t k = p->seen > p->next ? p->seen : p->next; k < p->next + (uint64_t)n; k++) {
        gp_timely_came(p->timely, (int64_t)since_of(x, p, k).born);
        p->came_ns = now, p->seen = k + 1;
    }
    w.came_ns = p->came_ns;
    gp_timely_choice c = gp_timely_choose(p->timely, &w);
    if (c.until_ns <= now)
        return 1 << c.size;
    gp_agenda_add(&x->agenda, (double)c.until_ns, FILLED, a, 0);
    return 0;
}

static void look_segment(simulation *x, int a)
{
    actor *p = &x->actor[a];
    reason why;
    if (p->launching)
        return;
    uint64_t able = firings_able(x, p, &why);
    uint64_t room = p->head + (uint64_t)p->segment->depth;
    int stream = idle_stream(p, p->next), most = p->segment->batch;
    if (room < able)
        able = room, why = FOR_OUTPUT;
    if (p->next < able && stream < 0)
        why = FOR_STREAM;
    if (p->next >= able || stream < 0) {
        p->launcher_rested = true;
        set_idle(x, p, 1, why);
        return;
    }
    int n = able - p->next < (uint64_t)most ? (int)(able - p->next) : most;
    int take = p->timely ? choose(x, a, n, able - p->next, why)
             : x->g->batch_wait_ns && waits_to_fill(x, a, n, why) ? 0 : n;
    if (!take) {
        p->launcher_rested = true;
        set_idle(x, p, 1, FOR_INPUT);
        return;
    }
    n = p->regroup ? take : aligned(p, p->next, take);
    bool rested = p->launcher_rested && !x->spins && x->wake > 0;
    *flight_of(p, p->launched) = (piece){ .first = p->next, .n = n, .stream = stream, .due = x->now };
    if (p->timely)
        note_launch(x, p, flight_of(p, p->launched));
    p->launching = true, p->launcher_rested = false;
    set_idle(x, p, 0, FOR_NOTHING);
    if (rested)
        share_cores(x, x->wake, LAUNCHER_WOKEN, a, 0);
    else
        launch(x, a);
}

static void look(simulation *x, int a)
{
    if (x->actor[a].segment)
        look_segment(x, a);
    else
        look_host(x, a);
}

/* The device that a launch is on. */
static gpu *gpu_of(const actor *p, const piece *q)
{
    return p->on[gp_lane(p->segment->place, q->first)];
}

static int number_of(const actor *p, uint64_t k)
{
    return (int)(k % (uint64_t)(p->segment->depth + 1));
}

static double copy_rate(const gp_costs *c, gp_engine e)
{
    return e == GP_ENGINE_COPY_IN ? c->copy_in : e == GP_ENGINE_COPY_OUT ? c->copy_out : c->copy_peer;
}

static size_t copy_bytes(const actor *p, gp_engine e)
{
    return e == GP_ENGINE_COPY_IN ? p->in_bytes : e == GP_ENGINE_COPY_OUT ? p->out_bytes : p->peer_bytes;
}

/* Copies in and out weigh as much as their rates. */
static void weigh(simulation *x, gp_share *copies, double rate)
{
    touch(x, copies);
    if (x->c->memory > 0)
        copies->always += rate > 0 ? rate - 1 : rate + 1;
}

static void begin_copy(simulation *x, int a, uint64_t k, gp_engine e)
{
    static const what then[GP_ENGINES] = { [GP_ENGINE_COPY_IN] = COPIED_IN, [GP_ENGINE_COPY_OUT] = COPIED_OUT,
                                           [GP_ENGINE_COPY_PEER] = COPIED_PEER };
    actor *p = &x->actor[a];
    piece *q = flight_of(p, k);
    gpu *d = gpu_of(p, q);
    size_t bytes = copy_bytes(p, e) * (size_t)q->n;
    double rate = copy_rate(x->c, e), took = 1e9 * (double)bytes / rate + x->c->copy_ns;
    q->copying = x->now;
    d->bytes[e] += bytes;
    if (x->on_cores) {
        share_cores(x, took, (int)then[e], a, number_of(p, k));
    } else if (e == GP_ENGINE_COPY_PEER) {
        gp_agenda_add(&x->agenda, x->now + took, (int)then[e], a, number_of(p, k));
    } else {
        weigh(x, p->host->copies, rate);
        gp_share_add(p->host->copies, took, (int)then[e], a, number_of(p, k));
    }
}

/* An engine takes one copy after the other. */
static void copy(simulation *x, int a, uint64_t k, gp_engine e)
{
    actor *p = &x->actor[a];
    gpu *d = gpu_of(p, flight_of(p, k));
    waiting me = { a, k };
    flight_of(p, k)->behind.actor = -1;
    if (x->on_cores || !d->engine[e].busy) {
        d->engine[e].busy = true;
        begin_copy(x, a, k, e);
    } else if (d->engine[e].first.actor < 0) {
        d->engine[e].first = d->engine[e].last = me;
    } else {
        const waiting *last = &d->engine[e].last;
        flight_of(&x->actor[last->actor], last->launch)->behind = me;
        d->engine[e].last = me;
    }
}

/* It is done with a copy, and takes the next. */
static void end_copy(simulation *x, int a, uint64_t k, gp_engine e)
{
    actor *p = &x->actor[a];
    const piece *q = flight_of(p, k);
    gpu *d = gpu_of(p, q);
    waiting next = d->engine[e].first;
    d->busy[e] += x->now - q->copying;
    keep(x, (gp_slice){ e == GP_ENGINE_COPY_IN ? GP_SLICE_COPY_IN : e == GP_ENGINE_COPY_OUT ? GP_SLICE_COPY_OUT
                        : GP_SLICE_COPY_PEER, a, q->stream, d->index, (int64_t)q->copying, (int64_t)x->now, q->first,
                        q->n });
    if (x->on_cores)
        return;
    if (e != GP_ENGINE_COPY_PEER)
        weigh(x, p->host->copies, -copy_rate(x->c, e));
    d->engine[e].busy = next.actor >= 0;
    if (next.actor < 0)
        return;
    d->engine[e].first = flight_of(&x->actor[next.actor], next.launch)->behind;
    begin_copy(x, next.actor, next.launch, e);
}

/* Kernels, of which `part` are to do. */
static void compute(simulation *x, int a, uint64_t k, double part, what then)
{
    actor *p = &x->actor[a];
    piece *q = flight_of(p, k);
    gp_share *s = x->on_cores ? p->host->cores : gpu_of(p, q)->kernels;
    double ns = (p->launch->kernels_ns * q->n + p->launch->fixed_ns) * varied(p, q->first) * part;
    if (x->on_cores && !q->work && !x->spins)
        ns += x->wake;                 /* its thread sleeps between launches */
    q->work = 1;
    touch(x, s);
    gp_share_add(s, ns, then, a, number_of(p, k));
}

static void begin_compute(simulation *x, int a, uint64_t k)
{
    actor *p = &x->actor[a];
    gpu *d = gpu_of(p, flight_of(p, k));
    if (!d->computing++)
        d->computing_since = x->now;
    flight_of(p, k)->sleep = x->now;               /* when it began */
    if (p->turn < 1)
        compute(x, a, k, 1 - p->turn, COMPUTED);
    else if (k == p->turns)
        compute(x, a, k, 1, TOOK_TURN);
    else
        flight_of(p, k)->rested = true;
}

/* After the copies from the host. */
static void copied_in(simulation *x, int a, uint64_t k)
{
    if (x->actor[a].peer_bytes)
        copy(x, a, k, GP_ENGINE_COPY_PEER);
    else
        begin_compute(x, a, k);
}

static void done_on_device(simulation *x, int a, uint64_t k);

static void end_compute(simulation *x, int a, uint64_t k)
{
    actor *p = &x->actor[a];
    const piece *q = flight_of(p, k);
    gpu *d = gpu_of(p, q);
    keep(x, (gp_slice){ GP_SLICE_COMPUTE, a, q->stream, 0, (int64_t)q->sleep, (int64_t)x->now, q->first, q->n });
    if (!--d->computing)
        d->busy[GP_ENGINE_COMPUTE] += x->now - d->computing_since;
    if (p->out_bytes && !x->plan->unified && (!p->regroup || made_by(p, q->first + (uint64_t)q->n) > made_by(p,
            q->first)))
        copy(x, a, k, GP_ENGINE_COPY_OUT);
    else
        done_on_device(x, a, k);
}

/* All of it is done that need not wait for the launch before. */
static void computed(simulation *x, int a, uint64_t k)
{
    actor *p = &x->actor[a];
    if (!(p->turn > 0))
        end_compute(x, a, k);
    else if (k == p->turns)
        compute(x, a, k, p->turn, TOOK_TURN);
    else
        flight_of(p, k)->rested = true;
}

static void took_turn(simulation *x, int a, uint64_t k)
{
    actor *p = &x->actor[a];
    p->turns = k + 1;
    if (p->turns < p->launched && flight_of(p, p->turns)->rested) {
        flight_of(p, p->turns)->rested = false;
        compute(x, a, p->turns, p->turn, TOOK_TURN);
    }
    end_compute(x, a, k);
}

static void queued(simulation *x, int a)
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
    if (p->in_bytes && !x->plan->unified)
        copy(x, a, k, GP_ENGINE_COPY_IN);
    else
        copied_in(x, a, k);
    look(x, a);
}

/* Publishes launches that are done, in order. */
static void reap(simulation *x, int a)
{
    actor *p = &x->actor[a];
    while (p->retired < p->launched && flight_of(p, p->retired)->done) {
        piece *q = flight_of(p, p->retired++);
        p->stream[q->stream] = false;
        publish(x, a, q->first, q->n);
    }
    p->reaper_rested = true;
    look(x, a);
}

static void done_on_device(simulation *x, int a, uint64_t k)
{
    actor *p = &x->actor[a];
    piece *q = flight_of(p, k);
    gp_hist_add(&p->report->time, (int64_t)(x->now - q->start) / q->n, (uint64_t)q->n);
    q->done = true;
    if (k != p->retired || p->reaping)
        return;
    if (x->wake > 0 && !x->spins) {
        p->reaping = true;
        share_cores(x, x->wake, REAPED, a, 0);
    } else {
        reap(x, a);
    }
}

/* ---- all of it ------------------------------------------------------- */

/* The launch in slot `lane` of its actor's launches in flight. */
static uint64_t launch_at(const actor *p, int lane)
{
    uint64_t n = (uint64_t)(p->segment->depth + 1), k = p->retired / n * n + (uint64_t)lane;
    return k < p->retired ? k + n : k;
}

static void happen(simulation *x, gp_due e)
{
    actor *p = &x->actor[e.who];
    switch ((what)e.what) {
    case WOKEN:      begin_work(x, e.who, e.lane); break;
    case LAUNCHER_WOKEN: launch(x, e.who); break;
    case FILLED:     look(x, e.who); break;
    case PACED:
        work(x, e.who, e.lane);
        break;
    case WORKED:
        if (p->worker[e.lane].sleep > 0)
            gp_agenda_add(&x->agenda, x->now + p->worker[e.lane].sleep, SLEPT, e.who, e.lane);
        else
            done_on_host(x, e.who, e.lane);
        break;
    case SLEPT:      done_on_host(x, e.who, e.lane); break;
    case MET:        hand_in(x, e.who, e.lane); break;
    case QUEUED:     queued(x, e.who); break;
    case COPIED_IN:
        end_copy(x, e.who, launch_at(p, e.lane), GP_ENGINE_COPY_IN);
        copied_in(x, e.who, launch_at(p, e.lane));
        break;
    case COPIED_PEER:
        end_copy(x, e.who, launch_at(p, e.lane), GP_ENGINE_COPY_PEER);
        begin_compute(x, e.who, launch_at(p, e.lane));
        break;
    case COMPUTED:   computed(x, e.who, launch_at(p, e.lane)); break;
    case TOOK_TURN:  took_turn(x, e.who, launch_at(p, e.lane)); break;
    case COPIED_OUT:
        end_copy(x, e.who, launch_at(p, e.lane), GP_ENGINE_COPY_OUT);
        done_on_device(x, e.who, launch_at(p, e.lane));
        break;
    case REAPED:     p->reaping = false, reap(x, e.who); break;
    }
}

/* The share whose next job is done first. */
static gp_share *first_share(simulation *x)
{
    while (x->ntouched) {
        int i = x->touched[--x->ntouched];
        x->share[i].touched = false;
        x->at[i] = gp_share_next(&x->share[i]);
        for (int k = (x->leaves + i) / 2; k; k /= 2) {
            int a = x->winner[2 * k], b = x->winner[2 * k + 1];
            x->winner[k] = x->at[b] < x->at[a] ? b : a;
        }
    }
    return &x->share[x->winner[1]];
}

/* The next thing that happens. False: nothing does. */
static bool step(simulation *x)
{
    double at = x->agenda.n ? x->agenda.due[0].at : INFINITY;
    gp_share *of = first_share(x);
    double next = x->at[of - x->share];
    bool shared = next < at;
    if (shared)
        at = next;
    if (at == INFINITY)
        return false;
    x->now = at;
    if (shared)
        touch(x, of);
    happen(x, gp_agenda_take(shared ? &of->jobs : &x->agenda));
    return true;
}

gp_simulated *gp_simulate(gp_arena *a, const gp_plan *plan, const gp_costs *costs, uint64_t frames, int slices,
                          gp_errs *errs)
{
    gp_simulated *s = GP_NEW(a, gp_simulated, 1);
    gp_report *r = s->report = GP_NEW(a, gp_report, 1);
    int ranks = costs->ranks > 1 ? costs->ranks : 1;
    simulation x = { .arena = a, .plan = plan, .g = plan->graph, .c = costs, .ranks = ranks, .each = plan->nactors,
                     .nactors = ranks * plan->nactors, .out = s, .slices = slices, .agenda.arena = a,
                     .wake = costs->wake_ns, .spins = plan->graph->sync == GP_SYNC_SPIN };
    r->actor = GP_NEW(a, gp_actor_report, x.nactors);
    r->nactors = plan->nactors;
    s->slice = GP_NEW(a, gp_slice, slices);
    gp_model_init(&x, frames);
    if (x.last < 0) {
        gp_fail(errs, GP_E_USAGE, (gp_loc){ .file = plan->graph->file }, "no stage takes what comes out: there is "
                "nothing to simulate");
        return NULL;
    }
    for (int i = 0; i < x.nactors; i++)
        look(&x, i);
    while (x.sinks && step(&x))
        ;
    if (x.sinks) {
        gp_fail(errs, GP_E_BUG, (gp_loc){ .file = plan->graph->file }, "the simulation stands still after %.3g ms",
                1e-6 * x.now);
        return NULL;
    }
    for (int i = 0; i < x.nactors; i++)
        count_waits(&x, &x.actor[i]);
    for (int i = 0; i < x.nshares; i++)
        gp_share_go_on(&x.share[i], x.now);
    gp_model_report(&x);
    return s;
}
