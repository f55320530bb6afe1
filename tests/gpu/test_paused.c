/* test_paused.c - runs that pause and go on under other plans, on the CUDA back end. */
#include "cases.h"
#include "gpu.h"

GPU_SUITE(paused, paused_cases(tc, "cuda"))
