/* whole.h - what the files share that make one report of several ranks: report.c, who says what when, and the report
 * and the trace of all; bound.c, which rank bounds the whole. */
#pragma once

#include "ranks/inside.h"

/* The texts of a rank, in the order in which rank 0 hears them. Each is of all ranks, or of the one that bounds the
 * whole. */
typedef enum gp_rank_text { GP_RANK_REPORT, GP_RANK_ACCOUNT, GP_RANK_PAGE_EVENTS, GP_RANK_EVENTS,
                            GP_RANK_TEXTS } gp_rank_text;

/* What each rank says first, and rank 0 then tells all. busiest_ns: of the stage (per worker) or the engine that was
 * busy longest */
typedef struct gp_rank_brief {
    int64_t began, wall_ns, busiest_ns;
    uint64_t done;
    bool writes[GP_RANK_TEXTS];        /* of rank 0: which texts it writes, if there are any */
    bool reports, traces;              /* it has something to */
    bool retuned;
    gp_verdict verdict;
} gp_rank_brief;

/* Lost: while the runs went on. Silent: behind them it did not answer. */
typedef enum gp_rank_gone { GP_RANK_THERE, GP_RANK_LOST, GP_RANK_SILENT } gp_rank_gone;

typedef struct gp_whole {
    gp_ranks *us;
    gp_report_files *files;
    const gp_pipeline *p;
    gp_errs *errs;
    gp_own_report own;
    gp_rank_brief *of;                 /* by rank */
    gp_rank_gone *gone;                /* by rank; of another rank than 0: whether rank 0 is */
    /* What follows from all, on each rank. bound: the rank that bounds the whole; -1: none has a report. before, after:
     * what stands so around its verdict; head: before its account; zero: when the trace begins, by the clock of rank
     * 0 */
    int bound;
    char before[24], after[400], head[200];
    int64_t zero;
    bool wanted[GP_RANK_TEXTS];
    /* of rank 0, by rank */
    bool events_heard;                 /* GP_RANK_EVENTS of all */
    char **report;                     /* JSON; NULL: it has none */
    gp_account *account;               /* room for those of a rank */
    char *trace;                       /* of the page */
} gp_whole;

gp_rank_brief gp_rank_brief_of(const gp_whole *w, gp_outcome outcome);
/* What follows from `of`. */
void gp_whole_decide(gp_whole *w);
