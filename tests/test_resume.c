/* test_resume.c - a run goes on where another was broken off ('resume'): no frame is lost, and none is there twice. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "base/clock.h"
#include "iotest.h"

Suite *suite_resume(void);

static unsigned seed;

static void make_files(void)
{
    io_count_npy("in.npy", U8(600, 6), 0);
    io_count_raw("in.raw", 3600);
    io_count_npy("shared.npy", U8(200, 6), 0);
    mkdir(io_at("n"), 0777);
    for (int i = 0; i < 200; i++)
        io_count_npy(format("n/%d.npy", i), U8(3, 6), i);
    pipe_text(io_dir, "same.lua", "stateless = true\nfunction process(f, x, y)\n  y:copy(x)\nend\n");
    pipe_text(io_dir, "lose.lua", "stateless = true\nfunction process(f, x, y)\n"
              "  if f.index % 7 == 3 or f.index % 50 > 40 then return 'drop' end\n  y:copy(x)\nend\n");
}

/* ---- killed at any time ------------------------------------------------ */

#define X "depth: 4\nbuffers: {x: {dtype: u8, shape: [1, 6]}, y: {dtype: i32, shape: [1, 6]}}\nstages:\n"
#define Z "depth: 4\nbuffers: {x: {dtype: u8, shape: [1, 6]}}\nstages:\n"
#define NUMBER "  - {use: expr, in: {x: x}, expr: x + frame.index, out: y}\n"

static const struct { const char *yaml; } killed[] = {
    { X "  - {use: read, path: in.npy, rate: 400, out: x}\n" NUMBER
      "  - {name: a, use: write, path: '@/a%03d.npy', rotate_frames: 17}\n"
      "  - {name: b, use: write, in: y, path: @/b.npy, live: true}\n"
      "  - {name: c, use: write, in: y, path: '@/c%d.raw', workers: 3}\n" },
    { Z "  - {use: read, path: in.raw, rate: 400, out: x}\n  - {use: lua, script: lose.lua, workers: 2, out: z}\n"
      "  - {name: a, use: write, in: z, path: '@/a%d.csv', rotate_size: 400, columns: [a, frame.index, b, c, d, e, f]}\n"
      "  - {name: b, use: write, in: z, path: @/b.raw, live: true}\n"
      "  - {name: c, use: write, in: x, path: '@/c%04d.raw', rotate_size: 99, durable: file}\n" },
    { X "  - {use: generate, frames: 600, rate: 400, out: x}\n" NUMBER
      "  - {name: a, use: write, in: y, path: @/a.csv, live: true, durable: file}\n"
      "  - {name: t, use: write, in: y, path: @/t.csv, append: true, columns: [frame.index, frame.name, a, b, c, d, e, f]}\n"
      "  - {name: b, use: write, in: y, path: @/b.jsonl, append: true, stack: false}\n  - {use: discard, in: x}\n" },
    { "depth: 4\nbuffers: {x: {dtype: u8, shape: [3, 6]}}\nstages:\n"
      "  - {use: read, path: 'n/*.npy', workers: 2, rate: 130, out: x}\n"
      "  - {name: a, use: write, path: '@/%n.npy'}\n  - {name: b, use: write, in: x, path: '@/b%02d.npz', rotate_frames: 9}\n"
      "  - {name: c, use: write, in: x, path: @/c.y4m, frame_rate: 25, live: true, subsampling: mono}\n" },
    /* Two states in two segments; some frames are holes, behind which one is what it was at first. */
    { "depth: 4\nbuffers: {x: {dtype: u8, shape: [1, 6]}, y: {dtype: i32, shape: [1, 6]}, w: {dtype: i32, shape: [1, 6]},\n"
      "  s: {state: true, like: y, init: 3, on_hole: splice, save: @-s.npy, save_every: 7},\n"
      "  t: {state: true, like: y, init: 5, save: @-t.npy, save_every: 7}}\nstages:\n"
      "  - {use: read, path: in.npy, rate: 400, out: x}\n  - {use: lua, script: lose.lua, out: z}\n"
      "  - {use: expr, in: {x: z, s: s}, out: s, expr: (s * 3 + x + frame.index) % 1009}\n  - {use: expr, in: {x: z, s: s}, out: y, expr: s + x}\n"
      "  - {use: lua, script: same.lua, in: y, out: w}\n  - {use: expr, in: {x: w, t: t}, out: t, expr: (t * 5 + x) % 1013}\n"
      "  - {use: expr, in: {x: w, t: t}, out: v, expr: t + x}\n"
      "  - {name: a, use: write, in: y, path: '@/a%03d.npy', rotate_frames: 17}\n"
      "  - {name: b, use: write, in: v, path: @/b.npy, live: true}\n  - {use: discard, in: v}\n" },
};

static const char *folder(const char *yaml, const char *to)
{
    static char text[4000];
    size_t n = 0;
    for (; *yaml; yaml++)
        n += (size_t)snprintf(text + n, sizeof text - n, *yaml == '@' ? "%s" : "%.1s", *yaml == '@' ? to : yaml);
    return text;
}

/* When the file was put there; 0: it is not. */
static int64_t note(void)
{
    struct stat st;
    return stat(io_at("progress"), &st) ? 0 : st.st_ctim.tv_sec * 1000000000LL + st.st_ctim.tv_nsec;
}

/* Runs the pipeline, and kills it once it has noted so often how far it has come, and a while later. False: it has come to
 * its end before. */
static bool broken_off(const char *yaml, int often)
{
    const int64_t till = gp_now_ns() + 60000000000;
    int64_t last = note(), now;
    int status = 0;
    pid_t pid = fork(), ended;
    if (!pid) {
        pipe_result r = io_go(yaml);
        if (r.outcome != GP_DONE)
            fprintf(stderr, "%s\n", io_error(&r));
        _exit(r.outcome != GP_DONE);
    }
    for (int notes = 0; !(ended = waitpid(pid, &status, WNOHANG)) && notes < often && gp_now_ns() < till; usleep(500))
        if ((now = note()) && now != last)
            last = now, notes++;
    usleep((useconds_t)(rand_r(&seed) % 30000));
    if (!ended && !(ended = waitpid(pid, &status, WNOHANG))) {
        kill(pid, SIGKILL);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        return true;
    }
    ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "seed %u: it failed", seed);
    return false;
}

/* What a run has kept that failed is no part of the result. */
static int is_result(const struct dirent *e)
{
    return strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && !strstr(e->d_name, ".partial");
}

static void same_folders(const char *a, const char *b, unsigned from)
{
    struct dirent **e;
    size_t n, is;
    int files = scandir(io_at(b), &e, is_result, NULL);
    for (int i = 0; i < files; free(e[i++]))
        ck_assert_msg(!access(io_at(format("%s/%s", a, e[i]->d_name)), F_OK), "seed %u: %s is there, too", from, e[i]->d_name);
    free(e);
    files = scandir(io_at(a), &e, is_result, NULL);
    ck_assert_int_ge(files, 2);
    for (int i = 0; i < files; free(e[i++])) {
        OWNED char *want = pipe_read(io_dir, format("%s/%s", a, e[i]->d_name), &n);
        OWNED char *got = pipe_read(io_dir, format("%s/%s", b, e[i]->d_name), &is);
        ck_assert_msg(want && got && n == is && !memcmp(want, got, n), "seed %u: %s", from, e[i]->d_name);
    }
    free(e);
}

TEST_EACH(killed_again_and_again, killed)
{
    enum { KILLS = 9 };
    const char *said = getenv("GPIPE_RESUME_SEED");
    unsigned from = seed = said ? (unsigned)atol(said) : (unsigned)gp_now_ns();
    int kills = 0;
    fprintf(stderr, "GPIPE_RESUME_SEED=%u\n", from);
    make_files();
    io_go(pipe_edited(folder(killed[_i].yaml, "want"), "rate: ", "rate: 10"));    /* in no hurry, but soon */
    OWNED char *yaml = strdup(format("resume: progress\n%s", folder(killed[_i].yaml, "out")));
    while (kills < KILLS && broken_off(yaml, 1 + kills % 2))       /* first with what was there before frame 0 */
        kills++;
    fprintf(stderr, "killed %d times\n", kills);
    if (kills == KILLS) {
        pipe_result r = io_go(pipe_edited(yaml, "rate: ", "rate: 10"));
        ck_assert_msg(r.outcome == GP_DONE, "seed %u: %s", from, io_error(&r));
        ck_assert_msg(strstr(pipe_said(&r.errs), "the run goes on at frame ") != NULL, "%s", pipe_said(&r.errs));
    }
    same_folders("want", "out", from);
    ck_assert_int_eq(note(), 0);
}

/* ---- other ends -------------------------------------------------------- */

#define ONE(more) "resume: progress\nbuffers: {x: {dtype: u8, shape: [1, 6]}}\nstages:\n" \
    "  - {use: read, path: in.npy, out: x" more "}\n"
#define TWO_SINKS "  - {name: a, use: write, path: 'out/a%02d.raw', rotate_frames: 50}\n" \
    "  - {name: b, use: write, in: x, path: out/b.npy, live: true}\n"

/* A frame fails, or the run is asked to end: what is noted goes on. */
TEST_LOOP(stopped, 0, 3)
{
    make_files();
    pipe_text(io_dir, "fail.lua", "stateless = true\nfunction process(f, x, y)\n  if f.index == 333 then error('as it should') end\n"
              "  y:copy(x)\nend\n");
    io_go(ONE("") TWO_SINKS);
    ck_assert_int_eq(rename(io_at("out"), io_at("want")), 0);
    int level = _i;
    pipe_result r = _i ? pipe_run_with(io_dir, ONE(", rate: 500") TWO_SINKS, "cpu", NULL, (gp_run_options){ .poison = true },
                                       io_stop_soon, &level)
                       : io_go(ONE("") "  - {use: lua, script: fail.lua, out: z}\n" TWO_SINKS);
    ck_assert_int_ne(r.outcome, GP_DONE);
    ck_assert_int_ne(note(), 0);
    if (!_i)                           /* what is made of frames is another now */
        pipe_text(io_dir, "progress", ""), unlink(io_at("progress"));
    r = io_done(ONE("") TWO_SINKS);
    same_folders("want", "out", 0);
}

/* A sink fails at a frame, which is the one that is made first when the run goes on. */
static const struct { const char *write, *in_the_way, *from; } failing[] = {
    { "path: 'out/c%d.raw'", "out/c333.raw", "goes on at frame 333," },
    { "path: 'out/c%d.raw', workers: 3", "out/c333.raw", "goes on at frame 333," },
    { "path: 'out/c%d.raw', rotate_frames: 10", "out/c33.raw", "goes on at frame 330," },
};

TEST_EACH(a_sink_fails, failing)
{
    make_files();
    OWNED char *yaml = strdup(format(ONE("") "  - {use: write, %s}\n  - {name: b, use: write, in: x, path: out/b.npy, live: true}\n",
                                     failing[_i].write));
    io_go(yaml);
    ck_assert_int_eq(rename(io_at("out"), io_at("want")), 0);
    mkdir(io_at("out"), 0777);
    mkdir(io_at(failing[_i].in_the_way), 0777);
    pipe_result r = io_go(yaml);
    ck_assert_msg(r.outcome == GP_ERROR && strstr(io_error(&r), "it is a folder"), "%s", io_error(&r));
    ck_assert_int_eq(rmdir(io_at(failing[_i].in_the_way)), 0);
    r = io_go(yaml);
    ck_assert_msg(r.outcome == GP_DONE && strstr(pipe_said(&r.errs), failing[_i].from), "%s", pipe_said(&r.errs));
    same_folders("want", "out", 0);
}

/* A source that fails, and does no more. */
TEST(a_file_that_comes_later)
{
    make_files();
    static const char yaml[] = "resume: progress\nbuffers: {x: {dtype: u8, shape: [3, 6]}}\nstages:\n"
        "  - {use: read, path: 'n/%d.npy', out: x}\n  - {name: a, use: write, path: 'out/%03d.npy', rotate_frames: 7}\n";
    io_go(yaml);
    ck_assert_int_eq(rename(io_at("out"), io_at("want")), 0);
    io_count_npy("n/100.npy", U8(3, 6), 100);
    pipe_text(io_dir, "n/100.npy", "damaged");
    size_t n;
    OWNED char *bad = pipe_read(io_dir, "n/100.npy", &n);
    pipe_result r = io_go(yaml);
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_int_ne(note(), 0);
    io_count_npy("n/100.npy", U8(3, 6), 100);
    r = io_go(yaml);                   /* its size is another: which frames there are may be, too */
    ck_assert_msg(strstr(io_error(&r), "progress' notes how far another pipeline has come, or this one with other files: to "
                                       "begin from the first frame, remove it") != NULL, "%s", io_error(&r));
    ck_assert_int_eq(r.errs.e[0].at.line, 1);
}

/* One state s, which has what all frames x were. */
#define STATE "buffers: {x: {dtype: f32, shape: [64]}, s: {state: true, like: x, init: 1, save: out/s.npy, save_every: 5},\n" \
    "  y: {like: x}, z: {like: x}}\nstages:\n  - {use: generate, frames: 234, out: x}\n" \
    "  - {use: expr, in: [x, s], out: s, expr: s * 0.9 + x}\n  - {use: expr, in: [x, s], out: y, expr: s - x}\n" \
    "  - {use: lua, script: fail.lua, in: y, out: z, on_error: drop, max_dropped: 50%}\n"
#define ROTATES "  - {use: write, path: 'out/%02d.npy', rotate_frames: 200, stack: true}\n"

static void make_failing(void)
{
    pipe_text(io_dir, "fail.lua", "stateless = true\nfunction process(f, x, y)\n  if f.index % 20 == 3 then error('no') end\n  y:copy(x)\nend\n");
}

/* More fails than may, which is known at the end: the state is what it was behind the frames that are noted. */
TEST(a_state_when_too_much_failed)
{
    make_failing();
    io_go(STATE ROTATES);
    ck_assert_int_eq(rename(io_at("out"), io_at("want")), 0);
    pipe_result r = io_go(pipe_edited("resume: progress\n" STATE ROTATES, "50%", "1%"));
    ck_assert_msg(r.outcome == GP_ERROR && strstr(io_error(&r), "failed in stage 'lua', more than 1 %"), "%s", io_error(&r));
    ck_assert_int_ne(note(), 0);
    r = io_go("resume: progress\n" STATE ROTATES);
    ck_assert_msg(r.outcome == GP_DONE && strstr(pipe_said(&r.errs), "the run goes on at frame "), "%s", pipe_said(&r.errs));
    same_folders("want", "out", 0);
    ck_assert_int_eq(note(), 0);
}

/* What is there of a state, beside or in place of what was noted. */
static const struct { const char *file; int cut, other; const char *says; } state_files[] = {
    { "out/s.npy.next", 8, 0, NULL },
    { "out/s.npy", 0, 1, "out/s.npy' is not the state after 5 frames, at which the run goes on, as '" },
    { "out/s.npy", 8, 0, "progress' says: to begin from the first frame, remove '" },
};

TEST_EACH(a_state_is_another, state_files)
{
    size_t n;
    make_failing();
    pipe_result r = io_go(pipe_edited("resume: progress\n" STATE ROTATES, "50%", "1%"));
    ck_assert_int_ne(note(), 0);
    OWNED char *is = pipe_read(io_dir, "out/s.npy", &n);
    is[n - 9] = (char)(is[n - 9] + state_files[_i].other);
    FILE *f = fopen(io_at(state_files[_i].file), "w");
    ck_assert(f && fwrite(is, n - (size_t)state_files[_i].cut, 1, f) == 1 && !fclose(f));
    r = io_go("resume: progress\n" STATE ROTATES);
    ck_assert_msg(r.outcome == (state_files[_i].says ? GP_ERROR : GP_DONE), "%s", pipe_said(&r.errs));
    ck_assert_msg(!state_files[_i].says || strstr(io_error(&r), state_files[_i].says), "%s", io_error(&r));
}

TEST(a_run_that_failed_saves_no_state)
{
    make_failing();
    pipe_result r = io_go(pipe_edited(pipe_edited(STATE "  - {use: discard}\n", ", save_every: 5", ""), "50%", "1%"));
    ck_assert_msg(r.outcome == GP_ERROR && strstr(io_error(&r), "failed in stage 'lua', more than 1 %"), "%s", io_error(&r));
    ck_assert_msg(access(io_at("out/s.npy"), F_OK), "it is saved");
}

/* A chunk is replaced in a store that is read. */
TEST(a_store_is_another)
{
    static const char yaml[] = "resume: progress\nstages:\n  - {use: read, path: in.zarr, rate: 500, out: x}\n"
        "  - {use: write, path: 'out/%d.raw'}\n";
    int level = 1;
    make_files();
    io_runs("buffers: {x: {dtype: u8, shape: [1, 6]}}\nstages:\n  - {use: read, path: in.npy, out: x}\n  - {use: write, path: in.zarr}\n");
    pipe_result r = pipe_run_with(io_dir, yaml, "cpu", NULL, (gp_run_options){ .poison = true }, io_stop_soon, &level);
    ck_assert_msg(r.outcome == GP_DRAINED && note(), "%s", pipe_said(&r.errs));
    ck_assert_int_eq(utimensat(AT_FDCWD, io_at("in.zarr/c.0.0"), (struct timespec[]){ { 9, 0 }, { 9, 0 } }, 0), 0);
    r = io_go(yaml);
    ck_assert_msg(strstr(io_error(&r), "progress' notes how far another pipeline has come, or this one with other files") != NULL,
                  "%s", pipe_said(&r.errs));
}

static const struct { const char *does, *says; } broken[] = {
    { "progress", "notes how far another pipeline has come" },
    { "out/b.npy", "cannot be added to: it has fewer than" },
    { "remove", "is not there any more, and a run is to go on in it" },
    { "pipeline", "notes how far another pipeline has come" },
    { "another", "cannot be added to: it holds u8 [600, 7], and with the frames it would be u8 [600, 6]" },
};

TEST_EACH(what_does_not_fit, broken)
{
    int level = 1;
    make_files();
    pipe_result r = pipe_run_with(io_dir, ONE(", rate: 500") TWO_SINKS, "cpu", NULL, (gp_run_options){ .poison = true },
                                  io_stop_soon, &level);
    ck_assert_int_eq(r.outcome, GP_DRAINED);
    if (!strcmp(broken[_i].does, "remove"))
        ck_assert_int_eq(unlink(io_at("out/b.npy")), 0);
    else if (!strcmp(broken[_i].does, "another"))
        io_count_npy("out/b.npy", U8(600, 7), 0);
    else if (strcmp(broken[_i].does, "pipeline"))
        pipe_text(io_dir, broken[_i].does, "gpipe resume 1 0\n");
    r = io_go(strcmp(broken[_i].does, "pipeline") ? ONE("") TWO_SINKS : ONE("") "  - {use: cast, dtype: i16}\n" TWO_SINKS);
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_msg(strstr(io_error(&r), broken[_i].says) != NULL, "%s", io_error(&r));
    ck_assert_int_ne(note(), 0);
}

/* What may be edited before the run goes on. */
static const struct { const char *from, *to, *says; } edits[] = {
    { "rate: 500", "rate: 900, workers: 2", NULL },
    { "resume", "depth: 3\non_error: drop\nresume", NULL },
    { "frames: 900", "frames: 800", NULL },
    { "frames: 900", "frames: 5", "progress' notes more frames than there are by now" },
    { "[3]", "[4]", "progress' notes how far another pipeline" },
    { "[3]", "taps.npy", "progress' notes how far another pipeline" },
    { NULL, NULL, "progress' notes how far another pipeline" },
};

TEST_EACH(edited, edits)
{
    int level = 1;
    static const char yaml[] = "resume: progress\nvars: {recorded: '${env:GPIPE_TEST_FOLDER}'}\n"
        "buffers: {x: {dtype: u8, shape: [1, 6]}, k: {const: [3], dtype: u8}}\n"
        "stages:\n  - {use: generate, frames: 900, rate: 500, out: x}\n  - {use: expr, in: {x: x, k: k}, expr: x + k, out: y}\n"
        "  - {use: write, path: '${recorded}/%d.raw'}\n";
    setenv("GPIPE_TEST_FOLDER", "out", 1);
    io_count_npy("taps.npy", U8(1), 3);
    pipe_result r = pipe_run_with(io_dir, yaml, "cpu", NULL, (gp_run_options){ .poison = true }, io_stop_soon, &level);
    ck_assert_int_eq(r.outcome, GP_DRAINED);
    setenv("GPIPE_TEST_FOLDER", edits[_i].from ? "out" : "other", 1);
    r = io_go(edits[_i].from ? pipe_edited(yaml, edits[_i].from, edits[_i].to) : yaml);
    ck_assert_msg(r.outcome == (edits[_i].says ? GP_ERROR : GP_DONE), "%s", pipe_said(&r.errs));
    if (edits[_i].says)
        ck_assert_msg(strstr(io_error(&r), edits[_i].says) != NULL, "%s", io_error(&r));
}

TEST(the_note_is_a_file_of_its_own)
{
    make_files();
    io_runs("resume: ''\n" Z "  - {use: read, path: in.npy, out: x}\n" TWO_SINKS);
    io_fails("resume: out/b.npy\n" Z "  - {use: read, path: in.npy, out: x}\n" TWO_SINKS, 1, "out/b.npy");
    io_fails("resume: /dev/null\n" Z "  - {use: read, path: in.npy, out: x}\n" TWO_SINKS, 1, "is no regular file");
    io_fails("resume: in.npy\n" Z "  - {use: read, path: in.npy, out: x}\n" TWO_SINKS, 1, "is read by stage 'read'");
}

TEST_SUITE(resume, io_set_up_in_memory, NULL, 120)
