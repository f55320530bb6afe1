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

/* Who uses a ring on the device, copies to and from the host aside. */
typedef struct use {
    int reads, writes;
    bool each_once;            /* each of them reads, or writes, each element once */
} use;

static void look_at(const gp_plan *p, const gp_task *t, use *of)
{
    const gp_stage *s = t->stage < 0 ? NULL : &p->graph->stage[t->stage];
    for (int k = 0; k < t->nin && t->op != GP_TASK_COPY_OUT; k++) {
        if (t->in[k] < 0)          /* a constant */
            continue;
        of[t->in[k]].reads++;
        of[t->in[k]].each_once &= s && !s->closes && reads_once(p->graph, s, k);
    }
    for (int k = 0; k < t->nout && t->op != GP_TASK_COPY_IN; k++) {
        if (t->out[k] < 0)         /* nobody reads it */
            continue;
        of[t->out[k]].writes++;
        of[t->out[k]].each_once &= s && writes_once(s);
    }
}

/* Does one stage alone use what a copy brings, or takes away? */
static bool may_map_ring(const gp_ring *r, const use *u, bool out)
{
    return !r->nconsumers && u->each_once && u->reads == !out && u->writes == out;
}

/* A resident kernel may find what it read of the host's memory for an earlier frame in a cache, so it copies that first. */
static bool may_map(const gp_plan *p, const gp_task *t, const use *of)
{
    bool out = t->op == GP_TASK_COPY_OUT, may = out || p->graph->launch != GP_LAUNCH_PERSISTENT;
    for (int i = 0; i < t->nin && may; i++)
        may = may_map_ring(&p->ring[out ? t->in[i] : t->out[i]], &of[out ? t->in[i] : t->out[i]], out);
    return may;
}

static void choose(const gp_plan *p, const gp_segment *seg, gp_task *t, const use *of)
{
    gp_copies_said asked = p->graph->copies;
    if (!gp_is_copy(t))
        return;
    bool mapped = may_map(p, t, of), measured;
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
    use *of = GP_NEW(w->a, use, p->nrings);
    for (int i = 0; i < p->nrings; i++)
        of[i].each_once = true;
    for (int i = 0; i < p->ntasks; i++)
        look_at(p, &p->task[i], of);
    for (int i = 0; i < p->ntasks; i++)
        if (p->task[i].stage < 0)
            choose(p, &p->segment[p->task[i].segment], &p->task[i], of);
}
