/* test_expr_stage.c - the kind `expr` on the CPU back end, its errors, and the text of its CUDA kernels, which NVRTC
 * compiles here; tests/gpu runs them. Without NVRTC, or in a build without CUDA, it says that it skips. */
#include <dlfcn.h>
#include <sys/resource.h>
#include "base/memfile.h"
#include "every.h"
#include "expr_cases.h"
#include "pipe.h"
#include "program.h"
#if GP_CUDA
#include "cuda/nvrtc.h"
#endif

Suite *suite_expr_stage(void);
void expr_cases(TCase *tc);

/* ---- the text of kernels ----------------------------------------------------- */

static gp_dev *dev;
static gp_arena arena;

static void setup(void)
{
    dev = trial_device(&gp_backend_cpu);
    arena = (gp_arena){ 0 };
}

static void teardown(void)
{
    dev->backend->close(dev);
    gp_arena_free(&arena);
}

/* What the stage `it` of a pipeline was compiled to. */
static const gp_ew_program *program_of(const char *yaml, trial **t)
{
    gp_errs errs = { 0 };
    *t = trial_open_text(dev, yaml, 1, &errs);
    ck_assert_msg(*t != NULL, "%s\n%s", pipe_said(&errs), yaml);
    return ((const gp_ew_opts *)trial_options(*t))->program;
}

/* With other values of vars it is the same, so that nothing is compiled again. */
TEST(the_text_has_no_vars)
{
    static const char *const values[] = { "gain: 1.5, dark: 7, lag: 1", "gain: 0.25, dark: 40000, lag: 0",
                                         "gain: -1e30, dark: -3, lag: -9" };
    char *text = NULL;
    for (int i = 0; i < 3; i++) {
        char *yaml = gp_format(&arena, "vars: {%s}\nbuffers: {x: {dtype: u16, shape: [5, 4]}}\nstages:\n  - {use: give, "
                               "out: x}\n  - {name: it, use: expr, in: x, out: y, expr: \"(x - dark) * (gain + 2) / gain + "
                               "x[i0 - lag, i1 + 3] - x[i0 - 1, i1 + 3]\"}\n"
                               "  - {use: take}\n", values[i]);
        trial *t;
        const gp_ew_program *p = program_of(yaml, &t);
        ck_assert_int_eq(p->nvars, 4);
        if (text)
            ck_assert_str_eq(text, p->source.text);
        else
            text = strdup(p->source.text);
        trial_close(t);
    }
    free(text);
}

/* What is the same for all elements is made before them. A register of it is free again once nothing needs it. */
TEST(once_for_all_elements)
{
    trial *t;
    const gp_ew_program *p = program_of("vars: {b: 0.9}\nbuffers: {x: {dtype: f32, shape: [500]}}\nstages:\n  - {use: give, out: x}\n"
                                        "  - {name: it, use: expr, in: x, out: y, expr: \"x / (1 - pow(b, frame.index + x.size))\"}\n"
                                        "  - {use: take}\n", &t);
    const char *pow = strstr(p->source.text, "gp_ew_pow"), *each = strstr(p->source.text, "auto one");
    ck_assert_msg(pow && pow < each, "%s", p->source.text);
    ck_assert_int_eq(p->code->n - p->code->once, 4);       /* load, convert, divide, store */
    trial_close(t);
}

/* Cases for what compiles the text. */
static const char *const named[] = {
    "u8 and f16", "i64 and u64", "bits of u32 and i8", "f32 alone", "u64 alone",
    "f16 and large numbers", "functions of f32", "functions of i32", "indices", "names", "dark, flat, clip", "random 3",
    "near, 3 x 3, reflect", "near, zero, indices", "near, channels, nearest", "near, f16, zero", "near, columns, zero",
    "near, further than the frame, reflect", "near, names and vars, reflect", "near, a volume, reflect",
    "near, a volume, zero", "near, a photo, nearest", "near, above, reflect", "near, and itself, reflect",
    "near, twenty, zero", "near, forty, reflect", "near, 3 x 3, wrap", "near, further than the frame, wrap",
    "near, a volume, wrap", "near, and itself, wrap",
    "part, channels", "part, channels of all", "part, rows and columns", "part, neighbors, zero",
    "c64, as it is", "c64 and u8", "c64 and f32", "c64 and c64", "functions of c64", "parts of f64", "parts of u8", "c64 of numbers",
    "c64, mixed", "near, c64, reflect", "near, c64, zero", "part, c64, nearest", "random c64 1", "random c64 2"
};
enum { NAMED = sizeof named / sizeof *named };

static bool is_named(const expr_case *c)
{
    for (int i = 0; i < NAMED; i++)
        if (!strcmp(named[i], c->name))
            return true;
    return false;
}

/* ---- the text, run by the CPU back end as a user's source --------------------------- */

static bool wide;                  /* as if offsets did not fit in 31 bits */

static const gp_kernel *no_builtin(gp_dev *d, const char *name)
{
    return NULL;
}

static const gp_kernel *compile_text(gp_dev *d, const gp_source *src, gp_errs *errs)
{
    static const char asks[] = "axes.narrow", no[] = "0 * 1234567";
    gp_source changed = *src;
    char *text = gp_strdup(&arena, src->text), *at = strstr(text, asks);
    ck_assert(at && sizeof asks == sizeof no);
    if (wide)
        memcpy(at, no, sizeof no - 1);
    changed.text = text;
    return gp_backend_cpu.compile(d, &changed, errs);
}

/* Of the cases that are named some. */
static void computes(const expr_case *c)
{
    static int nth;
    const int every = tests_every(6, 1);
    static const expr_way ways[] = { { .rows = 0 }, { .bounds = true, .rows = 600, .more = 70 } };
    bool is_near = *c->edge;
    if (!is_named(c) || nth++ % every != tests_first(every))
        return;
    for (int w = 0; w < 1 + is_near; w++) {
        array out[EXPR_OUTPUTS];
        gp_errs errs = { 0 };
        OWNED char *yaml = expr_pipeline(c, ways[w]);
        trial *t = trial_open_text(dev, yaml, 1, &errs);
        ck_assert_msg(t != NULL, "%s: %s\n%s", c->name, pipe_said(&errs), yaml);
        trial_run(t, c->in, 1, out);
        for (int i = 0; i < c->nout; i++) {
            const char *differs = array_differs(&out[i], &c->want[i], c->tolerance);
            ck_assert_msg(!*differs, "%s: y%d of %s: %s", c->name, i, c->program, differs);
            array_free(&out[i]);
        }
        trial_close(t);
    }
}

/* Whatever a GPU is needed for, this is right without one. */
TEST_SOME(the_text_computes_the_same, 2, 2, 1)
{
    gp_backend cpu = gp_backend_cpu;
    cpu.builtin = no_builtin, cpu.compile = compile_text, wide = _i;
    dev->backend = &cpu;
    ck_assert(!setenv("CPLUS_INCLUDE_PATH", "kernels", 1));
    expr_each_case(computes);
    dev->backend = &gp_backend_cpu;
}

#if GP_CUDA
static int ncompiled;

static bool no_nvrtc(const gp_errs *errs)
{
    bool none = strstr(errs->e[0].msg, "install libnvrtc") != NULL;
    if (none && !ncompiled++)
        printf("**** SKIPPED: the text of kernels of expressions: %s ****\n", errs->e[0].msg);
    return none;
}

static void compiles(const expr_case *c)
{
    if (!is_named(c))
        return;
    gp_errs errs = { 0 };
    void *image;
    size_t bytes;
    trial *t;
    char *yaml = expr_pipeline(c, (expr_way){ .rows = *c->edge && !strstr(c->name, "part") ? 600 : 0 });
    gp_source source = program_of(yaml, &t)->source;
    if (!gp_nvrtc_compile(&source, 90, NULL, &image, &bytes, NULL, &errs) && !no_nvrtc(&errs))
        ck_abort_msg("%s: %s\n%.2000s", c->name, errs.e[0].msg, source.text);
    ncompiled++;
    free(image);
    free(yaml);
    trial_close(t);
}

TEST(nvrtc_takes_the_text)
{
    expr_each_case(compiles);
    ck_assert_int_eq(ncompiled, NAMED);
}

/* Where another suite has opened the library it stays open: then in a program that runs this test alone. */
static bool again_alone(void)
{
    static const char *const names[] = { "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so" };
    char self[4096];
    bool open = false;
    for (int i = 0; i < 3; i++)
        open |= dlopen(names[i], RTLD_NOW | RTLD_NOLOAD) != NULL;
    ssize_t n = open ? readlink("/proc/self/exe", self, sizeof self - 1) : -1;
    if (n < 0)
        return false;
    self[n] = 0;
    ck_assert_int_eq(system(format("CK_RUN_SUITE=expr_stage CK_RUN_CASE='no NVRTC' '%s' >/dev/null", self)), 0);
    return true;
}

/* No file can be opened, so no library is found. */
START_TEST(nvrtc_is_missing)
{
    if (again_alone())
        return;
    const gp_source source = { .path = "p.yaml", .entry = "expr", .text = "" };
    gp_errs errs = { 0 };
    struct rlimit was, none;
    void *image;
    size_t bytes;
    getrlimit(RLIMIT_NOFILE, &was);
    none = (struct rlimit){ 0, was.rlim_max };
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    bool ok = gp_nvrtc_compile(&source, 90, NULL, &image, &bytes, NULL, &errs);
    setrlimit(RLIMIT_NOFILE, &was);
    ck_assert(!ok && errs.n == 1);
    ck_assert_int_eq(errs.e[0].code, GP_E_RESOURCE);
    ck_assert_msg(strstr(errs.e[0].msg, "for the GPU needs libnvrtc.so.13, which cannot be opened"), "%s", errs.e[0].msg);
    ck_assert_msg(strstr(errs.e[0].msg, "; install libnvrtc of CUDA 12 or 13 (NVIDIA's package cuda-nvrtc-13-0), or run with "
                         "'device: cpu'"), "%s", errs.e[0].msg);
}
END_TEST

/* Sizes and frame.index, and several of them in one resident kernel. */
TEST(nvrtc_takes_several)
{
    static const char yaml[] = "buffers: {x: {dtype: f32, shape: [5, 4]}}\nstages:\n  - {use: give, out: x}\n"
        "  - {name: it, use: expr, in: x, out: y, expr: \"x.shape[0] + x.size * frame.index + frame.time + %s\"}\n"
        "  - {use: take}\n";
    const char *const more[] = { "x", "i1", "x[i0 - 1, i1 + 2]" };
    enum { N = sizeof more / sizeof *more };
    gp_member member[N];
    gp_source source[N];
    trial *t[N];
    gp_errs errs = { 0 };
    void *image;
    size_t bytes;
    for (int i = 0; i < N; i++) {
        char *text = gp_strdup(&arena, yaml), *at = strstr(text, "%s");
        text = gp_format(&arena, "%.*s%s%s", (int)(at - text), text, more[i], at + 2);
        source[i] = program_of(text, &t[i])->source;
        member[i] = (gp_member){ .source = &source[i] };
        if (!gp_nvrtc_compile(&source[i], 90, NULL, &image, &bytes, NULL, &errs) && !no_nvrtc(&errs))
            ck_abort_msg("%s\n%.2000s", errs.e[0].msg, source[i].text);
        free(image);
    }
    char *text = gp_resident_text(member, N, &errs);
    ck_assert_msg(text != NULL, "%s", pipe_said(&errs));
    if (!gp_nvrtc_compile_text(text, NULL, 0, 90, NULL, &image, &bytes, &errs) && !no_nvrtc(&errs))
        ck_abort_msg("%s", errs.e[0].msg);
    free(text), free(image);
    for (int i = 0; i < N; i++)
        trial_close(t[i]);
}
#endif

/* ---- errors, beside those of tests/bad/expr_text.cases ------------------------------ */

static gp_errs errors_of(const char *expr)
{
    gp_errs errs = { 0 };
    char *yaml = gp_format(&arena, "vars: {gain: 1.5, text: hello}\nbuffers: {x: {dtype: u64, shape: [5, 4]}}\nstages:\n"
                           "  - {use: give, out: x}\n  - {name: it, use: expr, in: x, out: y, expr: \"%s\"}\n"
                           "  - {use: take}\n", expr);
    ck_assert_msg(!trial_open_text(dev, yaml, 1, &errs), "'%s' is no error", expr);
    ck_assert_int_eq(errs.failed, 1);
    return errs;
}

/* An error wherever the text is cut, or has a character too many; or none: never a crash. */
TEST(cut_anywhere)
{
    static const char whole[] = "d = (x - 3) * gain + x[i0 - 1, k]; y = clamp(d, -1.5, x.size) < i1 ? !x || ~x & 7 : frame.index % 2";
    static const char odd[] = "()=?:,;.<>!&|^~%*/+-#@$[]0a \n";
    gp_node node = { .kind = GP_SCALAR, .at = { "p.yaml", 1, 1, 1 } };
    for (size_t i = 0; i < sizeof whole; i++)
        for (const char *c = odd; *c; c++) {
            gp_errs errs = { 0 };
            node.text = gp_format(&arena, "%.*s%c%s", (int)i, whole, *c, whole + i), node.len = sizeof whole;
            ck_assert((gp_expr_parse_program(&arena, &node, &errs) != NULL) == !errs.failed);
            errs = (gp_errs){ 0 };
            node.text = gp_format(&arena, "%.*s%c", (int)i, whole, *c), node.len = i + 1;
            ck_assert((gp_expr_parse_program(&arena, &node, &errs) != NULL) == !errs.failed);
        }
}

/* `n` times `unit`, after `begin` and before `end`. */
static char *repeated(const char *begin, const char *unit, int n, const char *end)
{
    size_t from = strlen(begin), len = strlen(unit);
    char *text = gp_alloc(&arena, from + len * (size_t)n + strlen(end) + 1), *p = text + from;
    strcpy(text, begin);
    for (int i = 0; i < n; i++, p += len)
        memcpy(p, unit, len);
    strcpy(p, end);
    return text;
}

TEST(too_much)
{
    enum { MANY = 100000 };
    static const struct { const char *begin, *unit, *end, *msg; } c[] = {
        { "x", " + x", "", "more than 10000 numbers, names and operators" },
        { "", "(", "x", "nested more than 64 deep" },
        { "", "-", "x", "nested more than 64 deep" },
        { "", "sqrt(", "x", "nested more than 64 deep" },
        { "", "x ? 1 : ", "2", "nested more than 64 deep" },
        { "", "x ? ", "2", "nested more than 64 deep" },
        { "max(x", ", x", ")", "more than 10000 numbers, names and operators" },
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        gp_errs errs = errors_of(repeated(c[i].begin, c[i].unit, MANY, c[i].end));
        ck_assert_msg(strstr(errs.e[0].msg, c[i].msg), "%s...: %s", c[i].unit, errs.e[0].msg);
    }
}

/* As many operations as there may be, and too many values at a time. */
TEST(just_enough)
{
    gp_errs errs = { 0 };
    gp_memfile m;
    size_t len;
    char *sum = repeated("x", " + x", 4999, "");
    trial *t = trial_open_text(dev, gp_format(&arena, "buffers: {x: {dtype: f32, shape: [5]}}\nstages:\n  - {use: give, "
                               "out: x}\n  - {name: it, use: expr, in: x, out: y, expr: \"%s\"}\n  - {use: take}\n", sum),
                               1, &errs);
    ck_assert_msg(t != NULL, "%s", pipe_said(&errs));
    array in = array_new(GP_F32, 1, (int64_t[]){ 5 }), out;
    ((float *)in.data)[3] = 2;
    trial_run(t, &in, 1, &out);
    ck_assert(((float *)out.data)[3] == 10000 && ((float *)out.data)[4] == 0);
    array_free(&in), array_free(&out), trial_close(t);
    ck_assert(gp_memfile_open(&m));
    for (int i = 0; i < 1100; i++)
        fprintf(m.f, "v%d = x + %d; ", i, i);
    fputs("y = 0", m.f);
    for (int i = 0; i < 1100; i++)
        fprintf(m.f, " + v%d", i);
    OWNED char *many = gp_memfile_close(&m, &len);
    errs = errors_of(many);
    ck_assert_msg(strstr(errs.e[0].msg, "values at the same time, and 1024 is the most"), "%s", errs.e[0].msg);
}

/* ---- whole pipelines --------------------------------------------------------------- */

static float ramp(int64_t i) { return (float)i * 0.5f; }

/* Frames that are smaller than declared do not broadcast, and are not cut to the size of another. */
static const struct { const char *buffers, *inputs, *msg; } unlike[] = {
    { "a: {dtype: f32, shape: [\"<=8\", \"<=9\"]}, b: {dtype: f32, shape: [\"<=8\", 1]}", "b", "stage 'expr': 'a' is f32 [6, 9] and "
      "'b' is f32 [4, 1] in one frame: what is shorter there than declared does not broadcast" },
    { "a: {dtype: f32, shape: [\"<=8\", \"<=9\"]}, b: {const: b.npy}", "c", "stage 'expr': 'a' is f32 [6, 5] and 'b' is f32 [9] in "
      "one frame: what is shorter there than declared does not broadcast" },
    { "a: {dtype: f32, shape: [4, 9]}, b: {dtype: f32, shape: [4, 9]}", "p", "stage 'expr': 'a' is f32 [2, 9] and 'b' is f32 "
      "[1, 9] in one frame: what is shorter there than declared does not broadcast" },
    { "a: {dtype: f32, shape: [4, 9]}, b: {dtype: f32, shape: [4, 1]}", "b", "stage 'expr': 'a' is f32 [2, 9] and 'b' is f32 [1, 1] in "
      "one frame: what is shorter there than declared does not broadcast" },
};

TEST_EACH(smaller_frames_have_to_fit, unlike)
{
    const char *dir = pipe_dir();
    bool whole = strstr(unlike[_i].buffers, "<=") != NULL, constant = *unlike[_i].inputs == 'c';
    pipe_npy(dir, "a.npy", 6, constant ? 5 : 9, ramp);
    if (*unlike[_i].inputs == 'p')
        pipe_npy(dir, "b.npy", 5, 9, ramp);
    else if (constant)
        pipe_npy(dir, "b.npy", 9, 0, ramp);
    else
        pipe_npy(dir, "b.npy", whole ? 4 : 5, 1, ramp);
    char *yaml = format("buffers: {%s}\nstages:\n  - {use: read, path: a.npy%s, out: a}\n%s"
                        "  - {use: expr, in: [a, b], out: o, expr: a + b}\n  - {use: discard}\n", unlike[_i].buffers,
                        "", constant ? "" : whole ? "  - {use: read, name: rb, path: b.npy, out: b}\n"
                        : "  - {use: read, name: rb, path: b.npy, out: b}\n");
    pipe_result r = pipe_run(dir, yaml, "cpu", NULL, (gp_run_options){ 0 });
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_str_eq(r.errs.e[0].msg, unlike[_i].msg);
}

/* Indices of frames, lines in a block, a constant of fewer axes, neighbors, partial frames; whatever the batch and the
 * streams. There is no C++ compiler. */
TEST(pipelines)
{
    static const char *const sets[][3] = {
        { "depth=3", NULL }, { "batch=4", "depth=8", NULL }, { "streams=3", "depth=6", NULL }, { "launch=stream", NULL },
    };
    static const char yaml[] =
        "vars: {gain: 2}\nbuffers: {line: {const: line.npy}, x: {dtype: f32, shape: [4, 3]}}\nstages:\n"
        "  - {use: read, path: x.npy, format: npy, out: x}\n"
        "  - use: expr\n    in: {x: x, b: line}\n    out: {y: y, mask: mask}\n    edge: zero\n    expr: |\n"
        "      # a comment\n      d = x * gain +\n          b\n      y = d + frame.index +\n"
        "        (x[i0 - 1, i1] - x[i0 + 1, i1])\n\n      mask = y > 100 && i1 != 1\n"
        "  - {use: write, in: y, path: y.npy}\n  - {use: write, in: mask, path: mask.npy}\n";
    const char *dir = pipe_dir();
    setenv("CXX", "/nowhere/c++", 1);
    pipe_npy(dir, "x.npy", 90, 3, ramp);
    pipe_npy(dir, "line.npy", 3, 0, ramp);
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        size_t bytes, mask_bytes;
        pipe_done(dir, yaml, "cpu", sets[s], (gp_run_options){ 0 });
        OWNED char *y = pipe_read(dir, "y.npy", &bytes), *mask = pipe_read(dir, "mask.npy", &mask_bytes);
        ck_assert(y && mask);
        const double *v = (const double *)(y + bytes) - 90 * 3;
        const unsigned char *k = (const unsigned char *)mask + mask_bytes - 90 * 3;
        for (int i = 0; i < 90 * 3; i++) {
            float above = i / 3 % 4 > 0 ? ramp(i - 3) : 0, below = i / 3 % 4 < 3 && i < 89 * 3 ? ramp(i + 3) : 0;
            double want = (double)(ramp(i) * 2 + ramp(i % 3)) + i / 12 + (double)(above - below);
            ck_assert_msg(v[i] == want && k[i] == (want > 100 && i % 3 != 1), "%s: element %d: %g, %d, not %g", sets[s][0], i,
                          v[i], k[i], want);
        }
    }
    unsetenv("CXX");
}

Suite *suite_expr_stage(void)
{
    Suite *s = suite_create("expr_stage");
    TCase *t = tcase_create("texts");
    tcase_set_timeout(t, 300);
    tcase_add_checked_fixture(t, setup, teardown);
#if GP_CUDA
    TCase *missing = tcase_create("no NVRTC");
    tcase_add_test(missing, nvrtc_is_missing);
    suite_add_tcase(s, missing);
#else
    printf("**** SKIPPED: the text of kernels of expressions: a build without CUDA ****\n");
#endif
    suite_fill(t, suite_items, 1);
    suite_add_tcase(s, t);
    TCase *of_references = tcase_create("cpu");
    expr_cases(of_references);
    suite_add_tcase(s, of_references);
    return s;
}
