/* fills_cases.h - host stages that fill the memory of a device, on the CPU back end and on a GPU. */
#ifndef FILLS_CASES_H
#define FILLS_CASES_H

#include <check.h>

void fills_cases(TCase *tc, const char *device);

#endif
