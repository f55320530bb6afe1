/* test_fuse.c - fused stages on the CUDA back end: every 40th random graph, since each takes two to three seconds to
 * compile, or with GPIPE_THIN=n every n-th. */
#include <stdlib.h>
#include "cases.h"
#include "gpu.h"

Suite *suite_fuse(void);

Suite *suite_fuse(void)
{
    const char *thin = getenv("GPIPE_THIN");
    int step = thin && atoi(thin) > 0 ? atoi(thin) : 40;
    if (!have_gpu)
        return NULL;
    Suite *s = suite_create("fuse on cuda");
    TCase *tc = tcase_create("cuda");
    fuse_cases(tc, "cuda", step);
    suite_add_tcase(s, tc);
    return s;
}
