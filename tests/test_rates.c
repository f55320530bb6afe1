/* test_rates.c - how often stages fire, and depths that follow from that, on a machine with a GPU and on one
 * without. */
#include "compile/firing.h"
#include "planned.h"

/* ---- frames of firings ----------------------------------------------- */

static const struct {
    gp_regroup r;
    uint64_t k, frame, from, to;       /* of firing k */
    uint64_t frames, ready, all;       /* firings that so many frames are enough for; if there are no more */
} firings[] = {
    { { .step = 1, .repeat = 1, .take = 1, .make = 1 }, 7, 7, 7, 8, 5, 5, 5 },
    { { .step = 4, .repeat = 1, .take = 4, .make = 1, .stack = true }, 3, 12, 12, 16, 11, 2, 3 },
    { { .step = 4, .repeat = 1, .take = 4, .make = 1, .stack = true }, 0, 0, 0, 4, 12, 3, 3 },
    { { .step = 4, .repeat = 1, .take = 4, .make = 1, .stack = true, .drop_tail = true }, 0, 0, 0, 4, 11, 2, 2 },
    { { .step = 4, .repeat = 1, .take = 4, .make = 1, .stack = true, .drop_tail = true }, 0, 0, 0, 4, 3, 0, 0 },
    { { .step = 1, .repeat = 1, .take = 5, .back = 4, .make = 1, .stack = true }, 2, 2, 0, 3, 3, 3, 3 },
    { { .step = 1, .repeat = 1, .take = 5, .back = 4, .make = 1, .stack = true }, 9, 9, 5, 10, 0, 0, 0 },
    { { .step = 3, .repeat = 1, .take = 1, .make = 1 }, 2, 6, 6, 7, 7, 3, 3 },
    { { .step = 3, .repeat = 1, .take = 1, .make = 1 }, 0, 0, 0, 1, 6, 2, 2 },
    { { .step = 1, .repeat = 3, .take = 1, .make = 1 }, 7, 2, 2, 3, 2, 6, 6 },
    { { .step = 1, .repeat = 1, .take = 1, .make = 6, .split = true }, 7, 7, 7, 8, 2, 2, 2 },
};

TEST_EACH(frames_of_a_firing, firings)
{
    const gp_regroup *r = &firings[_i].r;
    ck_assert_uint_eq(gp_firing_frame(r, firings[_i].k), firings[_i].frame);
    ck_assert_uint_eq(gp_firing_from(r, firings[_i].k), firings[_i].from);
    ck_assert_uint_eq(gp_firing_to(r, firings[_i].k), firings[_i].to);
    ck_assert_uint_eq(gp_firings_ready(r, firings[_i].frames), firings[_i].ready);
    ck_assert_uint_eq(gp_firings_in_all(r, firings[_i].frames), firings[_i].all);
}

/* ---- rates and depths ------------------------------------------------ */

#define AT3 "depth: 3\n"
#define AUTO "depth: auto\n"

/* Stages behind {use: src, name: a}, and the depth that is said: "NAME RATE DEPTH" of each buffer. */
static const struct { const char *stages, *buffers, *depth; } plans[] = {
    { "  - {use: mix, name: b, op: sum, frames: 4}\n", "a 4 3, b 1 3", AT3 },
    { "  - {use: mix, name: b, op: sum, frames: 6}\n  - {use: hold, name: c, frames: 4}\n",
      "a 6 3, b 1 3, c 4 3", AT3 },
    { "  - {use: mix, name: b, op: sum}\n  - {use: hold, name: c, frames: 4}\n", "a 1 3, b 1 3, c 1 3", AT3 },
    { "  - {use: mix, name: b, op: sum, frames: 8}\n  - {use: hold, name: c, frames: 8}\n"
      "  - {use: host, name: d, in: [a, c]}\n", "a 8 16, b 1 3, c 8 3, d 8 3", AT3 },
    { "  - {use: host, name: b}\n", "a 1 3, b 1 3", AT3 },
    { "  - {use: group, name: b, frames: 4}\n", "a 4 12, b 1 3", AT3 },
    { "  - {use: split, name: b}\n", "a 1 3, b 1000 1256", AT3 },
    { "  - {use: decimate, name: b, frames: 4}\n", "a 4 3, b 1 3", AT3 },
    { "  - {use: hold, name: b, frames: 4}\n", "a 1 3, b 4 3", AT3 },
    { "  - {use: window, name: b, frames: 4}\n", "a 1 6, b 1 3", AT3 },
    { "  - {use: group, name: b, frames: 4}\n  - {use: hold, name: c, frames: 6}\n", "a 4 12, b 1 3, c 6 3", AT3 },
    { "  - {use: dev, name: b}\n  - {use: group, name: c, frames: 5}\n  - {use: dev, name: d}\n",
      "a 5 3, b 5 24, c 1 3, d 1 3", AT3 },         /* of a segment's depths each is another times 2, 4, 8, ... */
    { "  - {use: group, name: b, frames: 16}\n  - {use: hold, name: c, frames: 16}\n"
      "  - {use: host, name: d, in: [a, c]}\n", "a 16 48, b 1 3, c 16 3, d 16 3", AT3 },
    { "  - {use: group, name: b, frames: 4}\n  - {use: group, name: c, frames: 8}\n"
      "  - {use: hold, name: d, frames: 32}\n  - {use: host, name: e, in: [a, d]}\n",
      "a 32 64, b 8 24, c 1 3, d 32 3, e 32 3", AT3 },      /* a has to wait for a frame of c */
    { "  - {use: mix, name: m, op: mean}\n  - {use: dev, name: b}\n  - {use: dev, name: c, in: m}\n"
      "  - {use: decimate, name: d, frames: 3}\n  - {use: sink, in: b}\n  - {use: sink, in: d}\n  - {use: host, name: e, in: b}\n",
      "b 3 3, c 3 3, d 1 3, e 3 3", AT3 },        /* what reads the one frame of all is one segment */
    /* by default those that take or make one small frame have room for 6, others for 3 */
    { "  - {use: group, name: b, frames: 4}\n", "a 4 12, b 1 6", AUTO },
    { "  - {use: split, name: b}\n", "a 1 6, b 1000 1256", AUTO },
    { "  - {use: window, name: b, frames: 4}\n", "a 1 9, b 1 6", AUTO },
    { "  - {use: mix, name: b, op: sum, frames: 4}\n", "a 4 6, b 1 6", AUTO },
    { "  - {use: group, name: b, frames: 2000}\n", "a 2000 2256, b 1 3", AUTO },         /* 2 MB */
};

TEST_EACH(rates_and_depths, plans)
{
    for (int cuda = 0; cuda < 2; cuda++) {
        char name[8];
        int rate, depth, used;
        char *yaml = format("pipeline: t\n%sstages:\n  - {use: src, name: a}\n%s  - {use: sink}\n",
                            plans[_i].depth, plans[_i].stages);
        planned p = plan_ok(yaml, cuda);
        for (const char *at = plans[_i].buffers; sscanf(at, " %7s %d %d%n", name, &rate, &depth, &used) == 3;
             at += used + (at[used] == ',')) {
            int b = plan_buffer(&p, name);
            ck_assert_int_eq(p.graph->buffer[b].rate, rate);
            for (int r = 0; r < p.plan->nrings; r++)
                if (p.plan->ring[r].buffer == b)
                    ck_assert_msg(p.plan->ring[r].depth == depth, "'%s' has depth %d, not %d\n%s", name,
                                  p.plan->ring[r].depth, depth, yaml);
        }
    }
}

/* A stage that regroups is alone, where its input is made, and goes up a level on both sides. */
TEST(segments_apart)
{
    for (int cuda = 0; cuda < 2; cuda++) {
        planned p = plan_ok("pipeline: t\nstages:\n  - {use: src, name: a}\n  - {use: dev, name: b}\n"
                            "  - {use: group, name: c, frames: 4}\n  - {use: dev, name: d}\n"
                            "  - {use: hold, name: e, frames: 4}\n  - {use: dev, name: f, in: [b, e]}\n"
                            "  - {use: dev, name: g, in: b}\n  - {use: group, name: h, frames: 2, in: a}\n"
                            "  - {use: sink, in: [f, g]}\n  - {use: sink, in: h}\n", cuda);
        int b = plan_segment(&p, "b"), c = plan_segment(&p, "c"), d = plan_segment(&p, "d");
        int e = plan_segment(&p, "e"), f = plan_segment(&p, "f");
        ck_assert(b < c && c < d && d < e && e < f);
        ck_assert(plan_segment(&p, "g") == b || plan_segment(&p, "g") == f);
        ck_assert_int_eq(plan_segment(&p, "h"), -1);
        ck_assert_int_eq(p.plan->segment[c].ntasks, 1);
    }
}

/* ---- any graph ------------------------------------------------------- */

/* Trees of stages whose leaves come back together at one rate: what is compiled is proved by verify, or refused
 * with an error of the user's. */
TEST_LOOP(any_graph, 0, 400)
{
    unsigned seed = (unsigned)_i * 104729 + 3;
    char yaml[4000] = "";
    int n = 2 + rand_r(&seed) % 9, read = 0;
    snprintf(yaml, sizeof yaml, "pipeline: t\ndepth: %d\nbatch: %d\nstages:\n  - {use: src, name: s0, size: 6}\n",
             1 + rand_r(&seed) % 6, 1 + rand_r(&seed) % 4);
    for (int i = 1; i <= n; i++) {
        static const char *const kinds[] = { "host", "dev", "dev", "group", "window", "decimate", "hold", "mix, op: max",
                                             "split" };
        int k = rand_r(&seed) % 9, from = rand_r(&seed) % i, other = rand_r(&seed) % i;
        size_t at = strlen(yaml);
        from = i == 1 ? 0 : rand_r(&seed) % 3 ? i - 1 : from;
        read |= 1 << from;
        if (k < 3 && rand_r(&seed) % 3 == 0 && other != from) {
            snprintf(yaml + at, sizeof yaml - at, "  - {use: %s, name: s%d, in: [s%d, s%d]}\n", kinds[k], i, from, other);
            read |= 1 << other;
        } else if (k < 3 || k == 8) {
            snprintf(yaml + at, sizeof yaml - at, "  - {use: %s, name: s%d, in: s%d}\n", kinds[k], i, from);
        } else {
            snprintf(yaml + at, sizeof yaml - at, "  - {use: %s, name: s%d, in: s%d, frames: %d}\n", kinds[k], i, from,
                     1 + rand_r(&seed) % 5);
        }
    }
    for (int i = 0; i <= n; i++) {
        size_t at = strlen(yaml);
        if (!(read >> i & 1))
            snprintf(yaml + at, sizeof yaml - at, "  - {use: sink, in: s%d}\n", i);
    }
    for (int cuda = 0; cuda < 2; cuda++) {
        planned p = plan_yaml(yaml, "test.yaml", cuda);
        for (int e = 0; e < p.errs.n; e++)
            ck_assert_msg(p.errs.e[e].code == GP_E_SPEC && p.errs.e[e].at.line > 0, "%s\n%s", p.errs.e[e].msg, yaml);
        ck_assert_msg(p.pipeline || p.errs.n, "%s", yaml);
    }
}

TEST_SUITE(rates, NULL, NULL, 0)
