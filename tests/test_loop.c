/* test_loop.c - loops, on the CPU back end. */
#include "every.h"
#include "cases.h"

SUITE(loop, loop_cases(tc, "cpu", tests_every(47, 5)))
