/* test_exec.c - the executor on the CPU back end. */
#include <check.h>
#include "cooperative_cases.h"
#include "end_cases.h"
#include "every.h"
#include "exec_cases.h"
#include "unwritten_cases.h"

Suite *suite_exec(void);

Suite *suite_exec(void)
{
    Suite *s = suite_create("exec");
    TCase *tc = tcase_create("cpu");
    exec_cases(tc, "cpu", tests_every(61, 1));
    end_cases(tc, "cpu");
    cooperative_cases(tc, "cpu");
    unwritten_cases(tc, "cpu");
    suite_add_tcase(s, tc);
    return s;
}
