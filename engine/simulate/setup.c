/* setup.c - actors and rings of a plan, before the first frame of a simulation. */
#include "simulate/model.h"

/* ---- times ----------------------------------------------------------- */

/* The standard normal distribution's q-quantile, to 4.5e-4: Abramowitz and Stegun, 26.2.23. */
static double normal_at(double q)
{
    double p = q < 0.5 ? q : 1 - q, t = sqrt(-2 * log(p));
    double z = t - (2.515517 + t * (0.802853 + t * 0.010328))
                   / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
    return q < 0.5 ? -z : z;
}

/* A log-normal distribution with this ratio of the 99th percentile to the median, as factors whose mean is 1, in an
 * order that looks like none. */
static float *variants(gp_arena *a, double spread, int of)
{
    if (!(spread > 1.1))
        return NULL;
    float *v = GP_NEW(a, float, VARIANTS);
    double sigma = log(spread) / 2.326, sum = 0, x[VARIANTS];
    for (int i = 0; i < VARIANTS; i++)
        sum += x[i] = exp(sigma * normal_at((i + 0.5) / VARIANTS));
    unsigned at = (unsigned)of * 97u, random = 12345u + (unsigned)of;
    for (int i = 0; i < VARIANTS; i++)
        v[i] = (float)(x[(at + (unsigned)i * 167u) % VARIANTS] / sum * VARIANTS);
    for (unsigned i = VARIANTS - 1; i; i--) {          /* Fisher and Yates */
        random = random * 1664525u + 1013904223u;
        unsigned k = (random >> 8) % (i + 1);
        float f = v[i];
        v[i] = v[k], v[k] = f;
    }
    return v;
}

/* ---- setting up ------------------------------------------------------ */

/* How often it fires in all: actors are in the order of frames, but where one carries what comes behind it. */
static void count_firings(simulation *x, int a, double part)
{
    actor *p = &x->actor[a];
    uint64_t total = UINT64_MAX, following = UINT64_MAX;
    for (int i = 0; i < p->nin; i++) {
        const ring *r = &x->ring[p->in[i].ring];
        const gp_buffer *b = &x->g->buffer[r->ring->buffer];
        const actor *from = &x->actor[r->producer];
        if (r->producer >= a && p->regroup && gp_firing_carries(p->regroup))
            continue;
        uint64_t frames = from->total == UINT64_MAX ? UINT64_MAX : made_by(from, from->total);
        uint64_t k = frames == UINT64_MAX ? frames : p->regroup ? gp_firings_in_all(p->regroup, frames) : frames;
        uint64_t *to = b->endless || b->follows ? &following : &total;
        *to = k < *to ? k : *to;
    }
    if (p->cost && !p->nin) {
        double n = (double)p->cost->frames * part;
        uint64_t all = n >= 1 ? (uint64_t)(n + 0.5) : 1, ranks = (uint64_t)x->ranks, rank = (uint64_t)p->rank;
        total = p->stage->shared ? (all + ranks - 1 - rank) / ranks : all;
    }
    p->total = total != UINT64_MAX ? total : following;
}

static void set_window(simulation *x, actor *p)
{
    p->window = UINT64_MAX;
    for (int i = 0; i < p->nin + p->nout; i++) {
        const gp_ring *r = x->ring[i < p->nin ? p->in[i].ring : p->out[i - p->nin]].ring;
        p->window = (uint64_t)r->depth < p->window ? (uint64_t)r->depth : p->window;
    }
    if (p->regroup) {
        int depth = p->nout ? x->ring[p->out[0]].ring->depth : 1;
        p->window = depth > p->regroup->make ? (uint64_t)(depth / p->regroup->make) : 1;
    }
    if (p->window > 1 << 20)
        p->window = 1 << 20;
}

size_t gp_model_frame_bytes(const gp_graph *g, const gp_stage *st)
{
    size_t bytes = 0;
    for (int i = 0; i < (st->nout ? st->nout : st->nin); i++) {
        int b = st->nout ? st->out[i] : st->in[i];
        if (b >= 0 && !gp_is_const(&g->buffer[b]))
            bytes = gp_size_add(bytes, gp_bytes(&g->buffer[b].type));
    }
    return bytes;
}

/* After how many frames the kind ends a turn: as it did in the run, else as stage.h says of all. */
static double stop_of(const simulation *x, const actor *p)
{
    double bytes = 1 + (double)gp_model_frame_bytes(x->g, p->stage), each = fmax(p->cost->cpu_ns + p->cost->wait_ns, 1);
    return p->cost->pace_ns > 0 ? 1 : p->cost->stop > 0 ? floor(p->cost->stop + 0.5)
         : fmin(floor(GP_RUN_NS / each) + 1, ceil(GP_RUN_BYTES / bytes));
}

/* As gp_host_init() of run/host.c. Ranks meet for each frame, and a stage that says at_once does all that it takes. */
static void set_most(const simulation *x, actor *p)
{
    const gp_stage *st = p->stage;
    uint64_t each = p->window > (uint64_t)p->nworkers ? p->window / (uint64_t)p->nworkers : 1;
    int most = st->at_once > 1 ? st->at_once : p->nworkers == 1 && st->kind->max_run > 1 ? st->kind->max_run : 1;
    most = (uint64_t)most < each ? most : (int)each;
    p->most = st->kind->collective ? 1 : st->at_once > 1 ? most : (int)fmax(fmin(most, stop_of(x, p)), 1);
}

/* Are its frames on another rank alone, and holes on this one, which cost nothing? */
static bool is_elsewhere(const actor *p, const gp_stage *st)
{
    return st->only && st->only != p->rank + 1 && !st->kind->collective;
}

static void init_host(simulation *x, actor *p, int v)
{
    static const gp_stage_cost nothing = { .spread = 1 };
    p->stage = &x->g->stage[v];
    p->cost = is_elsewhere(p, p->stage) ? &nothing : &x->c->stage[v];
    p->regroup = p->stage->regroups ? &p->stage->regroup : NULL;
    p->nworkers = p->stage->workers > 0 ? p->stage->workers : 1;
    p->worker = GP_NEW(x->arena, piece, p->nworkers);
    p->came = x->ranks > 1 && p->stage->kind->collective ? GP_NEW(x->arena, int, p->nworkers) : NULL;
    p->variant = variants(x->arena, p->cost->spread, v + 7 * p->rank);
}

static void init_segment(simulation *x, actor *p, int k)
{
    const gp_segment *s = p->segment = &x->plan->segment[k];
    static const gp_segment_cost nothing = { .spread = 1 };
    int stages = 0, in_turn = 0, ndevices = x->g->ndevices > 1 ? x->g->ndevices : 1;
    bool circles = false, elsewhere = false;
    p->regroup = s->regroups >= 0 ? &x->g->stage[s->regroups].regroup : NULL;
    p->flight = GP_NEW(x->arena, piece, s->depth + 1);
    p->stream = GP_NEW(x->arena, bool, s->streams * s->place.lanes);
    p->on = &x->device[p->rank * ndevices + s->place.index];
    if (x->g->latency_ns && !p->regroup) {
        p->timely = GP_NEW(x->arena, gp_timely, 1);
        p->timely->latency_ns = x->g->latency_ns;
        while (1 << p->timely->sizes <= s->batch)
            p->timely->sizes++;
        p->timely->tail = GP_NEW(x->arena, gp_tail, p->timely->sizes);
    }
    for (int i = 0; i < s->ntasks; i++) {
        const gp_task *t = &x->plan->task[s->task[i]];
        if (t->stage < 0)
            continue;
        stages++, in_turn += gp_stage_in_order(&x->g->stage[t->stage]);
        circles |= x->g->stage[t->stage].circles;
        elsewhere |= is_elsewhere(p, &x->g->stage[t->stage]);
    }
    p->launch = elsewhere ? &nothing : &x->c->segment[k];
    if (!elsewhere && !x->plan->unified) {
        p->bytes[GP_ENGINE_COPY_IN] = gp_segment_copied(x->plan, s, GP_TASK_COPY_IN);
        p->bytes[GP_ENGINE_COPY_OUT] = gp_segment_copied(x->plan, s, GP_TASK_COPY_OUT);
        p->bytes[GP_ENGINE_COPY_PEER] = gp_segment_copied(x->plan, s, GP_TASK_COPY_PEER);
    }
    p->turn = circles ? 1 : stages ? (double)in_turn / stages : 0;
    p->variant = variants(x->arena, p->launch->spread, 1000 + k + 7 * p->rank);
}

static int host_of(const simulation *x, int rank)
{
    return gp_node_of(rank, x->ranks, x->nhosts);
}

/* Machines, each with its cores and memory, and devices: those of each rank, or of each machine, in turns. */
static void init_machines(simulation *x)
{
    int plans = x->g->ndevices > 1 ? x->g->ndevices : 1, each = x->c->devices;
    x->nhosts = x->c->nodes > 1 ? x->c->nodes : 1;
    x->ngpus = each ? x->nhosts * each : x->ranks * plans;
    x->host = GP_NEW(x->arena, host, x->nhosts);
    x->gpu = GP_NEW(x->arena, gpu, x->ngpus);
    x->device = GP_NEW(x->arena, gpu *, x->ranks * plans);
    x->nshares = 2 * x->nhosts + x->ngpus;
    x->share = GP_NEW(x->arena, share, x->nshares);
    x->touched = GP_NEW(x->arena, int, x->nshares);
    x->on_cores = x->plan->unified || (x->g->ndevices && x->g->device[0].pretend);
    x->rate[GP_ENGINE_COPY_IN] = x->c->copy_in, x->rate[GP_ENGINE_COPY_OUT] = x->c->copy_out;
    x->rate[GP_ENGINE_COPY_PEER] = x->c->copy_peer;
    for (int h = 0; h < x->nhosts; h++) {
        x->host[h] = (host){ &x->share[2 * h], &x->share[2 * h + 1] };
        x->host[h].cores->capacity = x->c->cores;
        x->host[h].copies->capacity = x->c->memory > 0 ? x->c->memory : INFINITY;
    }
    for (int i = 0; i < x->ngpus; i++) {
        x->gpu[i].kernels = &x->share[2 * x->nhosts + i];
        x->gpu[i].kernels->capacity = 1;
    }
    for (int r = 0, on = -1, local = 0; r < x->ranks; r++) {
        local = host_of(x, r) == on ? local + 1 : 0, on = host_of(x, r);
        for (int d = 0; d < plans; d++) {
            int i = each ? on * each + (local * plans + d) % each : r * plans + d;
            x->device[r * plans + d] = &x->gpu[i];
            x->gpu[i].index = r ? x->gpu[i].index : d;
        }
    }
}

/* ---- waiting ---------------------------------------------------------- */

/* How long threads look before they sleep: spin_ns() of run/threads.c; which turns they do: run/turn.c.
 * Reapers wait for a GPU as wait_for() of cuda/cuda.c does; the CPU back end wakes them, and the threads of its
 * streams, each time. */
static void init_waiting(simulation *x)
{
    const double long_ns = 1e6, short_ns = 5e3, alone_ns = 100, awake_ns = 600, unknown_ns = 5000;
    gp_sync sync = x->g->sync;
    double cpus = x->c->cores + x->c->others, threads = 0;
    for (int a = 0; a < x->each; a++)
        threads += x->actor[a].stage ? x->actor[a].nworkers : 2;
    double looks = sync == GP_SYNC_BLOCK ? 0 : sync != GP_SYNC_AUTO ? INFINITY : cpus > threads ? long_ns : short_ns;
    for (int a = 0; a < x->nactors; a++) {
        actor *p = &x->actor[a];
        p->looks = looks;
        p->lends = p->stage && p->nworkers == 1 && (sync == GP_SYNC_AUTO || sync == GP_SYNC_BLOCK);
        p->lent = p->lends && p->nin && !p->came, p->turn_cost = unknown_ns;
    }
    x->awake = cpus > threads ? alone_ns : awake_ns;
    x->polls = x->on_cores || sync == GP_SYNC_BLOCK ? 0 : sync != GP_SYNC_AUTO ? INFINITY : long_ns;
}

/* ---- actors, rings ---------------------------------------------------- */

/* The rings that actors read and write, in the order of rings; those inside of a segment have no counters. */
static void init_rings(simulation *x, int rank)
{
    const gp_plan *plan = x->plan;
    for (int i = rank * plan->nrings; i < (rank + 1) * plan->nrings; i++) {
        const gp_ring *r = &plan->ring[i % plan->nrings];
        ring *to = &x->ring[i];
        *to = (ring){ .ring = r, .carried = r->buffer >= 0 && x->g->buffer[r->buffer].carried };
        if (r->segment >= 0 || r->producer < 0)
            continue;
        to->producer = rank * x->each + r->producer;
        to->since = GP_NEW(x->arena, since, r->depth);
        to->reader = GP_NEW(x->arena, reader, r->nconsumers);
        actor *p = &x->actor[to->producer];
        *GP_PUSH(x->arena, p->out, p->nout, p->most_out) = i;
        for (int k = 0; k < r->nconsumers; k++) {
            to->reader[k].actor = rank * x->each + r->consumer[k];
            p = &x->actor[to->reader[k].actor];
            *GP_PUSH(x->arena, p->in, p->nin, p->most_in) = (input){ i, k };
        }
    }
}

static void add_near(simulation *x, actor *p, int q)
{
    for (int i = 0; i < p->nnear; i++)
        if (p->near[i] == q)
            return;
    *GP_PUSH(x->arena, p->near, p->nnear, p->most_near) = q;
}

/* As find_near() of run/tables.c. */
static void find_near(simulation *x, actor *p)
{
    for (int o = 0; o < p->nout; o++)
        for (int k = 0; k < x->ring[p->out[o]].ring->nconsumers; k++)
            add_near(x, p, x->ring[p->out[o]].reader[k].actor);
    for (int i = 0; i < p->nin; i++)
        add_near(x, p, x->ring[p->in[i].ring].producer);
}

static void init_actors(simulation *x)
{
    const gp_plan *plan = x->plan;
    x->actor = GP_NEW(x->arena, actor, x->nactors);
    x->look = GP_NEW(x->arena, int, x->nactors);
    x->ring = GP_NEW(x->arena, ring, x->ranks * plan->nrings);
    for (int r = 0; r < x->ranks; r++)
        init_rings(x, r);
    for (int a = 0; a < x->nactors; a++) {
        actor *p = &x->actor[a];
        p->rank = a / x->each, p->index = a % x->each;
        p->host = &x->host[host_of(x, p->rank)];
        p->report = &x->out->report->actor[a];
        if (plan->actor[p->index].kind == GP_ACTOR_HOST)
            init_host(x, p, plan->actor[p->index].stage);
        else
            init_segment(x, p, plan->actor[p->index].segment);
        find_near(x, p);
    }
    init_waiting(x);
}

/* The sources make their frames, or in proportion fewer: `frames` of all ranks together. */
static void init_totals(simulation *x, uint64_t frames)
{
    uint64_t most = 0;
    for (int a = 0; a < x->each; a++) {
        const actor *p = &x->actor[a];
        if (!p->cost || p->nin)
            continue;
        uint64_t all = p->cost->frames * (p->stage->shared ? 1 : (uint64_t)x->ranks);
        most = all > most ? all : most;
    }
    double part = frames && most > frames ? (double)frames / (double)most : 1;
    for (int a = 0; a < x->nactors; a++)
        count_firings(x, a, part);
    x->last = -1;
    for (int a = 0; a < x->nactors; a++) {
        actor *p = &x->actor[a];
        if (p->stage)
            set_window(x, p), set_most(x, p), p->handed = GP_NEW(x->arena, unsigned char, p->window);
        if (p->nout)
            continue;
        x->sinks += p->total > 0;
        if (a < x->each && (x->last < 0 || p->total > x->actor[x->last].total))
            x->last = a;
    }
    uint64_t total = x->last >= 0 ? x->actor[x->last].total : 0;
    x->line.from = total / 4, x->line.to = total - total / 4;
}

void gp_model_init(simulation *x, uint64_t frames)
{
    init_machines(x);
    init_actors(x);
    init_totals(x, frames);
}
