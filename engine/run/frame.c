/* frame.c - what a frame is as it passes an actor, see frame.h.
 *
 * It follows from the metas of its inputs alone: a stage with a hole in some input does not
 * run, and its outputs are holes, the worst of them; a partial frame has the shapes that
 * shape() computes from its rows. On the device a frame without rows makes one without rows, or what the stage says
 * (gp_stage.none); its other sizes are those of a frame of one row, so that it fits where that fits. The next actor
 * sees nothing of a frame but the metas that are written here. */
#include "compile/loop.h"
#include "run/host.h"
#include "run/segment.h"
#include "run/slot_walk.h"

/* ---- by its inputs --------------------------------------------------- */

bool gp_frame_is_whole(const gp_actorrt *p, uint64_t f)
{
    for (int i = 0; i < p->nin; i++) {
        const gp_ringrt *r = p->in[i].ring;
        const gp_meta *m = gp_meta_of(r, f);
        if (m->hole || m->gaps || m->rows != r->buffer->type.dim[0])
            return false;
        if (r->type && !gp_type_same(&r->type[f % (uint64_t)r->ring->depth], &r->buffer->type))
            return false;
    }
    return true;
}

bool gp_frame_is_regular(const gp_actorrt *p, uint64_t f)
{
    return !p->segment->each_shape && gp_frame_is_whole(p, f);
}

static void take(gp_meta *m, const gp_meta *in, bool lead)
{
    if (lead)
        m->time_ns = in->time_ns;
    if (lead || in->age.born_ns < m->age.born_ns)
        m->age = in->age;
    if (!m->name)
        m->name = in->name, m->file = in->file;
}

gp_meta gp_frame_meta(const gp_actorrt *p, uint64_t f)
{
    gp_meta m = { .hole = GP_NO_HOLE };
    int lead = gp_lead_input(p);
    for (int i = 0; i < p->nin; i++) {
        const gp_meta *in = gp_meta_of(p->in[i].ring, f);
        m.hole = gp_worse_hole(m.hole, in->hole);
        if (!p->in[i].ring->buffer->carried || i == lead)
            take(&m, in, i == lead);
    }
    return m;
}

gp_meta gp_frame_meta_of(const gp_actorrt *p, uint64_t f, int buffer)
{
    const int *from = p->segment && p->seg->from ? p->seg->from[buffer] : NULL;
    gp_meta m = { .hole = GP_NO_HOLE };
    if (!from)
        return gp_frame_meta(p, f);
    for (int i = 0; from[i] >= 0; i++)
        take(&m, gp_meta_of(p->in[from[i]].ring, f), i == 0);
    return m;
}

/* ---- in a segment ---------------------------------------------------- */

void gp_frame_set_whole(gp_actorrt *p)
{
    for (int b = 0; b < p->run->graph->nbuffers; b++) {
        p->seg->type[b] = p->run->graph->buffer[b].type;
        p->seg->hole[b] = GP_NO_HOLE;
        p->seg->gaps[b] = 0;
    }
}

gp_hole gp_frame_stage_hole(const gp_segmentrt *s, const gp_stage *st)
{
    return s->hole[st->out[0]];
}

static gp_hole hole_of_inputs(const gp_segmentrt *s, const gp_stage *st)
{
    gp_hole hole = GP_NO_HOLE;
    for (int i = 0; i < st->nin && !gp_stage_circles_back(st); i++)     /* what that takes is of another frame */
        if (st->in[i] >= 0)
            hole = gp_worse_hole(hole, s->hole[st->in[i]]);
    return hole;
}

bool gp_frame_stage_is_empty(const gp_segmentrt *s, const gp_taskrt *part)
{
    bool never = gp_stage_circles_back(part->stage) || gp_stage_loop(part->stage);     /* a loop's own stages are asked */
    for (int i = 0; i < part->stage->nin && !never; i++)
        if (part->task->in[i] >= 0 && !s->type[part->stage->in[i]].dim[0])
            return true;
    return false;
}

/* A frame of `b` that stands beside an absent row is lost there, but where it is held for other rows, or another rank
 * has them all. */
static void drop_beside(const gp_actorrt *p, const gp_buffer *b, uint64_t f)
{
    if (!p->elsewhere && !gp_is_const(b) && !b->carried && !b->follows)
        gp_buffer_hole(p->run, b, f, GP_HOLE_DROPPED);
}

/* Does a part before the i-th read the buffer? */
static bool is_read_before(const gp_segmentrt *s, int i, int buffer)
{
    bool is = false;
    for (int j = 0; j < i; j++)
        for (int k = 0; s->part[j].stage && k < s->part[j].stage->nin; k++)
            is |= s->part[j].stage->in[k] == buffer;
    return is;
}

/* What is carried has as many rows as the input beside it has of the first stage that reads it, if there is one. */
static void shorten_carried(gp_segmentrt *s, const gp_graph *g, int part)
{
    const gp_stage *st = s->part[part].stage;
    int lead = 0;
    while (lead < st->nin && (st->in[lead] < 0 || gp_is_const(&g->buffer[st->in[lead]]) || g->buffer[st->in[lead]].carried))
        lead++;
    const gp_buffer *by = lead < st->nin ? &g->buffer[st->in[lead]] : NULL;
    for (int k = 0; k < st->nin && by && !(by->varies & 1); k++) {
        const gp_buffer *b = st->in[k] < 0 ? by : &g->buffer[st->in[k]];
        if (b->carried && !b->state && by->type.dim[0] == b->type.dim[0] && !is_read_before(s, part, st->in[k]))
            s->type[st->in[k]].dim[0] = s->type[st->in[lead]].dim[0];
    }
}

bool gp_frame_set_irregular(gp_actorrt *p, uint64_t f, bool failed, gp_errs *errs)
{
    gp_segmentrt *s = p->seg;
    bool ok = true, undone = false;
    for (int i = 0; i < p->nin; i++) {
        const gp_ringrt *r = p->in[i].ring;
        s->type[r->ring->buffer] = gp_type_of(r, f);
        if (r->buffer->carried)
            s->type[r->ring->buffer].dim[0] = gp_carried_rows(p, r->buffer, f);
        s->gaps[r->ring->buffer] = gp_meta_of(r, f)->gaps;
        s->hole[r->ring->buffer] = failed ? GP_HOLE_FAILED : gp_meta_of(r, f)->hole;
        undone |= s->hole[r->ring->buffer] == GP_HOLE_UNDONE;
    }
    s->undone += undone;
    for (int i = 0; i < s->nparts; i++) {
        const gp_stage *st = s->part[i].stage;
        gp_type in[GP_MAXPORT] = { { 0 } }, out[GP_MAXPORT];
        uint64_t gaps[GP_MAXPORT] = { 0 }, made[GP_MAXPORT] = { 0 };
        if (!st)
            continue;
        gp_hole hole = undone && st->states ? GP_HOLE_UNDONE : hole_of_inputs(s, st);
        shorten_carried(s, p->run->graph, i);
        bool empty = gp_frame_stage_is_empty(s, &s->part[i]);
        for (int k = 0; k < st->nin; k++) {
            if (st->in[k] >= 0)
                in[k] = s->type[st->in[k]], gaps[k] = s->gaps[st->in[k]];
        }
        if (!hole && !((empty ? gp_shape_of_none(p->run->graph, st, in, out, errs)
                              : gp_partial_shape(p->run->graph, st, in, out, errs))
                       && gp_gaps_pass(p->run->graph, st, in, gaps, out, made, errs)))
            hole = GP_HOLE_FAILED, ok = false;
        for (int k = 0; hole == GP_HOLE_ABSENT && k < st->nin; k++)
            if (st->in[k] >= 0 && !s->hole[st->in[k]])
                drop_beside(p, &p->run->graph->buffer[st->in[k]], f);
        if (gp_stage_circles_back(st))
            out[0].dim[0] = gp_carried_rows(p, &p->run->graph->buffer[st->out[0]], f);
        for (int k = 0; k < st->nout; k++) {
            if (!hole && !p->run->graph->buffer[st->out[k]].state)         /* a state is whole in any frame */
                s->type[st->out[k]] = out[k];
            s->hole[st->out[k]] = hole, s->gaps[st->out[k]] = made[k];
        }
    }
    return ok;
}

bool gp_frame_needs_device(const gp_actorrt *p)
{
    const gp_segmentrt *s = p->seg;
    for (int i = 0; i < s->nparts; i++)
        if (s->part[i].stage
            && (gp_stage_takes_turns(s->part[i].stage) || s->part[i].carriers || !gp_frame_stage_hole(s, s->part[i].stage)))
            return true;
    return false;
}

void gp_frame_write_infos(gp_actorrt *p, uint64_t f)
{
    const gp_segmentrt *s = p->seg;
    for (int i = 0; p->segment->info_host >= 0 && i < s->nparts; i++) {
        const gp_taskrt *part = &s->part[i];
        if (!part->stage || !part->stage->frame_info)
            continue;
        int64_t rows = 0;
        for (int k = part->stage->nin - 1; k >= 0; k--)
            if (part->task->in[k] >= 0 && (part->stage->carried || !p->run->graph->buffer[part->stage->in[k]].carried))
                rows = s->type[part->stage->in[k]].dim[0];
        *gp_info_of(p, p->segment->info_host, part, f) =
            (gp_frame_info){ .index = gp_actor_number(p, f), .valid = (uint32_t)rows,
                             .time_ns = gp_frame_meta_of(p, f, part->stage->out[0]).time_ns };
    }
}

void gp_frame_write_metas(gp_actorrt *p, uint64_t f)
{
    const gp_segmentrt *s = p->seg;
    for (int o = 0; o < p->nout; o++) {
        gp_ringrt *r = p->out[o];
        gp_meta m = gp_frame_meta_of(p, f, r->ring->buffer);
        m.hole = s->hole[r->ring->buffer], m.gaps = s->gaps[r->ring->buffer];
        *gp_meta_of(r, f) = m;
        gp_set_type(r, f, &s->type[r->ring->buffer]);
    }
    if (p->run->graph->nmetadata)
        gp_numbers_pass(p, f);
}

/* ---- in a host stage ------------------------------------------------- */

bool gp_frame_set_partial(const gp_actorrt *p, gp_frame *fr, gp_errs *errs)
{
    const gp_stage *st = p->stage;
    gp_type in[GP_MAXPORT], out[GP_MAXPORT];
    for (int i = 0; i < st->nin; i++)
        in[i] = fr->in[i].type;
    if (st->nout && !gp_partial_shape(p->run->graph, st, in, out, errs))
        return false;
    for (int o = 0; o < st->nout; o++)
        fr->out[o].type = out[o];
    return gp_gaps_pass_host(p, fr, (uint64_t[GP_MAXPORT]){ 0 }, errs);
}

/* Writes the gaps of frame `fr`, which is partial, into the metas of its outputs. */
static void write_gaps(gp_actorrt *p, const gp_frame *fr)
{
    uint64_t made[GP_MAXPORT];
    gp_gaps_pass_host(p, fr, made, NULL);      /* its inputs go together, as was seen before it ran */
    for (int o = 0; o < p->stage->nout; o++)
        gp_meta_of(p->host->port[p->stage->nin + o].ring, fr->index)->gaps = gp_hole_by(fr->status) ? 0 : made[o];
}

static size_t write_output_metas(gp_actorrt *p, gp_worker_view *view, int o, int n)
{
    const gp_portrt *port = &p->host->port[p->stage->nin + o];
    int ports = p->stage->nin + p->stage->nout;
    size_t all = port->bytes, row = port->row_bytes, bytes = 0;
    const gp_view *v = view->view + p->stage->nin + o;
    gp_walk w = gp_walk_from(port->ring, view->frame[0].index);
    for (int j = 0; j < n; j++, v += ports, gp_walk_on(&w)) {
        const gp_frame *fr = &view->frame[j];
        gp_hole hole = gp_hole_by(fr->status);
        int64_t rows = v->type.dim[0];
        if (port->ring->type) {
            gp_type *t = &port->ring->type[w.meta - port->ring->meta];
            *t = hole ? *port->type : v->type;
            rows = t->dim[0];
            bytes += hole ? 0 : gp_bytes(t);
        } else if (hole || rows >= v->rows) {
            rows = v->rows;
            bytes += hole ? 0 : all;
        } else {
            size_t used = row * (size_t)rows;
            gp_host_fill(p, view, (char *)v->data + used, 0, all - used);
            bytes += used;
        }
        if (view->numbers && fr->index < p->host->cached)
            gp_numbers_write(port->ring, fr->index, &view->numbers[j]);
        *w.meta = (gp_meta){ .rows = rows, .time_ns = fr->time_ns, .name = fr->name, .file = view->file[j],
                             .hole = hole, .gaps = view->partial[j] ? w.meta->gaps : 0, .touched = true, .age = view->age[j] };
    }
    return bytes;
}

size_t gp_frames_write_metas(gp_actorrt *p, gp_worker_view *view, int n)
{
    const gp_stage *st = p->stage;
    size_t bytes = 0;
    for (int j = 0; j < n; j++)
        if (view->partial[j])
            write_gaps(p, &view->frame[j]);
    for (int o = 0; o < st->nout; o++)
        bytes += write_output_metas(p, view, o, n);
    for (int i = 0; !st->nout && i < st->nin; i++) {
        size_t row = p->host->port[i].row_bytes;
        const gp_view *v = view->view + i;
        for (int j = 0; j < n && row; j++, v += st->nin)
            if (view->frame[j].status == GP_OK)
                bytes += p->host->port[i].ring && p->host->port[i].ring->type ? gp_bytes(&v->type)
                       : row * (size_t)v->type.dim[0];
    }
    return bytes;
}

void gp_frame_write_hole(gp_actorrt *p, uint64_t f, gp_hole hole)
{
    for (int i = 0; hole == GP_HOLE_ABSENT && i < p->nin; i++)
        if (!gp_meta_of(p->in[i].ring, f)->hole)
            drop_beside(p, p->in[i].ring->buffer, f);
    for (int o = 0; o < p->nout; o++) {
        gp_meta *to = gp_meta_of(p->out[o], f), m = gp_frame_meta_of(p, f, p->out[o]->ring->buffer);
        m.hole = hole, m.touched = to->touched;
        *to = m;
        gp_set_type(p->out[o], f, &p->out[o]->buffer->type);
    }
}
