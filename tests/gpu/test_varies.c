/* test_varies.c - frames that differ in shape, on the CUDA back end: every 3rd case, see gpu_every(). */
#include "gpu.h"
#include "cases.h"

Suite *suite_varies(void);

Suite *suite_varies(void)
{
    if (!have_gpu)
        return NULL;
    Suite *s = suite_create("varies on cuda");
    TCase *tc = tcase_create("cuda");
    varies_cases(tc, "cuda", gpu_every(3));
    suite_add_tcase(s, tc);
    return s;
}
