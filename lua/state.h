/* state.h - a Lua state for one worker of a stage.
 *
 * A state has the standard libraries, with these changes: print() and io.write()
 * go to stderr, because data alone goes to stdout; os.exit() is an error; require
 * finds the modules of lua/ that travel in the binary, then those beside the
 * script; math.random starts the same way in each run. One thread at a time. */
#pragma once

#include "view.h"

typedef struct gp_lua {
    lua_State *L;
    gp_lua_guard guard;
    const char *script;        /* path, borrowed */
    char chunk[256];           /* "=clean.lua": how Lua knows the script */
    uint64_t seed;
    int randomseed;            /* a reference */
    int line;                  /* of the last error, in the script; 0: elsewhere */
    char error[560];           /* what, and the traceback */
    bool full;                 /* that was: no memory */
} gp_lua;

/* Checks the syntax of a script's text, runs nothing. On an error, false, with
 * `error` and `line` set. */
bool gp_lua_syntax(gp_lua *w, const char *script, const char *text, size_t len);

/* Makes the state and runs the script, of that text. `seed` is what this stage's random
 * numbers start from. False: see `error`; close it all the same. */
bool gp_lua_open(gp_lua *w, const char *script, const char *text, size_t len, uint64_t seed);
void gp_lua_close(gp_lua *w);              /* accepts a zeroed one */

/* Calls the function below `nargs` arguments on top of the stack. After an error,
 * false, nothing is left there, `error` and `line` are set. */
bool gp_lua_call(gp_lua *w, int nargs, int nresults);
/* math.random starts anew from the stage's seed and n. */
void gp_lua_reseed(gp_lua *w, uint64_t n);

/* Pushes an option's value as Lua has it: text in quotes is a string; other text
 * is an integer, a float, true, false, or a string; lists and maps are tables. */
void gp_lua_push_node(lua_State *L, const gp_node *n);
/* Has Lua the number that such a text is, exactly where it is an integer? True of all else. */
bool gp_lua_has_scalar(const gp_node *n);
