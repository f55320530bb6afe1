/* test_borders.c - which casts run on the host, so that the smaller type crosses, and how many bytes then do. */
#include "pipe.h"

#define X(dtype) "buffers: {x: {dtype: " dtype ", shape: [16, 16]}}\nstages:\n  - {use: generate, frames: 4, out: x}\n"

#define DO(stage) "  - {use: " stage "}\n"
#define BLUR DO("blur, sigma: 1")
#define BLUR_OF(buffer) DO("blur, sigma: 1, in: " buffer)
#define END DO("discard")

/* 256 elements a frame: the bytes that go to the device and back, and the casts that are on the host. */
static const struct { const char *what, *yaml; size_t to, back; const char *host; } cases[] = {
    { "a wide frame is narrowed before it goes in", X("f64") DO("cast, dtype: f32") BLUR END, 1024, 1024, "cast" },
    { "and what goes out is widened behind it", X("f32") BLUR DO("cast, dtype: f64") END, 1024, 1024, "cast" },
    { "both", X("f64") DO("cast, dtype: f16, name: in") DO("scale") DO("cast, dtype: f32") END, 512, 512, "in cast" },
    { "what is widened behind its copy in, and narrowed before its copy out, stays",
      X("u8") DO("cast, dtype: f32, name: in") BLUR DO("cast, dtype: u8") END, 256, 256, "" },
    { "as does what has the same size",
      X("i32") DO("cast, dtype: f32") BLUR DO("cast, dtype: u32, name: out") END, 1024, 1024, "" },
    { "what another stage of the device reads crosses in any case",
      X("f64") DO("cast, dtype: f32, out: y") DO("scale, in: x") END BLUR_OF("y") END, 2048, 3072, "" },
    { "what a host stage reads as well crosses already",
      X("f32") DO("scale, out: y") DO("cast, dtype: f64") END DO("discard, in: y"), 1024, 1024, "cast" },
    { "what the device reads goes on there",
      X("f32") DO("scale, out: y") DO("cast, dtype: f64, out: z") BLUR_OF("y") END DO("expr, in: z, expr: z * 2") END,
      1024, 3072, "" },
    { "one cast behind another",
      X("f64") DO("cast, dtype: f32, name: a") DO("cast, dtype: u8, name: b") DO("threshold, level: 3") END,
      256, 256, "a b" },
    { "one behind another before the copy out",
      X("u8") DO("threshold, level: 3") DO("cast, dtype: f32, name: a") DO("cast, dtype: f64, name: b") END,
      256, 256, "a b" },
    { "between two host stages nothing crosses", X("f32") DO("cast, dtype: u8") END, 0, 0, "cast" },
    { "pairs of f64 become c64 in two steps",
      "buffers: {x: {dtype: f64, shape: [8, 16, 2]}}\nstages:\n" DO("generate, frames: 4, out: x") DO("cast, dtype: f32")
      DO("cast, dtype: c64, name: z") DO("transpose") END, 1024, 1024, "cast" },
    { "the file says that it is the device", X("f64") DO("cast, dtype: f32, on: device") BLUR END, 2048, 1024, "" },
    { "or that it is the host", X("u8") DO("cast, dtype: f32, on: host") BLUR END, 1024, 1024, "cast" },
    { "frames that are regrouped where they are",
      X("f32") DO("scale") DO("cast, dtype: f64") DO("group, frames: 2") END, 2048, 4096, "" },
    { "a cycle",
      "buffers: {x: {dtype: f32, shape: [16, 16]}, u: {carry: v, init: 0}, v: {dtype: f64, shape: [16, 16]}, s: {like: x}}\n"
      "stages:\n" DO("generate, frames: 4, out: x") DO("expr, in: {x: x, u: u}, expr: x + u, out: s")
      DO("cast, dtype: f64, in: s, out: v") END, 1024, 2048, "" },
    { "what is filled with zeros", X("f64") DO("cast, dtype: f32, zero: true") BLUR END, 2048, 1024, "" },
};

static gp_pipeline *compile(const char *yaml, bool cuda)
{
    gp_machine machine;
    gp_machine_fixed(&machine, cuda);
    return pipe_compiled(".", yaml, (gp_config){ .machine = &machine });
}

TEST_EACH(what_crosses, cases)
{
    gp_pipeline *p = compile(cases[_i].yaml, true);
    const gp_graph *g = gp_pipeline_graph(p);
    const gp_plan *plan = gp_pipeline_plan(p);
    char host[100] = "";
    for (int i = 0; i < g->nstages; i++)
        if (!strcmp(g->stage[i].kind->name, "cast") && !g->stage[i].device)
            sprintf(host + strlen(host), "%s%s", *host ? " " : "", g->stage[i].name);
    ck_assert_msg(!strcmp(host, cases[_i].host), "%s: '%s' on the host, not '%s'", cases[_i].what, host,
                  cases[_i].host);
    ck_assert_msg(plan->copy_in_bytes == cases[_i].to && plan->copy_out_bytes == cases[_i].back,
                  "%s: %zu bytes to the device and %zu back, not %zu and %zu", cases[_i].what, plan->copy_in_bytes,
                  plan->copy_out_bytes, cases[_i].to, cases[_i].back);
    gp_pipeline_destroy(p);
}

/* Where there are no copies casts stay with what they are fused with. */
TEST_EACH(without_copies, cases)
{
    gp_pipeline *p = compile(cases[_i].yaml, false);
    const gp_graph *g = gp_pipeline_graph(p);
    for (int i = 0; i < g->nstages; i++)
        ck_assert(g->stage[i].device || g->stage[i].on_said || strcmp(g->stage[i].kind->name, "cast"));
    gp_pipeline_destroy(p);
}

TEST_SUITE(borders, NULL, NULL, 0)
