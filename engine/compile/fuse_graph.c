/* fuse_graph.c - the graph in which groups of stages are one each, see fuse.c. */
#include "compile/fusing.h"
#include "compile/resolve.h"

/* What the parts say together; fuse() has said the rest. */
static void finish_stage(gp_fusing *f, int first, gp_stage *to)
{
    const gp_joined *j = f->made[first];
    gp_arena *a = f->r->arena;
    *to = j->stage;
    gp_take_shape(to, j->fuse.shape);
    to->opts = j->fuse.opts;
    const char **part = GP_NEW(a, const char *, j->fuse.n), **inside = NULL;
    int ninside = 0, cap = 0;
    to->endless = to->follows = true;
    for (int v = first; v >= 0; v = f->next[v]) {
        const gp_stage *s = &f->g->stage[v];
        part[to->nparts++] = s->name;
        to->endless &= s->endless, to->follows &= s->follows;
        for (int o = 0; o < s->nout; o++) {
            bool out = false;
            for (int k = 0; k < to->nout; k++)
                out |= to->out[k] == s->out[o];
            if (!out)
                *GP_PUSH(a, inside, ninside, cap) = f->g->buffer[s->out[o]].name;
        }
    }
    to->part = part, to->inside = inside, to->ninside = ninside;
}

/* The groups in an order in which each comes behind what it reads, and else as in the graph: order[i] is the first
 * stage of the i-th. */
static int sort_groups(gp_fusing *f, int *order)
{
    const gp_graph *g = f->g;
    int *waits = GP_NEW(f->r->arena, int, g->nstages), n = 0, left = 0, from_here = 0;
    for (int v = 0; v < g->nstages; v++) {
        left += f->group[v] == v;
        for (int p = 0; p < g->stage[v].nin; p++) {
            int from = g->stage[v].closes ? -1 : gp_stage_maker(g, &g->stage[v], p);
            waits[f->group[v]] += from >= 0 && f->group[from] != f->group[v];
        }
        waits[f->group[v]] += g->stage[v].nafter;      /* those are groups by themselves */
    }
    while (n < left)
        for (int v = from_here, before = n; v < g->nstages && before == n; v++) {
            if (f->group[v] != v || waits[v]) {
                from_here += v == from_here && (f->group[v] != v || waits[v] < 0);
                continue;
            }
            order[n++] = v, waits[v] = -1;
            for (int k = f->begin[v]; k < f->begin[v + 1]; k++)
                waits[f->group[f->behind[k]]]--;
            for (int m = v; m >= 0; m = f->next[m])
                for (int o = 0; o < g->stage[m].nout; o++) {
                    const gp_buffer *b = gp_stage_out(g, &g->stage[m], o);
                    for (int u = 0; b && u < b->nuse; u++)
                        waits[f->group[b->use[u].stage]] -= f->group[b->use[u].stage] != v
                                                         && !g->stage[b->use[u].stage].closes;
                }
        }
    return n;
}

/* The buffers that are somewhere; `to`: of each its new index, or -1. */
static void move_buffers(gp_fusing *f, gp_graph *to, int *moved)
{
    const gp_graph *g = f->g;
    for (int b = 0; b < g->nbuffers; b++) {
        const gp_buffer *buf = &g->buffer[b];
        int by = buf->producer.stage < 0 ? -1 : f->group[buf->producer.stage];
        const gp_joined *j = by < 0 ? NULL : f->made[by];
        bool stays = !j;
        for (int k = 0; j && k < j->stage.nout; k++)
            stays |= j->stage.out[k] == b;
        moved[b] = stays ? to->nbuffers : -1;
        if (stays)
            to->buffer[to->nbuffers++] = *buf;
    }
}

/* Stages by their new numbers, where one names others. */
static void renumber(const gp_fusing *f, gp_graph *to, const int *order)
{
    int *now = GP_NEW(f->r->arena, int, f->g->nstages);
    for (int i = 0; i < to->nstages; i++)
        now[order[i]] = i;
    for (int i = 0; i < to->nstages; i++) {
        gp_stage *st = &to->stage[i];
        const int *was = st->after;
        st->after = GP_NEW(f->r->arena, int, st->nafter);
        for (int k = 0; k < st->nafter; k++)
            st->after[k] = now[f->group[was[k]]];
        st->last = now[f->group[st->last]];
    }
}

/* A stage, which is the i-th in the new graph, or with -1 one of the prologue: that has only constants, which all stay. */
static void move_stage(gp_fusing *f, gp_graph *to, gp_stage *st, int i, const int *moved)
{
    int *in = GP_NEW(f->r->arena, int, st->nin + 1), *out = GP_NEW(f->r->arena, int, st->nout + 1);
    for (int p = 0; p < st->nin; p++) {
        in[p] = st->in[p] < 0 ? -1 : moved[st->in[p]];
        if (in[p] >= 0 && i >= 0) {
            gp_buffer *b = &to->buffer[in[p]];
            b->use[b->nuse++] = (gp_use){ i, p };
        }
    }
    for (int p = 0; p < st->nout; p++) {
        out[p] = st->out[p] < 0 ? -1 : moved[st->out[p]];
        if (out[p] >= 0 && i >= 0)
            to->buffer[out[p]].producer = (gp_use){ i, p };
    }
    st->in = in, st->out = out;
}

gp_graph *gp_fusing_rebuild(gp_fusing *f)
{
    const gp_graph *g = f->g;
    gp_arena *a = f->r->arena;
    gp_graph *to = GP_NEW(a, gp_graph, 1);
    int *order = GP_NEW(a, int, g->nstages), *moved = GP_NEW(a, int, g->nbuffers);
    *to = *g;
    to->stage = GP_NEW(a, gp_stage, g->nstages), to->buffer = GP_NEW(a, gp_buffer, g->nbuffers), to->nbuffers = 0;
    to->nstages = sort_groups(f, order);
    move_buffers(f, to, moved);
    for (int b = 0; b < to->nbuffers; b++) {
        gp_buffer *buf = &to->buffer[b];
        buf->use = GP_NEW(a, gp_use, buf->nuse + 1), buf->nuse = 0;
    }
    for (int i = 0; i < to->nstages; i++) {
        if (f->made[order[i]])
            finish_stage(f, order[i], &to->stage[i]);
        else
            to->stage[i] = g->stage[order[i]];
        move_stage(f, to, &to->stage[i], i, moved);
    }
    renumber(f, to, order);
    to->prologue = GP_NEW(a, gp_stage, to->nprologue + 1);
    for (int i = 0; i < to->nprologue; i++) {
        to->prologue[i] = g->prologue[i];
        move_stage(f, to, &to->prologue[i], -1, moved);
    }
    gp_find_sources(a, to);
    return to;
}
