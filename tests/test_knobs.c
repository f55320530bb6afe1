/* test_knobs.c - no setting changes a bit, on the CPU back end. */
#include "cases.h"
#include "knobs_cases.h"

SUITE(knobs, knobs_cases(tc, "cpu"))
