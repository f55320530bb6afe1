/* test_fills.c - host stages that fill the GPU's memory. */
#include "cases.h"
#include "gpu.h"

GPU_SUITE(fills, fills_cases(tc, "cuda"))
