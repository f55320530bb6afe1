/* test_cc.c - users' kernels through the C++ compiler and NVRTC: what compiles. */
#include <limits.h>
#include <math.h>
#include <sys/stat.h>
#include "device/source.h"
#include "lib/attempt.h"
#include "suite.h"

#define K "extern \"C\" __global__ void k"

/* ---- what compiles ----------------------------------------------------- */

static const struct { const char *text, *params[8]; } good[] = {
    { K "(const float *in, float *out, int n) { out[threadIdx.x] = in[0] + n; }\n",
      { "const float *", "float *", "int" } },
    /* names for the same layout */
    { K "(const float *__restrict__ in, float *const out, const int n) { out[n] = in[n]; }\n",
      { "const float *", "float *", "int" } },
    { K "(const float2 *in, gp_c64 *out, long n) { out[n].re = in[n].y; }\n",
      { "const gp_c64 *", "gp_c64 *", "long long" } },
    { "typedef float real;\n#define IN const real *\n" K "(IN in, real *out) { *out = *in; }\n",
      { "const float *", "float *" } },
    { K "(const gp_half *in, size_t s, gp_half *out, size_t t, const gp_frame_info *f)\n"
      "{ out[t] = gp_to_half(gp_from_half(in[s]) * f->valid); }\n",
      { "const gp_half *", "size_t", "gp_half *", "size_t", "const gp_frame_info *" } },
    { "#include <stdint.h>\n#include <math.h>\n__constant__ float w[2] = { 1, 2 };\n"
      "__device__ int32_t last;\n"
      "static __device__ __forceinline__ float f(float x) { return fmaf(x, w[1], sinf(x)); }\n"
      K "(uint8_t *out) { last = 1; out[0] = (uint8_t)max(min(f(out[0]), 255.f), 0.f); }\n",
      { "unsigned char *" } },
    { "extern __shared__ float s[];\n" K "(float *out)\n{\n"
      "    extern __shared__ __align__(16) unsigned char bytes[];\n"
      "    s[threadIdx.x] = 1; __syncthreads(); out[0] = bytes[3] + __popc(7) + rsqrtf(4);\n}\n",
      { "float *" } },
    /* shared memory of types with constructors */
    { K "(float *out)\n{\n    __shared__ float2 a[32];\n    __shared__ gp_half h[2][8];\n"
      "    __shared__ struct { float4 q; gp_c64 c; } s;\n    a[1].x = s.q.w = 1;\n"
      "    h[0][1] = gp_to_half(s.c.re = 2);\n    __syncthreads();\n"
      "    out[0] = a[1].x + gp_from_half(h[0][1]);\n}\n", { "float *" } },
    { K "(int *a, unsigned *b, unsigned long long *c, float *d)\n{\n"
      "    atomicAdd(a, 1); atomicMax(a, 2); atomicCAS(b, 1u, 2u); atomicInc(b, 7);\n"
      "    atomicAdd(c, 1ull); atomicAdd(d, 1.f); atomicExch(d, 2.f);\n"
      "    float4 v = make_float4(1, 2, 3, 4); dim3 g(2, 3); d[0] = v.w + g.z;\n}\n",
      { "int *", "unsigned *", "unsigned long long *", "float *" } },
    /* default arguments, which are never used */
    { K "(float *out, float a = 2.f, float2 b = { 1, 2 }) { *out = a + b.x; }\n", { "float *", "float", "gp_c64" } },
    /* one that is launched early */
    { K "(float *out)\n{\n    gp_grid_next();\n    gp_grid_wait();\n    *out = 1;\n}\nGP_EARLY(k)\n", { "float *" } },
    /* a comment, a string and another kernel that look like the entry */
    { "// __global__ void k(int)\n/* k(double) */ __device__ const char *t = \"k(\";\n"
      "extern \"C\" __global__ void kk(int a) {}\n" K "(float a) {}\n",
      { "float" } },
};

TEST_SOME(compiles, 2 * (sizeof good / sizeof *good), 3, 1)
{
    bool cuda = _i >= (int)(sizeof good / sizeof *good);
    size_t i = (size_t)_i % (sizeof good / sizeof *good);
    if (cuda && !attempt_nvrtc)
        return;
    attempt a = attempt_text(good[i].text, good[i].params, cuda);
    cu_print(&a.errs);
    ck_assert(a.ok);
}

/* ---- half precision --------------------------------------------------------- */

static double half_value(unsigned h)
{
    double m = (h & 0x3ff) + (h >> 10 & 31 ? 1024u : 0u);
    return (h & 0x8000 ? -1 : 1) * ldexp(m, h >> 10 & 31 ? (int)(h >> 10 & 31) - 25 : -24);
}

/* Is finite `h` what x rounds to, to nearest even? A neighbor above 65504 counts as 65536. */
static bool rounds_to(double x, unsigned h)
{
    unsigned a = h & 0x7fff;
    double far = fabs(x), v = fabs(half_value(h));
    if (a >= 0x7c00)
        return a == 0x7c00 && far >= 65520;
    double up = fabs(half_value(a + 1)) - far, down = a ? far - fabs(half_value(a - 1)) : INFINITY;
    double off = fabs(v - far);
    return (x == 0 || (x < 0) == (h >> 15)) && (off < up || (off == up && !(a & 1)))
        && (off < down || (off == down && !(a & 1)));
}

/* <cuda_fp16.h> beside other headers of the toolkit, where that is; its types are those of f16
 * buffers. (All that it has: test_half.c.) */
TEST(half_precision)
{
    if (access("/usr/local/cuda/include/cuda_bf16.h", R_OK)) {
        fprintf(stderr, "SKIPPED: cuda_bf16.h is not installed\n");
        return;
    }
    enum { N = 512 };
    static uint16_t a[N], b[N], sum[N], product[N], quotient[N], pair[2 * N], back[65536];
    gp_cpu_entry k = cu_compile("halves", CU_PARAMS("const gp_half *", "const gp_half *", "gp_half *",
                                                  "gp_half *", "gp_half *", "gp_half *", "gp_half *"),
        "#include <cuda_runtime.h>\n#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
        "extern \"C\" __global__ void halves(const __half *a, const __half *b, __half *sum,\n"
        "    __half *product, __half *quotient, __half *pair, __half *back)\n{\n"
        "    __shared__ __half s[256]; __shared__ __half2 t[256];\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    if (i < 512) {\n"
        "        s[threadIdx.x] = a[i]; t[threadIdx.x] = __halves2half2(a[i], b[i]);\n"
        "        __syncthreads();\n"
        "        sum[i] = __hadd(s[threadIdx.x], b[i]);\n"
        "        product[i] = a[i] * b[i]; quotient[i] = __hdiv(a[i], b[i]);\n"
        "        __half2 p = __hmul2(t[threadIdx.x], __float2half2_rn(3.0f));\n"
        "        pair[2 * i] = __low2half(p); pair[2 * i + 1] = __high2half(p);\n"
        "    }\n"
        "    back[i] = __float2half(__half2float(__ushort_as_half((unsigned short)i)));\n}\n", 0);
    for (int i = 0; i < N; i++)            /* all magnitudes, both signs; no zeros in b */
        a[i] = (uint16_t)(i * 12289 % 0x7c00 | (i & 1) << 15),
        b[i] = (uint16_t)((i * 7919 + 1) % 0x7bff + 1) | (uint16_t)((i & 2) << 14);
    void *p[] = { a, b, sum, product, quotient, pair, back }, *args[7];
    for (int i = 0; i < 7; i++)
        args[i] = &p[i];
    gp_cpu_runner *r = gp_cpu_runner_create();
    ck_assert(gp_cpu_grid(r, &k, (gp_dim3){ 256, 1, 1 }, (gp_dim3){ 256, 1, 1 }, 0, args));
    gp_cpu_runner_destroy(r);
    for (int i = 0; i < N; i++) {
        double x = half_value(a[i]), y = half_value(b[i]);
        ck_assert_msg(rounds_to(x + y, sum[i]), "%a + %a is %#x", x, y, sum[i]);
        ck_assert_msg(rounds_to(x * y, product[i]), "%a * %a is %#x", x, y, product[i]);
        ck_assert_msg(rounds_to(x / y, quotient[i]), "%a / %a is %#x", x, y, quotient[i]);
        ck_assert_msg(rounds_to(3 * x, pair[2 * i]), "3 * %a is %#x", x, pair[2 * i]);
        ck_assert_msg(rounds_to(3 * y, pair[2 * i + 1]), "3 * %a is %#x", y, pair[2 * i + 1]);
    }
    for (int i = 0; i < 65536; i++)
        ck_assert_uint_eq(back[i], (i & 0x7fff) > 0x7c00 ? 0x7fff : i);
}

/* As CUDA: what is too large is the nearest that fits, and a NaN is 0. */
TEST(conversions_saturate)
{
    static const float in[] = { 2.5f, -2.5f, 1e30f, -1e30f, NAN };
    static const int want[] = { 2, -2, INT_MAX, INT_MIN, 0 };
    static const unsigned uwant[] = { 3, 0, UINT_MAX, 0, 0 };
    static const long long lwant[] = { 2, -3, LLONG_MAX, LLONG_MIN, 0 };
    static const unsigned long long ulwant[] = { 2, 0, ULLONG_MAX, 0, 0 };
    int out[5];
    unsigned uout[5];
    long long lout[5];
    unsigned long long ulout[5];
    gp_cpu_entry k = cu_compile("convert", CU_PARAMS("const float *", "int *", "unsigned *", "long long *",
                                                   "unsigned long long *"),
        "extern \"C\" __global__ void convert(const float *in, int *a, unsigned *b, long long *c,\n"
        "                                   unsigned long long *d)\n{\n    int i = threadIdx.x;\n"
        "    a[i] = __float2int_rn(in[i]), b[i] = __float2uint_ru(in[i]);\n"
        "    c[i] = __double2ll_rd(in[i]), d[i] = __double2ull_rz(in[i]);\n}\n", 0);
    void *p[] = { (void *)in, out, uout, lout, ulout }, *args[5];
    for (int i = 0; i < 5; i++)
        args[i] = &p[i];
    gp_cpu_runner *r = gp_cpu_runner_create();
    ck_assert(gp_cpu_grid(r, &k, (gp_dim3){ 1, 1, 1 }, (gp_dim3){ 5, 1, 1 }, 0, args));
    gp_cpu_runner_destroy(r);
    ck_assert_mem_eq(out, want, sizeof out);
    ck_assert_mem_eq(uout, uwant, sizeof uout);
    ck_assert_mem_eq(lout, lwant, sizeof lout);
    ck_assert_mem_eq(ulout, ulwant, sizeof ulout);
}

/* <cooperative_groups.h>: of the toolkit for a GPU, gpipe's own for the CPU. */
TEST(groups)
{
    bool toolkit = !access("/usr/local/cuda/include/cooperative_groups.h", R_OK);
    for (int cuda = 0; cuda < 1 + (attempt_nvrtc && toolkit); cuda++) {
        attempt a = attempt_text("#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
                        K "(int *out)\n{\n"
                        "    cg::grid_group g = cg::this_grid(); cg::thread_block b = cg::this_thread_block();\n"
                        "    b.sync(); cg::sync(b);\n"
                        "    if (g.is_valid()) { g.sync(); cg::sync(g); }\n"
                        "    out[g.thread_rank()] = (int)(g.size() + g.num_threads() + g.block_rank()\n"
                        "        + g.num_blocks() + g.block_index().x + g.thread_index().x + g.dim_blocks().x\n"
                        "        + g.group_dim().x + b.size() + b.num_threads() + b.thread_rank()\n"
                        "        + b.group_index().x + b.thread_index().x + b.dim_threads().x + b.group_dim().x);\n"
                        "}\n", CU_PARAMS("int *"), cuda);
        ck_assert_msg(a.ok, "%s", a.errs.n ? a.errs.e[0].msg : "?");
    }
}

/* A header in the folder that gpipe is started in is not the one beside the source. */
TEST(header_beside_the_source)
{
    ck_assert_int_eq(mkdir(cu_path("started"), 0755), 0);
    cu_write("beside.h", "enum { BESIDE = 1 };\n");
    cu_write("started/beside.h", "#error \"of the folder that we are in\"\n");
    ck_assert_int_eq(chdir(cu_path("started")), 0);
    for (int cuda = 0; cuda < 1 + attempt_nvrtc; cuda++) {
        attempt a = attempt_text("#include \"beside.h\"\n" K "(int *out) { *out = BESIDE; }\n", CU_PARAMS("int *"), cuda);
        ck_assert_msg(a.ok, "%s: %s", cuda ? "nvrtc" : "cpu", a.errs.n ? a.errs.e[0].msg : "?");
    }
}

/* ---- names ------------------------------------------------------------------ */

/* Names that gpipe's own headers use for other things, in a define or in the source. */
TEST_SOME(any_name_may_be_defined, 22, 7, 1)
{
    static const char *const names[] = {
        "N=4", "K=4", "I=4", "A=4", "T=4", "F=4", "B=4", "H=4", "W=4", "n=4", "x=4", "y=4",
        "name=4", "args=4", "value=4", "index=4", "block=4", "grid=4", "ok=4", "type=4", "arg=4",
        "entry=4",
    };
    const char *define[] = { names[_i] };
    char *name = format("%.*s", (int)strcspn(names[_i], "="), names[_i]);
    char *text = format(K "(float *out) { out[0] = %s; }\n", name);
    cu_write("k.cu", text);
    gp_source src = attempt_source("k", CU_PARAMS("float *"));
    src.define = define, src.ndefine = 1;
    attempt a = attempt_compile(&src, false);
    ck_assert_msg(a.ok, "%s: %s", names[_i], a.errs.n ? a.errs.e[0].msg : "");
    text = format("#define %s 4\n" K "(float *out) { out[0] = %s; }\n", name, name);
    cu_write("k.cu", text);
    src.ndefine = 0;
    a = attempt_compile(&src, false);
    ck_assert_msg(a.ok, "#define %s: %s", name, a.errs.n ? a.errs.e[0].msg : "");
}

/* Words of C++ that what comes behind the source is made of. */
static const struct { const char *text; bool cuda; } of_cpp[] = {
    { "#define static_assert(...)\n#define decltype(x) int\n" K "(float *out) { out[0] = 1; }\n", true },
    { "#define extern\n#define const\n#define typename class\n#undef extern\n" K "(float *out) { out[0] = 1; }\n", true },
    { "#define __attribute__(x)\n#define __asm__(x) 3\nstruct __align__(32) S { int a; };\n"
      "static __noinline__ __device__ int f(int a) { return a; }\nstatic_assert(alignof(S) == 32, \"lost\");\n"
      K "(float *out) { extern __shared__ int s[]; s[0] = f(1); out[0] = s[0]; }\n", false },
};

TEST_EACH(words_may_be_defined, of_cpp)
{
    for (int cuda = 0; cuda < 1 + (attempt_nvrtc && of_cpp[_i].cuda); cuda++) {
        attempt a = attempt_text(of_cpp[_i].text, CU_PARAMS("float *"), cuda);
        cu_print(&a.errs);
        ck_assert(a.ok);
    }
}

/* All of them at once, in the source, where what gpipe adds to it comes behind: also names of
 * attributes and of what is in gpipe's structs. */
TEST(all_names_may_be_defined)
{
    static const char *const names[] = {
        "A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "L", "M", "N", "O", "P", "Q", "R", "S",
        "T", "U", "V", "W", "X", "Y", "Z", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "l",
        "m", "n", "o", "p", "q", "r", "s", "t", "u", "v", "w", "min", "max", "abs", "in", "out",
        "name", "args", "arg", "value", "index", "indices", "block", "grid", "dim", "next", "wait",
        "shared", "visibility", "always_inline", "aligned", "noinline", "type", "types", "ok",
        "entry", "threads", "bytes", "run", "unpack", "count", "check", "size", "nargs", "kernel",
        "frame", "valid", "bits", "re", "im", "width", "height", "from", "to", "lo", "hi", "old",
        "now", "want", "me", "file", "line", "self", "data", "hidden", "constructor", "used",
        "object", "linux", "unix",
    };
    static char text[20000];
    size_t n = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        n += (size_t)sprintf(text + n, "#define %s 640 +\n", names[i]);
    /* NVRTC's own __shared__ is made of the word. */
    n += (size_t)sprintf(text + n, "#ifdef __CUDACC_RTC__\n#undef shared\n#endif\n%s",
                         K "(const float *IN, gp_c64 *OUT, const gp_frame_info *FR,"
                         " unsigned long long NN)\n{\n    GP_SHARED(float, SH);\n"
                         "    extern __shared__ int more[];\n    __syncthreads();\n"
                         "    SH[0] = more[1]; *OUT = gp_c64(); *(float *)OUT = W *IN;\n}\n");
    for (int cuda = 0; cuda < 1 + attempt_nvrtc; cuda++) {
        attempt a = attempt_text(text, CU_PARAMS("const float *", "gp_c64 *", "const gp_frame_info *",
                                        "unsigned long long"), cuda);
        cu_print(&a.errs);
        ck_assert(a.ok);
    }
}

TEST(kernels_that_are_launched_early)
{
#define W "void k() { gp_grid_wait(); }\n"
    static const struct { const char *text; bool early; } is[] = {
        { W "GP_EARLY(k)\n", true }, { W "\n  GP_EARLY ( k );\n", true }, { W "GP_EARLY(kk)\nGP_EARLY(k)\n", true },
        { "GP_EARLY(k)\n", false },
        { "", false }, { W "GP_EARLY(kk)\n", false }, { W "GP_EARLY(K)\n", false }, { W "NO_GP_EARLY(k)\n", false },
        { W "GP_EARLY", false }, { W "GP_EARLY(k", false },
    };
    for (size_t i = 0; i < sizeof is / sizeof *is; i++)
        ck_assert_msg(gp_source_is_early(is[i].text, "k") == is[i].early, "%s", is[i].text);
}

/* All letters and what else the headers that gpipe has of its own use, in the stage's `define`,
 * which stands before the source includes them. */
TEST(headers_of_gpipe_take_no_name)
{
    static const char *const words[] = {
        "min", "max", "abs", "in", "out", "name", "value", "index", "block", "grid", "size", "ok",
        "sync", "rank", "old", "way", "rest", "far", "off", "lo", "hi", "re", "im", "each", "half",
        "uint", "ushort", "ll", "ull", "rn", "rz", "rd", "ru", "eq", "ne", "lt", "le", "gt", "ge", "odd",
        "bits", "thread_block", "num_threads", "group_dim", "WIDTH", "HEIGHT", "TILE", "SIZE", "PI",
    };
    enum { LETTERS = 52, WORDS = sizeof words / sizeof *words };
    static char text[LETTERS + WORDS][40];
    const char *define[LETTERS + WORDS];
    for (int i = 0; i < LETTERS + WORDS; i++) {
        if (i < LETTERS)
            snprintf(text[i], sizeof text[i], "%c=float", i < 26 ? 'A' + i : 'a' + i - 26);
        else
            snprintf(text[i], sizeof text[i], "%s=", words[i - LETTERS]);
        define[i] = text[i];
    }
    cu_write("k.cu", "#include <cooperative_groups.h>\n#include <cuda_fp16.h>\n#include <cuda_runtime.h>\n"
             "#include <cuda_fp16.h>\nextern \"C\" __global__ void kernel(T *OUT)\n{\n    A ZZ = 1;\n"
             "    OUT[0] = __half2float(__hadd(__float2half(1), __float2half(2))) + ZZ;\n}\n");
    gp_source src = attempt_source("kernel", CU_PARAMS("float *"));
    src.define = define, src.ndefine = LETTERS + WORDS;
    attempt a = attempt_compile(&src, false);
    cu_print(&a.errs);
    ck_assert(a.ok);
}

SUITE(cc, tcase_add_unchecked_fixture(tc, attempt_setup, cu_close))
