/* paused_cases.h - tests of runs that pause and go on under other plans, on either back end. */
#ifndef TEST_PAUSED_CASES_H
#define TEST_PAUSED_CASES_H

#include <check.h>

/* Adds them, for `device` ("cpu" or "cuda"). */
void paused_cases(TCase *tc, const char *device);

#endif
