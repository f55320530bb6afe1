/* test_stages.c - the device stages on the CPU back end; tests/gpu has the same for CUDA. */
#include "cases.h"

Suite *suite_stages(void);

Suite *suite_stages(void)
{
    Suite *s = suite_create("stages");
    suite_add_tcase(s, stage_cases(&gp_backend_cpu));
    return s;
}
