/* cufft_library.c - see cufft_library.h. */
#include <stdio.h>
#include "cuda_library.h"
#include "cufft_library.h"

bool gp_cufft_open(gp_cufft *l, const char *what, gp_loc at, gp_errs *errs)
{
    enum { MAJOR, MINOR };
    static const char *const names[] = GP_CUDA_LIBRARY("libcufft", "12", "11");
    const gp_dl_symbol symbol[] = {
        { "cufftGetProperty", &l->property },
        { "cufftCreate", &l->create },
        { "cufftDestroy", &l->destroy },
        { "cufftSetAutoAllocation", &l->own_areas },
        { "cufftMakePlanMany64", &l->make },
        { "cufftSetStream", &l->set_stream },
        { "cufftSetWorkArea", &l->set_area },
        { "cufftExecC2C", &l->complex },
        { "cufftExecR2C", &l->forward },
        { "cufftExecC2R", &l->inverse },
        { 0 },
    };
    if (!gp_dl_open(names, symbol, what, GP_CUDA_INSTALL("libcufft-13-0", "nvidia-cufft", "device: cpu"),
                    at, errs))
        return false;
    if (l->property(MAJOR, &l->major) || l->property(MINOR, &l->minor))
        l->major = l->minor = 0;
    return true;
}

const char *gp_cufft_text(int status, char buf[24])
{
    static const char *const text[] = {
        "SUCCESS", "INVALID_PLAN", "ALLOC_FAILED", "INVALID_TYPE", "INVALID_VALUE", "INTERNAL_ERROR", "EXEC_FAILED",
        "SETUP_FAILED", "INVALID_SIZE", "UNALIGNED_DATA",
    };
    if (status >= 0 && status < (int)(sizeof text / sizeof *text))
        return text[status];
    snprintf(buf, 24, "status %d", status);
    return buf;
}
