/* test_call.c - stages that call a library from record(): captured, and at once. */
#include "cases.h"
#include "gpu.h"

GPU_SUITE(call, call_cases(tc, "cuda"))
