/* steps_cases.c - several iterations of a loop in one launch (stages/expr/steps.c), beside one at a time: on a GPU, or,
 * in tests without one, by the kernel that is written for it, compiled for the CPU. */
#include "cases.h"
#include "compile/loop.h"
#include "harness.h"
#include "program.h"
#if GP_CUDA
#include "cuda/nvrtc.h"
#endif

static gp_dev *dev, *cpu;          /* on `dev` there may be several in one launch */
static gp_backend like_gpu;
static gp_arena arena;

static const gp_kernel *no_builtin(gp_dev *d, const char *name)
{
    (void)d, (void)name;
    return NULL;
}

static void setup(void)
{
    arena = (gp_arena){ 0 };
    cpu = trial_device(&gp_backend_cpu), dev = trial_device(cases_backend());
    if (dev->backend == &gp_backend_cpu) {
        like_gpu = gp_backend_cpu;
        like_gpu.builtin = no_builtin;
        dev->backend = &like_gpu;
        ck_assert(!setenv("CPLUS_INCLUDE_PATH", "kernels", 1));
    }
}

static void teardown(void)
{
    dev->backend->close(dev);
    gp_backend_cpu.close(cpu);
    gp_arena_free(&arena);
}

/* ---- bodies -------------------------------------------------------------------- */

/* Inputs a (and b) are carried from y (and z); k and m, which are not, are of the frame, or of a line or a column of
 * it. Instead of one expression there may be stages, in which EDGE stands for the case's edge. */
typedef struct body {
    const char *dtype;
    int ndim;                  /* 3: channels are last; -3: first */
    bool two;
    const char *other;         /* what the others are of: "", "k: row", ... */
    const char *expr, *stages;
} body;

#define FIVE(a) a "[i0 - 1, i1] + " a "[i0 + 1, i1] + " a "[i0, i1 - 1] + " a "[i0, i1 + 1]"
#define FLOW(edges, other) \
    "[{use: expr, in: {k: k, a: a, b: b}, out: {r: r}, edge: " edges ", " \
    "expr: 'r = a - a[i0, i1 - 1] + b - b[i0 - 1, i1] - k / 25'}, " \
    "{use: expr, in: {r: r, a: a, b: b}, out: {y: y, z: z}, edge: " other ", " \
    "expr: 'p = r[i0, i1 + 1] - r; q = r[i0 + 1, i1] - r; " \
    "m = 1 + 0.2 * sqrt(p * p + q * q); y = (a + 0.2 * p) / m; z = (b + 0.2 * q) / m'}]"
static const body bodies[] = {
    { "f32", 2, false, "", "a + 0.2 * (" FIVE("a") " - 4 * a)", NULL },
    { "f64", 2, false, "",
      "0.1 * a[i0 - 2, i1 + 1] + 0.4 * a[i0 + 1, i1 - 3] - 0.3 * a + 0.05 * a[i0, i1 + 3] + rate * i0 - i1", NULL },
    { "i32", 2, false, "k: frame",
      "a[i0 - 3, i1] * 3 - a[i0, i1 + 1] + (a[i0 + 1, i1 + 2] ^ a[i0 - 1, i1 - 1]) + k[i0, i1 - 1] - k", NULL },
    { "u8", 2, false, "k: row, m: column", "a[i0 + 1, i1] + a[i0, i1 - 2] + k + m", NULL },
    { "f32", 2, true, "k: frame", "y = 2 * a - b + 0.3 * (" FIVE("a") " - 4 * a) + k; z = a", NULL },
    { "f16", 2, true, "",
      "y = 0.5 * a[i0, i1 - 1] + 0.5 * b[i0 + 2, i1]; z = b[i0 - 1, i1 - 1] - a[i0 + 1, i1 + 1]", NULL },
    { "f32", 2, false, "", "0.5 * a[i0, i1 - 2] + 0.25 * a[i0, i1 + 1] + 0.001 * a.shape[0]", NULL },
    { "f32", 2, false, "m: frame", "0.5 * a[i0 - 2, i1] + 0.25 * a[i0 + 1, i1] + m[i0 + 1, i1]", NULL },
    { "c64", 2, false, "", "0.5 * a[i0 - 1, i1 - 1] - a[i0 + 1, i1] * complex(0.1, 0.2)", NULL },
    { "f32", 1, false, "", "0.5 * a[i0 - 1] + 0.3 * a[i0 + 2] + 0.1 * a", NULL },
    { "u16", 1, false, "", "a[i0 - 1] ^ a[i0 + 3] + i0", NULL },
    { "f32", 2, false, "k: row", "0.9 * a + k * i1", NULL },
    { "f32", 3, false, "k: row",
      "0.2 * (a[i0 - 1, i1, i2] + a[i0, i1 + 1, i2] + a[i0 + 1, i1 - 1, i2]) + i2 + 10 * i1 + k", NULL },
    { "i16", -3, false, "", "a[i0, i1 - 1, i2] + a[i0, i1, i2 + 2] - i0 + 3 * i2", NULL },
    { "f32", 2, true, "k: frame", NULL, FLOW("zero", "nearest") },
    { "f32", 2, true, "k: frame", NULL, FLOW("EDGE", "EDGE") },
    { "f32", 2, true, "k: frame", NULL, FLOW("reflect", "zero") },
    /* what is carried is read by a later stage, too; and the old one, where it is made anew already */
    { "i32", 2, true, "", NULL,
      "[{use: expr, in: {a: a, b: b}, out: {y: y}, edge: EDGE, expr: 'y = a + b[i0, i1 - 1] - b'}, "
      "{use: expr, in: {y: y, a: a, b: b}, out: {z: z}, edge: EDGE, "
      "expr: 'z = b + 3 * y[i0 + 1, i1] - y[i0, i1 + 2] + a'}]" },
    { "f32", 2, false, "", NULL, "[{use: expr, in: {a: a}, out: {r: r}, edge: EDGE, expr: 'r = a[i0 - 1, i1] + i0'}, "
      "{use: expr, in: {r: r, a: a}, out: {s: s}, edge: EDGE, expr: 's = 0.5 * r[i0, i1 - 1] - a[i0, i1 + 1] + r'}, "
      "{use: expr, in: {s: s, r: r}, out: {y: y}, edge: EDGE, expr: 'y = 0.3 * (s[i0 + 2, i1] + r + s)'}]" },
};
enum { BODIES = sizeof bodies / sizeof *bodies };
static const char *const edges[] = { "zero", "nearest", "reflect", "wrap" };
static const int sizes[][2] = {
    { 1, 1 }, { 1, 33 }, { 31, 1 }, { 2, 7 }, { 7, 2 }, { 3, 257 }, { 31, 33 }, { 33, 31 }, { 64, 64 }, { 255, 255 },
    { 256, 31 }, { 257, 129 }, { 65, 256 },
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

static const char *with_edge(const char *text, const char *edge)
{
    for (const char *at; (at = strstr(text, "EDGE"));)
        text = gp_format(&arena, "%.*s%s%s", (int)(at - text), text, edge, at + 4);
    return text;
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
            buffers = gp_format(&arena, "%s, %c: {dtype: %s, shape: %s}", buffers, *name, b->dtype,
                                shape_of(b, size, what)),
            in = gp_format(&arena, "%s, %c: %c", in, *name, *name), names = gp_format(&arena, "%s, %c", names, *name);
    }
    char *stages = gp_format(&arena, "[{use: expr, in: {%s}, out: {y: y%s}, edge: EDGE, expr: \"%s%s\"}]", in,
                             b->two ? ", z: z" : "", b->two ? "" : "y = ", b->expr);
    return gp_format(&arena, "device: %s\nvars: {rate: 0.125}\nbuffers: {%s}\nstages:\n  - {use: give, out: [%s]}\n"
                     "  - use: loop\n    name: it\n    in: {%s}\n    out: {y: u%s}\n    times: %d\n"
                     "    carry: {a: y%s}\n    buffers: {y: {like: a}%s%s%s}\n    stages: %s\n"
                     "  - {use: take, in: [u%s]}\n", device, buffers, names, in, b->two ? ", z: v" : "", n,
                     b->two ? ", b: z" : "", b->two ? ", z: {like: b}" : "",
                     b->stages && strstr(b->stages, "r: r") ? ", r: {like: a}" : "",
                     b->stages && strstr(b->stages, "s: s") ? ", s: {like: a}" : "",
                     with_edge(b->stages ? b->stages : stages, edge), b->two ? ", v" : "");
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
        const void *from = type.dtype == GP_F64 ? (void *)&v : type.dtype == GP_F32 ? (void *)&f
                         : type.dtype == GP_C64 ? (void *)pair : type.dtype == GP_F16 ? (void *)&h : (void *)&seed;
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

enum { FRAMES = 2, ALL = 4 * (FRAMES + 1) };   /* of a launch; inputs of these, and of a partial frame */

/* Of FRAMES frames, and of one with fewer rows. How many? */
static int make_inputs(const body *b, const int size[2], array *in)
{
    int n = 0;
    for (int f = 0; f <= FRAMES; f++) {
        int rows = f < FRAMES ? size[0] : (size[0] + 1) / 2;
        const int is[2] = { b->ndim == -3 ? size[0] : rows, size[1] };
        for (int i = 0; i < 1 + b->two; i++, n++)
            in[n] = noise(type_of(b, is, ""), (unsigned)n);
        for (const char *name = "km"; *name; name++) {
            const char *what = what_is(b, *name == 'k' ? "k:" : "m:");
            if (*what)
                in[n] = noise(type_of(b, is, what), (unsigned)n), n++;
        }
    }
    return n;
}

/* Outputs of all frames. How many iterations has a launch at most? */
static int64_t run(gp_dev *d, const char *yaml, const array *in, int each, array *out)
{
    gp_errs errs = { 0 };
    trial *t = trial_open_text(d, yaml, FRAMES, &errs);
    ck_assert_msg(t != NULL, "%s\n%s", pipe_said(&errs), yaml);
    int64_t steps = ((const gp_loop_opts *)trial_options(t))->loop->steps;
    trial_run(t, in, FRAMES, out);
    trial_run(t, in + FRAMES * each, 1, out + FRAMES * trial_outputs(t));
    trial_close(t);
    return steps;
}

static void compare(const body *b, const int size[2], int n, const char *edge)
{
    array in[ALL], is[ALL], want[ALL];
    int nin = make_inputs(b, size, in), nout = (FRAMES + 1) * (1 + b->two);
    char *yaml = pipeline(b, size, n, edge, "cuda");
    int64_t steps = run(dev, yaml, in, inputs_of(b), is);
    ck_assert_int_eq(run(cpu, pipeline(b, size, n, edge, "cpu"), in, inputs_of(b), want), 1);
    for (int i = 0; i < nout; i++) {
        SAME(is[i], want[i], 0, "%lld at once, output %d\n%s", (long long)steps, i, yaml);
        array_free(&is[i]), array_free(&want[i]);
    }
    for (int i = 0; i < nin; i++)
        array_free(&in[i]);
    ck_assert_msg(steps > 1, "%s", yaml);
}

TEST_THIN(as_one_at_a_time, BODIES * 4 * SIZES * TIMES, 1)
{
    const body *b = &bodies[_i % BODIES];
    compare(b, sizes[_i / BODIES / 4 % SIZES], times[_i / BODIES / 4 / SIZES], edges[_i / BODIES % 4]);
}

#if GP_CUDA
TEST_THIN(nvrtc_takes_the_text, BODIES * 4, 29)
{
    gp_errs errs = { 0 };
    static const int size[] = { 257, 129 };
    trial *t = trial_open_text(cpu, pipeline(&bodies[_i % BODIES], size, 40, edges[_i / BODIES], "cuda"), 1, &errs);
    ck_assert_msg(t != NULL, "%s", pipe_said(&errs));
    const gp_loop *l = ((const gp_loop_opts *)trial_options(t))->loop;
    const gp_ew_program *p = ((const gp_ew_opts *)l->graph->stage[0].opts)->program;
    void *image = NULL;
    size_t bytes;
    ck_assert(p->steps);
    if (!gp_nvrtc_compile(&p->source, 90, NULL, &image, &bytes, NULL, &errs) && !strstr(errs.e[0].msg, "install libnvrtc"))
        ck_abort_msg("%s\n%.4000s", errs.e[0].msg, p->source.text);
    free(image);
    trial_close(t);
}
#endif

/* Where an output is not carried, or a part of what is carried is read; where neighbors are far away, or along three
 * axes; and of other kinds. */
static const struct { const char *stages; bool two; int axes; } others[] = {
    { "[{use: expr, in: {a: a}, out: {y: y, z: z}, expr: 'y = a[i0 - 1, i1]; z = a'}]", true, 2 },
    { "[{use: expr, in: {a: a}, out: {y: y}, expr: 'y = a[i0 - 1, i1] + a[0, i1]'}]", false, 2 },
    { "[{use: expr, in: {a: a}, out: {y: y}, expr: 'y = a[i0, i1 - 17]'}]", false, 2 },
    { "[{use: expr, in: {a: a}, out: {y: y}, expr: 'y = a[i0 - 1, i1, i2] + a[i0, i1, i2 - 1]'}]", false, 3 },
    { "[{use: blur, sigma: 1, in: a, out: y}]", false, 2 },
    { "[{use: expr, in: {a: a}, out: {r: r}, expr: 'r = a[i0 - 1, i1]'}, {use: blur, in: r, out: y, sigma: 1}]",
      false, 2 },
};

TEST_EACH(one_at_a_time, others)
{
    gp_errs errs = { 0 };
    char *yaml = gp_format(&arena, "device: cuda\nbuffers: {a: {dtype: f32, shape: %s}}\nstages:\n"
                           "  - {use: give, out: [a]}\n  - {name: it, use: loop, in: {a: a}, out: {y: u%s}, times: 9, "
                           "carry: {a: y}, buffers: {y: {like: a}}, stages: %s}\n  - {use: take, in: [u%s]}\n",
                           others[_i].axes == 3 ? "[20, 20, 20]" : "[20, 20]", others[_i].two ? ", z: v" : "",
                           others[_i].stages, others[_i].two ? ", v" : "");
    trial *t = trial_open_text(cpu, yaml, 1, &errs);
    ck_assert_msg(t != NULL, "%s\n%s", pipe_said(&errs), yaml);
    ck_assert_int_eq(((const gp_loop_opts *)trial_options(t))->loop->steps, 1);
    trial_close(t);
}

CASES_SUITE(steps, setup, teardown, 600, cases_thin(331, 29, 29))
