/* test_half.c - cuda_fp16.h on the CPU, with no toolkit: what its functions give, bit for bit
 * (references of NumPy, tests/ref/half.py). */
#include "lib/cu.h"
#include "lib/harness.h"

static void up(void) { cu_open(); }
static void down(void) { cu_close(); }

/* One row for each, in the order of half.py. */
static const char functions[] =
    "    out(__hadd(a, b)); out(__hsub(a, b)); out(__hmul(a, b)); out(__hdiv(a, b));\n"
    "    out(__hneg(a)); out(__habs(a)); out(__hfma(a, b, c)); out(__hfma(-a, b, c));\n"
    "    out(__hmax(a, b)); out(__hmin(a, b));\n"
    "    out(__hlt(a, b)); out(__hle(a, b)); out(__hgt(a, b)); out(__hge(a, b)); out(__heq(a, b));\n"
    "    out(__hne(a, b)); out(__hneu(a, b)); out(__hltu(a, b)); out(__hisnan(a));\n"
    "    out(hsqrt(a)); out(hrsqrt(a)); out(hrcp(a)); out(hexp(a)); out(hexp2(a)); out(hexp10(a));\n"
    "    out(hlog(a)); out(hlog2(a)); out(hlog10(a)); out(hsin(a)); out(hcos(a)); out(htanh(a));\n"
    "    out(hfloor(a)); out(hceil(a)); out(hrint(a)); out(htrunc(a)); out(__hadd_sat(a, b));\n"
    "    out(__int2half_rn(__half2int_rn(a))); out(__ll2half_rn(__half2ll_rz(a)));\n"
    "    out(__int2half_rn(__half2int_rd(a))); out(__int2half_rn(__half2int_ru(a)));\n"
    "    float p = (float)a * (float)b;\n"
    "    out(__float2half(p)); out(__float2half_rz(p)); out(__float2half_rd(p)); out(__float2half_ru(p));\n"
    "    out(__int2half_rn(37 * i - 90000)); out(__int2half_rz(37 * i - 90000));\n";

/* The same of both halves of a __half2, so far as there is one. */
static const char pairs[] =
    "    out(__hadd2(a, b)); out(__hsub2(a, b)); out(__hmul2(a, b)); out(__h2div(a, b));\n"
    "    out(__hneg2(a)); out(__habs2(a)); out(__hfma2(a, b, c)); out(__hfma2(-a, b, c));\n"
    "    out(__hmax2(a, b)); out(__hmin2(a, b));\n"
    "    out(__hlt2(a, b)); out(__hle2(a, b)); out(__hgt2(a, b)); out(__hge2(a, b)); out(__heq2(a, b));\n"
    "    out(__hne2(a, b)); out(__hneu2(a, b)); out(__hltu2(a, b)); out(__hisnan2(a));\n"
    "    out(h2sqrt(a)); out(h2rsqrt(a)); out(h2rcp(a)); out(h2exp(a)); out(h2exp2(a)); out(h2exp10(a));\n"
    "    out(h2log(a)); out(h2log2(a)); out(h2log10(a)); out(h2sin(a)); out(h2cos(a)); out(h2tanh(a));\n"
    "    out(h2floor(a)); out(h2ceil(a)); out(h2rint(a)); out(h2trunc(a)); out(__hadd2_sat(a, b));\n";

/* Rows 3 and up of half_functions.npy; at least `rows` of them. */
static void compare(const char *name, const char *text, int rows)
{
    array want = array_load("tests/ref/half_functions.npy");
    int n = (int)want.type.dim[1];
    uint16_t *got = calloc((size_t)(n * (int)want.type.dim[0]), sizeof *got);
    const uint16_t *ref = (const uint16_t *)want.data;
    gp_cpu_entry k = cu_compile(name, CU_PARAMS("const gp_half *", "gp_half *", "int"), text, 0);
    const void *in = ref;
    void *out = got, *args[] = { &in, &out, &n };
    gp_cpu_runner *r = gp_cpu_runner_create();
    ck_assert(gp_cpu_grid(r, &k, (gp_dim3){ (unsigned)(n + 255) / 256, 1, 1 }, (gp_dim3){ 256, 1, 1 }, 0, args));
    gp_cpu_runner_destroy(r);
    ck_assert_int_ge((int)want.type.dim[0], rows + 3);
    for (int i = 3 * n; i < (rows + 3) * n; i++) {
        bool nan = (ref[i] & 0x7fff) > 0x7c00;
        ck_each(got[i] == (nan ? 0x7fff : ref[i]), "row %d of %#x, %#x, %#x: %#x, not %#x", i / n,
                      ref[i % n], ref[i % n + n], ref[i % n + 2 * n], got[i], ref[i]);
    }
    free(got);
    array_free(&want);
}

#define K(name) "extern \"C\" __global__ void " name "(const __half *in, __half *o, int n)\n{\n" \
    "    int i = blockIdx.x * blockDim.x + threadIdx.x, row = 3;\n    if (i >= n) return;\n"

TEST(gives_what_numpy_gives)
{
    char *text = format("#include <cuda_fp16.h>\n" K("halves")
                        "    __half a = in[i], b = in[i + n], c = in[i + 2 * n];\n"
                        "    auto out = [&](__half v) { o[row++ * n + i] = v; };\n%s}\n", functions);
    compare("halves", text, 46);
}

TEST(gives_the_same_of_pairs)
{
    char *text = format("#include <cuda_fp16.h>\n" K("pairs")
        "    __half one = __float2half(1.f);\n"
        "    __half2 a = __halves2half2(in[i], one), b = make_half2(in[i + n], one), c(in[i + 2 * n], one);\n"
        "    __half2 s = __lowhigh2highlow(a), f = __floats2half2_rn(__high2float(s), __low2float(s));\n"
        "    a = __heq(a.x, a.x) ? f : a;\n"
        "    auto out = [&](__half2 v) { o[row++ * n + i] = __low2half(v); };\n%s}\n", pairs);
    compare("pairs", text, 36);
}

/* What a header of the user's includes is the same file; and a user who includes none may give anything these names. */
TEST(is_there_only_when_it_is_asked_for)
{
    cu_write("mine.h", "#include \"cuda_fp16.h\"\nstatic __device__ half twice(half h) { return h + h; }\n");
    cu_compile("two", CU_PARAMS("const gp_half *", "gp_half *"), "#include \"mine.h\"\n"
               "extern \"C\" __global__ void two(const half *in, half *out)\n{\n"
               "    __shared__ half s[32]; __shared__ half2 t[32];\n    s[0] = twice(in[0]); t[0] = half2(s[0], 1);\n"
               "    s[0] += 2; if (s[0] > half(3)) s[0]++;\n    out[0] = atomicAdd(&s[0], t[0].y); }\n", 0);
    cu_compile("mine", CU_PARAMS("const float *"), "typedef unsigned short half;\n"
               "struct half2 { half hsqrt; };\nstatic __device__ float hexp(float x) { return x; }\n"
               "extern \"C\" __global__ void mine(const float *in) { half2 h = { (half)hexp(in[0]) }; (void)h; }\n", 0);
}

TEST_SUITE(half, up, down, 0)
