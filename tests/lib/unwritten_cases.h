/* unwritten_cases.h - tests of kernels that leave a part of their outputs, on either back end. */
#ifndef TEST_UNWRITTEN_CASES_H
#define TEST_UNWRITTEN_CASES_H

#include <check.h>

/* Adds them, for `device` ("cpu" or "cuda"). */
void unwritten_cases(TCase *tc, const char *device);

#endif
