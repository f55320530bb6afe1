/* loop.h - the body of a stage `loop`: device stages that are repeated within one launch.
 *
 * loop.c resolves it as a graph of its own when shape() is called, and says where each of its buffers lies: in a slot
 * of the loop's inputs and outputs, or in the loop's scratch memory. run/loop.c records it. */
#pragma once

#include "compile/ir.h"

enum { GP_LOOP_BUFFERS = 128, GP_LOOP_NONE = -1 };

/* A buffer of the body, with the index that it has in its graph. */
typedef struct gp_loop_buffer {
    int in;                    /* the loop's input that it is, or GP_LOOP_NONE; */
    int carries;               /* then: the buffer whose frame of the iteration before it is, from the second on */
    int out;                   /* the loop's output that it is, or GP_LOOP_NONE: then it is at[0] of scratch */
    bool carried;              /* an input carries it: iterations write it in turns to two places, the other is at[1] */
    size_t at[2];              /* bytes from the start of scratch */
} gp_loop_buffer;

typedef struct gp_loop {
    gp_graph *graph;           /* of the body: stages in order, buffers */
    gp_loop_buffer *buffer;
    int64_t times;
    int64_t steps;             /* iterations of a launch, at most: more than 1 where the only stage's kind says so */
    int flag;                  /* the buffer of `until`, or GP_LOOP_NONE; */
    int64_t every;             /* then: after how many iterations it is looked at */
    size_t *table;             /* per stage: where its table is in the loop's, in bytes */
    size_t *scratch;           /* per stage: where its scratch memory is in the loop's; all share one, but those with a
                                  scratch_zero */
    size_t counter;            /* ... and 8 bytes that a device counts in */
} gp_loop;

/* The options of `loop`. */
typedef struct gp_loop_opts {
    int64_t times;
    const gp_node *carry, *until, *buffers, *stages;
    gp_loop *loop;             /* not an option: made by shape() */
} gp_loop_opts;

/* Launches of each stage that n iterations take. */
static inline int64_t gp_loop_launches(const gp_loop *l, int64_t n)
{
    return (n + l->steps - 1) / l->steps;
}

/* shape() of `loop`. */
bool gp_loop_shape(gp_shape *s);
/* The body of a stage, NULL where that is no loop, or before shape(). */
const gp_loop *gp_stage_loop(const gp_stage *st);
/* The types of all buffers of the body, for inputs of the types `in`. Allocates nothing. */
bool gp_loop_types(const gp_loop *l, const gp_type *in, gp_type type[GP_LOOP_BUFFERS], gp_errs *errs);
