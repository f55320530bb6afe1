/* handle.c - what a call of a script gets: its frame, its inputs and its outputs.
 *
 * Each is a handle, which is a light userdata: a number that says which of them it is and
 * in which call. So a call makes nothing on the heap, and a handle that a script keeps is
 * told from those of all other calls. What it stands for is C's, in the guard. All light
 * userdata of a state have one metatable; one that another library makes is no handle,
 * and looks like one of another call. */
#include <stdlib.h>
#include <string.h>
#include "view.h"

/* LuaJIT has 47 bits for a light userdata, of which it notes the upper ones in a table that
 * has no room for all; these fit: 2^40 calls. */
enum { BITS = 6, CALL_BITS = LUA_VERSION_NUM >= 503 ? 58 : 40 };

/* A handle stands for one of these; `x` is INPUTS where there are several. */
enum { FRAME, META, INPUTS, OUTPUTS, PORTS };
_Static_assert(PORTS + 2 * GP_MAXPORT <= 1 << BITS, "handles of all ports");

/* From 1, so that NULL, as others have it, is no handle. `now` counts ends, too. */
static uintptr_t this_call(const gp_lua_guard *g)
{
    return (g->now + 1) >> 1 & ((UINT64_C(1) << CALL_BITS) - 1);
}

static void push(lua_State *L, const gp_lua_guard *g, int what)
{
    lua_pushlightuserdata(L, (void *)(this_call(g) << BITS | (uintptr_t)what));
}

/* FRAME, META, ..., or PORTS + k of port k; beyond them: no handle. */
static int what_is(lua_State *L, int arg)
{
    return (int)((uintptr_t)lua_touserdata(L, arg) & ((1 << BITS) - 1));
}

static bool is_current(lua_State *L, const gp_lua_guard *g, int arg)
{
    return g->frame && (uintptr_t)lua_touserdata(L, arg) >> BITS == this_call(g);
}

gp_lua_view *gp_lua_port(lua_State *L, int arg)
{
    gp_lua_guard *g = gp_lua_owner(L);
    int k = what_is(L, arg) - PORTS;
    if (k < 0 || k >= g->nin + g->nout)
        return NULL;
    if (!is_current(L, g, arg))
        gp_lua_view_stale(L, &g->port[k]);
    return &g->port[k];
}

/* ---- the frame --------------------------------------------------------- */

static void want_frame(lua_State *L, const gp_lua_guard *g)
{
    if (!is_current(L, g, 1))
        gp_lua_fail(L, "the frame is used after its call");
}

/* frame.index, frame.valid, frame.time, frame.name, frame.meta */
static int frame_get(lua_State *L, const gp_lua_guard *g)
{
    const char *key = lua_tostring(L, 2);
    want_frame(L, g);
    if (key && !strcmp(key, "index"))
        gp_lua_pushuint(L, g->frame->index);
    else if (key && !strcmp(key, "valid"))
        gp_lua_pushint(L, g->valid);
    else if (key && !strcmp(key, "time"))
        lua_pushnumber(L, (double)g->frame->time_ns / 1e9);
    else if (key && !strcmp(key, "name"))
        lua_pushstring(L, g->frame->name);
    else if (key && !strcmp(key, "meta"))
        push(L, g, META);
    else
        gp_lua_fail(L, "a frame has no '%s': index, valid, time, name, meta", key ? key : "?");
    return 1;
}

/* frame.valid = n: every output has n rows. frame.time = t: of a source. */
static int frame_put(lua_State *L, gp_lua_guard *g)
{
    const char *key = lua_tostring(L, 2);
    want_frame(L, g);
    if (key && !strcmp(key, "valid") && g->nout) {
        int64_t most = INT64_MAX;
        gp_lua_view *y = g->port + g->nin;
        for (int i = 0; i < g->nout; i++)
            most = y[i].rows < most ? y[i].rows : most;
        g->valid = gp_lua_arg_int(L, 3, -1, 0, most, "the number of valid rows");
        for (int i = 0; i < g->nout; i++)
            gp_lua_view_resize(&y[i], g->valid);
    } else if (key && !strcmp(key, "time") && !g->nin) {
        double t = luaL_checknumber(L, 3);
        if (!(t > 0 && t < 9e9))
            gp_lua_fail(L, "a time is in seconds since 1970");
        g->frame->time_ns = llround(t * 1e9);
    } else {
        gp_lua_fail(L, "'%s' of this frame cannot be set%s", key ? key : "?",
                    !key ? "" : !strcmp(key, "time") ? ", only a source tells the time"
                    : !strcmp(key, "meta") ? ": set a number of it, as in frame.meta.gain = 2" : "");
    }
    return 0;
}

/* ---- its numbers --------------------------------------------------------- */

/* The name at index 2, which has to be one that the pipeline lists. */
static const char *want_key(lua_State *L, const gp_lua_guard *g)
{
    const char *const *keys, *key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : NULL;
    want_frame(L, g);
    int n = gp_meta_keys(g->call, &keys);
    if (!key)
        gp_lua_fail(L, "the numbers in frame.meta have names, and this is a %s", luaL_typename(L, 2));
    if (strlen(key) < lua_rawlen(L, 2))        /* no C string, which one that is listed is */
        gp_lua_fail(L, "the pipeline lists no '%s\\0...' under 'metadata'", key);
    if (!strcmp(key, "time"))
        gp_lua_fail(L, "the time of a frame is frame.time");
    for (int i = 0; i < n; i++)
        if (!strcmp(keys[i], key))
            return key;
    gp_lua_fail(L, "the pipeline lists no '%s' under 'metadata'", key);
}

/* frame.meta.exposure; nil: the frame has none. */
static int meta_get(lua_State *L, const gp_lua_guard *g)
{
    double value;
    if (gp_meta_get(g->call, g->frame, want_key(L, g), &value))
        lua_pushnumber(L, value);
    else
        lua_pushnil(L);
    return 1;
}

static int meta_put(lua_State *L, gp_lua_guard *g)
{
    const char *key = want_key(L, g);
    if (!g->nout)
        gp_lua_fail(L, "frame.meta.%s cannot be set: nothing comes behind this stage", key);
    if (!lua_isnil(L, 3) && lua_type(L, 3) != LUA_TNUMBER)
        gp_lua_fail(L, "frame.meta.%s is a number or nil, not a %s", key, luaL_typename(L, 3));
    double value = lua_tonumber(L, 3);
#if LUA_VERSION_NUM >= 503
    if (lua_isinteger(L, 3) && ((double)INT64_MAX <= value || (lua_Integer)value != lua_tointeger(L, 3)))
        gp_lua_fail(L, "frame.meta.%s cannot hold %s: numbers in it are exact up to 2^53", key, lua_tostring(L, 3));
#endif
    if (!gp_meta_set(g->call, g->frame, key, lua_isnil(L, 3) ? NULL : &value))
        gp_lua_fail(L, "frame.meta.%s cannot be %s: it is a finite number, or nil", key,
                    isnan(value) ? "NaN" : value < 0 ? "-inf" : "inf");
    return 0;
}

/* ---- several views, by name -------------------------------------------- */

/* The ports of INPUTS or OUTPUTS: [*first, *end). */
static void want_ports(lua_State *L, const gp_lua_guard *g, int *first, int *end)
{
    bool in = what_is(L, 1) == INPUTS;
    if (what_is(L, 1) != OUTPUTS && !in)
        gp_lua_fail(L, "expected a table, not a userdata");
    if (!is_current(L, g, 1))
        gp_lua_fail(L, "the %s are used after their frame: a view is good for one call, keep a "
                    "copy in a gpipe.array", in ? "inputs" : "outputs");
    *first = in ? 0 : g->nin, *end = in ? g->nin : g->nin + g->nout;
}

/* x.image; nil: there is no such port. */
static int ports_get(lua_State *L, const gp_lua_guard *g)
{
    int k, end;
    const char *key = lua_tostring(L, 2);
    want_ports(L, g, &k, &end);
    while (k < end && !(key && !strcmp(key, g->port[k].name)))
        k++;
    if (k < end)
        push(L, g, PORTS + k);
    else
        lua_pushnil(L);
    return 1;
}

/* As next() does: the port after the one of that name. */
static int ports_next(lua_State *L)
{
    int k, end;
    const gp_lua_guard *g = gp_lua_owner(L);
    want_ports(L, g, &k, &end);
    if (!lua_isnoneornil(L, 2)) {
        const char *key = luaL_checkstring(L, 2);
        while (k < end && strcmp(key, g->port[k].name))
            k++;
        k++;
    }
    if (k >= end) {
        lua_pushnil(L);
        return 1;
    }
    lua_pushstring(L, g->port[k].name);
    push(L, g, PORTS + k);
    return 2;
}

static int ports_pairs(lua_State *L)
{
    int first, end;
    want_ports(L, gp_lua_owner(L), &first, &end);
    lua_pushcfunction(L, ports_next);
    lua_pushvalue(L, 1);
    lua_pushnil(L);
    return 3;
}

/* ---- the metatable, which scripts cannot reach -------------------------- */

/* Upvalue 1: the methods of views. */
static int handle_index(lua_State *L)
{
    gp_lua_view *v = gp_lua_port(L, 1);
    if (v)
        return gp_lua_view_get(L, v);
    const gp_lua_guard *g = gp_lua_owner(L);
    return what_is(L, 1) == FRAME ? frame_get(L, g) : what_is(L, 1) == META ? meta_get(L, g) : ports_get(L, g);
}

static int handle_newindex(lua_State *L)
{
    gp_lua_view *v = gp_lua_port(L, 1);
    if (v)
        return gp_lua_view_put(L, v);
    if (what_is(L, 1) == FRAME)
        return frame_put(L, gp_lua_owner(L));
    if (what_is(L, 1) == META)
        return meta_put(L, gp_lua_owner(L));
    gp_lua_fail(L, "an input or output cannot be set: write its elements, as with copy() or fill()");
}

static int handle_len(lua_State *L)
{
    gp_lua_view *v = gp_lua_port(L, 1);
    if (!v)
        gp_lua_fail(L, "only a view has a length");
    return gp_lua_view_len(L, v);
}

static int handle_tostring(lua_State *L)
{
    const gp_lua_guard *g = gp_lua_owner(L);
    gp_lua_view *v = is_current(L, g, 1) ? gp_lua_port(L, 1) : NULL;
    if (v)
        return gp_lua_view_text(L, v);
    lua_pushfstring(L, "userdata: %p", lua_touserdata(L, 1));
    return 1;
}

void gp_lua_handles_open(lua_State *L)
{
    static const luaL_Reg events[] = {
        { "__newindex", handle_newindex }, { "__len", handle_len }, { "__pairs", ports_pairs },
        { "__tostring", handle_tostring }, {0}
    };
    lua_pushlightuserdata(L, NULL);
    lua_createtable(L, 0, 6);
    luaL_setfuncs(L, events, 0);
    gp_lua_view_methods(L);
    lua_pushcclosure(L, handle_index, 1);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
#if LUA_VERSION_NUM < 503
    gp_lua_elements(L, "pairs");
    lua_pushcfunction(L, ports_pairs);
    lua_call(L, 1, 0);
#endif
}

/* ---- ports --------------------------------------------------------------- */

bool gp_lua_ports_open(gp_lua_guard *g, const char *const *in_name, int nin,
                       const char *const *out_name, const gp_type *out, int nout)
{
    g->port = calloc((size_t)(nin + nout) + 1, sizeof *g->port);
    for (int k = 0; g->port && k < nin + nout; k++)
        gp_lua_view_init(&g->port[k], g, k < nin ? in_name[k] : out_name[k - nin], k >= nin);
    for (int k = 0; g->port && k < nout; k++)
        g->port[nin + k].most = out[k];
    g->nin = nin, g->nout = nout;
    return g->port;
}

#if LUA_VERSION_NUM < 503

/* gpipe.elements.lua puts functions that can be compiled into the metatable. It gets, for each
 * port, its type and its view, and a table for the handles of each call. */
void gp_lua_ports_compile(lua_State *L, gp_lua_guard *g, const gp_type *in, const gp_type *out)
{
    gp_lua_elements(L, "ports");
    lua_pushlightuserdata(L, NULL);
    lua_getmetatable(L, -1);
    lua_remove(L, -2);
    gp_lua_view_methods(L);
    lua_createtable(L, g->nin + g->nout, 0);
    lua_pushvalue(L, -1);
    g->handles = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_newtable(L);
    lua_newtable(L);
    for (int k = 0; k < g->nin + g->nout; k++) {
        gp_dtype t = k < g->nin ? in[k].dtype : out[k - g->nin].dtype;
        lua_pushstring(L, gp_lua_is_compiled(t) ? gp_dtype_name(t) : "");
        lua_rawseti(L, -3, k + 1);
        lua_pushlightuserdata(L, &g->port[k]);
        lua_rawseti(L, -2, k + 1);
    }
    lua_call(L, 5, 0);
}

static void tell_handles(lua_State *L, const gp_lua_guard *g)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, g->handles);
    for (int k = 0; k < g->nin + g->nout; k++) {
        push(L, g, PORTS + k);
        lua_rawseti(L, -2, k + 1);
    }
    lua_pop(L, 1);
}

#else

void gp_lua_ports_compile(lua_State *L, gp_lua_guard *g, const gp_type *in, const gp_type *out)
{
}

static void tell_handles(lua_State *L, const gp_lua_guard *g)
{
}

#endif

/* ---- a call --------------------------------------------------------------- */

/* One view, or several by name. */
static int push_ports(lua_State *L, const gp_lua_guard *g, int all, int first, int n)
{
    if (n)
        push(L, g, n > 1 ? all : PORTS + first);
    return n > 0;
}

int gp_lua_begin(lua_State *L, gp_lua_guard *g, const gp_call *call, gp_frame *f)
{
    g->now++;
    g->call = call, g->frame = f;
    for (int k = 0; k < g->nin; k++)
        gp_lua_view_point(&g->port[k], &f->in[k]);
    for (int k = 0; k < g->nout; k++)
        gp_lua_view_point(&g->port[g->nin + k], &f->out[k]);
    g->valid = g->nin ? f->in[0].type.dim[0] : f->out[0].type.dim[0];
    tell_handles(L, g);
    push(L, g, FRAME);
    return 1 + push_ports(L, g, INPUTS, 0, g->nin) + push_ports(L, g, OUTPUTS, g->nin, g->nout);
}

void gp_lua_end(gp_lua_guard *g)
{
    g->now++;
    g->call = NULL, g->frame = NULL;
}
