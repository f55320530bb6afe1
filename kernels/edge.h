/* edge.h - what lies beyond the ends of an axis; `edge` is as in pad.h. */
#ifndef GP_EDGE_H
#define GP_EDGE_H

#include "kernel.h"
#include "pad.h"

/* Which element is at place i of an axis of n elements that goes on beyond its ends, by 2^32 at most; -1: none, as
 * beyond them is a constant. */
static __device__ __forceinline__ int64_t gp_beyond(int64_t i, int64_t n, int edge)
{
    if (i >= 0 && i < n)
        return i;
    unsigned off = (unsigned)(i < 0 ? -1 - i : i - n);
    const bool low = i < 0;
    const int64_t period = edge == GP_PAD_WRAP ? n : edge == GP_PAD_REFLECT ? 2 * n : n > 1 ? 2 * n - 2 : 1;
    if (off >= period)
        off %= (unsigned)period;
    switch (edge) {
    case GP_PAD_NEAREST:
        return low ? 0 : n - 1;
    case GP_PAD_WRAP:
        return low ? n - 1 - off : off;
    case GP_PAD_REFLECT:
        off = off < n ? off : (unsigned)(period - 1) - off;
        return low ? off : n - 1 - off;
    case GP_PAD_MIRROR:
        if (n == 1)
            return 0;
        off = off + 1 < n ? off + 1 : (unsigned)(period - 1) - off;
        return low ? off : n - 1 - off;
    }
    return -1;
}

#endif
