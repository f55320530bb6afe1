/* search.c - see search.h.
 *
 * Depth, streams and batch are tried in all combinations. From the best of these on one knob after the other is
 * changed, as long as that helps: workers of each host stage, then the others again. What a knob does not change is
 * left as given. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/table.h"
#include "compile/plan.h"
#include "simulate/search.h"

enum { VALUES = 16, KNOBS = 64, FEWEST = 250, MOST = 2500, FILLS = 4, STARTS = 6, PASSES = 3 };
static const double CHANGE = 0.004, DOUBLE = 0.01;    /* of a score: what a change, or twice the memory, has to give */
static const double WAIT = 0.05;       /* ... and a launch that waits, as that makes all frames later */
static const double WORTH = 0.7;       /* of the best score: may still be the best when it is measured */

typedef struct knob {
    const char *path;
    const char *value[VALUES]; int n;  /* value[0]: as given */
    int size[VALUES];                  /* as a number; 0: it is a word */
} knob;

typedef struct searching {
    const gp_search *s;
    gp_arena *arena;
    knob knob[KNOBS]; int nknobs;
    int waits;                         /* the knob batch_wait; 0: there is none, as depth comes first */
    gp_table seen;
    gp_settings *all; int n, cap;
    gp_errs *errs;
} searching;

/* ---- knobs ------------------------------------------------------------ */

static knob *add_knob(searching *x, const char *path, int given)
{
    knob *k = &x->knob[x->nknobs++];
    *k = (knob){ .path = path, .n = 1, .size = { given } };
    return k;
}

static void add_value(knob *k, const char *value, int size)
{
    for (int i = 0; i < k->n; i++)
        if (k->size[i] == size && (size || (i && !strcmp(k->value[i], value))))
            return;
    if (k->n < VALUES)
        k->value[k->n] = value, k->size[k->n++] = size;
}

/* v: up to 0. */
static void add_numbers(searching *x, const char *path, int given, const int *v, int most)
{
    knob *k = add_knob(x, path, given);
    for (; *v && *v <= most; v++)
        add_value(k, gp_format(x->arena, "%d", *v), *v);
    if (k->n == 1)
        x->nknobs--;
}

/* Tries how long a launch waits for more frames; with `latency` that is chosen while the pipeline runs. */
static void add_waits(searching *x, const gp_graph *g)
{
    static const struct { int us; const char *text; } waits[] = {
        { 50, "50us" }, { 200, "200us" }, { 1000, "1ms" }, { 5000, "5ms" },
    };
    if (g->latency_ns)
        return;
    x->waits = x->nknobs;
    knob *k = add_knob(x, "batch_wait", (int)(g->batch_wait_ns / 1000));
    if (g->batch_wait_ns)
        add_value(k, "0", 0);
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
        if (!g->stall_ns || waits[i].us * 1000LL < g->stall_ns)
            add_value(k, waits[i].text, waits[i].us);
}

/* Buffers that hold more than a part of all frames hide the end of a run, and make nothing faster. */
static int most_depth(const gp_graph *g)
{
    enum { MOST_DEPTH = 256, LEAST_DEPTH = 8, PART = 8 };
    int64_t most = MOST_DEPTH;
    for (int v = 0; v < g->nstages; v++) {
        int64_t frames = g->stage[v].nin ? 0 : g->stage[v].known.frames;
        most = frames > 0 && frames / PART < most ? frames / PART : most;
    }
    return (int)(most < LEAST_DEPTH ? LEAST_DEPTH : most);
}

static void find_knobs(searching *x)
{
    static const int depths[] = { 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256, 0 };
    static const int streams[] = { 1, 2, 3, 4, 6, 8, 12, 16, 0 }, batches[] = { 1, 2, 4, 8, 16, 32, 64, 0 };
    static const int workers[] = { 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 0 };
    const gp_plan *p = x->s->given;
    const gp_graph *g = p->graph;
    int cores = (int)(x->s->costs->cores + x->s->costs->others + 0.5), given_streams = 0;
    add_numbers(x, "depth", g->depth, depths, most_depth(g));
    for (int k = 0; k < p->nsegments; k++)
        given_streams = p->segment[k].streams > given_streams ? p->segment[k].streams : given_streams;
    if (p->nsegments) {
        add_numbers(x, "streams", g->streams ? g->streams : given_streams, streams, p->unified ? 2 * cores : 16);
        add_numbers(x, "batch", g->batch, batches, 64);
        add_waits(x, g);
    }
    if (!p->unified && !(g->ndevices && g->device[0].pretend) && (p->copy_in_bytes || p->copy_out_bytes)) {
        knob *k = add_knob(x, "copies", 0);
        if (g->copies != GP_COPIES_DMA)
            add_value(k, "dma", 0);
        if (g->copies != GP_COPIES_MAPPED)
            add_value(k, "mapped", 0);
    }
    for (int v = 0; v < g->nstages && x->nknobs < KNOBS - 1; v++) {
        const gp_stage *st = &g->stage[v];
        if (!st->device && !st->serial && !st->cycle && !st->regroups && st->nin + st->nout > 0 && !st->nparts)
            add_numbers(x, gp_format(x->arena, "stages.%s.workers", st->name), st->workers, workers,
                        cores > 4 ? cores : 4);
    }
    if (cores > p->nactors + p->nsegments) {
        knob *k = add_knob(x, "sync", 0);
        if (g->sync != GP_SYNC_SPIN)
            add_value(k, "spin", 0);
        if (g->sync != GP_SYNC_AUTO)
            add_value(k, "auto", 0);
    }
}

/* ---- one -------------------------------------------------------------- */

static const char **assignments(searching *x, const int *value, int *n)
{
    const char **set = GP_NEW(x->arena, const char *, x->nknobs);
    *n = 0;
    for (int i = 0; i < x->nknobs; i++)
        if (value[i])
            set[(*n)++] = gp_format(x->arena, "%s=%s", x->knob[i].path, x->knob[i].value[value[i]]);
    return set;
}

/* So many that all buffers are as full as they will be before the first quarter is over. */
static uint64_t frames_for(const gp_plan *p)
{
    int64_t room = 0;
    for (int i = 0; i < p->nrings && room < MOST; i++)
        if (p->ring[i].segment < 0)
            room += p->ring[i].depth;
    return room * FILLS < FEWEST ? FEWEST : room * FILLS < MOST ? (uint64_t)(room * FILLS) : MOST;
}

/* In an arena of its own, so that thousands fit. */
static bool simulate(searching *x, const gp_plan *plan, gp_result *out)
{
    gp_arena a = { .oom = NULL };
    gp_errs ignored = { .n = 0 };
    volatile bool ok = false;
    GP_UNLESS_OOM(&a) {
        const gp_costs *c = gp_costs_for(&a, x->s->costs, x->s->given, plan, &ignored);
        const gp_simulated *s = c ? gp_simulate(&a, plan, c, frames_for(plan), 0, &ignored) : NULL;
        ok = s != NULL;
        if (ok)
            *out = (gp_result){ s->frames_per_s, (double)gp_hist_at(&s->report->latency, 0.99),
                                gp_size_add(plan->host_bytes, plan->device_bytes) };
    }
    gp_arena_free(&a);
    return ok;
}

/* How good it is; what is simple is better where the rest is alike. */
static double merit(const searching *x, const gp_settings *p)
{
    double score = gp_goal_score(&x->s->goal, &p->is);
    double more = x->n ? log2((double)p->is.memory / (double)x->all[0].is.memory) : 0;
    double wait = x->waits && p->value[x->waits] ? WAIT : 0;
    return score > 0 ? score * (1 - CHANGE * p->nset - DOUBLE * fmax(more, 0) - wait) : score;
}

/* The number of these settings among all, simulated if they were not; -1: they are none, or there is no time. */
static int try(searching *x, const int *value)
{
    char *key = GP_NEW(x->arena, char, x->nknobs + 1);
    for (int k = 0; k < x->nknobs; k++)
        key[k] = (char)('A' + value[k]);
    int i = gp_table_index(&x->seen, key);
    if (i >= 0)
        return i == 0 ? -1 : i - 1;
    if (x->n >= x->s->most || (x->n && !x->s->goes_on(x->s->arg)))
        return -1;
    gp_settings one = { .value = GP_NEW(x->arena, int, x->nknobs) };
    memcpy(one.value, value, sizeof *value * (size_t)x->nknobs);
    one.set = assignments(x, value, &one.nset);
    const gp_plan *plan = one.nset ? x->s->plan(x->s->arg, one.set, one.nset) : x->s->given;
    bool ok = plan && simulate(x, plan, &one.is)
           && !(one.nset && x->s->goal.memory && one.is.memory > x->s->goal.memory);
    gp_table_put(&x->seen, key, ok ? x->n + 1 : 0);
    if (!ok)
        return -1;
    one.score = merit(x, &one);
    *GP_PUSH(x->arena, x->all, x->n, x->cap) = one;
    return x->n - 1;
}

/* ---- many ------------------------------------------------------------- */

/* All combinations of the first few knobs. */
static void try_grid(searching *x, int n, int *value, int from)
{
    if (from == n) {
        try(x, value);
        return;
    }
    for (int i = 0; i < x->knob[from].n; i++) {
        value[from] = i;
        try_grid(x, n, value, from + 1);
    }
    value[from] = 0;
}

/* One knob after the other, as long as that helps. */
static void climb(searching *x, int at)
{
    int value[KNOBS];
    for (int pass = 0; pass < PASSES; pass++) {
        int was = at;
        for (int i = x->nknobs - 1; i >= 0; i--) {
            memcpy(value, x->all[at].value, sizeof *value * (size_t)x->nknobs);
            for (int k = 0; k < x->knob[i].n; k++) {
                value[i] = k;
                int to = try(x, value);
                if (to >= 0 && x->all[to].score > x->all[at].score)
                    at = to;
            }
        }
        if (at == was)
            break;
    }
}

static int by_score(const void *a, const void *b, void *all)
{
    const int *i = a, *k = b;
    const gp_settings *p = (gp_settings *)all + *i, *q = (gp_settings *)all + *k;
    int by = (p->score < q->score) - (p->score > q->score);
    return by ? by : *i - *k;
}

static int *in_order(searching *x)
{
    int *order = GP_NEW(x->arena, int, x->n);
    for (int i = 0; i < x->n; i++)
        order[i] = i;
    qsort_r(order, (size_t)x->n, sizeof *order, by_score, x->all);
    return order;
}

/* How unlike two are: halvings and doublings. */
static double distance(const searching *x, const gp_settings *p, const gp_settings *q)
{
    double d = 0;
    for (int i = 0; i < x->nknobs; i++) {
        int v = x->knob[i].size[p->value[i]], w = x->knob[i].size[q->value[i]];
        if (p->value[i] != q->value[i])
            d += v && w ? fabs(log2((double)v / w)) : 1;
    }
    return d;
}

/* Takes the best that is worth it, has no more memory, and is so unlike those that were taken. False: there is none. */
static bool take(searching *x, gp_found *f, const int *order, size_t memory, double apart)
{
    double best = x->all[order[0]].score;
    for (int i = 0; i < x->n; i++) {
        const gp_settings *p = &x->all[order[i]];
        /* what gives exactly what the given settings do does the same, as with a batch larger than the depth */
        bool worth = p->nset > 0 && memcmp(&p->is, &x->all[0].is, sizeof p->is) && p->is.memory <= memory
                  && (best <= 0 || p->score >= WORTH * best);
        for (int k = 0; k < f->nbest && worth; k++)
            worth = distance(x, p, &x->all[f->best[k]]) >= apart;
        if (worth) {
            f->best[f->nbest++] = order[i];
            return true;
        }
    }
    return false;
}

/* The best; the best with a quarter of its memory, and so on, since caches are not simulated; then others that are
 * unlike these. */
static void choose(searching *x, gp_found *f, int most)
{
    const int *order = in_order(x);
    f->best = GP_NEW(x->arena, int, most);
    for (size_t memory = SIZE_MAX; f->nbest < most && take(x, f, order, memory, 1);)
        memory = x->all[f->best[f->nbest - 1]].is.memory / 4;
    for (double apart = 1.5; apart > 0.4; apart /= 2)
        while (f->nbest < most && take(x, f, order, SIZE_MAX, apart))
            ;
}

/* Is there memory for the least of each knob? */
static bool fits(searching *x)
{
    int n = 0, value[KNOBS] = { 0 };
    for (int i = 0; i < x->nknobs; i++)
        value[i] = strcmp(x->knob[i].path, "sync") && strcmp(x->knob[i].path, "copies") && x->knob[i].size[0] != 1;
    const char *const *set = assignments(x, value, &n);
    const gp_plan *least = n ? x->s->plan(x->s->arg, set, n) : NULL, *p = least ? least : x->s->given;
    size_t memory = gp_size_add(p->host_bytes, p->device_bytes);
    char asked[24], needs[24];
    return !x->s->goal.memory || memory <= x->s->goal.memory
        || gp_fail(x->errs, GP_E_USAGE, (gp_loc){ 0 }, "--memory %s: with depth 1 the pipeline needs %s",
                   gp_size_text(x->s->goal.memory, asked), gp_size_text(memory, needs));
}

gp_found *gp_search_settings(gp_arena *a, const gp_search *s, int nbest, gp_errs *errs)
{
    searching *x = GP_NEW(a, searching, 1);
    gp_found *f = GP_NEW(a, gp_found, 1);
    int value[KNOBS] = { 0 }, grid = 0;
    *x = (searching){ .s = s, .arena = a, .seen.arena = a, .errs = errs };
    find_knobs(x);
    if (!fits(x))
        return NULL;
    if (try(x, value) < 0)
        return GP_NULL(gp_fail(errs, GP_E_BUG, (gp_loc){ .file = s->given->graph->file }, "the pipeline as given "
                               "cannot be simulated"));
    while (grid < x->nknobs && grid < 3 && strncmp(x->knob[grid].path, "stages.", 7))
        grid++;
    try_grid(x, grid, value, 0);
    int n = x->n < STARTS ? x->n : STARTS, start[STARTS];
    memcpy(start, in_order(x), sizeof *start * (size_t)n);
    for (int i = 0; i < n; i++)
        climb(x, start[i]);
    climb(x, 0);
    choose(x, f, nbest);
    f->all = x->all, f->n = x->n;
    return f;
}
