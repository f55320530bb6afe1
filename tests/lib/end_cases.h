/* end_cases.h - tests of how runs end, on either back end. */
#ifndef TEST_END_CASES_H
#define TEST_END_CASES_H

#include <check.h>

/* Adds them, for `device` ("cpu" or "cuda"). */
void end_cases(TCase *tc, const char *device);

#endif
