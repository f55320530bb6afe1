/* test_set.c - `--set PATH=VALUE`. */
#include "device/machine.h"
#include "idle.h"
#include "suite.h"

static gp_arena arena;
static gp_errs errs;
static gp_registry *registry;

static const gp_port ports[] = { { "x", GP_ACCEPT_ANY, false, "frames" }, { 0 } };
static const gp_port halves[] = { { "low", 0, false, "frames" }, { "high", 0, false, "frames" },
                                  { "rest", 0, true, "frames" }, { 0 } };
static const gp_kind halve = { GP_KIND("halve"), .help = "makes two of one", .in = ports,
                               .out = halves, .shape = as_declared, .run = run_idle };
static const gp_kind sink = { GP_KIND("sink"), .help = "takes frames", .in = ports,
                              .shape = as_declared, .run = run_idle };

static void setup(void)
{
    arena = (gp_arena){ 0 };
    errs = (gp_errs){ 0 };
    registry = gp_registry_create();
    ck_assert(gp_register(registry, &sink, &errs) && gp_register(registry, &halve, &errs));
}

static void teardown(void)
{
    gp_registry_destroy(registry);
    gp_arena_free(&arena);
}

static gp_spec *spec(void)
{
    static const char yaml[] =
        "streams: 2\n"
        "vars: {dir: photos, out: null}\n"
        "buffers:\n"
        "  photo: &b {dtype: u8, depth: 4}\n"
        "  soft: *b\n"
        "  was: {carry: soft}\n"
        "stages:\n  - {use: read, out: photo, path: x}\n  - {use: fir, taps: &taps [1, 2, 3]}\n"
        "  - {use: fir, taps: *taps}\n  - {use: split, out: {a: left, b: right}}\n"
        "  - {name: clean, use: lua, params: {floor: 8}}\n  - {use: join, out: [one, two]}\n  - {use: sink}\n"
        "  - {use: halve}\n"
        "  - {name: turn, use: loop, stages: [{use: blur}, {name: k, use: kernel, args: [a]}]}\n";
    gp_spec *s = gp_parse(&arena, yaml, sizeof yaml - 1, "p.yaml", &errs);
    ck_assert_ptr_nonnull(s);
    return s;
}

/* The node at a path of map keys and indices, like the path of --set but with stages by number. */
static const gp_node *at(const gp_node *n, const char *path)
{
    char word[64];
    while (n && *path) {
        size_t len = strcspn(path, ".");
        memcpy(word, path, len);
        word[len] = 0;
        path += len + (path[len] == '.');
        n = n->kind == GP_LIST ? n->item[*word - '0'] : gp_node_get(n, word);
    }
    return n;
}

static const struct { const char *set, *path, *want; } good[] = {
    { "streams=4", "streams", "4" },
    { "depth=auto", "depth", "auto" },
    { "stall_timeout=1.5s", "stall_timeout", "1.5s" },
    { "vars.dir=*.png", "vars.dir", "*.png" },
    { "vars.out=a=b: c #d", "vars.out", "a=b: c #d" },
    { "vars.out=\"a b\"", "vars.out", "a b" },
    { "vars.out=", "vars.out", "" },
    { "buffers.photo.depth=6", "buffers.photo.depth", "6" },
    { "buffers.photo.shape=[3, 4]", "buffers.photo.shape.1", "4" },
    { "buffers.fir.depth=6", "buffers.fir.depth", "6" },
    { "buffers.fir2.depth=6", "buffers.fir2.depth", "6" },
    { "buffers.left.depth=6", "buffers.left.depth", "6" },
    { "buffers.two.depth=6", "buffers.two.depth", "6" },
    { "buffers.clean.depth=6", "buffers.clean.depth", "6" },
    { "buffers.halve_low.depth=6", "buffers.halve_low.depth", "6" },
    { "buffers.halve_high.depth=6", "buffers.halve_high.depth", "6" },
    { "stages.clean.workers=4", "stages.4.workers", "4" },
    { "stages.clean.params.floor=9", "stages.4.params.floor", "9" },
    { "stages.clean.params.new=9", "stages.4.params.new", "9" },
    { "stages.read.params.new=9", "stages.0.params.new", "9" },
    { "stages.clean.window.x=4", "stages.4.window.x", "4" },
    { "stages.clean.window={x: {frames: 8}}", "stages.4.window.x.frames", "8" },
    { "stages.fir.taps.0=7", "stages.1.taps.0", "7" },
    { "stages.fir2.taps={a: b}", "stages.2.taps.a", "b" },
    { "stages.turn.stages.blur.sigma=2", "stages.8.stages.0.sigma", "2" },
    { "stages.turn.stages.k.args.0=b", "stages.8.stages.1.args.0", "b" },
    { "stages.turn.stages.1.entry=e", "stages.8.stages.1.entry", "e" },
};

TEST_EACH(sets, good)
{
    gp_spec *s = spec();
    ck_assert_msg(gp_spec_set(&arena, s, good[_i].set, registry, &errs), "%s: %s", good[_i].set, errs.e[0].msg);
    const gp_node *n = at(s->root, good[_i].path);
    ck_assert_msg(n && n->kind == GP_SCALAR && !strcmp(n->text, good[_i].want), "%s gave '%s'",
                  good[_i].set, n ? n->text : "nothing");
    ck_assert_ptr_eq(n->at.file, good[_i].set);
    ck_assert_int_eq(n->at.line, 0);
    ck_assert_str_eq(at(s->root, "stages.0.use")->text, "read");
}

TEST(aliases_stay)
{
    gp_spec *s = spec();
    ck_assert(gp_spec_set(&arena, s, "stages.fir.taps.1=7", registry, &errs));
    ck_assert(gp_spec_set(&arena, s, "buffers.photo.depth=9", registry, &errs));
    ck_assert_str_eq(at(s->root, "stages.1.taps.1")->text, "7");
    ck_assert_str_eq(at(s->root, "stages.2.taps.1")->text, "2");
    ck_assert_str_eq(at(s->root, "buffers.photo.depth")->text, "9");
    ck_assert_str_eq(at(s->root, "buffers.soft.depth")->text, "4");
}

TEST(empty_text_is_not_null)
{
    gp_spec *s = spec();
    ck_assert(gp_spec_set(&arena, s, "vars.out=", registry, &errs));
    ck_assert(at(s->root, "vars.out")->quoted);
}

static const struct { const char *set, *msg; } bad[] = {
    { "streams", "write PATH=VALUE, like streams=4" },
    { "=4", "write PATH=VALUE" },
    { "vars..x=4", "the path has an empty part" },
    { "vars.=4", "the path has an empty part" },
    { "stream=4", "no key 'stream'; did you mean 'streams'?" },
    { "bufers.x.depth=4", "no key 'bufers'; did you mean 'buffers'?" },
    { "streams.x=4", "'streams' is a single value and has no 'x'" },
    { "vars=4", "the path is too short; write vars.NAME=VALUE" },
    { "buffers.photo=4", "the path is too short; write buffers.NAME.KEY=VALUE" },
    { "stages.clean=4", "the path is too short; write stages.NAME.OPTION=VALUE" },
    { "vars.dri=4", "no variable under 'vars' is named 'dri'; did you mean 'dir'?" },
    { "buffers.phot.depth=4", "no buffer 'phot'; did you mean 'photo'?" },
    { "buffers.split.depth=4", "no buffer 'split'" },
    { "buffers.sink.depth=4", "no buffer 'sink'" },
    { "buffers.halve.depth=4", "no buffer 'halve'" },
    { "buffers.halve_rest.depth=4", "no buffer 'halve_rest'" },
    { "buffers.halve_hihg.depth=4", "no buffer 'halve_hihg'; did you mean 'halve_high'?" },
    { "stages.clena.workers=4", "no stage 'clena'; did you mean 'clean'?" },
    { "stages.0.workers=4", "no stage '0'" },
    { "stages.turn.stages.blurr.sigma=4", "no stage 'blurr'; did you mean 'blur'?" },
    { "stages.turn.stages.2.sigma=4", "'stages' is a list of 2, counted from 0; it has no '2'" },
    { "stages.was.init=4", "'was' is a buffer, which carries another: write buffers.was.KEY=VALUE" },
    { "stages.fir.taps.3=4", "'taps' is a list of 3, counted from 0; it has no '3'" },
    { "stages.fir.taps.x=4", "'taps' is a list of 3, counted from 0; it has no 'x'" },
    { "stages.read.path.x=4", "'path' is a single value and has no 'x'" },
    { "streams=[1, 2", "this '[' is never closed" },
    { "streams={a: 1, a: 2}", "key 'a' is given twice" },
};

TEST_EACH(refused, bad)
{
    ck_assert_msg(!gp_spec_set(&arena, spec(), bad[_i].set, registry, &errs), "%s", bad[_i].set);
    ck_assert_int_eq(errs.n, 1);
    ck_assert_msg(!strncmp(errs.e[0].msg, bad[_i].msg, strlen(bad[_i].msg)), "got %s\nwant %s",
                  errs.e[0].msg, bad[_i].msg);
    ck_assert_ptr_eq(errs.e[0].at.file, bad[_i].set);
}

TEST_SUITE(set, setup, teardown, 0)
