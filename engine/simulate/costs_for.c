/* costs_for.c - the costs of a plan for another one of the same pipeline: other settings, frames of another size. */
#include <math.h>
#include <string.h>
#include "compile/plan.h"
#include "simulate/measured.h"

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

/* Of the stages that are in a segment of `plan`, as they are in g: plan's own graph, or that of another plan. */
static double segment_bytes(const gp_graph *g, const gp_plan *plan, int segment)
{
    const gp_segment *s = &plan->segment[segment];
    double n = 0;
    for (int i = 0; i < s->ntasks; i++)
        n += plan->task[s->task[i]].stage >= 0 ? bytes_of(g, plan->task[s->task[i]].stage) : 0;
    return n;
}

/* The segment that has this stage; -1: none. */
static int segment_with(const gp_plan *plan, int stage)
{
    for (int k = 0; k < plan->nsegments; k++)
        for (int i = 0; i < plan->segment[k].ntasks; i++)
            if (plan->task[plan->segment[k].task[i]].stage == stage)
                return k;
    return -1;
}

/* The segment of `from` in which all stages of segment k of `to` are: it is that, or a part, as where ranks cut it. */
static int came_from(const gp_plan *from, const gp_plan *to, int k)
{
    int in = -1;
    for (int i = 0; i < to->segment[k].ntasks; i++) {
        int v = to->task[to->segment[k].task[i]].stage, now = v < 0 ? in : segment_with(from, v);
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

double gp_segment_fills(const gp_plan *plan, int segment)
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
        double was = gp_segment_fills(from, in[k]), is = was * size;
        n->segment[k].kernels_ns *= cut * (was > 0 ? fmax(is, 1) / fmax(was, 1) : size);
        n->segment[k].part = fmin(is, 1);
    }
}

static const char again[] = "; make a report of a run with them";

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

/* They differ in their v-th stages, or one of them has no more. */
static bool say_other(const gp_graph *f, const gp_graph *g, int v, gp_errs *errs)
{
    const gp_stage *more = lacking(g, f), *less = lacking(f, g), *now = &g->stage[v];
    if (more)
        return gp_fail(errs, GP_E_USAGE, more->at, "with these settings there is a stage '%s', and in the run of the report "
                       "there was none%s", more->name, again);
    if (less)
        return gp_fail(errs, GP_E_USAGE, (gp_loc){ .file = g->file }, "with these settings there is no stage '%s', which the "
                       "run of the report had%s", less->name, again);
    if (strcmp(f->stage[v].name, now->name))
        return gp_fail(errs, GP_E_USAGE, now->at, "with these settings stage '%s' comes in another order than in the run of "
                       "the report%s", now->name, again);
    return gp_fail(errs, GP_E_USAGE, now->at, "with these settings stage '%s' runs on the %s, and in the run of the report on "
                   "the %s%s", now->name, now->device ? "device" : "host", now->device ? "host" : "device", again);
}

/* There are times of the stages and segments of the run alone. Where the plan has others: a stage that is one. */
static bool are_alike(const gp_plan *from, const gp_plan *to, int *in, gp_errs *errs)
{
    const gp_graph *f = from->graph, *g = to->graph;
    int v = 0;
    while (v < g->nstages && v < f->nstages && !strcmp(f->stage[v].name, g->stage[v].name)
           && f->stage[v].device == g->stage[v].device)
        v++;
    if (v < g->nstages || v < f->nstages)
        return say_other(f, g, v, errs);
    for (int k = 0; k < to->nsegments; k++)
        if ((in[k] = came_from(from, to, k)) < 0) {
            int i = 0;
            while ((v = to->task[to->segment[k].task[i]].stage) < 0)
                i++;
            return gp_fail(errs, GP_E_USAGE, g->stage[v].at, "with these settings the segment that begins with stage '%s' has "
                           "stages of several segments of the report's run%s", g->stage[v].name, again);
        }
    return true;
}

gp_costs *gp_costs_for(gp_arena *a, const gp_costs *c, const gp_plan *from, const gp_plan *to, gp_errs *errs)
{
    const gp_graph *f = from->graph, *g = to->graph;
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
        const gp_known *now = &g->stage[v].known, *then = &f->stage[v].known;
        if (!g->stage[v].nin && now->hertz > 0)
            n->stage[v].pace_ns = 1e9 / now->hertz;
        if (!g->stage[v].nin && now->frames > 0 && now->frames != then->frames)
            n->stage[v].frames = (uint64_t)now->frames;
    }
    return n;
}
