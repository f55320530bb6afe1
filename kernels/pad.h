/* pad.h - what lies around a frame that is padded, as stages/pad.c describes it to copy.cu. */
#ifndef GP_PAD_H
#define GP_PAD_H

#include "copy.h"

enum { GP_PAD_MOST = 1 << 20 };        /* in front of a frame, and behind it, in an axis */
enum { GP_PAD_CONSTANT, GP_PAD_NEAREST, GP_PAD_REFLECT, GP_PAD_MIRROR, GP_PAD_WRAP };      /* as in stages/pad.c */

typedef struct gp_pad_axis {
    int64_t n, before, first;          /* of the frame; in front of it; the first of the slab in what is made */
    int64_t from, to;                  /* elements from one to the next */
    gp_divisor slab;                   /* elements of the slab */
} gp_pad_axis;

/* The slabs of axis `along`, of `all` elements, where GP_PAD_CONSTANT puts `value`, as it lies in memory. */
typedef struct gp_pad {
    char *to; size_t to_next;          /* of the first frame; bytes to the next frame's */
    const char *from; size_t from_next;
    gp_pad_axis axis[8];
    int axes, along, edge;
    unsigned all;
    uint64_t value;
} gp_pad;

#endif
