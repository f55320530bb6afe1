/* layout_place.c - from left to right: items of a rank are put in the order of the mean
 * of what they are linked to (barycenter), then as near to that mean as their
 * neighbors allow, by sweeps down and up.
 *
 * The one invariant: items of a rank lie apart, in the order of the rank. */
#include <math.h>
#include <stdlib.h>
#include "draw/layout_item.h"

enum {
    BOX_GAP = 28, LINE_GAP = 16,       /* beside each other in a rank */
    SPREAD = 18, CORNER = 16,          /* between ends of lines at a box, and beside them */
    ORDERING = 8, PLACING = 6,         /* sweeps, each down and up */
};

struct key { double x; int pos, item; };
struct range { double left, right; int item; };

/* Room to work on the items of one rank. */
typedef struct workspace {
    struct key *key;
    double *want, *weight, *gap, *sum;
    int *count;
    bool aimed;                        /* the first rank keeps its order */
} workspace;

/* x[i] as near to want[i] as gap[i] (from x[i - 1] to x[i]) allows: weighted least
 * squares by pooling neighbors that are in each other's way. `sum`, `count`: scratch. */
static void set_apart(double *want, const double *weight, const double *gap, int n, double *sum,
                 int *count)
{
    int pools = 0;
    double off = 0;
    for (int i = 0; i < n; i++) {
        off += i ? gap[i] : 0;
        double w = weight ? weight[i] : 1, mean = want[i] - off;
        int many = 1;
        for (; pools && want[pools - 1] >= mean; pools--) {    /* want[< i] is free by now */
            double total = sum[pools - 1] + w;
            mean = (want[pools - 1] * sum[pools - 1] + mean * w) / total;
            w = total;
            many += count[pools - 1];
        }
        want[pools] = mean;
        sum[pools] = w;
        count[pools++] = many;
    }
    int i = n - 1;
    for (; pools; pools--)
        for (int k = 0; k < count[pools - 1]; k++)
            sum[i--] = want[pools - 1];
    off = 0;
    for (i = 0; i < n; i++)
        want[i] = sum[i] + (off += i ? gap[i] : 0);
}

static bool is_line(const gp_plane *l, int i)
{
    return l->item[i].box < 0 || l->box[i].rank != GP_RANK_ANY;
}

/* The box that is all `i` is linked to on a side, if they could be of one width. */
static int only_box(const gp_plane *l, int i, int side)
{
    const int *start = l->joins[side].start + i;
    if (start[1] - start[0] != 1 || is_line(l, i) || l->box[i].fixed)
        return -1;
    int other = l->join[l->joins[side].list[start[0]]].end[side];
    const int *back = l->joins[!side].start + other;
    return back[1] - back[0] == 1 && !is_line(l, other) && !l->box[other].fixed ? other : -1;
}

/* Boxes in a row, each linked to the next alone, get the width of the widest of them,
 * so that rows beside each other are straight. */
static void widen_rows(gp_plane *l)
{
    for (int top = 0; top < l->n; top++) {
        double w = 0;
        if (only_box(l, top, 0) >= 0)
            continue;
        for (int i = top; i >= 0; i = only_box(l, i, 1))
            w = fmax(w, l->item[i].w);
        for (int i = top; i >= 0; i = only_box(l, i, 1))
            l->item[i].w = w;
    }
}

static double gap_between(const gp_item *a, const gp_item *b)
{
    bool lines = (a->box < 0 && a->w <= 0) || (b->box < 0 && b->w <= 0);
    return (a->w + b->w) / 2 + (lines ? LINE_GAP : BOX_GAP);
}

/* Where a join would have one of its ends. */
static double wish(const gp_plane *l, const gp_join *j, int end)
{
    return l->item[j->end[!end]].x + j->at[!end] - j->at[end];
}

/* The mean of what item `i` is linked to on a side; where it is, if to nothing. A
 * line that goes on pulls more than one that ends: long lines get straight. A box whose
 * edges are fixed takes the wish nearest to the mean, so that one of them is straight. */
static double mean_of(const gp_plane *l, int i, int side, double *weight)
{
    const gp_groups *t = &l->joins[side];
    bool line = l->item[i].box < 0;
    double sum = 0, total = 0, mean, best = INFINITY;
    *weight = line ? 4 : l->box[i].fixed ? 0.01 : 1;
    for (int k = t->start[i]; k < t->start[i + 1]; k++) {
        const gp_join *j = &l->join[t->list[k]];
        double pull = line && l->item[j->end[side]].box < 0 ? 8 : j->side ? 1e-6 : 1;
        sum += pull * wish(l, j, !side);
        total += pull;
    }
    mean = total > 0 ? sum / total : l->item[i].x;
    for (int k = t->start[i]; k < t->start[i + 1] && !line && l->box[i].fixed; k++) {
        double x = wish(l, &l->join[t->list[k]], !side);
        best = fabs(x - mean) < fabs(best - mean) ? x : best;
    }
    return isinf(best) ? mean : best;
}

static int by_key(const void *a, const void *b)
{
    const struct key *p = a, *q = b;
    return p->x < q->x ? -1 : p->x > q->x ? 1 : p->pos - q->pos;
}

static void settle(gp_plane *l, workspace *ws, int rank, int side, bool reorder)
{
    int first = l->ranks.start[rank], n = l->ranks.start[rank + 1] - first;
    int *in = l->ranks.list + first;
    double weight;
    for (int i = 0; i < n && reorder; i++)
        ws->key[i] = (struct key){ mean_of(l, in[i], side, &weight), i, in[i] };
    if (reorder)
        qsort(ws->key, (size_t)n, sizeof *ws->key, by_key);
    for (int i = 0; i < n; i++) {
        in[i] = reorder ? ws->key[i].item : in[i];
        ws->want[i] = mean_of(l, in[i], side, &ws->weight[i]);
        ws->gap[i] = i ? gap_between(&l->item[in[i - 1]], &l->item[in[i]]) : 0;
    }
    set_apart(ws->want, ws->weight, ws->gap, n, ws->sum, ws->count);
    for (int i = 0; i < n; i++)
        l->item[in[i]].x = ws->want[i];
}

/* The next item of the line that goes on below item `i`; -1: none. */
static int next_of_line(const gp_plane *l, int i)
{
    const gp_groups *t = &l->joins[1];
    for (int k = t->start[i]; k < t->start[i + 1]; k++)
        if (is_line(l, l->join[t->list[k]].end[1]))
            return l->join[t->list[k]].end[1];
    return -1;
}

/* Lines that go on through several ranks become straight, where there is room. */
static void straighten(gp_plane *l)
{
    int *pos = GP_NEW(l->arena, int, l->nitems);
    for (int i = 0; i < l->nitems; i++)
        pos[l->ranks.list[i]] = i;
    for (int top = 0; top < l->nitems; top++) {
        const int *up = l->joins[0].start + top, *down;
        const gp_join *j = up[0] < up[1] ? &l->join[l->joins[0].list[up[0]]] : NULL;
        if (!is_line(l, top) || (j && is_line(l, j->end[0])))
            continue;
        double low = -INFINITY, high = INFINITY, want = j ? gp_join_x(l, j, 0) : l->item[top].x;
        int end = top;
        for (int i = top; i >= 0; i = next_of_line(l, i)) {
            const gp_item *it = &l->item[i];
            int r = it->rank, at = pos[i];
            if (at > l->ranks.start[r]) {
                const gp_item *before = &l->item[l->ranks.list[at - 1]];
                low = fmax(low, before->x + gap_between(before, it));
            }
            if (at + 1 < l->ranks.start[r + 1]) {
                const gp_item *behind = &l->item[l->ranks.list[at + 1]];
                high = fmin(high, behind->x - gap_between(it, behind));
            }
            end = i;
        }
        down = l->joins[1].start + end;
        if (!j && down[0] < down[1])
            want = gp_join_x(l, &l->join[l->joins[1].list[down[0]]], 1);
        for (int i = top; i >= 0 && low <= high; i = next_of_line(l, i))
            l->item[i].x = fmin(fmax(want, low), high);
    }
}

/* Ranks as they are when nothing is known: in the order of boxes and edges, but for
 * what aims at a place. */
static void first_order(gp_plane *l, workspace *ws, int rank)
{
    int first = l->ranks.start[rank], n = l->ranks.start[rank + 1] - first;
    double x = 0;
    for (int i = 0; i < n; i++) {
        int it = l->ranks.list[first + i];
        double aim = l->item[it].box < 0 ? 0 : l->box[it].aim;
        ws->aimed |= rank == 0 && aim > 0;
        ws->key[i] = (struct key){ aim, i, it };
    }
    if (rank == 0)
        qsort(ws->key, (size_t)n, sizeof *ws->key, by_key);
    for (int i = 0; i < n; i++) {
        gp_item *it = &l->item[l->ranks.list[first + i] = ws->key[i].item];
        it->x = x + it->w / 2;
        x += it->w + BOX_GAP;
    }
}

static int by_left(const void *a, const void *b)
{
    const struct range *p = a, *q = b;
    return p->left < q->left ? -1 : p->left > q->left ? 1 : p->item - q->item;
}

/* Moves all to x >= 0, and parts that no edge joins next to each other; returns the width. */
static double close_gaps(gp_plane *l)
{
    struct range *range = GP_NEW(l->arena, struct range, l->nitems);
    double right = -BOX_GAP, off = 0;
    for (int i = 0; i < l->nitems; i++) {
        const gp_item *it = &l->item[i];
        range[i] = (struct range){ it->x - it->w / 2, it->x + it->w / 2, i };
        for (int k = l->joins[1].start[i]; k < l->joins[1].start[i + 1]; k++) {
            const gp_item *to = &l->item[l->join[l->joins[1].list[k]].end[1]];
            range[i].left = fmin(range[i].left, to->x - to->w / 2);
            range[i].right = fmax(range[i].right, to->x + to->w / 2);
        }
    }
    qsort(range, (size_t)l->nitems, sizeof *range, by_left);
    for (int i = 0; i < l->nitems; i++) {      /* `right` is where it ends now */
        const struct range *r = &range[i];
        if (!i || r->left - off > right + BOX_GAP)
            off = r->left - right - BOX_GAP;
        right = fmax(right, r->right - off);
        l->item[r->item].x -= off;
    }
    return right;
}

/* Lines that come in at the top of a box: below where they come from, if they can. */
static void spread(gp_plane *l, int box)
{
    const gp_groups *t = &l->joins[0];
    const gp_item *it = &l->item[box];
    int n = t->start[box + 1] - t->start[box];
    if (l->box[box].fixed || n < 2)
        return;
    struct key *key = GP_NEW(l->arena, struct key, n);
    double *want = GP_NEW(l->arena, double, n), *gap = GP_NEW(l->arena, double, n);
    double *sum = GP_NEW(l->arena, double, n), w = l->box[box].w;
    double step = fmin(SPREAD, fmax(w - 2 * CORNER, 0) / (n - 1));
    int *count = GP_NEW(l->arena, int, n);
    for (int i = 0; i < n; i++) {
        const gp_join *j = &l->join[t->list[t->start[box] + i]];
        key[i] = (struct key){ l->item[j->end[0]].x + j->at[0], i, t->list[t->start[box] + i] };
    }
    qsort(key, (size_t)n, sizeof *key, by_key);
    for (int i = 0; i < n; i++) {
        want[i] = key[i].x - it->x;
        gap[i] = step;
    }
    set_apart(want, NULL, gap, n, sum, count);
    double reach = fmax(w / 4, step * (n - 1) / 2);
    for (int i = 0; i < n; i++) {
        double low = -reach + i * step, high = reach - (n - 1 - i) * step;
        l->join[key[i].item].at[1] = floor(fmin(fmax(want[i], low), high) + 0.5);
    }
}

double gp_place_items(gp_plane *l)
{
    workspace ws = { 0 };
    int most = 0;
    widen_rows(l);
    for (int r = 0; r < l->nranks; r++) {
        int n = l->ranks.start[r + 1] - l->ranks.start[r];
        most = n > most ? n : most;
    }
    ws.key = GP_NEW(l->arena, struct key, most);
    ws.want = GP_NEW(l->arena, double, most);
    ws.weight = GP_NEW(l->arena, double, most);
    ws.gap = GP_NEW(l->arena, double, most);
    ws.sum = GP_NEW(l->arena, double, most);
    ws.count = GP_NEW(l->arena, int, most);
    for (int r = 0; r < l->nranks; r++)
        first_order(l, &ws, r);
    for (int k = 0; k < ORDERING + PLACING; k++) {
        for (int r = l->nranks - 1; r-- && k;)
            settle(l, &ws, r, 1, k < ORDERING && (r || !ws.aimed));
        for (int r = 1; r < l->nranks; r++)
            settle(l, &ws, r, 0, k < ORDERING);
    }
    for (int i = 0; i < l->nitems; i++)
        l->item[i].x = floor(l->item[i].x + 0.5);
    straighten(l);
    double w = close_gaps(l);
    for (int i = 0; i < l->n; i++)
        spread(l, i);
    return w;
}

