/* test_loop.c - loops, on the CUDA back end: every 5th case, see gpu_every(). */
#include "cases.h"
#include "gpu.h"

GPU_SUITE(loop, loop_cases(tc, "cuda", gpu_every(5)))
