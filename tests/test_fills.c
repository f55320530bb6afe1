/* test_fills.c - host stages that fill the memory of the device, on the CPU back end, where that is the host's. */
#include "cases.h"

SUITE(fills, fills_cases(tc, "cpu"))
