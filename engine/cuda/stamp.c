/* stamp.c - stamps: events that keep the time at which the device reached them;
 * and how fast it copies.
 *
 * The device tells only how long two events are apart, as a float of milliseconds,
 * which is exact to a microsecond for some seconds. So a base event, for which the
 * host's clock is known too, is renewed every BASE_NS, and each stamp is asked for as
 * its distance from the newest base. */
#include <stdlib.h>
#include "base/clock.h"
#include "cuda/dev.h"

static const int64_t BASE_NS = 2000000000;

/* Records the base now: on a stream with nothing in it, so the host's clock, read
 * before and after, is off by half a round trip at most. */
static cudaError_t set_base(gp_cuda_dev *d)
{
    enum { TRIES = 5 };
    int64_t best = INT64_MAX;
    cudaError_t e = cudaSuccess;
    for (int i = 0; e == cudaSuccess && i < TRIES; i++) {
        int64_t before = gp_now_ns();
        e = cudaEventRecord(d->base_try, d->service);
        if (e == cudaSuccess)
            e = cudaEventSynchronize(d->base_try);
        int64_t after = gp_now_ns();
        if (e != cudaSuccess || after - before >= best)
            continue;
        cudaEvent_t swap = d->base_event;
        d->base_event = d->base_try, d->base_try = swap;
        best = after - before;
        d->base_ns = before + (after - before) / 2;
    }
    return e;
}

bool gp_cuda_stamps(gp_dev *dev, int n, gp_errs *errs)
{
    gp_cuda_dev *d = gp_cuda(dev);
    static const char what[] = "making events";
    if (!gp_cuda_alive(d))
        return false;
    cudaEvent_t *stamp = realloc(d->stamp, (size_t)n * sizeof *stamp);
    if (!stamp)
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    d->stamp = stamp;
    for (; d->nstamps < n; d->nstamps++)
        if (!gp_cuda_ok(d, cudaEventCreate(&d->stamp[d->nstamps]), errs, what))
            return false;
    return d->base_event
        || (gp_cuda_ok(d, cudaEventCreate(&d->base_try), errs, what)
            && gp_cuda_ok(d, cudaEventCreate(&d->base_event), errs, what)
            && gp_cuda_ok(d, set_base(d), errs, what));
}

int64_t gp_cuda_stamped(gp_dev *dev, int i)
{
    gp_cuda_dev *d = gp_cuda(dev);
    float ms = 0;
    if (!gp_cuda_alive(d))
        return 0;
    pthread_mutex_lock(&d->stamp_lock);
    if (gp_now_ns() - d->base_ns > BASE_NS)
        set_base(d);
    /* a launch that tells in a word that it is done may be seen before the driver sees its events */
    if (cudaEventElapsedTime(&ms, d->base_event, d->stamp[i]) == cudaErrorNotReady
        && cudaEventSynchronize(d->stamp[i]) == cudaSuccess)
        cudaEventElapsedTime(&ms, d->base_event, d->stamp[i]);
    int64_t at = d->base_ns + (int64_t)((double)ms * 1e6);
    pthread_mutex_unlock(&d->stamp_lock);
    return at;
}

void gp_cuda_unstamp(gp_cuda_dev *d)
{
    for (int i = 0; i < d->nstamps; i++)
        cudaEventDestroy(d->stamp[i]);
    if (d->base_event)
        cudaEventDestroy(d->base_event);
    if (d->base_try)
        cudaEventDestroy(d->base_try);
    d->nstamps = 0, d->base_event = d->base_try = NULL;
}

/* ---- how fast it copies ---------------------------------------------- */

bool gp_cuda_rates(gp_dev *dev, double *in, double *out, gp_errs *errs)
{
    enum { BYTES = 32 << 20, COPIES = 4, IN = 0, OUT = 1 };
    gp_cuda_dev *d = gp_cuda(dev);
    const gp_backend *be = dev->backend;
    void *host[2] = { NULL }, *device[2] = { NULL };
    cudaStream_t stream[2] = { NULL };
    cudaEvent_t from[2] = { NULL }, to[2] = { NULL };
    float ms[2] = { 0 };
    static const char what[] = "measuring copies";
    CUcontext was = gp_cuda_current(d);
    bool ok = gp_cuda_alive(d);
    for (int i = 0; ok && i < 2; i++)
        ok = (host[i] = be->alloc(dev, GP_MEMORY_PINNED, BYTES, errs))
            && (device[i] = be->alloc(dev, GP_MEMORY_DEVICE, BYTES, errs))
            && gp_cuda_ok(d, cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking), errs, what)
            && gp_cuda_ok(d, cudaEventCreate(&from[i]), errs, what)
            && gp_cuda_ok(d, cudaEventCreate(&to[i]), errs, what);
    cudaError_t e = cudaSuccess;
    for (int k = 0; ok && k < COPIES + 1; k++)     /* the first ones only warm up */
        for (int i = 0; i < 2; i++) {
            e = e ? e : k == 1 ? cudaEventRecord(from[i], stream[i]) : cudaSuccess;
            e = e ? e : i == IN ? cudaMemcpyAsync(device[i], host[i], BYTES, cudaMemcpyHostToDevice,
                                                  stream[i])
                                : cudaMemcpyAsync(host[i], device[i], BYTES, cudaMemcpyDeviceToHost,
                                                  stream[i]);
            e = e ? e : k == COPIES ? cudaEventRecord(to[i], stream[i]) : cudaSuccess;
        }
    for (int i = 0; ok && i < 2; i++) {
        e = e ? e : cudaStreamSynchronize(stream[i]);
        e = e ? e : cudaEventElapsedTime(&ms[i], from[i], to[i]);
    }
    ok = ok && gp_cuda_ok(d, e, errs, what);
    for (int i = 0; i < 2; i++) {
        be->free(dev, GP_MEMORY_PINNED, host[i], BYTES);
        be->free(dev, GP_MEMORY_DEVICE, device[i], BYTES);
        if (gp_cuda_alive(d)) {
            if (from[i])
                cudaEventDestroy(from[i]);
            if (to[i])
                cudaEventDestroy(to[i]);
            if (stream[i])
                cudaStreamDestroy(stream[i]);
        }
    }
    *in = ok && ms[IN] > 0 ? (double)BYTES * COPIES / (ms[IN] * 1e-3) : 0;
    *out = ok && ms[OUT] > 0 ? (double)BYTES * COPIES / (ms[OUT] * 1e-3) : 0;
    gp_cuda_set_current(d, was);
    return ok;
}
