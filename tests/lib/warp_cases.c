/* warp_cases.c - the warp functions of users' kernels, on either back end, beside what the CUDA programming guide says
 * of them. */
#include "cases.h"

enum { BLOCK = 96, N = 3 * BLOCK + 40, FRAMES = 3, CASES = 24 };      /* the last warp has 8 threads */

static float value(int64_t i)
{
    return (float)(i * 37 % 11) - 3;
}

/* o[c * n]: what case c makes. Lanes that have ended give nothing that is used. */
static const char kernel[] =
    "#include <cooperative_groups.h>\n"
    "namespace cg = cooperative_groups;\n"
    "extern \"C\" __global__ void warps(const float *in, float *out, int n)\n"
    "{\n"
    "    int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;\n"
    "    int i = blockIdx.x * (blockDim.x * blockDim.y * blockDim.z) + t, lane = t % 32, same, c = 0;\n"
    "    if (i >= n) return;\n"
    "    float v = in[i], x; int k = (int)v; float *o = out + i;\n"
    "    const unsigned all = ~0u, here = __ballot_sync(all, 1);\n"
    "#define IF(from, e) (x = (e), here >> ((from) & 31) & 1 ? x : -99)\n"
    "#define PUT(e) o[n * c++] = (float)(e)\n"
    "    PUT(here);\n"
    "    PUT(__shfl_sync(all, v, 5, 8));\n"
    "    PUT(IF(lane * 7, __shfl_sync(all, v, lane * 7)));\n"
    "    PUT(IF(lane - 3, __shfl_up_sync(here, v, 3)));\n"
    "    PUT(__shfl_up_sync(here, k, 2, 4));\n"
    "    PUT(IF(lane + 9, __shfl_down_sync(all, v, 9)));\n"
    "    PUT((float)__shfl_down_sync(all, (double)v, 1, 2));\n"
    "    PUT(__shfl_xor_sync(all, (long long)k << 40, 6, 8) / (1ll << 40));\n"
    "    PUT(__shfl_xor_sync(here, (unsigned)k, 4, 4));\n"
    "    PUT(__any_sync(all, k == 7)); PUT(__all_sync(all, k < 6));\n"
    "    PUT(__popc(__ballot_sync(here, k > 1)));\n"
    "#if GP_CPU || __CUDA_ARCH__ >= 800\n"
    "    PUT(__reduce_add_sync(here, k)); PUT(__reduce_min_sync(all, k)); PUT(__reduce_max_sync(here, k));\n"
    "    PUT(__reduce_xor_sync(all, (unsigned)k & 255)); PUT(__reduce_max_sync(here, (unsigned)k & 15));\n"
    "#else\n"
    "    for (int r = 0; r < 5; r++) PUT(-1);\n"
    "#endif\n"
    "    PUT(__popc(__match_any_sync(here, k)));\n"
    "    unsigned which = __match_all_sync(here, lane < 40, &same); PUT(which == here && same);\n"
    "    auto tile = cg::tiled_partition<8>(cg::this_thread_block());\n"
    "    tile.sync();\n"
    "    PUT(tile.shfl(v, 2) + 100 * tile.thread_rank() + 1000 * tile.meta_group_rank() + tile.size());\n"
    "    PUT(tile.ballot(k > 1) + 1000 * tile.any(k == 7));\n"
    /* parts of a warp that go ways of their own, and what all wait for behind them */
    "    x = lane % 3 ? v : 0;\n"
    "    if (lane % 3 == 1) for (int by = 0; by < 2; by++) x += __shfl_sync(here & 0x92492492u, v, 1);\n"
    "    else if (lane % 3 == 2) { __syncwarp(here & 0x24924924u); x -= __shfl_sync(here & 0x24924924u, v, 5); }\n"
    "    PUT(x);\n"
    "    __shared__ float first[3];\n"
    "    if (!lane) first[t / 32] = v;\n"
    "    __syncthreads();\n"
    "    PUT(first[0] + 10 * first[t / 32]);\n"
    "    float sum = v;\n"
    "    for (int by = 16; by; by /= 2) { x = __shfl_xor_sync(all, sum, by); if (here >> (lane ^ by) & 1) sum += x; }\n"
    "    PUT(sum);\n"
    "}\n";

static bool is_there(unsigned here, int lane)
{
    return here >> (lane & 31) & 1;
}

/* What case c makes for thread t of a block of which `n` values are there. */
static float want(int c, const float *block, int n, int t)
{
    const float *v = block + t / 32 * 32;
    int lane = t % 32, lanes = n - t / 32 * 32 < 32 ? n - t / 32 * 32 : 32, any = 0, all = 1, many = 0, same = 0;
    unsigned here = lanes < 32 ? (1u << lanes) - 1 : ~0u, bits = 0, odd = 0, most = 0, tile = 0;
    float sum = 0, least = v[0], highest = v[0];
    for (int l = 0; l < lanes; l++) {
        any |= v[l] == 7, all &= v[l] < 6, many += v[l] > 1, same += v[l] == v[lane], sum += v[l];
        least = v[l] < least ? v[l] : least, highest = v[l] > highest ? v[l] : highest;
        bits = (unsigned)(int)v[l], odd ^= bits & 255, most = (bits & 15) > most ? bits & 15 : most;
        tile |= (l / 8 == lane / 8 && v[l] > 1 ? 1u : 0u) << l % 8;
    }
    int own = lane / 8 * 8, seven = 0;
    for (int l = own; l < own + 8; l++)
        seven |= v[l] == 7;
    switch (c) {
    case 0: return (float)here;
    case 1: return v[own + 5];
    case 2: return is_there(here, lane * 7) ? v[lane * 7 % 32] : -99;
    case 3: return !is_there(here, lane - 3) ? -99 : lane < 3 ? v[lane] : v[lane - 3];
    case 4: return v[lane % 4 < 2 ? lane : lane - 2];
    case 5: return !is_there(here, lane + 9) ? -99 : lane + 9 > 31 ? v[lane] : v[lane + 9];
    case 6: return v[lane | 1];
    case 7: return v[lane ^ 6];
    case 8: return (float)(unsigned)(int)v[lane % 8 < 4 ? lane : lane ^ 4];
    case 9: return (float)any;
    case 10: return (float)all;
    case 11: return (float)many;
    case 12: return sum;
    case 13: return least;
    case 14: return highest;
    case 15: return (float)odd;
    case 16: return (float)most;
    case 17: return (float)same;
    case 18: return 1;
    case 19: return v[own + 2] + 100 * (float)(lane % 8) + 1000 * (float)(t / 8) + 8;
    case 20: return (float)tile + 1000 * (float)seven;
    case 21: return lane % 3 == 1 ? v[lane] + 2 * v[1] : lane % 3 == 2 ? v[lane] - v[5] : 0;
    case 22: return block[0] + 10 * v[0];
    default: return sum;
    }
}

static const struct { const char *block; int threads; } shape[] = { { "96", 96 }, { "[8, 4, 3]", 96 }, { "32", 32 } };

TEST_EACH(as_the_guide_says, shape)
{
    const char *dir = pipe_dir();
    char *yaml = format("stages:\n  - {use: read, path: in.npy, out: x}\n"
                        "  - {use: kernel, source: warps.cu, in: x, out: y, grid: 'ceil(in.size / %d)', block: %s,\n"
                        "     args: [in, out, {i32: in.size}]}\n  - {use: write, in: y, path: out.raw}\n"
                        "buffers: {x: {dtype: f32, shape: [%d, 1]}, y: {dtype: f32, shape: [%d]}}\n",
                        shape[_i].threads, shape[_i].block, N, CASES * N);
    pipe_npy(dir, "in.npy", FRAMES * N, 1, value);
    pipe_text(dir, "warps.cu", kernel);
    pipe_result r = pipe_run(dir, yaml, on, NULL, (gp_run_options){ .check_kernels = !strcmp(on, "cpu") });
    ck_assert_msg(!r.errs.failed, "%s", r.errs.e[0].msg);
    size_t bytes;
    OWNED float *out = (float *)(void *)pipe_read(dir, "out.raw", &bytes);
    ck_assert_uint_eq(bytes, sizeof(float) * FRAMES * CASES * N);
    for (int f = 0; f < FRAMES; f++) {
        float v[N + 32] = { 0 };
        for (int i = 0; i < N; i++)
            v[i] = value(f * N + i);
        for (int i = 0; i < N; i++)
            for (int c = 0, at = i / shape[_i].threads * shape[_i].threads; c < CASES; c++) {
                float got = out[(f * CASES + c) * N + i], w;
                w = want(c, v + at, N - at < shape[_i].threads ? N - at : shape[_i].threads, i - at);
                bool apart = c >= 12 && c <= 16 && got == -1 && strcmp(on, "cpu");          /* a GPU that has no such function */
                ck_assert_msg(got == w || apart, "case %d, frame %d, thread %d: %g in place of %g", c, f, i, got, w);
            }
    }
}

/* Nothing behind a warp function lets the threads of other warps begin; with threads that have ended, and none. */
static const char *const last[] = { "%s", "if (i %% 3) %s", "if (threadIdx.x < 40) %s", "if (threadIdx.x > 30) %s" };

TEST_EACH(all_threads_begin, last)
{
    const char *dir = pipe_dir();
    pipe_npy(dir, "in.npy", BLOCK, 1, value);
    pipe_text(dir, "k.cu", format("extern \"C\" __global__ void k(const float *in, float *out)\n{\n"
              "    int i = threadIdx.x;\n    out[i] = in[i];\n    %s\n}\n",
              format(last[_i], "out[i] += 100 * __popc(__ballot_sync(1u << i % 32, 1));")));
    pipe_result r = pipe_run(dir, "buffers: {x: {dtype: f32, shape: [96, 1]}}\nstages:\n  - {use: read, path: in.npy, out: x}\n"
                             "  - {use: kernel, source: k.cu, grid: 1, block: 96, args: [in, out], zero: true}\n"
                             "  - {use: write, path: out.raw}\n", on, NULL, (gp_run_options){ 0 });
    ck_assert_msg(!r.errs.failed, "%s", r.errs.e[0].msg);
    size_t bytes;
    OWNED float *out = (float *)(void *)pipe_read(dir, "out.raw", &bytes);
    ck_assert_uint_eq(bytes, sizeof(float) * BLOCK);
    for (int i = 0; i < BLOCK; i++) {
        const bool has = _i == 1 ? i % 3 != 0 : _i == 2 ? i < 40 : _i == 3 ? i > 30 : true;
        ck_assert_msg(out[i] == value(i) + (has ? 100 : 0), "thread %d: %g", i, out[i]);
    }
}

/* What would never end on a GPU, or be anything, ends here with an error. */
static const struct { const char *code, *msg; } wrong[] = {
    { "if (threadIdx.x % 2) x = __shfl_sync(~0u, x, 1);\n    __syncthreads();",
      "wait without end at a warp function, which not all that its mask names call with that mask" },
    { "x = __shfl_sync(threadIdx.x ? ~0u : 1u, x, 1);\n    __syncthreads();", "wait without end at a warp function" },
    { "x = __shfl_down_sync(~0u, x, 31, 64);", "with a width that is no power of two up to 32" },
    { "x = __shfl_sync(2u, x, 1);", "whose mask does not name it" },
    { "x = threadIdx.x ? __any_sync(~0u, 1) : __shfl_sync(~0u, 1, 0);", "different warp functions with the same mask" },
};

TEST_EACH(errors, wrong)
{
    const char *dir = pipe_dir();
    if (strcmp(on, "cpu"))
        return;
    pipe_npy(dir, "in.npy", 64, 1, value);
    pipe_text(dir, "k.cu", format("extern \"C\" __global__ void k(const float *in, float *out)\n{\n"
              "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    float x = in[i];\n    %s\n    out[i] = x;\n}\n",
              wrong[_i].code));
    pipe_result r = pipe_run(dir, "stages:\n  - {use: read, path: in.npy, out: x}\n"
                             "  - {use: kernel, source: k.cu, grid: 2, block: 32, args: [in, out]}\n"
                             "  - {use: write, path: out.raw}\n", on, NULL, (gp_run_options){ 0 });
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_msg(strstr(r.errs.e[0].msg, wrong[_i].msg) != NULL, "'%s' is not in '%s'", wrong[_i].msg, r.errs.e[0].msg);
    ck_assert_int_eq(r.errs.e[0].at.line, 3);
}

CASES_SUITE(warp, NULL, NULL, 900, 1)
