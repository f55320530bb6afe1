/* share.c - see share.h. */
#include <math.h>
#include "simulate/share.h"

static bool before(const gp_due *x, const gp_due *y)
{
    return x->at < y->at || (x->at <= y->at && x->order < y->order);
}

void gp_agenda_add(gp_agenda *g, double at, int what, int who, int lane)
{
    gp_due one = { at, g->orders++, what, who, lane };
    int i = g->n;
    (void)GP_PUSH(g->arena, g->due, g->n, g->cap);
    for (int up; i && before(&one, &g->due[up = (i - 1) / 2]); i = up)
        g->due[i] = g->due[up];
    g->due[i] = one;
}

gp_due gp_agenda_take(gp_agenda *g)
{
    gp_due first = g->due[0], last = g->due[--g->n];
    int i = 0;
    for (int down; (down = 2 * i + 1) < g->n; i = down) {
        down += down + 1 < g->n && before(&g->due[down + 1], &g->due[down]);
        if (!before(&g->due[down], &last))
            break;
        g->due[i] = g->due[down];
    }
    g->due[i] = last;
    return first;
}

void gp_share_go_on(gp_share *s, double now)
{
    double took = now - s->now;
    if (s->jobs.n && took > 0) {
        double n = s->jobs.n + s->always, rate = n > s->capacity ? s->capacity / n : 1;
        s->had += took * rate;
        s->used += took * rate * s->jobs.n;
        s->delayed += took * (1 - rate) * s->jobs.n;
    }
    s->now = now;
}

void gp_share_add(gp_share *s, double work, int what, int who, int lane)
{
    gp_agenda_add(&s->jobs, s->had + work, what, who, lane);
}

double gp_share_next(const gp_share *s)
{
    if (!s->jobs.n)
        return INFINITY;
    double left = s->jobs.due[0].at - s->had, n = s->jobs.n + s->always;
    return s->now + (left > 0 ? n > s->capacity ? left * n / s->capacity : left : 0);
}
