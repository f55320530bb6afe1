/* test_regroup.c - stages that regroup, on the CUDA back end: all cases, see gpu_every(). */
#include "gpu.h"
#include "cases.h"

Suite *suite_regroup(void);

Suite *suite_regroup(void)
{
    if (!have_gpu)
        return NULL;
    Suite *s = suite_create("regroup on cuda");
    TCase *tc = tcase_create("cuda");
    regroup_cases(tc, "cuda", gpu_every(1));
    suite_add_tcase(s, tc);
    return s;
}
