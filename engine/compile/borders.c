/* borders.c - a stage that only changes the type of elements runs on the side where the smaller frames cross.
 *
 * An elementwise kind that has run(), too, gives the same bits on either side. Its stages run on the device, unless it
 * makes fewer bytes cross that they do not: what is cast to a smaller type right behind its copy in, or to a larger one
 * right before its copy out, crosses in the smaller type. `on: device` keeps a stage there. */
#include "compile/plan.h"
#include "compile/resolve.h"

static bool is_read(const gp_graph *g, const gp_buffer *b, const gp_stage *but, bool device)
{
    for (int u = 0; u < b->nuse; u++)
        if (&g->stage[b->use[u].stage] != but && g->stage[b->use[u].stage].device == device)
            return true;
    return false;
}

/* What regroups frames, or carries them, does it where its input is. */
static bool may_move(const gp_graph *g, const gp_stage *s)
{
    if (!s->device || gp_node_get(s->node, "on") || !s->kind->elementwise || !s->kind->run || s->nin != 1 || s->nout != 1 || s->zero
        || s->cycle || s->carried)
        return false;
    const gp_buffer *in = &g->buffer[s->in[0]], *out = &g->buffer[s->out[0]];
    if (gp_is_const(in) || g->stage[in->producer.stage].fills_device || gp_is_carry(&g->stage[in->producer.stage]))
        return false;
    for (int u = 0; u < out->nuse; u++)
        if (g->stage[out->use[u].stage].regroups || gp_is_carry(&g->stage[out->use[u].stage])
            || g->stage[out->use[u].stage].reads_device)
            return false;
    return true;
}

/* Bytes of a frame that cross on either side of the stage, were it there. */
static size_t crossing(const gp_graph *g, const gp_stage *s, bool device)
{
    const gp_buffer *in = &g->buffer[s->in[0]], *out = &g->buffer[s->out[0]];
    bool made = g->stage[in->producer.stage].device;
    bool goes_in = made ? !device || is_read(g, in, s, false) : device || is_read(g, in, s, true);
    bool goes_out = is_read(g, out, s, !device);
    return gp_size_add(goes_in ? gp_bytes(&in->type) : 0, goes_out ? gp_bytes(&out->type) : 0);
}

static void look_at(gp_graph *g, gp_stage *s)
{
    if (!may_move(g, s))
        return;
    size_t there = crossing(g, s, true), here = crossing(g, s, false);
    if (here >= there)
        return;
    s->device = false, s->spares = there - here, s->workers_auto = true;
}

void gp_place_casts(gp_graph *g)
{
    if (!g->ndevices)
        return;
    for (int v = 0; v < g->nstages; v++)       /* from what comes in, */
        look_at(g, &g->stage[v]);
    for (int v = g->nstages - 1; v >= 0; v--)  /* ... and from what goes out */
        look_at(g, &g->stage[v]);
}
