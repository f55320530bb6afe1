/* test_loop.c - loops, on the CUDA back end: every 5th case, or with GPIPE_THIN=n every n-th; a sanitizer, which makes
 * each many times as slow, gets every 13th. */
#include <stdlib.h>
#include "gpu.h"
#include "loop_cases.h"

Suite *suite_loop(void);

Suite *suite_loop(void)
{
    if (!have_gpu)
        return NULL;
    Suite *s = suite_create("loop on cuda");
    TCase *tc = tcase_create("cuda");
    const char *thin = getenv("GPIPE_THIN");
    loop_cases(tc, "cuda", getenv("GPIPE_SANITIZED") ? 13 : thin ? atoi(thin) : 5);
    suite_add_tcase(s, tc);
    return s;
}
