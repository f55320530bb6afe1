/* test_signals.c - stages for signals in whole pipelines, on the CUDA back end. */
#include "gpu.h"
#include "cases.h"

Suite *suite_signals(void);

Suite *suite_signals(void)
{
    if (have_gpu) {
        Suite *s = suite_create("signals");
        suite_add_tcase(s, signal_cases("cuda"));
        return s;
    }
    return NULL;
}
