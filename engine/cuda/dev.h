/* dev.h - what the files of the CUDA back end share: the open device and
 * how its errors are reported. The comment at the top of cuda.c says how it works. */
#pragma once

#include <cuda_runtime_api.h>
#include <cudaTypedefs.h>
#include <pthread.h>
#include <stdatomic.h>
#include "device/backend.h"
#include "base/table.h"

extern const gp_backend gp_backend_cuda;
void gp_cuda_devices(gp_machine *m);      /* machine.c; see gp_backend.find */

/* How many blocks of a cooperative kernel the GPU has room for at once. */
typedef struct gp_cuda_room {
    unsigned threads;              /* in a block; 0: not yet asked */
    size_t shared;                 /* dynamic, bytes */
    unsigned blocks;
} gp_cuda_room;

struct gp_kernel {
    gp_kernel *next;
    const char *name;              /* the library's */
    cudaKernel_t fn;
    int threads;                   /* the most in one block, for its registers */
    size_t shared;                 /* the most dynamic shared memory, bytes */
    const char *file;              /* of a built-in one: "kernels/NAME.fatbin" */
    gp_source source;              /* of a user's; else its path is NULL */
    bool waits;                    /* gp_grid_wait() is not empty in it, see kernels/kernel.h; */
    bool early;                    /* ... and its source says GP_EARLY */
    gp_cuda_room room;             /* as last asked: a stage's launches are alike */
};

/* A completion flag in pinned memory, on a cache line of its own: the host makes it 0 before a launch of the exec that has
 * it, and a kernel, the last of the graph, makes it 1. */
typedef struct gp_cuda_word gp_cuda_word;
struct gp_cuda_word {
    _Alignas(64) _Atomic uint32_t done;
    gp_cuda_word *next;            /* of those that no exec has */
};

struct gp_exec {
    gp_exec *next, **at;           /* at: what points to it */
    cudaGraphExec_t graph;
    gp_cuda_word *word;            /* NULL: none */
};

typedef struct gp_cuda_span {      /* memory that alloc gave */
    const char *at;
    size_t bytes;
    gp_memory kind;
} gp_cuda_span;

/* Functions of the driver, as driver.c finds them. */
typedef struct gp_cuda_driver {
    PFN_cuCtxGetCurrent_v4000 get_current;
    PFN_cuCtxSetCurrent_v4000 set_current;
    PFN_cuKernelGetFunction_v12000 kernel_function;
    PFN_cuFuncLoad_v12040 load_function;
    PFN_cuKernelGetParamInfo_v12040 parameter;
    PFN_cuModuleLoadDataEx_v2010 load_module;
    PFN_cuModuleUnload_v2000 unload_module;
} gp_cuda_driver;

typedef struct gp_cuda_dev {
    gp_dev base;
    gp_cuda_driver driver;
    int index, cc;
    CUcontext context;             /* the device's primary one; NULL: not yet open */
    int node;                      /* host memory next to the GPU; -1: not known */
    size_t shared_max;             /* per block, static and dynamic, bytes */
    int least, greatest;           /* priorities of streams, of which a lower number comes first */
    atomic_bool dead;              /* a fault was reported */
    cudaStream_t service;          /* set-up work: clearing, loading */
    cudaStream_t bringing;         /* managed memory that is needed soon; NULL: none was taken */
    cudaStream_t inner;            /* captures what a loop repeats, while another is captured */
    cudaStream_t apart;            /* of libraries that take one for good; NULL: none asked for it; */
    cudaEvent_t apart_event;       /* ... what it waits for, or others wait for; */
    pthread_mutex_t apart_lock;    /* ... of both, and of what is put there */
    cudaStream_t *stream;
    cudaEvent_t *wake;             /* per stream: wakes who sleeps until it is empty; */
    gp_cuda_word **word;           /* ... that of what was launched there last, NULL: it has none */
    gp_cuda_word *words;           /* those that no exec has */
    int nstreams;
    cudaEvent_t *order;            /* [order][slot] */
    int norders, nslots;
    cudaEvent_t *stamp; int nstamps;
    cudaEvent_t *mark; int nmarks;
    cudaEvent_t base_event, base_try;      /* stamp.c */
    int64_t base_ns;               /* CLOCK_MONOTONIC when base_event was reached */
    pthread_mutex_t stamp_lock;    /* of these three */
    struct gp_cuda_library *libs;
    gp_table builtin;              /* kernels by name */
    gp_kernel *compiled;           /* the user's */
    pthread_mutex_t room_lock;     /* of the room of each: segments record at the same time */
    gp_exec *execs;
    gp_cuda_span *span;            /* by address */
    int nspans, span_cap;
} gp_cuda_dev;

static inline gp_cuda_dev *gp_cuda(gp_dev *dev)
{
    return (gp_cuda_dev *)dev;
}

/* ---- errors (cuda.c) ------------------------------------------------- */

/* Has the device had no fault? Then its context is made this thread's current one,
 * whatever an application has made current meanwhile; that costs tens of nanoseconds. */
bool gp_cuda_alive(gp_cuda_dev *d);
/* Reports "WHAT: NAME: DESCRIPTION"; a fault the first time only, nothing after
 * it. Returns false. */
bool gp_cuda_failed(gp_cuda_dev *d, cudaError_t e, gp_errs *errs, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The same unless `e` is no error; then true. */
bool gp_cuda_ok(gp_cuda_dev *d, cudaError_t e, gp_errs *errs, const char *what);
/* Zeroed host memory for n things, to be freed; NULL after an error. */
void *gp_cuda_table(size_t n, size_t size, gp_errs *errs);

/* The device's number for it. */
int gp_cuda_priority(const gp_cuda_dev *d, gp_priority p);

/* Where `p` points: 1 this device, 0 host, -1 either, or memory that alloc did not give. */
int gp_cuda_side(const gp_cuda_dev *d, const void *p);

/* ---- the driver (driver.c) ------------------------------------------- */

bool gp_cuda_find_driver(gp_cuda_dev *d, gp_errs *errs);

/* The context that is current on this thread. What an application's thread may call
 * notes it at its start and puts it back at its end. */
CUcontext gp_cuda_current(const gp_cuda_dev *d);
void gp_cuda_set_current(const gp_cuda_dev *d, CUcontext context);

/* Sees to it that there is one that no exec has, and to the kernel for it; then take may be called, also while a stream is
 * captured. */
bool gp_cuda_word_make(gp_cuda_dev *d, gp_errs *errs);
gp_cuda_word *gp_cuda_word_take(gp_cuda_dev *d);
void gp_cuda_word_give(gp_cuda_dev *d, gp_cuda_word *w);       /* NULL: nothing */

/* ---- kernels (kernel.c) ---------------------------------------------- */

bool gp_cuda_load_builtin(gp_cuda_dev *d, gp_errs *errs);
void gp_cuda_unload(gp_cuda_dev *d);           /* every kernel; dead or alive */
const gp_kernel *gp_cuda_find(const gp_cuda_dev *d, const char *name);     /* NULL: none */
/* kernels/loop.cu, which is loaded at the first call; NULL after errors. Segments are set up one after the other. */
const gp_kernel *gp_cuda_loop_turn(gp_cuda_dev *d, gp_errs *errs);
const gp_kernel *gp_cuda_compile(gp_dev *dev, const gp_source *src, gp_errs *errs);
/* Leaves nothing for the kernel's first launch to do: that may synchronize the device. */
bool gp_cuda_load_kernel(gp_cuda_dev *d, cudaKernel_t fn, const char *name, gp_errs *errs);

/* ---- graphs (recorder.c) -------------------------------------------------- */

gp_exec *gp_cuda_build(gp_dev *dev, int stream, gp_body body, void *arg, gp_errs *errs);
void gp_cuda_discard(gp_dev *dev, gp_exec *x);
bool gp_cuda_load(gp_dev *dev, gp_body body, void *arg, gp_errs *errs);
/* Runs the body on the stream, without the event. */
bool gp_cuda_run(gp_cuda_dev *d, cudaStream_t stream, gp_body body, void *arg, gp_errs *errs);

/* ---- stamps, rates (stamp.c): see gp_backend --------------------- */

bool gp_cuda_stamps(gp_dev *dev, int n, gp_errs *errs);
int64_t gp_cuda_stamped(gp_dev *dev, int i);
bool gp_cuda_rates(gp_dev *dev, double *in, double *out, gp_errs *errs);
void gp_cuda_unstamp(gp_cuda_dev *d);          /* destroys the events */

/* ---- marks (mark.c): see gp_backend ---------------------------------- */

bool gp_cuda_marks(gp_dev *dev, int n, gp_errs *errs);
bool gp_cuda_mark(gp_dev *dev, int i, void *stream, gp_errs *errs);
bool gp_cuda_await(gp_dev *dev, int stream, int i, gp_errs *errs);
bool gp_cuda_pass(gp_dev *dev, int i, gp_errs *errs);
void gp_cuda_unmark(gp_cuda_dev *d);           /* destroys the events */

/* ---- traces in full (cupti.c): see gp_backend -------------------- */

bool gp_cuda_watch(gp_dev *dev, void (*note)(void *arg, const gp_activity *a), void *arg,
                   gp_errs *errs);
void gp_cuda_unwatch(gp_dev *dev);
void gp_cuda_tag(gp_dev *dev, uint64_t tag);
void gp_cuda_label(int label, bool in_graph);

/* ---- resident kernels (resident.c) ----------------------------------- */

gp_resident *gp_cuda_resident_create(gp_dev *dev, gp_body body, void *const *slot, int slots, int depth,
                            int shares, gp_errs *errs);
bool gp_cuda_resident_start(gp_resident *x, gp_errs *errs);
uint64_t gp_cuda_resident_submit(gp_resident *x, int slot);
int gp_cuda_resident_done(gp_resident *x, uint64_t k, gp_errs *errs);
void gp_cuda_resident_stop(gp_resident *x);
void gp_cuda_resident_destroy(gp_resident *x);
