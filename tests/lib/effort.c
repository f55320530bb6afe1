/* effort.c - how work grows with size, see effort.h. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "effort.h"
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_ZERO_STATS
#define CALLGRIND_DUMP_STATS
#endif

double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void effort_begin(void)
{
    CALLGRIND_ZERO_STATS;
}

/* Callgrind writes what it counted into files of one name with a number behind it. */
double effort_end(void)
{
    static int dumps;
    CALLGRIND_DUMP_STATS;
    const char *file = getenv("GPIPE_EFFORT");
    if (!file)
        return 0;
    char path[4096], line[4096];
    snprintf(path, sizeof path, "%s.%d", file, ++dumps);
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "no %s: this was not built with valgrind/callgrind.h, or does not run under Callgrind", path);
    double n = 0;
    while (!(n > 0) && fgets(line, sizeof line, f))
        sscanf(line, "totals: %lf", &n);
    fclose(f);
    ck_assert_msg(n > 0, "nothing was counted");
    return n;
}

void effort_is_linear(const char *what, double (*work)(int n, void *arg), void *arg, int n)
{
    enum { TIMES = 4, MORE = 6 };
    double small = work(n, arg), large = work(TIMES * n, arg);
    if (getenv("GPIPE_BENCH"))
        printf("%-40s %.1f times %.0f instructions\n", what, large / small, small);
    ck_assert_msg(large <= MORE * small, "%s: %d take %.0f instructions, %d take %.0f", what, n, small, TIMES * n, large);
}
