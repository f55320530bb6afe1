/* test_verdict.c - what is said of reports made by hand: bounds on the host, their borders, and
 * that the file takes each edit. Runs that are bound in fact: verdict.py. */
#include "verdictrig.h"

static const verdict_case cases[] = {
    { "too few frames", HOST, .actor = { { "clean", .busy = 97 } }, .frames = 9,
      .text = "too short to tell what bounds it: 9 frames in 1 s", NONE },
    { "enough frames", HOST, .actor = { { "clean", .busy = 97 } }, .frames = 10,
      .bound = GP_BOUND_STAGE, .of = "clean",
      .text = "bound by stage 'clean' (host, 97 % busy): try workers: 6",
      .path = "stages.clean.workers", .value = "6" },

    /* rate */
    { "a source that keeps a rate",
      "buffers: {g: {dtype: f32, shape: [4]}}\nstages:\n"
      "  - {name: camera-1, use: generate, out: g, rate: 100}\n" FREE END,
      .actor = { { "camera-1", .busy = 99, .idle = 87 }, { "clean", .busy = 60, .in = 40 } },
      .bound = GP_BOUND_RATE, .of = "camera-1",
      .text = "bound by source 'camera-1', which keeps a rate of 100 Hz (idle 87 %): try rate: 0",
      .path = "stages.camera-1.rate", .value = "0" },
    { "a source that keeps a rate, whatever others do",
      "buffers: {g: {dtype: f32, shape: [4]}}\nstages:\n"
      "  - {name: camera-1, use: generate, out: g, rate: 100}\n" FREE END,
      .actor = { { "camera-1", .busy = 99, .idle = 87 }, { "clean", .busy = 60, .in = 40 } },
      .cpus = 2, .others = 180, .bound = GP_BOUND_RATE, .of = "camera-1",
      .text = "bound by source 'camera-1', which keeps a rate of 100 Hz (idle 87 %, other processes used 1.8 of "
      "2 cores): try rate: 0",
      .path = "stages.camera-1.rate", .value = "0" },
    { "a rate that the rest does not reach",
      "buffers: {g: {dtype: f32, shape: [4]}}\nstages:\n  - {use: generate, out: g, rate: 100}\n" FREE END,
      .actor = { { "generate", .busy = 20, .idle = 10, .out = 80 }, { "clean", .busy = 98 } },
      .bound = GP_BOUND_STAGE, .of = "clean", .text = "stage 'clean' (host, 98 % busy)",
      .path = "stages.clean.workers", .value = "6" },
    { "a pipe", "buffers: {g: {dtype: u8, shape: [4]}}\nstages:\n"
      "  - {use: read, path: stdin, format: raw, out: g}\n" END,
      .actor = { { "read", .busy = 99, .idle = 90 } }, .bound = GP_BOUND_RATE, .of = "read",
      .text = "bound by source 'read', which waits for its input (idle 90 %): what feeds it has to be faster", NONE },

    /* what a program pushes and pulls: of the run with one thread the rest is that of a frame that is on its way, or of
     * the program's own */
#define LOANS "buffers: {g: {dtype: f32, shape: [1024]}}\nstages:\n  - {use: input, name: in, out: g}\n" \
      "  - {use: scale, a: 2}\n  - {use: output, name: out}\n"
    { "a slow camera", LOANS, .actor = { { "in", .busy = 98, .idle = 94 }, { "out", .busy = 3, .idle = 2, .in = 96 } },
      .bound = GP_BOUND_RATE, .of = "in", .text = "bound by source 'in', which waits for its input (idle 94 %): ", NONE },
    { "who is slow with what it pulls", LOANS,
      .actor = { { "in", .busy = 4, .idle = 3, .out = 90 }, { "out", .busy = 98, .idle = 95 } }, .bound = GP_BOUND_RATE,
      .of = "out", .text = "bound by stage 'out', which waits for who takes what it writes (idle 95 %)", NONE },
    { "by turns, all in the pipeline", LOANS, .whole = true, .age = 950,
      .actor = { { "in", .busy = 97, .idle = 95 }, { "out", .busy = 8, .idle = 6, .in = 90 } }, .bound = GP_BOUND_RATE,
      .of = "out", .text = "bound by the program, which pushes a frame into 'in' and waits until it comes out of 'out' "
      "(90 % of the time): push several before the first is pulled, or pull on another thread", NONE },
    { "several on their way, all in the pipeline", "streams: 1\n" LOANS, .age = 2900,
      .actor = { { "in", .busy = 97, .idle = 95 }, { "out", .busy = 8, .idle = 6, .in = 90 },
                 { "scale", .launches = 970, .ms = 1 } }, .bound = GP_BOUND_STREAMS, .of = "scale",
      .text = "bound by the 1 stream of 'scale'", .path = "streams", .value = "16" },
    { "by turns, the camera while it has the frame", LOANS, .age = 20,
      .actor = { { "in", .busy = 97, .idle = 3 }, { "out", .busy = 97, .idle = 95, .in = 2 } }, .bound = GP_BOUND_STAGE,
      .of = "in", .whole = true, .text = "bound by stage 'in' (host, 94 % busy): what the program does while it has a frame of "
      "it has to be faster", NONE },
    { "by turns, the viewer while it has the frame", LOANS, .age = 950,
      .actor = { { "in", .busy = 97, .idle = 95 }, { "out", .busy = 97, .idle = 4, .in = 1 } }, .bound = GP_BOUND_STAGE,
      .of = "out", .text = "bound by stage 'out' (host, 93 % busy)", NONE },
    { "by turns, the program without a frame", LOANS, .whole = true, .age = 30,
      .actor = { { "in", .busy = 99, .idle = 98 }, { "out", .busy = 95, .idle = 94, .in = 2 } }, .bound = GP_BOUND_RATE,
      .of = "in", .text = "bound by the thread of the program that pushes and pulls, which has no frame and asks for none "
      "(96 % of the time): what it does meanwhile has to be faster, or to be done by another thread", NONE },

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
    { "with GPU, not measured", G FREE "  - {use: scale, a: 2}\n" END,
      .cuda = true, .estimated = true, .actor = { { "clean", .busy = 97 } }, .engine = { { 20, 9 } },
      .bound = GP_BOUND_STAGE, .of = "clean", .text = "97 % busy, GPU idle ~80 %)",
      .path = "stages.clean.workers", .value = "5" },
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
      "workers: 8}\n" END, .actor = { { "clean", .busy = 580 } }, .bound = GP_BOUND_DEPTH,
      .of = "clean", .text = "bound by the depth around stage 'clean' (6). Only 6 of its 8 workers "
      "can have a frame, and are 97 % busy: try depth: 12", .path = "depth", .value = "12" },
    { "a script with state", G "  - {name: keeps, use: lua, script: keeps.lua}\n" END,
      .actor = { { "keeps", .busy = 97 } }, .bound = GP_BOUND_STAGE, .of = "keeps",
      .text = "if it keeps nothing from frame to frame, say stateless = true in 'keeps.lua'",
      NONE },
    { "a script that is a source", "buffers: {g: {dtype: f32, shape: [4]}}\nstages:\n"
      "  - {use: lua, script: free.lua, out: g}\n" END, .actor = { { "lua", .busy = 97 } },
      .bound = GP_BOUND_STAGE, .of = "lua", .text = "a source has one worker", NONE },
    { "a generator", HOST, .actor = { { "generate", .busy = 97 } }, .bound = GP_BOUND_STAGE,
      .of = "generate", .text = "(host, 97 % busy): try workers: 6", .path = "stages.generate.workers", .value = "6" },
    { "a generator with all workers", "depth: 16\nbuffers: {g: {dtype: f32, shape: [4]}}\nstages:\n"
      "  - {use: generate, out: g, workers: 16}\n" END, .actor = { { "generate", .busy = 16 * 97 } },
      .bound = GP_BOUND_CORES, .of = "generate", .text = ": fill: once", NONE },
    { "a reader of pictures", "stages:\n  - {use: read, path: a.png, workers: 2}\n" END,
      .actor = { { "read", .busy = 2 * 97 } }, .bound = GP_BOUND_STAGE, .of = "read",
      .text = "(host, 2 workers, 97 % busy): try workers: 6", .path = "stages.read.workers", .value = "6" },
    { "a reader of pictures with all workers", "depth: 16\nstages:\n  - {use: read, path: a.png, workers: 16}\n" END,
      .actor = { { "read", .busy = 16 * 97 } }, .bound = GP_BOUND_CORES, .of = "read",
      .text = "Stage 'read' takes 100 % of it: store its frames as .npy", NONE },
    { "a reader of numbers", "buffers: {r: {dtype: f32, shape: [4]}}\nstages:\n"
      "  - {use: read, path: r.raw, out: r}\n" END, .actor = { { "read", .busy = 97 } },
      .bound = GP_BOUND_STAGE, .of = "read", .text = ": try workers: 6", .path = "stages.read.workers", .value = "6" },
    { "a reader of a stream", "buffers: {r: {dtype: f32, shape: [4]}}\nstages:\n"
      "  - {use: read, path: stdin, out: r}\n" END, .actor = { { "read", .busy = 97 } },
      .bound = GP_BOUND_STAGE, .of = "read", .text = ": store a smaller type", NONE },
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
    { "a value that is no number", OWN("own_word"), .text = "(host, 97 % busy): it has one worker; divide it", NONE },
    { "a kind that has no advice", OWN("own_mute"), .text = "(host, 97 % busy): it has one worker; divide it", NONE },
    { "a pace that no option sets", "buffers: {g: {dtype: f32, shape: [4]}}\nstages:\n"
      "  - {use: own_clock, out: g}\n" END, .actor = { { "own_clock", .busy = 99, .idle = 87 } },
      .bound = GP_BOUND_RATE, .of = "own_clock", .text = "bound by source 'own_clock', which keeps "
      "a rate of 50 Hz (idle 87 %)", NONE },

    /* where ranks meet */
#define RANKS(kind, type) "buffers: {g: {dtype: f32, shape: " type "}}\nstages:\n" SOURCE \
      "  - {name: meet, use: " kind "}\n" END, .ranks = 2, .of = "meet"
    { "who waits for others or exchanges with them", RANKS("all_reduce", "[1024]"), .whole = true,
      .actor = { { "meet", .busy = 99, .idle = 87 } }, .bound = GP_BOUND_RATE,
      .text = "bound by stage 'meet', where ranks meet (87 % of the time it waits for others and exchanges with them)",
      NONE },
    { "who waits for others in a simulation", RANKS("all_reduce", "[1024]"), .whole = true, .simulated = true,
      .actor = { { "meet", .busy = 99, .idle = 37 } }, .bound = GP_BOUND_RATE,
      .text = "bound by stage 'meet', where ranks meet (37 % of the time it waits for others): ranks are late in turns, so "
      "let what each does before it take as long for all frames", NONE },
    { "small frames that are exchanged", RANKS("all_gather", "[1024]"), .whole = true,
      .actor = { { "meet", .busy = 97 } }, .bound = GP_BOUND_STAGE,
      .text = "bound by the collective stage 'meet' (97 % busy): exchange more at a time, in larger frames, or several "
      "arrays put together by 'concat'", NONE },
    { "large ones", RANKS("exchange, rows: 1", "[64, 1024]"), .actor = { { "meet", .busy = 97 } },
      .bound = GP_BOUND_STAGE, .text = "(97 % busy): let less be exchanged", NONE },
    { "by MPI, as said", RANKS("broadcast, by: mpi", "[1024]"), .actor = { { "meet", .busy = 97 } },
      .bound = GP_BOUND_STAGE, .text = "'concat', or leave out 'by: mpi', if they are on a GPU", NONE },
    { "on one rank alone", RANKS("gather_ranks", "[1024]"), .actor = { { "meet", .busy = 97 } },
      .bound = GP_BOUND_STAGE, .text = "(97 % busy): exchange more at a time", NONE },
    { "a part for each", RANKS("scatter_ranks", "[2, 64]"), .actor = { { "meet", .busy = 97 } },
      .bound = GP_BOUND_STAGE, .text = "(97 % busy): exchange more at a time", NONE },

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
      "streams: 4", .path = "streams", .value = "4" },
    { "as many as frames", "depth: 6\n" SCALE, .actor = { { "scale", .launches = 580, .ms = 10 } },
      .bound = GP_BOUND_DEPTH, .of = "scale",
      .text = "97 % busy). 10.2 of 16 cores are idle, and depth 6 lets no more frames be in flight: "
      "try depth: 18", .path = "depth", .value = "18" },

    /* nothing */
    { "nothing stands out", HOST, .actor = { { "clean", .busy = 60, .in = 38 },
      { "generate", .busy = 50, .out = 48 } },
      .text = "nothing stands out as what bounds it: the busiest is stage 'clean', 60 %", NONE },
    { "just busy enough", HOST, .actor = { { "clean", .busy = 85 } }, .bound = GP_BOUND_STAGE,
      .of = "clean", .text = "85 % busy", .path = "stages.clean.workers", .value = "6" },
    { "not quite", HOST, .actor = { { "clean", .busy = 84, .in = 15 } },
      .text = "the busiest is stage 'clean', 84 %", NONE },
    { "waits hardly enough", HOST, .actor = { { "clean", .busy = 84, .in = 3, .out = 2 } },
      .bound = GP_BOUND_STAGE, .of = "clean", .text = "(host, 84 % busy, hardly ever waiting)",
      .path = "stages.clean.workers", .value = "6" },
    { "waits just enough", HOST, .actor = { { "clean", .busy = 84, .in = 3, .out = 3 } },
      .text = "the busiest is stage 'clean', 84 %", NONE },
};

TEST_EACH(says_what_and_what_to_try, cases)
{
    verdict_check(&cases[_i]);
}

/* A name that is too long for the path: the text says what to do, and there is no edit
 * that would be of another place. */
TEST(cuts_no_path)
{
    char name[201];
    gp_errs errs = { 0 };
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    char *yaml = format("buffers: {g: {dtype: f32, shape: [4]}}\nstages:\n"
                        "  - {name: clean, use: generate, out: g}\n"
                        "  - {name: %s, use: lua, script: free.lua}\n" END, name);
    gp_pipeline *p = verdict_compile(yaml, NULL, false, &errs);
    gp_report *r = verdict_report(&cases[0], gp_pipeline_plan(p));
    for (int i = 0; i < r->nactors; i++)
        r->actor[i].frames = LONG, r->actor[i].busy_ns = !strcmp(r->actor[i].name, name) ? WALL : 0;
    gp_verdict_find(r, p);
    ck_assert_int_eq(r->verdict.bound, GP_BOUND_STAGE);
    ck_assert_str_eq(r->verdict.path, "");
    ck_assert_str_eq(r->verdict.value, "");
    ck_assert_msg(strstr(r->verdict.text, ": try workers: 6"), "%s", r->verdict.text);
    ck_assert_msg(!strchr(r->verdict.text, '\n'), "%s", r->verdict.text);
    gp_pipeline_destroy(p);
}

/* Whatever the numbers are: no division by nothing, no text that was cut. */
TEST(takes_any_numbers)
{
    gp_errs errs = { 0 };
    static const int64_t odd[] = { 0, -1, 1, WALL, INT64_C(1) << 62 };
    gp_pipeline *p = verdict_compile(cases[1].yaml, NULL, false, &errs);
    for (int k = 0; k < 5 * 5 * 5; k++) {
        gp_report *r = verdict_report(&cases[1], gp_pipeline_plan(p));
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

TEST_SUITE(verdict, verdict_up, verdict_down, 0)
