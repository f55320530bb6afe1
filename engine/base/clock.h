/* clock.h - the time, for all that measures or waits. */
#pragma once

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* ns of CLOCK_MONOTONIC. Any thread. */
static inline int64_t gp_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Between two looks at memory that another writes. */
static inline void gp_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/* For pthread_cond_timedwait() on a condition of gp_cond_init(): somebody may set the time of day back. */
static inline struct timespec gp_moment(int64_t ns)
{
    return (struct timespec){ .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
}

static inline void gp_cond_init(pthread_cond_t *c)
{
    pthread_condattr_t a;
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);    /* that of gp_now_ns */
    pthread_cond_init(c, &a);
    pthread_condattr_destroy(&a);
}
