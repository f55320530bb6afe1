/* test_carry.c - carried buffers, on the CPU back end. */
#include "cases.h"
#include "every.h"

SUITE(carry, carry_cases(tc, "cpu", tests_every(167, 23)))
