/* fuse_cases.c - random graphs of stages that compute element by element, with some between them that do not, on random
 * bytes: what is written has to be the same with `fuse: auto` and `fuse: none`. */
#include <stdarg.h>
#include "cases.h"

enum { FRAMES = 5, MOST = 16, TEXT = 1 << 13, YAML = 3 * TEXT, ROWS = 6, COLS = 37, REDUCTIONS = 3 };

static int every = 1;

static const char *const types[] = { "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "f32", "f64" };
enum { TYPES = sizeof types / sizeof *types, F16 = 8, F32 = 9 };

/* Of one to three inputs, p, q and r. */
static const struct { int nin; const char *text; } expressions[] = {
    { 1, "p" }, { 1, "p * gain - 3" }, { 1, "sqrt(abs(p))" }, { 1, "p > 100 ? p : 0 - p" }, { 1, "p / 3" },
    { 1, "exp(0 - abs(p) * 0.01)" }, { 1, "floor(p / 7) * 7" }, { 1, "p + i1 - i0" }, { 1, "p + frame.index" },
    { 1, "p - p.shape[1]" }, { 1, "isnan(p) ? 1 : p" }, { 1, "p[i0, i1 - 1] + p[i0 + 1, i1]" }, { 1, "p * offset + 1e9" },
    { 1, "p - p[i0, 3]" }, { 2, "p + q[1, i1]" }, { 1, "p[i0, 0] * p[0, i1]" },
    { 2, "p + q" }, { 2, "p * 0.25 - q" }, { 2, "min(p, q)" }, { 2, "max(p, q) * 2 > 100 && p < q" },
    { 2, "p / (q + 1)" }, { 2, "p - q[i0 - 1, i1]" }, { 2, "(p > q) + (p == q)" }, { 2, "hypot(p, q)" },
    { 3, "p < q ? r : p" }, { 3, "clamp(p, min(q, r), max(q, r))" }, { 3, "p * q + r" }, { 3, "p - (q - r) * gain" },
};
enum { EXPRESSIONS = sizeof expressions / sizeof *expressions };

typedef struct graph {
    unsigned seed;
    char stages[TEXT], buffers[TEXT];
    int reductions;            /* r0, r1, ... */
    int n;                     /* buffers b0, b1, ..., and their types where these are known, or -1 */
    int type[MOST];
    bool read[MOST];
    size_t whole;              /* bytes of a frame of b0 */
} graph;

static unsigned below(graph *g, unsigned n)
{
    g->seed = g->seed * 1664525u + 1013904223u;
    return (g->seed >> 8) % n;
}

static void add(char *text, const char *fmt, ...)
{
    va_list ap;
    size_t len = strlen(text);
    va_start(ap, fmt);
    int n = vsnprintf(text + len, TEXT - len, fmt, ap);
    va_end(ap);
    ck_assert_int_lt(n, (int)(TEXT - len));
}

/* One of the last buffers, mostly. */
static int pick(graph *g)
{
    int from = g->n > 3 && below(g, 4) ? g->n - 3 : 0, b = from + (int)below(g, (unsigned)(g->n - from));
    g->read[b] = true;
    return b;
}

static void declare(graph *g, int b, int type)
{
    g->type[b] = type;
    add(g->buffers, "  b%d: {dtype: %s}\n", b, types[type]);
}

static void add_expr(graph *g)
{
    static const char *const names[] = { "p", "q", "r" };
    const int e = (int)below(g, EXPRESSIONS);
    add(g->stages, "  - {use: expr, in: {");
    for (int k = 0; k < expressions[e].nin; k++) {
        bool row = k && !below(g, 5) && !strchr(expressions[e].text, '[');
        if (row)
            add(g->stages, "%s: row%s", names[k], k + 1 < expressions[e].nin ? ", " : "");
        else
            add(g->stages, "%s: b%d%s", names[k], pick(g), k + 1 < expressions[e].nin ? ", " : "");
    }
    add(g->stages, "}, out: b%d, expr: \"%s\"}\n", g->n, expressions[e].text);
    g->type[g->n] = -1;
    if (below(g, 2))
        declare(g, g->n, (int)below(g, TYPES));
}

/* Two outputs, one of which may be of a smaller type. */
static void add_two(graph *g)
{
    add(g->stages, "  - use: expr\n    in: {p: b%d}\n    out: {y: b%d, z: b%d}\n    expr: |\n      h = p * 2\n"
        "      y = h + 1\n      z = h > p\n", pick(g), g->n, g->n + 1);
    g->type[g->n] = g->type[g->n + 1] = -1;
    if (below(g, 2))
        declare(g, g->n, (int)below(g, TYPES));
    g->n++;
}

/* c64 that is made, by what it is stored as too, and real numbers of it. */
static void add_complex(graph *g)
{
    static const char *const made[] = { "p", "complex(p, i1)", "complex(gain, p) / 3", "exp(complex(0, p))" };
    static const char *const parts[] = { "re(c * conj(c))", "im(c / complex(p, 3))", "abs(c) + arg(c[i0, 2])",
                                         "c == complex(p, 0) ? re(-c) : im(c * gain - 1)" };
    const int b = pick(g), how = (int)below(g, 4);
    const bool power = !below(g, 5);
    add(g->buffers, "  c%d: {dtype: c64}\n", g->n);
    add(g->stages, "  - {use: expr, in: {p: b%d}, out: c%d, expr: \"%s\"}\n", b, g->n, made[how]);
    if (power)
        add(g->stages, "  - {use: power, in: c%d, out: b%d}\n", g->n, g->n);
    else
        add(g->stages, "  - {use: expr, in: {c: c%d, p: b%d}, out: b%d, expr: \"%s\"}\n", g->n, pick(g), g->n,
            parts[below(g, 4)]);
    g->type[g->n] = F32;
}

static void add_stage(graph *g)
{
    int b = 0;
    switch (below(g, 9)) {
    case 0:
        add(g->stages, "  - {use: cast, in: b%d, out: b%d, dtype: %s}\n", pick(g), g->n, types[below(g, TYPES)]);
        g->type[g->n] = -1;
        break;
    case 1:
        b = pick(g);
        add(g->stages, "  - {use: threshold, in: b%d, out: b%d, level: 50, below: 3, above: 77}\n", b, g->n);
        g->type[g->n] = g->type[b];
        break;
    case 2:
        for (b = g->n - 1; b > 0 && g->type[b] < F16; b--)
            ;
        if (g->type[b] < F16) {
            add_expr(g);
            break;
        }
        g->read[b] = true;
        add(g->stages, g->type[b] < F32 || below(g, 2) ? "  - {use: scale, in: b%d, out: b%d, a: gain, b: 0.1}\n"
            : below(g, 2) ? "  - {use: power, in: b%d, out: b%d}\n"
            : "  - {use: db, in: b%d, out: b%d, reference: gain, floor: -9}\n", b, g->n);
        g->type[g->n] = g->type[b];
        break;
    case 3:
        if (below(g, 3)) {
            add_two(g);
            break;
        }
        b = pick(g);           /* these are not computed element by element */
        add(g->stages, g->type[b] == F32 && below(g, 2) ? "  - {use: blur, sigma: 1, in: b%d, out: b%d}\n"
            : below(g, 2) ? "  - {use: lua, script: copy.lua, in: b%d, out: b%d}\n"
            : "  - {use: lua, script: drop.lua, in: b%d, out: b%d}\n", b, g->n);
        g->type[g->n] = g->type[b];
        break;
    case 4:
        add_complex(g);
        break;
    default:
        add_expr(g);
    }
    g->n++;
}

/* Of a buffer, and sometimes an expression of both. */
static void add_reduction(graph *g)
{
    static const char *const how[] = { "axes: [0]", "axes: [1]", "axes: [0, 1], keep: true", "axes: [0], keep: true" };
    static const char *const ops[] = { "sum", "mean", "min", "max" };
    int b = pick(g), r = g->reductions++, axes = (int)below(g, 4);
    add(g->stages, "  - {use: reduce, op: %s, %s, in: b%d, out: r%d}\n", ops[below(g, 4)], how[axes], b, r);
    if (axes != 1 && g->n + 1 < MOST && below(g, 2)) {
        add(g->stages, "  - {use: expr, in: {p: b%d, q: r%d}, out: b%d, expr: \"p - q * 0.5\"}\n", pick(g), r, g->n);
        g->type[g->n++] = -1;
    }
    add(g->stages, "  - {use: write, in: r%d, path: r%d.raw, durable: none}\n", r, r);
}

static void make(graph *g, unsigned seed, char yaml[YAML])
{
    int first = 0, stages = 2 + (int)(seed % 8);
    *g = (graph){ .seed = seed * 2654435761u + 99 };
    first = (int)below(g, TYPES);
    add(g->buffers, "  b0: {dtype: %s, shape: [%d, %d]}\n", types[first], ROWS, COLS);
    add(g->stages, "  - {use: read, path: in.raw, frames: %d, tail: ignore, out: b0}\n", FRAMES);
    g->type[0] = first, g->n = 1, g->whole = ROWS * COLS * gp_dtype_size(gp_dtype_parse(types[first]));
    while (stages-- && g->n + 2 < MOST)
        add_stage(g);
    for (int i = (int)below(g, 4); i; i--)
        add_reduction(g);
    for (int b = 0; b < g->n; b++)
        if (!g->read[b] || !below(g, 5))
            add(g->stages, "  - {use: write, in: b%d, path: b%d.raw, durable: none}\n", b, b);
    snprintf(yaml, YAML, "vars: {gain: 1.7, offset: 12}\nbuffers:\n%s%sstages:\n%s",
             strstr(g->stages, ": row") ? "  row: {const: row.npy}\n" : "", g->buffers, g->stages);
}

static float row_value(int64_t i)
{
    return (float)i * 0.5f - 3;
}

/* What is written, in the order of buffers. */
static char *run(const char *yaml, const char *fuse, const unsigned char *in, size_t nin, size_t *bytes)
{
    const char *dir = pipe_dir();
    const char *sets[] = { fuse, NULL };
    char *all = malloc(1);
    *bytes = 0;
    pipe_file(dir, "in.raw", in, nin);
    pipe_npy(dir, "row.npy", COLS, 0, row_value);
    pipe_npy(dir, "one.npy", 1, 0, row_value);
    pipe_text(dir, "copy.lua", "stateless = true\nfunction process(f, x, y) y:copy(x) end\n");
    pipe_text(dir, "drop.lua", "stateless = true\nfunction process(f, x, y) if f.index % 3 == 1 then return 'drop' end "
              "y:copy(x) end\n");
    pipe_done(dir, yaml, on, sets, (gp_run_options){ 0 });
    for (int b = 0; b < MOST + REDUCTIONS; b++) {
        size_t n;
        OWNED char *one = pipe_read(dir, format("%c%d.raw", b < MOST ? 'b' : 'r', b < MOST ? b : b - MOST), &n);
        if (!one)
            continue;
        all = realloc(all, *bytes + n + 1);
        memcpy(all + *bytes, one, n);
        *bytes += n;
    }
    return all;
}

/* A hundred graphs a test. */
TEST_LOOP(same_bytes, 0, 10)
{
    static unsigned char in[FRAMES * ROWS * COLS * 8];
    static char yaml[YAML];
    unsigned seed = 7;
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (unsigned char)((seed = seed * 1103515245u + 12345u) >> 16);
    for (int i = 100 * _i + tests_first(every < 100 ? every : 100); i < 100 * (_i + 1); i += every) {
        graph g;
        size_t n[2];
        make(&g, (unsigned)i, yaml);
        size_t nin = i % 2 ? sizeof in : g.whole * (FRAMES - 1) + g.whole / ROWS * 2;    /* the last with fewer rows */
        OWNED char *apart = run(yaml, "fuse=none", in, nin, &n[0]), *fused = run(yaml, "fuse=auto", in, nin, &n[1]);
        ck_assert_msg(n[0] && n[0] == n[1], "graph %d wrote %zu and %zu bytes:\n%s", i, n[0], n[1], yaml);
        for (size_t k = 0; k < n[0]; k++)
            ck_each(apart[k] == fused[k], "graph %d differs at byte %zu:\n%s", i, k, yaml);
    }
}

/* ---- reductions of all sizes -------------------------------------------------------- */

/* Lines of one chunk and of several (kernels/lines.h), and of a length that four does not divide; other axes, in one
 * pass and several, with lanes (kernels/fold.h) that are full and that are not. */
static const struct { const char *shape, *axes; size_t elements; int rows; } reduced[] = {
    { "[1000]", "[0]", 1000, 1000 }, { "[65]", "[0]", 65, 65 }, { "[1057]", "[0]", 1057, 1057 },
    { "[300000]", "[0]", 300000, 300000 }, { "[70, 3]", "[0]", 210, 70 }, { "[70, 3]", "[1]", 210, 70 },
    { "[70, 3]", "[0, 1]", 210, 70 }, { "[1100, 7]", "[0]", 7700, 1100 }, { "[2500, 40]", "[0]", 100000, 2500 },
    { "[2500, 40]", "[1]", 100000, 2500 }, { "[5, 700, 9]", "[1]", 31500, 5 }, { "[5, 700, 9]", "[0, 2]", 31500, 5 },
    { "[5, 700, 33]", "[1]", 115500, 5 }, { "[3, 90, 4, 70]", "[1, 3]", 75600, 3 }, { "[200, 100]", "[-1]", 20000, 200 },
    { "[3, 20011]", "[1]", 60033, 3 }, { "[4, 10000]", "[1]", 40000, 4 },
};

/* What is reduced lies as the input, is repeated along axes, or is computed with its indices; it is also written. */
static void put_reductions(char yaml[YAML], int i, const char *type)
{
    static const char *const ops[] = { "sum", "mean", "min", "max" };
    char *to = yaml + sprintf(yaml, "buffers: {x: {dtype: %s, shape: %s}, one: {const: one.npy}}\nstages:\n"
                              "  - {use: read, path: in.raw, frames: 3, tail: ignore, out: x}\n", type, reduced[i].shape);
    for (int k = 0; k < 4; k++) {
        to += sprintf(to, "  - {use: expr, in: {p: x}, expr: 'p * 3 - 1', out: y%d}\n", k);
        to += sprintf(to, "  - {use: expr, in: {p: x, q: one}, expr: 'p * q + i0', out: z%d}\n", k);
        to += sprintf(to, "  - {use: expr, in: {p: x, q: one}, expr: 'p > q', out: t%d}\n", k);
        for (int of = 0; of < 3; of++)
            to += sprintf(to, "  - {use: reduce, op: %s, axes: %s, in: %c%d, out: %c%dr}\n"
                          "  - {use: write, path: b%d.raw, durable: none}\n", ops[k], reduced[i].axes, "yzt"[of], k,
                          "yzt"[of], k, 3 * k + of);
    }
    sprintf(to, "  - {use: write, in: y0, path: b12.raw, durable: none}\n");
}

TEST_SOME(same_reductions, sizeof reduced / sizeof *reduced, 4, 1)
{
    static char yaml[YAML];
    static const char *const of[] = { "f32", "u8", "i64", "f16" };
    if (every > 10 && _i % 4 != 3)
        return;
    for (int t = 0; t < 4; t++) {
        if (every > 1 && t != _i % 4)
            continue;                          /* compiling takes most of the time */
        size_t whole = reduced[_i].elements * gp_dtype_size(gp_dtype_parse(of[t])), row = whole / (size_t)reduced[_i].rows;
        size_t nin = 2 * whole + (size_t)(reduced[_i].rows + 1) / 2 * row, n[2];
        OWNED unsigned char *in = malloc(nin);
        unsigned seed = 7;
        for (size_t i = 0; i < nin; i++)
            in[i] = (unsigned char)((seed = seed * 1103515245u + 12345u) >> 16);
        put_reductions(yaml, _i, of[t]);
        OWNED char *apart = run(yaml, "fuse=none", in, nin, &n[0]), *fused = run(yaml, "fuse=auto", in, nin, &n[1]);
        ck_assert_msg(n[0] && n[0] == n[1], "%zu and %zu bytes of\n%s", n[0], n[1], yaml);
        ck_assert_msg(!memcmp(apart, fused, n[0]), "different bytes of\n%s", yaml);
    }
}

/* Bodies of loops of u, f32, beside one: v, or what is said behind them, is the output. */
static const struct { const char *stages, *carry, *out, *until; } bodies[] = {
    { "{use: scale, a: 0.5, in: u, out: h}, {use: expr, in: [h, u], expr: 'h + u * 0.25', out: v}", "u: v", "v: o", NULL },
    { "{use: scale, a: 0.5, in: u, out: h}, {use: expr, in: {p: h, one: one}, expr: 'p - one', out: v}", "u: h", "v: o, h: q",
      NULL },
    { "{use: expr, in: {p: u}, expr: 'p[i0, i1 - 1] * 0.5', out: h}, {use: cast, dtype: f16, in: h, out: f},"
      " {use: cast, dtype: f32, in: f, out: v}", "u: v", "v: o", NULL },
    { "{use: scale, a: 0.75, in: u, out: v}, {use: expr, in: {p: v}, expr: 'abs(p) < 2', out: s},"
      " {use: reduce, op: min, axes: [0, 1], in: s, out: t}, {use: cast, dtype: i32, in: t, out: done}", "u: v", "v: o",
      "{buffer: done, every: 2}" },
    { "{use: scale, a: 0.5, in: u, out: h}, {use: reduce, op: max, axes: [1], keep: true, in: h, out: m},"
      " {use: expr, in: {h: h, m: m}, expr: 'h - m', out: d}, {use: scale, a: 2, in: d, out: v}", "u: v", "v: o, m: q", NULL },
};

TEST_EACH(same_loops, bodies)
{
    static const int times[] = { 1, 2, 5, 300 };
    static unsigned char in[FRAMES * ROWS * COLS * 4 - 2 * COLS * 4];          /* the last with fewer rows */
    for (size_t i = 0; i < sizeof in / 4; i++)
        memcpy(in + 4 * i, &(float){ (float)(i * 7919 % 1009) - 500 }, 4);
    for (int t = 0; t < 4; t++) {
        size_t n[2];
        const char *until = bodies[_i].until, *two = strstr(bodies[_i].out, "q");
        const char *one = strstr(bodies[_i].stages, "one: one");
        char *yaml = format("buffers: {x: {dtype: f32, shape: [%d, %d]}%s}\nstages:\n"
            "  - {use: read, path: in.raw, frames: %d, tail: ignore, out: x}\n"
            "  - {use: loop, in: {u: x%s}, out: {%s}, times: %d, carry: {%s}%s%s, stages: [%s]}\n"
            "  - {use: write, path: b0.raw, in: o, durable: none}\n%s", ROWS, COLS,
            one ? ", one: {const: one.npy}" : "", FRAMES, one ? ", one: one" : "", bodies[_i].out, times[t],
            bodies[_i].carry, until ? ", until: " : "", until ? until : "", bodies[_i].stages,
            two ? "  - {use: write, path: b1.raw, in: q, durable: none}\n" : "");
        OWNED char *apart = run(yaml, "fuse=none", in, sizeof in, &n[0]), *fused = run(yaml, "fuse=auto", in, sizeof in, &n[1]);
        ck_assert_msg(n[0] && n[0] == n[1] && !memcmp(apart, fused, n[0]), "different bytes of\n%s", yaml);
    }
}

CASES_SUITE(fuse, NULL, NULL, 600, every = cases_thin(19, 1, 40))
