/* libraries.c - see device/libraries.h and libraries.h. The ABI of cuFFT has been the same since CUDA 11, that of
 * nvJPEG since CUDA 11.1, and that of NCCL since 2.14. */
#include <pthread.h>
#include <stdio.h>
#include "base/dl.h"
#include "cuda/libraries.h"

gp_gpu_libraries gp_gpu = { .products = { .choose = gp_cublaslt_choose, .multiply = gp_cublaslt_multiply } };
gp_cublaslt gp_cublaslt_calls;

/* ---- which there are --------------------------------------------------- */

static size_t (*cublaslt_version)(void);
static int (*fft_property)(int which, int *value), (*jpeg_property)(int which, int *value), (*nccl_version)(int *v);
static const char *(*nccl_text)(int status);

static const gp_dl_symbol fft[] = {
    { "cufftGetProperty", &fft_property }, { "cufftCreate", &gp_gpu.fft.create },
    { "cufftDestroy", &gp_gpu.fft.destroy }, { "cufftSetAutoAllocation", &gp_gpu.fft.own_areas },
    { "cufftMakePlanMany64", &gp_gpu.fft.make }, { "cufftSetStream", &gp_gpu.fft.set_stream },
    { "cufftSetWorkArea", &gp_gpu.fft.set_area }, { "cufftExecC2C", &gp_gpu.fft.complex },
    { "cufftExecR2C", &gp_gpu.fft.forward }, { "cufftExecC2R", &gp_gpu.fft.inverse }, { 0 },
};
static const gp_dl_symbol products[] = {
    { "cublasLtGetVersion", &cublaslt_version }, { "cublasLtGetStatusName", &gp_cublaslt_calls.status_name },
    { "cublasLtCreate", &gp_gpu.products.create }, { "cublasLtDestroy", &gp_gpu.products.destroy },
    { "cublasLtMatmulDescInit_internal", &gp_cublaslt_calls.operation },
    { "cublasLtMatmulDescSetAttribute", &gp_cublaslt_calls.set_operation },
    { "cublasLtMatrixLayoutInit_internal", &gp_cublaslt_calls.layout },
    { "cublasLtMatrixLayoutSetAttribute", &gp_cublaslt_calls.set_layout },
    { "cublasLtMatmulPreferenceInit_internal", &gp_cublaslt_calls.preference },
    { "cublasLtMatmulPreferenceSetAttribute", &gp_cublaslt_calls.set_preference },
    { "cublasLtMatmulAlgoGetHeuristic", &gp_cublaslt_calls.find }, { "cublasLtMatmulAlgoCheck", &gp_cublaslt_calls.check },
    { "cublasLtMatmul", &gp_cublaslt_calls.multiply }, { 0 },
};
static const gp_dl_symbol jpeg[] = {
    { "nvjpegGetProperty", &jpeg_property }, { "nvjpegCreateEx", &gp_gpu.jpeg.create },
    { "nvjpegDestroy", &gp_gpu.jpeg.destroy }, { "nvjpegJpegStateCreate", &gp_gpu.jpeg.state_create },
    { "nvjpegJpegStateDestroy", &gp_gpu.jpeg.state_destroy }, { "nvjpegJpegStreamCreate", &gp_gpu.jpeg.parser_create },
    { "nvjpegJpegStreamDestroy", &gp_gpu.jpeg.parser_destroy }, { "nvjpegJpegStreamParseHeader", &gp_gpu.jpeg.parse },
    { "nvjpegJpegStreamGetFrameDimensions", &gp_gpu.jpeg.size },
    { "nvjpegJpegStreamGetComponentsNum", &gp_gpu.jpeg.colors },
    { "nvjpegDecodeBatchedSupported", &gp_gpu.jpeg.batch_refuses },
    { "nvjpegDecodeBatchedInitialize", &gp_gpu.jpeg.batch_begin }, { "nvjpegDecodeBatched", &gp_gpu.jpeg.batch },
    { "nvjpegDecode", &gp_gpu.jpeg.decode }, { 0 },
};
static const gp_dl_symbol ranks[] = {
    { "ncclGetVersion", &nccl_version }, { "ncclGetErrorString", &nccl_text },
    { "ncclGetUniqueId", &gp_gpu.ranks.unique_id }, { "ncclCommInitRank", &gp_gpu.ranks.init },
    { "ncclCommDestroy", &gp_gpu.ranks.destroy }, { "ncclCommAbort", &gp_gpu.ranks.abort },
    { "ncclCommGetAsyncError", &gp_gpu.ranks.async_error }, { "ncclAllReduce", &gp_gpu.ranks.all_reduce },
    { "ncclAllGather", &gp_gpu.ranks.all_gather }, { "ncclBroadcast", &gp_gpu.ranks.broadcast },
    { "ncclGroupStart", &gp_gpu.ranks.group_start }, { "ncclGroupEnd", &gp_gpu.ranks.group_end },
    { "ncclSend", &gp_gpu.ranks.send }, { "ncclRecv", &gp_gpu.ranks.recv }, { 0 },
};

/* What to do without a library: its package in CUDA's repository or pip's, and an option that needs no library. */
#define INSTALL(package, wheel, option)                                                           \
    "install the package " package " of NVIDIA's CUDA repository, or pip's " wheel                \
    " with its folder in LD_LIBRARY_PATH, or set '" option "'"

static const struct { const char *name, *files[7], *advice; const gp_dl_symbol *symbol; } libraries[] = {
    [GP_GPU_FFT] = { "cuFFT", GP_CUDA_FILES("libcufft", "12", "11"),
                     INSTALL("libcufft-13-0", "nvidia-cufft", "device: cpu"), fft },
    [GP_GPU_PRODUCTS] = { "cuBLASLt", GP_CUDA_FILES("libcublasLt", "13", "12"),
                          INSTALL("libcublas-13-0", "nvidia-cublas", "device: cpu"), products },
    [GP_GPU_JPEG] = { "nvJPEG", GP_CUDA_FILES("libnvjpeg", "13", "12"),
                      INSTALL("libnvjpeg-13-0", "nvidia-nvjpeg", "decoder: cpu"), jpeg },
    [GP_GPU_RANKS] = { "NCCL", GP_CUDA_FILES("libnccl", "2", "2"),
                       INSTALL("libnccl2", "nvidia-nccl-cu13", "by: mpi"), ranks },
};
enum { LIBRARIES = sizeof libraries / sizeof *libraries };

/* ---- opening ------------------------------------------------------------ */

const char *gp_gpu_name(gp_gpu_library which)
{
    return libraries[which].name;
}

static void name_it(gp_gpu_library which, char name[GP_GPU_TEXT])
{
    enum { MAJOR, MINOR };
    int (*property)(int, int *) = which == GP_GPU_FFT ? fft_property : jpeg_property;
    int v = 0, major = 0, minor = 0;
    char patch[12] = "";
    if (which == GP_GPU_PRODUCTS) {
        v = (int)cublaslt_version(), major = v / 10000, minor = v / 100 % 100;
    } else if (which == GP_GPU_RANKS) {
        nccl_version(&v), major = v / 10000, minor = v / 100 % 100;
        snprintf(patch, sizeof patch, ".%d", v % 100);
    } else if (property(MAJOR, &major) || property(MINOR, &minor)) {
        major = 0;
    }
    if (major)
        snprintf(name, GP_GPU_TEXT, "%s %d.%d%s", gp_gpu_name(which), major, minor, patch);
    else
        snprintf(name, GP_GPU_TEXT, "%s", gp_gpu_name(which));
}

bool gp_gpu_open(gp_gpu_library which, char name[GP_GPU_TEXT], const char *what, gp_loc at, gp_errs *errs)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool is_open[LIBRARIES];
    pthread_mutex_lock(&lock);
    bool open = is_open[which] = is_open[which] || gp_dl_open(libraries[which].files, libraries[which].symbol, what,
                                                              libraries[which].advice, at, errs);
    pthread_mutex_unlock(&lock);
    if (open && name)
        name_it(which, name);
    return open;
}

bool gp_gpu_pretends(void)
{
    const int *it;
    const gp_dl_symbol symbol[] = { { "gp_nccl_pretends", &it }, { 0 } };
    gp_errs none = { .n = 0 };
    return gp_dl_open(libraries[GP_GPU_RANKS].files, symbol, "", "", (gp_loc){ 0 }, &none);
}

const char *gp_gpu_status(gp_gpu_library which, int status, char buf[GP_GPU_TEXT])
{
    static const char *const texts[][11] = {
        [GP_GPU_FFT] = { "SUCCESS", "INVALID_PLAN", "ALLOC_FAILED", "INVALID_TYPE", "INVALID_VALUE", "INTERNAL_ERROR",
                         "EXEC_FAILED", "SETUP_FAILED", "INVALID_SIZE", "UNALIGNED_DATA" },
        [GP_GPU_JPEG] = { "SUCCESS", "NOT_INITIALIZED", "INVALID_PARAMETER", "BAD_JPEG", "JPEG_NOT_SUPPORTED",
                          "ALLOCATOR_FAILURE", "EXECUTION_FAILED", "ARCH_MISMATCH", "INTERNAL_ERROR",
                          "IMPLEMENTATION_NOT_SUPPORTED", "INCOMPLETE_BITSTREAM" },
    };
    if (which == GP_GPU_PRODUCTS)
        return gp_cublaslt_calls.status_name(status);
    if (which == GP_GPU_RANKS)
        return nccl_text(status);
    if (status >= 0 && status < 11 && texts[which][status])
        return texts[which][status];
    snprintf(buf, GP_GPU_TEXT, "status %d", status);
    return buf;
}

int gp_gpu_type(gp_dtype t)
{
    switch (t) {
    case GP_U8:  return GP_GPU_U8;
    case GP_I32: return 2;
    case GP_U32: return 3;
    case GP_I64: return 4;
    case GP_U64: return 5;
    case GP_F32: return 7;
    case GP_F64: return 8;
    default:     return -1;
    }
}

/* ---- NVML ---------------------------------------------------------------- */

bool gp_nvml_look(const char *library, gp_nvml_device *device, int n)
{
    int (*init)(void), (*shutdown)(void);
    int (*by_pci)(const char *address, void **handle);
    int (*memory)(void *handle, gp_nvml_memory *to);
    const gp_dl_symbol symbol[] = {
        { "nvmlInit_v2", &init }, { "nvmlShutdown", &shutdown }, { "nvmlDeviceGetHandleByPciBusId_v2", &by_pci },
        { "nvmlDeviceGetMemoryInfo", &memory }, { 0 } };
    const char *const names[] = { library ? library : "libnvidia-ml.so.1", NULL };
    gp_errs none = { .n = 0 };                 /* without it the first device is taken, which is no error */
    if (!gp_dl_open(names, symbol, "", "", (gp_loc){ 0 }, &none) || init())
        return false;
    bool ok = true;
    for (int i = 0; i < n && ok; i++) {
        void *handle;
        ok = !by_pci(device[i].pci, &handle) && !memory(handle, &device[i].memory);
    }
    shutdown();
    return ok;
}
