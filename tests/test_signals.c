/* test_signals.c - stages for signals in whole pipelines, on the CPU back end; tests/gpu has the same for CUDA. */
#include "cases.h"

Suite *suite_signals(void);

Suite *suite_signals(void)
{
    Suite *s = suite_create("signals");
    suite_add_tcase(s, signal_cases("cpu"));
    return s;
}
