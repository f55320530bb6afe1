/* state_cases.c - states: what kernels and expressions that change and read one make of it, as C computes it, with any
 * settings; what it begins with; frames with fewer rows, and holes. tests/model.py has random graphs with them. */
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/outfile.h"
#include "cases.h"
enum { KNOBS = CASES_KNOBS };

/* ---- several stages that take turns ----------------------------------- */

enum { FRAMES = 40, ROWS = 8, WIDE = 4 };

static const char turns[] =
    "buffers: {x: {dtype: f32, shape: [4]}, kv: {state: true, dtype: f32, shape: [8, 4], init: -1}}\nstages:\n"
    "  - {use: generate, frames: 40, out: x}\n"
    "  - use: kernel\n    name: look\n    in: [x, kv]\n    out: [s]\n    grid: 1\n    block: 4\n    args: [x, kv, out]\n"
    "    code: |\n"
    "      extern \"C\" __global__ void look(const float *x, const float *kv, float *s)\n      {\n"
    "          int i = threadIdx.x;\n          float t = x[i];\n"
    "          for (int k = 0; k < 8; k++)\n              t = t * 0.5f + kv[k * 4 + i];\n          s[i] = t;\n      }\n"
    /* Writes one row, and leaves the others as they are. */
    "  - use: kernel\n    name: put\n    in: [s]\n    out: [kv]\n    grid: 1\n    block: 4\n    args: [in, frame, out]\n"
    "    code: |\n"
    "      extern \"C\" __global__ void put(const float *s, const gp_frame_info *f, float *kv)\n      {\n"
    "          kv[(f->index % 8) * 4 + threadIdx.x] = s[threadIdx.x] * 0.125f;\n      }\n"
    "  - {use: expr, in: {k: kv}, out: y, expr: k + 1}\n"
    "  - use: kernel\n    name: fade\n    in: [s, kv]\n    out: [kv, z]\n    grid: 1\n    block: 4\n    args: [s, kv, z]\n"
    "    code: |\n"
    "      extern \"C\" __global__ void fade(const float *s, float *kv, float *z)\n      {\n"
    "          int i = threadIdx.x;\n          for (int k = 0; k < 8; k++)\n              kv[k * 4 + i] *= 0.75f;\n"
    "          z[i] = s[i];\n      }\n"
    "  - {use: write, in: y, path: y.raw, durable: none}\n  - {use: write, in: z, path: z.raw, durable: none}\n";

/* What they make of the state in so many frames, and of each, where that is not NULL, what they wrote. */
static const float *take_turns(int frames, const float *y, const float *z)
{
    static float kv[ROWS][WIDE];
    for (int i = 0; i < ROWS * WIDE; i++)
        kv[i / WIDE][i % WIDE] = -1;
    for (int f = 0; f < frames; f++)
        for (int i = 0; i < WIDE; i++) {
            float t = (float)(f * WIDE + i);
            for (int k = 0; k < ROWS; k++)
                t = t * 0.5f + kv[k][i];
            kv[f % ROWS][i] = t * 0.125f;
            ck_assert_msg(!z || z[f * WIDE + i] == t, "frame %d", f);
            for (int k = 0; k < ROWS; k++) {
                ck_assert_msg(!y || y[(f * ROWS + k) * WIDE + i] == kv[k][i] + 1, "frame %d, row %d", f, k);
                kv[k][i] *= 0.75f;
            }
        }
    return *kv;
}

TEST_THIN(takes_turns, 2 * KNOBS, 1)
{
    const char *dir = pipe_dir();
    size_t n, m;
    pipe_result r = cases_run(dir, turns, _i % KNOBS);
    pipe_no_errors(&r, turns);
    ck_assert_int_eq(r.outcome, GP_DONE);
    OWNED float *y = (float *)pipe_read(dir, "y.raw", &n);
    OWNED float *z = (float *)pipe_read(dir, "z.raw", &m);
    ck_assert(n == sizeof(float) * FRAMES * ROWS * WIDE && m == sizeof(float) * FRAMES * WIDE);
    take_turns(FRAMES, y, z);
}

/* ---- kernels that are launched early ------------------------------------- */

/* One that lets the next be launched before it has written the state, which is the weights of that. */
static const char early[] =
    "buffers: {g: {dtype: f32, shape: [2, 256]}, w: {state: true, dtype: f16, shape: [8, 256]}}\nstages:\n"
    "  - {use: generate, frames: 40, out: g}\n  - {use: expr, in: g, out: ones, expr: g * 0 + 1}\n"
    "  - {use: cast, name: x, dtype: f16}\n"
    "  - use: kernel\n    name: fill\n    in: [x]\n    out: [w]\n    grid: 8\n    block: 256\n    args: [frame, out]\n"
    "    code: |\n"
    "      extern \"C\" __global__ void fill(const gp_frame_info *f, gp_half *w)\n      {\n"
    "          gp_grid_next();\n          gp_grid_wait();\n          float t = 0;\n"
    "          for (int k = 0; k < 2000; k++)\n              t = t * 0.5f + 1;\n"
    "          w[blockIdx.x * 256 + threadIdx.x] = gp_to_half(f->index % 8 * t);\n      }\n      GP_EARLY(fill)\n"
    "  - {use: linear, in: {in: x, weights: w}, out: y}\n  - {use: cast, in: y, dtype: f32}\n"
    "  - {use: write, path: y.raw, durable: none}\n";

TEST_THIN(waits_for_weights_that_are_a_state, KNOBS, 1)
{
    const char *dir = pipe_dir();
    size_t n;
    pipe_result r = cases_run(dir, early, _i);
    pipe_no_errors(&r, early);
    OWNED float *y = (float *)pipe_read(dir, "y.raw", &n);
    ck_assert_int_eq(n, sizeof(float) * FRAMES * 2 * 8);
    for (int i = 0; i < FRAMES * 2 * 8; i++)
        ck_assert_msg(y[i] == (float)(512 * (i / 16 % 8)), "frame %d", i / 16);
}

/* ---- what is saved while it goes on ------------------------------------- */

/* How many frames the state that is saved is behind, as its header says. It is whole, and has the bytes of `want`, where
 * that is not NULL. */
static unsigned long long saved_behind(const char *dir, const void *want, size_t bytes)
{
    size_t n;
    unsigned long long frames = 0;
    OWNED char *file = pipe_read(dir, "s.npy", &n);
    ck_assert(file && n > bytes && pipe_npy_type(dir, "s.npy").dtype == GP_F32);
    const char *says = strstr(file + 10, "# after ");
    ck_assert(says && sscanf(says, "# after %llu frames", &frames) == 1);
    ck_assert_msg(!want || !memcmp(file + n - bytes, want, bytes), "behind %llu frames", frames);
    return frames;
}

enum { FAILS_AT = 31 };

/* The run fails at a frame behind all that uses the state, somewhere between two saves: what is there is the state exactly
 * behind the frames that it says it is behind. The first save is never left out. Other settings go on with that. */
TEST_THIN(saves_while_it_goes_on, 4 * KNOBS, 1)
{
    static const int every[] = { 1, 3, 8, 20 };
    const char *dir = pipe_dir(), *knobs = cases_knobs[_i % KNOBS];
    unsigned n = (unsigned)every[_i / KNOBS];
    pipe_text(dir, "fail.lua", format("function process(f, z)\n  if f.index == %d then error('no') end\nend\n", FAILS_AT));
    char *text = pipe_edited(turns, "init: -1", format("init: -1, save: s.npy, save_every: %u", n));
    char *yaml = pipe_edited(text, "{use: write, in: z, path: z.raw, durable: none}", "{use: lua, script: fail.lua, in: z, out: []}");
    const char *const first[] = { "depth=3", NULL }, *const then[] = { "depth=5", "streams=3", NULL }, *const *const sets[] = { first, then };
    int parts = 1;
    pipe_result r = _i % KNOBS == CASES_PERSISTENT ? pipe_run_paused(dir, yaml, on, sets, (const unsigned long long[]){ 9 }, 1,
                                                                     (gp_run_options){ .poison = true }, &parts)
                                                   : cases_run(dir, yaml, _i % KNOBS);
    ck_assert_msg(r.outcome == GP_ERROR && r.compiled, "%s: %s", knobs, pipe_said(&r.errs));
    unsigned long long frames = saved_behind(dir, NULL, sizeof(float) * ROWS * WIDE);
    ck_assert_msg(frames >= n && frames <= FRAMES && (frames % n == 0 || frames == FRAMES), "%s: %llu", knobs, frames);
    saved_behind(dir, take_turns((int)frames, NULL, NULL), sizeof(float) * ROWS * WIDE);
}

/* What another process has left in the folder is looked for when a run begins, and not at each save. */
TEST(looks_through_its_folder_once)
{
    const char *dir = pipe_dir();
    char why[GP_WHY];
    mkdir(format("%s/from", dir), 0777);
    pid_t pid = fork();
    if (!pid) {
        gp_outfile f = { .durable = GP_DURABLE_NONE };
        bool is = gp_outfile_open(&f, format("%s/from/s.npy", dir), why);
        rename(f.tmp, format("%s/from/left", dir));
        char *name = strrchr(f.tmp, '/') + 1;
        pipe_text(dir, "move.lua", format("function process(f, x)\n  if f.index == 9 then\n"
                  "    assert(os.rename('%s/from/left', '%s/%s'))\n  end\nend\n", dir, dir, name));
        pipe_text(dir, "name", name);
        _exit(!is);
    }
    int status;
    ck_assert(waitpid(pid, &status, 0) == pid && !status);
    pipe_result r = cases_run(dir, "buffers: {x: {dtype: f32, shape: [3]}, s: {state: true, like: x, save: s.npy, save_every: 2}}\nstages:\n"
                             "  - {use: generate, frames: 40, out: x}\n  - {use: expr, in: [x, s], out: s, expr: x + s}\n"
                             "  - {use: expr, in: [x, s], out: y, expr: s - x}\n  - {use: lua, script: move.lua, in: y, out: []}\n", 0);
    ck_assert_msg(r.outcome == GP_DONE, "%s", pipe_said(&r.errs));
    size_t n;
    char *name = pipe_read(dir, "name", &n);
    ck_assert_msg(!access(format("%s/%s", dir, name), F_OK), "%s is gone", name);
    free(name);
    pipe_dir_remove(dir);
}

/* The last frame before a save is a hole. */
TEST_THIN(saves_behind_a_hole, 2 * (KNOBS - 1), 1)
{
    const char *dir = pipe_dir();
    bool splices = _i % 2;
    pipe_text(dir, "lose.lua", "function process(f, x, y)\n  if f.index % 5 == 4 then return 'drop' end\n  y:copy(x)\nend\n");
    pipe_text(dir, "fail.lua", "function process(f, x)\n  if f.index == 23 then error('no') end\nend\n");
    char *yaml = format("%sbuffers: {x: {dtype: f32, shape: [3]}, s: {state: true, like: x, init: 2, on_hole: %s, save: s.npy, save_every: 5}, "
                        "y: {like: x}}\nstages:\n  - {use: generate, pattern: constant, value: 1, frames: 60, out: x}\n"
                        "  - {use: lua, script: lose.lua, in: x, out: k}\n  - {use: expr, in: [k, s], out: s, expr: s + k}\n"
                        "  - {use: expr, in: [k, s], out: y, expr: s - k}\n  - {use: lua, script: fail.lua, in: y, out: []}\n",
                        cases_knobs[(_i / 2 + CASES_PERSISTENT + 1) % KNOBS], splices ? "splice" : "reset");
    pipe_result r = pipe_run(dir, yaml, on, NULL, (gp_run_options){ .poison = true });
    ck_assert_msg(r.outcome == GP_ERROR && r.compiled, "%s", pipe_said(&r.errs));
    unsigned long long frames = saved_behind(dir, NULL, 12);
    ck_assert_msg(frames >= 5 && frames % 5 == 0, "%llu", frames);
    float is = splices ? 2 + (float)frames / 5 * 4 : 2, want[3] = { is, is, is };
    saved_behind(dir, want, sizeof want);
}

/* ---- what it begins with ----------------------------------------------- */

static float index_of(int64_t i)
{
    return (float)i * 0.25f;
}

TEST_THIN(begins_with, 3, 1)
{
    static const char *const says[] = { "dtype: f32, shape: [6]", "like: x, init: \"base / 4.0\"", "init: start.npy" };
    const char *dir = pipe_dir();
    size_t n;
    pipe_npy(dir, "start.npy", 6, 0, index_of);
    char *yaml = format("vars: {base: 6}\nbuffers: {x: {dtype: f32, shape: [6]}, s: {state: true, %s}}\nstages:\n"
                        "  - {use: generate, pattern: constant, value: 2, frames: 3, out: x}\n"
                        "  - {use: expr, in: {x: x, s: s}, out: y, expr: 10 * s + 0 * x}\n"
                        "  - {use: expr, in: {x: x, s: s}, out: s, expr: s * x}\n  - {use: write, in: y, path: out.raw}\n", says[_i]);
    pipe_done(dir, yaml, on, NULL, (gp_run_options){ .poison = true });
    OWNED float *out = (float *)pipe_read(dir, "out.raw", &n);
    ck_assert_uint_eq(n, 18 * sizeof *out);
    for (int i = 0; i < 18; i++) {
        float first = _i == 0 ? 0 : _i == 1 ? 1.5f : index_of(i % 6);
        ck_assert_msg(out[i] == 10 * first * (float)(1 << i / 6), "element %d is %g", i, (double)out[i]);
    }
}

/* ---- beside others -------------------------------------------------------- */

/* A stage between what is carried and what a state is; a state within a cycle that leads through the host; one that writes what another only wrote, and shares no buffer with
 * it. Each adds frame k of x, 16 numbers, to what `next` says: of x so far without frame k, and of frame k - 1 alone. */
static const struct { const char *stages; int all, last, own, add; } beside[] = {
    { "buffers: {x: &x {dtype: i32, shape: [16]}, s: {state: true, <<: *x}, v: *x, u: {carry: v}}\nstages:\n"
      "  - {use: read, path: x.raw, out: x}\n  - {use: expr, in: {u: u, x: x}, out: b, expr: u + x}\n"
      "  - {use: expr, in: {s: s, x: x}, out: v, expr: x + 0 * s}\n  - {use: expr, in: {s: s, x: x}, out: s, expr: s + x}\n"
      "  - {use: expr, in: {b: b, s: s}, out: y, expr: b + s}\n", 1, 1, 2, 0 },
    { "buffers: {x: &x {dtype: i32, shape: [16]}, s: {state: true, <<: *x}, v: *x, h: *x, u: {carry: v}}\nstages:\n"
      "  - {use: read, path: x.raw, out: x}\n  - {use: expr, in: {u: u, x: x}, out: b, expr: u + x}\n"
      "  - {use: lua, script: host.lua, in: b, out: h}\n"
      "  - {use: expr, in: {h: h, s: s, u: u, x: x}, out: {s: s, v: v}, expr: \"s = s + x; v = h - u\"}\n"
      "  - {use: expr, in: {b: b, s: s}, out: y, expr: b + s}\n", 1, 1, 2, 0 },
    { "buffers: {x: &x {dtype: i32, shape: [16]}, s: {state: true, <<: *x}, h: *x}\nstages:\n"
      "  - {use: read, path: x.raw, out: x}\n  - {use: expr, in: x, out: h, expr: in * 2}\n"
      "  - {use: expr, in: h, out: s, expr: in + 1}\n  - {use: expr, in: x, out: s, expr: in + 2}\n"
      "  - {use: expr, in: s, out: y, expr: in}\n", 0, 0, 1, 2 },
};

enum { BESIDE = sizeof beside / sizeof *beside };

TEST_THIN(beside_others, BESIDE * KNOBS, 1)
{
    const char *dir = pipe_dir();
    int32_t x[20 * 16], all[16] = { 0 };
    size_t n;
    for (int i = 0; i < 20 * 16; i++)
        x[i] = i * 37 % 101;
    pipe_file(dir, "x.raw", x, sizeof x);
    pipe_text(dir, "host.lua", "function process(f, x, y)\n  y:copy(x)\nend\n");
    char *yaml = format("%s  - {use: write, in: y, path: out.raw, durable: none}\n", beside[_i % BESIDE].stages);
    pipe_result r = cases_run(dir, yaml, _i / BESIDE);
    pipe_no_errors(&r, yaml);
    OWNED int32_t *out = (int32_t *)pipe_read(dir, "out.raw", &n);
    ck_assert_uint_eq(n, sizeof x);
    for (int i = 0; i < 20 * 16; i++) {
        int want = beside[_i % BESIDE].all * all[i % 16] + (i < 16 ? 0 : beside[_i % BESIDE].last * x[i - 16])
                 + beside[_i % BESIDE].own * x[i] + beside[_i % BESIDE].add;
        ck_assert_msg(out[i] == want, "element %d is %d, not %d, of\n%s", i, out[i], want, yaml);
        all[i % 16] += x[i];
    }
}

/* ---- scatter ------------------------------------------------------------ */

static const struct { const char *dtype; size_t size; int n, m, outer, inner; const char *mode, *index; } places[] = {
    { "u8", 1, 7, 4, 3, 5, "wrap", "i32" },      { "u8", 1, 40, 33, 2, 16, "clip", "i64" },
    { "u16", 2, 5, 9, 1, 7, "skip", "i32" },     { "f32", 4, 300, 700, 2, 3, "wrap", "i64" },
    { "f64", 8, 6, 6, 4, 1, "clip", "i32" },     { "c64", 8, 9, 1, 2, 6, "skip", "i64" },
    { "f32", 4, 2000, 1, 1, 64, "wrap", "i32" }, { "f16", 2, 3, 70, 5, 3, "skip", "i32" },
};
enum { PUTS = sizeof places / sizeof *places, TIMES = 12 };

/* As a loop in C does it, over places by chance, of which some are there twice and some are not there. */
TEST_THIN(scatter, PUTS, 1)
{
    const char *dir = pipe_dir(), *t = places[_i].dtype;
    int n = places[_i].n, m = places[_i].m, outer = places[_i].outer, inner = places[_i].inner;
    size_t run = (size_t)inner * places[_i].size, frame = (size_t)(outer * m) * run, all = (size_t)(outer * n) * run, got;
    OWNED char *x = calloc(TIMES, frame), *s = calloc(1, all);
    OWNED int64_t *at = calloc((size_t)(TIMES * m), sizeof *at);
    OWNED int32_t *at32 = calloc((size_t)(TIMES * m), sizeof *at32);
    bool wide = !strcmp(places[_i].index, "i64");
    unsigned seed = (unsigned)_i;
    for (size_t i = 0; i < TIMES * frame; i++)
        x[i] = (char)(rand_r(&seed) % 50 + 1);         /* no NaN in any type */
    for (int i = 0; i < TIMES * m; i++)
        at[i] = at32[i] = rand_r(&seed) % (n + n / 2 + 2) - n / 4 - 1;
    pipe_file(dir, "x.raw", x, TIMES * frame);
    pipe_file(dir, "at.raw", wide ? (void *)at : (void *)at32, (size_t)(TIMES * m) * (wide ? sizeof *at : sizeof *at32));
    char *yaml = format("buffers: {x: {dtype: %s, shape: [%d, %d, %d]}, at: {dtype: %s, shape: [%d]}, "
                        "s: {state: true, dtype: %s, shape: [%d, %d, %d]}, y: {like: s}}\nstages:\n  - {use: read, path: x.raw, out: x}\n"
                        "  - {use: read, path: at.raw, out: at}\n"
                        "  - {use: scatter, in: {in: x, index: at}, out: s, axis: 1, mode: %s}\n"
                        "  - {use: slice, in: s, index: \":\", out: y}\n  - {use: write, in: y, path: out.raw, durable: none}\n",
                        t, outer, m, inner, places[_i].index, m, t, outer, n, inner, places[_i].mode);
    pipe_done(dir, yaml, on, NULL, (gp_run_options){ .poison = _i & 1 });
    OWNED char *out = pipe_read(dir, "out.raw", &got);
    ck_assert_uint_eq(got, TIMES * all);
    for (int f = 0; f < TIMES; f++) {
        for (int j = 0; j < m; j++) {
            int64_t p = at[f * m + j];
            if (*places[_i].mode == 'w')
                p = (p % n + n) % n;
            else if (*places[_i].mode == 'c')
                p = p < 0 ? 0 : p >= n ? n - 1 : p;
            for (int o = 0; o < outer && p >= 0 && p < n; o++)
                memcpy(s + (size_t)(o * n + p) * run, x + (size_t)f * frame + (size_t)(o * m + j) * run, run);
        }
        ck_assert_msg(!memcmp(out + (size_t)f * all, s, all), "frame %d of\n%s", f, yaml);
    }
}

/* ---- what is kept of it ------------------------------------------------- */

static const struct { const char *init[2]; } inits[] = {       /* of the first run, and of those behind it */
    { { "0", "out/s.npy" } }, { { "\"${none}\"", "\"${out}/s.npy\"" } }, { { "\"${kept}\"", "\"${kept}\"" } },
    { { "out/s.npy, missing: 0", "out/s.npy, missing: 0" } }, { { "\"${out}/s.npy\", missing: none", "out/s.npy, missing: 7" } },
};

/* A run begins with what the one before saved, the first with a number, or with what is said of a file that is not there;
 * one that fails leaves that as it is. */
TEST_EACH(saved, inits)
{
    const char *dir = pipe_dir();
    size_t n;
    float sum[4] = { 0 };
    pipe_text(dir, "fail.lua", "function process(f, x, y)\n  if f.index == 5 then error('no') end\n  y:copy(x)\nend\n");
    for (int run = 0; run < 4; run++) {
        char *yaml = format("vars: {kept: %s, none: 0, out: out}\n"
                            "buffers: {x: {dtype: f32, shape: [4]}, s: {state: true, dtype: f32, shape: [4], init: %s, save: out/s.npy}, "
                            "y: {like: x}}\nstages:\n  - {use: generate, frames: 9, out: x}\n"
                            "  - {use: expr, in: [x, s], out: s, expr: s + x}\n  - {use: expr, in: [x, s], out: y, expr: s - x}\n"
                            "%s  - {use: discard}\n", run ? "out/s.npy" : "0", inits[_i].init[run > 0],
                            run == 2 ? "  - {use: lua, script: fail.lua}\n" : "");
        pipe_result r = cases_run(dir, yaml, run);
        ck_assert_msg(r.outcome == (run == 2 ? GP_ERROR : GP_DONE), "run %d: %s", run, pipe_said(&r.errs));
        for (int i = 0; i < 36 && run != 2; i++)
            sum[i % 4] += (float)i;
        OWNED char *file = pipe_read(dir, "out/s.npy", &n);
        ck_assert(file && n > sizeof sum);
        ck_assert_msg(!memcmp(file + n - sizeof sum, sum, sizeof sum), "run %d", run);
    }
}

/* Another run saves to the file until this one has been compiled, and has made something else of it: the file is held
 * before it is read, so that nothing is lost that the other saves. What came meanwhile in place of no file is an error. */
TEST(held_before_read)
{
    static const char yaml[] = "buffers: {x: {dtype: f32, shape: [4]}, s: {state: true, like: x, init: s.npy, missing: 0, save: s.npy}, "
                               "y: {like: x}}\nstages:\n  - {use: generate, frames: 9, out: x}\n"
                               "  - {use: expr, in: [x, s], out: s, expr: s + x}\n  - {use: expr, in: [x, s], out: y, expr: s - x}\n"
                               "  - {use: discard}\n";
    const char *dir = pipe_dir();
    char why[GP_WHY];
    gp_machine machine;
    const char *set = format("device=%s", on);
    gp_machine_read(&machine, !strncmp(on, "cuda", 4));
    for (int there = 1; there >= 0; there--) {
        gp_errs errs = { .n = 0 };
        gp_outfile other = { .is_sole = true };
        OWNED char *path = strdup(format("%s/s.npy", dir));
        if (there)
            pipe_npy(dir, "s.npy", 4, 0, index_of);
        else
            unlink(path);
        gp_pipeline *p = pipe_compiled(dir, yaml, (gp_config){ .machine = &machine, .set = &set, .nset = 1 });
        pipe_npy(dir, "s.npy", 5, 0, index_of);
        ck_assert_msg(gp_outfile_open(&other, path, why), "%s", why);
        ck_assert_int_eq(gp_pipeline_run(p, NULL, &errs), GP_ERROR);
        ck_assert_msg(strstr(pipe_said(&errs), "another run is writing it"), "%s", pipe_said(&errs));
        gp_outfile_drop(&other);
        errs = (gp_errs){ .n = 0 };
        ck_assert_int_eq(gp_pipeline_run(p, NULL, &errs), GP_ERROR);
        ck_assert_msg(strstr(pipe_said(&errs), there ? "changed since it was checked" : "has come since the pipeline was checked"), "%s",
                      pipe_said(&errs));
        gp_pipeline_destroy(p);
    }
}

/* ---- frames that are not whole ------------------------------------------ */

/* The second of three frames has one row of two: the state is whole all the same. A frame that a script drops makes the
 * state what it was at first, or leaves it as it is. */
TEST_THIN(not_whole, 4 * (KNOBS - 1), 1)
{
    static const float in[] = { 1, 2, 3, 7, 8, 9, 4, 5, 6 };
    const char *dir = pipe_dir();
    bool drops = _i % 2, splices = _i / 2 % 2;
    size_t n;
    pipe_file(dir, "in-a.raw", in, sizeof in);
    pipe_file(dir, "in-b.raw", in, sizeof *in * 6);
    pipe_text(dir, "lose.lua", "function process(f, x, y)\n  if f.index == 1 then return 'drop' end\n  y:copy(x)\nend\n");
    char *yaml = format("%sbuffers: {x: {dtype: f32, shape: [2, 3]}, s: {state: true, dtype: f32, shape: [2, 3], on_hole: %s}, "
                        "o: {dtype: f32, shape: [2, 3]}}\nstages:\n  - {use: read, path: \"in-*.raw\", out: x}\n"
                        "%s  - use: kernel\n    name: sum\n    in: [k, s]\n    out: [s, o]\n    args: [k, s, o, {i32: k.size}]\n"
                        "    grid: 1\n    block: 6\n    code: |\n"
                        "      extern \"C\" __global__ void sum(const float *x, float *s, float *o, int n)\n      {\n"
                        "          int i = threadIdx.x;\n          s[i] += i < n ? x[i] : 100;\n"
                        "          if (i < n)\n              o[i] = s[i];\n      }\n"
                        "  - {use: write, in: o, path: out.raw, durable: none}\n",
                        cases_knobs[(_i / 4 + CASES_PERSISTENT + 1) % KNOBS], splices ? "splice" : "reset",
                        drops ? "  - {use: lua, script: lose.lua, in: x, out: k}\n" : "  - {use: scale, a: 1, b: 0, in: x, out: k}\n");
    pipe_result r = pipe_run(dir, yaml, on, NULL, (gp_run_options){ .poison = _i & 1 });
    pipe_no_errors(&r, yaml);
    OWNED float *out = (float *)pipe_read(dir, "out.raw", &n);
    float s[6] = { 0 };
    size_t at = 0;
    for (int f = 0; f < 3; f++) {
        const float *x = f == 1 ? in + 6 : in;
        int rows = f == 1 ? 3 : 6;
        if (f == 1 && drops) {
            for (int i = 0; i < 6 && !splices; i++)
                s[i] = 0;
            continue;
        }
        for (int i = 0; i < 6; i++)
            s[i] += i < rows ? x[i] : 100;
        for (int i = 0; i < rows; i++, at++)
            ck_assert_msg(at < n / sizeof *out && out[at] == s[i], "element %d of frame %d of\n%s", i, f, yaml);
    }
    ck_assert_uint_eq(n, at * sizeof *out);
}

/* ---- more stages that ask for a frame's number than its infos in 256 bytes ---- */

enum { ASKING = 20 };

/* `batched`: of one of them, what makes it take several frames at once. */
static char *asking(const char *batched)
{
    static char text[ASKING * 400 + 400];
    int n = sprintf(text, "buffers: {x: {dtype: f32, shape: [4]}}\nstages:\n  - {use: generate, frames: 30, out: x}\n");
    for (int i = 0; i < ASKING; i++) {
        bool is = i == ASKING / 2 && *batched;
        n += sprintf(text + n, "  - use: kernel\n    name: k%d\n    grid: 1\n    block: 4\n    args: [in, out, frame]\n%s    code: |\n"
                     "      extern \"C\" __global__ void k%d(const float *x, %sfloat *y%s, const gp_frame_info *f)\n"
                     "      { y[threadIdx.x] = x[threadIdx.x] + %d * (int)f->index; }\n", i, is ? batched : "", i,
                     is ? "size_t n, " : "", is ? ", size_t m" : "", i + 1);
    }
    sprintf(text + n, "  - {use: write, path: y.raw, durable: none}\n");
    return text;
}

TEST_THIN(many_ask_for_numbers, KNOBS, 1)
{
    const char *dir = pipe_dir(), *text = asking("");
    size_t n;
    pipe_result r = cases_run(dir, text, _i);
    pipe_no_errors(&r, text);
    OWNED float *y = (float *)pipe_read(dir, "y.raw", &n);
    ck_assert(n == sizeof(float) * 30 * 4);
    for (int i = 0; i < 30 * 4; i++)
        ck_assert_msg(y[i] == (float)(i + i / 4 * ASKING * (ASKING + 1) / 2), "element %d with %s: %f", i, cases_knobs[_i], (double)y[i]);
}

TEST(not_beside_batches)
{
    gp_errs errs = { .n = 0 };
    ck_assert(!pipe_compile(pipe_dir(), asking("    batched: true\n"), (gp_config){ .nset = 0 }, &errs));
    ck_assert_msg(strstr(pipe_said(&errs), "stage 'k10' takes several frames at once, and asks for"), "%s", pipe_said(&errs));
}

CASES_SUITE(state, NULL, NULL, 0, cases_every(5, 2, 2))
