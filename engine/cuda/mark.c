/* mark.c - marks: events in streams of others, which launches wait for. A mark that was never made is passed.
 *
 * Streams that wait for each other on the GPU cost microseconds; to look whether there is anything to wait for does
 * not. */
#include "cuda/dev.h"

bool gp_cuda_marks(gp_dev *dev, int n, gp_errs *errs)
{
    gp_cuda_dev *d = gp_cuda(dev);
    if (!gp_cuda_alive(d) || !(d->mark = gp_cuda_table((size_t)n, sizeof *d->mark, errs)))
        return false;
    for (; d->nmarks < n; d->nmarks++)
        if (!gp_cuda_ok(d, cudaEventCreateWithFlags(&d->mark[d->nmarks], cudaEventDisableTiming | cudaEventBlockingSync),
                        errs, "making events"))
            return false;
    return true;
}

bool gp_cuda_mark(gp_dev *dev, int i, void *stream, gp_errs *errs)
{
    gp_cuda_dev *d = gp_cuda(dev);
    CUcontext was = gp_cuda_current(d);
    bool ok = gp_cuda_alive(d);
    cudaError_t e = ok ? cudaStreamQuery(stream) : cudaSuccess;
    if (e == cudaErrorNotReady)
        e = cudaEventRecord(d->mark[i], stream);
    ok = ok && gp_cuda_ok(d, e, errs, "recording an event in the stream of the program");
    gp_cuda_set_current(d, was);
    return ok;
}

bool gp_cuda_await(gp_dev *dev, int stream, int i, gp_errs *errs)
{
    gp_cuda_dev *d = gp_cuda(dev);
    if (!gp_cuda_alive(d))
        return false;
    cudaError_t e = cudaEventQuery(d->mark[i]);
    if (e == cudaErrorNotReady)
        e = cudaStreamWaitEvent(d->stream[stream], d->mark[i], 0);
    return gp_cuda_ok(d, e, errs, "waiting for the stream of the program");
}

bool gp_cuda_pass(gp_dev *dev, int i, gp_errs *errs)
{
    gp_cuda_dev *d = gp_cuda(dev);
    CUcontext was = gp_cuda_current(d);
    bool ok = gp_cuda_alive(d)
           && gp_cuda_ok(d, cudaEventSynchronize(d->mark[i]), errs, "waiting for the stream of the program");
    gp_cuda_set_current(d, was);
    return ok;
}

void gp_cuda_unmark(gp_cuda_dev *d)
{
    for (int i = 0; i < d->nmarks; i++)
        cudaEventDestroy(d->mark[i]);
    d->nmarks = 0;
}
