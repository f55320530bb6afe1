/* bench.h - what the files of gpipe bench share.
 *
 * A table has rows; a row is a file with settings. Every row is measured once a
 * round (bench_run.c) and printed once (bench_print.c). */
#pragma once

#include "cli/cli.h"

enum {
    GP_BENCH_AGREE = 3,                /* so many windows in a row have to agree, */
    GP_BENCH_WHY = sizeof ((gp_err *)0)->msg,  /* bytes of a reason */
};

/* What one measurement saw. All is per frame of the source that made most: also where most
 * of them are dropped on the way, and few come out. */
typedef struct gp_figures {
    double frames_per_s;               /* median of the windows that count */
    double mean_per_s;                 /* frames/s of all of these together */
    double bytes_per_frame;            /* of all sources */
    double spread;                     /* of those windows: largest / smallest - 1 */
    int windows;                       /* how many count: 3 that agree, or all */
    double window_s;                   /* their mean length */
    bool stable, whole;                /* whole: each window was a whole run */
    bool in;                           /* frames count where they go in: none is done with before the end */
    double enough_s;                   /* there were too few windows to agree: the --max-time
                                          in which there are; else 0 */
    gp_hist latency;                   /* in those windows */
    struct gp_busy {
        const char *name;
        int workers;                   /* 0: a segment, whose time is not known */
        bool source;
        int cycle;                     /* as gp_stage_info has it */
        double us;                     /* per frame, shared by the workers; no more of a
                                          window than there is: gp_bench_busy_us */
        double share;                  /* of the source's frames, those that it worked on */
    } *busy; int nbusy;
    int nsegments;
    double kernels_us;                 /* on the CPU: CPU time per frame, shared by `cores` */
    double cores;                      /* that they could use: one for each stream, no more
                                          than other processes left */
    bool copies;                       /* between host and device */
    int device;                        /* the GPU that was used, -1: none */
} gp_figures;

/* Something that every frame needs. */
typedef struct gp_resource {
    const char *name, *how;            /* how: in words */
    double us;                         /* per frame; NAN: could not be measured */
    bool alone;                        /* on a GPU, timed in another run: an estimate, and no
                                          bound where the row needed less */
} gp_resource;

typedef struct gp_row {
    const char *file, *label;
    gp_args args;                      /* the command's, with the row's --set */
    const char *cached;                /* a stage, or NULL */
    gp_figures *round;                 /* one a round */
    const gp_figures *figures;         /* the round in the middle */
    bool best;                         /* of all rows that are no ceiling */
    bool noise;                        /* faster than the best, see gp_bench_best */
    const struct gp_row *base;         /* the first file's; NULL: nothing to compare with */
    double ratio, ratio_min, ratio_max;            /* to it: of the medians; round by round */
    gp_resource *resource; int nresources, bound;  /* the largest; none: not looked for */
} gp_row;

typedef struct gp_bench {
    gp_arena arena;
    const gp_args *args;
    const gp_registry *registry;
    double window_s, max_time_s;
    double longest_s;                  /* tune: a run to its end that takes longer is broken off; 0: none is */
    const char *longer;                /* what to do where there is too little time */
    int rounds, nfiles;
    gp_row *row; int nrows;
    FILE *report;                      /* where the report of what is measured goes, as JSON; NULL: there is none */
    bool stuck;                        /* a thread still uses a pipeline: _exit */
} gp_bench;

/* bench_rows.c: the rows that the options ask for. */
bool gp_bench_rows(gp_bench *b, gp_errs *errs);

/* bench_fit.c: what has to be changed in a pipeline so that it can be measured.
 * Folders that it makes are removed by gp_bench_unfit. */
/* A temporary folder, which is this process's while the descriptor is open. */
typedef struct gp_bench_folder { char *path; int fd; } gp_bench_folder;

typedef struct gp_fit {
    gp_args args;
    bool whole;                        /* whole runs, not windows of one */
    gp_bench_folder *folder; int nfolders, cap;
} gp_fit;

/* `l` is row r as it stands. False after errors, those of the place included. */
bool gp_bench_fit(gp_bench *b, const gp_row *r, const gp_loaded *l, gp_fit *out, gp_errs *errs);
void gp_bench_unfit(gp_fit *f);
gp_args gp_bench_set(gp_bench *b, const gp_args *args, const char *assignment);

/* bench.c: what a pipeline writes to stdout would stand in the table, and goes nowhere meanwhile; signals end runs.
 * What `measure` returns. */
int gp_bench_quietly(const gp_args *args, int (*measure)(void *arg), void *arg);

/* bench_run.c: compiles a row and says what is wrong with it. The exit code. */
int gp_bench_check(gp_bench *b, const gp_row *r);
/* Measures a row once, with some of the run's options. Prints its errors, unless
 * `why` (GP_BENCH_WHY) is there to take the first. The exit code. */
int gp_bench_measure(gp_bench *b, const gp_row *r, const gp_run_options *options, char *why,
                     gp_figures *out);

/* bench_bound.c: what bounds a row, from figures alone.
 *
 * us per frame that a stage's workers need, or kernels on so many cores, of busy_ns in all
 * while `frames` were done with in `seconds`: nobody can work longer than that, though a piece
 * of work that began before counts when it is done. So the rate of the same windows never
 * exceeds this bound. */
double gp_bench_busy_us(uint64_t busy_ns, double workers, double seconds, uint64_t frames);
/* The row to name: the fastest of n that does all its work. One that is unstable has to be
 * faster than all that are stable, by more than both spreads; else it is noise, as is all that
 * is faster than the one named. NULL: there is none. */
gp_row *gp_bench_best(gp_row *row, int n);
/* r->resource has room. The largest is the bound. */
gp_resource *gp_bench_add(gp_row *r, gp_resource one);
/* The part of the row's bound that it reaches; NAN: none was looked for. Above 1 only
 * where the bound is an estimate. */
double gp_bench_reached(const gp_row *r);
/* A part of the row's work in a run of its own, where frames that the row drops are not
 * dropped: by what its time per frame has to be multiplied. *alike: for all segments by the
 * same; else it is the largest, and the product is more than what the part takes. */
double gp_bench_share(const gp_figures *row, const gp_figures *alone, bool *alike);
/* Did the row need less per frame than `us`, which one part of its work took alone? */
bool gp_bench_is_refuted(const gp_figures *f, double us);
/* "same run", "estimate", "refuted"; NULL: no bound was looked for. */
const char *gp_bench_bound_is(const gp_row *r);

/* bench_print.c: all rows, on stdout. */
bool gp_bench_print(const gp_bench *b);
