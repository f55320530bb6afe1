/* test_loop.c - loops, on the CPU back end: every 5th case, or with GPIPE_THIN=n every n-th. */
#include <stdlib.h>
#include "loop_cases.h"

Suite *suite_loop(void);

Suite *suite_loop(void)
{
    Suite *s = suite_create("loop");
    TCase *tc = tcase_create("cpu");
    tcase_set_timeout(tc, 120);
    const char *thin = getenv("GPIPE_THIN");
    loop_cases(tc, "cpu", thin ? atoi(thin) : 5);      /* of 6 settings, so that each comes */
    suite_add_tcase(s, tc);
    return s;
}
