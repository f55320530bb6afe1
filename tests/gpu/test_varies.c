/* test_varies.c - frames that differ in shape, on the CUDA back end: every 3rd case, see gpu_every(). */
#include "cases.h"
#include "gpu.h"

GPU_SUITE(varies, varies_cases(tc, "cuda", gpu_every(3)))
