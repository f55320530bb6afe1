/* test_written_variables.c - what compilers tell of a kernel: the variables that it keeps from one launch to the
 * next, and whether it waits for other blocks; from the library that the CPU's compiler makes, and the PTX of NVRTC. */
#include "suite.h"
#include "device/backend.h"
#include "cpu/kernel.h"
#include "attempt.h"

#define K "extern \"C\" __global__ void k(int *a) "

static bool compiles(const gp_source *src, bool cuda, gp_errs *errs)
{
    attempt a = attempt_compile(src, cuda);
    *errs = a.errs;
    return a.ok;
}

static gp_source source(const char *text)
{
    static const char *const params[] = { "int *" };
    cu_write("k.cu", text);
    return (gp_source){ .path = cu_path("k.cu"), .entry = "k", .param = params, .nparam = 1,
                        .at = { "test.yaml", 3, 5, 1 }, .overlaps = true };
}

/* ---- variables -------------------------------------------------------------- */

#define H "extern \"C\" __global__ void k(int *a)\n{\n  int i = blockIdx.x * blockDim.x + threadIdx.x; "
#define E " a[i] = i;\n}\n"

/* The variable that a back end names; "": it finds none that the kernel may change; NULL: it does not compile the
 * text. */
static const struct { const char *text, *cpu, *cuda; } cases[] = {
    /* one that is not const, whatever is done with it */
    { "__device__ int count;\n" H "a[0] = count++;" E, "count", "count" },
    { "static __device__ int count = 7;\n" H "a[0] = count++;" E, "count", "count" },
    { "int count;\n" H "a[0] = count++;" E, "count", NULL },
    { "namespace n { struct s { static int m; }; int s::m; }\n" H "a[0] = n::s::m++;" E, "m", NULL },
    { "namespace n { __device__ int m; }\n" H "a[0] = n::m++;" E, "m", "m" },
    { "struct F { int n; };\ntemplate <class T> __device__ T t;\n" H "a[0] = t<F>.n++;" E, "t", "t" },
    { "template <class T> __device__ T tv = T(0);\n" H "if (i == 0) tv<int> += 1;" E, "tv", "tv" },
    { "template <class T> struct TS { static T n; }; template <class T> T TS<T>::n = 0;\n" H "TS<int>::n++;" E, "TS", NULL },
    { H "static int calls = 3; a[0] = calls++;" E, "calls", "calls" },
    { H "static const int first = a[1]; a[0] = first;" E, "first", NULL },
    { H "static int *const n = new int(0); a[0] = ++*n;" E, "n", NULL },
    { "__device__ int c;\n" H "if (i == 0) { const int *p = &c; *(int *)p += 1; }" E, "c", "c" },
    { "__device__ float even, odd;\n" H "float &slot = a[0] & 1 ? even : odd; slot += a[0];" E, "odd", "even" },
    { "struct S { int a[4]; int n; }; __device__ S s;\n" H "int *q = s.a; q[a[1]]++;" E, "s", "s" },
    { "__device__ int c; template <int &R> __device__ void bump() { R++; }\n" H "if (i == 0) bump<c>();" E, "c", "c" },
    { "__device__ int c; __device__ __noinline__ int *pc() { return &c; }\n" H "++*pc();" E, "c", "c" },
    { "__device__ int c; __device__ __noinline__ void bump(int *p) { ++*p; }\n" H "bump(&c);" E, "c", "c" },
    { "__device__ int c[64]; \n" H "int *p = c; for (int k = 0; k < a[0]; k++) p += a[k]; *p = 1;" E, "c", "c" },
    { "__device__ int c; __device__ int *p = &c;\n" H "*p = 1;" E, "p", "c" },
    { "__device__ int c; __device__ int *const p = &c;\n" H "*p = 1;" E, "c", "c" },
    { "__device__ int *where;\n" H "where = a; a[0] = *where;" E, "where", "where" },
    { "__device__ int c;\n" H "atomicAdd(&c, 1);" E, "c", "c" },
    { "__device__ int c[4][4];\n" H "int *p = c[1]; *p += 1;" E, "c", "c" },
    { "__device__ float4 c;\n" H "c = make_float4(1, 2, 3, a[0]);" E, "c", "c" },
    { "__device__ unsigned long long at;\n" H "unsigned lo, hi; asm(\"mov.b64 {%0, %1}, %2;\" : \"=r\"(lo), \"=r\"(hi) : "
      "\"l\"(&at)); *(int *)((unsigned long long)hi << 32 | lo) = 1;" E, NULL, "at" },
    { "extern \"C\" { __device__ int cnt_; }\n" H "asm volatile(\"st.global.u32 [cnt_], 1;\");" E, NULL, "cnt_" },
    { "extern \"C\" { __device__ int cnt_; }\n" H "asm volatile(\"incl cnt_(%rip)\");" E, "cnt_", NULL },
    { "namespace { __device__ int c; }\n" H "c++;" E, "c", "c" },
    { "inline __device__ int c;\n" H "c++;" E, "c", NULL },
    { "extern __device__ int c[]; __device__ int c[4];\n" H "auto p = c + 1; *p += 1;" E, "c", "c" },
    { "#define CAT(a, b) a ## b\nCAT(sta, tic) __device__ int c;\n" H "c++;" E, "c", "c" },
    { "#define const\nstatic __device__ const int n = 0;\n#undef const\n" H "a[0] = n++;" E, "n", "n" },
    { "struct S { mutable int n; __device__ void hit() const { n++; } }; __device__ const S s = {0};\n" H "s.hit();" E,
      "s", "s" },
    { "namespace state { __device__ int count; }\n" H "static const int count = 3; a[0] = count + state::count++;" E,
      "count", "count" },
    { "struct Acc { int n; static __device__ Acc &get() { static __device__ Acc a; return a; } };\n" H "Acc::get().n++;" E,
      "a", "a" },
    /* another kernel of the source is never launched; on the CPU its variable is there all the same */
    { "__device__ int c;\nextern \"C\" __global__ void other(int *a) { c = a[0]; }\n" H E, "c", "" },
    /* lines of their own, so that there are directives between instructions */
    { "__device__ const int t[4] = {1, 2, 3, 4};\n__device__ const int u[4] = {5, 6, 7, 8};\n" H "\nint x = t[a[1]];\n"
      "int y = u[a[1]];\na[0] = x * y;\n" E, "", "" },
    { "__device__ int n;\n" H "\nint x = a[1];\nn += x;\na[0] = x;\n" E, "n", "n" },
    { "#include <assert.h>\n" H "assert(a[1] > 0);" E, "", "" },
    { "struct P { __device__ virtual int f(int x) { return x; } }; struct Q : P { __device__ int f(int x) override { return 2; } };\n"
      H "P p; Q q; P *w = a[1] ? &p : &q; a[0] = w->f(a[2]);" E, "", "" },
    /* assembler texts: braces at the start of a line, comments, guards, variables and registers of their own */
    { "__device__ int c;\n" H "int r; asm volatile(\"{\\n .reg .pred p;\\n mov.u32 %0, 1;\\n}\\n\" : \"=r\"(r)); c += r;" E, NULL, "c" },
    { "extern \"C\" { __device__ int c_; }\n" H "asm(\"/* ld would do */ st.global.u32 [c_], 1;\");" E, NULL, "c_" },
    { "extern \"C\" { __device__ int c_; }\n" H "asm(\"{ .reg .pred p; setp.eq.u32 p, %0, 1;\\n@p\\nst.global.u32 [c_], 1; }\" "
      ":: \"r\"(a[0]));" E, NULL, "c_" },
    { H "int r; asm(\"{ .global .u32 cnt; atom.global.add.u32 %0, [cnt], 1; }\" : \"=r\"(r)); a[0] = r;" E, NULL, "cnt" },
    { "extern \"C\" { __device__ const int pred[4] = {1, 2, 3, 4}; }\n" H "a[0] = pred[a[1]];" E, "", "" },
    { "asm(\".data\\nkept_: .long 0\\n.text\");\n" H "asm volatile(\"incl kept_(%rip)\");" E, "kept_", NULL },
    /* what is const cannot be changed on the CPU, where it lies in memory that is read-only */
    { "__device__ const int c = 0;\n" H "*(int *)&c = 1;" E, "", "c" },
    { "static __device__ const int t[2] = { 1, 2 };\n" H "int *p = const_cast<int *>(t); p[a[0]]++;" E, "", "t" },
    /* harmless */
    { "__device__ __attribute__((used)) const int table[2] = { 1, 2 };\n" H "a[0] = table[a[1]];" E, "", "" },
    { "__constant__ int read = 3;\n__device__ const float table[2] = { 1, 2 };\n"
      H "static const int w[2] = { 1, 2 }; __shared__ int s[4]; s[a[0]] = w[a[1]]; "
      "__syncthreads(); a[0] = read + table[a[1]] + s[a[2]]; printf(\"%d\", a[0]);" E, "", "" },
    { "struct P { int a, b; };\n__constant__ P lut[] = { { 1, 2 }, { 3, 4 } };\n__constant__ int b = 1, c = 2;\n"
      "static __constant__ const float w[2] = { 1, 2 }, v[2] = { 3, 4 };\n__constant__ int zero[3];\n"
      "namespace n { __constant__ double d; }\n"
      H "a[0] = lut[a[1]].a + b + c + (int)(w[a[2]] + v[a[3]]) + zero[a[4]] + (int)n::d;" E, "", "" },
    { "__device__ const float t[4] = { 1, 2, 3, 4 };\n" H "const float *p = t; a[0] = p[a[1]] + __ldg(&t[a[2]]);" E, "", "" },
    { "__device__ const int t[64] = { 1, 2, 3, 4 };\n" H "const int *p = t; int n = 0; for (int k = 0; k < a[0]; k++) "
      "{ n += *p; p += a[k]; } a[0] = n;" E, "", "" },
    { "__constant__ int w[2] = { 1, 2 };\n" H "int w = 3; a[0] = w;" E, "", "" },
    { "template <typename T, int N> __device__ T f(T x) { return x * N; }\n" H "a[0] = f<int, 3>(a[1]);" E, "", "" },
    { "#include <math.h>\n#include <stdint.h>\n#include <cuda_fp16.h>\n" H "a[0] = (int)sinf((float)a[1]);" E, "", "" },
    { "#include <errno.h>\n#include <iostream>\n#include <vector>\n#include <random>\n" H E, "", NULL },
};

TEST_SOME(names_a_variable, sizeof cases / sizeof *cases, 3, 1)
{
    gp_source src = source(cases[_i].text);
    for (int cuda = 0; cuda < 1 + attempt_nvrtc; cuda++) {
        gp_errs errs;
        const char *name = cuda ? cases[_i].cuda : cases[_i].cpu;
        if (!name)
            continue;
        char *says = format("may change its variable '%s'", name);
        src.overlaps = true;
        for (int found = 0; found < 2; found++) {  /* compiled, then as found in the cache */
            bool ok = compiles(&src, cuda, &errs);
            ck_assert_msg(ok == !*name, "%s, %s: %s", cuda ? "nvrtc" : "cpu", cases[_i].text,
                          ok ? "nothing" : errs.e[0].msg);
            ck_assert_msg(ok || strstr(errs.e[0].msg, says) != NULL, "%s: %s", cases[_i].text, errs.e[0].msg);
        }
        src.overlaps = false;
        ck_assert_msg(compiles(&src, cuda, &errs), "%s: %s", cases[_i].text, errs.e[0].msg);
    }
}

/* A variable of each thread would be one of each worker on the CPU. */
TEST(refuses_thread_local)
{
    gp_errs errs;
    gp_source src = source("thread_local int c;\n" H "a[0] = c++;" E);
    ck_assert(!compiles(&src, false, &errs));
    first_error_has(&errs, 1, "thread_local");
}

/* Of all kernels of a source only the entry's waiting counts, wherever the call stands. */
TEST(waits_for_all_blocks)
{
    static const char text[] = "#include <cooperative_groups.h>\n"
        "static __device__ void meet() { auto g = cooperative_groups::this_grid(); g.sync(); }\n"
        "extern \"C\" __global__ void k(int *a) { meet(); a[0] = 1; }\n"
        "extern \"C\" __global__ void ranks(int *a) { a[0] = (int)cooperative_groups::this_grid().thread_rank(); }\n"
        "extern \"C\" __global__ void other(int *a) { if (a[0]) meet(); }\n";
    gp_source src = source(text);
    for (int cuda = 0; cuda < 1 + attempt_nvrtc; cuda++) {
        gp_errs errs;
        src.cooperative = false;
        for (int found = 0; found < 2; found++) {
            ck_assert(!compiles(&src, cuda, &errs));
            ck_assert_msg(strstr(errs.e[0].msg, "set 'cooperative: true'") != NULL, "%s", errs.e[0].msg);
        }
        src.cooperative = true;
        ck_assert_msg(compiles(&src, cuda, &errs), "%s", errs.e[0].msg);
        src.cooperative = false, src.entry = "ranks";
        ck_assert_msg(compiles(&src, cuda, &errs), "%s", errs.e[0].msg);
        src.entry = "k";
    }
}

TEST(asks_for_symbols)
{
    gp_errs errs;
    gp_source src = source(K "{ a[0] = 1; }\n");
    setenv("CXX", "c++ -s", 1);
    ck_assert(!compiles(&src, false, &errs));
    ck_assert_msg(strstr(errs.e[0].msg, "has no symbols") && strstr(errs.e[0].msg, "leave -s out of CXX"),
                  "%s", errs.e[0].msg);
    unsetenv("CXX");
    memset(&errs, 0, sizeof errs);
    ck_assert(!gp_source_writes_no_variable(&src, "no image", 8, &errs));
    ck_assert_msg(strstr(errs.e[0].msg, "cannot be read") != NULL, "%s", errs.e[0].msg);
}

Suite *suite_written_variables(void);
SUITE(written_variables, tcase_add_unchecked_fixture(tc, attempt_setup, cu_close))
