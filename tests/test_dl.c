/* test_dl.c - what is said of a library that is not there, or is not what it should be. */
#include "base/dl.h"
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
    ck_assert_int_eq(errs.e[0].at.line, 3);
    ck_assert_str_eq(errs.e[0].msg, missing[_i].says);
}

TEST_SUITE(dl, NULL, NULL, 0)
