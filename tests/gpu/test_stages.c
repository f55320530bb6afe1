/* test_stages.c - the device stages on the CUDA back end, and the same bits as on the CPU. */
#include "gpu.h"
#include "cases.h"

Suite *suite_stages(void);

START_TEST(test_agree)
{
    stage_cases_agree(&gp_backend_cpu, gp_backend_gpu());
}
END_TEST

Suite *suite_stages(void)
{
    if (have_gpu) {
        Suite *s = suite_create("stages");
        TCase *agree = tcase_create("agree");
        tcase_add_test(agree, test_agree);
        suite_add_tcase(s, stage_cases(gp_backend_gpu()));
        suite_add_tcase(s, agree);
        return s;
    }
    return NULL;
}
