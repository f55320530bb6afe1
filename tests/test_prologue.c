/* test_prologue.c - constants that are cast, and stages that read nothing but constants, on the CPU back end. */
#include "prologue_cases.h"

Suite *suite_prologue(void);

Suite *suite_prologue(void)
{
    Suite *s = suite_create("prologue");
    TCase *tc = tcase_create("cpu");
    prologue_cases(tc, "cpu");
    suite_add_tcase(s, tc);
    return s;
}
