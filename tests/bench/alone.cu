// alone.cu - the resources of the pipeline of files.yaml, each busy by itself: what bounds it.
//
//   alone BYTES ITERS FRAMES IN OUT
//
// Prints `alone NAME US`, microseconds per frame, of
//   read     one thread reads file IN, which holds FRAMES frames, into pinned slots
//   write    one thread writes FRAMES frames from pinned slots to OUT, which is new
//   pcie     copies both ways at once
//   kernel   the kernel alone
// The kernel's result is checked, and what was read.
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include "hand.h"

enum { SLOTS = 6 };

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void say(const char *name, double took, int frames)
{
    printf("alone %s %.3f\n", name, 1e6 * took / frames);
}

static double read_alone(const job &j, const char *path, int frames)
{
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        fail(path);
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    double start = seconds();
    for (int f = 0; f < frames; f++)
        for (size_t at = 0; at < j.bytes;) {
            ssize_t n = read(fd, (char *)j.slots[f % SLOTS].host_in + at, j.bytes - at);
            if (n <= 0)
                fail(path);
            at += (size_t)n;
        }
    double took = seconds() - start;
    close(fd);
    return took;
}

static double write_alone(const job &j, const char *path, int frames)
{
    unlink(path);
    double start = seconds();
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (fd < 0)
        fail(path);
    for (int f = 0; f < frames; f++)
        for (size_t at = 0; at < j.bytes;) {
            ssize_t n = write(fd, (char *)j.slots[f % SLOTS].host_out + at, j.bytes - at);
            if (n <= 0)
                fail(path);
            at += (size_t)n;
        }
    if (close(fd))
        fail(path);
    double took = seconds() - start;
    unlink(path);
    return took;
}

// Both directions at once, each on a stream of its own.
static double pcie_alone(const job &j, int frames)
{
    double start = seconds();
    for (int f = 0; f < frames; f++) {
        const slot &s = j.slots[f % SLOTS];
        CHECK(cudaMemcpyAsync(s.in, s.host_in, j.bytes, cudaMemcpyHostToDevice, j.slots[0].stream));
        CHECK(cudaMemcpyAsync(s.host_out, s.out, j.bytes, cudaMemcpyDeviceToHost, j.slots[1].stream));
    }
    for (int i = 0; i < 2; i++)
        CHECK(cudaStreamSynchronize(j.slots[i].stream));
    return seconds() - start;
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: alone BYTES ITERS FRAMES IN OUT\n");
        return 2;
    }
    start_device();
    job j = make_job(strtoull(argv[1], nullptr, 10), atoi(argv[2]), SLOTS, 1);
    int frames = atoi(argv[3]);
    std::vector<float> first(j.slots[0].host_in, j.slots[0].host_in + j.n);

    for (slot &s : j.slots)
        queue(j, s), CHECK(cudaStreamSynchronize(s.stream));
    verify(j);
    say("write", write_alone(j, argv[5], frames), frames);
    say("read", read_alone(j, argv[4], frames), frames);
    for (const slot &s : j.slots)
        if (memcmp(s.host_in, first.data(), j.bytes)) {
            fprintf(stderr, "%s does not hold the frames of generate\n", argv[4]);
            return 1;
        }
    pcie_alone(j, SLOTS);
    say("pcie", pcie_alone(j, frames), frames);
    const slot &s = j.slots[0];
    say("kernel", each(s.stream, 40, [&] { launch_kernel(j, s); }), 1);
    drop_job(j);
    return 0;
}
