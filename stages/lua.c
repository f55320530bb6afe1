/* lua.c - a stage that is a Lua script: a source, a filter or a sink.
 *
 *   stateless = true                      -- several workers may run it
 *   function init(stage)                  -- once per worker; stage.params, ...
 *   function process(frame, x, y)         -- per frame; x, y: views (lua/view.h)
 *   function produce(frame, y)            -- of a source; returns false to end
 *   function finish(stage)                -- every frame was seen
 *
 * Each worker has a Lua state of its own. Frames, views and tables of views are made
 * once and pointed at the frame's slots for each call: TURNS sets of them take
 * turns, so that one which a script keeps is noticed at its next use, and a
 * frame makes no garbage. Invariant: what a script without state computes does
 * not depend on the worker, so its math.random starts from the frame number. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/filetable.h"
#include "gpipe/stage.h"
#include "state.h"

enum { TURNS = 31, MAX_RUN = 16, RUN_NS = 50000 };

struct opts {
    const char *script;
    const gp_node *params;

    /* found by check(); the last three by shape() */
    const char *text;              /* of the script */
    size_t len;
    const gp_node *values;         /* params, with ${} replaced; NULL: none */
    bool stateless, zero;
    const gp_type *out;            /* of whole frames */
    unsigned follow;               /* set of outputs: as many rows as the first input */
};

/* ---- compile time ---------------------------------------------------- */

/* Is there a line "stateless = true"? */
static bool says_stateless(const char *text)
{
    for (const char *p = text; p; p = strchr(p, '\n')) {
        p += strspn(p, " \t\r\n");
        if (strncmp(p, "stateless", 9))
            continue;
        p += 9, p += strspn(p, " \t");
        if (*p != '=')
            continue;
        p++, p += strspn(p, " \t");
        if (!strncmp(p, "true", 4) && !strspn(p + 4, "abcdefghijklmnopqrstuvwxyz_0123456789."))
            return true;
    }
    return false;
}

/* Text that is one ${x}, and nothing else: it stands for x's value, quotes are
 * only there for YAML. */
static bool one_variable(const gp_node *n)
{
    return n->len > 3 && !strncmp(n->text, "${", 2) && strchr(n->text, '}') == n->text + n->len - 1;
}

/* A copy of `n` with ${} replaced. NULL after an error. */
static gp_node *expand(gp_shape *s, const gp_node *n)
{
    gp_node *copy = gp_shape_alloc(s, sizeof *copy);
    *copy = *n;
    if (n->kind == GP_SCALAR) {
        copy->text = gp_shape_text(s, n);
        if (!copy->text)
            return NULL;
        copy->len = strlen(copy->text);
        copy->quoted = n->quoted && !one_variable(n);
        return copy;
    }
    copy->item = gp_shape_alloc(s, sizeof *copy->item * (size_t)n->n);
    for (int i = 0; i < n->n; i++)
        if (!(copy->item[i] = expand(s, n->item[i])))
            return NULL;
    return copy;
}

static bool read_params(gp_shape *s, struct opts *o)
{
    if (!o->params)
        return true;
    if (o->params->kind != GP_MAP)
        return gp_shape_fail_at(s, o->params->at, "'params' must be a map, like {floor: 8}");
    o->values = expand(s, o->params);
    return o->values != NULL;
}

/* The stage's key `zero`, which the engine checks. */
static bool says_zero(gp_shape *s)
{
    const gp_node *n = gp_shape_node(s, "zero");
    const char *text = n && n->kind == GP_SCALAR ? gp_shape_text(s, n) : NULL;
    return text && !strcmp(text, "true");
}

static bool read_script(gp_shape *s, struct opts *o)
{
    const gp_file *f = gp_probe_file(s, o->script);
    if (!f)
        return false;
    gp_shape_reads(s, &o->script, 1);
    if (f->error)
        return gp_shape_fail(s, "script", "cannot read '%s': %s", o->script, strerror(f->error));
    if (f->kind == GP_FILE_DIR)
        return gp_shape_fail(s, "script", "'%s' is a folder: name a Lua file", o->script);
    if (f->kind != GP_FILE_REGULAR)
        return gp_shape_fail(s, "script", "'%s' is not a regular file", o->script);
    o->text = f->head, o->len = f->nhead;
    o->stateless = says_stateless(f->head);
    if (f->size > GP_PROBE_HEAD)
        return gp_shape_fail(s, "script", "'%s' is larger than 1 MiB: keep data in a file of "
                             "its own", o->script);
    gp_lua w = { 0 };
    bool ok = gp_lua_syntax(&w, o->script, f->head, f->nhead);
    if (!ok && w.full)
        gp_shape_fail(s, "script", "'%s' " GP_WHY_MEMORY, o->script);
    else if (!ok && w.line)
        gp_shape_fail(s, "script", "%s:%d: %s", o->script, w.line, w.error);
    else if (!ok)
        gp_shape_fail(s, "script", "'%s': %s", o->script, w.error);
    gp_lua_close(&w);
    return ok;
}

/* Outputs are like the first input, unless declared. */
static bool shape_outputs(gp_shape *s, struct opts *o)
{
    gp_type *out = gp_shape_alloc(s, sizeof *out * (size_t)(s->nout + 1));
    o->follow = 0;
    for (int i = 0; i < s->nout; i++) {
        gp_type *t = &s->out[i];
        if (!s->nin && (!t->dtype || !t->ndim))
            return gp_shape_fail(s, NULL, "a Lua source cannot tell what '%s' is: declare its "
                                 "dtype and shape under 'buffers'", s->out_name[i]);
        if (!t->dtype)
            t->dtype = s->in[0].dtype;
        if (!t->ndim) {
            gp_dtype dtype = t->dtype;
            *t = s->in[0];
            t->dtype = dtype;
        }
        if (s->nin && t->dim[0] == s->in[0].dim[0])
            o->follow |= 1u << i;
        out[i] = *t;
    }
    o->out = out;
    return true;
}

static bool check(gp_shape *s)
{
    struct opts *o = (struct opts *)s->opts;       /* its last fields are made here */
    bool script = read_script(s, o);
    return read_params(s, o) && script;
}

static bool shape(gp_shape *s)
{
    struct opts *o = (struct opts *)s->opts;       /* likewise */
    if (s->partial) {
        for (int i = 0; i < s->nout; i++) {
            s->out[i] = o->out[i];
            if (o->follow >> i & 1)
                s->out[i].dim[0] = s->in[0].dim[0];
        }
        return true;
    }
    if (!s->nin && !s->nout)
        return gp_shape_fail(s, NULL, "this stage has neither inputs nor outputs");
    if (!shape_outputs(s, o))
        return false;
    s->serial = !o->stateless;
    o->zero = says_zero(s);
    if (s->workers > 1 && !o->stateless)
        return gp_shape_fail(s, "workers", "%d workers would each see only some frames: say "
                             "'stateless = true' in '%s' if it keeps nothing from frame to frame, "
                             "or leave 'workers' out", s->workers, o->script);
    return true;
}

/* ---- a worker -------------------------------------------------------- */

struct worker {
    gp_lua lua;
    gp_frame *frame;               /* the one being processed, or NULL */
    int nin, nout;
    int64_t valid;                 /* frame.valid */
    int function, init, finish;    /* references; LUA_REFNIL: no such function */
    int frame_ref[TURNS], stage_ref;
    const char *entry;             /* "process" or "produce" */
    int defined;                   /* its line in the script, 0: not there */
    int turn;
    gp_lua_view **in, **out;       /* [TURNS][nin], [TURNS][nout] */
    int x[TURNS], y[TURNS];        /* references to what process() gets */
};

struct state {
    char who[128];
    int n;
    struct worker w[];
};

static bool report(const struct worker *w, gp_errs *errs, const char *stage, const char *where)
{
    gp_loc at = { .file = w->lua.script, .line = w->lua.line, .col = w->lua.line > 0 };
    return gp_fail(errs, w->lua.full ? GP_E_RESOURCE : GP_E_RUN, at, "stage '%s'%s: %s", stage,
                   where, w->lua.error);
}

/* A frame is the number of its turn. */
static void want_current(lua_State *L, const struct worker *w)
{
    const int *turn = lua_touserdata(L, 1);
    if (!turn || !w->frame || *turn != w->turn)
        gp_lua_fail(L, "the frame is used after its call");
}

/* frame.index, frame.valid, frame.time, frame.name */
static int frame_index(lua_State *L)
{
    struct worker *w = lua_touserdata(L, lua_upvalueindex(1));
    const char *key = lua_tostring(L, 2);
    want_current(L, w);
    if (key && !strcmp(key, "index"))
        gp_lua_pushuint(L, w->frame->index);
    else if (key && !strcmp(key, "valid"))
        gp_lua_pushint(L, w->valid);
    else if (key && !strcmp(key, "time"))
        lua_pushnumber(L, (double)w->frame->time_ns / 1e9);
    else if (key && !strcmp(key, "name"))
        lua_pushstring(L, w->frame->name);
    else
        gp_lua_fail(L, "a frame has no '%s': index, valid, time, name", key ? key : "?");
    return 1;
}

/* frame.valid = n: every output has n rows. frame.time = t: of a source. */
static int frame_newindex(lua_State *L)
{
    struct worker *w = lua_touserdata(L, lua_upvalueindex(1));
    const char *key = lua_tostring(L, 2);
    want_current(L, w);
    if (key && !strcmp(key, "valid") && w->nout) {
        int64_t most = INT64_MAX;
        gp_lua_view **y = &w->out[w->turn * w->nout];
        for (int i = 0; i < w->nout; i++)
            most = y[i]->rows < most ? y[i]->rows : most;
        w->valid = gp_lua_arg_int(L, 3, -1, 0, most, "the number of valid rows");
        for (int i = 0; i < w->nout; i++)
            gp_lua_view_resize(y[i], w->valid);
    } else if (key && !strcmp(key, "time") && !w->nin) {
        double t = luaL_checknumber(L, 3);
        if (!(t > 0 && t < 9e9))
            gp_lua_fail(L, "a time is in seconds since 1970");
        w->frame->time_ns = llround(t * 1e9);
    } else {
        gp_lua_fail(L, "'%s' of this frame cannot be set%s", key ? key : "?",
                    key && !strcmp(key, "time") ? ", only a source tells the time" : "");
    }
    return 0;
}

/* ---- open ------------------------------------------------------------ */

static void make_frames(lua_State *L, struct worker *w)
{
    lua_createtable(L, 0, 3);          /* the metatable of all */
    lua_pushlightuserdata(L, w);
    lua_pushcclosure(L, frame_index, 1);
    lua_setfield(L, -2, "__index");
    lua_pushlightuserdata(L, w);
    lua_pushcclosure(L, frame_newindex, 1);
    lua_setfield(L, -2, "__newindex");
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    for (int t = 0; t < TURNS; t++) {
        *(int *)lua_newuserdatauv(L, sizeof t, 0) = t;
        lua_pushvalue(L, -2);
        lua_setmetatable(L, -2);
        w->frame_ref[t] = luaL_ref(L, LUA_REGISTRYINDEX);
    }
    lua_pop(L, 1);
}

/* One view, or a table of them by port name; kept by the reference returned. */
static int push_views(lua_State *L, struct worker *w, const char *const *name,
                      const gp_type *type, int n, bool writable, gp_lua_view **view)
{
    if (n > 1)
        lua_createtable(L, 0, n);
    for (int i = 0; i < n; i++) {
        view[i] = gp_lua_view_push(L, &w->lua.guard, type[i].dtype, name[i], writable);
        if (n > 1)
            lua_setfield(L, -2, name[i]);
    }
    return n ? luaL_ref(L, LUA_REGISTRYINDEX) : LUA_NOREF;
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

struct making { const gp_open *o; struct worker *w; int number; };

/* Runs protected, after the script: finds its functions, makes what they get. */
static int make_arguments(lua_State *L)
{
    struct making *m = lua_touserdata(L, 1);
    const gp_open *o = m->o;
    const struct opts *opts = o->opts;
    struct worker *w = m->w;

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
    make_frames(L, w);
    for (int t = 0; t < TURNS; t++) {
        w->x[t] = push_views(L, w, o->in_name, o->in, w->nin, false, &w->in[t * w->nin]);
        w->y[t] = push_views(L, w, o->out_name, o->out, w->nout, true, &w->out[t * w->nout]);
    }
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

/* Calls init() or finish() with the stage table, if the script has it. */
static bool call_with_stage(struct worker *w, int function)
{
    if (function == LUA_REFNIL)
        return true;
    lua_rawgeti(w->lua.L, LUA_REGISTRYINDEX, function);
    lua_rawgeti(w->lua.L, LUA_REGISTRYINDEX, w->stage_ref);
    return gp_lua_call(&w->lua, 1, 0);
}

/* A seed from the stage's name, so that two stages draw different numbers. */
static uint64_t seed_of(const char *name)
{
    uint64_t h = UINT64_C(14695981039346656037);   /* FNV-1a */
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * UINT64_C(1099511628211);
    return h;
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
static bool note_modules(const gp_open *o, struct worker *w, const char *who)
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

static bool open_worker(const gp_open *o, struct worker *w, int number)
{
    const struct opts *opts = o->opts;
    w->nin = o->nin, w->nout = o->nout;
    w->entry = o->nin ? "process" : "produce";
    w->in = calloc((size_t)(TURNS * w->nin + 1), sizeof *w->in);
    w->out = calloc((size_t)(TURNS * w->nout + 1), sizeof *w->out);
    if (!w->in || !w->out)
        return gp_fail(o->errs, GP_E_RESOURCE, o->at, "stage '%s': out of memory", o->name);
    bool ok = gp_lua_open(&w->lua, opts->script, opts->text, opts->len, seed_of(o->name));
    if (ok) {
        struct making m = { o, w, number };
        lua_pushcfunction(w->lua.L, make_arguments);
        lua_pushlightuserdata(w->lua.L, &m);
        ok = gp_lua_call(&w->lua, 1, 0) && call_with_stage(w, w->init);
    }
    return ok || report(w, o->errs, o->name, "");
}

static bool open_stage(const gp_open *o, void **state)
{
    struct state *s = calloc(1, sizeof *s + sizeof s->w[0] * (size_t)o->workers);
    if (!s)
        return gp_fail(o->errs, GP_E_RESOURCE, o->at, "stage '%s': out of memory", o->name);
    *state = s;
    snprintf(s->who, sizeof s->who, "stage '%s'", o->name);
    for (int i = 0; i < o->workers; i++) {
        s->n++;
        if (!open_worker(o, &s->w[i], i + 1) || !note_modules(o, &s->w[i], s->who))
            return false;
    }
    return true;
}

static void close_stage(void *state)
{
    struct state *s = state;
    for (int i = 0; s && i < s->n; i++) {
        gp_lua_close(&s->w[i].lua);
        free(s->w[i].in);
        free(s->w[i].out);
    }
    free(s);
}

/* ---- run ------------------------------------------------------------- */

/* What process() or produce() returned, on top of the stack. */
static bool read_status(struct worker *w, gp_status *status)
{
    lua_State *L = w->lua.L;
    bool source = !w->nin, ok = true;
    const char *s = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
    if (s && !strcmp(s, "drop"))
        *status = GP_DROP;
    else if (source && lua_isboolean(L, -1))
        *status = lua_toboolean(L, -1) ? GP_OK : GP_END;
    else
        ok = lua_isnil(L, -1);
    if (!ok) {
        snprintf(w->lua.error, sizeof w->lua.error, "%s returned %s%.40s%s: it returns nothing, %s",
                 w->entry, s ? "'" : "a ", s ? s : luaL_typename(L, -1), s ? "'" : "",
                 source ? "\"drop\", or false to end" : "or \"drop\"");
        w->lua.line = 0;
    }
    lua_pop(L, 1);
    return ok;
}

/* How many rows an output has: what the script said; by default all of them,
 * but none of text that was not written. */
static int64_t rows_made(const gp_lua_view *y)
{
    bool silent = !y->sized && !y->wrote && gp_lua_is_text(&y->type);
    return silent ? 0 : y->type.dim[0];
}

/* What is not written would be what an earlier frame left in the slot. */
static bool all_written(struct worker *w, gp_lua_view **y)
{
    int i = 0;
    while (i < w->nout && (y[i]->wrote || !rows_made(y[i])))
        i++;
    if (i == w->nout)
        return true;
    snprintf(w->lua.error, sizeof w->lua.error, "%s() did not write its output '%s': write it, return "
             "\"drop\", %sor say 'zero: true' at the stage", w->entry, y[i]->name,
             w->nin ? "" : "return false to end, ");
    w->lua.line = w->defined;
    return false;
}

static void do_frame(gp_call *c, struct worker *w, gp_frame *f)
{
    const struct opts *opts = c->opts;
    gp_lua *lua = &w->lua;
    lua_State *L = lua->L;

    w->turn = (w->turn + 1) % TURNS;
    lua->guard.now++;
    lua->guard.call = c;
    w->frame = f;
    gp_lua_view **x = &w->in[w->turn * w->nin], **y = &w->out[w->turn * w->nout];
    for (int i = 0; i < w->nin; i++)
        gp_lua_view_point(x[i], &f->in[i]);
    for (int i = 0; i < w->nout; i++)
        gp_lua_view_point(y[i], &f->out[i]);
    w->valid = w->nin ? f->in[0].type.dim[0] : f->out[0].type.dim[0];

    if (opts->stateless)
        gp_lua_reseed(lua, f->index);
    lua_rawgeti(L, LUA_REGISTRYINDEX, w->function);
    lua_rawgeti(L, LUA_REGISTRYINDEX, w->frame_ref[w->turn]);
    if (w->nin)
        lua_rawgeti(L, LUA_REGISTRYINDEX, w->x[w->turn]);
    if (w->nout)
        lua_rawgeti(L, LUA_REGISTRYINDEX, w->y[w->turn]);
    bool ok = gp_lua_call(lua, 1 + (w->nin > 0) + (w->nout > 0), 1) && read_status(w, &f->status);
    if (ok && f->status == GP_OK && !opts->zero)
        ok = all_written(w, y);
    for (int i = 0; i < w->nout; i++)
        f->out[i].type.dim[0] = rows_made(y[i]);
    if (!ok && lua->guard.cancelled) {
        f->status = GP_STOPPED;
    } else if (!ok) {
        char where[40];
        snprintf(where, sizeof where, ", frame %" PRIu64, f->index);
        f->status = GP_FAILED;
        report(w, c->errs, c->name, where);
    }
    w->frame = NULL;
    lua->guard.now++;
    lua->guard.call = NULL;
}

/* A run is handed over as a whole, so that it ends where the next frame would keep
 * those before it waiting: a source may wait for its data, a filter may be slow. */
static bool run(gp_call *c, gp_frame *frames, int n)
{
    struct state *s = c->state;
    struct worker *w = &s->w[c->worker];
    int64_t start = n > 1 ? gp_now_ns() : 0;
    for (int i = 0; i < n; i++) {
        if (i && (!w->nin || frames[i - 1].status == GP_FAILED || gp_now_ns() - start > RUN_NS)) {
            frames[i].status = GP_AGAIN;
            break;
        }
        gp_working_on(c, frames[i].index);
        do_frame(c, w, &frames[i]);
    }
    return true;
}

static bool finish(gp_call *c)
{
    struct state *s = c->state;
    for (int i = 0; i < s->n; i++)
        if (!call_with_stage(&s->w[i], s->w[i].finish))
            return report(&s->w[i], c->errs, c->name, ", finish");
    return true;
}

static void advise(gp_advice *a)
{
    const struct opts *o = a->opts;
    const char *slash = strrchr(o->script, '/');
    if (!a->nin)
        strcpy(a->text, "a source has one worker; leave to a stage behind it what need not be in it");
    else if (a->serial)
        snprintf(a->text, sizeof a->text, "if it keeps nothing from frame to frame, say stateless "
                 "= true in '%.60s', and then workers: 2; else divide it into two stages, or use a "
                 "kernel", slash ? slash + 1 : o->script);
    else
        strcpy(a->text, "a kernel, or LuaJIT, would do it in less time");
}

/* ---- the kind -------------------------------------------------------- */

static const gp_port in[] = {
    { "*", GP_ACCEPT_ANY, true, "any frames; none: the script is a source" }, { 0 }
};
static const gp_port out[] = {
    { "*", GP_ACCEPT_ANY, true, "like the first input unless declared; none: a sink" }, { 0 }
};

static const gp_opt options[] = {
    { GP_PATH(struct opts, script), .required = true,
      .help = "Lua file with process(frame, x, y), or produce(frame, y) for a source" },
    { GP_NODE(struct opts, params), .help = "map of values that the script finds in stage.params" },
    { 0 }
};

const gp_kind gp_kind_lua = {
    GP_KIND("lua"),
    .help = "a Lua script as source, filter or sink",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .max_run = MAX_RUN,
    .shape = shape, .open = open_stage, .close = close_stage, .run = run, .finish = finish,
    .advise = advise, .check = check,
};
