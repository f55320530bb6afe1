/* test_report.c - reports and traces of runs on the CPU back end. */
#include "report_cases.h"

Suite *suite_report(void);

Suite *suite_report(void)
{
    Suite *s = suite_create("report");
    TCase *tc = tcase_create("cpu");
    tcase_set_timeout(tc, 60);
    report_cases(tc, "cpu");
    suite_add_tcase(s, tc);
    return s;
}
