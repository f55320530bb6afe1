/* test_carry.c - carried buffers, on the CPU back end. */
#include "carry_cases.h"
#include "every.h"

Suite *suite_carry(void);

Suite *suite_carry(void)
{
    Suite *s = suite_create("carry");
    TCase *tc = tcase_create("cpu");
    tcase_set_timeout(tc, 120);
    carry_cases(tc, "cpu", tests_every(83, 23));
    suite_add_tcase(s, tc);
    return s;
}
