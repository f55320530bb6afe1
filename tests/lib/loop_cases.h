/* loop_cases.h - tests of the kind `loop`, on either back end. */
#ifndef TEST_LOOP_CASES_H
#define TEST_LOOP_CASES_H

#include <check.h>

/* Adds them, for `device` ("cpu" or "cuda"); of those in a loop every `every`-th. */
void loop_cases(TCase *tc, const char *device, int every);

#endif
