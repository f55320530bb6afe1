/* carry_cases.h - tests of carried buffers, on either back end. */
#ifndef TEST_CARRY_CASES_H
#define TEST_CARRY_CASES_H

#include <check.h>

/* Adds them, for `device` ("cpu" or "cuda"); of those in a loop every `every`-th, the first by GPIPE_SEED. */
void carry_cases(TCase *tc, const char *device, int every);

#endif
