/* test_carry.c - carried buffers, on the CUDA back end: every 5th case, see gpu_every(). */
#include "gpu.h"
#include "cases.h"

Suite *suite_carry(void);

Suite *suite_carry(void)
{
    if (!have_gpu)
        return NULL;
    Suite *s = suite_create("carry on cuda");
    TCase *tc = tcase_create("cuda");
    carry_cases(tc, "cuda", gpu_every(5));
    suite_add_tcase(s, tc);
    return s;
}
