/* machine.c - what another machine than that of the report changes. */
#include "simulate/simulate.h"

bool gp_costs_move(gp_costs *c, const gp_plan *plan, bool unified_before, const gp_machine_file *m, const char *file,
                   gp_errs *errs)
{
    gp_loc at = { .file = file };
    double kernels = m->device_speed > 0 ? m->device_speed : plan->unified ? m->host_speed : 1;
    if (plan->nsegments && unified_before != plan->unified && !(m->device_speed > 0))
        return gp_fail(errs, GP_E_USAGE, at,
                       "kernels ran on %s in the report, and this machine has %s: say how many times "
                       "as fast they are there ('kernels_speed')", unified_before ? "the CPU" : "a GPU",
                       unified_before ? "a GPU" : "none");
    c->copy_in = m->copy_in > 0 ? m->copy_in : c->copy_in;
    c->copy_out = m->copy_out > 0 ? m->copy_out : c->copy_out;
    if (!plan->unified && ((plan->copy_in_bytes && !(c->copy_in > 0)) || (plan->copy_out_bytes && !(c->copy_out > 0))))
        return gp_fail(errs, GP_E_USAGE, at,
                       "how fast it copies to and from the GPU is not known: say 'copy_in_gb_s' and "
                       "'copy_out_gb_s'");
    for (int v = 0; v < c->nstages; v++)
        c->stage[v].cpu_ns /= m->host_speed;
    for (int k = 0; k < c->nsegments; k++) {
        c->segment[k].launch_ns /= m->host_speed;
        c->segment[k].kernels_ns /= kernels, c->segment[k].fixed_ns /= kernels;
    }
    c->wake_ns /= m->host_speed;
    c->cores = m->machine.cpus, c->others = 0;
    return true;
}
