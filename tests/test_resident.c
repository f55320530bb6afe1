/* test_resident.c - the text of `launch: persistent`: NVRTC takes every built-in kernel in it. The kernels run in
 * tests/gpu. Without NVRTC, or in a build without CUDA, it says that it skips. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/embed.h"
#if GP_CUDA
#include "cuda/nvrtc.h"
#endif

Suite *suite_resident(void);

#if GP_CUDA
START_TEST(takes_every_built_in)
{
    char *text;
    size_t len;
    int n = 0;
    FILE *out = open_memstream(&text, &len);
    ck_assert_ptr_nonnull(out);
    fputs(gp_resident_head, out);
    for (const gp_blob *b = gp_blobs; b->name; b++)
        if (!strncmp(b->name, "kernels/", 8) && strstr(b->name, ".cu"))
            fprintf(out, "#line 1 \"%s\"\nnamespace gp_b%d {\n%s\n}\n", b->name, n++, (const char *)b->data);
    fputs("static __device__ void gp_dispatch(int, const char *) { }\n", out);
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_int_gt(n, 8);

    void *image;
    size_t bytes;
    gp_errs errs = { .n = 0 };
    bool ok = gp_nvrtc_compile_text(text, NULL, 0, 90, NULL, &image, &bytes, &errs);
    free(text), free(image);
    if (!ok && strstr(errs.e[0].msg, "install libnvrtc"))
        printf("**** SKIPPED: the text of resident kernels: %s ****\n", errs.e[0].msg);
    else
        ck_assert_msg(ok, "%s", errs.e[0].msg);
}
END_TEST
#endif

Suite *suite_resident(void)
{
    Suite *s = suite_create("resident");
    TCase *tc = tcase_create("resident");
#if GP_CUDA
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, takes_every_built_in);
#endif
    suite_add_tcase(s, tc);
    return s;
}
