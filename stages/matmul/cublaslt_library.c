/* cublaslt_library.c - see cublaslt_library.h. */
#include "cuda_library.h"
#include "cublaslt_library.h"

bool gp_cublaslt_open(gp_cublaslt *l, const char *what, gp_loc at, gp_errs *errs)
{
    static const char *const names[] = GP_CUDA_LIBRARY("libcublasLt", "13", "12");
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
    return gp_dl_open(names, symbol, what, GP_CUDA_INSTALL("libcublas-13-0", "nvidia-cublas", "device: cpu"),
                   at, errs);
}
