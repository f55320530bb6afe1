/* attempt.c - see attempt.h. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if GP_CUDA
#include "cuda/nvrtc.h"
#endif
#include "attempt.h"

bool attempt_nvrtc;

gp_source attempt_source(const char *entry, const char *const *params)
{
    gp_source src = { .path = cu_path("k.cu"), .entry = entry, .param = params,
                      .at = { "test.yaml", 3, 5, 1 } };
    while (params[src.nparam])
        src.nparam++;
    return src;
}

attempt attempt_compile(const gp_source *src, bool cuda)
{
    attempt a = { 0 };
    if (cuda) {
#if GP_CUDA
        void *image;
        size_t bytes;
        a.ok = gp_nvrtc_compile(src, 90, NULL, &image, &bytes, NULL, &a.errs);
        free(image);
#else
        gp_fail(&a.errs, GP_E_RESOURCE, src->at, "this is a build without CUDA");
#endif
    } else {
        gp_cpu_entry k;
        void *dl;
        a.ok = gp_cc_compile(src, NULL, &k, &dl, &a.errs);
        if (a.ok)
            dlclose(dl);
    }
    return a;
}

attempt attempt_text(const char *text, const char *const *params, bool cuda)
{
    cu_write("k.cu", text);
    gp_source src = attempt_source("k", params);
    src.cooperative = strstr(text, "this_grid") != NULL;
    return attempt_compile(&src, cuda);
}

void attempt_setup(void)
{
    cu_open();
    attempt a = attempt_text("extern \"C\" __global__ void k() {}\n", CU_PARAMS(NULL), true);
    attempt_nvrtc = a.ok;
    if (!a.ok)
        fprintf(stderr, "SKIPPED: tests of NVRTC: %s\n", a.errs.e[0].msg);
}
