/* test_call.c - stages that call a library from record(): captured, and at once. */
#include "cases.h"
#include "gpu.h"

Suite *suite_call(void);

Suite *suite_call(void)
{
    if (!have_gpu)
        return NULL;
    Suite *s = suite_create("call on cuda");
    TCase *tc = tcase_create("cuda");
    call_cases(tc, "cuda");
    suite_add_tcase(s, tc);
    return s;
}
