/* test_knobs.c - no setting changes a bit, on the CUDA back end. */
#include "gpu.h"
#include "knobs_cases.h"

GPU_SUITE(knobs, knobs_cases(tc, "cuda"))
