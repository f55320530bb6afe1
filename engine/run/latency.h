/* latency.h - with `latency`: measuring for timely.c. */
#pragma once

#include "run/segment.h"

/* How a segment chooses its launches. */
struct gp_latencyrt {
    pthread_mutex_t lock;      /* of `timely` */
    gp_timely timely;
    /* The launcher's own: */
    uint64_t seen;             /* frames that it has seen ready; */
    int64_t came_ns;           /* ... the last of them then */
    int64_t due_ns;            /* when the launch that comes next was to begin */
};

void gp_latency_init(gp_actorrt *p);
void gp_latency_fini(gp_actorrt *p);

/* The launcher's: what to do about w->n frames from f that are ready; before they are issued, that a launch takes n of
 * them. */
gp_timely_choice gp_latency_choose(gp_actorrt *p, uint64_t f, gp_timely_ready *w);
void gp_latency_launched(gp_actorrt *p, uint64_t f, int n);
