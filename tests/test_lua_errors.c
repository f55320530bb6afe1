/* test_lua_errors.c - what is said of scripts that cannot go on, and where. */
#include <pthread.h>
#include <time.h>
#include <lua.h>
#include "luarig.h"

static const struct bad {
    const char *in, *out, *more, *script;
    uint64_t first;
    int frames;                    /* 0: open() fails; -1: it does not compile */
    const char *error;             /* this is in the message ... */
    int line;                      /* ... at this line of the script, 0: none */
} bads[] = {
    { X16, "", "", "function process(f, x, y)\n  y[1] = x[17]\nend", 1000, 1,
      "stage 'it', frame 1000: index 17 is outside 1..16 of 'x'\n  it.lua:2: in function <it.lua:1>", 2 },
    { X16, "", "", "local function inner(y)\n  local q\n  return q.x\nend\n"
      "function outer(y) inner(y) return 1 end\nfunction process(f, x, y)\n  outer(y)\nend", 7, 1,
      "\n  it.lua:3: in function 'inner'\n  it.lua:5: in function 'outer'\n  it.lua:7: in function", 3 },
    { X16, "", "", "function process(f, x, y)\n\n  error('my own')\nend", 0, 1, "frame 0: my own\n", 3 },
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
    { X16, "", "", P("return 'dorp'"), 0, 1, "process returned 'dorp': it returns nothing, or \"drop\"", 0 },
    { X16, "", "", P("return false"), 0, 1, "process returned a boolean", 0 },
    { X16, "", "", P("return y"), 0, 1, "process returned a userdata", 0 },
    { NULL, X16, "", "function produce(f, y) return 'more' end", 0, 1,
      "produce returned 'more': it returns nothing, \"drop\", or false to end", 0 },
    { X16, "", "", P("for i = 1, 17 do y[i] = 0 end"), 0, 1, "index 17 is outside 1..16 of 'y'", 1 },
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
    /* at any call after */
#define LATER(what, k, use) "function process(f, x, y)\n  if f.index == 0 then old = " what \
    " end\n  if f.index == " k " then " use " end end"
    { X16, "", "", LATER("y", "31", "old[1] = 1"), 0, 70, "frame 31: 'y' is used after its frame", 3 },
    { X16, "", "", LATER("x", "31", "y[1] = old[1]"), 0, 70, "frame 31: 'x' is used after its frame", 3 },
    { X16, "", "", LATER("x", "62", "y[1] = #old"), 0, 70, "frame 62: 'x' is used after its frame", 3 },
    { X16, "", "", LATER("x", "31", "y[1] = old.valid"), 0, 70, "frame 31: 'x' is used after", 3 },
    { X16, "", "", LATER("x", "31", "y:copy(old)"), 0, 70, "frame 31: 'x' is used after its frame", 3 },
    { X16, "", "", LATER("f", "31", "y[1] = old.index"), 0, 70, "frame 31: the frame is used after its call", 3 },
    { X16, "", "", LATER("f", "62", "old.valid = 1"), 0, 70, "frame 62: the frame is used after its call", 3 },
    { X16 TWO, X16 TWO_OUT, "", LATER("x", "1", "y.y[1] = old.x[1]"), 0, 70,
      "frame 1: the inputs are used after their frame", 3 },
    { X16 TWO, X16 TWO_OUT, "", LATER("x", "31", "y.y[1] = old.x2[1]"), 0, 70,
      "frame 31: the inputs are used after their frame", 3 },
    { X16 TWO, X16 TWO_OUT, "", LATER("y", "31", "old.y2[1] = 1"), 0, 70,
      "frame 31: the outputs are used after their frame", 3 },
    { X16 TWO, X16 TWO_OUT, "", LATER("y.y2", "31", "old[1] = 1"), 0, 70, "frame 31: 'y2' is used after its frame", 3 },
    { X16 TWO, X16 TWO_OUT, "", LATER("x", "31", "for k in pairs(old) do end"), 0, 70,
      "frame 31: the inputs are used after their frame", 3 },
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
    { "{dtype: f32, shape: [4, 3]}", "", "", P("y[1] = x[1][2]"), 0, 1, "x:at(i, j) takes an index for each axis", 1 },
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
    { X16, "", "", "function prozess(f, x, y) end", 0, 0, "the script has no function 'process(frame, x, y)'", 0 },
    { X16, NULL, "", "function produce(f, y) end", 0, 0, "the script has no function 'process(frame, x)'", 0 },
    { NULL, X16, "", "function process(f, y) end", 0, 0, "the script has no function 'produce(frame, y)'", 0 },
    { X16, "", "", "process = 'go'\nlocal a", 0, 0, "'process' is a string: it must be a function", 0 },
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
    { X16, "", "workers: 2", "function process(f, x, y) end", 0, -1, "say 'stateless = true' in", 0 },
    { X16, "", "workers: 2", "-- stateless = true\nlocal stateless = true\nstateless = truely\n",
      0, -1, "say 'stateless = true' in", 0 },
    { X16, "", "params: {id: 18446744073709551615}", "function process(f, x, y) end", 0, -1,
      "'id' is 18446744073709551615, which is neither an integer of Lua nor exact as a float: in quotes it is a text",
      0 },
    { X16, "", "params: {a: {id: [1, -9223372036854775809]}}", "function process(f, x, y) end", 0, -1,
      "'id' is -9223372036854775809, which is neither", 0 },
    { X16, "", "params: {id: '${env:NO_SUCH:-18446744073709551615}'}", "function process(f, x, y) end", 0, -1,
      "'id' is 18446744073709551615, which is neither an integer of Lua nor exact as a float: with more in the quotes", 0 },
#if LUA_VERSION_NUM >= 503                 /* LuaJIT has no integers of 64 bits, and refuses this one */
    { X16, "", "params: {id: '${env:NO_SUCH:-9007199254740993}'}", "local id\nfunction init(s) id = s.params.id end\n"
      "function process(f, x, y) error('id ' .. id - 9007199254740992) end", 0, 1, "id 1", 3 },
#endif
    { X16, "", "params: {id: 99999999999999999999}", "function process(f, x, y) end", 0, -1, "'id' is 999", 0 },
    { X16, "{dtype: u64, shape: [16]}", "", P("y[1] = 18446744073709551615"), 0, 1,
      "1.844674407371e+19 does not fit 'y', which holds u64: from 2^63 on numbers of Lua are floats, of which 2.0^64 - "
      "2048 is the largest that fits", 1 },
    { X16, "", "params: [1]", "function process(f, x, y) end", 0, -1, "'params' must be a map, like {floor: 8}", 0 },
    { X16, "", "params: {a: \"${no}\"}", "function process(f, x, y) end", 0, -1, "no", 0 },
    { NULL, "{dtype: u8}", "", "function produce(f, y) end", 0, -1, "declare its dtype and shape under 'buffers'", 0 },
    { X16, "", "", "gone.lua", 0, -1, "cannot read '", 0 },
    { X16, "", "", "\x1bLua is binary", 0, -1, "compiled Lua", 0 },
};

TEST_EACH(bad, bads)
{
    const struct bad *b = &bads[_i];
    rig *r = rig_make(b->in, b->out, b->more, b->script);
    bool compiled = r->stage != NULL, opened = false;
    if (compiled && b->frames >= 0)
        opened = rig_open_state(r);
    gp_status s = opened ? rig_run_all(r, b->first, b->frames) : GP_OK;
    const char *got = rig_error(&r->errs);
    ck_assert_msg(strstr(got, b->error) != NULL, "'%s'\ngives '%s'\nnot   '%s'", b->script, got, b->error);
    ck_assert_msg(compiled == (b->frames >= 0) && opened == (b->frames > 0), "%s: %s", b->script, got);
    ck_assert_int_eq(s, b->frames > 0 ? GP_FAILED : GP_OK);
    const gp_loc *at = &r->errs.e[0].at;
    if (b->line || b->frames >= 0) {
        ck_assert_msg(at->line == b->line, "%s: at line %d, not %d", got, at->line, b->line);
        ck_assert_msg(at->file && strstr(at->file, "/it.lua"), "%s: in %s", got, at->file);
    }
    rig_free(r);
}

/* Whoever says so, Lua or its library. */
TEST_LOOP(no_memory_has_a_code_of_its_own, 0, 4)
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

/* ---- a script that does not return ------------------------------------ */

static void *cancel_soon(void *arg)
{
    rig *r = arg;
    nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
    atomic_store(&r->run.level, 2);
    return NULL;
}

TEST_LOOP(cancelled, 0, 6)
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

TEST_SUITE(lua_errors, NULL, NULL, 0)
