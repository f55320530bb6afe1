/* report.h - what a run was, in numbers, and what held it back.
 *
 * Made after a timed run (gp_run_options.timed) by gp_report_make; the pipeline must
 * live as long as the report. Times are ns. */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include <gpipe/gpipe.h>
#include "run/overheads.h"
#include "run/timely.h"

/* A host stage or a segment. Times are sums over its workers (a segment: of its
 * launcher), from the first frame that any source began to the end of the run. */
typedef struct gp_actor_report {
    const char *name;          /* of the stage; of a segment "first..last" */
    int stage, segment;        /* of the graph, of the plan; one of them is -1 */
    gp_loc at;
    int workers;               /* 0: a segment */
    int streams;               /* of a segment */
    int most_workers;          /* as many as help the stage here: 1, or the cores, or what its kind says */
    uint64_t frames, bytes;    /* as gp_stage_status */
    uint64_t launches;         /* of a segment */
    int64_t end_ns;            /* when it was done with its last frame; wall_ns if never */
    int64_t busy_ns;           /* in the kind's code, of a stage on loan in the program's; a segment: queueing launches */
    int64_t idle_ns;           /* of busy time: a source waited for its rate, a pipe, ...; of a stage on loan: the program
                                  had no frame of it, and did not wait for one */
    int64_t cpu_ns;            /* of busy time of a host stage: CPU time, as far as it was sampled; of a segment on the
                                  CPU back end: of its kernels; -1: not known */
    int64_t wait_in_ns;        /* no input was there */
    int64_t wait_out_ns;       /* no output slot was free; a segment: `depth` frames
                                  were in flight */
    int64_t wait_stream_ns;    /* a segment: all streams were busy */
    uint64_t turns;            /* of a host stage: how often a thread took frames; */
    gp_turn_cost turn;         /* ... what that took */
    gp_hist time;              /* of one frame: in the kind's code; a segment: from the
                                  start to the end on the device */
} gp_actor_report;

/* A gp_engine of the device. */
typedef struct gp_engine_report {
    const char *name;          /* "copy in" */
    bool used;
    bool measured;             /* by the device; else the time is an estimate: of copies
                                  from bytes and limit, of compute from when launches
                                  were queued until they were seen to be done */
    int64_t busy_ns;           /* while at least one launch had it */
    uint64_t bytes;            /* of copies */
    uint64_t by_kernels;       /* of copies: bytes that kernels moved over the same link in its place */
    double limit;              /* bytes a second that copies reach alone on this machine;
                                  0: not known */
    int on;                    /* the device that it is of, of the graph's; */
    const char *device;        /* ... its name, where the graph has several; else NULL */
} gp_engine_report;

/* A buffer as one of its readers had it (gp_buffer_status). */
typedef struct gp_buffer_report {
    const char *name;
    int buffer;                /* of the graph */
    int from, to;              /* gp_report.actor */
    int depth;
    double held;               /* frames, 0 to depth: the mean over the run */
} gp_buffer_report;

/* The one line: what bounds the run, and the edit to try first. */
typedef enum gp_bound {
    GP_BOUND_UNKNOWN,          /* the run was too short to tell, or nothing stands out */
    GP_BOUND_RATE,             /* a source's own pace, or what feeds it: so the program, with stages on loan */
    GP_BOUND_STAGE,            /* a host stage: `actor` */
    GP_BOUND_CORES,            /* all cores are busy */
    GP_BOUND_COPY_IN, GP_BOUND_COMPUTE, GP_BOUND_COPY_OUT, GP_BOUND_COPY_PEER,
    GP_BOUND_LAUNCH,           /* queueing launches: `actor` */
    GP_BOUND_STREAMS,          /* `actor` */
    GP_BOUND_CYCLE,            /* of a carried buffer: its stages take turns; `actor`: the one that reads it */
    GP_BOUND_DEPTH,            /* of `buffer`: too few frames in flight */
} gp_bound;

typedef struct gp_verdict {
    gp_bound bound;
    int actor, buffer;         /* gp_report.actor, gp_report.buffer; -1 */
    bool waits;                /* the stage waits for other ranks, and exchanges with them; then: */
    double meets;              /* for this part of the run, */
    char less[200];            /* what makes the exchange cheaper, in words, */
    char busiest[96];          /* and what is busiest beside it: "stage 'clean', 70 %"; "": nothing is */
    char text[700];            /* "bound by stage 'clean' (host, 97 % busy, ...): try workers: 4" */
    char path[128], value[64]; /* the edit as `--set PATH=VALUE`; "": there is none */
} gp_verdict;

typedef struct gp_report {
    int64_t wall_ns;           /* of the frames: without set-up */
    int64_t cpu_ns;            /* of all threads meanwhile, also of those that poll while
                                  they wait; 0: not known */
    bool unified;              /* segments ran on the CPU: streams are threads */
    int cpus;                  /* cores that it may use */
    int64_t delayed_ns;        /* threads of actors were ready and had no core: the sum; 0: not
                                  known */
    double others;             /* of these, used by other processes: the mean; 0 where that
                                  is not known */
    bool simulated;            /* `others` has no ranks of the same run */
    bool one_thread;           /* of the program asks for all its frames (stages on loan) */
    double quota;              /* cores' worth of time that its cgroup allows; 0: no limit */
    gp_hist wakes;             /* how long it took until a thread that slept was awake; */
    gp_hist wake_calls;        /* ... what that took whoever woke it */
    gp_actor_report *actor; int nactors;
    gp_engine_report engine[GP_ENGINES];       /* of each kind; with several devices, that which is busy longest */
    const gp_engine_report *all; int nall;     /* those of all devices, one device after the other, also unused ones */
    gp_buffer_report *buffer; int nbuffers;
    gp_hist latency;           /* see gp_latency */
    gp_late late;              /* with `latency` */
    double overlap;            /* 0 to 1, see gp_report_overlap */
    gp_verdict verdict;
} gp_report;

/* All but the verdict, in memory of `a`. NULL after an error: out of memory, or the run
 * ended before its first frame. */
gp_report *gp_report_make(gp_arena *a, const gp_pipeline *p, gp_errs *errs);

/* What all rates of frames count: those that are done with, be they out, dropped or failed.
 * Of several sources those of the one that made most. */
uint64_t gp_frames_done(const gp_account *a, int n);
/* While a run goes on: of sources whose frames are done with many at a time, those that went in. */
uint64_t gp_frames_moved(const gp_account *a, int n);

/* How much of what could be done at the same time was: with b the busy time of each
 * host stage (per worker) and engine, (sum b - wall) / (sum b - max b): 0 when nothing
 * overlapped, 1 when all was hidden behind the busiest. 1 where only one was busy. */
double gp_report_overlap(const gp_report *r);

/* Cores that this process could have used: what others and its cgroup left it. */
double gp_report_usable(const gp_report *r);

/* verdict.c: from the numbers alone. */
void gp_verdict_find(gp_report *r, const gp_pipeline *p);

/* When its threads were started, CLOCK_MONOTONIC; 0: they were not. */
int64_t gp_run_began(const gp_pipeline *p);

/* A clock beside another one: at its time `at` it is `ahead` ns ahead, and `drift` ns more each ns later. */
typedef struct gp_clock { int64_t at; double ahead, drift; } gp_clock;
int64_t gp_clock_other(const gp_clock *c, int64_t ns);     /* what the other one shows then */

/* Writes Chrome trace events of a traced run (gp_run_options.trace_ns): the newest `most` slices, 0: all that was kept.
 * False with an error. */
bool gp_trace_json(const gp_pipeline *p, size_t most, FILE *f, gp_errs *errs);
/* The events of one of several processes, with commas between them, for the trace of all. They are its
 * process rank + 1, `name`; times are by the clock of rank 0, from `zero` on. */
typedef struct gp_trace_part { int rank, ranks; const char *name; gp_clock clock; int64_t zero; } gp_trace_part;
bool gp_trace_events(const gp_pipeline *p, const gp_trace_part *part, size_t most, FILE *f, gp_errs *errs);
/* Around them: what is written before the first, and behind the last. from, to: the time that is shown, from the start
 * of the run; not of several ranks. */
void gp_trace_begin(gp_json *j);
void gp_trace_end(gp_json *j, const char *pipeline, int ranks, double from_s, double to_s);
/* How an event begins (tid 0: of a process), and a whole one that names a process or thread. */
/* account.c: as text. A line for each stage, segment and engine, and the verdict. */
void gp_print_account(FILE *to, const gp_report *r);
/* "1.23 GB", "45.6 k": three digits and a unit of thousands; returns buf. */
const char *gp_amount_text(double x, const char *unit, char buf[32]);

void gp_trace_head(gp_json *j, const char *ph, int pid, int tid);
void gp_trace_name(gp_json *j, int pid, int tid, const char *what, const char *name);

/* ---- as JSON (report_json.c) ------------------------------------------ */

/* Where it ran; "": there is none. */
typedef struct gp_environment {
    char cpu[128], gpu[128], driver[64], toolkit[64], commit[64], date[32];  /* date: UTC */
    int cores;
} gp_environment;
/* This one. device: a CUDA device that was used, or -1; commit: that of this build. */
void gp_environment_read(gp_environment *e, int device, const char *commit);

/* What a report cannot know of itself. */
typedef struct gp_report_about {
    gp_outcome outcome;
    gp_environment environment;
    const gp_account *account; int naccounts;
    const char *const *set; int nset;  /* what --set said */
    bool simulated;                    /* there was no run, and so no outcome of one; */
    const char *const *assumed; int nassumed;  /* ... what was taken for granted */
} gp_report_about;

/* "sources"; left: the key of what is neither out, dropped nor failed: "cancelled", or while it runs "in_flight". */
void gp_accounts_json(gp_json *j, const gp_account *a, int n, const char *left);
/* One object, as tests/report.schema.json says. `p` is what was run. */
void gp_report_json(const gp_report *r, const gp_pipeline *p, const gp_report_about *about,
                    FILE *f);
const char *gp_bound_name(gp_bound b);     /* "copy in" */
const char *gp_outcome_text(gp_outcome outcome);       /* "done", "not drained" */
