/* mapped.c - which copies over PCIe a GPU's copy engine does, see schedule.h.
 *
 * For few bytes a copy engine takes longer to begin than the bytes take: a frame of 4 KiB that is copied in, computed and
 * copied out takes 9 us so, and 2.6 us where the kernel itself reads and writes the host's memory, which is mapped into
 * the GPU's address space ("zero copy"; H200, several frames in flight). So a stage that computes element by element, or
 * says that it reads and writes each element once, does that; and for what other stages read or write a kernel copies. A
 * launch that copies more than gp_copying_most() leaves that to copy engines, which are then as fast or faster. */
#include <string.h>
#include "compile/keys.h"
#include "compile/schedule.h"

/* Launches take longer by what they move, in other proportions each way: two straight lines, which meet at the size from
 * which on a copy engine is as fast. Lines that were measured while others used the GPU may meet anywhere. */
size_t gp_copying_most(const gp_device_info *d, gp_copying how, bool *measured)
{
    static const size_t usual[GP_COPYINGS] = { [GP_COPY_KERNEL] = 64 << 10, [GP_COPY_MAPPED] = 256 << 10 };
    const double LEAST = 4 << 10, MOST = (double)usual[how];
    gp_link engine = d->launch[GP_COPY_DMA], other = d->launch[how];
    *measured = engine.rate > 0 && other.rate > 0;
    if (!*measured)
        return usual[how];
    double sooner = engine.step_ns - other.step_ns, slower = 1e9 / other.rate - 1e9 / engine.rate;
    double most = sooner <= 0 ? LEAST : slower <= 0 ? MOST : sooner / slower;
    return (size_t)(most < LEAST ? LEAST : most < MOST ? most : MOST) / 4096 * 4096;
}

static bool same_shape(const gp_type *a, const gp_type *b)
{
    return a->ndim == b->ndim && !memcmp(a->dim, b->dim, sizeof a->dim[0] * (size_t)a->ndim);
}

/* Does the stage read each element of this input once? */
static bool reads_once(const gp_graph *g, const gp_stage *s, int port)
{
    return s->each_once
        || (gp_is_elementwise(s) && !(s->beyond >> port & 1)
            && (s->reduction.op || same_shape(&g->buffer[s->in[port]].type, &g->buffer[s->out[0]].type)));
}

static bool writes_once(const gp_stage *s)
{
    return (s->each_once || (gp_is_elementwise(s) && !s->reduction.op)) && !s->zero;
}

/* Is `ring`, on the device, for one stage alone, which reads (or, `out`, writes) each element once? */
static bool may_map_ring(const gp_plan *p, const gp_segment *seg, int ring, bool out)
{
    int users = 0;
    bool once = p->ring[ring].nconsumers == 0;
    for (int i = 0; i < seg->ntasks && once; i++) {
        const gp_task *t = &p->task[seg->task[i]];
        const gp_stage *s = t->stage < 0 ? NULL : &p->graph->stage[t->stage];
        for (int k = 0; k < t->nin; k++)
            if (t->in[k] == ring && t->op != GP_TASK_COPY_OUT) {
                users++;
                once &= !out && s && !s->closes && reads_once(p->graph, s, k);
            }
        for (int k = 0; k < t->nout; k++)
            if (t->out[k] == ring && t->op != GP_TASK_COPY_IN) {
                users++;
                once &= out && s && writes_once(s);
            }
    }
    return once && users == 1;
}

/* A resident kernel may find what it read of the host's memory for an earlier frame in a cache, so it copies that first. */
static bool may_map(const gp_plan *p, const gp_segment *seg, const gp_task *t)
{
    bool out = t->op == GP_TASK_COPY_OUT, may = out || p->graph->launch != GP_LAUNCH_PERSISTENT;
    for (int i = 0; i < t->nin && may; i++)
        may = may_map_ring(p, seg, out ? t->in[i] : t->out[i], out);
    return may;
}

static void choose(const gp_plan *p, const gp_segment *seg, gp_task *t)
{
    gp_copies_said asked = p->graph->copies;
    if (!gp_is_copy(t))
        return;
    bool mapped = may_map(p, seg, t), measured;
    const gp_device_info *d = &p->graph->device[seg->place.index].info;
    size_t most = asked ? GP_DEPTH_MAX
                : gp_copying_most(d, mapped ? GP_COPY_MAPPED : GP_COPY_KERNEL, &measured) / gp_copy_bytes(p, t);
    if (seg->regroups >= 0 || asked == GP_COPIES_DMA || !most || p->pool[t->from_pool].managed
        || p->pool[t->to_pool].managed)
        return;
    t->copying = mapped ? GP_COPY_MAPPED : GP_COPY_KERNEL;
    t->copied_most = most < GP_DEPTH_MAX ? (int)most : GP_DEPTH_MAX;
}

void gp_set_copying(gp_scheduling *w)
{
    gp_plan *p = w->p;
    for (int i = 0; i < p->ntasks; i++)
        if (p->task[i].stage < 0)
            choose(p, &p->segment[p->task[i].segment], &p->task[i]);
}
