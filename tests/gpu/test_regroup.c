/* test_regroup.c - stages that regroup, on the CUDA back end; a sanitizer, which makes each many times as slow, gets
 * every 13th case. */
#include <stdlib.h>
#include "gpu.h"
#include "regroup_cases.h"

Suite *suite_regroup(void);

Suite *suite_regroup(void)
{
    if (!have_gpu)
        return NULL;
    Suite *s = suite_create("regroup on cuda");
    TCase *tc = tcase_create("cuda");
    regroup_cases(tc, "cuda", getenv("GPIPE_SANITIZED") ? 13 : 1);
    suite_add_tcase(s, tc);
    return s;
}
