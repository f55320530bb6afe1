/* test_report.c - reports and traces of runs on the CUDA back end. */
#include "cases.h"
#include "gpu.h"

GPU_SUITE(report, tcase_set_timeout(tc, 60); report_cases(tc, "cuda"))
