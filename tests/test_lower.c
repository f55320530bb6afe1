/* test_lower.c - which stages become a segment, which rings, copies and tasks there are. */
#include "effort.h"
#include "planned.h"

#define SRC(name) "  - {use: src, name: " name "}\n"
#define HOST(name, in) "  - {use: host, name: " name ", in: " in "}\n"
#define DEV(name, in) "  - {use: dev, name: " name ", in: " in "}\n"
#define SINK(in) "  - {use: sink, in: " in "}\n"

/* ---- segments -------------------------------------------------------- */

static const struct { const char *what, *stages, *segments; } shapes[] = {
    { "a chain is one segment", SRC("s") DEV("a", "s") DEV("b", "a") DEV("c", "b") SINK("c"), "a b c" },
    { "a host stage between cuts it", SRC("s") DEV("a", "s") HOST("h", "a") DEV("b", "h") SINK("b"), "a | b" },
    { "a path through the host and back makes two segments",
      SRC("s") DEV("gray", "s") HOST("lua", "gray") DEV("join", "[gray, lua]") SINK("join"),
      "gray | join" },
    { "so does a longer one, past other device stages",
      SRC("s") DEV("a", "s") DEV("b", "a") HOST("h", "b") DEV("c", "h") DEV("d", "[c, a]")
      SINK("d"), "a b | c d" },
    { "branches that read one host buffer are one segment",
      SRC("s") DEV("a", "s") DEV("b", "s") SINK("a") SINK("b"), "a b" },
    { "pipelines that touch nothing in common are two",
      SRC("s") DEV("a", "s") SINK("a") SRC("t") DEV("b", "t") SINK("b"), "a | b" },
    { "a join makes one of them", SRC("s") DEV("a", "s") SRC("t") DEV("b", "t") DEV("c", "[a, b]") SINK("c"), "a b c" },
    { "a stage that only later stages need joins them",
      SRC("s") DEV("early", "s") HOST("h", "s") DEV("late", "[early, h]") SINK("late"),
      "early late" },
    { "but not when the host needs it too",
      SRC("s") DEV("early", "s") HOST("h", "early") DEV("late", "[early, h]") SINK("late")
      SINK("early"), "early | late" },
    { "and with it what only it needs",
      SRC("s") DEV("a", "s") DEV("b", "a") HOST("h", "s") HOST("g", "h") DEV("c", "[b, g]")
      SINK("c"), "a b c" },
    { "it joins the earliest of its readers",
      SRC("s") DEV("a", "s") HOST("h", "s") DEV("b", "[a, h]") HOST("k", "b") DEV("c", "[a, k]")
      SINK("c"), "a b | c" },
    { "three times there and back",
      SRC("s") DEV("a", "s") HOST("h", "a") DEV("b", "h") HOST("k", "b") DEV("c", "[k, a]")
      SINK("c"), "a | b | c" },
    { "no device stage, no segment", SRC("s") HOST("h", "s") SINK("h"), "" },
};

/* "a b | c": the stages of each segment, in the order of segments. */
static void segments_text(const planned *p, char *text, size_t size)
{
    text[0] = 0;
    for (int k = 0; k < p->plan->nsegments; k++) {
        const gp_segment *s = &p->plan->segment[k];
        if (k)
            strncat(text, " |", size - strlen(text) - 1);
        for (int i = 0; i < s->ntasks; i++) {
            int stage = p->plan->task[s->task[i]].stage;
            if (stage < 0)
                continue;
            if (text[0])
                strncat(text, " ", size - strlen(text) - 1);
            strncat(text, p->graph->stage[stage].name, size - strlen(text) - 1);
        }
    }
}

TEST_EACH(test_segments, shapes)
{
    for (int cuda = 0; cuda < 2; cuda++) {
        char got[500];
        planned p = plan_ok(format("pipeline: t\nstages:\n%s", shapes[_i].stages), cuda);
        segments_text(&p, got, sizeof got);
        ck_assert_msg(!strcmp(got, shapes[_i].segments), "%s: %s, not %s", shapes[_i].what, got, shapes[_i].segments);
    }
}

/* A segment ends where a collective can begin, if there are other ranks. */
#define EACH(name) "  - {use: src, shard: none, name: " name "}\n"
#define ALL(name, in) "  - {use: all, name: " name ", in: " in "}\n"

static const struct { const char *what, *stages, *alone, *shared; } collectives[] = {
    { "one that reads what is made last", EACH("s") DEV("a", "s") DEV("b", "a") ALL("x", "b") DEV("c", "x") SINK("c"),
      "a b | c", "a b | c" },
    { "what it does not need runs behind what it needs",
      EACH("s") DEV("a", "s") DEV("b", "a") DEV("c", "a") ALL("x", "b") SINK("x") SINK("c"), "a b c", "a b | c" },
    { "also where that reads what a source makes",
      EACH("s") DEV("a", "s") DEV("b", "s") ALL("x", "a") SINK("x") SINK("b"), "a b", "a | b" },
    { "two that can begin after as many stages", EACH("s") DEV("a", "s") DEV("b", "a") DEV("c", "a") ALL("x", "b") ALL("y", "c")
      SINK("x") SINK("y"), "a b c", "a b c" },
    { "a backward pass", EACH("s") DEV("a", "s") DEV("ga", "a") ALL("xa", "ga") DEV("b", "a") DEV("gb", "b") ALL("xb", "gb")
      DEV("c", "b") DEV("gc", "c") ALL("xc", "gc") SINK("xa") SINK("xb") SINK("xc"), "a ga b gb c gc", "a ga | b gb | c gc" },
    { "what one needs behind another does not count as early",
      EACH("s") DEV("a", "s") DEV("b", "a") ALL("x", "b") DEV("c", "[a, x]") ALL("y", "c") SINK("y"), "a b | c", "a b | c" },
    { "what only a host stage needs", EACH("s") DEV("a", "s") DEV("b", "a") HOST("h", "b") DEV("c", "h") ALL("x", "c")
      DEV("d", "a") SINK("x") SINK("d"), "a b d | c", "a b d | c" },
    { "a cycle is one segment, which comes as early as it is needed",
      EACH("s") "  - {use: dev, name: a, in: [s, u], out: v}\n  - {use: dev, name: b, in: v, out: w}\n" ALL("x", "v") SINK("x") SINK("w")
      DEV("c", "w") SINK("c") "buffers: {u: {carry: w, dtype: u8, shape: [1000]}}\n", "u a b | c", "u a b | c" },
};

TEST_EACH(test_collectives, collectives)
{
    for (int i = 0; i < 4; i++) {
        char got[500];
        const char *want = i < 2 ? collectives[_i].alone : collectives[_i].shared;
        char *yaml = format("pipeline: t\nstages:\n%s", collectives[_i].stages);
        planned p = plan_ranks(yaml, "test.yaml", i % 2, i < 2 ? 1 : 2);
        ck_assert_msg(p.pipeline != NULL, "%s: %s", collectives[_i].what, p.errs.e[0].msg);
        segments_text(&p, got, sizeof got);
        ck_assert_msg(!strcmp(got, want), "%s: %s, not %s", collectives[_i].what, got, want);
    }
}

/* ---- rings ----------------------------------------------------------- */

static int count_rings(const planned *p, const char *buffer)
{
    int b = plan_buffer(p, buffer), n = 0;
    for (int i = 0; i < p->plan->nrings; i++)
        n += p->plan->ring[i].buffer == b;
    return n;
}

static const char REENTRY[] = "pipeline: t\nstages:\n"
    SRC("s") DEV("gray", "s") HOST("lua", "gray") DEV("join", "[gray, lua]") SINK("join");

TEST(test_link_on_device)
{
    planned p = plan_ok(REENTRY, true);
    const gp_plan *q = p.plan;
    int d = plan_ring(&p, "gray", true), h = plan_ring(&p, "gray", false);
    const gp_ring *dev = &q->ring[d], *host = &q->ring[h];
    ck_assert_int_eq(count_rings(&p, "gray"), 2);
    ck_assert_int_eq(dev->segment, -1);                /* it has counters */
    ck_assert_int_eq(dev->nconsumers, 1);
    ck_assert_int_eq(q->actor[dev->producer].segment, plan_segment(&p, "gray"));
    ck_assert_int_eq(q->actor[dev->consumer[0]].segment, plan_segment(&p, "join"));
    ck_assert_int_eq(q->actor[host->producer].segment, plan_segment(&p, "gray"));
    ck_assert_int_eq(host->nconsumers, 1);
    ck_assert_int_eq(q->actor[host->consumer[0]].stage, plan_stage(&p, "lua"));
    ck_assert_int_eq(plan_tasks(&p, GP_TASK_COPY_IN), 2);           /* s, lua: not gray */
    ck_assert_int_eq(plan_tasks(&p, GP_TASK_COPY_OUT), 2);          /* gray, join */
    const gp_segment *second = &q->segment[plan_segment(&p, "join")];
    ck_assert_int_eq(second->nin, 2);

    p = plan_ok(REENTRY, false);
    int r = plan_ring(&p, "gray", false);
    ck_assert_int_eq(count_rings(&p, "gray"), 1);
    ck_assert_int_eq(p.plan->ring[r].nconsumers, 2);
    ck_assert_int_eq(plan_tasks(&p, GP_TASK_COPY_IN) + plan_tasks(&p, GP_TASK_COPY_OUT), 0);
}

TEST(test_fan_out_is_copied_once)
{
    planned p = plan_ok("pipeline: t\nstages:\n"
                        SRC("s") DEV("a", "s") DEV("b", "s") SINK("a") SINK("b"), true);
    ck_assert_int_eq(plan_tasks(&p, GP_TASK_COPY_IN), 1);
    ck_assert_int_eq(count_rings(&p, "s"), 2);
    ck_assert_int_eq(p.plan->ring[plan_ring(&p, "s", false)].nconsumers, 1);
    /* and once for each segment that reads it */
    p = plan_ok("pipeline: t\nstages:\n"
                SRC("s") DEV("a", "s") HOST("h", "a") DEV("b", "[s, h]") SINK("b"), true);
    ck_assert_int_eq(count_rings(&p, "s"), 3);
    ck_assert_int_eq(p.plan->ring[plan_ring(&p, "s", false)].nconsumers, 2);
}

TEST(test_inner_ring)
{
    for (int cuda = 0; cuda < 2; cuda++) {
        planned p = plan_ok("pipeline: t\nstages:\n"
                            SRC("s") DEV("a", "s") DEV("b", "a") SINK("b"), cuda);
        const gp_ring *r = &p.plan->ring[plan_ring(&p, "a", true)];
        ck_assert_int_eq(count_rings(&p, "a"), 1);
        ck_assert_int_eq(r->segment, 0);
        ck_assert_int_eq(r->nconsumers, 0);
        ck_assert_int_eq(count_rings(&p, "s"), 1 + cuda);
        ck_assert_int_eq(p.plan->unified, !cuda);
    }
}

TEST(test_same_buffer_twice)
{
    for (int cuda = 0; cuda < 2; cuda++) {
        planned p = plan_ok("pipeline: t\nstages:\n" SRC("s")
                            "  - {use: dev, name: d, in: {a: s, b: s}}\n"
                            "  - {use: sink, in: {a: d, b: d}}\n", cuda);
        ck_assert_int_eq(p.plan->ring[plan_ring(&p, "s", false)].nconsumers, 1);
        for (int i = 0; i < p.plan->ntasks; i++)
            if (p.plan->task[i].op == GP_TASK_STAGE) {
                ck_assert_int_eq(p.plan->task[i].in[0], p.plan->task[i].in[1]);
                ck_assert_int_eq(p.plan->task[i].ndeps, cuda);
            }
    }
}

/* ---- tasks and extras ------------------------------------------------ */

TEST(test_true_dependencies)
{
    planned p = plan_ok("pipeline: t\nstages:\n"
                        SRC("s") DEV("a", "s") DEV("b", "s") DEV("c", "[a, b]") SINK("c"), true);
    static const struct { const char *stage; int deps; } want[] = { { "a", 1 }, { "b", 1 }, { "c", 2 } };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        for (int t = 0; t < p.plan->ntasks; t++)
            if (p.plan->task[t].stage == plan_stage(&p, want[i].stage))
                ck_assert_msg(p.plan->task[t].ndeps == want[i].deps, "%s has %d deps",
                              want[i].stage, p.plan->task[t].ndeps);
}

TEST(test_frame_info)
{
    for (int cuda = 0; cuda < 2; cuda++) {
        planned p = plan_ok("pipeline: t\nstages:\n" SRC("s") "  - {use: dev, name: a, in: s, info: true}\n"
                            DEV("b", "a") SINK("b") SRC("t") DEV("c", "t") SINK("c"), cuda);
        const gp_segment *with = &p.plan->segment[plan_segment(&p, "a")];
        const gp_segment *without = &p.plan->segment[plan_segment(&p, "c")];
        ck_assert_int_eq(without->info_host, -1);
        ck_assert_int_eq(without->info_dev, -1);
        ck_assert_int_ge(with->info_host, 0);
        ck_assert((with->info_host == with->info_dev) == !cuda);
        ck_assert_uint_eq(p.plan->ring[with->info_host].bytes, 256);
        ck_assert_uint_eq(p.plan->pool[p.plan->ring[with->info_dev].pool].stride, 256);
    }
}

TEST(test_extras)
{
    planned p = plan_ok("pipeline: t\ndepth: 4\nstages:\n" SRC("s")
                        "  - {use: dev, name: a, in: s, scratch: 300, state: 10, table: 257}\n"
                        SINK("a"), true);
    const gp_task *t = NULL;
    for (int i = 0; i < p.plan->ntasks; i++)
        if (p.plan->task[i].op == GP_TASK_STAGE)
            t = &p.plan->task[i];
    ck_assert_ptr_nonnull(t);
    ck_assert_int_eq(p.plan->nextras, 3);
    ck_assert_uint_eq(p.plan->extra[t->scratch].stride, 512);
    ck_assert_uint_eq(p.plan->extra[t->scratch].bytes, 4 * 512);
    ck_assert_uint_eq(p.plan->extra[t->state].bytes, 256);
    ck_assert_uint_eq(p.plan->extra[t->table].bytes, 512);
    for (int i = 0; i < 3; i++)
        ck_assert(p.plan->extra[i].place.device);
}

TEST(test_constants)
{
    static const struct { const char *readers; int cuda, cpu; } cases[] = {
        { DEV("a", "[s, dark]") SINK("a"), 1, 1 },
        { HOST("a", "[s, dark]") SINK("a"), 1, 1 },
        { DEV("a", "[s, dark]") HOST("h", "[a, dark]") SINK("h"), 2, 1 },
        { DEV("a", "[s, dark]") HOST("h", "a") DEV("b", "[h, dark]") SINK("b"), 1, 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int cuda = 0; cuda < 2; cuda++) {
            char *yaml = format("pipeline: t\nbuffers:\n  dark: {const: dark.npy}\n"
                                "stages:\n" SRC("s") "%s", cases[i].readers);
            planned p = plan_yaml(yaml, "tests/golden/test.yaml", cuda);
            ck_assert_msg(p.pipeline != NULL, "%s", p.errs.e[0].msg);
            ck_assert_int_eq(p.plan->nextras, cuda ? cases[i].cuda : cases[i].cpu);
            for (int t = 0; t < p.plan->ntasks; t++)
                if (p.plan->task[t].stage == plan_stage(&p, "a")) {
                    ck_assert_int_eq(p.plan->task[t].in[1], -1);
                    ck_assert_int_ge(p.plan->task[t].konst[1], 0);
                }
        }
}

/* ---- any graph ------------------------------------------------------- */

static unsigned random_next(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 10;
}

enum { STAGES = 14 };

/* A random pipeline: each stage reads one to three buffers made before it;
 * what none reads, and some of the others, go to a sink. */
static void random_yaml(unsigned seed, char *yaml, size_t size)
{
    bool read[STAGES] = { false };
    FILE *f = fmemopen(yaml, size, "w");
    fprintf(f, "pipeline: t\ndepth: %u\n", random_next(&seed) % 5 + 1);
    fprintf(f, "batch: %u\nbuffers:\n", random_next(&seed) % 4 + 1);
    for (int i = 0; i < STAGES; i++)
        if (i == 0 || random_next(&seed) % 8 == 0)
            fprintf(f, "  v%d: {depth: %u}\n", i, random_next(&seed) % 9 + 1);
    fprintf(f, "stages:\n");
    for (int i = 0; i < STAGES; i++) {
        if (i == 0 || (i < 3 && random_next(&seed) % 3 == 0)) {
            fprintf(f, "  - {use: src, name: v%d, size: %u}\n", i, random_next(&seed) % 3000 + 1);
            continue;
        }
        fprintf(f, "  - {use: %s, name: v%d, in: {", random_next(&seed) % 3 ? "dev" : "host", i);
        for (unsigned k = random_next(&seed) % 3 + 1; k > 0; k--) {
            unsigned in = random_next(&seed) % (unsigned)i;
            fprintf(f, "p%u: v%u%s", k, in, k > 1 ? ", " : "}}\n");
            read[in] = true;
        }
    }
    for (int i = 0; i < STAGES; i++)
        if (!read[i] || random_next(&seed) % 3 == 0)
            fprintf(f, "  - {use: sink, in: v%d}\n", i);
    fclose(f);
}

/* By brute force: no path leaves a segment and comes back. */
static void assert_convex(const planned *p)
{
    const gp_graph *g = p->graph;
    enum { MAX = 2 * STAGES + 2 };
    static bool reach[MAX][MAX];
    int segment[MAX];
    memset(reach, 0, sizeof reach);
    for (int v = 0; v < g->nstages; v++)
        segment[v] = plan_segment(p, g->stage[v].name);
    for (int b = 0; b < g->nbuffers; b++)
        for (int u = 0; u < g->buffer[b].nuse; u++)
            reach[g->buffer[b].producer.stage][g->buffer[b].use[u].stage] = true;
    for (int k = 0; k < g->nstages; k++)
        for (int i = 0; i < g->nstages; i++)
            for (int j = 0; j < g->nstages; j++)
                reach[i][j] |= reach[i][k] && reach[k][j];
    for (int i = 0; i < g->nstages; i++)
        for (int j = 0; j < g->nstages; j++)
            for (int k = 0; k < g->nstages; k++)
                if (segment[i] >= 0 && segment[i] == segment[j] && segment[k] != segment[i])
                    ck_each(!(reach[i][k] && reach[k][j]), "%s -> %s -> %s",
                                  g->stage[i].name, g->stage[k].name, g->stage[j].name);
}

TEST(test_random_graphs)
{
    int planned_well = 0;
    for (unsigned seed = 1; seed <= 600; seed++)
        for (int cuda = 0; cuda < 2; cuda++) {
            char yaml[8000];
            random_yaml(seed * 2654435761u, yaml, sizeof yaml);
            planned p = plan_yaml(yaml, "test.yaml", cuda);
            for (int i = 0; i < p.errs.n; i++)         /* an inner depth may be refused */
                ck_assert_msg(p.errs.e[i].code == GP_E_WARN
                              || strstr(p.errs.e[i].msg, "never leaves"), "seed %u: %s\n%s",
                              seed, p.errs.e[i].msg, yaml);
            if (p.pipeline) {
                assert_convex(&p);
                planned_well++;
            }
        }
    ck_assert_int_gt(planned_well, 600);
}

/* ---- many stages ----------------------------------------------------- */

typedef char *(*writer)(int n);

/* dev, host, dev, host, ...: n / 2 segments. */
static char *zigzag(int n)
{
    char *yaml = malloc((size_t)n * 60 + 200), *at = yaml;
    at += sprintf(at, "pipeline: t\nstages:\n  - {use: src, name: s0}\n");
    for (int i = 1; i < n; i++)
        at += sprintf(at, "  - {use: %s, name: s%d, in: {a: s%d, b: s0}}\n", i % 2 ? "dev" : "host", i, i - 1);
    sprintf(at, "  - {use: sink, in: s%d}\n", n - 1);
    return yaml;
}

/* One source, n device stages that read it, n sinks: one segment. */
static char *comb(int n)
{
    char *yaml = malloc((size_t)n * 100 + 200), *at = yaml;
    at += sprintf(at, "pipeline: t\nstages:\n  - {use: src, name: s}\n");
    for (int i = 0; i < n / 2; i++)
        at += sprintf(at, "  - {use: dev, name: d%d, in: s}\n  - {use: sink, name: w%d, in: d%d}\n", i, i, i);
    return yaml;
}

static double passes(const planned *p)
{
    gp_arena a = { 0 };
    gp_errs errs = { .n = 0 };
    effort_begin();
    gp_plan *plan = gp_lower(&a, p->graph, &p->machine, &errs);
    plan = plan ? gp_schedule(&a, plan, &p->machine, &errs) : NULL;
    ck_assert_msg(plan && gp_verify(plan, &p->machine, &errs), "%s", errs.e[0].msg);
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    gp_dump_plan(f, plan, GP_DUMP_TEXT);
    gp_dump_plan(f, plan, GP_DUMP_JSON);
    fclose(f);
    double t = effort_end();
    free(text);
    gp_arena_free(&a);
    return t;
}

static double plan_many(int n, void *arg)
{
    writer *write = arg;
    char *yaml = (*write)(n);
    planned p = plan_yaml(yaml, "test.yaml", true);
    ck_assert_msg(p.pipeline != NULL, "%s", p.errs.e[0].msg);
    double t = passes(&p);
    plan_free(p.pipeline);
    free(yaml);
    return t;
}

TEST_EFFORT(test_linear, 1)
{
    effort_is_linear("a zigzag", plan_many, &(writer){ zigzag }, 200);
    effort_is_linear("a comb", plan_many, &(writer){ comb }, 300);
}

TEST_SUITE(lower, NULL, NULL, 0)
