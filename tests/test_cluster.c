/* test_cluster.c - plans of several devices, and of ranks, on paper: cases whose rate follows from their times. */
#include <math.h>
#include "effort.h"
#include "paper.h"

/* Times in us; GPUs copy 1 MiB in 1 ms each way, and links have as much unless a case says otherwise. */
typedef struct cluster_case {
    const char *what, *yaml;
    int gpus;                          /* of the machine */
    int ranks, nodes, devices;
    double a, kernels, launch;         /* of stage 'a'; of each segment */
    double cores;                      /* 0: 64 */
    double memory, peer, network;      /* MiB/s; 0: no limit, 1000, 1000 */
    double step;                       /* of each link */
    double pace;                       /* of the source: between frames */
    double rate;                       /* frames/s of all ranks */
    const char *says;                  /* a part of the verdict; NULL: not looked at */
} cluster_case;

#define TOP(device, depth) "device: " device "\ndepth: " #depth "\nbatch: 1\n"
#define LUA "  - {name: a, use: lua, script: free.lua}\n"
#define OTHER "  - {name: l, use: reduce, op: max, device: 'cuda:1'}\n"
#define SUM "  - {name: sum, use: all_reduce}\n"
#define NCCL "  - {name: sum, use: all_reduce, by: nccl}\n  - {use: reduce, op: max}\n"
#define LAST "  - {use: discard}\n"

static const cluster_case cases[] = {
    /* devices */
    { "one GPU", TOP("cuda:0", 8) BIG KERNEL LAST, .gpus = 1, .kernels = 4000, .rate = 250 },
    { "two GPUs are twice as fast", TOP("cuda:0-1", 8) BIG KERNEL LAST, .gpus = 2, .kernels = 4000, .rate = 500 },
    { "eight GPUs", TOP("all", 8) BIG KERNEL LAST, .gpus = 8, .kernels = 4000, .rate = 2000 },
    { "each has copy engines of its own", TOP("cuda:0-3", 8) BIG KERNEL LAST, .gpus = 4, .kernels = 10, .rate = 4000 },
    { "... but memory is shared", TOP("cuda:0-3", 8) BIG KERNEL LAST, .gpus = 4, .kernels = 10, .memory = 4000,
      .rate = 2000 },
    { "... if it is too slow for all", TOP("cuda:0-3", 8) BIG KERNEL LAST, .gpus = 4, .kernels = 10, .memory = 8000,
      .rate = 4000 },
    { "one thread launches for all", TOP("cuda:0-3", 8) BIG KERNEL LAST, .gpus = 4, .kernels = 10, .launch = 500,
      .rate = 2000 },
    { "a stage of the host is one for all", TOP("cuda:0-3", 8) BIG LUA KERNEL LAST, .gpus = 4, .kernels = 1000,
      .a = 800, .rate = 1250 },
    { "with depth 1 a copy, kernels and a copy take turns on each", TOP("cuda:0-1", 1) BIG KERNEL LAST, .gpus = 2,
      .kernels = 2000, .rate = 500 },
    { "parts of the CPU share its cores", TOP("cpu:0-3", 8) BIG KERNEL LAST, .kernels = 8000, .cores = 2, .rate = 200 },
    { "a stage on each of two", TOP("cuda:0", 8) BIG KERNEL OTHER LAST, .gpus = 2, .kernels = 1500,
      .rate = 1e6 / 1500 },
    { "... with a slow copy between", TOP("cuda:0", 8) BIG KERNEL OTHER LAST, .gpus = 2, .kernels = 1500,
      .peer = 200, .rate = 200 },

    /* ranks */
    { "two ranks", TOP("cpu", 8) BIG LUA LAST, .ranks = 2, .a = 1000, .rate = 2000 },
    { "eight share two cores", TOP("cpu", 8) BIG LUA LAST, .ranks = 8, .a = 1000, .cores = 2, .rate = 2000 },
    { "... of each of four machines", TOP("cpu", 8) BIG LUA LAST, .ranks = 8, .nodes = 4, .a = 1000, .cores = 2,
      .rate = 8000 },
    { "each rank has GPUs of its own", TOP("auto", 8) BIG KERNEL LAST, .gpus = 1, .ranks = 8, .nodes = 2,
      .kernels = 4000, .rate = 2000 },
    { "... or shares those that are there", TOP("auto", 8) BIG KERNEL LAST, .gpus = 1, .ranks = 8, .nodes = 2,
      .devices = 2, .kernels = 4000, .rate = 1000 },
    { "two GPUs of each rank", TOP("cuda:0-1", 8) BIG KERNEL LAST, .gpus = 2, .ranks = 8, .nodes = 8, .kernels = 4000,
      .rate = 4000 },
    { "each rank makes all frames", TOP("cpu", 8) "buffers: {g: {dtype: f32, shape: [262144]}}\nstages:\n"
      "  - {use: generate, out: g, frames: 9, shard: none}\n" LUA LAST, .ranks = 3, .a = 1000, .rate = 3000 },
    { "ranks share the frames of a source that keeps a pace", TOP("cpu", 8) BIG LUA LAST, .ranks = 2, .a = 1000,
      .pace = 10000, .rate = 100 },
    { "... which each has, if all have all its frames", TOP("cpu", 8) "buffers: {g: {dtype: f32, shape: [262144]}}\n"
      "stages:\n  - {use: generate, out: g, frames: 9, shard: none}\n" LUA LAST, .ranks = 3, .a = 1000, .pace = 10000,
      .rate = 300 },

    /* 3 MiB over each link, in 3 steps, after 2 steps in which ranks tell what they have */
    { "a sum of four machines", TOP("cpu", 8) BIG SUM LAST, .ranks = 4, .nodes = 4, .step = 100, .rate = 4e6 / 3500,
      .says = "bound by the network (100 % of the time): a round of 'sum' takes 3.5 ms, and sends 3.15 MB from "
      "machine to machine at 1.05 GB/s: let the ranks exchange less" },
    { "... of long steps", TOP("cpu", 8) BIG SUM LAST, .ranks = 4, .nodes = 4, .step = 2000, .rate = 4e6 / 13000,
      .says = "bound by the network (100 % of the time): a round of 'sum' takes 13 ms, most of it for 5 steps from "
      "machine to machine (2 ms a step), and what it sends at 1.05 GB/s is little: let the ranks exchange more" },
    { "... with a slow stage before it", TOP("cpu", 8) BIG LUA SUM LAST, .ranks = 4, .nodes = 4, .a = 5000, .step = 100,
      .rate = 800, .says = "bound by stage 'a'" },
    { "on one machine a core copies", TOP("cpu", 8) BIG SUM LAST, .ranks = 4, .step = 100, .cores = 2,
      .rate = 4e6 / 7000, .says = "; it copies what ranks exchange, from process to process at 1.05 GB/s" },
    { "... of which there are enough", TOP("cpu", 8) BIG LUA SUM LAST, .ranks = 4, .a = 1000, .step = 100,
      .rate = 4e6 / 3500, .says = "bound by the way between processes (100 % of the time): a round of 'sum' takes "
      "3.5 ms, and sends 3.15 MB from process to process at 1.05 GB/s" },
    /* what ranks tell each other in one, they tell while they send in the other */
    { "one round after the other", TOP("cpu", 8) BIG SUM "  - {name: again, use: all_reduce}\n" LAST, .ranks = 4,
      .nodes = 4, .step = 100, .rate = 4e6 / (2 * 3300), .says = "bound by the network (100 % of the time): a round of " },
    /* 2 x 7 / 8 MiB in 14 steps, after 3 in which they tell, while the round before is under way */
    { "NCCL", TOP("auto", 8) BIG KERNEL NCCL LAST, .gpus = 1, .ranks = 8, .kernels = 10, .step = 10,
      .rate = 8e6 / (1750 + 140), .says = "bound by the links between GPUs (100 % of the time): a round of 'sum' takes "
      "1.92 ms, and sends 1.84 MB from GPU to GPU at 1.05 GB/s" },
    { "... through a slow network", TOP("auto", 8) BIG KERNEL NCCL LAST, .gpus = 1, .ranks = 8, .nodes = 2,
      .kernels = 10, .network = 100, .step = 10, .rate = 8e6 / (17500 + 140),
      .says = "bound by the network (100 % of the time): a round of 'sum' takes 17.67 ms, and sends 1.84 MB "
      "from machine to machine at 0.105 GB/s" },
    { "frames of one rank alone", TOP("cpu", 8) BIG "  - {use: gather_ranks, to: 0}\n" LUA LAST, .ranks = 4, .a = 20000,
      .cores = 1, .rate = 4e6 / (20000 + 4 * 3000) },
};

static gp_costs costs_of(const cluster_case *c, const gp_plan *plan)
{
    gp_link link = { 1e3 * MIB, 1e3 * c->step }, network = link;
    network.rate = c->network > 0 ? c->network * MIB : link.rate;
    gp_costs costs = paper_costs(plan, (gp_costs){ .cores = c->cores, .copy_peer = c->peer * MIB,
                                                   .memory = c->memory * MIB, .ranks = c->ranks, .nodes = c->nodes,
                                                   .devices = c->devices, .peer = link, .process = link,
                                                   .network = network },
                                 (gp_segment_cost){ .launch_ns = 1e3 * c->launch, .kernels_ns = 1e3 * c->kernels });
    for (int v = 0; v < costs.nstages; v++) {
        costs.stage[v].pace_ns = plan->graph->stage[v].nin ? 0 : 1e3 * c->pace;
        costs.stage[v].cpu_ns = strcmp(plan->graph->stage[v].name, "a") ? 0 : 1e3 * c->a;
    }
    return costs;
}

/* And a report of several devices is enough to simulate it again. */
TEST_EACH(follows_from_the_times, cases)
{
    const cluster_case *c = &cases[_i];
    gp_errs errs = { 0 };
    gp_pipeline *p = verdict_compile_for(c->yaml, NULL, c->gpus, c->ranks, &errs);
    const gp_plan *plan = gp_pipeline_plan(p);
    gp_costs costs = costs_of(c, plan);
    ck_assert_msg(gp_costs_suffice(&costs, plan, "m.json", &errs), "%s: %s", c->what, errs.e[0].msg);
    gp_simulated *s = paper_simulate(plan, &costs, c->what);
    ck_assert_msg(fabs(s->frames_per_s / c->rate - 1) < 1e-3, "%s: %.9g frames/s, not %.9g", c->what, s->frames_per_s,
                  c->rate);
    bool each = strstr(c->yaml, "shard: none");
    ck_assert_uint_eq(s->account[0].in, (uint64_t)PAPER_FRAMES * (uint64_t)(each ? c->ranks : 1));
    gp_verdict_find(s->report, p);
    gp_links_judge(&costs, plan, s->report);
    const char *text = s->report->verdict.text;
    ck_assert_msg(c->says ? strstr(text, c->says) != NULL : !strstr(text, "the network"), "%s: %s", c->what, text);
    if (!c->ranks && !(c->memory > 0)) {           /* of which no report says anything */
        const gp_simulated *again = paper_simulate(plan, paper_again(p, s, c->what), c->what);
        ck_assert_msg(fabs(again->frames_per_s / s->frames_per_s - 1) < 0.05, "%s: %g frames/s, not %g", c->what,
                      again->frames_per_s, s->frames_per_s);
    }
    gp_pipeline_destroy(p);
}

/* An all-reduce by NCCL between two H200, with NVLink, as was measured: for 4 KiB, 4 MiB and 64 MiB. One rate and one
 * time of a step have to give all three. */
static const struct { const char *elements; double us; } measured[] = {
    { "1024", 27 }, { "1048576", 45 }, { "16777216", 265 },
};

TEST_EACH(as_was_measured, measured)
{
    gp_errs errs = { 0 };
    char *yaml = gp_format(&verdict_arena, "device: auto\ndepth: 1\nbuffers: {g: {dtype: f32, shape: [%s]}}\nstages:\n"
                           "  - {use: generate, out: g, frames: 9}\n" KERNEL NCCL LAST, measured[_i].elements);
    gp_pipeline *p = verdict_compile_for(yaml, NULL, 1, 2, &errs);
    const gp_graph *g = gp_pipeline_graph(p);
    gp_costs c = { .ranks = 2, .peer = { 282e9, 3.4e3 }, .nccl_ns = 20.2e3 };
    int v = 0;
    while (strcmp(g->stage[v].name, "sum"))
        v++;
    ck_assert(!gp_round_takes_cores(&c, &g->stage[v]));
    double us = 1e-3 * gp_round_ns(&c, &g->stage[v]);
    ck_assert_msg(fabs(us / measured[_i].us - 1) < 0.1, "%s elements: %g us, not %g", measured[_i].elements, us,
                  measured[_i].us);
    gp_pipeline_destroy(p);
}

/* What a machine has to say, and who says that it does not. */
#define EXCHANGE "m.json: what ranks exchange in stage 'sum' goes from one "
static const struct {
    const char *what, *yaml;
    int gpus, ranks, nodes;
    double rate[4];                    /* of copies, peers, processes, the network */
    const char *message;
} lacking[] = {
    { "copies", TOP("cuda:0-1", 4) BIG KERNEL LAST, 2, 0, 0, { 0, 1, 1, 1 }, "m.json: how fast it copies to and from "
      "the GPU is not known: say 'copy_in_gb_s' and 'copy_out_gb_s'" },
    { "a network", TOP("cpu", 4) BIG SUM LAST, 0, 4, 2, { 1, 1, 1, 0 }, EXCHANGE "machine to another, at a "
      "rate that is not known: say 'network_gb_s'" },
    { "processes", TOP("cpu", 4) BIG SUM LAST, 0, 4, 2, { 1, 1, 0, 1 }, EXCHANGE "process to another on "
      "a machine, at a rate that is not known: say 'process_gb_s'" },
    { "GPUs", TOP("auto", 4) BIG KERNEL NCCL LAST, 1, 4, 1, { 1, 0, 1, 1 }, EXCHANGE "GPU to another, at a rate that "
      "is not known: say 'peer_gb_s'" },
    { "all of them at once", TOP("auto", 4) BIG KERNEL NCCL LAST, 1, 4, 2, { 0, 0, 1, 0 }, "m.json: how fast it copies "
      "to and from the GPU is not known: say 'copy_in_gb_s' and 'copy_out_gb_s'\n" EXCHANGE "machine to another, at a "
      "rate that is not known: say 'network_gb_s'\n" EXCHANGE "GPU to another, at a rate that is not known: say "
      "'peer_gb_s'" },
    { "nothing to exchange", TOP("cpu", 4) BIG LUA LAST, 0, 4, 2, { 0, 0, 0, 0 }, NULL },
    { "a rank on each machine", TOP("cpu", 4) BIG SUM LAST, 0, 4, 4, { 0, 0, 0, 1 }, NULL },
};

TEST_EACH(what_is_lacking, lacking)
{
    gp_errs errs = { 0 };
    const double *rate = lacking[_i].rate;
    gp_pipeline *p = verdict_compile_for(lacking[_i].yaml, NULL, lacking[_i].gpus, lacking[_i].ranks, &errs);
    gp_costs c = { .ranks = lacking[_i].ranks, .nodes = lacking[_i].nodes, .copy_in = rate[0], .copy_out = rate[0],
                   .peer.rate = rate[1], .process.rate = rate[2], .network.rate = rate[3] };
    bool ok = gp_costs_suffice(&c, gp_pipeline_plan(p), "m.json", &errs);
    ck_assert_int_eq(ok, !lacking[_i].message);
    const char *all = NULL;
    for (int i = 0; i < errs.n; i++)
        all = gp_format(&verdict_arena, "%s%s%s: %s", i ? all : "", i ? "\n" : "", errs.e[i].at.file, errs.e[i].msg);
    if (!ok)
        ck_assert_str_eq(all, lacking[_i].message);
    gp_pipeline_destroy(p);
}

/* Times go with the bytes of frames: of a strip that ranks cut, or of another `var`. */
#define STRIPS(rows) "device: cpu\nvars: {rows: 1024}\nbuffers: {g: {dtype: f32, shape: [" rows ", 1024]}}\nstages:\n" \
      "  - {use: generate, out: g, frames: 9, shard: none}\n" LUA "  - {name: k, use: blur, sigma: 2}\n" LAST
static const struct { const char *what, *yaml, *set; int ranks; double part; } sizes[] = {
    { "strips", STRIPS("'rows / ranks'"), NULL, 8, 0.125 },
    { "the same frames", STRIPS("rows"), NULL, 8, 1 },
    { "fewer rows", STRIPS("rows"), "vars.rows=256", 0, 0.25 },
    { "more rows", STRIPS("rows"), "vars.rows=2048", 0, 2 },
};

TEST_EACH(goes_with_the_bytes, sizes)
{
    gp_errs errs = { 0 };
    cluster_case c = { .a = 1000, .kernels = 4000 };
    const char *what = sizes[_i].what;
    gp_pipeline *p = verdict_compile_for(sizes[_i].yaml, NULL, 0, 0, &errs);
    gp_pipeline *q = verdict_compile_for(sizes[_i].yaml, sizes[_i].set, 0, sizes[_i].ranks, &errs);
    const gp_plan *from = gp_pipeline_plan(p), *to = gp_pipeline_plan(q);
    gp_costs costs = costs_of(&c, from);
    gp_costs *n = gp_costs_for(&verdict_arena, &costs, from, to, &errs);
    ck_assert_msg(n != NULL, "%s: %s", what, errs.e[0].msg);
    n->ranks = sizes[_i].ranks;
    for (int v = 0; v < n->nstages; v++)
        ck_assert_msg(fabs(n->stage[v].cpu_ns - sizes[_i].part * costs.stage[v].cpu_ns) < 1, "%s: stage %d: %g ns",
                      what, v, n->stage[v].cpu_ns);
    ck_assert_int_eq(n->nsegments, 1);
    ck_assert_msg(fabs(n->segment[0].kernels_ns / (sizes[_i].part * 4e6) - 1) < 1e-5, "%s: %g ns", what,
                  n->segment[0].kernels_ns);
    int nsay;
    const char *const *say = gp_costs_assume(&verdict_arena, n, to, &nsay);
    ck_assert_msg((nsay && strstr(say[0], "times go with the bytes of frames")) == (sizes[_i].part != 1), "%s", what);
    gp_pipeline_destroy(p), gp_pipeline_destroy(q);
}

/* A process that is alone copies on the device what ranks exchange on the host: its report tells what the rest takes. */
TEST(copies_where_it_is_alone)
{
    gp_errs errs = { 0 };
    const char *yaml = TOP("cpu", 8) BIG KERNEL SUM "  - {name: l, use: reduce, op: max}\n" LAST;
    cluster_case c = { .kernels = 4000, .ranks = 4, .nodes = 4 };
    gp_pipeline *p = verdict_compile_for(yaml, NULL, 0, 0, &errs), *q = verdict_compile_for(yaml, NULL, 0, 4, &errs);
    const gp_plan *from = gp_pipeline_plan(p), *to = gp_pipeline_plan(q);
    ck_assert_int_eq(from->nsegments, 1);
    ck_assert_int_eq(to->nsegments, 2);
    gp_costs costs = costs_of(&c, from), *n = gp_costs_for(&verdict_arena, &costs, from, to, &errs);
    ck_assert_msg(n != NULL, "%s", errs.e[0].msg);
    ck_assert_double_eq_tol(paper_simulate(to, n, "ranks")->frames_per_s, 4e6 / 3000, 10);     /* what goes over the link */
    gp_pipeline_destroy(p), gp_pipeline_destroy(q);
}

/* An event costs no more where there are more ranks. */
static double simulate_ranks(int n, void *arg)
{
    gp_errs errs = { 0 };
    cluster_case c = { .ranks = n, .nodes = n, .a = 1000 };
    gp_pipeline *p = verdict_compile_for(arg, NULL, 0, n, &errs);
    gp_costs costs = costs_of(&c, gp_pipeline_plan(p));
    effort_begin();
    gp_simulated *s = gp_simulate(&verdict_arena, gp_pipeline_plan(p), &costs, (uint64_t)n * 100, 0, &errs);
    double took = effort_end();
    ck_assert_msg(s != NULL, "%s", errs.e[0].msg);
    ck_assert_msg(fabs(s->frames_per_s / (1000.0 * n) - 1) < 0.02, "%g frames/s of %d ranks", s->frames_per_s, n);
    gp_pipeline_destroy(p);
    return took;
}

TEST_EFFORT(many_ranks, 1)
{
    effort_is_linear("ranks on machines of their own", simulate_ranks, (char *)STRIPS("8"), 100);
}

TEST_SUITE(cluster, verdict_up, verdict_down, 0)
