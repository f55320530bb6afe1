/* trace.h - what a traced run keeps of when each thing was done.
 *
 * A track is a ring of events that one thread at a time adds to, and that keeps the
 * newest. A track of NULL takes none. */
#pragma once

#include "device/backend.h"
#include "run/run.h"

typedef enum gp_trace_what {
    GP_TRACE_STAGE, GP_TRACE_WAIT, GP_TRACE_LAUNCH,
    GP_TRACE_COPY_IN, GP_TRACE_COMPUTE, GP_TRACE_COPY_OUT, GP_TRACE_COPY_PEER,
    GP_TRACE_MOVE,             /* no slice: frames of an actor moved on at `start`; n 0: it ended */
} gp_trace_what;

typedef struct gp_event {
    int64_t start, end;        /* CLOCK_MONOTONIC, ns */
    const char *name, *kernel; /* kernel: NULL, or what the device calls it */
    uint64_t first;            /* frames [first, first + n) */
    int n, what;               /* gp_trace_what */
} gp_event;

typedef struct gp_track {
    const char *name;
    int device;                /* the one that it is shown with, of the graph's; -1: it is of the host's threads */
    bool overlap;              /* its slices may */
    const gp_actorrt *actor;
    gp_event *event;
    uint64_t mask;             /* their number - 1 */
    _Atomic uint64_t n;        /* events ever added */
} gp_track;

typedef struct gp_trace { gp_track *track; int ntracks; } gp_trace;

/* Makes the tracks of all actors, which have been initialized. Without memory goes to
 * run->arena.oom. */
void gp_trace_open(gp_run *run);

/* A watched run (gp_backend.watch): the tag of a launch, and what the device tells; `run`
 * is the gp_run. */
uint64_t gp_trace_tag(const gp_actorrt *p, uint64_t first, int n);
void gp_trace_activity(void *run, const gp_activity *a);

const char *gp_engine_name(gp_engine e);       /* "copy in" */

void gp_trace_slice(gp_track *t, gp_trace_what what, const char *name, int64_t start, int64_t end,
                    uint64_t first, int n);
