/* test_managed.c - constants in managed memory, on the CUDA back end. */
#include "gpu.h"
#include "cases.h"

Suite *suite_managed(void);

Suite *suite_managed(void)
{
    if (!have_gpu)
        return NULL;
    Suite *s = suite_create("managed on cuda");
    TCase *tc = tcase_create("cuda");
    managed_cases(tc, "cuda");
    suite_add_tcase(s, tc);
    return s;
}
