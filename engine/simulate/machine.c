/* machine.c - converts costs that were measured on one machine to another, and tells which of its rates are missing. */
#include "simulate/simulate.h"

static bool on_cpu(const gp_plan *plan)
{
    return plan->unified || plan->graph->device[0].pretend;
}

bool gp_costs_move(gp_costs *c, const gp_plan *plan, const gp_plan *before, const gp_machine_file *m, const char *file,
                   gp_errs *errs)
{
    bool was_cpu = on_cpu(before), is_cpu = on_cpu(plan);
    double kernels = m->device_speed > 0 ? m->device_speed : is_cpu ? m->host_speed : 1;
    c->copy_in = m->copy_in > 0 ? m->copy_in : c->copy_in;
    c->copy_out = m->copy_out > 0 ? m->copy_out : c->copy_out;
    c->copy_peer = m->peer.rate > 0 ? m->peer.rate : c->copy_peer;
    c->memory = m->memory, c->peer = m->peer, c->process = m->process, c->network = m->network;
    c->nccl_ns = m->nccl_ns;
    c->devices = m->says_devices && m->machine.ndevices ? m->machine.ndevices : 0;
    for (int v = 0; v < c->nstages; v++)
        c->stage[v].cpu_ns /= m->host_speed, c->stage[v].turn_ns /= m->host_speed,
        c->stage[v].frame_ns /= m->host_speed;
    for (int k = 0; k < c->nsegments; k++) {
        c->segment[k].launch_ns /= m->host_speed;
        c->segment[k].kernels_ns /= kernels, c->segment[k].fixed_ns /= kernels;
    }
    c->wake_ns /= m->host_speed, c->call_ns /= m->host_speed;
    if (m->says_cores)
        c->cores = m->machine.cpus, c->others = 0;
    if (plan->nsegments && was_cpu != is_cpu && !(m->device_speed > 0))
        return gp_fail(errs, GP_E_USAGE, (gp_loc){ .file = file },
                       "kernels ran on %s in the report, and this machine has %s: say how many times "
                       "as fast they are there ('kernels_speed')", was_cpu ? "the CPU" : "a GPU",
                       was_cpu ? "a GPU" : "none");
    return true;
}

/* `st`: of which stage it is asked, or NULL. */
static bool lacks(gp_errs *errs, const char *file, const gp_stage *st, const char *way, const char *key)
{
    const char *to = file ? "" : " in a file that '--machine' names";
    gp_loc at = { .file = file };
    if (st)
        return gp_fail(errs, GP_E_USAGE, at, "what ranks exchange in stage '%s' goes %s, at a rate that is not known: "
                       "say '%s'%s", st->name, way, key, to);
    return gp_fail(errs, GP_E_USAGE, at, "how fast it copies %s is not known: say '%s'%s", way, key, to);
}

bool gp_costs_suffice(const gp_costs *c, const gp_plan *plan, const char *file, gp_errs *errs)
{
    const gp_graph *g = plan->graph;
    const gp_stage *by_nccl = gp_collective_of(g, true), *by_mpi = gp_collective_of(g, false);
    bool in = plan->unified || !plan->copy_in_bytes || c->copy_in > 0, ranks = c->ranks > 1;
    bool out = plan->unified || !plan->copy_out_bytes || c->copy_out > 0, all = in && out;
    int nodes = c->nodes > 1 ? c->nodes : 1;
    if (!all)
        lacks(errs, file, NULL, on_cpu(plan) ? "to and from a part of the CPU" : "to and from the GPU",
              in ? "copy_out_gb_s" : out ? "copy_in_gb_s" : "copy_in_gb_s' and 'copy_out_gb_s");
    if (plan->copy_peer_bytes && !(c->copy_peer > 0))
        all = lacks(errs, file, NULL, "from one GPU to another", "peer_gb_s");
    if (ranks && (by_nccl || by_mpi) && nodes > 1 && !(c->network.rate > 0))
        all = lacks(errs, file, by_nccl ? by_nccl : by_mpi, "from one machine to another", "network_gb_s");
    if (ranks && c->ranks > nodes && by_nccl && !(c->peer.rate > 0) && !(plan->copy_peer_bytes && !(c->copy_peer > 0)))
        all = lacks(errs, file, by_nccl, "from one GPU to another", "peer_gb_s");
    if (ranks && c->ranks > nodes && by_mpi && !(c->process.rate > 0))
        all = lacks(errs, file, by_mpi, "from one process to another on a machine", "process_gb_s");
    return all;
}
