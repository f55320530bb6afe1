/* test_varies.c - frames that differ in shape, on the CUDA back end: every 3rd case, or with GPIPE_THIN=n every n-th; a sanitizer, which makes
 * each many times as slow, gets every 13th. */
#include <stdlib.h>
#include "gpu.h"
#include "varies_cases.h"

Suite *suite_varies(void);

Suite *suite_varies(void)
{
    if (!have_gpu)
        return NULL;
    Suite *s = suite_create("varies on cuda");
    TCase *tc = tcase_create("cuda");
    const char *thin = getenv("GPIPE_THIN");
    varies_cases(tc, "cuda", getenv("GPIPE_SANITIZED") ? 13 : thin ? atoi(thin) : 3);
    suite_add_tcase(s, tc);
    return s;
}
