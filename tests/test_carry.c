/* test_carry.c - carried buffers, on the CPU back end: every 23rd case, from a random one on, which GPIPE_FIRST repeats; or
 * with GPIPE_THIN=n every n-th. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "carry_cases.h"

Suite *suite_carry(void);

Suite *suite_carry(void)
{
    Suite *s = suite_create("carry");
    TCase *tc = tcase_create("cpu");
    tcase_set_timeout(tc, 120);
    const char *thin = getenv("GPIPE_THIN"), *from = getenv("GPIPE_FIRST");
    int every = thin ? atoi(thin) : 23, first = from ? atoi(from) : (int)(time(NULL) % every);
    printf("carry: GPIPE_THIN=%d GPIPE_FIRST=%d\n", every, first);
    carry_cases(tc, "cpu", every, first);
    suite_add_tcase(s, tc);
    return s;
}
