/* regroup_cases.h - tests of stages that change how many frames there are, on either back end. */
#ifndef TEST_REGROUP_CASES_H
#define TEST_REGROUP_CASES_H

#include <check.h>

/* Adds them, for `device` ("cpu" or "cuda"); of those in a loop every `every`-th. */
void regroup_cases(TCase *tc, const char *device, int every);

#endif
