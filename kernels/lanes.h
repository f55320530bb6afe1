/* lanes.h - a reduction along the middle axis of (outer, rows, inner), for kernels that need it for each element of the
 * line. LANES threads have a line: lane l takes rows l, l + LANES, ... in order, then halves are joined to halves. On a
 * CPU one thread does what all lanes do, in the same order, so that all devices have the same bits. */
#ifndef GP_LANES_H
#define GP_LANES_H

#ifndef __CUDACC_RTC__
#include <stddef.h>
#endif

/* Of a line; a power of two, at most `rows`. */
enum { GP_LANES_MOST = 256 };
typedef struct gp_lanes { size_t outer, rows, inner; unsigned lanes; } gp_lanes;

#ifdef __cplusplus
#include "map.h"

template <class F> struct gp_lane {
    size_t first, rows, inner;             /* elements */
    F *part;
    unsigned lanes;
    bool is;                               /* else it only takes part in barriers */
    unsigned lane, me, step;               /* on a GPU; step: threads from a lane to the next */

    /* Op::join of f(element) over all rows; every lane gets it. */
    template <class Op, class Of> __device__ __forceinline__ F reduce(Of f) const
    {
#ifdef GP_CPU
        for (unsigned l = 0; l < lanes; l++) {
            part[l] = f(first + l * inner);
            for (size_t k = l + lanes; k < rows; k += lanes)
                part[l] = Op::join(part[l], f(first + k * inner));
        }
        for (unsigned half = lanes / 2; half; half /= 2)
            for (unsigned l = 0; l < half; l++)
                part[l] = Op::join(part[l], part[l + half]);
        return part[0];
#else
        F a = f(first + lane * inner);
        for (size_t k = lane + lanes; k < rows; k += lanes)
            a = Op::join(a, f(first + k * inner));
        part[me] = a;
        for (unsigned half = lanes / 2; half; half /= 2) {
            __syncthreads();
            if (lane < half)
                part[me] = Op::join(part[me], part[me + half * step]);
        }
        __syncthreads();
        a = part[me - lane * step];
        __syncthreads();
        return a;
#endif
    }

    /* f(element) for all rows. */
    template <class Do> __device__ __forceinline__ void each(Do f) const
    {
#ifdef GP_CPU
        for (size_t k = 0; k < rows; k++)
#else
        for (size_t k = lane; is && k < rows; k += lanes)
#endif
            f(first + k * inner);
    }
};

/* f(lane) for all lines. */
template <class F, class Do> static __device__ __forceinline__ void gp_each_line(gp_lanes n, Do f)
{
    const size_t lines = n.outer * n.inner;
#ifdef GP_CPU
    F part[GP_LANES_MOST];
    for (size_t r = blockIdx.x; r < lines && !threadIdx.x; r += gridDim.x) {
        f(gp_lane<F>{ r / n.inner * n.rows * n.inner + r % n.inner, n.rows, n.inner, part, n.lanes, true, 0, 0, 0 });
    }
#else
    GP_SHARED(F, part);
    const unsigned me = threadIdx.x, beside = blockDim.x / n.lanes;        /* lines of a block */
    const unsigned lane = n.inner == 1 ? me % n.lanes : me / beside, line = n.inner == 1 ? me / n.lanes : me % beside;
    for (size_t begin = blockIdx.x * (size_t)beside; begin < lines; begin += gridDim.x * (size_t)beside) {
        const bool is = begin + line < lines;
        const size_t r = is ? begin + line : 0;
        f(gp_lane<F>{ r / n.inner * n.rows * n.inner + r % n.inner, n.rows, n.inner, part, n.lanes, is, lane, me,
                      n.inner == 1 ? 1 : beside });
    }
#endif
}

#endif
#endif
