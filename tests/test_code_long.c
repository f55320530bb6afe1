/* test_code_long.c - sources that are long, or made to take long: what `kernel` finds in their
 * text takes time in proportion, however deep they are. Nothing is compiled. */
#include <check.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "effort.h"
#include "lib/coderig.h"
#include "every.h"

Suite *suite_code_long(void);

struct text { char *s; size_t len, cap; };

__attribute__((format(printf, 2, 3)))
static void add(struct text *t, const char *fmt, ...)
{
    va_list ap;
    if (t->cap < t->len + 200)
        t->s = realloc(t->s, t->cap = 2 * t->cap + 4096);
    va_start(ap, fmt);
    t->len += (size_t)vsnprintf(t->s + t->len, 200, fmt, ap);
    va_end(ap);
}

static void repeat(struct text *t, const char *what, int n)
{
    for (int i = 0; i < n; i++)
        add(t, "%s", what);
}

#define K "extern \"C\" __global__ void k(const float *in, float *out) "
#define X "int x = blockIdx.x * blockDim.x + threadIdx.x; "

/* ---- sources ----------------------------------------------------------- */

static void macros(struct text *t, int n)
{
    for (int i = 0; i < n; i++)
        add(t, "#define M%d M%d\n", i, i + 1);
    add(t, K "{ " X "out[x] = M0; }\n");
}

static void macros_of_a_variable(struct text *t, int n)
{
    add(t, "__device__ int M%d;\n", n);
    macros(t, n);
}

static void functions(struct text *t, int n)
{
    for (int i = 0; i < n; i++)
        add(t, "__device__ int f%d() { return f%d(); }\n", i, i + 1);
    add(t, K "{ " X "out[x] = f0(); }\n");
}

static void of_one_name(struct text *t, int n)
{
    repeat(t, "__device__ int f(int) { return 1; }\n", n);
    add(t, "static const int v = 1;\n" K "{ " X);
    repeat(t, "out[x] = f(v);\n", n);
    add(t, "}\n");
}

static void variables(struct text *t, int n)
{
    for (int i = 0; i < n; i++)
        add(t, "__device__ int v%d;\n", i);
    add(t, K "{ " X);
    for (int i = 0; i < n; i++)
        add(t, "out[x] += v%d;\n", i);
    add(t, "}\n");
}

static void reads(struct text *t, int n)
{
    add(t, "static const int v[3] = { 1, 2, 3 };\n" K "{ " X);
    repeat(t, "out[x] += v[x];\n", n);
    add(t, "}\n");
}

static void a_sum(struct text *t, int n)
{
    add(t, "static const int v[3] = { 1, 2, 3 };\n" K "{ " X "out[x] = v[x]");
    repeat(t, " + v[x]", n);
    add(t, "; }\n");
}

static void a_list(struct text *t, int n)
{
    add(t, "static const int v = 1;\n" K "{ " X "int l[] = { v");
    repeat(t, ", v", n);
    add(t, " }; }\n");
}

static void choices(struct text *t, int n)
{
    add(t, "static const int v = 1;\n" K "{ " X "out[x] =");
    repeat(t, " v ? 1 :", n);
    add(t, "v; }\n");
}

static void round_brackets(struct text *t, int n)
{
    add(t, "static const int v = 1;\n" K "{ " X "out[x] = ");
    repeat(t, "(v+", n);
    add(t, "1");
    repeat(t, ")", n);
    add(t, "; }\n");
}

static void braces(struct text *t, int n)
{
    add(t, "static const int v = 1;\n" K "{ " X);
    repeat(t, "{ out[x] = v;", n);
    repeat(t, "}", n);
    add(t, "}\n");
}

static void namespaces(struct text *t, int n)
{
    repeat(t, "namespace a {", n);
    repeat(t, "}", n);
    add(t, K "{ " X "out[x] = 1; }\n");
}

static void open_brackets(struct text *t, int n)
{
    add(t, K "{ " X "out[x] = 1; }\n");
    repeat(t, "(", n);
}

static void open_angles(struct text *t, int n)
{
    add(t, K "{ " X "out[x] = 1; }\nint v");
    repeat(t, " a<", n);
    add(t, ";\n");
}

static void open_templates(struct text *t, int n)
{
    repeat(t, "template <", n);
    add(t, "\n;" K "{ " X "out[x] = 1; }\n");
}

static void statics(struct text *t, int n)
{
    add(t, K "{ " X "out[x] = 1;\n");
    repeat(t, "static ", n);
    add(t, "int f() { } }\n");
}

static void statics_in_brackets(struct text *t, int n)
{
    add(t, K "{ " X "out[x] = 1;\n");
    repeat(t, "static f(", n);
    repeat(t, ") const ", n);
    add(t, "; }\n");
}

static void types_of_one(struct text *t, int n)
{
    add(t, "typedef struct { int n; } T");
    for (int i = 0; i < n; i++)
        add(t, ", T%d[1]", i);
    add(t, ";\n" K "{ " X);
    for (int i = 0; i < n; i++)
        add(t, "T%d;", i);
    add(t, "}\n");
}

static void by_a_macro(struct text *t, int n)
{
    add(t, "#define D(...) int a;\nD(");
    for (int i = 0; i < n; i++)
        add(t, "v%d ", i);
    add(t, ")\n" K "{ " X);
    for (int i = 0; i < n; i++)
        add(t, "out[x] += v%d;", i);
    add(t, "}\n");
}

static void declared_again(struct text *t, int n)
{
    repeat(t, "extern static const int v = 1;\n", n);
    add(t, K "{ " X);
    repeat(t, "out[x] += v;\n", n);
    add(t, "}\n");
}

static void pastes(struct text *t, int n)
{
    for (int i = 0; i < n; i++)
        add(t, "__device__ int v%d;\n", i);
    for (int i = 0; i < n; i++)
        add(t, "#define M%d(a) w ## a\n", i);
    add(t, K "{ " X);
    for (int i = 0; i < n; i++)
        add(t, "out[x] += v%d M%d(1);", i, i);
    add(t, "}\n");
}

static void in_a_class(struct text *t, int n)
{
    add(t, "static const int v = 1;\n" K "{ " X "out[x] = v");
    repeat(t, "::v", n);
    add(t, "; }\n");
}

static void casts(struct text *t, int n)
{
    add(t, "static const int a = 0;\n" K "{ " X "out[x] = ");
    repeat(t, "(", n);
    repeat(t, ")a", n);
    add(t, "; }\n");
}

static void assembly(struct text *t, int n)
{
    add(t, "static const int a = 0;\n" K "{ " X "out[x] = 1;");
    repeat(t, "asm(", n);
    repeat(t, ")", n);
    add(t, "; }\n");
}

static void symbols(struct text *t, int n)
{
    add(t, "static const int a = 0;\n" K "{ " X "asm(\"");
    repeat(t, "xa", n);
    add(t, "\"); out[x] = 0");
    repeat(t, "+a", n);
    add(t, "; }\n");
}

static void values(struct text *t, int n)
{
    repeat(t, "static const int a=", n);
    add(t, "0;\n" K "{ " X "out[x] = 1; }\n");
}

static void indices(struct text *t, int n)
{
    add(t, K "{ int x = ");
    repeat(t, "(", n);
    add(t, "blockIdx.x * blockDim.x + threadIdx.x");
    repeat(t, ")", n);
    add(t, "; out[x] = 1; }\n");
}

static void open_kernels(struct text *t, int n)
{
    add(t, K "{ " X "out[x] = 1; }\n");
    repeat(t, "__global__ ", n);
}

static void parameters(struct text *t, int n)
{
    add(t, "extern \"C\" __global__ void k(const float *in, float *out");
    repeat(t, " out", n);
    add(t, ") { }\n");
}

static void raw_text(struct text *t, int n)
{
    add(t, K "{ " X "out[x] = 1; }\nconst char *a = R\"");
    repeat(t, ")", n);
    add(t, "(");
    repeat(t, ")", n);
    add(t, "\";\n");
}

static const struct form { const char *name; void (*make)(struct text *t, int n); int n; } forms[] = {
    { "macros", macros, 5000 }, { "macros of a variable", macros_of_a_variable, 5000 },
    { "functions", functions, 5000 }, { "functions of one name", of_one_name, 4000 },
    { "variables", variables, 5000 }, { "reads", reads, 10000 }, { "a sum", a_sum, 20000 },
    { "a list", a_list, 25000 }, { "choices", choices, 20000 },
    { "round brackets", round_brackets, 25000 }, { "braces", braces, 15000 },
    { "namespaces", namespaces, 15000 }, { "open brackets", open_brackets, 25000 },
    { "open angles", open_angles, 25000 }, { "open templates", open_templates, 20000 },
    { "statics", statics, 20000 }, { "statics in brackets", statics_in_brackets, 12000 },
    { "types of one statement", types_of_one, 5000 }, { "names by a macro", by_a_macro, 5000 },
    { "declared again", declared_again, 4000 }, { "words put together", pastes, 3000 },
    { "in a class", in_a_class, 25000 }, { "raw text", raw_text, 25000 },
    { "casts", casts, 25000 }, { "assembly", assembly, 20000 }, { "symbols", symbols, 25000 },
    { "values", values, 10000 }, { "indices", indices, 25000 },
    { "open kernels", open_kernels, 20000 }, { "parameters", parameters, 25000 },
};

/* ---- measuring ----------------------------------------------------------- */

static double compile(const char *source, const char *options)
{
    char text[200];
    snprintf(text, sizeof text, "args: [in, out]%s", options);
    double from = cpu_seconds();
    code_compile(source, "[64]", text, false);
    return cpu_seconds() - from;
}

static double look(int n, void *arg)
{
    const struct form *f = arg;
    struct text t = { 0 };
    f->make(&t, n);
    ck_assert_msg(t.len < 1 << 20, "%s: %zu bytes are more than is looked at", f->name, t.len);
    double took = compile(t.s, "");
    free(t.s);
    return took;
}

START_TEST(takes_time_in_proportion)
{
    effort_is_linear(forms[_i].name, look, (void *)&forms[_i], forms[_i].n);
}
END_TEST

/* ---- what is not looked at ------------------------------------------------ */

/* Blanks make it longer than is looked at. */
static void too_long(struct text *t)
{
    add(t, K "{ " X "out[x] = 1; }\n");
    repeat(t, "                \n", 1 << 16);
}

static void too_deep(struct text *t)
{
    char name[40];
    for (int i = 0; i < 250; i++) {
        struct text h = { 0 };
        add(&h, "#include \"h%d.h\"\n", i + 1);
        snprintf(name, sizeof name, "h%d.h", i);
        pipe_text(code_dir, name, h.s);
        free(h.s);
    }
    add(t, "#include \"h0.h\"\n" K "{ " X "out[x] = 1; }\n");
}

static const struct { void (*make)(struct text *t); const char *says; } cut[] = {
    { too_long, "stands in a source that is longer than a source is looked at (%s/k.cu:1), so it is not "
                "known which grid it wants" },
    { too_deep, "stands in a source that includes files that include each other too deep: \"h199.h\" (%s/h198.h:1), so" },
};

START_TEST(says_what_it_does_not_know)
{
    struct text t = { 0 };
    char says[400];
    cut[_i].make(&t);
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wformat-nonliteral\"")
    snprintf(says, sizeof says, cut[_i].says, code_dir);
    _Pragma("GCC diagnostic pop")
    compile(t.s, "");
    ck_assert_int_eq(code_errs.failed, 1);
    ck_assert_msg(strstr(code_errs.e[0].msg, says) != NULL, "'%s' is not in '%s'", says, code_errs.e[0].msg);
    ck_assert_int_eq(code_errs.e[0].at.line, 4);
    compile(t.s, ", grid: 1");
    ck_assert_msg(!code_errs.failed, "%s", code_errs.e[0].msg);
    free(t.s);
}
END_TEST

Suite *suite_code_long(void)
{
    Suite *s = suite_create("code_long");
    TCase *tc = tcase_create("text");
    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, code_up, code_down);
    ADD_SOME(tc, takes_time_in_proportion, (int)(sizeof forms / sizeof *forms), tests_every(5, 1));
    tcase_add_loop_test(tc, says_what_it_does_not_know, 0, sizeof cut / sizeof *cut);
    suite_add_tcase(s, tc);
    return s;
}
