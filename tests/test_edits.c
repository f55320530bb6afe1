/* test_edits.c - who follows the edits of verdicts one after the other gets to an end.
 *
 * The runs are simulated, so that they are the same on every machine: stages one after the other on some cores, beside
 * other processes that want some too. Runs in fact: verdict.py. */
#include "pipe.h"
#include "report/report.h"

enum { ACTORS = 6, WORKERS = 64, EDITS = 8, FRAMES = 400, TICK_US = 50 };

/* What a frame takes in a stage or segment, in us; `uneven`: from half as much to half as much
 * more. `sleeps`: it needs no core for that. */
typedef struct cost { const char *name; int us; bool uneven, sleeps; } cost;

static const struct {
    const char *what, *yaml;
    cost cost[ACTORS];
    int cores, others;         /* others: threads of other processes that never sleep */
    double quota;
    int most;                  /* edits */
    gp_bound end;              /* the last verdict */
} cases[] = {
#define G "buffers: {g: {dtype: f32, shape: [1024]}}\nstages:\n" \
    "  - {use: generate, out: g, frames: 9}\n"
#define END "  - {use: discard}\n"
#define SCALE G "  - {use: scale, a: 2}\n" END
#define CLEAN G "  - {name: clean, use: lua, script: free.lua}\n" END
#define CHAIN G "  - {name: a, use: lua, script: free.lua}\n" \
    "  - {name: b, use: lua, script: keeps.lua}\n" END
#define ENDS(n, bound) .most = n, .end = GP_BOUND_##bound
    { "kernels", SCALE, .cost = { { "scale", .us = 5000 } }, .cores = 2, ENDS(0, CORES) },
    { "uneven kernels", SCALE, .cost = { { "scale", .us = 5000, .uneven = true } }, .cores = 2, ENDS(0, CORES) },
    { "kernels and what feeds them", SCALE, .cost = { { "generate", .us = 300, .uneven = true },
      { "scale", .us = 5000, .uneven = true }, { "discard", .us = 200 } }, .cores = 2,
      ENDS(0, CORES) },
    { "kernels in one stream", "streams: 1\n" SCALE, .cost = { { "scale", .us = 5000 } }, .cores = 2, ENDS(1, CORES) },
    { "kernels of one frame", "depth: 1\n" SCALE, .cost = { { "scale", .us = 5000 } }, .cores = 4, ENDS(1, CORES) },
    { "kernels on many cores", SCALE, .cost = { { "scale", .us = 5000 } }, .cores = 16, ENDS(4, CORES) },
    { "kernels beside others", SCALE, .cost = { { "scale", .us = 5000, .uneven = true } },
      .cores = 2, .others = 3, ENDS(0, CORES) },
    { "kernels beside many others", "depth: 6\n" SCALE,
      .cost = { { "scale", .us = 5000, .uneven = true } }, .cores = 2, .others = 12, ENDS(0, CORES) },
    { "kernels with a quota", SCALE, .cost = { { "scale", .us = 5000 } }, .cores = 16, .quota = 2, ENDS(0, CORES) },
    { "a script", CLEAN, .cost = { { "clean", .us = 3000 } }, .cores = 2, ENDS(1, CORES) },
    { "a script on more cores", CLEAN, .cost = { { "clean", .us = 3000 } }, .cores = 8, ENDS(3, CORES) },
    { "a script beside others", CLEAN, .cost = { { "clean", .us = 3000 } }, .cores = 2, .others = 3, ENDS(0, CORES) },
    { "a script with workers beside many others", CLEAN, .cost = { { "clean", .us = 3000 } },
      .cores = 2, .others = 12, ENDS(0, CORES) },
    { "a script that sleeps beside others", CLEAN, .cost = { { "clean", .us = 3000, .sleeps = true } },
      .cores = 2, .others = 3, ENDS(1, STAGE) },
    { "a script with a quota", CLEAN, .cost = { { "clean", .us = 3000 } }, .cores = 8, .quota = 1, ENDS(0, CORES) },
    { "turns", "depth: 1\n" CHAIN, .cost = { { "a", .us = 1000, .uneven = true },
      { "b", .us = 1000, .uneven = true } }, .cores = 8, ENDS(2, STAGE) },
    { "turns of sleepers", "depth: 1\n" CHAIN, .cost = { { "a", .us = 1000, .uneven = true,
      .sleeps = true }, { "b", .us = 1000, .uneven = true, .sleeps = true } }, .cores = 8,
      ENDS(2, STAGE) },
    { "turns with kernels", "depth: 1\n" G "  - {use: scale, a: 2}\n"
      "  - {name: b, use: lua, script: keeps.lua}\n" END, .cost = { { "scale", .us = 1000,
      .uneven = true }, { "b", .us = 1000, .uneven = true } }, .cores = 8, ENDS(1, STAGE) },
};

/* ---- a pipeline with edits -------------------------------------------- */

static const char *dir;
static gp_arena arena;

static void up(void)
{
    dir = pipe_dir();
    pipe_text(dir, "free.lua", "stateless = true\nfunction process(f, x, y) y:copy(x) end\n");
    pipe_text(dir, "keeps.lua", "function process(f, x, y) y:copy(x) end\n");
}

static void down(void)
{
    gp_arena_free(&arena);
}

static gp_pipeline *compile(const char *yaml, const char **set, int nset)
{
    gp_machine machine;
    gp_machine_fixed(&machine, 0);
    return pipe_compiled(dir, yaml, (gp_config){ .machine = &machine, .set = set, .nset = nset });
}

/* ---- a run that is not one -------------------------------------------- */

/* An actor; the one behind it reads what it makes. */
typedef struct actor {
    cost cost;
    gp_actor_report *report;
    int workers, depth;        /* depth: of the buffer behind it */
    int in_flight;             /* the most; of a segment */
    int taken, done;
    struct { bool works; double left, ticks; } worker[WORKERS];
} actor;

static unsigned random_state;

/* From half to one and a half: the same numbers each time. */
static double uneven(void)
{
    random_state = random_state * 1103515245u + 12345u;
    return 0.5 + (random_state >> 8 & 0xffff) / 65536.0;
}

/* Why the next frame cannot be taken: NULL if it can. */
static int64_t *lacks(actor *a, int i, int n, int idle)
{
    if (a[i].in_flight && a[i].taken - a[i].done >= a[i].in_flight)
        return &a[i].report->wait_out_ns;
    if (a[i].taken == FRAMES || (i && a[i].taken == a[i - 1].done))
        return &a[i].report->wait_in_ns;
    if (i + 1 < n && a[i].taken - a[i + 1].done >= a[i].depth)
        return &a[i].report->wait_out_ns;
    return idle < 0 ? &a[i].report->wait_stream_ns : NULL;
}

static int idle_worker(const actor *a)
{
    for (int w = 0; w < a->workers; w++)
        if (!a->worker[w].works)
            return w;
    return -1;
}

static void take(actor *a, int i, int n)
{
    for (int w; (w = idle_worker(&a[i])) >= 0 && !lacks(a, i, n, w);) {
        a[i].worker[w].works = true, a[i].worker[w].ticks = 0;
        a[i].worker[w].left = a[i].cost.us * (a[i].cost.uneven ? uneven() : 1);
        a[i].taken++;
    }
}

/* One tick of a worker that has `share` of a core. */
static void work(actor *a, int w, double share, gp_report *r)
{
    a->worker[w].left -= TICK_US * (a->cost.sleeps ? 1 : share);
    a->worker[w].ticks++;
    if (a->report->stage >= 0)
        a->report->busy_ns += TICK_US * 1000;
    if (!a->cost.sleeps)
        r->cpu_ns += (int64_t)(TICK_US * 1000 * share);
    if (!a->cost.sleeps && a->report->stage >= 0)
        r->delayed_ns += (int64_t)(TICK_US * 1000 * (1 - share));
    if (a->worker[w].left > 0)
        return;
    a->worker[w].works = false;
    gp_hist_add(&a->report->time, (int64_t)(a->worker[w].ticks * TICK_US * 1000), 1);
    a->done++, a->report->frames++;
}

/* Those whose worker or launcher finds no frame wait. */
static void wait(actor *a, int i, int n)
{
    int waiting = a[i].report->stage < 0;
    for (int w = 0; w < a[i].workers && a[i].report->stage >= 0; w++)
        waiting += !a[i].worker[w].works;
    int64_t *why = waiting ? lacks(a, i, n, idle_worker(&a[i])) : NULL;
    if (why)
        *why += (int64_t)waiting * TICK_US * 1000;
}

static void tick(actor *a, int n, int cores, int others, gp_report *r)
{
    int runnable = 0;
    for (int i = n; i-- > 0;)
        take(a, i, n);
    for (int i = 0; i < n; i++) {
        wait(a, i, n);
        for (int w = 0; w < a[i].workers; w++)
            runnable += a[i].worker[w].works && !a[i].cost.sleeps;
    }
    double power = r->quota > 0 && r->quota < cores ? r->quota : cores;
    double share = power < runnable + others ? power / (runnable + others) : 1;
    double own = runnable * share;
    r->others += others < cores - own ? others : cores - own;  /* a sum, for now */
    for (int i = 0; i < n; i++)
        for (int w = 0; w < a[i].workers; w++)
            if (a[i].worker[w].works)
                work(&a[i], w, share, r);
    for (int i = 0; i < r->nbuffers; i++)
        r->buffer[i].held += a[r->buffer[i].from].done - a[r->buffer[i].to].done;
    r->wall_ns += TICK_US * 1000;
}

/* The report of a run of case c on plan `p`. */
static gp_report *simulate(int c, const gp_plan *p)
{
    gp_report *r = GP_NEW(&arena, gp_report, 1);
    actor *a = GP_NEW(&arena, actor, p->nactors);
    const gp_graph *g = p->graph;
    int n = r->nactors = p->nactors;
    random_state = 1;
    r->cpus = cases[c].cores, r->quota = cases[c].quota;
    r->actor = GP_NEW(&arena, gp_actor_report, n);
    r->buffer = GP_NEW(&arena, gp_buffer_report, n);
    for (int i = 0; i < n; i++) {
        gp_actor_report *to = a[i].report = &r->actor[i];
        *to = (gp_actor_report){ .stage = p->actor[i].stage, .segment = p->actor[i].segment,
                                 .workers = 0, .most_workers = 1 };
        const gp_stage *st = to->stage >= 0 ? &g->stage[to->stage] : NULL;
        const gp_segment *s = st ? NULL : &p->segment[to->segment];
        to->name = st ? st->name : "scale";
        to->workers = st ? st->workers : 0;
        to->most_workers = st && !st->serial && i ? r->cpus : 1;
        to->streams = s ? s->streams : 0;
        a[i].workers = st ? st->workers : s->streams;
        a[i].in_flight = s ? s->depth : 0;
        ck_assert_int_le(a[i].workers, WORKERS);
        a[i].cost = (cost){ to->name, .us = 1 };
        for (int k = 0; k < ACTORS && cases[c].cost[k].name; k++)
            if (!strcmp(cases[c].cost[k].name, to->name))
                a[i].cost = cases[c].cost[k];
    }
    for (int i = 0; i < p->nrings; i++) {
        const gp_ring *ring = &p->ring[i];
        if (ring->segment >= 0)
            continue;
        ck_assert_int_eq(ring->nconsumers, 1);
        ck_assert_int_eq(ring->consumer[0], ring->producer + 1);   /* one after the other */
        a[ring->producer].depth = ring->depth;
        r->buffer[r->nbuffers++] = (gp_buffer_report){ g->buffer[ring->buffer].name, ring->buffer,
            ring->producer, ring->consumer[0], ring->depth, 0 };
    }
    while (a[n - 1].done < FRAMES)
        tick(a, n, cases[c].cores, cases[c].others, r);
    double ticks = (double)r->wall_ns / (TICK_US * 1000);
    r->others /= ticks;
    for (int i = 0; i < r->nbuffers; i++)
        r->buffer[i].held /= ticks;
    for (int i = 0; i < n; i++)
        r->actor[i].end_ns = r->wall_ns;
    r->engine[GP_ENGINE_COMPUTE] = (gp_engine_report){ .name = "compute", .used = p->nsegments > 0,
                                                       .measured = true, .busy_ns = r->wall_ns };
    return r;
}

/* ---- the test --------------------------------------------------------- */

TEST_EACH(come_to_an_end, cases)
{
    const char *set[EDITS + 1], *path = "";
    double rate = 0;
    int n = 0, in_vain = 0;
    for (;; n++) {
        gp_pipeline *p = compile(cases[_i].yaml, set, n);
        gp_report *r = simulate(_i, gp_pipeline_plan(p));
        gp_verdict_find(r, p);
        const gp_verdict *v = &r->verdict;
        double now = FRAMES / (1e-9 * (double)r->wall_ns);
        ck_assert_msg(now > 0.98 * rate, "%s: %s makes it slower, %.1f to %.1f frames/s",
                      cases[_i].what, n ? set[n - 1] : "", rate, now);
        in_vain = now < 1.03 * rate ? in_vain + 1 : 0;
        ck_assert_msg(!in_vain || strcmp(path, v->path), "%s: %s gained nothing, and now %s",
                      cases[_i].what, n ? set[n - 1] : "", v->text);
        rate = now;
        if (!*v->path) {
            ck_assert_msg(v->bound == cases[_i].end, "%s: %s", cases[_i].what, v->text);
            gp_pipeline_destroy(p);
            break;
        }
        ck_assert_msg(n < cases[_i].most, "%s: one edit more: %s", cases[_i].what, v->text);
        path = gp_strdup(&arena, v->path);
        set[n] = gp_format(&arena, "%s=%s", v->path, v->value);
        for (int k = 0; k < n; k++)
            ck_assert_msg(strcmp(set[k], set[n]), "%s: %s once more", cases[_i].what, set[n]);
        gp_pipeline_destroy(p);
    }
}

TEST_SUITE(edits, up, down, 0)
