/* hist.h - a histogram of durations. */
#ifndef GP_HIST_H
#define GP_HIST_H

#include <stdint.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* Buckets are 1/16 of a power of two wide: an answer is at most 6 % off. */
enum { GP_HIST_BUCKETS = 16 * 45 };

typedef struct gp_hist {
    uint64_t n;
    int64_t max, sum;          /* ns */
    uint64_t bucket[GP_HIST_BUCKETS];
} gp_hist;

/* n times `ns`. Negative durations count as 0. Those of more than 3 days are all alike. */
void gp_hist_add(gp_hist *h, int64_t ns, uint64_t n);
/* `from` may be added to meanwhile. */
void gp_hist_merge(gp_hist *to, const gp_hist *from);
/* Takes away what was added up to an earlier moment: `what` is a copy from then. The
 * largest of the rest is known as well as any other answer. */
void gp_hist_subtract(gp_hist *from, const gp_hist *what);
/* The duration (ns) that a part q (0 to 1) of all are not above; 0: none yet. */
int64_t gp_hist_at(const gp_hist *h, double q);
/* How many are below `ns`: exact for a power of two from 16 up to 2^48. */
uint64_t gp_hist_below(const gp_hist *h, int64_t ns);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
