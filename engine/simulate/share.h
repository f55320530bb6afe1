/* share.h - what happens next: events in the order of time, and jobs that share something (cores, a device).
 *
 * n jobs on c cores each go on at the speed min(1, c / n). All at the same speed, so that which of them is done next
 * does not depend on how many come meanwhile: a job is done when the work that each has had since the beginning has
 * grown by its own. Equal times are in the order in which they were added. */
#ifndef GP_SHARE_H
#define GP_SHARE_H

#include "base/arena.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct gp_due { double at; uint64_t order; int what, who, lane; } gp_due;

/* A heap. */
typedef struct gp_agenda {
    gp_arena *arena;
    gp_due *due; int n, cap;
    uint64_t orders;
} gp_agenda;

void gp_agenda_add(gp_agenda *g, double at, int what, int who, int lane);
gp_due gp_agenda_take(gp_agenda *g);           /* the first; there is one */

typedef struct gp_share {
    gp_agenda jobs;
    double capacity;
    double had;                /* the work that each had, up to `now` */
    double now;
    double always;             /* beside, counted as jobs: threads that look all the time; of jobs of unlike weight,
                                  what the sum of their weights is more than their number */
    double used, delayed;      /* work done in all by jobs that end, and what jobs waited for a core: sums over jobs */
    bool touched;              /* it may have another next job than when that was last looked for */
} gp_share;

/* Up to time `now`, before which no job is done. */
void gp_share_go_on(gp_share *s, double now);
void gp_share_add(gp_share *s, double work, int what, int who, int lane);
/* When the next job is done; INFINITY: there is none. */
double gp_share_next(const gp_share *s);

#endif
