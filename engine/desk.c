/* desk.c - what a worker of a host stage has before it: views of the slots of a run
 * of frames, for the kind's code, and the metas that go on with what it made.
 *
 * A view's type is that of a whole frame, except in frames marked partial; so a
 * whole frame costs little more than its addresses. Ports are the outer loops: their
 * slots lie one after the other. */
#include <string.h>
#include "host.h"

void gp_desk_init(gp_partyrt *p, gp_desk *d, int max)
{
    const gp_stage *st = p->stage;
    gp_arena *a = &p->run->arena;
    int ports = st->nin + st->nout;
    d->frame = GP_NEW(a, gp_frame, max);
    d->view = GP_NEW(a, gp_view, max * ports + 1);
    d->born_ns = GP_NEW(a, int64_t, max);
    d->partial = GP_NEW(a, bool, max);
    for (int j = 0; j < max; j++) {
        d->frame[j].in = d->view + j * ports;
        d->frame[j].out = d->frame[j].in + st->nin;
        d->partial[j] = true;          /* nothing is in its views yet */
    }
}

/* ---- laying out ------------------------------------------------------ */

static void read_none(gp_desk *d, uint64_t first, int n)
{
    for (int j = 0; j < n; j++) {
        gp_frame *fr = &d->frame[j];
        fr->index = first + (uint64_t)j, fr->status = GP_OK;
        fr->time_ns = 0, fr->name = NULL;
    }
}

/* Which frames, from the first input's metas: up to the first that has a hole. */
static int read_first(const gp_ringrt *r, gp_desk *d, uint64_t first, int n)
{
    uint64_t depth = (uint64_t)r->ring->depth, s = first % depth;
    for (int j = 0; j < n; j++) {
        const gp_meta *m = &r->meta[s];
        gp_frame *fr = &d->frame[j];
        if (m->hole)
            return j;
        fr->index = first + (uint64_t)j, fr->status = GP_OK;
        fr->time_ns = m->time_ns, fr->name = m->name;
        d->born_ns[j] = m->born_ns;
        s = s + 1 < depth ? s + 1 : 0;
    }
    return n;
}

/* What another input's metas say. */
static int read_more(const gp_ringrt *r, gp_desk *d, uint64_t first, int n)
{
    uint64_t depth = (uint64_t)r->ring->depth, s = first % depth;
    for (int j = 0; j < n; j++) {
        const gp_meta *m = &r->meta[s];
        if (m->hole)
            return j;
        if (!d->frame[j].name)
            d->frame[j].name = m->name;
        if (m->born_ns < d->born_ns[j])
            d->born_ns[j] = m->born_ns;
        s = s + 1 < depth ? s + 1 : 0;
    }
    return n;
}

/* Makes all types of frame j those of a whole frame. */
static void whole_types(const gp_partyrt *p, gp_desk *d, int j)
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

static void lay_out_inputs(gp_partyrt *p, gp_desk *d, uint64_t first, int n)
{
    for (int i = 0; i < p->stage->nin; i++) {
        const gp_ringrt *r = p->host->port[i].ring;
        if (!r)
            continue;
        uint64_t depth = (uint64_t)r->ring->depth, s = first % depth;
        for (int j = 0; j < n; j++) {
            gp_view *v = &d->frame[j].in[i];
            v->data = r->base + s * r->stride;
            v->type.dim[0] = r->meta[s].rows;
            if (v->type.dim[0] != v->rows)
                d->partial[j] = true;
            s = s + 1 < depth ? s + 1 : 0;
        }
    }
}

static void lay_out_outputs(gp_partyrt *p, gp_desk *d, uint64_t first, int n)
{
    const gp_stage *st = p->stage;
    bool keep = st->keeps_slots || first >= p->host->cached;
    bool poison = p->run->options.poison && !keep;
    for (int o = 0; o < st->nout; o++) {
        const gp_portrt *port = &p->host->port[st->nin + o];
        const gp_ringrt *r = port->ring;
        uint64_t depth = (uint64_t)r->ring->depth, s = first % depth;
        for (int j = 0; j < n; j++) {
            gp_view *v = &d->frame[j].out[o];
            v->data = r->base + s * r->stride;
            v->type.dim[0] = v->rows;
            v->fresh = !r->meta[s].touched;
            s = s + 1 < depth ? s + 1 : 0;
        }
        for (int j = 0; (poison || st->zero) && j < n; j++) {
            gp_view *v = &d->frame[j].out[o];
            if (poison)
                memset(v->data, 0xa5, port->bytes);
            if (st->zero && (v->fresh || !keep))
                memset(v->data, 0, port->bytes);
        }
    }
}

/* The types of a partial frame's outputs. */
static bool partial_types(const gp_partyrt *p, gp_frame *fr, gp_errs *errs)
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

int gp_desk_lay_out(gp_partyrt *p, gp_desk *d, uint64_t first, int n, gp_hole *hole,
                    gp_errs *errs)
{
    if (!p->nin)
        read_none(d, first, n);
    for (int i = 0; i < p->nin; i++)
        n = i ? read_more(p->in[i].ring, d, first, n) : read_first(p->in[i].ring, d, first, n);
    *hole = n ? GP_WHOLE : gp_party_meta(p, first).hole;
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

static size_t sign_output(gp_partyrt *p, gp_desk *d, int o, int n)
{
    const gp_portrt *port = &p->host->port[p->stage->nin + o];
    gp_ringrt *r = port->ring;
    uint64_t depth = (uint64_t)r->ring->depth, s = d->frame[0].index % depth;
    size_t bytes = 0;
    for (int j = 0; j < n; j++) {
        const gp_frame *fr = &d->frame[j];
        const gp_view *v = &fr->out[o];
        gp_hole hole = gp_hole_by(fr->status);
        int64_t rows = hole || v->type.dim[0] > v->rows ? v->rows : v->type.dim[0];
        size_t used = port->row_bytes * (size_t)rows;
        if (rows < v->rows)
            memset((char *)v->data + used, 0, port->bytes - used);
        if (!hole)
            bytes += used;
        r->meta[s] = (gp_meta){ .rows = rows, .time_ns = fr->time_ns, .name = fr->name,
                                .hole = hole, .touched = true, .born_ns = d->born_ns[j] };
        s = s + 1 < depth ? s + 1 : 0;
    }
    return bytes;
}

size_t gp_desk_sign(gp_partyrt *p, gp_desk *d, int n)
{
    const gp_stage *st = p->stage;
    size_t bytes = 0;
    for (int o = 0; o < st->nout; o++)
        bytes += sign_output(p, d, o, n);
    for (int i = 0; !st->nout && i < st->nin; i++)
        for (int j = 0; j < n && p->host->port[i].type; j++)
            if (d->frame[j].status == GP_OK)
                bytes += p->host->port[i].row_bytes * (size_t)d->frame[j].in[i].type.dim[0];
    return bytes;
}

void gp_desk_pass_hole(gp_partyrt *p, uint64_t f, gp_hole hole)
{
    gp_meta m = gp_party_meta(p, f);
    m.hole = hole;
    for (int o = 0; o < p->nout; o++) {
        gp_meta *to = gp_meta_of(p->out[o], f);
        m.touched = to->touched;
        m.rows = p->out[o]->buffer->type.dim[0];
        *to = m;
    }
}
