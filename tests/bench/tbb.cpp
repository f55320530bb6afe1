// tbb.cpp - the host pipeline as one writes it with oneTBB: three filters hand on
// 4 KiB frames in slots that are used again, on so many threads.
//
//   tbb FRAMES THREADS [TOKENS...]
//
// Prints `tbb KIND tokens-N US`, microseconds per frame, of each way of writing it that
// makes sense: the middle filter serial or parallel, one token, as many as threads, and
// more. Every frame is counted, and the bytes that were touched are checked.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <tbb/global_control.h>
#include <tbb/parallel_pipeline.h>

enum { FRAME = 4096 };

struct frame { alignas(64) uint64_t word[FRAME / sizeof(uint64_t)]; };

static double seconds()
{
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

// Seconds for `frames` frames.
static double run(uint64_t frames, size_t tokens, tbb::filter_mode middle)
{
    std::vector<frame> slots(tokens);
    uint64_t made = 0, taken = 0, sum = 0;
    double start = seconds();
    tbb::parallel_pipeline(tokens,
        tbb::make_filter<void, frame *>(tbb::filter_mode::serial_in_order,
            [&](tbb::flow_control &fc) -> frame * {
                if (made == frames) {
                    fc.stop();
                    return nullptr;
                }
                frame *f = &slots[made % tokens];
                f->word[0] = made++;
                return f;
            })
        & tbb::make_filter<frame *, frame *>(middle, [](frame *f) {
                f->word[1] = f->word[0] + 1;
                return f;
            })
        & tbb::make_filter<frame *, void>(tbb::filter_mode::serial_in_order, [&](frame *f) {
                sum += f->word[1];
                taken++;
            }));
    double took = seconds() - start;
    if (taken != frames || sum != frames * (frames + 1) / 2) {
        fprintf(stderr, "tbb.cpp: %llu frames came out of %llu, or not the right ones\n",
                (unsigned long long)taken, (unsigned long long)frames);
        exit(1);
    }
    return took;
}

int main(int argc, char **argv)
{
    uint64_t frames = argc > 1 ? strtoull(argv[1], nullptr, 10) : 1000000;
    size_t threads = argc > 2 ? strtoull(argv[2], nullptr, 10) : 2;
    tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
    std::vector<size_t> tokens;
    for (int i = 3; i < argc; i++)
        tokens.push_back(strtoull(argv[i], nullptr, 10));
    if (tokens.empty())
        tokens = { 1, threads, 2 * threads, 8, 16, 64, 256 };
    for (size_t t : tokens)
        for (bool serial : { true, false }) {
            auto middle = serial ? tbb::filter_mode::serial_in_order : tbb::filter_mode::parallel;
            run(frames / 20, t, middle);
            printf("tbb %s tokens-%zu %.4f\n", serial ? "serial" : "parallel", t,
                   1e6 * run(frames, t, middle) / (double)frames);
            fflush(stdout);
        }
    return 0;
}
