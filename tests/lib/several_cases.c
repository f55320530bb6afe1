/* several_cases.c - what passes between devices, and what is said of each of them.
 *
 * That no setting changes a byte is for knobs_cases.c; these are about which copies there are, in whichever memory
 * a frame lies, and about frames that fail, are partial or differ in shape on their way. */
#include "reportrig.h"
#include "run/run.h"

enum { FRAMES = 40, ELEMENTS = 4096, BYTES = 4 * ELEMENTS };

/* Frames take turns on both devices, then all go to the second; the host reads both buffers. */
static report_seen run(gp_run_options options)
{
    static char both[20];
    char *text = format("depth: 4\nbatch: 1\ncopies: dma\nbuffers: {x: {dtype: f32, shape: [4096]}}\nstages:\n"
                        "  - {use: generate, pattern: noise, frames: 40, out: x}\n  - {name: a, use: scale, a: 2}\n"
                        "  - {name: b, use: scale, b: 2, device: \"%s:1\"}\n  - {name: end_b, use: discard}\n"
                        "  - {name: end_a, use: discard, in: a}\nfuse: none\n", on);
    snprintf(both, sizeof both, "%s:0-1", on);
    report_on = both;
    return report_run(text, "", options);
}

static const gp_engine_report *engine(const gp_report *r, int device, gp_engine e)
{
    const gp_engine_report *x = &r->all[device * GP_ENGINES + e];
    ck_assert(x->on == device && x->device);           /* the name is gone with the pipeline */
    return x;
}

/* Frames go through the host where they are not. */
static bool peers(void)
{
    gp_machine m;
    gp_machine_read(&m, strcmp(on, "cpu") != 0);
    bool none = strcmp(on, "cpu") && (m.device[0].no_peer >> 1 & 1 || m.device[1].no_peer & 1);
    if (none)
        printf("**** several: GPUs 0 and 1 are no peers: no peer copy is tested ****\n");
    return !none;
}

/* Each device has what its own frames took: half of all, or those that it was given by the other one. */
TEST(figures_of_each)
{
    if (!peers())
        return;
    static const struct { gp_engine e; uint64_t frames[2]; } want[] = {
        { GP_ENGINE_COPY_IN, { FRAMES / 2, FRAMES / 2 } }, { GP_ENGINE_COMPUTE, { 0, 0 } },
        { GP_ENGINE_COPY_OUT, { FRAMES / 2, FRAMES / 2 + FRAMES } }, { GP_ENGINE_COPY_PEER, { 0, FRAMES } },
    };
    report_seen s = run((gp_run_options){ .timed = true, .stamped = true });
    const gp_report *r = s.report;
    ck_assert_int_eq(r->nall, 2 * GP_ENGINES);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        for (int d = 0; d < 2; d++) {
            const gp_engine_report *x = engine(r, d, want[i].e);
            bool used = want[i].frames[d] || want[i].e == GP_ENGINE_COMPUTE;
            ck_assert_msg(x->bytes == want[i].frames[d] * BYTES, "%s on device %d: %llu bytes", x->name, d,
                          (unsigned long long)x->bytes);
            ck_assert_msg(x->used == used && (x->busy_ns > 0) == used, "%s on device %d", x->name, d);
            ck_assert(x->measured == used && x->busy_ns <= r->wall_ns);
        }
    for (int e = 0; e < GP_ENGINES; e++) {     /* of each kind that which is busiest */
        const gp_engine_report *x = engine(r, 0, (gp_engine)e), *y = engine(r, 1, (gp_engine)e);
        ck_assert_int_eq(r->engine[e].busy_ns, x->busy_ns > y->busy_ns ? x->busy_ns : y->busy_ns);
    }
    ck_assert(r->overlap >= 0 && r->overlap <= 1);
    report_done(&s);
}

/* A process for each device, with the copies and kernels that it did. */
TEST(tracks_of_each)
{
    if (!peers())
        return;
    enum { HOST = 1 };
    static const struct { const char *what; int frames[2]; } want[] = {
        { "copy in", { FRAMES / 2, FRAMES / 2 } }, { "compute", { FRAMES / 2, FRAMES / 2 + FRAMES } },
        { "copy out", { FRAMES / 2, FRAMES / 2 + FRAMES } }, { "peer copy", { 0, FRAMES } },
    };
    report_seen s = run((gp_run_options){ .timed = true, .stamped = true, .trace_ns = 60000000000 });
    ck_assert(s.made);
    char name[2][60];
    int named[2] = { 0 };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        int seen[2] = { 0 };
        char *cat = format("\"cat\": \"%s\"", want[i].what);
        for (const char *line = s.trace; line && *line; line = strchr(line, '\n')) {
            line += *line == '\n';
            if (!line_has(line, cat) || !line_has(line, "\"ph\": \"X\""))
                continue;
            int device = (int)line_member(line, "pid") - HOST - 1;
            ck_assert_msg(device == 0 || device == 1, "%.150s", line);
            seen[device] += (int)line_member(line, "frames");
        }
        for (int d = 0; d < 2; d++)
            ck_assert_msg(seen[d] == want[i].frames[d], "%s on device %d: %d frames", want[i].what, d, seen[d]);
    }
    for (int d = 0; d < 2; d++) {
        snprintf(name[d], sizeof name[d], "{\"name\": \"%s:%d\"}", on, d);
        for (const char *line = s.trace; line && *line; line = strchr(line, '\n')) {
            line += *line == '\n';
            named[d] += line_has(line, "process_name") && line_has(line, name[d])
                     && line_member(line, "pid") == HOST + 1 + d;
        }
        ck_assert_int_eq(named[d], 1);
    }
    report_done(&s);
}

/* ---- what is opened ----------------------------------------------------- */

static void look(gp_pipeline *p, void *arg)
{
    gp_run *run = gp_pipeline_lock_run(p);
    for (int d = 0; d < run->ndevs; d++)
        ((bool *)arg)[d] = run->dev[d] != NULL;
    gp_pipeline_unlock_run(p);
}

static float half_of(int64_t i)
{
    return (float)i / 2;
}

/* A device on which nothing of the plan is stays closed. */
TEST_LOOP(only_what_is_used, 0, 3)
{
    static const struct { const char *stage; bool opened[2]; const char *konst; } cases[] = {
        { "{use: mix, in: {in: y}, op: max, frames: 2}", { true, false }, "{const: k.npy}" },
        { "{use: scale, in: y, a: 2}", { true, true }, "{const: k.npy}" },
        { "{use: mix, in: {in: y}, op: max, frames: 2}", { true, false }, "{const: k.npy, memory: managed}" },
    };
    bool opened[2] = { false, false };
    const char *dir = pipe_dir();
    char *both = format("%s:0-1", on);
    char *text = format("buffers: {x: {dtype: f32, shape: [64]}, k: %s, old: {carry: y, init: 0}, "
        "y: {like: x}}\nstages:\n  - {use: generate, pattern: noise, frames: 9, out: x}\n"
        "  - {use: expr, in: {x: x, old: old, k: k}, expr: x + k * old, out: y}\n  - %s\n  - {use: discard}\n",
        cases[_i].konst, cases[_i].stage);
    pipe_npy(dir, "k.npy", 64, 0, half_of);
    pipe_result r = pipe_run_then(dir, text, both, NULL, (gp_run_options){ .timed = true }, look, opened);
    ck_assert_msg(r.outcome == GP_DONE, "%s", pipe_said(&r.errs));
    ck_assert(opened[0] == cases[_i].opened[0] && opened[1] == cases[_i].opened[1]);
}

/* ---- frames that are not whole ----------------------------------------- */

static const char script[] =
    "function process(f, x, y)\n"
    "    if f.index % 5 == 3 then return 'drop' end\n"
    "    y:copy(x)\n"
    "end\n";

/* Runs `stages` on device `first` ("0", or in turns on "0-1"), and the one with @ on device `second`; what is in
 * out.raw. */
static char *made(const char *stages, const char *first, int second, const char *top, size_t *bytes)
{
    const char *dir = pipe_dir();
    char *here = format("%s:%s", on, first);
    char *there = format("%s:%d", on, second);
    char *at = strstr(stages, "@");
    char *text = format("%s%.*s\"%s\"%s", top, (int)(at - stages), stages, there, at + 1);
    pipe_text(dir, "lose.lua", script);
    pipe_text(dir, "keep.lua", "stateless = true\nfunction process(f, x, y) y:copy(x) end\n");
    pipe_result r = pipe_run(dir, text, here, NULL, (gp_run_options){ .poison = true });
    ck_assert_msg(r.outcome == GP_DONE, "%s\n%s", pipe_said(&r.errs), text);
    char *got = pipe_read(dir, "out.raw", bytes);
    ck_assert_msg(got && *bytes, "%s", text);
    return got;
}

#define SOURCE "buffers: {x: {dtype: f32, shape: [7, 33]}}\nstages:\n" \
    "  - {use: generate, pattern: noise, frames: 23, out: x}\n"
#define END "  - {use: write, path: out.raw, durable: none}\nfuse: none\n"

static const struct { const char *what, *stages; } ways[] = {
    { "holes", SOURCE "  - {use: lua, script: lose.lua}\n  - {use: scale, a: 3}\n"
      "  - {use: scale, b: 1, device: @}\n" END },
    { "partial frames", SOURCE "  - {use: split}\n  - {use: group, frames: 4}\n  - {use: scale, a: 3, out: s}\n"
      "  - {use: scale, b: 1, device: @}\n" END },
    { "what is put together on the way", SOURCE "  - {use: scale, a: 3}\n  - {use: group, frames: 4}\n"
      "  - {use: scale, b: 1, device: @}\n" END },
    { "what is added up there", SOURCE "  - {use: scale, a: 3}\n  - {use: mix, op: mean, frames: 4, device: @}\n" END },
    { "two of a segment's buffers, and one of them on the host", SOURCE "  - {use: scale, a: 3, out: a}\n"
      "  - {use: scale, a: 5, out: b}\n  - {use: expr, in: {a: a, b: b}, expr: a + b, device: @}\n"
      "  - {use: write, path: out.raw, durable: none}\n"
      "  - {use: write, in: b, path: b.raw, durable: none}\nfuse: none\n" },
    { "there and back", SOURCE "  - {use: scale, a: 3, out: a}\n  - {use: scale, b: 1, device: @, out: b}\n"
      "  - {use: expr, in: {a: a, b: b}, expr: a * b}\n" END },
    { "by way of a script, too", SOURCE "  - {use: scale, a: 3, out: a}\n"
      "  - {use: lua, script: keep.lua, in: a, out: h, workers: 2}\n"
      "  - {use: expr, in: {a: a, h: h}, expr: a * h, device: @}\n" END },
    { "carried there", "buffers: {x: {dtype: f32, shape: [7, 33]}, sum: {like: x}, old: {carry: sum, init: 0}}\n"
      "stages:\n  - {use: generate, pattern: noise, frames: 23, out: x}\n  - {use: scale, a: 3, out: a}\n"
      "  - {use: expr, in: {a: a, old: old}, expr: a + old / 2, out: sum, device: @}\n" END },
};

static const char *const tops[] = {
    "", "depth: 1\n", "depth: 9\nbatch: 4\n", "launch: stream\n", "depth: 12\nstreams: 2\n",
};

TEST_EACH(same_bytes, ways)
{
    size_t one, two;
    OWNED char *want = made(ways[_i].stages, "0", 0, "", &one);
    for (size_t t = 0; t < 2 * sizeof tops / sizeof *tops; t++) {
        const char *first = t % 2 ? "0-1" : "0", *top = tops[t / 2];
        OWNED char *got = made(ways[_i].stages, first, 1, top, &two);
        ck_assert_msg(one == two && !memcmp(want, got, one), "%s, %s, %s: %zu and %zu bytes", ways[_i].what, first,
                      top, one, two);
    }
}

CASES_SUITE(several, NULL, NULL, 120, 1)
