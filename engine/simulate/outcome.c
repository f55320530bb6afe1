/* outcome.c - what a simulation came to, as the report of a run. */
#include "simulate/model.h"

static void name_actor(simulation *x, gp_actor_report *r, const actor *p)
{
    const gp_stage *first = NULL, *last = NULL;
    for (int i = 0; p->segment && i < p->segment->ntasks; i++) {
        int v = x->plan->task[p->segment->task[i]].stage;
        last = v < 0 ? last : &x->g->stage[v];
        first = first ? first : last;
    }
    if (p->stage)
        first = last = p->stage;
    r->name = first == last ? first->name : gp_format(x->arena, "%s..%s", first->name, last->name);
    r->at = first->at;
}

static void fill_actor(simulation *x, int a)
{
    const actor *p = &x->actor[a];
    gp_actor_report *r = p->report;
    int cpus = x->out->report->cpus;
    name_actor(x, r, p);
    r->stage = x->plan->actor[a].stage, r->segment = x->plan->actor[a].segment;
    r->frames = made_by(p, p->head);
    r->cpu_ns = -1;
    if (p->stage) {
        r->workers = p->nworkers;
        r->turns = p->taken, r->turn = (gp_turn_cost){ p->cost->turn_ns, p->cost->frame_ns, p->cost->stop };
        r->most_workers = p->stage->serial || p->stage->cycle || p->regroup ? 1 : cpus;
        r->bytes = r->frames * gp_model_frame_bytes(x->g, p->stage);
        r->cpu_ns = (int64_t)(p->cost->cpu_ns * (double)p->head);
    } else {
        r->streams = p->segment->streams;
        r->most_workers = 1;
        for (int i = 0; i < p->nout; i++)
            r->bytes += r->frames * gp_bytes(&x->g->buffer[x->ring[p->out[i]].ring->buffer].type);
        r->cpu_ns = x->on_cores ? (int64_t)(p->launch->kernels_ns * (double)p->head) : -1;
    }
    if (!r->end_ns)
        r->end_ns = (int64_t)x->now;
}

static void fill_buffers(simulation *x, gp_report *r)
{
    int cap = 0;
    for (const actor *p = x->actor; p < x->actor + x->each; p++)
        for (int i = 0; i < p->nin; i++) {
            const ring *q = &x->ring[p->in[i].ring];
            const reader *to = &q->reader[p->in[i].reader];
            double left = q->made > to->used ? (double)(q->made - to->used) : 0;
            double held = (to->got - q->put + left * x->now) / (x->now > 0 ? x->now : 1);
            *GP_PUSH(x->arena, r->buffer, r->nbuffers, cap) = (gp_buffer_report){
                .name = x->g->buffer[q->ring->buffer].name, .buffer = q->ring->buffer, .from = q->producer,
                .to = p->index, .depth = q->ring->depth,
                .held = held < 0 ? 0 : held < q->ring->depth ? held : q->ring->depth };
        }
}

/* The engines of the devices of the first rank, and of each kind the busiest. */
static void fill_engines(simulation *x, gp_report *r)
{
    int n = x->g->ndevices > 1 ? x->g->ndevices : 1;
    gp_engine_report *all = GP_NEW(x->arena, gp_engine_report, n * GP_ENGINES);
    for (int i = 0; i < n * GP_ENGINES; i++) {
        int e = i % GP_ENGINES, d = i / GP_ENGINES;
        const gpu *of = x->device[d];
        all[i] = (gp_engine_report){ .name = gp_bound_name((gp_bound)(GP_BOUND_COPY_IN + e)),
                                     .busy_ns = (int64_t)of->busy[e], .bytes = of->bytes[e],
                                     .by_kernels = of->by_kernels[e], .on = d,
                                     .device = n > 1 ? x->g->device[d].name : NULL };
        all[i].used = all[i].measured = all[i].busy_ns > 0 || all[i].by_kernels;
        all[i].limit = x->plan->unified ? 0 : x->rate[e];
        if (!d || all[i].busy_ns > r->engine[e].busy_ns)
            r->engine[e] = all[i];
    }
    r->all = all, r->nall = n * GP_ENGINES;
}

/* Cores are those of the first rank's machine; of several ranks on it each has a part. */
static void fill_cores(const simulation *x, gp_report *r)
{
    const share *cores = x->host[0].cores;
    int there = 0;
    for (int a = 0; a < x->nactors; a += x->each)
        there += x->actor[a].host == &x->host[0];
    double mine = fmax(cores->capacity / there, 1);
    r->cpus = there > 1 ? (int)(mine + 0.5) : (int)(cores->capacity + x->c->others + 0.999);
    r->others = there > 1 ? 0 : x->c->others, r->simulated = true;
    r->cpu_ns = (int64_t)(there > 1 ? cores->used * mine / cores->capacity : cores->used);
    r->delayed_ns = (int64_t)(cores->delayed / there);
}

/* Fills the account of all ranks; the rate is that of the line through the middle half. */
static void fill_account(simulation *x, gp_simulated *s)
{
    uint64_t most = 0;
    int cap = 0;
    for (int a = 0; a < x->each; a++) {
        const actor *p = &x->actor[a];
        uint64_t all = 0;
        if (!p->stage || p->nin)
            continue;
        for (int r = 0; r < x->ranks; r++)
            all += x->actor[r * x->each + a].total;
        *GP_PUSH(x->arena, s->account, s->naccounts, cap) = (gp_account){
            .source = p->stage->name, .in = all, .out = all, .block = 1 };
        most = all > most ? all : most;
    }
    const actor *last = &x->actor[x->last];
    const line *l = &x->line;
    double of = l->n * l->tt - l->t * l->t, slope = (double)last->total / x->now;
    bool steady = l->end - l->start > x->now / 4;      /* else most frames come out in a few large launches, at once */
    if (last->total >= 16 && of > 0 && steady)
        slope = (l->n * l->tk - l->t * l->k) / of;
    s->frames_per_s = x->now > 0 && last->total ? 1e9 * slope * (double)most / (double)last->total : 0;
}

void gp_model_report(simulation *x)
{
    gp_report *r = x->out->report;
    r->wall_ns = (int64_t)x->now;
    gp_hist_add(&r->wakes, (int64_t)x->c->wake_ns, x->wakes);
    gp_hist_add(&r->wake_calls, (int64_t)x->c->call_ns, x->wakes);
    r->unified = x->plan->unified;
    fill_cores(x, r);
    for (int a = 0; a < x->each; a++)
        fill_actor(x, a);
    fill_buffers(x, r);
    fill_engines(x, r);
    r->overlap = gp_report_overlap(r);
    r->late = (gp_late){ .frames = r->latency.n, .late = x->late, .p99_ns = gp_hist_at(&r->latency, 0.99),
                         .under_way = x->now > 0 ? (double)r->latency.sum / x->now : 0 };
    for (int a = 0; a < x->each; a++) {
        const gp_timely *t = x->actor[a].timely;
        if (t && t->tail[0].most_ns > r->late.alone_ns)
            r->late.alone_ns = t->tail[0].most_ns;
    }
    fill_account(x, x->out);
}
