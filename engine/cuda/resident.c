/* resident.c - launch: persistent. A segment's kernels are compiled into one
 * (kernels/resident.h) that is resident on the GPU and takes frames from a ring in
 * pinned memory: the host submits a frame with one store, and the GPU says with another
 * that it is done.
 *
 * What the body of each slot does is recorded once, into a table of operations in
 * the GPU's memory. Invariant: from the start of a resident kernel to its stop no segment
 * calls anything that synchronizes the device; so all are started when everything is set
 * up, and all are stopped before anything is freed. */
#include <stdlib.h>
#include <string.h>
#include "cuda/dev.h"
#include "cuda/nvrtc.h"

enum { COPY_IN, COPY, FILL, KERNEL };          /* gp_op.code, as in resident.h */
enum { WORD_SLOT_BITS = 20, TURNS = 8 };       /* blocks of a grid that one block works off */

typedef struct op {
    int32_t code, kernel;
    char *dst;
    const char *src;
    uint64_t bytes;
    uint32_t grid[3], block[3];
    uint32_t byte, args;
} op;

typedef struct params {        /* gp_params of resident.h */
    const op *op;
    const char *args;
    int32_t ops, team, teams;
    uint32_t cap;
    const uint64_t *word;
    const uint32_t *slot;
    uint64_t *done;
    uint64_t *known, *turn, *pass;
} params;

struct gp_resident {
    gp_cuda_dev *dev;
    cudaStream_t stream;
    cudaLibrary_t lib;
    cudaKernel_t fn;
    params s;
    int threads;
    size_t shared;
    bool runs;
    /* The host's side of the ring, in one piece of pinned memory: each on lines of its own. */
    char *host;
    _Atomic uint64_t *word;
    uint32_t *slot;
    _Atomic uint64_t *done;
    uint64_t submitted;
};

/* ---- recording ------------------------------------------------------- */

typedef struct recorder {
    gp_rec rec;
    op *op; int nops, op_cap;
    char *args; size_t nargs, args_cap;
    const gp_kernel **kernel; int nkernels, kernel_cap;
    int threads;               /* of every block */
    size_t shared, blocks;     /* the most of any kernel */
} recorder;

static bool refuse(gp_rec *r, const char *why)
{
    return gp_fail(r->errs, GP_E_SPEC, (gp_loc){ 0 },
                   "'launch: persistent' cannot have %s: set 'launch: graph'", why);
}

/* Room for `more` elements behind n in the growing table *v of *cap. */
static bool room(void **v, size_t n, size_t more, size_t *cap, size_t size, gp_errs *errs)
{
    if (n + more <= *cap)
        return true;
    size_t to = 2 * (n + more) + 64;
    void *p = realloc(*v, to * size);
    if (!p)
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    memset((char *)p + n * size, 0, (to - n) * size);
    *v = p, *cap = to;
    return true;
}

static op *push(recorder *r, int code)
{
    size_t cap = (size_t)r->op_cap;
    void *v = r->op;
    if (!room(&v, (size_t)r->nops, 1, &cap, sizeof *r->op, r->rec.errs))
        return NULL;
    r->op = v, r->op_cap = (int)cap;
    op *o = &r->op[r->nops++];
    *o = (op){ .code = code };
    return o;
}

static int index_of(recorder *r, const gp_kernel *k)
{
    for (int i = 0; i < r->nkernels; i++)
        if (r->kernel[i] == k)
            return i;
    size_t cap = (size_t)r->kernel_cap;
    void *v = r->kernel;
    if (!room(&v, (size_t)r->nkernels, 1, &cap, sizeof *r->kernel, r->rec.errs))
        return -1;
    r->kernel = v, r->kernel_cap = (int)cap;
    r->kernel[r->nkernels] = k;
    return r->nkernels++;
}

/* The arguments as a launch has them: each at its offset. */
static bool pack(recorder *r, const gp_kernel *k, void *const *args, int nargs, uint32_t *at)
{
    size_t start = (r->nargs + 15) & ~(size_t)15;
    for (int i = 0; i < nargs; i++) {
        size_t offset, size;
        void *v = r->args;
        if (!gp_cuda_ok(gp_cuda(r->rec.dev),
                        cudaFuncGetParamInfo((const void *)k->fn, (size_t)i, &offset, &size),
                        r->rec.errs, "looking at a kernel's parameters")
            || !room(&v, r->nargs, start + offset + size - r->nargs, &r->args_cap, 1, r->rec.errs))
            return false;
        r->args = v;
        memcpy(r->args + start + offset, args[i], size);
        r->nargs = start + offset + size;
    }
    *at = (uint32_t)start;
    return r->nargs < UINT32_MAX || refuse(&r->rec, "that many arguments");
}

static bool rec_item(gp_rec *rec, int id, const int *dep, int ndeps)
{
    return true;               /* all is done in the order recorded */
}

static bool rec_launch(gp_rec *rec, const gp_kernel *k, gp_dim3 grid, gp_dim3 block,
                       size_t shared, void *const *args, int nargs)
{
    recorder *r = (recorder *)rec;
    uint64_t threads = (uint64_t)block.x * block.y * block.z;
    uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;
    op *o = push(r, KERNEL);
    if (!o || (o->kernel = index_of(r, k)) < 0 || !pack(r, k, args, nargs, &o->args))
        return false;
    if (threads > 1024 || (r->threads && threads != (uint64_t)r->threads)) {
        char why[100];
        snprintf(why, sizeof why, "kernels with blocks of %d and of %llu threads in one segment",
                 r->threads, (unsigned long long)threads);
        return refuse(rec, why);
    }
    memcpy(o->grid, &grid, sizeof o->grid);
    memcpy(o->block, &block, sizeof o->block);
    r->threads = (int)threads;
    r->shared = shared > r->shared ? shared : r->shared;
    r->blocks = blocks > r->blocks ? blocks : r->blocks;
    return true;
}

static bool rec_copy(gp_rec *rec, void *dst, const void *src, size_t bytes)
{
    op *o = push((recorder *)rec, gp_cuda_side(gp_cuda(rec->dev), src) == 1 ? COPY : COPY_IN);
    if (!o)
        return false;
    o->dst = dst, o->src = src, o->bytes = bytes;
    return ((uintptr_t)dst | (uintptr_t)src | bytes) % 16 == 0
        || refuse(rec, "a copy that is not of whole 16 bytes");
}

static bool rec_fill(gp_rec *rec, void *dst, int byte, size_t bytes)
{
    op *o = push((recorder *)rec, FILL);
    if (o)
        o->dst = dst, o->byte = (uint32_t)byte, o->bytes = bytes;
    return o;
}

static bool rec_repeat(gp_rec *rec, const gp_repeat *what)
{
    return refuse(rec, "a loop of that many iterations");
}

static bool rec_order(gp_rec *rec, int o, int slot)
{
    return refuse(rec, "a stage whose frames take turns");
}

static bool rec_wait(gp_rec *rec)
{
    return refuse(rec, "a wait");
}

static const gp_kernel *rec_kernel(gp_rec *rec, const char *name)
{
    return gp_cuda_find(gp_cuda(rec->dev), name);
}

static bool rec_call(gp_rec *rec, gp_library *f, const void *arg, size_t bytes, bool apart)
{
    return refuse(rec, "a library's calls");
}

static const gp_rec_ops rec_ops = {
    .item = rec_item, .launch = rec_launch, .copy = rec_copy, .fill = rec_fill, .repeat = rec_repeat,
    .order_wait = rec_order, .order_pass = rec_order, .wait = rec_wait,
    .kernel = rec_kernel, .call = rec_call,
};

/* ---- the kernel ------------------------------------------------------- */

static bool compile(gp_resident *x, recorder *r, gp_errs *errs)
{
    gp_cuda_dev *d = x->dev;
    const gp_source **sources = gp_cuda_table((size_t)r->nkernels + 1, sizeof *sources, errs);
    gp_member *member = sources ? gp_cuda_table((size_t)r->nkernels + 1, sizeof *member, errs) : NULL;
    void *image = NULL;
    size_t bytes;
    int n = 0;
    for (int i = 0; member && i < r->nkernels; i++) {
        const gp_kernel *k = r->kernel[i];
        member[i] = (gp_member){ .name = k->file ? k->name : NULL, .file = k->file, .source = &k->source };
        if (!k->file)
            sources[n++] = &k->source;
    }
    char *text = member ? gp_resident_text(member, r->nkernels, errs) : NULL;
    bool ok = text && gp_nvrtc_compile_text(text, sources, n, d->cc, d->base.cancel, &image, &bytes,
                                            errs)
        && gp_cuda_ok(d, cudaLibraryLoadData(&x->lib, image, NULL, NULL, 0, NULL, NULL, 0), errs,
                      "loading a resident kernel")
        && gp_cuda_ok(d, cudaLibraryGetKernel(&x->fn, x->lib, "gp_resident"), errs,
                      "loading a resident kernel")
        && gp_cuda_ok(d, cudaFuncSetAttribute(x->fn, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              (int)r->shared), errs,
                      "asking for a resident kernel's shared memory")
        && gp_cuda_load_kernel(d, x->fn, "gp_resident", errs);
    free(text), free(image), free(sources), free(member);
    return ok;
}

/* ---- set-up ---------------------------------------------------------- */

/* How many blocks a frame gets, and how many frames are worked off at once: within
 * three quarters of the part 1 / `shares` of the GPU, so that what is launched beside
 * it finds room. */
static bool make_teams(gp_resident *x, const recorder *r, int depth, int shares, gp_errs *errs)
{
    gp_cuda_dev *d = x->dev;
    int per_sm = 0, sms = 0;
    if (!gp_cuda_ok(d, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, x->fn, x->threads,
                                                                     x->shared), errs,
                    "looking at a resident kernel")
        || !gp_cuda_ok(d, cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, d->index),
                       errs, "looking at the GPU"))
        return false;
    int most = (per_sm > 2 ? 2 : per_sm) * (sms * 3 / 4) / shares;
    size_t team = (r->blocks + TURNS - 1) / TURNS;
    if (most < 1)
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "'launch: persistent': no block of "
                       "these kernels fits on the GPU (%d threads, %zu bytes of shared "
                       "memory, %d segments): set 'launch: graph'", x->threads, x->shared, shares);
    x->s.team = team > (size_t)most ? most : team ? (int)team : 1;
    x->s.teams = most / x->s.team < depth ? most / x->s.team : depth;
    return true;
}

static void *on_device(gp_cuda_dev *d, const void *from, size_t bytes, gp_errs *errs)
{
    void *p = d->base.backend->alloc(&d->base, GP_MEMORY_DEVICE, bytes ? bytes : 16, errs);
    if (p && from
        && !(gp_cuda_ok(d, cudaMemcpyAsync(p, from, bytes, cudaMemcpyHostToDevice, d->service),
                        errs, "copying")
             && gp_cuda_ok(d, cudaStreamSynchronize(d->service), errs, "copying"))) {
        d->base.backend->free(&d->base, GP_MEMORY_DEVICE, p, bytes);
        p = NULL;
    }
    return p;
}

static bool make_memory(gp_resident *x, const recorder *r, int slots, int depth, gp_errs *errs)
{
    enum { LINE = 128 };
    gp_cuda_dev *d = x->dev;
    params *s = &x->s;
    size_t own = 2 * LINE + (size_t)s->teams * 32 * sizeof(uint64_t);
    s->ops = r->nops / slots;
    for (s->cap = 1; s->cap < (uint32_t)depth + 1; s->cap *= 2)
        ;
    size_t table = (s->cap * sizeof *x->slot + LINE - 1) / LINE * LINE;
    char *mine = on_device(d, NULL, own, errs);
    x->host = d->base.backend->alloc(&d->base, GP_MEMORY_PINNED, LINE + table + s->cap * sizeof *x->done, errs);
    s->known = (uint64_t *)mine;
    s->op = on_device(d, r->op, (size_t)r->nops * sizeof *r->op, errs);
    s->args = on_device(d, r->args, r->nargs, errs);
    if (!mine || !x->host || !s->op || !s->args)
        return false;
    s->turn = (uint64_t *)(mine + LINE);
    s->pass = (uint64_t *)(mine + 2 * LINE);
    x->word = (_Atomic uint64_t *)x->host;
    x->slot = (uint32_t *)(x->host + LINE);
    x->done = (_Atomic uint64_t *)(x->host + LINE + table);
    s->word = (uint64_t *)x->host, s->slot = x->slot, s->done = (uint64_t *)(x->host + LINE + table);
    return true;
}

gp_resident *gp_cuda_resident_create(gp_dev *dev, gp_body body, void *const *slot, int slots, int depth,
                            int shares, gp_errs *errs)
{
    gp_cuda_dev *d = gp_cuda(dev);
    recorder r = { .rec = { .ops = &rec_ops, .dev = dev, .errs = errs } };
    gp_resident *x = gp_cuda_alive(d) ? gp_cuda_table(1, sizeof *x, errs) : NULL;
    bool ok = x;
    for (int i = 0; ok && i < slots; i++)
        ok = body(&r.rec, slot[i]);
    if (ok && slots >= 1 << WORD_SLOT_BITS)
        ok = refuse(&r.rec, "that many slots");
    if (ok) {
        x->dev = d;
        x->threads = r.threads ? r.threads : 256;
        x->shared = r.shared;
        ok = compile(x, &r, errs) && make_teams(x, &r, depth, shares, errs)
            && make_memory(x, &r, slots, depth, errs)
            && gp_cuda_ok(d, cudaStreamCreateWithFlags(&x->stream, cudaStreamNonBlocking), errs,
                          "making a stream");
    }
    free(r.op), free(r.args), free(r.kernel);
    if (!ok && x) {
        if (x->dev)
            gp_cuda_resident_destroy(x);
        else
            free(x);
        x = NULL;
    }
    return x;
}

/* ---- running --------------------------------------------------------- */

bool gp_cuda_resident_start(gp_resident *x, gp_errs *errs)
{
    void *args[] = { &x->s };
    if (!gp_cuda_alive(x->dev))
        return false;
    x->runs = gp_cuda_ok(x->dev, cudaLaunchKernel(x->fn,
                             (dim3){ (unsigned)(x->s.team * x->s.teams), 1, 1 },
                             (dim3){ (unsigned)x->threads, 1, 1 }, args, x->shared, x->stream),
                         errs, "launching a resident kernel");
    return x->runs;
}

uint64_t gp_cuda_resident_submit(gp_resident *x, int slot)
{
    uint64_t k = x->submitted++;
    x->slot[k & (x->s.cap - 1)] = (uint32_t)slot;
    atomic_store_explicit(x->word, x->submitted << WORD_SLOT_BITS | (uint64_t)slot,
                          memory_order_release);
    return k;
}

int gp_cuda_resident_done(gp_resident *x, uint64_t k, gp_errs *errs)
{
    if (atomic_load_explicit(&x->done[k & (x->s.cap - 1)], memory_order_acquire) == k + 1)
        return 1;
    if (!errs)
        return 0;
    if (!gp_cuda_alive(x->dev))
        return -1;
    cudaError_t e = cudaStreamQuery(x->stream);
    if (e == cudaErrorNotReady)
        return 0;
    if (gp_cuda_ok(x->dev, e, errs, "running"))
        gp_fail(errs, GP_E_BUG, (gp_loc){ 0 }, "a resident kernel has ended");
    return -1;
}

void gp_cuda_resident_stop(gp_resident *x)
{
    CUcontext was = gp_cuda_current(x->dev);
    atomic_store(x->word, UINT64_MAX);
    if (x->runs && gp_cuda_alive(x->dev))
        cudaStreamSynchronize(x->stream);
    x->runs = false;
    gp_cuda_set_current(x->dev, was);
}

void gp_cuda_resident_destroy(gp_resident *x)
{
    gp_dev *d = &x->dev->base;
    CUcontext was = gp_cuda_current(x->dev);
    d->backend->free(d, GP_MEMORY_DEVICE, x->s.known, 0);
    d->backend->free(d, GP_MEMORY_DEVICE, (void *)x->s.op, 0);
    d->backend->free(d, GP_MEMORY_DEVICE, (void *)x->s.args, 0);
    d->backend->free(d, GP_MEMORY_PINNED, x->host, 0);
    if (gp_cuda_alive(x->dev)) {
        if (x->lib)
            cudaLibraryUnload(x->lib);
        if (x->stream)
            cudaStreamDestroy(x->stream);
    }
    gp_cuda_set_current(x->dev, was);
    free(x);
}
