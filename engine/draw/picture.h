/* picture.h - a graph or plan as nodes and edges, to be drawn. */
#pragma once

#include "draw/measured.h"

typedef enum gp_pic_kind {
    GP_PIC_HOST, GP_PIC_DEVICE, GP_PIC_BUFFER, GP_PIC_CONST, GP_PIC_COPY, GP_PIC_KINDS
} gp_pic_kind;

typedef struct gp_pic_node {
    gp_pic_kind kind;
    int segment;               /* it is in this one, or -1 */
    int depth;                 /* of a buffer */
    const char *name;          /* of the stage or buffer; of a copy which way */
    const char *what;          /* kind, workers, regrouping; element type and shape; may be "" */
    const char *size;          /* "4 x 2.2 MiB"; "" for stages */
    const char *more;          /* all there is to say, a line */
    const char *note;          /* what was measured; "" */
    double busy;               /* the part of the run; < 0: not known */
    double full;               /* of a buffer: the part in use; < 0: not known */
} gp_pic_node;

/* `back`: what `to` has leads back to `from`, which carries the frame before. */
typedef struct gp_pic_edge { int from, to; bool back; } gp_pic_edge;

/* Every stage, buffer and copy is one node, every edge is there once; the edges have
 * no cycle, not between segments either. */
typedef struct gp_picture {
    const gp_graph *graph;
    const gp_plan *plan;       /* NULL: no segments, no copies */
    const gp_measured *measured;   /* NULL: nothing was */
    gp_pic_node *node; int nnodes, nodes_cap;
    gp_pic_edge *edge; int nedges, edges_cap;
    int *first, *next;         /* lists of nodes, from 1 on, 0 ends one: first[k + 1] of segment k, first[0] of
                                  none, next[i] behind node i */
} gp_picture;

/* `p` and `m` may be NULL; memory in `a`. */
gp_picture gp_picture_of(gp_arena *a, const gp_graph *g, const gp_plan *p, const gp_measured *m);
