/* test_code_state.c - which variables a kernel may change from frame to frame, as its source says:
 * all that are not plainly const. Nothing is compiled. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "lib/coderig.h"

Suite *suite_code_state(void);

static void up(void)
{
    code_up();
    pipe_text(code_dir, "st.h", "__device__ int c;\n");
}

static void compile(const char *source, const char *options, bool cuda)
{
    char text[200];
    snprintf(text, sizeof text, "grid: 1, args: [in, out, {i32: 64}]%s", options);
    code_compile(source, "[64]", text, cuda);
}

/* ---- what may be changed ---------------------------------------------------- */

#define H "extern \"C\" __global__ void k(const float *in, float *out, int n)\n{\n" \
          "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
#define E "\n  if (i < n) out[i] = in[i];\n}\n"

/* No `says`: a run finds it. */
static const struct { const char *source, *says; } kept[] = {
    /* one that is not const, whatever is done with it */
    { "__device__ int n_;\n" H "  if (i == 0) n_++;" E, "variable 'n_' (" },
    { "__device__ int c;\n" H "  if (i == 0) { const int *p = &c; *(int *)p += 1; }" E, "variable 'c' (" },
    { "__device__ float even, odd;\n" H "  float &slot = n & 1 ? even : odd; if (i == 0) slot += in[0];" E,
      "variable 'even' (" },
    { "struct S { int a[4]; int n; }; __device__ S s;\n" H "  if (i == 0) { int *q = s.a; q[0]++; }" E,
      "variable 's' (" },
    { "typedef int row[16]; __device__ row r;\n" H "  if (i == 0) { int *q = r; q[0]++; }" E,
      "variable 'r' (" },
    { "__device__ int c; template <int &R> __device__ void bump() { R++; }\n" H "  if (i == 0) bump<c>();" E,
      "variable 'c' (" },
    { "__device__ int c; __device__ int *pc() { return (&c); }\n" H "  if (i == 0) ++*pc();" E,
      "variable 'c' (" },
    { "#define H \"st.h\"\n#include H\n" H "  if (i == 0) c++;" E, NULL },
    { "#include <st.h>\n" H "  if (i == 0) c++;" E,
      NULL },
    { "#define KERNEL extern \"C\" __global__ void\n__device__ int c;\nKERNEL k(const float *in, float "
      "*out, int n)\n{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i == 0) c++; if (i < n) "
      "out[i] = in[i]; }\n",
      "variable 'c' (" },
    { "struct Acc { int n; static __device__ Acc &get() { static __device__ Acc a; return a; } };\n" H
      "  if (i == 0) Acc::get().n++;" E,
      "variable 'a' (" },
    { "struct S { mutable int n; __device__ void hit() const { n++; } }; __device__ const S s = {0};\n" H
      "  if (i == 0) s.hit();" E,
      NULL },
    { "extern \"C\" { __device__ int cnt_; }\n" H "  if (i == 0) asm volatile(\"incl cnt_(%rip)\");" E,
      "variable 'cnt_' (" },
    { "__device__ int c;\nextern \"C\" __global__ void k(const float *in, float *out, int n)\n<% int i "
      "= blockIdx.x * blockDim.x + threadIdx.x; if (i == 0) c++; if (i < n) out<:i:> = in<:i:>; %>\n",
      "variable 'c' (" },
    { "#if 0\n}\n#endif\n__device__ int c;\n" H "  if (i == 0) c++;" E, "variable 'c' (" },
    { "__device__ int zähl;\n" H "  if (i == 0) zähl++;" E,
      NULL },
    { "__constant__ int c;\n" H "  if (i == 0) ((int &)c)++;" E, "may change 'c' (" },
    { "__constant__ int c;\n" H "  if (i == 0) c++;" E, "may change 'c' (" },
    { "__device__ __managed__ int c;\n" H "  if (i == 0) c++;" E, "variable 'c' (" },
    { "namespace { __device__ int c; }\n" H "  if (i == 0) c++;" E, "variable 'c' (" },
    { "\n" H "  static int c; if (i == 0) c++;" E, "variable 'c' (" },
    { "inline __device__ int c;\n" H "  if (i == 0) c++;" E, "variable 'c' (" },
    { "template <class T> __device__ T tv;\n" H "  if (i == 0) tv<int>++;" E, "variable 'tv' (" },
    { "template <class T> __device__ T tv = T(0);\n" H "  if (i == 0) tv<int> += 1;" E, "variable 'tv' (" },
    { "template <class T> struct TS { static T n; }; template <class T> T TS<T>::n = 0;\n" H
      "  if (i == 0) TS<int>::n++;" E,
      "variable 'n' (" },
    { "extern __device__ int c[]; __device__ int c[4];\n" H "  if (i == 0) { auto p = c + 1; *p += 1; }" E,
      "variable 'c' (" },
    { "__device__ int c[4][4];\n" H "  if (i == 0) { int *p = c[1]; *p += 1; }" E, "variable 'c' (" },
    /* ways to declare one */
    { "__device__ const float *p;\n" H E, "variable 'p' (" },
    { "__device__ const float a = 1, *p = 0;\n" H E, "variable 'p' (" },
    { "const int *__device__ p;\n" H E, "variable 'p' (" },
    { "__device__ Box<const int> b;\n" H E, "variable 'b' (" },
    { "int c[4] __device__;\n" H E, NULL },
    { "__device__ float (*f)(float) = sinf;\n" H E, NULL },
    { "__device__ struct { int n, m; } state;\n" H E, "variable 'state' (" },
    { "struct s { static int calls; };\n" H E, "variable 'calls' (" },
    { "__device__ thing t(1);\n" H E, NULL },
    { "thread_local int c;\n" H E, "variable 'c' (" },
    { "#define DEVICE __device__\nDEVICE float last;\n" H E, "variable 'last' (" },
    { "#define DEV() __device__\nDEV() float last;\n" H E, NULL },
    { "#define GLOBAL(t, n) __device__ t n\nGLOBAL(int, calls);\n" H E, NULL },
    { "#define A B\n#define B __device__\nA int c;\n" H E, NULL },
    { "#define STATE static int c\n" H "STATE; c++;" E, NULL },
    { "#define PTR float *\n__device__ const PTR p;\n" H E, NULL },
    { "#define const\n__device__ const int c;\n" H E, NULL },
    { "#ifdef A\n#define C const\n#else\n#define C\n#endif\nstatic C int c;\n" H E, "variable 'c' (" },
    { "// const \\\n const\n__device__ int c;\n" H E, NULL },
    { "#include \"nowhere.h\"\n" H E, NULL },
    /* ways to change what is const */
    { "__device__ const int c = 0;\n" H "*(int *)&c = 1;" E, "may change 'c' (" },
    { "static const int t[2] = { 1, 2 };\n" H "int *p = (int *)t; p[0]++;" E, "may change 't' (" },
    { "__constant__ int t[2] = { 1, 2 };\n" H "t[0] = 2;" E, "may change 't' (" },
    { "__constant__ int t[2] = { 1, 2 };\n" H "++t[0];" E, "may change 't' (" },
    { "static const int t[2] = { 1, 2 };\n" H "int *p = const_cast<int *>(t); p[0]++;" E, "may change 't' (" },
    { "extern \"C\" { __device__ const int c_ = 0; }\n" H "asm(\"st.global.u32 [c_], 1;\");" E, "may change 'c_' (" },
    { "static const int c = 0;\n" H "asm(\"st.global.u32 [%0], 1;\" :: \"l\"(&c));" E, "may change 'c' (" },
};

static const char *const fine[] = {
    "__device__ const float t[4] = { 1, 2, 3, 4 };\n" H "const float *p = t; out[i] = p[i % 4];" E,
    "__device__ float const t[4] = { 1, 2, 3, 4 };\n" H "out[i] = __ldg(&t[i % 4]) + (t[i]);" E,
    "const __device__ float t[4] = { 1, 2, 3, 4 };\n" H E,
    "__constant__ float t[4] = { 1, 2, 3, 4 };\n" H "auto p = t; if (t[i]) ++n; out[i] = p[i % 4];" E,
    "__constant__ float t[4] = { 1, 2, 3, 4 };\n" H "float t = 1; out[0] = t;" E,
    "__device__ constexpr float t[4] = { 1, 2, 3, 4 };\n" H "auto p = &t[1];" E,
    "__device__ float *const p = 0;\n" H E,
    "__device__ const int a = 1, b[2] = { 1, 2 }, c{3};\n" H E,
    "#define CONSTANT __constant__\nCONSTANT float t[4] = { 1, 2, 3, 4 };\n" H E,
    "#define TABLE static __device__ const\nTABLE float t[4] = { 1, 2, 3, 4 };\n" H E,
    "#define REAL float\nstatic const REAL t[4] = { 1, 2, 3, 4 };\n" H E,
    "static const int t[2] = {1, 2};\n" H "static const float w[2] = { 1, 2 }; out[i] = w[i % 2] + t[0];" E,
    "struct P { int n; static constexpr int M = 3; static __device__ int f() { return M; } "
    "__device__ P() = default; __device__ explicit P(int a) : n{a} { } __device__ ~P() { } "
    "__device__ int operator()(int a) const { return a; } __device__ operator int() const { return n; } "
    "__device__ P &operator=(const P &b) { n = b.n; return *this; } };\n" H "P p(3); out[i] = p;" E,
    "static __device__ __forceinline__ float f(float v) { float r = v; r *= 2; return r; }\n" H E,
    "template <int N> __device__ int at();\ntemplate <> __device__ int at<0>() { return 1; }\n" H E,
    "template <class T> __device__ auto f(const T &a, T b = T()) -> T { return a + b; }\n" H E,
    "struct S { int n; };\n__device__ int f(S *s);\n__device__ int f(S *s) { return s->n; }\n" H E,
    "__device__ int f(int a);\n__device__ decltype(1) g() noexcept { return f(1); }\n" H E,
    "#define HD __host__ __device__\n#ifdef A\n#define FN HD inline\n#else\n#define FN inline\n#endif\n"
    "FN float f(float a) { return a; }\n" H E,
    "#define OP(name, op) __device__ float name##_f(float a, float b) { return a op b; }\nOP(add, +)\n" H E,
    "#define UNUSED(t, n) __device__ t n\n" H E,
    H "auto f = [] __device__ (int a) { return a; }; auto g = [=]() mutable { return n++; }; out[0] = f(g());" E,
    H "__shared__ float tile[32]; tile[0] = 1; static __shared__ int m; m = 1;" E,
    H "extern __shared__ float tile[]; tile[0] = 1;" E,
    "// __device__ int calls;\n/* static int n; */\nenum { N = 3 };\ntypedef int number;\nusing other = int;\n" H E,
    "#include <cuda_fp16.h>\n#include <cooperative_groups.h>\n#include <curand_kernel.h>\n" H E,
    "static const int r = 0;\n" H "asm(\"mov.u32 %0, %ctaid.y;\" : \"=r\"(i));" E,
    /* not ASCII, in a comment and a text */
    "// gr\xc3\xb6\xc3\x9f" "er\n" H "printf(\"z\xc3\xa4hl\");" E,
};

/* The text leaves it to the compiled image. */
static void is_found_in_the_image(const char *source)
{
    compile(source, "", 0);
    ck_assert_msg(!code_errs.failed, "%s: %s", source, code_errs.e[0].msg);
    pipe_result r = pipe_run(code_dir, "buffers: {a: {dtype: f32, shape: [64]}}\nstages:\n"
                             "  - {use: generate, out: a, frames: 1}\n"
                             "  - {use: kernel, source: k.cu, grid: 1, args: [in, out, {i32: 64}]}\n"
                             "  - {use: discard}\n", "cpu", NULL, (gp_run_options){ 0 });
    ck_assert_msg(r.errs.failed > 0, "%s: nothing is found", source);
}

START_TEST(asks_for_serial)
{
    if (!kept[_i].says)
        is_found_in_the_image(kept[_i].source);
    for (int cuda = 0; cuda < 2 && kept[_i].says; cuda++) {
        const char *source = kept[_i].source;
        compile(source, "", cuda);
        ck_assert_msg(code_errs.failed && strstr(code_errs.e[0].msg, kept[_i].says) != NULL, "%s: '%s' is not in '%s'",
                      source, kept[_i].says, code_errs.failed ? code_errs.e[0].msg : "nothing");
        ck_assert_msg(strstr(code_errs.e[0].msg, "set 'serial: true'") != NULL, "%s", code_errs.e[0].msg);
        ck_assert_int_eq(code_errs.e[0].at.line, 4);
        compile(source, ", serial: true", cuda);
        ck_assert_msg(!code_errs.failed, "%s: %s", source, code_errs.e[0].msg);
    }
}
END_TEST

START_TEST(has_nothing_to_say)
{
    compile(fine[_i], "", 0);
    ck_assert_msg(!code_errs.failed, "%s: %s", fine[_i], code_errs.e[0].msg);
}
END_TEST

START_TEST(says_where)
{
    compile("\n__device__ int calls;\n" H E, "", 0);
    ck_assert_ptr_nonnull(strstr(code_errs.e[0].msg, "kernel 'k' may change the variable 'calls' ("));
    ck_assert_ptr_nonnull(strstr(code_errs.e[0].msg, "k.cu:2), which launches for several frames share and change "
        "at the same time: declare it const (or __constant__) if it is only read, else set 'serial: true', "
        "so that frames take turns"));
}
END_TEST

Suite *suite_code_state(void)
{
    Suite *s = suite_create("code_state");
    TCase *tc = tcase_create("text");
    tcase_add_checked_fixture(tc, up, code_down);
    tcase_add_loop_test(tc, asks_for_serial, 0, sizeof kept / sizeof *kept);
    tcase_add_loop_test(tc, has_nothing_to_say, 0, sizeof fine / sizeof *fine);
    tcase_add_test(tc, says_where);
    suite_add_tcase(s, tc);
    return s;
}
