/* test_expr_stage.c - the kind `expr` on the CPU back end; tests/gpu has the same for CUDA. */
#include "expr_cases.h"

Suite *suite_expr_stage(void);

Suite *suite_expr_stage(void)
{
    Suite *s = suite_create("expr_stage");
    suite_add_tcase(s, expr_cases(&gp_backend_cpu));
    return s;
}
