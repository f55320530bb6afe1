/* slot_walk.h - from slot to slot of a ring, whose last is followed by its first, without a
 * division at each. */
#pragma once

#include "run/run.h"

typedef struct gp_walk {
    char *data, *first_data;
    gp_meta *meta, *first_meta;
    size_t stride;
    int left, depth;           /* slots up to where the ring begins again */
} gp_walk;

static inline gp_walk gp_walk_from(const gp_ringrt *r, uint64_t frame)
{
    int depth = r->ring->depth, at = (int)(frame % (uint64_t)depth);
    return (gp_walk){ r->base + (size_t)at * r->stride, r->base, r->meta + at, r->meta, r->stride,
                      depth - at, depth };
}

static inline void gp_walk_on(gp_walk *w)
{
    w->data += w->stride, w->meta++;
    if (!--w->left)
        w->data = w->first_data, w->meta = w->first_meta, w->left = w->depth;
}
