/* call.c - has a worker of a stage `lua` do frames.
 *
 * A call gets handles (lua/handle.c), so that one which a script keeps is noticed, and a frame
 * makes no garbage. Invariant: what a script without state computes does not depend on the
 * worker, so its math.random starts from the frame number. */
#include <inttypes.h>
#include <string.h>
#include "worker.h"

/* Reads what process() or produce() returned, on top of the stack. */
static bool read_status(struct gp_lua_worker *w, gp_status *status)
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

/* Elements that are not written would be those that an earlier frame left in the slot. */
static bool all_written(struct gp_lua_worker *w, const gp_lua_view *y)
{
    int i = 0;
    while (i < w->nout && (y[i].wrote || !rows_made(&y[i])))
        i++;
    if (i == w->nout)
        return true;
    snprintf(w->lua.error, sizeof w->lua.error, "%s() did not write its output '%s': write it, return "
             "\"drop\", %sor say 'zero: true' at the stage", w->entry, y[i].name,
             w->nin ? "" : "return false to end, ");
    w->lua.line = w->defined;
    return false;
}

static void do_frame(gp_call *c, struct gp_lua_worker *w, gp_frame *f)
{
    const struct gp_lua_opts *opts = c->opts;
    gp_lua *lua = &w->lua;
    lua_State *L = lua->L;

    const gp_lua_view *y = lua->guard.port + w->nin;

    if (opts->stateless)
        gp_lua_reseed(lua, f->index);
    lua_rawgeti(L, LUA_REGISTRYINDEX, w->function);
    int given = gp_lua_begin(L, &lua->guard, c, f);
    bool ok = gp_lua_call(lua, given, 1) && read_status(w, &f->status);
    if (ok && f->status == GP_OK && !opts->zero)
        ok = all_written(w, y);
    for (int i = 0; i < w->nout; i++) {
        f->out[i].type = y[i].type;
        f->out[i].type.dim[0] = rows_made(&y[i]);
    }
    if (!ok && lua->guard.cancelled) {
        f->status = GP_STOPPED;
    } else if (!ok) {
        char where[40];
        snprintf(where, sizeof where, ", frame %" PRIu64, f->index);
        f->status = GP_FAILED;
        gp_lua_report(w, c->errs, GP_E_RUN, ((struct gp_lua_stage *)c->state)->who, where);
    }
    gp_lua_end(&lua->guard);
}

/* One frame a call: it is handed on before the script, which may wait for anything, begins with the next. */
bool gp_lua_stage_run(gp_call *c, gp_frame *f, int n)
{
    struct gp_lua_stage *s = c->state;
    do_frame(c, &s->w[c->worker], f);
    return true;
}

/* Once for each worker, whose Lua state is asked no more than that. */
static bool finish(struct gp_lua_worker *w, const char *why)
{
    int function = w->finish;
    w->finish = LUA_REFNIL;
    return !w->stage_ref || gp_lua_call_with_stage(w, function, why);
}

bool gp_lua_stage_finish(gp_call *c)
{
    struct gp_lua_stage *s = c->state;
    for (int i = 0; i < s->n; i++)
        if (!finish(&s->w[i], NULL))
            return gp_lua_report(&s->w[i], c->errs, GP_E_RUN, s->who, ", finish");
    return true;
}

void gp_lua_stage_break_off(void *state, const char *why, gp_errs *errs)
{
    struct gp_lua_stage *s = state;
    for (int i = 0; i < s->n; i++)
        if (!finish(&s->w[i], why))
            gp_lua_report(&s->w[i], errs, GP_E_WARN, s->who, ", finish");
}
