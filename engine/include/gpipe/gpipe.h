/* gpipe.h - the library: load, compile, run, cancel, account.
 *
 * It has no globals, installs no signal handlers, sets no environment, never
 * prints and never exits; main.c does these. A gp_pipeline is used by one
 * thread, except where a function says otherwise. */
#ifndef GPIPE_H
#define GPIPE_H

#include "gpipe/hist.h"
#include "compile/ir.h"

#define GP_VERSION "0.1.0"

typedef struct gp_pipeline gp_pipeline;

/* ---- kinds ----------------------------------------------------------- */

gp_registry *gp_registry_create(void);             /* NULL: no memory */
void gp_registry_destroy(gp_registry *r);
/* Adds a kind (borrowed). False with an error: another ABI, a bad table, or a
 * name that is taken. */
bool gp_register(gp_registry *r, const gp_kind *kind, gp_errs *errs);
/* All kinds of stages/ (made by the Makefile from its files). */
bool gp_register_builtin(gp_registry *r, gp_errs *errs);

/* ---- compile --------------------------------------------------------- */

/* This machine. `cuda`: look for devices too, which starts the driver. */
void gp_machine_read(gp_machine *m, bool cuda);
/* A machine that is the same everywhere, with `ndevices` H200-like devices. */
void gp_machine_fixed(gp_machine *m, int ndevices);

typedef struct gp_config {
    const gp_registry *registry;
    gp_machine machine;
    gp_env env;
    const char *const *set; int nset;  /* "path=value", in order */
    bool lenient;          /* a missing input file is a warning where its
                              buffer is declared (`check`) */
} gp_config;

/* Text -> plan, all passes. Reads the files that options name (headers,
 * sizes); opens no device. NULL after errors. Warnings are left in `errs`.
 * `text` is copied. */
gp_pipeline *gp_compile(const char *text, size_t len, const char *file,
                        const gp_config *config, gp_errs *errs);
void gp_pipeline_destroy(gp_pipeline *p);          /* accepts NULL */

/* The forms, for dumps. Borrowed. */
const gp_spec *gp_pipeline_spec(const gp_pipeline *p);
const gp_graph *gp_pipeline_graph(const gp_pipeline *p);
const gp_plan *gp_pipeline_plan(const gp_pipeline *p);

/* ---- run ------------------------------------------------------------- */

typedef struct gp_run_options {
    bool poison;           /* fill every slot with a pattern before each use */
    bool isolate;          /* one frame in flight, a wait after every stage */
    bool timed;            /* measure latencies, busy times and waits */
    bool stamped;          /* timed, and the device says when it did what */
    int64_t trace_ns;      /* timed, and what was done in the last so many ns of the run
                              is kept, see gp_trace_json; 0: nothing */
    bool trace_full;       /* each kernel and copy by itself, which costs */
    /* To time the rest alone; what comes out then means nothing. */
    bool no_copies, no_kernels;        /* segments leave these out */
    const char *const *cached; int ncached;    /* stages that run for the first
                              frames of their slots, which then are used again */
} gp_run_options;

/* Frames of one source. in == out + dropped + failed + cancelled. */
typedef struct gp_account {
    const char *source;    /* stage name */
    uint64_t in, out, dropped, failed, cancelled;
} gp_account;

/* Numbers of one stage while it runs, and after. */
typedef struct gp_stage_status {
    const char *name;
    uint64_t frames;       /* done, holes not counted */
    uint64_t bytes;        /* of its outputs (of a sink: its inputs) */
    uint64_t busy_ns;      /* of all workers; host stages of a timed run */
    int workers;           /* 0: a segment */
} gp_stage_status;

/* A buffer as one of its readers has it. Buffers inside a segment are not counted. */
typedef struct gp_buffer_status {
    const char *name;
    const char *from, *to; /* who fills it, who reads it: names as in gp_stage_status */
    int depth;
    int held;              /* frames that `to` is not done with, 0 to depth */
} gp_buffer_status;

/* The parts of a device that work at the same time. */
typedef enum gp_engine { GP_ENGINE_COPY_IN, GP_ENGINE_COMPUTE, GP_ENGINE_COPY_OUT,
                         GP_ENGINES } gp_engine;

typedef enum gp_outcome {
    GP_DONE,               /* every source ended */
    GP_DRAINED,            /* gp_cancel(1): all that was taken in came out */
    GP_NOT_DRAINED,        /* gp_cancel(2) */
    GP_ERROR,              /* see errs */
    GP_STUCK,              /* a thread did not come back: call _exit soon, do not
                              destroy the pipeline */
} gp_outcome;

/* Runs the pipeline to its end. Once per gp_pipeline: again is an error. */
gp_outcome gp_pipeline_run(gp_pipeline *p, const gp_run_options *o, gp_errs *errs);

/* Level 1: sources stop, the rest drains. 2: nothing new is started. Levels
 * only rise. May be called from any thread and from a signal handler, before
 * and during the run. */
void gp_cancel(gp_pipeline *p, int level);

/* Any thread, during and after the run; they take no lock that a frame waits for. */
int gp_accounts(const gp_pipeline *p, gp_account *out, int max);      /* one per source */
int gp_stages_status(const gp_pipeline *p, gp_stage_status *out, int max);
int gp_buffers_status(const gp_pipeline *p, gp_buffer_status *out, int max);  /* per reader */
/* Of the frames that came out so far, whole: from when its source published a frame
 * (a join: the older one) until a sink was done with it; once for each sink. Of a
 * timed run. */
void gp_latency(const gp_pipeline *p, gp_hist *out);

#endif
