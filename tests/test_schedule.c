/* test_schedule.c - depths, launches, pools, totals. */
#include "pipe.h"
#include "planned.h"
#include "compile/plan.h"

/* ---- depths ---------------------------------------------------------- */

/* src in -> dev mid -> dev out -> host last -> sink, and what is said of each. */
static const struct {
    const char *what, *top, *buffers;
    int in, mid, out, last;    /* depths that come out */
    int d, period, execs;
} depths[] = {
    { "the default", "", "", 6, 6, 6, 6, 6, 6, 6 },
    { "one depth for all", "depth: 5\n", "", 5, 5, 5, 5, 5, 5, 5 },
    { "the least stays, the others are rounded up", "depth: 3\n", "  out: {depth: 4}\n", 3, 3, 6, 3, 3, 6, 6 },
    { "multiples stay", "depth: 2\n", "  in: {depth: 8}\n", 8, 2, 2, 2, 2, 8, 8 },
    { "the inner depth follows", "depth: 7\n", "  in: {depth: 2}\n", 2, 2, 8, 7, 2, 8, 8 },
    { "an inner depth may say what is so", "depth: 4\n", "  mid: {depth: 4}\n", 4, 4, 4, 4, 4, 4, 4 },
    { "a host buffer is as it says", "depth: 2\n", "  last: {depth: 9}\n", 2, 2, 2, 9, 2, 2, 2 },
    { "depth 1", "depth: 1\n", "  in: {depth: 3}\n", 4, 1, 1, 1, 1, 4, 4 },
    { "slots that come again after 64 turns have graphs", "depth: 1\n", "  in: {depth: 64}\n", 64, 1, 1, 1, 1, 64, 64 },
    { "and so have few slots", "depth: 1\n", "  in: {depth: 512}\n", 512, 1, 1, 1, 1, 512, 512 },
    { "more have none", "depth: 1\n", "  in: {depth: 513}\n", 1024, 1, 1, 1, 1, 1024, 0 },
    { "many that come again soon have graphs", "depth: 16\n", "  in: {depth: 1024}\n", 1024, 16, 16, 16, 16, 1024, 1024 },
    { "the most", "depth: 65536\n", "  in: {depth: 40000}\n  out: {depth: 65536}\n",
      40000, 40000, 80000, 65536, 40000, 80000, 80000 },
};

static const char CHAIN[] =
    "stages:\n  - {use: src, name: in}\n  - {use: dev, name: mid}\n  - {use: dev, name: out}\n"
    "  - {use: host, name: last}\n  - {use: sink}\n";

TEST_EACH(test_depths, depths)
{
    for (int cuda = 0; cuda < 2; cuda++) {
        char *yaml = format("pipeline: t\nbatch: 1\n%s%s%s%s", depths[_i].top,
                            depths[_i].buffers[0] ? "buffers:\n" : "", depths[_i].buffers, CHAIN);
        planned p = plan_ok(yaml, cuda);
        static const char *const name[] = { "in", "mid", "out", "last" };
        int want[] = { depths[_i].in, depths[_i].mid, depths[_i].out, depths[_i].last };
        for (int b = 0; b < 4; b++)
            for (int r = 0; r < p.plan->nrings; r++)
                if (p.plan->ring[r].buffer == plan_buffer(&p, name[b]))
                    ck_assert_msg(p.plan->ring[r].depth == want[b], "%s: '%s' has depth %d, not %d",
                                  depths[_i].what, name[b], p.plan->ring[r].depth, want[b]);
        const gp_segment *s = &p.plan->segment[0];
        ck_assert_int_eq(s->depth, depths[_i].d);
        ck_assert_int_eq(s->period, depths[_i].period);
        ck_assert_int_eq(gp_segment_execs(s), depths[_i].execs);
    }
}

/* ---- defaults -------------------------------------------------------- */

#define IN(size) "  - {use: src, name: in, size: " size "}\n"
#define MID(more) "  - {use: dev, name: mid" more "}\n"
#define LAST "  - {use: host, name: last}\n  - {use: sink}\n"
#define LOOP(times) "  - {use: loop, in: {x: in}, out: {y: mid}, times: " times ", carry: {x: y}, " \
    "stages: [{use: dev, name: y}]}\n" LAST
#define BOUND(n) "buffers: {in: {shape: ['<=" n "']}}\nstages:\n" IN(n) "  - {use: box, name: mid}\n  - {use: sink}\n"
#define BOTH "  - {use: src, name: b}\n"

/* "NAME DEPTH" of buffers, NULL: an error; of the first segment the frames in flight, and in a launch of a GPU. On the
 * device there is room for so many KiB, 0: enough; where that is the host, which has one more buffer, for half as many
 * more. */
static const struct { const char *what, *yaml, *comes_to; int d, batch, kib; } defaults[] = {
    { "just below 1 MiB", "stages:\n" IN("1048575") MID("") LAST, "in 6, mid 6, last 3", 6, 1, 0 },
    { "1 MiB", "stages:\n" IN("1048576") MID("") LAST, "in 3, mid 3, last 3", 3, 1, 0 },
    { "just above", "stages:\n" IN("1048577") MID("") LAST, "in 3, mid 3, last 3", 3, 1, 0 },
    { "just below 128 KiB on the host", "stages:\n" IN("131071") MID("") LAST, "in 12, mid 12, last 6", 12, 4, 0 },
    { "128 KiB on the host", "stages:\n" IN("131072") MID("") LAST, "in 12, mid 12, last 3", 12, 4, 0 },
    { "more than 2 MiB of twice 6", "stages:\n" IN("174848") MID("") LAST, "in 6, mid 6, last 3", 6, 2, 0 },
    { "64 small ones a launch", "stages:\n" IN("1000") MID("") LAST, "in 192, mid 192, last 6", 192, 64, 0 },
    { "small ones, one a launch", "batch: 1\nstages:\n" IN("1000") MID("") LAST, "in 6, mid 6, last 6", 6, 1, 0 },
    { "small ones, in turns on what is resident", "launch: persistent\nstages:\n" IN("1000") MID("") LAST,
      "in 6, mid 6, last 6", 6, 2, 0 },
    { "auto is said", "depth: auto\nstages:\n" IN("1000") MID("") LAST, "in 192, mid 192, last 6", 192, 64, 0 },
    { "3 is said", "depth: 3\nstages:\n" IN("1000") MID("") LAST, "in 3, mid 3, last 3", 3, 1, 0 },
    { "6 is said", "depth: 6\nstages:\n" IN("2000000") MID("") LAST, "in 6, mid 6, last 6", 6, 1, 0 },
    { "3 is said of a small one", "buffers: {in: {depth: 3}}\nstages:\n" IN("1000") MID("") LAST,
      "in 3, mid 6, last 6", 3, 1, 0 },
    { "3 of one inside", "buffers: {b: {depth: 3}}\nstages:\n" IN("1000") "  - {use: dev, name: b}\n" MID("") LAST,
      "in 3, b 3, mid 3, last 6", 3, 1, 0 },
    { "6 of one inside", "buffers: {b: {depth: 6}}\nstages:\n" IN("1000") "  - {use: dev, name: b}\n" MID("") LAST,
      "in 6, b 6, mid 6, last 6", 6, 2, 0 },
    { "6 of a large one", "buffers: {in: {depth: 6}}\nstages:\n" IN("2000000") MID("") LAST,
      "in 6, mid 3, last 3", 3, 1, 0 },
    { "with a latency", "latency: 5ms\nstages:\n" IN("1000") MID("") LAST, "in 3, mid 3, last 3", 3, 1, 0 },
    { "of sizes that differ the bound counts", BOUND("1048575"), "in 6, mid 6", 6, 1, 0 },
    { "... and is large", BOUND("1048576"), "in 3, mid 3", 3, 1, 0 },
    /* in a segment the largest frame counts */
    { "small ones beside a large one", "stages:\n" IN("2000000") BOTH MID(", in: [b, in]") LAST,
      "in 3, b 3, mid 3, last 6", 3, 1, 0 },
    { "in another segment", "stages:\n" IN("2000000") BOTH "  - {use: dev, name: c, in: b}\n" MID(", in: in")
      "  - {use: sink, in: [c, mid]}\n", "in 3, b 192, c 192, mid 3", 3, 1, 0 },
    /* segments that share a ring have many slots together or none */
    { "a depth before another segment", "buffers: {b: {depth: 5}}\nstages:\n" IN("1000") BOTH MID(", in: [in, b]")
      "  - {use: host, name: h}\n  - {use: dev, name: c, in: [mid, h]}\n  - {use: sink, in: c}\n",
      "in 10, b 5, mid 10, h 10, c 10", 5, 1, 0 },
    { "none before it", "stages:\n" IN("1000") BOTH MID(", in: [in, b]")
      "  - {use: host, name: h}\n  - {use: dev, name: c, in: [mid, h]}\n  - {use: sink, in: c}\n",
      "in 192, b 192, mid 192, h 192, c 192", 192, 64, 0 },
    { "large work areas", "stages:\n" IN("1000") MID(", scratch: 8388608") LAST, "in 3, mid 3, last 6", 3, 1, 0 },
    { "smaller ones", "stages:\n" IN("1000") MID(", scratch: 8388352") LAST, "in 6, mid 6, last 6", 6, 2, 0 },
    { "of which 12 fit in 64 MiB", "stages:\n" IN("1000") MID(", scratch: 4194304") LAST, "in 12, mid 12, last 6", 12, 4, 0 },
    { "a thousand kernels", "stages:\n" IN("1000") LOOP("1000"), "in 3, mid 3, last 6", 3, 1, 0 },
    { "fewer", "stages:\n" IN("1000") LOOP("990"), "in 6, mid 6, last 6", 6, 2, 0 },
    /* what fits with fewer slots is not refused */
    { "just enough for 6", "stages:\n" IN("103424") MID("") LAST, "in 6, mid 6, last 6", 6, 2, 1212 },
    { "too little for 6", "stages:\n" IN("103424") MID("") LAST, "in 3, mid 3, last 3", 3, 1, 1211 },
    { "just enough for 3", "stages:\n" IN("103424") MID("") LAST, "in 3, mid 3, last 3", 3, 1, 606 },
    { "too little for 3", "stages:\n" IN("103424") MID("") LAST, NULL, 0, 0, 605 },
    { "6 is said, too little for that", "depth: 6\nstages:\n" IN("103424") MID("") LAST, NULL, 0, 0, 1211 },
};

TEST_EACH(test_defaults, defaults)
{
    for (int cuda = 0; cuda < 2; cuda++) {
        gp_machine m;
        char name[8];
        int depth, used;
        gp_machine_fixed(&m, cuda);
        if (defaults[_i].kib)
            *(cuda ? &m.device[0].memory : &m.memory) = ((size_t)defaults[_i].kib << 10) / 2 * (cuda ? 2 : 3);
        planned p = plan_on(defaults[_i].yaml, "test.yaml", &m);
        ck_assert_msg((p.pipeline != NULL) == (defaults[_i].comes_to != NULL), "%s: %s", defaults[_i].what,
                      p.errs.n ? p.errs.e[0].msg : "no error");
        if (!p.pipeline)
            ck_assert_int_eq(p.errs.e[0].code, GP_E_RESOURCE);
        for (const char *at = defaults[_i].comes_to; at && sscanf(at, " %7[^ ] %d%n", name, &depth, &used) == 2;
             at += used + (at[used] == ','))
            for (int r = 0; r < p.plan->nrings; r++)
                if (p.plan->ring[r].buffer == plan_buffer(&p, name))
                    ck_assert_msg(p.plan->ring[r].depth == depth, "%s: '%s' has depth %d, not %d",
                                  defaults[_i].what, name, p.plan->ring[r].depth, depth);
        if (p.pipeline)
            ck_assert_int_eq(p.plan->segment[0].depth, defaults[_i].d);
        if (p.pipeline && cuda)
            ck_assert_int_eq(p.plan->segment[0].batch, defaults[_i].batch);
    }
}

TEST(test_inner_depth_is_refused)
{
    static const char *const said[] = { "2", "4", "7" };
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        char *yaml = format("pipeline: t\nbuffers:\n  mid: {depth: %s}\n%s", said[i], CHAIN);
        planned p = plan_yaml(yaml, "test.yaml", i % 2);
        ck_assert_ptr_null(p.pipeline);
        ck_assert_int_eq(p.errs.failed, 1);
        ck_assert_int_eq(p.errs.e[0].code, GP_E_SPEC);
        ck_assert_int_eq(p.errs.e[0].at.line, 3);
        ck_assert_int_eq(p.errs.e[0].at.col, 16);
        ck_assert_msg(strstr(p.errs.e[0].msg, "'mid'") && strstr(p.errs.e[0].msg, said[i]), "%s", p.errs.e[0].msg);
    }
}

/* Segments that share a ring have one D between them, others have their own. */
TEST(test_components)
{
    planned p = plan_ok(
        "pipeline: t\ndepth: 5\nbuffers:\n  a: {depth: 2}\n  c: {depth: 3}\n"
        "stages:\n  - {use: src, name: a}\n  - {use: dev, name: b}\n  - {use: host, name: h}\n"
        "  - {use: dev, name: g, in: [h, b]}\n  - {use: sink, in: g}\n  - {use: src, name: c}\n"
        "  - {use: dev, name: e}\n  - {use: sink, in: e}\n", true);
    static const struct { const char *name; int depth; } want[] = {
        { "a", 2 }, { "b", 8 }, { "h", 8 }, { "g", 8 }, { "c", 3 }, { "e", 6 },
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        ck_assert_int_eq(p.plan->ring[plan_ring(&p, want[i].name, false)].depth, want[i].depth);
    ck_assert_int_eq(p.plan->segment[plan_segment(&p, "b")].depth, 2);
    ck_assert_int_eq(p.plan->segment[plan_segment(&p, "g")].depth, 8);
}

/* ---- launches -------------------------------------------------------- */

static const struct { int depth; const char *streams, *batch; int size, nstreams, nbatch, execs; }
launches[] = {
    { 3, "auto", "auto", 1000, 3, 1, 3 },
    { 6, "auto", "auto", 1000, 6, 2, 6 + 3 },
    { 24, "auto", "auto", 1000, 8, 8, 24 + 12 + 6 + 3 },
    { 20, "auto", "auto", 1000, 8, 4, 20 + 10 + 5 },         /* floor(20 / 3) = 6 */
    { 24, "auto", "auto", 131072, 8, 4, 24 + 12 + 6 },       /* 4 frames copy 1 MiB */
    { 24, "auto", "auto", 131073, 8, 2, 24 + 12 },           /* a little more */
    { 24, "auto", "auto", 3000000, 8, 1, 24 },
    { 24, "auto", "16", 3000000, 8, 16, 24 + 12 + 6 + 3 + 1 },
    { 7, "12", "64", 1000, 7, 4, 7 + 3 + 1 },
    { 7, "2", "3", 1000, 2, 2, 7 + 3 },
    { 1, "auto", "auto", 1000, 1, 1, 1 },
    { 4, "1", "1", 1000, 1, 1, 4 },
};

TEST_EACH(test_launches, launches)
{
    char *yaml = format("pipeline: t\ndepth: %d\nstreams: %s\nbatch: %s\nstages:\n"
                        "  - {use: src, size: %d}\n  - {use: dev}\n  - {use: sink}\n", launches[_i].depth,
                        launches[_i].streams, launches[_i].batch, launches[_i].size);
    planned p = plan_ok(yaml, true);
    const gp_segment *s = &p.plan->segment[0];
    ck_assert_int_eq(s->streams, launches[_i].nstreams);
    ck_assert_int_eq(s->batch, launches[_i].nbatch);
    ck_assert_int_eq(gp_segment_execs(s), launches[_i].execs);
    ck_assert_int_le(gp_segment_execs(s), 2 * s->period);
}

/* Where a frame has a thousand kernels or more, a GPU has graphs for up to 1024 slots that come again seldom; where
 * each graph has many, for fewer. */
TEST(test_loops_have_graphs)
{
    static const struct { bool cuda; int times; const char *until; int depth, execs; } cases[] = {
        { true, 1000, "", 1024, 1024 }, { true, 1000, "", 2048, 0 }, { true, 900, "", 1024, 0 }, { false, 1000, "", 1024, 0 },
        { true, 900, "", 512, 512 }, { true, 900, ", until: c", 1024, 1024 }, { true, 400, ", until: c", 1024, 0 },
        { true, 5000, ", until: {buffer: c, every: 256}", 128, 128 }, { true, 5000, ", until: {buffer: c, every: 256}", 256, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool ends = *cases[i].until;
        char *yaml = format("depth: 1\nbuffers: {x: {depth: %d}}\nstages:\n  - {use: src, out: x}\n"
            "  - {use: loop, times: %d, carry: {a: b}%s, in: {a: x}, out: {b: y}, stages: [{use: dev, in: a, out: b}%s]}\n"
            "  - {use: sink}\n", cases[i].depth, cases[i].times, cases[i].until,
            ends ? ", {use: flag, in: b, out: c}" : "");
        planned p = plan_ok(yaml, cases[i].cuda);
        ck_assert_int_eq(p.plan->segment[0].period, cases[i].depth);
        ck_assert_msg(gp_segment_execs(&p.plan->segment[0]) == cases[i].execs, "case %zu", i);
    }
}

/* Long segments take fewer frames at once. */
TEST(test_long_segments)
{
    static const struct { int stages, batch; } cases[] = { { 1000, 4 }, { 4094, 1 }, { 9000, 1 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *yaml = malloc((size_t)cases[i].stages * 30 + 200), *at = yaml;
        at += sprintf(at, "pipeline: t\ndepth: 64\nbatch: 64\nstages:\n  - {use: src}\n");
        for (int k = 0; k < cases[i].stages; k++)
            at += sprintf(at, "  - {use: dev, name: d%d}\n", k);
        sprintf(at, "  - {use: sink}\n");
        planned p = plan_yaml(yaml, "test.yaml", true);
        ck_assert_msg(p.pipeline != NULL, "%s", p.errs.e[0].msg);
        ck_assert_int_eq(p.plan->nsegments, 1);
        ck_assert_int_eq(p.plan->segment[0].ntasks, cases[i].stages + 2);
        ck_assert_int_eq(p.plan->segment[0].batch, cases[i].batch);
        free(yaml);
    }
}

/* ---- pools ----------------------------------------------------------- */

TEST(test_copied_alike)
{
    planned p = plan_ok(
        "pipeline: t\nbuffers:\n  c: {depth: 12}\nstages:\n"
        "  - {use: src, name: a, size: 100}\n  - {use: src, name: b, size: 1000}\n  - {use: src, name: c}\n"
        "  - {use: dev, name: x, in: [a, b, c]}\n  - {use: dev, name: y, in: x}\n"
        "  - {use: two, name: z, in: x, out: [l, r]}\n  - {use: sink, in: [y, l, r]}\n", true);
    const gp_plan *q = p.plan;
    ck_assert_int_eq(plan_tasks(&p, GP_TASK_COPY_IN), 2);            /* a and b, c */
    ck_assert_int_eq(plan_tasks(&p, GP_TASK_COPY_OUT), 1);           /* y, l, r */
    for (int side = 0; side < 2; side++) {
        const gp_ring *a = &q->ring[plan_ring(&p, "a", side)];
        const gp_ring *b = &q->ring[plan_ring(&p, "b", side)];
        ck_assert_int_eq(a->pool, b->pool);
        ck_assert_uint_eq(a->offset, 0);
        ck_assert_uint_eq(b->offset, 256);
        ck_assert_uint_eq(q->pool[a->pool].stride, 256 + 1024);
        ck_assert(q->pool[a->pool].pinned == !side);
        ck_assert_int_ne(a->pool, q->ring[plan_ring(&p, "c", side)].pool);
    }
    for (int i = 0; i < q->ntasks; i++)
        if (q->task[i].op == GP_TASK_COPY_OUT)
            ck_assert_int_eq(q->task[i].ndeps, 2);             /* y, and z once */
    ck_assert_uint_eq(q->copy_in_bytes, 256 + 1024 + 1024);
    ck_assert_uint_eq(q->copy_out_bytes, 3 * 256);
    ck_assert_uint_eq(q->pinned_bytes, q->host_bytes);
}

/* No task waits for what it waits for through another: a state's readers stand between those that change it. */
TEST(test_no_edge_twice)
{
    planned p = plan_ok(
        "pipeline: t\ndepth: 8\nbatch: 8\nbuffers: {s: {state: true, dtype: u8, shape: [1000]}, was: {carry: f}, f: {like: a}}\n"
        "stages:\n  - {use: src, name: a}\n  - {use: dev, name: b, in: [a, s, was]}\n  - {use: dev, name: c, in: [b, s, a]}\n"
        "  - {use: dev, name: d, in: c, out: s}\n  - {use: dev, name: e, in: [b, c, s]}\n  - {use: dev, name: f, in: [b, e]}\n"
        "  - {use: sink, in: [f, c]}\n", true);
    const gp_plan *q = p.plan;
    bool behind[16][16] = { { false } };
    int edges = 0, stages = 0;
    ck_assert_int_le(q->ntasks, 16);
    for (int i = 0; i < q->ntasks; i++) {
        const gp_task *t = &q->task[i];
        for (int j = 0; j < t->ndeps; j++) {
            for (int k = 0; k < q->ntasks; k++)
                behind[i][k] |= behind[t->dep[j]][k];
            edges += t->op == GP_TASK_STAGE, stages += t->op == GP_TASK_STAGE && !j;
        }
        for (int j = 0; j < t->ndeps; j++) {
            ck_assert_msg(!behind[i][t->dep[j]], "task %d need not wait for %d", i, t->dep[j]);
            behind[i][t->dep[j]] = true;
        }
    }
    ck_assert_int_eq(stages, 5);
    ck_assert_int_eq(edges, 7);        /* b waits for a's copy, s and was; of c to f each for the one before */
}

/* What other segments copy too lies elsewhere. */
TEST(test_copied_unlike)
{
    planned p = plan_ok(
        "pipeline: t\nstages:\n  - {use: src, name: both}\n  - {use: src, name: first}\n"
        "  - {use: src, name: both2}\n  - {use: dev, name: x, in: [both, first, both2]}\n"
        "  - {use: host, name: h, in: x}\n  - {use: dev, name: y, in: [both, both2, h]}\n"
        "  - {use: sink, in: y}\n", true);
    const gp_plan *q = p.plan;
    int both = q->ring[plan_ring(&p, "both", false)].pool;
    ck_assert_int_eq(both, q->ring[plan_ring(&p, "both2", false)].pool);
    ck_assert_int_ne(both, q->ring[plan_ring(&p, "first", false)].pool);
    ck_assert_int_eq(plan_tasks(&p, GP_TASK_COPY_IN), 4);
    int used[2] = { 0, 0 };
    for (int i = 0; i < q->ntasks; i++)
        if (q->task[i].op == GP_TASK_COPY_IN && q->task[i].from_pool == both)
            used[q->task[i].segment]++;
    ck_assert_int_eq(used[0], 1);
    ck_assert_int_eq(used[1], 1);
}

TEST(test_unified_totals)
{
    planned p = plan_ok("pipeline: t\ndepth: 6\nstages:\n  - {use: src}\n"
                        "  - {use: dev, scratch: 100}\n  - {use: sink}\n", false);
    ck_assert_uint_eq(p.plan->host_bytes, 6 * (1024 + 1024 + 256));
    ck_assert_uint_eq(p.plan->pinned_bytes, 0);
    ck_assert_uint_eq(p.plan->device_bytes, 0);
    ck_assert_uint_eq(p.plan->copy_in_bytes + p.plan->copy_out_bytes, 0);
}

/* What is saved of a state is a copy in the host's memory: for a thread that writes it meanwhile, or at the end alone. */
TEST_LOOP(test_room_to_save, 0, 4)
{
    static const char yaml[] = "pipeline: t\nbuffers: {s: {state: true, dtype: u8, shape: [1000]}}\nstages:\n  - {use: src}\n"
        "  - {use: dev, name: b, in: [src, s]}\n  - {use: dev, name: c, in: b, out: s}\n  - {use: sink, in: b}\n";
    bool apart = _i % 2, often = _i / 2;
    planned p = plan_ok(yaml, apart);
    size_t host = p.plan->host_bytes, pinned = p.plan->pinned_bytes, device = p.plan->device_bytes;
    p = plan_ok(pipe_edited(yaml, "[1000]", often ? "[1000], save: s.npy, save_every: 7" : "[1000], save: s.npy"), apart);
    ck_assert_uint_eq(p.plan->host_bytes, host + 1000);
    ck_assert_uint_eq(p.plan->pinned_bytes, pinned + (apart && often ? 1000 : 0));
    ck_assert_uint_eq(p.plan->device_bytes, device);
}

TEST(test_sizes_do_not_wrap)
{
    ck_assert_uint_eq(gp_size_add(SIZE_MAX, 1), SIZE_MAX);
    ck_assert_uint_eq(gp_size_add(1, 2), 3);
    ck_assert_uint_eq(gp_size_mul((size_t)1 << 40, (size_t)1 << 30), SIZE_MAX);
    ck_assert_uint_eq(gp_size_mul(3, 4), 12);
    ck_assert_uint_eq(gp_size_round(0), 0);
    ck_assert_uint_eq(gp_size_round(1), 256);
    ck_assert_uint_eq(gp_size_round(256), 256);
    ck_assert_uint_ge(gp_size_round(SIZE_MAX), SIZE_MAX - 255);
    char text[24];
    ck_assert_str_eq(gp_size_text(0, text), "0 B");
    ck_assert_str_eq(gp_size_text(1023, text), "1023 B");
    ck_assert_str_eq(gp_size_text(1024, text), "1.0 KiB");
    ck_assert_str_eq(gp_size_text(((size_t)1 << 20) - 1, text), "1.0 MiB");
    ck_assert_str_eq(gp_size_text((size_t)3 << 39, text), "1.5 TiB");
    ck_assert_str_eq(gp_size_text(SIZE_MAX, text), "16.0 EiB");
}

TEST_SUITE(schedule, NULL, NULL, 0)
