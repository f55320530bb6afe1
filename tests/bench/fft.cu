// fft.cu - a transform by cuFFT alone: one call, captured in a graph, which is launched again and again.
//
//   fft ROWS LENGTH
//
// Prints `fft real US` and `fft complex US`: microseconds of the device for a launch, in the median of 20 rounds of 20, of
// real numbers (forward) and of complex ones, along the last axis of ROWS x LENGTH.
#include <cufft.h>
#include "hand.h"

static void check_fft(cufftResult e, const char *what)
{
    if (e != CUFFT_SUCCESS) {
        fprintf(stderr, "%s: cuFFT status %d\n", what, (int)e);
        exit(1);
    }
}
#define CHECK_FFT(x) check_fft((x), #x)

static void measure(bool real, long long rows, long long length, cudaStream_t stream)
{
    enum { ROUNDS = 20, LAUNCHES = 20 };
    cufftComplex *in, *out;
    cufftHandle plan;
    size_t work;
    long long n[] = { length }, half[] = { real ? length / 2 + 1 : length };
    CHECK(cudaMalloc(&in, (size_t)(rows * length) * (real ? 4 : 8)));
    CHECK(cudaMalloc(&out, (size_t)(rows * half[0]) * 8));
    CHECK(cudaMemset(in, 0, (size_t)(rows * length) * (real ? 4 : 8)));
    CHECK_FFT(cufftCreate(&plan));
    CHECK_FFT(cufftMakePlanMany64(plan, 1, n, n, 1, length, half, 1, half[0], real ? CUFFT_R2C : CUFFT_C2C, rows, &work));
    CHECK_FFT(cufftSetStream(plan, stream));

    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaEvent_t a, b;
    for (int captured = 0; captured < 2; captured++) {     // once without, so that all is loaded
        if (captured)
            CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        CHECK_FFT(real ? cufftExecR2C(plan, (cufftReal *)in, out) : cufftExecC2C(plan, in, out, CUFFT_FORWARD));
        if (captured)
            CHECK(cudaStreamEndCapture(stream, &graph));
        else
            CHECK(cudaStreamSynchronize(stream));
    }
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaEventCreate(&a));
    CHECK(cudaEventCreate(&b));
    std::vector<float> us;
    for (int i = 0; i < ROUNDS; i++) {
        float ms;
        CHECK(cudaEventRecord(a, stream));
        for (int k = 0; k < LAUNCHES; k++)
            CHECK(cudaGraphLaunch(exec, stream));
        CHECK(cudaEventRecord(b, stream));
        CHECK(cudaEventSynchronize(b));
        CHECK(cudaEventElapsedTime(&ms, a, b));
        us.push_back(1000 * ms / LAUNCHES);
    }
    std::sort(us.begin(), us.end());
    printf("fft %s %.3f\n", real ? "real" : "complex", us[ROUNDS / 2]);
    CHECK_FFT(cufftDestroy(plan));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaFree(in));
    CHECK(cudaFree(out));
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: fft ROWS LENGTH\n");
        return 2;
    }
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    for (bool real : { true, false })
        measure(real, atoll(argv[1]), atoll(argv[2]), stream);
    return 0;
}
