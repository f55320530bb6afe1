/* test_carry.c - carried buffers, on the CUDA back end: every 5th case, see gpu_every(). */
#include "cases.h"
#include "gpu.h"

GPU_SUITE(carry, carry_cases(tc, "cuda", gpu_every(5)))
