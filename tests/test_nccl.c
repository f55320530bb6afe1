/* test_nccl.c - what is declared of NCCL beside its header, where that is there. What runs by it is in
 * collectives.py. */
#include <stddef.h>
#include "device/libraries.h"
#include "suite.h"

#if defined __has_include
#if __has_include(<nccl.h>)
#include <nccl.h>

_Static_assert((int)ncclSum == GP_GPU_SUM && (int)ncclMax == GP_GPU_MAX && (int)ncclMin == GP_GPU_MIN
               && (int)ncclAvg == GP_GPU_MEAN && (int)ncclSuccess == 0 && (int)ncclInProgress == GP_GPU_IN_PROGRESS, "numbers");
_Static_assert((int)ncclUint8 == GP_GPU_U8 && ncclInt32 == 2 && ncclUint32 == 3 && ncclInt64 == 4 && ncclUint64 == 5
               && ncclFloat32 == 7 && ncclFloat64 == 8, "types");
_Static_assert(sizeof(ncclUniqueId) == sizeof(gp_gpu_id) && sizeof(ncclResult_t) == sizeof(int)
               && sizeof(ncclDataType_t) == sizeof(int) && sizeof(ncclRedOp_t) == sizeof(int)
               && sizeof(ncclComm_t) == sizeof(void *), "sizes");

/* Calls that do not compile if the header has other parameters in these places. */
__attribute__((unused)) static int calls(ncclComm_t c, ncclUniqueId id, const void *from, void *to, size_t n, int *out,
                                         ncclResult_t *status, cudaStream_t stream)
{
    const char *text = ncclGetErrorString(ncclSuccess);
    return ncclGetVersion(out) + ncclGetUniqueId(&id) + ncclCommInitRank(&c, 1, id, 0) + ncclCommDestroy(c) + ncclCommAbort(c)
         + ncclCommGetAsyncError(c, status) + *text + ncclAllReduce(from, to, n, ncclFloat32, ncclSum, c, stream)
         + ncclAllGather(from, to, n, ncclUint8, c, stream) + ncclBroadcast(from, to, n, ncclUint8, 0, c, stream)
         + ncclGroupStart() + ncclGroupEnd() + ncclSend(from, n, ncclUint8, 0, c, stream) + ncclRecv(to, n, ncclUint8, 0, c, stream);
}
#endif
#endif

TEST_LOOP(types, 0, 9)
{
    static const struct { gp_dtype t; int nccl; } cases[] = {
        { GP_U8, 1 }, { GP_I32, 2 }, { GP_U32, 3 }, { GP_I64, 4 }, { GP_U64, 5 }, { GP_F32, 7 }, { GP_F64, 8 }, { GP_C64, -1 },
        { GP_I16, -1 },
    };
    ck_assert_int_eq(gp_gpu_type(cases[_i].t), cases[_i].nccl);
}

TEST_SUITE(nccl, NULL, NULL, 0)
