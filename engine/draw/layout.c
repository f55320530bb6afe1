/* layout.c - see layout.h. The layered method of Sugiyama, Tagawa and Toda (1981):
 * ranks by the longest path; a line that passes a rank has an item there as a box has;
 * then order and place in each rank (layout_place.c).
 *
 * The one invariant: lines curve only between ranks, so what holds for items, which
 * lie apart, holds for boxes and lines. */
#include <math.h>
#include "draw/layout_item.h"

enum {
    RANK_GAP = 14, ARROW_GAP = 12,     /* between ranks; more where arrows end */
    FAR = 24,                          /* ranks a line may span before it is cut */
};

/* ---- groups ---------------------------------------------------------- */

/* Indices 0 .. n-1 by where[i], which is below `groups`; stable. */
static gp_groups group_by(gp_arena *a, const int *where, int n, int groups)
{
    gp_groups t = { GP_NEW(a, int, groups + 2), GP_NEW(a, int, n) };
    for (int i = 0; i < n; i++)
        t.start[where[i] + 2]++;
    for (int i = 2; i < groups + 2; i++)
        t.start[i] += t.start[i - 1];
    for (int i = 0; i < n; i++)
        t.list[t.start[where[i] + 1]++] = i;
    return t;
}

static gp_groups edges_from(const gp_plane *l)
{
    int *where = GP_NEW(l->arena, int, l->m);
    for (int i = 0; i < l->m; i++)
        where[i] = l->edge[i].from;
    return group_by(l->arena, where, l->m, l->n);
}

static gp_groups joins_at(const gp_plane *l, int end)
{
    int *where = GP_NEW(l->arena, int, l->njoins);
    for (int i = 0; i < l->njoins; i++)
        where[i] = l->join[i].end[end];
    return group_by(l->arena, where, l->njoins, l->nitems);
}

/* ---- ranks ----------------------------------------------------------- */

static void rank_boxes(gp_plane *l)
{
    gp_arena *a = l->arena;
    int n = l->n, done = 0, inner = 0, ends = 0;
    int *wait = GP_NEW(a, int, n), *order = GP_NEW(a, int, n);
    bool *floats = GP_NEW(a, bool, n);
    gp_groups out = edges_from(l);
    l->rank = GP_NEW(a, int, n);
    for (int i = 0; i < l->m; i++)
        wait[l->edge[i].to]++;
    for (int i = 0; i < n; i++) {
        floats[i] = true;
        ends |= l->box[i].rank == GP_RANK_LAST;
        if (!wait[i])
            order[done++] = i;
    }
    for (int k = 0; k < done; k++) {
        int b = order[k], first = out.start[b], end = out.start[b + 1], ways = 0;
        for (int i = first; i < end; i++)
            ways += !l->edge[out.list[i]].back;
        for (int i = first; i < end; i++) {
            int to = l->edge[out.list[i]].to;
            l->rank[to] = l->rank[to] > l->rank[b] ? l->rank[to] : l->rank[b] + 1;
            floats[to] &= floats[b] && ways == 1;
            if (!--wait[to])
                order[done++] = to;
        }
        int least = l->rank[b] + (l->box[b].rank == GP_RANK_LAST ? 0 : 1);
        inner = least > inner ? least : inner;     /* those at the end have a rank alone */
        l->nranks = inner + ends;
    }
    /* What nothing else hangs on goes down to where it is needed. */
    for (int k = done; k--;) {
        int b = order[k], down = l->nranks;
        for (int i = out.start[b]; i < out.start[b + 1]; i++) {
            int below = l->rank[l->edge[out.list[i]].to];
            down = below < down ? below : down;
        }
        if (l->box[b].rank == GP_RANK_LAST)
            l->rank[b] = l->nranks - 1;
        else if (floats[b] && l->box[b].rank == GP_RANK_ANY && down < l->nranks)
            l->rank[b] = down - 1;
    }
}

static int new_item(gp_plane *l, int box, int rank, double w)
{
    *GP_PUSH(l->arena, l->item, l->nitems, l->items_cap) =
        (gp_item){ .w = w, .rank = rank, .box = box };
    return l->nitems - 1;
}

static int new_join(gp_plane *l, int above, double above_at, int below, double below_at, bool arrow)
{
    *GP_PUSH(l->arena, l->join, l->njoins, l->joins_cap) =
        (gp_join){ { above, below }, { above_at, below_at }, arrow, false };
    return l->njoins - 1;
}

static double middle(const gp_box *b, double at)
{
    return b->fixed ? at - b->w / 2 : 0;
}

/* The lines from one point of a box share their items, one in each rank. `trunk`: the
 * joins of the way so far, `*length` of them. */
static void join_edge(gp_plane *l, gp_edge *k, int *trunk, int *length)
{
    int rank = l->rank[k->from], span = l->rank[k->to] - rank, at = k->from;
    const gp_box *from = &l->box[k->from];
    double from_at = k->back && !from->fixed ? floor(from->w / 4) : middle(from, k->from_at);
    double to_at = middle(&l->box[k->to], k->to_at);
    k->cut = span > FAR;
    if (k->cut) {
        at = new_item(l, -1, l->rank[k->to] - 1, k->label);
        from_at = 0;
    }
    for (int i = 0; !k->cut && i < span - 1; i++) {
        if (i == *length) {
            int next = new_item(l, -1, rank + i + 1, 0);
            trunk[(*length)++] = new_join(l, at, from_at, next, 0, k->back && !i);
        }
        at = l->join[trunk[i]].end[1];
        from_at = 0;
    }
    bool arrow = k->arrow || (k->back && at == k->from);
    int last = l->last_join[k - l->edge] = new_join(l, at, from_at, k->to, to_at, arrow);
    l->join[last].side = k->side;
}

static void make_items(gp_plane *l)
{
    int *trunk = GP_NEW(l->arena, int, FAR), length = 0;
    gp_groups out = edges_from(l);
    l->last_join = GP_NEW(l->arena, int, l->m);
    for (int i = 0; i < l->n; i++)
        new_item(l, i, l->rank[i], l->box[i].w);
    const gp_edge *before = NULL;
    for (int i = 0; i < l->m; i++) {
        gp_edge *k = &l->edge[out.list[i]];
        bool shared = before && before->from == k->from && before->back == k->back
            && (!l->box[k->from].fixed || fabs(before->from_at - k->from_at) < 0.5);
        length = shared ? length : 0;
        join_edge(l, k, trunk, &length);
        before = k;
    }
    int *rank = GP_NEW(l->arena, int, l->nitems);
    for (int i = 0; i < l->nitems; i++)
        rank[i] = l->item[i].rank;
    l->ranks = group_by(l->arena, rank, l->nitems, l->nranks);
    for (int side = 0; side < 2; side++)
        l->joins[side] = joins_at(l, !side);
}

/* ---- from top to bottom ---------------------------------------------- */

/* A rank is as high as its highest box; there is more room below it where lines
 * go far to the side. */
static double stack_ranks(gp_plane *l)
{
    double y = 0, *gap = GP_NEW(l->arena, double, l->nranks);
    l->top = GP_NEW(l->arena, double, l->nranks);
    l->height = GP_NEW(l->arena, double, l->nranks);
    for (int i = 0; i < l->n; i++)
        l->height[l->rank[i]] = fmax(l->height[l->rank[i]], l->box[i].h);
    for (int i = 0; i < l->njoins; i++) {
        const gp_join *j = &l->join[i];
        int r = l->item[j->end[0]].rank;
        double aside = fabs(gp_join_x(l, j, 0) - gp_join_x(l, j, 1));
        double room = RANK_GAP + (j->arrow ? ARROW_GAP : 0) + floor(fmin(aside / 6, 36));
        gap[r] = fmax(gap[r], room);
    }
    for (int r = 0; r < l->nranks; r++) {
        l->top[r] = y;
        y += l->height[r] + (r < l->nranks - 1 ? fmax(gap[r], RANK_GAP) : 0);
    }
    return y;
}

static void route(gp_plane *l, gp_edge *k)
{
    const gp_join *last = &l->join[l->last_join[k - l->edge]], *way[FAR + 1];
    int n = 0;
    way[n++] = last;
    const int *up = l->joins[0].start;
    for (int i = last->end[0]; l->item[i].box < 0 && up[i] < up[i + 1]; i = way[n - 1]->end[0])
        way[n++] = &l->join[l->joins[0].list[up[i]]];
    k->bend = GP_NEW(l->arena, gp_bend, n + 1);
    k->nbends = 0;
    for (; n; n--) {
        const gp_join *j = way[n - 1];
        const gp_item *from = &l->item[j->end[0]];
        double y = l->top[from->rank], below = y + l->height[from->rank];
        if (from->box >= 0)
            y += l->box[from->box].h;
        else if (k->cut)
            y = below;
        k->bend[k->nbends++] = (gp_bend){ gp_join_x(l, j, 0), y, below };
    }
    double top = l->top[l->rank[k->to]];
    k->bend[k->nbends++] = (gp_bend){ gp_join_x(l, last, 1), top, top };
    k->from_at = k->cut ? k->from_at : k->bend[0].x - l->box[k->from].x;
    k->to_at = k->bend[k->nbends - 1].x - l->box[k->to].x;
}

void gp_layout(gp_arena *a, gp_box *box, int n, gp_edge *edge, int m, double *w, double *h)
{
    gp_plane l = { .arena = a, .box = box, .n = n, .edge = edge, .m = m };
    *w = *h = 0;
    if (!n)
        return;
    rank_boxes(&l);
    make_items(&l);
    *w = gp_place_items(&l);
    *h = stack_ranks(&l);
    for (int i = 0; i < n; i++) {
        box[i].x = l.item[i].x - box[i].w / 2;
        box[i].y = l.top[l.rank[i]];
    }
    for (int i = 0; i < m; i++)
        route(&l, &edge[i]);
}
