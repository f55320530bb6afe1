/* prologue_cases.h - constants that are cast, and stages that read nothing but constants, on either back end. */
#ifndef TEST_PROLOGUE_CASES_H
#define TEST_PROLOGUE_CASES_H

#include <check.h>

void prologue_cases(TCase *tc, const char *device);

#endif
