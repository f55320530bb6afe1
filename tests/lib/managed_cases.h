/* managed_cases.h - tests of constants in managed memory, on either back end. */
#ifndef TEST_MANAGED_CASES_H
#define TEST_MANAGED_CASES_H

#include <check.h>

void managed_cases(TCase *tc, const char *device);

#endif
