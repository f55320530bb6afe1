/* loop_cases.c - loops: against the same stages written out, against C for many iterations, with `until`, over partial
 * frames and holes, and a heat equation as NumPy computes it. */
#include <stdarg.h>
#include <stdint.h>
#include "cases.h"
enum { KNOBS = CASES_KNOBS - 2 };

/* One source for all kernels, so that it is compiled once. */
#define KERNEL(name, params, body)                                                                        \
    "extern \"C\" __global__ void " name "(" params ", int n)\n{\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n" \
    "    if (i < n) {\n        " body "\n    }\n}\n"
static const char kernels[] =
    KERNEL("mean", "const float *a, const float *b, float *o", "o[i] = 0.5f * a[i] + 0.5f * b[i];")
    KERNEL("more", "const float *a, float *o", "o[i] = 1.25f * a[i] + 1;")
    KERNEL("even", "const float *a, float *o", "if (i % 2 == 0) o[i] = a[i];")
    KERNEL("never", "const float *a, int *o", "o[i] = a[i] > 1e30f;")
    KERNEL("sums", "const unsigned *a, const unsigned *b, unsigned *c, unsigned *d", "c[i] = b[i]; d[i] = a[i] + b[i];")
    KERNEL("count", "const int *a, int *b, int *done, int limit",
           "int next = a[i] + 1; b[i] = next; if (i == 0) done[0] = next >= limit;")
    "extern \"C\" __global__ void evens(const float *a, size_t from, float *o, size_t to, int n)\n{\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n && i % 2 == 0)\n        o[blockIdx.z * to + i] = a[blockIdx.z * from + i];\n}\n"
    "extern \"C\" __global__ void heat(const double *a, double *o, int w, int h)\n{\n"
    "    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;\n"
    "    if (x >= w || y >= h)\n        return;\n    int i = y * w + x;\n"
    "    double around = a[y ? i - w : i] + a[y < h - 1 ? i + w : i] + a[x ? i - 1 : i] + a[x < w - 1 ? i + 1 : i];\n"
    "    o[i] = a[i] + 0.2 * (around - 4 * a[i]);\n}\n";

static const char *new_dir(void)
{
    const char *dir = pipe_dir();
    pipe_text(dir, "k.cu", kernels);
    return dir;
}

/* ---- against the stages written out ----------------------------------- */

/* A body: "OUT = KERNEL IN IN; ...", its inputs x and w, of which x carries, and what is carried, which goes outside. */
static const struct { const char *words, *carried; } bodies[] = {
    { "v = more x", "v" },
    { "v = mean x w", "v" },
    { "v = blur x", "v" },
    { "t = more x; v = mean t w", "v" },
    { "t = blur x; s = more t; v = mean s x", "v" },
    { "v = more x; t = mean v w", "t" },
    { "v = mean x w; t = blur v; s = mean t x", "s" },
    { "t = zero x; v = mean t x", "v" },
    { "v = scale x", "v" },
    { "t = scale x; s = scale t; v = mean s t", "v" },
    { "t = mean x k; v = more t", "v" },
};
enum { BODIES = sizeof bodies / sizeof *bodies, TIMES = 5 };

typedef struct text { char s[12000]; size_t n; } text;

static void put(text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    t->n += (size_t)vsnprintf(t->s + t->n, sizeof t->s - t->n, fmt, ap);
    va_end(ap);
    ck_assert(t->n < sizeof t->s);
}

/* The stages of a body; with `i` >= 0 as iteration i of a pipeline, where names of buffers end in a number. */
static void put_stages(text *t, const char *words, const char *carried, int i, const char *indent)
{
    char copy[200], *more = copy;
    snprintf(copy, sizeof copy, "%s", words);
    for (char *statement; (statement = strsep(&more, ";"));) {
        char out[8], op[8], in[2][8], name[2][24], own[16];
        int n = sscanf(statement, " %7s = %7s %7s %7s", out, op, in[0], in[1]) - 2;
        snprintf(own, sizeof own, "_%d", i);
        own[i < 0 ? 0 : strlen(own)] = 0;
        char *out_name = format("%.8s%.7s", out, own);
        for (int k = 0; k < n; k++)
            if (i < 0 || !strcmp(in[k], "w") || !strcmp(in[k], "k") || (!i && !strcmp(in[k], "x")))
                snprintf(name[k], sizeof name[k], "%.8s", in[k]);
            else if (!strcmp(in[k], "x"))
                snprintf(name[k], sizeof name[k], "%.8s_%d", carried, i - 1);
            else
                snprintf(name[k], sizeof name[k], "%.8s%.7s", in[k], own);
        if (!strcmp(op, "blur") || !strcmp(op, "scale"))
            put(t, "%s- {use: %s, %s, in: %s, out: %s}\n", indent, op, *op == 'b' ? "sigma: 0.8" : "a: 0.75, b: 2", name[0],
                out_name);
        else if (n == 1)
            put(t, "%s- {use: kernel, source: k.cu, entry: %s, in: {a: %s}, out: {o: %s}, threads: o.size, args: [a, o, {i32: a.size}]%s}\n",
                indent, *op == 'z' ? "even" : op, name[0], out_name, *op == 'z' ? ", zero: true" : "");
        else
            put(t, "%s- {use: kernel, source: k.cu, entry: %s, in: {a: %s, b: %s}, out: {o: %s}, "
                "threads: o.size, args: [a, b, o, {i32: a.size}]}\n", indent, op, name[0], name[1], out_name);
    }
}

/* Declares what the body makes to be like x: for a loop, or for each iteration that is written out. */
static void put_inner(text *t, const char *words)
{
    const char *sep = "";
    for (const char *p = words; p; p = strchr(p, ';')) {
        p += strspn(p, "; ");
        put(t, "%s%c: {like: x}", sep, *p);
        sep = ", ";
    }
}

static void put_buffers(text *t, const char *words, int times)
{
    for (int i = 0; i < times; i++)
        for (const char *p = words; p; p = strchr(p, ';')) {
            p += strspn(p, "; ");
            put(t, ", %c_%d: {like: x}", *p, i);
        }
}

/* x, of 11 frames: whole, with holes or with fewer rows, as `how` says; and w, made of it. */
static void put_source(text *t, const char *dir, int how, bool w)
{
    static float in[20 * 36];
    for (int i = 0; i < 20 * 36; i++)
        in[i] = (float)((i * 7919 + 31) % 1009) / 16;
    pipe_file(dir, "a-1.raw", in, sizeof *in * (how == 2 ? 7 * 36 + 12 : 8 * 36));
    pipe_file(dir, "a-2.raw", in + 100, sizeof *in * (how == 2 ? 2 * 36 + 24 : 3 * 36));
    put(t, "stages:\n  - {use: read, path: \"a-*.raw\", out: %s}\n", how == 1 ? "y" : "x");
    if (how == 1) {
        pipe_text(dir, "lose.lua", "function process(frame, x, y)\n  if frame.index % 3 == 1 then return 'drop' end\n"
                  "  y:copy(x)\nend\n");
        put(t, "  - {use: lua, script: lose.lua, in: y, out: x}\n");
    }
    if (w)
        put(t, "  - {use: scale, a: -0.5, in: x, out: w}\n");
}

static char *run_text(const char *dir, const text *t, int knob, size_t *n)
{
    pipe_result r = cases_run(dir, t->s, knob);
    pipe_no_errors(&r, t->s);
    ck_assert_msg(r.outcome == GP_DONE, "%s", t->s);
    char *out = pipe_read(dir, "out.raw", n);
    ck_assert_msg(out && *n, "%s", t->s);
    return out;
}

static float element(int64_t i)
{
    return (float)(i % 11) - 4;
}

/* Is that letter one of the words? */
static bool reads(const char *words, char name)
{
    for (const char *p = strchr(words, name); p; p = strchr(p + 1, name))
        if (p > words && p[-1] == ' ' && (!p[1] || p[1] == ' ' || p[1] == ';'))
            return true;
    return false;
}

TEST_THIN(as_written_out, BODIES * TIMES * 3, 1)
{
    int b = _i % BODIES, times = 1 + _i / BODIES % TIMES, how = _i / BODIES / TIMES % 3;
    const char *words = bodies[b].words, *carried = bodies[b].carried, *dir = new_dir();
    bool w = reads(words, 'w'), k = reads(words, 'k');
    text loop = { .n = 0 }, plain = { .n = 0 };
    size_t n, m;
    pipe_npy(dir, "k.npy", 6, 6, element);
    for (int i = 0; i < 2; i++) {
        text *t = i ? &plain : &loop;
        put(t, "buffers: {x: {dtype: f32, shape: [6, 6]}%s%s", k ? ", k: {const: k.npy}" : "",
            how == 1 ? ", y: {like: x}" : "");
        if (i)
            put_buffers(t, words, times);
        put(t, "}\n");
        put_source(t, dir, how, w);
    }
    put(&loop, "  - use: loop\n    in: {x: x%s%s}\n    out: {%s: end}\n    times: %d\n    carry: {x: %s}\n",
        w ? ", w: w" : "", k ? ", k: k" : "", carried, times, carried);
    put(&loop, "    buffers: {");
    put_inner(&loop, words);
    put(&loop, "}\n    stages:\n");
    put_stages(&loop, words, carried, -1, "      ");
    put(&loop, "  - {use: write, in: end, path: out.raw, durable: none}\n");
    for (int i = 0; i < times; i++)
        put_stages(&plain, words, carried, i, "  ");
    put(&plain, "  - {use: write, in: %s_%d, path: out.raw, durable: none}\n", carried, times - 1);
    OWNED char *made = run_text(dir, &loop, _i % KNOBS, &n), *is = run_text(dir, &plain, 0, &m);
    ck_assert_msg(n == m && !memcmp(made, is, n), "with %s%s", cases_knobs[_i % KNOBS], loop.s);
}

/* ---- beside other things ------------------------------------------------ */

/* Several frames in one launch: what is set to 0 lies between what others made of these frames. */
TEST_THIN(zero_in_batches, KNOBS, 14)
{
    const char *dir = new_dir();
    float in[16 * 10];
    text t = { .n = 0 };
    size_t n;
    for (int i = 0; i < 160; i++)
        in[i] = (float)i;
    pipe_file(dir, "a.raw", in, sizeof in);
    put(&t, "buffers: {x: {dtype: f32, shape: [10]}}\nstages:\n  - {use: read, path: a.raw, out: x}\n"
        "  - use: loop\n    in: {x: x}\n    out: {v: end}\n    times: 2\n    carry: {x: v}\n    stages:\n"
        "      - {use: scale, a: 2, in: x, out: t}\n"
        "      - {use: kernel, source: k.cu, entry: evens, in: {a: t}, out: {o: s}, args: [a, o, {i32: a.size}], "
        "batched: true, grid: [1], zero: true}\n"
        "      - {use: scale, b: 1, in: s, out: v}\n  - {use: write, in: end, path: out.raw, durable: none}\n");
    OWNED float *out = (float *)run_text(dir, &t, _i, &n);
    ck_assert_uint_eq(n, sizeof in);
    for (int i = 0; i < 160; i++)
        ck_assert_msg(out[i] == (i % 2 ? 1 : 4 * in[i] + 3), "element %d is %g: %s%s", i, out[i], cases_knobs[_i], t.s);
}

/* What comes into the loop is what it made of the frame before: as declared outside, not in the loop. */
TEST_THIN(in_a_cycle, KNOBS, 14)
{
    enum { FRAMES = 9, SIZE = 6, TURNS = 3 };
    const char *dir = new_dir();
    float in[FRAMES * SIZE], before[SIZE];
    text t = { .n = 0 };
    size_t n;
    for (int i = 0; i < FRAMES * SIZE; i++)
        in[i] = (float)(i % 16);
    for (int i = 0; i < SIZE; i++)
        before[i] = 4;
    pipe_file(dir, "a.raw", in, sizeof in);
    put(&t, "buffers: {x: {dtype: f32, shape: [%d]}, u: {carry: end, init: 4, dtype: f32, shape: [%d]}}\nstages:\n"
        "  - {use: read, path: a.raw, out: x}\n"
        "  - use: loop\n    in: {x: x, u: u}\n    out: {v: end}\n    times: %d\n    carry: {x: v}\n    stages:\n"
        "      - {use: kernel, source: k.cu, entry: mean, in: {a: x, b: u}, out: {o: v}, threads: o.size, "
        "args: [a, b, o, {i32: a.size}]}\n"
        "  - {use: write, in: end, path: out.raw, durable: none}\n", SIZE, SIZE, TURNS);
    OWNED float *out = (float *)run_text(dir, &t, _i, &n);
    ck_assert_uint_eq(n, sizeof in);
    for (int f = 0; f < FRAMES; f++)
        for (int i = 0; i < SIZE; i++) {
            float v = in[f * SIZE + i];
            for (int k = 0; k < TURNS; k++)
                v = 0.5f * v + 0.5f * before[i];
            ck_assert_msg(out[f * SIZE + i] == v, "frame %d has %g, not %g: %s%s", f, out[f * SIZE + i], v,
                          cases_knobs[_i], t.s);
            before[i] = v;
        }
}

/* ---- many iterations --------------------------------------------------- */

/* Fibonacci's numbers, of two that are carried, modulo 2^32: a turn of the device has an even number of iterations, and
 * what is over comes first. */
static const int64_t many[] = { 1, 2, 3, 63, 64, 99, 100, 101, 5000, 20001, 70000 };
enum { MANY = sizeof many / sizeof *many };

TEST_THIN(many_iterations, MANY * KNOBS, 1)
{
    const char *dir = new_dir();
    uint32_t in[6] = { 1, 3, 0, 1, 7, 100 }, other[6] = { 1, 4, 1, 2, 0, 5 };
    text t = { .n = 0 };
    size_t n;
    pipe_file(dir, "a.raw", in, sizeof in);
    pipe_file(dir, "b.raw", other, sizeof other);
    put(&t, "buffers: {p: {dtype: u32, shape: [2]}, q: {like: p}}\nstages:\n  - {use: read, path: a.raw, out: p}\n"
        "  - {use: read, path: b.raw, out: q}\n  - use: loop\n    in: {a: p, b: q}\n    out: {d: end}\n    times: %lld\n"
        "    carry: {a: c, b: d}\n    stages:\n"
        "      - {use: kernel, source: k.cu, entry: sums, in: {a: a, b: b}, out: {c: c, d: d}, threads: c.size, "
        "args: [a, b, c, d, {i32: a.size}]}\n  - {use: write, in: end, path: out.raw, durable: none}\n",
        (long long)many[_i / KNOBS]);
    OWNED uint32_t *out = (uint32_t *)run_text(dir, &t, _i % KNOBS, &n);
    ck_assert_uint_eq(n, sizeof in);
    for (int i = 0; i < 6; i++) {
        uint32_t a = in[i], b = other[i];
        for (int64_t k = 0; k < many[_i / KNOBS]; k++) {
            uint32_t d = a + b;
            a = b, b = d;
        }
        ck_assert_msg(out[i] == b, "element %d is %u, not %u: %s%s", i, out[i], b, cases_knobs[_i % KNOBS], t.s);
    }
}

/* ---- until ------------------------------------------------------------- */

static const struct { int times, every, limit; } stops[] = {
    { 1, 1, 5 }, { 2, 1, 1 }, { 50, 1, 20 }, { 50, 2, 20 }, { 50, 3, 20 }, { 50, 7, 20 }, { 50, 49, 20 }, { 50, 50, 20 },
    { 50, 60, 20 }, { 7, 3, 1000 }, { 8, 3, 1000 }, { 9, 3, 1000 }, { 3000, 1, 2900 }, { 3000, 4, 1000000 }, { 100, 8, 0 },
};
enum { STOPS = sizeof stops / sizeof *stops };

TEST_THIN(stops_when_done, STOPS * KNOBS, 1)
{
    int times = stops[_i / KNOBS].times, every = stops[_i / KNOBS].every, limit = stops[_i / KNOBS].limit;
    const char *dir = new_dir();
    int32_t in[2 * 9];
    text t = { .n = 0 };
    size_t n;
    for (int i = 0; i < 18; i++)
        in[i] = 3 * i;
    pipe_file(dir, "a.raw", in, sizeof in);
    put(&t, "buffers: {x: {dtype: i32, shape: [2]}}\nstages:\n  - {use: read, path: a.raw, out: x}\n"
        "  - use: loop\n    in: {a: x}\n    out: {b: end, done: done}\n    times: %d\n    carry: {a: b}\n"
        "    until: {buffer: done, every: %d}\n    buffers: {done: {dtype: i32, shape: [1]}}\n    stages:\n"
        "      - {use: kernel, source: k.cu, entry: count, in: {a: a}, out: {b: b, done: done}, threads: b.size, "
        "args: [a, b, done, {i32: %d}, {i32: a.size}]}\n"
        "  - {use: write, in: end, path: out.raw, durable: none}\n"
        "  - {use: write, in: done, path: done.raw, durable: none}\n", times, every, limit);
    OWNED int32_t *out = (int32_t *)run_text(dir, &t, _i % KNOBS, &n);
    ck_assert_uint_eq(n, sizeof in);
    OWNED int32_t *done = pipe_read_all(dir, "done.raw", sizeof in / 2);
    for (int f = 0; f < 9; f++) {
        int k = 0;
        do
            k++;
        while (k < times && !(k % every == 0 && in[2 * f] + k >= limit));
        ck_assert_msg(out[2 * f] == in[2 * f] + k && out[2 * f + 1] == in[2 * f + 1] + k && done[f] == (in[2 * f] + k >= limit),
                      "frame %d has %d and %d, not %d more: %s%s", f, out[2 * f], done[f], k,
                      cases_knobs[_i % KNOBS], t.s);
    }
}

/* ---- what is not written ----------------------------------------------- */

TEST_THIN(unwritten, 6, 14)
{
    const char *dir = new_dir();
    text t = { .n = 0 };
    put(&t, "buffers: {x: {dtype: f32, shape: [10]}}\nstages:\n  - {use: generate, pattern: noise, frames: 3, out: x}\n"
        "  - use: loop\n    in: {x: x}\n    out: {v: end}\n    times: %d\n    carry: {x: v}\n    buffers: {t: {like: x}}\n"
        "    stages:\n"
        "      - {name: half, use: kernel, source: k.cu, entry: even, in: {a: x}, out: {o: %s}, threads: o.size, args: [a, o, {i32: a.size}]}\n"
        "      - {name: all, use: kernel, source: k.cu, entry: more, in: {a: %s}, out: {o: %s}, threads: o.size, args: [a, o, {i32: a.size}]}\n"
        "  - {use: discard, in: end}\n", 1 + _i / 2, _i % 2 ? "v" : "t", _i % 2 ? "v" : "t", _i % 2 ? "t" : "v");
    if (_i % 2) {                      /* then t is made of v, and read by none */
        char *last = strstr(t.s, "      - {name: all");
        memmove(last, strstr(last, "  - {use: discard"), strlen(strstr(last, "  - {use: discard")) + 1);
        char *b = strstr(t.s, "    buffers: {t");
        memmove(b, strchr(b, '\n') + 1, strlen(strchr(b, '\n') + 1) + 1);
    }
    pipe_result r = pipe_run(dir, t.s, on, NULL, (gp_run_options){ 0 });
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_msg(strstr(r.errs.e[0].msg, "stage 'half' leaves 5 of the 10 elements of 'o' unwritten in frame 0"),
                  "%s\n%s", r.errs.e[0].msg, t.s);
}

/* Also where iterations end in the other place of what is carried, and it is copied. */
TEST_THIN(unwritten_until, 21, 14)
{
    const char *dir = new_dir();
    text t = { .n = 0 };
    put(&t, "buffers: {x: {dtype: f32, shape: [10]}}\nstages:\n  - {use: generate, pattern: noise, frames: 3, out: x}\n"
        "  - use: loop\n    in: {x: x}\n    out: {v: end}\n    times: %d\n    carry: {x: v}\n"
        "    until: {buffer: done, every: %d}\n    buffers: {done: {dtype: i32, shape: [1]}}\n    stages:\n"
        "      - {name: half, use: kernel, source: k.cu, entry: even, in: {a: x}, out: {o: v}, threads: o.size, args: [a, o, {i32: a.size}]}\n"
        "      - {use: kernel, source: k.cu, entry: never, in: {a: x}, out: {o: done}, args: [a, o, {i32: 1}], block: 1, grid: 1}\n"
        "  - {use: discard, in: end}\n", 1 + _i % 7, 1 + _i / 7);
    pipe_result r = pipe_run(dir, t.s, on, NULL, (gp_run_options){ 0 });
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_msg(strstr(r.errs.e[0].msg, "stage 'half' leaves 5 of the 10 elements of 'o' unwritten in frame 0"),
                  "%s\n%s", r.errs.e[0].msg, t.s);
}

/* ---- as NumPy ---------------------------------------------------------- */

static const char heat_kernel[] =
    "      - use: kernel\n        source: k.cu\n        entry: heat\n        in: {a: was}\n        out: {o: heat}\n"
    "        args: [a, o, {i32: \"a.shape[1]\"}, {i32: \"a.shape[0]\"}]\n        block: [16, 16]\n        grid: [4, 4]\n";
static const char heat_expr[] =
    "      - use: expr\n        in: {a: was}\n        out: heat\n        edge: nearest\n"
    "        expr: a + 0.2 * (a[i0 - 1, i1] + a[i0 + 1, i1] + a[i0, i1 - 1] + a[i0, i1 + 1] - 4 * a)\n";

/* What tests/ref/heat.py makes of a plate that is left alone, by a kernel and by an expression. */
TEST_THIN(heat_as_numpy, 2 * 3 * KNOBS, 1)
{
    static const int steps[] = { 1, 50, 1001 };
    int n = steps[_i / KNOBS % 3];
    char ref[4096];
    text t = { .n = 0 };
    const char *dir = new_dir();
    ck_assert_ptr_nonnull(realpath("tests/ref", ref));
    put(&t, "buffers: {start: {shape: [64, 64]}}\nstages:\n  - {use: read, path: %s/heat_start.npy, out: start}\n"
        "  - use: loop\n    in: {was: start}\n    out: {heat: end}\n    times: %d\n    carry: {was: heat}\n    stages:\n"
        "%s  - {use: compare, in: end, file: %s/heat_%d.npy, rel: 1e-6}\n", ref, n, _i < 3 * KNOBS ? heat_kernel : heat_expr,
        ref, n);
    pipe_result r = cases_run(dir, t.s, _i % KNOBS);
    pipe_no_errors(&r, t.s);
    ck_assert_int_eq(r.outcome, GP_DONE);
    ck_assert_uint_eq(r.account[0].out, 1);
}

CASES_SUITE(loop, NULL, NULL, 0, cases_every(47, 5, 5))
