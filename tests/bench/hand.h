// hand.h - what the hand-written CUDA programs share: the work of balanced.yaml (copy
// in, kernel, copy out) on the slots of a ring, each with a stream and a graph.
//
// All memory is pinned, nothing is allocated while frames flow, and the results are checked.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>
#include "axpy.cu"

#define CHECK(x) check((x), #x, __FILE__, __LINE__)

static inline void check(cudaError_t e, const char *what, const char *file, int line)
{
    if (e != cudaSuccess) {
        fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, cudaGetErrorString(e));
        exit(1);
    }
}

static inline double seconds()
{
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

// `many` frames that lie side by side: one copy each way, one kernel over all.
struct slot {
    cudaStream_t stream;
    cudaGraphExec_t graph;
    float *host_in, *in, *out, *host_out;
};

struct job {
    size_t bytes;                  // of one frame
    int n, iters, blocks;          // as vars n, iters, blocks of balanced.yaml
    int many;                      // frames in a slot
    std::vector<slot> slots;
};

static inline void launch_kernel(const job &j, const slot &s)
{
    axpy<<<dim3(j.blocks, 1, j.many), 256, 0, s.stream>>>(s.in, j.n, s.out, j.n, j.n, j.iters);
}

static inline void queue(const job &j, const slot &s)
{
    size_t all = j.bytes * j.many;
    CHECK(cudaMemcpyAsync(s.in, s.host_in, all, cudaMemcpyHostToDevice, s.stream));
    launch_kernel(j, s);
    CHECK(cudaMemcpyAsync(s.host_out, s.out, all, cudaMemcpyDeviceToHost, s.stream));
}

static inline slot make_slot(const job &j)
{
    slot s;
    cudaGraph_t graph;
    size_t all = j.bytes * j.many;
    CHECK(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking));
    CHECK(cudaMallocHost(&s.host_in, all));
    CHECK(cudaMallocHost(&s.host_out, all));
    CHECK(cudaMalloc(&s.in, all));
    CHECK(cudaMalloc(&s.out, all));
    for (int i = 0; i < j.n * j.many; i++)
        s.host_in[i] = (float)(i % j.n), s.host_out[i] = -1;
    CHECK(cudaStreamBeginCapture(s.stream, cudaStreamCaptureModeThreadLocal));
    queue(j, s);
    CHECK(cudaStreamEndCapture(s.stream, &graph));
    CHECK(cudaGraphInstantiate(&s.graph, graph, 0));
    CHECK(cudaGraphUpload(s.graph, s.stream));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaStreamSynchronize(s.stream));
    return s;
}

static inline job make_job(size_t bytes, int iters, int nslots, int many)
{
    job j = { bytes, (int)(bytes / sizeof(float)), iters, 0, many, {} };
    j.blocks = std::min((j.n + 255) / 256, 1056);
    for (int i = 0; i < nslots; i++)
        j.slots.push_back(make_slot(j));
    return j;
}

static inline void drop_job(job &j)
{
    for (slot &s : j.slots) {
        CHECK(cudaGraphExecDestroy(s.graph));
        CHECK(cudaStreamDestroy(s.stream));
        CHECK(cudaFreeHost(s.host_in));
        CHECK(cudaFreeHost(s.host_out));
        CHECK(cudaFree(s.in));
        CHECK(cudaFree(s.out));
    }
    j.slots.clear();
}

// What the kernel makes of element i of a frame.
static inline float expected(int i, int iters)
{
    float v = (float)i;
    for (int k = 0; k < iters; k++)
        v = fmaf(v, 1.000001f, 0.5f);
    return v;
}

// Some elements of every frame of every slot.
static inline void verify(const job &j)
{
    for (const slot &s : j.slots)
        for (int i = 0; i < j.n; i += std::max(j.n / 16, 1))
            for (int f = 0; f < j.many; f++) {
                float have = s.host_out[(size_t)f * j.n + i], want = expected(i, j.iters);
                if (have != want) {
                    fprintf(stderr, "element %d of frame %d is %g, not %g\n", i, f, have, want);
                    exit(1);
                }
            }
}

// Seconds for one of what `queue_one` queues on the stream, of `count` in a row; the best of some rounds.
template <class F> static double each(cudaStream_t stream, int count, F queue_one)
{
    double best = 1e9;
    for (int round = 0; round < 4; round++) {
        double start = seconds();
        for (int i = 0; i < count; i++)
            queue_one();
        CHECK(cudaStreamSynchronize(stream));
        best = std::min(best, (seconds() - start) / count);
    }
    return best;
}

static inline void start_device()
{
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    CHECK(cudaSetDeviceFlags(cudaDeviceScheduleSpin));
}
