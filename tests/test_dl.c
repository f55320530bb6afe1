/* test_dl.c - what is said of a library that is not there, or is not what it should be. */
#include "base/dl.h"
#include "device/libraries.h"
#include "suite.h"

static double (*cosine)(double);
static void *nothing;

TEST(finds_the_symbols)
{
    const char *const names[] = { "libno-such-thing.so.1", "libm.so.6", NULL };
    const gp_dl_symbol symbols[] = { { "cos", &cosine }, { 0 } };
    gp_errs errs = { .n = 0 };
    ck_assert(gp_dl_open(names, symbols, "this test", "install libm", (gp_loc){ 0 }, &errs));
    ck_assert_int_eq(errs.n, 0);
    ck_assert_double_eq(cosine(0), 1);
}

static const struct { const char *library, *symbol, *says; } missing[] = {
    { "libno-such-thing.so.1", "cos",
      "this test needs libno-such-thing.so.1, which cannot be opened (libno-such-thing.so.1: cannot open shared object file: No such file or directory); install libm" },
    { "libm.so.6", "no_such_function",
      "this test needs 'no_such_function', which libm.so.6 does not have; install libm" },
};

TEST_EACH(says_what_is_missing, missing)
{
    const char *const names[] = { missing[_i].library, NULL };
    const gp_dl_symbol symbols[] = { { missing[_i].symbol, &nothing }, { 0 } };
    gp_errs errs = { .n = 0 };
    gp_loc at = { .file = "a.yaml", .line = 3 };
    ck_assert(!gp_dl_open(names, symbols, "this test", "install libm", at, &errs));
    ck_assert_int_eq(errs.n, 1);
    ck_assert_int_eq(errs.e[0].code, GP_E_RESOURCE);
    first_error_is(&errs, 3, missing[_i].says);
}

static const struct { gp_gpu_library which; const char *name, *lacks, *instead; } for_gpus[] = {
    { GP_GPU_FFT, "cuFFT", "libcufft.so.12", "'device: cpu'" },
    { GP_GPU_PRODUCTS, "cuBLASLt", "libcublasLt.so.13", "'device: cpu'" },
    { GP_GPU_JPEG, "nvJPEG", "libnvjpeg.so.13", "'decoder: cpu'" },
    { GP_GPU_RANKS, "NCCL", "libnccl.so.2", "'by: mpi'" },
};

/* Nobody knows which of them this machine has: one that is there has a version, and of another it is said what to
 * install. */
TEST_EACH(for_a_gpu, for_gpus)
{
    gp_errs errs = { .n = 0 };
    char name[GP_GPU_TEXT] = "", want[200];
    int major = 0, minor = 0;
    ck_assert_str_eq(gp_gpu_name(for_gpus[_i].which), for_gpus[_i].name);
    if (gp_gpu_open(for_gpus[_i].which, name, "this test", (gp_loc){ 0 }, &errs)) {
        ck_assert(!strncmp(name, for_gpus[_i].name, strlen(for_gpus[_i].name)));
        ck_assert_msg(sscanf(strchr(name, ' '), "%d.%d", &major, &minor) == 2 && major > 1, "%s", name);
        return;
    }
    snprintf(want, sizeof want, "this test needs %s, which cannot be opened (", for_gpus[_i].lacks);
    ck_assert_msg(!strncmp(errs.e[0].msg, want, strlen(want)) && strstr(errs.e[0].msg, "install the package ")
                  && strstr(errs.e[0].msg, for_gpus[_i].instead), "%s", errs.e[0].msg);
}

TEST_SUITE(dl, NULL, NULL, 0)
