/* driver.c - the driver's functions that the runtime has no word for. They are found
 * through the runtime, which opens the driver: nothing is linked to it. */
#include "cuda/dev.h"

bool gp_cuda_find_driver(gp_cuda_dev *d, gp_errs *errs)
{
    const struct { const char *name; unsigned version; void *to; } function[] = {
        { "cuCtxGetCurrent", 4000, &d->driver.get_current },
        { "cuCtxSetCurrent", 4000, &d->driver.set_current },
        { "cuKernelGetFunction", 12000, &d->driver.kernel_function },
        { "cuFuncLoad", 12040, &d->driver.load_function },
        { "cuKernelGetParamInfo", 12040, &d->driver.parameter },
        { "cuModuleLoadDataEx", 2010, &d->driver.load_module },
        { "cuModuleUnload", 2000, &d->driver.unload_module },
    };
    for (size_t i = 0; i < sizeof function / sizeof *function; i++) {
        enum cudaDriverEntryPointQueryResult found;
        cudaError_t e = cudaGetDriverEntryPointByVersion(function[i].name, function[i].to,
                                                         function[i].version, cudaEnableDefault,
                                                         &found);
        if (e == cudaSuccess && found != cudaDriverEntryPointSuccess)
            e = cudaErrorSymbolNotFound;
        if (e != cudaSuccess)
            return gp_cuda_failed(d, e, errs, "looking for %s in the driver", function[i].name);
    }
    return true;
}

CUcontext gp_cuda_current(const gp_cuda_dev *d)
{
    CUcontext context = NULL;
    if (d->driver.get_current)
        d->driver.get_current(&context);
    return context;
}

void gp_cuda_set_current(const gp_cuda_dev *d, CUcontext context)
{
    if (d->driver.set_current)
        d->driver.set_current(context);
}
