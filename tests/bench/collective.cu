// collective.cu - an all-reduce over two GPUs by hand, and what can run beside it.
//
//   collective reduce BYTES             `reduce US`: one in a graph on each GPU, one after the other
//   collective iters BYTES FEW          `iters N`: with N steps `spread` on 64 blocks takes as long
//   collective parts BYTES FEW ITERS    `parts reduce US`, `parts other US`
//
// US is microseconds.
#include <nccl.h>
#include "hand.h"
#include "two_gpus.cu"

#define NCCL(x) do { ncclResult_t r_ = (x); if (r_) { fprintf(stderr, "collective: %s: %s\n", #x, ncclGetErrorString(r_)); exit(1); } } while (0)

static const int GPUS = 2;

struct sums {
    ncclComm_t comm[GPUS];
    cudaStream_t stream[GPUS];
    cudaGraphExec_t graph[GPUS];
    float *from[GPUS], *to[GPUS];

    explicit sums(size_t bytes)
    {
        int devices[GPUS] = { 0, 1 };
        NCCL(ncclCommInitAll(comm, GPUS, devices));
        for (int g = 0; g < GPUS; g++) {
            CHECK(cudaSetDevice(g));
            CHECK(cudaStreamCreateWithFlags(&stream[g], cudaStreamNonBlocking));
            CHECK(cudaMalloc(&from[g], bytes));
            CHECK(cudaMalloc(&to[g], bytes));
            CHECK(cudaMemset(from[g], 0, bytes));
        }
        begin(bytes);                          // connects
        sync();
        for (int g = 0; g < GPUS; g++) {
            CHECK(cudaSetDevice(g));
            CHECK(cudaStreamBeginCapture(stream[g], cudaStreamCaptureModeRelaxed));
        }
        begin(bytes);
        for (int g = 0; g < GPUS; g++) {
            cudaGraph_t made;
            CHECK(cudaSetDevice(g));
            CHECK(cudaStreamEndCapture(stream[g], &made));
            CHECK(cudaGraphInstantiate(&graph[g], made, 0));
        }
    }

    void begin(size_t bytes)
    {
        NCCL(ncclGroupStart());
        for (int g = 0; g < GPUS; g++)
            NCCL(ncclAllReduce(from[g], to[g], bytes / sizeof(float), ncclFloat, ncclSum, comm[g], stream[g]));
        NCCL(ncclGroupEnd());
    }

    void sync()
    {
        for (int g = 0; g < GPUS; g++) {
            CHECK(cudaSetDevice(g));
            CHECK(cudaStreamSynchronize(stream[g]));
        }
    }

    double microseconds()
    {
        const int rounds = 500;
        double start = 0;
        for (int i = -20; i < rounds; i++) {
            if (!i)
                sync(), start = seconds();
            for (int g = 0; g < GPUS; g++) {
                CHECK(cudaSetDevice(g));
                CHECK(cudaGraphLaunch(graph[g], stream[g]));
            }
        }
        sync();
        return 1e6 * (seconds() - start) / rounds;
    }
};

struct beside {
    int n, few;
    float *in, *out;
    cudaStream_t stream;

    beside(size_t bytes, int few_) : n((int)(bytes / sizeof(float))), few(few_)
    {
        CHECK(cudaSetDevice(0));
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        CHECK(cudaMalloc(&in, few * sizeof(float)));
        CHECK(cudaMalloc(&out, bytes));
        CHECK(cudaMemset(in, 0, few * sizeof(float)));
    }

    double microseconds(int iters)
    {
        CHECK(cudaSetDevice(0));
        return 1e6 * each(stream, 50, [&] { spread<<<64, 256, 0, stream>>>(in, out, n, few, iters); });
    }
};

static int steps_for(beside &k, double wanted)
{
    int low = 1, high = 2;
    if (k.microseconds(low) >= wanted)
        return low;
    while (k.microseconds(high) < wanted && high < 1 << 20)
        low = high, high *= 2;
    while (high - low > 1 + low / 64) {
        int middle = low + (high - low) / 2;
        (k.microseconds(middle) < wanted ? low : high) = middle;
    }
    return low;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    size_t bytes = argc > 2 ? strtoull(argv[2], nullptr, 10) : 0;
    int few = argc > 3 ? atoi(argv[3]) : 0, steps = argc > 4 ? atoi(argv[4]) : 0, gpus = 0;
    CHECK(cudaGetDeviceCount(&gpus));
    if (gpus < GPUS) {
        fprintf(stderr, "collective: there are %d GPUs, and it takes two\n", gpus);
        return 3;
    }
    start_device();
    if (!strcmp(what, "reduce") && argc == 3) {
        printf("reduce %.4f\n", sums(bytes).microseconds());
    } else if (!strcmp(what, "iters") && argc == 4) {
        double wanted = sums(bytes).microseconds();
        beside k(bytes, few);
        printf("iters %d\n", steps_for(k, wanted));
    } else if (!strcmp(what, "parts") && argc == 5) {
        printf("parts reduce %.4f\n", sums(bytes).microseconds());
        beside k(bytes, few);
        printf("parts other %.4f\n", k.microseconds(steps));
    } else {
        fprintf(stderr, "usage: collective reduce BYTES | iters BYTES FEW | parts BYTES FEW ITERS\n");
        return 2;
    }
    return 0;
}
