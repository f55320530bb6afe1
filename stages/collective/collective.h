/* collective.h - a stage in which all ranks take part, on the host or in the memory of a GPU.
 *
 * Where its frames lie on the host, they go through MPI, which is what rounds.h does. Where they lie in the memory of a
 * GPU, they go through NCCL from there; through MPI and the host's memory where NCCL cannot, as in the last rounds, in
 * which some ranks have no frame. A process that is alone copies, on the device where its frames are made there. */
#pragma once

#include "device/libraries.h"
#include "rounds.h"

typedef enum gp_collective_by { GP_BY_AUTO, GP_BY_MPI, GP_BY_GPU } gp_collective_by;

/* The options of each kind begin with these, of which `by` is an option. */
typedef struct gp_collective_opts { int by; } gp_collective_opts;
#define GP_COLLECTIVE_BY                                                                                            \
    { GP_ENUM(gp_collective_opts, by), .def = "auto", .choices = "auto|mpi|nccl",                                   \
      .help = "nccl: from and to the memory of GPUs, one for each rank, where the stages before and behind it are;"  \
              " mpi: of the host; auto: nccl where it can" }

enum { GP_COLLECTIVE_RUN = 4 };        /* gp_kind.max_run: what is agreed on for several frames costs as much as for one */

/* A stage does this with a round. All are of one frame, whose views are `x` and `y`. */
typedef struct gp_collective {
    /* The part of x that is sent, and in *n its bytes; NULL: all of x. All memory is the host's. May use r->mine. */
    const void *(*mine)(const void *opts, gp_rounds *r, const gp_view *x, size_t *n);
    size_t (*most)(const void *opts, const gp_type *x);        /* the bytes that it makes; NULL: those of x */
    /* The rows of a part that must be alike on all ranks, as those of x may differ; or NULL: they may not. */
    int64_t (*rows)(const void *opts);
    /* Makes y of x and of what the ranks sent, n bytes each; all memory is the host's. */
    void (*make)(const void *opts, const gp_rounds *r, const gp_view *x, const char *all, size_t n, gp_view *y);
    /* Has this rank none of what is made, as another has all? Or NULL. */
    bool (*elsewhere)(const void *opts, const gp_rounds *r);
    /* The type that a rank gets of what all have, where that is no frame of the same shape; or NULL. */
    gp_type (*makes)(const gp_type *alike);
    /* The same by NCCL: queues operations, which are one group, on views of device memory. */
    int (*queue)(const void *opts, const gp_rounds *r, const gp_view *x, const gp_view *y, void *comm, void *stream);
    /* Before it, what a device can do alone. Of a process that is alone, all of it; NULL: x is copied then. */
    bool (*before)(gp_dcall *d, const void *opts, const gp_rounds *r, const gp_view *x, const gp_view *y);
    bool some;                         /* as gp_rounds_open */
} gp_collective;

/* The traffic from each rank to the next in a round, for simulations, which take ranks to be in a ring.
 *   mine   by MPI: that many bytes of each rank go to all others, in ranks - 1 steps (Thakur, Rabenseifner, Gropp:
 *          Optimization of Collective Communication Operations in MPICH, 2005, section 4.1)
 *   bytes, steps   by NCCL: a sum takes 2 (ranks - 1) steps with a part of 1 / ranks of the frame in each (Patarasuk,
 *          Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009, J. Parallel Distrib.
 *          Comput. 69, 117-124; PERFORMANCE.md of nccl-tests) */
typedef struct gp_traffic { size_t mine; double bytes; int steps; } gp_traffic;

/* For shape(), when the types are known: where it runs. `unfit`: why NCCL cannot do this, or NULL. False with an
 * error. */
bool gp_collective_shape(gp_shape *s, const char *unfit, const gp_traffic *traffic);

/* What is made where the frames of all ranks are one, along a new first axis (gp_shape_stack): all that was sent. */
void gp_collective_all(const void *opts, const gp_rounds *r, const gp_view *x, const char *all, size_t n, gp_view *y);

bool gp_collective_open(const gp_open *o, void **state);
void gp_collective_close(void *state);
bool gp_collective_run(gp_call *c, gp_frame *f, int n);
bool gp_collective_skipped(gp_call *c, uint64_t index);
bool gp_collective_finish(gp_call *c);

bool gp_collective_record(gp_dcall *d);                    /* of a process that is alone */

void gp_collective_advise(gp_advice *a);

/* All collective kinds say this of themselves; `how` is a gp_collective. */
#define GP_COLLECTIVE(how)                                                                                          \
    .user = (void *)&how, .open = gp_collective_open,                                                               \
    .collective = true, .max_run = GP_COLLECTIVE_RUN, .fills_device = true, .reads_device = true,                   \
    .run = gp_collective_run, .close = gp_collective_close, .skipped = gp_collective_skipped,                       \
    .finish = gp_collective_finish, .record = gp_collective_record, .advise = gp_collective_advise
