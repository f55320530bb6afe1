/* test_matmul.c - pipelines with products by cuBLASLt. */
#include "cases.h"
#include "gpu.h"
#include "iotest.h"

GPU_SUITE(matmul,
          tcase_set_timeout(tc, 120);
          tcase_add_checked_fixture(tc, io_set_up, io_tear_down);
          matmul_cases(tc, "cuda"))
