/* test_lua.c - the Lua stage: what scripts can do with frames, and how fast. */
#include <sys/stat.h>
#include "effort.h"
#include "luarig.h"
#include "pipe.h"

/* ---- views and bulk operations, in Lua -------------------------------- */

TEST_LOOP(elements, GP_U8, GP_NDTYPES)
{
    gp_dtype t = (gp_dtype)_i;
    rig *r = rig_opened(format("{dtype: %s, shape: [4, 3]}", gp_dtype_name(t)), "", "", "elements.lua");
    ck_assert_msg(rig_run_all(r, 0, 3) == GP_OK, "%s: %s", gp_dtype_name(t), rig_error(&r->errs));
    rig_free(r);
}

TEST_LOOP(ops, GP_U8, GP_C64)
{
    gp_dtype t = (gp_dtype)_i;
    for (int to = GP_U8; to < GP_C64; to++) {
        bool sign = t != GP_U8 && t != GP_U16 && t != GP_U32 && t != GP_U64;
        char *decl = format("{dtype: %s, shape: [143]}", gp_dtype_name(t));
        rig *r = rig_opened(decl, NULL, format("params: {to: %s}", gp_dtype_name((gp_dtype)to)), "ops.lua");
        frame *f = rig_frame(r, 0, -1);
        if (t != GP_F16)
            rig_fill(&f->in[0], sign ? -20 : 0);
        gp_status s = rig_run(r, 0, f, &r->errs);
        ck_assert_msg(s == GP_OK, "%s to %s: %s", gp_dtype_name(t), gp_dtype_name((gp_dtype)to), rig_error(&r->errs));
        rig_frame_free(f);
        rig_free(r);
    }
}

TEST(bytes)
{
    rig *r = rig_opened("{dtype: u8, shape: [8]}", "{dtype: u8, shape: [100]}", "", "bytes.lua");
    ck_assert_msg(rig_run_all(r, 0, 2) == GP_OK, "%s", rig_error(&r->errs));
    rig_free(r);
}

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
    { X16, "{dtype: u8, shape: [4]}", "", P("assert(#x == 5) y:fill(#y)"), 5, GP_OK, 4, "\4\4\4\4" },
    { X16, "{dtype: u8, shape: [4]}", "", P(""), -1, GP_OK, 0, NULL },
    { X16, "{dtype: u8, shape: [4]}", "", P("f.valid = 3 assert(f.valid == 3 and #y == 3) y:fill(8)"),
      -1, GP_OK, 3, "\10\10\10\xa5" },
    { X16, "{dtype: u8, shape: [4]}", "", P("y.valid = 2 assert(f.valid == 16) y[1] = 7"), -1, GP_OK, 2, "\7\xa5" },
    { X16, "{dtype: u8, shape: [4]}", "zero: true", P(""), -1, GP_OK, 0, NULL },
    { X16, "{dtype: u8, shape: [4]}", "zero: True", P(""), -1, GP_OK, 0, NULL },
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
    { X16, "{dtype: u8, shape: [99]}", "", P("y:print('a', 1, true) y:print() y:print(nil) assert(#y == 14)"), -1,
      GP_OK, 13 + 1, "a\t1\ttrue\n\nnil\n\xa5" },
    { X16, "{dtype: u8, shape: [99]}", "", "local gpipe = require 'gpipe' "
      P("y:print(gpipe.json{t = f.time, i = f.index, n = f.name})"), -1, GP_OK, 28,
          "{\"i\":0,\"n\":\"photo\",\"t\":1.5}\n" },
    { NULL, X16, "", "function produce(f, y) y:fill(7) return true end", -1, GP_OK, 16, "\7\7" },
    { NULL, X16, "", "function produce(f, y) y:fill(f.valid) f.valid = 3 end", -1, GP_OK, 3, "\x10\x10\x10\x10" },
    { NULL, X16, "", "function produce(f, y) return false end", -1, GP_END, 0, NULL },
    { NULL, X16, "", "function produce(f, y) f.time = 2.25 assert(f.time == 2.25) return 'drop' "
      "end", -1, GP_DROP, 0, NULL },
    { X16, NULL, "", P("assert(y == nil and x:sum() == 136)"), -1, GP_OK, 0, NULL },
    { X16 "\n  x2: {dtype: f32, shape: [2]}", X16 "\n  y2: {dtype: f64, shape: [3]}", "",
      P("y.y:copy(x.x) y.y2:fill(x.x2[2]) assert(y.y2[3] == 2) f.valid = 2 y.y.valid = 16"), -1,
          GP_OK, 16, "\1\2" },
    { X16 TWO, X16 TWO_OUT, "", P("local n = 0 for k, v in pairs(x) do assert(x[k] == v and v.name == k) "
      "n = n * 10 + #k end for k, v in pairs(y) do v:fill(n) end assert(x.none == nil and x.x ~= y.y) "
      "assert(not pcall(function() y.y2 = 1 end) and not pcall(function() return #x end))"), -1,
      GP_OK, 16, "\14\14" },
    { X16, "", "", P("local function g() return f end local id = debug.upvalueid(g, 1) "
      "assert(tostring(id):find '^userdata' and not pcall(function() return id.index end) "
      "and not pcall(function() return #id end)) y:fill(1)"), -1, GP_OK, 16, "\1" },
    { X16, "", "", P("y:add(x, x) y:sub(y, x) y:mul(x, x:slice(1))"), -1, GP_OK, 16, "\1\4\11" },
    { X16, "", "", P("assert(tostring(x) == \"input 'x' u8 [16]\" and tostring(f):find 'userdata')"
      "assert(type(x) == 'userdata' and getmetatable(x) == false and x == x and x ~= y) "
      "for k in pairs { a = 1 } do y:fill(#k) end"), -1, GP_OK, 16, "\1\1" },
    /* the table that init gets */
    { X16, "", "params: {i: 8, far: 9223372036854775808, f: 1.5, e: 1e3, s: '8', b: true, w: off, "
      "hex: -0x10, B: True, neg: -3, list: [1, a], map: {k: v}, "
      "one: \"${env:LUA_TEST}\", num: \"${gain}\", sum: \"${gain}x\"}",
      "function init(stage) local p = stage.params "
      "assert(p.far == 2.0 ^ 63 and p.i == 8 and p.f == 1.5 and p.e == 1000 and p.s == '8' and p.b == true and p.w == "
          "'off') "
      "assert(p.hex == -16 and p.B == true and p.neg == -3 and p.list[1] == 1 and p.list[2] == 'a' and p.map.k == 'v') "
      "assert(p.one == 'a word' and p.num == 2.5 and p.sum == '2.5x') "
      "assert(not math.type or math.type(p.i) == 'integer' and math.type(p.e) == 'float') "
      "assert(stage.name == 'it' and stage.worker == 1 and stage.workers == 1) "
      "assert(stage.inputs.x.dtype == 'u8' and stage.inputs.x.shape[1] == 16 and stage.outputs.y.dtype == 'u8') end "
      P("y:fill(9)"), -1, GP_OK, 16, "\t\t" },
    { X16, "", "", "function init(stage) assert(next(stage.params) == nil) end " P("y:fill(1)"), -1, GP_OK, 16, "\1" },
    /* libraries; undeclared globals may be an error */
    { X16, "", "", "#!/usr/bin/lua\nsetmetatable(_G, {__index = function(_, k) error('undeclared ' .. k, 2) end}) "
      P("io.write('') y:fill(3)"), -1, GP_OK, 16, "\3" },
};

TEST_EACH(good, goods)
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

/* ---- modules, and where text goes -------------------------------------- */

TEST(modules)
{
    rig *r = rig_make(X16, "", "", "local side = require 'side'\nfunction process(f, x, y) y:fill(side.value) end");
    ck_assert_msg(r->stage != NULL, "%s", rig_error(&r->errs));
    pipe_text(r->dir, "side.lua", "return { value = 42 }");
    ck_assert_msg(rig_open_state(r), "%s", rig_error(&r->errs));
    frame *f = rig_frame(r, 0, -1);
    ck_assert_int_eq(rig_run(r, 0, f, &r->errs), GP_OK);
    ck_assert_int_eq(((unsigned char *)f->out[0].data)[15], 42);
    rig_frame_free(f);
    rig_free(r);
}

/* print and io.write never reach stdout, where data goes. */
TEST(printing)
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

/* ---- speed ------------------------------------------------------------- */

/* A bulk copy runs at the speed of memcpy; arithmetic not far behind. CPU times are compared,
 * the best of a few, and of many where others keep caches and memory busy. */
TEST_LOOP(speed, 0, 7)
{
    static const struct { const char *op; double least; } bulk[] = {
        { "y:copy(x)", 0.3 }, { "y:fill(1)", 0.3 }, { "y:add(x, x)", 0.1 }, { "y:scale(x, 2, 1)", 0.1 },
        { "x:sum()", 0.1 }, { "x:max()", 0.1 }, { "x:find('>', 1e30)", 0.1 },
    };
    size_t size = 4 << 22;
    rig *r = rig_opened("{dtype: f32, shape: [4194304]}", "", "zero: true", format(P("%s"), bulk[_i].op));
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
        printf("%-20s %.1f GB/s, memcpy %.1f\n", bulk[_i].op, (double)size / best / 1e9, (double)size / plain / 1e9);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__OPTIMIZE__)
    ck_assert_msg(plain / best > bulk[_i].least, "%s: %.2f of memcpy", bulk[_i].op, plain / best);
#endif
    rig_frame_free(f);
    rig_free(r);
}

TEST_SUITE(lua, NULL, NULL, 0)
