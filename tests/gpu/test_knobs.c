/* test_knobs.c - no setting changes a bit, on the CUDA back end. */
#include "gpu.h"
#include "knobs_cases.h"

Suite *suite_knobs(void);

Suite *suite_knobs(void)
{
    if (!have_gpu)
        return NULL;
    Suite *s = suite_create("knobs on cuda");
    TCase *tc = tcase_create("cuda");
    knobs_cases(tc, "cuda");
    suite_add_tcase(s, tc);
    return s;
}
