/* fills.c - how much of a GPU the kernels of one firing fill.
 *
 * The multiprocessors of a device keep so many threads at a time. Kernels of fewer leave room for those of other
 * launches, and of other frames in the same launch: these run side by side, and all take as long as one ("Concurrent
 * Kernel Execution", CUDA C++ Programming Guide). With more, threads take turns, and the time goes with their number.
 * How many threads a kernel has is not known before it runs, but for one that the file gives a grid: it is taken to be
 * one for each element, of the largest frame that a stage reads or makes. Most have fewer. Nor does a report say how
 * many multiprocessors its GPU has: gp_source_report_machine() takes those of an H100. */
#include <math.h>
#include "compile/plan.h"
#include "simulate/measured.h"

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
