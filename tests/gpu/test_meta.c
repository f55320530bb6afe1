/* test_meta.c - numbers that travel with frames, on the CUDA back end; a sanitizer, which makes each many times as
 * slow, gets every 5th case. */
#include <stdlib.h>
#include "gpu.h"
#include "meta_cases.h"

Suite *suite_meta(void);

Suite *suite_meta(void)
{
    if (!have_gpu)
        return NULL;
    Suite *s = suite_create("meta on cuda");
    TCase *tc = tcase_create("cuda");
    meta_cases(tc, "cuda", getenv("GPIPE_SANITIZED") ? 5 : 1);
    suite_add_tcase(s, tc);
    return s;
}
