/* fusing.h - what is known while stages are fused: fuse.c finds out who joins whom, fuse_graph.c makes the new graph. */
#pragma once

#include "compile/fuse.h"
#include "compile/resolve.h"

/* What a stage that is made of others has while fuse() is asked. */
typedef struct gp_joined {
    gp_fuse fuse;
    gp_fuse_part part[GP_FUSE_MOST];
    gp_stage stage;
    gp_type in[GP_MAXPORT], out[GP_MAXPORT];
    unsigned in_varies[GP_MAXPORT], out_varies[GP_MAXPORT];
    gp_shape_ctx ctx, part_ctx[GP_FUSE_MOST];
    gp_vars vars[GP_FUSE_MOST];
} gp_joined;

typedef struct gp_fusing {
    gp_resolving *r;
    const gp_graph *g;
    const gp_kind *kind;       /* that fuses */
    bool compiler;             /* of what the device runs */
    const int *segment;        /* of each stage */
    uint64_t *roots;           /* of each stage: the frames that its segment takes in and that it is made of, as a set */
    int *group, *next, *last;  /* of each stage: the first one of its group, the one behind it in order or -1; of each
                                  first one the last */
    gp_joined **made;          /* of each first one: the stage that its group becomes, NULL: it is alone */
    void **kept;               /* of each stage, see gp_fuse_part */
    int *begin, *behind;       /* of stage v: those that use a state behind it, behind[begin[v]] to behind[begin[v + 1]] */
    int *seen, walk;           /* of each first one: the walk that came by; its number */
    int *stack;                /* ... room for one */
    gp_unfused *not; int nnot, not_cap;
} gp_fusing;

/* The graph with a stage for each group. */
gp_graph *gp_fusing_rebuild(gp_fusing *f);
