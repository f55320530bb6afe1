/* several_cases.h - tests of several devices, on either back end. */
#ifndef TEST_SEVERAL_CASES_H
#define TEST_SEVERAL_CASES_H

#include <check.h>

/* Adds them, for devices 0 and 1 of this kind ("cpu" or "cuda"), which are peers. */
void several_cases(TCase *tc, const char *kind);

#endif
