/* cuda.c - the CUDA back end: memory, streams, graphs, kernels.
 *
 * A body is built by capturing one stream into a CUDA graph. Edges are set by
 * hand, item by item, so that a graph has exactly the edges the plan asked for;
 * the same recorder without that step runs a body directly. A thread that waits polls
 * the stream; an event is recorded only when it goes to sleep.
 *
 * Invariant: once everything is prepared and built, launch, direct, query and
 * wait allocate nothing, create nothing, take no lock and wait for no more than
 * the one stream they are about.
 *
 * Threads: query and wait are for any thread; launch and direct for one thread
 * per stream; everything else is done by one thread while nothing is launched. The
 * device is opened by a thread of ours, as that makes it the thread's current one.
 * What an application's thread calls (wait, rates, and what gives things back) leaves
 * the CUDA context as it was there.
 *
 * After a fault of the device (a bad address in a kernel, say) CUDA answers
 * every call with the same error. It is reported once; from then on every call
 * fails at once and silently, and what the device holds is left to the end of
 * the process. */
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/clock.h"
#include "cuda/dev.h"

enum {
    TIGHT_POLLS = 100,         /* sync: auto polls that often before it yields */
    POLL_NS = 1000000,         /* ... and for so long before it sleeps */
    LOOKS = 50,                /* at a word, about a microsecond */
};

/* ---- errors ---------------------------------------------------------- */

/* Errors after which the context is of no more use. */
static bool sticky(cudaError_t e)
{
    switch (e) {
    case cudaErrorIllegalAddress: case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace: case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction: case cudaErrorHardwareStackError:
    case cudaErrorAssert: case cudaErrorLaunchFailure: case cudaErrorLaunchTimeout:
    case cudaErrorTensorMemoryLeak: case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable: case cudaErrorContained:
    case cudaErrorContextIsDestroyed: case cudaErrorExternalDevice:
    case cudaErrorMpsClientTerminated: case cudaErrorUnknown:
        return true;
    default:
        return false;
    }
}

bool gp_cuda_failed(gp_cuda_dev *d, cudaError_t e, gp_errs *errs, const char *fmt, ...)
{
    cudaGetLastError();            /* or a library would find it and take it for its own */
    bool fault = sticky(e);
    if (fault ? atomic_exchange(&d->dead, true) : atomic_load(&d->dead))
        return false;
    const char *on = d->base.name;     /* one of several */
    char what[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    bool machine = e == cudaErrorMemoryAllocation || e == cudaErrorNoDevice || e == cudaErrorInsufficientDriver
        || e == cudaErrorInvalidDevice || e == cudaErrorDevicesUnavailable || e == cudaErrorSystemDriverMismatch;
    return gp_fail(errs, machine ? GP_E_RESOURCE : GP_E_RUN,
                   (gp_loc){0}, "%s%s%s: %s: %s", on ? on : fault ? "the GPU" : "",
                   fault ? " stopped, noticed when " : on ? ": " : "", what, cudaGetErrorName(e),
                   cudaGetErrorString(e));
}

bool gp_cuda_ok(gp_cuda_dev *d, cudaError_t e, gp_errs *errs, const char *what)
{
    return e == cudaSuccess || gp_cuda_failed(d, e, errs, "%s", what);
}

bool gp_cuda_alive(gp_cuda_dev *d)
{
    if (atomic_load_explicit(&d->dead, memory_order_relaxed))
        return false;
    if (d->context)
        gp_cuda_set_current(d, d->context);
    return true;
}

void *gp_cuda_table(size_t n, size_t size, gp_errs *errs)
{
    void *p = calloc(n ? n : 1, size);
    if (!p)
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){0}, "out of memory");
    return p;
}

/* ---- open, close ----------------------------------------------------- */

static void release(gp_memory kind, void *mem)
{
    if (kind == GP_MEMORY_PINNED)
        cudaFreeHost(mem);
    else
        cudaFree(mem);
}

/* Accepts what open and prepare made only in part. On a device with a fault nothing is
 * given back: every call would fail. */
static void cuda_close(gp_dev *dev)
{
    gp_cuda_dev *d = gp_cuda(dev);
    if (!d)
        return;
    CUcontext was = gp_cuda_current(d);
    bool live = gp_cuda_alive(d);
    for (gp_exec *x = d->execs, *next; x; x = next) {
        next = x->next;
        if (live)
            cudaGraphExecDestroy(x->graph);
        free(x);
    }
    for (int i = 0; live && i < d->nstreams; i++) {
        if (d->stream[i])
            cudaStreamDestroy(d->stream[i]);
        if (d->wake[i])
            cudaEventDestroy(d->wake[i]);
    }
    for (int i = 0; live && i < d->norders * d->nslots; i++)
        if (d->order[i])
            cudaEventDestroy(d->order[i]);
    if (live)
        gp_cuda_unstamp(d), gp_cuda_unmark(d);
    if (live && d->service)
        cudaStreamDestroy(d->service);
    if (live && d->inner)
        cudaStreamDestroy(d->inner);
    if (live && d->bringing)
        cudaStreamDestroy(d->bringing);
    if (live && d->apart)
        cudaStreamDestroy(d->apart);
    if (live && d->apart_event)
        cudaEventDestroy(d->apart_event);
    for (int i = 0; live && i < d->nspans; i++)
        release(d->span[i].kind, (void *)d->span[i].at);
    gp_cuda_unload(d);
    free(d->stream);
    free(d->wake);
    free(d->word);
    free(d->order);
    free(d->stamp);
    free(d->mark);
    pthread_mutex_destroy(&d->stamp_lock);
    pthread_mutex_destroy(&d->room_lock);
    pthread_mutex_destroy(&d->apart_lock);
    free(d->span);
    gp_cuda_set_current(d, was);
    free(d);
}

static gp_dev *cuda_open(int index, gp_errs *errs)
{
    gp_cuda_dev *d = gp_cuda_table(1, sizeof *d, errs);
    if (!d)
        return NULL;
    d->base.backend = &gp_backend_cuda;
    d->index = index;
    atomic_init(&d->dead, false);
    pthread_mutex_init(&d->stamp_lock, NULL);
    pthread_mutex_init(&d->room_lock, NULL);
    pthread_mutex_init(&d->apart_lock, NULL);
    int major = 0, minor = 0, shared = 0;
    cudaError_t e = cudaSetDevice(index);
    if (e == cudaSuccess && !gp_cuda_find_driver(d, errs)) {
        cuda_close(&d->base);
        return NULL;
    }
    d->context = e == cudaSuccess ? gp_cuda_current(d) : NULL;
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, index);
    if (e != cudaSuccess || cudaDeviceGetAttribute(&d->node, cudaDevAttrHostNumaId, index))
        d->node = -1;
    if (e == cudaSuccess)
        e = cudaStreamCreateWithFlags(&d->service, cudaStreamNonBlocking);
    if (e == cudaSuccess)
        e = cudaStreamCreateWithFlags(&d->inner, cudaStreamNonBlocking);
    if (e == cudaSuccess)
        e = cudaDeviceGetStreamPriorityRange(&d->least, &d->greatest);
    d->cc = 10 * major + minor;
    d->shared_max = (size_t)shared;
    if (e != cudaSuccess)
        gp_cuda_failed(d, e, errs, "opening GPU %d", index);
    else if (gp_cuda_load_builtin(d, errs))
        return &d->base;
    cuda_close(&d->base);
    return NULL;
}

/* The current device becomes able to access `other`. An application, or an earlier run, may have seen to that. */
static cudaError_t enable_peer(const gp_cuda_dev *other)
{
    cudaError_t e = cudaDeviceEnablePeerAccess(other->index, 0);
    if (e == cudaErrorPeerAccessAlreadyEnabled)
        cudaGetLastError();
    return e == cudaErrorPeerAccessAlreadyEnabled ? cudaSuccess : e;
}

/* Both ways: which of the two engines does a copy is up to the driver. Memory that either has or takes later is
 * accessible. */
static bool cuda_reach(gp_dev *dev, gp_dev *other, gp_errs *errs)
{
    gp_cuda_dev *d = gp_cuda(dev), *o = gp_cuda(other);
    if (!gp_cuda_alive(o) || !gp_cuda_ok(o, enable_peer(d), errs, "enabling peer access"))
        return false;
    return gp_cuda_alive(d) && gp_cuda_ok(d, enable_peer(o), errs, "enabling peer access");
}

/* ---- memory ---------------------------------------------------------- */

/* The first span that starts beyond `p`. */
static int span_after(const gp_cuda_dev *d, const void *p)
{
    int lo = 0, hi = d->nspans;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (d->span[mid].at > (const char *)p)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

int gp_cuda_side(const gp_cuda_dev *d, const void *p)
{
    int i = span_after(d, p) - 1;
    bool known = i >= 0 && (size_t)((const char *)p - d->span[i].at) < d->span[i].bytes;
    return !known || d->span[i].kind == GP_MEMORY_MANAGED ? -1 : d->span[i].kind == GP_MEMORY_DEVICE;
}

static bool span_add(gp_cuda_dev *d, const void *at, size_t bytes, gp_memory kind, gp_errs *errs)
{
    if (!GP_ROOM(d->span, d->nspans, d->span_cap))
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){0}, "out of memory");
    int i = span_after(d, at);
    memmove(d->span + i + 1, d->span + i, (size_t)(d->nspans++ - i) * sizeof *d->span);
    d->span[i] = (gp_cuda_span){ .at = at, .bytes = bytes, .kind = kind };
    return true;
}

/* Pinned memory, on the memory node next to the GPU if there is room: the thread
 * prefers that node meanwhile. A system without nodes ignores that. */
static cudaError_t alloc_host(const gp_cuda_dev *d, void **mem, size_t bytes)
{
    enum { PREFERRED = 1, WORDS = 16, WORD = 8 * sizeof(unsigned long), BITS = WORDS * WORD };
    unsigned long node[WORDS] = { 0 }, old[WORDS] = { 0 };
    int mode = 0;
    bool placed = d->node >= 0 && d->node < BITS
        && !syscall(SYS_get_mempolicy, &mode, old, (unsigned long)BITS, NULL, 0ul);
    if (placed) {
        node[d->node / WORD] |= 1ul << d->node % WORD;
        placed = !syscall(SYS_set_mempolicy, PREFERRED, node, (unsigned long)BITS);
    }
    cudaError_t e = cudaHostAlloc(mem, bytes, cudaHostAllocPortable);
    if (e == cudaSuccess)
        memset(*mem, 0, bytes);
    if (placed)
        syscall(SYS_set_mempolicy, mode, old, (unsigned long)BITS);
    return e;
}

/* The host fills it, maybe while kernels of another run are at work. */
static cudaError_t alloc_managed(gp_cuda_dev *d, void **mem, size_t bytes)
{
    int concurrent = 0;
    cudaError_t e = cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, d->index);
    if (e == cudaSuccess && !d->bringing)
        e = cudaStreamCreateWithFlags(&d->bringing, cudaStreamNonBlocking);
    if (e == cudaSuccess)
        e = concurrent ? cudaMallocManaged(mem, bytes, cudaMemAttachGlobal) : cudaErrorNotSupported;
    if (e == cudaSuccess)
        memset(*mem, 0, bytes);
    return e;
}

static void *cuda_alloc(gp_dev *dev, gp_memory kind, size_t bytes, gp_errs *errs)
{
    gp_cuda_dev *d = gp_cuda(dev);
    const double mib = 1 << 20;
    void *mem = NULL;
    if (!gp_cuda_alive(d))
        return NULL;
    bool device = kind == GP_MEMORY_DEVICE;
    cudaError_t e = device ? cudaMalloc(&mem, bytes)
                  : kind == GP_MEMORY_MANAGED ? alloc_managed(d, &mem, bytes) : alloc_host(d, &mem, bytes);
    if (e == cudaErrorMemoryAllocation) {
        size_t left = 0, all = 0;
        cudaMemGetInfo(&left, &all);
        if (device)
            gp_cuda_failed(d, e, errs, "no room for %.1f MiB of GPU memory (of the GPU's %.1f MiB, "
                           "%.1f are free): lower a depth", (double)bytes / mib,
                           (double)all / mib, (double)left / mib);
        else
            gp_cuda_failed(d, e, errs, kind == GP_MEMORY_MANAGED ? "no room for %.1f MiB of managed memory"
                           : "no room for %.1f MiB of pinned host memory: lower a depth", (double)bytes / mib);
        return NULL;
    }
    if (e == cudaSuccess && device)
        e = cudaMemsetAsync(mem, 0, bytes, d->service);
    if (e == cudaSuccess && device)
        e = cudaStreamSynchronize(d->service);
    if (e != cudaSuccess)
        gp_cuda_failed(d, e, errs, e == cudaErrorNotSupported
                       ? "allocating %.1f MiB of managed memory, which host and device of this machine cannot use at "
                         "the same time: leave out 'memory'" : "allocating %.1f MiB", (double)bytes / mib);
    else if (span_add(d, mem, bytes, kind, errs))
        return mem;
    if (mem)
        release(kind, mem);
    return NULL;
}

static void cuda_free(gp_dev *dev, gp_memory kind, void *mem, size_t bytes)
{
    gp_cuda_dev *d = gp_cuda(dev);
    CUcontext was = gp_cuda_current(d);
    if (!mem || !gp_cuda_alive(d))
        return;
    int i = span_after(d, mem) - 1;
    if (i >= 0 && d->span[i].at == mem)
        memmove(d->span + i, d->span + i + 1, (size_t)(--d->nspans - i) * sizeof *d->span);
    release(kind, mem);
    gp_cuda_set_current(d, was);
}

/* Memory that is mostly read has a copy on each device that reads it, and one on the host. What is taken of the device
 * later makes room for itself. */
static bool cuda_fetch(gp_dev *dev, void *mem, size_t bytes, gp_errs *errs)
{
    gp_cuda_dev *d = gp_cuda(dev);
    struct cudaMemLocation here = { .type = cudaMemLocationTypeDevice, .id = d->index };
    size_t left = 0, all = 0;
    if (!gp_cuda_alive(d))
        return false;
    cudaError_t e = cudaMemAdvise(mem, bytes, cudaMemAdviseSetReadMostly, here);
    if (e == cudaSuccess)
        e = cudaMemGetInfo(&left, &all);
    if (e == cudaSuccess && bytes <= left)
        e = cudaMemPrefetchAsync(mem, bytes, here, 0, d->service);
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(d->service);
    return gp_cuda_ok(d, e, errs, "fetching managed memory");
}

/* What has no room there makes room for itself: that of what was used longest ago goes to the host. */
static bool cuda_bring(gp_dev *dev, void *mem, size_t bytes, gp_errs *errs)
{
    gp_cuda_dev *d = gp_cuda(dev);
    struct cudaMemLocation here = { .type = cudaMemLocationTypeDevice, .id = d->index };
    return gp_cuda_alive(d)
        && gp_cuda_ok(d, cudaMemPrefetchAsync(mem, bytes, here, 0, d->bringing), errs, "fetching managed memory ahead");
}

int gp_cuda_priority(const gp_cuda_dev *d, gp_priority p)
{
    return p == GP_PRIORITY_HIGH ? d->greatest : p == GP_PRIORITY_LOW ? d->least : (d->least + d->greatest) / 2;
}

static bool cuda_prepare(gp_dev *dev, int streams, const gp_priority *priority, int orders, int slots, gp_errs *errs)
{
    gp_cuda_dev *d = gp_cuda(dev);
    if (!gp_cuda_alive(d)
        || !(d->stream = gp_cuda_table((size_t)streams, sizeof *d->stream, errs))
        || !(d->wake = gp_cuda_table((size_t)streams, sizeof *d->wake, errs))
        || !(d->word = gp_cuda_table((size_t)streams, sizeof *d->word, errs))
        || !(d->order = gp_cuda_table((size_t)orders * (size_t)slots, sizeof *d->order, errs)))
        return false;
    d->nstreams = streams;
    d->norders = orders;
    d->nslots = slots;
    cudaError_t e = cudaSuccess;
    for (int i = 0; e == cudaSuccess && i < streams; i++) {
        e = cudaStreamCreateWithPriority(&d->stream[i], cudaStreamNonBlocking, gp_cuda_priority(d, priority[i]));
        if (e == cudaSuccess)
            e = cudaEventCreateWithFlags(&d->wake[i],
                                         cudaEventDisableTiming | cudaEventBlockingSync);
    }
    for (int i = 0; e == cudaSuccess && i < orders * slots; i++)
        e = cudaEventCreateWithFlags(&d->order[i], cudaEventDisableTiming);
    return gp_cuda_ok(d, e, errs, "making streams and events");
}

/* They lie in pages that are freed with the device. */
bool gp_cuda_word_make(gp_cuda_dev *d, gp_errs *errs)
{
    enum { PAGE = 256 };
    const gp_kernel *k = gp_cuda_find(d, "border_done");
    if (d->words)
        return true;
    gp_cuda_word *page = cuda_alloc(&d->base, GP_MEMORY_PINNED, PAGE * sizeof *page, errs);
    for (int i = 0; page && i < PAGE; i++)
        gp_cuda_word_give(d, &page[i]);
    return page && gp_cuda_load_kernel(d, k->fn, k->name, errs);
}

gp_cuda_word *gp_cuda_word_take(gp_cuda_dev *d)
{
    gp_cuda_word *w = d->words;
    d->words = w->next;
    return w;
}

void gp_cuda_word_give(gp_cuda_dev *d, gp_cuda_word *w)
{
    if (!w)
        return;
    for (int i = 0; i < d->nstreams; i++)
        d->word[i] = d->word[i] == w ? NULL : d->word[i];
    w->next = d->words, d->words = w;
}

/* ---- running --------------------------------------------------------- */

static bool cuda_launch(gp_dev *dev, int stream, gp_exec *x, gp_errs *errs)
{
    gp_cuda_dev *d = gp_cuda(dev);
    if (x->word)
        atomic_store(&x->word->done, 0);
    d->word[stream] = x->word;
    return gp_cuda_alive(d)
        && gp_cuda_ok(d, cudaGraphLaunch(x->graph, d->stream[stream]), errs, "launching a graph");
}

static bool cuda_direct(gp_dev *dev, int stream, gp_body body, void *arg, gp_errs *errs)
{
    gp_cuda_dev *d = gp_cuda(dev);
    d->word[stream] = NULL;
    return gp_cuda_alive(d) && gp_cuda_run(d, d->stream[stream], body, arg, errs);
}

static bool cuda_call(gp_dev *dev, void (*f)(void *arg), void *arg)
{
    gp_cuda_dev *d = gp_cuda(dev);
    CUcontext was = gp_cuda_current(d);
    bool alive = gp_cuda_alive(d);
    if (alive)
        f(arg);
    gp_cuda_set_current(d, was);
    return alive;
}

/* Unlike all other streams this one is in order with the default stream, on which libraries do some copies. */
static bool cuda_place(gp_dev *dev, int *index, void **stream, gp_errs *errs)
{
    gp_cuda_dev *d = gp_cuda(dev);
    CUcontext was = gp_cuda_current(d);
    cudaError_t e = cudaSuccess;
    bool ok = gp_cuda_alive(d);
    pthread_mutex_lock(&d->apart_lock);
    if (ok && !d->apart_event)
        e = cudaEventCreateWithFlags(&d->apart_event, cudaEventDisableTiming);
    if (ok && e == cudaSuccess && !d->apart)
        e = cudaStreamCreateWithFlags(&d->apart, cudaStreamDefault);
    *index = d->index, *stream = d->apart;
    pthread_mutex_unlock(&d->apart_lock);
    ok = ok && gp_cuda_ok(d, e, errs, "making a stream for a library");
    gp_cuda_set_current(d, was);
    return ok;
}

static int finished(gp_cuda_dev *d, cudaError_t e, gp_errs *errs)
{
    return e == cudaErrorNotReady ? 0 : gp_cuda_ok(d, e, errs, "running") ? 1 : -1;
}

static int cuda_query(gp_dev *dev, int stream, gp_errs *errs)
{
    gp_cuda_dev *d = gp_cuda(dev);
    return gp_cuda_alive(d) ? finished(d, cudaStreamQuery(d->stream[stream]), errs) : -1;
}

/* Sleeps until the stream is empty. The event that wakes the thread is recorded only
 * now, behind the work that is waited for: it costs an interrupt, which a thread that
 * polls does without. */
static int sleep_until_done(gp_cuda_dev *d, int stream, gp_errs *errs)
{
    return gp_cuda_alive(d)
            && gp_cuda_ok(d, cudaEventRecord(d->wake[stream], d->stream[stream]), errs, "running")
        ? finished(d, cudaEventSynchronize(d->wake[stream]), errs)
        : -1;
}

/* Looks at the word for a while. A look costs the driver nothing, whose lock the thread that launches needs. */
static bool is_told(const gp_cuda_word *w)
{
    for (int i = 0; i < LOOKS; i++) {
        if (atomic_load_explicit(&w->done, memory_order_acquire))
            return true;
        gp_relax();
    }
    return false;
}

/* auto: to be woken takes tens of microseconds, too long in a busy pipeline; so it
 * polls, after TIGHT_POLLS it yields as well, and after POLL_NS it sleeps. Where the launch tells that it is done, the
 * driver is asked every POLL_NS, for faults. */
static int wait_for(gp_dev *dev, int stream, gp_sync sync, gp_errs *errs)
{
    gp_cuda_dev *d = gp_cuda(dev);
    const gp_cuda_word *w = d->word[stream];
    int64_t start = 0, asked = 0;
    if (w && atomic_load_explicit(&w->done, memory_order_acquire))
        return 1;
    if (sync == GP_SYNC_BLOCK)
        return sleep_until_done(d, stream, errs);
    for (int i = 0; w; i++) {
        if (is_told(w))
            return 1;
        if (sync == GP_SYNC_YIELD || (sync == GP_SYNC_AUTO && i > TIGHT_POLLS))
            sched_yield();
        int64_t now = gp_now_ns();
        if (!asked)
            asked = now;
        if (now - asked < POLL_NS)
            continue;
        if (sync == GP_SYNC_AUTO)
            return sleep_until_done(d, stream, errs);
        asked = now;
        int r = cuda_query(dev, stream, errs);
        if (r)
            return r;
    }
    for (int i = 0;; i++) {
        int r = cuda_query(dev, stream, errs);
        if (r)
            return r;
        if (sync == GP_SYNC_YIELD || (sync == GP_SYNC_AUTO && i > TIGHT_POLLS))
            sched_yield();
        if (sync != GP_SYNC_AUTO || i <= TIGHT_POLLS)
            continue;
        if (!start)
            start = gp_now_ns();
        else if (gp_now_ns() - start > POLL_NS)
            return sleep_until_done(d, stream, errs);
    }
}

static int cuda_wait(gp_dev *dev, int stream, gp_sync sync, gp_errs *errs)
{
    CUcontext was = gp_cuda_current(gp_cuda(dev));
    int done = wait_for(dev, stream, sync, errs);
    gp_cuda_set_current(gp_cuda(dev), was);
    return done;
}

static const gp_kernel *cuda_builtin(gp_dev *dev, const char *name)
{
    return gp_cuda_find(gp_cuda(dev), name);
}

const gp_backend gp_backend_cuda = {
    .name = "cuda", .find = gp_cuda_devices, .toolkit = CUDART_VERSION,
    .open = cuda_open, .close = cuda_close, .reach = cuda_reach,
    .alloc = cuda_alloc, .free = cuda_free, .fetch = cuda_fetch, .bring = cuda_bring,
    .prepare = cuda_prepare,
    .stamps = gp_cuda_stamps, .stamped = gp_cuda_stamped, .rates = gp_cuda_rates,
    .marks = gp_cuda_marks, .mark = gp_cuda_mark, .await = gp_cuda_await, .pass = gp_cuda_pass,
    .watch = gp_cuda_watch, .unwatch = gp_cuda_unwatch, .tag = gp_cuda_tag,
    .build = gp_cuda_build, .discard = gp_cuda_discard, .load = gp_cuda_load,
    .launch = cuda_launch, .direct = cuda_direct, .call = cuda_call, .place = cuda_place,
    .query = cuda_query, .wait = cuda_wait,
    .resident_create = gp_cuda_resident_create, .resident_start = gp_cuda_resident_start,
    .resident_submit = gp_cuda_resident_submit,
    .resident_done = gp_cuda_resident_done, .resident_stop = gp_cuda_resident_stop, .resident_destroy = gp_cuda_resident_destroy,
    .builtin = cuda_builtin, .compile = gp_cuda_compile,
};
