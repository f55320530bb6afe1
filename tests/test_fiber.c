/* test_fiber.c - grids on the CPU: barriers, early returns, shared memory. Each kernel is compared with plain C. */
#include <math.h>
#include <pthread.h>
#include "lib/cu.h"
#include "suite.h"

static gp_cpu_entry sum, early, place, flip, votes, leave, deep, meet, to_half, from_half;
static gp_cpu_runner *runner;

/* Compiled once, before the tests fork. */
static void compile_all(void)
{
    cu_open();
    sum = cu_compile("sum", CU_PARAMS("const int *", "int *", "int *", "int"),
        "extern \"C\" __global__ void sum(const int *in, int *out, int *total, int n)\n"
        "{\n"
        "    __shared__ int s[256];\n"
        "    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;\n"
        "    s[t] = i < n ? in[i] : 0;\n"
        "    __syncthreads();\n"
        "    for (int k = 128; k; k /= 2) {\n"
        "        if (t < k) s[t] += s[t + k];\n"
        "        __syncthreads();\n"
        "    }\n"
        "    if (t == 0) { out[blockIdx.x] = s[0]; atomicAdd(total, s[0]); }\n"
        "}\n", 0);
    /* Threads beyond n return before the barrier; the rest see their neighbor. */
    early = cu_compile("early", CU_PARAMS("const int *", "int *", "int"),
        "extern \"C\" __global__ void early(const int *in, int *out, int n)\n"
        "{\n"
        "    __shared__ int s[64];\n"
        "    int t = threadIdx.x, i = blockIdx.x * 64 + t;\n"
        "    if (t % 3 == 1 || i >= n) return;\n"
        "    s[t] = in[i];\n"
        "    __syncthreads();\n"
        "    int j = t % 3 == 0 && t >= 1 ? t - 1 : t;\n"
        "    out[i] = s[j];\n"
        "}\n", 0);
    place = cu_compile("place", CU_PARAMS("int *"),
        "extern \"C\" __global__ void __launch_bounds__(24) place(int *out)\n"
        "{\n"
        "    __shared__ int first;\n"
        "    int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;\n"
        "    int b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;\n"
        "    int size = blockDim.x * blockDim.y * blockDim.z;\n"
        "    if (t == size - 1) first = b * size;\n"
        "    __syncthreads();\n"
        "    int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;\n"
        "    __syncthreads();\n"
        "    out[first + t] = x + 10 * y + 100 * z + 1000 * b + (threadIdx.x != x);\n"
        "}\n", 0);
    flip = cu_compile("flip", CU_PARAMS("const unsigned char *", "unsigned char *"),
        "extern \"C\" __global__ void flip(const unsigned char *in, unsigned char *out)\n"
        "{\n"
        "    extern __shared__ __align__(16) unsigned char turn[];\n"
        "    int t = threadIdx.x, n = blockDim.x, at = blockIdx.x * n;\n"
        "    turn[t] = in[at + t];\n"
        "    __syncthreads();\n"
        "    out[at + t] = turn[n - 1 - t];\n"
        "}\n", 1024);
    votes = cu_compile("votes", CU_PARAMS("int *"),
        "extern \"C\" __global__ void votes(int *out)\n"
        "{\n"
        "    int t = threadIdx.x, r = 0;\n"
        "    for (int k = 1; k < 5; k++) {\n"
        "        r += k * __syncthreads_count(t % k == 0);\n"
        "        r += 1000 * __syncthreads_or(t == k);\n"
        "        r += 10000 * __syncthreads_and(t < 29 + k);\n"
        "    }\n"
        "    out[t] = r;\n"
        "}\n", 0);
    /* Thread t waits t times, then goes. */
    leave = cu_compile("leave", CU_PARAMS("int *"),
        "extern \"C\" __global__ void leave(int *out)\n"
        "{\n"
        "    __shared__ int turn;\n"
        "    int t = threadIdx.x;\n"
        "    if (t == 0) turn = 0;\n"
        "    for (int k = 0; k < t; k++) {\n"
        "        __syncthreads();\n"
        "        if (t == blockDim.x - 1) turn++;\n"
        "        __syncthreads();\n"
        "    }\n"
        "    out[t] = turn;\n"
        "}\n", 0);
    deep = cu_compile("deep", CU_PARAMS("long long *"),
        "extern \"C\" __global__ void deep(long long *out)\n"
        "{\n"
        "    volatile int mine[16 * 1024];\n"
        "    for (int i = 0; i < 16 * 1024; i++) mine[i] = i * (int)threadIdx.x;\n"
        "    __syncthreads();\n"
        "    long long s = 0;\n"
        "    for (int i = 0; i < 16 * 1024; i++) s += mine[i];\n"
        "    out[threadIdx.x] = s;\n"
        "}\n", 0);
    /* Three times round all threads; each block has something of its own to keep meanwhile. */
    meet = cu_compile("meet", CU_PARAMS("int *", "int"),
        "#include <cooperative_groups.h>\n"
        "extern \"C\" __global__ void meet(int *v, int bytes)\n"
        "{\n"
        "    extern __shared__ unsigned char marks[];\n"
        "    __shared__ int own;\n"
        "    auto grid = cooperative_groups::this_grid();\n"
        "    int n = (int)grid.size(), i = (int)grid.thread_rank(), wrong = 0;\n"
        "    for (int k = 0; k < 3; k++) {\n"
        "        if (threadIdx.x == 0) own = 100 * blockIdx.x + k;\n"
        "        for (int b = threadIdx.x; b < bytes; b += blockDim.x) marks[b] = blockIdx.x + b + k;\n"
        "        v[k * n + i] = (k ? v[(k - 1) * n + (i + 1) % n] : 0) + i;\n"
        "        grid.sync();\n"
        "        wrong += own != 100 * blockIdx.x + k;\n"
        "        for (int b = threadIdx.x; b < bytes; b += blockDim.x)\n"
        "            wrong += marks[b] != (unsigned char)(blockIdx.x + b + k);\n"
        "        grid.sync();\n"
        "    }\n"
        "    v[3 * n + i] = wrong;\n"
        "}\n", 4096);
    to_half = cu_compile("to_half", CU_PARAMS("const float *", "gp_half *"),
        "extern \"C\" __global__ void to_half(const float *in, gp_half *out)\n"
        "{\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    out[i] = gp_to_half(in[i]);\n"
        "}\n", 0);
    from_half = cu_compile("from_half", CU_PARAMS("const gp_half *", "float *"),
        "extern \"C\" __global__ void from_half(const gp_half *in, float *out)\n"
        "{\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    out[i] = gp_from_half(in[i]);\n"
        "}\n", 0);
}

static void setup(void)
{
    runner = gp_cpu_runner_create();
    ck_assert_ptr_nonnull(runner);
}

static void teardown(void)
{
    gp_cpu_runner_destroy(runner);
}

enum { BLOCKS = 1200 };

static void check_sum(gp_cpu_runner *r, int blocks)
{
    int n = blocks * 256 - 77, *in = malloc((size_t)n * sizeof *in), out[BLOCKS];
    int total = 0, want = 0;
    int *po = out, *pt = &total;
    unsigned seed = 1;
    for (int i = 0; i < n; i++)
        in[i] = (int)((seed = seed * 1664525 + 1013904223) >> 20);
    ck_assert(gp_cpu_grid(r, &sum, (gp_dim3){ (unsigned)blocks, 1, 1 }, (gp_dim3){ 256, 1, 1 }, 0,
                          (void *const[]){ &in, &po, &pt, &n }));
    for (int b = 0; b < blocks; b++) {
        int s = 0;
        for (int i = b * 256; i < n && i < (b + 1) * 256; i++)
            s += in[i];
        ck_assert_int_eq(out[b], s);
        want += s;
    }
    ck_assert_int_eq(total, want);
    free(in);
}

TEST(block_sums)
{
    check_sum(runner, BLOCKS);
}

TEST(early_returns)
{
    int in[640], out[640], n = 600, *pi = in, *po = out;
    for (int i = 0; i < 640; i++)
        in[i] = i * i, out[i] = -1;
    ck_assert(gp_cpu_grid(runner, &early, (gp_dim3){ 10, 1, 1 }, (gp_dim3){ 64, 1, 1 }, 0,
                          (void *const[]){ &pi, &po, &n }));
    for (int i = 0; i < 640; i++) {
        int t = i % 64, j = t % 3 == 0 && t >= 1 ? i - 1 : i;
        ck_assert_int_eq(out[i], t % 3 == 1 || i >= n ? -1 : j * j);
    }
}

TEST(three_axes)
{
    int out[12 * 24], *po = out;
    ck_assert(gp_cpu_grid(runner, &place, (gp_dim3){ 3, 2, 2 }, (gp_dim3){ 4, 3, 2 }, 0, (void *const[]){ &po }));
    for (int i = 0; i < 12 * 24; i++) {
        int t = i % 24;
        ck_assert_int_eq(out[i], t % 4 + 10 * (t / 4 % 3) + 100 * (t / 12) + 1000 * (i / 24));
    }
}

TEST(dynamic_shared)
{
    static const unsigned size[] = { 1, 7, 256, 1024 };
    unsigned char in[4096], out[4096], *pi = in, *po = out;
    for (int i = 0; i < 4096; i++)
        in[i] = (unsigned char)(i * 31);
    for (size_t k = 0; k < sizeof size / sizeof *size; k++) {
        unsigned n = size[k];
        ck_assert(gp_cpu_grid(runner, &flip, (gp_dim3){ 4, 1, 1 }, (gp_dim3){ n, 1, 1 }, n,
                              (void *const[]){ &pi, &po }));
        for (unsigned i = 0; i < 4 * n; i++)
            ck_assert_int_eq(out[i], in[i / n * n + n - 1 - i % n]);
    }
}

TEST(counting_barriers)
{
    int out[32], *po = out, want = 0;
    ck_assert(gp_cpu_grid(runner, &votes, (gp_dim3){ 1, 1, 1 }, (gp_dim3){ 32, 1, 1 }, 0, (void *const[]){ &po }));
    for (int k = 1; k < 5; k++)
        want += k * (31 / k + 1) + 1000 + 10000 * (31 < 29 + k);
    for (int t = 0; t < 32; t++)
        ck_assert_int_eq(out[t], want);
}

TEST(leaving_between_barriers)
{
    int out[100], *po = out;
    ck_assert(gp_cpu_grid(runner, &leave, (gp_dim3){ 5, 1, 1 }, (gp_dim3){ 100, 1, 1 }, 0, (void *const[]){ &po }));
    for (int t = 0; t < 100; t++)
        ck_assert_int_eq(out[t], t);
}

TEST(large_frames)
{
    long long out[40], *po = out;
    ck_assert(gp_cpu_grid(runner, &deep, (gp_dim3){ 2, 1, 1 }, (gp_dim3){ 40, 1, 1 }, 0, (void *const[]){ &po }));
    for (int t = 0; t < 40; t++)
        ck_assert_int_eq(out[t], 8192LL * 16383 * t);
}

/* What the runner keeps for blocks that wait grows, and serves smaller grids after that. */
TEST(cooperative_grids_of_many_sizes)
{
    static const struct { unsigned blocks, threads, shared; } size[] = {
        { 1, 1, 0 }, { 3, 8, 16 }, { 40, 2, 16 }, { 2, 4, 4096 }, { 5, 4, 0 }, { 60, 4, 4096 },
        { 60, 1, 1 }, { 1, 64, 4096 },
    };
    for (size_t s = 0; s < sizeof size / sizeof *size; s++) {
        int n = (int)(size[s].blocks * size[s].threads), bytes = (int)size[s].shared;
        int *v = malloc(4 * (size_t)n * sizeof *v);
        ck_assert(gp_cpu_cooperative(runner, &meet, (gp_dim3){ size[s].blocks, 1, 1 },
                                     (gp_dim3){ size[s].threads, 1, 1 }, size[s].shared,
                                     (void *const[]){ &v, &bytes }));
        for (int i = 0; i < n; i++) {
            ck_assert_int_eq(v[2 * n + i], i + (i + 1) % n + (i + 2) % n);
            ck_assert_int_eq(v[3 * n + i], 0);
        }
        free(v);
    }
}

TEST(one_runner_many_kernels)
{
    for (int i = 0; i < 3; i++) {
        early_returns_fn(0);
        three_axes_fn(0);
        dynamic_shared_fn(0);
        leaving_between_barriers_fn(0);
    }
}

/* Every f16 there and back; between two neighbors the nearer one, then the even. */
TEST(halves)
{
    enum { N = 0x10000, INF = 0x7c00 };
    static unsigned short h[N], back[N];
    static float f[N], x[N];
    unsigned short *ph = h, *pb = back;
    float *pf = f, *px = x;
    const gp_dim3 grid = { N / 256, 1, 1 }, block = { 256, 1, 1 };
    for (int i = 0; i < N; i++)
        h[i] = (unsigned short)i;
    ck_assert(gp_cpu_grid(runner, &from_half, grid, block, 0, (void *const[]){ &ph, &pf }));
    for (int i = 0; i < N; i++) {
        int a = i & 0x7fff, e = a >> 10, m = a & 1023;
        float want = ldexpf((float)(e ? 1024 + m : m), (e ? e : 1) - 25);
        if (a > INF)
            ck_assert(isnan(f[i]));
        else
            ck_assert_float_eq(f[i], (i >> 15 ? -1.f : 1.f) * (a == INF ? INFINITY : want));
    }
    for (int way = -1; way <= 1; way++) {
        for (int i = 0; i < N; i++) {
            int a = i & 0x7fff;
            float up = a + 1 == INF ? copysignf(65536, f[i]) : f[(i + 1) % N];
            float middle = (f[i] + up) / 2;
            x[i] = a >= INF ? f[i] : way ? nextafterf(middle, way < 0 ? f[i] : up) : middle;
        }
        ck_assert(gp_cpu_grid(runner, &to_half, grid, block, 0, (void *const[]){ &px, &pb }));
        for (int i = 0; i < N; i++) {
            int a = i & 0x7fff, want = a >= INF || way < 0 ? i : way > 0 ? i + 1 : i + (i & 1);
            ck_each(back[i] == (a > INF ? 0x7fff : want), "%#x became %#x", i, back[i]);
        }
    }
}

static void *thread(void *arg)
{
    gp_cpu_runner *r = gp_cpu_runner_create();
    for (int i = 0; i < 3; i++)
        check_sum(r, 50);
    gp_cpu_runner_destroy(r);
    return NULL;
}

/* Shared memory and the state of a block are each thread's own. */
TEST(runners_in_threads)
{
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, thread, NULL), 0);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_join(t[i], NULL), 0);
}

SUITE(fiber, tcase_add_unchecked_fixture(tc, compile_all, cu_close); tcase_add_checked_fixture(tc, setup, teardown))
