/* picture.c - see picture.h. A buffer is drawn where it is made: on the host, or in
 * the segment that makes it; a copy in its segment, between the buffer and those that
 * read it on the other side; a constant in the segment of its readers if they are all in
 * one. Segments are convex, so they can be drawn as boxes in a graph without cycles: edges that close one are turned
 * round.
 * What was measured is a note at whatever it was measured of. */
#include <string.h>
#include "draw/picture.h"
#include "draw/dump.h"

typedef struct build {
    gp_arena *arena;
    gp_picture pic;
    int *segment;              /* of each stage, -1: none */
    int *first_ring;           /* of each buffer: its rings are neighbors */
    int *stage_node, *buffer_node;
    int *ring_node;            /* whom one reads it from; -1: no one yet */
    int *reader, readers_cap;  /* of each node: who reads it, as far as known, + 1 */
} build;

static int new_node(build *b, gp_pic_node n)
{
    int readers = b->pic.nnodes;
    n.note = n.note ? n.note : "";
    *GP_PUSH(b->arena, b->reader, readers, b->readers_cap) = 0;
    *GP_PUSH(b->arena, b->pic.node, b->pic.nnodes, b->pic.nodes_cap) = n;
    return b->pic.nnodes - 1;
}

static void new_edge(build *b, int from, int to)
{
    if (from < 0 || b->reader[from] == to + 1)
        return;
    b->reader[from] = to + 1;
    *GP_PUSH(b->arena, b->pic.edge, b->pic.nedges, b->pic.edges_cap) = (gp_pic_edge){ from, to, false };
}

/* ---- nodes ----------------------------------------------------------- */

static int stage_node(build *b, int stage)
{
    const gp_stage *s = &b->pic.graph->stage[stage];
    bool named = strcmp(s->name, s->kind->name) != 0, many = s->workers > 1 && !s->device;
    const char *what = named ? s->kind->name : "";
    char note[64], does[GP_REGROUP_TEXT];
    if (many)
        what = gp_format(b->arena, "%s%s%d workers", what, named ? ", " : "", s->workers);
    if (gp_is_carry(s))
        what = gp_format(b->arena, "%s of the frame before", gp_buffer_shown(&b->pic.graph->buffer[s->in[0]]));
    else if (*gp_stage_note(s, does))
        what = gp_format(b->arena, "%s%s%s", what, *what ? ", " : "", does);
    gp_time time = b->pic.measured ? b->pic.measured->stage[stage] : GP_NO_TIME;
    return new_node(b, (gp_pic_node){
        .kind = s->device ? GP_PIC_DEVICE : GP_PIC_HOST, .segment = b->segment[stage],
        .name = s->name, .what = what, .size = "", .busy = time.busy,
        .note = gp_strdup(b->arena, gp_time_text(b->pic.measured, time, note)),
        .more = gp_format(b->arena, "stage %s: %s", s->name, s->kind->help) });
}

/* ", on host (pinned) and in segment 0" */
static const char *places(const build *b, int buffer)
{
    const gp_plan *p = b->pic.plan;
    const char *text = "", *sep = ", ";
    char place[24];
    for (int i = p ? b->first_ring[buffer] : -1; i >= 0 && i < p->nrings; i++, sep = " and ") {
        const gp_ring *r = &p->ring[i];
        if (r->buffer != buffer)
            break;
        if (r->segment >= 0)
            text = gp_format(b->arena, "%s%sin segment %d%s", text, sep, r->segment, p->pool[r->pool].managed
                             ? " (managed)" : "");
        else
            text = gp_format(b->arena, "%s%son %s%s", text, sep, gp_place_text(p, r->place, place),
                             p->pool[r->pool].managed ? " (managed)" : p->pool[r->pool].pinned ? " (pinned)" : "");
    }
    return text;
}

static void buffer_node(build *b, int buffer)
{
    const gp_buffer *f = &b->pic.graph->buffer[buffer];
    bool konst = f->producer.stage < 0;
    char size[24], type[GP_BOUNDS_TEXT], text[32];
    gp_size_text(gp_bytes(&f->type), size);
    gp_pic_node n = {
        .kind = konst ? GP_PIC_CONST : GP_PIC_BUFFER, .segment = -1, .depth = f->depth,
        .busy = -1, .full = -1,
        .name = f->name, .what = gp_strdup(b->arena, gp_bounds_text(&f->type, f->varies, type)) };
    if (b->pic.plan && b->first_ring[buffer] >= 0)
        n.depth = b->pic.plan->ring[b->first_ring[buffer]].depth;
    bool beside = f->in_prologue || f->maker.stage >= 0;
    for (int u = 0; konst && !beside && u < f->nuse; u++) {
        int segment = b->segment[f->use[u].stage];
        n.segment = u && n.segment != segment ? -1 : segment;
        if (n.segment < 0)
            break;
    }
    if (konst) {
        n.size = gp_strdup(b->arena, size);
        n.more = gp_format(b->arena, "constant %s: %s, %s, from %s", n.name, n.what, size,
                           gp_const_text(f, text));
    } else {
        n.segment = b->segment[f->producer.stage];
        n.size = gp_format(b->arena, "%d × %s", n.depth, size);
        n.more = gp_format(b->arena, "buffer %s: %s, depth %d, %s a frame%s", n.name, n.what,
                           n.depth, size, places(b, buffer));
    }
    double held = b->pic.measured && !konst ? b->pic.measured->held[buffer] : -1;
    if (held >= 0) {
        n.full = held < n.depth ? held / n.depth : 1;
        n.note = gp_format(b->arena, "%.1f of %d in use", held, n.depth);
    }
    b->buffer_node[buffer] = new_node(b, n);
}

/* ---- edges ----------------------------------------------------------- */

static void inputs(build *b, int node, const int *ring, int n)
{
    for (int i = 0; i < n; i++)
        if (ring[i] >= 0)
            new_edge(b, b->ring_node[ring[i]], node);
}

static void copy_task(build *b, const gp_task *t)
{
    char size[24], note[64];
    const char *way = t->op == GP_TASK_COPY_IN ? "copy in" : t->op == GP_TASK_COPY_PEER ? "peer copy" : "copy out";
    const gp_measured *m = b->pic.measured;
    gp_time time = !m ? GP_NO_TIME
        : t->op == GP_TASK_COPY_IN ? m->copy_in : t->op == GP_TASK_COPY_PEER ? m->copy_peer : m->copy_out;
    gp_size_text(gp_copy_bytes(b->pic.plan, t), size);
    int node = new_node(b, (gp_pic_node){
        .kind = GP_PIC_COPY, .segment = t->segment, .name = way, .what = "",
        .busy = time.busy, .note = gp_strdup(b->arena, gp_time_text(m, time, note)),
        .size = gp_strdup(b->arena, size),
        .more = gp_format(b->arena, "%s: %s a frame", way, size) });
    inputs(b, node, t->in, t->nin);
    for (int i = 0; i < t->nout; i++)
        b->ring_node[t->out[i]] = node;
}

/* A stage and the buffers it makes. `t`: its task, NULL without a plan. */
static void stage_and_outputs(build *b, int stage, const gp_task *t)
{
    const gp_stage *s = &b->pic.graph->stage[stage];
    int node = b->stage_node[stage] = stage_node(b, stage);
    for (int i = 0; i < s->nin; i++)
        if (s->in[i] >= 0 && !(s->closes && !i) && (!t || b->pic.graph->buffer[s->in[i]].producer.stage < 0))
            new_edge(b, b->buffer_node[s->in[i]], node);
    if (t)
        inputs(b, node, t->in, t->nin);
    if (t && s->frame_info && t->segment >= 0 && b->pic.plan->segment[t->segment].info_dev >= 0)
        new_edge(b, b->ring_node[b->pic.plan->segment[t->segment].info_dev], node);
    for (int i = 0; i < s->nout; i++)
        if (s->out[i] >= 0) {
            buffer_node(b, s->out[i]);
            new_edge(b, node, b->buffer_node[s->out[i]]);
        }
    for (int i = 0; t && i < t->nout; i++)
        if (t->out[i] >= 0)
            b->ring_node[t->out[i]] = b->buffer_node[b->pic.plan->ring[t->out[i]].buffer];
}

/* From a stage that closes a cycle down to what it carries, once that is there. */
static void edge_back(build *b, int stage, int ring)
{
    const gp_stage *s = &b->pic.graph->stage[stage];
    if (s->closes)
        *GP_PUSH(b->arena, b->pic.edge, b->pic.nedges, b->pic.edges_cap) = (gp_pic_edge){
            b->stage_node[stage], ring < 0 ? b->buffer_node[s->in[0]] : b->ring_node[ring], true };
}

/* A stage that runs once, between constants. */
static void prologue_stage(build *b, const gp_stage *s)
{
    bool named = strcmp(s->name, s->kind->name) != 0;
    int node = new_node(b, (gp_pic_node){
        .kind = GP_PIC_DEVICE, .segment = -1, .name = s->name, .size = "", .note = "", .busy = -1,
        .what = gp_format(b->arena, "%s%sonce", named ? s->kind->name : "", named ? ", " : ""),
        .more = gp_format(b->arena, "stage %s, before the first frame: %s", s->name, s->kind->help) });
    for (int i = 0; i < s->nin; i++)
        if (s->in[i] >= 0)
            new_edge(b, b->buffer_node[s->in[i]], node);
    for (int i = 0; i < s->nout; i++)
        if (s->out[i] >= 0)
            new_edge(b, node, b->buffer_node[s->out[i]]);
}

static void list_nodes(build *b, int segments)
{
    b->pic.first = GP_NEW(b->arena, int, segments + 1);
    b->pic.next = GP_NEW(b->arena, int, b->pic.nnodes);
    for (int i = b->pic.nnodes; i--;) {
        int list = b->pic.node[i].segment + 1;
        b->pic.next[i] = b->pic.first[list];
        b->pic.first[list] = i + 1;
    }
}

gp_picture gp_picture_of(gp_arena *a, const gp_graph *g, const gp_plan *p, const gp_measured *m)
{
    build b = { .arena = a, .pic = { .graph = g, .plan = p, .measured = m } };
    b.segment = gp_dump_segments(a, g, p);
    b.first_ring = GP_NEW(a, int, g->nbuffers);
    b.stage_node = GP_NEW(a, int, g->nstages);
    b.buffer_node = GP_NEW(a, int, g->nbuffers);
    b.ring_node = GP_NEW(a, int, p ? p->nrings : 0);
    for (int i = 0; i < g->nbuffers; i++)
        b.first_ring[i] = -1;
    for (int i = p ? p->nrings : 0; i--;) {
        b.ring_node[i] = -1;
        if (p->ring[i].buffer >= 0)
            b.first_ring[p->ring[i].buffer] = i;
    }
    for (int i = 0; i < g->nbuffers; i++)
        if (g->buffer[i].producer.stage < 0)
            buffer_node(&b, i);
    for (int i = 0; i < g->nprologue; i++)
        prologue_stage(&b, &g->prologue[i]);
    for (int i = 0; p && i < p->ntasks; i++)
        if (p->task[i].stage < 0)
            copy_task(&b, &p->task[i]);
        else
            stage_and_outputs(&b, p->task[i].stage, &p->task[i]);
    for (int i = 0; !p && i < g->nstages; i++)
        stage_and_outputs(&b, i, NULL);
    for (int i = 0; p && i < p->ntasks; i++)
        if (p->task[i].stage >= 0)
            edge_back(&b, p->task[i].stage, p->task[i].nin ? p->task[i].in[0] : -1);
    for (int i = 0; !p && i < g->nstages; i++)
        edge_back(&b, i, -1);
    list_nodes(&b, p ? p->nsegments : 0);
    return b.pic;
}
