/* worker.h - a worker of the stage `lua`: a Lua state of its own. For lua.c, which knows the script
 * before a run, open.c, which makes workers, and call.c, which has them do frames. */
#pragma once

#include "gpipe/stage.h"
#include "state.h"

struct gp_lua_opts {
    const char *script;
    const gp_node *params;

    /* found by check(); the last two by shape() */
    const char *text;              /* of the script */
    size_t len;
    const gp_node *values;         /* params, with ${} replaced; NULL: none */
    bool stateless, zero;
    const gp_type *out;            /* of whole frames */
};

struct gp_lua_worker {
    gp_lua lua;
    int nin, nout;
    int function, init, finish;    /* references; LUA_REFNIL: no such function */
    int stage_ref;
    const char *entry;             /* "process" or "produce" */
    int defined;                   /* its line in the script, 0: not there */
};

struct gp_lua_stage {
    char who[128];
    int n;
    struct gp_lua_worker w[];
};

/* open.c */
bool gp_lua_stage_open(const gp_open *o, void **state);
void gp_lua_stage_close(void *state);
/* Calls init() or finish() with the stage table and `why` (NULL: nil), if the script has it. */
bool gp_lua_call_with_stage(struct gp_lua_worker *w, int function, const char *why);
/* Reports what the worker's Lua state says went wrong, `where`: "", ", frame 7". `code`: GP_E_RUN or GP_E_WARN. Always
 * false. */
bool gp_lua_report(const struct gp_lua_worker *w, gp_errs *errs, gp_code code, const char *who,
                   const char *where);

/* call.c */
bool gp_lua_stage_run(gp_call *c, gp_frame *frames, int n);
bool gp_lua_stage_finish(gp_call *c);
void gp_lua_stage_break_off(void *state, const char *why, gp_errs *errs);
