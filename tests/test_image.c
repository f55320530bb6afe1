/* test_image.c - variables that a kernel keeps from one launch to the next, as its compiled image
 * shows them: of the CPU's compiler and of NVRTC, and of what the text of a source does not show. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include "suite.h"
#include "device/backend.h"
#include "device/image.h"
#if GP_CUDA
#include "cuda/nvrtc.h"
#endif
#include "lib/cu.h"
#include "lib/pipe.h"

Suite *suite_image(void);

#define K "extern \"C\" __global__ void k(int *a) "

enum { CPU = 1, CUDA = 2, BOTH = 3 };

static bool compiles(const gp_source *src, bool cuda, gp_errs *errs)
{
    *errs = (gp_errs){ .n = 0 };
    if (cuda) {
#if GP_CUDA
        void *image;
        size_t bytes;
        bool ok = gp_nvrtc_compile(src, 90, NULL, &image, &bytes, errs);
        free(image);
        return ok;
#else
        return gp_fail(errs, GP_E_RESOURCE, src->at, "this is a build without CUDA");
#endif
    }
    gp_cpu_entry k;
    void *dl;
    bool ok = gp_cc_compile(src, NULL, &k, &dl, errs);
    if (ok)
        dlclose(dl);
    return ok;
}

static gp_source source(const char *text)
{
    static const char *const params[] = { "int *" };
    cu_write("k.cu", text);
    return (gp_source){ .path = cu_path("k.cu"), .entry = "k", .param = params, .nparam = 1,
                        .at = { "test.yaml", 3, 5, 1 }, .overlaps = true };
}

static bool have_nvrtc;

static void setup(void)
{
    gp_errs errs;
    cu_open();
    gp_source src = source(K "{ }\n");
    have_nvrtc = compiles(&src, true, &errs);
    if (!have_nvrtc)
        fprintf(stderr, "SKIPPED: tests of NVRTC: %s\n", errs.e[0].msg);
}

/* ---- images -------------------------------------------------------------------- */

/* No `name`: there is nothing that a kernel could change but `fixed`, words with blanks between,
 * sorted. */
static const struct { const char *text, *name, *fixed; int on; } kept[] = {
    { "__device__ int count;\n" K "{ a[0] = count++; }\n", "variable 'count'", "c", BOTH },
    { "static __device__ int count = 7;\n" K "{ a[0] = count++; }\n", "variable 'count'", "c", BOTH },
    { "int count;\n" K "{ a[0] = count++; }\n", "variable 'count'", "counts", CPU },
    { "namespace n { struct s { static int m; }; int s::m; }\n" K "{ a[0] = n::s::m++; }\n", "variable 'm'", "", CPU },
    { "namespace n { __device__ int m; }\n" K "{ a[0] = n::m++; }\n", "variable 'm'", "n", BOTH },
    { "struct F { int n; };\ntemplate <class T> __device__ T t;\n" K "{ a[0] = t<F>.n++; }\n", "variable 't'", "F", BOTH },
    { K "{ static int calls = 3; a[0] = calls++; }\n", "variable 'calls'", "", BOTH },
    { "__device__ __attribute__((used)) const int table[2] = { 1, 2 };\n" K "{ a[0] = table[a[1]]; }\n", NULL, "table", BOTH },
    { "__constant__ int read = 3;\nconst float table[2] = { 1, 2 };\n"
      K "{ static const int w[2] = { 1, 2 }; __shared__ int s[4]; s[a[0]] = w[a[1]]; "
      "__syncthreads(); a[0] = read + table[a[1]] + s[a[2]]; printf(\"%d\", a[0]); }\n", NULL, "read table w", BOTH },
};

TEST_EACH(names_a_variable, kept)
{
    gp_source src = source(kept[_i].text);
    char words[40], *at;
    const char *fixed[4];
    strcpy(words, kept[_i].fixed);
    for (char *w = strtok_r(words, " ", &at); w; w = strtok_r(NULL, " ", &at))
        fixed[src.nfixed++] = w;
    src.fixed = src.constant = fixed, src.nconstants = src.nfixed;
    for (int cuda = 0; cuda < 1 + have_nvrtc; cuda++) {
        gp_errs errs;
        if (!(kept[_i].on & (cuda ? CUDA : CPU)))
            continue;
        src.overlaps = true;
        for (int found = 0; found < 2; found++) {  /* compiled, then as found in the cache */
            bool ok = compiles(&src, cuda, &errs);
            ck_assert_msg(ok == !kept[_i].name, "%s, %s: %s", cuda ? "nvrtc" : "cpu", kept[_i].text,
                          ok ? "nothing" : errs.e[0].msg);
            ck_assert_msg(ok || strstr(errs.e[0].msg, kept[_i].name) != NULL, "%s", errs.e[0].msg);
        }
        src.overlaps = false;
        ck_assert(compiles(&src, cuda, &errs));
    }
}

/* Variables that are not of the source, an instrumented build's say, do not count. */
TEST(only_words_of_the_source_count)
{
    static const char *const words[] = { "a", "count", "int" }, *const others[] = { "a", "int" };
    gp_source src = source("static __device__ int count;\n" K "{ a[0] = count++; }\n");
    for (int cuda = 0; cuda < 1 + have_nvrtc; cuda++) {
        gp_errs errs;
        src.words = words, src.nwords = 3;
        ck_assert(!compiles(&src, cuda, &errs));
        src.words = others, src.nwords = 2;
        ck_assert(compiles(&src, cuda, &errs));
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
    ck_assert(!gp_image_keeps_nothing(&src, true, "no image", 8, &errs));
    ck_assert_msg(strstr(errs.e[0].msg, "cannot be read") != NULL, "%s", errs.e[0].msg);
}

/* ---- what the text does not show ------------------------------------------------- */

#define H "extern \"C\" __global__ void k(const int *in, int *out)\n{ int i = blockIdx.x * blockDim.x + threadIdx.x; "

static const struct { const char *text, *name; } hidden[] = {
    { "__device__\n#ifdef READ_ONLY\nconst\n#endif\nint c;\n" H "if (i < 8) out[i] = c++; }\n", "variable 'c'" },
    { "#ifdef A\n__constant__\n#else\n__device__\n#endif\nint c;\n" H "if (i < 8) out[i] = c++; }\n", "variable 'c'" },
    { "__device__ int c(int{0});\n" H "if (i < 8) out[i] = c++; }\n", "variable 'c'" },
    { "struct S { int n; __device__ void c(int) { } };\nconst int zero = 0;\n__device__ int c(zero);\n"
      H "if (i < 8) out[i] = c++; }\n", "variable 'c'" },
    { "struct A { static constexpr int c = 3; };\nint c;\n" H "if (i < 8) out[i] = c++ + A::c; }\n", "variable 'c'" },
    { "#define CAT(a, b) a ## b\nCAT(sta, tic) int c;\n" H "if (i < 8) out[i] = c++; }\n", "variable 'c'" },
    { "#define VARIABLE(n) int n ## _of_all\nVARIABLE(c);\n" H "if (i < 8) out[i] = c_of_all++; }\n", "variable 'c_of_all'" },
    { "#define FR\nconst char *t = FR\"(\"; __device__ int c; const char *u = \")\";\n"
      H "if (i < 8) out[i] = c++; }\n", "variable 'c'" },
    { H "static const int first = in[0]; if (i < 8) out[i] = in[i] - first; }\n", "variable 'first'" },
    { H "static int *const n = new int(0); if (i < 8) out[i] = ++*n; }\n", "variable 'n'" },
    { "namespace state { int count; }\n" H "static const int count = 3; if (i < 8) out[i] = count + state::count++; }\n",
      "variable 'count'" },
    { "#define const\nstatic const int n = 0;\n#undef const\n" H "if (i < 8) out[i] = n++; }\n", "variable 'n'" },
    { "__attribute__((device)) int n;\n" H "if (i < 8) out[i] = n++; }\n", "variable 'n'" },
    /* harmless */
    { "#include \"cuda_runtime.h\"\n#include <errno.h>\n#include <iostream>\n" H "if (i < 8) out[i] = in[i]; }\n", NULL },
    { "struct P { int a, b; };\n__constant__ P lut[] = { { 1, 2 }, { 3, 4 } };\n__constant__ int a = 1, b = 2;\n"
      "__constant__ float w[2] = { 1, 2 }, v[2] = { 3, 4 };\n"
      H "if (i < 8) out[i] = lut[i % 2].a + a + b + (int)(w[0] + v[1]); }\n", NULL },
    { "template <typename T, int N> __device__ T f(T x) { return x * N; }\n"
      "template <class H, class... A> static __device__ int g(H h, A... a) { return h + sizeof...(a); }\n"
      "template <template <class> class V, class T> __device__ int h(V<T> v) { return v.a; }\n"
      "template <class T> struct W { T a; };\n"
      H "if (i < 8) out[i] = f<int, 3>(in[i]) + g(1, 2, 3) + h<W, int>(W<int>{ 1 }); }\n", NULL },
    { "#ifdef A\n#define INLINE __forceinline\n#else\n#define INLINE static inline __attribute__((always_inline))\n#endif\n"
      "INLINE int f(int x) { return x + 1; }\n" H "if (i < 8) out[i] = f(in[i]); }\n", NULL },
    { "#ifdef __cplusplus\nextern \"C\" {\n#endif\nstatic const int t[2] = { 1, 2 };\n#ifdef __cplusplus\n}\n#endif\n"
      H "if (i < 8) out[i] = t[i % 2]; }\n", NULL },
    { "#ifdef A\n#define W 3\n#else\n#define W 4\n#endif\nstatic const int t[4] = { 1, 2, 3, W };\n"
      H "if (i < 8) out[i] = t[i % 4]; }\n", NULL },
    { "template <int B = 256> __device__ int f(int v) { return v + B; }\n"
      "template <class T = float, int N = 3> struct P { T t[N]; };\n"
      H "P<> p; p.t[0] = 1; if (i < 8) out[i] = f<>(p.t[0]); }\n", NULL },
    { "namespace n { struct W { int a; }; }\ntemplate <class T> struct V { T a; };\n__device__ int f(n::W w);\n"
      "__device__ int g(V<int> *);\n__device__ int f(n::W w) { return w.a; }\n"
      "__device__ int g(V<int> *v) { return v->a; }\n"
      H "V<int> v = { 1 }; if (i < 8) out[i] = f(n::W{ 2 }) + g(&v); }\n", NULL },
    { "#include <vector>\n#include <cstdarg>\n#include <ctype.h>\n" H "if (i < 8) out[i] = in[i]; }\n", NULL },
    { "__constant__ int w[2] = { 1, 2 };\n" H "int w = 3; if (i < 8) out[i] = w + in[i]; }\n", NULL },
};

TEST_SOME(finds_what_the_text_hides, sizeof hidden / sizeof *hidden, 4, 1)
{
    static const char yaml[] =
        "buffers: {a: {dtype: i32, shape: [8]}}\nstages:\n  - {use: generate, out: a, frames: 3}\n"
        "  - {use: kernel, source: k.cu, block: 8, grid: 1, args: [in, out]}\n  - {use: discard}\n";
    const char *dir = pipe_dir();
    pipe_text(dir, "k.cu", hidden[_i].text);
    pipe_result r = pipe_run(dir, yaml, "cpu", NULL, (gp_run_options){ 0 });
    ck_assert_msg(r.errs.failed == !!hidden[_i].name, "%s: %s", hidden[_i].text,
                  r.errs.n ? r.errs.e[0].msg : "no error");
    ck_assert_msg(!hidden[_i].name || strstr(r.errs.e[0].msg, hidden[_i].name) != NULL, "%s", r.errs.e[0].msg);
}

Suite *suite_image(void)
{
    Suite *s = suite_create("image");
    TCase *tc = tcase_create("compiled");
    tcase_add_unchecked_fixture(tc, setup, cu_close);
    suite_fill(tc, suite_items, 1);
    suite_add_tcase(s, tc);
    return s;
}
