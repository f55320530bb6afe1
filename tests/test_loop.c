/* test_loop.c - loops, on the CPU back end. */
#include "every.h"
#include "loop_cases.h"

Suite *suite_loop(void);

Suite *suite_loop(void)
{
    Suite *s = suite_create("loop");
    TCase *tc = tcase_create("cpu");
    tcase_set_timeout(tc, 120);
    loop_cases(tc, "cpu", tests_every(23, 5));       /* of 6 settings, so that each comes */
    suite_add_tcase(s, tc);
    return s;
}
