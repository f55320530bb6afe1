/* view.c - a view's elements, shape and slices; see view.h. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/plural.h"
#include "base/dtypes.h"
#include "base/half.h"
#include "view.h"

/* In the registry: the dtypes' metatables, by dtype, and at GP_NO_DTYPE the methods.
 * metatable[1] is this too. */
static char METAS;
enum { BUDGET = 1 << 16 };

/* ---- checks ---------------------------------------------------------- */

void gp_lua_fail(lua_State *L, const char *fmt, ...)
{
    char msg[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    luaL_where(L, 1);
    lua_pushstring(L, msg);
    lua_concat(L, 2);
    lua_error(L);
    __builtin_unreachable();
}

static void look_for_cancel(lua_State *L, gp_lua_guard *g)
{
    g->budget = BUDGET;
    if (g->call && gp_cancelled(g->call)) {
        g->cancelled = true;
        gp_lua_fail(L, "cancelled");
    }
}

void gp_lua_view_stale(lua_State *L, const gp_lua_view *v)
{
    gp_lua_fail(L, "'%s' is used after its frame: a view is good for one call, keep a copy "
                "in a gpipe.array", v->name);
}

/* Raises an error when the view's call is over, or the run is cancelled. */
static void check_alive(lua_State *L, gp_lua_view *v)
{
    if (v->born != *v->now)
        gp_lua_view_stale(L, v);
    if (--v->guard->budget <= 0)
        look_for_cancel(L, v->guard);
}

/* "nil", "a string": what stands at `idx`. */
static const char *kind_of(lua_State *L, int idx)
{
    if (lua_isnoneornil(L, idx))
        return "nil";
    lua_pushstring(L, "a ");
    lua_pushstring(L, luaL_typename(L, idx));
    lua_concat(L, 2);
    return lua_tostring(L, -1);
}

gp_lua_view *gp_lua_view_arg(lua_State *L, int arg)
{
    bool handle = lua_islightuserdata(L, arg);
    gp_lua_view *v = handle ? gp_lua_port(L, arg) : lua_touserdata(L, arg);
    bool same = v && !handle && lua_getmetatable(L, arg);
    if (same) {
        lua_rawgeti(L, -1, 1);
        same = lua_touserdata(L, -1) == &METAS;
        lua_pop(L, 2);
    }
    if (!same && !(handle && v))
        gp_lua_fail(L, "expected a view, not %s%s", kind_of(L, arg),
                    arg == 1 ? "; a method is called with a colon, 'v:sum()'" : "");
    check_alive(L, v);
    return v;
}

static void want_writable(lua_State *L, gp_lua_view *v)
{
    if (!v->writable)
        gp_lua_fail(L, "'%s' is an input, inputs are read-only: write to an output", v->name);
    v->root->wrote = true;
    v->writes = v->reads, v->more_writes = v->more_reads;
}

gp_lua_view *gp_lua_view_out(lua_State *L, int arg)
{
    gp_lua_view *v = gp_lua_view_arg(L, arg);
    want_writable(L, v);
    return v;
}

/* "1.5", "a table": the same, a number by its value. */
static const char *value_of(lua_State *L, int idx)
{
    return lua_type(L, idx) == LUA_TNUMBER ? luaL_tolstring(L, idx, NULL) : kind_of(L, idx);
}

int64_t gp_lua_arg_int(lua_State *L, int arg, int64_t def, int64_t lo, int64_t hi, const char *what)
{
    int64_t i = def;
    if (!lua_isnoneornil(L, arg) && !gp_lua_toint(L, arg, &i))
        gp_lua_fail(L, "%s must be a whole number, not %s", what, value_of(L, arg));
    if (i < lo || i > hi)
        gp_lua_fail(L, "%s %" PRId64 " is outside %" PRId64 "..%" PRId64, what, i, lo, hi);
    return i;
}

/* ---- elements -------------------------------------------------------- */

int gp_lua_push_element(lua_State *L, const gp_lua_view *v, int64_t i)
{
    const void *p = v->data;
    switch (v->type.dtype) {
    case GP_U8:  gp_lua_pushint(L, ((const uint8_t *)p)[i]); break;
    case GP_I8:  gp_lua_pushint(L, ((const int8_t *)p)[i]); break;
    case GP_U16: gp_lua_pushint(L, ((const uint16_t *)p)[i]); break;
    case GP_I16: gp_lua_pushint(L, ((const int16_t *)p)[i]); break;
    case GP_U32: gp_lua_pushint(L, ((const uint32_t *)p)[i]); break;
    case GP_I32: gp_lua_pushint(L, ((const int32_t *)p)[i]); break;
    case GP_U64: gp_lua_pushuint(L, ((const uint64_t *)p)[i]); break;
    case GP_I64: gp_lua_pushint(L, ((const int64_t *)p)[i]); break;
    case GP_F16: lua_pushnumber(L, gp_half_to_float(((const uint16_t *)p)[i])); break;
    case GP_F32: lua_pushnumber(L, ((const float *)p)[i]); break;
    case GP_F64: lua_pushnumber(L, ((const double *)p)[i]); break;
    case GP_C64:
        lua_pushnumber(L, ((const gp_c64 *)p)[i].re);
        lua_pushnumber(L, ((const gp_c64 *)p)[i].im);
        return 2;
    case GP_NO_DTYPE: case GP_NDTYPES: lua_pushnil(L);
    }
    return 1;
}

static double want_number(lua_State *L, const gp_lua_view *v, int idx)
{
    if (lua_type(L, idx) != LUA_TNUMBER)
        gp_lua_fail(L, "'%s' holds %s: it takes a number, not %s", v->name,
                    gp_dtype_name(v->type.dtype), kind_of(L, idx));
    return lua_tonumber(L, idx);
}

static int64_t want_int(lua_State *L, const gp_lua_view *v, int idx, int64_t lo, int64_t hi)
{
    int64_t i;
    double d = want_number(L, v, idx);
    if (fabs(d) >= 0x1p63 && isfinite(d) && !gp_lua_toint(L, idx, &i))
        gp_lua_fail(L, "%s does not fit '%s', which holds %s%s", luaL_tolstring(L, idx, NULL), v->name,
                    gp_dtype_name(v->type.dtype), v->type.dtype == GP_U64 ? ": from 2^63 on numbers of Lua are floats, "
                    "of which 2.0^64 - 2048 is the largest that fits" : "");
    if (!gp_lua_toint(L, idx, &i))
        gp_lua_fail(L, "%s is not a whole number that fits '%s', which holds %s: round it first "
                    "(gpipe.round)", luaL_tolstring(L, idx, NULL), v->name,
                    gp_dtype_name(v->type.dtype));
    if (i < lo || i > hi)
        gp_lua_fail(L, "%" PRId64 " does not fit '%s', which holds %s (%" PRId64 "..%" PRId64
                    "): clamp it first (gpipe.clamp)", i, v->name, gp_dtype_name(v->type.dtype),
                    lo, hi);
    return i;
}

static uint64_t want_u64(lua_State *L, const gp_lua_view *v, int idx)
{
    uint64_t u;
    want_number(L, v, idx);
    if (!gp_lua_touint(L, idx, &u))
        gp_lua_fail(L, "%" PRId64 " does not fit '%s', which holds u64", want_int(L, v, idx, INT64_MIN, INT64_MAX),
                    v->name);
    return u;
}

void gp_lua_set_element(lua_State *L, gp_lua_view *v, int64_t i, int idx)
{
    void *p = v->data;
    switch (v->type.dtype) {
    case GP_U8:  ((uint8_t *)p)[i] = (uint8_t)want_int(L, v, idx, 0, UINT8_MAX); break;
    case GP_I8:  ((int8_t *)p)[i] = (int8_t)want_int(L, v, idx, INT8_MIN, INT8_MAX); break;
    case GP_U16: ((uint16_t *)p)[i] = (uint16_t)want_int(L, v, idx, 0, UINT16_MAX); break;
    case GP_I16: ((int16_t *)p)[i] = (int16_t)want_int(L, v, idx, INT16_MIN, INT16_MAX); break;
    case GP_U32: ((uint32_t *)p)[i] = (uint32_t)want_int(L, v, idx, 0, UINT32_MAX); break;
    case GP_I32: ((int32_t *)p)[i] = (int32_t)want_int(L, v, idx, INT32_MIN, INT32_MAX); break;
    case GP_U64: ((uint64_t *)p)[i] = want_u64(L, v, idx); break;
    case GP_I64: ((int64_t *)p)[i] = want_int(L, v, idx, INT64_MIN, INT64_MAX); break;
    case GP_F16: ((uint16_t *)p)[i] = gp_half_from_double(want_number(L, v, idx)); break;
    case GP_F32: ((float *)p)[i] = (float)want_number(L, v, idx); break;
    case GP_F64: ((double *)p)[i] = want_number(L, v, idx); break;
    case GP_C64: {
        double re = want_number(L, v, idx), im = want_number(L, v, idx + 1);
        ((gp_c64 *)p)[i] = (gp_c64){ (float)re, (float)im };
        break;
    }
    case GP_NO_DTYPE: case GP_NDTYPES: break;
    }
}

/* The key at `idx` as a flat index from 0. */
static int64_t flat(lua_State *L, gp_lua_view *v, int idx)
{
    static const char *const letters = ", j, k, l, m, n, o, p";
    int64_t i;
    check_alive(L, v);
    bool many = v->type.ndim > 1;
    if (!gp_lua_toint(L, idx, &i) || i < 1 || i > v->count)
        gp_lua_fail(L, "index %s is outside 1..%" PRId64 " of '%s'%s%.*s%s",
                    value_of(L, idx), v->count, v->name, many ? "; x:at(i" : "",
                    many ? 3 * (v->type.ndim - 1) : 0, letters,
                    many ? ") takes an index for each axis" : "");
    if (v->type.dtype == GP_C64)
        gp_lua_fail(L, "'%s' is c64, an element is two numbers: use at(), set() or parts()",
                    v->name);
    return i - 1;
}

/* Arguments 2 .. as one index for each axis. */
static int64_t at_index(lua_State *L, gp_lua_view *v)
{
    int64_t at = 0;
    for (int d = 0; d < v->type.ndim; d++) {
        int64_t i;
        if (!gp_lua_toint(L, 2 + d, &i) || i < 1 || i > v->type.dim[d])
            gp_lua_fail(L, "index %s is outside 1..%" PRId64 " of axis %d of '%s'",
                        value_of(L, 2 + d), v->type.dim[d], d + 1, v->name);
        at = at * v->type.dim[d] + i - 1;
    }
    return at;
}

static void want_args(lua_State *L, const gp_lua_view *v, int values)
{
    int given = lua_gettop(L) - 1 - values;
    if (given != v->type.ndim)
        gp_lua_fail(L, "'%s' has %d ax%s, but %d ind%s given", v->name, v->type.ndim,
                    v->type.ndim == 1 ? "is" : "es", given < 0 ? 0 : given,
                    given == 1 ? "ex is" : "ices are");
}

static int view_at(lua_State *L)
{
    gp_lua_view *v = gp_lua_view_arg(L, 1);
    want_args(L, v, 0);
    return gp_lua_push_element(L, v, at_index(L, v));
}

static int view_set(lua_State *L)
{
    gp_lua_view *v = gp_lua_view_out(L, 1);
    want_args(L, v, v->type.dtype == GP_C64 ? 2 : 1);
    gp_lua_set_element(L, v, at_index(L, v), 2 + v->type.ndim);
    return 0;
}

/* ---- fields ---------------------------------------------------------- */

/* Proposes what is most like `key`, of the fields and of the methods in the table at upvalue 1. */
_Noreturn static void no_such_field(lua_State *L, const char *key)
{
    static const char *const fields[] = { "shape", "dtype", "name", "valid", "rows" };
    gp_near near = GP_NEAR(key);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        gp_near_try(&near, fields[i]);
    for (lua_pushnil(L); lua_next(L, lua_upvalueindex(1)); lua_pop(L, 1))
        gp_near_try(&near, lua_tostring(L, -2));
    gp_lua_fail(L, "a view has no field or method '%s'%s", key, gp_near_text(&near));
}

static int push_field(lua_State *L, const gp_lua_view *v, const char *key)
{
    if (!strcmp(key, "shape")) {
        lua_createtable(L, v->type.ndim, 0);
        for (int d = 0; d < v->type.ndim; d++) {
            gp_lua_pushint(L, v->type.dim[d]);
            lua_rawseti(L, -2, d + 1);
        }
    } else if (!strcmp(key, "dtype")) {
        lua_pushstring(L, gp_dtype_name(v->type.dtype));
    } else if (!strcmp(key, "name")) {
        lua_pushstring(L, v->name);
    } else if (!strcmp(key, "valid")) {
        gp_lua_pushint(L, v->type.dim[0]);
    } else if (!strcmp(key, "rows")) {
        gp_lua_pushint(L, v->rows);
    } else {
        no_such_field(L, key);
    }
    return 1;
}

int gp_lua_view_get(lua_State *L, gp_lua_view *v)
{
    if (lua_type(L, 2) != LUA_TSTRING)
        return gp_lua_push_element(L, v, flat(L, v, 2));
    lua_pushvalue(L, 2);
    lua_rawget(L, lua_upvalueindex(1));
    if (!lua_isnil(L, -1))
        return 1;
    check_alive(L, v);
    return push_field(L, v, lua_tostring(L, 2));
}

int gp_lua_view_put(lua_State *L, gp_lua_view *v)
{
    if (lua_type(L, 2) != LUA_TSTRING) {
        int64_t i = flat(L, v, 2);
        want_writable(L, v);
        gp_lua_set_element(L, v, i, 3);
        return 0;
    }
    check_alive(L, v);
    bool shape = !strcmp(lua_tostring(L, 2), "shape") && v->most.ndim;
    if ((!shape && strcmp(lua_tostring(L, 2), "valid")) || v->root != v)
        gp_lua_fail(L, "'%s' of a view cannot be set", lua_tostring(L, 2));
    want_writable(L, v);
    if (shape) {
        gp_lua_view_reshape(L, v, 3);
        return 0;
    }
    gp_lua_view_resize(v, gp_lua_arg_int(L, 3, -1, 0, v->rows, "the number of valid rows"));
    return 0;
}

int gp_lua_view_len(lua_State *L, gp_lua_view *v)
{
    check_alive(L, v);
    gp_lua_pushint(L, v->count);
    return 1;
}

int gp_lua_view_text(lua_State *L, const gp_lua_view *v)
{
    char text[128];
    lua_pushfstring(L, "%s '%s' %s", v->writable ? "output" : "input", v->name,
                    gp_type_text(&v->type, text));
    return 1;
}

/* Only called through the metatable, which scripts cannot reach: the first
 * argument is a view. */
static int view_index(lua_State *L)
{
    return gp_lua_view_get(L, lua_touserdata(L, 1));
}

static int view_newindex(lua_State *L)
{
    return gp_lua_view_put(L, lua_touserdata(L, 1));
}

static int view_len(lua_State *L)
{
    return gp_lua_view_len(L, lua_touserdata(L, 1));
}

static int view_tostring(lua_State *L)
{
    return gp_lua_view_text(L, lua_touserdata(L, 1));
}

/* ---- making views ---------------------------------------------------- */

/* Sets the number of elements after a change of the type. */
static void count(gp_lua_view *v)
{
    v->count = gp_count(&v->type);
    v->reads = v->count <= INT32_MAX ? (int)v->count : 0;
    v->more_reads = v->reads ? (unsigned)v->reads - 1 : 0;
    v->writes = v->writable && v->root->wrote ? v->reads : 0;
    v->more_writes = v->writes ? v->more_reads : 0;
}

void gp_lua_view_init(gp_lua_view *v, gp_lua_guard *guard, const char *name, bool writable)
{
    v->guard = guard, v->now = &guard->now, v->budget = &guard->budget, v->root = v;
    v->name = name, v->writable = writable;
    v->born = guard->now - 1;              /* not before it is pointed at a slot */
}

static gp_lua_view *push_bytes(lua_State *L, gp_lua_guard *guard, gp_dtype dtype, size_t extra)
{
    gp_lua_view *v = lua_newuserdatauv(L, sizeof *v + extra, 1);
    memset(v, 0, sizeof *v + extra);
    gp_lua_view_init(v, guard, NULL, false);
    lua_pushlightuserdata(L, &METAS);
    lua_rawget(L, LUA_REGISTRYINDEX);
    lua_rawgeti(L, -1, dtype);
    lua_remove(L, -2);
    lua_setmetatable(L, -2);
    return v;
}

void gp_lua_view_point(gp_lua_view *v, const gp_view *slot)
{
    v->data = slot->data, v->type = slot->type, v->rows = slot->rows;
    v->born = v->guard->now;
    v->wrote = v->sized = false, v->printed = 0;
    count(v);
}

void gp_lua_view_reshape(lua_State *L, gp_lua_view *v, int idx)
{
    gp_type t = v->most;
    if (!lua_istable(L, idx) || (int)lua_rawlen(L, idx) != t.ndim)
        gp_lua_fail(L, "the shape of '%s' is a list of %d number%s", v->name, t.ndim, gp_plural(t.ndim));
    for (int d = 0; d < t.ndim; d++) {
        lua_rawgeti(L, idx, d + 1);
        t.dim[d] = gp_lua_arg_int(L, lua_gettop(L), -1, d > 0, v->most.dim[d], "a size of the shape");
        lua_pop(L, 1);
    }
    v->type = t;
    v->sized = true;
    count(v);
}

void gp_lua_view_resize(gp_lua_view *v, int64_t n)
{
    v->type.dim[0] = n;
    v->sized = true;
    count(v);
}

/* Pushes a copy of the view at index 1, of the same memory. */
static gp_lua_view *push_part(lua_State *L, gp_lua_view *v, gp_dtype dtype)
{
    gp_lua_view *s = push_bytes(L, v->guard, dtype, 0);
    gp_lua_anchor(L, 1);
    s->data = v->data, s->name = v->name, s->writable = v->writable, s->root = v->root;
    s->now = v->now, s->born = v->born, s->rows = v->rows;
    s->type = v->type, s->type.dtype = dtype;
    return s;
}

/* v:slice(first [, last]): rows first .. last of axis 0, no copy. last may be
 * first - 1: no rows. */
static int view_slice(lua_State *L)
{
    gp_lua_view *v = gp_lua_view_arg(L, 1);
    int64_t rows = v->type.dim[0];
    int64_t first = gp_lua_arg_int(L, 2, 0, 1, rows + 1, "the first row");
    int64_t last = gp_lua_arg_int(L, 3, rows, first - 1, rows, "the last row");
    gp_lua_view *s = push_part(L, v, v->type.dtype);
    size_t row = rows ? gp_bytes(&v->type) / (size_t)rows : 0;
    s->data = v->u8 + row * (size_t)(first - 1);
    s->type.dim[0] = s->rows = last - first + 1;
    count(s);
    return 1;
}

/* v:parts(): c64 [...] seen as f32 [..., 2], no copy. */
static int view_parts(lua_State *L)
{
    gp_lua_view *v = gp_lua_view_arg(L, 1);
    if (v->type.dtype != GP_C64 || v->type.ndim == GP_MAXDIM)
        gp_lua_fail(L, "'%s' is %s: parts() is for c64", v->name, gp_dtype_name(v->type.dtype));
    gp_lua_view *s = push_part(L, v, GP_F32);
    s->type.dim[s->type.ndim++] = 2;
    count(s);
    return 1;
}

/* gpipe.array(dtype, n, ...): zeroed memory of the script's own, as a view that
 * may be kept from frame to frame. */
static int new_array(lua_State *L)
{
    gp_type t = { .dtype = gp_dtype_parse(luaL_checkstring(L, 1)), .ndim = lua_gettop(L) - 1 };
    size_t bytes = gp_dtype_size(t.dtype);
    char hint[GP_DTYPE_HINT];
    if (!t.dtype && *gp_dtype_hint(lua_tostring(L, 1), hint))
        gp_lua_fail(L, "there is no dtype '%s'%s", lua_tostring(L, 1), hint);
    if (!t.dtype)
        gp_lua_fail(L, "there is no dtype '%s': u8 i8 u16 i16 u32 i32 u64 i64 f16 f32 f64 c64",
                    lua_tostring(L, 1));
    if (t.ndim < 1 || t.ndim > GP_MAXDIM)
        gp_lua_fail(L, "an array has 1 to %d axes: gpipe.array(\"f32\", 480, 640)", GP_MAXDIM);
    for (int d = 0; d < t.ndim; d++) {
        t.dim[d] = gp_lua_arg_int(L, 2 + d, 0, 1, INT32_MAX, "a size");
        if (__builtin_mul_overflow(bytes, (size_t)t.dim[d], &bytes) || bytes > (size_t)1 << 40)
            gp_lua_fail(L, "the array is larger than any memory");
    }
    gp_lua_view *v = push_bytes(L, lua_touserdata(L, lua_upvalueindex(1)), t.dtype, bytes + 64);
    uintptr_t data = (uintptr_t)(v + 1);
    v->data = (unsigned char *)(v + 1) + (-data & 63);
    v->type = t, v->rows = t.dim[0], v->now = &v->born;
    v->name = "array", v->writable = true;
    count(v);
    return 1;
}

static int open_core(lua_State *L)
{
    lua_createtable(L, 0, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushcclosure(L, new_array, 1);
    lua_setfield(L, -2, "array");
    return 1;
}

/* The metatable of one dtype's views, on top of the stack; below it: the methods. */
static void push_metatable(lua_State *L)
{
    static const luaL_Reg events[] = {
        { "__newindex", view_newindex }, { "__len", view_len }, { "__tostring", view_tostring }, {0}
    };
    lua_createtable(L, 1, 5);
    luaL_setfuncs(L, events, 0);
    lua_pushvalue(L, -2);
    lua_pushcclosure(L, view_index, 1);
    lua_setfield(L, -2, "__index");
    lua_pushlightuserdata(L, &METAS);
    lua_rawseti(L, -2, 1);
    lua_pushboolean(L, false);             /* getmetatable(v) is false */
    lua_setfield(L, -2, "__metatable");
}

void gp_lua_view_methods(lua_State *L)
{
    lua_pushlightuserdata(L, &METAS);
    lua_rawget(L, LUA_REGISTRYINDEX);
    lua_rawgeti(L, -1, GP_NO_DTYPE);
    lua_remove(L, -2);
}

#if LUA_VERSION_NUM < 503

#define TEXT(...) TEXT_OF(__VA_ARGS__)
#define TEXT_OF(...) #__VA_ARGS__

bool gp_lua_is_compiled(gp_dtype t)
{
    return t != GP_U64 && t != GP_I64 && t != GP_F16 && t != GP_C64;
}

void gp_lua_elements(lua_State *L, const char *name)
{
    lua_getglobal(L, "require");
    lua_pushliteral(L, "gpipe.elements");
    lua_call(L, 1, 1);
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
}

/* gpipe.elements.lua puts functions that can be compiled into the metatable on top of the
 * stack, for dtypes that LuaJIT knows. Below it: the methods. */
static void compile(lua_State *L, gp_dtype t)
{
    if (!gp_lua_is_compiled(t))
        return;
    gp_lua_elements(L, "views");
    lua_pushstring(L, gp_dtype_name(t));
    lua_pushvalue(L, -3);
    lua_pushvalue(L, -5);
    lua_pushliteral(L, TEXT(GP_LUA_PART(GP_LUA_AS_IS)));
    lua_call(L, 4, 0);
}

#else

static void compile(lua_State *L, gp_dtype t)
{
}

#endif

void gp_lua_views_open(lua_State *L, gp_lua_guard *guard)
{
    static const luaL_Reg methods[] = {
        { "at", view_at }, { "set", view_set }, { "slice", view_slice }, { "parts", view_parts },
        {0}
    };
    lua_pushlightuserdata(L, &METAS);
    lua_createtable(L, GP_NDTYPES, 0);
    lua_createtable(L, 0, 40);
    luaL_setfuncs(L, methods, 0);
    luaL_setfuncs(L, gp_lua_ops, 0);
    luaL_setfuncs(L, gp_lua_bytes, 0);
    for (int t = GP_U8; t < GP_NDTYPES; t++) {
        push_metatable(L);
        compile(L, (gp_dtype)t);
        lua_rawseti(L, -3, t);
    }
    lua_rawseti(L, -2, GP_NO_DTYPE);
    lua_rawset(L, LUA_REGISTRYINDEX);
    gp_lua_set_owner(L, guard);
    gp_lua_handles_open(L);

    lua_getglobal(L, "package");
    lua_getfield(L, -1, "preload");
    lua_pushlightuserdata(L, guard);
    lua_pushcclosure(L, open_core, 1);
    lua_setfield(L, -2, "gpipe.core");
    lua_pop(L, 2);
}
