/* test_exec.c - the executor on the CUDA back end.
 * GPIPE_THIN=n runs every n-th combination of the determinism test. */
#include <check.h>
#include <stdlib.h>
#include "cases.h"
#include "gpu.h"

Suite *suite_exec(void);

Suite *suite_exec(void)
{
    if (!have_gpu)
        return NULL;
    const char *thin = getenv("GPIPE_THIN");
    Suite *s = suite_create("exec on cuda");
    TCase *tc = tcase_create("cuda");
    exec_cases(tc, "cuda", thin ? atoi(thin) : 1);
    end_cases(tc, "cuda");
    cooperative_cases(tc, "cuda");
    unwritten_cases(tc, "cuda");
    suite_add_tcase(s, tc);
    return s;
}
