/* test_expr.c - the kind `expr` on CUDA. */
#include "expr_cases.h"
#include "gpu.h"

Suite *suite_expr(void);

Suite *suite_expr(void)
{
#if GP_CUDA
    if (have_gpu) {
        Suite *s = suite_create("expr on cuda");
        suite_add_tcase(s, expr_cases(&gp_backend_cuda));
        return s;
    }
#endif
    return NULL;
}
