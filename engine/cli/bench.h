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
    double bytes_per_frame;            /* of all sources */
    double spread;                     /* of those windows: largest / smallest - 1 */
    int windows;                       /* how many count: 3 that agree, or all */
    double window_s;                   /* their mean length */
    bool stable, whole;                /* whole: each window was a whole run */
    bool in;                           /* frames count where they go in: none is done with before the end */
    double enough_s;                   /* there were too few windows to agree: the --max-time
                                          in which there are; else 0 */
    gp_hist latency;                   /* in those windows */
    const char *bound_by;              /* a host stage, or a gp_bound_name; NULL: nothing stands out */
    const char *verdict;               /* of the last run; NULL: it was too short for one */
    int device;                        /* the GPU that was used, -1: none */
} gp_figures;

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

/* bench.c. False with an error: a file is standard input, which cannot be read again. */
bool gp_bench_rereads(const gp_args *args, gp_errs *errs);
/* What a pipeline writes to stdout would stand in the table, and goes nowhere meanwhile; signals end runs.
 * What `measure` returns. */
int gp_bench_quietly(const gp_args *args, int (*measure)(void *arg), void *arg);

/* bench_run.c: compiles a row and says what is wrong with it. The exit code. */
int gp_bench_check(gp_bench *b, const gp_row *r);
/* Measures a row once, with some of the run's options. Prints its errors, unless
 * `why` (GP_BENCH_WHY) is there to take the first. The exit code. */
int gp_bench_measure(gp_bench *b, const gp_row *r, const gp_run_options *options, char *why,
                     gp_figures *out);

/* bench_best.c: the row to name: the fastest of n that does all its work. One that is unstable has to be
 * faster than all that are stable, by more than both spreads; else it is noise, as is all that
 * is faster than the one named. NULL: there is none. */
gp_row *gp_bench_best(gp_row *row, int n);
/* bench_print.c: all rows, on stdout. */
bool gp_bench_print(const gp_bench *b);
