/* test_stages.c - the device stages on the CUDA back end, and the same bits as on
 * the CPU. */
#include "gpu.h"
#include "stage_cases.h"

Suite *suite_stages(void);

#if GP_CUDA
START_TEST(test_agree)
{
    stage_cases_agree(&gp_backend_cpu, &gp_backend_cuda);
}
END_TEST
#endif

Suite *suite_stages(void)
{
#if GP_CUDA
    if (have_gpu) {
        Suite *s = suite_create("stages");
        TCase *agree = tcase_create("agree");
        tcase_add_test(agree, test_agree);
        suite_add_tcase(s, stage_cases(&gp_backend_cuda));
        suite_add_tcase(s, agree);
        return s;
    }
#endif
    return NULL;
}
