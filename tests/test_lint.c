/* test_lint.c - each lint on the smallest file that has its mistake: the whole text
 * and the place; and on files beside it, which have nothing to be said of. */
#include <glob.h>
#include "pipe.h"
#include "planned.h"

#define FRAMES(shape, more) \
    "buffers: {g: {dtype: f32, shape: " shape more "}}\n" \
    "stages:\n" \
    "  - {use: generate, out: g}\n"
#define LARGE FRAMES("[1024, 1024]", "")
#define SMALL FRAMES("[1024]", "")
#define SCALE "  - {use: scale, a: 2}\n"
#define END "  - {use: discard}\n"
#define LUA(more) "  - {use: lua, script: free.lua" more "}\n"
#define KERNEL(args, more) "  - {use: kernel, source: k.cu, args: " args more "}\n"
#define TWO(a, b) \
    "buffers: {x: {dtype: f32, shape: [9]}, y: {like: x}}\n" \
    "stages:\n" \
    "  - {use: generate, out: x" a "}\n" \
    "  - {use: generate, out: y" b "}\n"

#define JOIN "  - {use: compare, in: [x, y]}\n"
/* A cycle, with a script on it or without; its buffers' keys. */
#define CYCLE(more, v) \
    "buffers: {x: {dtype: f32, shape: [9]}, v: {like: x" more "}, u: {carry: v}, w: {like: x}}\nstages:\n" \
    "  - {use: generate, out: x}\n  - {use: expr, in: {x: x, u: u}, out: w, expr: x + u}\n" v \
    "  - {use: discard, in: w}\n"
#define HOST_CYCLE(more) CYCLE(more, "  - {use: lua, script: free.lua, in: w, out: v}\n")
#define MANAGED(memory) \
    "buffers: {g: {dtype: f32, shape: [1024]}, c: {const: c.npy, memory: " memory "}}\nstages:\n" \
    "  - {use: generate, out: g}\n"
#define SLOTS(memory) \
    "depth: 9\nstreams: 1\nbatch: 1\nbuffers: {g: {dtype: f32, shape: [128, 128], memory: " memory "}}\nstages:\n" \
    "  - {use: generate, out: g}\n"
#define EXPR "  - {use: expr, in: [g, c], expr: g + c}\n"
#define LOOP(more) SMALL "  - {use: loop, times: 5, in: {w: g}, out: {v: y}, stages: [{use: scale, a: 2, in: w, out: v}]" more "}\n" END
#define AT(l, c, n) .line = (l), .col = (c), .len = (n)
#define SILENT .says = NULL

/* `memory`: GiB that may be pinned, `sms`, `f64`: of the machine, where not 0. No `says`: no warning. */
static const struct {
    const char *what, *yaml, *says;
    int line, col, len;
    int memory, sms, f64, room;        /* room: KiB of its memory */
} cases[] = {
    { "one name for all", "buffers: {g: {dtype: u8, shape: [8, 8]}}\nstages:\n  - {use: generate, frames: 6, out: g}\n"
      "  - {use: decimate, frames: 2}\n  - {use: write, path: all.png}\n", "stage 'write' writes a file of each frame, of "
      "which there may be 3, and all have one name; put %05d, the frame's number, or %n, its source's name, into it (lint: names)", AT(5, 24, 7) },
    { "one frame", "buffers: {g: {dtype: u8, shape: [8, 8]}}\nstages:\n  - {use: generate, frames: 6, out: g}\n"
      "  - {use: decimate, frames: 6}\n  - {use: write, path: all.png}\n", SILENT },
    { "numbers", "buffers: {g: {dtype: u8, shape: [8, 8]}}\nstages:\n  - {use: generate, frames: 6, out: g}\n"
      "  - {use: write, path: \"%05d.png\"}\n", SILENT },
#define CUT(more) "buffers: {x: {shape: [5, 8]}}\nstages:\n  - {use: read, path: t.npy, out: x" more "}\n"
    { "a last frame that is partial", CUT("") SCALE "  - {use: transpose}\n" END,
      "the last frame that stage 'read' reads has 3 of 5 rows, at which the run would fail: stage 'transpose' makes f32 "
      "[8, 3] of a smaller frame, and 'transpose' is f32 [8, 5], of which frames may be shorter in axis 0: leave such "
      "frames out before, as 'tail: drop' of 'group' does; give frames a number of rows that divides those of the file, "
      "or leave the last out: 'frames' of its source, or on_error: drop (lint: tail)", AT(5, 11, 9) },
    { "one of which no window is made", CUT("") "  - {use: slide, length: 5, hop: 5}\n  - {use: resize, height: 5, width: 4}\n" END,
      SILENT },
    { "and none of that", CUT("") "  - {use: slide, length: 5, hop: 5}\n  - {use: slice, index: \"::2\"}\n" END, SILENT },
    { "one that is left out", CUT(", frames: 2") "  - {use: transpose}\n" END, SILENT },
    { "one that is dropped", CUT("") "  - {use: transpose}\n" END "on_error: drop\n", SILENT },
    { "one that can be partial",
      CUT("") SCALE "  - {use: transpose, axes: [0, 1]}\n  - {use: reduce, op: sum, axes: [1]}\n" END, SILENT },
    { "lengths", "buffers: {g: {dtype: u8, shape: [8]}, h: {like: g}}\nstages:\n  - {use: generate, frames: 10, out: g}\n"
      "  - {name: b, use: generate, frames: 7, out: h}\n  - {use: expr, expr: a + b, in: {a: g, b: h}}\n  - {use: discard}\n",
      "stage 'expr' joins 'h', which has 7 frames, with 'g', which has 10: the run ends with an error there; give both as many: "
      "by 'frames', or files (lint: lengths)", AT(5, 11, 4) },
    { "lengths of groups", "buffers: {g: {dtype: u8, shape: [8]}, h: {dtype: u8, shape: [2, 8]}}\nstages:\n"
      "  - {use: generate, frames: 14, out: g}\n  - {use: group, frames: 2}\n  - {name: b, use: generate, frames: 7, out: h}\n"
      "  - {use: expr, expr: a + b, in: {a: group, b: h}}\n  - {use: discard}\n", SILENT },
    { "depth 1 for all, said once", "depth: 1\n" LARGE SCALE END,
      "buffer 'g' has depth 1, so stages 'generate' and 'scale' take turns; depth: 3 lets them "
      "work at once (lint: depth)", AT(1, 8, 1) },
    { "depth 1 of one buffer", FRAMES("[1024, 1024]", ", depth: 1") SCALE END,
      "buffer 'g' has depth 1, so stages 'generate' and 'scale' take turns; depth: 3 lets them "
      "work at once (lint: depth)", AT(1, 55, 1) },
    { "and not of what is inside", FRAMES("[1024, 1024]", ", depth: 1") SCALE SCALE END "fuse: none\n",
      "buffer 'g' has depth 1, so stages 'generate' and 'scale' take turns; depth: 3 lets them "
      "work at once (lint: depth)", AT(1, 55, 1) },
    { "depth 1 behind the device",
      "buffers: {g: {dtype: f32, shape: [1024, 1024]}, scale: {depth: 1}}\nstages:\n"
      "  - {use: generate, out: g}\n" SCALE END,
      "buffer 'scale' has depth 1, so stages 'scale' and 'discard' take turns; depth: 3 lets them "
      "work at once (lint: depth)", AT(1, 64, 1) },
    { "depth 1 on the host", "depth: 1\n" LARGE END,
      "buffer 'g' has depth 1, so stages 'generate' and 'discard' take turns; depth: 3 lets them "
      "work at once (lint: depth)", AT(1, 8, 1) },
    { "depth 2", "depth: 2\n" LARGE SCALE END, SILENT },

    { "a cycle through the host, and no word of depth 1 on it", HOST_CYCLE(", depth: 1"),
      "buffer 'u' closes a cycle on which stage 'lua' is on the host and others are on the device, so each frame is "
      "copied out, waited for and copied in before the next one begins; do on the device what the host does there, or "
      "all of it on the host (lint: cycle)", AT(1, 64, 1) },
    { "a cycle on the device", CYCLE("", "  - {use: scale, a: 0.5, in: w, out: v}\n"), SILENT },
    { "a cycle on the host", "device: cpu\n" HOST_CYCLE(", depth: 1"), SILENT },

    { "streams beyond the depth", "streams: 4\n" LARGE SCALE END,
      "4 streams, but depth 3: no more than 3 launches can be in flight; give as many as the "
      "depth, or streams: auto (lint: streams)", AT(1, 10, 1) },
    { "as many streams as slots", "streams: 3\n" LARGE SCALE END, SILENT },
    { "auto", "streams: auto\n" LARGE SCALE END, SILENT },
    { "one segment is deep enough",
      "streams: 6\nbuffers: {g: {dtype: f32, shape: [4]}, x: {like: g, depth: 6}, y: {depth: 6}}\n"
      "stages:\n  - {use: generate, out: g}\n" SCALE END "  - {use: generate, out: x}\n"
      "  - {use: scale, out: y}\n" END, SILENT },

    { "one worker between two and four",
      LARGE "  - {name: a, use: lua, script: free.lua, workers: 2}\n"
      "  - {name: b, use: lua, script: free.lua}\n"
      "  - {name: c, use: lua, script: free.lua, workers: 4}\n" END,
      "stage 'b' has one worker, 'a' before it 2 and 'c' after it 4; try as many, or write "
      "workers: 1 if one is enough (lint: workers)", AT(5, 12, 1) },
    { "a writer behind", LARGE LUA(", workers: 2") LUA("")
      "  - {use: write, path: '%n', format: raw, workers: 2}\n",
      "stage 'lua2' has one worker, 'lua' before it 2 and 'write' after it 2; try as many, or "
      "write workers: 1 if one is enough (lint: workers)", AT(5, 11, 3) },
    { "one worker is what is wanted", LARGE LUA(", workers: 2") LUA(", workers: 1") LUA(", workers: 4") END, SILENT },
    { "a script that keeps something", LARGE LUA(", workers: 2")
      "  - {use: lua, script: keeps.lua}\n" LUA(", workers: 4") END, SILENT },
    { "a source before", LARGE LUA("") LUA(", workers: 4") END, SILENT },
    { "one worker behind", LARGE LUA(", workers: 4") LUA("") LUA("") END, SILENT },
    { "one of two behind", LARGE LUA(", workers: 4") "  - {use: lua, script: free.lua, out: y}\n"
      "  - {use: lua, script: free.lua, workers: 2}\n" END "  - {use: discard, in: y}\n",
      SILENT },
    { "the other of two behind", LARGE LUA(", workers: 4")
      "  - {use: lua, script: free.lua, out: y}\n" END
      "  - {use: write, in: y, path: '%n', format: raw, workers: 2}\n", SILENT },
    { "the device behind", LARGE LUA(", workers: 4") LUA("") SCALE END, SILENT },

    { "more to pin than this machine has", "depth: 200\n" LARGE SCALE END,
      "the pipeline needs 1.6 GiB of pinned host memory; there are 1.0 GiB. The largest is buffer "
      "'g' (f32 [1024, 1024], 200 slots of 4.0 MiB): lower its depth or its shape; 'gpipe run' "
      "would refuse it on this machine (lint: memory)", AT(2, 11, 1), .memory = 1 },
    { "enough to pin", "depth: 200\n" LARGE SCALE END, SILENT, .memory = 2 },
    { "nothing to pin", "device: cpu\ndepth: 200\n" LARGE SCALE END, SILENT, .memory = 1 },

    { "one block", LARGE KERNEL("[in, out]", ", grid: 1") END,
      "stage 'kernel' makes 1048576 elements with 1 block of 256 threads; with 3 frames in flight "
      "that is 3 of the 132 multiprocessors of NVIDIA H200; use more blocks, with less to do for "
      "each thread (lint: grid)", AT(4, 56, 1) },
    { "as many blocks as half the device", "depth: 3\n" LARGE
      KERNEL("[in, out]", ", block: [8, 8], grid: [11, 2]") END,
      "stage 'kernel' makes 1048576 elements with 22 blocks of 64 threads; with 3 frames in flight "
      "that is 66 of the 132 multiprocessors of NVIDIA H200; use more blocks, with less to do for "
      "each thread (lint: grid)", AT(5, 71, 1) },
    { "one block more", LARGE KERNEL("[in, out]", ", grid: 23") END, SILENT },
    { "more frames in flight", "depth: 4\n" LARGE KERNEL("[in, out]", ", grid: 22") END, SILENT },
    { "a smaller device", LARGE KERNEL("[in, out]", ", grid: 22") END, SILENT, .sms = 40 },
    { "64 elements a thread", FRAMES("[128, 128]", "") KERNEL("[in, out]", ", grid: 1") END,
      "stage 'kernel' makes 16384 elements with 1 block of 256 threads; with 24 frames in flight "
      "that is 24 of the 132 multiprocessors of NVIDIA H200; use more blocks, with less to do for "
      "each thread (lint: grid)", AT(4, 56, 1) },
    { "fewer", FRAMES("[128, 127]", "") KERNEL("[in, out]", ", grid: 1") END, SILENT },
    { "one result of many elements",
      "buffers: {g: {dtype: f32, shape: [1024, 1024]}, y: {dtype: f32, shape: [1]}}\nstages:\n"
      "  - {use: generate, out: g}\n" KERNEL("[in, out]", ", grid: 1, out: y") END, SILENT },
    { "a large state, of which it may change a few elements",
      "buffers: {g: {dtype: f32, shape: [64]}, s: {state: true, dtype: f32, shape: [1024, 1024]}}\nstages:\n"
      "  - {use: generate, out: g}\n" KERNEL("[in, out]", ", grid: 1, out: s")
      "  - {use: reduce, in: s, op: sum}\n" END, SILENT },
    { "no grid", LARGE KERNEL("[in, out]", ", threads: out.size") END, SILENT },
    { "on the CPU", "device: cpu\n" LARGE KERNEL("[in, out]", ", grid: 1") END, SILENT },

    { "small frames one by one", "batch: 1\ndepth: 6\n" SMALL SCALE END,
      "each frame is a launch of its own, to copy 8.0 KiB; up to 2 frames that are ready could "
      "share one; leave 'batch' out: no frame waits for others (lint: batch)", AT(1, 8, 1) },
    { "two by two", "batch: 2\ndepth: 6\n" SMALL SCALE END, SILENT },
    { "too few slots for two", "batch: 1\ndepth: 5\n" SMALL SCALE END, SILENT },
    { "larger frames", "batch: 1\ndepth: 6\n" FRAMES("[8193]", "") SCALE END, SILENT },
    { "no launches", "launch: persistent\nbatch: 1\ndepth: 6\n" SMALL SCALE END, SILENT },
    { "small frames on the CPU", "device: cpu\nbatch: 1\ndepth: 6\n" SMALL SCALE END, SILENT },

    { "a wait for frames that no launch takes", "batch_wait: 50us\ndepth: 2\n" SMALL SCALE END,
      "no launch takes more than one frame, so none waits for more; raise the depth or the batch, or leave "
      "'batch_wait' out (lint: batch_wait)", AT(1, 13, 4) },
    { "and for those that it takes", "batch_wait: 50us\ndepth: 6\n" SMALL SCALE END, SILENT },
    { "launches of one frame, to be chosen", "latency: 5ms\ndepth: 2\n" SMALL SCALE END,
      "no launch takes more than one frame, so there is nothing to choose; raise the depth or the batch, or leave "
      "'latency' out (lint: latency)", AT(1, 10, 3) },
    { "and of several", "latency: 5ms\ndepth: 6\n" SMALL SCALE END, SILENT },
    { "all of the device comes first", SMALL "  - {use: scale, priority: high}\n" END,
      "all stages on cuda:0 have this priority, so none of them comes before another; leave it out (lint: priority)",
      AT(4, 28, 4) },
    { "and is as normal", SMALL "  - {use: scale, priority: normal}\n" END, SILENT },
    { "some of it", LARGE "  - {use: sobel, priority: high}\n" SCALE END, SILENT },
    { "on the host", SMALL SCALE "  - {use: discard, priority: low}\n", SILENT },
    { "all of it on the CPU", "device: cpu\n" SMALL "  - {use: scale, priority: high}\n" END, SILENT },
    { "of a resident kernel", "launch: persistent\npriority: low\n" SMALL SCALE END,
      "kernels of stage 'scale' stay on the GPU, which has no priorities for that; leave it out (lint: priority)",
      AT(2, 11, 3) },
    { "of a part of a kernel",
      LARGE "  - {use: scale, priority: low}\n" SCALE "  - {use: blur, sigma: 1, priority: high}\n" END,
      "stage 'scale' is a part of 'scale+scale2', one kernel, whose priority is normal; give the others the same, or "
      "set fuse: none (lint: priority)", AT(4, 28, 3) },
    { "a managed constant that has room", MANAGED("managed") EXPR END,
      "constant 'c' (4.0 KiB) has room on cuda:0, and need not be in the memory of the host; leave 'memory' out where "
      "it has room, and read as little of it as can be where not (lint: managed)", AT(1, 69, 7) },
    { "with just enough", MANAGED("managed") EXPR END,
      "constant 'c' (4.0 KiB) has room on cuda:0, and need not be in the memory of the host; leave 'memory' out where "
      "it has room, and read as little of it as can be where not (lint: managed)", AT(1, 69, 7), .room = 1541 },
    { "one that has none", MANAGED("managed") EXPR END,
      "constant 'c' (4.0 KiB) has no room on cuda:0, where kernels wait for each page of it that is not there: to read "
      "all of it so takes several times as long as to copy it; leave 'memory' out where it has room, and read as "
      "little of it as can be where not (lint: managed)", AT(1, 69, 7), .room = 1540 },
    { "one on the device", MANAGED("device") EXPR END, SILENT },
    { "managed slots that have room", SLOTS("managed") SCALE END,
      "the 9 slots of buffer 'g' (64.0 KiB each) have room on cuda:0, and need not be in managed memory; leave "
      "'memory' out where they have room, and lower the depth where not (lint: managed)", AT(4, 54, 7) },
    { "... that have none", SLOTS("managed") SCALE END,
      "the 9 slots of buffer 'g' (64.0 KiB each) have no room on cuda:0: those that went to the host come back before "
      "a launch, which takes about 2.6 times as long as a copy from pinned memory; leave 'memory' out where they have "
      "room, and lower the depth where not (lint: managed)", AT(4, 54, 7), .room = 1000 },
    { "slots on the device", SLOTS("device") SCALE END, SILENT },
    { "slots on the CPU", "device: cpu\n" SLOTS("managed") SCALE END, SILENT },
    { "one on the CPU", "device: cpu\n" MANAGED("managed") EXPR END, SILENT },
    { "one that devices on the CPU read", "device: cpu:0-1\n" MANAGED("managed") EXPR END, SILENT },
    { "f64 from a port", "buffers: {g: {dtype: f64, shape: [99]}}\nstages:\n"
      "  - {use: generate, out: g}\n" KERNEL("[in, out]", ", threads: out.size") END,
      "stage 'kernel' computes in f64, for which NVIDIA H200 is 64 times slower than for f32; use "
      "f32 where it is precise enough (lint: f64)", AT(4, 11, 6), .f64 = 64 },
    { "f64 from a number", SMALL KERNEL("[in, out, {f64: 0.5}]", ", threads: out.size") END,
      "stage 'kernel' computes in f64, for which NVIDIA H200 is 32 times slower than for f32; use "
      "f32 where it is precise enough (lint: f64)", AT(4, 11, 6), .f64 = 32 },
    { "f32", SMALL KERNEL("[in, out, {f32: 0.5}]", ", threads: out.size") END, SILENT, .f64 = 64 },
    { "a device with f64 units", SMALL KERNEL("[in, out, {f64: 0.5}]", ", threads: out.size") END, SILENT },
    { "a stage that moves more than it computes", SMALL "  - {use: cast, dtype: f64}\n" END, .f64 = 64 },
    { "f64 on the CPU", "device: cpu\n" SMALL KERNEL("[in, out, {f64: 0.5}]", ", threads: out.size") END, SILENT,
      .f64 = 64 },

    { "two paces in one join", TWO(", rate: 99.5", ", rate: 25") JOIN,
      "source 'generate' makes 99.5 frames a second, but stage 'compare' joins them with those of "
      "'generate2', which makes 25; so they wait for each other: give both one rate (lint: rate)",
      AT(3, 35, 4) },
    { "joined further on", TWO(", rate: 10", ", rate: 20") SCALE
      "  - {use: compare, in: [x, scale]}\n",
      "source 'generate2' makes 20 frames a second, but stage 'compare' joins them with those of "
      "'generate', which makes 10; so they wait for each other: give both one rate (lint: rate)",
      AT(4, 35, 2) },
    { "one pace", TWO(", rate: 10", ", rate: 10") JOIN, SILENT },
    { "one of them takes any", TWO(", rate: 10", "") JOIN, SILENT },
    { "not joined", TWO(", rate: 10", ", rate: 20") END "  - {use: discard, in: x}\n", SILENT },

    { "joined each with itself", TWO(", rate: 10", ", rate: 20") "  - {use: compare, in: [x, x]}\n"
      "  - {name: other, use: compare, in: [y, y]}\n", SILENT },

    { "a var's name where text stands", "vars: {taps: 3}\n" SMALL LUA(", params: {a: [1, taps], b: tap}") END,
      "stage 'lua': in 'params' this is the text 'taps', not the value of the var: that is \"${taps}\"; put it in "
      "quotes if it is meant as it stands (lint: text)", AT(5, 50, 4) },
    { "that of a var of ranks", SMALL LUA(", params: {rank: rank}") END,
      "stage 'lua': in 'params' this is the text 'rank', not the value of the var: that is \"${rank}\"; put it in "
      "quotes if it is meant as it stands (lint: text)", AT(4, 49, 4) },
    { "its value, texts in quotes, and keys", "vars: {taps: 3}\n" SMALL
      LUA(", params: {taps: '${taps}', b: 'rank', c: ranks of all, d: {rank: 1}}") END, SILENT },
    { "names that are values", "vars: {n: 3}\n" SMALL KERNEL("[in, out, {i32: n}]", ", threads: out.size, define: {N: '${n}'}") END,
      SILENT },

    { "a loop that carries nothing", LOOP(""),
      "loop 'loop' carries nothing from one iteration to the next, so that all 5 make the same; give the loop carry: {INPUT: "
      "BUFFER} (lint: carry)", AT(4, 24, 1) },
    { "one that does", LOOP(", carry: {w: v}"), SILENT },

    { "silenced", "depth: 1   # nolint: depth\n" LARGE SCALE END, SILENT },
    { "one of several", "depth: 1   # one frame at a time # nolint: batch, depth: as measured\n"
      LARGE SCALE END, SILENT },
    { "another is silenced", "depth: 1   # nolint: batch, depths, dep\n" LARGE SCALE END,
      "buffer 'g' has depth 1, so stages 'generate' and 'scale' take turns; depth: 3 lets them "
      "work at once (lint: depth)", AT(1, 8, 1) },
    { "silenced elsewhere", "# nolint: depth\ndepth: 1\n" LARGE SCALE END,
      "buffer 'g' has depth 1, so stages 'generate' and 'scale' take turns; depth: 3 lets them "
      "work at once (lint: depth)", AT(2, 8, 1) },
};

static const char *dir;
static gp_errs errs;

static void up(void)
{
    memset(&errs, 0, sizeof errs);
    dir = pipe_dir();
    pipe_text(dir, "free.lua", "stateless = true\nfunction process(f, x, y) y:copy(x) end\n");
    pipe_text(dir, "keeps.lua", "function process(f, x, y) y:copy(x) end\n");
    pipe_npy(dir, "c.npy", 1, 1024, NULL);
    pipe_npy(dir, "t.npy", 13, 8, NULL);
    pipe_text(dir, "k.cu", "#define ANY float *out\nextern \"C\" __global__ void k(ANY)\n"
              "{ int i = blockIdx.x * blockDim.x + threadIdx.x; out[i] = 0; }\n");
}

static gp_pipeline *compile(const char *yaml, const char *set)
{
    gp_machine machine;
    gp_machine_fixed(&machine, 1);
    gp_config config = { .machine = &machine, .set = &set, .nset = set != NULL };
    gp_pipeline *p = pipe_compile(dir, yaml, config, &errs);
    ck_assert_msg(p != NULL, "%s\n%s", errs.e[0].msg, yaml);
    ck_assert_int_eq(errs.n, 0);
    return p;
}

static void lint(const gp_pipeline *p, const char *yaml, const gp_machine *m)
{
    gp_lint(gp_pipeline_plan(p), gp_pipeline_spec(p), m, yaml, strlen(yaml), &errs);
}

TEST_EACH(says_what_and_where, cases)
{
    gp_machine m;
    gp_machine_fixed(&m, 1);
    if (cases[_i].memory)
        m.pin_limit = (size_t)cases[_i].memory << 30;
    if (cases[_i].sms)
        m.device[0].sms = cases[_i].sms;
    if (cases[_i].room)
        m.device[0].memory = (size_t)cases[_i].room << 10;
    if (cases[_i].f64)
        m.device[0].f64 = cases[_i].f64;
    gp_pipeline *p = compile(cases[_i].yaml, NULL);
    lint(p, cases[_i].yaml, &m);
    if (!cases[_i].says) {
        ck_assert_msg(errs.n == 0, "%s: %s", cases[_i].what, errs.e[0].msg);
    } else {
        ck_assert_msg(errs.n == 1, "%s: %d warnings: %s", cases[_i].what, errs.n, errs.e[0].msg);
        const gp_err *e = &errs.e[0];
        ck_assert_str_eq(e->msg, cases[_i].says);
        ck_assert_int_eq((int)e->code, GP_E_WARN);
        ck_assert_str_eq(e->at.file, gp_pipeline_graph(p)->file);
        ck_assert_msg(e->at.line == cases[_i].line && e->at.col == cases[_i].col
                      && e->at.len == cases[_i].len, "%s: at %d:%d, %d long", cases[_i].what,
                      e->at.line, e->at.col, e->at.len);
    }
    ck_assert_int_eq(gp_errs_exit(&errs), 0);
    gp_pipeline_destroy(p);
}

/* A place on the command line has no line, and no comment in the file is at it. */
TEST(says_it_of_the_command_line)
{
    static const char yaml[] = "depth: 3   # nolint: depth\n" LARGE SCALE END, set[] = "depth=1";
    gp_machine m;
    gp_machine_fixed(&m, 1);
    gp_pipeline *p = compile(yaml, set);
    lint(p, yaml, &m);
    ck_assert_int_eq(errs.n, 1);
    ck_assert_ptr_eq(errs.e[0].at.file, set);
    gp_pipeline_destroy(p);
}

TEST(says_nothing_of_golden_files)
{
    glob_t files;
    ck_assert_int_eq(glob("tests/golden/*.yaml", 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        size_t len;
        OWNED char *text = pipe_read(".", files.gl_pathv[i], &len);
        planned p = plan_yaml(text, files.gl_pathv[i], true);
        ck_assert_msg(p.pipeline != NULL, "%s", p.errs.e[0].msg);
        gp_lint(p.plan, gp_pipeline_spec(p.pipeline), &p.machine, text, len, &p.errs);
        ck_assert_msg(p.errs.n == 0, "%s: %s", files.gl_pathv[i], p.errs.e[0].msg);
    }
    globfree(&files);
}

TEST_SUITE(lint, up, NULL, 0)
