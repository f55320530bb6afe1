/* test_cubin.c - kernels that other compilers made, beside lib/module_cases.c: cubins and fatbins of this GPU, and what
 * only the driver finds wrong. */
#include "base/embed.h"
#include "cuda/nvrtc.h"
#include "gpu.h"
#include "pipe.h"

enum { ROWS = 8, COLS = 40, FRAMES = 5 };

static float ramp(int64_t i)
{
    return (float)i - 70;
}

static int capability(void)
{
    gp_machine m;
    gp_machine_read(&m, true);
    return m.device[0].cc;
}

/* k.cubin for a GPU of this compute capability, by NVRTC. False: there is none, or it knows none such. */
static bool make(const char *dir, int cc)
{
    static const char *const param[] = { "const float *", "float *", "int" };
    static const char code[] = "extern \"C\" __global__ void k(const float *in, float *out, int n)\n{\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) out[i] = 2 * in[i] + 1;\n}\n";
    gp_source src = { .path = format("%s/k.cu", dir), .entry = "k", .param = param, .nparam = 3, .overlaps = true, .text = code };
    gp_errs errs = { .n = 0 };
    void *image;
    size_t n;
    pipe_text(dir, "k.cu", code);
    if (!gp_nvrtc_is_there() || !gp_nvrtc_compile(&src, cc, NULL, &image, &n, NULL, &errs))
        return false;
    unsigned head[4] = { 0xba55ed50, 16 << 16 | 1, (unsigned)(64 + n), 0 };
    unsigned part[16] = { 257 << 16 | 2, 64, (unsigned)n, 0, 0, 0, 0x10008, (unsigned)cc, 0, 0, 0x11 };
    char *fat = malloc(80 + n);
    memcpy(fat, head, 16), memcpy(fat + 16, part, 64), memcpy(fat + 80, image, n);
    pipe_file(dir, "k.cubin", image, n);
    pipe_file(dir, "k.fatbin", fat, 80 + n);
    free(image), free(fat);
    return true;
}

static pipe_result run(const char *dir, const char *stage, const char *const *sets)
{
    pipe_npy(dir, "x.npy", ROWS * FRAMES, COLS, ramp);
    const gp_blob *own = gp_blob_find("kernels/scale.fatbin");
    pipe_file(dir, "scale.fatbin", own->data, (size_t)(own->end - own->data));
    char *yaml = format("buffers: {x: {dtype: f32, shape: [%d, %d]}}\nstages:\n  - {use: read, path: x.npy, out: x}\n"
                        "  - {name: k, use: kernel, %s, out: y}\n  - {use: write, path: out.raw, if_exists: replace}\n", ROWS, COLS,
                        stage);
    return pipe_run(dir, yaml, "cuda", sets, (gp_run_options){ .poison = true });
}

static const char *const good[] = {
    "source: k.cubin, threads: out.size, args: [in, out, {i32: in.size}]",
    "source: k.fatbin, threads: out.size, args: [in, out, {i32: in.size}]",
    "source: scale.fatbin, entry: scale_f32, batched: true, serial: true, grid: 2, block: 256, "
    "args: [out, in, {u64: in.size}, {f32: 2}, {f32: 1}]",
};

TEST_LOOP(computes, 0, sizeof good / sizeof *good)
{
    const char *dir = pipe_dir();
    size_t n;
    if (!make(dir, capability()))
        return;
    pipe_result r = run(dir, good[_i], NULL);
    pipe_ends(&r, NULL);
    OWNED float *v = (float *)pipe_read(dir, "out.raw", &n);
    ck_assert_uint_eq(n, sizeof *v * ROWS * COLS * FRAMES);
    for (size_t i = 0; i < n / sizeof *v; i++)
        ck_assert_msg(v[i] == 2 * ramp((int64_t)i) + 1, "%s: element %zu is %g", good[_i], i, v[i]);
}

#define PTX ".version 6.4\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b)\n{\n"
static const struct { const char *file, *text, *stage, *says; int line; } bad[] = {
    { NULL, NULL, "source: k.cubin, threads: out.size, args: [in, out]",
      "has 3 parameters of 8, 8, 4 bytes, but args gives 2 values of 8, 8", 4 },
    { NULL, NULL, "source: k.cubin, threads: out.size, args: [in, out, {i64: in.size}]",
      "has 3 parameters of 8, 8, 4 bytes, but args gives 3 values of 8, 8, 8", 4 },
    { "k.json", "{\"params\": [\"*f32\", \"*f32\", \"i32\", \"null\"]}",
      "source: k.cubin, threads: out.size, args: [in, out, {i32: in.size}]",
      "has 3 parameters of 8, 8, 4 bytes, but args gives 4 values of 8, 8, 4, 8", 0 },
    { "k.json", "{\"params\": [\"*f32\", \"*f32\", \"i64\"]}",
      "source: k.cubin, threads: out.size, args: [in, out, {i64: in.size}]", "but args gives 3 values of 8, 8, 8", 4 },
    { "b.ptx", PTX "    mov.u32 %r1, 7;\n    ret;\n}\n", "source: b.ptx, threads: 1, args: [in, out]", "Arguments mismatch for instruction 'mov'", 6 },
    { "b.ptx", ".version 99.9\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n",
      "source: b.ptx, threads: 1, args: [in, out]", "99.9", 1 },
    { "b.ptx", PTX "    ret;\n}\n", "source: b.ptx, threads: out.size, args: [in, out]", "unwritten in frame 0", 0 },
    { NULL, NULL, "source: scale.fatbin, entry: none, serial: true, grid: 1, args: [in, out]", "no kernel 'none' in", 4 },
};

TEST_LOOP(refuses, 0, sizeof bad / sizeof *bad)
{
    const char *dir = pipe_dir();
    if (!make(dir, capability()))
        return;
    if (bad[_i].file)
        pipe_text(dir, bad[_i].file, bad[_i].text);
    pipe_result r = run(dir, bad[_i].stage, NULL);
    pipe_ends(&r, bad[_i].says);
    ck_assert_msg(!bad[_i].line || r.errs.e[0].at.line == bad[_i].line, "%d: %s", r.errs.e[0].at.line, r.errs.e[0].msg);
}

TEST(for_another_gpu)
{
    const char *dir = pipe_dir();
    int other = capability() / 10 == 8 ? 90 : 80;
    if (!make(dir, other))
        return;
    pipe_result r = run(dir, good[0], NULL);
    char *says = format("is for sm_%d, and this GPU is sm_%d", other, capability());
    pipe_ends(&r, says);
}

/* Kernels that stay on the GPU are made of sources. */
TEST(not_persistent)
{
    static const char *const sets[] = { "launch=persistent", NULL };
    const char *dir = pipe_dir();
    if (!make(dir, capability()))
        return;
    pipe_result r = run(dir, good[0], sets);
    pipe_ends(&r, "is compiled already, and 'launch: persistent' needs the source of all kernels: set 'launch: graph'");
}

GPU_SUITE(cubin, suite_fill(tc, suite_items, 1); tcase_set_timeout(tc, 120))
