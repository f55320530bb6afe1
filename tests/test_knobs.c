/* test_knobs.c - no setting changes a bit, on the CPU back end. */
#include "knobs_cases.h"

Suite *suite_knobs(void);

Suite *suite_knobs(void)
{
    Suite *s = suite_create("knobs");
    TCase *tc = tcase_create("cpu");
    tcase_set_timeout(tc, 120);
    knobs_cases(tc, "cpu");
    suite_add_tcase(s, tc);
    return s;
}
