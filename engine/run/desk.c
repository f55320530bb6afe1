/* desk.c - what a worker of a host stage has before it: views of the slots of a run
 * of frames, for the kind's code, and the metas that go on with what it made.
 *
 * A view's type is that of a whole frame, except in frames marked partial; so a
 * whole frame costs little more than its addresses. Ports are the outer loops: their
 * slots lie one after the other. */
#include <string.h>
#include "run/host.h"

void gp_desk_init(gp_actorrt *p, gp_desk *d, int max)
{
    const gp_stage *st = p->stage;
    gp_arena *a = &p->run->arena;
    int ports = st->nin + st->nout;
    d->frame = GP_NEW_LINES(a, gp_frame, max);
    d->view = GP_NEW_LINES(a, gp_view, max * ports + 1);
    d->born_ns = GP_NEW_LINES(a, int64_t, max);
    d->partial = GP_NEW_LINES(a, bool, max);
    for (int j = 0; j < max; j++) {
        d->frame[j].in = d->view + j * ports;
        d->frame[j].out = d->frame[j].in + st->nin;
        d->partial[j] = true;          /* nothing is in its views yet */
    }
}

/* ---- walking --------------------------------------------------------- */

typedef struct walk {          /* over the slots of a ring, from that of a frame */
    char *data, *first_data;
    gp_meta *meta, *first_meta;
    size_t stride;
    int left, depth;           /* slots up to where the ring begins again */
} walk;

static inline walk walk_from(const gp_ringrt *r, uint64_t frame)
{
    int depth = r->ring->depth, at = (int)(frame % (uint64_t)depth);
    return (walk){ r->base + (size_t)at * r->stride, r->base, r->meta + at, r->meta, r->stride,
                   depth - at, depth };
}

static inline void step(walk *w)
{
    w->data += w->stride, w->meta++;
    if (!--w->left)
        w->data = w->first_data, w->meta = w->first_meta, w->left = w->depth;
}

/* ---- laying out ------------------------------------------------------ */

static void read_none(gp_frame *fr, uint64_t first, int n)
{
    for (int j = 0; j < n; j++) {
        fr[j].index = first + (uint64_t)j, fr[j].status = GP_OK;
        fr[j].time_ns = 0, fr[j].name = NULL;
    }
}

/* Which frames, from the first input's metas: up to the first that has a hole. */
static int read_first(const gp_ringrt *r, gp_desk *d, uint64_t first, int n)
{
    gp_frame *fr = d->frame;
    int64_t *born_ns = d->born_ns;
    walk w = walk_from(r, first);
    for (int j = 0; j < n; j++, step(&w)) {
        if (w.meta->hole)
            return j;
        fr[j].index = first + (uint64_t)j, fr[j].status = GP_OK;
        fr[j].time_ns = w.meta->time_ns, fr[j].name = w.meta->name;
        born_ns[j] = w.meta->born_ns;
    }
    return n;
}

/* What another input's metas say. */
static int read_more(const gp_ringrt *r, gp_desk *d, uint64_t first, int n)
{
    walk w = walk_from(r, first);
    for (int j = 0; j < n; j++, step(&w)) {
        if (w.meta->hole)
            return j;
        if (!d->frame[j].name)
            d->frame[j].name = w.meta->name;
        if (w.meta->born_ns < d->born_ns[j])
            d->born_ns[j] = w.meta->born_ns;
    }
    return n;
}

/* Makes all types of frame j those of a whole frame. */
static void whole_types(const gp_actorrt *p, gp_desk *d, int j)
{
    const gp_stage *st = p->stage;
    for (int i = 0; i < st->nin + st->nout; i++) {
        const gp_portrt *port = &p->host->port[i];
        gp_view *v = &d->frame[j].in[i];
        if (port->type)
            *v = (gp_view){ .type = *port->type, .rows = port->type->dim[0],
                            .data = port->konst };
    }
    d->partial[j] = false;
}

static void lay_out_inputs(gp_actorrt *p, gp_desk *d, uint64_t first, int n)
{
    int ports = p->stage->nin + p->stage->nout;
    for (int i = 0; i < p->stage->nin; i++) {
        const gp_ringrt *r = p->host->port[i].ring;
        if (!r)
            continue;
        gp_view *v = d->view + i;
        bool *partial = d->partial;
        walk w = walk_from(r, first);
        for (int j = 0; j < n; j++, v += ports, step(&w)) {
            int64_t rows = w.meta->rows;
            v->data = w.data;
            v->type.dim[0] = rows;
            if (rows != v->rows)
                partial[j] = true;
        }
    }
}

static void lay_out_outputs(gp_actorrt *p, gp_desk *d, uint64_t first, int n)
{
    const gp_stage *st = p->stage;
    bool keep = st->keeps_slots || first >= p->host->cached;
    bool poison = p->run->options.poison && !keep;
    int ports = st->nin + st->nout;
    for (int o = 0; o < st->nout; o++) {
        const gp_portrt *port = &p->host->port[st->nin + o];
        gp_view *v = d->view + st->nin + o;
        walk w = walk_from(port->ring, first);
        for (int j = 0; j < n; j++, v += ports, step(&w)) {
            v->data = w.data;
            v->type.dim[0] = v->rows;
            v->fresh = !w.meta->touched;
        }
        for (int j = 0; (poison || st->zero) && j < n; j++) {
            v -= ports;
            if (poison)
                memset(v->data, 0xa5, port->bytes);
            if (st->zero && (v->fresh || !keep))
                memset(v->data, 0, port->bytes);
        }
    }
}

/* The types of a partial frame's outputs. */
static bool partial_types(const gp_actorrt *p, gp_frame *fr, gp_errs *errs)
{
    const gp_stage *st = p->stage;
    gp_type in[GP_MAXPORT], out[GP_MAXPORT];
    if (!st->nout)
        return true;
    for (int i = 0; i < st->nin; i++)
        in[i] = fr->in[i].type;
    if (!gp_partial_shape(p->run->graph, st, in, out, errs))
        return false;
    for (int o = 0; o < st->nout; o++)
        fr->out[o].type = out[o];
    return true;
}

int gp_desk_lay_out(gp_actorrt *p, gp_desk *d, uint64_t first, int n, gp_hole *hole,
                    gp_errs *errs)
{
    if (!p->nin)
        read_none(d->frame, first, n);
    for (int i = 0; i < p->nin; i++)
        n = i ? read_more(p->in[i].ring, d, first, n) : read_first(p->in[i].ring, d, first, n);
    *hole = n ? GP_WHOLE : gp_actor_meta(p, first).hole;
    for (int j = 0; j < n; j++)
        if (d->partial[j])
            whole_types(p, d, j);
    lay_out_inputs(p, d, first, n);
    lay_out_outputs(p, d, first, n);
    for (int j = 0; j < n; j++)
        if (d->partial[j] && !partial_types(p, &d->frame[j], errs)) {
            if (j)
                *errs = (gp_errs){ .n = 0 };   /* its turn comes after these */
            return j;
        }
    return n;
}

/* ---- signing --------------------------------------------------------- */

static size_t sign_output(gp_actorrt *p, gp_desk *d, int o, int n)
{
    const gp_portrt *port = &p->host->port[p->stage->nin + o];
    int ports = p->stage->nin + p->stage->nout;
    size_t all = port->bytes, row = port->row_bytes, bytes = 0;
    const gp_view *v = d->view + p->stage->nin + o;
    walk w = walk_from(port->ring, d->frame[0].index);
    for (int j = 0; j < n; j++, v += ports, step(&w)) {
        const gp_frame *fr = &d->frame[j];
        gp_hole hole = gp_hole_by(fr->status);
        int64_t rows = v->type.dim[0];
        if (hole || rows >= v->rows) {
            rows = v->rows;
            bytes += hole ? 0 : all;
        } else {
            size_t used = row * (size_t)rows;
            memset((char *)v->data + used, 0, all - used);
            bytes += used;
        }
        *w.meta = (gp_meta){ .rows = rows, .time_ns = fr->time_ns, .name = fr->name,
                             .hole = hole, .touched = true, .born_ns = d->born_ns[j] };
    }
    return bytes;
}

size_t gp_desk_sign(gp_actorrt *p, gp_desk *d, int n)
{
    const gp_stage *st = p->stage;
    size_t bytes = 0;
    for (int o = 0; o < st->nout; o++)
        bytes += sign_output(p, d, o, n);
    for (int i = 0; !st->nout && i < st->nin; i++) {
        size_t row = p->host->port[i].row_bytes;
        const gp_view *v = d->view + i;
        for (int j = 0; j < n && row; j++, v += st->nin)
            bytes += d->frame[j].status == GP_OK ? row * (size_t)v->type.dim[0] : 0;
    }
    return bytes;
}

void gp_desk_pass_hole(gp_actorrt *p, uint64_t f, gp_hole hole)
{
    gp_meta m = gp_actor_meta(p, f);
    m.hole = hole;
    for (int o = 0; o < p->nout; o++) {
        gp_meta *to = gp_meta_of(p->out[o], f);
        m.touched = to->touched;
        m.rows = p->out[o]->buffer->type.dim[0];
        *to = m;
    }
}
