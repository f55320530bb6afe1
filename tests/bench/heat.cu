// heat.cu - 1,000 steps of the heat equation on a square by hand: a launch each, and all in one graph.
//
//   heat N STEPS
//
// Prints `heat launches US`, `heat graph US`: microseconds for all steps of one N x N f32, medians of 9. Nothing is
// copied from or to the host.
#include "hand.h"
#include "heat_step.cu"

static double median(std::vector<double> v)
{
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: heat N STEPS\n");
        return 2;
    }
    start_device();
    int n = atoi(argv[1]), steps = atoi(argv[2]);
    size_t bytes = (size_t)n * n * sizeof(float);
    float *u, *v;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&u, bytes));
    CHECK(cudaMalloc(&v, bytes));
    CHECK(cudaMemset(u, 0, bytes));
    auto all = [&] {
        for (int i = 0; i < steps; i++)
            step<<<dim3((n + 31) / 32, (n + 7) / 8), dim3(32, 8), 0, stream>>>(i % 2 ? v : u, i % 2 ? u : v, n);
    };
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    all();
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphUpload(exec, stream));
    for (bool as_graph : { false, true }) {
        std::vector<double> us;
        for (int i = 0; i < 11; i++) {
            double start = seconds();
            if (as_graph)
                CHECK(cudaGraphLaunch(exec, stream));
            else
                all();
            CHECK(cudaStreamSynchronize(stream));
            if (i > 1)
                us.push_back(1e6 * (seconds() - start));
        }
        printf("heat %s %.3f\n", as_graph ? "graph" : "launches", median(us));
    }
    return 0;
}
