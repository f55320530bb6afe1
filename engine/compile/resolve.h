/* resolve.h - what the parts of the resolve pass share: names, readers of
 * values, and the graph while it is being made.
 *
 *   resolve.c  the pass: vars, top-level keys, the result
 *   wire.c     who makes and who reads each buffer: with buffers.c, `buffers:`, and ports.c, `in` and `out`
 *   order.c    stages in topological order
 *   carry.c    buffers that carry, and the cycles that they close
 *   loop.c     the body of a stage `loop`, which is resolved as a pipeline is
 *   window.c   stages that the key `window` makes
 *   devices.c  the devices that it uses, and the stages that run on one of them only
 *   priority.c whose work comes first
 *   infer.c    types: calls shape() in order
 *   shape.c    what shape() may call back, at compile time and at run time
 *   metadata.c names of numbers that travel with frames, and which buffers have them from which
 *   shard.c    whose frames are shared out among ranks
 *   fuse.c     neighbors that compute element by element become one stage
 *   rates.c    how often each stage fires, for stages that regroup frames
 *   files.c    no stage writes a file that one reads
 *   options.c  one value of the YAML -> one value in C
 *   hints.c    what an unknown key or a wrong value was meant to be
 *   text.c     ${} in texts
 *
 * Every part reports all errors it finds and goes on; what depends on
 * something that failed is marked `broken` or left not `known`, and then
 * causes no errors of its own. */
#pragma once

#include "compile/ir.h"
#include "compile/keys.h"
#include "base/table.h"

/* A mistake in the file, at a place of it; false. */
#define AT(r, at, ...) gp_fail((r)->errs, GP_E_SPEC, (at), __VA_ARGS__)

/* ---- names ----------------------------------------------------------- */

enum { GP_VARS_DEEPEST = 64 };
#define GP_BYTES_MAX ((int64_t)1 << 40)        /* of one frame */

/* Letters, digits and _, not beginning with a digit; names of stages and
 * buffers may have - as well. */
bool gp_is_name(const char *s);
bool gp_is_label(const char *s);
/* `name`, `use`, `in`, ...: keys that all stages have. */
bool gp_is_stage_key(const char *s);
/* A scalar without a value: empty, null or ~. */
bool gp_is_null(const gp_node *n);

/* ---- vars ------------------------------------------------------------ */

typedef struct gp_var {
    const char *name;
    const gp_node *node;
    bool unset;                /* null: must be set */
    bool number;               /* its text is an expression, worth `num` */
    bool deep;                 /* not a number because too many others lie between */
    const char *why;           /* an expression that has no value: why; else NULL */
    const struct gp_var *of;   /* the var because of which it has none, if that is unset or has a `why` */
    enum { GP_VAR_NEW, GP_VAR_BUSY, GP_VAR_DONE } state;
    gp_num num;
} gp_var;

typedef struct gp_vars {
    gp_table index;
    gp_var *v;
    int n;
    const gp_node *map;        /* NULL without vars */
} gp_vars;

/* The var that a node in there (NULL: of the pipeline itself) calls so; NULL: there is none. */
const gp_var *gp_var_find(const gp_vars *vars, const gp_inside *, const char *name);
/* resolve.c: the values of vars. */
void gp_vars_read(gp_arena *a, const gp_env *env, const gp_node *map, gp_vars *vars, gp_errs *errs);

/* ---- readers --------------------------------------------------------- */

typedef struct gp_reader {
    gp_arena *arena;
    gp_errs *errs;
    const gp_vars *vars;
    const gp_env *env;
    const char *dir;           /* relative paths start here */
    const char *key, *stage;   /* what is being read, for messages; stage NULL:
                                  the key does not belong to a stage */
    const char *standard;      /* what to write in place of a path '-': of a source, or of a sink of files; else NULL */
} gp_reader;

/* Each adds an error and returns false (NULL, -1) when the node does not hold
 * such a value. */
bool gp_read_num(gp_reader *r, const gp_node *n, gp_num *out);
bool gp_read_int(gp_reader *r, const gp_node *n, int64_t min, int64_t max, int64_t *out);
bool gp_read_bool(gp_reader *r, const gp_node *n, bool *out);
bool gp_read_time(gp_reader *r, const gp_node *n, int64_t *ns);
const char *gp_read_text(gp_reader *r, const gp_node *n);
const char *gp_read_path(gp_reader *r, const gp_node *n);
int gp_read_word(gp_reader *r, const gp_node *n, const char *choices);   /* "a|b|c" */
int gp_word_index(const char *s, const char *choices);                   /* NULL: there are none */
gp_dtype gp_read_dtype(gp_reader *r, const gp_node *n);

/* text.c: the i-th var that is gpipe's own, and its name. `env` may be NULL. */
enum { GP_OWN_VARS = 3 };
int64_t gp_own_var(const gp_env *env, int i, const char **name);
/* text.c: replaces ${x}, ${x:-default}, ${env:NAME}, ${date:FORMAT} and $$ in a scalar's text. `vars`
 * is the map under `vars:` (values are scalars). An unknown name is an error that
 * points at it. `env` may be NULL. */
bool gp_interpolate(gp_arena *a, const gp_node *n, const gp_node *vars, const gp_env *env,
                    const char **out, gp_errs *errs);

/* Is it required, and neither it nor what may stand in its place in the stage? */
bool gp_option_is_due(const gp_opt *o, const gp_node *stage);
const gp_opt *gp_option_find(const gp_kind *kind, const char *name);     /* NULL: it has none of that name */
size_t gp_opt_size(gp_opt_type t);             /* bytes of the field; 0: no such type */
bool gp_opt_read(gp_reader *r, const gp_opt *o, const gp_node *n, void *field);
bool gp_opt_default(gp_reader *r, const gp_opt *o, void *field);
/* All options of a stage. `map` may have other keys too. When one is `misspelt`
 * it may be the one that is missing, so that a missing option is not reported. */
bool gp_options_read(gp_reader *r, const gp_kind *kind, const gp_node *map, gp_loc at,
                     bool misspelt, void *opts);

/* ---- what was hardly meant: hints.c ---- */

/* What to say behind "no option": of key `i` of a stage, which is none. */
const char *gp_option_hint(gp_arena *a, const gp_kind *kind, const gp_node *stage, int i);
/* "use: gray", where `key`, whose value is `item` (NULL: it is no key), begins with `name` and then lacks its ': ';
 * else NULL. */
const char *gp_lacks_colon(gp_arena *a, const gp_node *key, const gp_node *item, const char *name);
/* Is the value of an option that takes numbers a file's name? An error, then. */
bool gp_option_is_file(gp_reader *r, const gp_kind *kind, const gp_opt *o, const gp_node *n);

/* `text` relative to the YAML's folder, as of a GP_OPT_PATH. */
const char *gp_path_from(gp_arena *a, const char *dir, const char *text);

/* The scope of an expression: vars, and ports where there are any. `bad` is
 * the last var that was asked for and is not a number. */
typedef struct gp_lookup {
    const gp_vars *vars;
    const gp_inside *inside;   /* of the node */
    const gp_var *bad;
    int nin, nout;
    const char *const *in_name, *const *out_name;
    const gp_type *in, *out;
} gp_lookup;

/* gp_eval over vars and ports, with the errors about vars that fit. */
bool gp_eval_with(gp_lookup *l, const gp_node *n, gp_num *out, gp_errs *errs);
/* shape[k] of a type, or its size in elements for k == -1. */
bool gp_type_part(const gp_type *t, int k, gp_num *out);

/* ---- the graph in the making ----------------------------------------- */

typedef struct gp_rbuf {
    gp_buffer b;
    const gp_node *node;       /* its declaration, or NULL */
    int like;                  /* the buffer that gives what b.said leaves open, or -1 */
    bool konst, known;         /* known: b.type is complete */
    bool broken;               /* its declaration is wrong */
    int readers;
    const char *carry;         /* the buffer that it carries, or NULL; */
    int init;                  /* then: its first frame, a constant */
    int carrier;               /* the last of the stages that carry it and close a cycle, plus 1, or 0 */
    const char *said_by;       /* the buffer that carries it, where b.said is by that one's type */
    int newest;                /* of a state: the buffer that it is behind the last stage that changes it, or itself */
    int older;                 /* ... of that one, and those before: the one before it */
} gp_rbuf;

typedef struct gp_rstage {
    gp_stage s;
    const gp_node *node;
    bool outs_broken;          /* some of its outputs are wrong */
    bool broken;               /* not to be shaped: unknown kind, no input, bad options */
    bool misspelt;             /* has keys that it should not have */
    int sort;                  /* its index in the graph */
    int next_carrier;          /* as gp_rbuf.carrier: another that carries the same */
} gp_rstage;

typedef struct gp_resolving gp_resolving;

/* A loop's body, while it is resolved: */
typedef struct gp_body {
    const gp_resolving *outside;       /* the pipeline that it is a part of, */
    const gp_rstage *stage;            /* its stage there, */
    const struct gp_loop_opts *opts;
    const gp_type *in;                 /* the types of its inputs */
    int *carries;              /* per buffer, see loop.h */
    int *out;                  /* per output of the loop: the buffer, or -1 */
    int flag;
    int64_t every;
} gp_body;

struct gp_resolving {
    gp_arena *arena;
    gp_errs *errs;
    const gp_spec *spec;
    const gp_registry *registry;
    gp_probe *probe;
    const gp_machine *machine; /* which runs it; see gp_shape_gpu() */
    gp_reader read;
    gp_vars vars;
    gp_graph *graph;
    gp_table buffer_index;
    gp_table written;          /* paths -> stages, see gp_shape_writes */
    gp_table windows;          /* names -> stages, see window.c */
    gp_rbuf *buffer; int nbuffers, buffers_cap;
    gp_rstage *stage; int nstages;         /* as in the file; from ngiven on those of carried buffers, then windows */
    int ngiven;
    int *order;                /* stages in topological order */
    bool reported;             /* a cycle that a state is a part of; there may be many such */
    gp_body *body;             /* NULL: it is a whole pipeline */
};

/* What a call of shape() belongs to: gp_shape.ctx. */
typedef struct gp_shape_ctx {
    gp_resolving *r;           /* NULL at run time */
    const gp_rstage *rs;       /* likewise */
    const gp_graph *g;         /* only at run time */
    const gp_stage *stage;
    const gp_vars *vars;
    gp_errs *errs;
} gp_shape_ctx;

/* resolve.c: a loop's body, r->body, whose tables are empty yet; fills r->graph. False after errors. */
bool gp_resolve_body(gp_resolving *r, const gp_node *buffers, const gp_node *stages);

/* wire.c: fills buffer[] and stage[] from `buffers:` and `stages:`. */
void gp_wire(gp_resolving *r, const gp_node *buffers, const gp_node *stages);
/* buffers.c: what {dtype, shape} asks for, of which an axis may be `any`, where `is` is something else; else NULL. */
const char *gp_type_expected(gp_resolving *r, const gp_node *decl, const gp_type *is);
/* shape.c: finds the sizes in b.said that are expressions of the shapes `in` of the inputs of its maker. */
bool gp_buffer_type_declared(gp_resolving *r, const gp_rstage *st, const gp_type *in, gp_rbuf *b);
/* Fills in what b.said leaves open from `t` and `varies`, of the buffer it is like. */
void gp_buffer_type_like(gp_rbuf *b, const gp_type *t, unsigned varies);
static inline bool gp_is_complete(const gp_type *t)
{
    bool complete = t->dtype && t->ndim;
    for (int k = 0; k < t->ndim; k++)
        complete &= t->dim[k] != 0;    /* it is an expression, see gp_buffer.dim */
    return complete;
}
/* buffers.c: a buffer, and one that nobody finds by its name; they move buffer[]. */
gp_rbuf *gp_add_buffer(gp_resolving *r, const char *name, gp_loc at);
gp_rbuf *gp_push_buffer(gp_resolving *r, const char *name, gp_loc at);
/* loop.c, while a body is wired: adds what comes from outside, before all other buffers; refuses stages that no loop
 * can have and, unless there are more than `failed` errors, finds what goes outside, is carried or ends the loop; the
 * error that a name is that of a buffer outside. */
void gp_loop_give(gp_resolving *r);
void gp_loop_ends(gp_resolving *r, int failed);
void gp_loop_outside(gp_resolving *r, const char *name, gp_loc at);
/* carry.c, in the order in which resolve calls these: what a buffer says; which carry stages close cycles; of stages in
 * order, which are on a cycle; the type of a carried buffer; what is wrong once all types are known, and once the
 * sources of each stage are. */
extern const gp_kind gp_kind_carry;
void gp_carry_read(gp_resolving *r, int buffer);
void gp_carry_mark(gp_resolving *r);
void gp_carry_cycles(gp_resolving *r);
void gp_carry_infer(gp_resolving *r, gp_rstage *st);
void gp_carry_check(gp_resolving *r);
bool gp_carry_sources(gp_arena *a, const gp_graph *g, gp_errs *errs);
/* Of a buffer with `init`: the constant that this says. */
void gp_carry_read_init(gp_resolving *r, int buffer);
/* state.c, likewise: what a buffer says; the buffers that a state is once a stage has changed it by way of a port, and
 * for a stage that reads it; the order in which stages use it, once all are wired; the error that their cycle is not in
 * one segment; and, once types are known, whether a stage may do with a state what it does. */
void gp_state_read(gp_resolving *r, int buffer);
int gp_state_changed(gp_resolving *r, int state, const gp_rstage *by, int port);
int gp_state_before(const gp_resolving *r, int state, const gp_rstage *st);
void gp_state_wire(gp_resolving *r, int failed);       /* errors before wiring */
void gp_state_claim(gp_resolving *r, const gp_rstage *carry);  /* its file, which nobody else may write */
void gp_state_leaves(gp_resolving *r, gp_rstage *carry);
void gp_state_check(gp_resolving *r, const gp_rstage *st);
static inline bool gp_is_state(const gp_rbuf *b)
{
    return b->node && gp_node_get(b->node, "state");
}
/* window.c: how many stages the keys `window` and `when_full` make at most; makes those of `window` of `st`, whose inputs
 * are wired. */
int gp_most_before(const gp_node *stages);
void gp_window_wire(gp_resolving *r, gp_rstage *st);
/* A stage that no file has, with one worker, which reads `buffer` and makes a buffer of its own name. */
void gp_stage_before(gp_resolving *r, const gp_kind *of, const char *name, gp_loc at, int buffer);
/* leaky.c: the same for the key `when_full`; and what cannot be behind it. */
void gp_leaky_wire(gp_resolving *r, gp_rstage *st);
bool gp_leaky_check(const gp_graph *g, gp_errs *errs);
/* order.c: fills order[]; cycles are errors. */
void gp_order(gp_resolving *r);
/* infer.c: types, rates and what shape() says, for stages in order; what one call of it said. */
void gp_infer(gp_resolving *r);

/* constants.c: a constant's elements from a list, with the dtype that is declared, else f32; what files hold. */
bool gp_read_const_list(gp_resolving *r, gp_rbuf *b, const gp_node *list);
void gp_look_into_constants(gp_resolving *r);
/* Can elements of this type be that number? f32 and f64 by rounding. */
void gp_take_shape(gp_stage *st, const gp_shape *s);
/* shape.c: fills in what a shape() of this stage is given, beside types. */
void gp_shape_begin(gp_shape *s, gp_shape_ctx *c);
/* shape.c: calls shape(), and check() if the kind has it. False after errors. */
bool gp_shape_call(gp_resolving *r, const gp_rstage *st, gp_shape *s);
bool gp_shape_check(gp_resolving *r, const gp_rstage *st);
bool gp_shape_on_device(gp_resolving *r, const gp_rstage *st);
/* shape.c: a stage on the host that reads what this one makes; NULL: there is none. */
const char *gp_host_reader(const gp_resolving *r, const gp_stage *of);
/* rates.c: how often each stage of the graph fires. False after errors. */
bool gp_rates(gp_arena *a, gp_graph *g, gp_errs *errs);
/* ... the slots that a buffer needs so that the stages around it ever fire, and the stage that needs most. */
int64_t gp_least_slots(const gp_graph *g, const gp_buffer *b, const gp_stage **by);
/* depth.c: the depths of buffers, once all stages are where they stay; false after errors. And where workers need
 * more. */
bool gp_set_depths(gp_graph *g, gp_errs *errs);
void gp_raise_depth(gp_buffer *b, int need);
/* devices.c: the key `device` at the top (NULL: it is not there), and in a stage; the names of all of them. */
void gp_devices_read(gp_resolving *r, const gp_node *n);
void gp_devices_place(gp_resolving *r, gp_rstage *st, const gp_node *n);
const char *gp_devices_text(const gp_resolving *r);
/* A stage that copies frames does so where `by` makes them: on one device, or on the host. */
void gp_devices_follow(const gp_resolving *r, gp_stage *st, const gp_stage *by);
/* A stage in which a process that is alone would meet no other runs on the device where its input is made there. */
void gp_devices_alone(gp_resolving *r);
/* Errors where a stage cannot run on the device that it names. */
void gp_devices_check(gp_arena *a, const gp_graph *g, gp_errs *errs);
/* managed.c: can the slots of those buffers that the file says so of be in managed memory? */
void gp_managed_check(const gp_graph *g, gp_errs *errs);
/* Leaves out the devices that the pipeline names for all its stages, where each is on one that it names itself. */
void gp_devices_drop_unused(gp_resolving *r);
/* priority.c: the key `priority` at the top, and in a stage (NULL: it is not there); a stage that copies frames has
 * that of the one that makes them; errors where it has no effect. */
void gp_priority_read(gp_resolving *r, const gp_node *n);
void gp_priority_of(gp_resolving *r, gp_rstage *st, const gp_node *n);
void gp_priority_follow(gp_stage *st, const gp_stage *by);
void gp_priority_check(const gp_graph *g, gp_errs *errs);
/* metadata.c: the key at the top; before stages are fused, from which buffers each has its numbers. */
void gp_metadata_read(gp_resolving *r, const gp_node *n);
void gp_metadata_origins(gp_arena *a, gp_graph *g);

/* borders.c: which stages run on the host since that makes fewer bytes cross. */
void gp_place_casts(gp_graph *g);
/* fuse.c: the graph with neighbors that compute element by element as one stage each. */
gp_graph *gp_fuse_stages(gp_resolving *r, gp_graph *g, const gp_machine *m);
/* ... with all stages of a loop's body as one, see gp_fuse.steps; NULL: it cannot be. */
gp_graph *gp_fuse_steps(gp_resolving *r, gp_graph *g);
/* resolve.c: fills in which sources reach each stage. */
void gp_find_sources(gp_arena *a, gp_graph *g);
/* workers.c: how many workers stages have that leave it to the machine, and the room that they need. */
void gp_share_cores(gp_arena *a, gp_graph *g, const gp_machine *m);
/* files.c: errors where a stage of the graph writes what one reads, as far as paths tell. */
void gp_check_files(gp_resolving *r);
/* The source whose frames reach a stage, NULL: there are several. Of the first n files that a stage reads, the first that
 * has the name of an earlier one, *of, in whatever folder; -1: none. */
const gp_stage *gp_only_source(const gp_graph *g, const gp_stage *st);
int gp_first_namesake(gp_arena *a, const gp_stage *st, int n, int *of);
/* probe.c: what is known of a path. */
const gp_probed *gp_probe_get(gp_probe *p, const char *path, bool glob);
