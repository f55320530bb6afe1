/* test_regroup.c - stages that regroup, on the CUDA back end: all cases, see gpu_every(). */
#include "cases.h"
#include "gpu.h"

GPU_SUITE(regroup, regroup_cases(tc, "cuda", gpu_every(1)))
