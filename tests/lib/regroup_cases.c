/* regroup_cases.c - frames that are regrouped: where they end, their numbers, their rows, and what is refused.
 * tests/model.py has random chains. */
#include "cases.h"

enum { KNOBS = CASES_KNOBS - 2 };

/* Resident kernels of two segments need two kernels at a time, which a sanitizer does not run. */
static const char *knob_of(int i)
{
    const char *s = cases_knobs[i % KNOBS];
    return strstr(s, "persistent") && getenv("GPIPE_SANITIZED") ? cases_knobs[0] : s;
}

/* A partial frame is no row of another. */
TEST_LOOP(partial_in_a_group, 0, 6)
{
    static const char *const with[] = { "{use: group, frames: 4}", "{use: window, frames: 3}", "{use: mix, op: sum, frames: 20}" };
    static const float in[9 * 12 + 9];
    const char *dir = pipe_dir();
    pipe_file(dir, "in.raw", in, sizeof in);
    char *yaml = format("buffers: {in: {dtype: f32, shape: [4, 3]}}\nstages:\n  - {use: read, path: in.raw, out: in}\n%s"
                        "  - %s\n  - {use: write, path: out.raw, durable: none}\n", _i % 2 ? "  - {use: scale}\n" : "",
                        with[_i / 2]);
    pipe_result r = pipe_run(dir, yaml, on, NULL, (gp_run_options){ 0 });
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_msg(strstr(r.errs.e[0].msg, "takes whole frames, and frame 9 of '") != NULL
                  && strstr(r.errs.e[0].msg, "' has 3 of 4 rows") != NULL, "%s", r.errs.e[0].msg);
    ck_assert_int_eq(r.errs.e[0].at.line, 4 + _i % 2);
    ck_assert_uint_eq(r.account[0].failed, _i / 2 ? 1 : 2);            /* the group is of frames 8 and 9 */
}

/* ---- several sources and sinks ---------------------------------------- */

#define LOSES(out, from, how) "  - {use: lua, script: last.lua, in: a, on_error: drop, out: " out ", params: {from: " \
                              #from ", how: " how "}}\n"
#define LAST(from, how) "{use: lua, script: last.lua, on_error: drop, params: {from: " #from ", how: " how "}}\n"
#define FAILS(out, from) LOSES(out, from, "fail")
#define DROPS(out, from) LOSES(out, from, "drop")

/* Stages behind sources a of 10 and b of `other` frames of [4, 3]; what became of a's frames; msg: of the error. */
static const struct { const char *what, *stages, *msg; int other, out, dropped, failed; } graphs[] = {
    { "a tail is dropped, and another sink has seen it",
      "  - {use: group, in: a, frames: 4, tail: drop}\n  - {use: discard}\n  - {use: discard, in: a}\n", NULL, 0, 8, 2, 0 },
    { "two tails, one behind the other", "  - {use: mix, op: sum, in: a, frames: 2, tail: drop}\n"
      "  - {use: group, frames: 3, tail: drop}\n  - {use: discard}\n  - {use: discard, in: a}\n", NULL, 0, 6, 4, 0 },
    { "the same alone", "  - {use: decimate, in: a, frames: 3}\n  - {use: mix, op: sum, frames: 3, tail: drop}\n"
      "  - {use: discard}\n", NULL, 0, 9, 1, 0 },
    { "a tail of one source is none of the other's, in one segment", "  - {use: scale, in: b, out: c}\n"
      "  - {use: kernel, in: {a: a, c: c}, threads: out.size, args: [a, c, out, {i32: out.size}], code: \"extern \\\"C\\\" __global__ void "
      "kernel(const float *a, const float *c, float *o, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; "
      "if (i < n) o[i] = a[i] + c[i]; }\"}\n  - {use: discard}\n  - {use: group, in: c, frames: 4, tail: drop}\n"
      "  - {use: discard}\n", NULL, 10, 10, 0, 0 },
    { "held beside what ends first", "  - {use: hold, in: b, frames: 4}\n"
      "  - {use: lua, script: copy2.lua, in: {x: a, y: hold}}\n  - {use: discard}\n", NULL, 3, 10, 0, 0 },
    { "held for too short", "  - {use: hold, in: b, frames: 4}\n"
      "  - {use: lua, script: copy2.lua, in: {x: a, y: hold}}\n  - {use: discard}\n",
      "different lengths: 'hold' ended after 8 frames, 'a' has more", 2, -1, 0, 0 },
    { "nothing but held", "  - {use: hold, in: a, frames: 2, out: x}\n  - {use: hold, in: b, frames: 2, out: y}\n"
      "  - {use: lua, script: copy2.lua, in: {x: x, y: y}}\n  - {use: discard}\n",
      "different lengths: 'x' ended after 20 frames, 'y' has more", 30, -1, 0, 0 },
    { "a failure behind all", "  - {use: mix, op: sum, in: a}\n  - {use: split}\n"
      "  - {use: lua, script: third.lua}\n  - {use: discard}\n", "frame 2: no", 0, 0, 0, 10 },
    { "holes behind the end of another source", FAILS("l", 6) "  - {use: lua, script: copy2.lua, in: {x: l, y: b}}\n"
      "  - {use: discard}\n", NULL, 6, 6, 0, 4 },
    { "the same, on the device", DROPS("l", 6) "  - {use: expr, in: {x: l, y: b}, expr: x + y}\n  - {use: discard}\n",
      NULL, 6, 6, 4, 0 },
    { "the same, and another sink has seen it", FAILS("l", 6) "  - {use: expr, in: {x: l, y: b}, expr: x + y}\n"
      "  - {use: discard}\n  - {use: discard, in: a}\n", NULL, 6, 6, 0, 4 },
    { "the same twice, once dropped and once failed", DROPS("l", 6) FAILS("m", 6)
      "  - {use: lua, script: copy2.lua, in: {x: l, y: b}}\n  - {use: discard}\n"
      "  - {use: expr, in: {x: m, y: b}, expr: x + y}\n  - {use: discard}\n", NULL, 6, 6, 0, 4 },
    { "windows of them", FAILS("l", 6) "  - {use: window, in: l, frames: 3}\n"
      "  - {use: window, in: b, frames: 3, out: w}\n"
      "  - {use: expr, in: {x: window, y: w}, expr: x + y}\n  - {use: discard}\n", NULL, 6, 6, 0, 4 },
    { "a window of what ended, beside them", FAILS("l", 6) "  - {use: expr, in: {x: l, y: b}, expr: x + y, out: j}\n"
      "  - {use: window, in: j, frames: 2}\n  - {use: reduce, op: mean, axes: [0], out: m}\n"
      "  - {use: expr, in: {l: l, m: m}, expr: l - m}\n  - {use: discard}\n", NULL, 6, 6, 0, 4 },
    { "groups of both", DROPS("l", 6) "  - {use: expr, in: {x: l, y: b}, expr: x + y, out: j}\n"
      "  - {use: group, in: l, frames: 2, out: g}\n  - {use: group, in: j, frames: 2, out: h}\n"
      "  - {use: expr, in: {l: g, m: h}, expr: l - m}\n  - {use: discard}\n", NULL, 6, 6, 4, 0 },
    { "a sum of what is dropped, in one segment", DROPS("l", 6) "  - {use: expr, in: {x: l, y: a}, expr: x + y, out: j}\n"
      "  - {use: expr, in: {x: j, y: b}, expr: x + y}\n  - {use: discard}\n", NULL, 6, 6, 4, 0 },
    { "the same unfused, and both are read", "  - {use: scale, in: a, out: c}\n" DROPS("l", 6)
      "  - {use: lua, script: copy2.lua, in: {x: l, y: c}, out: j}\n  - {use: expr, in: {x: j, y: b}, expr: x + y}\n"
      "  - {use: discard}\n  - {use: discard, in: j}\n", NULL, 6, 6, 4, 0 },
    { "two that share what is dropped, in one segment", DROPS("l", 6)
      "  - {use: expr, in: {x: l, y: a}, expr: x + y, out: j}\n  - {use: expr, in: {x: l, y: b}, expr: x + y, out: k}\n"
      "  - {use: discard, in: j}\n  - {use: discard, in: k}\n", NULL, 6, 6, 4, 0 },
    { "the same on the host", DROPS("l", 6) "  - {use: lua, script: copy2.lua, in: {x: l, y: a}, out: j}\n"
      "  - {use: lua, script: copy2.lua, in: {x: l, y: b}, out: k}\n"
      "  - {use: discard, in: j}\n  - {use: discard, in: k}\n", NULL, 6, 6, 4, 0 },
    { "one of several sources goes on", DROPS("l", 8) "  - {use: expr, in: {x: l, y: a}, expr: x + y, out: j}\n"
      "  - {use: expr, in: {x: j, y: b}, expr: x + y}\n  - {use: discard}\n", "different lengths: 'b' ended after 6", 6, -1, 0, 0 },
    { "a failure behind what is left out beside it", "  - {use: decimate, in: a, frames: 4, out: d}\n"
      "  - {use: lua, script: last.lua, in: d, on_error: drop, out: e, params: {from: 1, how: fail}}\n"
      "  - {use: scale}\n  - {use: discard}\n  - {use: discard, in: a}\n", NULL, 0, 8, 0, 2 },
    { "the same, and what failed is split", "  - {use: decimate, in: a, frames: 4}\n  - " LAST(1, "fail")
      "  - {use: split}\n  - {use: discard}\n", NULL, 0, 8, 0, 2 },
    { "a row of every third fails", "  - {use: split, in: a}\n  - {use: decimate, frames: 3}\n  - " LAST(12, "fail")
      "  - {use: discard}\n", NULL, 0, 9, 0, 1 },
    { "groups of every second are dropped", "  - {use: decimate, in: a, frames: 2}\n  - {use: group, frames: 2, out: g}\n"
      "  - {use: reduce, op: sum, axes: [0]}\n  - " LAST(1, "drop") "  - {use: discard}\n", NULL, 0, 7, 3, 0 },
    { "and of groups a row of every second", "  - {use: decimate, in: a, frames: 2}\n  - {use: group, frames: 2}\n"
      "  - {use: split}\n  - " LAST(3, "fail") "  - {use: discard}\n", NULL, 0, 8, 0, 2 },
    { "held, every third of them, of groups every second", "  - {use: hold, in: a, frames: 2}\n"
      "  - {use: decimate, frames: 3}\n  - {use: mix, op: sum, frames: 2}\n  - {use: decimate, frames: 2}\n  - "
      LAST(1, "fail") "  - {use: discard}\n", NULL, 0, 8, 0, 2 },
    { "what fills beside what will end", DROPS("l", 6) "  - {use: expr, in: {x: l, y: b}, expr: x + y, out: j}\n"
      "  - {use: lua, script: copy2.lua, in: {x: a, y: j}}\n  - {use: discard}\n",
      "different lengths: 'j' ended after 6 frames, 'a' has more", 6, -1, 0, 0 },
    { "mixed and held", DROPS("l", 6) "  - {use: expr, in: {x: l, y: b}, expr: x + y, out: j}\n"
      "  - {use: mix, in: j, op: mean, frames: 2}\n  - {use: hold, frames: 2, out: h}\n"
      "  - {use: expr, in: {l: l, m: h}, expr: l - m}\n  - {use: discard}\n", NULL, 6, 6, 4, 0 },
    { "a tail is dropped, and what failed beside it", FAILS("l", 8) "  - {use: group, in: a, frames: 4, tail: drop}\n"
      "  - {use: split}\n  - {use: expr, in: {x: l, y: split}, expr: x + y}\n  - {use: discard}\n", NULL, 0, 8, 0, 2 },
    { "the same beside a sink that reads what was made before", FAILS("l", 8)
      "  - {use: group, in: a, frames: 4, tail: drop}\n  - {use: split}\n"
      "  - {use: expr, in: {x: split}, expr: 2 * x, out: s}\n"
      "  - {use: lua, script: see2.lua, in: {x: l, y: s}, out: []}\n"
      "  - {use: expr, in: {x: l, y: s}, expr: x + y, name: e}\n"
      "  - {use: discard}\n", NULL, 0, 8, 0, 2 },
    { "the same, in a sink", FAILS("l", 9) "  - {use: group, in: l, frames: 4, tail: drop}\n  - {use: split}\n"
      "  - {use: expr, in: {x: split}, expr: 2 * x}\n"
      "  - {use: lua, script: see2.lua, in: {x: expr, y: split}, out: []}\n",
      NULL, 0, 8, 1, 1 },
};

TEST_THIN(any_sinks, 6 * sizeof graphs / sizeof *graphs, 1)
{
    const char *dir = pipe_dir();
    char yaml[2000];
    pipe_text(dir, "copy2.lua", "function process(frame, x, z) z:copy(x.x) end\n");
    pipe_text(dir, "see2.lua", "function process(frame, x) end\n");
    pipe_text(dir, "last.lua", "local last\nfunction init(stage) last = stage.params end\n"
              "function process(frame, x, y)\n  if frame.index < last.from then y:copy(x)\n"
              "  elseif last.how == 'drop' then return 'drop'\n  else error('no') end\nend\n");
    pipe_text(dir, "third.lua", "function process(frame, x, y) if frame.index == 2 then error('no') end y:copy(x) end\n");
    int c = _i / 6;
    snprintf(yaml, sizeof yaml, "%sbuffers: {a: {dtype: f32, shape: [4, 3]}%s}\nstages:\n"
             "  - {name: first, use: generate, frames: 10, out: a}\n", knob_of(_i),
             graphs[c].other ? ", b: {dtype: f32, shape: [4, 3]}" : "");
    if (graphs[c].other)
        snprintf(yaml + strlen(yaml), 100, "  - {name: second, use: generate, in: [], frames: %d, out: b}\n", graphs[c].other);
    strcat(yaml, graphs[c].stages);
    pipe_result r = pipe_run(dir, yaml, on, NULL, (gp_run_options){ .poison = _i % 2 });
    ck_assert_msg(r.compiled, "%s: %s", graphs[c].what, pipe_said(&r.errs));
    ck_assert_int_eq(r.outcome, graphs[c].msg ? GP_ERROR : GP_DONE);
    if (graphs[c].msg)
        ck_assert_msg(strstr(r.errs.e[0].msg, graphs[c].msg) != NULL, "%s: %s", graphs[c].what, r.errs.e[0].msg);
    gp_account x = r.account[0];
    ck_assert_msg(graphs[c].out < 0 || (x.in == 10 && x.out == (uint64_t)graphs[c].out
                  && x.dropped == (uint64_t)graphs[c].dropped && x.failed == (uint64_t)graphs[c].failed),
                  "%s: %d in, %d out, %d dropped, %d failed", graphs[c].what, (int)x.in, (int)x.out, (int)x.dropped,
                  (int)x.failed);
}

/* ---- a last few on both sides of a join ----------------------------------- */

/* Of 4 frames each makes one, whose first number is that of the first of them. */
static const char *const quarters[] = {
    "{use: group, frames: 4}", "{use: mix, op: min, frames: 4}", "{use: decimate, frames: 4}",
    "{use: group, frames: 4}, {use: reduce, op: min, axes: [0]}", "{use: group, frames: 2}, {use: mix, op: min, frames: 2}",
    "{use: mix, op: min, frames: 2}, {use: group, frames: 2}", "{use: decimate, frames: 2}, {use: mix, op: min, frames: 2}",
    "{use: hold, frames: 2}, {use: group, frames: 8}",
    "{use: group, frames: 4}, {use: hold, frames: 3}, {use: decimate, frames: 3}",
    "{use: window, frames: 3}, {use: reduce, op: max, axes: [0]}, {use: mix, op: min, frames: 4}",
    "{use: group, frames: 1}, {use: split}, {use: lua, script: copy.lua}, {use: group, frames: 4}",
};
enum { QUARTERS = sizeof quarters / sizeof *quarters };

/* Appends the stages, as a line each, from `in` to `out`. */
static void add_stages(char *yaml, const char *stages, const char *in, const char *out)
{
    for (const char *at = stages, *to; *at; at = *to ? to + 2 : to) {
        to = strchr(at, '}') + 1;
        sprintf(yaml + strlen(yaml), "  - %.*s", (int)(to - at - 1), at);
        sprintf(yaml + strlen(yaml), "%s%s%s%s}\n", at == stages ? ", in: " : "", at == stages ? in : "",
                *to ? "" : ", out: ", *to ? "" : out);
    }
}

/* Of y there are 10 frames, of x many more, all holes; that they are is known only when all were seen, so that
 * what both make together ends late, and the rest of its groups, beside those of x, must not wait for it. */
TEST_THIN(rest_on_both_sides, QUARTERS * QUARTERS, 1)
{
    const char *dir = pipe_dir();
    int from = 10;
    char yaml[2000];
    pipe_text(dir, "copy.lua", "function process(frame, x, y) y:copy(x) end\n");
    pipe_text(dir, "last.lua", "local from\nfunction init(stage) from = stage.params.from end\n"
              "function process(frame, x, y)\n  if frame.index >= from then return 'drop' end\n  for k = 1, 3 do y[k] = frame.index end\nend\n");
    pipe_text(dir, "meet.lua", "local n = 0\nfunction process(frame, x)\n  n = n + 1\n"
              "  if x.x[1] ~= 4 * frame.index or x.y[1] ~= x.x[1] then error(x.x[1] .. ' beside ' .. x.y[1]) end\nend\n"
              "function finish() if n ~= 3 then error(n .. ' frames') end end\n");
    snprintf(yaml, sizeof yaml, "%sstall_timeout: 5s\n"
             "buffers: {a: {dtype: f32, shape: [3]}, b: {dtype: f32, shape: [3]}}\nstages:\n"
             "  - {use: generate, frames: %d, out: a}\n  - {use: generate, in: [], frames: 300, out: b}\n"
             "  - {use: lua, script: last.lua, params: {from: %d}, in: b, out: x}\n"
             "  - {use: expr, expr: v + 0 * w, in: {v: x, w: a}, out: y}\n", knob_of(_i), from, from);
    add_stages(yaml, quarters[_i / QUARTERS], "x", "gx");
    add_stages(yaml, quarters[_i % QUARTERS], "y", "gy");
    strcat(yaml, "  - {use: lua, script: meet.lua, in: {x: gx, y: gy}, out: []}\n");
    pipe_result r = pipe_run(dir, yaml, on, NULL, (gp_run_options){ .poison = _i % 2 });
    ck_assert_msg(r.compiled && r.outcome == GP_DONE, "%s\n%s", pipe_said(&r.errs), yaml);
    ck_assert_msg(r.account[0].out == (uint64_t)from && r.account[1].out <= 12 && !r.account[0].cancelled
                  && !r.account[1].cancelled, "%d and %d out\n%s", (int)r.account[0].out, (int)r.account[1].out, yaml);
}

/* ---- the numbers of frames ---------------------------------------------- */

/* Frames x of [3] are their numbers, and some are holes; stages of groups g of `by` of them, to y. A frame that is none
 * meets `times` itself in y. */
static const struct { const char *what, *stages; int by, times; } kept[] = {
    { "nothing between", "  - {use: split, in: g, out: y}\n", 4, 1 },
    { "groups of one", "  - {use: expr, in: {v: g}, expr: 2 * v}\n  - {use: split, out: y}\n", 1, 2 },
    { "on the device", "  - {use: expr, in: {v: g}, expr: 2 * v}\n  - {use: split, out: y}\n", 3, 2 },
    { "few slots behind", "  - {use: split, in: g}\n  - {use: expr, expr: 3 * v, in: {v: split}, out: y}\n", 16, 3 },
    { "another axis less", "  - {use: reduce, in: g, op: mean, axes: [1]}\n  - {use: split, out: y}\n", 64, 1 },
    { "a script", "  - {use: lua, in: g, script: copy.lua, out: h}\n  - {use: split, out: y}\n", 5, 1 },
    { "device, script, device", "  - {use: expr, in: {v: g}, expr: 2 * v}\n  - {use: lua, script: copy.lua, out: h}\n"
      "  - {use: expr, in: {v: h, w: g}, expr: v + w}\n  - {use: split, out: y}\n", 7, 3 },
    { "held and decimated", "  - {use: hold, in: g, frames: 3}\n  - {use: expr, in: {v: hold}, expr: 2 * v}\n"
      "  - {use: decimate, frames: 3}\n  - {use: split, out: y}\n", 4, 2 },
    { "moved along another axis", "  - {use: roll, in: g, shift: 1, axis: 1}\n  - {use: slice, index: \":, ::-1\"}\n"
      "  - {use: split, out: y}\n", 9, 1 },
    { "grouped twice", "  - {use: split, in: g}\n  - {use: group, frames: 3, name: again}\n"
      "  - {use: split, out: y}\n", 6, 1 },
};

TEST_THIN(kept_numbers, 6 * sizeof kept / sizeof *kept, 1)
{
    enum { GROUPS = 12, MOST = GROUPS * 64 };
    const char *dir = pipe_dir();
    int c = _i / 6, there = 0, all = GROUPS * kept[c].by - _i % kept[c].by;     /* the last group may be short */
    char yaml[2000], lose[MOST + 1] = "", script[MOST + 300];
    unsigned seed = (unsigned)_i + 1;
    for (int i = 0; i < all; i++) {
        seed = seed * 1664525u + 1013904223u;
        lose[i] = (seed >> 24) % 10 < 3 && (i / kept[c].by != 1) ? '1' : '0';
        if (i / kept[c].by == 2 || (i / kept[c].by == GROUPS - 1 && _i % 6 > 3))
            lose[i] = '1';
        there += lose[i] == '0';
    }
    pipe_text(dir, "copy.lua", "function process(frame, x, y) y:copy(x) end\n");
    snprintf(script, sizeof script, "local lose = '%s'\nfunction process(frame, x, y)\n  local i = frame.index + 1\n"
             "  if lose:sub(i, i) == '1' then return 'drop' end\n  for k = 1, 3 do y[k] = i end\nend\n", lose);
    pipe_text(dir, "lose.lua", script);
    snprintf(script, sizeof script, "function process(frame, x)\n"
             "  if x.x[1] ~= frame.index + 1 or x.y[1] ~= %d * x.x[1] then error('has that of ' .. x.y[1]) end\nend\n",
             kept[c].times);
    pipe_text(dir, "meet.lua", script);
    snprintf(yaml, sizeof yaml, "%sbuffers: {a: {dtype: f32, shape: [3]}%s}\nstages:\n"
             "  - {use: generate, frames: %d, out: a}\n  - {use: lua, script: lose.lua, out: x}\n"
             "  - {use: group, frames: %d, out: g}\n%s  - {use: lua, script: meet.lua, in: {x: x, y: y}, out: []}\n",
             knob_of(_i), strstr(kept[c].stages, "out: h") ? ", h: {like: g}" : "", all, kept[c].by, kept[c].stages);
    pipe_result r = pipe_run(dir, yaml, on, NULL, (gp_run_options){ .poison = _i % 2 });
    pipe_no_errors(&r, yaml);
    ck_assert_msg(r.outcome == GP_DONE && r.account[0].out == (uint64_t)there, "%s: %d of %d frames, of\n%s",
                  kept[c].what, (int)r.account[0].out, there, yaml);
}

/* Rows `s` and `t` of frames `a` and `b` of 2 rows each, 10 of both; the last of `b` has one. What that lacks is no
 * loss of its own, but that of what stands beside it. */
static const struct { const char *what, *stages; unsigned a, b; } absent[] = {
    { "beside, on the device", "  - {use: expr, in: {x: s, y: t}, expr: x + y}\n  - {use: discard}\n", 9, 10 },
    { "beside what is made on the device", "  - {use: scale, in: s, out: u}\n"
      "  - {use: expr, in: {x: u, y: t}, expr: x + y}\n  - {use: discard}\n", 9, 10 },
    { "beside, on the host", "  - {use: lua, script: left.lua, in: {x: s, y: t}, out: z}\n"
      "  - {use: discard}\n", 9, 10 },
    { "beside, in a sink", "  - {use: lua, script: none.lua, in: {x: s, y: t}, out: []}\n", 9, 10 },
    { "held beside", "  - {use: reduce, op: sum, axes: [0], in: b}\n  - {use: hold, frames: 2, out: h}\n"
      "  - {use: expr, in: {x: t, y: h}, expr: x - y}\n  - {use: discard}\n", 10, 10 },
    { "carried beside", "  - {use: expr, in: {x: t, y: before}, out: sum, expr: x + y}\n  - {use: discard}\n", 10, 10 },
    { "a window of one", "  - {use: window, frames: 1, partial: drop, in: t}\n  - {use: discard}\n", 10, 10 },
    { "a window of two, of which the first has one", "  - {use: window, frames: 2, partial: drop, in: t}\n"
      "  - {use: discard}\n", 10, 9 },
};

TEST_LOOP(absent_rows, 0, 2 * sizeof absent / sizeof *absent)
{
    const char *dir = pipe_dir();
    unsigned c = (unsigned)_i / 2;
    static const float rows[20];
    pipe_file(dir, "a.raw", rows, sizeof rows);
    pipe_file(dir, "b.raw", rows, sizeof rows - sizeof *rows);
    pipe_text(dir, "left.lua", "function process(frame, x, y) y:copy(x.x) end\n");
    pipe_text(dir, "none.lua", "function process(frame, x) end\n");
    char *yaml = format("buffers: {a: {dtype: f32, shape: [2, 1]}, b: {dtype: f32, shape: [2, 1]}%s}\nstages:\n"
             "  - {use: read, path: a.raw, out: a}\n  - {name: other, use: read, path: b.raw, out: b}\n"
             "  - {use: split, in: a, out: s}\n  - {name: split2, use: split, in: b, out: t}\n%s"
             "  - {name: s_too, use: discard, in: s}\n  - {name: t_too, use: discard, in: t}\n",
             strstr(absent[c].stages, "before") ? ", sum: {like: t}, before: {carry: sum}" : "", absent[c].stages);
    pipe_result r = pipe_done(dir, yaml, _i % 2 ? "cpu:0-1" : on, NULL, (gp_run_options){ 0 });
    ck_assert_msg(r.account[0].out == absent[c].a && r.account[0].dropped == 10 - absent[c].a
                  && r.account[1].out == absent[c].b && r.account[1].dropped == 10 - absent[c].b,
                  "%s: %d and %d out of 10, of\n%s", absent[c].what, (int)r.account[0].out, (int)r.account[1].out,
                  yaml);
}

/* Rows of which nobody knows any more which frames they are, or that have to be at their places; msg NULL: that is of
 * no matter. */
#define BY_PLACE(what, stage) { what, "  - {use: group, in: x, frames: 4, out: g}\n  - {in: g, out: r, " stage "}\n" \
                                      "  - {use: discard, in: r}\n", "takes rows of 'g' by their places" }
#define OF_A_WINDOW(what, stage, before) { "of a window, " what, \
                                           "  - {use: window, in: x, frames: 4, out: g}\n" before \
                                           "  - {out: r, " stage "}\n  - {use: discard, in: r}\n", NULL }
static const struct { const char *what, *stages, *msg; } unknown[] = {
    { "too large a group", "  - {use: group, in: x, frames: 70}\n  - {use: split}\n  - {use: discard}\n",
      "stage 'split' cannot say which frames the rows of frame 0 of 'group' are" },
    { "other holes beside, on the device", "  - {use: group, in: x, frames: 4, out: g}\n"
      "  - {use: group, in: z, frames: 4, out: h}\n  - {use: expr, in: {g: g, h: h}, expr: g - h}\n"
      "  - {use: discard}\n",
      "stage 'expr' reads 'g' and 'h' row by row, and their rows are not of the same frames" },
    { "other holes beside, in a sink", "  - {use: group, in: x, frames: 4, out: g}\n  - {use: group, in: z, frames: 4, "
      "out: h}\n  - {use: compare, in: {in: g, with: h}}\n",
      "stage 'compare' reads 'g' and 'h' row by row, and their rows are not of the same frames" },
    { "other holes before", "  - {use: group, in: x, frames: 4, out: g}\n"
      "  - {use: expr, in: {g: g, u: u}, out: v, expr: g + u}\n  - {use: discard, in: v}\n",
      "row by row, and their rows are not of the same frames" },
    { "carried", "  - {use: group, in: x, frames: 4, out: g}\n  - {use: split, in: u, out: s}\n"
      "  - {use: lua, script: sums.lua, in: {x: s, y: z}, out: []}\n",
      "stage 'split' cannot say which frames the rows of frame 1 of 'u' are" },
    { "others that are no frames", "  - {use: group, in: x, frames: 3, out: g}\n"
      "  - {use: generate, in: [], frames: 27, out: w}\n  - {use: lua, script: both.lua, in: {x: g, y: w}, out: o}\n"
      "  - {use: discard, in: o}\n", NULL },
    { "other holes beside, in one kernel", "  - {use: group, in: x, frames: 4, out: g}\n"
      "  - {use: group, in: z, frames: 4, out: h}\n  - {use: expr, in: {g: g, h: h}, expr: g - h}\n"
      "  - {use: reduce, op: sum}\n  - {use: discard}\n", "row by row, and their rows are not of the same frames" },
    { "a constant beside", "  - {use: group, in: x, frames: 4, out: g}\n  - {use: reshape, in: c, shape: [4, 1]}\n"
      "  - {use: expr, in: {g: g, w: reshape}, expr: g * w}\n  - {use: discard}\n",
      "row by row, and their rows are not of the same frames" },
    { "sums of all", "  - {use: group, in: x, frames: 3, out: g}\n  - {use: reduce, in: g, op: sum, axes: [0],"
      " out: s}\n"
      "  - {use: expr, in: {g: g, s: s}, expr: g - s}\n  - {use: discard}\n", NULL },
    { "a row of a constant", "  - {use: group, in: x, frames: 4, out: g}\n  - {use: reshape, in: c, shape: [4, 1]}\n"
      "  - {use: expr, in: {g: g, w: reshape}, expr: 'g * w[1, i1]'}\n  - {use: discard}\n", NULL },
    { "a row of a constant, and all", "  - {use: group, in: x, frames: 4, out: g}\n"
      "  - {use: reshape, in: c, shape: [4, 1]}\n"
      "  - {use: expr, in: {g: g, w: reshape}, expr: 'g * w[1, i1] + w'}\n  - {use: discard}\n",
      "row by row, and their rows are not of the same frames" },
    OF_A_WINDOW("the newest", "in: g, use: slice, index: '-1'", ""),
    OF_A_WINDOW("all by their index", "in: g, use: expr, expr: g * i0", ""),
    OF_A_WINDOW("by the newest but one", "in: g, use: expr, expr: 'g - g[i0 - 1, i1]'", ""),
    OF_A_WINDOW("weighted", "use: expr, in: {g: g, w: reshape}, expr: g * w",
                "  - {use: reshape, in: c, shape: [4, 1]}\n"),
    { "a window's rows moved, and what they are", "  - {use: window, in: x, frames: 4, out: g}\n"
      "  - {use: roll, in: g, shift: 1, axis: 0}\n  - {use: split}\n  - {use: discard}\n",
      "stage 'split' cannot say which frames the rows of" },
    BY_PLACE("their neighbors", "use: expr, expr: 'g - g[i0 - 1, i1]'"),
    { "neighbors in a row", "  - {use: group, in: x, frames: 4, out: g}\n"
      "  - {use: expr, in: g, expr: 'g - g[i0, i1 - 1]'}\n"
      "  - {use: discard}\n", NULL },
    BY_PLACE("blurred", "use: blur, sigma: 1"),
    BY_PLACE("edges", "use: sobel"),
    BY_PLACE("joined spots", "use: label"),
    BY_PLACE("medians", "use: median, size: 3"),
    BY_PLACE("grown", "use: morphology, op: dilate, size: 3"),
    BY_PLACE("weighted with neighbors", "use: conv2d, weights: [[1], [2], [1]]"),
    BY_PLACE("cut", "use: slice, index: '1:3'"),
    BY_PLACE("turned round", "use: slice, index: '::-1'"),
    BY_PLACE("one", "use: slice, index: '2'"),
    BY_PLACE("the middle", "use: crop, size: [2, 3]"),
    BY_PLACE("chosen", "use: gather, index: [2, 0, 1, 2]"),
    BY_PLACE("shifted", "use: roll, shift: 1, axis: [1, 0]"),
    BY_PLACE("shifted as a whole", "use: roll, shift: 1"),
    BY_PLACE("in pairs", "use: reshape, shape: [-1]"),
    BY_PLACE("with more before", "use: pad, before: [1, 0]"),
    BY_PLACE("turned", "use: rotate90, times: 2"),
    BY_PLACE("the largest", "use: reduce, op: argmax, axes: [0]"),
    BY_PLACE("by its index", "use: expr, expr: g * i0"),
    BY_PLACE("the first", "use: expr, expr: 'g - g[0, i1]'"),
    BY_PLACE("resized", "use: resize, height: 2, width: 3"),
    BY_PLACE("resized to as many", "use: resize, height: 4, width: 3"),
    { "the hole is the last", "  - {use: group, in: x, frames: 2, out: g}\n  - {use: slice, in: g, index: '-1'}\n"
      "  - {use: discard}\n", "takes rows of 'g' by their places" },
    { "the hole is the last, beside sums of all", "  - {use: group, in: x, frames: 2, out: g}\n"
      "  - {use: reduce, in: g, op: sum, axes: [0], out: s}\n  - {use: expr, in: {g: g, s: s}, expr: g - s}\n"
      "  - {use: discard}\n", NULL },
    { "matrices beside a constant's", "  - {use: reshape, in: x, shape: [3, 1], out: m}\n"
      "  - {use: group, in: m, frames: 4, out: g}\n  - {use: reshape, in: c, shape: [4, 1, 1], out: w}\n"
      "  - {use: matmul, in: [g, w]}\n  - {use: discard}\n", "does not fit" },
    { "one matrix of two beside a constant's", "  - {use: reshape, in: x, shape: [3, 1], out: m}\n"
      "  - {use: group, in: m, frames: 2, out: g}\n  - {use: reshape, in: c, shape: [2, 1, 2], out: w}\n"
      "  - {use: matmul, in: [g, w]}\n  - {use: discard}\n", "what is shorter there than declared is not taken for all" },
    { "matrices by one", "  - {use: reshape, in: x, shape: [3, 1], out: m}\n"
      "  - {use: group, in: m, frames: 4, out: g}\n  - {use: reshape, in: c, shape: [1, 4], out: w}\n"
      "  - {use: matmul, in: [g, w]}\n  - {use: discard}\n", NULL },
    BY_PLACE("from elsewhere", "use: warp, affine: [1, 0, 0, 0, 1, 1]"),
    BY_PLACE("in a loop", "use: loop, times: 1, stages: [{use: roll, in: in, shift: 1, axis: 0, out: out}]"),
    { "behind each other", "  - {use: group, in: x, frames: 4, out: g}\n  - {use: concat, in: {a: g, b: g}}\n"
      "  - {use: discard}\n", "takes rows of 'g' by their places" },
    { "the two largest", "  - {use: group, in: x, frames: 4, out: g}\n  - {use: topk, in: g, k: 2, axis: 0,"
      " out: {indices: i}}\n  - {use: discard, in: i}\n", "takes rows of 'g' by their places" },
    { "correlated", "  - {use: group, in: x, frames: 4, out: g}\n  - {use: correlate, in: {a: g, b: g}, lags: 1}\n"
      "  - {use: discard}\n", "takes rows of 'g' by their places" },
    { "a branch of other rows", "  - {use: group, in: x, frames: 4, out: g}\n  - {use: group, in: z, frames: 4, out: h}\n"
      "  - {use: lua, script: sums.lua, in: {x: g, y: h}, out: []}\n", NULL },
};

TEST_THIN(unknown_numbers, 6 * sizeof unknown / sizeof *unknown, 1)
{
    const char *dir = pipe_dir();
    pipe_text(dir, "both.lua", "function process(frame, x, o) o:fill(x.x:sum() + x.y:sum()) end\n");
    pipe_text(dir, "sums.lua", "function process(frame, x) assert(x.x:sum() + x.y:sum() > -1) end\n");
    pipe_text(dir, "lose.lua", "local by\nfunction init(stage) by = stage.params.by end\n"
              "function process(frame, x, y)\n  if frame.index == by then return 'drop' end\n  y:copy(x)\nend\n");
    char *yaml = format("%sbuffers: {a: {dtype: f32, shape: [3]}%s}\nstages:\n"
        "  - {use: generate, frames: 80, out: a}\n  - {use: lua, script: lose.lua, params: {by: 1}, out: x}\n"
        "  - {use: lua, in: a, script: lose.lua, params: {by: 2}, out: z}\n%s  - {use: discard, in: x}\n"
        "  - {use: discard, in: z}\n", knob_of(_i),
        strstr(unknown[_i / 6].stages, "u: u") ? ", v: {dtype: f32, shape: [4, 3]}, u: {carry: v}"
        : strstr(unknown[_i / 6].stages, "in: u") ? ", u: {carry: g}"
        : strstr(unknown[_i / 6].stages, "in: c") ? ", c: {const: [1, 2, 3, 4]}"
        : strstr(unknown[_i / 6].stages, "out: w") ? ", w: {dtype: f32, shape: [3, 3]}, o: {like: w}" : "",
        unknown[_i / 6].stages);
    const char *sets[] = { strstr(yaml, "matmul") ? "launch=graph" : NULL, NULL };     /* persistent: no library */
    pipe_result r = pipe_run(dir, yaml, on, sets, (gp_run_options){ .poison = _i % 2 });
    const char *msg = unknown[_i / 6].msg, *said = pipe_said(&r.errs);
    ck_assert_msg(r.compiled && r.outcome == (msg ? GP_ERROR : GP_DONE) && (!msg || strstr(said, msg)), "%s: %s",
                  unknown[_i / 6].what, said);
}

/* Every line of tests/ref/mixes.txt: what NumPy makes of the rows of a file, the last few included. */
TEST(mixes_as_numpy)
{
    static const char *const rows[][2] = { { "wide_", "35" }, { "plane_", "17" }, { "nan_", "17" }, { "halves_", "33" },
                                           { "doubles_", "40" } };
    char line[200], ref[4096], op[8], in[20], expected[20], tolerance[12];
    int by, n = 0;
    ck_assert_ptr_nonnull(realpath("tests/ref", ref));
    FILE *list = fopen("tests/ref/mixes.txt", "r");
    ck_assert_ptr_nonnull(list);
    const char *dir = pipe_dir();
    for (; fgets(line, sizeof line, list); n += *line != '#') {
        if (sscanf(line, "%7s | %d | %19s | %19s | %11s", op, &by, in, expected, tolerance) != 5)
            continue;
        const char *row = NULL;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            if (!strncmp(in, rows[i][0], strlen(rows[i][0])))
                row = rows[i][1];
        char *yaml = format("%sbuffers: {in: {shape: [%s]}}\nstages:\n  - {use: read, path: %s/%s.npy, out: in}\n"
                            "  - {use: mix, op: %s, frames: %d}\n  - {use: compare, file: %s/%s.npy, rel: %s}\n",
                            knob_of(n), row, ref, in, op, by, ref, expected, tolerance);
        pipe_done(dir, yaml, on, NULL, (gp_run_options){ .poison = n % 2 });
    }
    ck_assert_int_gt(n, 40);
    fclose(list);
}

CASES_SUITE(regroup, NULL, NULL, 0, cases_every(7, 1, 1))
