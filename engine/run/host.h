/* host.h - a host stage at run time: for host.c, whose workers take frames and hand
 * them in, and desk.c, which lays them out for the kind's code. */
#ifndef GP_HOST_H
#define GP_HOST_H

#include "run/run.h"

typedef struct gp_portrt {     /* of a stage: inputs, then outputs */
    gp_ringrt *ring;           /* NULL: a constant, or not connected */
    const gp_type *type;       /* of a whole frame; NULL: not connected */
    void *konst;               /* a constant's memory */
    size_t bytes, row_bytes;   /* of a whole frame, of a row */
} gp_portrt;

typedef struct gp_desk {       /* one worker's frames; index 0 is the first laid out */
    gp_frame *frame;
    gp_view *view;             /* per frame: inputs, then outputs */
    int64_t *born_ns;          /* per frame */
    bool *partial;             /* per frame: some type is not that of a whole frame */
} gp_desk;

typedef struct gp_hostrt {
    pthread_mutex_t lock;      /* of what follows, and of actor.next */
    _Atomic uint64_t head;     /* the next frame to publish; written with the lock */
    uint64_t window;           /* frames [head, next) are out; by frame mod window: */
    unsigned char *handed;     /* how they were handed in */
    unsigned char *hole;       /* gp_hole, made here or before */
    gp_threadrt **by;          /* whose errors a failed one has */
    int live;                  /* workers that have not left */
    atomic_bool ended;         /* a source said so, or a frame failed: head is the end */
    uint64_t end;
    int max_run;
    gp_desk *desk;             /* per worker */
    gp_portrt *port;
    uint64_t cached;           /* from this frame on the slots are as they are */
    gp_hist *latency;          /* of a sink in a timed run, else NULL; with the lock */
} gp_hostrt;

/* For runs of `max` frames. Without memory goes to run->arena.oom. */
void gp_desk_init(gp_actorrt *p, gp_desk *d, int max);

/* Lays out as many of the n frames from `first` as are alike: without a hole in any
 * input, with shapes that can be computed. 0: the first is not; *hole is its hole,
 * or GP_WHOLE with an error. */
int gp_desk_lay_out(gp_actorrt *p, gp_desk *d, uint64_t first, int n, gp_hole *hole,
                    gp_errs *errs);

/* Writes the metas of the first n frames' outputs, by their status; clears the rows
 * beyond the valid ones. Returns the bytes of those that are whole. */
size_t gp_desk_sign(gp_actorrt *p, gp_desk *d, int n);

/* Frame f is a hole in an input, so it is one in each output. */
void gp_desk_pass_hole(gp_actorrt *p, uint64_t f, gp_hole hole);

static inline gp_hole gp_hole_by(gp_status s)
{
    return s == GP_DROP ? GP_HOLE_DROPPED : s == GP_FAILED ? GP_HOLE_FAILED : GP_WHOLE;
}

#endif
