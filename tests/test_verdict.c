/* test_verdict.c - what is said of reports made by hand: each bound, its borders, and
 * that the file takes each edit. Runs that are bound in fact: verdict.py. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "base/yaml.h"
#include "pipe.h"
#include "report/report.h"

Suite *suite_verdict(void);

enum { ACTORS = 6, WALL = 1000000000, LONG = 1000, NOT_MEASURED = 7 };

/* Percent of the run (of one worker); `ms`: of a launch. All others: 0. */
typedef struct times {
    const char *name;
    int busy, idle, in, out, stream, launches, ms, ended;      /* ended 0: with the run */
} times;

static const struct {
    const char *what, *yaml;
    times actor[ACTORS];
    struct { const char *name, *to; double held; } buffer[2];
    struct { int busy, gb; } engine[GP_ENGINES];   /* gb: GB/s; the limit is 50 */
    int cpus;                  /* 0: 16 */
    int cpu, others, quota, delayed;   /* percent of one core; 0: not known, none, no limit,
                                          not known */
    bool cuda, estimated;      /* estimated: engines are not measured */
    bool whole;                /* `text` is all of the text */
    int frames;                /* 0: LONG */
    gp_bound bound;
    const char *of;            /* actor, or buffer */
    const char *text, *path, *value;               /* text: a part of it */
} cases[] = {
#define SOURCE "  - {use: generate, out: g, frames: 9}\n"
#define G "buffers: {g: {dtype: f32, shape: [1024]}}\nstages:\n" SOURCE
#define FREE "  - {name: clean, use: lua, script: free.lua}\n"
#define END "  - {use: discard}\n"
#define HOST G FREE END
#define NONE .path = "", .value = ""
    { "too few frames", HOST, .actor = { { "clean", .busy = 97 } }, .frames = 9,
      .text = "too short to tell what bounds it: 9 frames in 1e+03 ms", NONE },
    { "enough frames", HOST, .actor = { { "clean", .busy = 97 } }, .frames = 10,
      .bound = GP_BOUND_STAGE, .of = "clean",
      .text = "bound by stage 'clean' (host, 97 % busy): try workers: 3",
      .path = "stages.clean.workers", .value = "3" },

    /* rate */
    { "a source that keeps a rate",
      "buffers: {g: {dtype: f32, shape: [4]}}\nstages:\n"
      "  - {name: camera-1, use: generate, out: g, rate: 100}\n" FREE END,
      .actor = { { "camera-1", .busy = 99, .idle = 87 }, { "clean", .busy = 60, .in = 40 } },
      .bound = GP_BOUND_RATE, .of = "camera-1",
      .text = "bound by source 'camera-1', which keeps a rate of 100 Hz (idle 87 %): try rate: 0",
      .path = "stages.camera-1.rate", .value = "0" },
    { "a rate that the rest does not reach",
      "buffers: {g: {dtype: f32, shape: [4]}}\nstages:\n"
      "  - {use: generate, out: g, rate: 100}\n" FREE END,
      .actor = { { "generate", .busy = 20, .idle = 10, .out = 80 }, { "clean", .busy = 98 } },
      .bound = GP_BOUND_STAGE, .of = "clean", .text = "stage 'clean' (host, 98 % busy)",
      .path = "stages.clean.workers", .value = "3" },
    { "a pipe", "buffers: {g: {dtype: u8, shape: [4]}}\nstages:\n"
      "  - {use: read, path: stdin, format: raw, out: g}\n" END,
      .actor = { { "read", .busy = 99, .idle = 90 } }, .bound = GP_BOUND_RATE, .of = "read",
      .text = "bound by source 'read', which waits for its input (idle 90 %): what feeds it has "
              "to be faster", NONE },

    /* host stages */
    { "as many as the next can take", HOST,
      .actor = { { "generate", .busy = 39 }, { "clean", .busy = 97 } },
      .bound = GP_BOUND_STAGE, .of = "clean", .text = ": try workers: 3",
      .path = "stages.clean.workers", .value = "3" },
    { "with GPU", G FREE "  - {use: scale, a: 2}\n" END, .cuda = true,
      .actor = { { "clean", .busy = 97 } }, .engine = { { 20, 9 }, { 39, 0 }, { 20, 9 } },
      .bound = GP_BOUND_STAGE, .of = "clean",
      .text = "bound by stage 'clean' (host, 97 % busy, GPU idle 61 %): try workers: 3",
      .path = "stages.clean.workers", .value = "3" },
    [NOT_MEASURED] = { "with GPU, not measured", G FREE "  - {use: scale, a: 2}\n" END,
      .cuda = true, .estimated = true, .actor = { { "clean", .busy = 97 } }, .engine = { { 20, 9 } },
      .bound = GP_BOUND_STAGE, .of = "clean", .text = "97 % busy, GPU idle ~80 %)",
      .path = "stages.clean.workers", .value = "3" },
    { "as many as there is room for", "depth: 8\n" HOST, .actor = { { "clean", .busy = 97 } },
      .cpus = 16, .bound = GP_BOUND_STAGE, .of = "clean", .text = ": try workers: 8",
      .path = "stages.clean.workers", .value = "8" },
    { "as many as cores are free", "depth: 32\n" HOST, .actor = { { "clean", .busy = 97 } },
      .cpus = 4, .bound = GP_BOUND_STAGE, .of = "clean", .text = ": try workers: 4",
      .path = "stages.clean.workers", .value = "4" },
    { "no room for another", "depth: 1\n" HOST, .actor = { { "clean", .busy = 97 } },
      .bound = GP_BOUND_STAGE, .of = "clean", .text = ": try depth: 4, and then workers: 4",
      .path = "depth", .value = "4" },
    { "of several workers", "depth: 9\n" G "  - {name: clean, use: lua, script: free.lua, "
      "workers: 2}\n" END, .actor = { { "clean", .busy = 190 }, { "generate", .busy = 40 } },
      .bound = GP_BOUND_STAGE, .of = "clean",
      .text = "bound by stage 'clean' (host, 2 workers, 95 % busy): try workers: 5",
      .path = "stages.clean.workers", .value = "5" },
    { "workers that have no frame", G "  - {name: clean, use: lua, script: free.lua, "
      "workers: 8}\n" END, .actor = { { "clean", .busy = 290 } }, .bound = GP_BOUND_DEPTH,
      .of = "clean", .text = "bound by the depth around stage 'clean' (3). Only 3 of its 8 workers "
      "can have a frame, and are 97 % busy: try depth: 6", .path = "depth", .value = "6" },
    { "a script with state", G "  - {name: keeps, use: lua, script: keeps.lua}\n" END,
      .actor = { { "keeps", .busy = 97 } }, .bound = GP_BOUND_STAGE, .of = "keeps",
      .text = "if it keeps nothing from frame to frame, say stateless = true in 'keeps.lua'",
      NONE },
    { "a script that is a source", "buffers: {g: {dtype: f32, shape: [4]}}\nstages:\n"
      "  - {use: lua, script: free.lua, out: g}\n" END, .actor = { { "lua", .busy = 97 } },
      .bound = GP_BOUND_STAGE, .of = "lua", .text = "a source has one worker", NONE },
    { "a generator", HOST, .actor = { { "generate", .busy = 97 } }, .bound = GP_BOUND_STAGE,
      .of = "generate", .text = ": fill: once", NONE },
    { "a reader of pictures", "stages:\n  - {use: read, path: a.png}\n" END,
      .actor = { { "read", .busy = 97 } }, .bound = GP_BOUND_STAGE, .of = "read",
      .text = "bound by stage 'read' (host, 97 % busy): store its frames as .npy", NONE },
    { "a reader of numbers", "buffers: {r: {dtype: f32, shape: [4]}}\nstages:\n"
      "  - {use: read, path: r.raw, out: r}\n" END, .actor = { { "read", .busy = 97 } },
      .bound = GP_BOUND_STAGE, .of = "read", .text = ": store a smaller type", NONE },
#define PNG(more) "buffers: {g: {dtype: u8, shape: [4, 4]}}\nstages:\n" \
      "  - {use: generate, out: g, frames: 9}\n  - {name: out, use: write, path: '" more "}\n"
    { "a writer of pictures", PNG("%05d.png'"),
      .actor = { { "out", .busy = 97 }, { "generate", .busy = 50 } }, .bound = GP_BOUND_STAGE,
      .of = "out", .text = "(host, 97 % busy): try workers: 2", .path = "stages.out.workers",
      .value = "2" },
    { "with all cores", PNG("%05d.png', compression: 9"), .actor = { { "out", .busy = 97 } },
      .cpus = 1, .bound = GP_BOUND_CORES, .of = "out",
      .text = "bound by the one core (97 % busy). Stage 'out' takes 100 % of it: try compression: 1",
      .path = "stages.out.compression", .value = "1" },
    { "that packs hardly", PNG("%05d.png', compression: 1"), .actor = { { "out", .busy = 97 } },
      .cpus = 1, .bound = GP_BOUND_CORES, .of = "out", .text = ": try compression: 0",
      .path = "stages.out.compression", .value = "0" },
    { "that does not pack", PNG("%05d', format: png, compression: 0"),
      .actor = { { "out", .busy = 97 } }, .cpus = 1, .bound = GP_BOUND_CORES, .of = "out",
      .text = ": write .npy", NONE },
    { "a writer of one file", PNG("x.npy'"), .actor = { { "out", .busy = 97 } },
      .bound = GP_BOUND_STAGE, .of = "out", .text = ": write a smaller type", NONE },


    /* kinds from elsewhere say for themselves what they could do less of */
#define OWN(kind) G "  - {name: own, use: " kind ", effort: 9}\n", \
      .actor = { { "own", .busy = 97 } }, .bound = GP_BOUND_STAGE, .of = "own"
    { "an edit of a kind from elsewhere", OWN("own_edit"),
      .text = "bound by stage 'own' (host, 97 % busy): try effort: 8", .path = "stages.own.effort",
      .value = "8" },
    { "advice of a kind from elsewhere", OWN("own_words"),
      .text = "(host, 97 % busy): send less than f32 [1024], or pack it", NONE },
    { "an edit that --set would refuse", OWN("own_wrong"),
      .text = "(host, 97 % busy): it has one worker; divide it", NONE },
    { "a value that --set would refuse", OWN("own_beyond"),
      .text = "(host, 97 % busy): it has one worker; divide it", NONE },
    { "a value that is no number", OWN("own_word"),
      .text = "(host, 97 % busy): it has one worker; divide it", NONE },
    { "a kind that has no advice", OWN("own_mute"),
      .text = "(host, 97 % busy): it has one worker; divide it", NONE },
    { "a pace that no option sets", "buffers: {g: {dtype: f32, shape: [4]}}\nstages:\n"
      "  - {use: own_clock, out: g}\n" END, .actor = { { "own_clock", .busy = 99, .idle = 87 } },
      .bound = GP_BOUND_RATE, .of = "own_clock", .text = "bound by source 'own_clock', which keeps "
      "a rate of 50 Hz (idle 87 %)", NONE },

    /* cores */
    { "all cores", HOST, .actor = { { "clean", .busy = 97 }, { "generate", .busy = 90 } },
      .cpus = 2, .bound = GP_BOUND_CORES, .of = "clean",
      .text = "bound by the 2 cores (94 % busy). Stage 'clean' takes 52 % of it: a kernel", NONE },
    { "that sleep", HOST, .actor = { { "clean", .busy = 97 }, { "generate", .busy = 90 } },
      .cpus = 2, .cpu = 90, .bound = GP_BOUND_STAGE, .of = "clean", .text = ": try workers: 2",
      .path = "stages.clean.workers", .value = "2" },
    { "that look for work", HOST, .actor = { { "clean", .busy = 97 } }, .cpus = 2, .cpu = 199,
      .bound = GP_BOUND_STAGE, .of = "clean", .text = ": try workers: 2",
      .path = "stages.clean.workers", .value = "2" },
#define SCALE G "  - {use: scale, a: 2}\n" END
    { "all cores, in kernels", SCALE, .cpus = 2,
      .actor = { { "generate", .busy = 30 }, { "scale", .launches = 170, .ms = 10 } },
      .bound = GP_BOUND_CORES, .of = "scale", .text = "100 % busy). Segment 'scale' takes 85 % of it: "
      "its kernels run on the CPU", NONE },
    { "all cores, most of them of others", HOST, .actor = { { "clean", .busy = 97 } }, .cpus = 2,
      .cpu = 20, .delayed = 60, .others = 180, .bound = GP_BOUND_CORES, .of = "clean", .text = "other "
      "processes used 1.8 of 2 cores: run it without them first. Stage 'clean' takes 100 % of the rest",
      NONE, .whole = true },
    { "all cores, some of them of others", PNG("%05d.png', compression: 9"), .actor = { { "out", .busy = 97 } },
      .cpus = 2, .others = 90, .cpu = 97, .delayed = 10, .bound = GP_BOUND_CORES, .of = "out", .text = "bound by "
      "the 2 cores (94 % busy, other processes used 0.9 of 2 cores). Stage 'out' takes 100 % of the "
      "rest: try compression: 1", .path = "stages.out.compression", .value = "1", .whole = true },
    { "all cores, most of them of others, and an edit", PNG("%05d.png', compression: 9"),
      .actor = { { "out", .busy = 97 } }, .cpus = 2, .cpu = 40, .delayed = 50, .others = 160,
      .bound = GP_BOUND_CORES, .of = "out", .text = "other processes used 1.6 of 2 cores: run it without "
      "them first. Stage 'out' takes 100 % of the rest", NONE, .whole = true },
    { "a quota beside others", HOST, .actor = { { "clean", .busy = 97 } }, .cpus = 8, .cpu = 49,
      .quota = 50, .others = 500, .bound = GP_BOUND_CORES, .of = "clean", .text = "other processes used 5.0 of 8 "
      "cores: run it without them first. Bound by the 0.5 cores that its cgroup allows (98 % used). "
      "Stage 'clean' takes 100 % of it: a kernel", NONE },
    { "a stage that sleeps beside others", HOST, .actor = { { "clean", .busy = 97 } }, .cpus = 4,
      .cpu = 5, .delayed = 30, .others = 390, .bound = GP_BOUND_STAGE, .of = "clean", .text = "other processes "
      "used 3.9 of 4 cores: run it without them first. Bound by stage 'clean' (host, 97 % busy): try "
      "workers: 2", .path = "stages.clean.workers", .value = "2" },
    { "as many as others leave", "depth: 8\n" HOST, .actor = { { "clean", .busy = 97 } }, .cpus = 8,
      .others = 500, .bound = GP_BOUND_STAGE, .of = "clean", .text = "other processes used 5.0 of "
      "8 cores: run it without them first. Bound by stage 'clean' (host, 97 % busy): try workers: 3", .path = "stages.clean.workers", .value = "3" },
    { "as many as the cgroup allows", "depth: 8\n" HOST, .actor = { { "clean", .busy = 97 } },
      .cpus = 8, .quota = 250, .bound = GP_BOUND_STAGE, .of = "clean", .text = "97 % busy): try "
      "workers: 3", .path = "stages.clean.workers", .value = "3" },
    { "all that the cgroup allows", HOST, .actor = { { "clean", .busy = 97 } }, .cpus = 8,
      .cpu = 49, .quota = 50, .bound = GP_BOUND_CORES, .of = "clean", .text = "bound by the 0.5 cores "
      "that its cgroup allows (98 % used). Stage 'clean' takes 100 % of it: a kernel", NONE },
    { "others that use little", HOST, .actor = { { "clean", .busy = 97 } }, .cpus = 2, .others = 19,
      .bound = GP_BOUND_STAGE, .of = "clean", .text = "(host, 97 % busy): try workers: 2",
      .path = "stages.clean.workers", .value = "2" },

    /* the CPU back end */
    { "a kernel for each core", "depth: 12\n" SCALE, .cpus = 2, .cpu = 120,
      .actor = { { "generate", .out = 98 }, { "scale", .out = 92, .launches = 600, .ms = 10 },
                 { "discard", .in = 98 } }, .buffer = { { "scale", "discard", 0.1 } },
      .bound = GP_BOUND_CORES, .of = "scale", .text = "60 % busy). Segment 'scale' takes 100 % of it: "
      "its kernels run on the CPU", NONE },
    { "more streams than cores", "depth: 12\n" SCALE, .cpus = 2, .cpu = 120,
      .actor = { { "scale", .stream = 60, .launches = 120, .ms = 10 } },
      .text = "nothing stands out", NONE },
    { "one thread, and others", "streams: 1\n" SCALE, .actor = { { "scale", .launches = 97, .ms = 10 } },
      .cpus = 4, .others = 160, .bound = GP_BOUND_STREAMS, .of = "scale", .text = "97 % busy, other "
      "processes used 1.6 of 4 cores). 1.4 of 4 cores are idle: try streams: 2", .path = "streams",
      .value = "2" },
    { "one thread", "streams: 1\n" SCALE, .actor = { { "scale", .launches = 97, .ms = 10 } },
      .cpus = 4, .bound = GP_BOUND_STREAMS, .of = "scale", .text =
      "bound by the 1 stream of 'scale' (threads on the CPU, 97 % busy). 3.0 of 4 cores are idle: try "
      "streams: 3", .path = "streams", .value = "3" },
    { "as many as frames", SCALE, .actor = { { "scale", .launches = 290, .ms = 10 } },
      .bound = GP_BOUND_DEPTH, .of = "scale",
      .text = "97 % busy). 13.1 of 16 cores are idle, and depth 3 lets no more frames be in flight: "
      "try depth: 12", .path = "depth", .value = "12" },

    /* engines */
#define GPU(top) top "buffers: {g: {dtype: f32, shape: [1024, 1024]}}\nstages:\n" \
      SOURCE "  - {use: scale, a: 2}\n  - {use: cast, dtype: u8}\n" END
    { "copy in", GPU(""), .cuda = true, .actor = { { "scale..cast", .out = 90 } },
      .engine = { { 97, 48 }, { 30, 0 }, { 25, 12 } }, .bound = GP_BOUND_COPY_IN,
      .of = "scale..cast",
      .text = "bound by the copy in of 'scale..cast' (97 % busy, 48 of 50 GB/s). Most of it is buffer "
      "'g', f32 [1024, 1024]: send it in a smaller type, and cast it on the device", NONE },
    { "copy in of bytes", "buffers: {g: {dtype: u8, shape: [4096, 1024]}}\nstages:\n"
      "  - {use: generate, out: g, frames: 9}\n  - {use: cast, dtype: f32}\n" END, .cuda = true,
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
    { "a writer that waits now and then", WRITES(""), .cuda = true, .estimated = true,
      .actor = { { "scale", .busy = 2, .out = 90 }, { "out", .busy = 78, .in = 8 } },
      .buffer = { { "scale", "out", 2.5 } }, .engine = { { 5, 2 }, { 95, 0 }, { 5, 2 } },
      .text = "nothing stands out as what bounds it: the busiest is stage 'out', 78 %", NONE },
    { "several workers that never wait", PNG("%05d.png', workers: 2"),
      .actor = { { "generate", .busy = 30, .out = 65 }, { "out", .busy = 150, .in = 6 } },
      .bound = GP_BOUND_STAGE, .of = "out", .text = "(host, 2 workers, 75 % busy, hardly ever "
      "waiting): try", .path = "stages.out.workers", .value = "3" },
    { "a source that ended early", HOST, .actor = { { "generate", .busy = 82, .ended = 84 },
      { "clean", .busy = 84, .in = 12 } }, .text = "the busiest is stage 'clean', 84 %", NONE },
    { "a source that ended with the last frame", HOST,
      .actor = { { "generate", .busy = 82, .ended = 97 }, { "clean", .busy = 84, .in = 12 } },
      .bound = GP_BOUND_STAGE, .of = "generate", .text = "(host, 82 % busy, hardly ever waiting)",
      NONE },
    { "a source that keeps up with its pipe", "buffers: {g: {dtype: u8, shape: [4]}}\nstages:\n"
      "  - {use: read, path: stdin, format: raw, out: g}\n" END,
      .actor = { { "read", .busy = 80, .idle = 8 } }, .text = "nothing stands out", NONE },
    { "a launcher that never waits", SCALE, .cuda = true,
      .actor = { { "scale", .busy = 75, .in = 2, .launches = LONG } }, .engine = { { 10, 1 } },
      .bound = GP_BOUND_LAUNCH, .of = "scale",
      .text = "bound by launching 'scale' (75 % busy, hardly ever waiting, GPU idle 90 %). A launch of 1 frame takes 750 us: ", .path = "depth",
      .value = "12" },
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
    { "not deep enough for a batch", SMALL(""), LAUNCHER, .text = ": try depth: 12",
      .path = "depth", .value = "12" },
    { "more than auto", SMALL("depth: 12\nbatch: 4\n"), LAUNCHER, .text = ": put more into a frame",
      NONE },
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
#define CHAIN "  - {name: a, use: lua, script: free.lua}\n  - {name: b, use: lua, " \
      "script: free.lua}\n" END
    { "depth", "depth: 1\n" G CHAIN,
      .actor = { { "a", .busy = 50, .in = 5, .out = 45 }, { "b", .busy = 50, .in = 48 } },
      .buffer = { { "a", "b", 0.5 } }, .bound = GP_BOUND_DEPTH, .of = "a",
      .text = "bound by the depth of buffer 'a' (1). 'a' waits for room 45 % of the time, 'b' for "
      "frames 48 %: try depth: 3", .path = "depth", .value = "3" },
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
      .buffer = { { "g", "join", 3 }, { "clean", "join", 0 } }, .bound = GP_BOUND_DEPTH, .of = "g",
      .text = "bound by the depth of buffer 'g' (3). It is full while 'join' waits for 'clean': "
      "try buffers.g.depth: 6", .path = "buffers.g.depth", .value = "6" },

    { "deep, and turns for all that", "depth: 12\n" G CHAIN,
      .actor = { { "a", .busy = 50, .in = 5, .out = 45 }, { "b", .busy = 50, .in = 48 } },
      .buffer = { { "a", "b", 6 } }, .text = "nothing stands out", NONE },
    { "fan-in, deeper than the other way", "buffers: {g: {dtype: f32, shape: [1024], depth: 12}}\n"
      "stages:\n" SOURCE FREE "  - {name: join, use: compare, in: [g, clean]}\n",
      .actor = { { "generate", .busy = 5, .out = 90 }, { "clean", .busy = 60, .in = 38 },
                 { "join", .busy = 2, .in = 97 } },
      .buffer = { { "g", "join", 12 }, { "clean", "join", 0 } }, .text = "nothing stands out", NONE },

    /* nothing */
    { "nothing stands out", HOST, .actor = { { "clean", .busy = 60, .in = 38 },
      { "generate", .busy = 50, .out = 48 } },
      .text = "nothing stands out as what bounds it: the busiest is stage 'clean', 60 %", NONE },
    { "nothing stands out, on a GPU", GPU(""), .cuda = true, .engine = { { 40, 20 }, { 60, 0 } },
      .text = "the busiest is compute of 'scale..cast', 60 %", NONE },
    { "just busy enough", HOST, .actor = { { "clean", .busy = 85 } }, .bound = GP_BOUND_STAGE,
      .of = "clean", .text = "85 % busy", .path = "stages.clean.workers", .value = "3" },
    { "not quite", HOST, .actor = { { "clean", .busy = 84, .in = 15 } },
      .text = "the busiest is stage 'clean', 84 %", NONE },
    { "waits hardly enough", HOST, .actor = { { "clean", .busy = 84, .in = 3, .out = 2 } },
      .bound = GP_BOUND_STAGE, .of = "clean", .text = "(host, 84 % busy, hardly ever waiting)",
      .path = "stages.clean.workers", .value = "3" },
    { "waits just enough", HOST, .actor = { { "clean", .busy = 84, .in = 3, .out = 3 } },
      .text = "the busiest is stage 'clean', 84 %", NONE },
    { "all alike is no depth", "depth: 1\n" G CHAIN, .actor = { { "a", .busy = 80, .out = 9 },
      { "b", .busy = 80, .in = 50 } }, .buffer = { { "a", "b", 0.5 } },
      .text = "nothing stands out", NONE },
};

/* ---- kinds from elsewhere ---------------------------------------------- */

struct effort { int64_t effort; };

static bool shape_serial(gp_shape *s)
{
    s->serial = true;
    return true;
}

static bool shape_clock(gp_shape *s)
{
    s->known.hertz = 50, s->endless = true;
    return true;
}

static bool run_none(gp_call *c, gp_frame *frames, int n)
{
    (void)c, (void)frames, (void)n;
    return true;
}

static void advise_edit(gp_advice *a)
{
    const struct effort *o = a->opts;
    ck_assert(a->nin == 1 && a->nout == 0 && a->serial);
    a->opt = "effort";
    snprintf(a->value, sizeof a->value, "%d", (int)o->effort - 1);
    strcpy(a->text, "words that do not count beside an edit");
}

static void advise_words(gp_advice *a)
{
    char type[128];
    snprintf(a->text, sizeof a->text, "send less than %s, %s", gp_type_text(&a->in[0], type),
             (const char *)a->user);
}

static void advise_wrong(gp_advice *a)
{
    a->opt = "zeal";
    strcpy(a->value, "1");
}

static void advise_beyond(gp_advice *a)
{
    a->opt = "effort";
    strcpy(a->value, "10");
}

static void advise_word(gp_advice *a)
{
    a->opt = "effort";
    strcpy(a->value, "less");
}

static void advise_nothing(gp_advice *a)
{
    (void)a;
}

static const gp_port own_in[] = { { "in", GP_ACCEPT_ANY, .help = "frames" }, { 0 } };
static const gp_port own_out[] = { { "out", .help = "frames" }, { 0 } };
static const gp_opt own_opts[] = {
    { GP_INT(struct effort, effort), .min = 0, .max = 9, .help = "how hard it works" }, { 0 }
};

#define OWN_KIND(n, f) { GP_KIND(n), .help = "for tests", .in = own_in, .opts = own_opts, \
      .opts_size = sizeof(struct effort), .shape = shape_serial, .run = run_none, .advise = f }
static const gp_kind own_kinds[] = {
    OWN_KIND("own_edit", advise_edit),
    { GP_KIND("own_words"), .help = "for tests", .in = own_in, .opts = own_opts,
      .opts_size = sizeof(struct effort), .shape = shape_serial, .run = run_none,
      .advise = advise_words, .user = (void *)"or pack it" },
    OWN_KIND("own_wrong", advise_wrong),
    OWN_KIND("own_beyond", advise_beyond),
    OWN_KIND("own_word", advise_word),
    OWN_KIND("own_mute", advise_nothing),
    { GP_KIND("own_clock"), .help = "for tests", .out = own_out, .shape = shape_clock,
      .run = run_none },
};

/* ---- a report of a plan ----------------------------------------------- */

static const char *dir;
static gp_registry *registry;
static gp_arena arena;

static void up(void)
{
    gp_errs errs = { 0 };
    size_t bytes;
    char *png = pipe_read(".", "tests/data/png/rgb8.png", &bytes);
    ck_assert_ptr_nonnull(png);
    registry = gp_registry_create();
    ck_assert(gp_register_builtin(registry, &errs));
    for (size_t i = 0; i < sizeof own_kinds / sizeof *own_kinds; i++)
        ck_assert_msg(gp_register(registry, &own_kinds[i], &errs), "%s", errs.e[0].msg);
    dir = pipe_dir();
    pipe_text(dir, "free.lua", "stateless = true\nfunction process(f, x, y) y:copy(x) end\n");
    pipe_text(dir, "keeps.lua", "function process(f, x, y) y:copy(x) end\n");
    pipe_file(dir, "a.png", png, bytes);
    pipe_file(dir, "r.raw", png, 16);
    free(png);
}

static void down(void)
{
    gp_arena_free(&arena);
    pipe_dir_remove(dir);
    gp_registry_destroy(registry);
}

static gp_pipeline *compile(const char *yaml, const char *set, bool cuda, gp_errs *errs)
{
    static char file[600];
    gp_machine machine;
    gp_config config = { .registry = registry, .machine = &machine, .set = &set, .nset = set != NULL };
    snprintf(file, sizeof file, "%s/test.yaml", dir);
    gp_machine_fixed(&machine, cuda);
    gp_pipeline *p = gp_compile(yaml, strlen(yaml), file, &config, errs);
    ck_assert_msg(p != NULL, "%s\n%s\n%s", set ? set : "", errs->e[0].msg, yaml);
    return p;
}

static int64_t percent(int n)
{
    return (int64_t)n * (WALL / 100);
}

/* "first..last" of a segment. */
static const char *segment_name(const gp_plan *plan, const gp_segment *s)
{
    const char *first = NULL, *last = NULL;
    for (int i = 0; i < s->ntasks; i++) {
        int v = plan->task[s->task[i]].stage;
        last = v < 0 ? last : plan->graph->stage[v].name;
        first = first ? first : last;
    }
    return first == last ? first : gp_format(&arena, "%s..%s", first, last);
}

static void set_actor(gp_actor_report *p, const times *t)
{
    p->busy_ns = percent(t->busy), p->idle_ns = percent(t->idle);
    p->wait_in_ns = percent(t->in), p->wait_out_ns = percent(t->out);
    p->wait_stream_ns = percent(t->stream), p->launches = (uint64_t)t->launches;
    p->end_ns = t->ended ? percent(t->ended) : WALL;
    for (int i = 0; i < t->launches && t->ms; i++)
        gp_hist_add(&p->time, t->ms * INT64_C(1000000), 1);
}

static gp_report *make_report(int c, const gp_plan *plan)
{
    gp_report *r = GP_NEW(&arena, gp_report, 1);
    const gp_graph *g = plan->graph;
    uint64_t frames = cases[c].frames ? (uint64_t)cases[c].frames : LONG;
    int set = 0;
    r->wall_ns = WALL, r->cpus = cases[c].cpus ? cases[c].cpus : 16;
    r->cpu_ns = percent(cases[c].cpu);
    r->delayed_ns = percent(cases[c].delayed);
    r->others = cases[c].others / 100.0, r->quota = cases[c].quota / 100.0;
    r->actor = GP_NEW(&arena, gp_actor_report, plan->nactors);
    r->nactors = plan->nactors;
    for (int i = 0; i < plan->nactors; i++) {
        gp_actor_report *p = &r->actor[i];
        *p = (gp_actor_report){ .stage = plan->actor[i].stage, .segment = plan->actor[i].segment,
                                .workers = 1, .most_workers = 1, .frames = frames,
                                .end_ns = WALL };
        if (p->stage >= 0) {
            const gp_stage *st = &g->stage[p->stage];
            p->name = st->name, p->workers = st->workers;
            p->most_workers = st->serial ? 1 : r->cpus;
        } else {
            p->name = segment_name(plan, &plan->segment[p->segment]);
        }
        for (int k = 0; k < ACTORS && cases[c].actor[k].name; k++)
            if (!strcmp(cases[c].actor[k].name, p->name))
                set_actor(p, &cases[c].actor[k]), set++;
    }
    for (int k = 0; k < ACTORS && cases[c].actor[k].name; k++)
        set--;
    ck_assert_msg(!set, "%s: an actor that is none", cases[c].what);
    r->buffer = GP_NEW(&arena, gp_buffer_report, 64);
    for (int i = 0; i < plan->nrings; i++)
        for (int k = 0; plan->ring[i].segment < 0 && k < plan->ring[i].nconsumers; k++) {
            const gp_ring *ring = &plan->ring[i];
            gp_buffer_report *b = &r->buffer[r->nbuffers++];
            *b = (gp_buffer_report){ g->buffer[ring->buffer].name, ring->buffer, ring->producer,
                                     ring->consumer[k], ring->depth, 0 };
            for (int n = 0; n < 2 && cases[c].buffer[n].name; n++)
                if (!strcmp(cases[c].buffer[n].name, b->name)
                    && !strcmp(cases[c].buffer[n].to, r->actor[b->to].name))
                    b->held = cases[c].buffer[n].held;
        }
    for (int e = 0; e < GP_ENGINES; e++)
        r->engine[e] = (gp_engine_report){
            .name = gp_bound_name((gp_bound)(GP_BOUND_COPY_IN + e)),
            .used = cases[c].cuda, .measured = !cases[c].estimated,
            .busy_ns = percent(cases[c].engine[e].busy),
            .bytes = (uint64_t)cases[c].engine[e].gb * 1000000000,
            .limit = e == GP_ENGINE_COMPUTE ? 0 : 50e9 };
    return r;
}

/* ---- the tests -------------------------------------------------------- */

START_TEST(says_what_and_what_to_try)
{
    gp_errs errs = { 0 };
    const char *what = cases[_i].what;
    gp_pipeline *p = compile(cases[_i].yaml, NULL, cases[_i].cuda, &errs);
    gp_report *r = make_report(_i, gp_pipeline_plan(p));
    gp_verdict_find(r, p);
    const gp_verdict *v = &r->verdict;
    ck_assert_msg(v->bound == cases[_i].bound, "%s: %s", what, v->text);
    ck_assert_msg(strstr(v->text, cases[_i].text), "%s: %s", what, v->text);
    ck_assert_msg(!cases[_i].whole || !strcmp(v->text, cases[_i].text), "%s: %s", what, v->text);
    ck_assert_msg(!strcmp(v->path, cases[_i].path) && !strcmp(v->value, cases[_i].value),
                  "%s: %s=%s", what, v->path, v->value);
    if (!cases[_i].of)
        ck_assert_msg(v->actor < 0 && v->buffer < 0, "%s", what);
    else
        ck_assert_msg((v->actor >= 0 && !strcmp(r->actor[v->actor].name, cases[_i].of))
                      || (v->buffer >= 0 && !strcmp(r->buffer[v->buffer].name, cases[_i].of)),
                      "%s: not of %s", what, cases[_i].of);
    if (*v->path)
        gp_pipeline_destroy(compile(cases[_i].yaml, gp_format(&arena, "%s=%s", v->path, v->value),
                                    cases[_i].cuda, &errs));
    gp_pipeline_destroy(p);
}
END_TEST

/* A name that is too long for the path: the text says what to do, and there is no edit
 * that would be of another place. */
START_TEST(cuts_no_path)
{
    char name[201], yaml[500];
    gp_errs errs = { 0 };
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    snprintf(yaml, sizeof yaml, "buffers: {g: {dtype: f32, shape: [4]}}\nstages:\n"
             "  - {name: clean, use: generate, out: g}\n"
             "  - {name: %s, use: lua, script: free.lua}\n" END, name);
    gp_pipeline *p = compile(yaml, NULL, false, &errs);
    gp_report *r = make_report(0, gp_pipeline_plan(p));
    for (int i = 0; i < r->nactors; i++)
        r->actor[i].frames = LONG, r->actor[i].busy_ns = !strcmp(r->actor[i].name, name) ? WALL : 0;
    gp_verdict_find(r, p);
    ck_assert_int_eq(r->verdict.bound, GP_BOUND_STAGE);
    ck_assert_str_eq(r->verdict.path, "");
    ck_assert_str_eq(r->verdict.value, "");
    ck_assert_msg(strstr(r->verdict.text, ": try workers: 3"), "%s", r->verdict.text);
    ck_assert_msg(!strchr(r->verdict.text, '\n'), "%s", r->verdict.text);
    gp_pipeline_destroy(p);
}
END_TEST

/* Whatever the numbers are: no division by nothing, no text that was cut. */
START_TEST(takes_any_numbers)
{
    gp_errs errs = { 0 };
    static const int64_t odd[] = { 0, -1, 1, WALL, INT64_C(1) << 62 };
    gp_pipeline *p = compile(cases[1].yaml, NULL, false, &errs);
    for (int k = 0; k < 5 * 5 * 5; k++) {
        gp_report *r = make_report(1, gp_pipeline_plan(p));
        r->wall_ns = odd[k % 5];
        for (int i = 0; i < r->nactors; i++) {
            r->actor[i].busy_ns = odd[k / 5 % 5], r->actor[i].wait_in_ns = odd[k / 25];
            r->actor[i].workers = i, r->actor[i].end_ns = odd[k / 5 % 5];
        }
        r->cpus = k % 2;
        gp_verdict_find(r, p);
        ck_assert_int_gt(strlen(r->verdict.text), 0);
        ck_assert_int_lt(strlen(r->verdict.text), sizeof r->verdict.text - 1);
    }
    gp_pipeline_destroy(p);
}
END_TEST

/* ---- JSON ------------------------------------------------------------- */

/* JSON is YAML, so the parser of pipelines reads it. "a.b.0.c" */
static const char *look_up(const gp_node *n, const char *path)
{
    char word[80];
    for (int used; n && sscanf(path, "%79[^.]%n", word, &used) == 1; path += *path == '.') {
        path += used;
        n = n->kind == GP_LIST ? n->item[atoi(word)] : gp_node_get(n, word);
    }
    return n ? n->text : "(none)";
}

START_TEST(says_it_as_json)
{
    static const char yaml[] = "pipeline: \"a \\\"b\\\" \\u00e4\\n\"\nlaunch: stream\n"
        "on_error: drop\ndepth: 4\nbatch: 2\n" G FREE "  - {use: scale, a: 2}\n" END;
    static const struct { const char *path, *is; } want[] = {
        { "gpipe", GP_VERSION }, { "commit", "null" }, { "date", "2026-01-02T03:04:05Z" },
        { "outcome", "drained" }, { "wall_s", "1" }, { "frames_per_s", "12" },
        { "pipeline.name", "a \"b\" \xc3\xa4\n" }, { "pipeline.device", "cuda:0" },
        { "pipeline.depth", "4" }, { "pipeline.streams", "auto" }, { "pipeline.batch", "2" },
        { "pipeline.launch", "stream" }, { "pipeline.sync", "auto" },
        { "pipeline.on_error", "drop" }, { "environment.cores", "8" },
        { "environment.cpu", "a \"chip\"" }, { "environment.gpu", "null" },
        { "cores.all", "16" }, { "cores.used", "0.5" }, { "cores.others", "2.5" },
        { "cores.quota", "null" },
        { "sources.0.name", "generate" }, { "sources.0.cancelled", "3" },
        { "stages.0.use", "generate" }, { "stages.1.busy", "0.97" }, { "stages.1.busy_s", "0.97" },
        { "stages.1.most_workers", "16" }, { "stages.1.frame_p50_us", "null" },
        { "segments.0.name", "scale" }, { "segments.0.stages.0", "scale" },
        { "segments.0.streams", "4" }, { "segments.0.batch", "2" },
        { "engines.0.name", "copy in" }, { "engines.0.busy", "0.2" }, { "engines.0.gb_s", "9" },
        { "engines.0.limit_gb_s", "50" }, { "engines.0.measured", "false" },
        { "engines.1.name", "compute" }, { "engines.1.busy", "null" },
        { "engines.1.gb_s", "null" }, { "engines.1.limit_gb_s", "null" },
        { "buffers.0.name", "g" }, { "buffers.0.from", "generate" }, { "buffers.0.to", "clean" },
        { "buffers.0.dtype", "f32" }, { "buffers.0.shape.0", "1024" }, { "overlap", "0.5" },
        { "latency_us.p50", "null" }, { "verdict.bound", "stage" }, { "verdict.name", "clean" },
        { "verdict.buffer", "null" }, { "verdict.edit.path", "stages.clean.workers" },
    };
    gp_errs *errs = GP_NEW(&arena, gp_errs, 1);
    gp_account account = { "generate", 15, 12, 0, 0, 3 };
    gp_report_about about = { GP_DRAINED, { .cpu = "a \"chip\"", .date = "2026-01-02T03:04:05Z",
                              .cores = 8 }, &account, 1 };
    char *text = NULL;
    size_t n = 0;
    gp_pipeline *p = compile(yaml, NULL, true, errs);
    gp_report *r = make_report(NOT_MEASURED, gp_pipeline_plan(p));
    r->overlap = 0.5, r->cpu_ns = percent(50), r->others = 2.5;
    gp_verdict_find(r, p);
    FILE *f = open_memstream(&text, &n);
    gp_report_json(r, p, &about, f);
    fclose(f);
    const gp_node *root = gp_yaml_value(&arena, text, (gp_loc){ .file = "report" }, errs);
    ck_assert_msg(root != NULL, "%s\n%s", errs->e[0].msg, text);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        ck_assert_msg(!strcmp(look_up(root, want[i].path), want[i].is), "%s is %s\n%s",
                      want[i].path, look_up(root, want[i].path), text);
    free(text);
    gp_pipeline_destroy(p);
}
END_TEST

Suite *suite_verdict(void)
{
    Suite *s = suite_create("verdict");
    TCase *tc = tcase_create("verdict");
    tcase_add_checked_fixture(tc, up, down);
    tcase_add_loop_test(tc, says_what_and_what_to_try, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_test(tc, cuts_no_path);
    tcase_add_test(tc, takes_any_numbers);
    tcase_add_test(tc, says_it_as_json);
    suite_add_tcase(s, tc);
    return s;
}
