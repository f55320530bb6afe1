/* links.c - what goes between ranks: over which links, for how long, and whether that bounds a run. */
#include <math.h>
#include <string.h>
#include "base/plural.h"
#include "simulate/simulate.h"

/* What goes round a ring of all ranks: its slowest link, and which that is. */
typedef struct route { gp_link link; const char *name, *way; } route;

static int nodes_of(const gp_costs *c)
{
    return c->nodes > 1 ? c->nodes : 1;
}

/* One machine after the other: bytes wait for the slowest link; of `ranks - 1` steps, `nodes - 1` are from one machine
 * to the next, as in ncclTopoTuneModel (NCCL, src/graph/tuning.cc). */
static route ring_of(const gp_costs *c, bool nccl)
{
    const route inside = nccl ? (route){ c->peer, "the links between GPUs", "from GPU to GPU" }
                              : (route){ c->process, "the way between processes", "from process to process" };
    const route network = { c->network, "the network", "from machine to machine" };
    if (nodes_of(c) == 1)
        return inside;
    if (c->ranks <= nodes_of(c))
        return network;
    double part = (nodes_of(c) - 1.0) / (c->ranks - 1.0);
    route slowest = inside.link.rate < network.link.rate ? inside : network;
    slowest.link.step_ns = (1 - part) * inside.link.step_ns + part * network.link.step_ns;
    return slowest;
}

bool gp_round_takes_cores(const gp_costs *c, const gp_stage *st)
{
    return nodes_of(c) == 1 && !st->reads_device;
}

/* Steps in which ranks tell each other what they have. */
static double told(const gp_costs *c)
{
    return ceil(log2(fmax(c->ranks, 1)));
}

/* All steps of a round, of what ranks tell each other and of what they send. */
static int steps_of(const gp_costs *c, const gp_stage *st)
{
    return (int)told(c) + st->round_steps;
}

double gp_round_told_ns(const gp_costs *c)
{
    return told(c) * ring_of(c, false).link.step_ns;
}

double gp_round_ns(const gp_costs *c, const gp_stage *st)
{
    gp_link link = ring_of(c, st->reads_device).link;
    return gp_round_told_ns(c) + (st->reads_device ? c->nccl_ns : 0) + st->round_steps * link.step_ns
         + 1e9 * st->round_bytes / link.rate;
}

const gp_stage *gp_collective_of(const gp_graph *g, bool nccl)
{
    for (int v = 0; v < g->nstages; v++)
        if (g->stage[v].kind->collective && g->stage[v].reads_device == nccl)
            return &g->stage[v];
    return NULL;
}

/* "3.5 ms", "12 us"; returns buf. */
static const char *time_text(double ns, char buf[32])
{
    snprintf(buf, 32, "%.4g %s", ns < 1e6 ? 1e-3 * ns : ns < 1e9 ? 1e-6 * ns : 1e-9 * ns,
             ns < 1e6 ? "us" : ns < 1e9 ? "ms" : "s");
    return buf;
}

/* "3 us a step"; with NCCL those of MPI may take another time: "3 us a step, 2 us by MPI". */
static const char *step_text(const gp_costs *c, const gp_stage *st, char buf[96])
{
    char step[32], mpi[32];
    double ns = ring_of(c, st->reads_device).link.step_ns, by_mpi = ring_of(c, false).link.step_ns;
    bool differ = fabs(by_mpi - ns) > 1e-3 * ns;
    snprintf(buf, 96, "%s a step%s%s%s", time_text(ns, step), differ ? ", " : "", differ ? time_text(by_mpi, mpi) : "",
             differ ? " by MPI" : "");
    return buf;
}

const char *gp_round_text(gp_arena *a, const gp_costs *c, const gp_stage *st)
{
    bool nccl = st->reads_device, apart = nodes_of(c) > 1;
    int steps = steps_of(c, st);
    char takes[32], step[96];
    return gp_format(a, "a round of '%s' takes %s%s, by %s in a ring: %.3g MB over each link in %d step%s, of which %d "
                     "%s what ranks tell each other first%s; the slowest link has %.3g GB/s, and %s%s", st->name,
                     time_text(gp_round_ns(c, st), takes), gp_round_takes_cores(c, st) ? " of a core of each rank" : "",
                     nccl ? "NCCL" : "MPI", 1e-6 * st->round_bytes, steps, gp_plural(steps), (int)told(c),
                     (int)told(c) == 1 ? "is" : "are", nccl ? ", by MPI" : "", 1e-9 * ring_of(c, nccl).link.rate,
                     step_text(c, st, step), apart ? "; nobody else uses the network" : "");
}

const char *gp_step_lacking(const gp_costs *c, const gp_graph *g)
{
    bool nodes = nodes_of(c) > 1;
    double step = c->network.step_ns;
    if (gp_collective_of(g, false) && !((nodes ? step : c->process.step_ns) > 0))
        return nodes ? "network_us" : "process_us";
    if (gp_collective_of(g, true) && !((nodes ? step : c->peer.step_ns) > 0))
        return nodes ? "network_us" : "peer_us";
    return NULL;
}

/* ---- what bounds a run ------------------------------------------------ */

/* How much of the run its rounds take, of which none begins before the one before is over. */
static double part_of(const gp_costs *c, const gp_plan *plan, const gp_report *r, const gp_actor_report *p)
{
    const gp_stage *st = &plan->graph->stage[p->stage];
    double each = gp_round_ns(c, st) - (st->in_order ? gp_round_told_ns(c) : 0);
    return r->wall_ns > 0 ? (double)p->time.n * each / (double)r->wall_ns : 0;
}

void gp_links_judge(const gp_costs *c, const gp_plan *plan, gp_report *r)
{
    const double MOST = 0.9, HALF = 0.5;
    const gp_graph *g = plan->graph;
    gp_verdict *v = &r->verdict;
    int longest = -1;
    double all = 0, most = 0;
    for (int i = 0; c->ranks > 1 && i < r->nactors; i++) {
        if (r->actor[i].stage < 0 || !g->stage[r->actor[i].stage].kind->collective)
            continue;
        double part = part_of(c, plan, r, &r->actor[i]);
        all += part;
        if (part > most)
            most = part, longest = i;
    }
    int stage = v->actor >= 0 ? r->actor[v->actor].stage : -1;
    bool blamed = stage >= 0 && g->stage[stage].kind->collective;
    if (longest < 0 || !(all >= (blamed ? HALF : MOST)))
        return;
    const gp_stage *st = &g->stage[r->actor[longest].stage];
    route by = ring_of(c, st->reads_device);
    double sent = 1e9 * st->round_bytes / by.link.rate, percent = 100 * fmin(all, 1);
    if (v->bound == GP_BOUND_CORES) {
        size_t had = strlen(v->text);
        if (blamed)
            snprintf(v->text + had, sizeof v->text - had, "; it copies what ranks exchange, %s at %.3g GB/s", by.way,
                     1e-9 * by.link.rate);
        return;
    }
    v->bound = GP_BOUND_STAGE, v->actor = longest, v->buffer = -1, v->waits = false, *v->path = *v->value = '\0';
    char takes[32], step[96];
    int n = snprintf(v->text, sizeof v->text, "bound by %s (%.0f %% of the time): a round of '%.60s' takes %s, ",
                     by.name, percent, st->name, time_text(gp_round_ns(c, st), takes));
    if (sent >= HALF * gp_round_ns(c, st))
        snprintf(v->text + n, sizeof v->text - (size_t)n, "and sends %.3g MB %s at %.3g GB/s: let the ranks exchange "
                 "less", 1e-6 * st->round_bytes, by.way, 1e-9 * by.link.rate);
    else
        snprintf(v->text + n, sizeof v->text - (size_t)n, "most of it for %d steps %s (%s), and what it sends at "
                 "%.3g GB/s is little: let the ranks exchange more at a time", steps_of(c, st), by.way,
                 step_text(c, st, step), 1e-9 * by.link.rate);
}
