/* hist.c - a histogram of durations whose buckets grow with them: 16 for each
 * power of two, so that their relative width stays below 1/16. */
#include "hist.h"

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

void gp_hist_add(gp_hist *h, int64_t ns)
{
    if (ns < 0)
        ns = 0;
    h->n++;
    h->bucket[bucket_of((uint64_t)ns)]++;
    if (ns > h->max)
        h->max = ns;
}

void gp_hist_merge(gp_hist *to, const gp_hist *from)
{
    to->n += from->n;
    if (from->max > to->max)
        to->max = from->max;
    for (int b = 0; b < GP_HIST_BUCKETS; b++)
        to->bucket[b] += from->bucket[b];
}

void gp_hist_subtract(gp_hist *from, const gp_hist *what)
{
    int highest = 0;
    from->n -= what->n;
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
