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
    double wall_ns, frames;
} gp_measured_costs;

/* A number of the report that is not negative; -1: there is none. */
double gp_report_number(const gp_node *map, const char *key);
gp_measured_costs *gp_measured_costs_read(gp_arena *a, const gp_source_report *r, const gp_plan *plan, gp_errs *errs);

#endif
