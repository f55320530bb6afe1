/* test_borders.c - which casts run on the host, so that the smaller type crosses, and how many bytes then do. */
#include "compile/plan.h"
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

/* How each copy is done, in the order of the plan. */
#define EXPR(text) DO("expr, expr: " text)
#define KERNEL(more) "  - {use: kernel, code: 'extern \"C\" __global__ void k(const float *in, float *out) { }', args: [in, out], grid: 1" more "}\n"
static const struct { const char *what, *yaml, *copies; } ways[] = {
    { "elements that are read and written once", X("f32") EXPR("2 * in") END, "mapped mapped " },
    { "two of them in a row, which are fused", X("f32") EXPR("2 * in") EXPR("in + 1") END, "mapped mapped " },
    { "neighbors", X("f32") BLUR END, "kernel kernel " },
    { "neighbors in an expression", X("f32") EXPR("'in[i0, i1 - 1]'") END, "kernel mapped " },
    { "a frame that two stages read, and two outputs that are one copy",
      X("f32") DO("expr, expr: 2 * in, out: y") END DO("blur, sigma: 1, in: x") END, "kernel kernel " },
    { "one that is read twice in a stage", X("f32") DO("expr, in: {a: x, b: x}, expr: a + b") END, "kernel mapped " },
    { "what the device reads again", X("f32") DO("scale, out: y") BLUR END DO("discard, in: y"), "mapped kernel " },
    { "a row that is repeated", "buffers: {x: {dtype: f32, shape: [16, 16]}, r: {dtype: f32, shape: [1, 16]}}\nstages:\n"
      DO("generate, frames: 4, out: x") DO("generate, frames: 4, out: r, in: []") DO("expr, in: {a: x, b: r}, expr: a + b") END,
      "kernel mapped " },
    { "what is filled with zeros", X("f32") DO("scale, zero: true") END, "mapped kernel " },
    { "a kernel of one's own", X("f32") KERNEL("") END, "kernel kernel " },
    { "... that says that it reads and writes once", X("f32") KERNEL(", each_once: true") END, "mapped mapped " },
    { "a sum", X("f32") DO("reduce, op: sum") END, "kernel kernel " },
    { "256 KiB", "buffers: {x: {dtype: f32, shape: [65536]}}\nstages:\n" DO("generate, frames: 4, out: x") EXPR("2 * in") END,
      "mapped mapped " },
    { "more", "buffers: {x: {dtype: f32, shape: [65537]}}\nstages:\n" DO("generate, frames: 4, out: x") EXPR("2 * in") END,
      "dma dma " },
    { "64 KiB by a kernel", "buffers: {x: {dtype: f32, shape: [128, 128]}}\nstages:\n" DO("generate, frames: 4, out: x") BLUR END,
      "kernel kernel " },
    { "more by a kernel", "buffers: {x: {dtype: f32, shape: [128, 129]}}\nstages:\n" DO("generate, frames: 4, out: x") BLUR END,
      "dma dma " },
    { "more, as the file says", "copies: mapped\nbuffers: {x: {dtype: f32, shape: [65537]}}\nstages:\n"
      DO("generate, frames: 4, out: x") EXPR("2 * in") END, "mapped mapped " },
    { "copy engines, as the file says", "copies: dma\n" X("f32") EXPR("2 * in") END, "dma dma " },
    { "a kernel that stays, which copies what it reads", "launch: persistent\n" X("f32") EXPR("2 * in") END, "kernel mapped " },
    { "frames that are regrouped", X("f32") DO("scale") DO("group, frames: 2") END, "mapped dma " },
};

static gp_pipeline *compile(const char *yaml, bool cuda)
{
    gp_machine machine;
    gp_machine_fixed(&machine, cuda);
    return pipe_compiled(".", yaml, (gp_config){ .machine = &machine });
}

TEST_EACH(how_it_crosses, ways)
{
    static const char *const name[] = { "dma ", "kernel ", "mapped " };
    gp_pipeline *p = compile(ways[_i].yaml, true);
    const gp_plan *plan = gp_pipeline_plan(p);
    char copies[100] = "";
    for (int i = 0; i < plan->ntasks; i++)
        if (plan->task[i].stage < 0)
            strncat(copies, name[plan->task[i].copying], sizeof copies - strlen(copies) - 1);
    ck_assert_msg(!strcmp(copies, ways[_i].copies), "%s: %snot %s", ways[_i].what, copies, ways[_i].copies);
    gp_pipeline_destroy(p);
}

/* What was measured moves the sizes, but not beyond what is sane. */
static const struct { const char *what; gp_link engine, mapped; size_t most; } lines[] = {
    { "not measured", { 0, 0 }, { 0, 0 }, 256 << 10 },
    { "one of them", { 50e9, 8000 }, { 0, 0 }, 256 << 10 },
    { "they meet at 200 KB", { 50e9, 4000 }, { 25e9, 0 }, 200000 / 4096 * 4096 },
    { "and at 400 KB", { 50e9, 8000 }, { 25e9, 0 }, 256 << 10 },
    { "kernels are as fast", { 50e9, 8000 }, { 50e9, 3000 }, 256 << 10 },
    { "and hardly slower", { 50e9, 8000 }, { 49.9e9, 3000 }, 256 << 10 },
    { "kernels do not even begin sooner", { 50e9, 3000 }, { 25e9, 8000 }, 4 << 10 },
    { "much slower", { 50e9, 3100 }, { 1e9, 3000 }, 4 << 10 },
    { "slower to begin, and faster", { 25e9, 3000 }, { 50e9, 8000 }, 4 << 10 },
};

TEST_EACH(as_measured, lines)
{
    gp_machine machine;
    bool measured;
    gp_machine_fixed(&machine, 1);
    machine.device[0].launch[GP_COPY_DMA] = lines[_i].engine, machine.device[0].launch[GP_COPY_MAPPED] = lines[_i].mapped;
    size_t most = gp_copying_most(&machine.device[0], GP_COPY_MAPPED, &measured);
    ck_assert_msg(most == lines[_i].most && measured == (lines[_i].mapped.rate > 0), "%s: %zu", lines[_i].what, most);
    for (int i = 0; i < 2; i++) {
        char *text = format("buffers: {x: {dtype: f32, shape: [%zu]}}\nstages:\n" DO("generate, frames: 4, out: x") DO("scale") END,
                            most / 4 + (size_t)i);
        gp_pipeline *p = pipe_compiled(".", text, (gp_config){ .machine = &machine });
        const gp_plan *plan = gp_pipeline_plan(p);
        for (int t = 0; t < plan->ntasks; t++)
            ck_assert_msg(plan->task[t].stage >= 0 || plan->task[t].copying == (i ? GP_COPY_DMA : GP_COPY_MAPPED), "%s: %d",
                          lines[_i].what, i);
        gp_pipeline_destroy(p);
    }
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
        ck_assert(g->stage[i].device || gp_node_get(g->stage[i].node, "on") || strcmp(g->stage[i].kind->name, "cast"));
    gp_pipeline_destroy(p);
}

TEST_SUITE(borders, NULL, NULL, 0)
