/* test_call.c - stages that call a library from record(), on the CPU back end. */
#include "call_cases.h"

Suite *suite_call(void);

Suite *suite_call(void)
{
    Suite *s = suite_create("call");
    TCase *tc = tcase_create("cpu");
    call_cases(tc, "cpu");
    suite_add_tcase(s, tc);
    return s;
}
