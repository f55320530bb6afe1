/* test_lua.c - the Lua stage: what scripts can do, and what is said of those that
 * cannot go on. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "effort.h"
#include "luarig.h"
#include "pipe.h"

Suite *suite_lua(void);

/* ---- views and bulk operations, in Lua -------------------------------- */

START_TEST(elements)
{
    gp_dtype t = (gp_dtype)_i;
    char decl[80];
    snprintf(decl, sizeof decl, "{dtype: %s, shape: [4, 3]}", gp_dtype_name(t));
    rig *r = rig_opened(decl, "", "", "elements.lua");
    ck_assert_msg(rig_run_all(r, 0, 3) == GP_OK, "%s: %s", gp_dtype_name(t), rig_error(&r->errs));
    rig_free(r);
}
END_TEST

START_TEST(ops)
{
    gp_dtype t = (gp_dtype)_i;
    for (int to = GP_U8; to < GP_C64; to++) {
        char decl[80], more[80];
        bool sign = t != GP_U8 && t != GP_U16 && t != GP_U32 && t != GP_U64;
        snprintf(decl, sizeof decl, "{dtype: %s, shape: [143]}", gp_dtype_name(t));
        snprintf(more, sizeof more, "params: {to: %s}", gp_dtype_name((gp_dtype)to));
        rig *r = rig_opened(decl, NULL, more, "ops.lua");
        frame *f = rig_frame(r, 0, -1);
        if (t != GP_F16)
            rig_fill(&f->in[0], sign ? -20 : 0);
        gp_status s = rig_run(r, 0, f, &r->errs);
        ck_assert_msg(s == GP_OK, "%s to %s: %s", gp_dtype_name(t), gp_dtype_name((gp_dtype)to),
                      rig_error(&r->errs));
        rig_frame_free(f);
        rig_free(r);
    }
}
END_TEST

START_TEST(bytes)
{
    rig *r = rig_opened("{dtype: u8, shape: [8]}", "{dtype: u8, shape: [100]}", "", "bytes.lua");
    ck_assert_msg(rig_run_all(r, 0, 2) == GP_OK, "%s", rig_error(&r->errs));
    rig_free(r);
}
END_TEST

/* ---- what fails, and how --------------------------------------------- */

#define X16 "{dtype: u8, shape: [16]}"
#define HOT "{dtype: f32, shape: [1024]}"
#define P(body) "function process(f, x, y) " body " end"

static const struct bad {
    const char *in, *out, *more, *script;
    uint64_t first;
    int frames;                    /* 0: open() fails; -1: it does not compile */
    const char *error;             /* this is in the message ... */
    int line;                      /* ... at this line of the script, 0: none */
} bads[] = {
    { X16, "", "", "function process(f, x, y)\n  y[1] = x[17]\nend", 1000, 1,
      "stage 'it', frame 1000: index 17 is outside 1..16 of 'x'\n  it.lua:2: in function "
          "<it.lua:1>", 2 },
    { X16, "", "", "local function inner(y)\n  local q\n  return q.x\nend\n"
      "function outer(y) inner(y) return 1 end\nfunction process(f, x, y)\n  outer(y)\nend", 7, 1,
      "\n  it.lua:3: in function 'inner'\n  it.lua:5: in function 'outer'\n  it.lua:7: in "
          "function", 3 },
    { X16, "", "", "function process(f, x, y)\n\n  error('my own')\nend", 0, 1,
      "frame 0: my own\n", 3 },
    { X16, "", "", P("error({})"), 0, 1, "frame 0: a table was given to error(): give it text", 1 },
    { X16, "", "", "function process(f, x, y) error(setmetatable({}, {__tostring = function() "
      "return 'told' end})) end", 0, 1, "frame 0: told", 1 },
    { X16, "", "", P("error()"), 0, 1, "frame 0: nil", 1 },
    { X16, "", "", P("x[1] = 1"), 0, 1, "'x' is an input, inputs are read-only", 1 },
    { X16, "", "", P("y[1] = 256"), 0, 1, "256 does not fit 'y', which holds u8 (0..255)", 1 },
    { X16, "", "", P("y.valid = 17"), 0, 1, "rows 17 is outside 0..16", 1 },
    { X16, "", "", P("f.valid = -1"), 0, 1, "rows -1 is outside 0..16", 1 },
    { X16, "", "", P("f.time = 1"), 0, 1, "only a source tells the time", 1 },
    { X16, "", "", P("f.index = 1"), 0, 1, "'index' of this frame cannot be set", 1 },
    { X16, "", "", P("return f.idx"), 0, 1, "a frame has no 'idx': index, valid", 1 },
    { X16, "", "", P("return 'dorp'"), 0, 1, "process returned 'dorp': it returns nothing, or "
      "\"drop\"", 0 },
    { X16, "", "", P("return false"), 0, 1, "process returned a boolean", 0 },
    { X16, "", "", P("return y"), 0, 1, "process returned a userdata", 0 },
    { NULL, X16, "", "function produce(f, y) return 'more' end", 0, 1,
      "produce returned 'more': it returns nothing, \"drop\", or false to end", 0 },
    { X16, "", "", P("for i = 1, 17 do y[i] = 0 end"), 0, 1,
      "index 17 is outside 1..16 of 'y'", 1 },
    { X16, "", "", P("y:print('123456789012345') y:print('')"), 0, 1,
      "the text does not fit 'y', which has 16 bytes: give that buffer a larger shape", 1 },
    /* kept beyond the call */
    { X16, "", "", "function process(f, x, y)\n  old = old or x\n  y[1] = old[1] end", 0, 2,
      "frame 1: 'x' is used after its frame", 3 },
    { X16, "", "", "function process(f, x, y)\n  old = old or x:slice(2)\n  y[1] = old:sum() end",
      0, 40, "frame 1: 'x' is used after its frame", 3 },
    { X16, "", "", "function process(f, x, y)\n  if f.index == 0 then old = y end\n"
      "  if f.index == 30 then old[1] = 1 end end", 0, 40, "frame 30: 'y' is used after", 3 },
    { X16, "", "", P("if old then return #old end old = y"), 5, 2, "used after its frame", 1 },
    { X16, "", "", "function process(f, x, y)\n  y:copy(x)\n  if old then y[1] = old.index end old = f end", 0, 2,
      "frame 1: the frame is used after its call", 3 },
    { X16, "", "", "function process(f, x, y)\n  y:copy(x)\n  old = old or f old.valid = 1 end", 0, 2,
      "frame 1: the frame is used after its call", 3 },
    { X16, "", "", "function process(f, x, y)\n  y:copy(x)\n  if f.index == 0 then old = f end\n"
      "  if f.index == 30 then old.valid = 1 end end", 0, 40, "frame 30: the frame is used after", 4 },
    /* in loops that LuaJIT has compiled by then */
    { HOT, "", "", "function process(f, x, y)\n  for i = 1, #x + f.index do\n    y[i] = x[i]\n"
      "  end\nend", 0, 2, "frame 1: index 1025 is outside 1..1024 of 'x'\n  it.lua:3: in", 3 },
    { HOT, "", "", P("for i = #x, 1 - f.index, -1 do y[i] = x[i] end"), 0, 2,
      "frame 1: index 0 is outside 1..1024 of 'x'", 1 },
    { HOT, "", "", P("for i = 1, #x do y[i + f.index / 2] = x[i] end"), 0, 2,
      "frame 1: index 1.5 is outside 1..1024 of 'y'", 1 },
    { HOT, "", "", P("for i = 1, #x do (i < 1000 and y or x)[i] = 1 end"), 0, 1,
      "'x' is an input, inputs are read-only", 1 },
    { HOT, "", "", P("local v = old or x old = x for i = 1, #y do y[i] = v[i] end"), 0, 2,
      "frame 1: 'x' is used after its frame", 1 },
    { HOT, "", "", P("local v = old or y old = y:slice(1) for i = 2, #y do v[i] = x[i] end"), 0, 2,
      "frame 1: 'y' is used after its frame", 1 },
    { HOT, "", "", P("for i = 1, #x do y[i] = i < 999 and x[i] or {} end"), 0, 1,
      "'y' holds f32: it takes a number, not a table", 1 },
    { HOT, "{dtype: u8, shape: [1024]}", "", P("for i = 1, #x do y[i] = i - 744 * f.index end"), 1,
      1, "-743 does not fit 'y', which holds u8 (0..255)", 1 },
    { HOT, "{dtype: u8, shape: [1024]}", "", P("for i = 1, #x do y[i] = i / 4 end"), 0, 1,
      "0.25 is not a whole number that fits 'y', which holds u8", 1 },
    { HOT, "{dtype: u8, shape: [1024]}", "", P("for i = 1, #x do y[i] = i % 255 end "
      "for i = 1, #x do y[i] = i end"), 0, 1, "256 does not fit 'y', which holds u8", 1 },
    { HOT, "{dtype: i16, shape: [1024]}", "", P("for i = 1, #x do y[i] = -33 * i end"), 0, 1,
      "-32769 does not fit 'y', which holds i16", 1 },
    /* what newcomers write */
    { X16, HOT, "", P("y:fil(0)"), 0, 1, "a view has no field or method 'fil'; did you mean 'fill'?", 1 },
    { X16, "", "", P("return x.shap"), 0, 1, "no field or method 'shap'; did you mean 'shape'?", 1 },
    { X16, "", "", P("x:normalise()"), 0, 1, "a view has no field or method 'normalise'\n", 1 },
    { "{dtype: f32, shape: [4, 3]}", "", "", P("y[13] = 1"), 0, 1,
      "index 13 is outside 1..12 of 'y'; x:at(i, j) takes an index for each axis", 1 },
    { "{dtype: f32, shape: [4, 3, 2]}", "", "", P("y:fill(x[0])"), 0, 1,
      "index 0 is outside 1..24 of 'x'; x:at(i, j, k) takes an index for each axis", 1 },
    { "{dtype: f32, shape: [4, 3]}", "", "", P("y[1] = x[1][2]"), 0, 1,
      "x:at(i, j) takes an index for each axis", 1 },
    { X16, "", "", P("y[{}] = 1"), 0, 1, "index a table is outside 1..16 of 'y'", 1 },
    { X16, "", "", P("y[1] = x[print]"), 0, 1, "index a function is outside 1..16 of 'x'", 1 },
    { X16, "", "", P("y:set(y, 1)"), 0, 1, "index a userdata is outside 1..16 of axis 1 of 'y'", 1 },
    { X16, "", "", P("y:copy(x, {})"), 0, 1, "the first element must be a whole number, not a table", 1 },
    { X16, "", "", P("y:copy(x, 1.5)"), 0, 1, "the first element must be a whole number, not 1.5", 1 },
    { "{dtype: f32, shape: [4, 3]}", "", "", P("y:set(1, 1)"), 0, 1, "'y' has 2 axes, but 1 index is given", 1 },
    { "{dtype: f32, shape: [4, 3]}", "", "", P("y:fill(x:at())"), 0, 1, "'x' has 2 axes, but 0 indices are given", 1 },
    { X16, "", "", "local g = require 'gpipe'\n" P("g.array('float32', 4)"), 0, 1,
      "there is no dtype 'float32'; did you mean 'f32'?", 2 },
    { X16, "", "", "local g = require 'gpipe'\n" P("g.array('complex128', 4)"), 0, 1,
      "there is no dtype 'complex128': c64 holds two f32 (complex64)", 2 },
    /* outputs that are not written */
    { X16, "{dtype: u8, shape: [4, 2]}", "", "\nfunction process(f, x, y)\nend", 0, 1,
      "stage 'it', frame 0: process() did not write its output 'y': write it, return \"drop\", or "
      "say 'zero: true' at the stage", 2 },
    { X16, "{dtype: f32, shape: [4]}", "", P("if f.index < 3 then y:fill(1) end"), 0, 9,
      "frame 3: process() did not write its output 'y'", 1 },
    { X16, "{dtype: f32, shape: [4]}", "zero: false", P("y:slice(1)"), 0, 1,
      "frame 0: process() did not write its output 'y'", 1 },
    { X16, "", "", P("f.valid = 3"), 0, 1, "process() did not write its output 'y'", 1 },
    { X16, HOT "\n  y2: {dtype: f64, shape: [3]}", "", P("y.y[1] = 1"), 0, 1,
      "process() did not write its output 'y2'", 1 },
    { NULL, HOT, "", "local function f() end\nproduce = function(f, y)\n  return true\nend", 0, 1,
      "produce() did not write its output 'y': write it, return \"drop\", return false to end", 2 },
    { X16, HOT, "", "process = (loadstring or load)('')", 0, 1, "process() did not", 0 },
    /* open */
    { X16, "", "", "function prozess(f, x, y) end", 0, 0,
      "the script has no function 'process(frame, x, y)'", 0 },
    { X16, NULL, "", "function produce(f, y) end", 0, 0,
      "the script has no function 'process(frame, x)'", 0 },
    { NULL, X16, "", "function process(f, y) end", 0, 0,
      "the script has no function 'produce(frame, y)'", 0 },
    { X16, "", "", "process = 'go'\nlocal a", 0, 0, "'process' is a string: it must be a "
      "function", 0 },
    { X16, "", "", "local a = 1\nerror('at the top')\n", 0, 0,
      "stage 'it': at the top\n  it.lua:2: in the main chunk", 2 },
    { X16, "", "", "function init(stage)\n  return stage.params.a.b\nend\nfunction process() end",
      0, 0, "stage 'it': attempt to index", 2 },
    { X16, "", "", "require 'no.such'\nfunction process() end", 0, 0,
      "module 'no.such' not found; a module is a file beside the script", 1 },
    { X16, "", "workers: 2", "stateless = true\nstateless = nil\nfunction process(f, x, y) end", 0,
      0,
      "'stateless' is not true once the script has run", 0 },
    /* compile */
    { X16, "", "", "function process(f, x, y)\n  y[1] == x[1]\nend", 0, -1, ".lua:2: ", 0 },
    { X16, "", "", "function process(f, x, y)\n", 0, -1, ".lua:2: 'end' expected", 0 },
    { X16, "", "workers: 2", "function process(f, x, y) end", 0, -1, "say 'stateless = true' in",
      0 },
    { X16, "", "workers: 2", "-- stateless = true\nlocal stateless = true\nstateless = truely\n",
      0, -1, "say 'stateless = true' in", 0 },
    { X16, "", "params: [1]", "function process(f, x, y) end", 0, -1, "'params' must be a map, like {floor: 8}",
      0 },
    { X16, "", "params: {a: \"${no}\"}", "function process(f, x, y) end", 0, -1, "no", 0 },
    { NULL, "{dtype: u8}", "", "function produce(f, y) end", 0, -1,
      "declare its dtype and shape under 'buffers'", 0 },
    { X16, "", "", "gone.lua", 0, -1, "cannot read '", 0 },
    { X16, "", "", "\x1bLua is binary", 0, -1, "compiled Lua", 0 },
};

START_TEST(bad)
{
    const struct bad *b = &bads[_i];
    rig *r = rig_make(b->in, b->out, b->more, b->script);
    bool compiled = r->stage != NULL, opened = false;
    if (compiled && b->frames >= 0)
        opened = rig_open_state(r);
    gp_status s = opened ? rig_run_all(r, b->first, b->frames) : GP_OK;
    const char *got = rig_error(&r->errs);
    ck_assert_msg(strstr(got, b->error) != NULL, "'%s'\ngives '%s'\nnot   '%s'", b->script, got,
        b->error);
    ck_assert_msg(compiled == (b->frames >= 0) && opened == (b->frames > 0), "%s: %s", b->script,
        got);
    ck_assert_int_eq(s, b->frames > 0 ? GP_FAILED : GP_OK);
    const gp_loc *at = &r->errs.e[0].at;
    if (b->line || b->frames >= 0) {
        ck_assert_msg(at->line == b->line, "%s: at line %d, not %d", got, at->line, b->line);
        ck_assert_msg(at->file && strstr(at->file, "/it.lua"), "%s: in %s", got, at->file);
    }
    rig_free(r);
}
END_TEST

/* A frame that failed leaves the stage able to go on. */
START_TEST(after_failure)
{
    rig *r = rig_opened(X16, "", "", P("if f.index == 1 then y() end y:copy(x)"));
    for (uint64_t i = 0; i < 3; i++) {
        frame *f = rig_frame(r, i, -1);
        ck_assert_int_eq(rig_run(r, 0, f, &r->errs), i == 1 ? GP_FAILED : GP_OK);
        ck_assert_int_eq(((unsigned char *)f->out[0].data)[15], i == 1 ? 0xa5 : 16);
        rig_frame_free(f);
    }
    rig_free(r);
}
END_TEST

/* A run of frames ends before one that would keep others waiting, and after a failure. */
START_TEST(runs)
{
    static const struct { const char *in, *script; int done; gp_status last; } cases[] = {
        { X16, P("y:fill(f.index)"), 6, GP_OK },
        { X16, P("if f.index == 2 then error('no') end y:fill(f.index)"), 3, GP_FAILED },
        { X16, P("if f.index == 2 then return 'drop' end y:fill(f.index)"), 6, GP_OK },
        { X16, P("local t = os.clock() while f.index == 3 and os.clock() < t + 0.001 do end "
                 "y:fill(f.index)"), 4, GP_OK },
        { NULL, "function produce(f, y) y:fill(f.index) end", 1, GP_OK },
        { NULL, "function produce(f, y) return false end", 1, GP_END },
    };
    rig *r = rig_opened(cases[_i].in, cases[_i].in ? "" : X16, "", cases[_i].script);
    int done = 0;
    for (int attempt = 0; attempt < 100 && done != cases[_i].done; attempt++) {
        frame *f[6];                       /* a busy machine makes runs shorter */
        gp_frame run[6];
        for (int i = 0; i < 6; i++)
            f[i] = rig_frame(r, (uint64_t)i, -1), run[i] = f[i]->f;
        rig_run_frames(r, 0, run, 6, &r->errs);
        for (done = 0; done < 6 && run[done].status != GP_AGAIN; done++)
            if (run[done].status == GP_OK)
                ck_assert_int_eq(((unsigned char *)f[done]->out[0].data)[15], done);
        ck_assert_int_ge(done, 1);
        ck_assert_int_eq(run[done - 1].status, done == cases[_i].done ? cases[_i].last : GP_OK);
        for (int i = 0; i < 6; i++)
            rig_frame_free(f[i]);
    }
    ck_assert_msg(done == cases[_i].done, "'%s' does %d", cases[_i].script, done);
    rig_free(r);
}
END_TEST

/* ---- frames ---------------------------------------------------------- */

static const struct good {
    const char *in, *out, *more, *script;
    int64_t valid;                 /* rows of the input, -1: all */
    gp_status status;
    int64_t rows;                  /* of the output */
    const char *text;              /* what it begins with, or NULL */
} goods[] = {
    { X16, "", "", P("y:copy(x)"), -1, GP_OK, 16, "\1\2\3\4\5" },
    { X16, "", "", P("y:copy(x)"), 5, GP_OK, 5, "\1\2\3\4\5\xa5" },
    { X16, "{dtype: u8, shape: [4]}", "", P("assert(#x == 5) y:fill(#y)"), 5, GP_OK, 4,
      "\4\4\4\4" },
    { X16, "{dtype: u8, shape: [4]}", "", P(""), -1, GP_OK, 0, NULL },
    { X16, "{dtype: u8, shape: [4]}", "", P("f.valid = 3 assert(f.valid == 3 and #y == 3) y:fill(8)"),
      -1, GP_OK, 3, "\10\10\10\xa5" },
    { X16, "{dtype: u8, shape: [4]}", "", P("y.valid = 2 assert(f.valid == 16) y[1] = 7"), -1, GP_OK,
      2, "\7\xa5" },
    { X16, "{dtype: u8, shape: [4]}", "zero: true", P(""), -1, GP_OK, 0, NULL },
    /* written, in each way; nothing to write */
    { X16, HOT, "", P("y[1024] = 1"), -1, GP_OK, 1024, NULL },
    { X16, HOT, "", P("y:set(1, 1)"), -1, GP_OK, 1024, NULL },
    { X16, HOT, "", P("y:copy(x)"), -1, GP_OK, 1024, NULL },
    { X16, HOT, "", P("y:scale(y, 1, 2)"), -1, GP_OK, 1024, NULL },
    { X16, HOT, "", P("y:slice(3, 5):fill(0)"), -1, GP_OK, 1024, NULL },
    { X16, "{dtype: c64, shape: [4]}", "", P("y:parts()[1] = 1"), -1, GP_OK, 4, NULL },
    { X16, "{dtype: u8, shape: [4, 2]}", "", P("y:write('a', 1)"), -1, GP_OK, 4, "a\xa5" },
    { X16, "{dtype: u8, shape: [4, 2]}", "", P("y:pack('B', 2, 98)"), -1, GP_OK, 4, "\xa5" "b" },
    { X16, HOT, "", P("return 'drop'"), -1, GP_DROP, 1024, NULL },
    { X16, HOT, "", P("f.valid = 0"), -1, GP_OK, 0, NULL },
    { X16, HOT, "zero: true", P(""), -1, GP_OK, 1024, NULL },
    { X16, HOT, "zero: \"${env:LUA_ZERO:-true}\"", P("f.valid = 7"), -1, GP_OK, 7, NULL },
    { NULL, HOT, "", "function produce(f, y) return false end", -1, GP_END, 0, NULL },
    { NULL, HOT, "", "function produce(f, y) return 'drop' end", -1, GP_DROP, 0, NULL },
    { X16, "", "", P("return 'drop'"), -1, GP_DROP, 0, NULL },
    { X16, "{dtype: u8, shape: [99]}", "", P("y:print('a', 1, true) y:print() y:print(nil) "
      "assert(#y == 14)"), -1,
      GP_OK, 13 + 1, "a\t1\ttrue\n\nnil\n\xa5" },
    { X16, "{dtype: u8, shape: [99]}", "", "local gpipe = require 'gpipe' "
      P("y:print(gpipe.json{t = f.time, i = f.index, n = f.name})"), -1, GP_OK, 28,
          "{\"i\":0,\"n\":\"photo\",\"t\":1.5}\n" },
    { NULL, X16, "", "function produce(f, y) y:fill(7) return true end", -1, GP_OK, 16, "\7\7" },
    { NULL, X16, "", "function produce(f, y) y:fill(f.valid) f.valid = 3 end", -1, GP_OK, 3,
      "\x10\x10\x10\x10" },
    { NULL, X16, "", "function produce(f, y) return false end", -1, GP_END, 0, NULL },
    { NULL, X16, "", "function produce(f, y) f.time = 2.25 assert(f.time == 2.25) return 'drop' "
      "end", -1, GP_DROP, 0, NULL },
    { X16, NULL, "", P("assert(y == nil and x:sum() == 136)"), -1, GP_OK, 0, NULL },
    { X16 "\n  x2: {dtype: f32, shape: [2]}", X16 "\n  y2: {dtype: f64, shape: [3]}", "",
      P("y.y:copy(x.x) y.y2:fill(x.x2[2]) assert(y.y2[3] == 2) f.valid = 2 y.y.valid = 16"), -1,
          GP_OK, 16, "\1\2" },
    /* the table that init gets */
    { X16, "", "params: {i: 8, f: 1.5, e: 1e3, s: '8', b: true, w: off, neg: -3, list: [1, a], "
      "map: {k: v}, "
      "one: \"${env:LUA_TEST}\", num: \"${gain}\", sum: \"${gain}x\"}",
      "function init(stage) local p = stage.params "
      "assert(p.i == 8 and p.f == 1.5 and p.e == 1000 and p.s == '8' and p.b == true and p.w == "
          "'off') "
      "assert(p.neg == -3 and p.list[1] == 1 and p.list[2] == 'a' and p.map.k == 'v') "
      "assert(p.one == 'a word' and p.num == 2.5 and p.sum == '2.5x') "
      "assert(not math.type or math.type(p.i) == 'integer' and math.type(p.e) == 'float') "
      "assert(stage.name == 'it' and stage.worker == 1 and stage.workers == 1) "
      "assert(stage.inputs.x.dtype == 'u8' and stage.inputs.x.shape[1] == 16 and "
          "stage.outputs.y.dtype == 'u8') end "
      P("y:fill(9)"), -1, GP_OK, 16, "\t\t" },
    { X16, "", "", "function init(stage) assert(next(stage.params) == nil) end " P("y:fill(1)"),
      -1, GP_OK, 16, "\1" },
    /* libraries; undeclared globals may be an error */
    { X16, "", "", "#!/usr/bin/lua\nsetmetatable(_G, {__index = function(_, k) "
      "error('undeclared ' .. k, 2) end}) "
      P("io.write('') y:fill(3)"), -1, GP_OK, 16, "\3" },
};

START_TEST(good)
{
    const struct good *g = &goods[_i];
    rig *r = rig_opened(g->in, g->out, g->more, g->script);
    frame *f = rig_frame(r, 0, g->valid);
    gp_status s = rig_run(r, 0, f, &r->errs);
    ck_assert_msg(s == g->status, "'%s' gives status %d: %s", g->script, s, rig_error(&r->errs));
    if (s == GP_OK && g->out)
        ck_assert_msg(f->out[0].type.dim[0] == g->rows, "'%s' makes %lld rows", g->script,
                      (long long)f->out[0].type.dim[0]);
    if (g->text)
        ck_assert_msg(!memcmp(f->out[0].data, g->text, strlen(g->text)), "'%s' makes '%.20s'",
                      g->script, (const char *)f->out[0].data);
    rig_frame_free(f);
    rig_free(r);
}
END_TEST

/* ---- sources, finish, several workers --------------------------------- */

START_TEST(source_ends)
{
    rig *r = rig_opened(NULL, X16, "", "local n = 0\nfunction produce(f, y)\n  if n == 3 then "
        "return false end\n"
                        "  n = n + 1\n  f.time = 100 + n\n  y:fill(n)\nend");
    for (uint64_t i = 0; i < 4; i++) {
        frame *f = rig_frame(r, i, -1);
        ck_assert_int_eq(rig_run(r, 0, f, &r->errs), i == 3 ? GP_END : GP_OK);
        if (i < 3) {
            ck_assert_int_eq(f->f.time_ns, (101 + (int64_t)i) * 1000000000);
            ck_assert_int_eq(*(unsigned char *)f->out[0].data, (int)i + 1);
        }
        rig_frame_free(f);
    }
    rig_free(r);
}
END_TEST

static bool call_finish(rig *r)
{
    gp_call c = { .opts = r->stage->opts, .state = r->state, .name = r->stage->name,
                  .at = r->stage->at, .errs = &r->errs, .ctx = &r->thread };
    return r->stage->kind->finish(&c);
}

/* finish() is called in every worker's state, and may fail. */
START_TEST(finish)
{
    rig *r = rig_opened(X16, "", "workers: 3, params: {dir: '${env:LUA_TEST}'}",
                        "stateless = true\nlocal seen = 0\nfunction process(f, x, y) seen = "
                            "seen + 1 kept = x end\n"
                        "function finish(stage)\n  if stage.worker == 3 then "
                            "error(stage.params.dir .. seen) end\n"
                        "  assert(seen == stage.worker - 1 and not pcall(function() return "
                            "kept[1] end))\nend");
    for (int w = 0; w < 3; w++)
        for (int i = 0; i < w; i++) {
            frame *f = rig_frame(r, (uint64_t)i, -1);
            ck_assert_int_eq(rig_run(r, w, f, &r->errs), GP_OK);
            rig_frame_free(f);
        }
    ck_assert(!call_finish(r));
    ck_assert_msg(strstr(rig_error(&r->errs), "stage 'it', finish: a word2") != NULL, "%s",
                  rig_error(&r->errs));
    ck_assert_int_eq(r->errs.e[0].at.line, 5);
    rig_free(r);
    r = rig_opened(X16, "", "", "function process(f, x, y) end");
    ck_assert(call_finish(r));
    rig_free(r);
}
END_TEST

enum { FRAMES = 96 };
typedef struct crew { rig *r; int worker, workers; gp_errs errs; double *out; } crew;

static void *crew_work(void *arg)
{
    crew *c = arg;
    for (int i = c->worker; i < FRAMES; i += c->workers) {
        frame *f = rig_frame(c->r, (uint64_t)i, -1);
        if (rig_run(c->r, c->worker, f, &c->errs) == GP_OK)
            memcpy(c->out + 4 * i, f->out[0].data, 4 * sizeof(double));
        rig_frame_free(f);
    }
    return NULL;
}

/* Frames of a stage without state, among so many threads. */
static void crew_run(const char *script, int workers, double *out)
{
    char more[40];
    pthread_t id[CREW];
    crew c[CREW];
    snprintf(more, sizeof more, "workers: %d", workers);
    rig *r = rig_opened("{dtype: f64, shape: [4]}", "", more, script);
    for (int w = 0; w < workers; w++) {
        c[w] = (crew){ .r = r, .worker = w, .workers = workers, .out = out };
        pthread_create(&id[w], NULL, crew_work, &c[w]);
    }
    for (int w = 0; w < workers; w++) {
        pthread_join(id[w], NULL);
        ck_assert_msg(!c[w].errs.n, "%s", rig_error(&c[w].errs));
    }
    rig_free(r);
}

START_TEST(workers)
{
    static const char script[] = "stateless = true\nlocal gpipe = require 'gpipe'\n"
        "function process(f, x, y)\n  y[1] = math.random()\n  y[2] = math.random(1000)\n"
        "  y[3] = f.index + x:sum()\n  y[4] = math.random() * #gpipe.json { y[1] }\nend";
    static double one[4 * FRAMES], many[4 * FRAMES];
    crew_run(script, 1, one);
    for (int n = 2; n <= CREW; n++) {
        memset(many, 0, sizeof many);
        crew_run(script, n, many);
        ck_assert_msg(!memcmp(one, many, sizeof one), "%d workers make something else", n);
    }
    ck_assert(one[0] != one[4] && one[2] == 10 && one[6] == 11);
}
END_TEST

/* Random numbers are the same in each run, and differ between stages. */
START_TEST(seeds)
{
    double got[2] = { 0 };
    for (int i = 0; i < 2; i++) {
        rig *r = rig_opened("{dtype: f64, shape: [2]}", "", "",
            "local a = math.random()\nfunction process(f, x, y) y:fill(a) end");
        frame *f = rig_frame(r, 0, -1);
        ck_assert_int_eq(rig_run(r, 0, f, &r->errs), GP_OK);
        got[i] = *(double *)f->out[0].data;
        rig_frame_free(f);
        rig_free(r);
    }
    ck_assert(got[0] == got[1] && got[0] > 0 && got[0] < 1);
}
END_TEST

/* The same through the executor: text of a source, a filter and a writer. */
START_TEST(pipeline)
{
    static const char yaml[] =
        "buffers: {n: {dtype: f64, shape: [8]}, text: {dtype: u8, shape: [400]}}\n"
        "stages:\n"
        "  - {use: lua, script: source.lua, out: n}\n"
        "  - {name: it, use: lua, script: it.lua, out: text}\n"
        "  - {use: write, path: out.txt, format: raw}\n";
    char *first = NULL;
    for (int n = 1; n <= CREW; n++) {
        char set[60];
        size_t len;
        const char *dir = pipe_dir(), *sets[] = { set, NULL };
        snprintf(set, sizeof set, "stages.it.workers=%d", n);
        pipe_text(dir, "source.lua", "function produce(f, y)\n  if f.index == 50 then return "
            "false end\n"
                  "  if f.index % 7 == 3 then return 'drop' end\n  y:fill(f.index)\n"
                  "  if f.index % 7 == 4 then f.valid = 2 end\nend");
        pipe_text(dir, "it.lua", "stateless = true\nfunction process(f, x, y)\n"
                  "  if f.index % 5 > 0 then y:print(f.index, #x, x:sum(), math.random(1000)) "
                      "end\nend");
        pipe_result p = pipe_run(dir, yaml, "cpu", sets, (gp_run_options){ .poison = true });
        ck_assert_msg(p.outcome == GP_DONE, "%s", rig_error(&p.errs));
        ck_assert_uint_eq(p.account[0].in, 50);
        ck_assert_uint_eq(p.account[0].dropped, 7);
        char *text = pipe_read(dir, "out.txt", &len);
        ck_assert_ptr_nonnull(text);
        ck_assert(!strncmp(text, "1\t8\t8", 5) && strstr(text, "\n4\t2\t8"));
        ck_assert_msg(!first || !strcmp(first, text), "%d workers write something else", n);
        if (first)
            free(text);
        else
            first = text;
        pipe_dir_remove(dir);
    }
    free(first);
}
END_TEST

/* ---- a script that does not return ------------------------------------ */

static void *cancel_soon(void *arg)
{
    rig *r = arg;
    nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
    atomic_store(&r->run.level, 2);
    return NULL;
}

START_TEST(cancelled)
{
    static const char *const loops[] = {
        P("while true do y[1] = x[1] end"),
        P("while true do x:sum() end"),
        P("while x.valid do end"),
        P("while true do for i = 1, #x do y[i] = x[i] end end"),
        P("local s = 0 while true do for i = 1, 16 do s = s + x[i] end end"),
        P("while #y do end"),
    };
    pthread_t id;
    rig *r = rig_opened(X16, "", "", loops[_i]);
    frame *f = rig_frame(r, 3, -1);
    pthread_create(&id, NULL, cancel_soon, r);
    ck_assert_int_eq(rig_run(r, 0, f, &r->errs), GP_STOPPED);
    pthread_join(id, NULL);
    ck_assert_int_eq(r->errs.n, 0);
    rig_frame_free(f);
    rig_free(r);
}
END_TEST

/* ---- modules, and where text goes -------------------------------------- */

START_TEST(modules)
{
    rig *r = rig_make(X16, "", "", "local side = require 'side'\nfunction process(f, x, y) "
        "y:fill(side.value) end");
    ck_assert_msg(r->stage != NULL, "%s", rig_error(&r->errs));
    pipe_text(r->dir, "side.lua", "return { value = 42 }");
    ck_assert_msg(rig_open_state(r), "%s", rig_error(&r->errs));
    frame *f = rig_frame(r, 0, -1);
    ck_assert_int_eq(rig_run(r, 0, f, &r->errs), GP_OK);
    ck_assert_int_eq(((unsigned char *)f->out[0].data)[15], 42);
    rig_frame_free(f);
    rig_free(r);
}
END_TEST

/* print and io.write never reach stdout, where data goes. */
START_TEST(printing)
{
    char path[400], text[200] = "";
    rig *r = rig_make(X16, "", "", P("print('a', 1, nil) io.write('b')"));
    ck_assert_msg(rig_open_state(r), "%s", rig_error(&r->errs));
    fflush(stdout);
    fflush(stderr);
    int out = dup(1), err = dup(2);
    snprintf(path, sizeof path, "%s/out", r->dir);
    FILE *o = fopen(path, "w+");
    snprintf(path, sizeof path, "%s/err", r->dir);
    FILE *e = fopen(path, "w+");
    dup2(fileno(o), 1);
    dup2(fileno(e), 2);
    gp_status s = rig_run_all(r, 0, 1);
    fflush(stdout);
    fflush(stderr);
    dup2(out, 1);
    dup2(err, 2);
    close(out);
    close(err);
    struct stat st;
    ck_assert_int_eq(s, GP_OK);
    ck_assert(!fstat(fileno(o), &st) && st.st_size == 0);
    rewind(e);
    ck_assert_uint_eq(fread(text, 1, sizeof text - 1, e), 9);
    ck_assert_str_eq(text, "a\t1\tnil\nb");
    fclose(o);
    fclose(e);
    rig_free(r);
}
END_TEST

/* ---- speed ------------------------------------------------------------- */

/* A bulk copy runs at the speed of memcpy; arithmetic not far behind. CPU times are compared,
 * the best of a few, and of many where others keep caches and memory busy. */
START_TEST(speed)
{
    static const struct { const char *op; double least; } bulk[] = {
        { "y:copy(x)", 0.3 }, { "y:fill(1)", 0.3 }, { "y:add(x, x)", 0.1 }, { "y:scale(x, 2, 1)",
          0.1 },
        { "x:sum()", 0.1 }, { "x:max()", 0.1 }, { "x:find('>', 1e30)", 0.1 },
    };
    char script[200];
    size_t size = 4 << 22;
    snprintf(script, sizeof script, P("%s"), bulk[_i].op);
    rig *r = rig_opened("{dtype: f32, shape: [4194304]}", "", "zero: true", script);
    frame *f = rig_frame(r, 0, -1);
    double best = 1e9, plain = 1e9;
    for (int i = 0; i < 7 || (i < 200 && plain / best <= bulk[_i].least); i++) {
        double t0 = cpu_seconds();
        memcpy(f->out[0].data, f->in[0].data, size);
        double t1 = cpu_seconds();
        ck_assert_int_eq(rig_run(r, 0, f, &r->errs), GP_OK);
        double t2 = cpu_seconds();
        plain = t1 - t0 < plain ? t1 - t0 : plain;
        best = t2 - t1 < best ? t2 - t1 : best;
    }
    if (getenv("GPIPE_BENCH"))
        printf("%-20s %.1f GB/s, memcpy %.1f\n", bulk[_i].op, (double)size / best / 1e9,
               (double)size / plain / 1e9);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__OPTIMIZE__)
    ck_assert_msg(plain / best > bulk[_i].least, "%s: %.2f of memcpy", bulk[_i].op, plain / best);
#endif
    rig_frame_free(f);
    rig_free(r);
}
END_TEST

/* Whoever says so, Lua or its library. */
START_TEST(no_memory_has_a_code_of_its_own)
{
    static const struct { const char *script; gp_code code; } cases[] = {
        { P("error('not enough memory')"), GP_E_RESOURCE },
        { P("error('not enough memory', 0)"), GP_E_RESOURCE },
        { P("error('not enough memory for it')"), GP_E_RUN },
        { P("pcall(error, 'not enough memory') error('other')"), GP_E_RUN },
    };
    rig *r = rig_opened(X16, "", "", cases[_i].script);
    frame *f = rig_frame(r, 0, -1);
    ck_assert_int_eq(rig_run(r, 0, f, &r->errs), GP_FAILED);
    ck_assert_int_eq(r->errs.e[0].code, cases[_i].code);
    rig_frame_free(f);
    rig_free(r);
}
END_TEST

Suite *suite_lua(void)
{
    Suite *s = suite_create("lua");
    TCase *tc = tcase_create("lua");
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, elements, GP_U8, GP_NDTYPES);
    tcase_add_loop_test(tc, ops, GP_U8, GP_C64);
    tcase_add_test(tc, bytes);
    tcase_add_loop_test(tc, no_memory_has_a_code_of_its_own, 0, 4);
    tcase_add_loop_test(tc, bad, 0, (int)(sizeof bads / sizeof *bads));
    tcase_add_loop_test(tc, good, 0, (int)(sizeof goods / sizeof *goods));
    tcase_add_test(tc, after_failure);
    tcase_add_loop_test(tc, runs, 0, 6);
    tcase_add_test(tc, source_ends);
    tcase_add_test(tc, finish);
    tcase_add_test(tc, workers);
    tcase_add_test(tc, seeds);
    tcase_add_test(tc, pipeline);
    tcase_add_loop_test(tc, cancelled, 0, 6);
    tcase_add_test(tc, modules);
    tcase_add_test(tc, printing);
    tcase_add_loop_test(tc, speed, 0, 7);
    suite_add_tcase(s, tc);
    return s;
}
