/* knobs_cases.h - tests that no setting changes a bit of what is made, on either back end. */
#ifndef TEST_KNOBS_CASES_H
#define TEST_KNOBS_CASES_H

#include <check.h>

/* Adds them, for `device` ("cpu" or "cuda"). */
void knobs_cases(TCase *tc, const char *device);

#endif
