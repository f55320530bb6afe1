// hand.cu - the pipeline of balanced.yaml as one would write it by hand in CUDA.
//
//   hand iters BYTES               `iters N`: with N steps the kernel takes as long as
//                                  a copy (1 where a launch alone takes longer)
//   hand rate BYTES DEPTH ITERS    `hand streams US`, `hand graph US`: a frame at a time,
//                                  a stream for each slot, three calls or one graph
//   hand batch BYTES FLIGHT ITERS  `hand batch-M US` for several M: M frames in a copy,
//                                  one kernel over them, a graph for each range of
//                                  slots, FLIGHT frames in flight
//   hand expect BYTES ITERS        the frame that comes out, to the standard output
//
// US is microseconds per frame. A slot is used again when its stream is done.
#include <cstring>
#include "hand.h"

// Seconds for `launches` launches, until the last is there.
static double run(const job &j, bool graph, int launches)
{
    int nslots = (int)j.slots.size();
    double start = seconds();
    for (int i = 0; i < launches; i++) {
        const slot &s = j.slots[i % nslots];
        if (i >= nslots)
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

// Microseconds per frame, warmed up and checked.
static double rate(const job &j, bool graph, int launches)
{
    run(j, graph, launches / 10 + (int)j.slots.size());
    double took = run(j, graph, launches);
    verify(j);
    return 1e6 * took / launches / j.many;
}

static int launches_of(size_t bytes)
{
    return bytes >= 1 << 22 ? 2000 : bytes >= 1 << 16 ? 40000 : 200000;
}

// The kernel's time grows with the steps in a straight line once arithmetic outweighs memory.
static void iters(size_t bytes)
{
    job j = make_job(bytes, 1, 1, 1);
    slot &s = j.slots[0];
    double in = each(s.stream, 40, [&] {
        CHECK(cudaMemcpyAsync(s.in, s.host_in, bytes, cudaMemcpyHostToDevice, s.stream));
    });
    auto kernel = [&](int steps) {
        j.iters = steps;
        return each(s.stream, 40, [&] { launch_kernel(j, s); });
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
    drop_job(j);
    printf("iters %d\n", low);
}

static void rates(size_t bytes, int depth, int steps)
{
    job j = make_job(bytes, steps, depth, 1);
    printf("hand streams %.4f\n", rate(j, false, launches_of(bytes)));
    printf("hand graph %.4f\n", rate(j, true, launches_of(bytes)));
    drop_job(j);
}

static void batches(size_t bytes, int flight, int steps)
{
    for (int many = 4; many <= flight / 2; many *= 2) {
        job j = make_job(bytes, steps, flight / many, many);
        printf("hand batch-%d %.4f\n", many, rate(j, true, 40000));
        drop_job(j);
    }
}

static void expect(size_t bytes, int steps)
{
    std::vector<float> frame(bytes / sizeof(float));
    for (size_t i = 0; i < frame.size(); i++)
        frame[i] = expected((int)i, steps);
    fwrite(frame.data(), 1, bytes, stdout);
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[1] : "";
    size_t bytes = argc > 2 ? strtoull(argv[2], nullptr, 10) : 0;
    int a = argc > 3 ? atoi(argv[3]) : 0, b = argc > 4 ? atoi(argv[4]) : 0;
    if (!strcmp(what, "expect") && argc == 4) {
        expect(bytes, a);
        return 0;
    }
    start_device();
    if (!strcmp(what, "iters") && argc == 3)
        iters(bytes);
    else if (!strcmp(what, "rate") && argc == 5)
        rates(bytes, a, b);
    else if (!strcmp(what, "batch") && argc == 5)
        batches(bytes, a, b);
    else {
        fprintf(stderr, "usage: hand iters BYTES | rate BYTES DEPTH ITERS | "
                        "batch BYTES FLIGHT ITERS | expect BYTES ITERS\n");
        return 2;
    }
    return 0;
}
