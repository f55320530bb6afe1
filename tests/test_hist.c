/* test_hist.c - histograms of durations, against sorted lists. */
#include "gpipe/hist.h"
#include "suite.h"

enum { N = 5000 };

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Numbers of every size, the same in each run. */
static int64_t number(uint64_t i)
{
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z ^= z >> 31;
    return (int64_t)((z >> 20) >> z % 40);
}

/* Never below the true value, and at most 1/16 above it. */
static void near(int64_t got, int64_t want)
{
    ck_assert_msg(got >= want && got - want <= want / 16, "%lld is not %lld", (long long)got, (long long)want);
}

static const double parts[] = { 0, 0.001, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1 };

TEST(quantiles)
{
    static int64_t v[N];
    gp_hist h = { 0 };
    for (int i = 0; i < N; i++)
        gp_hist_add(&h, v[i] = number((uint64_t)i), 1);
    qsort(v, N, sizeof *v, by_size);
    ck_assert_uint_eq(h.n, N);
    ck_assert_int_eq(h.max, v[N - 1]);
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
        int rank = 0;                  /* the smallest that so many are not above */
        while (rank + 1 < parts[p] * N)
            rank++;
        near(gp_hist_at(&h, parts[p]), v[rank]);
    }
}

TEST(small_counts)
{
    gp_hist h = { 0 };
    ck_assert_int_eq(gp_hist_at(&h, 0.5), 0);
    gp_hist_add(&h, 7, 1);
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++)
        ck_assert_int_eq(gp_hist_at(&h, parts[p]), 7);
    gp_hist_add(&h, 9, 1);
    ck_assert_int_eq(gp_hist_at(&h, 0.5), 7);
    ck_assert_int_eq(gp_hist_at(&h, 0.51), 9);
}

/* Both sides of each bucket's edge. */
TEST(edges)
{
    for (int shift = 0; shift < 48; shift++)
        for (int64_t d = -1; d <= 1; d++) {
            gp_hist h = { 0 };
            int64_t ns = (INT64_C(1) << shift) + d;
            gp_hist_add(&h, ns, 1);
            gp_hist_add(&h, INT64_C(1) << 50, 1);     /* so that the largest is no help */
            near(gp_hist_at(&h, 0.5), ns);
        }
}

TEST(extremes)
{
    gp_hist h = { 0 };
    gp_hist_add(&h, -5, 1);
    ck_assert_int_eq(gp_hist_at(&h, 1), 0);
    gp_hist_add(&h, INT64_MAX, 1);
    ck_assert_int_eq(gp_hist_at(&h, 0.5), 0);
    ck_assert_int_eq(gp_hist_at(&h, 1), INT64_MAX);
    gp_hist_add(&h, INT64_C(1) << 48, 1);
    ck_assert_int_eq(gp_hist_at(&h, 0.9), INT64_MAX);
}

TEST(counts_below_powers_of_two)
{
    static const int64_t ns[] = { 0, 15, 16, 1023, 1024, 1025, 1 << 20, (1 << 20) - 1 };
    gp_hist h = { .n = 0 };
    int64_t sum = 0;
    for (size_t i = 0; i < sizeof ns / sizeof *ns; i++)
        gp_hist_add(&h, ns[i], 1), sum += ns[i];
    ck_assert_int_eq(h.sum, sum);
    for (int k = 4; k <= 48; k++) {
        uint64_t want = 0;
        for (size_t i = 0; i < sizeof ns / sizeof *ns; i++)
            want += ns[i] < (int64_t)1 << k;
        ck_assert_uint_eq(gp_hist_below(&h, (int64_t)1 << k), want);
    }
}

TEST(merges_and_subtracts)
{
    gp_hist before = { 0 }, after = { 0 }, both = { 0 };
    for (int i = 0; i < N; i++) {
        gp_hist_add(&before, 1000000000 + number((uint64_t)i) % 1000, 1);
        gp_hist_add(&after, number((uint64_t)(N + i)) % 100000, 1);
    }
    gp_hist_merge(&both, &before);
    gp_hist_merge(&both, &after);
    ck_assert_uint_eq(both.n, 2 * N);
    ck_assert_int_eq(both.max, before.max);
    gp_hist_subtract(&both, &before);
    ck_assert_uint_eq(both.n, N);
    near(both.max, after.max);
    for (size_t p = 0; p < sizeof parts / sizeof *parts - 1; p++)
        near(gp_hist_at(&both, parts[p]), gp_hist_at(&after, parts[p]));
    near(gp_hist_at(&both, 1), after.max);
    gp_hist_subtract(&both, &after);
    ck_assert_uint_eq(both.n, 0);
    ck_assert_int_eq(both.max, 0);
    ck_assert_int_eq(gp_hist_at(&both, 0.99), 0);
}

TEST_SUITE(hist, NULL, NULL, 0)
