/* segments.c - which device stages form a segment.
 *
 * A segment must be convex: no path may leave it and come back through a host
 * stage, or it would wait for itself. Every stage gets a level, and
 *
 *     levels never fall along an edge, and rise from host to device, to and
 *     from a stage that regroups frames, and to and from the stages of a cycle.
 *
 * Edges that close a cycle (carry.c) are left out: what they carry is of the frame before.
 *
 * So a path from a device stage through a host stage back to the device ends
 * on a higher level than it began, and device stages of *one* level may be
 * joined freely, but for one that regroups, which fires more or less often than its
 * neighbors and is a segment by itself; and those of a cycle are joined with each
 * other only, so that no other stage has to wait until a frame has gone round.
 * Among several ranks levels also rise behind what a collective needs: a segment hands on
 * its frames when all of it is done, and so the ranks exchange them while the next segment runs.
 * verify.c proves it again from the finished plan.
 *
 * Everything here is linear in stages, ports and uses. */
#include "compile/plan.h"

typedef struct grouping {
    gp_arena *a;
    const gp_graph *g;
    int *need;                 /* of each stage: of the first collective that needs it, see assign_needs */
    int *level;                /* of each stage */
    int *group;                /* of each stage: a stage that stands for its segment, or itself */
} grouping;

/* The stage that makes input i of stage v, -1: none, or it closes a cycle. */
static int maker(const gp_graph *g, int v, int i)
{
    return g->stage[v].closes ? -1 : gp_stage_maker(g, &g->stage[v], i);
}

/* Stages of a cycle in one segment have one value `of`: the largest of them or, with `sign` -1, the least, which `one` keeps
 * for each cycle, 0 at first. False: some had to be changed. */
static bool level_cycles(const gp_graph *g, int *of, int *one, int sign)
{
    bool same = true;
    for (int v = 0; v < g->nstages; v++) {
        int *most = &one[g->stage[v].cycle];
        if (g->stage[v].circles && (!*most || sign * of[v] > sign * *most))
            *most = of[v];
    }
    for (int v = 0; v < g->nstages; v++)
        if (g->stage[v].circles && of[v] != one[g->stage[v].cycle])
            of[v] = one[g->stage[v].cycle], same = false;
    return same;
}

/* Finds for each device stage behind how many device stages in a row the first collective lies that needs what it
 * makes without another host stage between; all others get a number above these. So collectives that are equally far
 * are one. */
static void assign_needs(grouping *w)
{
    const gp_graph *g = w->g;
    int *far = GP_NEW(w->a, int, g->nstages), *lowest = GP_NEW(w->a, int, g->nstages + 1);
    for (int v = 0; v < g->nstages; v++) {
        w->need[v] = g->nstages + 1;
        for (int i = 0; i < g->stage[v].nin; i++) {
            int from = maker(g, v, i);
            far[v] = from >= 0 && far[from] > far[v] ? far[from] : far[v];
        }
        far[v] += g->stage[v].device;
    }
    if (g->ranks < 2 || g->launch == GP_LAUNCH_PERSISTENT)     /* there each segment keeps a part of the device for good */
        return;
    do
        for (int v = g->nstages - 1; v >= 0; v--) {
            const gp_stage *s = &g->stage[v];
            int need = s->kind->collective ? far[v] : w->need[v];
            for (int i = 0; i < s->nin; i++) {
                int from = maker(g, v, i);
                if (from >= 0 && g->stage[from].device && need < w->need[from])
                    w->need[from] = need;
            }
        }
    while (!level_cycles(g, w->need, lowest, -1));          /* all of a cycle are needed by whom one is needed */
}

/* Between two stages on the device: are they in different segments in any case? */
static bool apart(const grouping *w, int v, int u)
{
    const gp_stage *from = &w->g->stage[v], *to = &w->g->stage[u];
    return from->regroups || to->regroups || from->cycle != to->cycle || w->need[v] != w->need[u]
        || !gp_same_place(gp_stage_place(w->g, from), gp_stage_place(w->g, to));
}

static void raise_levels(grouping *w)
{
    const gp_graph *g = w->g;
    for (int v = 0; v < g->nstages; v++) {
        const gp_stage *s = &g->stage[v];
        for (int i = 0; i < s->nin; i++) {
            int from = maker(g, v, i);
            if (from < 0)
                continue;
            int l = w->level[from] + (s->device && (!g->stage[from].device || apart(w, from, v)));
            if (l > w->level[v])
                w->level[v] = l;
        }
    }
}

static void assign_levels(grouping *w)
{
    const gp_graph *g = w->g;
    int *highest = GP_NEW(w->a, int, g->nstages + 1);
    do
        raise_levels(w);
    while (!level_cycles(g, w->level, highest, 1));
    /* A device stage that only device stages read joins the first of them. */
    for (int v = g->nstages - 1; v >= 0; v--) {
        const gp_stage *s = &g->stage[v];
        int lowest = -1;
        bool raise = s->device && !s->circles;
        for (int o = 0; o < s->nout && raise; o++) {
            const gp_buffer *b = gp_stage_out(g, s, o);
            for (int u = 0; b && u < b->nuse && raise; u++) {
                int to = b->use[u].stage, most = w->level[to] - apart(w, v, to);
                if (g->stage[to].closes)
                    continue;
                raise = g->stage[to].device;
                if (lowest < 0 || most < lowest)
                    lowest = most;
            }
        }
        if (raise && lowest > w->level[v])
            w->level[v] = lowest;
    }
}

/* The class of each stage: its level or, on a cycle or a device of its own, or where a collective needs it, a number
 * above all levels that stages of the same level, cycle, device and need share. */
static int *classes(grouping *w)
{
    const gp_graph *g = w->g;
    gp_table of = { .arena = w->a };
    int *class = GP_NEW(w->a, int, g->nstages), n = g->nstages + 1;
    for (int v = 0; v < g->nstages; v++) {
        gp_place p = gp_stage_place(g, &g->stage[v]);
        class[v] = w->level[v];
        if (!g->stage[v].cycle && p.lanes == g->lanes && !p.index && w->need[v] > g->nstages)
            continue;
        const char *key = gp_format(w->a, "%d of %d on %d, %d for %d", w->level[v], g->stage[v].cycle, p.index, p.lanes,
                                    w->need[v]);
        if (gp_table_index(&of, key) < 0)
            gp_table_put(&of, key, n++);
        class[v] = gp_table_index(&of, key);
    }
    return class;
}

/* Joins the device stages of one class that touch one buffer and do not regroup. The
 * smaller stage stands for the larger. */
static void join_stages(grouping *w)
{
    const gp_graph *g = w->g;
    const int *class = classes(w);
    int *first = GP_NEW(w->a, int, 2 * g->nstages + 1);     /* by class, of this buffer */
    int *seen = GP_NEW(w->a, int, 2 * g->nstages + 1);        /* a buffer, plus 1 */
    for (int v = 0; v < g->nstages; v++)
        w->group[v] = v;
    for (int b = 0; b < g->nbuffers; b++) {
        const gp_buffer *buf = &g->buffer[b];
        if (buf->producer.stage < 0)
            continue;
        for (int u = -1; u < buf->nuse; u++) {
            int v = u < 0 ? buf->producer.stage : buf->use[u].stage, l = class[v];
            if (!g->stage[v].device || g->stage[v].regroups)
                continue;
            if (seen[l] != b + 1) {
                seen[l] = b + 1;
                first[l] = v;
                continue;
            }
            int x = gp_root(w->group, first[l]), y = gp_root(w->group, v);
            w->group[x < y ? y : x] = x < y ? x : y;
        }
    }
    for (int v = 0; v < g->nstages; v++)               /* which use a state, and may share no buffer */
        for (int k = 0; k < g->stage[v].nafter; k++) {
            int x = gp_root(w->group, g->stage[v].after[k]), y = gp_root(w->group, v);
            w->group[x < y ? y : x] = x < y ? x : y;
        }
    for (int v = 0; v < g->nstages; v++)
        w->group[v] = gp_root(w->group, v);
}

const int *gp_segments(gp_arena *a, const gp_graph *g)
{
    grouping w = { .a = a, .g = g, .need = GP_NEW(a, int, g->nstages), .level = GP_NEW(a, int, g->nstages),
                   .group = GP_NEW(a, int, g->nstages) };
    assign_needs(&w);
    assign_levels(&w);
    join_stages(&w);
    return w.group;
}
