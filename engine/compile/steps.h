/* steps.h - several iterations of a loop in one launch, where its body is one stage all of whose outputs are carried.
 *
 * loop.c asks the kind, and run/loop.c then says with each call of record() how many it does (gp_dcall.steps). */
#ifndef GP_STEPS_H
#define GP_STEPS_H

#include <gpipe/stage.h>

typedef struct gp_steps {
    gp_shape *shape;           /* of the loop, for memory and errors */
    void *opts;                /* of the stage, whose shape() is done; steps() may add to what that made */
    int nin, nout;
    const gp_type *in;
    const unsigned *varies;    /* per input: a set of axes in which frames may be shorter */
    int carries[GP_MAXPORT];   /* per output: the input that is what it was in the iteration before */
    int64_t times;             /* iterations in all, 2 at least */
    int sms, cc;               /* multiprocessors of a device, the least compute capability of any */
    int64_t most;              /* result: iterations of a launch, at most; at first 1 */
} gp_steps;

#endif
