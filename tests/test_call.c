/* test_call.c - stages that call a library from record(), on the CPU back end. */
#include "cases.h"

SUITE(call, call_cases(tc, "cpu"))
