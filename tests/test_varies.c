/* test_varies.c - frames that differ in shape, on the CPU back end. */
#include "every.h"
#include "cases.h"

SUITE(varies, varies_cases(tc, "cpu", tests_every(17, 3)))
