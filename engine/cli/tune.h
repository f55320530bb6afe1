/* tune.h - what the files of gpipe tune share. */
#pragma once

#include "cli/bench.h"
#include "simulate/search.h"

enum { GP_TUNE_TURNS = 15 };

/* Settings that are measured; the first ones are those given. */
typedef struct gp_tried {
    const gp_settings *settings;
    const char *label;         /* "depth=8 streams=2" */
    gp_row row;
    gp_result result[GP_TUNE_TURNS];   /* a turn each */
    int n;
    bool out;                  /* it was far behind, or could not be measured: */
    const char *why;           /* NULL: it was behind */
} gp_tried;

typedef struct gp_tuning {
    gp_bench bench;
    const gp_args *args;
    gp_goal goal;
    gp_loaded file, given, planned;    /* text; pipelines */
    gp_machine *machine;
    char *report; size_t report_n;
    const gp_found *found;
    gp_tried *tried; int ntried;
    int chosen;                        /* 0: the given ones */
    double budget, began, once, stop_simulating;       /* seconds; once: of one measurement */
    gp_errs *errs;
} gp_tuning;

/* The middle of its turns. */
gp_result gp_tune_middle(const gp_tried *t);

/* tune_show.c: the table, on stdout; the lines that differ. */
void gp_tune_print(const gp_tuning *t);
void gp_tune_diff(const char *file, const char *before, size_t n, const char *after, size_t m);
