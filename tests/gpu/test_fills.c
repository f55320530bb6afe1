/* test_fills.c - host stages that fill the GPU's memory. */
#include "cases.h"
#include "gpu.h"

Suite *suite_fills(void);

Suite *suite_fills(void)
{
    if (!have_gpu)
        return NULL;
    Suite *s = suite_create("fills on cuda");
    TCase *tc = tcase_create("cuda");
    fills_cases(tc, "cuda");
    suite_add_tcase(s, tc);
    return s;
}
