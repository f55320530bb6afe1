/* signals_cases.c - stages that run on from frame to frame, in whole pipelines: however a recording is cut and under
 * whatever settings, they make what they make of it in one frame; a hole starts them anew, or is closed up. What they
 * compute, stages_cases.c compares with SciPy. */
#include "cases.h"

enum { SAMPLES = 1007, ALL = 1200, FRAME = 60, LOST = 5, SIZES = 4 };

static const int sizes[SIZES] = { ALL, 300, FRAME, 120 };        /* the first is a frame for all */

/* any_cut: the same bits however it is cut; keeps: something is carried. */
static const struct { const char *stage; bool any_cut, keeps; } stages[] = {
    { "slide, length: 50, hop: 20", true, true },
    { "slide, length: 200, hop: 6, taper: hann", true, true },
    { "slide, length: 7, hop: 12", true, false },
    { "iir, sos: [[0.02, 0.04, 0.02, 1, -1.56, 0.64], [1, -1, 0, 1, -0.95, 0]]", false, true },
    { "resample, up: 5, down: 6", true, true },
    { "fir, taps: [1, -0.5, 0.25]", true, true },
    { "channelize, channels: 20, taps: 4", false, true },
};
enum { STAGES = sizeof stages / sizeof *stages };

static float wave(int64_t i) { return (float)(i * 7919 % 1009) / 8; }
static float before(int64_t i) { return wave(i); }
static float after(int64_t i) { return wave(i + (LOST + 1) * FRAME); }
static float closed(int64_t i) { return i < LOST * FRAME ? wave(i) : wave(i + FRAME); }

static char *run(const char *dir, const char *settings, const char *in, int rows, const char *lose, int stage,
                 size_t *bytes)
{
    char *yaml = format("%sbuffers: {x: {dtype: f32, shape: [%d]}}\nstages:\n"
                        "  - {use: read, path: %s, out: x}\n%s  - {use: %s%s}\n"
                        "  - {use: write, path: out.raw, format: raw, durable: none}\n", settings, rows, in,
                        lose ? "  - {use: lua, script: lose.lua}\n" : "", stages[stage].stage, lose ? lose : "");
    pipe_done(dir, yaml, on, NULL, (gp_run_options){ .poison = true });
    char *out = pipe_read(dir, "out.raw", bytes);
    ck_assert_msg(out && *bytes, "%s", yaml);
    return out;
}

static void same(const char *a, size_t na, const char *b, size_t nb, int stage, int rows, const char *settings)
{
    ck_assert_msg(na == nb, "%s, frames of %d, %s: %zu bytes, not %zu", stages[stage].stage, rows, settings, na, nb);
    for (size_t i = 0; i < na; i++)
        ck_each(a[i] == b[i], "%s, frames of %d, %s: byte %zu of %zu", stages[stage].stage, rows, settings, i, na);
}

TEST_LOOP(test_cut, 0, STAGES)
{
    static const char *const knobs[] = { "", "depth: 1\n", "depth: 7\nstreams: 2\nbatch: 4\n", "launch: stream\n" };
    const char *dir = pipe_dir();
    pipe_npy(dir, "in.npy", SAMPLES, 0, wave);
    size_t n, m;
    char *whole = NULL;
    for (int s = 0; s < SIZES; s++) {
        for (int k = 0; k < 4; k++) {
            char *got = run(dir, knobs[k], "in.npy", sizes[s], NULL, _i, &m);
            if (whole && (k || stages[_i].any_cut))
                same(got, m, whole, n, _i, sizes[s], knobs[k]);
            if (whole)
                free(whole);
            whole = got, n = m;
        }
    }
    free(whole);
}

TEST_LOOP(test_hole, 0, STAGES)
{
    const char *dir = pipe_dir();
    size_t n, a, b;
    char *lose = format("function process(f, x, y) if f.index == %d then return 'drop' end y:copy(x) end\n", LOST);
    pipe_text(dir, "lose.lua", lose);
    pipe_npy(dir, "in.npy", SAMPLES, 0, wave);
    pipe_npy(dir, "before.npy", LOST * FRAME, 0, before);
    pipe_npy(dir, "after.npy", SAMPLES - (LOST + 1) * FRAME, 0, after);
    pipe_npy(dir, "closed.npy", SAMPLES - FRAME, 0, closed);

    char *got = run(dir, "", "in.npy", FRAME, stages[_i].keeps ? ", on_hole: reset" : "", _i, &n);
    char *head = run(dir, "", "before.npy", FRAME, NULL, _i, &a);
    char *tail = run(dir, "", "after.npy", FRAME, NULL, _i, &b);
    head = realloc(head, a + b);
    memcpy(head + a, tail, b);
    same(got, n, head, a + b, _i, FRAME, "reset");
    free(got), free(head), free(tail);

    got = run(dir, "", "in.npy", FRAME, stages[_i].keeps ? ", on_hole: splice" : "", _i, &n);
    head = run(dir, "", "closed.npy", FRAME, NULL, _i, &a);
    same(got, n, head, a, _i, FRAME, "splice");
    free(got), free(head);
}

CASES_SUITE(signals, NULL, NULL, 120, 1)
