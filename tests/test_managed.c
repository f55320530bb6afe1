/* test_managed.c - constants in managed memory, on the CPU back end. */
#include "managed_cases.h"

Suite *suite_managed(void);

Suite *suite_managed(void)
{
    Suite *s = suite_create("managed");
    TCase *tc = tcase_create("cpu");
    managed_cases(tc, "cpu");
    suite_add_tcase(s, tc);
    return s;
}
