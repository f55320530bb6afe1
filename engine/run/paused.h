/* paused.h - the state of a paused run, as its pipeline keeps it. run.c makes it, and goes on with it under another
 * plan of the same pipeline (paused.c). */
#pragma once

#include "run/segment.h"

enum {
    GP_PAUSE_NOT,
    GP_PAUSE_HOLD,             /* sources take nothing until it is known where they stop */
    GP_PAUSE_AT,               /* sources stop at gp_actorrt.pause_at */
    GP_PAUSE_SOURCES,          /* at once: sources stop where they are */
    GP_PAUSE_ALL,              /* ... and then all do; what waits in rings stays there */
};

/* A frame that somebody may read again. */
typedef struct gp_held_frame {
    uint64_t frame;
    gp_meta meta;
    gp_type type;
    gp_numbers numbers;
    void *data;                /* in the memory of the run */
} gp_held_frame;

typedef struct gp_held_ring {
    uint64_t produced, end;
    uint64_t *consumed; bool *closed; int nconsumers;
    gp_held_frame *frame; int nframes; /* in order, up to the last */
} gp_held_ring;

typedef struct gp_held_actor {
    uint64_t next;
    unsigned long long frames, bytes, dropped;
    bool over, flushed;
    gp_missing missing;
    uint64_t judged; bool late;        /* whether the frame that went back was in time, as of gp_worker_view */
    gp_gathered gathered;
    const gp_actorrt *leak;    /* of the run that paused: what its reader has not got may find no room; or NULL */
} gp_held_actor;

struct gp_paused {
    const gp_plan *plan;       /* indices below are its */
    gp_held_ring *ring;
    gp_held_actor *actor;
    void **state;              /* per stage: of a host stage that is open */
    gp_type **types;           /* ... and what its open() was given */
    const void **opts;
    bool *opened;
    void **extra;              /* carried state, there too */
    gp_accountrt *account; int naccounts;
};

/* leak.c: it goes on with what waits in that of a run that has paused, and takes back the last `n` frames that it had
 * made, for which there is no room now. */
void gp_leak_take(gp_actorrt *p, const gp_actorrt *was, const gp_held_frame *frame, int n);

/* Asks the sources of a run whose threads have started to stop. Any thread. */
void gp_run_pause(gp_run *run);
void gp_run_pause_at_once(gp_run *run);
/* Is it a source that may make more frames? */
bool gp_source_goes_on(const gp_actorrt *p);
/* Its threads have returned: has it paused, not ended? */
bool gp_run_is_paused(const gp_run *run);
/* What it has come to; its host stages are the result's. NULL after an error. */
struct gp_paused *gp_paused_make(gp_run *run, gp_errs *errs);
void gp_paused_free(struct gp_paused *x);
/* Closes the host stages that it has, without an end of what they write. */
void gp_paused_close(struct gp_paused *x);
/* Into a run that is set up: memory first, which can fail; then all else, which leaves nothing in x. */
bool gp_paused_load(gp_run *run, const struct gp_paused *x, gp_errs *errs);
void gp_paused_take(gp_run *run, struct gp_paused *x);

/* Can a run of pipeline p go on with what one of `from` has come to? Notes in p which stages are then opened again.
 * False after an error at what differs. */
bool gp_paused_fits(gp_pipeline *p, const gp_pipeline *from, gp_errs *errs);
