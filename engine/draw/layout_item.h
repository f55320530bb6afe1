/* layout_item.h - what the files of the layout share. */
#ifndef GP_LAYOUT_ITEM_H
#define GP_LAYOUT_ITEM_H

#include "draw/layout.h"

/* A box, or a line on its way through a rank; `x` is its middle. */
typedef struct gp_item {
    double x, w;
    int rank, box;             /* box -1: a line */
} gp_item;

/* A piece of a line between items of neighboring ranks: end 0 above, 1 below. */
typedef struct gp_join {
    int end[2];
    double at[2];              /* where it meets them, from their middles */
    bool arrow, side;
} gp_join;

/* Numbers in groups: those of group i are list[start[i]] .. list[start[i + 1] - 1]. */
typedef struct gp_groups { int *start, *list; } gp_groups;

typedef struct gp_plane {
    gp_arena *arena;
    gp_box *box; int n;
    gp_edge *edge; int m;
    int *rank; int nranks;             /* of each box; how many there are */
    gp_item *item; int nitems, items_cap;      /* the boxes come first */
    gp_join *join; int njoins, joins_cap;
    int *last_join;                    /* of each edge */
    gp_groups ranks;                    /* items of each rank, from left to right */
    gp_groups joins[2];                 /* of each item: those to above, to below */
    double *top, *height;              /* of each rank */
} gp_plane;

static inline double gp_join_x(const gp_plane *l, const gp_join *j, int end)
{
    return l->item[j->end[end]].x + j->at[end];
}

/* layout_place.c: sets the order in ranks, the x of items and where joins meet boxes
 * that are not fixed, all in whole units from 0 on. Returns the width. */
double gp_place_items(gp_plane *l);

#endif
