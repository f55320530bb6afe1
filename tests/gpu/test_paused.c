/* test_paused.c - runs that pause and go on under other plans, on the CUDA back end. */
#include "gpu.h"
#include "cases.h"

Suite *suite_paused(void);

Suite *suite_paused(void)
{
    if (!have_gpu)
        return NULL;
    Suite *s = suite_create("paused on cuda");
    TCase *tc = tcase_create("cuda");
    paused_cases(tc, "cuda");
    suite_add_tcase(s, tc);
    return s;
}
