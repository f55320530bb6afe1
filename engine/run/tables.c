/* tables.c - the tables of a run, which follow from the plan alone: rings, actors and what
 * links them, accounts.
 *
 * Nothing is opened and no thread is started here. But for the accounts', which are freed one
 * by one, all memory is the arena's; without memory it goes to run->arena.oom. */
#include <string.h>
#include "run/measure.h"
#include "run/pipeline.h"
#include "run/setup.h"

void gp_tables_make(gp_run *run)
{
    const gp_plan *plan = run->plan;
    gp_arena *a = &run->arena;
    int threads = gp_threads_needed(plan);
    int devices = run->ndevs = run->graph->ndevices ? run->graph->ndevices : 1;
    run->dev = GP_NEW(a, gp_dev *, devices);
    run->engine = gp_alloc(a, sizeof *run->engine * (size_t)devices);
    run->pool = GP_NEW(a, void *, plan->npools * devices + 1);
    run->extra = GP_NEW(a, void *, plan->nextras * devices + 1);
    run->account = GP_NEW(a, gp_accountrt, run->graph->nstages);
    run->account_of = GP_NEW(a, int, run->graph->nstages);
    run->state = GP_NEW(a, void *, run->graph->nstages * devices);
    run->types = GP_NEW(a, gp_type *, run->graph->nstages);
    run->opts = GP_NEW(a, const void *, run->graph->nstages);
    run->opened = GP_NEW(a, bool, run->graph->nstages * devices);
    run->keeps = GP_NEW(a, bool, run->graph->nstages);
    run->cached = GP_NEW(a, bool, run->graph->nstages);
    run->visited = GP_NEW(a, bool, plan->nactors);
    run->todo = GP_NEW(a, int, plan->nactors);
    run->todo_end = GP_NEW(a, uint64_t, plan->nactors);
    for (int i = 0; i < run->graph->nstages; i++)
        for (int c = 0; c < run->options.ncached; c++)
            run->cached[i] |= !strcmp(run->graph->stage[i].name, run->options.cached[c]);
    run->ring = GP_NEW_LINES(a, gp_ringrt, plan->nrings);
    run->actor = GP_NEW_LINES(a, gp_actorrt, plan->nactors);
    run->thread = GP_NEW_LINES(a, gp_threadrt, threads);
    for (int i = 0; run->options.timed && i < threads; i++)
        run->thread[i].time = GP_NEW(a, gp_hist, 1);
}

void gp_rings_make(gp_run *run)
{
    const gp_plan *plan = run->plan;
    for (int i = 0; i < plan->nrings; i++) {
        gp_ringrt *r = &run->ring[i];
        const gp_ring *ring = r->ring = &plan->ring[i];
        r->buffer = ring->buffer >= 0 ? &run->graph->buffer[ring->buffer] : NULL;
        if (ring->place.lanes > 1)
            r->lane = GP_NEW(&run->arena, char *, ring->place.lanes);
        for (int l = 0; l < ring->place.lanes; l++) {
            char *base = (char *)gp_pool_on(run, ring->pool, l) + ring->offset;
            r->base = l ? r->base : base;
            if (r->lane)
                r->lane[l] = base;
        }
        r->stride = plan->pool[ring->pool].one ? 0 : plan->pool[ring->pool].stride;
        r->shift = ring->before < 0 ? 0 : (uint64_t)ring->depth - 1;
        r->meta = GP_NEW(&run->arena, gp_meta, ring->depth);
        if (r->buffer && r->buffer->varies)
            r->type = GP_NEW(&run->arena, gp_type, ring->depth);
        if (r->buffer && run->graph->nmetadata)
            r->numbers = GP_NEW(&run->arena, gp_numbers, ring->depth);
        atomic_init(&r->end, GP_UNKNOWN);
        atomic_init(&r->most, GP_UNKNOWN);
        atomic_init(&r->room, ring->begins);
        atomic_init(&r->limit, ring->depth);
        r->consumed = GP_NEW_LINES(&run->arena, gp_cursor, ring->nconsumers);
    }
}

const gp_stage *gp_actor_stage(const gp_actorrt *p, int *at)
{
    const gp_plan *plan = p->run->plan;
    if (p->kind == GP_ACTOR_HOST)
        return (*at)++ ? NULL : p->stage;
    while (*at < p->segment->ntasks) {
        int st = plan->task[p->segment->task[(*at)++]].stage;
        if (st >= 0)
            return &plan->graph->stage[st];
    }
    return NULL;
}

gp_loc gp_actor_at(const gp_actorrt *p)
{
    int at = 0;
    return gp_actor_stage(p, &at)->at;
}

/* In the pipeline's memory, made once for all runs: names are handed out, and a run is freed. */
static const char *actor_name(const gp_actorrt *p)
{
    gp_pipeline *pipeline = p->run->pipeline;
    const char **name = &pipeline->actor_name[p->index];
    int at = 0;
    if (*name)
        return *name;
    const gp_stage *first = gp_actor_stage(p, &at), *last = first, *st;
    while ((st = gp_actor_stage(p, &at)))
        last = st;
    return *name = first == last ? first->name
                 : gp_format(&pipeline->arena, "%s..%s", first->name, last->name);
}

static void make_actor(gp_run *run, int index)
{
    const gp_plan *plan = run->plan;
    gp_actorrt *p = &run->actor[index];
    const gp_actor *actor = &plan->actor[index];

    p->run = run, p->index = index, p->kind = actor->kind;
    gp_eventcount_init(&p->changed);
    gp_eventcount_init(&p->to_end);
    pthread_mutex_init(&p->behind, NULL);
    p->changed.wakes = gp_wakes_new(run);
    if (p->kind == GP_ACTOR_SEGMENT)
        p->segment = &plan->segment[actor->segment];
    else
        p->stage = &run->graph->stage[actor->stage];
    int at = 0;
    const gp_stage *st = gp_actor_stage(p, &at);
    if (st->regroups)
        p->regroup = &st->regroup, p->gathers = st->kind->emit;
    p->shared = st->shared, p->on_loan = st->kind->on_loan && !(gp_is_idle_sink(run, st) && !gp_endpoint_is_asked(run->pipeline, st));
    p->together = run->graph->ranks > 1 && (st->kind->collective || gp_run_joins(run, st));
    p->elsewhere = st->only && st->only != run->graph->rank + 1;
    p->priority = p->segment ? p->segment->priority : st->priority;
    p->name = actor_name(p);
}

/* Counts the ends of rings that actors have, or with `fill` notes them. */
static void link_rings(gp_run *run, bool fill)
{
    const gp_plan *plan = run->plan;
    for (int i = 0; i < plan->nrings; i++) {
        const gp_ring *r = &plan->ring[i];
        if (r->segment >= 0)
            continue;
        if (r->producer >= 0) {
            gp_actorrt *p = &run->actor[r->producer];
            if (fill)
                p->out[p->nout] = &run->ring[i];
            p->nout++;
        }
        for (int c = 0; c < r->nconsumers; c++) {
            gp_actorrt *p = &run->actor[r->consumer[c]];
            if (fill)
                p->in[p->nin] = (gp_ring_end){ &run->ring[i], c };
            p->nin++;
        }
    }
}

/* Of a host stage they are in the order of its ports: its frames have the time of the first. */
static void sort_inputs(gp_actorrt *p)
{
    int n = 0;
    for (int k = 0; p->stage && k < p->stage->nin; k++)
        for (int i = n; i < p->nin; i++)
            if (p->in[i].ring->ring->buffer == p->stage->in[k]) {
                gp_ring_end end = p->in[i];
                p->in[i] = p->in[n], p->in[n++] = end;
                break;
            }
}

static void add_near(gp_actorrt *p, gp_actorrt *q)
{
    bool known = p == q;
    for (int i = 0; i < p->nnear; i++)
        known |= p->near[i] == q;
    if (!known)
        p->near[p->nnear++] = q;
}

/* Who has to hear of what p does. */
static void find_near(gp_actorrt *p)
{
    gp_run *run = p->run;
    int n = p->nin;
    for (int o = 0; o < p->nout; o++)
        n += p->out[o]->ring->nconsumers;
    p->near = GP_NEW(&run->arena, gp_actorrt *, n);
    for (int o = 0; o < p->nout; o++)
        for (int c = 0; c < p->out[o]->ring->nconsumers; c++)
            add_near(p, &run->actor[p->out[o]->ring->consumer[c]]);
    for (int i = 0; i < p->nin; i++)
        add_near(p, &run->actor[p->in[i].ring->ring->producer]);
}

void gp_actors_make(gp_run *run)
{
    int n = run->plan->nactors;
    run->pipeline->arena.oom = run->arena.oom;
    if (!run->pipeline->actor_name)
        run->pipeline->actor_name = GP_NEW(&run->pipeline->arena, const char *, n);
    for (int i = 0; i < n; i++)
        make_actor(run, i);
    run->pipeline->arena.oom = NULL;
    link_rings(run, false);
    for (int i = 0; i < n; i++) {
        gp_actorrt *p = &run->actor[i];
        p->in = GP_NEW(&run->arena, gp_ring_end, p->nin);
        p->out = GP_NEW(&run->arena, gp_ringrt *, p->nout);
        p->source = !p->nin;
        p->nin = p->nout = 0;
    }
    link_rings(run, true);
    for (int i = 0; i < n; i++)
        sort_inputs(&run->actor[i]), find_near(&run->actor[i]);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < run->actor[i].nin; k++)
            run->actor[i].leads |= !run->actor[i].in[k].ring->buffer->follows;
    for (int i = 0; i < n; i++) {
        const gp_actorrt *p = &run->actor[i];
        bool loses = p->nin > 1 || (p->regroup && !gp_firing_carries(p->regroup));
        for (int k = 0; k < p->nin && loses; k++)
            run->actor[p->in[k].ring->ring->producer].tells_holes = true;
    }
}

bool gp_accounts_make(gp_run *run)
{
    const gp_graph *g = run->graph;
    for (int i = 0; i < run->plan->nactors; i++) {
        const gp_actorrt *p = &run->actor[i];
        if (!p->source && !(p->stage && gp_is_leaky(p->stage)))
            continue;
        int stage = (int)(p->stage - g->stage);
        run->account_of[stage] = run->naccounts;
        if (!gp_account_init(&run->account[run->naccounts++], run, stage))
            return false;
    }
    return true;
}
