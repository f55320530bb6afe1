/* meta_cases.c - what becomes of the numbers of frames on their way: each case is a pipeline, and the numbers `a` and
 * `b` (-1: none) of the frames that come out, as they follow from the rule in the README.
 *
 * mark.lua sets a to `a` + the frame's number, b likewise, where its parameters say so, on every `of`-th frame; and
 * drops frames of which `drop` is a divisor. */
#include "meta_cases.h"

void meta_put_scripts(const char *dir)
{
    pipe_text(dir, "mark.lua", "local p\nfunction init(stage) p = stage.params end\n"
              "function process(frame, x, y)\n  y:copy(x)\n  local i = frame.index\n"
              "  if p.a and i % (p.of or 1) == 0 then frame.meta.a = p.a + i end\n"
              "  if p.b and i % (p.of or 1) == 0 then frame.meta.b = p.b + i end\n"
              "  if p.clear then frame.meta.a = nil end\n"
              "  if p.drop and i % p.drop == 0 then return 'drop' end\nend\n");
    pipe_text(dir, "tell.lua", "stateless = true\nfunction process(frame, x, y)\n"
              "  y[1] = frame.meta.a or -1\n  y[2] = frame.meta.b or -1\nend\n");
    pipe_text(dir, "both.lua", "stateless = true\nfunction process(frame, x, y) y:copy(x.p) end\n");
}

void meta_is(const char *dir, const char *name, const char *want, const char *what)
{
    size_t n = 0, k = 0;
    OWNED char *have = pipe_read(dir, name, &n);
    ck_assert_msg(have, "%s: there is no %s", what, name);
    for (size_t i = 0; i < n; i++) {   /* as one line */
        if (have[i] == '\n' && i + 1 == n)
            break;
        have[k++] = have[i] == '\n' ? '|' : have[i];
    }
    have[k] = 0;
    ck_assert_msg(!strcmp(have, want), "%s: %s, not %s", what, have, want);
}

/* x is of 6 frames; w and z are of as many, of numbers of their own. The stage that tells takes `t`. */
static const struct { const char *what, *stages, *want; } cases[] = {
    { "a script's number, through fused stages",
      "  - {use: lua, script: mark.lua, params: {a: 10}, in: x, out: m}\n"
      "  - {use: scale, a: 2, in: m, out: s}\n  - {use: expr, expr: s + 1, in: s, out: t}\n",
      "10,-1|11,-1|12,-1|13,-1|14,-1|15,-1" },
    { "none at all", "  - {use: scale, in: x, out: t}\n", "-1,-1|-1,-1|-1,-1|-1,-1|-1,-1|-1,-1" },
    { "some frames", "  - {use: lua, script: mark.lua, params: {a: 10, of: 3}, in: x, out: t}\n",
      "10,-1|-1,-1|-1,-1|13,-1|-1,-1|-1,-1" },
    { "nil", "  - {use: lua, script: mark.lua, params: {a: 10, b: 20}, in: x, out: m}\n"
      "  - {use: lua, script: mark.lua, params: {clear: true, of: 2, b: 50}, in: m, out: t}\n",
      "-1,50|-1,21|-1,52|-1,23|-1,54|-1,25" },
    { "holes", "  - {use: lua, script: mark.lua, params: {a: 10, drop: 2}, in: x, out: m}\n"
      "  - {use: expr, expr: m + 1, in: m, out: t}\n", "11,-1|13,-1|15,-1" },
    { "the first input of a script", "  - {use: lua, script: mark.lua, params: {a: 10, of: 2}, in: x, out: p}\n"
      "  - {use: lua, script: mark.lua, params: {a: 30, b: 40}, in: z, out: q}\n"
      "  - {use: lua, script: both.lua, in: {p: p, q: q}, out: t}\n", "10,40|31,41|12,42|33,43|14,44|35,45" },
    { "the first input of a device stage", "  - {use: lua, script: mark.lua, params: {a: 10, of: 2}, in: x, out: p}\n"
      "  - {use: lua, script: mark.lua, params: {a: 30, b: 40}, in: z, out: q}\n"
      "  - {use: expr, expr: p + q, in: {q: q, p: p}, out: t}\n", "30,40|31,41|32,42|33,43|34,44|35,45" },
    { "the first input of stages that are fused",
      "  - {use: lua, script: mark.lua, params: {a: 10, b: 20}, in: x, out: p}\n"
      "  - {use: lua, script: mark.lua, params: {a: 30}, in: z, out: q}\n"
      "  - {use: expr, expr: 2 * p, in: p, out: u}\n  - {use: expr, expr: u + q, in: {q: q, u: u}, out: t}\n",
      "30,20|31,21|32,22|33,23|34,24|35,25" },
    { "beside others in a segment", "  - {use: lua, script: mark.lua, params: {b: 20}, in: x, out: p}\n"
      "  - {use: lua, script: mark.lua, params: {a: 30}, in: z, out: q}\n"
      "  - {use: expr, expr: p * 2, in: p, out: t}\n  - {use: expr, expr: t + q, in: [t, q], out: u}\n"
      "  - {name: end, use: discard, in: u}\n", "-1,20|-1,21|-1,22|-1,23|-1,24|-1,25" },
    { "in and out of the device", "  - {use: lua, script: mark.lua, params: {a: 10}, in: x, out: p}\n"
      "  - {use: blur, sigma: 1, in: p, out: u}\n  - {use: lua, script: mark.lua, params: {b: 20}, in: u, out: v}\n"
      "  - {use: expr, expr: u + v, in: [u, v], out: t}\n", "10,20|11,21|12,22|13,23|14,24|15,25" },
    { "a group", "  - {use: lua, script: mark.lua, params: {a: 10, drop: 4}, in: x, out: m}\n"
      "  - {use: group, frames: 2, in: m, out: t}\n", "11,-1|12,-1|15,-1" },
    { "a group on the device", "  - {use: lua, script: mark.lua, params: {a: 10, drop: 4}, in: x, out: m}\n"
      "  - {use: scale, in: m, out: s}\n  - {use: group, frames: 2, in: s, out: g}\n  - {use: scale, in: g, out: t}\n",
      "11,-1|12,-1|15,-1" },
    { "a window", "  - {use: lua, script: mark.lua, params: {a: 10, of: 2}, in: x, out: m}\n"
      "  - {use: window, frames: 3, in: m, out: t}\n", "10,-1|-1,-1|12,-1|-1,-1|14,-1|-1,-1" },
    { "rows", "  - {use: lua, script: mark.lua, params: {a: 10}, in: x, out: m}\n"
      "  - {use: decimate, frames: 3, in: m, out: d}\n  - {use: split, in: d, out: t}\n", "10,-1|10,-1|13,-1|13,-1" },
    { "held", "  - {use: lua, script: mark.lua, params: {a: 10}, in: x, out: m}\n"
      "  - {use: decimate, frames: 3, in: m, out: d}\n  - {use: hold, frames: 3, in: d, out: h}\n"
      "  - {use: expr, expr: h + z, in: [h, z], out: t}\n", "10,-1|10,-1|10,-1|13,-1|13,-1|13,-1" },
    { "mixed", "  - {use: lua, script: mark.lua, params: {a: 10, drop: 4}, in: x, out: m}\n"
      "  - {use: mix, op: mean, frames: 3, in: m, out: t}\n", "11,-1|13,-1" },
    { "carried", "  - {use: lua, script: mark.lua, params: {a: 10, b: 20, of: 2}, in: x, out: m}\n"
      "  - {use: expr, expr: m + before, in: {before: before, m: m}, out: v}\n"
      "  - {use: lua, script: both.lua, in: {p: before, q: v}, out: t}\n", "10,20|-1,-1|12,22|-1,-1|14,24|-1,-1" },
    { "with fewer rows", "  - {use: lua, script: mark.lua, params: {a: 10}, in: w, out: m}\n"
      "  - {use: expr, expr: m + 1, in: m, out: t}\n", "10,-1|11,-1|12,-1" },
    { "a reduction", "  - {use: lua, script: mark.lua, params: {a: 10}, in: x, out: m}\n"
      "  - {use: expr, expr: m * m, in: m, out: s}\n  - {use: reduce, op: sum, in: s, out: t}\n",
      "10,-1|11,-1|12,-1|13,-1|14,-1|15,-1" },
};
enum { CASES = sizeof cases / sizeof *cases };

static float counted(int64_t i)
{
    return (float)i;
}

/* Does a stage take this buffer? */
static bool takes(const char *stages, const char *buffer)
{
    char in[4][8];
    snprintf(in[0], 8, ": %s,", buffer), snprintf(in[1], 8, ": %s}", buffer), snprintf(in[2], 8, " %s]", buffer);
    return strstr(stages, in[0]) || strstr(stages, in[1]) || strstr(stages, in[2]);
}

static char *yaml_of(gp_arena *a, int i)
{
    const char *s = cases[i].stages;
    bool x = takes(s, "x"), z = takes(s, "z"), w = takes(s, "w"), carries = strstr(s, "before");
    return gp_format(a, "metadata: [a, b]\nbuffers:\n%s%s%s%s  told: {dtype: f64, shape: [1, 2]}\nstages:\n%s%s%s%s"
                     "  - {name: tell, use: lua, script: tell.lua, in: t, out: told}\n"
                     "  - {use: write, path: told.csv}\n",
                     x ? "  x: {dtype: f32, shape: [2, 4]}\n" : "", z ? "  z: {dtype: f32, shape: [2, 4]}\n" : "",
                     w ? "  w: {dtype: f32, shape: [2, 4]}\n" : "",
                     carries ? "  before: {carry: v}\n  v: {dtype: f32, shape: [2, 4]}\n" : "",
                     x ? "  - {name: one, use: generate, frames: 6, out: x}\n" : "",
                     z ? "  - {name: two, use: generate, frames: 6, out: z}\n" : "",
                     w ? "  - {use: read, path: rows.npy, out: w}\n" : "", s);
}

static const char *const settings[][8] = {
    { NULL }, { "depth=1", "batch=1", NULL }, { "fuse=none", NULL }, { "depth=16", "batch=8", "streams=3", NULL },
    { "launch=stream", "sync=block", NULL }, { "stages.tell.workers=3", "depth=8", NULL },
};
enum { SETTINGS = sizeof settings / sizeof *settings };

TEST_THIN(arrives, CASES, 1)
{
    gp_arena a = { 0 };
    for (int k = 0; k < SETTINGS; k++) {
        const char *dir = pipe_dir();
        meta_put_scripts(dir);
        pipe_npy(dir, "rows.npy", 5, 4, counted);
        pipe_done(dir, yaml_of(&a, _i), on, settings[k], (gp_run_options){ .poison = k & 1 });
        meta_is(dir, "told.csv", cases[_i].want, cases[_i].what);
    }
    gp_arena_free(&a);
}

/* Names and times, too, are those of the first input, as on the host: of stages of one segment each its own's. */
TEST_THIN(names_and_times, SETTINGS - 1, 1)
{
    const char *dir = pipe_dir(), *const of[] = { "p", "q", "s", "t" };
    char name[20], *told[4], yaml[2500];
    size_t n, at = 0;
    for (int i = 0; i < 6; i++) {
        snprintf(name, sizeof name, "%c%d.raw", "pq"[i % 2], i / 2);
        pipe_file(dir, name, (float[4]){ (float)i }, 16);
    }
    pipe_text(dir, "say.lua", "function process(frame, x, y)\n  y:print(frame.name, string.format('%.9f', frame.time))\nend\n");
    pipe_text(dir, "time.lua", "function process(frame, x, y) y[1] = frame.time y[2] = frame.time y[3] = frame.time "
              "y[4] = frame.time end\n");
    at += (size_t)snprintf(yaml, sizeof yaml, "buffers: {p: {dtype: f32, shape: [4]}, q: {dtype: f32, shape: [4]}, c: {dtype: f64, shape: [4]}, "
                           "d: {dtype: f64, shape: [4]}");
    for (int i = 0; i < 4; i++)
        at += (size_t)snprintf(yaml + at, sizeof yaml - at, ", told_%s: {dtype: u8, shape: [99]}", of[i]);
    at += (size_t)snprintf(yaml + at, sizeof yaml - at, "}\nstages:\n  - {use: read, path: 'p*.raw', out: p}\n"
        "  - {use: read, path: 'q*.raw', out: q}\n  - {use: expr, expr: q - p, in: {q: q, p: p}, out: s}\n"
        "  - {use: expr, expr: p * 2, in: p, out: t}\n  - {use: expr, expr: s + t + d * 0, in: [t, s, d], out: u}\n"
        "  - {name: end, use: discard, in: u}\n  - {use: expr, expr: 'q * 0 + frame.time', in: q, out: d}\n"
        "  - {use: lua, script: time.lua, in: q, out: c}\n  - {use: compare, in: [d, c]}\n");
    for (int i = 0; i < 4; i++)
        at += (size_t)snprintf(yaml + at, sizeof yaml - at, "  - {use: lua, script: say.lua, in: %s, out: told_%s}\n"
                               "  - {use: write, path: told_%s.txt, format: raw}\n", of[i], of[i], of[i]);
    pipe_done(dir, yaml, on, settings[_i], (gp_run_options){ 0 });
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "told_%s.txt", of[i]);
        ck_assert((told[i] = pipe_read(dir, name, &n)) && strstr(told[i], "2\t"));
    }
    ck_assert_msg(!strncmp(told[0], "p0\t", 3) && !strncmp(told[1], "q0\t", 3), "%s, %s", told[0], told[1]);
    ck_assert_msg(!strcmp(told[2], told[1]), "s: %s, not %s", told[2], told[1]);
    ck_assert_msg(!strcmp(told[3], told[0]), "t: %s, not %s", told[3], told[0]);
    for (int i = 0; i < 4; i++)
        free(told[i]);
}

/* Runs that pause, and go on with other settings. */
TEST_THIN(pauses, CASES, 1)
{
    static const char *const other[][4] = { { "depth=9", "launch=stream", NULL }, { "depth=12", "batch=4", NULL } };
    static const char *const *const sets[] = { settings[3], other[0], other[1] };
    gp_arena a = { 0 };
    for (unsigned long long at = 0; at < 6; at++) {
        const unsigned long long ats[] = { at, at + 3 };
        int parts;
        const char *dir = pipe_dir();
        meta_put_scripts(dir);
        pipe_npy(dir, "rows.npy", 5, 4, counted);
        pipe_result r = pipe_run_paused(dir, yaml_of(&a, _i), on, sets, ats, 2, (gp_run_options){ 0 }, &parts);
        pipe_no_errors(&r, cases[_i].what);
        meta_is(dir, "told.csv", cases[_i].want, cases[_i].what);
    }
    gp_arena_free(&a);
}

CASES_SUITE(meta, NULL, NULL, 0, strcmp(on, "cpu") && getenv("GPIPE_SANITIZED") ? 5 : 1)
