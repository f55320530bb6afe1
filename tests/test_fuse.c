/* test_fuse.c - which neighbors become one kernel, why others do not, and that it computes what they did. */
#include "base/memfile.h"
#include "compile/loop.h"
#if GP_CUDA
#include "cuda/nvrtc.h"
#endif
#include "cases.h"
#include "program.h"

/* Stage lists behind a source of x, f32 [4, 6]; what they become: "NAME: INPUTS > OUTPUTS" each, and behind a bar why
 * neighbors are not one. */
static const struct { const char *what, *stages, *becomes; } cases[] = {
    { "a chain",
      "[{use: scale}, {use: cast, dtype: u8}, {use: threshold, level: 3}, {use: discard}]",
      "scale+cast+threshold: x > threshold; discard: threshold >" },
    { "a diamond",
      "[{use: scale, out: y}, {use: scale, name: up, in: y, out: u}, {use: scale, name: down, in: y, out: d},"
      " {use: expr, in: {u: u, d: d}, expr: 'u - d'}, {use: discard}]",
      "scale+up+down+expr: x > expr; discard: expr >" },
    { "what others read is written",
      "[{use: scale, out: y}, {use: cast, dtype: u8, out: z}, {use: discard}, {use: discard, name: d2, in: y}]",
      "scale+cast: x > y z; discard: z >; d2: y >" },
    { "two of one input are apart",
      "[{use: scale, in: x, out: y}, {use: scale, in: x, out: z}, {use: discard, in: y}, {use: discard, in: z}]",
      "scale: x > y; scale2: x > z; discard: y >; discard2: z >" },
    { "another kind between them",
      "[{use: scale, out: y}, {use: blur, sigma: 1, out: b}, {use: expr, in: {y: y, b: b}, expr: 'y - b'}, {use: discard}]",
      "scale: x > y; blur: y > b; expr: y b > expr; discard: expr >"
      " | scale expr: another stage has to run between them" },
    { "another kind behind the first and before the last",
      "[{use: scale, out: y}, {use: scale, in: y, out: z, name: z}, {use: blur, in: y, sigma: 1, out: b},"
      " {use: expr, in: {z: z, b: b}, expr: 'z - b'}, {use: discard}]",
      "scale+z: x > y z; blur: y > b; expr: z b > expr; discard: expr >"
      " | z expr: another stage has to run between them" },
    { "a hole that only one would have",
      "[{use: scale, out: y}, {use: lua, script: copy.lua, in: x, out: l}, {use: expr, in: {y: y, l: l}, expr: 'y - l', out: z},"
      " {use: discard, in: z}, {use: discard, in: y, name: d2}]",
      "scale: x > y; lua: x > l; expr: y l > z; discard: z >; d2: y >"
      " | scale expr: what is written of one can be there in frames in which an input of the other is not" },
    { "holes of both",
      "[{use: scale, out: y}, {use: blur, sigma: 1, in: x, out: b}, {use: expr, in: {y: y, b: b}, expr: 'y - b', out: z},"
      " {use: discard, in: z}, {use: discard, in: y, name: d2}]",
      "blur: x > b; scale+expr: x b > y z; discard: z >; d2: y >" },
    { "the host between them",
      "[{use: scale, out: y}, {use: lua, script: copy.lua, out: l}, {use: expr, in: {y: y, l: l}, expr: 'y - l'},"
      " {use: discard}]",
      "scale: x > y; lua: y > l; expr: y l > expr; discard: expr > | scale expr: one of them waits for the host" },
    { "frames that are repeated",
      "[{use: reduce, op: sum, axes: [0], out: row}, {use: scale, in: row, out: half},"
      " {use: expr, in: {x: x, h: half}, expr: 'x - h'}, {use: discard}]",
      "reduce: x > row; scale: row > half; expr: x half > expr; discard: expr >"
      " | scale expr: the frames of 'half' are repeated along an axis" },
    { "neighbors of what is computed",
      "[{use: scale, out: y}, {use: expr, expr: 'y[i0, i1 - 1]', in: y}, {use: discard}]",
      "scale: x > y; expr: y > expr; discard: expr > | scale expr: of 'y' more is needed than the element at the same place" },
    { "neighbors of what comes in",
      "[{use: expr, expr: 'x[i0, i1 - 1]', in: x}, {use: scale}, {use: discard}]",
      "expr+scale: x > scale; discard: scale >" },
    { "neighbors by one of two inputs",
      "[{use: scale, out: y}, {use: expr, expr: 'a + b[i0 - 1, i1]', in: {a: y, b: y}}, {use: discard}]",
      "scale: x > y; expr: y y > expr; discard: expr > | scale expr: of 'y' more is needed than the element at the same"
      " place" },
    { "the size of what is computed",
      "[{use: scale, out: y}, {use: expr, expr: 'y / y.size', in: y}, {use: discard}]",
      "scale: x > y; expr: y > expr; discard: expr > | scale expr: of 'y' more is needed than the element at the same place" },
    { "what is filled with zeros",
      "[{use: scale, zero: true}, {use: cast, dtype: u8}, {use: discard}]",
      "scale: x > scale; cast: scale > cast; discard: cast > | scale cast: of 'zero'" },
    { "types that the text does not fit",
      "[{use: cast, dtype: f64, out: d}, {use: threshold, level: 0.1}, {use: discard}]",
      "cast: x > d; threshold: d > threshold; discard: threshold >" },
    { "a buffer that has a depth",
      "[{use: scale, out: deep}, {use: scale, in: deep}, {use: discard}]",
      "scale: x > deep; scale2: deep > scale2; discard: scale2 > | scale scale2: 'deep' has a depth of its own" },
    { "a cycle beside them",
      "[{use: scale}, {use: scale}, {use: scale}, {use: scale, out: y}, {use: expr, in: {y: y, o: old}, out: st, expr: 'y + o / 2'},"
      " {use: discard}]",
      "scale+scale2+scale3+scale4: x > y; old: st old.init > old; expr: y old > st; discard: st >"
      " | scale4 expr: a carried buffer makes a cycle of it" },
    { "a reduction",
      "[{use: scale}, {use: cast, dtype: u8}, {use: reduce, op: max}, {use: discard}]",
      "scale+cast+reduce: x > reduce; discard: reduce >" },
    { "what is reduced is written too",
      "[{use: scale, out: y}, {use: reduce, op: mean, axes: [1]}, {use: discard, in: y}, {use: discard, in: reduce}]",
      "scale+reduce: x > y reduce; discard: y >; discard2: reduce >" },
    { "two reductions",
      "[{use: scale, out: y}, {use: reduce, op: sum}, {use: reduce, op: max, in: y}, {use: discard}, {use: discard, in: reduce}]",
      "scale+reduce: x > y reduce; reduce2: y > reduce2; discard: reduce2 >; discard2: reduce >"
      " | scale reduce2: one kernel has one reduction at most" },
    { "a chain behind a reduction",
      "[{use: scale}, {use: reduce, op: sum, axes: [0]}, {use: scale}, {use: cast, dtype: u8}, {use: discard}]",
      "scale+reduce: x > reduce; scale2+cast: reduce > cast; discard: cast >" },
    { "a reduction of a reduction",
      "[{use: scale}, {use: reduce, op: sum, axes: [0]}, {use: reduce, op: max}, {use: discard}]",
      "scale+reduce: x > reduce; reduce2: reduce > reduce2; discard: reduce2 >" },
    { "what is computed with what was reduced",
      "[{use: scale, out: y}, {use: reduce, op: max, out: m}, {use: expr, in: {y: y, m: m}, expr: 'y / m', out: z}, {use: discard}]",
      "scale+reduce: x > y m; expr: y m > z; discard: z > | scale expr: 'm' is there when all of a frame is reduced" },
    { "a reduction with neighbors",
      "[{use: expr, expr: 'x[i0, i1 - 1]', in: x}, {use: scale}, {use: cast, dtype: u8}, {use: reduce, op: sum}, {use: discard}]",
      "expr+scale: x > scale; cast+reduce: scale > reduce; discard: reduce >"
      " | scale cast: a reduction takes in nothing that reads neighbors" },
    { "the body of a loop",
      "[{use: scale}, {use: loop, in: {u: scale}, out: {v: y}, times: 3, carry: {u: v}, stages: [{use: scale, in: u},"
      " {use: cast, dtype: f16}, {use: cast, dtype: f32, name: back, out: v}]}, {use: scale}, {use: discard}]",
      "scale: x > scale; loop: scale > y { scale+cast+back: u > v }; scale2: y > scale2; discard: scale2 >" },
    { "what a loop carries, and its outputs, are written",
      "[{use: loop, in: {u: x}, out: {v: y, w: z}, times: 3, carry: {u: h}, stages: [{use: scale, in: u, out: h},"
      " {use: scale, name: up, out: v}, {use: scale, name: on, out: s}, {use: scale, name: end, out: w}]},"
      " {use: discard, in: y}, {use: discard, in: z}]",
      "loop: x > y z { scale+up+on+end: u > h v w }; discard: y >; discard2: z >" },
    { "neighbors in a loop",
      "[{use: loop, in: {u: x}, out: {v: y}, times: 3, carry: {u: v}, stages: [{use: scale, in: u, out: h},"
      " {use: expr, in: {h: h}, expr: 'h[i0, i1 - 1]', out: v}]}, {use: discard}]",
      "loop: x > y { scale: u > h; expr: h > v | scale expr: of 'h' more is needed than the element at the same place };"
      " discard: y >" },
    { "frames that are regrouped between them",
      "[{use: scale}, {use: group, frames: 2}, {use: scale}, {use: scale}, {use: discard}]",
      "scale: x > scale; group: scale > group; scale2+scale3: group > scale3; discard: scale3 >" },
};

static gp_pipeline *compile(const char *dir, const char *stages, const char *top, gp_errs *errs)
{
    const char *set[] = { "device=cpu" };
    *errs = (gp_errs){ .n = 0 };
    char *yaml = format("%sbuffers: {x: {dtype: f32, shape: [4, 6]}%s}\nstages:\n  [{use: generate, frames: 7, out: x}, %s\n",
             top, strstr(stages, "deep") ? ", deep: {depth: 3}" : strstr(stages, "o: old") ? ", old: {carry: st, init: 0}, st: {like: x}"
             : "", stages + 1);
    gp_pipeline *p = pipe_compile(dir, yaml, (gp_config){ .set = set, .nset = 1 }, errs);
    ck_assert_msg(p, "%s\n%s", yaml, errs->e[0].msg);
    return p;
}

static void put_ends(FILE *f, const gp_graph *g, const int *v, int n)
{
    for (int i = 0; i < n; i++)
        fprintf(f, " %s", g->buffer[v[i]].name);
}

/* The stages from `first` on, and in braces those of a loop. */
static void put_stages(FILE *f, const gp_graph *g, int first)
{
    for (int i = first; i < g->nstages; i++) {
        const gp_stage *s = &g->stage[i];
        const gp_loop *l = gp_stage_loop(s);
        fprintf(f, "%s%s:", i > first ? "; " : "", s->name);
        put_ends(f, g, s->in, s->nin);
        fputs(" >", f);
        put_ends(f, g, s->out, s->nout);
        if (l) {
            fputs(" { ", f);
            put_stages(f, l->graph, 0);
            fputs(" }", f);
        }
    }
    for (int i = 0; i < g->nunfused; i++)
        fprintf(f, " | %s %s: %s", g->unfused[i].from, g->unfused[i].to, g->unfused[i].why);
}

/* The stages but the source; malloc'd. */
static char *text_of(const gp_graph *g)
{
    gp_memfile m;
    size_t len;
    ck_assert(gp_memfile_open(&m));
    put_stages(m.f, g, 1);
    return gp_memfile_close(&m, &len);
}

TEST_EACH(which, cases)
{
    const char *dir = pipe_dir();
    gp_errs errs;
    pipe_text(dir, "copy.lua", "function process(f, x, y) y:copy(x) end\n");
    gp_pipeline *p = compile(dir, cases[_i].stages, "", &errs);
    char *is = text_of(gp_pipeline_graph(p));
    ck_assert_msg(!strcmp(is, cases[_i].becomes), "%s is\n%s\nnot\n%s", cases[_i].what, is, cases[_i].becomes);
    free(is);
    gp_pipeline_destroy(p);
    p = compile(dir, cases[_i].stages, "fuse: none\n", &errs);
    for (int i = 0; i < gp_pipeline_graph(p)->nstages; i++)
        ck_assert_int_eq(gp_pipeline_graph(p)->stage[i].nparts, 0);
    ck_assert_int_eq(gp_pipeline_graph(p)->nunfused, 0);
    gp_pipeline_destroy(p);
}

static bool no_nvrtc(void)
{
    return false;
}

/* What is built in runs on a GPU without NVRTC, and goes on to do so. */
TEST(without_nvrtc)
{
    static const char yaml[] = "buffers: {x: {dtype: f32, shape: [4, 6]}}\nstages:\n  - {use: generate, frames: 7, out: x}\n"
        "  - {use: scale}\n  - {use: cast, dtype: u8}\n  - {use: discard}\n";
    gp_machine machine;
    gp_machine_fixed(&machine, true);
    for (int with = 0; with < 2; with++) {
        machine.compiles = with ? NULL : no_nvrtc;
        gp_pipeline *p = pipe_compiled(".", yaml, (gp_config){ .machine = &machine });
        OWNED char *is = text_of(gp_pipeline_graph(p));
        ck_assert_str_eq(is, with ? "scale+cast: x > cast; discard: cast >"
                         : "scale: x > scale; cast: scale > cast; discard: cast >"
                           " | scale cast: there is no NVRTC to compile one kernel of both");
        gp_pipeline_destroy(p);
    }
}

/* As many as one kernel takes, and the rest in the next. */
TEST(a_long_chain)
{
    enum { STAGES = 200 };
    const char *dir = pipe_dir();
    char *yaml = malloc(STAGES * 40 + 400), *end = yaml;
    end += sprintf(end, "buffers: {x: {dtype: f32, shape: [100]}}\nstages:\n  - {use: generate, frames: 2, out: x}\n");
    for (int i = 0; i < STAGES; i++)
        end += sprintf(end, "  - {use: scale, a: 1, b: %d}\n", i);
    sprintf(end, "  - {use: write, path: out.raw, durable: none}\n");
    pipe_done(dir, yaml, "cpu", NULL, (gp_run_options){ 0 });
    OWNED float *out = pipe_read_all(dir, "out.raw", 200 * sizeof *out);
    for (int i = 0; i < 200; i++)
        ck_assert_float_eq(out[i], (float)i + STAGES * (STAGES - 1) / 2);
    free(yaml);
}

static float uneven(int64_t i)
{
    return (float)(i - 150) * 12.37f;
}

/* What is wrong in a frame is said at the line of the part, with the frame's number. */
TEST_LOOP(an_error_of_a_part, 0, 2)
{
    const char *dir = pipe_dir(), *sets[] = { _i ? "fuse=none" : "fuse=auto", NULL };
    pipe_npy(dir, "in.npy", 7, 5, uneven);
    pipe_result r = pipe_run(dir, "buffers: {x: {dtype: f32, shape: [4, 5]}}\nstages:\n  - {use: read, path: in.npy, out: x}\n"
                             "  - {use: scale, out: y}\n  - {use: expr, in: {y: y, x: x}, expr: 'y - x[3, i1]', out: z}\n"
                             "  - {use: reduce, op: sum}\n  - {use: discard}\n", "cpu", sets, (gp_run_options){ 0 });
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_int_ge(r.errs.n, 2);
    ck_assert_str_eq(r.errs.e[0].msg, _i ? "stage 'expr': 'x' is f32 [3, 5] in one frame, and has no element 3 along axis 0"
                     : "stage 'scale+expr+reduce': 'x' is f32 [3, 5] in one frame, and has no element 3 along axis 0");
    ck_assert_int_eq(r.errs.e[0].at.line, 5);
    ck_assert_int_eq(r.errs.e[0].at.col, 46);
    ck_assert_int_eq(r.errs.e[1].code, GP_E_NOTE);
    ck_assert_str_eq(r.errs.e[1].msg, "in frame 1");
}

/* ---- the text of the kernel, compiled and run by the CPU back end ------------------- */

extern const gp_kind gp_kind_cast;
static gp_backend texts;

static const gp_kernel *no_interpreter(gp_dev *d, const char *name)
{
    return strcmp(name, "expr_run") ? gp_backend_cpu.builtin(d, name) : NULL;
}

/* Stage `swap`: a cast of a device that knows no interpreter from then on. */
static bool swap(const gp_open *o, void **state)
{
    *state = NULL;
    texts = gp_backend_cpu, texts.builtin = no_interpreter;
    o->dev->backend = &texts;
    return true;
}

static bool swap_shape(gp_shape *s)
{
    bool ok = gp_kind_cast.shape(s);
    s->expr = NULL;
    return ok;
}

static gp_kind swap_kind(void)
{
    gp_kind kind = gp_kind_cast;
    kind.name = "swap", kind.open = swap, kind.shape = swap_shape;
    return kind;
}

/* Every type is stored and loaded, from every type that is computed in. */
static void put_chain(char *to)
{
    static const char *const stored[] = { "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "f32", "f64" };
    static const char *const computed[] = { "i8", "u32", "i64", "u64", "f32", "f64" };
    to += sprintf(to, "buffers:\n  x: {dtype: f32, shape: [301]}\n");
    for (int k = 0; k < 6; k++)
        to += sprintf(to, "  z%d: {dtype: c64}\n", k);
    to += sprintf(to, "stages:\n  - {use: read, path: in.npy, out: x}\n  - {use: swap, dtype: f32}\n");
    for (int i = 0; i < 11; i++)
        for (int k = 0; k < 6; k++)
            to += sprintf(to, "  - {use: cast, dtype: %s, out: a%d_%d}\n  - {use: expr, in: a%d_%d, expr: 'a%d_%d * 3 + 1', "
                          "out: b%d_%d}\n  - {use: cast, dtype: %s, out: c%d_%d}\n", computed[k], i, k, i, k, i, k, i, k,
                          stored[i], i, k);
    for (int k = 0; k < 6; k++)
        to += sprintf(to, "  - {use: cast, dtype: %s, out: d%d}\n  - {use: expr, in: d%d, expr: 'd%d + 2', out: z%d}\n"
                      "  - {use: expr, in: z%d, expr: 're(z%d / complex(0.5, 1)) + im(conj(z%d) * z%d)', out: e%d}\n", computed[k], k,
                      k, k, k, k, k, k, k, k);
    sprintf(to, "  - {use: write, path: out.npy, durable: none}\n");
}

/* What is reduced lies as the input does, is found by its place, or is computed with that; one is also written. */
static void put_reductions(char *to)
{
    strcpy(to, "buffers: {x: {dtype: f32, shape: [301]}, one: {const: one.npy}}\nstages:\n  - {use: read, path: in.npy, out: x}\n"
           "  - {use: swap, dtype: f32, out: a}\n"
           "  - {use: expr, in: a, out: {y: y}, expr: 'y = a * 3 - 1'}\n  - {use: reduce, op: sum, out: r0}\n"
           "  - {use: expr, in: {a: a, o: one}, out: u, expr: 'a - o'}\n  - {use: reduce, op: mean, out: r1}\n"
           "  - {use: expr, in: {a: a, o: one}, out: v, expr: 'a * o + i0'}\n  - {use: reduce, op: max, out: r2}\n"
           "  - {use: cast, in: a, dtype: u8, out: w}\n  - {use: reduce, op: min, keep: true, out: r3}\n"
           "  - {use: expr, in: a, out: z, expr: 'complex(a, i0)'}\n  - {use: swap, dtype: c64, out: zz}\n"
           "  - {use: expr, in: zz, out: power, expr: 're(zz * conj(zz))'}\n  - {use: reduce, op: sum, out: r4}\n"
           "  - {use: expr, in: {y: y, p: r0, q: r1, r: r2, s: r3, t: r4}, expr: 'y + p + q + r + s + t'}\n"
           "  - {use: write, path: out.npy, durable: none}\n");
}

/* The same over the first axis, which takes two passes. */
static void put_columns(char *to)
{
    strcpy(to, "buffers: {x: {dtype: f32, shape: [301]}, one: {const: one.npy}}\nstages:\n  - {use: read, path: in.npy, out: x}\n"
           "  - {use: swap, dtype: f32}\n  - {use: reshape, shape: [43, 7], out: a}\n"
           "  - {use: expr, in: a, out: {y: y}, expr: 'y = a * 3 - 1'}\n  - {use: reduce, op: sum, axes: [0], out: r0}\n"
           "  - {use: expr, in: {a: a, o: one}, out: u, expr: 'a - o'}\n  - {use: reduce, op: mean, axes: [0], out: r1}\n"
           "  - {use: expr, in: a, out: v, expr: 'a + i0'}\n  - {use: reduce, op: max, axes: [0], out: r2}\n"
           "  - {use: cast, in: a, dtype: u8, out: w}\n  - {use: reduce, op: min, axes: [0], keep: true, out: r3}\n"
           "  - {use: expr, in: {y: y, p: r0, q: r1, r: r2, s: r3}, expr: 'y + p + q + r + s'}\n"
           "  - {use: write, path: out.npy, durable: none}\n");
}

static char *run_chain(const char *yaml, bool fuse, size_t *bytes)
{
    const char *dir = pipe_dir(), *set[] = { fuse ? "fuse=auto" : "fuse=none", "device=cpu" };
    gp_kind kind = swap_kind();
    gp_errs errs = { .n = 0 };
    pipe_kinds(&kind, 1);
    pipe_npy(dir, "in.npy", 301, 0, uneven);
    pipe_npy(dir, "one.npy", 1, 0, uneven);
    gp_pipeline *p = pipe_compile(dir, yaml, (gp_config){ .set = set, .nset = 2 }, &errs);
    ck_assert_msg(p && gp_pipeline_run(p, NULL, &errs) == GP_DONE, "%s", pipe_said(&errs));
    int fused = 0;
    for (int i = 0; i < gp_pipeline_graph(p)->nstages; i++)
        fused += gp_pipeline_graph(p)->stage[i].nparts > 0;
    ck_assert_int_eq(fused > 3, fuse);
    gp_pipeline_destroy(p);
    char *out = pipe_read(dir, "out.npy", bytes);
    return out;
}

static void (*const texts_of[])(char *) = { put_chain, put_reductions, put_columns };

TEST_SOME(the_text_computes_the_same, 3, 3, 1)
{
    OWNED char *yaml = malloc(1 << 16);
    size_t n[2];
    texts_of[_i](yaml);
    ck_assert(!setenv("CPLUS_INCLUDE_PATH", "kernels", 1));
    OWNED char *apart = run_chain(yaml, false, &n[0]), *fused = run_chain(yaml, true, &n[1]);
    ck_assert_uint_eq(n[0], n[1]);
    ck_assert_mem_eq(apart, fused, n[0]);
}

#if GP_CUDA
/* Each alone, and all of them in one resident kernel. */
TEST_SOME(nvrtc_takes_the_text, 3, 3, 1)
{
    enum { MOST = 16 };
    OWNED char *yaml = malloc(1 << 16);
    const char *dir = pipe_dir(), *set[] = { "device=cpu" };
    gp_member member[MOST];
    gp_errs errs = { .n = 0 };
    void *image;
    size_t bytes, n = 0;
    texts_of[_i](yaml);
    gp_kind kind = swap_kind();
    pipe_kinds(&kind, 1);
    pipe_npy(dir, "in.npy", 301, 0, uneven);
    pipe_npy(dir, "one.npy", 1, 0, uneven);
    gp_pipeline *p = pipe_compiled(dir, yaml, (gp_config){ .set = set, .nset = 1 });
    const gp_graph *g = gp_pipeline_graph(p);
    for (int i = 0; i < g->nstages && n < MOST; i++) {
        if (!g->stage[i].nparts)
            continue;
        const gp_source *source = &((const gp_ew_opts *)g->stage[i].opts)->program->source;
        member[n++] = (gp_member){ .source = source };
        if (gp_nvrtc_compile(source, 90, NULL, &image, &bytes, NULL, &errs))
            free(image);
        else if (strstr(errs.e[0].msg, "install libnvrtc"))
            printf("**** SKIPPED: the text of fused stages: %s ****\n", errs.e[0].msg);
        else
            ck_abort_msg("%s\n%.4000s", errs.e[0].msg, source->text);
    }
    ck_assert_uint_ge(n, _i ? 4 : 1);
    OWNED char *text = gp_resident_text(member, (int)n, &errs);
    ck_assert_msg(text != NULL, "%s", pipe_said(&errs));
    if (gp_nvrtc_compile_text(text, NULL, 0, 90, NULL, &image, &bytes, &errs))
        free(image);
    else if (!strstr(errs.e[0].msg, "install libnvrtc"))
        ck_abort_msg("%s", errs.e[0].msg);
    gp_pipeline_destroy(p);
}
#else
TEST(nvrtc_takes_the_text)
{
    printf("**** SKIPPED: the text of fused stages: a build without CUDA ****\n");
}
#endif

CASES_AND(fuse)
