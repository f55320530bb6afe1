/* pipeline.h - what a gp_pipeline holds: made by compile.c, run by run.c. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include "compile/ir.h"
#include "gpipe/gpipe.h"

typedef struct gp_run gp_run;

/* tap.c: who waits for a frame of a run; `run`: the one that goes on; over: there was one. */
typedef struct gp_taps {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    gp_tap *first;
    gp_run *run;
    bool over;
} gp_taps;

struct gp_pipeline {
    gp_arena arena;            /* everything below, and gp_run's tables */
    int cpus;                  /* of the machine that it is planned for */
    const char *text; size_t len;      /* of the file */
    gp_spec *spec;
    gp_recorded *recorded;
    gp_graph *graph;
    gp_plan *plan;
    gp_probe *probe;           /* the files that were looked at */
    atomic_int cancel;         /* the highest level asked for, of this run or the next */
    atomic_int stop_fd;        /* eventfd: readable once cancel > 0; -1: its run went on under another */
    atomic_bool running;       /* in gp_pipeline_run; for good once a run is stuck */
    struct gp_paused *paused;  /* what a run has come to that is to go on; NULL: there is none */
    bool *again;               /* per stage, of one that is to go on: it is opened again (fits.c); malloc'd, or NULL */
    /* CLOCK_MONOTONIC: when its run was told to stop by gp_pipeline_retune, and when the last thread did; how long both
     * were before the run of this one went on from there. */
    _Atomic int64_t told_ns, stopped_ns, since_told_ns, paused_ns;
    bool tried;                /* by gp_try_stage: what a host stage leaves unwritten is looked for in all frames */
    bool stuck;                /* a thread that set up a run to go on (retune.c) uses it for ever */
    gp_run *prepared;          /* set up to go on (retune.c); NULL: none */
    struct gp_threads *threads;        /* of its runs, with run_lock; NULL: there are none */
    gp_run *run;               /* the newest that was set up; NULL: none */
    pthread_rwlock_t run_lock; /* of `run`: held for reading while somebody looks at it */
    _Atomic(struct gp_filetable *) files;      /* what this run, or the next, reads and writes; NULL
                                  until it is asked for */
    gp_taps taps;
    atomic_int cancelling;     /* calls of gp_cancel that use `files` and `stop_fd` */
    const char **reader;       /* who reads what, for `files`: stages, then buffers; NULL: not made yet */
    struct gp_endpoint *endpoint; int nendpoints;      /* of stages on loan, see loan.c */
    pthread_t runner;          /* gp_pipeline_start: the run has this thread, as */
    bool started;              /* ... this says, and has what follows, until gp_pipeline_wait */
    atomic_bool waited;        /* ... which was called */
    gp_run_options started_options;
    gp_errs *started_errs;
    gp_outcome outcome;        /* once the thread has ended */
    const char **actor_name;   /* per actor; NULL: not made yet */
};

/* files.c: p->files, made and filled with what is read; NULL: no memory. Until the run
 * has started, by one thread. */
struct gp_filetable *gp_pipeline_files(gp_pipeline *p);
/* files.c: what p reads is put into p->files, which are those of a run that goes on. */
void gp_pipeline_add_files(gp_pipeline *p);
/* files.c: the run that they were of is over. */
void gp_pipeline_forget_files(gp_pipeline *p);

/* run.c: a paused run is not to go on: closes its stages. */
void gp_pipeline_drop_paused(gp_pipeline *p, gp_errs *errs);

/* run.c: what was made ready to go on is not to. */
void gp_pipeline_drop_prepared(gp_pipeline *p);

/* run.c: a run under p is to be set up: gp_cancel wakes it. Where there is no descriptor it hears at the next tick. */
void gp_pipeline_open_stop(gp_pipeline *p);

/* loan.c: made when the pipeline is, without memory to p->arena.oom; true. */
bool gp_endpoints_make(gp_pipeline *p);
void gp_endpoints_free(gp_pipeline *p);
/* False, with an error: the program has not asked for one of them, so that a run could not go on. Outputs that nobody asked
 * for are sinks as others are, where these do nothing (gp_run_options.no_sinks). */
bool gp_endpoints_asked(const gp_pipeline *p, bool no_sinks, gp_errs *errs);
bool gp_endpoint_is_asked(const gp_pipeline *p, const gp_stage *st);
/* From _begin on the program waits for a run; from _end on, if there was none, it does not. */
void gp_endpoints_begin(gp_pipeline *p);
void gp_endpoints_end(gp_pipeline *p);
/* The paused run of `from` goes on under `to`: inputs that were closed stay so. */
void gp_endpoints_hand_on(gp_pipeline *to, gp_pipeline *from);
/* Sets the numbers of frame i of *f, by f->keys, to those of a loan. */
void gp_loan_numbers(const gp_loan *l, gp_frames *f, int64_t i);

/* run.c: frees what a run left; accepts NULL. */
void gp_run_destroy(gp_run *run);

/* run.c: the newest run, which stays until it is unlocked; NULL: there is none. Any thread, but not twice. */
gp_run *gp_pipeline_lock_run(const gp_pipeline *p);
void gp_pipeline_unlock_run(const gp_pipeline *p);
