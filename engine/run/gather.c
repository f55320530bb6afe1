/* gather.c - one frame of many, which are added to what a stage with emit() carries, see regroup.h.
 *
 * Frames take turns, in order; holes are left out. The launcher alone knows how many were added: kernels are told. */
#include "run/regroup.h"
#include "run/segment.h"

static const gp_meta *meta_of(const gp_actorrt *p, uint64_t f)
{
    return gp_meta_of(p->in[0].ring, f);
}

int gp_gather_good(const gp_actorrt *p, uint64_t f, int n, gp_errs *errs)
{
    const gp_ringrt *r = p->in[0].ring;
    int64_t rows = r->buffer->type.dim[0];
    uint64_t left = (uint64_t)p->regroup->every - p->seg->gathered.frames;
    if ((uint64_t)n > left)
        n = (int)left;
    for (int i = 0; i < n; i++) {
        const gp_meta *m = meta_of(p, f + (uint64_t)i);
        if (!m->hole && m->rows == rows)
            continue;
        if (i || m->hole)
            return i ? i : 1;
        gp_regroup_partial(p, f, errs);
        return 0;
    }
    return n;
}

bool gp_gather_emits(const gp_actorrt *p, uint64_t f, int n)
{
    const gp_gathered *g = &p->seg->gathered;
    bool whole = g->frames + (uint64_t)n == (uint64_t)p->regroup->every;
    bool hole = n == 1 && meta_of(p, f)->hole;
    return !g->lost && (!n || whole) && (g->added || (n && !hole));
}

/* With `bare` one frame is added and one is made, so that all kernels are there. */
bool gp_gather_record(gp_rec *r, const struct gp_batch *o, const gp_taskrt *part, gp_dcall *c)
{
    const gp_actorrt *p = o->p;
    const gp_gathered *g = &p->seg->gathered;
    const gp_ringrt *in = &p->run->ring[part->task->in[0]], *out = &p->run->ring[part->task->out[0]];
    uint64_t slots = (uint64_t)p->segment->depth, f = o->first, end = f + (uint64_t)o->n, depth = (uint64_t)in->ring->depth;
    gp_view x = { .type = in->buffer->type, .rows = in->buffer->type.dim[0], .stride = in->stride };
    gp_view y = { .type = out->buffer->type, .rows = out->buffer->type.dim[0], .stride = out->stride,
                  .data = gp_slot(out, gp_actor_made(p, f)) };
    c->in = &x, c->out = &y, c->added = g->added;
    if (!o->bare && !r->ops->order_wait(r, part->order, (int)((f + slots - 1) % slots)))
        return false;
    while (f < end && !o->irregular) {         /* slots follow each other, up to the last */
        uint64_t n = depth - f % depth < end - f ? depth - f % depth : end - f;
        x.data = gp_slot(in, f), c->n = (int)n;
        if (!part->stage->kind->record(c))
            return false;
        c->added += n, f += n;
    }
    c->n = 1;
    if (p->run->options.poison && o->emits && !gp_fill(c, y.data, gp_poison(y.type.dtype), gp_bytes(&y.type)))
        return false;
    if ((o->emits || o->bare) && !part->stage->kind->emit(c)) {
        p->seg->gathered.lost = !o->bare;
        return false;
    }
    return o->bare || r->ops->order_pass(r, part->order, (int)((o->first + (uint64_t)(o->n ? o->n - 1 : 0)) % slots));
}

void gp_gather_note(gp_actorrt *p, uint64_t f, int n, bool failed, bool emits)
{
    gp_gathered *g = &p->seg->gathered;
    failed &= !g->lost;
    uint64_t frame = gp_frames_made(p->regroup, f);
    for (int i = 0; i < n; i++, g->frames++) {
        gp_meta m = *meta_of(p, f + (uint64_t)i);
        if (failed) {
            m.hole = GP_HOLE_FAILED;
            gp_buffer_hole(p->run, p->in[0].ring->buffer, f + (uint64_t)i, m.hole);
        }
        if (!g->frames || (!g->added && !m.hole)) {    /* the first that counts says when it was, and its name */
            gp_hole worst = g->frames ? gp_worse_hole(g->meta.hole, m.hole) : m.hole;
            g->meta = m, g->meta.hole = worst;
            if (p->run->graph->nmetadata)
                g->numbers = *gp_numbers_of(p->in[0].ring, f + (uint64_t)i);
        }
        g->meta.hole = gp_worse_hole(g->meta.hole, m.hole);
        g->added += !m.hole;
    }
    if (n && g->frames < (uint64_t)p->regroup->every)
        return;
    if (g->lost)
        g->meta.hole = GP_HOLE_FAILED;
    for (int o = 0; o < p->nout; o++) {
        g->meta.rows = p->out[o]->buffer->type.dim[0];
        *gp_meta_of(p->out[o], frame) = g->meta;
        gp_meta_of(p->out[o], frame)->hole = emits ? GP_NO_HOLE : p->elsewhere ? GP_HOLE_ABSENT : g->meta.hole;
        gp_meta_of(p->out[o], frame)->touched = true;
        gp_numbers_write(p->out[o], frame, &g->numbers);
    }
    *g = (gp_gathered){ .frames = 0 };
}
