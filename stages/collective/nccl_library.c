/* nccl_library.c - see nccl_library.h. */
#include <pthread.h>
#include <stdio.h>
#include "cuda_library.h"
#include "nccl_library.h"

static const char *const names[] = GP_CUDA_LIBRARY("libnccl", "2", "2");

const gp_nccl *gp_nccl_open(char text[24], const char *what, gp_loc at, gp_errs *errs)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static gp_nccl lib;
    static bool open;
    const gp_dl_symbol symbol[] = {
        { "ncclGetVersion", &lib.version },
        { "ncclGetUniqueId", &lib.unique_id },
        { "ncclCommInitRank", &lib.init },
        { "ncclCommDestroy", &lib.destroy },
        { "ncclCommAbort", &lib.abort },
        { "ncclCommGetAsyncError", &lib.async_error },
        { "ncclGetErrorString", &lib.error_text },
        { "ncclAllReduce", &lib.all_reduce },
        { "ncclAllGather", &lib.all_gather },
        { "ncclBroadcast", &lib.broadcast },
        { "ncclGroupStart", &lib.group_start },
        { "ncclGroupEnd", &lib.group_end },
        { "ncclSend", &lib.send },
        { "ncclRecv", &lib.recv },
        { 0 },
    };
    int v = 0;
    pthread_mutex_lock(&lock);
    open = open || gp_dl_open(names, symbol, what, GP_CUDA_INSTALL("libnccl2", "nvidia-nccl-cu13", "by: mpi"), at, errs);
    pthread_mutex_unlock(&lock);
    if (!open)
        return NULL;
    lib.version(&v);
    snprintf(text, 24, "NCCL %d.%d.%d", v / 10000, v / 100 % 100, v % 100);
    return &lib;
}

bool gp_nccl_pretends(void)
{
    const int *it;
    const gp_dl_symbol symbol[] = { { "gp_nccl_pretends", &it }, { 0 } };
    gp_errs none = { .n = 0 };
    return gp_dl_open(names, symbol, "", "", (gp_loc){ 0 }, &none);
}

int gp_nccl_type(gp_dtype t)
{
    switch (t) {
    case GP_U8:  return GP_NCCL_U8;
    case GP_I32: return GP_NCCL_I32;
    case GP_U32: return GP_NCCL_U32;
    case GP_I64: return GP_NCCL_I64;
    case GP_U64: return GP_NCCL_U64;
    case GP_F32: return GP_NCCL_F32;
    case GP_F64: return GP_NCCL_F64;
    default:     return -1;
    }
}
