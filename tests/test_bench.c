/* test_bench.c - what gpipe bench says of a row's bound, from figures made by hand. */
#include <math.h>
#include "cli/bench.h"
#include "suite.h"

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

static const struct { uint64_t ns; double workers, s; uint64_t frames; double us; } busy[] = {
    { 800000000, 1, 1, 1000, 800 },
    { 1600000000, 2, 1, 1000, 800 },
    { 1100000000, 1, 1, 1000, 1000 },  /* a piece of work that began before the windows */
    { 2500000000, 2, 1, 1000, 1000 },
    { 1000000000, 1, 1, 0, 0 },
    { 0, 1, 1, 10, 0 },
    { 400000000, 1.6, 1, 1000, 250 },  /* kernels on what other processes left of 2 cores */
    { 400000000, 0, 1, 1000, 1000 },   /* on nothing, as far as was seen */
    { 0, 0, 1, 1000, 0 },
};

TEST_EACH(time_of_a_stage, busy)
{
    double us = gp_bench_busy_us(busy[_i].ns, busy[_i].workers, busy[_i].s, busy[_i].frames);
    ck_assert_msg(near(us, busy[_i].us), "%g", us);
    /* the same windows never do better than this bound */
    ck_assert(us * 1e-6 * (double)busy[_i].frames / busy[_i].s <= 1 + 1e-12);
}

static const struct {
    const char *what;
    double median, mean;       /* frames/s */
    gp_resource part[3];
    const char *by, *is;
    double reached;
} rows[] = {
    { "nothing", 100, 100, { { 0 } }, NULL, NULL, NAN },
    { "a stage", 100, 99, { { "a", "", 100, false }, { "b", "", 10000, false } }, "b", "same run", 0.99 },
    /* the median of windows may be above their mean; the bound is of all of them */
    { "a stage that is always busy", 104, 100, { { "a", "", 10000, false } }, "a", "same run", 1 },
    { "kernels", 100, 100, { { "a", "", 100, false }, { "kernels", "", 9000, true } }, "kernels", "estimate", 0.9 },
    { "kernels that were slower alone", 117, 117, { { "a", "", 100, false },
      { "kernels", "", 10000, true } }, "kernels", "refuted", 1.17 },
    { "kernels that were not timed", 100, 100, { { "a", "", 100, false }, { "kernels", "", NAN, true } },
      "a", "same run", 0.01 },
};

TEST_EACH(bound_of_a_row, rows)
{
    gp_resource room[3];
    gp_figures f = { .frames_per_s = rows[_i].median, .mean_per_s = rows[_i].mean };
    gp_row r = { .figures = &f, .resource = room };
    memset(room, 0, sizeof room);
    for (int i = 0; i < 3 && rows[_i].part[i].name; i++)
        gp_bench_add(&r, rows[_i].part[i]);
    const char *is = gp_bench_bound_is(&r);
    ck_assert_msg(rows[_i].is ? is && !strcmp(is, rows[_i].is) : !is, "%s: %s", rows[_i].what, is);
    if (!rows[_i].by) {
        ck_assert(isnan(gp_bench_reached(&r)));
        return;
    }
    ck_assert_str_eq(r.resource[r.bound].name, rows[_i].by);
    ck_assert_msg(near(gp_bench_reached(&r), rows[_i].reached), "%s: %g", rows[_i].what, gp_bench_reached(&r));
    ck_assert(r.resource[r.bound].alone || gp_bench_reached(&r) <= 1);
}

static const struct {
    const char *what;
    struct { double rate, spread; bool unstable, cached; } row[3];
    int best;
} bests[] = {
    { "the fastest", { { 100, 0.02, false, false }, { 103, 0.04, false, false }, { 90, 0, false, false } }, 1 },
    { "unstable, by less than both spreads", { { 100, 0.04, false, false }, { 120, 0.3, true, false } }, 0 },
    { "unstable, by less than one of them", { { 100, 0.05, false, false }, { 120, 0.18, true, false } }, 0 },
    { "unstable, by more", { { 100, 0.04, false, false }, { 200, 0.3, true, false }, { 99, 0, false, false } }, 1 },
    { "several unstable", { { 110, 0.9, true, false }, { 105, 0.8, true, false }, { 100, 0.01, false, false } }, 2 },
    { "all unstable", { { 100, 0.5, true, false }, { 120, 0.3, true, false } }, 1 },
    { "a ceiling", { { 100, 0.01, false, false }, { 200, 0.01, false, true } }, 0 },
    { "a ceiling that is stable", { { 100, 0.5, true, false }, { 90, 0.01, false, true } }, 0 },
};

TEST_EACH(best_row, bests)
{
    gp_figures f[3] = { { 0 } };
    gp_row row[3] = { { 0 } };
    int n = 0;
    for (; n < 3 && bests[_i].row[n].rate > 0; n++) {
        f[n].frames_per_s = bests[_i].row[n].rate, f[n].spread = bests[_i].row[n].spread;
        f[n].stable = !bests[_i].row[n].unstable;
        row[n].figures = &f[n], row[n].cached = bests[_i].row[n].cached ? "a" : NULL;
    }
    ck_assert_msg(gp_bench_best(row, n) == &row[bests[_i].best], "%s", bests[_i].what);
}

/* Shares of a host stage, that counts for nothing, and of two segments. */
static const struct { double row[3], alone[3], by; bool alike; } shares[] = {
    { { 1, 1, 1 }, { 1, 1, 1 }, 1, true },
    { { 1, 0.0625, 0.0625 }, { 1, 1, 1 }, 0.0625, true },
    { { 1, 1, 0.0625 }, { 1, 1, 1 }, 1, false },
    { { 1, 0.5, 0.501 }, { 1, 1, 1 }, 0.501, true },
    { { 1, 0.25, 0.25 }, { 1, 0.5, 0.5 }, 0.5, true },
};

TEST_EACH(share_of_a_part, shares)
{
    struct gp_busy row[3] = { { .workers = 1 } }, alone[3] = { { .workers = 1 } };
    bool alike;
    for (int i = 0; i < 3; i++)
        row[i].share = shares[_i].row[i], alone[i].share = shares[_i].alone[i];
    double by = gp_bench_share(&(gp_figures){ .busy = row, .nbusy = 3 },
                               &(gp_figures){ .busy = alone, .nbusy = 3 }, &alike);
    ck_assert_msg(near(by, shares[_i].by) && alike == shares[_i].alike, "%g, %d", by, alike);
}

TEST_SUITE(bench, NULL, NULL, 0)
