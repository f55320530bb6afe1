/* layout.h - boxes and the edges between them, put on a plane in ranks from top to
 * bottom. Units are those of the boxes' sizes. */
#ifndef GP_LAYOUT_H
#define GP_LAYOUT_H

#include <stdbool.h>
#include "base/arena.h"

typedef enum gp_rank { GP_RANK_ANY, GP_RANK_FIRST, GP_RANK_LAST } gp_rank;

typedef struct gp_box {
    double w, h;               /* whole numbers, w an even one */
    gp_rank rank;              /* FIRST: no edge leads to it; LAST: nor from it, and only
                                  such are in the last rank */
    bool fixed;                /* its edges say where they meet it */
    double aim;                /* FIRST: those that have one (not 0) are in its order */
    double x, y;               /* set: its top left corner */
} gp_box;

/* A piece of a line: straight down at `x`. From one to the next it may curve. */
typedef struct gp_bend { double x, y0, y1; } gp_bend;

typedef struct gp_edge {
    int from, to;              /* boxes */
    double from_at, to_at;     /* where it meets them, from their left edge; set,
                                  unless the box is fixed */
    bool arrow;                /* it ends with an arrow, which wants room */
    bool back;                 /* an arrow is at `from`, beside its other lines */
    bool side;                 /* comes from the side: `to` is not put below it */
    double label;              /* how wide a label is that may stand for the line */
    bool cut;                  /* set: it is too long to follow; its bends are those
                                  from the label (its lower edge at bend[0].y0) on */
    gp_bend *bend; int nbends; /* set: two or more, from top to bottom */
} gp_edge;

/* Fills in what is set, in whole units. The edges must have no cycle and not be
 * given twice. No two boxes overlap, no line meets a box but its own two; lines
 * from one point of a box share their way. Deterministic; time is near linear in
 * n + m, since what an edge may take is bounded. */
void gp_layout(gp_arena *a, gp_box *box, int n, gp_edge *edge, int m, double *w, double *h);

#endif
