// several.cu - what two GPUs do by hand: the pipeline of balanced.yaml on both; each part of two_gpus.yaml alone.
//
//   several count                      `gpus N`, `peers N`: 1 if the first two are peers
//   several lanes BYTES DEPTH ITERS    `lanes one US`, `lanes two US`: frames in turns on one GPU, on two, as graphs
//   several iters BYTES FEW PARTS      `iters N`: with N steps the slower of spread and gather takes PARTS / 100 of a
//                                      peer copy
//   several parts BYTES FEW ITERS      `parts spread US`, `parts gather US`, `parts peer US`
//   several expect BYTES FEW ITERS     the frame that comes out of two_gpus.yaml, to the standard output
//
// US is microseconds per frame. Lanes are checked as hand.cu checks them.
#include <cstring>
#include "hand.h"
#include "two_gpus.cu"

static bool peers()
{
    int there = 0, back = 0;
    CHECK(cudaDeviceCanAccessPeer(&there, 0, 1));
    CHECK(cudaDeviceCanAccessPeer(&back, 1, 0));
    return there && back;
}

// Seconds for `frames` frames, which take turns on the GPUs.
static double run(const std::vector<job> &jobs, int frames)
{
    int gpus = (int)jobs.size();
    double start = seconds();
    for (int f = 0; f < frames; f++) {
        const job &j = jobs[f % gpus];
        const slot &s = j.slots[f / gpus % (int)j.slots.size()];
        CHECK(cudaSetDevice(f % gpus));
        if (f >= gpus * (int)j.slots.size())
            CHECK(cudaStreamSynchronize(s.stream));
        CHECK(cudaGraphLaunch(s.graph, s.stream));
    }
    for (int g = 0; g < gpus; g++) {
        CHECK(cudaSetDevice(g));
        CHECK(cudaDeviceSynchronize());
    }
    return seconds() - start;
}

static void lanes(size_t bytes, int depth, int steps)
{
    for (int gpus = 1; gpus <= 2; gpus++) {
        std::vector<job> jobs;
        int frames = gpus * (bytes >= 1 << 22 ? 2000 : 40000);
        for (int g = 0; g < gpus; g++) {
            CHECK(cudaSetDevice(g));
            jobs.push_back(make_job(bytes, steps, depth, 1));
        }
        run(jobs, frames / 10);
        double took = run(jobs, frames);
        for (int g = 0; g < gpus; g++) {
            CHECK(cudaSetDevice(g));
            verify(jobs[g]);
            drop_job(jobs[g]);
        }
        printf("lanes %s %.4f\n", gpus == 1 ? "one" : "two", 1e6 * took / frames);
    }
}

// The parts of two_gpus.yaml: each is timed on the GPU that does it there.
struct parts {
    int n, few;
    float *x, *made, *read, *sums;
    cudaStream_t stream[2];

    parts(size_t bytes, int few_) : n((int)(bytes / sizeof(float))), few(few_)
    {
        for (int g = 0; g < 2; g++) {
            CHECK(cudaSetDevice(g));
            CHECK(cudaStreamCreateWithFlags(&stream[g], cudaStreamNonBlocking));
            CHECK(cudaMalloc(g ? &read : &made, bytes));
            CHECK(cudaMalloc(g ? &sums : &x, few * sizeof(float)));
            CHECK(cudaMemset(g ? read : x, 0, few * sizeof(float)));
            if (peers())
                CHECK(cudaDeviceEnablePeerAccess(!g, 0));
        }
    }

    double spreading(int iters)
    {
        CHECK(cudaSetDevice(0));
        return each(stream[0], 50, [&] { spread<<<1056, 256, 0, stream[0]>>>(x, made, n, few, iters); });
    }

    double gathering(int iters)
    {
        CHECK(cudaSetDevice(1));
        int blocks = (few + 255) / 256;
        return each(stream[1], 50, [&] { gather<<<blocks, 256, 0, stream[1]>>>(read, sums, n, few, iters); });
    }

    double copying()
    {
        CHECK(cudaSetDevice(1));
        return each(stream[1], 50, [&] { CHECK(cudaMemcpyPeerAsync(read, 1, made, 0, n * sizeof(float), stream[1])); });
    }
};

static int steps_for(parts &p, double wanted)
{
    auto slower = [&](int iters) { return std::max(p.spreading(iters), p.gathering(iters)); };
    int low = 1, high = 2;
    if (slower(low) >= wanted)
        return low;
    while (slower(high) < wanted && high < 1 << 20)
        low = high, high *= 2;
    while (high - low > 1 + low / 64) {
        int middle = low + (high - low) / 2;
        (slower(middle) < wanted ? low : high) = middle;
    }
    return low;
}

// As both kernels compute it, of a ramp.
static void expect(size_t bytes, int few, int iters)
{
    int n = (int)(bytes / sizeof(float));
    std::vector<float> sums(few);
    for (int i = 0; i < few; i++) {
        float v = (float)i, sum = 0;
        for (int k = 0; k < 2 * iters; k++)
            v = fmaf(v, 1.000001f, 0.5f);
        for (int j = i; j < n; j += few)
            sum += v;
        sums[i] = sum;
    }
    fwrite(sums.data(), sizeof(float), sums.size(), stdout);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    size_t bytes = argc > 2 ? strtoull(argv[2], nullptr, 10) : 0;
    int a = argc > 3 ? atoi(argv[3]) : 0, b = argc > 4 ? atoi(argv[4]) : 0, gpus = 0;
    if (!strcmp(what, "expect") && argc == 5) {
        expect(bytes, a, b);
        return 0;
    }
    CHECK(cudaGetDeviceCount(&gpus));
    if (!strcmp(what, "count") && argc == 2) {
        printf("gpus %d\npeers %d\n", gpus, gpus > 1 && peers());
        return 0;
    }
    if (gpus < 2) {
        fprintf(stderr, "several: there are %d GPUs, and it takes two\n", gpus);
        return 3;
    }
    start_device();
    if (!strcmp(what, "lanes") && argc == 5) {
        lanes(bytes, a, b);
    } else if (!strcmp(what, "iters") && argc == 5) {
        parts p(bytes, a);
        printf("iters %d\n", steps_for(p, p.copying() * b / 100));
    } else if (!strcmp(what, "parts") && argc == 5) {
        parts p(bytes, a);
        printf("parts spread %.4f\n", 1e6 * p.spreading(b));
        printf("parts gather %.4f\n", 1e6 * p.gathering(b));
        printf("parts peer %.4f\n", 1e6 * p.copying());
    } else {
        fprintf(stderr, "usage: several count | lanes BYTES DEPTH ITERS | iters BYTES FEW PARTS | "
                        "parts BYTES FEW ITERS | expect BYTES FEW ITERS\n");
        return 2;
    }
    return 0;
}
