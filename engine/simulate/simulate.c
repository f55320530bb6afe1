/* simulate.c - a plan on paper: actors, rings, and what they wait for, as in engine/run, moved by an agenda.
 *
 *   host stage   workers that take firings, and whose thread does that: host.c
 *   segment      a launcher, what its launches do, and a reaper: segment.c
 *   cores        shared evenly by all threads that have work: host stages, launchers, threads that wake up, and on the
 *                CPU back end kernels. With `sync: spin` every thread that waits has a part of them, too. Else a thread
 *                that has waited for longer than it looks has to be woken (init_waiting() in setup.c)
 *   ranks        each has actors and rings of its own; those of one machine share its cores. In a collective stage all
 *                meet: host.c
 *
 * A slot is free, and a frame is there, as ring.c says. What happens at one time happens in the order in which it was
 * decided; then all look that may have something to do. */
#include "simulate/model.h"

/* ---- what happens next ------------------------------------------------ */

static bool before(const event *x, const event *y)
{
    return x->at < y->at || (x->at <= y->at && x->order < y->order);
}

static void push(simulation *x, agenda *g, event one)
{
    int i = g->n;
    (void)GP_PUSH(x->arena, g->event, g->n, g->cap);
    for (int up; i && before(&one, &g->event[up = (i - 1) / 2]); i = up)
        g->event[i] = g->event[up];
    g->event[i] = one;
}

void gp_model_add(simulation *x, agenda *g, double at, what then, int who, int lane)
{
    push(x, g, (event){ at, g->orders++, then, who, lane });
}

event gp_model_take(agenda *g)
{
    event first = g->event[0], last = g->event[--g->n];
    int i = 0;
    for (int down; (down = 2 * i + 1) < g->n; i = down) {
        down += down + 1 < g->n && before(&g->event[down + 1], &g->event[down]);
        if (!before(&g->event[down], &last))
            break;
        g->event[i] = g->event[down];
    }
    g->event[i] = last;
    return first;
}

/* Up to now, before which no job is done. */
static void go_on(share *s, double now)
{
    double took = now - s->now;
    if (s->jobs.n && took > 0) {
        double n = s->jobs.n + s->always, rate = n > s->capacity ? s->capacity / n : 1;
        s->had += took * rate;
        s->used += took * rate * s->jobs.n;
        s->delayed += took * (1 - rate) * s->jobs.n;
    }
    s->now = now;
}

void gp_model_touch(simulation *x, share *s)
{
    if (s->now < x->now)
        go_on(s, x->now);
    if (!s->touched)
        x->touched[x->ntouched++] = (int)(s - x->share);
    s->touched = true;
}

void gp_model_share(simulation *x, share *s, double work, what then, int who, int lane)
{
    gp_model_touch(x, s);
    gp_model_add(x, &s->jobs, s->had + work, then, who, lane);
}

void gp_model_share_cores(simulation *x, double work, what then, int a, int lane)
{
    gp_model_share(x, x->actor[a].host->cores, work, then, a, lane);
}

/* Finds for each share that was touched when its next job is done, behind all else at that time. Its older events no
 * longer count. */
static void settle(simulation *x)
{
    while (x->ntouched) {
        int i = x->touched[--x->ntouched];
        share *s = &x->share[i];
        s->touched = false, s->version++;
        if (!s->jobs.n)
            continue;
        double left = s->jobs.event[0].at - s->had, n = s->jobs.n + s->always;
        double at = s->now + (left > 0 ? n > s->capacity ? left * n / s->capacity : left : 0);
        push(x, &x->agenda, (event){ at, (UINT64_MAX >> 1) + (uint64_t)i, NULL, i, (int)s->version });
    }
}

/* The next thing that happens. False: nothing does. */
static bool step(simulation *x)
{
    event e;
    settle(x);
    do {
        if (!x->agenda.n)
            return false;
        e = gp_model_take(&x->agenda);
    } while (!e.what && (unsigned)e.lane != x->share[e.who].version);
    x->now = e.at;
    if (!e.what) {
        gp_model_touch(x, &x->share[e.who]);
        e = gp_model_take(&x->share[e.who].jobs);
    }
    e.what(x, e.who, e.lane);
    return true;
}

/* ---- threads ---------------------------------------------------------- */

void gp_model_look_at(simulation *x, int a)
{
    actor *p = &x->actor[a];
    if (p->listed || (p->segment ? p->launching : p->lends ? p->walk.busy || p->walk.waking : p->nbusy == p->nworkers))
        return;
    x->look[x->nlook++] = a;
    p->listed = true;
}

static void look(simulation *x)
{
    for (int i = 0; i < x->nlook; i++) {
        actor *p = &x->actor[x->look[i]];
        p->listed = false;
        (p->segment ? gp_model_look_segment : gp_model_look_host)(x, x->look[i]);
    }
    x->nlook = 0;
}

/* Where it has a part of a core it looks for longer. */
bool gp_model_sleeps(const simulation *x, const actor *p, double from, double looks)
{
    const share *cores = p->host->cores;
    double n = cores->jobs.n > 1 ? cores->jobs.n : 1, slower = n > cores->capacity ? n / cores->capacity : 1;
    return from >= 0 && x->now - from > looks * slower;
}

double gp_model_to_wake(simulation *x, const actor *p, double from, double looks)
{
    bool asleep = gp_model_sleeps(x, p, from, looks);
    x->wakes += asleep && x->c->wake_ns > 0;
    return asleep ? x->c->wake_ns : 0;
}

static void count_waits(simulation *x, actor *p)
{
    gp_actor_report *r = p->report;
    int64_t *const waits[] = { &r->wait_in_ns, &r->wait_out_ns, &r->wait_stream_ns };
    if (p->why != FOR_NOTHING)
        *waits[p->why] += (int64_t)((x->now - p->since) * p->nidle);
    p->since = x->now;
}

void gp_model_set_idle(simulation *x, actor *p, int n, reason why)
{
    if (n == p->nidle && why == p->why)
        return;
    count_waits(x, p);
    if (x->g->sync == GP_SYNC_SPIN) {
        gp_model_touch(x, p->host->cores);
        p->host->cores->always += n - p->nidle;
    }
    p->nidle = n, p->why = why;
}

/* ---- rings: which firings may begin, as ring.c says of slots and frames -- */

static uint64_t firings_with_room(const actor *p, const ring *r)
{
    uint64_t used = UINT64_MAX;
    for (int i = 0; i < r->ring->nconsumers; i++)
        used = r->reader[i].used < used ? r->reader[i].used : used;
    if (!r->ring->nconsumers)
        return UINT64_MAX / 2;
    return gp_firings_with_room(p->regroup, used + (uint64_t)r->ring->depth);
}

uint64_t gp_model_able(const simulation *x, const actor *p, reason *why)
{
    uint64_t able = p->total;
    *why = FOR_NOTHING;
    for (int i = 0; i < p->nin && able > p->next; i++) {
        const ring *r = &x->ring[p->in[i].ring];
        const actor *from = &x->actor[r->producer];
        uint64_t k = p->regroup ? gp_firings_ready(p->regroup, r->made) : r->made;
        if (k < able && from->head < from->total)
            able = k, *why = FOR_INPUT;
    }
    for (int i = 0; i < p->nout && able > p->next; i++) {
        uint64_t k = firings_with_room(p, &x->ring[p->out[i]]);
        if (k < able)
            able = k, *why = FOR_OUTPUT;
    }
    return able;
}

since gp_model_since(const simulation *x, const actor *p, uint64_t k)
{
    since s = { .born = INFINITY };
    for (int i = 0; i < p->nin; i++) {
        const ring *r = &x->ring[p->in[i].ring];
        uint64_t f = needs(p, k);
        const since *in = &r->since[f % (uint64_t)r->ring->depth];
        if (f < r->made && !r->carried && in->born < s.born)
            s = *in;
    }
    if (!(s.born < INFINITY))
        s.born = x->now;
    return s;
}

void gp_model_tell_launcher(simulation *x, const since *s, double end)
{
    if (s->due > 0)
        gp_timely_ended(x->actor[s->by].timely, s->size, (int64_t)(end - s->due));
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

void gp_model_publish(simulation *x, int a, uint64_t first, int n)
{
    actor *p = &x->actor[a];
    uint64_t end = first + (uint64_t)n;
    for (int i = 0; i < p->nout; i++) {
        ring *r = &x->ring[p->out[i]];
        for (uint64_t k = first; k < end; k++) {
            since s = gp_model_since(x, p, k);
            if (p->timely)             /* it is the launch that was retired last */
                s.due = flight_of(p, p->retired - 1)->due, s.by = a, s.size = gp_timely_size(n);
            for (uint64_t f = made_by(p, k), to = made_by(p, k + 1); f < to; f++)
                r->since[f % (uint64_t)r->ring->depth] = s;
        }
        uint64_t made = made_by(p, end);
        r->put += (double)(made - r->made) * x->now;
        r->made = made;
    }
    for (uint64_t k = first; !p->nout && k < end; k++) {
        since s = gp_model_since(x, p, k);
        gp_hist_add(&x->out->report->latency, (int64_t)(x->now - s.born), 1);
        x->late += x->now - s.born > (double)x->g->latency_ns;
        gp_model_tell_launcher(x, &s, x->now);
        if (a == x->last && k >= x->line.from && k < x->line.to)
            add_to_line(x, k);
    }
    for (int i = 0; i < p->nin; i++) {
        reader *r = &x->ring[p->in[i].ring].reader[p->in[i].reader];
        uint64_t used = needs(p, end);
        r->got += (double)(used - r->used) * x->now;
        r->used = used;
    }
    p->head = end;
    if (end >= p->total)
        p->report->end_ns = (int64_t)x->now, x->sinks -= !p->nout;
    for (int i = 0; i < p->nnear && !p->lends; i++)    /* who lends tells them one after the other */
        gp_model_look_at(x, p->near[i]);
}

/* ---- all -------------------------------------------------------------- */

gp_simulated *gp_simulate(gp_arena *a, const gp_plan *plan, const gp_costs *costs, uint64_t frames, int slices,
                          gp_errs *errs)
{
    for (int i = 0; i < plan->graph->nstages; i++)
        if (gp_is_leaky(&plan->graph->stage[i])) {
            gp_fail(errs, GP_E_USAGE, plan->graph->stage[i].at, "a simulation does not know which frames 'when_full' drops: "
                    "without it, it shows how many there could be");
            return NULL;
        }
    gp_simulated *s = GP_NEW(a, gp_simulated, 1);
    gp_report *r = s->report = GP_NEW(a, gp_report, 1);
    int ranks = costs->ranks > 1 ? costs->ranks : 1;
    gp_loc at = { .file = plan->graph->file };
    simulation x = { .arena = a, .plan = plan, .g = plan->graph, .c = costs, .ranks = ranks, .each = plan->nactors,
                     .nactors = ranks * plan->nactors, .out = s, .slices = slices };
    r->actor = GP_NEW(a, gp_actor_report, x.nactors);
    r->nactors = plan->nactors;
    s->slice = GP_NEW(a, gp_slice, slices);
    gp_model_init(&x, frames);
    if (x.last < 0)
        return GP_NULL(gp_fail(errs, GP_E_USAGE, at, "no stage takes what comes out: there is nothing to simulate"));
    for (int i = 0; i < x.nactors; i++)
        gp_model_look_at(&x, i);
    do {
        look(&x);
    } while (x.sinks && step(&x));
    if (x.sinks)
        return GP_NULL(gp_fail(errs, GP_E_BUG, at, "the simulation stands still after %.3g ms", 1e-6 * x.now));
    for (int i = 0; i < x.nactors; i++)
        count_waits(&x, &x.actor[i]);
    for (int i = 0; i < x.nshares; i++)
        go_on(&x.share[i], x.now);
    gp_model_report(&x);
    return s;
}
