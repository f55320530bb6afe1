/* test_prologue.c - constants that are cast, and stages that read nothing but constants, on the CPU back end. */
#include "cases.h"

SUITE(prologue, prologue_cases(tc, "cpu"))
