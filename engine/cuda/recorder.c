/* recorder.c - the recorder: a body becomes a graph, or runs at once.
 *
 * One stream is captured. Before each item the set of nodes that the next node
 * will depend on is replaced by the last nodes of the items it waits for, so a
 * graph has the edges that the items name, and no others: that is the invariant.
 * Without capture the same calls run at once, in order, and items mean nothing. */
#include <stdlib.h>
#include "cuda/dev.h"

struct nodes { cudaGraphNode_t *v; int n, cap; };

struct recorder {
    gp_rec rec;
    cudaStream_t stream;
    bool priorities;               /* it has kernels with a priority of their own */
    /* A graph's; NULL: run in order. What comes after item i must wait for its
     * last nodes, last.v[first[i]] to last.v[first[i + 1] - 1]. */
    int *first;
    int nitems;
    struct nodes last;
    struct nodes wait;             /* scratch: what one item waits for */
    gp_cuda_word *word;            /* a graph's, in which it says that it is done; NULL: it does not */
};

static const char capturing[] = "capturing a graph";

static struct recorder *rec_of(gp_rec *r)
{
    return (struct recorder *)r;
}

static bool push(struct nodes *l, cudaGraphNode_t node, gp_errs *errs)
{
    if (!GP_ROOM(l->v, l->n, l->cap))
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){0}, "out of memory");
    l->v[l->n++] = node;
    return true;
}

static bool has(const struct nodes *l, cudaGraphNode_t node)
{
    for (int i = 0; i < l->n; i++)
        if (l->v[i] == node)
            return true;
    return false;
}

/* The newest item is over: notes its last nodes. Edge data (a library may set
 * some) are dropped: what waits for a node waits for all of it. */
static bool item_over(struct recorder *r)
{
    gp_errs *errs = r->rec.errs;
    enum cudaStreamCaptureStatus status;
    const cudaGraphNode_t *node;
    const cudaGraphEdgeData *edge;
    size_t n;
    if (!gp_cuda_ok(gp_cuda(r->rec.dev), cudaStreamGetCaptureInfo(r->stream, &status, NULL, NULL,
                                                    &node, &edge, &n), errs, capturing))
        return false;
    if (status != cudaStreamCaptureStatusActive)
        return gp_fail(errs, GP_E_RUN, (gp_loc){0}, "a stage does something that cannot be part "
                       "of a graph: set 'launch: stream'");
    for (size_t i = 0; i < n; i++)
        if (!push(&r->last, node[i], errs))
            return false;
    r->first[r->nitems] = r->last.n;
    return true;
}

static bool rec_item(gp_rec *rec, int id, const int *dep, int ndeps)
{
    struct recorder *r = rec_of(rec);
    if (!r->first)
        return true;
    if (id > 0 && !item_over(r))
        return false;
    r->nitems = id + 1;
    r->wait.n = 0;
    for (int i = 0; i < ndeps; i++)
        for (int k = r->first[dep[i]]; k < r->first[dep[i] + 1]; k++)
            if (!has(&r->wait, r->last.v[k]) && !push(&r->wait, r->last.v[k], rec->errs))
                return false;
    return gp_cuda_ok(gp_cuda(rec->dev), cudaStreamUpdateCaptureDependencies(r->stream, r->wait.v,
                          NULL, (size_t)r->wait.n, cudaStreamSetCaptureDependencies),
                      rec->errs, capturing);
}

static bool ask_room(gp_cuda_dev *d, cudaKernel_t fn, gp_cuda_room *room, gp_errs *errs)
{
    int per_sm = 0, sms = 0;
    bool fine = gp_cuda_ok(d, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, fn,
                                  (int)room->threads, room->shared), errs,
                           "looking at a cooperative kernel")
        && gp_cuda_ok(d, cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, d->index),
                      errs, "looking at the GPU");
    room->blocks = (unsigned)(per_sm * sms);
    return fine;
}

/* Do all blocks of the grid find room on the GPU at once? */
static bool all_fit(gp_rec *rec, const gp_kernel *k, gp_dim3 grid, gp_dim3 block, size_t shared)
{
    gp_cuda_dev *d = gp_cuda(rec->dev);
    gp_cuda_room room = { .threads = block.x * block.y * block.z, .shared = shared };
    gp_cuda_room *last = &((gp_kernel *)k)->room;      /* a stage sees the kernel as constant */
    pthread_mutex_lock(&d->room_lock);
    bool known = last->threads == room.threads && last->shared == shared;
    if (known)
        room = *last;
    else if ((known = ask_room(d, k->fn, &room, rec->errs)))
        *last = room;
    pthread_mutex_unlock(&d->room_lock);
    return known && gp_cooperative_fits(rec, k->name, grid, block, room.blocks);
}

/* Can the kernel have such a grid? */
static bool fits(gp_rec *rec, const gp_kernel *k, gp_dim3 grid, gp_dim3 block, size_t shared)
{
    if ((uint64_t)block.x * block.y * block.z > (uint64_t)k->threads)
        return gp_fail(rec->errs, GP_E_SPEC, (gp_loc){0}, "kernel '%s' can have %d threads in a "
                       "block on this GPU, not %u x %u x %u: lower 'block'", k->name, k->threads,
                       block.x, block.y, block.z);
    if (shared > k->shared)
        return gp_fail(rec->errs, GP_E_SPEC, (gp_loc){0}, "kernel '%s' can have %zu bytes of "
                       "dynamic shared memory on this GPU, not %zu: lower 'shared'", k->name,
                       k->shared, shared);
    return !k->source.cooperative || all_fit(rec, k, grid, block, shared);
}

/* With a priority of its own. */
static cudaError_t launch_at_priority(gp_rec *rec, const gp_kernel *k, gp_dim3 grid, gp_dim3 block, size_t shared,
                                      void **args)
{
    struct recorder *r = rec_of(rec);
    cudaLaunchAttribute attr[2] = {
        { .id = cudaLaunchAttributePriority, .val.priority = gp_cuda_priority(gp_cuda(rec->dev), *rec->priority) },
        { .id = cudaLaunchAttributeCooperative, .val.cooperative = 1 },
    };
    cudaLaunchConfig_t how = {
        .gridDim = { grid.x, grid.y, grid.z }, .blockDim = { block.x, block.y, block.z }, .dynamicSmemBytes = shared,
        .stream = r->stream, .attrs = attr, .numAttrs = k->source.cooperative ? 2 : 1,
    };
    r->priorities = true;
    return cudaLaunchKernelExC(&how, k->fn, args);
}

/* A kernel that waits itself for those that it comes behind is launched before these have ended. It ends only when they
 * have, as each of its threads waits: so what is behind it comes behind those, too, of whatever sort it is. */
static bool come_early(struct recorder *r)
{
    enum { MOST = 8 };
    gp_cuda_dev *d = gp_cuda(r->rec.dev);
    enum cudaStreamCaptureStatus status;
    enum cudaGraphNodeType type;
    const cudaGraphNode_t *dep;
    const cudaGraphEdgeData *edge;
    cudaGraphNode_t node[MOST];
    cudaGraphEdgeData to[MOST] = { { 0 } };
    size_t n;
    cudaError_t e = cudaStreamGetCaptureInfo(r->stream, &status, NULL, NULL, &dep, &edge, &n);
    bool few = e == cudaSuccess && n <= MOST;
    for (size_t i = 0; few && i < n && e == cudaSuccess; i++) {
        e = cudaGraphNodeGetType(node[i] = dep[i], &type);
        if (type == cudaGraphNodeTypeKernel)
            to[i].from_port = cudaGraphKernelNodePortProgrammatic, to[i].type = cudaGraphDependencyTypeProgrammatic;
    }
    if (few && n && e == cudaSuccess)
        e = cudaStreamUpdateCaptureDependencies(r->stream, node, to, n, cudaStreamSetCaptureDependencies);
    return gp_cuda_ok(d, e, r->rec.errs, capturing);
}

static bool rec_launch(gp_rec *rec, const gp_kernel *k, gp_dim3 grid, gp_dim3 block,
                       size_t shared, void *const *args, int nargs)
{
    struct recorder *r = rec_of(rec);
    const gp_cuda_dev *d = gp_cuda(rec->dev);
    if (!fits(rec, k, grid, block, shared))
        return false;
    if (k->early && r->first && r->stream != d->inner && !k->source.cooperative && !come_early(r))
        return false;
    cudaError_t e = rec->priority
        ? launch_at_priority(rec, k, grid, block, shared, (void **)args)
        : (k->source.cooperative ? cudaLaunchCooperativeKernel : cudaLaunchKernel)
              (k->fn, (dim3){ grid.x, grid.y, grid.z }, (dim3){ block.x, block.y, block.z },
               (void **)args, shared, r->stream);
    return e == cudaSuccess
        || gp_cuda_failed(gp_cuda(rec->dev), e, rec->errs, "launching kernel '%s'", k->name);
}

/* Few bytes, from host to device or back, which a copy engine takes longer to begin with than a kernel to move. */
static bool copy_by_kernel(gp_rec *rec, void *dst, const void *src, size_t bytes)
{
    enum { THREADS = 256, MOST = 64 };
    size_t n = bytes / 16, blocks = (n + THREADS - 1) / THREADS;
    return rec->ops->launch(rec, gp_cuda_find(gp_cuda(rec->dev), "border_copy"),
                            (gp_dim3){ blocks < MOST ? (unsigned)blocks : MOST, 1, 1 }, (gp_dim3){ THREADS, 1, 1 }, 0,
                            GP_ARGS(&dst, &src, &n));
}

static bool rec_copy(gp_rec *rec, void *dst, const void *src, size_t bytes)
{
    if (rec->by_kernel)
        return copy_by_kernel(rec, dst, src, bytes);
    static const enum cudaMemcpyKind kinds[2][2] = {       /* [from device][to device] */
        { cudaMemcpyHostToHost, cudaMemcpyHostToDevice },
        { cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice },
    };
    gp_cuda_dev *d = gp_cuda(rec->dev);
    int from = gp_cuda_side(d, src), to = gp_cuda_side(d, dst);
    enum cudaMemcpyKind kind = from < 0 || to < 0 ? cudaMemcpyDefault : kinds[from][to];
    return gp_cuda_ok(d, cudaMemcpyAsync(dst, src, bytes, kind, rec_of(rec)->stream), rec->errs,
              "copying");
}

static bool rec_fill(gp_rec *rec, void *dst, int byte, size_t bytes)
{
    return gp_cuda_ok(gp_cuda(rec->dev), cudaMemsetAsync(dst, byte, bytes, rec_of(rec)->stream),
                      rec->errs, "filling memory");
}

static bool launch_turn(struct recorder *r, const gp_kernel *k, cudaGraphConditionalHandle loop, const gp_repeat *what,
                        int start)
{
    int64_t turns = what->turns;
    return rec_launch(&r->rec, k, (gp_dim3){ 1, 1, 1 }, (gp_dim3){ 1, 1, 1 }, 0,
                      GP_ARGS(&loop, (void *)&what->counter, &turns, (void *)&what->flag, &start));
}

/* Adds a `while` node behind what the capture has come to. */
static bool add_while(struct recorder *r, cudaGraphConditionalHandle loop, cudaGraph_t graph, cudaGraph_t *body)
{
    struct cudaGraphNodeParams p = { .type = cudaGraphNodeTypeConditional };
    enum cudaStreamCaptureStatus status;
    const cudaGraphNode_t *dep;
    const cudaGraphEdgeData *edge;
    cudaGraphNode_t node;
    size_t n;
    p.conditional.handle = loop, p.conditional.type = cudaGraphCondTypeWhile, p.conditional.size = 1;
    cudaError_t e = cudaStreamGetCaptureInfo(r->stream, &status, NULL, NULL, &dep, &edge, &n);
    if (e == cudaSuccess)
        e = cudaGraphAddNode(&node, graph, dep, edge, n, &p);
    if (e == cudaSuccess)
        e = cudaStreamUpdateCaptureDependencies(r->stream, &node, NULL, 1, cudaStreamSetCaptureDependencies);
    if (e == cudaSuccess)
        *body = p.conditional.phGraph_out[0];
    return gp_cuda_ok(gp_cuda(r->rec.dev), e, r->rec.errs, "adding a loop to a graph");
}

/* The body is a graph of its own, captured by another stream. */
static bool capture_repeat(struct recorder *r, const gp_repeat *what)
{
    gp_cuda_dev *d = gp_cuda(r->rec.dev);
    const gp_kernel *turn = gp_cuda_find(d, "loop_turn");
    enum cudaStreamCaptureStatus status;
    cudaGraphConditionalHandle loop = 0;
    cudaGraph_t graph = NULL, body = NULL, same = NULL;
    cudaStream_t outer = r->stream;
    cudaError_t e = cudaStreamGetCaptureInfo(outer, &status, NULL, &graph, NULL, NULL, NULL);
    if (e == cudaSuccess)
        e = cudaGraphConditionalHandleCreate(&loop, graph, 0, cudaGraphCondAssignDefault);
    if (!gp_cuda_ok(d, e, r->rec.errs, "adding a loop to a graph") || !launch_turn(r, turn, loop, what, 1)
        || !add_while(r, loop, graph, &body)
        || !gp_cuda_ok(d, cudaStreamBeginCaptureToGraph(d->inner, body, NULL, NULL, 0, cudaStreamCaptureModeThreadLocal),
                       r->rec.errs, capturing))
        return false;
    r->stream = d->inner;
    bool fine = what->body(&r->rec, what->arg) && launch_turn(r, turn, loop, what, 0);
    r->stream = outer;
    e = cudaStreamEndCapture(d->inner, &same);
    if (!fine)
        cudaGetLastError();
    return fine && gp_cuda_ok(d, e, r->rec.errs, capturing);
}

/* Without a graph the thread that launches looks at the flag. */
static bool rec_repeat(gp_rec *rec, const gp_repeat *what)
{
    struct recorder *r = rec_of(rec);
    gp_cuda_dev *d = gp_cuda(rec->dev);
    if (r->first)
        return capture_repeat(r, what);
    for (int64_t i = 0; i < what->turns; i++) {
        int32_t flag = 0;
        if (what->flag
            && !(gp_cuda_ok(d, cudaMemcpyAsync(&flag, what->flag, sizeof flag, cudaMemcpyDeviceToHost, r->stream), rec->errs,
                            "looking whether a loop ends")
                 && gp_cuda_ok(d, cudaStreamSynchronize(r->stream), rec->errs, "running a loop")))
            return false;
        if (flag)
            break;
        if (!what->body(rec, what->arg))
            return false;
    }
    return true;
}

/* In a graph an order is a node of its own, outside of the capture's edges. */
static bool rec_order_wait(gp_rec *rec, int o, int slot)
{
    gp_cuda_dev *d = gp_cuda(rec->dev);
    struct recorder *r = rec_of(rec);
    return gp_cuda_ok(d, cudaStreamWaitEvent(r->stream, d->order[o * d->nslots + slot],
                                     r->first ? cudaEventWaitExternal : cudaEventWaitDefault),
              rec->errs, "waiting for an earlier frame");
}

static bool rec_order_pass(gp_rec *rec, int o, int slot)
{
    gp_cuda_dev *d = gp_cuda(rec->dev);
    struct recorder *r = rec_of(rec);
    return gp_cuda_ok(d, cudaEventRecordWithFlags(d->order[o * d->nslots + slot], r->stream,
                                     r->first ? cudaEventRecordExternal : cudaEventRecordDefault),
              rec->errs, "letting the next frame go on");
}

static bool rec_stamp(gp_rec *rec, int i)
{
    gp_cuda_dev *d = gp_cuda(rec->dev);
    struct recorder *r = rec_of(rec);
    return gp_cuda_ok(d, cudaEventRecordWithFlags(d->stamp[i], r->stream,
                                     r->first ? cudaEventRecordExternal : cudaEventRecordDefault),
              rec->errs, "taking a stamp");
}

static void rec_label(gp_rec *rec, int label)
{
    gp_cuda_label(label, rec_of(rec)->first);
}

static bool rec_wait(gp_rec *rec)
{
    return gp_cuda_ok(gp_cuda(rec->dev), cudaStreamSynchronize(rec_of(rec)->stream), rec->errs,
              "running a stage");
}

static bool rec_done(gp_rec *rec)
{
    struct recorder *r = rec_of(rec);
    gp_cuda_dev *d = gp_cuda(rec->dev);
    if (!r->first)
        return true;
    r->word = gp_cuda_word_take(d);
    _Atomic uint32_t *at = &r->word->done;
    return rec_launch(rec, gp_cuda_find(d, "border_done"), (gp_dim3){ 1, 1, 1 }, (gp_dim3){ 1, 1, 1 }, 0, GP_ARGS(&at));
}

static const gp_kernel *rec_kernel(gp_rec *rec, const char *name)
{
    return gp_cuda_find(gp_cuda(rec->dev), name);
}

/* Stream `next` goes on when what is on `first` now is done. An event may be recorded again at once: who waits for it
 * waits for what it was at the call. */
static bool wait_apart(gp_cuda_dev *d, cudaStream_t first, cudaStream_t next, gp_errs *errs)
{
    cudaError_t e = cudaEventRecord(d->apart_event, first);
    if (e == cudaSuccess)
        e = cudaStreamWaitEvent(next, d->apart_event, cudaEventWaitDefault);
    return gp_cuda_ok(d, e, errs, "waiting for a library");
}

/* What a call that failed has put on the stream is waited for, too. */
static bool call_apart(struct recorder *r, gp_library *f, const void *arg)
{
    gp_cuda_dev *d = gp_cuda(r->rec.dev);
    gp_errs *errs = r->rec.errs;
    if (r->first || !d->apart)
        return gp_fail(errs, GP_E_SPEC, (gp_loc){ 0 }, "stage '%s' calls a library apart in a graph, or without "
                       "gp_device_place()", r->rec.stage);
    pthread_mutex_lock(&d->apart_lock);
    bool ok = wait_apart(d, r->stream, d->apart, errs) && gp_library_do(f, d->apart, arg, r->rec.stage, errs);
    ok = wait_apart(d, d->apart, r->stream, errs) && ok;
    pthread_mutex_unlock(&d->apart_lock);
    return ok;
}

/* What is on the stream when it returns is a part of the graph, behind what the item has so far. */
static bool rec_call(gp_rec *rec, gp_library *f, const void *arg, size_t bytes, bool apart)
{
    if (apart)
        return call_apart(rec_of(rec), f, arg);
    return gp_library_do(f, rec_of(rec)->stream, arg, rec->stage, rec->errs);
}

static const gp_rec_ops rec_ops = {
    .item = rec_item, .launch = rec_launch, .copy = rec_copy, .fill = rec_fill, .repeat = rec_repeat,
    .order_wait = rec_order_wait, .order_pass = rec_order_pass, .stamp = rec_stamp, .label = rec_label, .wait = rec_wait,
    .done = rec_done, .kernel = rec_kernel, .call = rec_call,
};

/* ---- loading: what rec_ops does, without running it ------------------- */

static bool load_launch(gp_rec *rec, const gp_kernel *k, gp_dim3 grid, gp_dim3 block,
                        size_t shared, void *const *args, int nargs)
{
    return fits(rec, k, grid, block, shared) && gp_cuda_load_kernel(gp_cuda(rec->dev), k->fn, k->name,
                                                                  rec->errs);
}

static bool load_copy(gp_rec *rec, void *dst, const void *src, size_t bytes)
{
    return !rec->by_kernel || copy_by_kernel(rec, dst, src, bytes);
}

static bool load_fill(gp_rec *rec, void *dst, int byte, size_t bytes)
{
    return true;
}

static bool load_repeat(gp_rec *rec, const gp_repeat *what)
{
    gp_cuda_dev *d = gp_cuda(rec->dev);
    const gp_kernel *turn = gp_cuda_loop_turn(d, rec->errs);
    return turn && gp_cuda_load_kernel(d, turn->fn, turn->name, rec->errs) && what->body(rec, what->arg);
}

static bool load_order(gp_rec *rec, int o, int slot)
{
    return true;
}

static bool load_stamp(gp_rec *rec, int i)
{
    return true;
}

static const gp_rec_ops load_ops = {
    .item = rec_item, .launch = load_launch, .copy = load_copy, .fill = load_fill, .repeat = load_repeat,
    .order_wait = load_order, .order_pass = load_order, .stamp = load_stamp, .label = rec_label,
    .wait = rec_wait, .kernel = rec_kernel, .call = rec_call,
};

bool gp_cuda_load(gp_dev *dev, gp_body body, void *arg, gp_errs *errs)
{
    gp_cuda_dev *d = gp_cuda(dev);
    struct recorder r = { .rec = { .ops = &load_ops, .dev = dev, .errs = errs },
                          .stream = d->service };
    return gp_cuda_alive(d) && body(&r.rec, arg)
        && gp_cuda_ok(d, cudaStreamSynchronize(d->service), errs, "loading");
}

/* ---- graphs ---------------------------------------------------------- */

/* Last nodes that nothing waits for need not be joined at the end: CUDA does
 * not ask for it of nodes that were replaced in the set of dependencies. */
static bool capture(struct recorder *r, gp_body body, void *arg, cudaGraph_t *graph)
{
    gp_cuda_dev *d = gp_cuda(r->rec.dev);
    if (!gp_cuda_ok(d, cudaStreamBeginCapture(r->stream, cudaStreamCaptureModeThreadLocal),
                    r->rec.errs, capturing))
        return false;
    bool fine = body(&r->rec, arg);
    cudaError_t e = cudaStreamEndCapture(r->stream, graph);
    if (!fine)
        cudaGetLastError();
    return fine && gp_cuda_ok(d, e, r->rec.errs, capturing);
}

/* A graph runs with the priority of the stream that it is launched on, unless its kernels have their own; those of
 * libraries have that of the stream that was captured. */
gp_exec *gp_cuda_build(gp_dev *dev, int stream, gp_body body, void *arg, gp_errs *errs)
{
    gp_cuda_dev *d = gp_cuda(dev);
    if (!gp_cuda_alive(d))
        return NULL;
    cudaGraph_t graph = NULL;
    struct recorder r = {
        .rec = { .ops = &rec_ops, .dev = dev, .errs = errs }, .stream = d->stream[stream],
        .first = gp_cuda_table(GP_REC_ITEMS + GP_REC_STAMPS + 1, sizeof *r.first, errs),
    };
    gp_exec *x = gp_cuda_table(1, sizeof *x, errs);
    bool fine = r.first && x && gp_cuda_word_make(d, errs) && capture(&r, body, arg, &graph)
        && gp_cuda_ok(d, cudaGraphInstantiate(&x->graph, graph,
                                              r.priorities ? cudaGraphInstantiateFlagUseNodePriority : 0),
                      errs, "instantiating a graph")
        && gp_cuda_ok(d, cudaGraphUpload(x->graph, r.stream), errs, "uploading a graph")
        && gp_cuda_ok(d, cudaStreamSynchronize(r.stream), errs, "uploading a graph");
    if (graph)
        cudaGraphDestroy(graph);
    free(r.first);
    free(r.last.v);
    free(r.wait.v);
    if (fine) {
        x->word = r.word;
        x->next = d->execs, x->at = &d->execs;
        if (x->next)
            x->next->at = &x->next;
        return d->execs = x;
    }
    if (x && x->graph)
        cudaGraphExecDestroy(x->graph);
    gp_cuda_word_give(d, r.word);
    free(x);
    return NULL;
}

void gp_cuda_discard(gp_dev *dev, gp_exec *x)
{
    gp_cuda_dev *d = gp_cuda(dev);
    CUcontext was = gp_cuda_current(d);
    *x->at = x->next;
    if (x->next)
        x->next->at = x->at;
    if (gp_cuda_alive(d))
        cudaGraphExecDestroy(x->graph);
    gp_cuda_word_give(d, x->word);
    free(x);
    gp_cuda_set_current(d, was);
}

bool gp_cuda_run(gp_cuda_dev *d, cudaStream_t stream, gp_body body, void *arg, gp_errs *errs)
{
    struct recorder r = { .rec = { .ops = &rec_ops, .dev = &d->base, .errs = errs }, .stream = stream };
    return body(&r.rec, arg);
}
