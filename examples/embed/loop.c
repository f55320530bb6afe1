/* loop.c - a pipeline in the event loop of a program: one thread, which waits in epoll_wait alone. A timer stands in for a
 * device that has a frame of 256 samples each 2 ms; what the pipeline makes of them is printed.
 *
 *   cc loop.c -o loop $(pkg-config --cflags --libs gpipe) -lm && ./loop */
#define _POSIX_C_SOURCE 200809L
#include <gpipe/gpipe.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

static const char yaml[] =
    "buffers: {samples: {dtype: f32, shape: [256]}}\n"
    "stages:\n"
    "  - {name: device, use: input, out: samples}\n"
    "  - {use: fft}\n"
    "  - {use: power}\n"
    "  - {name: spectrum, use: output}\n";

enum { FRAMES = 50 };

/* A tone that rises, as long as the pipeline has room for it: what has none is lost, and counted. */
static int push(gp_input *in, int number)
{
    gp_loan l;
    if (gp_push_begin(in, &l, 0) != GP_LOAN_OK)
        return 1;
    float *sample = l.view.data;
    for (int i = 0; i < 256; i++)
        sample[i] = sinf(6.2831853f * (float)(10 + number) * (float)i / 256);
    gp_push_end(in, &l);
    return 0;
}

/* All that is there. True: there will be no more. */
static bool pull(gp_output *out)
{
    gp_loan l;
    gp_loan_status s;
    while ((s = gp_pull_begin(out, &l, 0)) == GP_LOAN_OK) {
        const float *power = l.view.data;
        int most = 0;
        for (int i = 1; i < l.view.type.dim[0]; i++)
            most = power[i] > power[most] ? i : most;
        printf("frame %" PRIu64 ": most in bin %d\n", l.index, most);
        gp_pull_end(out, &l);
    }
    return s == GP_LOAN_END;
}

static void loop(gp_input *in, gp_output *out)
{
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), loop = epoll_create1(EPOLL_CLOEXEC), lost = 0;
    const int fd[] = { timer, gp_output_fd(out) };
    for (int i = 0; i < 2; i++)
        epoll_ctl(loop, EPOLL_CTL_ADD, fd[i], &(struct epoll_event){ .events = EPOLLIN, .data.fd = fd[i] });
    timerfd_settime(timer, 0, &(struct itimerspec){ { 0, 2000000 }, { 0, 2000000 } }, NULL);
    struct epoll_event e;
    uint64_t ticks;
    for (int number = 0; epoll_wait(loop, &e, 1, -1) >= 0;) {
        if (e.data.fd != timer && pull(out))
            break;
        if (e.data.fd != timer || read(timer, &ticks, sizeof ticks) != sizeof ticks)
            continue;
        if (number < FRAMES)
            lost += push(in, number++);
        else
            gp_push_close(in);
    }
    printf("%d of %d frames were lost\n", lost, FRAMES);
    close(timer);
    close(loop);
}

int main(void)
{
    gp_errs errs = { .n = 0 };
    gp_registry *kinds = gp_registry_create();
    gp_config config = { .registry = kinds };
    gp_pipeline *p = NULL;

    if (kinds && gp_register_builtin(kinds, &errs) && (p = gp_compile(yaml, strlen(yaml), "loop.yaml", &config, &errs))) {
        gp_input *in = gp_pipeline_input(p, "device");
        gp_output *out = gp_pipeline_output(p, "spectrum");
        if (gp_pipeline_start(p, NULL, &errs)) {
            loop(in, out);
            gp_pipeline_wait(p);
        }
    }
    for (int i = 0; i < errs.n; i++)
        gp_err_print(stderr, &errs.e[i], "loop.yaml", yaml, strlen(yaml), false);
    gp_pipeline_destroy(p);
    gp_registry_destroy(kinds);
    return gp_errs_exit(&errs);
}
