/* view.h - frames as Lua sees them: bounds-checked views of slots, no copy.
 *
 * A view has the methods of view.c (elements, shape, slices), ops.c (bulk operations)
 * and bytes.c (text and packed records). Its invariant: nothing outside data[0 .. count)
 * is ever touched, and nothing at all once the call it was made for is over. Arrays and
 * parts of views are userdata; the views of ports are C's, and a script gets handles to
 * them (handle.c). One thread: the worker that owns the state.
 *
 * Under LuaJIT loops over elements are compiled: gpipe.elements.lua reads and writes
 * what can be told to be right from the part of a view that it knows, and leaves
 * all else, each error among it, to the functions of view.c. */
#pragma once

#include "compat.h"
#include "gpipe/stage.h"

typedef struct gp_lua_view gp_lua_view;

/* All views of one worker share this. `now` changes when a call begins and
 * when it ends; a view is alive while its `born` equals it. */
typedef struct gp_lua_guard {
    uint64_t now;
    int budget;                /* accesses until the next look at gp_cancelled */
    const gp_call *call;       /* the call that runs, or NULL */
    bool cancelled;            /* it was interrupted because the run is cancelled */

    gp_frame *frame;           /* of that call */
    int64_t valid;             /* frame.valid */
    gp_lua_view *port;         /* the stage's inputs, then its outputs */
    int nin, nout;
    int handles;               /* LuaJIT: a reference to the ports' handles in this call */
} gp_lua_guard;

/* The part of a view that gpipe.elements.lua knows, in C and as the text it gets. How
 * many elements may be read, and written, without a further look, and how many of
 * them come after the first; 0 leaves it to view.c, as the first write of each view is,
 * which notes that it happened. */
#define GP_LUA_PART(X)                                                        \
    X(union {                                                                 \
        void *data;                                                           \
        unsigned char *u8;                                                    \
        signed char *i8;                                                      \
        unsigned short *u16;                                                  \
        short *i16;                                                           \
        unsigned *u32;                                                        \
        int *i32;                                                             \
        float *f32;                                                           \
        double *f64;                                                          \
    };                                                                        \
    const uint64_t *now;                                                      \
    int *budget;                                                              \
    uint64_t born;                                                            \
    int reads, writes;                                                        \
    unsigned long long more_reads, more_writes;)

#define GP_LUA_AS_IS(...) __VA_ARGS__

struct gp_lua_view {
    GP_LUA_PART(GP_LUA_AS_IS)  /* *now: the guard's, or of an array its own `born` */
    int64_t count;             /* elements, by type */
    gp_type type;              /* dim[0]: valid rows */
    gp_type most;              /* of an output: the largest that it can be */
    int64_t rows;              /* dim[0] at most */
    const char *name;          /* of the port; "array" */
    gp_lua_guard *guard;
    bool writable;
    bool wrote;                /* something was written; kept in the root */
    bool sized;                /* the script has set the number of rows */
    int64_t printed;           /* bytes, by print */
    gp_lua_view *root;         /* of a slice: the whole view; else itself */
};

/* May this hold text? Then it has no rows unless something is written. */
static inline bool gp_lua_is_text(const gp_type *t)
{
    return t->dtype == GP_U8 && t->ndim == 1;
}

/* Sets the metatables up, once per state; `gpipe.core` becomes a module. */
void gp_lua_views_open(lua_State *L, gp_lua_guard *guard);
/* Makes an empty view, of C's; point it at a slot for each call. `name` is borrowed. */
void gp_lua_view_init(gp_lua_view *v, gp_lua_guard *guard, const char *name, bool writable);
void gp_lua_view_point(gp_lua_view *v, const gp_view *slot);
/* Says that the slot holds n rows; n is within 0 .. rows. */
void gp_lua_view_resize(gp_lua_view *v, int64_t n);
/* Says how large the frame is, by the list at `idx`; at most as v->most. Raises an error when it is none. */
void gp_lua_view_reshape(lua_State *L, gp_lua_view *v, int idx);

/* For methods: argument `arg` as a living view, or a Lua error. The second is
 * for writing: the view must be an output or an array. */
gp_lua_view *gp_lua_view_arg(lua_State *L, int arg);
gp_lua_view *gp_lua_view_out(lua_State *L, int arg);
/* Argument `arg` as a whole number within lo .. hi, `def` when absent. */
int64_t gp_lua_arg_int(lua_State *L, int arg, int64_t def, int64_t lo, int64_t hi,
                       const char *what);

/* Element i (from 0): pushes it (c64: two numbers), returns how many; stores
 * the value at `idx` (c64: and idx + 1), an error when it does not fit. */
int gp_lua_push_element(lua_State *L, const gp_lua_view *v, int64_t i);
void gp_lua_set_element(lua_State *L, gp_lua_view *v, int64_t i, int idx);

extern const luaL_Reg gp_lua_ops[], gp_lua_bytes[];   /* ops.c, bytes.c */

/* For handle.c: v[key] and v[key] = value, with these at indices 2 and 3; upvalue 1 has the
 * methods. #v and tostring(v). */
int gp_lua_view_get(lua_State *L, gp_lua_view *v);
int gp_lua_view_put(lua_State *L, gp_lua_view *v);
int gp_lua_view_len(lua_State *L, gp_lua_view *v);
int gp_lua_view_text(lua_State *L, const gp_lua_view *v);
/* Pushes the table of the methods. */
void gp_lua_view_methods(lua_State *L);
_Noreturn void gp_lua_view_stale(lua_State *L, const gp_lua_view *v);
#if LUA_VERSION_NUM < 503
/* Pushes function `name` of gpipe.elements. */
void gp_lua_elements(lua_State *L, const char *name);
/* Does it know elements of that type? */
bool gp_lua_is_compiled(gp_dtype t);
#endif

/* handle.c: what a call of a script gets. Makes the metatable, for gp_lua_views_open. */
void gp_lua_handles_open(lua_State *L);
/* Makes the ports' views, which gp_lua_close frees; names are borrowed. False: no memory. */
bool gp_lua_ports_open(gp_lua_guard *guard, const char *const *in_name, int nin,
                       const char *const *out_name, const gp_type *out, int nout);
/* For LuaJIT, protected, once: the ports have these types. */
void gp_lua_ports_compile(lua_State *L, gp_lua_guard *guard, const gp_type *in, const gp_type *out);
/* A call with frame `f` begins; pushes handles to it, to its inputs and to its outputs, and
 * returns how many. All of them are good until gp_lua_end. */
int gp_lua_begin(lua_State *L, gp_lua_guard *guard, const gp_call *call, gp_frame *f);
void gp_lua_end(gp_lua_guard *guard);
/* The view of a port whose handle stands at `arg`, NULL: that is something else. A Lua error
 * when its call is over. */
gp_lua_view *gp_lua_port(lua_State *L, int arg);
