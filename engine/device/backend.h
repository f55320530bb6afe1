/* backend.h - what the executor needs from a device. Each back end is one folder beside this one; the Makefile
 * registers it.
 *
 * The passes and the executor make all decisions; a back end owns memory and
 * replays what the plan decided. Its callers check the arguments; a back end
 * need not.
 *
 * Work reaches a device through a recorder (gp_rec). The executor describes a
 * launch as a body: a function that calls the recorder. The same body is
 * either built once into an exec and launched many times (launch: graph), or
 * run directly on a stream (launch: stream, partial frames). */
#pragma once

#include <stdatomic.h>
#include "compile/plan.h"

/* A piece of memory that a stage has been given for a launch. */
typedef struct gp_span {
    const char *name;          /* of the port, or what it is */
    char *data;
    size_t bytes;              /* of all its frames, each without what fills up its slot */
    size_t room;               /* ... of whole frames, where one has fewer rows */
    gp_dtype dtype;            /* GP_NO_DTYPE: bytes */
    bool output;               /* may be written */
} gp_span;

/* The recorder. Each back end embeds it as the first member of its own. */
typedef struct gp_rec_ops gp_rec_ops;
struct gp_rec {
    const gp_rec_ops *ops;
    gp_dev *dev;
    gp_errs *errs;
    const char *stage;         /* of the newest launch, for messages; NULL: not known */
    const gp_span *span; int nspans;   /* while a stage records: what it has been given */
    uint64_t frame;            /* ... for the first of these frames */
    bool check_kernels;        /* see gp_run_options */
    bool by_kernel;            /* copies that follow are not for a copy engine, where there is one; whole 16 bytes */
    const gp_priority *priority;       /* of the kernels that are launched next; NULL: the stream's */
    int64_t most;              /* ... what a call of record() may add to an exec, about: launches, copies and fills */
};

typedef bool (*gp_body)(gp_rec *r, void *arg);
/* A loop on the device: it does the body `turns` times, or fewer, if at the start of a turn the number at `flag` (i32,
 * device memory; NULL: there is none) is not 0. Loops are not nested. `counter`: 8 bytes of device memory, in which the
 * device counts turns. */
typedef struct gp_repeat {
    int64_t turns;
    const void *flag;
    void *counter;
    gp_body body;              /* called once, or for each turn */
    void *arg;
} gp_repeat;

/* For back ends: calls f, of whose errors none is missing; `stage` may be NULL. */
bool gp_library_do(gp_library *f, void *stream, const void *arg, const char *stage, gp_errs *errs);

/* For back ends: false after the error that the grid of a cooperative kernel has more than `most`
 * blocks. */
bool gp_cooperative_fits(gp_rec *r, const char *kernel, gp_dim3 grid, gp_dim3 block, unsigned most);

struct gp_rec_ops {
    /* What follows is item `id` (0, 1, 2, ... in order) and may start once the
     * items `dep` are done. An item without deps may start at once. A back end
     * that runs things in the order recorded may ignore this. */
    bool (*item)(gp_rec *r, int id, const int *dep, int ndeps);
    bool (*launch)(gp_rec *r, const gp_kernel *k, gp_dim3 grid, gp_dim3 block,
                   size_t shared, void *const *args, int nargs);
    bool (*copy)(gp_rec *r, void *dst, const void *src, size_t bytes);   /* any two places; see `reach` */
    bool (*fill)(gp_rec *r, void *dst, int byte, size_t bytes);
    bool (*repeat)(gp_rec *r, const gp_repeat *what);
    /* The current item goes on once order `o` has passed turn `turn` ... */
    bool (*order_wait)(gp_rec *r, int o, int slot);
    /* ... and lets it pass the next. See gp_backend.orders. */
    bool (*order_pass)(gp_rec *r, int o, int slot);
    /* Stamp i is the time at which what the current item depends on was done; on a
     * back end that runs things in the order recorded, all that is before it. */
    bool (*stamp)(gp_rec *r, int i);
    /* The items that follow have this label. NULL where `watch` is. */
    void (*label)(gp_rec *r, int label);
    /* Waits until all that was recorded is done (direct bodies, --isolate). */
    bool (*wait)(gp_rec *r);
    /* Once what the current item, the last, depends on is done, a launch of this exec tells whoever waits for it by a
     * word in memory. NULL: no word is needed. */
    bool (*done)(gp_rec *r);
    const gp_kernel *(*kernel)(gp_rec *r, const char *name);    /* built in */
    /* Calls f in order with what was recorded, see gp_call_library; `apart`: gp_call_library_apart. */
    bool (*call)(gp_rec *r, gp_library *f, const void *arg, size_t bytes, bool apart);
};

/* A kernel, a copy or a fill that a device did, of a launch with this tag and an item
 * with this label. */
typedef struct gp_activity {
    const char *name;          /* the kernel's; valid until the process ends */
    int64_t start, end;        /* CLOCK_MONOTONIC, ns */
    uint64_t tag;
    int label;
} gp_activity;

/* Memory of the host, pinned for the device; of the device; of both, of which the device fetches what it reads. */
typedef enum gp_memory { GP_MEMORY_PINNED, GP_MEMORY_DEVICE, GP_MEMORY_MANAGED } gp_memory;

typedef struct gp_exec gp_exec;            /* a body, ready to be launched */
typedef struct gp_resident gp_resident;    /* bodies as a kernel that is resident on the device */

typedef struct gp_backend {
    const char *name;          /* of its devices, as in `device: cuda:0` */

    /* Which devices there are: sets m->ndevices, device[], and why there are no more. Touches the driver. NULL: it
     * computes on the host, and has none of its own. */
    void (*find)(gp_machine *m);
    int toolkit;               /* what its libraries are of, 1000 * major + 10 * minor; 0: it has none */

    /* Opens device `index`. Slow; touches the driver. */
    gp_dev *(*open)(int index, gp_errs *errs);
    void (*close)(gp_dev *dev);

    /* From now on `dev` can copy directly from the memory of `other`, which the machine says is its peer; NULL: it can
     * anyway. */
    bool (*reach)(gp_dev *dev, gp_dev *other, gp_errs *errs);

    /* Zeroed memory, aligned to 256 bytes. */
    void *(*alloc)(gp_dev *dev, gp_memory kind, size_t bytes, gp_errs *errs);
    void (*free)(gp_dev *dev, gp_memory kind, void *mem, size_t bytes);
    /* Managed memory, of this device or another, is from now on only read: copies it to the device, if there is room.
     * NULL where all memory is the same. */
    bool (*fetch)(gp_dev *dev, void *mem, size_t bytes, gp_errs *errs);
    /* Managed memory is needed on this device soon: begins to bring it there, and does not wait. Any thread. */
    bool (*bring)(gp_dev *dev, void *mem, size_t bytes, gp_errs *errs);

    /* Makes `streams` streams, each with its priority, and `orders` orders of `slots` slots each. An
     * order serializes one stage over the launches of a segment: the
     * launch of frames [f, f+m) waits for slot (f-1) mod slots and passes slot
     * (f+m-1) mod slots. Launches are submitted in frame order, one thread. */
    bool (*prepare)(gp_dev *dev, int streams, const gp_priority *priority, int orders, int slots, gp_errs *errs);

    /* Makes room for n stamps in all; before a body has them. */
    bool (*stamps)(gp_dev *dev, int n, gp_errs *errs);
    /* Stamp i of a launch that is done: ns of CLOCK_MONOTONIC. Any thread. */
    int64_t (*stamped)(gp_dev *dev, int i);
    /* Marks in streams of others'; NULL: there are none. marks: makes n, before frame 0. mark: mark i is behind all
     * that is in `stream`, a CUstream_st, now. await: what is queued on stream k from now on waits until mark i is
     * passed; pass waits for that itself. One that was never set is passed. Any thread. */
    bool (*marks)(gp_dev *dev, int n, gp_errs *errs);
    bool (*mark)(gp_dev *dev, int i, void *stream, gp_errs *errs);
    bool (*await)(gp_dev *dev, int k, int i, gp_errs *errs);
    bool (*pass)(gp_dev *dev, int i, gp_errs *errs);
    /* NULL where stamps tell everything. watch: `note` is told of each activity, by any
     * thread, one at a time; before the first body is built. unwatch: on return it was
     * told of all that is done, and is told of no more. tag: what this thread launches from now on has this
     * tag; 0: none, of which `note` is not told. */
    bool (*watch)(gp_dev *dev, void (*note)(void *arg, const gp_activity *a), void *arg,
                  gp_errs *errs);
    void (*unwatch)(gp_dev *dev);
    void (*tag)(gp_dev *dev, uint64_t tag);
    /* Bytes a second between pinned memory and the device, in and out at the same
     * time; NULL: nothing is copied. Slow. */
    bool (*rates)(gp_dev *dev, double *in, double *out, gp_errs *errs);

    /* Body -> exec, to be launched on streams of the priority of `stream`, which is idle. */
    gp_exec *(*build)(gp_dev *dev, int stream, gp_body body, void *arg, gp_errs *errs);
    void (*discard)(gp_dev *dev, gp_exec *x);

    /* Gets ready what a body needs, before frame 0: it is recorded, so that its errors
     * are told, and its kernels are loaded. Nothing is run but what libraries are
     * called for, so that they have what they need. NULL: there is nothing
     * to load. */
    bool (*load)(gp_dev *dev, gp_body body, void *arg, gp_errs *errs);

    /* Queue on a stream, in order with what is there; return at once. */
    bool (*launch)(gp_dev *dev, int stream, gp_exec *x, gp_errs *errs);
    bool (*direct)(gp_dev *dev, int stream, gp_body body, void *arg, gp_errs *errs);

    /* Is everything queued on the stream done? 1 yes, 0 no, -1 failed (with an
     * error). query returns at once; wait blocks as `sync` says. Any thread. */
    int (*query)(gp_dev *dev, int stream, gp_errs *errs);
    int (*wait)(gp_dev *dev, int stream, gp_sync sync, gp_errs *errs);

    /* Calls f, which may call libraries, with the device as this thread's current one, and then puts back what was.
     * False: the device has stopped, and f was not called. */
    bool (*call)(gp_dev *dev, void (*f)(void *arg), void *arg);

    /* See gp_device_place. NULL: there are no streams of others'. */
    bool (*place)(gp_dev *dev, int *index, void **stream, gp_errs *errs);

    /* The CPU time that kernels have taken so far on a stream, in ns; NULL where they run
     * elsewhere. Any thread. */
    uint64_t (*computed)(gp_dev *dev, int stream);

    /* launch: persistent, kernels that are resident on the device; NULL where an exec is as good.
     * create: slot[i] is the body's argument for slot i; at most `depth` frames are in
     * flight; it takes 1 / shares of the device. start: once all segments are set up;
     * stop: again does nothing; destroy: once all have stopped. submit hands over a slot
     * and numbers it from 0; done: is number k done? 1 yes, 0 no, -1 failed; with errs
     * NULL it only looks at memory. One thread submits, one asks. */
    gp_resident *(*resident_create)(gp_dev *dev, gp_body body, void *const *slot, int slots,
                                    int depth, int shares, gp_errs *errs);
    bool (*resident_start)(gp_resident *x, gp_errs *errs);
    uint64_t (*resident_submit)(gp_resident *x, int slot);
    int (*resident_done)(gp_resident *x, uint64_t k, gp_errs *errs);
    void (*resident_stop)(gp_resident *x);
    void (*resident_destroy)(gp_resident *x);

    /* The kernels that are built in; NULL: none of this name. */
    const gp_kernel *(*builtin)(gp_dev *dev, const char *name);
    /* The user's kernels; see gp_kernel_compile. */
    const gp_kernel *(*compile)(gp_dev *dev, const gp_source *src, gp_errs *errs);
} gp_backend;

struct gp_dev {                    /* each back end embeds it first, zeroed */
    const gp_backend *backend;
    const char *name;              /* "cuda:1", for errors, where a run has several; else NULL */
    atomic_int compiling;          /* calls of gp_kernel_compile that are not back; any thread */
    const atomic_int *cancel;      /* not 0: what compiles gives up at once; or NULL */
};

/* All of this build, ends with NULL; the Makefile writes the list. The first is that of the CPU. */
extern const gp_backend *const gp_backends[];
extern const gp_backend gp_backend_cpu;
/* The one that has devices of its own; NULL: this build has none. */
const gp_backend *gp_backend_gpu(void);
