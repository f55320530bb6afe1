/* machine.c - what another machine than that of the report changes; what goes between ranks. */
#include <math.h>
#include "base/plural.h"
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
    if (plan->nsegments && was_cpu != is_cpu && !(m->device_speed > 0))
        return gp_fail(errs, GP_E_USAGE, (gp_loc){ .file = file },
                       "kernels ran on %s in the report, and this machine has %s: say how many times "
                       "as fast they are there ('kernels_speed')", was_cpu ? "the CPU" : "a GPU",
                       was_cpu ? "a GPU" : "none");
    c->copy_in = m->copy_in > 0 ? m->copy_in : c->copy_in;
    c->copy_out = m->copy_out > 0 ? m->copy_out : c->copy_out;
    c->copy_peer = m->peer.rate > 0 ? m->peer.rate : c->copy_peer;
    c->memory = m->memory, c->peer = m->peer, c->process = m->process, c->network = m->network;
    c->nccl_ns = m->nccl_ns;
    c->devices = m->says_devices && m->machine.ndevices ? m->machine.ndevices : 0;
    for (int v = 0; v < c->nstages; v++)
        c->stage[v].cpu_ns /= m->host_speed;
    for (int k = 0; k < c->nsegments; k++) {
        c->segment[k].launch_ns /= m->host_speed;
        c->segment[k].kernels_ns /= kernels, c->segment[k].fixed_ns /= kernels;
    }
    c->wake_ns /= m->host_speed;
    if (m->says_cores)
        c->cores = m->machine.cpus, c->others = 0;
    return true;
}

/* ---- ranks ------------------------------------------------------------ */

static int nodes_of(const gp_costs *c)
{
    return c->nodes > 1 ? c->nodes : 1;
}

/* A ring of all ranks, one machine after the other: bytes wait for the slowest link; of `ranks - 1` steps, `nodes - 1`
 * are from one machine to the next, as in ncclTopoTuneModel (NCCL, src/graph/tuning.cc). */
static gp_link ring_of(const gp_costs *c, bool nccl)
{
    const gp_link *inside = nccl ? &c->peer : &c->process;
    if (nodes_of(c) == 1)
        return *inside;
    if (c->ranks <= nodes_of(c))
        return c->network;
    double part = (nodes_of(c) - 1.0) / (c->ranks - 1.0);
    return (gp_link){ fmin(inside->rate, c->network.rate), (1 - part) * inside->step_ns + part * c->network.step_ns };
}

bool gp_round_takes_cores(const gp_costs *c, const gp_stage *st)
{
    return nodes_of(c) == 1 && !st->reads_device;
}

double gp_round_ns(const gp_costs *c, const gp_stage *st)
{
    gp_link link = ring_of(c, st->reads_device), mpi = ring_of(c, false);
    double told = ceil(log2(fmax(c->ranks, 1)));       /* steps in which ranks tell each other what they have */
    return told * mpi.step_ns + (st->reads_device ? c->nccl_ns : 0) + st->round_steps * link.step_ns
         + 1e9 * st->round_bytes / link.rate;
}

static const gp_stage *collective_of(const gp_graph *g, bool nccl)
{
    for (int v = 0; v < g->nstages; v++)
        if (g->stage[v].kind->collective && g->stage[v].reads_device == nccl)
            return &g->stage[v];
    return NULL;
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
    const gp_stage *by_nccl = collective_of(g, true), *by_mpi = collective_of(g, false);
    int nodes = nodes_of(c);
    if (!plan->unified && ((plan->copy_in_bytes && !(c->copy_in > 0)) || (plan->copy_out_bytes && !(c->copy_out > 0))))
        return lacks(errs, file, NULL, on_cpu(plan) ? "to and from a part of the CPU" : "to and from the GPU",
                     "copy_in_gb_s' and 'copy_out_gb_s");
    if (plan->copy_peer_bytes && !(c->copy_peer > 0))
        return lacks(errs, file, NULL, "from one GPU to another", "peer_gb_s");
    if (c->ranks < 2 || (!by_nccl && !by_mpi))
        return true;
    if (nodes > 1 && !(c->network.rate > 0))
        return lacks(errs, file, by_nccl ? by_nccl : by_mpi, "from one machine to another", "network_gb_s");
    if (c->ranks > nodes && by_nccl && !(c->peer.rate > 0))
        return lacks(errs, file, by_nccl, "from one GPU to another", "peer_gb_s");
    if (c->ranks > nodes && by_mpi && !(c->process.rate > 0))
        return lacks(errs, file, by_mpi, "from one process to another on a machine", "process_gb_s");
    return true;
}

/* ---- what is assumed -------------------------------------------------- */

static char *gb_s(gp_arena *a, double rate)
{
    return gp_format(a, "%.3g GB/s", 1e-9 * rate);
}

static const char *round_text(gp_arena *a, const gp_costs *c, const gp_stage *st)
{
    bool nccl = st->reads_device, apart = nodes_of(c) > 1;
    gp_link link = ring_of(c, nccl);
    return gp_format(a, "a round of '%s' takes %.4g us%s, by %s in a ring: %.3g MB over each link in %d step%s; the "
                     "slowest link has %s, and %.3g us a step%s", st->name, 1e-3 * gp_round_ns(c, st),
                     gp_round_takes_cores(c, st) ? " of a core of each rank" : "", nccl ? "NCCL" : "MPI",
                     1e-6 * st->round_bytes, st->round_steps, gp_plural(st->round_steps), gb_s(a, link.rate),
                     1e-3 * link.step_ns, apart ? "; nobody else uses the network" : "");
}

/* The key of the machine without which steps between ranks take no time; NULL: there are none, or it is said. */
static const char *lacking_step(const gp_costs *c, const gp_graph *g)
{
    bool nodes = nodes_of(c) > 1;
    double step = c->network.step_ns;
    if (collective_of(g, false) && !((nodes ? step : c->process.step_ns) > 0))
        return nodes ? "network_us" : "process_us";
    if (collective_of(g, true) && !((nodes ? step : c->peer.step_ns) > 0))
        return nodes ? "network_us" : "peer_us";
    return NULL;
}

const char *const *gp_costs_assume(gp_arena *a, const gp_costs *c, const gp_plan *plan, int *n)
{
    const gp_graph *g = plan->graph;
    int ranks = c->ranks > 1 ? c->ranks : 1, nodes = nodes_of(c), most = (ranks + nodes - 1) / nodes;
    int devices = g->ndevices > 1 ? g->ndevices : 1;
    bool gpus = g->ndevices && !g->device[0].pretend && plan->nsegments;
    const char **say = GP_NEW(a, const char *, 7 + g->nstages);
    *n = 0;
    if (c->scaled)
        say[(*n)++] = gp_format(a, "times go with the bytes of frames: those of '%s' are %.3g of the report's",
                                c->scaled, c->scaled_by);
    if (ranks == 1 && devices == 1)
        return say;
    if (devices > 1 && !gpus)
        say[(*n)++] = gp_format(a, "frames take turns on %d parts of the CPU, which share its %.3g cores", devices,
                                c->cores);
    if (ranks > 1)
        say[(*n)++] = gp_format(a, "%d ranks on %d machine%s, all alike; the threads of %d rank%s share %.3g cores",
                                ranks, nodes, gp_plural(nodes), most, gp_plural(most), c->cores);
    if (gpus && c->devices && most * devices > c->devices)
        say[(*n)++] = gp_format(a, "%d rank%s share %d GPU%s of a machine, in turns", most, gp_plural(most), c->devices,
                                gp_plural(c->devices));
    else if (gpus)
        say[(*n)++] = gp_format(a, "%s %d GPU%s of a machine, each as fast as in the report", ranks > 1
                                ? "no two ranks share one of the" : "frames take turns on", most * devices,
                                gp_plural(most * devices));
    if (gpus && (plan->copy_in_bytes || plan->copy_out_bytes))
        say[(*n)++] = gp_format(a, "each GPU copies in at %s and out at %s; %s%s", gb_s(a, c->copy_in),
                                gb_s(a, c->copy_out), c->memory > 0 ? "those of a machine together at "
                                : "nothing limits those of a machine together ('host_memory_gb_s')",
                                c->memory > 0 ? gb_s(a, c->memory) : "");
    const char *lacking = ranks > 1 ? lacking_step(c, g) : NULL;
    if (lacking)
        say[(*n)++] = gp_format(a, "a step over the link takes no time of its own, as '%s' is not said: short frames "
                                "are slower than this", lacking);
    for (int v = 0; v < g->nstages && ranks > 1; v++)
        if (g->stage[v].kind->collective)
            say[(*n)++] = round_text(a, c, &g->stage[v]);
    say[(*n)++] = "disks, files and caches are as fast for all as they were for the run of the report";
    return say;
}
