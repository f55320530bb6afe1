/* test_bench.c - which row gpipe bench names, from figures made by hand. */
#include "cli/bench.h"
#include "suite.h"

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

TEST_SUITE(bench, NULL, NULL, 0)
