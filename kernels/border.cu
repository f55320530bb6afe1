/* border.cu - what crosses between host and GPU without a copy engine, see cuda/recorder.c: few bytes, and the word, a
 * completion flag, that says that a launch is done. Both are in pinned memory, which is mapped. */
#include "map.h"

#if defined __CUDACC__ && !defined __CUDACC_RTC__

extern "C" __global__ void border_copy(uint4 *to, const uint4 *from, size_t n)
{
    for (size_t i = first_x(); i < n; i += step_x())
        to[i] = from[i];
}

/* Behind all kernels of a launch: what they wrote is visible to the host before the word is. */
extern "C" __global__ void border_done(volatile uint32_t *word)
{
    __threadfence_system();
    *word = 1;
}

#endif

GP_KERNELS()
