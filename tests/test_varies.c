/* test_varies.c - frames that differ in shape, on the CPU back end. */
#include "every.h"
#include "varies_cases.h"

Suite *suite_varies(void);

Suite *suite_varies(void)
{
    Suite *s = suite_create("varies");
    TCase *tc = tcase_create("cpu");
    tcase_set_timeout(tc, 120);
    varies_cases(tc, "cpu", tests_every(8, 3));       /* of 5 settings, so that each comes */
    suite_add_tcase(s, tc);
    return s;
}
