/* varies_cases.h - tests of frames that differ in shape, on either back end. */
#ifndef TEST_VARIES_CASES_H
#define TEST_VARIES_CASES_H

#include <check.h>

/* Adds them, for `device` ("cpu" or "cuda"); of those in a loop every `every`-th. */
void varies_cases(TCase *tc, const char *device, int every);

#endif
