/* communicator.h - the communicator of NCCL that all collective stages of a process share, with the ranks as its ranks.
 *
 * NCCL needs all ranks to begin its operations in one order, and the stages have none between them. So where there are
 * several, rank 0 gives an operation for which all ranks have a frame the next number, and each rank begins them by
 * number. A rank has begun an operation only when all will; and where one of them then ends nevertheless, the others
 * abort it. */
#pragma once

#include "gpipe/stage.h"

typedef struct gp_comm gp_comm;

/* For open() of a stage on the device; all ranks call it. NULL with an error; or without one where some rank cannot
 * take part, as when two share a GPU: `why` then says so. */
gp_comm *gp_comm_open(const gp_open *o, char why[160]);
/* For close(). `whole`: finish() was called, so that no operation is under way. */
void gp_comm_close(gp_comm *comm, bool whole);

/* For run(): all ranks are about to do the same, with `n` frames of this call. Calls f, which queues one operation,
 * or one group of them, on `stream`, and returns NCCL's status; lets the next frames begin, and waits until it is
 * done. Before it `before` queues other work, or is NULL. False after an error, or when the run is cancelled. */
typedef struct gp_comm_work {
    int n;
    bool (*before)(gp_dcall *d, const void *arg);
    int (*f)(void *comm, void *stream, const void *arg);
    const void *arg;
} gp_comm_work;
bool gp_comm_do(gp_call *c, gp_comm *comm, const gp_comm_work *work);
