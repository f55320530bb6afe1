/* state.c - Lua states for the workers of a stage; see state.h. */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/embed.h"
#include "state.h"

/* ---- errors ---------------------------------------------------------- */

/* Appends to w->error what fits; "..." stands for what does not. */
static void note(gp_lua *w, const char *fmt, const char *a, int line, const char *b)
{
    size_t used = strlen(w->error), room = sizeof w->error - used;
    if ((size_t)snprintf(w->error + used, room, fmt, a, line, b) >= room)
        strcpy(w->error + sizeof w->error - 4, "...");
}

/* Takes "clean.lua:12: " off the front: the place is kept apart. */
static const char *without_place(const char *msg, const char *source, int line)
{
    char place[300];
    int n = snprintf(place, sizeof place, "%s:%d: ", source, line);
    return strncmp(msg, place, (size_t)n) ? msg : msg + n;
}

/* Where the message handler stands: at the bottom of the stack, for good. */
enum { HANDLER = 1 };

/* Levels that a traceback shows. Lua walks to each from the innermost, so that
 * all of an overflowed stack would take hours. */
enum { LEVELS = 20 };

/* The text of an error that was raised with the value at index 1; the address of a table
 * would help nobody. */
static const char *message(lua_State *L)
{
    int t = lua_type(L, 1);
    bool plain = t == LUA_TNIL || t == LUA_TBOOLEAN || t == LUA_TNUMBER || t == LUA_TSTRING;
    if (plain || luaL_getmetafield(L, 1, "__tostring"))
        return luaL_tolstring(L, 1, NULL);
    return lua_pushfstring(L, "a %s was given to error(): give it text, or a table with __tostring",
                           lua_typename(L, t));
}

/* Replaces the list of places where require() has looked. */
static void shorten(gp_lua *w)
{
    char *places = strstr(w->error, ":\n\tno field package.preload");
    if (places)
        snprintf(places, sizeof w->error - (size_t)(places - w->error),
                 "; a module is a file beside the script, in package.path, or 'gpipe'");
}

/* x[i][j]: Lua says that it cannot index a number, in words that depend on its version. */
static const char *explained(const char *msg)
{
    const char *at = strstr(msg, "attempt to index ");
    return at && strstr(at, "a number value") ? " (an element of a view, x[i], is a number; x:at(i, j) "
           "takes an index for each axis)" : "";
}

/* The words of Lua itself and of its library, whose errors are as any other. */
static bool says_full(const char *msg)
{
    static const char words[] = "not enough memory";
    size_t n = strlen(msg), k = sizeof words - 1;
    return n >= k && !strcmp(msg + n - k, words);
}

/* The message handler: message and traceback into w->error, the innermost line
 * of the script into w->line. C functions and other modules' lines are only in
 * the traceback. */
static int on_error(lua_State *L)
{
    gp_lua *w = lua_touserdata(L, lua_upvalueindex(1));
    const char *msg = message(L);
    lua_Debug ar;
    w->line = 0;
    for (int level = 0; level < LEVELS && !w->line && lua_getstack(L, level, &ar); level++)
        if (lua_getinfo(L, "Sl", &ar) && !strcmp(ar.source, w->chunk) && ar.currentline > 0)
            w->line = ar.currentline;
    snprintf(w->error, sizeof w->error, "%s%s", without_place(msg, w->chunk + 1, w->line),
             explained(msg));
    shorten(w);
    w->full = says_full(msg);
    for (int level = 0; level < LEVELS && lua_getstack(L, level, &ar); level++) {
        lua_getinfo(L, "Sln", &ar);
        if (ar.currentline <= 0)
            continue;
        char place[100];
        snprintf(place, sizeof place, "function <%s:%d>", ar.short_src, ar.linedefined);
        if (ar.name)
            snprintf(place, sizeof place, "function '%s'", ar.name);
        note(w, "\n  %s:%d: in %s", ar.short_src, ar.currentline,
             *ar.what == 'm' ? "the main chunk" : place);
    }
    return 0;
}

/* An error without the handler: syntax, or no memory. */
static bool plain_error(gp_lua *w)
{
    const char *msg = lua_tostring(w->L, -1);
    size_t n = strlen(w->chunk + 1);
    w->line = 0;
    if (msg && !strncmp(msg, w->chunk + 1, n) && msg[n] == ':') {
        char *end;
        w->line = (int)strtol(msg + n + 1, &end, 10);
        msg = end + strspn(end, ": ");
    }
    snprintf(w->error, sizeof w->error, "%s", msg ? msg : "not enough memory");
    w->full = says_full(w->error);
    lua_settop(w->L, HANDLER);
    return false;
}

bool gp_lua_call(gp_lua *w, int nargs, int nresults)
{
    w->error[0] = '\0', w->full = false;
    int rc = lua_pcall(w->L, nargs, nresults, HANDLER);
    if (rc && !w->error[0])
        plain_error(w);
    if (rc)
        lua_settop(w->L, HANDLER);
    return !rc;
}

/* ---- what differs from plain Lua -------------------------------------- */

/* print: one write, so that the lines of several workers do not mix. */
static int print_stderr(lua_State *L)
{
    luaL_Buffer b;
    int n = lua_gettop(L);
    luaL_buffinit(L, &b);
    for (int i = 1; i <= n; i++) {
        if (i > 1)
            luaL_addchar(&b, '\t');
        luaL_tolstring(L, i, NULL);
        luaL_addvalue(&b);
    }
    luaL_addchar(&b, '\n');
    luaL_pushresult(&b);
    size_t len;
    const char *s = lua_tolstring(L, -1, &len);
    fwrite(s, 1, len, stderr);
    return 0;
}

static int no_exit(lua_State *L)
{
    gp_lua_fail(L, "os.exit() would end the whole run: raise an error(), or return false from "
                "produce() to end a source");
}

/* The locale is the whole program's, and decides how all threads read and write numbers. */
static int no_setlocale(lua_State *L)
{
    if (!lua_isnoneornil(L, 1))
        gp_lua_fail(L, "os.setlocale() would change the numbers of the whole run: scripts have the locale 'C'");
    lua_pushliteral(L, "C");
    return 1;
}

/* Loads module lua/NAME.lua from the binary. Upvalue: its blob. */
static int open_embedded(lua_State *L)
{
    const gp_blob *b = lua_touserdata(L, lua_upvalueindex(1));
    lua_pushfstring(L, "=%s", b->name);
    if (luaL_loadbuffer(L, (const char *)b->data, (size_t)(b->end - b->data), lua_tostring(L, -1)))
        return lua_error(L);
    lua_call(L, 0, 1);
    return 1;
}

static void add_modules(lua_State *L, const char *script)
{
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "preload");
    for (const gp_blob *b = gp_blobs; b->name; b++) {
        size_t n = strlen(b->name);
        if (n < 9 || strncmp(b->name, "lua/", 4) || strcmp(b->name + n - 4, ".lua"))
            continue;
        lua_pushlstring(L, b->name + 4, n - 8);
        lua_pushlightuserdata(L, (void *)(uintptr_t)b);
        lua_pushcclosure(L, open_embedded, 1);
        lua_rawset(L, -3);
    }
    lua_pop(L, 1);
    const char *slash = strrchr(script, '/');
    lua_pushlstring(L, script, slash ? (size_t)(slash - script) : 0);
    const char *dir = slash ? lua_tostring(L, -1) : ".";
    lua_getfield(L, -2, "path");
    lua_pushfstring(L, "%s/?.lua;%s/?/init.lua;%s", dir, dir, lua_tostring(L, -1));
    lua_setfield(L, -4, "path");
    lua_pop(L, 3);
}

static void set_member(lua_State *L, const char *table, const char *key, lua_CFunction f)
{
    lua_getglobal(L, table);
    lua_pushcfunction(L, f);
    lua_setfield(L, -2, key);
    lua_pop(L, 1);
}

/* As Lua's, but for signals: system() has the whole process leave out SIGINT while the command runs. */
static int execute(lua_State *L)
{
    const char *command = luaL_optstring(L, 1, NULL);
    char sh[] = "sh", c[] = "-c", *const words[] = { sh, c, (char *)(uintptr_t)command, NULL };
    pid_t child;
    int status = 0;
    if (!command) {
        lua_pushboolean(L, true);
        return 1;
    }
    int e = posix_spawn(&child, "/bin/sh", NULL, NULL, words, environ);
    while (!e && waitpid(child, &status, 0) < 0)
        e = errno == EINTR ? 0 : errno;
    errno = e;
    return luaL_execresult(L, e ? -1 : status);
}

/* Runs protected; argument: the gp_lua. Returns the message handler. */
static int set_up(lua_State *L)
{
    gp_lua *w = lua_touserdata(L, 1);
    luaL_openlibs(L);
    add_modules(L, w->script);
    gp_lua_views_open(L, &w->guard);
    lua_pushcfunction(L, print_stderr);
    lua_setglobal(L, "print");
    set_member(L, "os", "exit", no_exit);
    set_member(L, "os", "execute", execute);
    set_member(L, "os", "setlocale", no_setlocale);
    if (luaL_dostring(L, "io.output(io.stderr)"))
        return lua_error(L);
    lua_getglobal(L, "math");
    lua_getfield(L, -1, "randomseed");
    w->randomseed = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushlightuserdata(L, w);
    lua_pushcclosure(L, on_error, 1);
    return 1;
}

void gp_lua_reseed(gp_lua *w, uint64_t n)
{
    uint64_t seed = w->seed + n;
    lua_rawgeti(w->L, LUA_REGISTRYINDEX, w->randomseed);
#if LUA_VERSION_NUM >= 503
    lua_pushinteger(w->L, (lua_Integer)seed);
#else
    lua_pushnumber(w->L, (double)(seed & ((UINT64_C(1) << 52) - 1)));
#endif
    lua_call(w->L, 1, 0);                  /* cannot fail for a number */
}

/* ---- open, close ------------------------------------------------------ */

static bool new_state(gp_lua *w, const char *script)
{
    const char *slash = strrchr(script, '/');
    w->script = script;
    snprintf(w->chunk, sizeof w->chunk, "=%.58s", slash ? slash + 1 : script);
    w->L = luaL_newstate();
    w->full = !w->L;
    if (!w->L)
        snprintf(w->error, sizeof w->error, "not enough memory");
    return w->L != NULL;
}

static bool load(gp_lua *w, const char *text, size_t len)
{
    if (len && *text == '#') {             /* "#!/usr/bin/lua": not Lua */
        const char *nl = memchr(text, '\n', len);
        const char *rest = nl ? nl : text + len;
        len -= (size_t)(rest - text), text = rest;
    }
    if (len && *text == LUA_SIGNATURE[0]) {
        snprintf(w->error, sizeof w->error, "this is compiled Lua: give the source");
        return false;
    }
    return !luaL_loadbuffer(w->L, text, len, w->chunk) || plain_error(w);
}

bool gp_lua_syntax(gp_lua *w, const char *script, const char *text, size_t len)
{
    return new_state(w, script) && load(w, text, len);
}

bool gp_lua_open(gp_lua *w, const char *script, const char *text, size_t len, uint64_t seed)
{
    if (!new_state(w, script))
        return false;
    w->seed = seed;
    lua_pushcfunction(w->L, set_up);
    lua_pushlightuserdata(w->L, w);
    if (lua_pcall(w->L, 1, 1, 0))
        return plain_error(w);
    if (!load(w, text, len))
        return false;
    gp_lua_reseed(w, 0);
    return gp_lua_call(w, 0, 0);
}

void gp_lua_close(gp_lua *w)
{
    if (w->L)
        lua_close(w->L);
    free(w->guard.port);
    w->L = NULL, w->guard.port = NULL;
}

/* ---- params ----------------------------------------------------------- */

static void push_scalar(lua_State *L, const gp_node *n)
{
    char *end;
    errno = 0;
    if (n->quoted || !n->len || strspn(n->text, "+-.0123456789") == 0) {
        if (!n->quoted && (!strcmp(n->text, "true") || !strcmp(n->text, "false")))
            lua_pushboolean(L, n->text[0] == 't');
        else
            lua_pushlstring(L, n->text, n->len);
        return;
    }
    long long i = strtoll(n->text, &end, 10);
    if (!*end && !errno) {
        gp_lua_pushint(L, i);
        return;
    }
    if (!*end) {                               /* beyond i64 */
        errno = 0;
        unsigned long long u = strtoull(n->text, NULL, 10);
        if (errno || i < 0)
            gp_lua_fail(L, "%s does not fit in 64 bits", n->text);
        gp_lua_pushuint(L, u);
        return;
    }
    double d = strtod(n->text, &end);
    if (!*end)
        lua_pushnumber(L, d);
    else
        lua_pushlstring(L, n->text, n->len);
}

void gp_lua_push_node(lua_State *L, const gp_node *n)
{
    luaL_checkstack(L, 4, "params are nested too deeply");
    if (n->kind == GP_SCALAR) {
        push_scalar(L, n);
        return;
    }
    lua_createtable(L, n->kind == GP_LIST ? n->n : 0, n->kind == GP_MAP ? n->n : 0);
    for (int i = 0; i < n->n; i++) {
        gp_lua_push_node(L, n->item[i]);
        if (n->kind == GP_LIST)
            lua_rawseti(L, -2, i + 1);
        else
            lua_setfield(L, -2, n->key[i]->text);
    }
}
