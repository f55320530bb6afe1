// collective.cu - an all-reduce over two GPUs by hand, and what can run beside it.
//
//   collective reduce BYTES             `reduce US`: one in a graph on each GPU, one after the other
//   collective iters BYTES FEW          `iters N`: with N steps `spread` on 64 blocks takes as long
//   collective parts BYTES FEW ITERS    `parts reduce US`, `parts other US`
//   collective whole BYTES FEW ITERS    `whole US`: FEW elements copied in, `spread`, an all-reduce, `gather`, its FEW
//                                       copied out; ITERS > 0: beside it `spread` with so many steps on 64 blocks, and
//                                       `gather` of that; four rounds under way, each part in a stream of its own
//
// US is microseconds of a round.
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

// Four rounds under way on each GPU. A part begins when what it reads is there, and what it writes was read.
struct whole {
    enum { SLOTS = 4, ROUNDS = 2000, WARM = 100 };
    enum { MADE, REDUCED, TAKEN, DONE_BESIDE, PARTS };
    struct round {
        float *host_in, *in, *large, *reduced, *sums, *host_out, *busy, *left, *host_left;
        cudaEvent_t done[PARTS];
    };
    struct gpu { ncclComm_t comm; cudaStream_t stream[PARTS]; round slot[SLOTS]; } on[GPUS];
    size_t bytes;
    int n, few, iters;

    whole(size_t bytes_, int few_, int iters_) : bytes(bytes_), n((int)(bytes_ / sizeof(float))), few(few_), iters(iters_)
    {
        int devices[GPUS] = { 0, 1 };
        ncclComm_t comm[GPUS];
        NCCL(ncclCommInitAll(comm, GPUS, devices));
        for (int g = 0; g < GPUS; g++) {
            CHECK(cudaSetDevice(g));
            on[g].comm = comm[g];
            for (cudaStream_t &s : on[g].stream)
                CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
            for (round &r : on[g].slot)
                make(r);
        }
    }

    void make(round &r)
    {
        size_t small = few * sizeof(float);
        for (float **host : { &r.host_in, &r.host_out, &r.host_left })
            CHECK(cudaMallocHost(host, small));
        for (float **large : { &r.large, &r.reduced, &r.busy })
            CHECK(cudaMalloc(large, bytes));
        for (float **x : { &r.in, &r.sums, &r.left })
            CHECK(cudaMalloc(x, small));
        for (int i = 0; i < few; i++)
            r.host_in[i] = (float)i;
        for (cudaEvent_t &e : r.done)
            CHECK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    }

    void wait(gpu &d, int part, cudaEvent_t for_what) { CHECK(cudaStreamWaitEvent(d.stream[part], for_what, 0)); }
    void done(gpu &d, round &r, int part) { CHECK(cudaEventRecord(r.done[part], d.stream[part])); }

    void before(gpu &d, round &r)
    {
        wait(d, MADE, r.done[REDUCED]), wait(d, MADE, r.done[DONE_BESIDE]);
        CHECK(cudaMemcpyAsync(r.in, r.host_in, few * sizeof(float), cudaMemcpyHostToDevice, d.stream[MADE]));
        spread<<<1056, 256, 0, d.stream[MADE]>>>(r.in, r.large, n, few, 1);
        done(d, r, MADE);
        wait(d, REDUCED, r.done[MADE]), wait(d, REDUCED, r.done[TAKEN]);
    }

    void after(gpu &d, round &r)
    {
        cudaStream_t take = d.stream[TAKEN], beside = d.stream[DONE_BESIDE];
        done(d, r, REDUCED);
        wait(d, TAKEN, r.done[REDUCED]);
        gather<<<(few + 255) / 256, 256, 0, take>>>(r.reduced, r.sums, n, few, 1);
        CHECK(cudaMemcpyAsync(r.host_out, r.sums, few * sizeof(float), cudaMemcpyDeviceToHost, take));
        done(d, r, TAKEN);
        if (!iters)
            return;
        wait(d, DONE_BESIDE, r.done[MADE]);
        spread<<<64, 256, 0, beside>>>(r.in, r.busy, n, few, iters);
        gather<<<(few + 255) / 256, 256, 0, beside>>>(r.busy, r.left, n, few, 1);
        CHECK(cudaMemcpyAsync(r.host_left, r.left, few * sizeof(float), cudaMemcpyDeviceToHost, beside));
        done(d, r, DONE_BESIDE);
    }

    // What reads the results is done with those of four rounds ago.
    void one(int k)
    {
        for (gpu &d : on)
            for (int part : { TAKEN, DONE_BESIDE })
                CHECK(cudaEventSynchronize(d.slot[k].done[part]));
        for (int g = 0; g < GPUS; g++)
            CHECK(cudaSetDevice(g)), before(on[g], on[g].slot[k]);
        NCCL(ncclGroupStart());
        for (gpu &d : on)
            NCCL(ncclAllReduce(d.slot[k].large, d.slot[k].reduced, n, ncclFloat, ncclSum, d.comm, d.stream[REDUCED]));
        NCCL(ncclGroupEnd());
        for (int g = 0; g < GPUS; g++)
            CHECK(cudaSetDevice(g)), after(on[g], on[g].slot[k]);
    }

    void sync()
    {
        for (int g = 0; g < GPUS; g++)
            CHECK(cudaSetDevice(g)), CHECK(cudaDeviceSynchronize());
    }

    // Element i of what `gather` makes of n elements v. On the device fmaf is one operation, and sums are in another order.
    void compare(int i, float v, float is, const char *what)
    {
        float sum = 0;
        for (int j = 0; j < n / few; j++)
            sum += fmaf(v, 1.000001f, 0.5f);
        if (fabsf(is - sum) > 1e-4f * sum) {
            fprintf(stderr, "collective: element %d of %s is %g, not %g\n", i, what, is, sum);
            exit(1);
        }
    }

    void verify()
    {
        for (gpu &d : on)
            for (round &r : d.slot)
                for (int i = 0; i < few; i += few / 16) {
                    compare(i, fmaf((float)i, 1.000001f, 0.5f) * GPUS, r.host_out[i], "the sums over GPUs");
                    float v = (float)i;
                    for (int k = 0; k < iters; k++)
                        v = fmaf(v, 1.000001f, 0.5f);
                    if (iters)
                        compare(i, v, r.host_left[i], "what ran beside");
                }
    }

    double microseconds()
    {
        double start = 0;
        for (int i = -WARM; i < ROUNDS; i++) {
            if (!i)
                sync(), start = seconds();
            one((i + WARM) % SLOTS);
        }
        sync();
        double took = seconds() - start;
        verify();
        return 1e6 * took / ROUNDS;
    }
};

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
    } else if (!strcmp(what, "whole") && argc == 5) {
        printf("whole %.4f\n", whole(bytes, few, steps).microseconds());
    } else {
        fprintf(stderr, "usage: collective reduce BYTES | iters BYTES FEW | parts BYTES FEW ITERS | whole BYTES FEW ITERS\n");
        return 2;
    }
    return 0;
}
