/* kernel.c - device code: the built-in kernels, and the user's.
 *
 * A library is on the GPU as soon as it is known, a kernel of it when a body that
 * launches it is loaded: CUDA would do that at its first launch, and synchronize the
 * device. They live until the device is closed. */
#include <stdlib.h>
#include <string.h>
#include "base/embed.h"
#include "base/module.h"
#include "cuda/dev.h"
#include "cuda/nvrtc.h"
#include "device/cache.h"
#include "device/source.h"

struct gp_cuda_library {
    struct gp_cuda_library *next;
    cudaLibrary_t lib;
};

const gp_kernel *gp_cuda_find(const gp_cuda_dev *d, const char *name)
{
    const gp_entry *e = gp_table_find(&d->builtin, name);
    return e ? e->ptr : NULL;
}

/* A kernel of a library. It may ask for all the shared memory that a block can have. */
static gp_kernel *kernel_create(gp_cuda_dev *d, cudaKernel_t fn, gp_errs *errs)
{
    struct cudaFuncAttributes a;
    const char *name;
    if (!gp_cuda_ok(d, cudaFuncGetName(&name, fn), errs, "looking at a kernel"))
        return NULL;
    cudaError_t e = cudaFuncGetAttributes(&a, fn);
    size_t shared = 0;
    if (e == cudaSuccess) {
        shared = d->shared_max > a.sharedSizeBytes ? d->shared_max - a.sharedSizeBytes : 0;
        e = cudaFuncSetAttribute(fn, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    }
    if (e != cudaSuccess) {
        gp_cuda_failed(d, e, errs, "loading kernel '%s'", name);
        return NULL;
    }
    gp_kernel *k = gp_cuda_table(1, sizeof *k, errs);
    if (k)
        *k = (gp_kernel){ .name = name, .fn = fn, .shared = shared,
                          .threads = a.maxThreadsPerBlock, .waits = a.ptxVersion >= 90 };
    return k;
}

/* Local memory is taken for as many threads as the GPU can have at once, for the
 * kernel that needs most; a limit on it takes effect now. Where it cannot be had that
 * is for the launch to say, which may do with less. */
bool gp_cuda_load_kernel(gp_cuda_dev *d, cudaKernel_t fn, const char *name, gp_errs *errs)
{
    struct cudaFuncAttributes a = { 0 };
    CUfunction f;
    size_t limit = 0;
    cudaError_t e = (cudaError_t)d->driver.kernel_function(&f, fn);    /* of the same numbers */
    if (e == cudaSuccess)
        e = (cudaError_t)d->driver.load_function(f);
    if (e == cudaSuccess)
        e = cudaFuncGetAttributes(&a, fn);
    if (e != cudaSuccess)
        return gp_cuda_failed(d, e, errs, "loading kernel '%s'", name);
    if (cudaDeviceGetLimit(&limit, cudaLimitStackSize) == cudaSuccess && a.localSizeBytes > limit)
        cudaDeviceSetLimit(cudaLimitStackSize, a.localSizeBytes);
    cudaGetLastError();
    return true;
}

/* Device code: a fat binary or a cubin. It is copied. */
static struct gp_cuda_library *library_load(gp_cuda_dev *d, const void *image,
                                            const char *name, gp_errs *errs)
{
    struct gp_cuda_library *l = gp_cuda_table(1, sizeof *l, errs);
    if (!l)
        return NULL;
    cudaError_t e = cudaLibraryLoadData(&l->lib, image, NULL, NULL, 0, NULL, NULL, 0);
    if (e != cudaSuccess) {
        gp_cuda_failed(d, e, errs, "loading '%s'", name);
        free(l);
        return NULL;
    }
    l->next = d->libs;
    d->libs = l;
    return l;
}

/* The source of the built-in kernels of a file "kernels/NAME.fatbin"; "" where none may be launched early. */
static const char *text_of(const char *file)
{
    char name[60];
    snprintf(name, sizeof name, "%.*scu", (int)(strlen(file) - strlen("fatbin")), file);
    const char *text = (const char *)gp_blob_find(name)->data;
    return strstr(text, "GP_EARLY") ? text : "";
}

static bool load_file(gp_cuda_dev *d, const gp_blob *b, gp_errs *errs)
{
    struct gp_cuda_library *l = library_load(d, b->data, b->name, errs);
    const char *text = text_of(b->name);
    unsigned n = 0;
    if (!l || !gp_cuda_ok(d, cudaLibraryGetKernelCount(&n, l->lib), errs, b->name))
        return false;
    cudaKernel_t *fn = gp_cuda_table(n, sizeof *fn, errs);
    bool fine = fn && gp_cuda_ok(d, cudaLibraryEnumerateKernels(fn, n, l->lib), errs, b->name);
    for (unsigned i = 0; fine && i < n; i++) {
        gp_kernel *k = kernel_create(d, fn[i], errs);
        gp_entry *e = k ? gp_table_put(&d->builtin, k->name, 0) : NULL;
        if (k && !e)
            gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
        if (!(fine = e)) {
            free(k);
            break;
        }
        e->ptr = k;
        k->file = b->name, k->early = k->waits && gp_source_is_early(text, k->name);
    }
    free(fn);
    return fine;
}

/* What only loops need, which takes a part of CUDA's that runs on the device. */
static const char for_loops[] = "kernels/loop.fatbin";

bool gp_cuda_load_builtin(gp_cuda_dev *d, gp_errs *errs)
{
    for (const gp_blob *b = gp_blobs; b->name; b++) {
        const char *end = strrchr(b->name, '.');
        if (end && !strcmp(end, ".fatbin") && strcmp(b->name, for_loops) && !load_file(d, b, errs))
            return false;
    }
    return true;
}

const gp_kernel *gp_cuda_loop_turn(gp_cuda_dev *d, gp_errs *errs)
{
    const gp_blob *b = gp_blobs;
    while (strcmp(b->name, for_loops))
        b++;
    if (!gp_cuda_find(d, "loop_turn") && !load_file(d, b, errs))
        return NULL;
    return gp_cuda_find(d, "loop_turn");
}

/* ---- modules of other compilers ---------------------------------------------- */

/* The file, once more: what is loaded is what was looked at. NULL after errors. */
static void *read_module(const gp_cuda_dev *d, const gp_source *src, gp_errs *errs)
{
    gp_module m;
    char why[GP_WHY];
    size_t n = 0;
    char *image = gp_slurp(src->path, GP_MODULE_MAX, &n, why);
    bool ok = image ? gp_module_read(&m, image, n, src->entry, why) : false;
    if (!ok)
        gp_fail(errs, GP_E_SPEC, src->at, "'%s' %s", src->path, why);
    else if (!(ok = gp_module_allows(&m, src, why)))
        gp_fail(errs, GP_E_SPEC, src->at, "%s", why);
    else if (!(ok = gp_module_fits(&m, d->cc, why)))
        gp_fail(errs, GP_E_SPEC, src->at, "'%s' is for %s, and this GPU is sm_%d: compile it for that, or to PTX for an "
                "earlier one", src->path, why, d->cc);
    if (ok)
        return image;
    free(image);
    return NULL;
}

/* Why a module cannot be loaded: what the compiler in the driver says, which a library does not tell. */
static void explain(gp_cuda_dev *d, const gp_source *src, const void *image, cudaError_t e, gp_errs *errs)
{
    enum { LOG = 16384 };
    char *log = calloc(1, LOG);
    CUjit_option option[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
    void *value[] = { log, (void *)(uintptr_t)(LOG - 1) };
    CUmodule module;
    cudaGetLastError();
    if (log && d->driver.load_module(&module, image, 2, option, value) == CUDA_SUCCESS)
        d->driver.unload_module(module);
    if (log && *log)
        gp_module_errors(src, log, errs);
    else
        gp_fail(errs, GP_E_SPEC, src->at, "'%s' cannot be loaded: %s: %s", src->path, cudaGetErrorName(e),
                cudaGetErrorString(e));
    free(log);
}

/* Does the kernel take what the stage passes? */
static bool takes(const gp_cuda_dev *d, const gp_source *src, cudaKernel_t fn, gp_errs *errs)
{
    enum { MOST = 256 };
    size_t size[MOST], offset;
    int n = 0;
    while (n < MOST && d->driver.parameter((CUkernel)fn, (size_t)n, &offset, &size[n]) == CUDA_SUCCESS)
        n++;
    return gp_module_takes(src, size, n, errs);
}

/* A kernel of it, on the GPU. The driver may compile PTX as late as when a function is asked for. */
static struct gp_cuda_library *module_load(gp_cuda_dev *d, const gp_source *src, const void *image,
                                           cudaKernel_t *fn, gp_errs *errs)
{
    CUfunction f;
    struct gp_cuda_library *l = gp_cuda_table(1, sizeof *l, errs);
    cudaError_t e = l ? cudaLibraryLoadData(&l->lib, image, NULL, NULL, 0, NULL, NULL, 0) : cudaSuccess;
    if (!l)
        return NULL;
    if (e == cudaSuccess) {
        l->next = d->libs, d->libs = l;
        if ((e = cudaLibraryGetKernel(fn, l->lib, src->entry)) == cudaSuccess)
            e = (cudaError_t)d->driver.kernel_function(&f, *fn);
        if (e == cudaSuccess)
            return takes(d, src, *fn, errs) ? l : NULL;
    } else {
        free(l);
    }
    if (e == cudaErrorSymbolNotFound)
        gp_fail(errs, GP_E_SPEC, src->at, "no kernel '%s' in '%s'", src->entry, src->path);
    else
        explain(d, src, image, e, errs);
    return NULL;
}

const gp_kernel *gp_cuda_compile(gp_dev *dev, const gp_source *src, gp_errs *errs)
{
    gp_cuda_dev *d = gp_cuda(dev);
    void *image = NULL;
    size_t bytes;
    bool module = !src->text && gp_module_is(src->path), early = false;
    cudaKernel_t fn;
    if (!gp_cuda_alive(d) || (module ? !(image = read_module(d, src, errs))
                                     : !gp_nvrtc_compile(src, d->cc, dev->cancel, &image, &bytes, &early, errs)))
        return NULL;
    struct gp_cuda_library *l = module ? module_load(d, src, image, &fn, errs)
                                       : library_load(d, image, gp_source_name(src), errs);
    free(image);
    if (!l)
        return NULL;
    cudaError_t e = module ? cudaSuccess : cudaLibraryGetKernel(&fn, l->lib, src->entry);
    if (e != cudaSuccess) {
        gp_cuda_failed(d, e, errs, "kernel '%s' of '%s'", src->entry, gp_source_name(src));
        return NULL;
    }
    gp_kernel *k = kernel_create(d, fn, errs);
    if (!k)
        return NULL;
    k->source = *src, k->early = k->waits && early;
    k->next = d->compiled;
    d->compiled = k;
    if (src->shared > k->shared)
        return GP_NULL(gp_fail(errs, GP_E_SPEC, src->at, "kernel '%s' asks for %zu bytes of dynamic shared memory; on "
                               "this GPU it can have %zu: lower 'shared'", src->entry, src->shared, k->shared));
    return k;
}

void gp_cuda_unload(gp_cuda_dev *d)
{
    for (gp_entry *e = NULL; (e = gp_table_next(&d->builtin, e));)
        free(e->ptr);
    gp_table_free(&d->builtin);
    for (gp_kernel *k = d->compiled, *next; k; k = next) {
        next = k->next;
        free(k);
    }
    bool live = gp_cuda_alive(d);
    for (struct gp_cuda_library *l = d->libs, *next; l; l = next) {
        next = l->next;
        if (live)
            cudaLibraryUnload(l->lib);
        free(l);
    }
}
