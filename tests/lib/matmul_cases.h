/* matmul_cases.h - products in pipelines, on the CPU back end and on a GPU. The test case has io_set_up() and
 * io_tear_down() as its fixture. */
#ifndef MATMUL_CASES_H
#define MATMUL_CASES_H

#include <check.h>

void matmul_cases(TCase *tc, const char *device);

#endif
