/* loop.cu - counts the turns of a loop that is in a CUDA graph, see cuda/recorder.c. */
#include "kernel.h"

#if defined __CUDACC__ && !defined __CUDACC_RTC__
/* Is there another turn? `start`: there was none yet. */
extern "C" __global__ void loop_turn(cudaGraphConditionalHandle loop, int64_t *done, int64_t turns, const int32_t *flag,
                                     int start)
{
    int64_t n = start ? 0 : *done + 1;
    *done = n;
    cudaGraphSetConditional(loop, n < turns && !(flag && *flag));
}
#endif

GP_KERNELS()
