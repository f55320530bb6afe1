/* test_plugin.c - plug-ins that load, that do not, and where they are found. They are compiled here, but for one that was
 * kept from an earlier version. */
#include <sys/stat.h>
#include "gpipe/gpipe.h"
#include "pipe.h"
#include "suite.h"

static const char *dir;
static gp_registry *kinds;
static gp_errs errs;

static void up(void)
{
    dir = pipe_dir();
    errs = (gp_errs){ .n = 0 };
    kinds = gp_registry_create();
    ck_assert(gp_register_builtin(kinds, &errs));
}

static void down(void)
{
    gp_registry_destroy(kinds);
}

/* ---- one that loads, and what is wrong with others ------------------------ */

static const char whole[] =
    "#include <gpipe/stage.h>\n"
    "struct o { int64_t n; };\n"
    "static bool shape(gp_shape *s) { s->out[0] = (gp_type){ GP_I32, 1, { 1 } }; return true; }\n"
    "static bool run(gp_call *c, gp_frame *f, int n)\n"
    "{ (void)n; *(int32_t *)f->out[0].data = 7 + (int)((const struct o *)c->opts)->n; if (f->index) f->status = GP_END;"
    " return true; }\n"
    "static const gp_port out[] = { { .name = \"out\" }, { 0 } };\n"
    "static const gp_opt opts[] = { { GP_INT(struct o, n), .help = \"more\" }, { 0 } };\n"
    "#define KIND(n, ...) { GP_KIND(n), .help = \"seven\", .out = out, .shape = shape, .run = run, __VA_ARGS__ }\n"
    "static const gp_kind seven = KIND(KIND_NAME, .opts = opts, .opts_size = sizeof(struct o));\n";

/* Makes dir/name of the text above and more lines. */
static const char *make(const char *name, const char *flags, const char *more)
{
    static char file[600];
    char *text;
    char *source = format("%s.c", name);
    ck_assert(asprintf(&text, "%s%s\n", whole, more) > 0);
    pipe_text(dir, source, text);
    free(text);
    snprintf(file, sizeof file, "%s/%s.so", dir, name);
    char *command = format("${CC:-cc} -std=c11 -shared -fPIC -Iengine/include %s %s/%s -o %s", flags, dir, source,
             file);
    ck_assert_msg(!system(command), "%s", command);
    return file;
}

#define NAMED(kind) "-DKIND_NAME='\"" kind "\"' "
#define SEVENTH "GP_PLUGIN(\"sevens\", \"1.5\", &seven);"

/* `least` has what a source needs, and no more. */
TEST(loads)
{
    const char *file = make("a", NAMED("seven"), "static bool one(gp_call *c, gp_frame *f, int n)\n"
        "{ (void)c, (void)n; *(int32_t *)f->out[0].data = 1; f->status = f->index ? GP_END : GP_OK; return true; }\n"
        "static const gp_kind least = { GP_KIND(\"least\"), .help = \"one\", .out = out, .shape = shape, .run = one };\n"
        "GP_PLUGIN(\"sevens\", \"1.5\", &seven, &least);");
    for (int twice = 0; twice < 2; twice++)
        ck_assert_msg(gp_plugin_load(kinds, file, &errs), "%s", errs.e[0].msg);
    const gp_plugin_info *of = gp_kind_plugin(kinds, gp_kind_find(kinds, "seven"));
    ck_assert_ptr_nonnull(of);
    ck_assert_str_eq(of->name, "sevens");
    ck_assert_str_eq(of->version, "1.5");
    ck_assert(strstr(of->file, "/a.so") != NULL);
    ck_assert_ptr_null(gp_kind_plugin(kinds, gp_kind_find(kinds, "read")));
    const char yaml[] = "stages:\n  - {use: seven, n: 1}\n  - {use: least}\n  - {use: concat, in: [seven, least], out: both}\n"
        "  - {use: write, path: out.raw}\n";
    gp_pipeline *p = pipe_compiled(dir, yaml, (gp_config){ .registry = kinds });
    ck_assert_int_eq(gp_pipeline_run(p, NULL, &errs), GP_DONE);
    gp_pipeline_destroy(p);
    OWNED int32_t *got = pipe_read_all(dir, "out.raw", 8);
    ck_assert(got[0] == 8 && got[1] == 1);
}

/* Nothing of a frame is what an earlier one left there, but of a kind that relies on that. */
TEST(writes_nothing)
{
    const char *file = make("a", NAMED("seven"), "static bool none(gp_call *c, gp_frame *f, int n)\n"
        "{ (void)c, (void)n; f->status = f->index == 9 ? GP_END : GP_OK; return true; }\n"
        "static bool first(gp_call *c, gp_frame *f, int n)\n"
        "{ if (f->out[0].fresh) *(int32_t *)f->out[0].data = 1; return none(c, f, n); }\n"
        "static bool keep(gp_shape *s) { s->keeps_slots = true; return shape(s); }\n"
        "static const gp_kind nothing = { GP_KIND(\"nothing\"), .help = \"none\", .out = out, .shape = shape, .run = none };\n"
        "static const gp_kind keeps = { GP_KIND(\"keeps\"), .help = \"one\", .out = out, .shape = keep, .run = first };\n"
        "static const gp_port in[] = { { \"in\", GP_ACCEPT_ANY, .help = \"any\" }, { 0 } };\n"
        "static bool record(gp_dcall *c) { return c != 0; }\n"
        "#define ON_DEVICE(s) .help = \"none\", .in = in, .out = out, .shape = s, .record = record\n"
        "static const gp_kind idle = { GP_KIND(\"idle\"), ON_DEVICE(shape) }, rests = { GP_KIND(\"rests\"), ON_DEVICE(keep) };\n"
        "GP_PLUGIN(\"sevens\", \"1.5\", &seven, &nothing, &keeps, &idle, &rests);");
    ck_assert_msg(gp_plugin_load(kinds, file, &errs), "%s", errs.e[0].msg);
    static const char *const uses[] = { "nothing", "seven}, {use: idle", "keeps", "seven}, {use: rests" };
    for (int i = 0; i < 4; i++) {
        const char *yaml = format("stages: [{use: %s}, {use: write, path: out.raw}]\n", uses[i]);
        const char *error = format("stage '%s' leaves 1 of the 1 elements of 'out' unwritten in frame 0, such as [0]",
                                   i ? "idle" : "nothing");
        gp_pipeline *p = pipe_compiled(dir, yaml, (gp_config){ .registry = kinds });
        errs = (gp_errs){ .n = 0 };
        ck_assert_int_eq(gp_pipeline_run(p, NULL, &errs), i < 2 ? GP_ERROR : GP_DONE);
        ck_assert_msg(i > 1 || strstr(errs.e[0].msg, error), "%s", errs.e[0].msg);
        gp_pipeline_destroy(p);
    }
}

static const struct { const char *stages, *sets, *says; } writers[] = {
    { "{use: marks, in: a, at: 2, frame: 0}, {use: write, in: marks, path: m.npy}, {use: write, in: a, path: a.npy}", NULL,
      "stage 'marks' (plug-in sevens 1.5) wrote into its input 'in': an element of [0, 0] to [0, 2] of frame 0 (counted from 0) "
      "changed while run() had it. It may write its outputs alone" },
    { "{use: marks, in: a, at: 2, frame: 1}, {use: write, in: marks, path: m.npy}", "poison",
      "wrote into its input 'in': element [0, 2] of frame 1 (counted from 0) changed" },
    { "{use: marks, in: a, at: 150, frame: 0}, {use: write, in: marks, path: m.npy}, {use: least, in: a}", NULL,
      "an element of [0, 128] to [0, 191] of frame 0 (counted from 0) changed while run() had it (or stage 'least' (plug-in "
      "sevens 1.5) did, which reads it, too)" },
    { "{use: marks, in: a, at: 2, frame: 9}, {use: write, in: marks, path: m.npy}", "poison", NULL },
    { "{use: marks, in: a, at: 2, frame: 0, drops: 1}, {use: write, in: marks, path: m.npy}", NULL, "wrote into its input" },
};

/* What others read, too, is as it was made. The frame whose input is changed is one that a stage may drop. */
TEST_EACH(writes_input, writers)
{
    const char *file = make("a", NAMED("seven"), "#include <string.h>\n"
        "struct m { int64_t at, frame, drops; };\n"
        "static bool same(gp_shape *s) { s->out[0] = s->in[0]; return true; }\n"
        "static bool any(gp_shape *s) { return s->any_length = true; }\n"
        "static bool mark(gp_call *c, gp_frame *f, int n)\n"
        "{ const struct m *o = c->opts; (void)n; memcpy(f->out[0].data, f->in[0].data, gp_bytes(&f->in[0].type));\n"
        "  if ((int64_t)f->index == o->frame) { ((int32_t *)f->in[0].data)[o->at] = 7; f->status = o->drops ? GP_DROP : GP_OK; }"
        " return true; }\n"
        "static bool none(gp_call *c, gp_frame *f, int n) { (void)c, (void)f, (void)n; return true; }\n"
        "static const gp_port in[] = { { \"in\", GP_ACCEPT_ANY, .help = \"any\" }, { 0 } };\n"
        "static const gp_opt places[] = { { GP_INT(struct m, at), .help = \"where\" }, { GP_INT(struct m, frame), .help = \"when\" },"
        " { GP_INT(struct m, drops), .help = \"how\" }, { 0 } };\n"
        "static const gp_kind marks = { GP_KIND(\"marks\"), .help = \"marks\", .in = in, .out = out, .shape = same, .run = mark,"
        " .opts = places, .opts_size = sizeof(struct m) };\n"
        "static const gp_kind least = { GP_KIND(\"least\"), .help = \"none\", .in = in, .shape = any, .run = none };\n"
        "GP_PLUGIN(\"sevens\", \"1.5\", &seven, &marks, &least);");
    ck_assert_msg(gp_plugin_load(kinds, file, &errs), "%s", errs.e[0].msg);
    int64_t columns = strstr(writers[_i].stages, "150") ? 200 : 3;
    const char *yaml = format("buffers: {a: {dtype: i32, shape: [1, %lld]}}\nstages: [{use: read, path: /dev/zero, format: raw, "
                              "frames: 4, out: a}, %s]\n", (long long)columns, writers[_i].stages);
    gp_pipeline *p = pipe_compiled(dir, yaml, (gp_config){ .registry = kinds });
    const char *says = writers[_i].says;
    gp_run_options options = { .poison = writers[_i].sets != NULL };
    ck_assert_int_eq(gp_pipeline_run(p, &options, &errs), says ? GP_ERROR : GP_DONE);
    ck_assert_msg(says ? strstr(errs.e[0].msg, says) != NULL : !errs.n, "%s", errs.n ? errs.e[0].msg : "no error");
    gp_pipeline_destroy(p);
}

static const struct { const char *flags, *more, *says; } refused[] = {
    { "", "const gp_plugin gp_plugin_entry = { GP_ABI + 1, sizeof(gp_plugin), \"a\", \"1\", (const gp_kind *const[]){ &seven, 0 } };",
      "was built for a newer gpipe: its ABI is 3, that of this gpipe 2" },
    { "", "const gp_plugin gp_plugin_entry = { GP_ABI - 1, sizeof(gp_plugin), \"a\", \"1\", (const gp_kind *const[]){ &seven, 0 } };",
      "was built for another gpipe: its ABI is 1, that of this gpipe 2; build it again with the headers of this gpipe" },
    { "", "struct { gp_plugin p; int *more; } gp_longer __asm__(\"gp_plugin_entry\") = { { GP_ABI, sizeof gp_longer, \"a\", \"1\", "
      "(const gp_kind *const[]){ &seven, 0 } }, (int *)1 };", "uses something that this gpipe does not have (byte 40 of "
      "gp_plugin_entry); it needs a newer gpipe" },
    { "", "const gp_plugin gp_plugin_entry = { GP_ABI, sizeof(gp_plugin), \"\", \"1\", (const gp_kind *const[]){ &seven, 0 } };",
      "lacks a name, a version or kinds" },
    { "", "", "is no plug-in of gpipe: it has no symbol 'gp_plugin_entry'" },
    { "", "void gp_not_yet(void); void *f(void); void *f(void) { gp_not_yet(); return 0; }\n" SEVENTH,
      "cannot be opened: undefined symbol: gp_not_yet; it needs a newer gpipe, or a program that shows its functions (-rdynamic)" },
    { "", "void adc_read(void); void *f(void); void *f(void) { adc_read(); return 0; }\n" SEVENTH,
      "cannot be opened: undefined symbol: adc_read; link it with the library that has this symbol" },
    { NAMED("gray"), SEVENTH, "there is a kind 'gray' already, which is built in" },
    { NAMED("first"), SEVENTH, "there is a kind 'first' already, of plug-in 'firsts' 0.1 (" },
    { NAMED("other"), "static const gp_kind b = KIND(\"read\", 0); GP_PLUGIN(\"two\", \"1\", &seven, &b);",
      "there is a kind 'read' already, which is built in" },
    { NAMED("no name"), SEVENTH, "a kind is named 'no name'" },
    { "", "static const gp_kind k = { GP_KIND(\"k\"), .help = \"none\", .out = out, .shape = shape }; GP_PLUGIN(\"k\", \"1\", &k, "
      "&seven);", "kind 'k' has no run(), nor record() for the device" },
    { "", "struct d { int64_t device; };\nstatic const gp_opt o[] = { { GP_INT(struct d, device), .help = \"h\" }, { 0 } };\n"
      "static const gp_kind k = KIND(\"k\", .opts = o, .opts_size = 8); GP_PLUGIN(\"k\", \"1\", &k);",
      "kind 'k': 'device' is a key of every stage, and no name for an option" },
    { NAMED("x"), "GP_PLUGIN(\"firsts\", \"2\", &seven);", "is named 'firsts', as /" },
};

TEST_EACH(refuses, refused)
{
    const char *flags = *refused[_i].flags ? refused[_i].flags : NAMED("seven");
    ck_assert(gp_plugin_load(kinds, make("first", NAMED("first"), "GP_PLUGIN(\"firsts\", \"0.1\", &seven);"), &errs));
    ck_assert(!gp_plugin_load(kinds, make("bad", flags, refused[_i].more), &errs));
    ck_assert_int_eq(errs.n, 1);
    ck_assert_int_eq(errs.e[0].code, GP_E_USAGE);
    ck_assert_msg(strstr(errs.e[0].msg, refused[_i].says) && strstr(errs.e[0].msg, "/bad.so'"), "%s\nnot %s", errs.e[0].msg,
                  refused[_i].says);
    ck_assert_ptr_null(gp_kind_find(kinds, "other"));          /* all of a plug-in's kinds, or none */
}

static const struct { const char *name, *text, *says; } no_objects[] = {
    { "bad.so", "no object, but quite long enough for the header of one, in which there are 64 bytes.\n", "cannot be opened: invalid ELF header" },
    { "bad.so", "", "cannot be opened: file too short" },
    { "", NULL, "is no file: folders of plug-ins are named in GPIPE_PLUGINS" },
    { "none.so", NULL, "cannot be opened: No such file or directory" },
};

TEST_EACH(refuses_files, no_objects)
{
    char *file = format("%s/%s", dir, no_objects[_i].name);
    if (no_objects[_i].text)
        pipe_text(dir, no_objects[_i].name, no_objects[_i].text);
    ck_assert(!gp_plugin_load(kinds, file, &errs));
    ck_assert_msg(strstr(errs.e[0].msg, no_objects[_i].says) != NULL, "%s", errs.e[0].msg);
}

/* A kind that may regroup frames, as far as its descriptor says. */
TEST(no_run)
{
    const char *more = "static const gp_port in[] = { { \"in\", GP_ACCEPT_ANY, .help = \"any\" }, { 0 } };\n"
                       "static const gp_kind k = { GP_KIND(\"k\"), .help = \"none\", .in = in, .out = out, .shape = shape };\n"
                       "GP_PLUGIN(\"noes\", \"2\", &k, &seven);";
    ck_assert(gp_plugin_load(kinds, make("no", NAMED("seven"), more), &errs));
    ck_assert(!pipe_compile(dir, "stages: [{use: seven}, {use: k}, {use: write, path: x.raw}]", (gp_config){ .registry = kinds }, &errs));
    ck_assert_msg(strstr(errs.e[0].msg, "kind 'k', of plug-in '/") && strstr(errs.e[0].msg, "/no.so', has no run(), nor record() for "
                  "the device"), "%s", errs.e[0].msg);
    ck_assert_int_eq(errs.n, 1);
}

TEST(no_reason)
{
    const char *more = "static bool no(gp_shape *s) { (void)s; return false; }\n"
                       "static const gp_kind k = KIND(\"k\", .shape = no); GP_PLUGIN(\"noes\", \"2\", &k, &seven);";
    ck_assert(gp_plugin_load(kinds, make("no", "-Wno-override-init " NAMED("seven"), more), &errs));
    ck_assert(!pipe_compile(dir, "stages: [{use: k}, {use: write, path: x.raw}]", (gp_config){ .registry = kinds }, &errs));
    ck_assert_str_eq(errs.e[0].msg, "stage 'k': shape() of kind 'k', of plug-in 'noes', refuses it and gave no reason: "
                     "gp_shape_fail() gives one");
    ck_assert_int_eq(errs.e[0].code, GP_E_SPEC);
}

/* ---- where they are found ------------------------------------------------- */

static char places[2][600];

static const char *get(const void *arg, const char *name)
{
    return !strcmp(name, "GPIPE_PLUGINS") ? places[0] : !strcmp(name, "XDG_DATA_HOME") ? places[1] : NULL;
}

static void move(const char *from, const char *to)
{
    char *a = format("%s/%s", dir, from), *b = format("%s/%s", dir, to);
    ck_assert_msg(!rename(a, b), "%s", b);
}

static void folder(const char *name)
{
    ck_assert(!mkdir(format("%s/%s", dir, name), 0777));
}

/* Of one name in two folders the first counts, in one folder too, with a warning; what is bad is a warning. */
TEST(finds)
{
    folder("listed"), folder("gpipe"), folder("gpipe/plugins");
    make("a", NAMED("a"), "GP_PLUGIN(\"pa\", \"1\", &seven);"), move("a.so", "listed/a.so");
    make("b", NAMED("b"), "GP_PLUGIN(\"pa\", \"2\", &seven);"), move("b.so", "listed/b.so");
    make("c", NAMED("c"), "GP_PLUGIN(\"pa\", \"3\", &seven);"), move("c.so", "gpipe/plugins/c.so");
    make("d", NAMED("d"), "GP_PLUGIN(\"pd\", \"4\", &seven);"), move("d.so", "gpipe/plugins/d.so");
    make("e", NAMED("e"), "GP_PLUGIN(\"pe\", \"5\", &seven);");
    pipe_text(dir, "listed/z.so", "");
    pipe_text(dir, "listed/readme.txt", "");
    snprintf(places[0], sizeof places[0], "%s/listed:%s/e.so::%s/none", dir, dir, dir);
    snprintf(places[1], sizeof places[1], "%s", dir);
    gp_plugins_find(kinds, get, NULL, &errs);
    static const char *const there[] = { "a", "d", "e" }, *const not[] = { "b", "c" };
    for (int i = 0; i < 3; i++)
        ck_assert_msg(gp_kind_find(kinds, there[i]) != NULL, "%s", there[i]);
    for (int i = 0; i < 2; i++)
        ck_assert_msg(!gp_kind_find(kinds, not[i]), "%s", not[i]);
    static const char *const warnings[] = { "b.so' is named 'pa', as /", "z.so' cannot be opened: file too short",
                                            "none' cannot be opened: No such file or directory" };
    ck_assert_int_eq(errs.n, 3);
    ck_assert_int_eq(errs.failed, 0);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(strstr(errs.e[i].msg, warnings[i]) != NULL, "%s", errs.e[i].msg);

    gp_errs why = { .n = 0 };
    ck_assert(!pipe_compile(dir, "stages: [{use: z}]", (gp_config){ .registry = kinds }, &why));
    ck_assert_int_eq(why.e[1].code, GP_E_NOTE);
    ck_assert_msg(strstr(why.e[1].msg, "z.so, ") && strstr(why.e[1].msg, " could not be loaded; plug-ins were looked for in /")
                  && strstr(why.e[1].msg, "/gpipe/plugins"), "%s", why.e[1].msg);
}

/* ---- one of an earlier version -------------------------------------------- */

#ifdef __x86_64__
static const char kept_yaml[] =
    "stages:\n"
    "  - {use: kept_ramp, frames: 5, start: -1, size: 3, out: r}\n"
    "  - {use: kept_pick, how: most, drop: true, gain: 0.5, in: r, out: {all: all, one: one}, on_error: drop}\n"
    "  - {use: write, in: all, path: all.raw}\n"
    "  - {use: write, in: one, path: one.raw}\n";

TEST(kept)
{
    ck_assert_msg(gp_plugin_load(kinds, "tests/data/plugin/kept.so", &errs), "%s", errs.e[0].msg);
    gp_pipeline *p = pipe_compiled(dir, kept_yaml, (gp_config){ .registry = kinds });
    ck_assert_int_eq(gp_pipeline_run(p, NULL, &errs), GP_DONE);
    gp_account a;
    ck_assert_int_eq(gp_accounts(p, &a, 1), 1);
    ck_assert(a.in == 5 && a.out == 2 && a.dropped == 2 && a.failed == 1);
    gp_pipeline_destroy(p);
    static const float all[] = { 0.5f, 1, 1.5f, 1.5f, 2, 2.5f }, one[] = { 3, 5 };
    const struct { const char *file; const void *data; size_t n; } want[] = { { "all.raw", all, sizeof all },
                                                                             { "one.raw", one, sizeof one } };
    for (int i = 0; i < 2; i++) {
        size_t n;
        OWNED char *got = pipe_read(dir, want[i].file, &n);
        ck_assert(got && n == want[i].n && !memcmp(got, want[i].data, n));
    }
    gp_errs why = { .n = 0 };
    ck_assert(!pipe_compile(dir, "stages: [{use: kept_ramp, dtype: u8}, {use: write, path: x.raw}]", (gp_config){ .registry = kinds }, &why));
    ck_assert_msg(strstr(why.e[0].msg, "f32 or i32, not u8") != NULL, "%s", why.e[0].msg);
}
#endif

TEST_SUITE(plugin, up, down, 0)
