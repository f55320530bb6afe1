/* costs_for.c - the costs of a plan for another one of the same pipeline (other settings, frames of another size), and
 * on another machine. */
#include <math.h>
#include <string.h>
#include "compile/plan.h"
#include "simulate/simulate.h"

/* What a stage reads and makes of a frame, and a byte, so that there is something. */
static double bytes_of(const gp_graph *g, int v)
{
    const gp_stage *st = &g->stage[v];
    double n = 1;
    for (int i = 0; i < st->nin + st->nout; i++) {
        int b = i < st->nin ? st->in[i] : st->out[i - st->nin];
        n += b >= 0 ? (double)gp_bytes(&g->buffer[b].type) : 0;
    }
    return n;
}

/* Bytes of a frame in the stages of a segment of `plan`; g is the plan's own graph, or that of another plan. */
static double segment_bytes(const gp_graph *g, const gp_plan *plan, int segment)
{
    double n = 0;
    for (int i = 0; i < plan->segment[segment].ntasks; i++) {
        int v = plan->task[plan->segment[segment].task[i]].stage;
        n += v >= 0 ? bytes_of(g, v) : 0;
    }
    return n;
}

/* The segment of `from` in which all stages of segment k of `to` are: it is that, or a part, as where ranks cut it. */
static int came_from(const gp_plan *from, const gp_plan *to, int k)
{
    int in = -1;
    for (int i = 0; i < to->segment[k].ntasks; i++) {
        int v = to->task[to->segment[k].task[i]].stage, now = v < 0 ? in : gp_plan_segment_of(from, v);
        if (v >= 0 && (now < 0 || (in >= 0 && now != in)))
            return -1;
        in = now;
    }
    return in;
}

/* ---- how much of a GPU the kernels of one firing fill ----------------- */

/* The multiprocessors of a device keep so many threads at a time. Kernels of fewer leave room for those of other
 * launches, and of other frames in the same launch: these run side by side, and all take as long as one ("Concurrent
 * Kernel Execution", CUDA C++ Programming Guide). With more, threads take turns, and the time goes with their number.
 * How many threads a kernel has is not known before it runs, but for one that the file gives a grid: it is taken to be
 * one for each element, of the largest frame that a stage reads or makes. Most have fewer. Nor does a report say how
 * many multiprocessors its GPU has: gp_source_report_machine() takes those of an H100. */

/* The most resident threads of a multiprocessor: CUDA C++ Programming Guide, "Technical Specifications per Compute
 * Capability". */
static int threads_of(int cc)
{
    return cc < 80 ? 1024 : cc == 86 || cc == 87 || cc == 89 || cc >= 110 ? 1536 : 2048;
}

static double threads_in(const gp_graph *g, const gp_stage *st)
{
    double most = 1;
    if (st->known.blocks > 0 && st->known.threads > 0)
        return (double)st->known.blocks * (double)st->known.threads;
    for (int i = 0; i < st->nin + st->nout; i++) {
        int b = i < st->nin ? st->in[i] : st->out[i - st->nin];
        if (b >= 0 && !gp_is_const(&g->buffer[b]))
            most = fmax(most, (double)gp_count(&g->buffer[b].type));
    }
    return most;
}

double gp_segment_occupancy(const gp_plan *plan, int segment)
{
    const gp_graph *g = plan->graph;
    const gp_segment *s = &plan->segment[segment];
    const gp_device *d = g->ndevices ? &g->device[s->place.index] : NULL;
    double most = 0;
    if (plan->unified || !d || d->pretend || d->info.sms < 1)
        return 0;
    for (int i = 0; i < s->ntasks; i++)
        if (plan->task[s->task[i]].stage >= 0)
            most = fmax(most, threads_in(g, &g->stage[plan->task[s->task[i]].stage]));
    return most / ((double)d->info.sms * threads_of(d->info.cc));
}

/* ---- what crosses between host and GPU --------------------------------- */

gp_crossing gp_costs_crossing(const gp_plan *plan, const gp_segment *s, gp_engine e, int n)
{
    static const gp_task_kind way[GP_ENGINES] = {
        [GP_ENGINE_COPY_IN] = GP_TASK_COPY_IN, [GP_ENGINE_COPY_OUT] = GP_TASK_COPY_OUT,
        [GP_ENGINE_COPY_PEER] = GP_TASK_COPY_PEER, [GP_ENGINE_COMPUTE] = GP_TASK_STAGE,
    };
    gp_crossing c = { 0 };
    size_t mapped = 0, other = 0;      /* this way, and the other one */
    for (int i = 0; i < s->ntasks; i++) {
        const gp_task *t = &plan->task[s->task[i]];
        gp_copying how = gp_copying_in(t, n);
        size_t bytes = t->stage < 0 ? gp_copy_bytes(plan, t) : 0;
        if (how == GP_COPY_MAPPED)
            *(t->op == way[e] ? &mapped : &other) += bytes;
        else if (t->op == way[e])
            *(how == GP_COPY_KERNEL ? &c.on_link : &c.copied) += bytes;
    }
    c.by_kernels = c.on_link + mapped;
    bool takes = !plan->graph->device[s->place.index].pretend
              && (mapped > other || (mapped == other && e == GP_ENGINE_COPY_IN));
    c.on_link += takes ? mapped : 0;
    return c;
}

double gp_crossing_ns(const gp_costs *c, gp_crossing moves, gp_engine e, int n)
{
    double rate = e == GP_ENGINE_COPY_IN ? c->copy_in : e == GP_ENGINE_COPY_OUT ? c->copy_out : c->copy_peer;
    double bytes = (double)(moves.copied + moves.on_link) * n;
    return (bytes > 0 ? 1e9 * bytes / rate : 0) + (moves.copied ? c->copy_ns : 0) + (moves.on_link ? c->link_ns : 0);
}

/* Launches that were measured had two copies. */
void gp_costs_measured(gp_costs *c, const gp_device_info *d)
{
    double more = d->launch[GP_COPY_DMA].step_ns - d->launch[GP_COPY_MAPPED].step_ns;
    if (d->launch[GP_COPY_DMA].rate > 0 && d->launch[GP_COPY_MAPPED].rate > 0)
        c->copy_ns = fmax(more + c->link_ns, 0) / 2, c->copy_usual = false;
}

/* ---- scaling ----------------------------------------------------------- */

/* The times of a frame that has more or fewer bytes go with these. */
static void scale(gp_costs *n, const gp_plan *from, const gp_plan *to, const int *in)
{
    for (int v = 0; v < n->nstages; v++) {
        double by = bytes_of(to->graph, v) / bytes_of(from->graph, v);
        n->stage[v].cpu_ns *= by, n->stage[v].wait_ns *= by;
        if (fabs(by - 1) > fabs(n->scaled_by - 1) && !to->graph->stage[v].kind->collective)
            n->scaled_by = by, n->scaled = to->graph->stage[v].name;
    }
    for (int k = 0; k < to->nsegments; k++) {
        double here = segment_bytes(to->graph, to, k), then = segment_bytes(from->graph, to, k);
        double cut = then / segment_bytes(from->graph, from, in[k]), size = here / then;
        double was = gp_segment_occupancy(from, in[k]), is = was * size;
        n->segment[k].kernels_ns *= cut * (was > 0 ? fmax(is, 1) / fmax(was, 1) : size);
        n->segment[k].part = fmin(is, 1);
    }
}

/* The first stage of `g` that has no namesake in `in`; NULL: none. */
static const gp_stage *lacking(const gp_graph *g, const gp_graph *in)
{
    for (int v = 0; v < g->nstages; v++) {
        int u = 0;
        while (u < in->nstages && strcmp(in->stage[u].name, g->stage[v].name))
            u++;
        if (u == in->nstages)
            return &g->stage[v];
    }
    return NULL;
}

#define THESE "with these settings "
#define AGAIN "; make a report of a run with them"

/* They differ in their v-th stages, or one of them has no more. */
static bool say_other(const gp_graph *f, const gp_graph *g, int v, gp_errs *errs)
{
    const gp_stage *more = lacking(g, f), *less = lacking(f, g), *now = &g->stage[v];
    if (more)
        return gp_fail(errs, GP_E_USAGE, more->at, THESE "there is a stage '%s', and in the run of the report there "
                       "was none" AGAIN, more->name);
    if (less)
        return gp_fail(errs, GP_E_USAGE, (gp_loc){ .file = g->file }, THESE "there is no stage '%s', which the run of "
                       "the report had" AGAIN, less->name);
    if (strcmp(f->stage[v].name, now->name))
        return gp_fail(errs, GP_E_USAGE, now->at, THESE "stage '%s' comes in another order than in the run of the "
                       "report" AGAIN, now->name);
    return gp_fail(errs, GP_E_USAGE, now->at, THESE "stage '%s' runs on the %s, and in the run of the report on the %s"
                   AGAIN, now->name, now->device ? "device" : "host", now->device ? "host" : "device");
}

/* Where a process meets others a collective is on the host, and where it is alone a copy on the device: what it takes
 * there is what links take (links.c). */
static bool is_cut_out(const gp_stage *then, const gp_stage *now)
{
    return now->kind->collective && then->device && !now->device;
}

/* There are times of the stages and segments of the run alone. Where the plan has others: a stage that is one. */
static bool are_alike(const gp_plan *from, const gp_plan *to, int *in, gp_errs *errs)
{
    const gp_graph *f = from->graph, *g = to->graph;
    int v = 0;
    while (v < g->nstages && v < f->nstages && !strcmp(f->stage[v].name, g->stage[v].name)
           && (f->stage[v].device == g->stage[v].device || is_cut_out(&f->stage[v], &g->stage[v])))
        v++;
    if (v < g->nstages || v < f->nstages)
        return say_other(f, g, v, errs);
    for (int k = 0; k < to->nsegments; k++) {
        const gp_stage *first = &g->stage[gp_segment_first(to, k)];
        if ((in[k] = came_from(from, to, k)) < 0)
            return gp_fail(errs, GP_E_USAGE, first->at, THESE "the segment that begins with stage '%s' has stages of "
                           "several segments of the report's run" AGAIN, first->name);
    }
    return true;
}

gp_costs *gp_costs_for(gp_arena *a, const gp_costs *c, const gp_plan *from, const gp_plan *to, gp_errs *errs)
{
    const gp_graph *g = to->graph;
    int *in = GP_NEW(a, int, to->nsegments);       /* of each segment: that of `from` */
    if (!are_alike(from, to, in, errs))
        return NULL;
    gp_costs *n = GP_NEW(a, gp_costs, 1);
    *n = *c;
    n->stage = gp_regrow(a, c->stage, sizeof *c->stage * (size_t)c->nstages, sizeof *c->stage * (size_t)c->nstages);
    n->segment = GP_NEW(a, gp_segment_cost, to->nsegments);
    n->nsegments = to->nsegments, n->scaled_by = 1, n->scaled = NULL;
    for (int k = 0; k < to->nsegments; k++)
        n->segment[k] = c->segment[in[k]];
    scale(n, from, to, in);
    for (int v = 0; v < g->nstages; v++) {
        const gp_known *now = &g->stage[v].known, *then = &from->graph->stage[v].known;
        if (!g->stage[v].nin && now->hertz > 0)
            n->stage[v].pace_ns = 1e9 / now->hertz;
        if (!g->stage[v].nin && now->frames > 0 && now->frames != then->frames)
            n->stage[v].frames = (uint64_t)now->frames;
    }
    return n;
}

/* ---- another machine --------------------------------------------------- */

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
    if (m->says_devices && m->machine.ndevices)
        gp_costs_measured(c, &m->machine.device[0]);
    c->devices = m->says_devices && m->machine.ndevices ? m->machine.ndevices : 0;
    for (gp_stage_cost *s = c->stage; s < c->stage + c->nstages; s++)
        s->cpu_ns /= m->host_speed, s->turn_ns /= m->host_speed, s->frame_ns /= m->host_speed;
    for (gp_segment_cost *s = c->segment; s < c->segment + c->nsegments; s++)
        s->launch_ns /= m->host_speed, s->kernels_ns /= kernels;
    c->wake_ns /= m->host_speed, c->call_ns /= m->host_speed;
    if (m->says_cores)
        c->cores = m->machine.cpus, c->others = 0;
    if (plan->nsegments && was_cpu != is_cpu && !(m->device_speed > 0))
        return gp_fail(errs, GP_E_USAGE, (gp_loc){ .file = file }, "kernels ran on %s in the report, and this machine "
                       "has %s: say how many times as fast they are there ('kernels_speed')", was_cpu ? "the CPU"
                       : "a GPU", was_cpu ? "a GPU" : "none");
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
