/* test_resolve.c - from spec to graph: wiring, types, options, and every way to be
 * refused. Kinds of its own here; tests/bad/resolve_*.yaml has the real ones. */
#include <check.h>
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "gpipe.h"
#include "npy.h"

Suite *suite_resolve(void);

/* ---- kinds ----------------------------------------------------------- */

static bool run(gp_call *c, gp_frame *frames, int n)
{
    (void)c, (void)frames, (void)n;
    return true;
}

static bool record(gp_dcall *c)
{
    (void)c;
    return true;
}

struct opts {
    int64_t n, wait;
    double f;
    bool b;
    const char *s, *file;
    int word;
    gp_dtype dtype;
    gp_ints ints;
    gp_floats floats;
    const gp_node *node;
};

static bool shape_src(gp_shape *s)
{
    static const gp_type usual = { GP_U8, 2, { 4, 6 } };
    const struct opts *o = s->opts;
    if (!s->out[0].dtype)
        s->out[0].dtype = usual.dtype;
    if (!s->out[0].ndim)
        s->out[0].ndim = 2, s->out[0].dim[0] = 4, s->out[0].dim[1] = 6;
    s->endless = o->b;
    return true;
}

static bool shape_same(gp_shape *s)
{
    for (int i = 0; i < s->nout; i++)
        s->out[i] = s->in[0];
    return true;
}

/* Like lua and kernel: as declared, else as the first input. */
static bool shape_free(gp_shape *s)
{
    for (int i = 0; i < s->nout; i++) {
        if (s->nin && !s->out[i].dtype)
            s->out[i].dtype = s->in[0].dtype;
        if (s->nin && !s->out[i].ndim)
            s->out[i].ndim = s->in[0].ndim,
            memcpy(s->out[i].dim, s->in[0].dim, sizeof s->in[0].dim);
    }
    return true;
}

static bool shape_opts(gp_shape *s)
{
    const struct opts *o = s->opts;
    gp_num v;
    if (o->n == 13)
        return gp_shape_fail(s, "n", "13 brings bad luck");
    if (o->node && (!gp_shape_eval(s, o->node, &v)))
        return false;
    if (o->node)
        s->scratch = (size_t)v.i;
    s->batched = s->frame_info = true;
    return shape_same(s);
}

static bool shape_every(gp_shape *s)
{
    s->rate = 3;
    s->serial = true;
    return shape_same(s);
}

static bool shape_carry(gp_shape *s)
{
    s->state = 8;
    return shape_same(s);
}

static bool shape_mute(gp_shape *s)
{
    (void)s;
    return false;
}

static bool shape_empty(gp_shape *s)
{
    s->out[0] = (gp_type){ GP_U8, 1, { 0 } };
    return true;
}

static bool shape_file(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_file *f = gp_probe_file(s, o->file);
    if (!f)
        return false;
    if (f->error == ENOENT)
        return gp_shape_missing(s, "file", "cannot read '%s'", o->file);
    s->out[0] = (gp_type){ GP_U8, 1, { f->size } };
    return true;
}

#define IN(n, a) { .name = n, .accept = a }
#define OUT(n) { .name = n }
#define ANY(n) IN(n, GP_ACCEPT_ANY)
static const gp_port one[] = { ANY("in"), {0} };
static const gp_port out1[] = { OUT("out"), {0} };
static const gp_port star[] = { ANY("*"), {0} };
static const gp_port x_star[] = { ANY("x"), ANY("*"), {0} };
static const gp_port u8_f32[] = { IN("in", GP_ACCEPT(GP_U8) | GP_ACCEPT(GP_F32)), {0} };
static const gp_port f32_only[] = { IN("in", GP_ACCEPT(GP_F32)), {0} };
static const gp_port image_mask[] = {
    ANY("image"), { .name = "mask", .accept = GP_ACCEPT_ANY, .optional = true }, {0} };
static const gp_port a_b[] = { ANY("a"), ANY("b"), {0} };
static const gp_port low_high[] = {
    OUT("low"), OUT("high"), { .name = "rest", .optional = true }, {0} };

#define O(TYPE, f) GP_##TYPE(struct opts, f), .help = "a value"
static const gp_opt options[] = {
    { O(INT, n), .def = "2", .min = 0, .max = 64, .unit = "px" },
    { O(FLOAT, f), .def = "1.5" },
    { O(BOOL, b) },
    { O(TEXT, s), .def = "text" },
    { O(PATH, file) },
    { O(ENUM, word), .choices = "red|green|blue", .def = "green" },
    { O(DTYPE, dtype) },
    { O(TIME, wait), .def = "1ms", .min = 0, .max = 1e9 },
    { O(INTS, ints), .def = "[1, 2]" },
    { O(FLOATS, floats), .def = "0.5" },
    { O(NODE, node) },
    {0}
};
static const gp_opt with_file[] = { { O(PATH, file), .required = true }, {0} };
static const gp_opt with_b[] = { { O(BOOL, b) }, {0} };

#define KIND(n, i, o, sh, ...) { GP_KIND(n), .help = "for tests", .in = i, .out = o, .shape = sh, \
                                 .opts_size = sizeof(struct opts), __VA_ARGS__ }
static const gp_kind kinds[] = {
    KIND("src", NULL, out1, shape_src, .run = run, .opts = with_b),
    KIND("sink", one, NULL, shape_same, .run = run),
    KIND("host", one, out1, shape_same, .run = run),
    KIND("dev", one, out1, shape_same, .record = record),
    KIND("both", u8_f32, out1, shape_opts, .run = run, .record = record, .opts = options),
    KIND("float", f32_only, out1, shape_same, .run = run),
    KIND("add", a_b, out1, shape_same, .run = run),
    KIND("masked", image_mask, out1, shape_same, .run = run),
    KIND("split", one, low_high, shape_same, .run = run),
    KIND("free", star, star, shape_free, .run = run),
    KIND("more", x_star, out1, shape_same, .run = run),
    KIND("every", one, out1, shape_every, .run = run),
    KIND("carry", one, out1, shape_carry, .record = record),
    KIND("mute", one, out1, shape_mute, .run = run),
    KIND("empty", one, out1, shape_empty, .run = run),
    KIND("open", NULL, out1, shape_file, .run = run, .opts = with_file),
};
enum { NKINDS = sizeof kinds / sizeof *kinds };

/* ---- a world to resolve in -------------------------------------------- */

static gp_arena arena;
static gp_registry *registry;
static gp_machine machine;
static gp_probe probe;
static gp_errs errs;
static int rounds;

static const char *env_get(const void *arg, const char *name)
{
    (void)arg;
    return !strcmp(name, "PLACE") ? "there" : NULL;
}

static void up(void)
{
    gp_errs e = {0};
    registry = gp_registry_create();
    for (int i = 0; i < NKINDS; i++)
        ck_assert_msg(gp_register(registry, &kinds[i], &e), "%s", e.e[0].msg);
    machine = (gp_machine){ .cpus = 4, .unified = true, .why = "no NVIDIA driver" };
    probe = (gp_probe){ .arena = &arena };
}

static void down(void)
{
    gp_registry_destroy(registry);
    gp_arena_free(&arena);
}

static const gp_graph *resolve_file(const char *text, const char *file)
{
    gp_env env = { env_get, NULL };
    memset(&errs, 0, sizeof errs);
    gp_spec *spec = gp_parse(&arena, text, strlen(text), file, &errs);
    const gp_graph *g = NULL;
    for (rounds = 0; spec; gp_probe_look(&probe), rounds++) {
        ck_assert_int_lt(rounds, 20);
        memset(&errs, 0, sizeof errs);
        g = gp_resolve(&arena, spec, registry, &env, &machine, &probe, &errs);
        if (!probe.nwant)
            break;
        ck_assert_ptr_null(g);
    }
    return g;
}

static const gp_graph *resolve(const char *text)
{
    return resolve_file(text, "p.yaml");
}

static const gp_graph *must(const char *text)
{
    const gp_graph *g = resolve(text);
    ck_assert_msg(g != NULL, "%s--> %d:%d: %s", text, errs.e[0].at.line, errs.e[0].at.col,
                  errs.e[0].msg);
    ck_assert_int_eq(errs.n, 0);
    return g;
}

static const gp_buffer *buffer(const gp_graph *g, const char *name)
{
    for (int i = 0; i < g->nbuffers; i++)
        if (!strcmp(g->buffer[i].name, name))
            return &g->buffer[i];
    ck_abort_msg("no buffer '%s'", name);
    return NULL;
}

static const gp_stage *stage(const gp_graph *g, const char *name)
{
    for (int i = 0; i < g->nstages; i++)
        if (!strcmp(g->stage[i].name, name))
            return &g->stage[i];
    ck_abort_msg("no stage '%s'", name);
    return NULL;
}

/* ---- wiring ---------------------------------------------------------- */

/* "name(port:buffer ...) > port:buffer | ...", in the graph's order. */
static const char *wiring(const gp_graph *g)
{
    static char s[4000];
    int n = 0;
    s[0] = 0;
#define P(...) (n += snprintf(s + n, sizeof s - (size_t)n, __VA_ARGS__))
    for (int i = 0; i < g->nstages; i++) {
        const gp_stage *st = &g->stage[i];
        P("%s%s", i ? " | " : "", st->name);
        for (int p = 0; p < st->nin; p++)
            P("%c%s:%s", p ? ' ' : '(', st->in_name[p],
              st->in[p] < 0 ? "-" : g->buffer[st->in[p]].name);
        P("%s", st->nin ? ")" : "");
        for (int p = 0; p < st->nout; p++)
            P(" %s:%s", st->out_name[p], st->out[p] < 0 ? "-" : g->buffer[st->out[p]].name);
    }
#undef P
    return s;
}

static const struct { const char *yaml, *wiring; } wired[] = {
    { "stages: [{use: src}, {use: both}, {use: sink}]",
      "src out:src | both(in:src) out:both | sink(in:both)" },
    { "stages: [{use: src}, {use: host}, {use: host}, {use: host, name: last}, {use: sink}]",
      "src out:src | host(in:src) out:host | host2(in:host) out:host2 | last(in:host2) out:last"
      " | sink(in:last)" },
    { "stages: [{use: src, out: a}, {use: host, out: b}, {use: sink}, {use: sink, in: a}]",
      "src out:a | host(in:a) out:b | sink(in:b) | sink2(in:a)" },
    { "stages: [{use: src}, {use: src}, {use: add, in: [src, src2]}, {use: sink}]",
      "src out:src | src2 out:src2 | add(a:src b:src2) out:add | sink(in:add)" },
    { "stages: [{use: src}, {use: add, in: {b: src, a: src}}, {use: sink}]",
      "src out:src | add(a:src b:src) out:add | sink(in:add)" },
    /* the file's order is free */
    { "stages: [{use: sink, in: h}, {use: host, in: s, out: h}, {use: src, out: s}]",
      "src out:s | host(in:s) out:h | sink(in:h)" },
    { "stages: [{use: src}, {use: masked}, {use: sink}]",
      "src out:src | masked(image:src mask:-) out:masked | sink(in:masked)" },
    { "stages: [{use: src}, {use: masked, in: {mask: src, image: src}}, {use: sink}]",
      "src out:src | masked(image:src mask:src) out:masked | sink(in:masked)" },
    { "stages: [{use: src}, {use: split}, {use: sink, in: split_low}, {use: sink, in: split_high}]",
      "src out:src | split(in:src) low:split_low high:split_high rest:- | sink(in:split_low)"
      " | sink2(in:split_high)" },
    { "stages: [{use: src}, {use: split, out: [a, b, c]}, {use: free, in: [a, b, c], out: []}]",
      "src out:src | split(in:src) low:a high:b rest:c | free(a:a b:b c:c)" },
    { "stages: [{use: src}, {use: split, out: {rest: c, low: a, high: b}}, "
      "{use: free, in: {x: a, y: b, z: c}, out: []}]",
      "src out:src | split(in:src) low:a high:b rest:c | free(x:a y:b z:c)" },
    { "buffers: {free: {dtype: f32, shape: 5}}\n"
      "stages: [{use: free}, {use: free, name: f}, {use: free, name: g, out: []}]",
      "free out:free | f(in:free) out:f | g(in:f)" },
    { "buffers: {x: {dtype: f32, shape: 5}}\n"
      "stages: [{use: src}, {use: sink}, {use: free, in: [], out: x}, {use: sink}]",
      "src out:src | sink(in:src) | free out:x | sink2(in:x)" },
    { "stages: [{use: src}, {use: free, in: [src], out: [p, q]}, {use: more, in: [p, q]}, "
      "{use: sink}]",
      "src out:src | free(in:src) p:p q:q | more(x:p q:q) out:more | sink(in:more)" },
    { "stages: [{use: src}, {use: more}, {use: sink}]",
      "src out:src | more(x:src) out:more | sink(in:more)" },
};

START_TEST(wires)
{
    ck_assert_str_eq(wiring(must(wired[_i].yaml)), wired[_i].wiring);
}
END_TEST

START_TEST(uses_and_sources)
{
    const gp_graph *g = must(
        "stages: [{use: src, out: a}, {use: src, out: b}, {use: host, in: a},\n"
        "{use: add, in: [host, b]}, {use: add, name: twice, in: [add, add]},\n"
        "{use: sink}, {use: sink, in: host}]");
    const gp_buffer *host = buffer(g, "host"), *add = buffer(g, "add");
    ck_assert_int_eq(host->nuse, 2);
    ck_assert_ptr_eq(&g->stage[host->use[0].stage], stage(g, "add"));
    ck_assert_ptr_eq(&g->stage[host->use[1].stage], stage(g, "sink2"));
    ck_assert_int_eq(add->nuse, 2);
    ck_assert_int_eq(add->use[0].port, 0);
    ck_assert_int_eq(add->use[1].port, 1);
    ck_assert_ptr_eq(&g->stage[add->producer.stage], stage(g, "add"));
    ck_assert_uint_eq(stage(g, "host")->sources[0], 1u << 0);
    ck_assert_uint_eq(stage(g, "add")->sources[0], 1u << 0 | 1u << 1);
    ck_assert_uint_eq(stage(g, "sink")->sources[0], 1u << 0 | 1u << 1);
    ck_assert_uint_eq(stage(g, "sink2")->sources[0], 1u << 0);
}
END_TEST

/* ---- types ----------------------------------------------------------- */

static const struct { const char *yaml, *buffer, *type; } typed[] = {
    { "stages: [{use: src}, {use: both}, {use: sink}]", "both", "u8 [4, 6]" },
    { "buffers: {src: {dtype: f32}}\nstages: [{use: src}, {use: float}, {use: sink}]", "float",
      "f32 [4, 6]" },
    { "buffers: {src: {shape: [2, 3, 4]}}\nstages: [{use: src}, {use: sink}]", "src",
      "u8 [2, 3, 4]" },
    { "buffers: {src: {shape: 7}}\nstages: [{use: src}, {use: sink}]", "src", "u8 [7]" },
    { "vars: {n: 3, m: n * 2}\nbuffers: {src: {shape: [n, 'ceil((m + 1) / 2)']}}\n"
      "stages: [{use: src}, {use: sink}]", "src", "u8 [3, 4]" },
    /* like, declared or inferred, forwards or backwards, in chains */
    { "buffers: {a: {like: b, dtype: f64}, b: {dtype: u16, shape: [8]}}\n"
      "stages: [{use: src, out: b}, {use: free, out: a}, {use: sink}]", "a", "f64 [8]" },
    { "buffers: {a: {like: src, dtype: f64}}\n"
      "stages: [{use: src}, {use: free, out: a}, {use: sink}]", "a", "f64 [4, 6]" },
    { "buffers: {c: {like: b}, b: {like: a}, a: {dtype: i8, shape: 9}}\n"
      "stages: [{use: src, out: a}, {use: free, out: b}, {use: free, out: c}, {use: sink}]",
      "c", "i8 [9]" },
    { "buffers: {x: {like: h}}\n"
      "stages: [{use: src, out: x}, {use: sink}, {use: host, in: y, out: h}, {use: sink, in: h}, "
      "{use: src, out: y}]", "x", "u8 [4, 6]" },
};

START_TEST(types)
{
    char text[128];
    const gp_graph *g = must(typed[_i].yaml);
    ck_assert_str_eq(gp_type_text(&buffer(g, typed[_i].buffer)->type, text), typed[_i].type);
}
END_TEST

START_TEST(ends_and_rates)
{
    const gp_graph *g = must(
        "stages: [{use: src, b: true, out: a}, {use: src, out: b}, {use: host, in: a, out: c},\n"
        "{use: add, in: [c, b], out: d}, {use: every, in: c, out: e}, {use: every, out: f},\n"
        "{use: sink}, {use: sink, in: d}, {use: sink, in: e}]");
    static const struct { const char *name; bool endless; int rate; } want[] = {
        { "a", true, 1 }, { "b", false, 1 }, { "c", true, 1 }, { "d", false, 1 },
        { "e", true, 3 }, { "f", true, 9 } };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const gp_buffer *b = buffer(g, want[i].name);
        ck_assert_msg(b->endless == want[i].endless && b->rate == want[i].rate, "%s", b->name);
    }
    ck_assert(stage(g, "src")->endless && !stage(g, "src2")->endless);
}
END_TEST

/* ---- values ---------------------------------------------------------- */

static const struct opts *opts_of(const char *flow)
{
    char text[600];
    snprintf(text, sizeof text, "vars: {four: 2 * 2, w: blue, t: 2ms, q: \"${w}!\"}\n"
             "stages: [{use: src}, {use: both, %s}, {use: sink}]", flow);
    return stage(must(text), "both")->opts;
}

START_TEST(options_read)
{
    const struct opts *o = opts_of("on: host");
    ck_assert_int_eq(o->n, 2);
    ck_assert_double_eq(o->f, 1.5);
    ck_assert(!o->b && !o->file && !o->node && !o->dtype);
    ck_assert_str_eq(o->s, "text");
    ck_assert_int_eq(o->word, 1);
    ck_assert_int_eq(o->wait, 1000000);
    ck_assert(o->ints.n == 2 && o->ints.v[0] == 1 && o->ints.v[1] == 2);
    ck_assert(o->floats.n == 1 && o->floats.v[0] == 0.5);

    o = opts_of("n: four + 1, f: four / 8.0, b: true, s: off, file: x/y.bin, word: '${w}', "
                "dtype: c64, wait: 3 * t, ints: 7, floats: [four, 1e3, -2], node: 'in.size'");
    ck_assert_int_eq(o->n, 5);
    ck_assert_double_eq(o->f, 0.5);
    ck_assert(o->b);
    ck_assert_str_eq(o->s, "off");
    ck_assert_str_eq(o->file, "x/y.bin");
    ck_assert_int_eq(o->word, 2);
    ck_assert_int_eq(o->dtype, GP_C64);
    ck_assert_int_eq(o->wait, 6000000);
    ck_assert(o->ints.n == 1 && o->ints.v[0] == 7);
    ck_assert(o->floats.n == 3 && o->floats.v[0] == 4 && o->floats.v[1] == 1000
              && o->floats.v[2] == -2);
    ck_assert_str_eq(o->node->text, "in.size");

    /* a text stays as it is written */
    static const struct { const char *said, *text; } texts[] = {
        { "010", "010" }, { "null", "null" }, { "'${q}-$$'", "blue!-$" }, { "~", "~" },
        { "'${env:PLACE}${env:NONE:-x}'", "therex" }, { "no", "no" } };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char flow[100];
        snprintf(flow, sizeof flow, "s: %s", texts[i].said);
        ck_assert_str_eq(opts_of(flow)->s, texts[i].text);
    }
}
END_TEST

START_TEST(paths_are_relative_to_the_file)
{
    static const struct { const char *file, *said, *path; } cases[] = {
        { "p.yaml", "x.bin", "x.bin" }, { "a/b/p.yaml", "x.bin", "a/b/x.bin" },
        { "a/p.yaml", "/x.bin", "/x.bin" }, { "/p.yaml", "x", "/x" },
        { "a/p.yaml", "stdin", "stdin" }, { "a/p.yaml", "../x", "a/../x" } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        snprintf(text, sizeof text, "stages: [{use: src}, {use: both, file: %s}, {use: sink}]",
                 cases[i].said);
        const gp_graph *g = resolve_file(text, cases[i].file);
        ck_assert_ptr_nonnull(g);
        ck_assert_str_eq(((const struct opts *)stage(g, "both")->opts)->file, cases[i].path);
    }
}
END_TEST

START_TEST(settings)
{
    const gp_graph *g = must("stages: [{use: src}, {use: sink}]");
    ck_assert_str_eq(g->name, "p");
    ck_assert(g->streams == 0 && g->batch == 0 && g->launch == GP_LAUNCH_GRAPH
              && g->sync == GP_SYNC_AUTO && g->on_error == GP_ON_ERROR_STOP);
    ck_assert_int_eq(g->stall_ns, 30000000000);
    ck_assert_int_eq(buffer(g, "src")->depth, 3);
    ck_assert_int_eq(g->device, -1);
    ck_assert_str_eq(g->device_why, "auto: no NVIDIA driver");

    g = must("{pipeline: x y, device: cpu, depth: 2 * k, streams: 4, batch: 1, launch: stream, "
             "sync: spin,\non_error: drop, stall_timeout: 0, vars: {k: 4}, \n"
             "buffers: {h: {depth: 5}}, stages: [{use: src}, "
             "{use: both, on: host, out: h, workers: 3, zero: true}, "
             "{use: carry, on_hole: splice}, {use: both}, {use: sink}]}");
    ck_assert_str_eq(g->name, "x y");
    ck_assert(g->streams == 4 && g->batch == 1 && g->launch == GP_LAUNCH_STREAM
              && g->sync == GP_SYNC_SPIN && g->on_error == GP_ON_ERROR_DROP && g->stall_ns == 0);
    ck_assert_int_eq(buffer(g, "src")->depth, 8);
    ck_assert(!buffer(g, "src")->depth_said && buffer(g, "h")->depth_said);
    ck_assert_int_eq(buffer(g, "h")->depth, 5);
    ck_assert_str_eq(g->device_why, "cpu");
    const gp_stage *both = stage(g, "both"), *both2 = stage(g, "both2"), *carry = stage(g, "carry");
    ck_assert(!both->device && both->workers == 3 && both->zero && both->batched
              && both->frame_info);
    ck_assert(both2->device && both2->workers == 1 && !both2->zero);
    ck_assert(carry->device && carry->state == 8 && carry->on_hole == GP_ON_HOLE_SPLICE);
    gp_num v;
    ck_assert(g->scope.var(&g->scope, "k", &v) && v.is_int && v.i == 4);
    ck_assert(!g->scope.var(&g->scope, "kk", &v));
}
END_TEST

START_TEST(devices)
{
    static const struct { const char *said; int n, device; const char *why; int code; } cases[] = {
        { "auto", 2, 0, "auto: H", 0 }, { "cuda", 2, 0, "cuda: H", 0 },
        { "cuda:1", 2, 1, "cuda:1: H", 0 }, { "cpu", 2, -1, "cpu", 0 },
        { "auto", 0, -1, "auto: no NVIDIA driver", 0 },
        { "cuda", 0, 0, "there is no device 'cuda': no NVIDIA driver; write device: auto or cpu",
          GP_E_RESOURCE },
        { "cuda:2", 2, 0, "there is no device 'cuda:2'; this machine has 2, numbered from 0",
          GP_E_RESOURCE },
        { "gpu", 2, 0, "'device' is auto, cpu, cuda or cuda:N, not 'gpu'", GP_E_SPEC },
        { "'cuda:'", 2, 0, "'device' is auto, cpu, cuda or cuda:N, not 'cuda:'", GP_E_SPEC },
        { "cuda:x", 2, 0, "'device' is auto, cpu, cuda or cuda:N, not 'cuda:x'", GP_E_SPEC },
    };
    char text[200];
    snprintf(text, sizeof text, "device: %s\nstages: [{use: src}, {use: sink}]", cases[_i].said);
    machine.ndevices = cases[_i].n;
    strcpy(machine.device[0].name, "H");
    strcpy(machine.device[1].name, "H");
    const gp_graph *g = resolve(text);
    if (cases[_i].code) {
        ck_assert_ptr_null(g);
        ck_assert_int_eq(errs.n, 1);
        ck_assert_int_eq((int)errs.e[0].code, cases[_i].code);
        ck_assert_str_eq(errs.e[0].msg, cases[_i].why);
        ck_assert_int_eq(errs.e[0].at.line, 1);
    } else {
        ck_assert_int_eq(g->device, cases[_i].device);
        ck_assert_str_eq(g->device_why, cases[_i].why);
    }
}
END_TEST

/* ---- errors ---------------------------------------------------------- */

/* Each is all that must be said: "LINE:COL MESSAGE", messages may be cut. */
#define CHAIN "stages: [{use: src}, {use: host}, {use: sink}]\n"
static const struct { const char *yaml, *err[4]; } bad[] = {
    /* the top */
    { "device: cpu\n", { "0:0 the pipeline has no stages" } },
    { "stages: []\n", { "1:9 the pipeline has no stages" } },
    { "stages: {use: src}\n", { "1:9 'stages' is a list" } },
    { CHAIN "strems: 2\n", { "2:1 a pipeline has no key 'strems'; did you mean 'streams'?" } },
    { CHAIN "depth: 0\n", { "2:8 'depth' must be 1 to 65536, not 0" } },
    { CHAIN "depth: -1\n", { "2:8 'depth' must be 1 to 65536, not -1" } },
    { CHAIN "depth: 1000000000\n", { "2:8 'depth' must be 1 to 65536, not 1000000000" } },
    { CHAIN "depth: 1.5\n", { "2:8 'depth' is a whole number, not 1.5" } },
    { CHAIN "depth: auto\n", { "2:8 no variable 'auto'" } },
    { CHAIN "depth: [1]\n", { "2:8 'depth' is a number, not a list" } },
    { CHAIN "streams: 0\n", { "2:10 'streams' must be 1 to 1024, not 0" } },
    { CHAIN "batch: 0\n", { "2:8 'batch' must be 1 to 65536, not 0" } },
    { CHAIN "launch: grahp\n",
      { "2:9 'launch' is one of graph, stream, not 'grahp'; did you mean 'graph'?" } },
    { CHAIN "sync: [x]\n", { "2:7 'sync' is a text, not a list" } },
    { CHAIN "on_error: explode\n", { "2:11 'on_error' is one of stop, drop, not 'explode'" } },
    { CHAIN "stall_timeout: 30\n", { "2:16 '30' has no unit" } },
    { CHAIN "stall_timeout: -1s\n", { "2:16 'stall_timeout' is a time from now" } },
    { CHAIN "vars: 3\n", { "2:7 'vars' is a map" } },
    { CHAIN "vars: {a: [1]}\n", { "2:11 'a' is a list; a variable has a single value" } },
    { CHAIN "vars: {a b: 1}\n", { "2:8 'a b' is no name for a variable" } },
    { CHAIN "vars: {out: null, x: 'a'}\ndepth: out\n",
      { "3:8 'out' has no value; give one with --set vars.out=..." } },
    { CHAIN "vars: {x: a}\ndepth: 2 * x\n", { "3:8 'x' is 'a', which is no number" } },
    { CHAIN "vars: {x: y, y: x}\ndepth: x\n", { "3:8 'x' is 'y', which is no number" } },
    { CHAIN "vars: {gain: 2}\ndepth: gian\n",
      { "3:8 no variable 'gian' that is a number; did you mean 'gain'?" } },
    { CHAIN "vars: {d: 2}\ndepth: ${d}\n", { "3:8 '${' is for text" } },
    { "vars: {out: }\nstages: [{use: src}, {use: both, s: '${out}'}, {use: sink}]\n",
      { "2:38 'out' has no value; give one with --set vars.out=..." } },
    /* buffers */
    { CHAIN "buffers: [src]\n", { "2:10 'buffers' is a map" } },
    { CHAIN "buffers: {src: f32}\n", { "2:16 buffer 'src' is a map" } },
    { CHAIN "buffers: {a b: {}}\n", { "2:11 'a b' is no name for a buffer" } },
    { CHAIN "buffers: {src: {dtpye: f32}}\n",
      { "2:17 a buffer has no key 'dtpye'; did you mean 'dtype'?" } },
    { CHAIN "buffers: {src: {dtype: float}}\n", { "2:24 'dtype' is a type: u8 i8" } },
    { CHAIN "buffers: {src: {shape: []}}\n", { "2:24 a shape has 1 to 8 axes, not 0" } },
    { CHAIN "buffers: {src: {shape: [1,1,1,1,1,1,1,1,1]}}\n",
      { "2:24 a shape has 1 to 8 axes, not 9" } },
    { CHAIN "buffers: {src: {shape: [3, 0]}}\n", { "2:28 'shape' must be 1 to 1099511627776" } },
    { CHAIN "buffers: {src: {shape: [1000000, 1000000, 2]}}\n",
      { "2:24 a frame of this shape is larger than 1 TiB" } },
    { CHAIN "buffers: {src: {depth: 0}}\n", { "2:24 'depth' must be 1 to 65536, not 0" } },
    { CHAIN "buffers: {src: {like: hots}}\n", { "2:23 no buffer 'hots'; did you mean 'host'?" } },
    { CHAIN "buffers: {src: {like: src}}\n", { "2:23 buffer 'src' is like itself" } },
    { CHAIN "buffers: {src: {like: host}, host: {like: src}}\n",
      { "2:23 buffer 'src' is like itself, by way of others" } },
    { CHAIN "buffers: {src: {like: host}}\n",
      { "1:16 the type of what stage 'src' makes depends on itself, by way of 'like'" } },
    { CHAIN "buffers: {src: {like: host, dtype: u8, shape: 3}}\n",
      { "2:23 'like' has no effect" } },
    { CHAIN "buffers: {hots: {depth: 2}}\n",
      { "2:11 buffer 'hots' is declared, but no stage makes or reads it; did you mean 'host'?" } },
    { CHAIN "buffers: {host: {dtype: f32}}\n",
      { "2:25 buffer 'host' is declared as f32, but stage 'host' makes u8 [4, 6]" } },
    { CHAIN "buffers: {host: {shape: [4, 7]}}\n",
      { "2:25 buffer 'host' is declared as u8 [4, 7], but stage 'host' makes u8 [4, 6]" } },
    { CHAIN "buffers: {k: {const: none.npy}}\n",
      { "2:11 no stage reads the constant 'k'",
        "2:22 constant 'k': 'none.npy' cannot be read: No such file" } },
    { "buffers: {k: {const: none.npy, dtype: u8}}\n"
      "stages: [{use: src}, {use: add, in: [src, k]}, {use: sink}]\n",
      { "1:22 constant 'k': 'none.npy' cannot be read: No such file or directory",
        "1:32 'dtype' has no effect: buffer 'k' is constant" } },
    { "buffers: {k: {const: .}}\nstages: [{use: src}, {use: add, in: [src, k]}, {use: sink}]\n",
      { "1:22 constant 'k': '.' is not a regular file" } },
    { "buffers: {k: {const: Makefile}}\n"
      "stages: [{use: src}, {use: add, in: [src, k]}, {use: sink}]\n",
      { "1:22 constant 'k': 'Makefile' " } },
    /* stages */
    { "stages: [src]\n", { "1:10 a stage is a map; write {use: src}" } },
    { "stages: [{name: a}]\n", { "1:17 stage 'a' does not say its kind" } },
    { "stages: [{use: srcc}, {use: host}, {use: sink}]\n",
      { "1:16 no stage kind 'srcc'; did you mean 'src'?" } },
    { "stages: [{use: src}, {use: xxxxxxxx}]\n",
      { "1:28 no stage kind 'xxxxxxxx'; 'gpipe stages' lists them" } },
    { "stages: [{use: src, name: a b}, {use: sink}]\n", { "1:27 'a b' is no name for a stage",
      "1:27 'a b' is no name for a buffer" } },
    { "stages: [{use: src, name: a},\n{use: host, name: a, out: b}, {use: sink}]\n",
      { "2:19 two stages are named 'a'; the first is in line 1" } },
    { "stages: [{use: src}, {use: both, gian: 2}, {use: sink}]\n",
      { "1:34 stage 'both' has no option 'gian'" } },
    { "stages: [{use: src}, {use: both, wrod: red}, {use: sink}]\n",
      { "1:34 stage 'both' has no option 'wrod'; did you mean 'word'?" } },
    { "stages: [{use: src}, {use: host, worker: 2}, {use: sink}]\n",
      { "1:34 stage 'host' has no option 'worker'; did you mean 'workers'?" } },
    { "stages: [{use: open}, {use: sink}]\n",
      { "1:16 stage 'open' needs the option 'file': a value" } },
    { "stages: [{use: open, file: ''}, {use: sink}]\n",
      { "1:28 option 'file' of stage 'open' is empty" } },
    { "stages: [{use: open, file: none}, {use: sink}]\n",
      { "1:28 stage 'open': cannot read 'none'" } },
    { "stages: [{use: src}, {use: both, n: x}, {use: sink}]\n", { "1:37 no variable 'x'" } },
    { "stages: [{use: src}, {use: both, n: 65}, {use: sink}]\n",
      { "1:37 option 'n' of stage 'both' must be 0 to 64 px, not 65" } },
    { "stages: [{use: src}, {use: both, n: 1.0}, {use: sink}]\n",
      { "1:37 option 'n' of stage 'both' is a whole number, not 1" } },
    { "stages: [{use: src}, {use: both, n: {}}, {use: sink}]\n",
      { "1:37 option 'n' of stage 'both' is a number, not a map" } },
    { "stages: [{use: src}, {use: both, b: yes}, {use: sink}]\n",
      { "1:37 option 'b' of stage 'both' is true or false, not 'yes'" } },
    { "stages: [{use: src}, {use: both, word: bleu}, {use: sink}]\n",
      { "1:40 option 'word' of stage 'both' is one of red, green, blue, not 'bleu'; did you mean "
        "'blue'?" } },
    { "stages: [{use: src}, {use: both, s: [1]}, {use: sink}]\n",
      { "1:37 option 's' of stage 'both' is a text, not a list" } },
    { "stages: [{use: src}, {use: both, wait: 5}, {use: sink}]\n", { "1:40 '5' has no unit" } },
    { "stages: [{use: src}, {use: both, wait: 5s}, {use: sink}]\n",
      { "1:40 option 'wait' of stage 'both' must be 0 to 1 s, not 5 s" } },
    { "stages: [{use: src}, {use: both, ints: [1, 99]}, {use: sink}]\n", { NULL } },
    { "stages: [{use: src}, {use: both, ints: [1, x]}, {use: sink}]\n",
      { "1:44 no variable 'x'" } },
    { "stages: [{use: src}, {use: both, dtype: f23}, {use: sink}]\n",
      { "1:41 option 'dtype' of stage 'both' is a type: " } },
    { "stages: [{use: src}, {use: both, n: 13}, {use: sink}]\n",
      { "1:37 stage 'both': 13 brings bad luck" } },
    { "stages: [{use: src}, {use: both, node: 'in.shape[2]'}, {use: sink}]\n",
      { "1:41 'in' has no axis 2" } },
    { "stages: [{use: src}, {use: both, node: 'im.size'}, {use: sink}]\n",
      { "1:41 no port 'im'" } },
    { "stages: [{use: src}, {use: both, n: 65, f: x, b: 1}, {use: host}, {use: sink}]\n",
      { "1:37 option 'n'", "1:44 no variable 'x'", "1:50 option 'b'" } },
    { "stages: [{use: src}, {use: both, on: gpu}, {use: sink}]\n",
      { "1:38 option 'on' of stage 'both' is one of host, device, not 'gpu'" } },
    { "stages: [{use: src}, {use: host, on: host}, {use: sink}]\n",
      { "1:38 'on' has no effect: stage 'host' runs on the host only" } },
    { "stages: [{use: src}, {use: dev, on: device}, {use: sink}]\n",
      { "1:37 'on' has no effect: stage 'dev' runs on the device only" } },
    { "stages: [{use: src}, {use: both, workers: 2}, {use: sink}]\n",
      { "1:43 'workers' has no effect: stage 'both' runs on the device; write on: host" } },
    { "stages: [{use: src}, {use: host, workers: 0}, {use: sink}]\n",
      { "1:43 option 'workers' of stage 'host' must be 1 to 1024, not 0" } },
    { "stages: [{use: src, workers: 2}, {use: sink}]\n",
      { "1:30 stage 'src' has one worker: it is a source" } },
    { "stages: [{use: src}, {use: every, workers: 2}, {use: sink}]\n",
      { "1:44 stage 'every' has one worker: it takes frames in order" } },
    { "stages: [{use: src}, {use: host, on_hole: reset}, {use: sink}]\n",
      { "1:43 'on_hole' has no effect: stage 'host' carries nothing" } },
    { "stages: [{use: src}, {use: sink, zero: true}]\n", { "1:40 'zero' has no effect" } },
    { "stages: [{use: src}, {use: host, zero: 1}, {use: sink}]\n",
      { "1:40 option 'zero' of stage 'host' is true or false, not '1'" } },
    { "stages: [{use: src}, {use: mute}, {use: sink}]\n",
      { "1:28 shape() of kind 'mute' failed and does not say why" } },
    { "stages: [{use: src}, {use: empty}, {use: sink}]\n",
      { "1:28 stage 'empty' makes empty frames: 'empty' is u8 [0]" } },
    /* wiring */
    { "stages: [{use: host}, {use: sink}]\n",
      { "1:16 stage 'host' needs an input, and no stage is before it; write in: BUFFER" } },
    { "stages: [{use: src}, {use: sink}, {use: sink}]\n",
      { "1:41 stage 'sink2' has no input: 'sink' before it has no output; write in: BUFFER" } },
    { "stages: [{use: src}, {use: sink}, {use: free}, {use: sink}]\n",
      { "1:41 stage 'free' has no input: 'sink' before it has no output; write in: BUFFER, or in: "
        "[] for a source" } },
    { "stages: [{use: src}, {use: split}, {use: sink}]\n",
      { "1:42 which of the 2 outputs of 'split' does stage 'sink' read?" } },
    { "stages: [{use: src}, {use: host, in: scr}, {use: sink}]\n",
      { "1:38 no stage makes a buffer 'scr'; did you mean 'src'?" } },
    { "buffers: {x: {dtype: u8}}\nstages: [{use: src}, {use: add, in: [src, x]}, {use: sink}]\n",
      { "2:43 buffer 'x' is declared, but no stage makes it" } },
    { "stages: [{use: src, in: x}, {use: sink}]\n",
      { "1:25 stage 'src' has no input: 'src' is a source" } },
    { "stages: [{use: src}, {use: sink, out: x}]\n", { "1:39 stage 'sink' has no output" } },
    { "stages: [{use: src}, {use: host, in: [src, src]}, {use: sink}]\n",
      { "1:44 stage 'host' has 1 input, and 2 are given" } },
    { "stages: [{use: src}, {use: host, in: [[src]]}, {use: sink}]\n",
      { "1:39 the name of a buffer is expected here" } },
    { "stages: [{use: src}, {use: masked, in: {imgae: src}}, {use: sink}]\n",
      { "1:48 stage 'masked' has no input 'imgae'; did you mean 'image'?" } },
    { "stages: [{use: src}, {use: add}, {use: sink}]\n",
      { "1:28 input 'b' of stage 'add' is not connected; write in: {b: BUFFER}" } },
    { "stages: [{use: src}, {use: free, in: [src, src]}, {use: sink}]\n",
      { "1:44 stage 'free' has two inputs named 'src'" } },
    { "stages: [{use: src}, {use: split, out: [a]}, {use: sink, in: a}]\n",
      { "1:40 output 'high' of stage 'split' needs a buffer" } },
    { "stages: [{use: src}, {use: host, out: a}, {use: host, out: a}, {use: sink}]\n",
      { "1:60 buffer 'a' has two producers: stages 'host' and 'host2'" } },
    { "stages: [{use: src}, {use: host}]\n",
      { "1:28 no stage reads 'host', which stage 'host' makes; read it with in: host, or add" } },
    { "stages: [{use: src}, {use: free}]\n",
      { "1:28 no stage reads 'free', which stage 'free' makes; write out: [] if it is the end" } },
    { "stages: [{use: src}, {use: src}, {use: sink}]\n",
      { "1:16 no stage reads 'src', which stage 'src' makes, and 'src2' after it is a source" } },
    { "buffers: {k: {const: x}}\nstages: [{use: src}, {use: host, out: k}, {use: sink}]\n",
      { "1:22 constant 'k'", "2:39 buffer 'k' is constant; stage 'host' cannot write it" } },
    { "stages: [{use: host, in: c, out: b}, {use: host, in: b, out: c}, {use: sink}]\n",
      { "1:16 a cycle: host2 -> host -> host2" } },
    { "stages: [{use: src}, {use: add, in: [src, add], out: add}, {use: sink}]\n",
      { "1:28 a cycle: add -> add" } },
    /* types */
    { "buffers: {src: {dtype: i16}}\nstages: [{use: src}, {use: both}, {use: host}, {use: sink}]\n",
      { "2:28 stage 'both' takes u8, f32 at 'in', but 'src' is i16; put {use: cast, dtype: TYPE} "
        "before it" } },
    { "stages: [{use: src}, {use: float, in: src}, {use: sink}]\n",
      { "1:39 stage 'float' takes f32 at 'in', but 'src' is u8; put {use: cast, dtype: f32}" } },
    { "buffers: {src: {dtype: c64}}\nstages: [{use: src}, {use: float}, {use: sink}]\n",
      { "2:28 stage 'float' takes f32 at 'in', but 'src' is c64" } },
    { "stages: [{use: src}, {use: every}, {use: add, in: [src, every]}, {use: sink}]\n",
      { "1:42 stage 'add' joins buffers of different rates: 'src' has a frame for 1 of the source, "
        "'every' for 3" } },
    { "stages: [{use: free}, {use: sink}]\n",
      { "1:16 the dtype of buffer 'free' cannot be inferred; declare it under 'buffers'" } },
    { "buffers: {free: {dtype: u8}}\nstages: [{use: free}, {use: sink}]\n",
      { "1:11 the shape of buffer 'free' cannot be inferred" } },
    /* one error has no others in its wake */
    { "stages: [{use: src}, {use: both, n: 99}, {use: float}, {use: every}, {use: add, in: [src, "
      "every]}, {use: sink}]\n", { "1:37 option 'n'" } },
    { "stages: [{use: scr}, {use: both}, {use: add, in: [both, scr]}]\n",
      { "1:16 no stage kind 'scr'; did you mean 'src'?" } },
    { "stages: [{use: src}, {use: both, in: nix}, {use: host}, {use: free}]\n",
      { "1:38 no stage makes a buffer 'nix'" } },
    { "buffers: {both: {dtype: u8, shape: [4, 6]}}\n"
      "stages: [{use: src}, {use: both, n: 99}, {use: float}, {use: sink}]\n",
      { "2:37 option 'n'", "2:48 stage 'float' takes f32 at 'in', but 'both' is u8" } },
};

START_TEST(refuses)
{
    const gp_graph *g = resolve(bad[_i].yaml);
    char got[4000] = "";
    int n = 0;
    for (int i = 0; i < errs.n; i++)
        n += snprintf(got + n, sizeof got - (size_t)n, "%d:%d %s\n", errs.e[i].at.line,
                      errs.e[i].at.col, errs.e[i].msg);
    const char *s = got;
    bool same = true;
    for (int i = 0; same && i < 4 && bad[_i].err[i]; i++) {
        same = !strncmp(s, bad[_i].err[i], strlen(bad[_i].err[i]));
        s = strchr(s, '\n') ? strchr(s, '\n') + 1 : s;
    }
    ck_assert_msg(same && !*s, "%sgave\n%snot %s ...", bad[_i].yaml, got, bad[_i].err[0]);
    ck_assert((g == NULL) == (bad[_i].err[0] != NULL));
}
END_TEST

/* The first lines of a file of tests/bad are "# error: FILE:LINE:COL: error: MSG",
 * all the errors it has. */
static void check_bad_file(const gp_registry *kinds_of_gpipe, const char *path)
{
    static char text[1 << 16];
    FILE *f = fopen(path, "re");
    ck_assert_ptr_nonnull(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    registry = (gp_registry *)kinds_of_gpipe;
    ck_assert_ptr_null(resolve_file(text, strrchr(path, '/') + 1));
    const char *line = text;
    int n = 0;
    for (; !strncmp(line, "# error: ", 9); line = strchr(line, '\n') + 1, n++) {
        char got[1000] = "none";
        size_t len = strcspn(line, "\n") - 9;
        if (n < errs.n)
            snprintf(got, sizeof got, "%s:%d:%d: error: %s", errs.e[n].at.file, errs.e[n].at.line,
                     errs.e[n].at.col, errs.e[n].msg);
        ck_assert_msg(!strncmp(got, line + 9, len), "%s: got\n%s\nnot\n%.*s", path, got, (int)len,
                      line + 9);
    }
    ck_assert_int_gt(n, 0);
    ck_assert_msg(errs.n == n, "%s: %d errors more: %s", path, errs.n - n, errs.e[n].msg);
}

START_TEST(bad_files)
{
    gp_registry *mine = registry, *real = gp_registry_create();
    glob_t g;
    ck_assert(gp_register_builtin(real, &errs));
    ck_assert_int_eq(glob("tests/bad/resolve_*.yaml", 0, NULL, &g), 0);
    for (size_t i = 0; i < g.gl_pathc; i++)
        check_bad_file(real, g.gl_pathv[i]);
    globfree(&g);
    gp_registry_destroy(real);
    registry = mine;
}
END_TEST

/* ---- files ----------------------------------------------------------- */

static char folder[200];

static void enter_folder(void)
{
    up();
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/gpipe-XXXXXX", tmp ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void leave_folder(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
    down();
}

static const char *in_folder(const char *name)
{
    return gp_format(&arena, "%s/%s", folder, name);
}

static void put_file(const char *name, const void *data, size_t n)
{
    FILE *f = fopen(in_folder(name), "we");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, n, f), n);
    fclose(f);
}

START_TEST(stages_wait_for_files)
{
    put_file("six", "123456", 6);
    char text[400];
    snprintf(text, sizeof text, "stages: [{use: open, file: six}, {use: float}, {use: sink}]");
    ck_assert_ptr_null(resolve_file(text, in_folder("p.yaml")));
    ck_assert_int_eq(rounds, 1);
    ck_assert_int_eq(errs.n, 1);
    ck_assert_msg(strstr(errs.e[0].msg, "takes f32 at 'in', but 'open' is u8") != NULL, "%s",
                  errs.e[0].msg);
    snprintf(text, sizeof text, "stages: [{use: open, file: six}, {use: host}, {use: sink}]");
    const gp_graph *g = resolve_file(text, in_folder("p.yaml"));
    ck_assert_ptr_nonnull(g);
    ck_assert_int_eq(buffer(g, "host")->type.dim[0], 6);
}
END_TEST

START_TEST(missing_input_may_be_declared)
{
    static const char declared[] = "buffers: {open: {dtype: u8, shape: [5]}}\n"
        "stages: [{use: open, file: none}, {use: host}, {use: sink}]";
    static const char half[] = "buffers: {open: {dtype: u8}}\n"
        "stages: [{use: open, file: none}, {use: host}, {use: sink}]";
    ck_assert_ptr_null(resolve(declared));
    probe.lenient = true;
    const gp_graph *g = resolve(declared);
    ck_assert_ptr_nonnull(g);
    ck_assert_int_eq(buffer(g, "host")->type.dim[0], 5);
    ck_assert_int_eq(errs.n, 1);
    ck_assert_int_eq((int)errs.e[0].code, GP_E_WARN);
    ck_assert_str_eq(errs.e[0].msg, "stage 'open': cannot read 'none'");
    ck_assert_ptr_null(resolve(half));
    ck_assert_int_eq(errs.failed, 1);
}
END_TEST

START_TEST(constants)
{
    static const char yaml[] = "buffers: {k: {const: k.npy}}\n"
        "stages: [{use: src}, {use: add, in: [src, k]}, {use: sink}]";
    char file[1024];
    gp_type t = { GP_F32, 2, { 3, 5 } };
    size_t head = gp_npy_header(&t, file, sizeof file), all = head + gp_bytes(&t);
    put_file("k.npy", file, all);
    const gp_graph *g = resolve_file(yaml, in_folder("p.yaml"));
    ck_assert_ptr_nonnull(g);
    const gp_buffer *k = buffer(g, "k");
    ck_assert(gp_type_same(&k->type, &t));
    ck_assert_str_eq(k->path, in_folder("k.npy"));
    ck_assert_int_eq(k->producer.stage, -1);
    ck_assert_int_eq(k->nuse, 1);
    ck_assert_uint_eq(stage(g, "add")->sources[0], 1u);

    put_file("k.npy", file, all - 1);
    probe = (gp_probe){ .arena = &arena };
    ck_assert_ptr_null(resolve_file(yaml, in_folder("p.yaml")));
    ck_assert_ptr_nonnull(strstr(errs.e[0].msg, "is shorter than its header says"));

    put_file("k.npy", file, all);
    probe = (gp_probe){ .arena = &arena };
    ck_assert_ptr_null(resolve_file("buffers: {k: {const: k.npy}}\n"
                                    "stages: [{use: host, in: k}, {use: sink}]",
                                    in_folder("p.yaml")));
    ck_assert_ptr_nonnull(strstr(errs.e[0].msg, "reads nothing but constants"));
}
END_TEST

/* ---- run time -------------------------------------------------------- */

START_TEST(partial_frames)
{
    const gp_graph *g = must(
        "buffers: {l: {like: src, dtype: f32}, t: {dtype: u8, shape: 9}}\n"
        "stages: [{use: src}, {use: both, node: 'in.shape[0]'}, {use: free, in: src, out: l},\n"
        "{use: free, in: src, out: t}, {use: free, in: [both, l, t], out: []}]");
    gp_type in = { GP_U8, 2, { 3, 6 } }, out[GP_MAXPORT];
    static const struct { const char *stage, *type; } cases[] = {
        { "both", "u8 [3, 6]" }, { "free", "f32 [3, 6]" }, { "free2", "u8 [9]" } };
    memset(&errs, 0, sizeof errs);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128];
        ck_assert_msg(gp_partial_shape(g, stage(g, cases[i].stage), &in, out, &errs), "%s",
                      errs.e[0].msg);
        ck_assert_str_eq(gp_type_text(&out[0], text), cases[i].type);
    }
    in.dim[0] = 5;
    ck_assert(!gp_partial_shape(g, stage(g, "both"), &in, out, &errs));
    ck_assert_ptr_nonnull(strstr(errs.e[0].msg, "does not fit in u8 [4, 6]"));
}
END_TEST

START_TEST(expressions_of_calls)
{
    const gp_graph *g = must("vars: {k: 10}\nstages: [{use: src}, {use: sink}]");
    static const char *const in_name[] = { "in" }, *const out_name[] = { "out" };
    gp_view in = { .type = { GP_U8, 2, { 3, 7 } } }, out = { .type = { GP_U8, 1, { 5 } } };
    memset(&errs, 0, sizeof errs);
    gp_dcall c = { .in = &in, .out = &out, .scope = &g->scope, .errs = &errs };
    static const struct { const char *text; int value; } cases[] = {
        { "in.shape[1] * k + out.shape[0]", 75 }, { "in.size", 21 }, { "ceil(in.size / k)", 3 },
        { "in.shape[2]", -1 }, { "x.size", -1 }, { "out.shape[0] - j", -1 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gp_node n = { .text = cases[i].text, .len = strlen(cases[i].text) };
        gp_num v = {0};
        bool ok = gp_dcall_eval(&c, in_name, 1, out_name, 1, &n, &v);
        ck_assert_msg(ok ? v.i == cases[i].value : cases[i].value < 0, "%s", cases[i].text);
    }
    ck_assert_int_eq(errs.n, 3);
}
END_TEST

/* ---- size ------------------------------------------------------------ */

/* 10,000 stages take well under a second; a step of quadratic cost takes many.
 * The bound leaves room for sanitizers and busy machines. */
START_TEST(many_stages)
{
    enum { MANY = 10000 };
    char *text = malloc(200 * MANY), *s = text;
    s += sprintf(s, "vars: {n: 3}\nbuffers:\n");
    for (int i = 0; i < MANY; i++)
        s += sprintf(s, "  b%d: {dtype: u8, shape: [4, 6], depth: n}\n", i);
    s += sprintf(s, "stages:\n  - {use: src, out: b0}\n");
    for (int i = 1; i < MANY; i++)
        s += sprintf(s, "  - {use: both, n: n * 2, in: b%d, out: b%d}\n", i - 1, i);
    sprintf(s, "  - {use: sink}\n");
    struct timespec a, b;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    const gp_graph *g = must(text);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    ck_assert_int_eq(g->nstages, MANY + 1);
    double seconds = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9;
    ck_assert_msg(seconds < 3, "%d stages took %g s", MANY, seconds);
    if (getenv("GP_TEST_TIMES"))
        fprintf(stderr, "resolve: %d stages in %.3f s\n", MANY, seconds);
    free(text);
}
END_TEST

Suite *suite_resolve(void)
{
    Suite *s = suite_create("resolve");
    TCase *t = tcase_create("graph");
    tcase_add_checked_fixture(t, up, down);
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, wires, 0, (int)(sizeof wired / sizeof *wired));
    tcase_add_test(t, uses_and_sources);
    tcase_add_loop_test(t, types, 0, (int)(sizeof typed / sizeof *typed));
    tcase_add_test(t, ends_and_rates);
    tcase_add_test(t, options_read);
    tcase_add_test(t, paths_are_relative_to_the_file);
    tcase_add_test(t, settings);
    tcase_add_loop_test(t, devices, 0, 10);
    tcase_add_loop_test(t, refuses, 0, (int)(sizeof bad / sizeof *bad));
    tcase_add_test(t, bad_files);
    tcase_add_test(t, partial_frames);
    tcase_add_test(t, expressions_of_calls);
    tcase_add_test(t, many_stages);
    suite_add_tcase(s, t);
    t = tcase_create("files");
    tcase_add_checked_fixture(t, enter_folder, leave_folder);
    tcase_add_test(t, stages_wait_for_files);
    tcase_add_test(t, missing_input_may_be_declared);
    tcase_add_test(t, constants);
    suite_add_tcase(s, t);
    return s;
}
