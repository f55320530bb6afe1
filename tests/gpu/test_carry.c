/* test_carry.c - carried buffers, on the CUDA back end: every 5th case, or with GPIPE_THIN=n every n-th; a sanitizer,
 * which makes each many times as slow, gets every 13th. */
#include <stdlib.h>
#include "gpu.h"
#include "carry_cases.h"

Suite *suite_carry(void);

Suite *suite_carry(void)
{
    if (!have_gpu)
        return NULL;
    Suite *s = suite_create("carry on cuda");
    TCase *tc = tcase_create("cuda");
    const char *thin = getenv("GPIPE_THIN");
    carry_cases(tc, "cuda", getenv("GPIPE_SANITIZED") ? 13 : thin ? atoi(thin) : 5);
    suite_add_tcase(s, tc);
    return s;
}
