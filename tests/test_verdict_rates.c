/* test_verdict_rates.c - as test_verdict.c, of stages that regroup frames: depths by what they take and make at a
 * time, and edits that the compiler takes. */
#include "verdictrig.h"

#define A "  - {name: a, use: lua, script: free.lua}\n"

static const verdict_case cases[] = {
    /* a depth of 48 is no more for groups of 16 than 3 is for frames */
    { "turns with a group", G A "  - {use: group, frames: 16}\n" END,
      .actor = { { "a", .busy = 50, .in = 5, .out = 45 }, { "group", .busy = 50, .in = 48 } },
      .buffer = { { "a", "group", 24 } }, .bound = GP_BOUND_DEPTH, .of = "a",
      .text = "bound by the depth of buffer 'a' (48). 'a' waits for room 45 % of the time, 'group' for frames 48 %: "
      "try depth: 6", .path = "depth", .value = "6" },
    { "turns with a split", "buffers: {g: {dtype: f32, shape: [16, 1024]}}\nstages:\n" SOURCE
      "  - {use: split, out: rows}\n" A END,
      .actor = { { "split", .busy = 50, .out = 45 }, { "a", .busy = 50, .in = 48 } },
      .buffer = { { "rows", "a", 24 } }, .bound = GP_BOUND_DEPTH, .of = "rows", .text = ": try depth: 6",
      .path = "depth", .value = "6" },
    { "a group, its depth said", "buffers: {g: {dtype: f32, shape: [1024]}, a: {depth: 16}}\nstages:\n" SOURCE A
      "  - {use: group, frames: 16}\n" END,
      .actor = { { "a", .busy = 50, .in = 5, .out = 45 }, { "group", .busy = 50, .in = 48 } },
      .buffer = { { "a", "group", 9 } }, .bound = GP_BOUND_DEPTH, .of = "a", .text = ": try buffers.a.depth: 48",
      .path = "buffers.a.depth", .value = "48" },
    { "a group, deep", "depth: 20\n" G A "  - {use: group, frames: 16}\n" END,
      .actor = { { "a", .busy = 50, .in = 5, .out = 45 }, { "group", .busy = 50, .in = 48 } },
      .buffer = { { "a", "group", 160 } }, .text = "nothing stands out", NONE },
    /* 3 of its frames are those that a window keeps */
    { "turns with a window", "depth: 1\n" G A "  - {use: window, frames: 4}\n" END,
      .actor = { { "a", .busy = 50, .in = 5, .out = 45 }, { "window", .busy = 50, .in = 48 } },
      .buffer = { { "a", "window", 3.5 } }, .bound = GP_BOUND_DEPTH, .of = "a", .text = ": try depth: 3",
      .path = "depth", .value = "3" },
    { "a window that waits, its depth said", "buffers: {g: {dtype: f32, shape: [1024]}, a: {depth: 4}}\nstages:\n"
      SOURCE A "  - {use: window, frames: 4}\n" END,
      .actor = { { "a", .busy = 50, .in = 5, .out = 45 }, { "window", .busy = 50, .in = 48 } },
      .buffer = { { "a", "window", 3.5 } }, .bound = GP_BOUND_DEPTH, .of = "a", .text = ": try buffers.a.depth: 6",
      .path = "buffers.a.depth", .value = "6" },
    { "kernels before a window, not measured", G "  - {use: scale, a: 2}\n  - {use: window, frames: 4}\n" END,
      .cuda = true, .estimated = true,
      .actor = { { "scale", .out = 80, .launches = 100, .ms = 5 }, { "window", .in = 90, .launches = 10, .ms = 1 } },
      .buffer = { { "scale", "window", 3.4 } }, .engine = { { 50, 25 }, { 0, 0 }, { 25, 12 } },
      .bound = GP_BOUND_COMPUTE, .of = "scale", .text = "as far as can be told", NONE },
    { "around a segment", "buffers: {g: {dtype: f32, shape: [16, 65536]}}\nstages:\n" SOURCE
      "  - {use: split, out: rows}\n  - {use: scale, a: 2}\n  - {use: group, frames: 4}\n" END, .cuda = true,
      .actor = { { "split", .busy = 10, .out = 80 }, { "scale", .out = 70, .in = 12 }, { "group", .in = 95 } },
      .buffer = { { "rows", "scale", 47 }, { "scale", "group", 0.1 } }, .engine = { { 30, 14 }, { 30, 0 }, { 20, 9 } },
      .bound = GP_BOUND_DEPTH, .of = "rows", .text = ": try depth: 6", .path = "depth", .value = "6" },
    { "around a segment, one said", "depth: 1\nbuffers: {g: {dtype: f32, shape: [16, 1024]}, rows: {depth: 16}}\n"
      "stages:\n" SOURCE "  - {use: split, out: rows}\n  - {use: scale, a: 2}\n  - {use: group, frames: 4}\n" END,
      .cuda = true,
      .actor = { { "split", .busy = 10, .out = 80 }, { "scale", .out = 70, .in = 12 }, { "group", .in = 95 } },
      .buffer = { { "rows", "scale", 15 }, { "scale", "group", 0.1 } }, .engine = { { 30, 14 }, { 30, 0 }, { 20, 9 } },
      .bound = GP_BOUND_DEPTH, .of = "rows", .text = ": try 3 times the depth for all buffers around it", NONE },
    /* 3 groups of 16 in each of two buffers are more than what 'g' can hold meanwhile */
    { "fan-in of a slow way", G "  - {use: group, frames: 16}\n" A "  - {use: reduce, op: mean, axes: [0]}\n"
      "  - {use: hold, frames: 16}\n  - {name: join, use: compare, in: [g, hold]}\n",
      .actor = { { "generate", .busy = 5, .out = 90 }, { "a", .busy = 60, .in = 38 },
                 { "join", .busy = 2, .in = 97 } },
      .buffer = { { "g", "join", 48 }, { "hold", "join", 0 } }, .bound = GP_BOUND_DEPTH, .of = "g",
      .text = "It is full while 'join' waits for 'hold': try buffers.g.depth: 96", .path = "buffers.g.depth",
      .value = "96" },
    /* nothing in the file is that buffer */
    { "fan-in of a slow way and a window", G A "  - {name: join, use: lua, script: free.lua, in: {g: g, a: a}, out: [], "
      "window: {g: 4}}\n",
      .actor = { { "generate", .busy = 5, .out = 90 }, { "g.window4", .busy = 5, .out = 90 }, { "a", .busy = 60, .in = 38 },
                 { "join", .busy = 2, .in = 97 } },
      .buffer = { { "g.window4", "join", 6 }, { "a", "join", 0 } }, .bound = GP_BOUND_DEPTH, .of = "g.window4",
      .text = "It is full while 'join' waits for 'a': try depth: 12", .path = "depth", .value = "12" },
    /* the smaller buffer is copied 64 times as often */
    { "copy out of a fast buffer", "buffers: {g: {dtype: f32, shape: [16, 1024]}}\nstages:\n" SOURCE
      "  - {use: scale, a: 2, out: s}\n  - {use: reduce, op: mean, axes: [0]}\n  - {use: hold, frames: 64, out: h}\n"
      "  - {use: split, in: g, out: rows}\n  - {use: group, frames: 1, in: rows, out: one}\n"
      "  - {use: compare, in: [h, h]}\n  - {use: discard, in: s}\n  - {use: discard, name: d2, in: one}\n",
      .cuda = true, .engine = { { 30, 12 }, { 10, 0 }, { 97, 48 } }, .bound = GP_BOUND_COPY_OUT, .of = "scale+reduce",
      .text = "Most of it is buffer 'h', f32 [1024]", NONE },
    /* it takes no workers */
    { "a split", "buffers: {g: {dtype: f32, shape: [16, 1024]}}\nstages:\n" SOURCE "  - {use: split}\n" END,
      .actor = { { "split", .busy = 97 } }, .bound = GP_BOUND_STAGE, .of = "split",
      .text = "bound by stage 'split' (host, 97 % busy): it only copies frames; make them smaller", NONE },
};

TEST_EACH(says_what_and_what_to_try, cases)
{
    verdict_check(&cases[_i]);
}

/* It counts the frames of the source, as the end of the run does. */
TEST(too_short)
{
    gp_errs errs = { 0 };
    const verdict_case *c = &cases[1];
    gp_pipeline *p = verdict_compile(c->yaml, NULL, false, &errs);
    gp_report *r = verdict_report(c, gp_pipeline_plan(p));
    for (int i = 0; i < r->nactors; i++)
        r->actor[i].frames = i ? 640 : 40;
    static const struct { int ms; bool simulated; } tried[] = {
        { 4, true }, { 4, false }, { 45, false }, { 45, true }, { 100, false },
    };
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        r->wall_ns = 1000000 * tried[i].ms, r->simulated = tried[i].simulated;
        char *text = format("too short to tell what bounds it: 40 frames in %d ms", tried[i].ms);
        gp_verdict_find(r, p);
        ck_assert_int_eq(!strcmp(r->verdict.text, text), i < 3);
    }
    gp_pipeline_destroy(p);
}

TEST_SUITE(verdict_rates, verdict_up, verdict_down, 0)
