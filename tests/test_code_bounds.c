/* test_code_bounds.c - whether a kernel reads beyond the end of an input that is smaller than its
 * grid, as its text says. Nothing is compiled. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "effort.h"
#include "lib/coderig.h"

Suite *suite_code_bounds(void);

/* An input that is smaller than the frame, w of 16 elements, read by a thread's number. No `says`:
 * it is not read beyond its end, or that is not certain. */
#define W "extern \"C\" __global__ void k(const float *in, const float *w, float *out, int n, int m)"
#define X "int i = blockIdx.x * blockDim.x + threadIdx.x; "
#define BEYOND "kernel 'k' reads w[i] ("
static const struct { const char *source, *options, *says; } bounds[] = {
    { W " { " X "if (i < n) out[i] = in[i] * w[i]; }", "", BEYOND },
    { W " { " X "if (i < n) out[i] = in[i] * w[i]; }", "", "k.cu:1) for each i below 3072, but 'w' has 16 elements" },
    { W " { " X "if (i >= n) return; float v = in[i]; out[i] = v + 2 * w[i]; }", "", BEYOND },
    { W " { " X "if (i < n) { float v = i * 2.f; if (i < 100) { out[i] = w[i] + v; } } }", "", "for each i below 100," },
    { W " { const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; out[i] = in[i] - w[i]; }", "", BEYOND },
    { W " { __shared__ float s[256]; " X "s[f()] = w[i]; }", "", BEYOND },
    { W " { " X "if (i >= n) return; out[i] = f(n - 1) + (in[i] - w[i]) * 2; }", "", BEYOND },
    { W " { " X "if (i < n) out[i] = (float)w[i]; }", "", BEYOND },
    { W " { " X "if (i < n) out[i] = float((w[i])); }", "", BEYOND },
    { W " { " X "if (i < n) { int q = static_cast<int>(w[i] / 2); out[i] = q; } }", "", BEYOND },
    { W " { " X "if (i < n) { unsigned v = 1; v += w[i]; out[i] = v; } }", "", BEYOND },
    { W " { " X "if (i < n) out[i] = fmaf(in[i], w[i], sqrtf(w[i])); }", "", BEYOND },
    { W " { " X "if (i < n) { auto v = w[i]; out[i] = v; } }", "", BEYOND },
    /* as it should be */
    { W " { " X "if (i < n) out[i] = in[i] * w[i % 16]; }", "", NULL },
    { W " { " X "if (i < m) out[i] = in[i] * w[i]; }", "", NULL },
    { W " { " X "if (i >= m) return; if (i < n) out[i] = in[i] * w[i]; }", "", NULL },
    { W " { " X "if (i < n) { if (i < 16) { out[i] = in[i] * w[i]; } } }", "", NULL },
    { W " { " X "if (i < n) out[i] = in[i] * w[3]; }", "", NULL },
    /* not certain */
    { W " { " X "if (i < n && i < m) out[i] = in[i] * w[i]; }", "", NULL },
    { W " { " X "if (i < n) out[i] = i < m ? w[i] : in[i]; }", "", NULL },
    { W " { " X "if (i < n) out[i] = in[i]; else out[i] = w[i]; }", "", NULL },
    { W " { " X "n = m; if (i < n) out[i] = w[i]; }", "", NULL },
    { W " { " X "set(n); if (i < n) out[i] = w[i]; }", "", NULL },
    { W " { " X "i %= 16; out[i] = w[i]; }", "", NULL },
    { W " { " X "int &r = i; r %= 16; out[i] = w[i]; }", "", NULL },
    { W " { " X "wrap(i); out[i] = w[i]; }", "", NULL },
    { W " { " X "w -= 0; out[i] = w[i]; }", "", NULL },
    { W " { if (n > m) return; " X "out[i] = w[i]; }", "", NULL },
    { W " { " X "if (i < n) { const float *w = in; out[i] = w[i]; } }", "", NULL },
    { W " { " X "if (i < n) { float w[9]; out[i] = w[i]; } }", "", NULL },
    { W " { " X "for (int q = 0; q < 9; q++) out[i] = w[i]; }", "", NULL },
    { W " { " X "out[i] = sizeof w[i]; }", "", NULL },
    { W " { " X "const float *p = &w[i]; out[i] = p[-9]; }", "", NULL },
    { W " { " X "const float *p = &(w[i]); out[i] = p[-9]; }", "", NULL },
    { W " { " X "const float *p = &((w[i])) + 1; out[i] = p[-9]; }", "", NULL },
    { W " { " X "const float *p = 1 + &(w[i]); out[i] = p[-9]; }", "", NULL },
    { W " { " X "out[i] = f(w[i]); }", "", NULL },
    { W " { " X "out[i] = f(n, (w[i])); }", "", NULL },
    { W " { " X "out[i] = f<int>(2 * w[i]); }", "", NULL },
    { W " { " X "out[i] = __builtin_constant_p(w[i] * 2); }", "", NULL },
    { W " { " X "const float &r = w[i]; out[i] = in[i]; }", "", NULL },
    { W " { " X "const float &r = (w[i]); out[i] = in[i]; }", "", NULL },
    { W " { " X "real r = w[i]; out[i] = in[i]; }", "", NULL },
    { W " { " X "const float &r = (const float &)w[i]; out[i] = in[i]; }", "", NULL },
    { W " { " X "(void)w[i]; out[i] = in[i]; }", "", NULL },
    { W " { " X "set(w, in); out[i] = w[i]; }", "", NULL },
    { W " { " X "(w) = in; out[i] = w[i]; }", "", NULL },
    { W " { " X "const float *&r = w; r = in; out[i] = w[i]; }", "", NULL },
    { W " { " X "if (i < n) { float v = 1, w[3072]; out[i] = w[i]; } }", "", NULL },
    { W " { " X "if (i < n) { const row *w[3072]; out[i] = w[i] + 1; } }", "", NULL },
    { W " { " X "if (i < n) { float (*w[3072])(int); out[i] = w[i] + 1; } }", "", NULL },
    { "struct S { S operator*(const float &) { return S(); } };\n" W " { " X "S s; s = s * w[i]; }", "", NULL },
    { W " { " X "auto f = [&] { return w[i]; }; out[i] = in[i]; }", "", NULL },
    { W " { unsigned char i = blockIdx.x * blockDim.x + threadIdx.x; out[i] = w[i]; }", "", NULL },
    { W " { int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x); out[i] = w[i]; }", "", NULL },
    { "#define STOP if (f()) return\n" W " { " X "STOP; out[i] = w[i]; }", "", NULL },
    { W " { " X "\n#if A\nif (i >= m) return;\n#endif\n out[i] = w[i]; }", "", NULL },
    { W " { " X "if (i < n) out[i] = in[i] * w[i]; }", ", grid: 1", NULL },
};

static float weight(int64_t i)
{
    return (float)i;
}

static void compile(const char *source, const char *more)
{
    static const char shapes[] = "[48, 64]}, b: {const: b.npy";
    char options[300];
    pipe_npy(code_dir, "b.npy", 16, 0, weight);
    snprintf(options, sizeof options, "in: {in: a, w: b}, args: [in, w, out, {i32: 'in.size'}, {i32: 'w.size'}], "
             "serial: true%s", more);
    code_compile(source, shapes, options, false);
}

START_TEST(reads_out_of_bounds_of_a_smaller_input)
{
    compile(bounds[_i].source, bounds[_i].options);
    const char *said = code_errs.failed ? code_errs.e[0].msg : "nothing", *says = bounds[_i].says;
    ck_assert_msg(code_errs.failed == (says != NULL), "%s: %s", bounds[_i].source, said);
    ck_assert_msg(!says || strstr(said, says) != NULL, "%s: '%s' is not in '%s'", bounds[_i].source, says, said);
    if (says)
        ck_assert_int_eq(code_errs.e[0].at.line, 4);
}
END_TEST

/* ---- how long it takes --------------------------------------------------- */

static const struct { const char *name, *first, *each, *middle, *end; int n; } forms[] = {
    { "brackets", "out[i] = ", "(&w[i],", "1", ")", 5000 },
    { "guards", "", "if (i < n) out[i] = 1;", "", "", 5000 },
};

static double look(int n, void *arg)
{
    size_t form = (size_t)*(int *)arg, room = (size_t)n * 80 + 1000;
    char *text = malloc(room);
    FILE *f = fmemopen(text, room, "w");
    fprintf(f, W " { " X "%s", forms[form].first);
    for (int i = 0; i < n; i++)
        fputs(forms[form].each, f);
    fputs(forms[form].middle, f);
    for (int i = 0; i < n; i++)
        fputs(forms[form].end, f);
    fputs("; }", f);
    fclose(f);
    double from = cpu_seconds();
    compile(text, "");
    free(text);
    ck_assert_msg(!code_errs.failed, "%s", code_errs.e[0].msg);
    return cpu_seconds() - from;
}

START_TEST(takes_time_in_proportion)
{
    effort_is_linear(forms[_i].name, look, &_i, forms[_i].n);
}
END_TEST

Suite *suite_code_bounds(void)
{
    Suite *s = suite_create("code_bounds");
    TCase *tc = tcase_create("text");
    tcase_add_checked_fixture(tc, code_up, code_down);
    tcase_add_loop_test(tc, reads_out_of_bounds_of_a_smaller_input, 0, sizeof bounds / sizeof *bounds);
    tcase_add_loop_test(tc, takes_time_in_proportion, 0, sizeof forms / sizeof *forms);
    tcase_set_timeout(tc, 120);
    suite_add_tcase(s, tc);
    return s;
}
