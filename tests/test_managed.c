/* test_managed.c - constants in managed memory, on the CPU back end. */
#include "cases.h"

SUITE(managed, managed_cases(tc, "cpu"))
