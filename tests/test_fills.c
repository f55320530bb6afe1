/* test_fills.c - host stages that fill the memory of the device, on the CPU back end, where that is the host's. */
#include "cases.h"

CPU_SUITE(fills, fills_cases(tc, "cpu"))
