/* test_resolve.c - from spec to graph: wiring, types, options, files, size.
 * What is refused is in test_resolve_errors.c. */
#include "base/npy.h"
#include "effort.h"
#include "pipe.h"
#include "world.h"

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
            P("%c%s:%s", p ? ' ' : '(', st->in_name[p], st->in[p] < 0 ? "-" : g->buffer[st->in[p]].name);
        P("%s", st->nin ? ")" : "");
        for (int p = 0; p < st->nout; p++)
            P(" %s:%s", st->out_name[p], st->out[p] < 0 ? "-" : g->buffer[st->out[p]].name);
    }
#undef P
    return s;
}

static const struct { const char *yaml, *wiring; } wired[] = {
    { "stages: [{use: src}, {use: both}, {use: sink}]", "src out:src | both(in:src) out:both | sink(in:both)" },
    { "stages: [{use: src}, {use: host}, {use: host}, {use: host, name: last}, {use: sink}]",
      "src out:src | host(in:src) out:host | host2(in:host) out:host2 | last(in:host2) out:last | sink(in:last)" },
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
      "src out:src | split(in:src) low:split_low high:split_high rest:- | sink(in:split_low) | sink2(in:split_high)" },
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
    { "stages: [{use: src}, {use: free, in: [src], out: [p, q]}, {use: more, in: [p, q]}, {use: sink}]",
      "src out:src | free(in:src) p:p q:q | more(x:p q:q) out:more | sink(in:more)" },
    { "stages: [{use: src}, {use: more}, {use: sink}]", "src out:src | more(x:src) out:more | sink(in:more)" },
    /* windows: one for all that have the same, before the first of them */
    { "stages: [{use: src}, {use: free, window: {in: 3}}, {use: sink}]",
      "src out:src | src.window3(in:src) out:src.window3 | free(in:src.window3) out:free | sink(in:free)" },
    { "vars: {w: 2}\nstages: [{use: src}, {use: free, in: {x: src}, window: {x: {frames: 2 * w + 1, partial: drop}}}, "
      "{use: sink}]", "src out:src | src.window5.drop(in:src) out:src.window5.drop | free(x:src.window5.drop) out:free"
      " | sink(in:free)" },
    { "stages: [{use: free, in: {a: s, b: s, c: s}, window: {c: 2, a: {frames: 2}}, out: f}, {use: sink}, {use: src, "
      "out: s}, {use: more, in: [s, f, s], window: {f: 2, s: 2}}, {use: sink}]", "src out:s | s.window2(in:s) "
      "out:s.window2 | free(a:s.window2 b:s c:s.window2) out:f | sink(in:f) | f.window2(in:f) out:f.window2 | "
      "more(x:s f:f.window2 s:s.window2) out:more | sink2(in:more)" },
};

TEST_EACH(wires, wired)
{
    ck_assert_str_eq(wiring(world_must(wired[_i].yaml)), wired[_i].wiring);
}

TEST(uses_and_sources)
{
    const gp_graph *g = world_must(
        "stages: [{use: src, out: a}, {use: src, out: b}, {use: host, in: a},\n"
        "{use: add, in: [host, b]}, {use: add, name: twice, in: [add, add]},\n"
        "{use: sink}, {use: sink, in: host}]");
    const gp_buffer *host = world_buffer(g, "host"), *add = world_buffer(g, "add");
    ck_assert_int_eq(host->nuse, 2);
    ck_assert_ptr_eq(&g->stage[host->use[0].stage], world_stage(g, "add"));
    ck_assert_ptr_eq(&g->stage[host->use[1].stage], world_stage(g, "sink2"));
    ck_assert_int_eq(add->nuse, 2);
    ck_assert_int_eq(add->use[0].port, 0);
    ck_assert_int_eq(add->use[1].port, 1);
    ck_assert_ptr_eq(&g->stage[add->producer.stage], world_stage(g, "add"));
    ck_assert_uint_eq(world_stage(g, "host")->sources[0], 1u << 0);
    ck_assert_uint_eq(world_stage(g, "add")->sources[0], 1u << 0 | 1u << 1);
    ck_assert_uint_eq(world_stage(g, "sink")->sources[0], 1u << 0 | 1u << 1);
    ck_assert_uint_eq(world_stage(g, "sink2")->sources[0], 1u << 0);
}

/* ---- types ----------------------------------------------------------- */

static const struct { const char *yaml, *buffer, *type; } typed[] = {
    { "stages: [{use: src}, {use: both}, {use: sink}]", "both", "u8 [4, 6]" },
    { "buffers: {src: {dtype: f32}}\nstages: [{use: src}, {use: float}, {use: sink}]", "float", "f32 [4, 6]" },
    { "buffers: {src: {shape: [2, 3, 4]}}\nstages: [{use: src}, {use: sink}]", "src", "u8 [2, 3, 4]" },
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

TEST_EACH(types, typed)
{
    char text[128];
    const gp_graph *g = world_must(typed[_i].yaml);
    ck_assert_str_eq(gp_type_text(&world_buffer(g, typed[_i].buffer)->type, text), typed[_i].type);
}

TEST(ends)
{
    const gp_graph *g = world_must(
        "stages: [{use: src, b: true, out: a}, {use: src, out: b}, {use: host, in: a, out: c},\n"
        "{use: add, in: [c, b], out: d}, {use: every, in: c, out: e}, {use: every, out: f},\n"
        "{use: sink}, {use: sink, in: d}, {use: sink, in: e}]");
    static const struct { const char *name; bool endless; } want[] = {
        { "a", true }, { "b", false }, { "c", true }, { "d", false }, { "e", true }, { "f", true } };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const gp_buffer *b = world_buffer(g, want[i].name);
        ck_assert_msg(b->endless == want[i].endless, "%s", b->name);
    }
    ck_assert(world_stage(g, "src")->endless && !world_stage(g, "src2")->endless);
}

/* ---- values ---------------------------------------------------------- */

static const struct opts *opts_of(const char *flow)
{
    char *text = format("vars: {four: 2 * 2, w: blue, t: 2ms, q: \"${w}!\"}\n"
                        "stages: [{use: src}, {use: both, %s}, {use: sink}]", flow);
    return world_stage(world_must(text), "both")->opts;
}

TEST(options_read)
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
    ck_assert(o->floats.n == 3 && o->floats.v[0] == 4 && o->floats.v[1] == 1000 && o->floats.v[2] == -2);
    ck_assert_str_eq(o->node->text, "in.size");

    o = opts_of("n: 6.0e0, b: TRUE, ints: [5.0, 1e3, -0x1F], floats: [0xff, -0.0]");
    ck_assert(o->n == 6 && o->b && o->ints.v[0] == 5 && o->ints.v[1] == 1000 && o->ints.v[2] == -31);
    ck_assert(o->floats.v[0] == 255 && o->floats.v[1] == 0);
    ck_assert(!opts_of("b: False")->b && opts_of("b: True")->b && !opts_of("b: FALSE")->b);

    /* a text stays as it is written */
    static const struct { const char *said, *text; } texts[] = {
        { "010", "010" }, { "null", "null" }, { "'${q}-$$'", "blue!-$" }, { "~", "~" },
        { "'${env:PLACE}${env:NONE:-x}'", "therex" }, { "no", "no" } };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ck_assert_str_eq(opts_of(format("s: %s", texts[i].said))->s, texts[i].text);
    }
}

TEST(paths_are_relative_to_the_file)
{
    static const struct { const char *file, *said, *path; } cases[] = {
        { "p.yaml", "x.bin", "x.bin" }, { "a/b/p.yaml", "x.bin", "a/b/x.bin" },
        { "a/p.yaml", "/x.bin", "/x.bin" }, { "/p.yaml", "x", "/x" },
        { "a/p.yaml", "stdin", "stdin" }, { "a/p.yaml", "../x", "a/../x" } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = format("stages: [{use: src}, {use: both, file: %s}, {use: sink}]", cases[i].said);
        const gp_graph *g = world_resolve_file(text, cases[i].file);
        ck_assert_ptr_nonnull(g);
        ck_assert_str_eq(((const struct opts *)world_stage(g, "both")->opts)->file, cases[i].path);
    }
}

TEST(settings)
{
    const char *shared = "{x-a: {depth: &n 7.0}, x-: 1, depth: *n, stages: [{use: src}, {use: sink}]}";
    ck_assert_int_eq(world_must(shared)->depth, 7);
    const gp_graph *g = world_must("stages: [{use: src}, {use: sink}]");
    ck_assert_str_eq(g->name, "p");
    ck_assert(g->streams == 0 && g->batch == 0 && g->launch == GP_LAUNCH_GRAPH
              && g->sync == GP_SYNC_AUTO && g->on_error == GP_ON_ERROR_STOP);
    ck_assert_int_eq(g->stall_ns, 30000000000);
    ck_assert_int_eq(world_buffer(g, "src")->depth, 6);
    ck_assert_int_eq(g->ndevices, 0);
    ck_assert_str_eq(g->device_why, "auto: no NVIDIA driver");

    g = world_must("{pipeline: x y, device: cpu, depth: 2 * k, streams: 4, batch: 1, launch: "
             "stream, sync: spin,\non_error: drop, stall_timeout: 0, vars: {k: 4}, \n"
             "buffers: {h: {depth: 5}}, stages: [{use: src}, {use: both, on: host, out: h, workers: 3, zero: true}, "
             "{use: carry, on_hole: splice}, {use: both}, {use: sink}]}");
    ck_assert_str_eq(g->name, "x y");
    ck_assert(g->streams == 4 && g->batch == 1 && g->launch == GP_LAUNCH_STREAM
              && g->sync == GP_SYNC_SPIN && g->on_error == GP_ON_ERROR_DROP && g->stall_ns == 0);
    ck_assert_int_eq(world_buffer(g, "src")->depth, 8);
    ck_assert(!world_buffer(g, "src")->depth_said && world_buffer(g, "h")->depth_said);
    ck_assert_int_eq(world_buffer(g, "h")->depth, 5);
    ck_assert_str_eq(g->device_why, "cpu");
    const gp_stage *both = world_stage(g, "both"), *both2 = world_stage(g, "both2");
    const gp_stage *carry = world_stage(g, "carry");
    ck_assert(!both->device && both->workers == 3 && both->zero && both->batched && both->frame_info);
    ck_assert(both2->device && both2->workers == 1 && !both2->zero);
    ck_assert(carry->device && carry->state == 8 && carry->on_hole == GP_ON_HOLE_SPLICE);
    gp_num v;
    ck_assert(g->scope.var(&g->scope, "k", &v) && v.is_int && v.i == 4);
    ck_assert(!g->scope.var(&g->scope, "kk", &v));
}

TEST_LOOP(devices, 0, 10)
{
    static const struct { const char *said; int n, device; const char *why; int code; } cases[] = {
        { "auto", 2, 0, "auto: H; the first, since free memory is not known", 0 }, { "cuda", 2, 0, "cuda: H", 0 },
        { "cuda:1", 2, 1, "cuda:1: H", 0 }, { "cpu", 2, -1, "cpu", 0 },
        { "auto", 0, -1, "auto: no NVIDIA driver", 0 },
        { "cuda", 0, 0, "there is no device 'cuda': no NVIDIA driver; write device: auto or cpu "
          "('gpipe plan --device cuda' plans for one that is not here)",
          GP_E_RESOURCE },
        { "cuda:2", 2, 0, "there is no device 'cuda:2'; this machine has 2, numbered from 0", GP_E_RESOURCE },
        { "gpu", 2, 0, "'device' must be auto, all, cpu, cuda:N, cuda:0-3, or a list of these, not 'gpu'", GP_E_SPEC },
        { "'cuda:'", 2, 0, "'device' must be auto, all, cpu, cuda:N, cuda:0-3, or a list of these, not 'cuda:'", GP_E_SPEC },
        { "cuda:x", 2, 0, "'device' must be auto, all, cpu, cuda:N, cuda:0-3, or a list of these, not 'cuda:x'", GP_E_SPEC },
    };
    char *text = format("device: %s\nstages: [{use: src}, {use: sink}]", cases[_i].said);
    world.machine.ndevices = cases[_i].n;
    strcpy(world.machine.device[0].name, "H");
    strcpy(world.machine.device[1].name, "H");
    const gp_graph *g = world_resolve(text);
    if (cases[_i].code) {
        ck_assert_ptr_null(g);
        ck_assert_int_eq(world.errs.n, 1);
        ck_assert_int_eq((int)world.errs.e[0].code, cases[_i].code);
        first_error_is(&world.errs, 1, cases[_i].why);
    } else {
        ck_assert_int_eq(g->ndevices ? g->device[0].index : -1, cases[_i].device);
        ck_assert_str_eq(g->device_why, cases[_i].why);
    }
}

/* ---- files ----------------------------------------------------------- */

static const char *folder;

static void enter_folder(void)
{
    world_up();
    folder = pipe_dir();
}

static const char *in_folder(const char *name)
{
    return format("%s/%s", folder, name);
}

TEST_CASE(files, enter_folder, world_down, 0)

TEST(types_come_from_files)
{
    pipe_file(folder, "six", "123456", 6);
    char *text = format("stages: [{use: open, file: six}, {use: float}, {use: sink}]");
    ck_assert_ptr_null(world_resolve_file(text, in_folder("p.yaml")));
    ck_assert_int_eq(world.looks, 1);
    ck_assert_int_eq(world.errs.n, 1);
    ck_assert_msg(strstr(world.errs.e[0].msg, "takes f32 at 'in', but 'open' is u8") != NULL, "%s",
                  world.errs.e[0].msg);
    text = format("stages: [{use: open, file: six}, {use: host}, {use: sink}]");
    const gp_graph *g = world_resolve_file(text, in_folder("p.yaml"));
    ck_assert_ptr_nonnull(g);
    ck_assert_int_eq(world_buffer(g, "host")->type.dim[0], 6);
    ck_assert_int_eq(world.looks, 1);
}

TEST(missing_input_may_be_declared)
{
    static const char declared[] = "buffers: {open: {dtype: u8, shape: [5]}}\n"
        "stages: [{use: open, file: none}, {use: host}, {use: sink}]";
    static const char half[] = "buffers: {open: {dtype: u8}}\n"
        "stages: [{use: open, file: none}, {use: host}, {use: sink}]";
    ck_assert_ptr_null(world_resolve(declared));
    world.probe.lenient = true;
    const gp_graph *g = world_resolve(declared);
    ck_assert_ptr_nonnull(g);
    ck_assert_int_eq(world_buffer(g, "host")->type.dim[0], 5);
    ck_assert_int_eq(world.errs.n, 1);
    ck_assert_int_eq((int)world.errs.e[0].code, GP_E_WARN);
    ck_assert_str_eq(world.errs.e[0].msg, "stage 'open': cannot read 'none'");
    ck_assert_ptr_null(world_resolve(half));
    ck_assert_int_eq(world.errs.failed, 1);
}

TEST(constants)
{
    static const char yaml[] = "buffers: {k: {const: k.npy}}\n"
        "stages: [{use: src}, {use: add, in: [src, k]}, {use: sink}]";
    char file[1024];
    gp_type t = { GP_F32, 2, { 3, 5 } };
    size_t head = gp_npy_header(&t, file, sizeof file), all = head + gp_bytes(&t);
    pipe_file(folder, "k.npy", file, all);
    const gp_graph *g = world_resolve_file(yaml, in_folder("p.yaml"));
    ck_assert_ptr_nonnull(g);
    const gp_buffer *k = world_buffer(g, "k");
    ck_assert(gp_type_same(&k->type, &t));
    ck_assert_str_eq(k->path, in_folder("k.npy"));
    ck_assert_int_eq(k->producer.stage, -1);
    ck_assert_int_eq(k->nuse, 1);
    ck_assert_uint_eq(world_stage(g, "add")->sources[0], 1u);

    pipe_file(folder, "k.npy", file, all - 1);
    world.probe = (gp_probe){ .arena = &world.arena, .look = gp_probe_look };
    ck_assert_ptr_null(world_resolve_file(yaml, in_folder("p.yaml")));
    ck_assert_ptr_nonnull(strstr(world.errs.e[0].msg, "is shorter than its header says"));

    pipe_file(folder, "k.npy", file, all);
    world.probe = (gp_probe){ .arena = &world.arena, .look = gp_probe_look };
    ck_assert_ptr_null(world_resolve_file("buffers: {k: {const: k.npy}}\n"
                                    "stages: [{use: host, in: k}, {use: sink}]", in_folder("p.yaml")));
    ck_assert_ptr_nonnull(strstr(world.errs.e[0].msg, "reads nothing but constants"));
}

/* ---- run time -------------------------------------------------------- */

TEST_CASE(texts, world_up, world_down, 0)

TEST(partial_frames)
{
    const gp_graph *g = world_must(
        "buffers: {l: {like: src, dtype: f32}, t: {dtype: u8, shape: 9}}\n"
        "stages: [{use: src}, {use: both, node: 'in.shape[0]'}, {use: free, in: src, out: l},\n"
        "{use: free, in: src, out: t}, {use: free, in: [both, l, t], out: []}]");
    gp_type in = { GP_U8, 2, { 3, 6 } }, out[GP_MAXPORT];
    static const struct { const char *stage, *type; } cases[] = {
        { "both", "u8 [3, 6]" }, { "free", "f32 [3, 6]" }, { "free2", "u8 [9]" } };
    memset(&world.errs, 0, sizeof world.errs);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128];
        ck_assert_msg(gp_partial_shape(g, world_stage(g, cases[i].stage), &in, out,
                      &world.errs), "%s", world.errs.e[0].msg);
        ck_assert_str_eq(gp_type_text(&out[0], text), cases[i].type);
    }
    in.dim[0] = 5;
    ck_assert(!gp_partial_shape(g, world_stage(g, "both"), &in, out, &world.errs));
    ck_assert_ptr_nonnull(strstr(world.errs.e[0].msg, "is u8 [4, 6]"));
}

TEST(expressions_of_calls)
{
    const gp_graph *g = world_must("vars: {k: 10}\nstages: [{use: src}, {use: sink}]");
    static const char *const in_name[] = { "in" }, *const out_name[] = { "out" };
    gp_view in = { .type = { GP_U8, 2, { 3, 7 } } }, out = { .type = { GP_U8, 1, { 5 } } };
    memset(&world.errs, 0, sizeof world.errs);
    gp_dcall c = { .in = &in, .out = &out, .scope = &g->scope, .errs = &world.errs };
    static const struct { const char *text; int value; } cases[] = {
        { "in.shape[1] * k + out.shape[0]", 75 }, { "in.size", 21 }, { "ceil(in.size / k)", 3 },
        { "in.shape[2]", -1 }, { "x.size", -1 }, { "out.shape[0] - j", -1 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gp_node n = { .text = cases[i].text, .len = strlen(cases[i].text) };
        gp_num v = {0};
        bool ok = gp_dcall_eval(&c, in_name, 1, out_name, 1, &n, &v);
        ck_assert_msg(ok ? v.i == cases[i].value : cases[i].value < 0, "%s", cases[i].text);
    }
    ck_assert_int_eq(world.errs.n, 3);
}

/* What a kind may evaluate at run time is parsed when it is read, and so is a number. */
TEST(expressions_are_kept)
{
    const gp_graph *g = world_must(
        "vars: {k: 10}\nstages: [{use: src}, {use: both, n: k + 1, wait: 2ms, s: k, file: k}, {use: sink},\n"
        "  {use: dev, in: src, out: d, node: {a: [in.size, {b: 2 * (k + 1)}], c: 'not, one'}},\n"
        "  {use: sink, in: d}]");
    static const struct { const char *key; bool kept; } both[] = {
        { "n", true }, { "wait", true }, { "s", false }, { "file", false }, { "use", false } };
    const gp_stage *st = world_stage(g, "both");
    for (size_t i = 0; i < sizeof both / sizeof *both; i++)
        ck_assert_int_eq(gp_node_get(st->node, both[i].key)->expr != NULL, both[i].kept);
    const gp_node *n = gp_node_get(world_stage(g, "dev")->node, "node"), *a = gp_node_get(n, "a");
    ck_assert_ptr_nonnull(a->item[0]->expr);
    ck_assert_ptr_nonnull(a->item[1]->item[0]->expr);
    ck_assert_ptr_null(gp_node_get(n, "c")->expr);
}

/* ---- size ------------------------------------------------------------ */

static double resolve_stages(int n, void *arg)
{
    char *text = malloc(200 * (size_t)n + 200), *s = text;
    s += sprintf(s, "vars: {n: 3}\nbuffers:\n");
    for (int i = 0; i < n; i++)
        s += sprintf(s, "  b%d: {dtype: u8, shape: [4, 6], depth: n}\n", i);
    s += sprintf(s, "stages:\n  - {use: src, out: b0}\n");
    for (int i = 1; i < n; i++)
        s += sprintf(s, "  - {use: both, n: n * 2, in: b%d, out: b%d}\n", i - 1, i);
    sprintf(s, "  - {use: sink}\n");
    effort_begin();
    const gp_graph *g = world_must(text);
    double took = effort_end();
    ck_assert_int_eq(g->nstages, n + 1);
    free(text);
    return took;
}

TEST_EFFORT(many_stages, 1)
{
    effort_is_linear("stages", resolve_stages, NULL, 300);
}

TEST_SUITE(resolve, world_up, world_down, 0)
