/* test_code_params.c - whether `args` and a kernel's parameters fit, as its text says. Nothing is
 * compiled. */
#include <check.h>
#include <string.h>
#include "lib/coderig.h"

Suite *suite_code_params(void);

#define P(list) "extern \"C\" __global__ void k(" list ") { }\n"

/* Of args [in, out], of f32; no `says`: they fit, or the text leaves it open. */
static const struct { const char *source, *says; } params[] = {
    { P("const float *in, float *out"), NULL },
    { P("float const *__restrict__ in, float *const __restrict__ out"), NULL },
    { P("const float *, float *"), NULL },
    { P("float *in, float *out"), "parameter 1 of 'k' is 'float *in', but args passes 'const float *' (" },
    { P("const float *in, const float *out"), "parameter 2 of 'k' is 'const float *out', but args passes 'float *' (" },
    { P("float *in, float *out"), "k.cu:1): the input 'in', which is only read; declare it const, unless the order" },
    { P("const float *in, const float *out"), "k.cu:1): the output 'out', which is written; leave out its const, unless" },
    { P("const float *in, int n"), "parameter 2 of 'k' is 'int n', but args passes 'float *' (" },
    { P("const float *in, int n"), "k.cu:1): the output 'out'; args are in the order of the parameters" },
    { P("const double *in, float *out"), "k.cu:1): the input 'in'; change that, or the dtype that" },
    { P("const float *in, double *out"), "parameter 2 of 'k' is 'double *out', but args passes 'float *' (" },
    { P("const float *in, unsigned long int out"), "parameter 2 of 'k' is 'unsigned long int out', but args" },
    { P("const float *in"), "'k' has 1 parameter, but args gives 2 values (" },
    { P("void"), "'k' has 0 parameters, but args gives 2 values (" },
    { P(""), "'k' has 0 parameters, but args gives 2 values (" },
    { P("const float *in, float *out, int n"), "k.cu:1): none for 'int n'" },
    { P("const real *in, float *out, long double x"), "'k' has 3 parameters, but args gives 2 values (" },
    { P("const float *in, float *out, int n = 3"),
      "'k' has 3 parameters, but args gives 2 values (" },
    { P("const float *in, float *out = f<1, 2>(3, 4), float2 n = { 1, 2 }, int m = 1 < 2"),
      "'k' has 4 parameters, but args gives 2 values (" },
    { P("const float *in, float *out, int n = 3"), "k.cu:1): none for 'int n', and a default argument is never used" },
    { P("const float *in, double *out = 0"), "parameter 2 of 'k' is 'double *out', but args passes 'float *' (" },
    { P("const float *in, float *out = 0"), NULL },
    /* left open */
    { "#define M 1, int m\n" P("const float *in, float *out, int n = M"), NULL },
    { "typedef float real;\n" P("const real *in, real *out"), NULL },
    { "typedef const float *size_t;\n" P("size_t in, float *out"), NULL },
    { "#define int32_t const float *\n" P("int32_t in, float *out"), NULL },
    { "#define ALL const float *in, float *out\n" P("ALL"), NULL },
    { "#define k(...) k(const float *in, float *out)\n" P("int n"), NULL },
    { P("const float *in,\n#if A\nint n\n#else\nfloat *out\n#endif\n"), NULL },
    { "#if A\n" P("int n") "#endif\n#ifndef A\nOTHER\n#endif\n", NULL },
    { P("int n") P("const float *in, float *out"), NULL },
    { P("const float in[], float out[]"), NULL },
    { P("const float *in, volatile float *out"), NULL },
    { "#include \"nowhere.h\"\n" P("int n"), NULL },
    { P("long double, float *out"), NULL },
};

START_TEST(compares_parameters)
{
    code_compile(params[_i].source, "[64]", "args: [in, out], grid: 1, serial: true", false);
    if (!params[_i].says) {
        ck_assert_msg(!code_errs.failed, "%s: %s", params[_i].source, code_errs.e[0].msg);
        return;
    }
    ck_assert_msg(code_errs.failed == 1 && strstr(code_errs.e[0].msg, params[_i].says) != NULL,
                  "%s: '%s' is not in '%s'", params[_i].source, params[_i].says,
                  code_errs.failed ? code_errs.e[0].msg : "nothing");
    ck_assert_int_eq(code_errs.e[0].at.line, 4);
    ck_assert_int_ge(code_errs.e[0].at.col, 37);        /* in `args` */
}
END_TEST

/* In the wrong order, each is said at its own argument. */
START_TEST(exchanged)
{
    code_compile(P("const float *in, float *out, int n"), "[64]", "args: [out, in, {i32: 3}], grid: 1", false);
    ck_assert_int_eq(code_errs.failed, 2);
    ck_assert_ptr_nonnull(strstr(code_errs.e[0].msg, "the output 'out', which is written; leave out its const"));
    ck_assert_ptr_nonnull(strstr(code_errs.e[1].msg, "the input 'in', which is only read; declare it const"));
    ck_assert_int_lt(code_errs.e[0].at.col, code_errs.e[1].at.col);
    code_compile(P("const float *in, float *out, int n"), "[64]", "args: [in, {i32: 3}, out], grid: 1", false);
    ck_assert_int_eq(code_errs.failed, 2);
    ck_assert_ptr_nonnull(strstr(code_errs.e[0].msg, "passes 'int' ("));
    ck_assert_ptr_nonnull(strstr(code_errs.e[0].msg, "k.cu:1): args are in the order of the parameters"));
    ck_assert_ptr_nonnull(strstr(code_errs.e[1].msg, "the output 'out'; args are in the order of the parameters"));
}
END_TEST

Suite *suite_code_params(void)
{
    Suite *s = suite_create("code_params");
    TCase *tc = tcase_create("text");
    tcase_add_checked_fixture(tc, code_up, code_down);
    tcase_add_loop_test(tc, compares_parameters, 0, sizeof params / sizeof *params);
    tcase_add_test(tc, exchanged);
    suite_add_tcase(s, tc);
    return s;
}
