/* open.c - makes the workers of a stage `lua`: each runs the script in a state of its own. */
#include <stdlib.h>
#include <string.h>
#include "base/filetable.h"
#include "base/table.h"
#include "worker.h"

bool gp_lua_report(const struct gp_lua_worker *w, gp_errs *errs, gp_code code, const char *who,
                   const char *where)
{
    gp_loc at = { .file = w->lua.script, .line = w->lua.line };
    return gp_fail(errs, code == GP_E_RUN && w->lua.full ? GP_E_RESOURCE : code, at, "%s%s: %s", who,
                   where, w->lua.error);
}

/* stage.inputs, stage.outputs: port name -> {dtype = "u8", shape = {480, 640}} */
static void set_ports(lua_State *L, const char *field, const char *const *name,
                      const gp_type *type, int n)
{
    lua_createtable(L, 0, n);
    for (int i = 0; i < n; i++) {
        lua_createtable(L, 0, 2);
        lua_pushstring(L, gp_dtype_name(type[i].dtype));
        lua_setfield(L, -2, "dtype");
        lua_createtable(L, type[i].ndim, 0);
        for (int d = 0; d < type[i].ndim; d++) {
            gp_lua_pushint(L, type[i].dim[d]);
            lua_rawseti(L, -2, d + 1);
        }
        lua_setfield(L, -2, "shape");
        lua_setfield(L, -2, name[i]);
    }
    lua_setfield(L, -2, field);
}

/* Raw: a script may have made unknown globals an error. */
static void push_global(lua_State *L, const char *name)
{
    lua_pushglobaltable(L);
    lua_pushstring(L, name);
    lua_rawget(L, -2);
    lua_remove(L, -2);
}

/* A reference to the global function of that name, LUA_REFNIL if there is none. */
static int global_function(lua_State *L, const char *name)
{
    push_global(L, name);
    if (!lua_isnil(L, -1) && !lua_isfunction(L, -1))
        gp_lua_fail(L, "'%s' is a %s: it must be a function", name, luaL_typename(L, -1));
    return luaL_ref(L, LUA_REGISTRYINDEX);
}

/* The line of the script where the function starts; 0: it is not from there. */
static int line_of(lua_State *L, int function, const char *chunk)
{
    lua_Debug ar;
    lua_rawgeti(L, LUA_REGISTRYINDEX, function);
    return lua_getinfo(L, ">S", &ar) && !strcmp(ar.source, chunk) && ar.linedefined > 0
        ? ar.linedefined : 0;
}

struct making { const gp_open *o; struct gp_lua_worker *w; int number; };

/* Runs protected, after the script: finds its functions, makes what they get. */
static int make_arguments(lua_State *L)
{
    struct making *m = lua_touserdata(L, 1);
    const gp_open *o = m->o;
    const struct gp_lua_opts *opts = o->opts;
    struct gp_lua_worker *w = m->w;

    w->function = global_function(L, w->entry);
    w->init = global_function(L, "init");
    w->finish = global_function(L, "finish");
    if (w->function == LUA_REFNIL)
        gp_lua_fail(L, "the script has no function '%s(frame%s%s)'", w->entry,
                    w->nin ? ", x" : "", w->nout ? ", y" : "");
    w->defined = line_of(L, w->function, w->lua.chunk);
    push_global(L, "stateless");
    if (o->workers > 1 && !(lua_isboolean(L, -1) && lua_toboolean(L, -1)))
        gp_lua_fail(L, "'stateless' is not true once the script has run: set it at the top, or "
                    "leave 'workers' out");
    gp_lua_ports_compile(L, &w->lua.guard, o->in, o->out);
    lua_createtable(L, 0, 6);
    if (opts->values)
        gp_lua_push_node(L, opts->values);
    else
        lua_newtable(L);
    lua_setfield(L, -2, "params");
    lua_pushstring(L, o->name);
    lua_setfield(L, -2, "name");
    lua_pushinteger(L, m->number);
    lua_setfield(L, -2, "worker");
    lua_pushinteger(L, o->workers);
    lua_setfield(L, -2, "workers");
    set_ports(L, "inputs", o->in_name, o->in, o->nin);
    set_ports(L, "outputs", o->out_name, o->out, o->nout);
    w->stage_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    return 0;
}

/* Runs protected: function(stage, text), where making the text may lack memory. */
static int call_with_text(lua_State *L)
{
    lua_pushstring(L, lua_touserdata(L, 3));
    lua_replace(L, 3);
    lua_call(L, 2, 0);
    return 0;
}

bool gp_lua_call_with_stage(struct gp_lua_worker *w, int function, const char *why)
{
    lua_State *L = w->lua.L;
    if (function == LUA_REFNIL)
        return true;
    if (why)
        lua_pushcfunction(L, call_with_text);
    lua_rawgeti(L, LUA_REGISTRYINDEX, function);
    lua_rawgeti(L, LUA_REGISTRYINDEX, w->stage_ref);
    if (why)
        lua_pushlightuserdata(L, (void *)(uintptr_t)why);
    return gp_lua_call(&w->lua, why ? 3 : 1, 0);
}

/* Puts the paths of the modules that are loaded into a table, on top of the stack: where
 * require() finds them. Runs protected. */
static int list_modules(lua_State *L)
{
    static const char *const places[] = { "path", "cpath" };
    int n = 0;
    lua_newtable(L);
    lua_getglobal(L, "package");
    lua_getfield(L, 2, "searchpath");
    lua_getfield(L, 2, "loaded");
    for (int k = 0; k < 2; k++)
        for (lua_pushnil(L); lua_next(L, 4);) {
            lua_pop(L, 1);
            if (lua_type(L, -1) != LUA_TSTRING)
                continue;
            lua_pushvalue(L, 3);
            lua_pushvalue(L, -2);
            lua_getfield(L, 2, places[k]);
            lua_call(L, 2, 1);
            if (lua_isstring(L, -1))
                lua_rawseti(L, 1, ++n);
            else
                lua_pop(L, 1);
        }
    lua_settop(L, 1);
    return 1;
}

/* Nobody is to write a module that the script has loaded. A script that has changed the
 * list of them is left alone. */
static bool note_modules(const gp_open *o, struct gp_lua_worker *w, const char *who)
{
    lua_State *L = w->lua.L;
    char why[GP_WHY];
    bool ok = true;
    lua_pushcfunction(L, list_modules);
    bool listed = !lua_pcall(L, 0, 1, 0);
    for (int i = 1; ok && listed; i++) {
        lua_rawgeti(L, -1, i);
        const char *path = lua_tostring(L, -1);
        listed = path;
        if (path && !gp_filetable_read(o->files, who, path, why))
            ok = gp_fail(o->errs, GP_E_RUN, o->at, "stage '%s': its module '%s' "
                         "%s", o->name, path, why);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return ok;
}

static bool open_worker(const gp_open *o, struct gp_lua_worker *w, int number, const char *who)
{
    const struct gp_lua_opts *opts = o->opts;
    w->nin = o->nin, w->nout = o->nout;
    w->entry = o->nin ? "process" : "produce";
    if (!gp_lua_ports_open(&w->lua.guard, o->in_name, o->nin, o->out_name, o->out, o->nout))
        return gp_fail(o->errs, GP_E_RESOURCE, o->at, "stage '%s': out of memory", o->name);
    /* Two stages draw different random numbers. */
    bool ok = gp_lua_open(&w->lua, opts->script, opts->text, opts->len, gp_text_hash(o->name));
    if (ok) {
        struct making m = { o, w, number };
        lua_pushcfunction(w->lua.L, make_arguments);
        lua_pushlightuserdata(w->lua.L, &m);
        ok = gp_lua_call(&w->lua, 1, 0) && gp_lua_call_with_stage(w, w->init, NULL);
    }
    return ok || gp_lua_report(w, o->errs, GP_E_RUN, who, "");
}

bool gp_lua_stage_open(const gp_open *o, void **state)
{
    struct gp_lua_stage *s = calloc(1, sizeof *s + sizeof s->w[0] * (size_t)o->workers);
    if (!s)
        return gp_fail(o->errs, GP_E_RESOURCE, o->at, "stage '%s': out of memory", o->name);
    *state = s;
    snprintf(s->who, sizeof s->who, "stage '%s'", o->name);
    for (int i = 0; i < o->workers; i++) {
        s->n++;
        if (!open_worker(o, &s->w[i], i + 1, s->who) || !note_modules(o, &s->w[i], s->who))
            return false;
    }
    return true;
}

void gp_lua_stage_close(void *state)
{
    struct gp_lua_stage *s = state;
    for (int i = 0; s && i < s->n; i++)
        gp_lua_close(&s->w[i].lua);
    free(s);
}
