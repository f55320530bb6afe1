/* copy.h - a copy of frames between layouts, as stages/format/strided.c describes it to copy.cu. Steps are in bytes.
 *
 * A copy has fewer than 2^31 of what it counts (`all`), so that an index is taken apart by 32-bit products. */
#ifndef GP_COPY_H
#define GP_COPY_H

#ifndef __CUDACC_RTC__
#include <stddef.h>
#include <stdint.h>
#endif

enum { GP_LAYOUT_AXES = 9, GP_COPY_LONG = 512 };           /* bytes: runs of any alignment from there on go by 16 */

/* i / d = (the high half of i m, + i) >> shift, for i < 2^31 (Granlund and Montgomery, "Division by invariant integers
 * using multiplication", 1994). */
typedef struct gp_divisor { unsigned d, m, shift; } gp_divisor;

typedef struct gp_layout_axis {
    int64_t from, to;                  /* from an element to the next, in the source and in what is made */
    gp_divisor n;
} gp_layout_axis;

/* The axes that are counted are `axis[0 .. axes - 1]`, the last one fastest; each of these is
 *
 *   copy_runs_W   a run of `run` bytes in words of W bytes; with W 1 of any alignment
 *   copy_each_W   `chunk` words of W bytes, or as many as there are left, along p
 *   copy_tile_W   a tile of words along q and p: the source is read along q, what is made is written along p. A place
 *                 in a tile has `wide` words; tile_q and tile_p are its sides, `pitch` the bytes of a line of it in
 *                 shared memory */
typedef struct gp_layout {
    char *to; size_t to_next;          /* of the first frame; bytes to the next frame's */
    const char *from; size_t from_next;
    size_t run;
    gp_layout_axis axis[GP_LAYOUT_AXES], p, q;
    int axes;
    unsigned all, chunk;
    unsigned wide, tile_p, tile_q, pitch;
    gp_divisor chunks;                 /* of a line along p */
    gp_divisor tiles_p, tiles_q, words_p, words_q, words;      /* tiles of a plane; words of a tile's side; `wide` */
} gp_layout;

#endif
