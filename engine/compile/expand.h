/* expand.h - what the parts of the pass that expands `include`, `repeat` and branches share:
 *
 *   expand.c        the pass; lists, branches, copies
 *   expand_file.c   files that are included, and variables
 *   expand_names.c  nodes, names of buffers, stages; inputs, once all outputs have names */
#pragma once

#include "compile/inside.h"
#include "compile/resolve.h"
#include "compile/wire.h"

enum { GP_X_DEEPEST = 16, GP_X_STAGES = 10000 };     /* files and branches in each other; stages that are made */

typedef struct gp_x_scope gp_x_scope;

/* A buffer as a scope knows it: by its name in the whole (of NULL), or by a name of another scope. */
typedef struct gp_x_alias { const char *local; const gp_x_scope *of; const char *name; } gp_x_alias;

/* The stages of one list, with the names that mean something there. */
struct gp_x_scope {
    gp_inside in;              /* of the nodes */
    const gp_x_scope *outer;        /* NULL: the pipeline itself */
    gp_table index; gp_x_alias *buffer; int n, cap;
    gp_table out;              /* outputs that are named outside -> that name */
};

/* What the stage before makes, for one that says no `in`. flat: it stands before it in the list of all, too. */
typedef struct gp_x_before { const char *who; gp_x_alias *out; int n; bool flat; } gp_x_before;

/* Names that wait for all outputs: those of `in`, or of one key of a buffer; map NULL: `key`, which an include gives a
 * file as an input. */
typedef struct gp_x_later {
    gp_node *map;
    const char *key;
    const gp_x_scope *s;
    const gp_kind *kind;
    gp_loc at;
} gp_x_later;

typedef struct gp_x {
    gp_arena *a;
    gp_spec *spec;
    const gp_registry *registry;
    const gp_env *env;
    gp_probe *probe;
    gp_errs *errs, ignored;
    gp_node *vars, *buffers, *stages;          /* of the whole */
    int caps[3];
    gp_table files;            /* what was read of each */
    gp_table *var_index;       /* of vars */
    gp_table made;             /* names in the whole of buffers that stages make, and constants */
    gp_x_later *later; int nlater, later_cap;
    int nodes, depth;
    bool full;                 /* that there are too many stages was said */
} gp_x;

#define SAY(x, at, ...) gp_fail((x)->errs, GP_E_SPEC, (at), __VA_ARGS__)

/* expand_names.c */
gp_node *gp_x_new_node(gp_x *x, gp_node_kind kind, const char *text, gp_loc at);
void gp_x_put(gp_x *x, gp_node *map, int *cap, gp_node *key, gp_node *item);
void gp_x_set_key(gp_x *x, gp_node *map, const char *key, gp_node *value);
gp_node *gp_x_copy(gp_x *x, const gp_node *from, const gp_x_scope *s);
const char *gp_x_join(gp_x *x, const char *prefix, const char *name);
const char *gp_x_text_of(gp_x *x, const gp_node *n);
bool gp_x_check_name(gp_x *x, const char *what, const char *name, gp_loc at);
bool gp_x_check_keys(gp_x *x, const gp_node *map, const gp_opt *rows, const char *what, const char *file);
gp_x_scope *gp_x_new_scope(gp_x *x, const gp_x_scope *outer, const char *prefix, const char *file, gp_loc at);
void gp_x_add_buffer(gp_x *x, gp_x_scope *s, const char *local, const gp_x_scope *of, const char *name);
const char *gp_x_lookup(gp_x *x, const gp_x_scope *s, const char *name);
const char *gp_x_name_in_whole(gp_x *x, const gp_x_scope *s, const char *local);
void gp_x_add_var(gp_x *x, gp_x_scope *s, const char *mark, const gp_node *key, gp_node *value);
void gp_x_put_var(gp_x *x, gp_node *key, gp_node *value);
void gp_x_check_later(gp_x *x, const gp_x_scope *s, const char *name, gp_loc at);
void gp_x_add_buffers(gp_x *x, gp_x_scope *s, const gp_node *map);
void gp_x_add_stage(gp_x *x, gp_x_scope *to, const gp_x_scope *s, const gp_node *said, const char *name,
                    gp_x_before *b);
void gp_x_find_inputs(gp_x *x, const gp_x_later *l);

/* expand_file.c */
void gp_x_add_file(gp_x *x, gp_x_scope *to, const gp_x_scope *s, const gp_node *said, const char *name, gp_x_before *b);
const gp_node *gp_x_port_at(const gp_node *ports, int i, const gp_node **decl);
bool gp_x_check_ports(gp_x *x, const gp_node *ports, const char *key);
void gp_x_read_own_vars(gp_x *x, const gp_node *map);

/* expand.c */
void gp_x_add_list(gp_x *x, gp_x_scope *s, const gp_node *list, gp_x_before *b);
