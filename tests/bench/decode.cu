// decode.cu - a decoder of GPT-2's small size, one token a step, as one writes it by hand: 62 kernels a token (for each
// of 12 layers 5), several tokens in one CUDA graph, tokens, positions and the KV cache on the device.
//
//     decode [FOLDER [LOGITS]]
//
// FOLDER holds weights as examples/decode/make_random.py FOLDER 12 768 12 50257 1024 writes them; without it they are
// random. Prints `NAME B TOKENS_PER_S US_PER_STEP`: 256 tokens behind a prompt of 16, greedy, B sequences at once, the
// median of 5 runs. NAME tells how many tokens are in a graph, and how kernels follow each other: graph (a kernel
// begins when the one before has ended), pdl (it is launched, and reads its weights, while the one before still runs),
// early (even before that one has begun its own work); by tensor cores, of whose 8 columns one sequence fills 1, or
// by sums. Weights and the cache are f16, sums and the residual f32. LOGITS, a file, becomes the logits (f32) behind
// 24 given tokens, for B = 1 by sums, B = 1 by tensor cores, and B = 8: decode_peers.py compares them.
#include <climits>
#include <cstring>
#include <string>
#include <cuda_fp16.h>
#include "hand.h"

constexpr int D = 768, HEADS = 12, HD = 64, L = 12, V = 50257, T = 1024, PROMPT = 16, STEPS = 256;
constexpr int HALF = 12;              // 16-byte loads of a lane under way, in the kernel of the logits
enum mode { QKV, OUT, UP, DOWN };     // OUT and DOWN add to the residual; QKV and UP normalize what they read

// What a launch is told besides its weights.
struct state {
    float *x, *q, *logits, *best;     // [B][D], [B][D], [B][V] or null, [blocks][B]
    int *best_at, *pos, *tokens;      // [blocks][B], [B], [B][T]
    const int *prompt;                // [B][given]
    half *att, *act, *k, *v;          // [B][D], [B][4 D], and [B][HEADS][T][HD] of the layer
    const half *wte, *wpe;
    int given, early;
    unsigned none;
};

// Weights do not change: they are read before the kernel before has ended. Volatile, and not said to be constant: so
// the compiler leaves them there.
__device__ static inline uint4 weight(const half *p)
{
    uint4 v;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p) : "memory");
    return v;
}

// What kernels have written: volatile too, so that all of it is under way before the first is used.
__device__ static inline uint4 fresh(const void *p)
{
    uint4 v;
    asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p) : "memory");
    return v;
}

// The next kernel may be launched.
__device__ static inline void begin(const state &s)
{
#if __CUDA_ARCH__ >= 900
    if (s.early)
        asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Until all that the kernels before have written is there.
__device__ static inline void wait(const state &s)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    if (!s.early)
        asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

__device__ static inline float warp_sum(float v)
{
    for (int d = 16; d; d /= 2)
        v += __shfl_xor_sync(~0u, v, d);
    return v;
}

__device__ static inline void eight(float *f, uint4 u)
{
    const half2 *h = (const half2 *)&u;
    for (int i = 0; i < 4; i++) {
        float2 two = __half22float2(h[i]);
        f[2 * i] = two.x, f[2 * i + 1] = two.y;
    }
}

__device__ static inline float dot8(uint4 w, const float *x, float sum)
{
    float f[8];
    eight(f, w);
    for (int i = 0; i < 8; i++)
        sum = fmaf(f[i], x[i], sum);
    return sum;
}

// A lane's 24 of the D of row b, columns 256 j + 8 lane and what follows, normalized.
__device__ static inline void normalized(float *f, const float *x, int lane)
{
    for (int j = 0; j < 3; j++)
        for (int i = 0; i < 2; i++)
            *(uint4 *)(f + 8 * j + 4 * i) = fresh(x + 256 * j + 8 * lane + 4 * i);
    float sum = 0, square = 0;
    for (int i = 0; i < 24; i++)
        sum += f[i];
    float mean = warp_sum(sum) / D;
    for (int i = 0; i < 24; i++)
        f[i] -= mean, square = fmaf(f[i], f[i], square);
    float scale = rsqrtf(warp_sum(square) / D + 1e-5f);
    for (int i = 0; i < 24; i++)
        f[i] *= scale;
}

// What a sum is added to, or where it goes, is read before it is there.
struct before {
    float x;
    int pos;
};

template <int M> __device__ static inline before look(const state &s, int b, int row)
{
    return { M == OUT || M == DOWN ? __ldcg(s.x + b * D + row) : 0, M == QKV ? __ldcg(s.pos + b) : 0 };
}

// Where the sum of one row of the weights, for sequence b, goes.
template <int M> __device__ static inline void put(const state &s, before had, int b, int row, float v)
{
    if (M == QKV && row < D)
        s.q[b * D + row] = v;
    else if (M == QKV) {
        int of = row % D;
        half *cache = row < 2 * D ? s.k : s.v;
        cache[((size_t)(b * HEADS + of / HD) * T + had.pos) * HD + of % HD] = __float2half(v);
    } else if (M == UP)
        s.act[b * 4 * D + row] = __float2half(0.5f * v * (1 + erff(v * 0.70710678f)));
    else
        s.x[b * D + row] = had.x + v;
}

// One sequence: a warp for 768 columns of a row of the weights, K / 768 warps for the row.
template <int M, int K, int WARPS>
__global__ void __launch_bounds__(32 * WARPS) one(state s, const half *w, const half *bias)
{
    constexpr int SPLIT = K / D;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = blockIdx.x * (WARPS / SPLIT) + warp / SPLIT;
    int from = warp % SPLIT * D + 8 * lane;
    uint4 u[3];
    begin(s);
    for (int j = 0; j < 3; j++)
        u[j] = weight(w + (size_t)row * K + from + 256 * j);
    half add = bias[row];
    float x[24], sum = 0;
    wait(s);
    before had = look<M>(s, 0, row);
    if (M == QKV || M == UP)
        normalized(x, s.x, lane);
    else {
        uint4 a[3];
        for (int j = 0; j < 3; j++)
            a[j] = fresh((M == OUT ? s.att : s.act) + from + 256 * j);
        for (int j = 0; j < 3; j++)
            eight(x + 8 * j, a[j]);
    }
    for (int j = 0; j < 3; j++)
        sum = dot8(u[j], x + 8 * j, sum);
    sum = warp_sum(sum);
    if (SPLIT > 1) {
        __shared__ float part[WARPS];
        if (!lane)
            part[warp] = sum;
        __syncthreads();
        sum = 0;
        for (int i = 0; i < SPLIT; i++)
            sum += part[warp / SPLIT * SPLIT + i];
        if (warp % SPLIT)
            return;
    }
    if (!lane)
        put<M>(s, had, 0, row, sum + __half2float(add));
}

__device__ static inline void mma(float *c, unsigned a0, unsigned a2, unsigned b0, unsigned b1)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(0), "r"(a2), "r"(0), "r"(b0), "r"(b1));
#endif
}

// 32 columns for 8 sequences and 8 rows of the weights. Which column is which does not matter, as long as both agree:
// so a lane has 8 that lie side by side.
__device__ static inline void mma32(float *c, uint4 a, uint4 w)
{
    mma(c, a.x, a.y, w.x, w.y);
    mma(c, a.z, a.w, w.z, w.w);
}

constexpr int WIDE = D + 32;          // of a row in shared memory, so that lanes meet in no bank

template <int B> __device__ static inline void normalize(half (*h)[WIDE], const state &s, int warp, int lane)
{
    if (warp < B) {
        float x[24];
        normalized(x, s.x + warp * D, lane);
        for (int j = 0; j < 3; j++) {
            half2 two[4];
            for (int i = 0; i < 4; i++)
                two[i] = __floats2half2_rn(x[8 * j + 2 * i], x[8 * j + 2 * i + 1]);
            *(uint4 *)&h[warp][256 * j + 8 * lane] = *(uint4 *)two;
        }
    }
    __syncthreads();
}

// B sequences, 8 at most: a block for 8 rows of the weights, whose columns its warps share.
template <int M, int K, int WARPS, int B>
__global__ void __launch_bounds__(32 * WARPS) eight_rows(state s, const half *w, const half *bias)
{
    constexpr int N = K / WARPS / 32;
    constexpr bool NORMAL = M == QKV || M == UP;
    __shared__ __align__(16) half h[NORMAL ? B : 1][WIDE];
    __shared__ float2 part[WARPS][32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, from = warp * (K / WARPS) + lane % 4 * 8;
    uint4 u[N], a[N];
    begin(s);
    for (int j = 0; j < N; j++)
        u[j] = weight(w + (size_t)(blockIdx.x * 8 + g) * K + from + 32 * j);
    int i = threadIdx.x, b = i / 8, row = blockIdx.x * 8 + i % 8;
    half add = b < B ? bias[row] : half(0);
    float c[4] = {}, sum = 0;
    wait(s);
    before had = {};
    if (b < B)
        had = look<M>(s, b, row);
    if (NORMAL)
        normalize<B>(h, s, warp, lane);
    for (int j = 0; j < N; j++)
        if (g >= B)
            a[j] = uint4{};
        else if (NORMAL)
            a[j] = *(const uint4 *)&h[g][from + 32 * j];
        else
            a[j] = fresh((M == OUT ? s.att : s.act) + g * K + from + 32 * j);
    unsigned all = s.none;            // 0, which the compiler does not know: so it reads all before it multiplies
    for (int j = 0; j < N; j++)
        all &= a[j].x;
    u[0].x |= all;
    for (int j = 0; j < N; j++)
        mma32(c, a[j], u[j]);
    part[warp][lane] = make_float2(c[0], c[1]);
    __syncthreads();
    if (b >= B)
        return;
    for (int j = 0; j < WARPS; j++)
        sum += ((float *)part[j])[i];
    put<M>(s, had, b, row, sum + __half2float(add));
}

// A block for each head of each sequence: 8 lanes for a position, 64 positions at once, each with a softmax of its own
// until the end.
__global__ void __launch_bounds__(512) attention(state s)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, sub = lane % 8, group = threadIdx.x / 8, b = blockIdx.y;
    begin(s);
    wait(s);
    int n = __ldcg(s.pos + b) + 1;
    float q[8], acc[8] = {}, most = -INFINITY, sum = 0;
    for (int i = 0; i < 2; i++)
        *(uint4 *)(q + 4 * i) = fresh(s.q + b * D + blockIdx.x * HD + 8 * sub + 4 * i);
    size_t from = (size_t)(b * HEADS + blockIdx.x) * T * HD + 8 * sub;
    for (int at = group; at - group < n; at += 256) {
        uint4 k[4], v[4];
        float score[4], high = most, f[8];
        for (int j = 0; j < 4; j++) {
            bool in = at + 64 * j < n;
            k[j] = in ? fresh(s.k + from + (size_t)(at + 64 * j) * HD) : uint4{};
            v[j] = in ? fresh(s.v + from + (size_t)(at + 64 * j) * HD) : uint4{};
        }
        for (int j = 0; j < 4; j++) {
            score[j] = dot8(k[j], q, 0);
            for (int d = 4; d; d /= 2)
                score[j] += __shfl_xor_sync(~0u, score[j], d);
            score[j] = at + 64 * j < n ? score[j] * 0.125f : -INFINITY;
            high = fmaxf(high, score[j]);
        }
        if (high == -INFINITY)
            continue;
        float shrink = __expf(most - high);
        most = high, sum *= shrink;
        for (int i = 0; i < 8; i++)
            acc[i] *= shrink;
        for (int j = 0; j < 4; j++) {
            float p = __expf(score[j] - high);
            sum += p;
            eight(f, v[j]);
            for (int i = 0; i < 8; i++)
                acc[i] = fmaf(p, f[i], acc[i]);
        }
    }
    __shared__ float high_of[16], sum_of[16], part[16][HD];
    float high = most;
    for (int d = 8; d < 32; d *= 2)
        high = fmaxf(high, __shfl_xor_sync(~0u, high, d));
    float shrink = most == -INFINITY ? 0 : __expf(most - high);
    sum *= shrink;
    for (int d = 8; d < 32; d *= 2)
        sum += __shfl_xor_sync(~0u, sum, d);
    for (int i = 0; i < 8; i++) {
        acc[i] *= shrink;
        for (int d = 8; d < 32; d *= 2)
            acc[i] += __shfl_xor_sync(~0u, acc[i], d);
    }
    if (lane < 8) {
        high_of[warp] = high, sum_of[warp] = sum;
        for (int i = 0; i < 8; i++)
            part[warp][8 * sub + i] = acc[i];
    }
    __syncthreads();
    if (threadIdx.x >= HD)
        return;
    float all = high_of[0], total = 0, out = 0;
    for (int i = 1; i < 16; i++)
        all = fmaxf(all, high_of[i]);
    for (int i = 0; i < 16; i++) {
        float p = high_of[i] == -INFINITY ? 0 : __expf(high_of[i] - all);
        total += p * sum_of[i], out += p * part[i][threadIdx.x];
    }
    s.att[b * D + blockIdx.x * HD + threadIdx.x] = __float2half(out / total);
}

__device__ static inline void better(float &v, int &at, float other, int other_at)
{
    if (other > v || (other == v && other_at < at))
        v = other, at = other_at;
}

// Logits, of which a block keeps the highest. One sequence: 4 rows of a warp at once. The next weights are under way
// while these are summed.
__global__ void __launch_bounds__(256, 2) head_one(state s, const half *w, const half *bias)
{
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, stride = gridDim.x * 8 * 4, at = INT_MAX;
    float x[24], best = -INFINITY;
    uint4 u[HALF], now[HALF];
    auto read = [&](int row) {
        for (int j = 0; j < HALF; j++)
            u[j] = weight(w + (size_t)min(row + j / 3, V - 1) * D + 8 * lane + 256 * (j % 3));
    };
    begin(s);
    int row = (blockIdx.x * 8 + warp) * 4;
    read(row);
    wait(s);
    normalized(x, s.x, lane);
    for (; row < V; row += stride) {
        for (int j = 0; j < HALF; j++)
            now[j] = u[j];
        if (row + stride < V)
            read(row + stride);
        float sum[4];
        for (int r = 0; r < 4; r++) {
            sum[r] = 0;
            for (int j = 0; j < 3; j++)
                sum[r] = dot8(now[3 * r + j], x + 8 * j, sum[r]);
        }
        // Four sums over the warp in 7 shuffles: lanes 8 r hold that of row r.
        bool upper = lane & 16, odd = lane & 8;
        float a = (upper ? sum[2] : sum[0]) + __shfl_xor_sync(~0u, upper ? sum[0] : sum[2], 16);
        float c = (upper ? sum[3] : sum[1]) + __shfl_xor_sync(~0u, upper ? sum[1] : sum[3], 16);
        float v = (odd ? c : a) + __shfl_xor_sync(~0u, odd ? a : c, 8);
        for (int d = 4; d; d /= 2)
            v += __shfl_xor_sync(~0u, v, d);
        int mine = row + lane / 8;
        if (mine < V) {
            v += __half2float(bias[mine]);
            if (s.logits && lane % 8 == 0)
                s.logits[mine] = v;
            better(best, at, v, mine);
        }
    }
    for (int d = 16; d; d /= 2)
        better(best, at, __shfl_xor_sync(~0u, best, d), __shfl_xor_sync(~0u, at, d));
    __shared__ float best_of[8];
    __shared__ int at_of[8];
    if (!lane)
        best_of[warp] = best, at_of[warp] = at;
    __syncthreads();
    if (threadIdx.x)
        return;
    for (int i = 1; i < 8; i++)
        better(best, at, best_of[i], at_of[i]);
    s.best[blockIdx.x] = best, s.best_at[blockIdx.x] = at;
}

// 8 sequences: 8 rows of a warp at once, in two halves of their columns.
__global__ void __launch_bounds__(256, 2) head_eight(state s, const half *w, const half *bias)
{
    __shared__ __align__(16) half h[8][WIDE];
    __shared__ float best_of[8][8];
    __shared__ int at_of[8][8];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    int stride = gridDim.x * 64, at = INT_MAX;
    float best = -INFINITY;
    uint4 u[HALF], now[HALF];
    auto read = [&](int row, int second) {
        for (int j = 0; j < HALF; j++)
            u[j] = weight(w + (size_t)min(row + g, V - 1) * D + second * (D / 2) + 32 * j + 8 * t);
    };
    begin(s);
    int row = (blockIdx.x * 8 + warp) * 8;
    read(row, 0);
    wait(s);
    normalize<8>(h, s, warp, lane);
    for (; row < V; row += stride) {
        float c[4] = {};
        for (int second = 0; second < 2; second++) {
            for (int j = 0; j < HALF; j++)
                now[j] = u[j];
            if (!second)
                read(row, 1);
            else if (row + stride < V)
                read(row + stride, 0);
            for (int j = 0; j < HALF; j++)
                mma32(c, *(const uint4 *)&h[g][second * (D / 2) + 32 * j + 8 * t], now[j]);
        }
        for (int i = 0; i < 2; i++) {
            int mine = row + 2 * t + i;
            if (mine >= V)
                break;
            float v = c[i] + __half2float(bias[mine]);
            if (s.logits)
                s.logits[(size_t)g * V + mine] = v;
            better(best, at, v, mine);
        }
    }
    for (int d = 2; d; d /= 2)
        better(best, at, __shfl_xor_sync(~0u, best, d), __shfl_xor_sync(~0u, at, d));
    if (!t)
        best_of[warp][g] = best, at_of[warp][g] = at;
    __syncthreads();
    if (threadIdx.x >= 8)
        return;
    int b = threadIdx.x;
    best = best_of[0][b], at = at_of[0][b];
    for (int i = 1; i < 8; i++)
        better(best, at, best_of[i][b], at_of[i][b]);
    s.best[blockIdx.x * 8 + b] = best, s.best_at[blockIdx.x * 8 + b] = at;
}

// The token that comes next, and what the next step begins with. `blocks` is 0 at the start, where no logits are.
__global__ void __launch_bounds__(256) next(state s, int blocks)
{
    __shared__ float best_of[8];
    __shared__ int at_of[8];
    int b = blockIdx.x, many = gridDim.x, at = INT_MAX;
    float best = -INFINITY;
    begin(s);
    wait(s);
    int pos = blocks ? __ldcg(s.pos + b) + 1 : 0;
    for (int i = threadIdx.x; i < blocks; i += 256)
        better(best, at, __ldcg(s.best + i * many + b), __ldcg(s.best_at + i * many + b));
    for (int d = 16; d; d /= 2)
        better(best, at, __shfl_xor_sync(~0u, best, d), __shfl_xor_sync(~0u, at, d));
    if (threadIdx.x % 32 == 0)
        best_of[threadIdx.x / 32] = best, at_of[threadIdx.x / 32] = at;
    __syncthreads();
    for (int i = 0; i < 8; i++)
        better(best, at, best_of[i], at_of[i]);
    if (pos < s.given)
        at = s.prompt[b * s.given + pos];
    for (int i = threadIdx.x; i < D; i += 256)
        s.x[b * D + i] = __half2float(s.wte[(size_t)at * D + i]) + __half2float(s.wpe[pos * D + i]);
    if (threadIdx.x == 0)
        s.tokens[b * T + pos] = at, s.pos[b] = pos;
}

__global__ void fill(half *p, size_t n, unsigned seed)
{
    for (size_t i = blockIdx.x * 256ull + threadIdx.x; i < n; i += gridDim.x * 256ull) {
        unsigned long long z = (i + 1) * 0x9e3779b97f4a7c15ull + seed * 0xd1342543de82ef95ull;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull, z = (z ^ z >> 27) * 0x94d049bb133111ebull, z ^= z >> 31;
        float even = ((unsigned)z >> 8) / 16777216.f - 0.5f;
        p[i] = __float2half(even * 0.0692820f);       // of deviation 0.02, as GPT-2 begins
    }
}

static half *load(const char *folder, const std::string &name, size_t n)
{
    static unsigned seed;
    half *p;
    CHECK(cudaMalloc(&p, n * sizeof(half)));
    if (!folder) {
        fill<<<1024, 256>>>(p, n, ++seed);
        return p;
    }
    std::string path = std::string(folder) + "/" + name + ".npy";
    std::vector<half> data(n);
    unsigned char head[10];
    FILE *f = fopen(path.c_str(), "rb");
    bool ok = f && fread(head, 1, 10, f) == 10 && !memcmp(head, "\x93NUMPY\1", 7);
    ok = ok && !fseek(f, 10 + head[8] + 256 * head[9], SEEK_SET) && fread(data.data(), sizeof(half), n, f) == n;
    ok = ok && fgetc(f) == EOF;
    if (!ok) {
        fprintf(stderr, "decode: %s does not hold %zu numbers of f16\n", path.c_str(), n);
        exit(1);
    }
    fclose(f);
    CHECK(cudaMemcpy(p, data.data(), n * sizeof(half), cudaMemcpyHostToDevice));
    return p;
}

struct layer {
    half *qkv, *qkv_bias, *out, *out_bias, *up, *up_bias, *down, *down_bias;
};

struct model {
    half *wte, *wpe, *head, *head_bias;
    std::vector<layer> layers;
};

static model load_model(const char *folder)
{
    model m = { load(folder, "wte", (size_t)V * D), load(folder, "wpe", (size_t)T * D),
                load(folder, "head", (size_t)V * D), load(folder, "head_bias", V), {} };
    for (int i = 0; i < L; i++) {
        std::string k = "." + std::to_string(i);
        m.layers.push_back({ load(folder, "qkv" + k, 3 * D * D), load(folder, "qkv_bias" + k, 3 * D),
                             load(folder, "out" + k, D * D), load(folder, "out_bias" + k, D),
                             load(folder, "up" + k, 4 * D * D), load(folder, "up_bias" + k, 4 * D),
                             load(folder, "down" + k, 4 * D * D), load(folder, "down_bias" + k, D) });
    }
    return m;
}

template <class T_> static T_ *zeros(size_t n)
{
    T_ *p;
    CHECK(cudaMalloc(&p, n * sizeof(T_)));
    CHECK(cudaMemset(p, 0, n * sizeof(T_)));
    return p;
}

struct decoder {
    const model &m;
    int many, blocks, pdl;
    bool tensor;                      // the layers by tensor cores
    size_t cache;                     // elements of one layer
    cudaStream_t stream;
    state s;

    decoder(const model &of, int b) : m(of), many(b), pdl(0), tensor(b > 1), cache((size_t)b * HEADS * T * HD), s{}
    {
        CHECK(cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, 0));
        blocks *= 2;
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        s.x = zeros<float>(b * D), s.q = zeros<float>(b * D), s.best = zeros<float>(blocks * b);
        s.best_at = zeros<int>(blocks * b), s.pos = zeros<int>(b), s.tokens = zeros<int>(b * T);
        s.att = zeros<half>(b * D), s.act = zeros<half>(b * 4 * D), s.k = zeros<half>(2 * L * cache);
        s.wte = m.wte, s.wpe = m.wpe;
    }

    // The same tokens as decode_peers.py gives.
    void give(int given)
    {
        std::vector<int> p(many * given);
        for (int i = 0; i < many * given; i++)
            p[i] = (i / given * 131 + i % given * 1717 + 11) % V;
        int *d = zeros<int>(p.size());
        CHECK(cudaMemcpy(d, p.data(), p.size() * sizeof(int), cudaMemcpyHostToDevice));
        s.prompt = d, s.given = given;
        CHECK(cudaDeviceSynchronize());
    }

    template <class... P, class... A> void launch(dim3 grid, int threads, void (*kernel)(P...), A... args)
    {
        cudaLaunchAttribute how = {};
        how.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        how.val.programmaticStreamSerializationAllowed = 1;
        cudaLaunchConfig_t c = {};
        c.gridDim = grid, c.blockDim = threads, c.stream = stream, c.attrs = &how, c.numAttrs = pdl != 0;
        CHECK(cudaLaunchKernelEx(&c, kernel, P(args)...));
    }

    void start() { launch(many, 256, next, s, 0); }

    template <int B> void by_tensor_cores(const state &at, const layer &l)
    {
        launch(3 * D / 8, 256, eight_rows<QKV, D, 8, B>, at, l.qkv, l.qkv_bias);
        launch(dim3(HEADS, B), 512, attention, at);
        launch(D / 8, 256, eight_rows<OUT, D, 8, B>, at, l.out, l.out_bias);
        launch(4 * D / 8, 256, eight_rows<UP, D, 8, B>, at, l.up, l.up_bias);
        launch(D / 8, 512, eight_rows<DOWN, 4 * D, 16, B>, at, l.down, l.down_bias);
    }

    void step()
    {
        for (int i = 0; i < L; i++) {
            const layer &l = m.layers[i];
            state at = s;
            at.early = pdl == 2, at.k = s.k + 2 * i * cache, at.v = at.k + cache;
            if (!tensor) {
                launch(3 * D / 8, 256, one<QKV, D, 8>, at, l.qkv, l.qkv_bias);
                launch(dim3(HEADS, many), 512, attention, at);
                launch(D / 4, 128, one<OUT, D, 4>, at, l.out, l.out_bias);
                launch(4 * D / 8, 256, one<UP, D, 8>, at, l.up, l.up_bias);
                launch(D / 2, 256, one<DOWN, 4 * D, 8>, at, l.down, l.down_bias);
            } else if (many == 1)
                by_tensor_cores<1>(at, l);
            else
                by_tensor_cores<8>(at, l);
        }
        state at = s;
        at.early = pdl == 2;
        launch(blocks, 256, many == 1 ? head_one : head_eight, at, m.head, m.head_bias);
        launch(many, 256, next, at, blocks);
    }

    cudaGraphExec_t graph(int steps)
    {
        cudaGraph_t g;
        cudaGraphExec_t made;
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        for (int i = 0; i < steps; i++)
            step();
        CHECK(cudaStreamEndCapture(stream, &g));
        CHECK(cudaGraphInstantiate(&made, g, 0));
        CHECK(cudaGraphUpload(made, stream));
        CHECK(cudaGraphDestroy(g));
        return made;
    }

    std::vector<int> produced()
    {
        std::vector<int> t(many * T);
        CHECK(cudaMemcpy(t.data(), s.tokens, t.size() * sizeof(int), cudaMemcpyDeviceToHost));
        return t;
    }
};

static void write_logits(decoder &d, FILE *f)
{
    std::vector<float> out((size_t)d.many * V);
    d.s.logits = zeros<float>(out.size());
    d.give(24);
    d.start();
    for (int i = 0; i < 24; i++)
        d.step();
    CHECK(cudaStreamSynchronize(d.stream));
    CHECK(cudaMemcpy(out.data(), d.s.logits, out.size() * sizeof(float), cudaMemcpyDeviceToHost));
    fwrite(out.data(), sizeof(float), out.size(), f);
    d.s.logits = nullptr;
}

// Seconds of a step.
static double measure(decoder &d, int steps, int pdl)
{
    std::vector<double> took;
    d.pdl = 0;
    cudaGraphExec_t prompt = d.graph(PROMPT);
    d.pdl = pdl;
    cudaGraphExec_t graph = d.graph(steps);
    for (int run = 0; run < 6; run++) {
        d.pdl = 0, d.start();
        CHECK(cudaGraphLaunch(prompt, d.stream));
        CHECK(cudaStreamSynchronize(d.stream));
        double began = seconds();
        for (int i = 0; i < STEPS; i += steps)
            CHECK(cudaGraphLaunch(graph, d.stream));
        CHECK(cudaStreamSynchronize(d.stream));
        if (run)
            took.push_back(seconds() - began);
    }
    CHECK(cudaGraphExecDestroy(prompt));
    CHECK(cudaGraphExecDestroy(graph));
    std::sort(took.begin(), took.end());
    return took[2] / STEPS;
}

int main(int argc, char **argv)
{
    static const char *const names[] = { "graph", "pdl", "early" };
    static const int cases[][2] = { { 1, 0 }, { 8, 0 }, { 8, 1 }, { 8, 2 }, { 32, 0 }, { 32, 1 }, { 32, 2 } };
    start_device();
    int major;
    CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    if (major < 9)
        return fprintf(stderr, "decode: a device of compute capability 9.0 or later is needed\n"), 3;
    model m = load_model(argc > 1 ? argv[1] : nullptr);
    FILE *f = argc > 2 ? fopen(argv[2], "wb") : nullptr;
    for (int kind = 0; kind < 3; kind++) {
        int b = kind < 2 ? 1 : 8;
        decoder d(m, b);
        d.tensor = kind > 0;
        if (f)
            write_logits(d, f);
        d.give(PROMPT);
        std::vector<int> first;
        for (auto &[steps, pdl] : cases) {
            double took = measure(d, steps, pdl);
            printf("%s-%d-%s %d %.0f %.2f\n", names[pdl], steps, d.tensor ? "tensor" : "sums", b, b / took, 1e6 * took);
            fflush(stdout);
            std::vector<int> now = d.produced();
            if (first.empty())
                first = now;
            for (int i = 0; i < b * T; i++)
                if (i % T <= PROMPT + STEPS && now[i] != first[i]) {
                    fprintf(stderr, "decode: token %d of sequence %d is %d, not %d\n", i % T, i / T, now[i], first[i]);
                    return 1;
                }
        }
        printf("# tokens:");
        for (int i = PROMPT; i < PROMPT + 8; i++)
            printf(" %d", first[i]);
        printf("\n");
    }
    if (f)
        fclose(f);
    return 0;
}
