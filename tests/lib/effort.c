/* effort.c - how time grows with size, see effort.h. */
#include <check.h>
#include <malloc.h>
#include <time.h>
#include "effort.h"

double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What is linear takes 4 times as long for 4 times as many, what is quadratic 16 times. */
void effort_is_linear(const char *what, double (*work)(int n, void *arg), void *arg, int n)
{
    enum { TIMES = 4, MORE = 10, LEAST = 3, MOST = 40 };
    double small = 1e9, large = 1e9;
    mallopt(M_MMAP_THRESHOLD, 1 << 30), mallopt(M_TRIM_THRESHOLD, 1 << 30);    /* else what is large costs new pages, too */
    for (int i = 0; i < MOST && (i < LEAST || large > MORE * small); i++) {
        double s = work(n, arg), l = work(TIMES * n, arg);
        small = s < small ? s : small, large = l < large ? l : large;
    }
    ck_assert_msg(large <= MORE * small, "%s: %d take %.2f ms, %d take %.2f ms", what, n, 1e3 * small,
                  TIMES * n, 1e3 * large);
}
