/* cublaslt_library.c - see cublaslt_library.h. */
#include "base/dl.h"
#include "cublaslt_library.h"

bool gp_cublaslt_open(gp_cublaslt *l, const char *what, gp_loc at, gp_errs *errs)
{
    static const char *const names[] = {
        "libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so",
        "/usr/local/cuda/lib64/libcublasLt.so.13", "/usr/local/cuda/lib64/libcublasLt.so.12",
        "/usr/local/cuda/lib64/libcublasLt.so", NULL,
    };
    const gp_dl_symbol symbol[] = {
        { "cublasLtGetVersion", &l->version },
        { "cublasLtGetStatusName", &l->status_name },
        { "cublasLtCreate", &l->create },
        { "cublasLtDestroy", &l->destroy },
        { "cublasLtMatmulDescInit_internal", &l->operation },
        { "cublasLtMatmulDescSetAttribute", &l->set_operation },
        { "cublasLtMatrixLayoutInit_internal", &l->layout },
        { "cublasLtMatrixLayoutSetAttribute", &l->set_layout },
        { "cublasLtMatmulPreferenceInit_internal", &l->preference },
        { "cublasLtMatmulPreferenceSetAttribute", &l->set_preference },
        { "cublasLtMatmulAlgoGetHeuristic", &l->find },
        { "cublasLtMatmul", &l->multiply },
        { 0 },
    };
    return gp_dl_open(names, symbol, what, "install the package libcublas-13-0 of NVIDIA's CUDA repository, or pip's "
                      "nvidia-cublas with its folder in LD_LIBRARY_PATH, or set 'device: cpu'", at, errs);
}
