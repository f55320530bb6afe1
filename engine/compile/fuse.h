/* fuse.h - neighbors that compute element by element become one stage, with a reduction behind them.
 *
 * fuse.c says which; the kind that has fuse() makes one stage of them, of its own kind. */
#pragma once

#include <gpipe/stage.h>

enum { GP_FUSE_MOST = 64, GP_FUSE_WHY = 200 };

/* One of the stages, in an order in which each comes behind what it reads. */
typedef struct gp_fuse_part {
    gp_shape *shape;           /* as it was when its shape() was done */
    const char *expr;          /* as shape() said; NULL: it is of the kind that fuses, or a reduction */
    gp_reduction reduction;    /* op 0: it is none; of no more than one part */
    void **kept;               /* that kind's own, from call to call */
    /* Per input: output `port` of an earlier part; or, with part -1, input `port` of the new stage. */
    struct { int part, port; } from[GP_MAXPORT];
    int to[GP_MAXPORT];        /* per output: the output of the new stage that it is, or -1: nobody else reads it */
} gp_fuse_part;

typedef struct gp_fuse {
    gp_shape *shape;           /* of the new stage: types of inputs; of outputs too; fuse() sets the rest */
    gp_fuse_part *part; int n;
    bool steps;                /* of a loop: parts are done one after the other, and may read neighbors of what earlier
                                  ones make. The stage is only of use if steps() of the kind then finds more than one */
    unsigned consts;           /* a set of the new stage's inputs: those that are constants */
    void *opts;                /* result: options of the new stage */
    char why[GP_FUSE_WHY];     /* result: why it cannot be, behind "because " */
} gp_fuse;
