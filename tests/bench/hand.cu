// hand.cu - what the speed figures are measured beside: the same pipeline (copy
// in, kernel, copy out) as one would write it by hand, for one size and depth.
//
//   hand [BYTES...]      else 4096, 262144, 16777216
//
// Prints, for each size, `iters BYTES N`: with so many steps the kernel takes as
// long as a copy (1 where a launch takes longer than a copy anyway), and then
// `hand KIND BYTES DEPTH us_per_frame` for
//   streams   a stream for each slot, three calls a frame
//   graph     a stream and a CUDA graph for each slot, one call a frame
// A slot is used again when its stream is done. All memory is pinned, nothing is
// allocated while frames flow, and the results are checked.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>
#include "axpy.cu"

#define CHECK(x) check((x), #x, __LINE__)

static void check(cudaError_t e, const char *what, int line)
{
    if (e != cudaSuccess) {
        fprintf(stderr, "hand.cu:%d: %s: %s\n", line, what, cudaGetErrorString(e));
        exit(1);
    }
}

static double seconds()
{
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

struct slot {
    cudaStream_t stream;
    cudaGraphExec_t graph;
    float *host_in, *in, *out, *host_out;
};

struct job {
    size_t bytes;
    int n, iters, blocks;          // as vars n, iters, blocks of balanced.yaml
    std::vector<slot> slots;
};

static void launch_kernel(const job &j, const slot &s)
{
    axpy<<<j.blocks, 256, 0, s.stream>>>(s.in, 0, s.out, 0, j.n, j.iters);
}

static void queue(const job &j, const slot &s)
{
    CHECK(cudaMemcpyAsync(s.in, s.host_in, j.bytes, cudaMemcpyHostToDevice, s.stream));
    launch_kernel(j, s);
    CHECK(cudaMemcpyAsync(s.host_out, s.out, j.bytes, cudaMemcpyDeviceToHost, s.stream));
}

static slot make_slot(const job &j)
{
    slot s;
    cudaGraph_t graph;
    CHECK(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking));
    CHECK(cudaMallocHost(&s.host_in, j.bytes));
    CHECK(cudaMallocHost(&s.host_out, j.bytes));
    CHECK(cudaMalloc(&s.in, j.bytes));
    CHECK(cudaMalloc(&s.out, j.bytes));
    for (int i = 0; i < j.n; i++)
        s.host_in[i] = (float)i, s.host_out[i] = -1;
    CHECK(cudaStreamBeginCapture(s.stream, cudaStreamCaptureModeThreadLocal));
    queue(j, s);
    CHECK(cudaStreamEndCapture(s.stream, &graph));
    CHECK(cudaGraphInstantiate(&s.graph, graph, 0));
    CHECK(cudaGraphUpload(s.graph, s.stream));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaStreamSynchronize(s.stream));
    return s;
}

static void drop_slot(slot &s)
{
    CHECK(cudaGraphExecDestroy(s.graph));
    CHECK(cudaStreamDestroy(s.stream));
    CHECK(cudaFreeHost(s.host_in));
    CHECK(cudaFreeHost(s.host_out));
    CHECK(cudaFree(s.in));
    CHECK(cudaFree(s.out));
}

static job make_job(size_t bytes, int iters, int depth)
{
    job j = { bytes, (int)(bytes / sizeof(float)), iters, 0, {} };
    j.blocks = std::min((j.n + 255) / 256, 1056);
    for (int i = 0; i < depth; i++)
        j.slots.push_back(make_slot(j));
    return j;
}

// Seconds for `frames` frames, until the last is there.
static double run(const job &j, bool graph, int frames)
{
    int depth = (int)j.slots.size();
    double start = seconds();
    for (int f = 0; f < frames; f++) {
        const slot &s = j.slots[f % depth];
        if (f >= depth)
            CHECK(cudaStreamSynchronize(s.stream));
        if (graph)
            CHECK(cudaGraphLaunch(s.graph, s.stream));
        else
            queue(j, s);
    }
    for (const slot &s : j.slots)
        CHECK(cudaStreamSynchronize(s.stream));
    return seconds() - start;
}

static void verify(const job &j)
{
    for (const slot &s : j.slots)
        for (int i = 0; i < j.n; i += j.n / 16) {
            float v = (float)i;
            for (int k = 0; k < j.iters; k++)
                v = fmaf(v, 1.000001f, 0.5f);
            if (s.host_out[i] != v) {
                fprintf(stderr, "hand.cu: element %d is %g, not %g\n", i, s.host_out[i], v);
                exit(1);
            }
        }
}

// Seconds for one of what `queue_one` puts on the stream, of many in a row.
template <class F> static double each(cudaStream_t stream, F queue_one)
{
    double best = 1e9;
    for (int round = 0; round < 4; round++) {
        const int count = 40;
        double start = seconds();
        for (int i = 0; i < count; i++)
            queue_one();
        CHECK(cudaStreamSynchronize(stream));
        best = std::min(best, (seconds() - start) / count);
    }
    return best;
}

// With how many steps the kernel takes as long as a copy. Its time grows with
// them in a straight line once arithmetic outweighs memory.
static int calibrate(size_t bytes)
{
    job j = make_job(bytes, 1, 1);
    slot &s = j.slots[0];
    double in = each(s.stream, [&] {
        CHECK(cudaMemcpyAsync(s.in, s.host_in, j.bytes, cudaMemcpyHostToDevice, s.stream));
    });
    auto kernel = [&](int iters) {
        j.iters = iters;
        return each(s.stream, [&] { launch_kernel(j, s); });
    };
    int low = 1, high = 2;
    if (kernel(low) < in) {
        while (kernel(high) < in && high < 1 << 24)
            low = high, high *= 2;
        while (high - low > 1 + low / 64) {
            int middle = low + (high - low) / 2;
            (kernel(middle) < in ? low : high) = middle;
        }
    }
    drop_slot(s);
    return low;
}

static void measure(size_t bytes)
{
    int frames = bytes >= 1 << 22 ? 1000 : bytes >= 1 << 16 ? 20000 : 100000;
    int iters = bytes >= 1 << 20 ? calibrate(bytes) : 1;
    printf("iters %zu %d\n", bytes, iters);
    for (int depth : { 1, 3, 4, 6 }) {
        job j = make_job(bytes, iters, depth);
        for (bool graph : { false, true }) {
            run(j, graph, frames / 10 + depth);
            double t = run(j, graph, frames);
            verify(j);
            printf("hand %s %zu %d %.3f\n", graph ? "graph" : "streams", bytes, depth,
                   1e6 * t / frames);
            fflush(stdout);
        }
        for (slot &s : j.slots)
            drop_slot(s);
    }
}

int main(int argc, char **argv)
{
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    CHECK(cudaSetDeviceFlags(cudaDeviceScheduleSpin));
    for (int i = 1; i < argc; i++)
        measure(strtoull(argv[i], nullptr, 10));
    if (argc == 1)
        for (size_t bytes : { 4096, 262144, 16777216 })
            measure(bytes);
    return 0;
}
