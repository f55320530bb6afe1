/* report_cases.h - tests of what a run says of itself, on either back end. */
#ifndef TEST_REPORT_CASES_H
#define TEST_REPORT_CASES_H

#include <check.h>

/* Adds them, for `device` ("cpu" or "cuda"). */
void report_cases(TCase *tc, const char *device);
/* report_rate_cases.c: of them those of runs that regroup frames. */
void report_rate_cases(TCase *tc);

#endif
