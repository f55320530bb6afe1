/* worker_view.c - what a worker of a host stage sees of a run of frames: views of their
 * slots, for the kind's code.
 *
 * A view's type is that of a whole frame, except in frames marked partial; so a
 * whole frame costs little more than its addresses. Ports are the outer loops: their
 * slots lie one after the other. */
#include <string.h>
#include "run/host.h"
#include "run/slot_walk.h"

void gp_worker_view_init(gp_actorrt *p, gp_worker_view *wv, int max)
{
    const gp_stage *st = p->stage;
    gp_arena *a = &p->run->arena;
    int ports = st->nin + st->nout;
    wv->frame = GP_NEW_LINES(a, gp_frame, max);
    wv->view = GP_NEW_LINES(a, gp_view, max * ports + 1);
    wv->age = GP_NEW_LINES(a, gp_age, max);
    wv->file = GP_NEW_LINES(a, const char *, max);
    wv->partial = GP_NEW_LINES(a, bool, max);
    if (p->run->graph->nmetadata)
        wv->numbers = GP_NEW_LINES(a, gp_numbers, max);
    for (int j = 0; j < max; j++) {
        wv->frame[j].in = wv->view + j * ports;
        wv->frame[j].out = wv->frame[j].in + st->nin;
        wv->partial[j] = true;          /* nothing is in its views yet */
    }
    gp_host_unwritten_init(p, wv);
    gp_host_kept_init(p, wv);
}

/* ---- laying out ------------------------------------------------------ */

static void read_none(gp_worker_view *wv, uint64_t first, int n)
{
    gp_frame *fr = wv->frame;
    for (int j = 0; j < n; j++) {
        fr[j].index = first + (uint64_t)j, fr[j].status = GP_OK;
        fr[j].time_ns = 0, fr[j].name = wv->file[j] = NULL;
        wv->age[j].born_ns = 0;
    }
}

/* Which frames, from the metas of the input that says when they were: up to the first that has a hole. */
static int read_first(const gp_ringrt *r, gp_worker_view *wv, uint64_t first, int n)
{
    gp_frame *fr = wv->frame;
    gp_age *age = wv->age;
    gp_walk w = gp_walk_from(r, first);
    for (int j = 0; j < n; j++, gp_walk_on(&w)) {
        if (w.meta->hole)
            return j;
        fr[j].index = first + (uint64_t)j, fr[j].status = GP_OK;
        fr[j].time_ns = w.meta->time_ns, fr[j].name = w.meta->name, wv->file[j] = w.meta->file;
        age[j] = w.meta->age;
    }
    return n;
}

/* What another input's metas say. */
static int read_more(const gp_ringrt *r, gp_worker_view *wv, uint64_t first, int n)
{
    gp_walk w = gp_walk_from(r, first);
    for (int j = 0; j < n; j++, gp_walk_on(&w)) {
        if (w.meta->hole)
            return j;
        if (!wv->frame[j].name && !r->buffer->carried)
            wv->frame[j].name = w.meta->name, wv->file[j] = w.meta->file;
        if (w.meta->age.born_ns < wv->age[j].born_ns)
            wv->age[j] = w.meta->age;
    }
    return n;
}

/* A frame that another rank has, of a stage that needs it of that one alone. */
static void read_absent(const gp_actorrt *p, gp_worker_view *wv, uint64_t first)
{
    gp_meta m = gp_frame_meta(p, first);
    wv->frame->index = first, wv->frame->status = GP_OK;
    wv->frame->time_ns = m.time_ns, wv->frame->name = m.name, *wv->file = m.file;
    *wv->age = m.age;
}

/* Makes all types of frame j those of a whole frame. */
static void whole_types(const gp_actorrt *p, gp_worker_view *wv, int j)
{
    const gp_stage *st = p->stage;
    for (int i = 0; i < st->nin + st->nout; i++) {
        const gp_portrt *port = &p->host->port[i];
        gp_view *v = &wv->frame[j].in[i];
        if (port->type)
            *v = (gp_view){ .type = *port->type, .rows = port->type->dim[0],
                            .data = port->konst };
    }
    wv->partial[j] = false;
}

static void lay_out_inputs(gp_actorrt *p, gp_worker_view *wv, uint64_t first, int n)
{
    int ports = p->stage->nin + p->stage->nout;
    for (int i = 0; i < p->stage->nin; i++) {
        const gp_ringrt *r = p->host->port[i].ring;
        if (!r)
            continue;
        gp_view *v = wv->view + i;
        bool *partial = wv->partial;
        gp_walk w = gp_walk_from(r, first);
        for (int j = 0; j < n; j++, v += ports, gp_walk_on(&w)) {
            int64_t rows = r->buffer->carried ? gp_carried_rows(p, r->buffer, first + (uint64_t)j) : w.meta->rows;
            v->data = w.data;
            v->type.dim[0] = rows;
            if (r->type)
                v->type = r->type[w.meta - r->meta];
            if (rows != v->rows || (r->type && !gp_type_same(&v->type, &r->buffer->type)))
                partial[j] = true;
        }
    }
}

static void lay_out_outputs(gp_actorrt *p, gp_worker_view *wv, uint64_t first, int n)
{
    const gp_stage *st = p->stage;
    bool keep = st->keeps_slots || first >= p->host->cached;
    bool poison = p->run->options.poison && !keep;
    int ports = st->nin + st->nout;
    for (int o = 0; o < st->nout; o++) {
        const gp_portrt *port = &p->host->port[st->nin + o];
        gp_view *v = wv->view + st->nin + o;
        gp_walk w = gp_walk_from(port->ring, first);
        for (int j = 0; j < n; j++, v += ports, gp_walk_on(&w)) {
            v->data = w.data;
            v->type.dim[0] = v->rows;
            if (port->ring->type)
                v->type = *port->type;
            v->fresh = !w.meta->touched;
        }
        for (int j = 0; (poison || st->zero) && j < n; j++) {
            v -= ports;
            if (poison)
                gp_host_fill(p, wv, v->data, gp_poison(v->type.dtype), port->bytes);
            if (st->zero && (v->fresh || !keep))
                gp_host_fill(p, wv, v->data, 0, port->bytes);
        }
    }
}

/* How many frames are in time, before the first that is older than the stage takes. */
static int in_time(const gp_actorrt *p, gp_worker_view *wv, uint64_t first, int n)
{
    int64_t since = gp_now_ns() - p->stage->deadline_ns;
    int i = 0;
    while (i < n && (!wv->age[i].born_ns || wv->age[i].born_ns >= since))
        i++;
    if (wv->judged == first + 1)
        return wv->late ? 0 : i ? i : 1;
    wv->judged = first + 1, wv->late = !i;
    return i;
}

int gp_worker_view_lay_out(gp_actorrt *p, gp_worker_view *wv, uint64_t first, int n,
                           gp_hole *hole, gp_errs *errs)
{
    if (!p->nin)
        read_none(wv, first, n);
    int lead = gp_lead_input(p);
    if (p->nin)
        n = read_first(p->in[lead].ring, wv, first, n);
    for (int i = 0; i < p->nin; i++)
        n = i == lead ? n : read_more(p->in[i].ring, wv, first, n);
    bool there = n;
    if (there && p->stage->deadline_ns && !p->run->options.no_sinks)
        n = in_time(p, wv, first, n);
    *hole = n ? GP_NO_HOLE : there ? GP_HOLE_LATE : gp_frame_meta(p, first).hole;
    bool absent = *hole == GP_HOLE_ABSENT && p->stage->from_rank;
    if (absent)
        read_absent(p, wv, first), *hole = GP_NO_HOLE, n = 1;
    if (wv->numbers)
        gp_numbers_lay_out(p, wv, first, n);
    bool plain = !memchr(wv->partial, true, (size_t)n);
    for (int j = 0; !plain && j < n; j++)
        if (wv->partial[j])
            whole_types(p, wv, j);
    lay_out_inputs(p, wv, first, n);
    for (int i = 0; absent && i < p->stage->nin; i++)
        wv->frame->in[i].data = NULL;
    lay_out_outputs(p, wv, first, n);
    wv->looks = wv->keeps = false;
    plain = !wv->unwritten && !wv->kept && !memchr(wv->partial, true, (size_t)n);
    for (int j = 0; !plain && j < n; j++) {
        if (wv->partial[j] && !gp_frame_set_partial(p, &wv->frame[j], errs)) {
            if (j)
                *errs = (gp_errs){ .at = errs->at };   /* its turn comes after these */
            return j;
        }
        bool asks = wv->unwritten && gp_host_unwritten_asks(p, wv, &wv->frame[j]);
        bool keeps = wv->kept && gp_host_kept_asks(p, wv, &wv->frame[j]);
        if ((asks || keeps) && j)
            return j;
        if (asks)
            gp_host_unwritten_fill(p, wv), wv->looks = true;
        if (keeps)
            gp_host_kept_keep(p, wv), wv->keeps = true;
        if (asks || keeps)
            return 1;
    }
    return n;
}
