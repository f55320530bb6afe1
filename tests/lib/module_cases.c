/* module_cases.c - kernels that another compiler made: PTX, on a GPU as it is, on the CPU by its reference. */
#include "cases.h"

enum { ROWS = 8, COLS = 48, FRAMES = 9, LAST = 3 };

static float ramp(int64_t i)
{
    return (float)(i * 37 % 1001) - 300;
}

/* With two pointers at its end that have to be null, as Triton's kernels have. */
static const char ptx[] =
    ".version 6.4\n.target sm_75\n.address_size 64\n.extern .shared .align 16 .b8 s[];\n"
    ".visible .entry affine(.param .u64 .ptr .global .align 1 out, .param .u64 .ptr .global .align 1 in, .param .u32 n,\n"
    "    .param .f32 gain, .param .u64 one, .param .u64 two)\n{\n"
    "    .reg .pred %p<3>;\n    .reg .f32 %f<5>;\n    .reg .b32 %r<9>;\n    .reg .b64 %rd<11>;\n"
    "    ld.param.u64 %rd1, [out];\n    ld.param.u64 %rd2, [in];\n    ld.param.u32 %r3, [n];\n"
    "    ld.param.f32 %f1, [gain];\n    ld.param.u64 %rd3, [one];\n    ld.param.u64 %rd4, [two];\n"
    "    mov.u32 %r4, %ctaid.x;\n    mov.u32 %r5, %ntid.x;\n    mov.u32 %r1, %tid.x;\n    mad.lo.s32 %r2, %r4, %r5, %r1;\n"
    "    setp.ge.s32 %p1, %r2, %r3;\n    @%p1 bra done;\n    cvta.to.global.u64 %rd5, %rd1;\n"
    "    cvta.to.global.u64 %rd6, %rd2;\n    mul.wide.s32 %rd7, %r2, 4;\n    add.s64 %rd8, %rd6, %rd7;\n"
    "    ld.global.f32 %f2, [%rd8];\n    shl.b32 %r6, %r1, 2;\n    mov.u32 %r7, s;\n    add.s32 %r8, %r7, %r6;\n"
    "    st.shared.f32 [%r8], %f2;\n    ld.shared.f32 %f3, [%r8];\n    mul.f32 %f4, %f3, %f1;\n    or.b64 %rd9, %rd3, %rd4;\n"
    "    setp.ne.s64 %p2, %rd9, 0;\n    selp.f32 %f4, 0f4E6E6B28, %f4, %p2;\n    add.s64 %rd10, %rd5, %rd7;\n"
    "    st.global.f32 [%rd10], %f4;\ndone:\n    ret;\n}\n";
static const char reference[] =
    "extern \"C\" __global__ void affine(float *out, const float *in, int n, float gain)\n{\n"
    "    extern __shared__ float s[];\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) s[threadIdx.x] = in[i], out[i] = s[threadIdx.x] * gain;\n}\n";
static const char beside[] =
    "{\"name\": \"affine\", \"num_warps\": 2, \"shared\": 256, \"grid\": \"ceil(in.size / 64)\",\n"
    " \"params\": [\"*f32:16\", \"*f32:16\", \"i32:16\", \"f32\", \"null\", \"null\"]}\n";

static pipe_result run(const char *dir, const char *stage, const char *const *sets)
{
    char *yaml = format("buffers: {x: {dtype: f32, shape: [%d, %d]}}\nstages:\n  - {use: read, path: x.npy, out: x}\n"
                        "  - {name: k, use: kernel, %s, out: y}\n  - {use: write, path: out.raw, if_exists: replace}\n", ROWS, COLS,
                        stage);
    return pipe_run(dir, yaml, on, sets, (gp_run_options){ .poison = true });
}

static const char *folder(void)
{
    const char *dir = pipe_dir();
    pipe_npy(dir, "x.npy", ROWS * (FRAMES - 1) + LAST, COLS, ramp);
    pipe_text(dir, "k.ptx", ptx);
    pipe_text(dir, "k.cu", reference);
    pipe_text(dir, "k.json", beside);
    pipe_text(dir, "alone.ptx", ptx);
    pipe_text(dir, "alone.cu", pipe_edited(reference, "float gain)", "float gain, unsigned long long one, unsigned long long two)"));
    return dir;
}

static void came(const char *dir, const char *what)
{
    size_t n;
    OWNED float *v = (float *)pipe_read(dir, "out.raw", &n);
    ck_assert_uint_eq(n, sizeof *v * (ROWS * (FRAMES - 1) + LAST) * COLS);
    for (size_t i = 0; i < n / sizeof *v; i++)
        ck_assert_msg(v[i] == ramp((int64_t)i) * 1.5f, "%s: element %zu is %g", what, i, v[i]);
}

/* The file beside it says how it is launched, or the YAML does; whatever the knobs. */
static const char *const stages[] = {
    "source: k.ptx, cpu: k.cu, args: [out, in, {i32: in.size}, {f32: 1.5}]",
    "source: alone.ptx, cpu: alone.cu, args: [out, in, {i32: in.size}, {f32: 1.5}, {u64: 0}, {u64: 0}], "
    "threads: out.size, block: 96, shared: 384",
};
static const char *const settings[][4] = {
    { "depth=1" }, { "depth=8", "streams=4" }, { "depth=6", "launch=stream" }, { "depth=8", "batch=4" },
};

TEST_LOOP(computes, 0, 2)
{
    const char *dir = folder();
    for (size_t k = 0; k < sizeof settings / sizeof *settings; k++) {
        pipe_result r = run(dir, stages[_i], settings[k]);
        pipe_ends(&r, NULL);
        came(dir, settings[k][0]);
    }
}

/* What is wrong, on either back end; before frame 0, but for values that only a frame has. */
static const struct { const char *file, *text, *stage, *says; } bad[] = {
    { "k.json", "{\"params\": [\"*f32\", \"*f32\", \"i32:16\", \"f32\", \"null\", \"null\"]}",
      "source: k.ptx, cpu: k.cu, threads: out.size, shared: 1KiB, args: [out, in, {i32: in.size - 1}, {f32: 1.5}]",
      "'in.size - 1' is 383, and the kernel was compiled for multiples of 16" },
    { "k.json", "{\"params\": [\"*f32\", \"*f32\", \"i32\", \"i32\", \"null\", \"null\"]}",
      "source: k.ptx, cpu: k.cu, threads: out.size, args: [out, in, {i32: in.size}, {f32: 1.5}]",
      "argument 4 is 'float', and the parameter is 'i32' (k.json:1)" },
    { "k.json", "{\"params\": [\"*f32\", \"*u8\"]}", "source: k.ptx, cpu: k.cu, threads: out.size, args: [out, in]",
      "argument 2 is 'const float *', and the parameter is '*u8'" },
    { "k.json", "{\"params\": [\"*f32\", \"*f32\", \"i32\"]}", "source: k.ptx, threads: out.size, args: [out, in]",
      "there are 2 values, and 'k.json' has parameter 3, 'i32'" },
    { "k.json", "{\"params\": [\"*f32\", \"null\"]}", "source: k.ptx, threads: out.size, args: [out, in]",
      "there are 2 values, and 'k.json' has 1 parameter before \"null\"" },
    { "k.json", "{\"params\": [\"*f32\"]}", "source: k.ptx, threads: out.size, args: [out, in]",
      "there are 2 values, and 'k.json' has 1 parameter" },
    { "k.json", "{\"params\": []}", "source: k.ptx, threads: out.size, args: [out, in]",
      "there are 2 values, and 'k.json' has 0 parameters" },
    { "k.json", "{\"params\": [\"*f32:12\"]}", "source: k.ptx, threads: out.size, args: [out, in]", "a parameter is a type as" },
    { "k.json", "{\"params\": [\"*q\"]}", "source: k.ptx, threads: out.size, args: [out, in]", "a parameter is a type as" },
    { "k.json", "{\"name\": \"affine\"}", "source: k.ptx, threads: out.size, args: [out, in]", "does not say 'params'" },
    { "k.json", "{\"num_ctas\": 2}", "source: k.ptx, threads: out.size, args: [out, in]", "'num_ctas' has no meaning here" },
    { "k.json", "{\"num_warps\": 0}", "source: k.ptx, threads: out.size, args: [out, in]", "'num_warps' is a number from 1 to 32" },
    { "k.json", "{\"num_warps\": 4}", "source: k.ptx, threads: out.size, block: 128, args: [out, in]",
      "leave out 'block': k.json:1 says it" },
    { "k.json", "[1]", "source: k.ptx, threads: out.size, args: [out, in]", "'k.json' is no JSON object" },
    { "k.json", "", "source: k.ptx, threads: out.size, args: [out, in]", "there is nothing in 'k.json'" },
    { "alone.ptx", "", "source: alone.ptx, threads: out.size, args: [out, in]", "'alone.ptx' is empty" },
    { "alone.ptx", "hello", "source: alone.ptx, threads: out.size, args: [out, in]", "'alone.ptx' is none of PTX" },
    { "alone.ptx", "\177ELF", "source: alone.ptx, threads: out.size, args: [out, in]", "is an ELF file, but no whole cubin" },
    { NULL, NULL, "source: none.ptx, threads: out.size, args: [out, in]", "cannot read 'none.ptx': No such file" },
    { NULL, NULL, "source: alone.ptx, entry: k, threads: out.size, args: [out, in]",
      "no kernel 'k' in 'alone.ptx', which has 'affine'" },
    { NULL, NULL, "source: alone.ptx, cpu: none.cu, threads: out.size, args: [out, in]", "cannot read 'none.cu'" },
    { NULL, NULL, "source: alone.ptx, cpu: k.ptx, threads: out.size, args: [out, in]", "'cpu' is CUDA C++, a .cu file" },
    { NULL, NULL, "source: alone.ptx, define: {A: 1}, threads: out.size, args: [out, in]", "'define' has no effect on" },
    { NULL, NULL, "source: k.cu, cpu: k.cu, threads: out.size, args: [out, in]", "'cpu' has no effect on 'k.cu'" },
};

TEST_LOOP(refuses, 0, sizeof bad / sizeof *bad)
{
    const char *dir = folder();
    if (bad[_i].file)
        pipe_text(dir, bad[_i].file, bad[_i].text);
    pipe_result r = run(dir, bad[_i].stage, NULL);
    ck_assert_int_eq(r.outcome, GP_ERROR);
    bool said = false;
    for (int i = 0; i < r.errs.n; i++) {
        char *msg = r.errs.e[i].msg, *at;      /* without the folder */
        while ((at = strstr(msg, dir)))
            memmove(at, at + strlen(dir) + 1, strlen(at + strlen(dir)));
        said |= strstr(msg, bad[_i].says) != NULL;
    }
    ck_assert_msg(said, "%s\n%s", bad[_i].stage, pipe_said(&r.errs));
}

CASES_SUITE(module, NULL, NULL, 60, 1)
