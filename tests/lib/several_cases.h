/* several_cases.h - tests of several devices, on either back end. */
#ifndef TEST_SEVERAL_CASES_H
#define TEST_SEVERAL_CASES_H

#include <check.h>
#include <stdbool.h>

/* Adds them, for devices 0 and 1 of this kind ("cpu" or "cuda"); peers: frames are copied directly between them. */
void several_cases(TCase *tc, const char *kind, bool peers);

#endif
