/* test_verdict_device.c - as test_verdict.c: engines, launches, streams, and the depth between stages. */
#include "verdictrig.h"

/* Two stages on the device, with more keys for each. */
#define TWO(top, first, second) top G "  - {name: a, use: scale, a: 2" first "}\n" \
    "  - {name: b, use: scale, b: 2" second "}\n" \
    END "fuse: none\n"

static const verdict_case cases[] = {
    /* engines */
    { "copy in", GPU(""), .cuda = true, .actor = { { "scale..cast", .out = 90 } },
      .engine = { { 97, 48 }, { 30, 0 }, { 25, 12 } }, .bound = GP_BOUND_COPY_IN,
      .of = "scale..cast",
      .text = "bound by the copy in of 'scale..cast' (97 % busy, 48 of 50 GB/s). Most of it is buffer "
      "'g', f32 [1024, 1024]: send it in a smaller type, and cast it on the device", NONE },
    { "copy in of bytes", "buffers: {g: {dtype: u8, shape: [4096, 1024]}}\nstages:\n"
      "  - {use: generate, out: g, frames: 9}\n  - {use: cast, dtype: f32, on: device}\n" END, .cuda = true,
      .engine = { { 97, 48 }, { 30, 0 }, { 25, 12 } }, .bound = GP_BOUND_COPY_IN, .of = "cast",
      .text = "u8 [4096, 1024]: send less of it", NONE },
    { "copy out", GPU(""), .cuda = true, .estimated = true,
      .engine = { { 30, 12 }, { 0, 0 }, { 97, 48 } }, .bound = GP_BOUND_COPY_OUT,
      .of = "scale..cast", .text = "bound by the copy out of 'scale..cast' (~97 % busy, 48 of 50 "
      "GB/s). Most of it is buffer 'cast', u8 [1024, 1024]: reduce it before it is copied", NONE },
    { "copies that are small", "batch: 1\ndepth: 8\n" SCALE, .cuda = true,
      .engine = { { 97, 2 }, { 30, 0 }, { 25, 2 } }, .bound = GP_BOUND_COPY_IN, .of = "scale",
      .text = "2 of 50 GB/s): try batch: auto", .path = "batch", .value = "auto" },
    { "kernels", GPU(""), .cuda = true, .engine = { { 50, 25 }, { 97, 0 }, { 25, 12 } },
      .bound = GP_BOUND_COMPUTE, .of = "scale..cast",
      .text = "bound by the kernels of 'scale..cast' (compute 97 % busy): a trace shows", NONE },
    { "kernels of one stream", GPU("streams: 1\n"), .cuda = true,
      .engine = { { 5, 2 }, { 90, 0 }, { 5, 2 } }, .bound = GP_BOUND_COMPUTE, .of = "scale..cast",
      .text = "(compute 90 % busy): try streams: 2", .path = "streams", .value = "2" },
    /* kernels that use the host's memory: the engines that they stand in for have nothing to do */
    { "the link to the host", SCALE, .cuda = true, .engine = { { 0, 0, 45 }, { 97, 0 }, { 0, 0, 45 } },
      .bound = GP_BOUND_COMPUTE, .of = "scale", .whole = true,
      .text = "bound by the link to the host, over which the kernels of 'scale' read its memory (compute 97 % busy, 45 of 50 "
      "GB/s). Most of it is buffer 'g', f32 [1024]: use a smaller type, or less of it", NONE },
    { "the link, where most goes out", GPU(""), .cuda = true, .engine = { { 5, 2, 1 }, { 97, 0 }, { 0, 0, 30 } },
      .bound = GP_BOUND_COMPUTE, .of = "scale..cast",
      .text = "the kernels of 'scale..cast' write its memory (compute 97 % busy, 30 of 50 GB/s). Most of it is buffer 'cast'",
      NONE },
    { "the link, not measured", SCALE, .cuda = true, .estimated = true, .actor = { { "scale", .out = 80 } },
      .engine = { { 0, 0, 45 }, { 0, 0 }, { 0, 0, 45 } }, .bound = GP_BOUND_COMPUTE, .of = "scale",
      .text = "read its memory (45 of 50 GB/s)", NONE },
    { "kernels that move little", SCALE, .cuda = true, .engine = { { 0, 0, 20 }, { 97, 0 }, { 0, 0, 10 } },
      .bound = GP_BOUND_COMPUTE, .of = "scale", .text = "bound by the kernels of 'scale' (compute 97 % busy), which move 40 % "
      "of what the link to the host can: a trace", NONE },
    { "kernels of one stream that move much", "streams: 1\n" SCALE, .cuda = true,
      .engine = { { 0, 0, 30 }, { 97, 0 }, { 0, 0, 30 } }, .bound = GP_BOUND_COMPUTE, .of = "scale",
      .text = "which move 60 % of what the link to the host can: try streams: 2", .path = "streams", .value = "2" },
    { "kernels, not measured", GPU(""), .cuda = true, .estimated = true,
      .actor = { { "scale..cast", .out = 80 } }, .engine = { { 50, 25 }, { 0, 0 }, { 25, 12 } },
      .bound = GP_BOUND_COMPUTE, .of = "scale..cast",
      .text = "as far as can be told when the GPU is not measured", NONE },

    /* a stage that never waits is the bound, however busy what it holds up looks */
#define WRITES(top) top "buffers: {g: {dtype: f32, shape: [1024]}}\nstages:\n" SOURCE \
      "  - {use: scale, a: 2}\n  - {name: out, use: write, path: out.npy}\n"
    { "a writer that never waits, kernels estimated", WRITES(""), .cuda = true, .estimated = true,
      .actor = { { "generate", .busy = 2, .out = 97 }, { "scale", .busy = 2, .out = 90 },
                 { "out", .busy = 82 } },
      .buffer = { { "scale", "out", 2.9 } }, .engine = { { 5, 2 }, { 88, 0 }, { 5, 2 } },
      .bound = GP_BOUND_STAGE, .of = "out", .text = "bound by stage 'out' (host, 82 % busy, hardly "
      "ever waiting, GPU idle ~12 %): write a smaller type", NONE },
    { "a writer that never waits, streams that overlap", WRITES(""), .cuda = true,
      .actor = { { "scale", .busy = 2, .out = 60, .in = 30 }, { "out", .busy = 82 } },
      .engine = { { 5, 2 }, { 90, 0 }, { 5, 2 } }, .bound = GP_BOUND_STAGE, .of = "out",
      .text = "bound by stage 'out' (host, 82 % busy, hardly ever waiting, GPU idle 10 %)", NONE },
    { "a writer that never waits, threads on the CPU", WRITES(""),
      .actor = { { "scale", .busy = 2, .out = 90, .launches = 880, .ms = 3 },
                 { "out", .busy = 82 } },
      .bound = GP_BOUND_STAGE, .of = "out", .text = "bound by stage 'out' (host, 82 % busy", NONE },
    { "a writer that waits now and then", "depth: 6\n" WRITES(""), .cuda = true, .estimated = true,
      .actor = { { "scale", .busy = 2, .out = 90 }, { "out", .busy = 78, .in = 8 } },
      .buffer = { { "scale", "out", 5 } }, .engine = { { 5, 2 }, { 95, 0 }, { 5, 2 } },
      .text = "nothing stands out as what bounds it: the busiest is stage 'out', 78 %", NONE },
    { "several workers that never wait", PNG("%05d.png', workers: 2"),
      .actor = { { "generate", .busy = 30, .out = 65 }, { "out", .busy = 150, .in = 6 } },
      .bound = GP_BOUND_STAGE, .of = "out", .text = "(host, 2 workers, 75 % busy, hardly ever "
      "waiting): try", .path = "stages.out.workers", .value = "5" },
    { "a source that ended early", HOST, .actor = { { "generate", .busy = 82, .ended = 84 },
      { "clean", .busy = 84, .in = 12 } }, .text = "the busiest is stage 'clean', 84 %", NONE },
    { "a source that ended with the last frame", HOST,
      .actor = { { "generate", .busy = 82, .ended = 97 }, { "clean", .busy = 84, .in = 12 } },
      .bound = GP_BOUND_STAGE, .of = "generate", .text = "(host, 82 % busy, hardly ever waiting): try workers: 2",
      .path = "stages.generate.workers", .value = "2" },
    { "a source that keeps up with its pipe", "buffers: {g: {dtype: u8, shape: [4]}}\nstages:\n"
      "  - {use: read, path: stdin, format: raw, out: g}\n" END,
      .actor = { { "read", .busy = 80, .idle = 8 } }, .text = "nothing stands out", NONE },
    { "a launcher that never waits", "depth: 6\n" SCALE, .cuda = true,
      .actor = { { "scale", .busy = 75, .in = 2, .launches = LONG } }, .engine = { { 10, 1 } },
      .bound = GP_BOUND_LAUNCH, .of = "scale",
      .text = "bound by launching 'scale' (75 % busy, hardly ever waiting, GPU idle 90 %). A launch of 1 frame takes 750 us: ", .path = "depth",
      .value = "24" },
    { "a launcher that never waits, for a GPU that is never idle", SCALE, .cuda = true,
      .actor = { { "scale", .busy = 75, .in = 2, .launches = LONG } }, .engine = { { 10, 1 }, { 97, 0 } },
      .bound = GP_BOUND_COMPUTE, .of = "scale", .text = "bound by the kernels of 'scale' (compute 97 % busy)", NONE },
    { "a launcher that is busier than a GPU that is never idle", SCALE, .cuda = true,
      .actor = { { "scale", .busy = 99, .launches = LONG } }, .engine = { { 90, 48 }, { 20, 0 } },
      .bound = GP_BOUND_COPY_IN, .of = "scale", .text = "bound by the copy in of 'scale' (90 % busy", NONE },
    { "kernels, estimated", GPU(""), .cuda = true, .estimated = true,
      .actor = { { "scale..cast", .out = 80 } }, .engine = { { 50, 25 }, { 97, 0 }, { 25, 12 } },
      .bound = GP_BOUND_COMPUTE, .of = "scale..cast",
      .text = "as far as can be told when the GPU is not measured", NONE },
    { "kernels, estimated, with one who is slow behind them", GPU(""), .cuda = true, .estimated = true,
      .actor = { { "scale..cast", .out = 80 }, { "discard", .busy = 84, .in = 9 } },
      .buffer = { { "cast", "discard", 2 } }, .engine = { { 50, 25 }, { 97, 0 }, { 25, 12 } },
      .text = "the busiest is stage 'discard', 84 %", NONE },

    /* launches */
#define SMALL(top) top "buffers: {g: {dtype: f32, shape: [64]}}\nstages:\n" \
      "  - {use: generate, out: g, frames: 9}\n  - {use: scale, a: 2}\n" END
#define LAUNCHER .actor = { { "scale", .busy = 93, .launches = LONG } }, .cuda = true, \
      .engine = { { 10, 1 }, { 20, 0 }, { 10, 1 } }, .bound = GP_BOUND_LAUNCH, .of = "scale"
    { "launches", SMALL("launch: stream\n"), LAUNCHER,
      .text = "bound by launching 'scale' (93 % busy, GPU idle 80 %). A launch of 1 frame "
      "takes 930 us: try launch: graph", .path = "launch", .value = "graph" },
    { "one by one", SMALL("batch: 1\ndepth: 12\n"), LAUNCHER, .text = ": try batch: auto",
      .path = "batch", .value = "auto" },
    { "not deep enough for a batch", SMALL("depth: 6\n"), LAUNCHER, .text = ": try depth: 24", .path = "depth", .value = "24" },
    { "as deep as launches of small frames need", SMALL(""), LAUNCHER, .text = ": put more into a frame", NONE },
    { "more than auto", SMALL("depth: 12\nbatch: 4\n"), LAUNCHER, .text = ": put more into a frame", NONE },
    { "as many as fit", GPU(""), .actor = { { "scale..cast", .busy = 93, .launches = LONG } },
      .cuda = true, .engine = { { 10, 1 } }, .bound = GP_BOUND_LAUNCH, .of = "scale..cast",
      .text = ": put more into a frame", NONE },

    /* streams */
    { "streams", GPU("streams: 1\n"), .cuda = true,
      .actor = { { "scale..cast", .stream = 90 } }, .engine = { { 36, 18 }, { 33, 0 }, { 30, 12 } },
      .bound = GP_BOUND_STREAMS, .of = "scale..cast",
      .text = "bound by the 1 stream of 'scale..cast' (90 % of the time none is "
      "free, GPU idle 64 %): try streams: 3", .path = "streams", .value = "3" },
    { "no more than the depth", GPU("streams: 2\n"), .cuda = true,
      .actor = { { "scale..cast", .stream = 50 } }, .engine = { { 40, 18 }, { 33, 0 }, { 30, 12 } },
      .bound = GP_BOUND_STREAMS, .of = "scale..cast", .text = ": try streams: 3",
      .path = "streams", .value = "3" },

    /* depth */
    { "depth", "depth: 1\n" G CHAIN,
      .actor = { { "a", .busy = 50, .in = 5, .out = 45 }, { "b", .busy = 50, .in = 48 } },
      .buffer = { { "a", "b", 0.5 } }, .bound = GP_BOUND_DEPTH, .of = "a",
      .text = "bound by the depth of buffer 'a' (1). 'a' waits for room 45 % of the time, 'b' for "
      "frames 48 %: try depth: 3", .path = "depth", .value = "3" },
    { "the default of small frames", G CHAIN,
      .actor = { { "a", .busy = 50, .in = 5, .out = 45 }, { "b", .busy = 50, .in = 48 } },
      .buffer = { { "a", "b", 3 } }, .bound = GP_BOUND_DEPTH, .of = "a",
      .text = "bound by the depth of buffer 'a' (6). 'a' waits for room 45 % of the time, 'b' for "
      "frames 48 %: try depth: 12", .path = "depth", .value = "12" },
    { "the default of large ones", "buffers: {g: {dtype: f32, shape: [1024, 1024]}}\nstages:\n" SOURCE CHAIN,
      .actor = { { "a", .busy = 50, .in = 5, .out = 45 }, { "b", .busy = 50, .in = 48 } },
      .buffer = { { "a", "b", 1.5 } }, .bound = GP_BOUND_DEPTH, .of = "a",
      .text = "bound by the depth of buffer 'a' (3). 'a' waits for room 45 % of the time, 'b' for "
      "frames 48 %: try depth: 6", .path = "depth", .value = "6" },
    { "of large ones, beside many slots that a depth for all would take",
      "buffers: {g: {dtype: f32, shape: [1024, 1024]}, s: {dtype: f32, shape: [4]}}\nstages:\n" SOURCE CHAIN
      "  - {name: small, use: generate, out: s, frames: 9}\n  - {use: scale, a: 2, in: s}\n  - {name: end, use: discard}\n",
      .actor = { { "a", .busy = 50, .in = 5, .out = 45 }, { "b", .busy = 50, .in = 48 } },
      .buffer = { { "a", "b", 1.5 } }, .bound = GP_BOUND_DEPTH, .of = "a", .text = "frames 48 %: try buffers.a.depth: 6",
      .path = "buffers.a.depth", .value = "6" },
    { "of small ones around a segment with large ones", "buffers: {g: {dtype: f32, shape: [1024, 1024]}}\nstages:\n"
      SOURCE "  - {use: scale, a: 2}\n  - {use: reduce, op: sum}\n" FREE END "fuse: none\n", .cuda = true,
      .actor = { { "generate", .busy = 10, .in = 0 }, { "scale..reduce", .out = 70, .in = 12 },
                 { "clean", .busy = 1, .in = 95 } },
      .buffer = { { "reduce", "clean", 0.01 } }, .engine = { { 30, 14 }, { 30, 0 }, { 20, 9 } },
      .bound = GP_BOUND_DEPTH, .of = "g", .text = ": try depth: 6", .path = "depth", .value = "6" },
    { "of one buffer",
      "buffers: {g: {dtype: f32, shape: [4]}, x-1: {depth: 2}}\nstages:\n"
      SOURCE "  - {name: a, use: lua, script: free.lua, out: x-1}\n"
      "  - {name: b, use: lua, script: free.lua}\n" END,
      .actor = { { "a", .busy = 70, .out = 30 }, { "b", .busy = 70, .in = 28 } },
      .buffer = { { "x-1", "b", 1.5 } }, .bound = GP_BOUND_DEPTH, .of = "x-1",
      .text = ": try buffers.x-1.depth: 4", .path = "buffers.x-1.depth", .value = "4" },
    { "around a segment", GPU("depth: 1\n"), .cuda = true,
      .actor = { { "generate", .busy = 10, .out = 80 }, { "scale..cast", .out = 70, .in = 12 },
                 { "discard", .busy = 1, .in = 95 } },
      .buffer = { { "g", "scale..cast", 0.9 }, { "cast", "discard", 0.01 } },
      .engine = { { 30, 14 }, { 30, 0 }, { 20, 9 } }, .bound = GP_BOUND_DEPTH, .of = "g",
      .text = "'scale..cast' waits for room 70 % of the time, 'discard' for frames 95 %: try "
      "depth: 3", .path = "depth", .value = "3" },
    { "around a segment, said twice",
      "buffers: {g: {dtype: f32, shape: [1024], depth: 1}, scale: {depth: 1}}\nstages:\n"
      "  - {use: generate, out: g, frames: 9}\n  - {use: scale, a: 2}\n" END, .cuda = true,
      .actor = { { "generate", .busy = 10, .out = 80 }, { "scale", .out = 70, .in = 12 },
                 { "discard", .busy = 1, .in = 95 } },
      .buffer = { { "scale", "discard", 0.01 } }, .engine = { { 30, 14 } },
      .bound = GP_BOUND_DEPTH, .of = "g", .text = ": try depth 3 for all buffers around it", NONE },
    { "fan-in", G FREE "  - {name: join, use: compare, in: [g, clean]}\n",
      .actor = { { "generate", .busy = 5, .out = 90 }, { "clean", .busy = 60, .in = 38 },
                 { "join", .busy = 2, .in = 97 } },
      .buffer = { { "g", "join", 6 }, { "clean", "join", 0 } }, .bound = GP_BOUND_DEPTH, .of = "g",
      .text = "bound by the depth of buffer 'g' (6). It is full while 'join' waits for 'clean': "
      "try buffers.g.depth: 12", .path = "buffers.g.depth", .value = "12" },

    { "deep, and turns for all that", "depth: 12\n" G CHAIN,
      .actor = { { "a", .busy = 50, .in = 5, .out = 45 }, { "b", .busy = 50, .in = 48 } },
      .buffer = { { "a", "b", 6 } }, .text = "nothing stands out", NONE },
    { "fan-in, deeper than the other way", "buffers: {g: {dtype: f32, shape: [1024], depth: 12}}\n"
      "stages:\n" SOURCE FREE "  - {name: join, use: compare, in: [g, clean]}\n",
      .actor = { { "generate", .busy = 5, .out = 90 }, { "clean", .busy = 60, .in = 38 },
                 { "join", .busy = 2, .in = 97 } },
      .buffer = { { "g", "join", 12 }, { "clean", "join", 0 } }, .text = "nothing stands out", NONE },

    /* several devices */
    { "peer copies", TWO("device: cpu:0\n", "", ", device: 'cpu:1'"), .on = 1, .cuda = true,
      .actor = { { "a", .launches = 9, .ms = 50 }, { "b", .launches = 9, .ms = 20 } },
      .engine = { { 10, 4 }, { 30, 0 }, { 10, 4 }, { 97, 300 } }, .bound = GP_BOUND_COPY_PEER, .of = "b", .whole = true,
      .text = "bound by the peer copies of 'b' on cpu:1 (97 % busy, 300 GB/s). Most of it is buffer 'a', f32 [1024]: "
      "place 'b' beside 'a', with device: cpu:0", .path = "stages.b.device", .value = "cpu:0" },
    { "peer copies from all to one", TWO("device: cpu:0-1\n", "", ", device: 'cpu:1'"), .on = 1, .cuda = true,
      .engine = { { 10, 4 }, { 30, 0 }, { 10, 4 }, { 97, 300 } }, .bound = GP_BOUND_COPY_PEER, .of = "b",
      .text = ": place 'b' beside 'a', on all devices: take 'device' out of it", NONE },
    { "peer copies from one to all", TWO("device: cpu:0-1\n", ", device: 'cpu:1'", ""), .cuda = true,
      .engine = { { 10, 4 }, { 30, 0 }, { 10, 4 }, { 97, 300 } }, .bound = GP_BOUND_COPY_PEER, .of = "b",
      .text = "on cpu:0-1 (97 % busy, 300 GB/s). Most of it is buffer 'a', f32 [1024]: place 'b' beside 'a', with "
      "device: cpu:1",
      .path = "stages.b.device", .value = "cpu:1" },
    { "peer copies to what takes frames in order", "device: cpu:0-1\n" G "  - {name: a, use: scale, a: 2}\n"
      "  - {name: b, use: mix, op: max, frames: 4}\n" END, .cuda = true,
      .engine = { { 10, 4 }, { 30, 0 }, { 10, 4 }, { 97, 300 } }, .bound = GP_BOUND_COPY_PEER, .of = "b",
      .text = ": cast it to a smaller type, or reduce it, before it is copied", NONE },
    { "kernels of one of two", TWO("device: cpu:0\n", "", ", device: 'cpu:1'"), .on = 1, .cuda = true,
      .actor = { { "a", .launches = 9, .ms = 50 }, { "b", .launches = 9, .ms = 20 } },
      .engine = { { 10, 4 }, { 97, 0 } }, .bound = GP_BOUND_COMPUTE, .of = "b",
      .text = "bound by the kernels of 'b' on cpu:1 (compute 97 % busy)", NONE },
    { "copies out of one of two", TWO("device: cpu:0\n", "", ", device: 'cpu:1'"), .on = 1, .cuda = true,
      .engine = { { 10, 4 }, { 30, 0 }, { 97, 48 } }, .bound = GP_BOUND_COPY_OUT, .of = "b",
      .text = "bound by the copy out of 'b' on cpu:1 (97 % busy, 48 of 50 GB/s). Most of it is buffer 'b'", NONE },
    { "streams, beside an idle device", TWO("device: cpu:0\nstreams: 1\n", "", ", device: 'cpu:1'"), .on = 1,
      .cuda = true,
      .actor = { { "b", .stream = 90 } }, .engine = { { 36, 18 }, { 33, 0 }, { 30, 12 } },
      .bound = GP_BOUND_STREAMS, .of = "b", .text = "cpu:1 idle 64 %)", .path = "streams", .value = "3" },

    /* nothing */
    { "nothing stands out, on a GPU", GPU(""), .cuda = true, .engine = { { 40, 20 }, { 60, 0 } },
      .text = "the busiest is compute of 'scale..cast', 60 %", NONE },
    { "all alike is no depth", "depth: 1\n" G CHAIN, .actor = { { "a", .busy = 80, .out = 9 },
      { "b", .busy = 80, .in = 50 } }, .buffer = { { "a", "b", 0.5 } },
      .text = "nothing stands out", NONE },
};

TEST_EACH(says_what_and_what_to_try, cases)
{
    verdict_check(&cases[_i]);
}

TEST_SUITE(verdict_device, verdict_up, verdict_down, 0)
