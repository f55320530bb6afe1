/* test_cc.c - users' kernels through the C++ compiler and NVRTC: what compiles,
 * what the errors say and where, what is compiled only once. */
#include <check.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "device/backend.h"
#if GP_CUDA
#include "cuda/nvrtc.h"
#endif
#include "lib/cu.h"

Suite *suite_cc(void);

#define K "extern \"C\" __global__ void k"

typedef struct attempt { bool ok; gp_errs errs; } attempt;

static gp_source source(const char *entry, const char *const *params)
{
    gp_source src = { .path = cu_path("k.cu"), .entry = entry, .param = params,
                      .at = { "test.yaml", 3, 5, 1 } };
    while (params[src.nparam])
        src.nparam++;
    return src;
}

static attempt compile_source(const gp_source *src, bool cuda)
{
    attempt a = { 0 };
    if (cuda) {
#if GP_CUDA
        void *image;
        size_t bytes;
        a.ok = gp_nvrtc_compile(src, 90, NULL, &image, &bytes, &a.errs);
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

static attempt try(const char *text, const char *const *params, bool cuda)
{
    cu_write("k.cu", text);
    gp_source src = source("k", params);
    return compile_source(&src, cuda);
}

static bool have_nvrtc;

static void setup(void)
{
    cu_open();
    attempt a = try(K "() {}\n", CU_PARAMS(NULL), true);
    have_nvrtc = a.ok;
    if (!have_nvrtc)
        fprintf(stderr, "SKIPPED: tests of NVRTC: %s\n", a.errs.e[0].msg);
}

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
    /* a comment, a string and another kernel that look like the entry */
    { "// __global__ void k(int)\n/* k(double) */ __device__ const char *t = \"k(\";\n"
      "extern \"C\" __global__ void kk(int a) {}\n" K "(float a) {}\n",
      { "float" } },
};

START_TEST(compiles)
{
    bool cuda = _i >= (int)(sizeof good / sizeof *good);
    size_t i = (size_t)_i % (sizeof good / sizeof *good);
    if (cuda && !have_nvrtc)
        return;
    attempt a = try(good[i].text, good[i].params, cuda);
    cu_print(&a.errs);
    ck_assert(a.ok);
}
END_TEST

/* ---- half precision --------------------------------------------------------- */

static double half_value(unsigned h)
{
    double m = (h & 0x3ff) + (h >> 10 & 31 ? 1024u : 0u);
    return (h & 0x8000 ? -1 : 1) * ldexp(m, h >> 10 & 31 ? (int)(h >> 10 & 31) - 25 : -24);
}

/* Is finite `h` what x rounds to, to nearest even? A neighbour above 65504 counts as 65536. */
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
START_TEST(half_precision)
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
END_TEST

/* <cooperative_groups.h>: of the toolkit for a GPU, gpipe's own for the CPU. */
START_TEST(groups)
{
    bool toolkit = !access("/usr/local/cuda/include/cooperative_groups.h", R_OK);
    for (int cuda = 0; cuda < 1 + (have_nvrtc && toolkit); cuda++) {
        attempt a = try("#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
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
END_TEST

START_TEST(missing_toolkit)
{
    for (int cuda = 0; cuda < 1 + have_nvrtc; cuda++) {
        attempt a = try("#include <cuda_absent.h>\n" K "() {}\n", CU_PARAMS(NULL), cuda);
        ck_assert(!a.ok);
        ck_assert_int_eq(a.errs.n, 1);
        ck_assert_int_eq(a.errs.e[0].at.line, 1);
        ck_assert_ptr_nonnull(strstr(a.errs.e[0].msg, "cuda_absent.h"));
        ck_assert_ptr_nonnull(strstr(a.errs.e[0].msg, "; it is of the CUDA toolkit: install it"));
    }
}
END_TEST

/* ---- what does not ------------------------------------------------------- */

enum { CPU = 1, CUDA = 2, BOTH = 3 };

static const struct { int on; const char *text, *params[8]; int line; const char *msg; } bad[] = {
    { CPU, "\n\n" K "(float a)\n{\n    float b = undeclared;\n}\n", { "float" }, 5,
      "'undeclared'" },
    { CUDA, "\n\n" K "(float a)\n{\n    float b = undeclared;\n}\n", { "float" }, 5,
      "identifier \"undeclared\" is undefined" },
    { BOTH, "\n" K "(const float *in, float *out,\n    int n)\n{}\n",
      { "const float *", "float *", "float" }, 3,
      "parameter 3 of 'k' is 'int n', but args passes 'float'; args asks for "
      "k(const float *, float *, float)" },
    { BOTH, "\n" K "(const float *in, float *out) {}\n", { "const float *", "float *", "int" }, 2,
      "'k' has 2 parameters, but args gives 3 values: "
      "k(const float *, float *, int)" },
    { BOTH, K "(int a, int b) {}\n", { "int" }, 1, "'k' has 2 parameters, but args gives 1 value: k(int)" },
    { BOTH, K "(float *in, float *out) {}\n", { "const float *", "float *" }, 1,
      "parameter 1 of 'k' is 'float *in', but args passes 'const float *'" },
    { BOTH, K "(unsigned char *p) {}\n", { "signed char *" }, 1, "parameter 1 of 'k'" },
    { BOTH, "extern \"C\" __global__ void other() {}\n", { NULL }, 3,
      "no kernel 'k' in '" },
    { BOTH, "__global__ void k(float a) {}\n", { "float" }, 1, "extern \"C\" __global__ " },
    { CPU, K "(int *out)\n{\n    int v = *out;\n    *out = __shfl_down_sync(~0u, v, 1);\n}\n",
      { "int *" }, 4, "warp intrinsics need a GPU: '__shfl_down_sync'" },
    { CPU, K "(int *out)\n{\n    __syncwarp();\n}\n", { "int *" }, 3,
      "warp intrinsics need a GPU: '__syncwarp'" },
    { CPU, "#include \"none.h\"\n" K "() {}\n", { NULL }, 1, "none.h" },
    { CUDA, "#include \"none.h\"\n" K "() {}\n", { NULL }, 1, "none.h" },
    { BOTH, "#error no good\n" K "() {}\n", { NULL }, 1, "no good" },
};

START_TEST(errors)
{
    size_t i = (size_t)_i / 2;
    bool cuda = _i % 2;
    if (!(bad[i].on & (cuda ? CUDA : CPU)) || (cuda && !have_nvrtc))
        return;
    attempt a = try(bad[i].text, bad[i].params, cuda);
    ck_assert(!a.ok);
    ck_assert_int_ge(a.errs.failed, 1);
    const gp_err *e = &a.errs.e[0];
    ck_assert_msg(strstr(e->msg, bad[i].msg) != NULL, "case %zu: '%s' is not in '%s'", i,
                  bad[i].msg, e->msg);
    if (!(cuda && strstr(e->msg, "C++ name")))
        ck_assert_msg(e->at.line == bad[i].line, "case %zu: line %d: %s", i, e->at.line, e->msg);
    for (int k = 0; k < a.errs.n; k++)
        ck_assert_ptr_null(strstr(a.errs.e[k].msg, "gpipe-check"));
}
END_TEST

/* Both places: in the source, and in the YAML that passes something else. */
static const struct { const char *text, *params[4], *msg; } both[] = {
    { K "(const float *in,\n int n) {}\n", { "const float *", "float" },
      "parameter 2 of 'k' is 'int n', but args passes 'float' (p.yaml:11:22); args asks for " },
    { K "(const float *in,\n int n) {}\n", { "const float *", "int", "float" },
      "'k' has 2 parameters, but args gives 3 values (p.yaml:12:23): k(" },
    { K "(const float *in,\n int n) {}\n", { "const float *" },
      "'k' has 2 parameters, but args gives 1 value (p.yaml:10:21): k(" },
};

START_TEST(errors_of_args_name_both_places)
{
    const gp_loc at[] = { { "p.yaml", 10, 21, 2 }, { "p.yaml", 11, 22, 2 }, { "p.yaml", 12, 23, 2 } };
    cu_write("k.cu", both[_i].text);
    gp_source src = source("k", both[_i].params);
    src.param_at = at;
    for (int cuda = 0; cuda < 1 + have_nvrtc; cuda++) {
        attempt a = compile_source(&src, cuda);
        ck_assert(!a.ok);
        ck_assert_int_eq(a.errs.e[0].at.line, _i ? 1 : 2);
        ck_assert_msg(strstr(a.errs.e[0].msg, both[_i].msg) != NULL, "%s", a.errs.e[0].msg);
    }
}
END_TEST

START_TEST(error_in_an_include)
{
    cu_write("bad.h", "\n\nint x = nothing;\n");
    attempt a = try("\n#include \"bad.h\"\n" K "() {}\n", CU_PARAMS(NULL), false);
    ck_assert(!a.ok);
    ck_assert_int_eq(a.errs.e[0].at.line, 2);
    ck_assert_ptr_nonnull(strstr(a.errs.e[0].msg, "bad.h', line 3: "));
}
END_TEST

START_TEST(many_errors_are_counted)
{
    attempt a = try(K "()\n{\na;\nb;\nc;\nd;\ne;\nf;\ng;\n}\n", CU_PARAMS(NULL), false);
    ck_assert_int_eq(a.errs.n, 6);
    ck_assert_int_eq(a.errs.e[4].at.line, 7);
    ck_assert_str_eq(a.errs.e[5].msg, "the compiler found 2 more errors");
}
END_TEST

static const gp_kernel *compile_nothing(gp_dev *dev, const gp_source *src, gp_errs *errs)
{
    (void)dev, (void)src;
    gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "no room");
    return NULL;
}

/* What a back end says of a kernel is at its stage unless it knows better. */
START_TEST(errors_have_a_place)
{
    static const gp_backend fails = { .compile = compile_nothing };
    gp_dev dev = { .backend = &fails };
    gp_source src = source("k", CU_PARAMS(NULL));
    gp_errs errs = { .n = 0 };
    ck_assert_ptr_null(gp_kernel_compile(&dev, &src, &errs));
    ck_assert_int_eq(errs.e[0].at.line, 3);
    gp_fail(&errs, GP_E_RESOURCE, (gp_loc){ 0 }, "elsewhere");
    ck_assert_ptr_null(errs.e[1].at.file);
}
END_TEST

START_TEST(no_source)
{
    gp_source src = source("k", CU_PARAMS(NULL));
    src.path = cu_path("missing.cu");
    attempt a = compile_source(&src, false);
    ck_assert(!a.ok);
    ck_assert_int_eq(a.errs.e[0].at.line, 3);
    ck_assert_ptr_nonnull(strstr(a.errs.e[0].msg, "missing.cu' cannot be read: No such file"));
}
END_TEST

/* What has no end, or no contents, is an error, and nothing waits for it. */
static const struct { const char *path; bool fifo; off_t bytes; const char *msg; } odd[] = {
    { "/dev/zero", false, 0, "'/dev/zero' is not a regular file" },
    { "fifo.cu", true, 0, "fifo.cu' is not a regular file" },
    { "folder.cu", false, 0, "folder.cu' is not a regular file" },
    { "large.cu", false, (16 << 20) + 1, "large.cu' is larger than 16 MiB" },
    { "largest.cu", false, 16 << 20, "largest.cu' is not text" },
};

START_TEST(odd_sources)
{
    gp_source src = source("k", CU_PARAMS(NULL));
    src.path = *odd[_i].path == '/' ? odd[_i].path : cu_path(odd[_i].path);
    if (odd[_i].bytes)
        cu_write(odd[_i].path, "");
    if (odd[_i].fifo)
        mkfifo(src.path, 0600);
    else if (odd[_i].bytes)
        ck_assert_int_eq(truncate(src.path, odd[_i].bytes), 0);
    else if (*odd[_i].path != '/')
        mkdir(src.path, 0700);
    for (int cuda = 0; cuda < 1 + have_nvrtc; cuda++) {
        attempt a = compile_source(&src, cuda);
        ck_assert(!a.ok);
        ck_assert_int_eq(a.errs.n, 1);
        ck_assert_int_eq(a.errs.e[0].at.line, 3);
        ck_assert_msg(strstr(a.errs.e[0].msg, odd[_i].msg) != NULL, "%s", a.errs.e[0].msg);
    }
}
END_TEST

static const char *const odd_headers[] = { "\"/dev/zero\"", "</dev/zero>", "\"fifo.h\"",
                                           "<fifo.h>", "\"../dev/zero\"" };

START_TEST(odd_headers_are_errors)
{
    char text[200];
    mkfifo(cu_path("fifo.h"), 0600);
    snprintf(text, sizeof text, "// #include \"fifo.h\"\n#include %s\n" K "() {}\n",
             odd_headers[_i]);
    for (int cuda = 0; cuda < 1 + have_nvrtc; cuda++) {
        attempt a = try(text, CU_PARAMS(NULL), cuda);
        ck_assert(!a.ok);
        ck_assert_int_eq(a.errs.e[0].at.line, 2);
        if (_i < 4)
            ck_assert_ptr_nonnull(strstr(a.errs.e[0].msg, "' is not a regular file"));
    }
    unlink(cu_path("fifo.h"));
}
END_TEST

/* An endless header of a header: the compiler ends at a bound of memory, or takes it as empty,
 * which is refused. */
START_TEST(endless_header)
{
    cu_write("endless.h", "#include \"/dev/zero\"\n");
    attempt a = try("#include \"endless.h\"\n" K "() {}\n", CU_PARAMS(NULL), false);
    ck_assert(!a.ok);
    ck_assert_int_ge(a.errs.n, 1);
}
END_TEST

/* A header in the folder that gpipe is started in is not the one beside the source. */
START_TEST(header_beside_the_source)
{
    ck_assert_int_eq(mkdir(cu_path("started"), 0755), 0);
    cu_write("beside.h", "enum { BESIDE = 1 };\n");
    cu_write("started/beside.h", "#error \"of the folder that we are in\"\n");
    ck_assert_int_eq(chdir(cu_path("started")), 0);
    for (int cuda = 0; cuda < 1 + have_nvrtc; cuda++) {
        attempt a = try("#include \"beside.h\"\n" K "(int *out) { *out = BESIDE; }\n", CU_PARAMS("int *"), cuda);
        ck_assert_msg(a.ok, "%s: %s", cuda ? "nvrtc" : "cpu", a.errs.n ? a.errs.e[0].msg : "?");
    }
}
END_TEST

START_TEST(no_compiler)
{
    setenv("PATH", cu_path("empty"), 1);
    unsetenv("CXX");
    attempt a = try(K "() {}\n", CU_PARAMS(NULL), false);
    ck_assert(!a.ok);
    ck_assert_str_eq(a.errs.e[0].at.file, "test.yaml");
    ck_assert_ptr_nonnull(strstr(a.errs.e[0].msg, "no C++ compiler"));
    setenv("CXX", "no-such-compiler -O3", 1);
    a = try(K "() {}\n", CU_PARAMS(NULL), false);
    ck_assert(!a.ok);
    ck_assert_ptr_nonnull(strstr(a.errs.e[0].msg, "no compiler 'no-such-compiler -O3'"));
}
END_TEST

/* A compiler that was killed, or that has not what it needs, says nothing of the source. */
static const struct { const char *does, *says; } ends[] = {
    { "kill -9 $$", "the compiler 'CXX' was killed" },
    { "kill -11 $$", "the compiler 'CXX' was killed" },
    { "echo 'g++: fatal error: Killed signal terminated program cc1plus' >&2; exit 1",
      "the compiler 'CXX' gave up: g++: fatal error: Killed signal terminated program cc1plus" },
    { "printf '\ncc1plus: out of memory allocating 65536 bytes after a total of 9 bytes\n' >&2; exit 1",
      "the compiler 'CXX' gave up: cc1plus: out of memory allocating 65536 bytes" },
    { "echo '/tmp/x.s: Fatal error: cannot write: No space left on device' >&2; exit 1",
      "the compiler 'CXX' gave up: /tmp/x.s: Fatal error: cannot write: No space left on device" },
    { "echo 'k.cu:3:1: error: #error out of memory' >&2; exit 1", NULL },
};

START_TEST(a_compiler_that_ends)
{
    char text[400], says[900], *at;
    snprintf(text, sizeof text, "#!/bin/sh\n%s\n", ends[_i].does);
    cu_write("ends", text);
    ck_assert_int_eq(chmod(cu_path("ends"), 0755), 0);
    setenv("CXX", cu_path("ends"), 1);
    snprintf(text, sizeof text, K "(int *out) { /* %d */ }\n", _i);
    attempt a = try(text, CU_PARAMS("int *"), false);
    ck_assert(!a.ok);
    ck_assert_int_eq(gp_errs_exit(&a.errs), ends[_i].says ? 4 : 3);
    if (!ends[_i].says)
        return;
    at = strstr(ends[_i].says, "CXX");
    snprintf(says, sizeof says, "%.*s%s%s", (int)(at - ends[_i].says), ends[_i].says, cu_path("ends"), at + 3);
    ck_assert_msg(!strncmp(a.errs.e[0].msg, says, strlen(says)), "%s", a.errs.e[0].msg);
    ck_assert_str_eq(a.errs.e[0].at.file, "test.yaml");
}
END_TEST

/* Where others can put a folder of theirs in the place of ours nothing is compiled. */
START_TEST(a_folder_that_others_may_change)
{
    static const struct { mode_t mode; bool ok; } cases[] = { { 0700, true }, { 01777, true }, { 0777, false },
                                                            { 0770, false }, { 01770, true } };
    ck_assert(!mkdir(cu_path("tmp"), 0700));
    setenv("TMPDIR", cu_path("tmp"), 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[100];
        ck_assert(!chmod(cu_path("tmp"), cases[i].mode));
        snprintf(text, sizeof text, K "(int *out) { /* tmp %zu */ }\n", i);
        attempt a = try(text, CU_PARAMS("int *"), false);
        ck_assert_msg(a.ok == cases[i].ok, "%o: %s", (unsigned)cases[i].mode, a.errs.n ? a.errs.e[0].msg : "?");
        if (!a.ok) {
            ck_assert_int_eq(gp_errs_exit(&a.errs), 4);
            ck_assert_ptr_nonnull(strstr(a.errs.e[0].msg, "/tmp', where others may rename files; set TMPDIR"));
        }
    }
}
END_TEST

/* ---- the cache ------------------------------------------------------------- */

/* A compiler that writes a line to a file each time it runs. */
static void counting_compiler_of(const char *cxx)
{
    char text[1000];
    snprintf(text, sizeof text, "#!/bin/sh\necho run >>'%s'\nexec %s \"$@\"\n",
             cu_path("runs"), cxx);
    cu_write("cxx", text);
    ck_assert_int_eq(chmod(cu_path("cxx"), 0755), 0);
    setenv("CXX", cu_path("cxx"), 1);
    unlink(cu_path("runs"));
}

static void counting_compiler(void)
{
    counting_compiler_of(getenv("CXX") ? getenv("CXX") : "c++");
}

static int runs(void)
{
    struct stat st;
    return stat(cu_path("runs"), &st) ? 0 : (int)(st.st_size / 4);
}

#define COMPILES(src, n)                                   \
    do {                                                   \
        attempt a_ = compile_source((src), false);         \
        cu_print(&a_.errs);                                \
        ck_assert(a_.ok);                                  \
        ck_assert_int_eq(runs(), (n));                     \
    } while (0)

START_TEST(compiles_once)
{
    counting_compiler();
    cu_write("sub.h", "#include \"subsub.h\"\n");
    cu_write("subsub.h", "enum { WIDTH = 3 };\n");
    const char *text = "#include \"sub.h\"\nextern __shared__ int s[];\n"
                       K "(int *out) { out[0] = WIDTH + R; s[0] = 0; }\n";
    const char *one[] = { "R=1" }, *two[] = { "R=2" };
    cu_write("k.cu", text);
    gp_source src = source("k", CU_PARAMS("int *"));
    src.define = one, src.ndefine = 1;
    COMPILES(&src, 1);
    COMPILES(&src, 1);
    src.define = two;                      /* a define, shared memory, options ... */
    COMPILES(&src, 2);
    src.shared = 100;
    COMPILES(&src, 3);
    cu_write("subsub.h", "enum { WIDTH = 4 };\n");     /* ... an include's include */
    COMPILES(&src, 4);
    COMPILES(&src, 4);
    char cxx[500];
    snprintf(cxx, sizeof cxx, "%s -O1", cu_path("cxx"));
    setenv("CXX", cxx, 1);
    COMPILES(&src, 5);
    cu_write("subsub.h", "enum { WIDTH = 3 };\n");
    src.shared = 0, src.define = one;
    setenv("CXX", cu_path("cxx"), 1);
    COMPILES(&src, 5);                     /* as the first time */
}
END_TEST

/* Wherever the compiler finds a header, the kernel is compiled again once it has changed,
 * and only then; and when another file comes to lie where the compiler looks first. */
static const struct {
    const char *include, *variable, *value;    /* the source's line; FOLDER stands for the folder */
    const char *header, *shadow;               /* the file that it names; one that would hide it */
} found[] = {
    { "#include \"sub.h\"", NULL, NULL, "sub.h", NULL },
    { "#define HDR \"sub.h\"\n#include HDR", NULL, NULL, "sub.h", NULL },
    { "#inc\\\nlude \"sub.h\"", NULL, NULL, "sub.h", NULL },
    { "/* a */ # /* b */ include /* c */ \"sub.h\"", NULL, NULL, "sub.h", NULL },
    { "%:include \"sub.h\"", NULL, NULL, "sub.h", NULL },
    { "#include \"in c/$x#/a.h\"\n", NULL, NULL, "in c/$x#/a.h", NULL },
    { "#include <own.h>", "CXX", "CXX -IFOLDER/none -IFOLDER/one", "one/own.h", "none/own.h" },
    { "#include \"own.h\"", "CXX", "CXX -iquote FOLDER/one", "one/own.h", "own.h" },
    { "#include <own.h>", "CPATH", "FOLDER/none:FOLDER/one", "one/own.h", "none/own.h" },
    { "#include <own.h>", "CPLUS_INCLUDE_PATH", "FOLDER/none:FOLDER/one", "one/own.h",
      "none/own.h" },
    { "#include \"top.h\"", "CPATH", "FOLDER/one", "one/own.h", "own.h" },
    { "#include <math.h>\nenum { WIDTH = 3 };\n", "CXX", "CXX -IFOLDER/one", "unused.h",
      "one/math.h" },
};

/* `text` with FOLDER and CXX put in. */
static const char *filled(const char *text, char buf[1000])
{
    const char *folder = cu_path(""), *cxx = getenv("CXX");
    size_t n = 0;
    for (; *text && n < 900; text++)
        if (!strncmp(text, "FOLDER", 6))
            n += (size_t)snprintf(buf + n, 1000 - n, "%s", folder), text += 5;
        else if (!strncmp(text, "CXX", 3))
            n += (size_t)snprintf(buf + n, 1000 - n, "%s", cxx), text += 2;
        else
            buf[n++] = *text;
    buf[n] = '\0';
    return buf;
}

START_TEST(compiled_again_when_a_header_changes)
{
    char text[1300], value[1000];
    bool changes = strcmp(found[_i].header, "unused.h") != 0;
    counting_compiler();
    mkdir(cu_path("one"), 0755), mkdir(cu_path("none"), 0755);
    mkdir(cu_path("in c"), 0755), mkdir(cu_path("in c/$x#"), 0755);
    unlink(cu_path("own.h"));
    unlink(cu_path("none/own.h"));
    cu_write("top.h", "#include \"own.h\"\n");
    snprintf(text, sizeof text, "%s\n%s(int *out) { out[0] = WIDTH; /* %d */ }\n",
             found[_i].include, K, _i);
    cu_write("k.cu", text);
    cu_write(found[_i].header, "enum { WIDTH = 3 };\n");
    if (found[_i].variable)
        setenv(found[_i].variable, filled(found[_i].value, value), 1);
    gp_source src = source("k", CU_PARAMS("int *"));
    COMPILES(&src, 1);
    COMPILES(&src, 1);
    cu_write(found[_i].header, "enum { WIDTH = 4 };\n");
    COMPILES(&src, 1 + changes);
    COMPILES(&src, 1 + changes);
    if (found[_i].shadow) {
        cu_write(found[_i].shadow, changes ? "enum { WIDTH = 5 };\n" : "#include_next <math.h>\n");
        COMPILES(&src, 2 + changes);
        COMPILES(&src, 2 + changes);
    }
}
END_TEST

#if GP_CUDA
static void *image_of(const gp_source *src, size_t *bytes)
{
    void *image;
    gp_errs errs = { 0 };
    bool ok = gp_nvrtc_compile(src, 90, NULL, &image, bytes, &errs);
    cu_print(&errs);
    ck_assert(ok);
    return image;
}

#endif

/* A header that was only asked for is found once it is there. */
static const struct { const char *define, *text; } askers[] = {
    { NULL, "#if __has_include(\"opt.h\")\n#include \"opt.h\"\n#else\nenum { WIDTH = 3 };\n#endif\n" },
    { NULL, "#if __has_\\\ninclude(\"opt.h\")\n#include \"opt.h\"\n#else\nenum { WIDTH = 3 };\n#endif\n" },
    { NULL, "#include \"asks.h\"\n" },
    { "ASKS=__has_include(\"opt.h\")", "#if ASKS\n#include \"opt.h\"\n#else\nenum { WIDTH = 3 };\n#endif\n" },
};

START_TEST(compiled_again_when_what_is_asked_for_appears)
{
    char text[500];
    counting_compiler();
    cu_write("asks.h", askers[0].text);
    unlink(cu_path("opt.h"));
    snprintf(text, sizeof text, "%s" K "(int *out) { out[0] = WIDTH; /* %d */ }\n", askers[_i].text, _i);
    cu_write("k.cu", text);
    gp_source src = source("k", CU_PARAMS("int *"));
    src.define = &askers[_i].define, src.ndefine = askers[_i].define != NULL;
    COMPILES(&src, 1);
    cu_write("opt.h", "enum { WIDTH = 4 };\n");
    COMPILES(&src, 2);
#if GP_CUDA
    if (!have_nvrtc)
        return;
    void *image[2];
    size_t n[2];
    for (int i = 0; i < 2; i++) {
        image[i] = image_of(&src, &n[i]);
        unlink(cu_path("opt.h"));
    }
    ck_assert(n[0] != n[1] || memcmp(image[0], image[1], n[0]) != 0);
    free(image[0]), free(image[1]);
#endif
}
END_TEST

enum { HEADERS = 24 };

static const char *header_path[HEADERS];

/* Each includes all, itself too, by two names. */
static void write_headers(int changed)
{
    static char text[HEADERS * 60];
    for (int i = 0; i < HEADERS; i++) {
        size_t n = (size_t)sprintf(text, "#pragma once\n// %d %d\n", i, i == changed);
        for (int k = 0; k < HEADERS; k++)
            n += (size_t)sprintf(text + n, "#include \"%sall%d.h\"\n", k % 2 ? "" : "sub/../", k);
        FILE *f = fopen(header_path[i], "w");
        ck_assert_ptr_nonnull(f);
        ck_assert_int_ge(fputs(text, f), 0);
        ck_assert_int_eq(fclose(f), 0);
    }
}

/* Each header counts; none that includes itself is gone through for ever. */
START_TEST(headers_may_include_each_other)
{
    counting_compiler();
    ck_assert_int_eq(mkdir(cu_path("sub"), 0755), 0);
    for (int i = 0; i < HEADERS; i++) {
        char name[20];
        snprintf(name, sizeof name, "all%d.h", i);
        header_path[i] = cu_path(name);
    }
    cu_write("k.cu", "#include \"all0.h\"\n" K "() {}\n");
    gp_source src = source("k", CU_PARAMS(NULL));
    write_headers(-1);
    COMPILES(&src, 1);
    COMPILES(&src, 1);
    for (int i = 0; i < HEADERS; i += 7) {
        write_headers(i);
        COMPILES(&src, 2 + i / 7);
    }
    write_headers(-1);
    COMPILES(&src, 1 + (HEADERS + 6) / 7);         /* as the first time */
}
END_TEST

#if GP_CUDA
static const char *const included[] = {
    "#include \"own.h\"", "#include <own.h>", "#define HDR <own.h>\n#include HDR",
    "#include \"top.h\"", "#inc\\\nlude \"own.h\"",
};

/* The same for NVRTC: never an old image, and one that is kept. */
START_TEST(nvrtc_compiles_again_when_a_header_changes)
{
    if (!have_nvrtc)
        return;
    char text[300], command[1000];
    size_t n[3];
    snprintf(text, sizeof text, "rtc%d", _i);
    const char *cache = cu_path(text);
    setenv("XDG_CACHE_HOME", cache, 1);
    snprintf(text, sizeof text, "%s\n#include <math.h>\n%s(int *out) { out[0] = WIDTH; }\n",
             included[_i], K);
    cu_write("k.cu", text);
    cu_write("top.h", "#pragma once\n#include <own.h>\n");
    cu_write("own.h", "enum { WIDTH = 1234567 };\n");
    gp_source src = source("k", CU_PARAMS("int *"));
    void *a = image_of(&src, &n[0]);
    cu_write("own.h", "enum { WIDTH = 7654321 };\n");
    void *b = image_of(&src, &n[1]);
    ck_assert(n[0] != n[1] || memcmp(a, b, n[0]) != 0);
    free(b);
    cu_write("own.h", "enum { WIDTH = 1234567 };\n");
    b = image_of(&src, &n[2]);
    ck_assert(n[0] == n[2] && memcmp(a, b, n[0]) == 0);
    free(a), free(b);
    bool plain = _i != 2 && _i != 4;   /* what is not a plain directive is not kept */
    snprintf(command, sizeof command, "test `find '%s' -name '*.cubin' | wc -l` = %d", cache,
             plain ? 2 : 0);
    ck_assert_int_eq(system(command), 0);
}
END_TEST
#endif

/* What the compiler takes from the environment, and the program behind a launcher. */
START_TEST(compiled_again_when_the_compiler_changes)
{
    static const char *const variables[] = { "CPATH", "CPLUS_INCLUDE_PATH", "C_INCLUDE_PATH",
                                             "COMPILER_PATH", "SOURCE_DATE_EPOCH" };
    char cxx[1000];
    counting_compiler();
    cu_write("k.cu", K "(int *same) { *same = 1; }\n");
    gp_source src = source("k", CU_PARAMS("int *"));
    COMPILES(&src, 1);
    setenv(variables[_i], _i == 4 ? "1000000" : cu_path("nowhere"), 1);
    COMPILES(&src, 2);
    unsetenv(variables[_i]);
    COMPILES(&src, 2);
    snprintf(cxx, sizeof cxx, "env %s", cu_path("cxx"));
    setenv("CXX", cxx, 1);
    COMPILES(&src, 3);
    COMPILES(&src, 3);
    counting_compiler_of("c++ -DNEW");
    setenv("CXX", cxx, 1);
    COMPILES(&src, 1);                     /* counted from 0 */
}
END_TEST

/* Names that gpipe's own headers use for other things, in a define or in the source. */
START_TEST(any_name_may_be_defined)
{
    static const char *const names[] = {
        "N=4", "K=4", "I=4", "A=4", "T=4", "F=4", "B=4", "H=4", "W=4", "n=4", "x=4", "y=4",
        "name=4", "args=4", "value=4", "index=4", "block=4", "grid=4", "ok=4", "type=4", "arg=4",
        "entry=4",
    };
    const char *define[] = { names[_i] };
    char text[300], name[10];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(names[_i], "="), names[_i]);
    snprintf(text, sizeof text, K "(float *out) { out[0] = %s; }\n", name);
    cu_write("k.cu", text);
    gp_source src = source("k", CU_PARAMS("float *"));
    src.define = define, src.ndefine = 1;
    attempt a = compile_source(&src, false);
    ck_assert_msg(a.ok, "%s: %s", names[_i], a.errs.n ? a.errs.e[0].msg : "");
    snprintf(text, sizeof text, "#define %s 4\n" K "(float *out) { out[0] = %s; }\n", name, name);
    cu_write("k.cu", text);
    src.ndefine = 0;
    a = compile_source(&src, false);
    ck_assert_msg(a.ok, "#define %s: %s", name, a.errs.n ? a.errs.e[0].msg : "");
}
END_TEST

/* All of them at once, in the source, where what gpipe adds to it comes behind: also names of
 * attributes and of what is in gpipe's structs. */
START_TEST(all_names_may_be_defined)
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
    for (int cuda = 0; cuda < 1 + have_nvrtc; cuda++) {
        attempt a = try(text, CU_PARAMS("const float *", "gp_c64 *", "const gp_frame_info *",
                                        "unsigned long long"), cuda);
        cu_print(&a.errs);
        ck_assert(a.ok);
    }
}
END_TEST

START_TEST(damaged_entries_are_made_anew)
{
    counting_compiler();
    cu_write("k.cu", K "(int *damaged) { *damaged = 1; }\n");
    setenv("XDG_CACHE_HOME", cu_path("fresh"), 1);
    gp_source src = source("k", CU_PARAMS("int *"));
    COMPILES(&src, 1);
    char command[1000];
    snprintf(command, sizeof command, "for f in '%s'/gpipe/*.so; do "
             "printf x | dd of=\"$f\" bs=1 seek=4000 conv=notrunc 2>/dev/null; done",
             cu_path("fresh"));
    ck_assert_int_eq(system(command), 0);
    COMPILES(&src, 2);
    COMPILES(&src, 2);
}
END_TEST

START_TEST(works_without_a_cache)
{
    counting_compiler();
    cu_write("file", "");
    setenv("XDG_CACHE_HOME", cu_path("file"), 1);      /* no folder can be made in it */
    cu_write("k.cu", K "(int *a) { *a = 1; }\n");
    gp_source src = source("k", CU_PARAMS("int *"));
    COMPILES(&src, 1);
    COMPILES(&src, 2);
}
END_TEST

Suite *suite_cc(void)
{
    Suite *s = suite_create("cc");
    TCase *tc = tcase_create("sources");
    tcase_add_unchecked_fixture(tc, setup, cu_close);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, compiles, 0, 2 * (int)(sizeof good / sizeof *good));
    tcase_add_test(tc, half_precision);
    tcase_add_test(tc, groups);
    tcase_add_test(tc, missing_toolkit);
    tcase_add_loop_test(tc, errors, 0, 2 * (int)(sizeof bad / sizeof *bad));
    tcase_add_loop_test(tc, errors_of_args_name_both_places, 0, 3);
    tcase_add_test(tc, error_in_an_include);
    tcase_add_test(tc, many_errors_are_counted);
    tcase_add_test(tc, errors_have_a_place);
    tcase_add_test(tc, no_source);
    tcase_add_test(tc, header_beside_the_source);
    tcase_add_test(tc, no_compiler);
    tcase_add_loop_test(tc, a_compiler_that_ends, 0, (int)(sizeof ends / sizeof *ends));
    tcase_add_test(tc, a_folder_that_others_may_change);
    tcase_add_loop_test(tc, odd_sources, 0, (int)(sizeof odd / sizeof *odd));
    tcase_add_loop_test(tc, odd_headers_are_errors, 0,
                        (int)(sizeof odd_headers / sizeof *odd_headers));
    tcase_add_test(tc, endless_header);
    tcase_add_test(tc, compiles_once);
    tcase_add_loop_test(tc, compiled_again_when_a_header_changes, 0,
                        (int)(sizeof found / sizeof *found));
    tcase_add_loop_test(tc, compiled_again_when_what_is_asked_for_appears, 0, (int)(sizeof askers / sizeof *askers));
    tcase_add_test(tc, headers_may_include_each_other);
#if GP_CUDA
    tcase_add_loop_test(tc, nvrtc_compiles_again_when_a_header_changes, 0,
                        (int)(sizeof included / sizeof *included));
#endif
    tcase_add_loop_test(tc, compiled_again_when_the_compiler_changes, 0, 5);
    tcase_add_loop_test(tc, any_name_may_be_defined, 0, 22);
    tcase_add_test(tc, all_names_may_be_defined);
    tcase_add_test(tc, damaged_entries_are_made_anew);
    tcase_add_test(tc, works_without_a_cache);
    suite_add_tcase(s, tc);
    return s;
}
