/* test_managed.c - constants in managed memory, on the CUDA back end. */
#include "cases.h"
#include "gpu.h"

GPU_SUITE(managed, managed_cases(tc, "cuda"))
