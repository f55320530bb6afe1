/* hist.c - a histogram of durations whose buckets grow with them: 16 for each
 * power of two, so that their relative width stays below 1/16.
 *
 * One thread adds; others may merge from it meanwhile, hence the relaxed atomics. */
#include "gpipe/hist.h"

enum { SUB = 16, SUB_BITS = 4 };

/* Below SUB a bucket is 1 ns wide; above, the top SUB_BITS + 1 bits choose it. */
static int bucket_of(uint64_t ns)
{
    if (ns < SUB)
        return (int)ns;
    int shift = 63 - __builtin_clzll(ns) - SUB_BITS;
    int b = (shift + 1) * SUB + (int)(ns >> shift) - SUB;
    return b < GP_HIST_BUCKETS ? b : GP_HIST_BUCKETS - 1;
}

/* The largest duration in bucket b. */
static int64_t top_of(int b)
{
    int shift = b / SUB - 1;
    return shift < 0 ? b : (((int64_t)(b % SUB + SUB) + 1) << shift) - 1;
}

#define PUT(place, v) __atomic_store_n(&(place), (v), __ATOMIC_RELAXED)
#define GET(place)    __atomic_load_n(&(place), __ATOMIC_RELAXED)

void gp_hist_add(gp_hist *h, int64_t ns, uint64_t n)
{
    const int64_t most = INT64_C(1) << 48;     /* so that the sum is one for long */
    if (ns < 0)
        ns = 0;
    int64_t counted = ns < most ? ns : most;
    uint64_t *bucket = &h->bucket[bucket_of((uint64_t)ns)];
    PUT(h->n, h->n + n);
    PUT(h->sum, h->sum + counted * (int64_t)n);
    PUT(*bucket, *bucket + n);
    if (ns > h->max)
        PUT(h->max, ns);
}

void gp_hist_merge(gp_hist *to, const gp_hist *from)
{
    int64_t max = GET(from->max);
    if (max > to->max)
        to->max = max;
    to->sum += GET(from->sum);
    for (int b = 0; b < GP_HIST_BUCKETS; b++) {
        uint64_t n = GET(from->bucket[b]);
        to->bucket[b] += n, to->n += n;
    }
}

void gp_hist_subtract(gp_hist *from, const gp_hist *what)
{
    int highest = 0;
    from->n -= what->n, from->sum -= what->sum;
    for (int b = 0; b < GP_HIST_BUCKETS; b++)
        if (from->bucket[b] -= what->bucket[b])
            highest = b;
    if (!from->n)
        from->max = 0;
    else if (top_of(highest) < from->max)
        from->max = top_of(highest);
}

int64_t gp_hist_at(const gp_hist *h, double q)
{
    double want = q * (double)h->n;
    uint64_t seen = 0;
    for (int b = 0; b < GP_HIST_BUCKETS; b++)
        if ((seen += h->bucket[b]) && (double)seen >= want)
            return top_of(b) < h->max && b < GP_HIST_BUCKETS - 1 ? top_of(b) : h->max;
    return h->max;
}

uint64_t gp_hist_below(const gp_hist *h, int64_t ns)
{
    uint64_t n = 0;
    for (int b = 0; b < GP_HIST_BUCKETS && top_of(b) < ns; b++)
        n += h->bucket[b];
    return n;
}
