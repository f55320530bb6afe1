/* test_loan_memory.c - memory of the GPU on loan: what the program queues there in a stream of its own, and what gpipe
 * launches, wait for each other on the GPU. A program whose stream is held up would else push and pull nonsense. */
#include <pthread.h>
#include <semaphore.h>
#include <cuda_runtime_api.h>
#include "device/machine.h"
#include "gpu.h"
#include "pipe.h"

enum { FRAMES = 40, N = 1 << 14, BYTES = N * sizeof(float) };

static const char *dir;

static void set_up(void)
{
    dir = pipe_dir();
}

static void ok(cudaError_t e)
{
    ck_assert_msg(e == cudaSuccess, "%s", cudaGetErrorString(e));
}

static float *pinned(void)
{
    void *mem;
    ok(cudaMallocHost(&mem, (size_t)FRAMES * BYTES));
    return mem;
}

static cudaStream_t stream_of(bool own)
{
    cudaStream_t s = NULL;
    if (own)
        ok(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    return s;
}

static gp_pipeline *compiled(const char *yaml)
{
    gp_machine machine;
    gp_machine_read(&machine, true);
    return pipe_compiled(dir, yaml, (gp_config){ .machine = &machine });
}

static void CUDART_CB pass_gate(void *gate)
{
    sem_wait(gate);
}

/* The program's stream stands still until `gate` is opened once more. */
static void hold_up(cudaStream_t s, sem_t *gate)
{
    if (!getenv("GPIPE_SANITIZED"))    /* there a launch waits until it is done */
        ok(cudaLaunchHostFunc(s, pass_gate, gate));
}

/* It is busy for some milliseconds. */
static void slow_down(cudaStream_t s)
{
    enum { TIMES = 50, ROOM = 256 << 20 };
    static void *room;
    if (!room)
        ok(cudaMalloc(&room, ROOM));
    for (int i = 0; i < TIMES; i++)
        ok(cudaMemsetAsync(room, i, ROOM, s));
}

static bool push(gp_input *in, const float *from, cudaStream_t s, sem_t *gate)
{
    gp_loan l;
    ck_assert_int_eq(gp_push_begin(in, &l, -1), GP_LOAN_OK);
    ck_assert_int_eq(l.device, 0);
    hold_up(s, gate);
    ok(cudaMemcpyAsync(l.view.data, from, BYTES, cudaMemcpyHostToDevice, s));
    l.stream = s;
    return gp_push_end(in, &l);
}

static void pull(gp_output *out, uint64_t index, float *to, cudaStream_t s, sem_t *gate)
{
    gp_loan l;
    ck_assert_int_eq(gp_pull_begin(out, &l, -1), GP_LOAN_OK);
    ck_assert_uint_eq(l.index, index);
    ck_assert_int_eq(l.device, 0);
    hold_up(s, gate);
    ok(cudaMemcpyAsync(to, l.view.data, BYTES, cudaMemcpyDeviceToHost, s));
    l.stream = s;
    ck_assert(gp_pull_end(out, &l));
}

/* Settings; what is between; y = a x + b of it. Groups of two are split again. */
static const char *const settings[] = { "depth: 1", "depth: 4", "depth: 4\nlaunch: stream", "depth: 8\nstreams: 3\nbatch: 4",
                                        "depth: 3\nsync: block" };
static const struct { const char *stages; float a, b; } between[] = {
    { "  - {use: scale, a: 2, b: 1}\n", 2, 1 },
    { "  - {use: group, frames: 2}\n  - {use: split}\n", 1, 0 },
    { "  - {use: window, frames: 2}\n  - {use: slice, index: -1, out: w}\n", 1, 0 },
};
enum { SETTINGS = sizeof settings / sizeof *settings, BETWEEN = sizeof between / sizeof *between };

/* Each pair of frames is pushed behind a closed gate, which is opened once they are, and the same with two that are pulled:
 * a call that waited for the program's stream would not come back. */
TEST_LOOP(waits_on_the_gpu, 0, SETTINGS * BETWEEN * 2)
{
    const char *stages = between[_i / SETTINGS % BETWEEN].stages;
    float a = between[_i / SETTINGS % BETWEEN].a, b = between[_i / SETTINGS % BETWEEN].b;
    bool own = _i / SETTINGS / BETWEEN;
    bool alone = strstr(settings[_i % SETTINGS], "depth: 1") && !strstr(stages, "group");
    char *yaml = format("%s\nstall_timeout: 20s\nbuffers: {a: {dtype: f32, shape: [%d]}}\nstages:\n"
                        "  - {use: input, name: in, out: a, memory: device}\n%s"
                        "  - {use: output, name: out, memory: device}\n", settings[_i % SETTINGS], N, stages);
    gp_pipeline *p = compiled(yaml);
    gp_input *in = gp_pipeline_input(p, "in");
    gp_output *out = gp_pipeline_output(p, "out");
    gp_errs errs = { .n = 0 };
    sem_t gate;
    sem_init(&gate, 0, 0);
    float *x = pinned(), *y = pinned();
    cudaStream_t to = stream_of(own), from = stream_of(own);
    for (int i = 0; i < FRAMES * N; i++)
        x[i] = (float)(i * 7919LL % 10007);
    ck_assert_msg(gp_pipeline_start(p, NULL, &errs), "%s", pipe_said(&errs));
    for (int i = 0; i < FRAMES; i += 2)
        for (int k = 0; k < 4; k++) {
            int f = i + (alone ? k / 2 : k % 2);
            bool pushes = alone ? k % 2 == 0 : k < 2;
            if (pushes)
                ck_assert(push(in, x + (size_t)f * N, to, &gate));
            else
                pull(out, (uint64_t)f, y + (size_t)f * N, from, &gate);
            for (int open = alone ? 1 : k % 2 ? 2 : 0; open--;)
                sem_post(&gate);
        }
    gp_push_close(in);
    ok(cudaDeviceSynchronize());
    ck_assert_msg(gp_pipeline_wait(p) == GP_DONE, "%s", pipe_said(&errs));
    for (int i = 0; i < FRAMES * N; i++)
        ck_assert_msg(y[i] == a * x[i] + b, "element %d of frame %d is %g, not %g", i % N, i / N, y[i], a * x[i] + b);
    gp_pipeline_destroy(p);
}

/* A frame that is not to be, or that meets a hole, so that nothing is launched for it: who pushes the next into its slot, by
 * another stream, finds that alone. */
TEST_LOOP(dropped, 0, 2)
{
    gp_pipeline *p = compiled(format("depth: 1\nbuffers: {a: {dtype: f32, shape: [%d]}, b: {dtype: f32, shape: [%d]}}\n"
                                     "stages:\n  - {use: input, name: in, out: a, memory: device}\n"
                                     "  - {use: input, name: other, out: b}\n"
                                     "  - {use: expr, in: {x: a, y: b}, expr: \"x + 0 * y\", out: c}\n"
                                     "  - {use: output, name: out, memory: device}\n", N, N));
    gp_input *in = gp_pipeline_input(p, "in"), *other = gp_pipeline_input(p, "other");
    gp_output *out = gp_pipeline_output(p, "out");
    gp_errs errs = { .n = 0 };
    gp_loan l;
    sem_t gate;
    sem_init(&gate, 0, 2);
    float *x = pinned(), *y = pinned();
    cudaStream_t s[2] = { stream_of(true), stream_of(true) };
    for (int i = 0; i < 2 * N; i++)
        x[i] = i < N ? -1 : 1;
    ck_assert_msg(gp_pipeline_start(p, NULL, &errs), "%s", pipe_said(&errs));
    ck_assert_int_eq(gp_push_begin(in, &l, -1), GP_LOAN_OK);
    slow_down(s[0]);
    ok(cudaMemcpyAsync(l.view.data, x, BYTES, cudaMemcpyHostToDevice, s[0]));
    l.stream = s[0];
    ck_assert(_i ? gp_push_end(in, &l) : gp_push_drop(in, &l));
    ck_assert_int_eq(gp_push_begin(other, &l, -1), GP_LOAN_OK);
    ck_assert(_i ? gp_push_drop(other, &l) : gp_push_end(other, &l));
    ck_assert_int_eq(gp_push_begin(other, &l, -1), GP_LOAN_OK);
    memset(l.view.data, 0, BYTES);
    ck_assert(gp_push_end(other, &l));
    ck_assert(push(in, x + N, s[1], &gate));
    pull(out, 1, y, s[1], &gate);
    gp_push_close(in), gp_push_close(other);
    ok(cudaStreamSynchronize(s[1]));
    ck_assert_msg(gp_pipeline_wait(p) == GP_DONE, "%s", pipe_said(&errs));
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(y[i], 1);
    gp_pipeline_destroy(p);
}

/* A stream that is being captured cannot be waited for. */
TEST(captured)
{
    gp_pipeline *p = compiled(format("buffers: {a: {dtype: f32, shape: [%d]}}\nstages:\n  - {use: input, name: in, out: a, "
                                     "memory: device, on_error: drop}\n  - {use: scale}\n  - {use: output, name: out}\n", N));
    gp_input *in = gp_pipeline_input(p, "in");
    gp_errs errs = { .n = 0 };
    gp_loan l;
    cudaStream_t s = stream_of(true);
    cudaGraph_t graph;
    ck_assert(gp_pipeline_output(p, "out") && gp_pipeline_start(p, NULL, &errs));
    ck_assert_int_eq(gp_push_begin(in, &l, -1), GP_LOAN_OK);
    ok(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    l.stream = s;
    ck_assert(!gp_push_end(in, &l));
    cudaStreamEndCapture(s, &graph);
    cudaGetLastError();
    ck_assert_int_eq(gp_pipeline_wait(p), GP_ERROR);
    ck_assert_msg(strstr(errs.e[0].msg, "the stream of the program"), "%s", pipe_said(&errs));
    gp_pipeline_destroy(p);
}

typedef struct goer { gp_pipeline *p, *from; gp_errs errs; gp_outcome outcome; } goer;

static void *go_on(void *arg)
{
    goer *g = arg;
    g->outcome = gp_pipeline_go_on(g->p, g->from, NULL, &g->errs);
    return NULL;
}

/* A run goes on under another plan while what was pushed may not be there yet, nor what was pulled be read. */
TEST(goes_on)
{
    enum { RUNS = 6, EACH = 3 };
    static const char *const depth[] = { "4", "7" };
    gp_pipeline *p[RUNS];
    gp_input *in[RUNS];
    gp_output *out[RUNS];
    goer g[RUNS] = { { .p = NULL } };
    pthread_t thread[RUNS];
    gp_errs errs = { .n = 0 };
    sem_t gate;
    sem_init(&gate, 0, 2 * RUNS * EACH);
    float *x = pinned(), *y = pinned();
    cudaStream_t s = stream_of(true);
    for (int i = 0; i < RUNS * EACH * N; i++)
        x[i] = (float)(i % 10007);
    for (int i = 0; i < RUNS; i++) {
        p[i] = compiled(format("depth: %s\nbuffers: {a: {dtype: f32, shape: [%d]}}\nstages:\n  - {use: input, name: in, out: a, "
                               "memory: device}\n  - {use: scale}\n  - {use: output, name: out, memory: device}\n",
                               depth[i % 2], N));
        in[i] = gp_pipeline_input(p[i], "in"), out[i] = gp_pipeline_output(p[i], "out");
    }
    for (int i = 0; i < RUNS; i++) {
        if (!i)
            ck_assert(gp_pipeline_start(p[0], NULL, &errs));
        else
            g[i] = (goer){ .p = p[i], .from = p[i - 1] }, pthread_create(&thread[i], NULL, go_on, &g[i]);
        for (int k = 0; k < EACH; k++) {
            slow_down(s);
            ck_assert(push(in[i], x + (size_t)(i * EACH + k) * N, s, &gate));
        }
        int from = i ? i * EACH - 2 : 0, to = i + 1 < RUNS ? i * EACH + 1 : RUNS * EACH;
        for (int f = from; f < to; f++)
            pull(out[i], (uint64_t)f, y + (size_t)f * N, s, &gate);
        if (i + 1 < RUNS)
            ck_assert_msg(gp_pipeline_retune(p[i + 1], p[i], NULL, &errs), "%s", pipe_said(&errs));
        else
            gp_push_close(in[i]);
        if (i)
            pthread_join(thread[i], NULL);
        ck_assert_int_eq(i ? g[i].outcome : gp_pipeline_wait(p[0]), i + 1 < RUNS ? GP_PAUSED : GP_DONE);
    }
    ok(cudaDeviceSynchronize());
    ck_assert(!memcmp(x, y, (size_t)RUNS * EACH * BYTES));
    for (int i = RUNS; i-- > 0;)
        gp_pipeline_destroy(p[i]);
}

GPU_SUITE(loan_memory, tcase_set_timeout(tc, 60), tcase_add_checked_fixture(tc, set_up, NULL),
          suite_fill(tc, suite_items, 1))
