/* test_report.c - reports and traces of runs on the CUDA back end. */
#include "gpu.h"
#include "cases.h"

Suite *suite_report(void);

Suite *suite_report(void)
{
    if (!have_gpu)
        return NULL;
    Suite *s = suite_create("report on cuda");
    TCase *tc = tcase_create("cuda");
    tcase_set_timeout(tc, 60);
    report_cases(tc, "cuda");
    suite_add_tcase(s, tc);
    return s;
}
