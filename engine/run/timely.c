/* timely.c - see timely.h. */
#include <stdio.h>
#include <string.h>
#include "run/timely.h"

enum { NEWEST = 1024,          /* of so many frames half of the counts are dropped */
       FORGET = 1000,          /* launches */
       OFTEN = 64,             /* frames after which quantiles are found again, at the latest */
       PATIENCE = 4 };         /* times as long as frames take to come as a rule: then it was the last of a burst */

/* ---- what was measured ------------------------------------------------- */

/* Halves what is older: the newest count most. */
static void fade(gp_hist *h)
{
    if (h->n < NEWEST)
        return;
    h->n = 0;
    for (int b = 0; b < GP_HIST_BUCKETS; b++)
        h->n += h->bucket[b] /= 2;
}

/* Adds; is it time to look at the quantiles? Of few at each one. */
static bool add(gp_hist *h, int64_t ns, unsigned *due)
{
    fade(h);
    gp_hist_add(h, ns, 1);
    if (*due && --*due)
        return false;
    *due = h->n / 8 < OFTEN ? (unsigned)(h->n / 8) : OFTEN;
    return true;
}

void gp_timely_came(gp_timely *t, int64_t born_ns)
{
    if (t->born_ns && add(&t->gap, born_ns - t->born_ns, &t->gap_due))
        t->gap_ns = gp_hist_at(&t->gap, 0.9);
    t->born_ns = born_ns;
}

void gp_timely_ended(gp_timely *t, int size, int64_t took_ns)
{
    gp_tail *x = &t->tail[size];
    if (add(&x->hist, took_ns, &x->due)) {
        x->most_ns = gp_hist_at(&x->hist, 0.99);
        x->middle_ns = gp_hist_at(&x->hist, 0.5);
    }
}

/* A size that was too slow once may not be so for ever. It is tried again after so many shorter launches: that is one
 * frame in 500 at most, of the one in 100 that may be late. */
void gp_timely_launched(gp_timely *t, int size)
{
    t->tail[size].unused = 0;
    for (int k = size + 1; k < t->sizes; k++)
        if (t->tail[k].hist.n && ++t->tail[k].unused > FORGET)
            memset(&t->tail[k], 0, sizeof t->tail[k]);
}

/* ---- choosing ---------------------------------------------------------- */

/* What was not measured takes at most as long as two launches of half the size, one after the other, or as a longer
 * one. */
int64_t gp_timely_tail(const gp_timely *t, int size)
{
    const int64_t longest = INT64_C(1) << 60;
    for (int k = size; k >= 0; k--)
        if (t->tail[k].hist.n)
            return t->tail[k].most_ns < longest >> (size - k) ? t->tail[k].most_ns << (size - k) : longest;
    for (int k = size + 1; k < t->sizes; k++)
        if (t->tail[k].hist.n)
            return t->tail[k].most_ns;
    return 0;
}

/* Takes one such launch longer than two of half the size? By more than histograms are off, 1/16 each. */
static bool is_slow(const gp_timely *t, int size)
{
    return size && t->tail[size].hist.n && t->tail[size - 1].hist.n
        && t->tail[size].middle_ns / 18 > t->tail[size - 1].middle_ns / 8;
}

/* A launch of this size leaves some that a longer one could take. Do these still end in time, in launches like it, one
 * after the other? */
static bool drains(const gp_timely *t, const gp_timely_ready *w, int size)
{
    int64_t at_once = (int64_t)w->lanes << size, rounds = (w->all + at_once - 1) / at_once;
    int64_t tail = gp_timely_tail(t, size), middle = t->tail[size].hist.n ? t->tail[size].middle_ns : tail;
    middle = middle < t->latency_ns ? middle : t->latency_ns;
    return w->now_ns + tail + (rounds - 1) * middle <= w->newest_ns + t->latency_ns;
}

gp_timely_choice gp_timely_choose(const gp_timely *t, const gp_timely_ready *w)
{
    int64_t end = w->born_ns + t->latency_ns;      /* of the oldest */
    int fits = -1, fast = 0;
    if (!gp_timely_tail(t, 0))         /* nothing has ended yet */
        return (gp_timely_choice){ .size = 0 };
    for (int k = 0; k <= w->able; k++) {
        if (is_slow(t, k))
            continue;
        fast = k;
        if (w->now_ns + gp_timely_tail(t, k) <= end && (k == w->able || drains(t, w, k)))
            fits = k;
    }
    if (fits < 0)                      /* some are late: fewest when all goes fast */
        return (gp_timely_choice){ .size = fast };
    gp_timely_choice c = { .size = fits };
    if (fits < w->able || w->able == w->most || is_slow(t, w->able + 1) || !t->gap_ns)
        return c;
    int64_t latest = end - gp_timely_tail(t, w->able + 1);
    int64_t filled = ((1 << (w->able + 1)) - w->n) * t->gap_ns, patient = w->came_ns + PATIENCE * filled;
    if (w->came_ns + filled <= latest)
        c.until_ns = patient < latest ? patient : latest;
    return c;
}

/* ---- afterwards -------------------------------------------------------- */

const char *gp_late_text(const gp_late *is, int64_t latency_ns, int depth, char out[GP_LATE_TEXT])
{
    enum { FEW = 100 };
    double most = 1e-6 * (double)latency_ns, p99 = 1e-6 * (double)is->p99_ns;
    int fewer = p99 > most && is->under_way > depth / 2.0 ? (int)(depth * most / p99) : depth;
    if (!latency_ns || is->frames < FEW || is->late <= is->frames / 100)
        return NULL;
    int n = snprintf(out, GP_LATE_TEXT, "'latency: %.4gms' was not kept: 99 frames in 100 took up to %.3g ms", most,
                     p99);
    size_t room = GP_LATE_TEXT - (size_t)n;
    if (is->alone_ns > latency_ns)
        snprintf(out + n, room, ", and those that were launched alone up to %.3g ms from their launch on: no batch is "
                 "small enough", 1e-6 * (double)is->alone_ns);
    else if (fewer < depth)
        snprintf(out + n, room, ", and %.3g were under way at a time: fewer slots hold fewer, as with depth: %d",
                 is->under_way, fewer > 1 ? fewer : 1);
    return out;
}
