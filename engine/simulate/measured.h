/* measured.h - what the files that read a report share. */
#ifndef GP_SIMULATE_MEASURED_H
#define GP_SIMULATE_MEASURED_H

#include "simulate/simulate.h"

struct gp_source_report {
    const gp_node *root;
    gp_loc at;
    double frames, wall_ns;            /* of the source that made most */
    const char **set; int nset;
};

/* Costs before they are calibrated, and what the run was like. */
typedef struct gp_measured_costs {
    gp_costs costs;
    double *busy_ns;                   /* by stage: of a firing, with all that it waited for a core */
    double *took_ns;                   /* by segment: of a firing, from start to end of its launch: the median */
    double *each;                      /* ... how many firings a launch has: the mean */
    double *least_ns;                  /* ... of kernels that leave room for others: kernels_ns at least; else 0 */
    double wall_ns, frames;
} gp_measured_costs;

/* costs_for.c: the threads of the kernels of one firing, over those that its device keeps at a time; 0: it is the CPU, or
 * that is not known. */
double gp_segment_fills(const gp_plan *plan, int segment);

#define MAKE_ANEW "make it anew with 'gpipe run --report FILE.json'"

gp_measured_costs *gp_measured_costs_read(gp_arena *a, const gp_source_report *r, const gp_plan *plan, gp_errs *errs);

#endif
