/* test_tune.c - what gpipe tune decides, from figures alone: goals, which settings to try, which to propose. */
#include <math.h>
#include "simulate/search.h"
#include "paper.h"

/* ---- goals ------------------------------------------------------------ */

static const struct { const char *text; bool ok, latency; double latency_most, rate_least; } goals[] = {
    { "rate", true, false, 0, 0 },
    { "latency", true, true, 0, 0 },
    { "rate, latency < 5 ms", true, false, 5e6, 0 },
    { "rate,latency<500us", true, false, 5e5, 0 },
    { "latency < 1 s, rate", true, false, 1e9, 0 },
    { "latency, rate > 100", true, true, 0, 100 },
    { "latency < 5ms", true, false, 5e6, 0 },
    { "rate > 1000", true, true, 0, 1000 },
    { "", false, false, 0, 0 },
    { "speed", false, false, 0, 0 },
    { "rate latency", false, false, 0, 0 },
    { "rate, latency", false, false, 0, 0 },
    { "rate, latency < 5", false, false, 0, 0 },
    { "rate, latency < ms", false, false, 0, 0 },
    { "rate, latency > 5 ms", false, false, 0, 0 },
    { "rate < 5", false, false, 0, 0 },
    { "rate > -5", false, false, 0, 0 },
    { "rate,", false, false, 0, 0 },
    { "latency < 0 ms", false, false, 0, 0 },
};

TEST_EACH(reads_a_goal, goals)
{
    gp_errs errs = { 0 };
    gp_goal g;
    bool ok = gp_goal_read(goals[_i].text, &g, &errs);
    ck_assert_msg(ok == goals[_i].ok && (ok || errs.n == 1), "'%s'", goals[_i].text);
    if (!ok)
        ck_assert_msg(strstr(errs.e[0].msg, "write rate or latency") != NULL, "%s", errs.e[0].msg);
    else
        ck_assert_msg(g.latency == goals[_i].latency && fabs(g.latency_most - goals[_i].latency_most) < 1
                      && fabs(g.rate_least - goals[_i].rate_least) < 1e-9, "'%s'", goals[_i].text);
}

/* ---- what to propose -------------------------------------------------- */

enum { TRIED = 3, TURNS = 5 };
#define SAME(x) { x, x, x }

static const struct {
    const char *what, *goal;
    double rate[TRIED][TURNS], ms[TRIED];  /* rate 0: no such turn */
    size_t memory, limit;              /* of the second one */
    int proposed;
} measured[] = {
    { "the fastest", "rate", { SAME(100), SAME(120), SAME(130) }, SAME(1), 1, 0, 2 },
    { "none is faster", "rate", { SAME(100), SAME(90), SAME(99) }, SAME(1), 1, 0, 0 },
    { "within the noise", "rate", { SAME(100), SAME(100.5), SAME(99) }, SAME(1), 1, 0, 0 },
    { "faster once", "rate", { SAME(100), { 300, 90, 95 }, SAME(99) }, SAME(1), 1, 0, 0 },
    { "faster in most turns", "rate", { SAME(100), { 110, 90, 112 }, SAME(99) }, SAME(1), 1, 0, 1 },
    { "turns of which the machine was slow", "rate", { { 100, 50, 100 }, { 110, 56, 111 }, { 90, 49, 99 } }, SAME(1), 1,
      0, 1 },
    { "one that was measured once", "rate", { SAME(100), { 130 }, SAME(120) }, SAME(1), 1, 0, 1 },
    { "one that was not measured", "rate", { SAME(100), { 0 }, SAME(120) }, SAME(1), 1, 0, 2 },
    { "the least latency", "latency", { SAME(100), SAME(20), SAME(130) }, { 3, 1, 2 }, 1, 0, 1 },
    { "a limit", "rate, latency < 2 ms", { SAME(100), SAME(130), SAME(120) }, { 1, 3, 1 }, 1, 0, 2 },
    { "a limit that the given one misses", "rate, latency < 2 ms", { SAME(100), SAME(50), SAME(40) }, { 5, 1, 1 }, 1, 0,
      1 },
    { "a limit that nothing reaches", "rate, latency < 2 us", { SAME(100), SAME(150), SAME(40) }, { 5, 1, 1 }, 1, 0,
      0 },
    { "as fast with less memory", "rate", { SAME(100), SAME(130), { 128, 129, 129 } }, SAME(1), 2, 0, 2 },
    { "faster with more memory", "rate", { SAME(100), SAME(130), SAME(125) }, SAME(1), 9, 0, 1 },
    { "nearly as much memory", "rate", { SAME(100), SAME(130), SAME(129) }, SAME(1), 1, 0, 1 },
    { "too much memory", "rate", { SAME(100), SAME(150), SAME(140) }, SAME(1), 9, 5, 2 },
};

TEST_EACH(proposes, measured)
{
    gp_errs errs = { 0 };
    gp_goal g;
    gp_result result[TRIED][TURNS];
    const gp_result *of[TRIED];
    int turns[TRIED] = { 0 };
    ck_assert(gp_goal_read(measured[_i].goal, &g, &errs));
    g.memory = measured[_i].limit;
    for (int i = 0; i < TRIED; i++) {
        of[i] = result[i];
        for (; turns[i] < TURNS && measured[_i].rate[i][turns[i]] > 0; turns[i]++)
            result[i][turns[i]] = (gp_result){ measured[_i].rate[i][turns[i]], 1e6 * measured[_i].ms[i],
                                               i == 1 ? measured[_i].memory : 1 };
    }
    ck_assert_msg(gp_choose_measured(&g, of, turns, TRIED, 0.01) == measured[_i].proposed, "%s", measured[_i].what);
}

/* ---- what to try ------------------------------------------------------ */

typedef struct planning { const char *yaml; gp_pipeline *p; gp_machine machine; } planning;

static gp_pipeline *compile(planning *x, const char *const *set, int nset)
{
    gp_errs errs = { 0 };
    return pipe_compile(".", x->yaml, (gp_config){ .machine = &x->machine, .set = set, .nset = nset }, &errs);
}

static const gp_plan *plan(void *arg, const char *const *set, int nset)
{
    planning *x = arg;
    gp_pipeline_destroy(x->p);
    x->p = compile(x, set, nset);
    return x->p ? gp_pipeline_plan(x->p) : NULL;
}

static bool always(void *arg)
{
    return true;
}

/* Times in us of the source a, and of the kernels k. */
typedef struct search_case {
    const char *what, *yaml;
    double a, k, launch;
    int cores;
    size_t memory;
    const char *goal;
    double least, most;                /* of the rate of the best, to the given one */
    const char *has, *lacks;           /* in its settings */
    const char *error;
} search_case;

static const search_case searches[] = {
    { "depth", "depth: 1\n" SCALE, 0, 1000, 0, 4, 0, "rate", 3, 5, "depth=", "batch=", NULL },
    { "kernels share cores", "depth: 1\n" SCALE, 0, 1000, 0, 2, 0, "rate", 1.8, 2.1, "depth=", NULL, NULL },
    { "nothing to gain", "depth: 8\nstreams: 1\nbatch: 1\n" SCALE, 0, 1000, 0, 1, 0, "rate", 0.99, 1.02, NULL, NULL,
      NULL },
    { "launches", "depth: 64\nstreams: 1\nbatch: 1\n" SCALE, 0, 1, 500, 2, 0, "rate", 8, 100, "batch=", NULL, NULL },
    { "waiting to fill a launch", "depth: 64\nstreams: 1\nbatch: 16\n" SCALE, 60, 1, 50, 1, 0, "rate", 1.2, 3,
      "batch_wait=", NULL, NULL },
    { "which is chosen with a latency", "depth: 64\nstreams: 1\nbatch: 16\nlatency: 5ms\n" SCALE, 60, 1, 50, 1, 0,
      "rate", 0.99, 3, NULL, "batch_wait", NULL },
    { "latency", "depth: 32\n" SCALE, 0, 1000, 0, 1, 0, "latency", 0.5, 1.1, "depth=1", NULL, NULL },
    { "memory", "depth: 1\n" SCALE, 0, 1000, 0, 4, 2 << 14, "rate", 1.5, 3, "depth=", NULL, NULL },
    { "too little memory", "depth: 4\n" SCALE, 0, 1000, 0, 4, 100, "rate", 0, 0, NULL, NULL,
      "with depth 1 the pipeline needs" },
};

TEST_EACH(finds_settings, searches)
{
    const search_case *c = &searches[_i];
    gp_errs errs = { 0 };
    planning x = { .yaml = c->yaml };
    x.machine = (gp_machine){ .cpus = c->cores, .memory = (size_t)8 << 30, .pin_limit = (size_t)4 << 30,
                              .unified = true };
    gp_pipeline *given = compile(&x, NULL, 0);
    ck_assert_ptr_nonnull(given);
    const gp_graph *g = gp_pipeline_graph(given);
    gp_search s = { .given = gp_pipeline_plan(given), .plan = plan, .goes_on = always, .arg = &x, .most = 4000 };
    gp_costs costs = paper_costs(s.given, (gp_costs){ .cores = c->cores },
                                 (gp_segment_cost){ .launch_ns = 1e3 * c->launch, .kernels_ns = 1e3 * c->k });
    for (int v = 0; v < costs.nstages; v++)
        costs.stage[v] = (gp_stage_cost){ .frames = 100000, .cpu_ns = g->stage[v].nin ? 0 : 1e3 * c->a };
    s.costs = &costs;
    ck_assert(gp_goal_read(c->goal, &s.goal, &errs));
    s.goal.memory = c->memory;
    const gp_found *f = gp_search_settings(&verdict_arena, &s, 4, &errs);
    if (c->error) {
        ck_assert_msg(!f && strstr(errs.e[0].msg, c->error), "%s: %s", c->what, errs.e[0].msg);
    } else {
        ck_assert_msg(f && f->n > 20, "%s: %s", c->what, errs.e[0].msg);
        const gp_settings *best = &f->all[0];
        char text[400] = "";
        for (int i = 0; i < f->n; i++)
            best = f->all[i].score > best->score ? &f->all[i] : best;
        for (int i = 0; i < best->nset; i++)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s ", best->set[i]);
        double gain = best->is.rate / f->all[0].is.rate;
        ck_assert_msg(gain >= c->least && gain <= c->most, "%s: %s: %g", c->what, text, gain);
        ck_assert_msg((!c->has || strstr(text, c->has)) && (!c->lacks || !strstr(text, c->lacks)), "%s: %s", c->what,
                      text);
        for (int i = 0; i < f->nbest; i++)
            ck_assert_msg(!s.goal.memory || f->all[f->best[i]].is.memory <= s.goal.memory, "%s", c->what);
    }
    gp_pipeline_destroy(x.p);
    gp_pipeline_destroy(given);
}

TEST_SUITE(tune, verdict_up, verdict_down, 0)
