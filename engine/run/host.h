/* host.h - a host stage at run time: for host.c, whose workers take frames and hand
 * them in, worker_view.c, which lays them out for the kind's code, and host_unwritten.c,
 * which looks at what that leaves unwritten, as host_kept.c does at its inputs. */
#pragma once

#include "run/run.h"

typedef struct gp_portrt {     /* of a stage: inputs, then outputs */
    gp_ringrt *ring;           /* NULL: a constant, or not connected */
    const gp_type *type;       /* of a whole frame; NULL: not connected */
    void *konst;               /* a constant's memory */
    size_t bytes, row_bytes;   /* of a whole frame, of a row */
} gp_portrt;

typedef struct gp_host_unwritten gp_host_unwritten;
typedef struct gp_host_kept gp_host_kept;

struct gp_worker_view {        /* one worker's frames; index 0 is the first laid out */
    uint64_t first;            /* of those that it has taken */
    gp_frame *frame;
    gp_view *view;             /* per frame: inputs, then outputs */
    gp_age *age;               /* per frame */
    const char **file;         /* per frame: as gp_meta has it */
    gp_numbers *numbers;       /* per frame; NULL: the pipeline lists no metadata */
    bool *partial;             /* per frame: some type is not that of a whole frame */
    gp_host_unwritten *unwritten;  /* per output; NULL: there is nothing to look at any more */
    gp_host_kept *kept;        /* per input; NULL: likewise */
    uint64_t judged;           /* plus 1: of this frame it was seen whether it is late, which stays so, as a place in a file
                                  may have been reserved for it; 0: of none */
    bool late;                 /* ... it is */
    bool looks, keeps;         /* the outputs of the frame that is laid out are to be looked at, its inputs: it is the only
                                  one */
};

typedef struct gp_hostrt {
    pthread_mutex_t lock;      /* of what follows, and of actor.next */
    _Atomic uint64_t head;     /* the next frame to publish; written with the lock */
    uint64_t window;           /* frames [head, next) are out; by frame mod window: */
    unsigned char *handed;     /* how they were handed in */
    unsigned char *hole;       /* gp_hole, made here or before */
    gp_threadrt **by;          /* whose errors a failed one has */
    size_t *bytes;             /* of several workers, else NULL: what it has; */
    bool *dated;               /* the engine gave it its time */
    int64_t last_ns;           /* ... and the latest of these so far */
    int live;                  /* workers that have not left */
    atomic_bool ended;         /* a source said so, or a frame failed: head is the end */
    _Atomic uint64_t end;      /* no frame from here on; written with the lock */
    atomic_bool waits;         /* it passed its end on, and waits for other ranks to end */
    _Atomic uint64_t begun;    /* where workers begin in order: the next frame that one may begin with */
    int max_run;
    int stream;                /* of the device, of worker 0, if the stage fills device memory; those of others follow */
    gp_worker_view *view;      /* per worker */
    gp_portrt *port;
    uint64_t cached;           /* from this frame on the slots are as they are */
    gp_hist *latency;          /* of a sink in a timed run, or with `latency`, else NULL; with the lock */
    uint64_t late;             /* of a sink: frames that took longer than `latency` allows; likewise */
    gp_missing missing;        /* of a sink that joins frames in a file; likewise */
} gp_hostrt;

/* What workers of one stage wait for of one another (host_order.c). */

/* Until all frames before those that this worker has, of which `frame` is one, are handed in. False: it lies behind the
 * end. */
bool gp_host_await_turn(gp_threadrt *t, uint64_t frame);
/* Until the worker that has the frames before those of this one lets it begin, where workers begin in order. False:
 * they lie behind the end. */
bool gp_host_await_begin(gp_threadrt *t);
/* Frames before `end` need no longer be waited for: lets the worker begin that has the next ones. */
void gp_host_let_begin(gp_actorrt *p, uint64_t end);

/* A sink whose inputs have ended waits until no stage of this rank that passed its end on still waits for other ranks,
 * or the run has failed. So a file does not get its name before all ranks have done what it needs. */
void gp_host_await_ranks(gp_actorrt *p);
/* This stage has no more frames, and waits for those of other ranks to end; or not any more. */
void gp_host_waits(gp_actorrt *p, bool waits);

/* Sets bytes of the outputs of frames that worker `w` has, which may lie on the device (device_do.c). */
void gp_host_fill(gp_actorrt *p, const gp_worker_view *w, void *at, int byte, size_t bytes);

/* For runs of `max` frames. Without memory goes to run->arena.oom. */
void gp_worker_view_init(gp_actorrt *p, gp_worker_view *wv, int max);

/* Lays out as many of the n frames from `first` as are alike: without a hole in any input, with shapes that can be
 * computed, and with nothing to look at but the first alone. 0: the first is not; *hole is its hole, or GP_NO_HOLE with
 * an error. */
int gp_worker_view_lay_out(gp_actorrt *p, gp_worker_view *wv, uint64_t first, int n,
                           gp_hole *hole, gp_errs *errs);

/* Is there anything to look at in a frame that is laid out? Then fill its outputs, if it is the first in the view;
 * and look, once it is done. False: it is not written in full, with an error. */
void gp_host_unwritten_init(gp_actorrt *p, gp_worker_view *wv);
bool gp_host_unwritten_asks(const gp_actorrt *p, const gp_worker_view *wv, const gp_frame *fr);
void gp_host_unwritten_fill(const gp_actorrt *p, gp_worker_view *wv);
bool gp_host_unwritten_look(const gp_actorrt *p, gp_worker_view *wv, gp_errs *errs);

/* The same of its inputs, which are to be as they were: keep says how they are. False: they are not. */
void gp_host_kept_init(gp_actorrt *p, gp_worker_view *wv);
bool gp_host_kept_asks(const gp_actorrt *p, const gp_worker_view *wv, const gp_frame *fr);
void gp_host_kept_keep(const gp_actorrt *p, gp_worker_view *wv);
bool gp_host_kept_look(const gp_actorrt *p, gp_worker_view *wv, gp_errs *errs);
