// lone.cu - how long one small frame takes by hand: there and back, a frame every so often, the stream polled.
//
//   lone BYTES RATE FRAMES ITERS
//
// Prints `lone streams P50 P99` and `lone graph P50 P99`: microseconds from the call
// that queues the frame until the host sees that it is done. The thread never sleeps:
// it polls the clock between frames, so that it is not the scheduler that is timed.
#include "hand.h"

static double percentile(std::vector<double> v, double p)
{
    std::sort(v.begin(), v.end());
    return v[(size_t)(p * (double)(v.size() - 1))];
}

static void lone(const job &j, bool graph, double rate, int frames)
{
    const slot &s = j.slots[0];
    const int warm = 100;
    std::vector<double> us;
    double next = seconds();
    for (int i = 0; i < frames + warm; i++) {
        while (seconds() < next) {}
        next += 1 / rate;
        double start = seconds();
        if (graph)
            CHECK(cudaGraphLaunch(s.graph, s.stream));
        else
            queue(j, s);
        cudaError_t state;
        while ((state = cudaStreamQuery(s.stream)) == cudaErrorNotReady) {}
        double took = seconds() - start;
        CHECK(state);
        if (i >= warm)
            us.push_back(1e6 * took);
    }
    verify(j);
    printf("lone %s %.3f %.3f\n", graph ? "graph" : "streams", percentile(us, 0.5), percentile(us, 0.99));
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: lone BYTES RATE FRAMES ITERS\n");
        return 2;
    }
    start_device();
    job j = make_job(strtoull(argv[1], nullptr, 10), atoi(argv[4]), 1, 1);
    for (bool graph : { false, true })
        lone(j, graph, atof(argv[2]), atoi(argv[3]));
    drop_job(j);
    return 0;
}
