/* test_prologue.c - constants that are cast, and stages that read nothing but constants, on the CUDA back end. */
#include "cases.h"
#include "gpu.h"

GPU_SUITE(prologue, prologue_cases(tc, "cuda"))
