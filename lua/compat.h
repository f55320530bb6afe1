/* compat.h - one C API for Lua 5.4 and LuaJIT (the API of Lua 5.1).
 *
 * Integers: Lua 5.4 has those of i64, LuaJIT doubles only. Of what is beyond these a
 * script gets a double, where that is exact, else an error. */
#pragma once

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* Raises an error with the place of the Lua code that called (view.c). */
_Noreturn void gp_lua_fail(lua_State *L, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#if LUA_VERSION_NUM >= 503

/* Keeps the value below the userdata on top of the stack alive with it. */
static inline void gp_lua_anchor(lua_State *L, int owner)
{
    lua_pushvalue(L, owner);
    lua_setiuservalue(L, -2, 1);
}

/* A pointer that belongs to the state, for all its coroutines; before the first of them. */
static inline void gp_lua_set_owner(lua_State *L, void *p)
{
    *(void **)lua_getextraspace(L) = p;
}

static inline void *gp_lua_owner(lua_State *L)
{
    return *(void **)lua_getextraspace(L);
}

/* Has a script the integer, exactly? */
static inline bool gp_lua_has_int(int64_t v)
{
    return true;
}

static inline void gp_lua_pushint(lua_State *L, int64_t v)
{
    lua_pushinteger(L, v);
}

/* The number at `idx` as an exact integer; false: it is not one. */
static inline bool gp_lua_toint(lua_State *L, int idx, int64_t *out)
{
    int ok = lua_type(L, idx) == LUA_TNUMBER;
    if (ok)
        *out = lua_tointegerx(L, idx, &ok);
    return ok;
}

#else

#define lua_rawlen lua_objlen
#define lua_pushglobaltable(L) lua_pushvalue((L), LUA_GLOBALSINDEX)
#define lua_newuserdatauv(L, bytes, n) lua_newuserdata((L), (bytes))

static inline void gp_lua_anchor(lua_State *L, int owner)
{
    lua_pushvalue(L, owner);
    lua_createtable(L, 1, 0);
    lua_insert(L, -2);
    lua_rawseti(L, -2, 1);
    lua_setfenv(L, -2);
}

static inline void gp_lua_set_owner(lua_State *L, void *p)
{
    lua_pushlightuserdata(L, p);
    lua_setfield(L, LUA_REGISTRYINDEX, "gpipe.owner");
}

static inline void *gp_lua_owner(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "gpipe.owner");
    void *p = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return p;
}

static inline bool gp_lua_has_int(int64_t v)
{
    double d = (double)v;
    return d < 0x1p63 && (int64_t)d == v;
}

static inline void gp_lua_pushint(lua_State *L, int64_t v)
{
    if (!gp_lua_has_int(v))
        gp_lua_fail(L, "%" PRId64 " is not exact in LuaJIT: copy() takes it as it is, or to f64; or build gpipe with "
                    "Lua 5.4", v);
    lua_pushnumber(L, (double)v);
}

static inline bool gp_lua_toint(lua_State *L, int idx, int64_t *out)
{
    double v = lua_type(L, idx) == LUA_TNUMBER ? lua_tonumber(L, idx) : NAN;
    if (!(v >= -0x1p63 && v < 0x1p63) || v != floor(v))
        return false;
    *out = (int64_t)v;
    return true;
}

/* Pushes the value at `idx` as text, as print() shows it. */
static inline const char *luaL_tolstring(lua_State *L, int idx, size_t *len)
{
    lua_pushvalue(L, idx);
    if (luaL_callmeta(L, -1, "__tostring")) {
        lua_remove(L, -2);
    } else if (lua_isnumber(L, -1) || lua_isstring(L, -1)) {
        lua_tostring(L, -1);
    } else {
        if (lua_isboolean(L, -1))
            lua_pushstring(L, lua_toboolean(L, -1) ? "true" : "false");
        else if (lua_isnil(L, -1))
            lua_pushliteral(L, "nil");
        else
            lua_pushfstring(L, "%s: %p", luaL_typename(L, -1), lua_topointer(L, -1));
        lua_remove(L, -2);
    }
    return lua_tolstring(L, -1, len);
}

#endif

static inline bool gp_lua_has_uint(uint64_t v)
{
    double d = (double)v;
    return v <= INT64_MAX ? gp_lua_has_int((int64_t)v) : d < 0x1p64 && (uint64_t)d == v;
}

static inline void gp_lua_pushuint(lua_State *L, uint64_t v)
{
    if (v <= INT64_MAX)
        gp_lua_pushint(L, (int64_t)v);
    else if (!gp_lua_has_uint(v))
        gp_lua_fail(L, "%" PRIu64 " is neither an integer of Lua nor exact as a float: y:copy(x) takes all elements as "
                    "they are, to u64, or rounded, to f64", v);
    else
        lua_pushnumber(L, (double)v);
}

/* The number at `idx` as a u64; false: it is not one. */
static inline bool gp_lua_touint(lua_State *L, int idx, uint64_t *out)
{
    int64_t i;
    double d = lua_type(L, idx) == LUA_TNUMBER ? lua_tonumber(L, idx) : -1;
    bool is_int = gp_lua_toint(L, idx, &i), fits = is_int ? i >= 0 : d >= 0x1p63 && d < 0x1p64;
    *out = !fits ? 0 : is_int ? (uint64_t)i : (uint64_t)d;
    return fits;
}
