// matmul.cu - a square product by cuBLASLt alone: the algorithm that its heuristic puts first, called CALLS times in
// one graph.
//
//   matmul N f32|tf32|f16
//
// Prints `matmul graph US`: microseconds for a call, the median of 9 graphs.
#include <cstdint>
#include <cstring>
#include <cublasLt.h>
#include "hand.h"

enum { CALLS = 20 };

static void check(cublasStatus_t s, const char *what, const char *file, int line)
{
    if (s != CUBLAS_STATUS_SUCCESS) {
        fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, cublasLtGetStatusName(s));
        exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: matmul N f32|tf32|f16\n");
        return 2;
    }
    start_device();
    int64_t n = atoi(argv[1]);
    bool half = !strcmp(argv[2], "f16"), tf32 = !strcmp(argv[2], "tf32");
    cudaDataType_t type = half ? CUDA_R_16F : CUDA_R_32F;
    size_t bytes = (size_t)(n * n) * (half ? 2 : 4), room = 32 << 20;
    cublasLtHandle_t lib;
    cublasLtMatmulDesc_t op;
    cublasLtMatrixLayout_t square;
    cublasLtMatmulPreference_t want;
    cublasLtMatmulHeuristicResult_t found;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    void *a, *c, *work;
    const float one = 1, zero = 0;
    int some = 0;
    CHECK(cublasLtCreate(&lib));
    CHECK(cublasLtMatmulDescCreate(&op, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
    CHECK(cublasLtMatrixLayoutCreate(&square, type, n, n, n));
    CHECK(cublasLtMatmulPreferenceCreate(&want));
    CHECK(cublasLtMatmulPreferenceSetAttribute(want, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room));
    CHECK(cublasLtMatmulAlgoGetHeuristic(lib, op, square, square, square, square, want, 1, &found, &some));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&a, bytes));
    CHECK(cudaMalloc(&c, bytes));
    CHECK(cudaMalloc(&work, room));
    CHECK(cudaMemset(a, 0x35, bytes));     // in f16 0.33, in f32 less
    auto all = [&] {
        for (int i = 0; i < CALLS; i++)
            CHECK(cublasLtMatmul(lib, op, &one, a, square, a, square, &zero, c, square, c, square, &found.algo, work,
                                 room, stream));
    };
    all();
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    all();
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphUpload(exec, stream));
    std::vector<double> us;
    for (int i = 0; i < 11; i++) {
        double start = seconds();
        CHECK(cudaGraphLaunch(exec, stream));
        CHECK(cudaStreamSynchronize(stream));
        if (i > 1)
            us.push_back(1e6 * (seconds() - start) / CALLS);
    }
    std::sort(us.begin(), us.end());
    printf("matmul graph %.3f\n", us[us.size() / 2]);
    return 0;
}
