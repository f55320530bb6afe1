/* test_loop.c - loops, on the CUDA back end: every 5th case, see gpu_every(). */
#include "gpu.h"
#include "cases.h"

Suite *suite_loop(void);

Suite *suite_loop(void)
{
    if (!have_gpu)
        return NULL;
    Suite *s = suite_create("loop on cuda");
    TCase *tc = tcase_create("cuda");
    loop_cases(tc, "cuda", gpu_every(5));
    suite_add_tcase(s, tc);
    return s;
}
