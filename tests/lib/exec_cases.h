/* exec_cases.h - tests of what comes out of a run, on either back end. */
#ifndef TEST_EXEC_CASES_H
#define TEST_EXEC_CASES_H

#include <check.h>

/* Adds them, for `device` ("cpu" or "cuda"). `thin`: only every n-th
 * combination of the determinism test. */
void exec_cases(TCase *tc, const char *device, int thin);

#endif
