/* test_expr.c - the kind `expr` on CUDA, where each program is a kernel to compile: every 9th reference and all with neighbors,
 * or with GPIPE_THIN=n every n-th. */
#include <stdlib.h>
#include "expr_cases.h"
#include "gpu.h"

Suite *suite_expr(void);

Suite *suite_expr(void)
{
    if (have_gpu) {
        Suite *s = suite_create("expr on cuda");
        const char *thin = getenv("GPIPE_THIN");
        suite_add_tcase(s, expr_cases(gp_backend_gpu(), thin ? atoi(thin) : 9));
        return s;
    }
    return NULL;
}
