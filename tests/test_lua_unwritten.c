/* test_lua_unwritten.c - what a script leaves unwritten is told of the first frame, before anybody reads it. */
#include "pipe.h"

#define P(body) "stateless = true\nfunction process(f, x, y) " body " end"
#define F32 "{dtype: f32, shape: [4, 16]}"
#define BYTES "{dtype: u8, shape: [1024, 1024]}"
#define SMALL "{dtype: u8, shape: [4, 256]}"
#define NOISE "math.floor((i * 2654435761 + f.index * 40503) / 65536) % 256"
#define THEN "they would be what an earlier frame left there. Write them all, make fewer rows, or set 'zero: true', so that they are 0"

/* x, y: the buffers; before: a stage that makes x of `made`, more: of the script's stage. kept: bytes in the file,
 * of the frames before, where it failed, else of all; -1: no file. */
static const struct { const char *x, *y, *before, *more, *script, *msg; long kept; } cases[] = {
    { F32, F32, "", "", P("for i = 1, #x - 2 do y[i] = x[i] end"), "stage 'it' leaves 2 of the 64 elements of 'y' unwritten "
      "in frame 0, such as [3, 14] (counted from 0): " THEN, -1 },
    { F32, F32, "", "", P("for i = 2, #x do y[i] = x[i] end"), "leaves 1 of the 64 elements of 'y' unwritten in frame 0, "
      "such as [0, 0] (c", -1 },
    { F32, F32, "", ", workers: 4", P("for i = 1, #x - 2 do y[i] = x[i] end"), "leaves 2 of the 64 elements of 'y' "
      "unwritten in frame 0, such as [3, 14]", -1 },
    { F32, F32, "", "", P("for i = 1, 3 do y:set(i, 1, 7) end"), "leaves 61 of the 64 elements of 'y' unwritten "
      "in frame 0, such as [0, 1]", -1 },
    { F32, F32, "", "", P("for i = 1, 4 do y:slice(i, i):copy(x:slice(i, i)) end"), NULL, 12 * 256 },
    { F32, "{dtype: f64, shape: [2, 8]}", "", "", P("for i = 1, #y do if i ~= 14 then y[i] = 0 end end"),
      "leaves 1 of the 16 elements of 'y' unwritten in frame 0, such as [1, 5]", -1 },
    { F32, "{dtype: c64, shape: [16]}", "", "", P("for i = 1, 16 do y:parts()[2 * i] = 1 end"),
      "leaves 8 of the 16 elements of 'y' unwritten in frame 0, such as [0]", -1 },
    { F32, "{dtype: i16, shape: [100, 10]}", "", "", P("y:slice(1, 99):fill(-1)"), "leaves 10 of the 1000 elements of 'y' "
      "unwritten in frame 0, such as [99, 0]", -1 },
    { F32, "{dtype: f16, shape: [100]}", "", "", P("y:slice(1, 50):fill(-1)"), "leaves 50 of the 100 elements of 'y' "
      "unwritten in frame 0, such as [50]", -1 },
    { F32, "{dtype: u8, shape: [16]}", "", "", P("y:slice(1, 13):fill(1)"), "leaves about 3 of the 16 elements of 'y' "
      "unwritten in frame 0, such as [13]", -1 },
    /* of many bytes some are the pattern's by chance: what stands side by side is not */
    { F32, "{dtype: i8, shape: [100, 100]}", "", "", P("y:slice(1, 99):fill(1)"), "of the 10000 elements of 'y' "
      "unwritten in frame 0, such as [99, 0]", -1 },
    { F32, BYTES, "", "", P("y:slice(1, 1023):fill(1) for i = 1, 1016 do y:set(1024, i, 2) end"), "of the 1048576 elements of 'y' "
      "unwritten in frame 0, such as [1023, 1016]", -1 },
    { F32, BYTES, "", "", P("for i = 1, #y do if i % 1024 ~= 5 then y[i] = 3 end end"),
      "of the 1048576 elements of 'y' unwritten in frame 0: they would", -1 },
    /* at an edge, or by the frames behind the first */
    { F32, SMALL, "", "", P("for i = 1, #y do if i % 256 ~= 1 then y[i] = " NOISE " end end"),
      "leaves about 4 of the 1024 elements of 'y' unwritten in frame 0, such as [0, 0] (counted from 0): " THEN, -1 },
    { F32, SMALL, "", "", P("for i = 1, #y do if i % 256 ~= 0 then y[i] = i % 2 end end"),
      "of the 1024 elements of 'y' unwritten in frame 0, such as [0, 255]", -1 },
    { F32, SMALL, "", "", P("for i = 2, #y do y[i] = " NOISE " end"),
      "leaves 1 of the 1024 elements of 'y' unwritten in frame 2 and 2 before it, such as [0, 0]", 2 * 1024 },
    { F32, SMALL, "", "", P("for i = 1, #y do if i ~= 300 then y[i] = " NOISE " end end"),
      "leaves 1 of the 1024 elements of 'y' unwritten in frame 3 and 3 before it, such as [1, 43]", 3 * 1024 },
    { F32, SMALL, "", "", P("if f.index < 5 then y[1] = 1 return 'drop' end for i = 2, #y do y[i] = " NOISE " end"),
      "leaves 1 of the 1024 elements of 'y' unwritten in frame 7 and 2 before it, such as [0, 0]", 2 * 1024 },
    { F32, SMALL, "", "", P("for i = 1, #y do y[i] = " NOISE " end"), NULL, 12 * 1024 },
    { F32, SMALL, "", ", workers: 3", P("for i = 1, #y do y[i] = " NOISE " end"), NULL, 12 * 1024 },
    { F32, "{dtype: f32, shape: [2200, 2000]}", "", "", P("y:slice(1, 2199):fill(1)"), "leaves 2000 of the 4194304 sampled "
      "elements of 'y' unwritten in frame 0, such as [2199, 0]", -1 },
    { F32, F32 "\n  y2: {dtype: f64, shape: [3]}", "", "", P("y.y:copy(x) y.y2[1] = 1 y.y2[3] = 1"),
      "leaves 1 of the 3 elements of 'y2' unwritten in frame 0, such as [1]", -1 },
    /* none at all, or bytes without an end: what the script's own stage says */
    { F32, F32, "", "", P("if f.index > 3 then y:copy(x) end"), "stage 'it', frame 0: process() did not write its output 'y'", -1 },
    { F32, F32, "", "", P("if f.index < 3 then y:copy(x) end"), "stage 'it', frame 3: process() did not write its output 'y'", 768 },
    { F32, "{dtype: u8, shape: [64]}", "", "", P("y:write('abc', 1)"), "leaves about 61 of the 64 elements of 'y' unwritten in frame 0, such as [3]", -1 },
    { F32, "{dtype: u8, shape: [64]}", "", "", P("y:write('abc', 1) f.valid = 7"), "leaves 4 of the 7 elements of 'y' unwritten in frame 0, such as [3]", -1 },
    { F32, "{dtype: u8, shape: [64]}", "", "", P("if f.index % 2 == 1 then y:print('abc') end"), NULL, 24 },
    /* the first frame that counts comes late */
    { F32, F32, "", "", P("if f.index < 6 then y:copy(x) return 'drop' end y[1] = 1"), "leaves 63 of the 64 elements of 'y' "
      "unwritten in frame 6, such as [0, 1]", -1 },
    { F32, F32, "", "", P("if f.index < 6 then y:copy(x) f.valid = 0 else y[1] = 1 end"), "leaves 63 of the 64 elements of 'y' "
      "unwritten in frame 6, such as [0, 1]", -1 },
    { F32, F32, "if f.index < 6 then return 'drop' end y:copy(x)", "", P("y:slice(2):copy(x:slice(2))"), "leaves 16 of the 64 elements "
      "of 'y' unwritten in frame 6, such as [0, 0]", -1 },
    { F32, F32, "y:copy(x) if f.index < 6 then f.valid = math.floor(f.index / 2) end", "", P("local n = math.min(x.valid, 2) if n > 0 then y:slice(1, n):copy(x:slice(1, n)) end"),
      "leaves 32 of the 64 elements of 'y' unwritten in frame 6, such as [2, 0]", 2 * 64 + 2 * 128 },
    { F32, F32, "y:copy(x) f.valid = f.index < 6 and 1 or 2", "", P("y:slice(1, 1):copy(x:slice(1, 1))"),
      "leaves 16 of the 32 elements of 'y' unwritten in frame 6, such as [1, 0]", 6 * 64 },
    { F32, F32, "y:copy(x) if f.index < 6 then f.valid = 0 end", "", P("y:copy(x)"), NULL, 6 * 256 },
    /* fewer rows: those that it made count */
    { F32, F32, "", "", P("y:slice(1, 2):copy(x:slice(1, 2)) f.valid = 3"), "leaves 16 of the 48 elements of 'y' unwritten in frame 0, such as [2, 0]", -1 },
    { F32, F32, "", "", P("y:slice(1, 2):copy(x:slice(1, 2)) f.valid = 2"), NULL, 12 * 128 },
    /* all is well */
    { F32, F32, "", "", P("y:copy(x)"), NULL, 12 * 256 },
    { F32, F32, "", ", workers: 3", P("y:copy(x)"), NULL, 12 * 256 },
    { F32, F32, "", ", zero: true", P("y[1] = 1"), NULL, 12 * 256 },
    { F32, F32, "", "", P("y:fill(0/0)"), NULL, 12 * 256 },
    { F32, BYTES, "", "", P("for i = 1, #y do y[i] = i % 251 end"), NULL, 12 << 20 },
    { F32, BYTES, "", "", P("y:fill(0xa5)"), NULL, 12 << 20 },
    { F32, "{dtype: u16, shape: [1234, 101]}", "", "", P("for i = 1, #y do y[i] = i * 7 % 65536 end"), NULL, 12 * 1234 * 101 * 2 },
};

static pipe_result run_script(const char *dir, int i, int depth, const char *top)
{
    bool before = *cases[i].before;
    pipe_text(dir, "it.lua", cases[i].script);
    pipe_text(dir, "before.lua", format(P("%s"), cases[i].before));
    bool two = strstr(cases[i].y, "y2:");
    char *yaml = format("%sdepth: %d\nbuffers:\n  x: %s\n  y: %s\nstages:\n  - {use: generate, frames: 12, out: x}\n"
        "%s  - {name: it, use: lua, script: it.lua, in: %s, out: %s%s}\n  - {use: write, in: y, path: out.raw}\n%s",
        top, depth, cases[i].x, cases[i].y, before ? "  - {use: lua, script: before.lua, in: x, out: b}\n" : "",
        before ? "b" : "x", two ? "{y: y, y2: y2}" : "{y: y}", cases[i].more, two ? "  - {use: discard, in: y2}\n" : "");
    return pipe_run(dir, yaml, "cpu", NULL, (gp_run_options){ .poison = depth == 2 });
}

TEST_SOME(unwritten, sizeof cases / sizeof *cases, 3, 1)
{
    static const struct { int depth; const char *top; } as[] = { { 1, "" }, { 2, "" }, { 7, "on_error: drop\n" } };
    for (int k = 0; k < 3; k++) {
        const char *msg = cases[_i].msg;
        size_t n = 0, none;
        if (*as[k].top && msg && strstr(msg, "did not write"))
            continue;                  /* that is of one frame */
        const char *dir = pipe_dir();
        pipe_result r = run_script(dir, _i, as[k].depth, as[k].top);
        OWNED char *made = pipe_read(dir, msg ? "out.raw.partial" : "out.raw", &n);
        OWNED char *whole = msg ? pipe_read(dir, "out.raw", &none) : NULL;
        ck_assert_msg(r.compiled, "%s: %s", cases[_i].script, r.errs.e[0].msg);
        if (msg) {
            ck_assert_msg(r.outcome == GP_ERROR, "%s is done, %zu bytes", cases[_i].script, n);
            ck_assert_msg(strstr(r.errs.e[0].msg, msg) != NULL, "%s: %s", cases[_i].script, r.errs.e[0].msg);
            ck_assert_msg(!whole, "%s: out.raw is there", cases[_i].script);
        } else {
            pipe_no_errors(&r, cases[_i].script);
            ck_assert_int_eq(r.outcome, GP_DONE);
        }
        ck_assert_msg(made ? (long)n == cases[_i].kept : cases[_i].kept == -1, "%s: %ld bytes, not %ld", cases[_i].script,
                      made ? (long)n : -1, cases[_i].kept);
    }
}

/* A script with state sees each frame once, and in order, also where the first ones are looked at. */
TEST(runs_once)
{
    const char *dir = pipe_dir();
    size_t n = 0;
    pipe_text(dir, "it.lua", "local n = 0\nfunction process(f, x, y)\n  n = n + 1\n  if n < 4 then return 'drop' end\n"
              "  y:fill(n)\n  if n < 7 then f.valid = 1 end\nend\n");
    pipe_result r = pipe_run(dir, "depth: 5\nbuffers: {x: {dtype: i32, shape: [2]}}\nstages:\n  - {use: generate, frames: 12, out: x}\n"
                             "  - {use: lua, script: it.lua}\n  - {use: write, path: out.raw}\n", "cpu", NULL,
                             (gp_run_options){ .poison = false });
    OWNED int32_t *out = (int32_t *)pipe_read(dir, "out.raw", &n);
    pipe_no_errors(&r, "it.lua");
    ck_assert_uint_eq(n, (3 * 1 + 6 * 2) * sizeof *out);
    for (int i = 3, at = 0; i < 12; i++)
        for (int k = 0; k < (i < 6 ? 1 : 2); k++)
            ck_assert_int_eq(out[at++], i + 1);
}

TEST_SUITE(lua_unwritten, NULL, NULL, 0)
