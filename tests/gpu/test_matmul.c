/* test_matmul.c - pipelines with products by cuBLASLt. */
#include "gpu.h"
#include "iotest.h"
#include "cases.h"

Suite *suite_matmul(void);

Suite *suite_matmul(void)
{
    if (!have_gpu)
        return NULL;
    Suite *s = suite_create("matmul on cuda");
    TCase *tc = tcase_create("cuda");
    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, io_set_up, io_tear_down);
    matmul_cases(tc, "cuda");
    suite_add_tcase(s, tc);
    return s;
}
