/* clock.h - the time, for all that measures or waits. */
#ifndef GP_CLOCK_H
#define GP_CLOCK_H

#include <stdint.h>
#include <time.h>

/* ns of CLOCK_MONOTONIC. Any thread. */
static inline int64_t gp_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

#endif
