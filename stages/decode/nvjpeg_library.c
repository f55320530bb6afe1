/* nvjpeg_library.c - see nvjpeg_library.h. */
#include <stdio.h>
#include "cuda_library.h"
#include "nvjpeg_library.h"

bool gp_nvjpeg_open(gp_nvjpeg *l, const char *what, gp_loc at, gp_errs *errs)
{
    enum { MAJOR, MINOR };
    static const char *const names[] = GP_CUDA_LIBRARY("libnvjpeg", "13", "12");
    const gp_dl_symbol symbol[] = {
        { "nvjpegGetProperty", &l->property },
        { "nvjpegCreateEx", &l->create },
        { "nvjpegDestroy", &l->destroy },
        { "nvjpegJpegStateCreate", &l->state_create },
        { "nvjpegJpegStateDestroy", &l->state_destroy },
        { "nvjpegJpegStreamCreate", &l->parser_create },
        { "nvjpegJpegStreamDestroy", &l->parser_destroy },
        { "nvjpegJpegStreamParseHeader", &l->parse },
        { "nvjpegJpegStreamGetFrameDimensions", &l->size },
        { "nvjpegJpegStreamGetComponentsNum", &l->colors },
        { "nvjpegDecodeBatchedSupported", &l->batch_refuses },
        { "nvjpegDecodeBatchedInitialize", &l->batch_begin },
        { "nvjpegDecodeBatched", &l->batch },
        { "nvjpegDecode", &l->decode },
        { 0 },
    };
    if (!gp_dl_open(names, symbol, what, GP_CUDA_INSTALL("libnvjpeg-13-0", "nvidia-nvjpeg", "decoder: cpu"),
                    at, errs))
        return false;
    if (l->property(MAJOR, &l->major) || l->property(MINOR, &l->minor))
        l->major = l->minor = 0;
    return true;
}

const char *gp_nvjpeg_text(int status, char buf[24])
{
    static const char *const text[] = {
        "SUCCESS", "NOT_INITIALIZED", "INVALID_PARAMETER", "BAD_JPEG", "JPEG_NOT_SUPPORTED", "ALLOCATOR_FAILURE",
        "EXECUTION_FAILED", "ARCH_MISMATCH", "INTERNAL_ERROR", "IMPLEMENTATION_NOT_SUPPORTED", "INCOMPLETE_BITSTREAM",
    };
    if (status >= 0 && status < (int)(sizeof text / sizeof *text))
        return text[status];
    snprintf(buf, 24, "status %d", status);
    return buf;
}
