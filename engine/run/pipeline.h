/* pipeline.h - what a gp_pipeline holds: made by compile.c, run by run.c. */
#ifndef GP_PIPELINE_H
#define GP_PIPELINE_H

#include <stdatomic.h>
#include "compile/ir.h"

typedef struct gp_run gp_run;

struct gp_pipeline {
    gp_arena arena;            /* everything below, and gp_run's tables */
    gp_machine machine;
    const char *text; size_t len;      /* of the file */
    gp_spec *spec;
    gp_graph *graph;
    gp_plan *plan;
    atomic_int cancel;         /* the highest level asked for */
    int stop_fd;               /* eventfd: readable once cancel > 0 */
    atomic_bool was_run;       /* gp_pipeline_run was called */
    _Atomic(gp_run *) run;     /* NULL until it is set up */
    _Atomic(struct gp_filetable *) files;      /* what the run reads and writes; NULL until it is
                                  asked for */
};

/* files.c: p->files, made and filled with what is read; NULL: no memory. Until the run
 * has started, by one thread. */
struct gp_filetable *gp_pipeline_files(gp_pipeline *p);

/* run.c: frees what a run left; accepts NULL. */
void gp_run_destroy(gp_run *run);

#endif
