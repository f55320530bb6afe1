/* test_simulate.c - plans on paper: cases whose rate and latency follow from their times alone. */
#include <math.h>
#include "paper.h"

#define A "  - {name: a, use: lua, script: free.lua}\n"
#define B "  - {name: b, use: lua, script: free.lua}\n"
#define MANY(n) "  - {name: a, use: lua, script: free.lua, workers: " #n "}\n"
#define PACED(n, hz) \
    "buffers: {g: {dtype: f32, shape: [" #n "]}}\nstages:\n  - {use: generate, out: g, rate: " #hz "}\n"
#define IMAGE "buffers: {g: {dtype: f32, shape: [32, 32]}}\nstages:\n" SOURCE
#define BLURS "  - {name: k, use: blur, sigma: 1}\n"
#define CPU(name, us) { name, us, 0, 0 }

/* Times in us. The device copies 1 MiB in 1 ms each way. */
typedef struct simulated_case {
    const char *what, *yaml;
    struct { const char *name; double cpu, wait, pace; } stage[4];
    double turn, stop;                 /* of all stages: what a turn takes beside its frames; how many these can be */
    double copy, link;                 /* beside, of a copy by an engine, and by kernels */
    double launch, kernels, part, wake;         /* part: of the device that a firing's kernels fill; 0: all */
    int cores;                         /* 0: 64 */
    bool cuda;
    double rate;                       /* frames/s, exact */
    double p50;                        /* of the latency, in us: within a bucket of a histogram; 0: not looked at */
    gp_bound bound;
    const char *of;                    /* NULL: not looked at */
} simulated_case;

static const simulated_case cases[] = {
    { "one stage of 1 ms", G A END, { CPU("a", 1000) }, .rate = 1000, .bound = GP_BOUND_STAGE, .of = "a" },
    { "two stages of 1 ms and 2 ms", G A B END, { CPU("a", 1000), CPU("b", 2000) }, .rate = 500,
      .bound = GP_BOUND_STAGE, .of = "b" },
    { "the same the other way round", G A B END, { CPU("a", 2000), CPU("b", 1000) }, .rate = 500,
      .bound = GP_BOUND_STAGE, .of = "a" },
    { "with depth 1 they take turns", DEPTH(1) G A B END, { CPU("generate", 1000), CPU("a", 1000), CPU("b", 2000) },
      .rate = 1e6 / 3000, .bound = GP_BOUND_DEPTH, .of = "a" },
    { "depth 2 is enough for two", DEPTH(2) G A END, { CPU("generate", 1000), CPU("a", 1000) }, .rate = 1000 },
    { "four workers", DEPTH(16) G MANY(4) END, { CPU("a", 2000) }, .rate = 2000, .bound = GP_BOUND_STAGE, .of = "a" },
    { "four workers, room for two", DEPTH(2) G MANY(4) END, { CPU("a", 2000) }, .rate = 1000 },
    { "two threads share one core", DEPTH(8) G A B END, { CPU("a", 1000), CPU("b", 1000) }, .cores = 1, .rate = 500,
      .bound = GP_BOUND_CORES, .of = "a" },
    { "sleeping needs no core", DEPTH(8) G A B END, { { "a", 0, 1000, 0 }, CPU("b", 1000) }, .cores = 1, .rate = 1000 },
    { "three threads share two cores", DEPTH(8) G A B END, { CPU("generate", 1000), CPU("a", 1000), CPU("b", 1000) },
      .cores = 2, .rate = 1e6 / 1500 },
    { "a source that keeps a pace", PACED(1024, 100) A END, { { "generate", 0, 0, 10000 }, CPU("a", 1000) },
      .rate = 100, .p50 = 1000, .bound = GP_BOUND_RATE, .of = "generate" },
    { "... and whose turns take time beside their frames", PACED(1024, 100) END, { { "generate", 1000, 0, 10000 } },
      .turn = 1000, .rate = 100 },
    { "to wake a thread takes time", "sync: block\n" DEPTH(1) G A END, { CPU("generate", 1000), CPU("a", 1000) },
      .wake = 250, .rate = 1e6 / 2500 },
    { "a thread that has a core looks before it sleeps", DEPTH(1) G A END, { CPU("generate", 400), CPU("a", 400) },
      .wake = 250, .rate = 1e6 / 800 },
    { "... but not for long", DEPTH(1) G A END, { CPU("generate", 3000), CPU("a", 3000) }, .wake = 250,
      .rate = 1e6 / 6500 },
    { "... and hardly, where threads share cores", DEPTH(1) G A END, { CPU("generate", 400), CPU("a", 400) },
      .wake = 250, .cores = 2, .rate = 1e6 / 1300 },
    { "yielding threads never sleep", "sync: yield\n" DEPTH(1) G A END, { CPU("generate", 3000), CPU("a", 3000) },
      .wake = 250, .rate = 1e6 / 6000 },
    { "who made a frame does a cheap turn itself", "sync: block\n" DEPTH(1) G A END,
      { CPU("generate", 1000), CPU("a", 2) }, .wake = 250,
      .rate = 1e6 / (1002 + 2 * 250 / 256.0) },        /* once in 256 it wakes its thread */
    { "... while its thread would have to be woken", "sync: block\n" DEPTH(1) G A END,
      { CPU("generate", 1000), CPU("a", 3) }, .wake = 250, .rate = 1e6 / 1503 },
    { "a turn takes time beside its frames", DEPTH(8) G A END, { CPU("a", 100) }, .turn = 100, .rate = 5000 },
    { "... which frames of a turn share", DEPTH(8) G "  - {name: a, use: discard}\n", { CPU("a", 1) }, .turn = 100,
      .rate = 8e6 / 208 },
    { "... up to those after which the kind ends it", DEPTH(8) G "  - {name: a, use: discard}\n", { CPU("a", 1) },
      .turn = 100, .stop = 2, .rate = 2e6 / 102 },
    { "... if it takes several", DEPTH(8) G A END, { CPU("a", 1) }, .turn = 100, .rate = 1e6 / 101 },
    { "... but not those of several workers", "sync: yield\n" DEPTH(8) G MANY(2) END, { CPU("a", 300) }, .turn = 100,
      .rate = 5000 },
    { "... but not one of several workers", "sync: block\n" DEPTH(1) G MANY(2) END,
      { CPU("generate", 1000), CPU("a", 2) }, .wake = 250, .rate = 1e6 / 1502 },
    { "spinning threads are awake", "sync: spin\n" DEPTH(1) G A END, { CPU("generate", 1000), CPU("a", 1000) },
      .wake = 250, .rate = 500 },
    { "... and have a part of the core", "sync: spin\n" DEPTH(1) G A END, { CPU("generate", 1000), CPU("a", 1000) },
      .cores = 1, .rate = 1e6 / 6000 },

    /* the device */
    { "a launch waits to be full", "batch: 8\nbatch_wait: 100ms\n" DEPTH(8) PACED(1, 1000) KERNEL END,
      { { "generate", 0, 0, 1000 } }, .cuda = true, .kernels = 0.1, .rate = 1000, .p50 = 3000 },
    { "with a latency a launch waits as long as it may", "batch: 8\nlatency: 20ms\n" DEPTH(8) PACED(1, 1000) KERNEL END,
      { { "generate", 0, 0, 1000 } }, .cuda = true, .kernels = 0.1, .rate = 1000, .p50 = 3000 },
    { "and no longer", "batch: 8\nlatency: 4ms\n" DEPTH(8) PACED(1, 1000) KERNEL END, { { "generate", 0, 0, 1000 } },
      .cuda = true, .kernels = 0.1, .rate = 1000, .p50 = 1000 },
    { "copies and kernels overlap", DEPTH(3) BIG KERNEL END, .cuda = true, .kernels = 1000, .rate = 1000 },
    { "with depth 1 they take turns", DEPTH(1) BIG KERNEL END, .cuda = true, .kernels = 1000, .rate = 1e6 / 3000,
      .p50 = 3000 },
    { "with depth 2 two frames share three engines", DEPTH(2) BIG KERNEL END, .cuda = true, .kernels = 1000,
      .rate = 2e6 / 3000 },
    { "bound by copies", DEPTH(4) BIG KERNEL END, .cuda = true, .kernels = 500, .rate = 1000 },
    { "bound by kernels", DEPTH(4) BIG KERNEL END, .cuda = true, .kernels = 4000, .rate = 250,
      .bound = GP_BOUND_COMPUTE, .of = "k" },
    { "kernels share the device", "streams: 4\n" DEPTH(8) BIG KERNEL END, .cuda = true, .kernels = 4000, .rate = 250 },
    { "bound by launches", "batch: 1\nstreams: 8\n" DEPTH(16) G KERNEL END, .cuda = true, .launch = 2000, .kernels = 1,
      .rate = 500, .bound = GP_BOUND_LAUNCH, .of = "k" },
    { "a batch shares a launch", "batch: 4\nstreams: 8\n" DEPTH(16) G KERNEL END, .cuda = true, .launch = 2000,
      .kernels = 1, .rate = 2000, .bound = GP_BOUND_LAUNCH, .of = "k" },
    /* small grids */
    { "kernels that leave room run side by side", "batch: 1\nstreams: 4\n" DEPTH(8) G KERNEL END, .cuda = true,
      .part = 0.1, .kernels = 1000, .rate = 4e6 / (1000 + 3.90625) },
    { "... until the device is full", "batch: 1\nstreams: 4\n" DEPTH(8) G KERNEL END, .cuda = true, .part = 0.5,
      .kernels = 1000, .rate = 2000 },
    { "frames of a launch do, too", "batch: 4\nstreams: 1\n" DEPTH(16) G KERNEL END, .cuda = true, .part = 0.25,
      .kernels = 1000, .rate = 4e6 / (1000 + 4 * 3.90625) },
    { "... until that is full", "batch: 8\nstreams: 1\n" DEPTH(32) G KERNEL END, .cuda = true, .part = 0.25,
      .kernels = 1000, .rate = 8e6 / (2000 + 8 * 3.90625) },
    /* kernels that read and write the host's memory, or copy: 4 KiB take 3.90625 us of the link */
    { "both ways at a time", "copies: mapped\nbatch: 1\nstreams: 1\n" DEPTH(8) G KERNEL END, .cuda = true, .link = 1,
      .copy = 50, .kernels = 100, .rate = 1e6 / (100 + 1 + 3.90625) },
    { "one after the other, where kernels copy", "copies: mapped\nbatch: 1\nstreams: 1\n" DEPTH(8) IMAGE BLURS END,
      .cuda = true, .link = 1, .copy = 50, .kernels = 100, .rate = 1e6 / (100 + 2 * (1 + 3.90625)) },
    { "copy engines, which take longer to begin", "copies: dma\nbatch: 1\nstreams: 1\n" DEPTH(8) G KERNEL END,
      .cuda = true, .link = 1, .copy = 50, .kernels = 100, .rate = 1e6 / (100 + 2 * (50 + 3.90625)) },
    { "launches share the link", "copies: mapped\nbatch: 1\nstreams: 8\n" DEPTH(16) BIG KERNEL END, .cuda = true,
      .part = 0.1, .kernels = 100, .rate = 1000, .bound = GP_BOUND_COMPUTE, .of = "k" },

    { "on the CPU a thread does each", "batch: 1\nstreams: 2\n" DEPTH(8) G KERNEL END, .part = 0.1, .kernels = 1000,
      .rate = 2000 },

    { "a batch never waits to fill", "batch: 4\n" DEPTH(16) G KERNEL END, { CPU("generate", 1000) }, .cuda = true,
      .launch = 1, .kernels = 1, .rate = 1000 },
    { "on the CPU streams are threads", "streams: 2\nbatch: 1\n" DEPTH(8) G KERNEL END, .kernels = 1000, .rate = 2000,
      .bound = GP_BOUND_STREAMS, .of = "k" },
    { "... that share cores", "streams: 4\nbatch: 1\n" DEPTH(8) G KERNEL END, .kernels = 1000, .cores = 2, .rate = 2000,
      .bound = GP_BOUND_CORES, .of = "k" },

    /* rates */
    { "a group of 4", DEPTH(8) "buffers: {g: {dtype: f32, shape: [1024]}, a: {dtype: f32, shape: [4, 1024]}}\nstages:\n"
      SOURCE "  - {use: group, frames: 4}\n" A END, { CPU("a", 8000) }, .rate = 500 },
    { "one of 10", DEPTH(8) G "  - {use: decimate, frames: 10}\n" A END, { CPU("a", 2000) }, .rate = 5000 },
};

static gp_costs costs_of(const simulated_case *c, const gp_plan *plan)
{
    gp_costs costs = paper_costs(plan, (gp_costs){ .wake_ns = 1e3 * c->wake, .cores = c->cores, .copy_ns = 1e3 * c->copy,
                                             .link_ns = 1e3 * c->link },
                                 (gp_segment_cost){ .launch_ns = 1e3 * c->launch, .kernels_ns = 1e3 * c->kernels,
                                                    .part = c->part });
    int found = 0, named = 0;
    for (int v = 0; v < costs.nstages; v++)
        costs.stage[v].turn_ns = 1e3 * c->turn, costs.stage[v].stop = c->stop;
    for (int i = 0; i < 4; i++)
        named += c->stage[i].name != NULL;
    for (int v = 0; v < costs.nstages; v++)
        for (int i = 0; i < named; i++)
            if (!strcmp(plan->graph->stage[v].name, c->stage[i].name)) {
                gp_stage_cost *s = &costs.stage[v];
                s->cpu_ns = 1e3 * c->stage[i].cpu, s->wait_ns = 1e3 * c->stage[i].wait;
                s->pace_ns = 1e3 * c->stage[i].pace;
                found++;
            }
    ck_assert_msg(found == named, "%s: a stage that is none", c->what);
    return costs;
}

/* And what a report says of a simulation is enough to do it again: costs are found from it. */
TEST_EACH(follows_from_the_times, cases)
{
    const simulated_case *c = &cases[_i];
    gp_errs errs = { 0 };
    gp_pipeline *p = verdict_compile(c->yaml, NULL, c->cuda, &errs);
    const gp_plan *plan = gp_pipeline_plan(p);
    gp_costs costs = costs_of(c, plan);
    gp_simulated *s = paper_simulate(plan, &costs, c->what);
    ck_assert_msg(fabs(s->frames_per_s / c->rate - 1) < 1e-5, "%s: %.9g frames/s, not %.9g", c->what, s->frames_per_s,
                  c->rate);
    double p50 = 1e-3 * (double)gp_hist_at(&s->report->latency, 0.5);
    ck_assert_msg(!(c->p50 > 0) || fabs(p50 / c->p50 - 1) < 0.07, "%s: p50 %.9g us, not %.9g", c->what, p50, c->p50);
    gp_verdict_find(s->report, p);
    const gp_verdict *v = &s->report->verdict;
    ck_assert_msg(!c->of || (v->bound == c->bound && v->actor >= 0 && !strcmp(s->report->actor[v->actor].name, c->of)),
                  "%s: %s", c->what, v->text);
    const gp_simulated *again = paper_simulate(plan, paper_again(p, s, c->what), c->what);
    ck_assert_msg(fabs(again->frames_per_s / s->frames_per_s - 1) < 0.03, "%s: %g frames/s, not %g", c->what,
                  again->frames_per_s, s->frames_per_s);
    gp_pipeline_destroy(p);
}

/* Launches that copy much leave it to copy engines, whatever short ones do. */
TEST(long_launches)
{
    static const char *const yaml[] = { "copies: dma\n", "", "copies: mapped\n" };
    double rate[3];
    for (int i = 0; i < 3; i++) {
        gp_errs errs = { 0 };
        gp_pipeline *p = verdict_compile(gp_format(&verdict_arena, "%sbatch: 64\nstreams: 1\nbatch_wait: 1s\n" DEPTH(64)
                                                   "buffers: {g: {dtype: f32, shape: [4096]}}\nstages:\n" SOURCE KERNEL END,
                                                   yaml[i]), NULL, true, &errs);
        gp_costs costs = paper_costs(gp_pipeline_plan(p), (gp_costs){ .copy_ns = 1e6, .link_ns = 1e3 },
                                     (gp_segment_cost){ .kernels_ns = 1e5 });
        const gp_simulated *s = paper_simulate(gp_pipeline_plan(p), &costs, "long launches");
        rate[i] = s->frames_per_s;
        ck_assert(!s->report->engine[GP_ENGINE_COPY_IN].bytes == (i == 2));
        ck_assert(!s->report->engine[GP_ENGINE_COPY_IN].by_kernels == (i < 2));
        gp_pipeline_destroy(p);
    }
    ck_assert_msg(fabs(rate[1] / rate[0] - 1) < 1e-6 && rate[2] > 1.1 * rate[0], "%g %g %g", rate[0], rate[1], rate[2]);
}

/* From the report of a GPU on which kernels of small grids ran side by side: what other settings give. */
#define SHAPE(n) "buffers: {g: {dtype: f32, shape: [" n "]}}\nstages:\n  - {use: generate, out: g, frames: 9}\n"
#define MAPPED(streams, batch, depth) "streams: " #streams "\nbatch: " #batch "\ndepth: " #depth "\ncopies: mapped\n"
#define SETTINGS(streams, batch, depth) "streams: " #streams "\nbatch: " #batch "\ndepth: " #depth "\ncopies: dma\n"
static const struct {
    const char *what, *run, *shape, *asked;
    double launch, kernels, copy;      /* us; kernels: alone, those of one frame */
} learned[] = {
    { "many side by side: one alone", SETTINGS(4, 1, 16), SHAPE("16384"), SETTINGS(1, 1, 1), 3, 200, 0 },
    { "... more", SETTINGS(4, 1, 16), SHAPE("16384"), SETTINGS(8, 1, 16), 3, 200, 0 },
    { "... several in a launch", SETTINGS(4, 1, 16), SHAPE("16384"), SETTINGS(4, 8, 64), 3, 200, 0 },
    { "one alone: many", SETTINGS(1, 1, 8), SHAPE("16384"), SETTINGS(8, 1, 16), 3, 200, 0 },
    { "... several in a launch", SETTINGS(1, 1, 8), SHAPE("16384"), SETTINGS(1, 8, 32), 3, 200, 0 },
    { "several in a launch: one", SETTINGS(2, 8, 64), SHAPE("16384"), SETTINGS(2, 1, 64), 3, 200, 0 },
    { "room for two: one alone", SETTINGS(4, 1, 16), SHAPE("131072"), SETTINGS(1, 1, 4), 3, 3000, 0 },
    { "... many", SETTINGS(1, 1, 4), SHAPE("131072"), SETTINGS(4, 1, 16), 3, 3000, 0 },
    { "bound by launches: one alone", SETTINGS(8, 1, 32), SHAPE("1024"), SETTINGS(1, 1, 1), 20, 60, 0 },
    { "short copies: one alone", SETTINGS(4, 1, 16), SHAPE("64"), SETTINGS(1, 1, 1), 3, 20, 5 },
    { "... several in a launch", SETTINGS(4, 1, 16), SHAPE("64"), SETTINGS(4, 8, 64), 3, 20, 5 },
    { "kernels that fill it: several in a launch", SETTINGS(2, 1, 8), SHAPE("1048576"), SETTINGS(2, 4, 32), 3, 9000,
      0 },
    { "mapped: by copy engines, as these are usually", MAPPED(1, 1, 1), SHAPE("64"), SETTINGS(1, 1, 1), 1, 8, 3 },
    { "... more bytes", MAPPED(1, 1, 1), SHAPE("16384"), SETTINGS(1, 1, 1), 1, 20, 3 },
    { "... several streams", MAPPED(4, 1, 16), SHAPE("64"), SETTINGS(1, 1, 1), 1, 20, 3 },
    { "by copy engines: mapped", SETTINGS(1, 1, 1), SHAPE("64"), MAPPED(1, 1, 1), 1, 8, 3 },
    { "... more bytes", SETTINGS(1, 1, 1), SHAPE("16384"), MAPPED(1, 1, 1), 1, 20, 3 },
};

TEST_EACH(learns_from_a_report, learned)
{
    gp_errs errs = { 0 };
    const char *what = learned[_i].what;
    gp_simulated *s[3];
    gp_pipeline *p[2];
    for (int i = 0; i < 2; i++)
        p[i] = verdict_compile(gp_format(&verdict_arena, "%s%s" KERNEL END, i ? learned[_i].asked : learned[_i].run,
                                         learned[_i].shape), NULL, true, &errs);
    const gp_plan *run = gp_pipeline_plan(p[0]), *asked = gp_pipeline_plan(p[1]);
    double part = fmin(gp_segment_occupancy(run, 0), 1);
    gp_costs costs = paper_costs(run, (gp_costs){ .wake_ns = 8e3, .copy_ns = 1e3 * learned[_i].copy, .link_ns = 1e3 },
                                 (gp_segment_cost){ .launch_ns = 1e3 * learned[_i].launch, .part = part,
                                                    .kernels_ns = 1e3 * learned[_i].kernels });
    s[0] = paper_simulate(run, &costs, what);
    s[1] = paper_simulate(asked, &costs, what);
    s[2] = paper_simulate(asked, gp_costs_for(&verdict_arena, paper_again(p[0], s[0], what), run, asked, &errs), what);
    ck_assert_msg(fabs(s[2]->frames_per_s / s[1]->frames_per_s - 1) < 0.1, "%s: %g frames/s, not %g", what,
                  s[2]->frames_per_s, s[1]->frames_per_s);
    int said;
    const gp_costs *found = gp_costs_for(&verdict_arena, paper_again(p[0], s[0], what), run, asked, &errs);
    const char *const *assumed = gp_costs_assume(&verdict_arena, found, asked, &said);
    bool usual = run->graph->copies == GP_COPIES_MAPPED && asked->graph->copies == GP_COPIES_DMA;
    ck_assert_msg(said == usual && (!usual || strstr(assumed[0], "takes 3 us to begin a copy, as is usual")), "%s: %s", what,
                  said ? assumed[0] : "nothing is assumed");
    gp_pipeline_destroy(p[0]), gp_pipeline_destroy(p[1]);
}

/* What frames of other sizes fill, and take. */
static const struct { const char *from, *to; double part, times; } grown[] = {
    { "1024", "2048", 2048 / 270336.0, 1 },
    { "135168", "270336", 1, 1 },
    { "135168", "540672", 1, 2 },
    { "540672", "1081344", 1, 2 },
    { "540672", "135168", 0.5, 0.5 },
};

TEST_EACH(small_grids_take_as_long, grown)
{
    gp_errs errs = { 0 };
    gp_pipeline *p[2];
    for (int i = 0; i < 2; i++)
        p[i] = verdict_compile(gp_format(&verdict_arena, "buffers: {g: {dtype: f32, shape: [%s]}}\nstages:\n"
                                         "  - {use: generate, out: g, frames: 9}\n" KERNEL END,
                                         i ? grown[_i].to : grown[_i].from), NULL, true, &errs);
    const gp_plan *from = gp_pipeline_plan(p[0]), *to = gp_pipeline_plan(p[1]);
    gp_costs costs = paper_costs(from, (gp_costs){ .cores = 1 }, (gp_segment_cost){ .kernels_ns = 1000 });
    const gp_costs *n = gp_costs_for(&verdict_arena, &costs, from, to, &errs);
    ck_assert_ptr_nonnull(n);
    ck_assert_msg(fabs(n->segment[0].part - grown[_i].part) < 1e-4, "%s to %s: %g of it", grown[_i].from, grown[_i].to,
                  n->segment[0].part);
    ck_assert_msg(fabs(n->segment[0].kernels_ns / 1000 / grown[_i].times - 1) < 1e-4, "%s to %s: %g times",
                  grown[_i].from, grown[_i].to, n->segment[0].kernels_ns / 1000);
    gp_pipeline_destroy(p[0]), gp_pipeline_destroy(p[1]);
}

/* There are no times of what the run had not: the error names it. */
static const struct { const char *from, *to, *says; int line; } unlike[] = {
    { G A END, G A B END, "with these settings there is a stage 'b', and in the run of the report there was none", 5 },
    { G A B END, G A END, "with these settings there is no stage 'b', which the run of the report had", 0 },
    { G A B END, G B A END, "with these settings stage 'b' comes in another order than in the run of the report", 4 },
};

TEST_EACH(other_stages, unlike)
{
    gp_errs errs = { 0 };
    gp_pipeline *p[2];
    for (int i = 0; i < 2; i++)
        p[i] = verdict_compile(i ? unlike[_i].to : unlike[_i].from, NULL, true, &errs);
    ck_assert(p[0] && p[1] && !errs.n);
    const gp_plan *from = gp_pipeline_plan(p[0]), *to = gp_pipeline_plan(p[1]);
    gp_costs costs = paper_costs(from, (gp_costs){ .cores = 1 }, (gp_segment_cost){ .kernels_ns = 1000 });
    ck_assert_ptr_null(gp_costs_for(&verdict_arena, &costs, from, to, &errs));
    ck_assert_msg(errs.n == 1 && !strncmp(errs.e[0].msg, unlike[_i].says, strlen(unlike[_i].says)), "%s", errs.e[0].msg);
    ck_assert_msg(errs.e[0].at.line == unlike[_i].line, "line %d", errs.e[0].at.line);
    gp_pipeline_destroy(p[0]), gp_pipeline_destroy(p[1]);
}

TEST_SUITE(simulate, verdict_up, verdict_down, 0)
