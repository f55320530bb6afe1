/* test_compile.c - text to plan and back to nothing, by the public functions only. */
#include <poll.h>
#include "api/forms.h"
#include "device/machine.h"
#include "run/pipeline.h"
#include "suite.h"

static gp_registry *registry;
static gp_errs errs;

static void up(void)
{
    memset(&errs, 0, sizeof errs);
    registry = gp_registry_create();
    ck_assert(gp_register_builtin(registry, &errs));
}

static void down(void)
{
    gp_registry_destroy(registry);
}

/* The text is freed before anything is looked at: gp_compile copies it. */
static gp_pipeline *compile(const char *yaml, const char *set, bool lenient)
{
    gp_machine machine;
    gp_config config = { .registry = registry, .machine = &machine, .set = &set,
                         .nset = set != NULL, .lenient = lenient };
    gp_machine_fixed(&machine, 0);
    memset(&errs, 0, sizeof errs);
    OWNED char *text = strdup(yaml);
    gp_pipeline *p = gp_compile(text, strlen(text), "p.yaml", &config, &errs);
    return p;
}

static const char good[] =
    "vars: {k: 2}\nbuffers: {generate: {dtype: f32, shape: [4, 4]}}\n"
    "stages: [{use: generate, frames: 3}, {use: scale, a: k}, {use: discard}]\n";

TEST(makes_all_forms)
{
    gp_pipeline *p = compile(good, NULL, false);
    ck_assert_msg(p != NULL, "%s", errs.e[0].msg);
    ck_assert_int_eq(errs.n, 0);
    ck_assert_ptr_nonnull(gp_pipeline_spec(p));
    ck_assert_int_eq(gp_pipeline_graph(p)->nstages, 3);
    ck_assert_str_eq(gp_pipeline_graph(p)->stage[1].name, "scale");
    ck_assert_ptr_eq(gp_pipeline_plan(p)->graph, gp_pipeline_graph(p));
    ck_assert_int_gt(gp_pipeline_plan(p)->ntasks, 0);
    gp_pipeline_destroy(p);
    gp_pipeline_destroy(NULL);
}

TEST(sets_before_it_resolves)
{
    gp_pipeline *p = compile(good, "buffers.scale.depth=5", false);
    ck_assert_msg(p != NULL, "%s", errs.e[0].msg);
    ck_assert_int_eq(gp_pipeline_graph(p)->buffer[1].depth, 5);
    gp_pipeline_destroy(p);
    static const char set[] = "stages.scale.a=nix";
    ck_assert_ptr_null(compile(good, set, false));
    ck_assert_ptr_eq(errs.e[0].at.file, set);
}

static const struct { const char *yaml; gp_code code; int line; const char *msg; } bad[] = {
    { "stages: [{use: nix}]\n", GP_E_SPEC, 1, "no stage kind 'nix'" },
    { "stages: {\n", GP_E_SPEC, 0, "" },
    { "device: cuda\nstages: [{use: read, path: none}]\n", GP_E_RESOURCE, 1, "there is no device" },
    { "", GP_E_SPEC, 0, "" },
};

TEST_EACH(reports_and_lets_go, bad)
{
    ck_assert_ptr_null(compile(bad[_i].yaml, NULL, false));
    ck_assert_int_gt(errs.failed, 0);
    ck_assert_int_eq((int)errs.e[0].code, (int)bad[_i].code);
    ck_assert_str_eq(errs.e[0].at.file, "p.yaml");
    ck_assert_msg(!strncmp(errs.e[0].msg, bad[_i].msg, strlen(bad[_i].msg)), "%s", errs.e[0].msg);
    if (bad[_i].line)
        ck_assert_int_eq(errs.e[0].at.line, bad[_i].line);
}

TEST(missing_input_is_a_warning_of_check)
{
    static const char yaml[] = "buffers: {read: {dtype: u8, shape: [4, 4]}}\n"
        "stages: [{use: read, path: no-such-folder/*.png}, {use: discard}]\n";
    ck_assert_ptr_null(compile(yaml, NULL, false));
    gp_pipeline *p = compile(yaml, NULL, true);
    ck_assert_msg(p != NULL, "%s", errs.e[0].msg);
    ck_assert_int_eq(errs.n, 1);
    ck_assert_int_eq((int)errs.e[0].code, GP_E_WARN);
    gp_pipeline_destroy(p);
}

/* Code is no input: a pipeline without it is not valid. */
TEST(missing_code_is_an_error_of_check)
{
    static const char *const stages[] = { "lua, script: none.lua",
                                          "kernel, source: none.cu, args: [in, out]" };
    for (int i = 0; i < 2; i++) {
        char *yaml = format("buffers: {a: {dtype: u8, shape: [4]}, b: {like: a}}\nstages:\n"
                            "  - {use: generate, out: a}\n  - {use: %s, out: b}\n  - {use: discard}\n", stages[i]);
        ck_assert_ptr_null(compile(yaml, NULL, true));
        first_error_has(&errs, 4, "cannot read 'none.");
    }
}

/* `same`: the two name one file. */
static const struct { const char *a, *b; bool same; } paths[] = {
    { "a", "./a", true }, { "a", "b/../a", true }, { "a", "b/c/../../a", true },
    { "a", ".//./a", true }, { "../a", "b/../../a", true }, { "../../a", ".././../a", true },
    { "/x/a", "/x/b/../a", true }, { "/a", "/../a", true }, { "/a", "/b/../../a", true },
    { "o/%05d.raw", "o//%05d.raw", true }, { "...", "b/../...", true },
    { "a", "../a", false }, { "a", "b/a", false }, { "a", "/a", false }, { "../a", "../../a", false },
    { "a", "..a", false }, { "b/..a", "a", false }, { "ab/../a", "b/a", false },
    { "/dev/null", "/dev/null", false }, { "/dev/null", "/tmp/../dev/./null", false },
};

TEST_EACH(one_file_has_one_writer, paths)
{
    char *yaml = format("buffers: {g: {dtype: u8, shape: [4]}}\nstages:\n"
                        "  - {use: generate, frames: 1, out: g}\n  - {use: write, format: raw, path: %s}\n"
                        "  - {use: write, format: raw, path: %s, in: g}\n", paths[_i].a, paths[_i].b);
    gp_pipeline *p = compile(yaml, NULL, false);
    ck_assert_msg((p == NULL) == paths[_i].same, "%s, %s: %s", paths[_i].a, paths[_i].b, errs.e[0].msg);
    if (!p) {
        first_error_has(&errs, 5, "is written by stage 'write' too");
    }
    gp_pipeline_destroy(p);
}

TEST(cancel_only_rises)
{
    gp_pipeline *p = compile(good, NULL, false);
    ck_assert_ptr_nonnull(p);
    struct pollfd f = { p->stop_fd, POLLIN, 0 };
    ck_assert_int_eq(poll(&f, 1, 0), 0);
    static const struct { int ask, level; } steps[] = { { 0, 0 }, { 1, 1 }, { 2, 2 }, { 1, 2 } };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        gp_cancel(p, steps[i].ask);
        ck_assert_int_eq(atomic_load(&p->cancel), steps[i].level);
        ck_assert_int_eq(poll(&f, 1, 0), steps[i].level > 0);
    }
    gp_pipeline_destroy(p);
}

TEST_SUITE(compile, up, down, 0)
