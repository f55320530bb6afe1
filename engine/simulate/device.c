/* device.c - what a launch does: copies in, from another device, kernels, copies out.
 *
 * It goes through the copy engine for that direction, which takes one copy after the other; copies in and out of all
 * devices of a machine share what its memory gives, by their rates. Its kernels fill a part of the device (costs_for.c),
 * and run beside those of other launches, all as fast as alone, until it is full; then they share it evenly. Stages
 * whose frames take turns wait for the launch before. With several devices frames take turns on them, and each has
 * engines of its own. On the CPU back end all of it is work of the cores. */
#include "simulate/model.h"

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
        gp_model_share_cores(x, took, (int)then[e], a, number_of(p, k));
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

/* How much of its device a launch fills. */
static double fills(const actor *p, const piece *q)
{
    double part = p->launch->part > 0 ? p->launch->part * q->n : 1;
    return part < 1 ? part : 1;
}

/* Its kernels, alone. */
static double kernels_ns(const actor *p, const piece *q)
{
    double firings = p->launch->part > 0 ? p->launch->part * q->n : q->n;
    return (p->launch->kernels_ns * (firings > 1 ? firings : 1) + p->launch->fixed_ns) * varied(p, q->first);
}

/* A device is shared by what launches fill of it: all go on alike, and as fast as alone, as long as there is room. */
static void occupy(simulation *x, gp_share *kernels, double more)
{
    touch(x, kernels);
    kernels->always = kernels->jobs.n ? kernels->always + more : more;
}

/* Kernels, of which `part` are to do. */
static void compute(simulation *x, int a, uint64_t k, double part, what then)
{
    actor *p = &x->actor[a];
    piece *q = flight_of(p, k);
    gp_share *s = x->on_cores ? p->host->cores : gpu_of(p, q)->kernels;
    double ns = kernels_ns(p, q) * part;
    if (x->on_cores && !q->work)
        ns += x->wake;                 /* its thread sleeps between launches */
    q->work = 1;
    if (x->on_cores)
        touch(x, s);
    else
        occupy(x, s, fills(p, q) - 1);
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

/* Is that all of the launch? */
static bool end_compute(simulation *x, int a, uint64_t k)
{
    actor *p = &x->actor[a];
    const piece *q = flight_of(p, k);
    gpu *d = gpu_of(p, q);
    keep(x, (gp_slice){ GP_SLICE_COMPUTE, a, q->stream, 0, (int64_t)q->sleep, (int64_t)x->now, q->first, q->n });
    if (!--d->computing)
        d->busy[GP_ENGINE_COMPUTE] += x->now - d->computing_since;
    bool copies = p->out_bytes && !x->plan->unified
               && (!p->regroup || made_by(p, q->first + (uint64_t)q->n) > made_by(p, q->first));
    if (copies)
        copy(x, a, k, GP_ENGINE_COPY_OUT);
    return !copies;
}

/* All of it is done that need not wait for the launch before. */
static bool computed(simulation *x, int a, uint64_t k)
{
    actor *p = &x->actor[a];
    if (!(p->turn > 0))
        return end_compute(x, a, k);
    if (k == p->turns)
        compute(x, a, k, p->turn, TOOK_TURN);
    else
        flight_of(p, k)->rested = true;
    return false;
}

static bool took_turn(simulation *x, int a, uint64_t k)
{
    actor *p = &x->actor[a];
    p->turns = k + 1;
    if (p->turns < p->launched && flight_of(p, p->turns)->rested) {
        flight_of(p, p->turns)->rested = false;
        compute(x, a, p->turns, p->turn, TOOK_TURN);
    }
    return end_compute(x, a, k);
}

void gp_model_begin_launch(simulation *x, int a, uint64_t k)
{
    if (x->actor[a].in_bytes && !x->plan->unified)
        copy(x, a, k, GP_ENGINE_COPY_IN);
    else
        copied_in(x, a, k);
}

bool gp_model_device_did(simulation *x, what did, int a, uint64_t k)
{
    const actor *p = &x->actor[a];
    if (!x->on_cores && (did == COMPUTED || did == TOOK_TURN))
        occupy(x, gpu_of(p, flight_of(p, k))->kernels, 1 - fills(p, flight_of(p, k)));
    switch (did) {
    case COPIED_IN:   end_copy(x, a, k, GP_ENGINE_COPY_IN), copied_in(x, a, k); return false;
    case COPIED_PEER: end_copy(x, a, k, GP_ENGINE_COPY_PEER), begin_compute(x, a, k); return false;
    case COMPUTED:    return computed(x, a, k);
    case TOOK_TURN:   return took_turn(x, a, k);
    default:          end_copy(x, a, k, GP_ENGINE_COPY_OUT); return true;
    }
}
