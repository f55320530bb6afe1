/* test_steps.c - several iterations of a loop in one launch (stages/expr/steps.c): the kernel that is written for a GPU,
 * compiled for the CPU, beside the CPU back end, which does one iteration at a time. */
#include "every.h"
#include "compile/loop.h"
#include "harness.h"
#include "pipe.h"
#include "program.h"

static gp_dev *dev;
static gp_backend like_gpu;
static gp_arena arena;

static const gp_kernel *no_builtin(gp_dev *d, const char *name)
{
    (void)d, (void)name;
    return NULL;
}

static void setup(void)
{
    dev = trial_device(&gp_backend_cpu);
    arena = (gp_arena){ 0 };
    like_gpu = gp_backend_cpu;
    like_gpu.builtin = no_builtin;
    ck_assert(!setenv("CPLUS_INCLUDE_PATH", "kernels", 1));
}

static void teardown(void)
{
    gp_backend_cpu.close(dev);
    gp_arena_free(&arena);
}

/* ---- bodies -------------------------------------------------------------------- */

/* Inputs a (and b) are carried from y (and z); k and m, which are not, are of the frame, or of a line or a column of it.
 * `kernel`: the most iterations of a launch are more than 1. */
typedef struct body {
    const char *dtype, *expr, *other;  /* what the others are of: "", "k: SHAPE", ... */
    bool two;
    int ndim;
} body;

static const body bodies[] = {
    { "f32", "a + 0.2 * (a[i0 - 1, i1] + a[i0 + 1, i1] + a[i0, i1 - 1] + a[i0, i1 + 1] - 4 * a)", "", false, 2 },
    { "f64", "0.1 * a[i0 - 2, i1 + 1] + 0.4 * a[i0 + 1, i1 - 3] - 0.3 * a + 0.05 * a[i0, i1 + 3] + rate * i0 - i1", "", false, 2 },
    { "i32", "a[i0 - 3, i1] * 3 - a[i0, i1 + 1] + (a[i0 + 1, i1 + 2] ^ a[i0 - 1, i1 - 1]) + k[i0, i1 - 1] - k", "k: frame", false, 2 },
    { "u8", "a[i0 + 1, i1] + a[i0, i1 - 2] + k + m", "k: row, m: column", false, 2 },
    { "f32", "y = 2 * a - b + 0.3 * (a[i0 - 1, i1] + a[i0 + 1, i1] + a[i0, i1 - 1] + a[i0, i1 + 1] - 4 * a) + k; z = a", "k: frame",
      true, 2 },
    { "f16", "y = 0.5 * a[i0, i1 - 1] + 0.5 * b[i0 + 2, i1]; z = b[i0 - 1, i1 - 1] - a[i0 + 1, i1 + 1]", "", true, 2 },
    { "f32", "0.5 * a[i0, i1 - 2] + 0.25 * a[i0, i1 + 1] + 0.001 * a.shape[0]", "", false, 2 },
    { "f32", "0.5 * a[i0 - 2, i1] + 0.25 * a[i0 + 1, i1] + m[i0 + 1, i1]", "m: frame", false, 2 },
    { "c64", "0.5 * a[i0 - 1, i1 - 1] - a[i0 + 1, i1] * complex(0.1, 0.2)", "", false, 2 },
    { "f32", "0.5 * a[i0 - 1] + 0.3 * a[i0 + 2] + 0.1 * a", "", false, 1 },
    { "u16", "a[i0 - 1] ^ a[i0 + 3] + i0", "", false, 1 },
    { "f32", "0.9 * a + k * i1", "k: row", false, 2 },
    { "f32", "0.2 * (a[i0 - 1, i1, i2] + a[i0, i1 + 1, i2] + a[i0 + 1, i1 - 1, i2]) + i2 + 10 * i1 + k", "k: row", false, 3 },
    { "i16", "a[i0, i1 - 1, i2] + a[i0, i1, i2 + 2] - i0 + 3 * i2", "", false, -3 },
};
enum { BODIES = sizeof bodies / sizeof *bodies };
static const char *const edges[] = { "zero", "nearest", "reflect", "wrap" };
static const int sizes[][2] = {
    { 1, 1 }, { 1, 33 }, { 31, 1 }, { 2, 7 }, { 7, 2 }, { 3, 257 }, { 31, 33 }, { 33, 31 }, { 64, 64 }, { 255, 255 }, { 256, 31 },
    { 257, 129 }, { 65, 256 },
};
enum { SIZES = sizeof sizes / sizeof *sizes };
static const int times[] = { 2, 3, 5, 8, 13, 16, 17, 40 };
enum { TIMES = sizeof times / sizeof *times };

/* The declared shape of a frame, as a list; of `what` of it. */
static char *shape_of(const body *b, const int size[2], const char *what)
{
    int high = strcmp(what, "row") ? size[0] : 1, wide = strcmp(what, "column") ? size[1] : 1;
    return b->ndim == 1 ? gp_format(&arena, "[%d]", size[0] * size[1])
         : b->ndim == 3 ? gp_format(&arena, "[%d, %d, 3]", high, wide)
         : b->ndim == -3 ? gp_format(&arena, "[3, %d, %d]", high, wide) : gp_format(&arena, "[%d, %d]", high, wide);
}

static int inputs_of(const body *b)
{
    return 1 + b->two + !!strstr(b->other, "k:") + !!strstr(b->other, "m:");
}

static const char *what_is(const body *b, const char *name)
{
    const char *at = strstr(b->other, name);
    return !at ? "" : !strncmp(at + 3, "row", 3) ? "row" : !strncmp(at + 3, "column", 6) ? "column" : "frame";
}

static char *pipeline(const body *b, const int size[2], int n, const char *edge, const char *device)
{
    char *buffers = gp_format(&arena, "a: {dtype: %s, shape: %s}", b->dtype, shape_of(b, size, ""));
    char *in = gp_strdup(&arena, "a: a"), *names = gp_strdup(&arena, "a");
    if (b->two)
        buffers = gp_format(&arena, "%s, b: {dtype: %s, shape: %s}", buffers, b->dtype, shape_of(b, size, "")),
        in = gp_format(&arena, "%s, b: b", in), names = gp_format(&arena, "%s, b", names);
    for (const char *name = "km"; *name; name++) {
        const char *what = what_is(b, *name == 'k' ? "k:" : "m:");
        if (*what)
            buffers = gp_format(&arena, "%s, %c: {dtype: %s, shape: %s}", buffers, *name, b->dtype, shape_of(b, size, what)),
            in = gp_format(&arena, "%s, %c: %c", in, *name, *name), names = gp_format(&arena, "%s, %c", names, *name);
    }
    return gp_format(&arena, "device: %s\nvars: {rate: 0.125}\nbuffers: {%s}\nstages:\n  - {use: give, out: [%s]}\n  - use: loop\n"
                     "    name: it\n    in: {%s}\n    out: {y: u%s}\n    times: %d\n    carry: {a: y%s}\n    buffers: {y: {like: a}%s}\n"
                     "    stages:\n      - {use: expr, in: {%s}, out: {y: y%s}, edge: %s, expr: \"%s%s\"}\n"
                     "  - {use: take, in: [u%s]}\n", device, buffers, names, in, b->two ? ", z: v" : "", n, b->two ? ", b: z" : "",
                     b->two ? ", z: {like: b}" : "", in, b->two ? ", z: z" : "", edge, b->two ? "" : "y = ", b->expr,
                     b->two ? ", v" : "");
}

/* Finite numbers of all sizes, that differ from place to place. */
static array noise(gp_type type, unsigned seed)
{
    array x = array_new(type.dtype, type.ndim, type.dim);
    unsigned char *p = x.data;
    for (int64_t i = 0; i < gp_count(&type); i++) {
        seed = seed * 1664525 + 1013904223;
        double v = (double)(seed >> 8) / (1 << 20) - 5;
        float f = (float)v, pair[2] = { f, (float)(seed >> 20) };
        uint16_t h = (uint16_t)(0x3000 + (seed >> 18) % 0x1400 + (seed >> 31 << 15));
        const void *from = type.dtype == GP_F64 ? (void *)&v : type.dtype == GP_F32 ? (void *)&f : type.dtype == GP_C64 ? (void *)pair
                         : type.dtype == GP_F16 ? (void *)&h : (void *)&seed;
        size_t size = gp_dtype_size(type.dtype);
        memcpy(p + (size_t)i * size, (const char *)from + (type.dtype < GP_F16 && size < 4 ? 1 : 0), size);
    }
    return x;
}

static gp_type type_of(const body *b, const int size[2], const char *what)
{
    int high = strcmp(what, "row") ? size[0] : 1, wide = strcmp(what, "column") ? size[1] : 1;
    gp_type t = { gp_dtype_parse(b->dtype), b->ndim < 0 ? 3 : b->ndim, { high, wide, 3 } };
    if (b->ndim == 1)
        t.dim[0] = size[0] * size[1];
    if (b->ndim == -3)
        t.dim[0] = 3, t.dim[1] = high, t.dim[2] = wide;
    return t;
}

/* How many frames a launch has. */
enum { FRAMES = 2 };

static int inputs(const body *b, const int size[2], array *in)
{
    int n = 0, each = inputs_of(b);
    for (int f = 0; f < FRAMES; f++) {
        n = f * each;
        for (int i = 0; i < 1 + b->two; i++, n++)
            in[n] = noise(type_of(b, size, ""), (unsigned)n);
        for (const char *name = "km"; *name; name++)
            if (*what_is(b, *name == 'k' ? "k:" : "m:"))
                in[n] = noise(type_of(b, size, what_is(b, *name == 'k' ? "k:" : "m:")), (unsigned)n), n++;
    }
    return n;
}

/* Several: how many iterations a launch has at most. */
static int64_t run(const char *yaml, const gp_backend *backend, const array *in, array *out)
{
    gp_errs errs = { 0 };
    dev->backend = backend;
    trial *t = trial_open_text(dev, yaml, FRAMES, &errs);
    ck_assert_msg(t != NULL, "%s\n%s", pipe_said(&errs), yaml);
    int64_t steps = ((const gp_loop_opts *)trial_options(t))->loop->steps;
    trial_run(t, in, FRAMES, out);
    trial_close(t);
    dev->backend = &gp_backend_cpu;
    return steps;
}

static void compare(const body *b, const int size[2], int n, const char *edge)
{
    array in[FRAMES * 4], is[FRAMES * 2], want[FRAMES * 2];
    int nin = inputs(b, size, in), nout = FRAMES * (1 + b->two);
    char *yaml = pipeline(b, size, n, edge, "cuda");
    int64_t steps = run(yaml, &like_gpu, in, is);
    ck_assert_int_eq(run(pipeline(b, size, n, edge, "cpu"), &gp_backend_cpu, in, want), 1);
    for (int i = 0; i < nout; i++) {
        const char *differs = array_differs(&is[i], &want[i], 0);
        ck_assert_msg(!*differs, "%lld at once, output %d: %s\n%s", (long long)steps, i, differs, yaml);
        array_free(&is[i]), array_free(&want[i]);
    }
    for (int i = 0; i < nin; i++)
        array_free(&in[i]);
    ck_assert_msg(steps > 1, "%s", yaml);
}

TEST_SOME(as_one_at_a_time, BODIES * 4 * SIZES * TIMES, 331, 29)
{
    const body *b = &bodies[_i % BODIES];
    compare(b, sizes[_i / BODIES / 4 % SIZES], times[_i / BODIES / 4 / SIZES], edges[_i / BODIES % 4]);
}

TEST_SUITE(steps, setup, teardown, 600)
