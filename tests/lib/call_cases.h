/* call_cases.h - stages that call a library from record(), on the CPU back end and on a GPU. */
#ifndef CALL_CASES_H
#define CALL_CASES_H

#include <check.h>

void call_cases(TCase *tc, const char *device);

#endif
