/* backendrig.c - see backendrig.h. */
#include <stdint.h>
#include "backendrig.h"
#include "base/clock.h"
#include "pipe.h"

int be_count(bool have_gpu)
{
    return have_gpu ? 2 : 1;
}

const gp_backend *be_of(int which)
{
    return gp_backends[which];
}

/* add: element by element. slow: 2.0 in *x after many dependent steps. carry: counts what went through it, slowly. */
static const char source[] =
    "extern \"C\" __global__ void add(const float *a, const float *b, float *out, int n)\n"
    "{\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n)\n"
    "        out[i] = a[i] + b[i];\n"
    "}\n"
    "extern \"C\" __global__ void slow(float *x, int n)\n"
    "{\n"
    "    float v = *x;\n"
    "    for (int k = 0; k < n; k++)\n"
    "        v = v * 0.5f + 1.0f;\n"
    "    *x = v;\n"
    "}\n"
    "extern \"C\" __global__ void carry(unsigned *state, unsigned *out, float *x, int n)\n"
    "{\n"
    "    unsigned seen = *state;\n"
    "    float v = *x;\n"
    "    for (int k = 0; k < n; k++)\n"
    "        v = v * 0.5f + 1.0f;\n"
    "    *x = v;\n"
    "    *state = seen + 1;\n"
    "    *out = seen;\n"
    "}\n";

const gp_backend *be;
gp_dev *be_dev;
gp_errs be_errs;
bool be_gpu;
int be_steps;
static const char *dir;
const gp_kernel *be_add, *be_slow, *be_carry;

/* What a test took, for be_stop to give back. */
static struct { void *at; size_t bytes; bool device; } taken[32];
static gp_exec *built[8];
gp_priority be_priority[STREAMS];
static int ntaken, nbuilt;

const char *be_said(void)
{
    return pipe_said(&be_errs);
}

static const gp_kernel *compile(const char *entry, const char *const *param, int nparam)
{
    gp_source s = { .path = format("%s/test.cu", dir), .entry = entry, .param = param, .nparam = nparam };
    return gp_kernel_compile(be_dev, &s, &be_errs);
}

void be_start(int which)
{
    be = be_of(which);
    be_gpu = which == 1;
    be_steps = be_gpu ? 200000 : 100000;
    ntaken = nbuilt = 0;           /* a test that failed leaves them */
    be_errs.n = be_errs.failed = 0;
    OK(be_dev = be->open(0, &be_errs));
    OK(be->prepare(be_dev, STREAMS, be_priority, 1, STREAMS, &be_errs));
}

void be_start_kernels(int which)
{
    static const char *const of_add[] = { "const float *", "const float *", "float *", "int" };
    static const char *const of_slow[] = { "float *", "int" };
    static const char *const of_carry[] = { "unsigned *", "unsigned *", "float *", "int" };
    be_start(which);
    OK(be_add = compile("add", of_add, 4));
    OK(be_slow = compile("slow", of_slow, 2));
    OK(be_carry = compile("carry", of_carry, 4));
}

void be_free_last(void)
{
    ntaken--;
    be->free(be_dev, taken[ntaken].device, taken[ntaken].at, taken[ntaken].bytes);
}

void be_stop(void)
{
    ck_assert_msg(be_errs.n == 0, "%s", be_said());
    while (nbuilt)
        be->discard(be_dev, built[--nbuilt]);
    while (ntaken)
        be_free_last();
    be->close(be_dev);
    be_dev = NULL;
}

void *be_alloc(bool device, size_t bytes)
{
    void *p = be->alloc(be_dev, device, bytes, &be_errs);
    OK(p);
    ck_assert_uint_eq((uintptr_t)p % 256, 0);
    taken[ntaken].at = p;
    taken[ntaken].bytes = bytes;
    taken[ntaken++].device = device;
    return p;
}

gp_exec *be_build(gp_body body, void *arg)
{
    gp_exec *x = be->build(be_dev, 0, body, arg, &be_errs);
    OK(x);
    return built[nbuilt++] = x;
}

bool be_call(gp_rec *r, const gp_kernel *k, unsigned blocks, unsigned threads, void *const *args, int nargs)
{
    return r->ops->launch(r, k, (gp_dim3){ blocks, 1, 1 }, (gp_dim3){ threads, 1, 1 }, 0, args, nargs);
}

void be_finish(int stream)
{
    ck_assert_msg(be->wait(be_dev, stream, GP_SYNC_AUTO, &be_errs) == 1, "%s", be_said());
}

void be_run_graph(gp_body body, void *arg)
{
    OK(be->launch(be_dev, 0, be_build(body, arg), &be_errs));
    be_finish(0);
}

void be_run_direct(gp_body body, void *arg)
{
    OK(be->direct(be_dev, 0, body, arg, &be_errs));
    be_finish(0);
}

double be_seconds(void)
{
    return 1e-9 * (double)gp_now_ns();
}

bool be_move(gp_rec *r, void *arg)
{
    struct be_move *m = arg;
    return r->ops->item(r, 0, NULL, 0) && r->ops->copy(r, m->dst, m->src, m->bytes);
}

void be_set_up(void)
{
    dir = pipe_dir();
    setenv("XDG_CACHE_HOME", dir, 1);
    pipe_text(dir, "test.cu", source);
}
