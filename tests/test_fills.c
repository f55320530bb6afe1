/* test_fills.c - host stages that fill the memory of the device, on the CPU back end, where that is the host's. */
#include "fills_cases.h"

Suite *suite_fills(void);

Suite *suite_fills(void)
{
    Suite *s = suite_create("fills");
    TCase *tc = tcase_create("cpu");
    fills_cases(tc, "cpu");
    suite_add_tcase(s, tc);
    return s;
}
