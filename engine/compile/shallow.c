/* shallow.c - where buffers for which no depth is given have the fewer slots of large frames, though theirs are small.
 *
 * Around a segment whose frames are large, or take long: more of them in flight would be of no use, and all that is
 * inside the segment, its work areas and its graphs are there for each frame in flight. Where a buffer inside it says a
 * smaller depth, which is that of the whole. And everywhere where memory is scarce. */
#include "compile/firing.h"
#include "compile/loop.h"
#include "compile/plan.h"

/* A large work area of a stage: libraries ask for some MiB for frames of any size. */
enum { AREA = 8 << 20 };

int64_t gp_segment_kernels(const gp_plan *p, const gp_segment *s)
{
    int64_t n = 0;
    for (int i = 0; i < s->ntasks; i++) {
        int v = p->task[s->task[i]].stage;
        const gp_loop *l = v < 0 ? NULL : gp_stage_loop(&p->graph->stage[v]);
        n += !l ? 1 : l->times < GP_REC_ITEMS ? l->times * l->graph->nstages : GP_REC_ITEMS;
    }
    return n;
}

/* At port i of a task, inputs first; -1: a constant, frame infos, or nothing. */
static int buffer_of(const gp_plan *p, const gp_task *t, int i)
{
    int ring = i < t->nin ? t->in[i] : t->out[i - t->nin];
    return ring < 0 ? -1 : p->ring[ring].buffer;
}

static bool is_long(const gp_plan *p, const gp_segment *s)
{
    bool is = gp_segment_kernels(p, s) >= GP_LONG;
    for (int i = 0; i < s->ntasks && !is; i++) {
        const gp_task *t = &p->task[s->task[i]];
        is = t->scratch >= 0 && p->extra[t->scratch].stride >= AREA;
        for (int k = 0; k < t->nin + t->nout && !is; k++) {
            int b = buffer_of(p, t, k);
            is = b >= 0 && gp_bytes(&p->graph->buffer[b].type) >= GP_DEPTH_BYTES;
        }
    }
    return is;
}

/* Sets is[segment] where a buffer that never leaves it says that there are fewer slots. */
static void find_said(const gp_plan *p, bool *is)
{
    for (int i = 0; i < p->nrings; i++) {
        const gp_ring *r = &p->ring[i];
        const gp_buffer *b = r->buffer < 0 ? NULL : &p->graph->buffer[r->buffer];
        bool alone = (!i || r[-1].buffer != r->buffer) && (i + 1 == p->nrings || r[1].buffer != r->buffer);
        if (b && alone && r->segment >= 0 && b->depth_said && b->depth < GP_DEPTH_SMALL)
            is[r->segment] = true;
    }
}

void gp_make_shallow(gp_arena *a, gp_plan *p, bool scarce)
{
    bool *less = GP_NEW(a, bool, p->graph->nbuffers + 1), *is = GP_NEW(a, bool, p->nsegments + 1);
    find_said(p, is);
    for (int k = 0; k < p->nsegments; k++) {
        const gp_segment *s = &p->segment[k];
        is[k] = is[k] || is_long(p, s);
        for (int i = 0; i < s->ntasks && is[k]; i++)
            for (int n = 0, b; n < p->task[s->task[i]].nin + p->task[s->task[i]].nout; n++)
                if ((b = buffer_of(p, &p->task[s->task[i]], n)) >= 0)
                    less[b] = true;
    }
    for (int i = 0; i < p->nrings; i++) {
        int b = p->ring[i].buffer;
        if (b >= 0 && (scarce || less[b]))
            p->ring[i].depth = p->graph->buffer[b].shallow;
    }
}
