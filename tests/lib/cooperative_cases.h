/* cooperative_cases.h - tests of cooperative kernels that run on either back end. */
#ifndef TEST_COOPERATIVE_CASES_H
#define TEST_COOPERATIVE_CASES_H

#include <check.h>

/* Adds them, for `device` ("cpu" or "cuda"). */
void cooperative_cases(TCase *tc, const char *device);

#endif
