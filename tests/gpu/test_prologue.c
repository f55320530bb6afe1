/* test_prologue.c - constants that are cast, and stages that read nothing but constants, on the CUDA back end. */
#include "gpu.h"
#include "cases.h"

Suite *suite_prologue(void);

Suite *suite_prologue(void)
{
    if (!have_gpu)
        return NULL;
    Suite *s = suite_create("prologue on cuda");
    TCase *tc = tcase_create("cuda");
    prologue_cases(tc, "cuda");
    suite_add_tcase(s, tc);
    return s;
}
