/* program.h - what the kind `expr` makes of its text: a list of typed operations (check.c, operators.c, by the table in
 * types.c, with numbers that are known from fold.c, and neighbors.c), the shapes that its inputs have together
 * (space.c), and from these what runs: steps for kernels/expr.cpp (code.c), and the text of a CUDA kernel (cuda.c,
 * tiles.c, reduced.c). Programs of several stages become one (link.c). */
#pragma once

#include <stdio.h>
#include "compile/expr.h"
#include "expr.h"
#include "gpipe/stage.h"
#include "reduction.h"

/* Operation i makes value i, unless it is a GP_EW_STORE; a, b and c are values, where not said otherwise in expr.h. In
 * the body of a loop (gp_fuse.steps) it may store and load what lies between parts: from number GP_EW_BETWEEN on. */
enum { GP_EW_BETWEEN = 64 };
typedef struct gp_ew_ins {
    gp_ew_op op;
    gp_ew_type type;
    int from;                  /* as in gp_ew_step */
    int d, a, b, c;
    gp_ew_value value;         /* of a GP_EW_NUMBER; */
    const char *var;           /* ... NULL where it depends on no var; else code does not depend on it */
    const int *shift;          /* of a GP_EW_NEAR, for each axis of the frame: which of the program's; -1: none */
    bool needed;               /* by an output */
    bool once;                 /* it is the same for all elements of a frame */
    int phase;                 /* of a GP_EW_STORE, in a loop's body: the part that it is of */
} gp_ew_ins;

/* The index along an axis and a known number, as a neighbor's index has to be. */
typedef struct gp_ew_index {
    bool is;                   /* not set: another value */
    gp_ew_shift to;
    const gp_expr_node *var;   /* the operator that made `by` of vars: code does not depend on it; NULL: none did */
    bool needed;               /* of the program's: by an output */
} gp_ew_index;

/* A size of an input, as a value: PORT.shape[axis], or with -1 PORT.size. */
typedef struct gp_ew_size { int port, axis; } gp_ew_size;

/* A program takes this in: input `port` of the stage, whose last axis lies along the frame's last one; or what
 * rgb[i0, i1, 2] names: along its axis k an index that is known, at[k], or the frame's axis -1 - at[k]. */
typedef struct gp_ew_input {
    int port;
    bool placed;               /* it is of the second kind; */
    unsigned fixed;            /* ... a set of axes, whose index is known; */
    bool known;                /* ... and these are */
    int64_t at[GP_MAXDIM];
    gp_loc where;              /* ... where they stand, for errors */
} gp_ew_input;

/* How these lie in the frame that they broadcast to; for each: */
typedef struct gp_ew_space {
    int ndim, nin;
    gp_ew_input in[GP_EW_PORTS];
    int axis[GP_EW_PORTS][GP_MAXDIM];  /* by the frame's axis: its own one; -1: it has none there */
    unsigned repeated[GP_EW_PORTS];    /* a set of the frame's axes along which it has one element, or has no axis */
    unsigned varies;           /* a set of the frame's axes along which some input may be shorter, by its declaration */
    bool refused;              /* some NAME[...] is not as it has to be: gp_ew_check says why, and shapes may not fit */
} gp_ew_space;

/* In several iterations of a loop: a frame that changes, an output that is carried or, behind all of them, what one
 * phase makes for later ones. */
typedef struct gp_ew_field {
    int input;                 /* the program's that it is in the next iteration; -1: none */
    gp_dtype dtype;
    int phase;                 /* that makes it */
    bool near, zero;           /* neighbors are read; beyond the border they are 0 */
    int copies;                /* of a tile of it in shared memory; */
    size_t at;                 /* ... where they begin there, in bytes */
} gp_ew_field;

/* How a launch does that, with a tile of a frame that counts as rows of columns. */
enum { GP_EW_PHASES = 8 };
typedef struct gp_ew_steps {
    int64_t most;              /* iterations */
    gp_ew_field *field; int nfields;
    int phases;
    int reach_x[GP_EW_PHASES], reach_y[GP_EW_PHASES];  /* how many columns and rows away neighbors are at most; */
    int most_x, most_y, all_x, all_y;                  /* ... in any of them, in all together */
    bool *in_phase;            /* [phase * program's n + operation]: does it need the operation? */
    int x, y;                  /* the axes along which neighbors are; y -1: there is none */
    int inner;                 /* columns of an element of axis x: those of the axes behind it */
    gp_ew_edge edge;           /* where it is copied, or goes round; else zero */
    int wide, high, rows;      /* columns, rows of a tile; rows of a thread, which has a column of them */
    size_t shared;             /* bytes of a block */
} gp_ew_steps;

typedef struct gp_ew_program {
    gp_ew_ins *ins; int n, cap;
    int nout;
    gp_dtype in[GP_EW_PORTS], out[GP_MAXPORT]; /* of the space's inputs; of the stage's outputs */
    gp_ew_edge edge;
    gp_ew_size size[GP_EW_PORTS]; int nsizes;
    gp_ew_space space;
    gp_ew_index *shift; int nshifts, capshifts;    /* to neighbors, each once */
    int cut;                   /* the axes from this one on are a line, for tiles.c; */
    bool small;                /* ... a GPU has a thread for each element of a frame */
    unsigned indices;          /* a set of axes whose indices it computes with */
    bool frame;                /* uses frame.index, frame.time */
    /* A program with a GP_EW_FOLD: the reduction of frames of type `folds`, which is output `folded`. */
    gp_reduction fold;
    gp_dtype folds;
    int folded;
    unsigned consts;           /* ... a set of inputs: those that are constants, as which frame() has to know */
    gp_ew_code *code; size_t code_bytes;       /* with its steps */
    size_t shared;             /* bytes that running it takes */
    gp_source source;
    int nbetween;              /* frames between parts; there is no source then, but with `steps` */
    gp_ew_steps *steps;        /* then `source` is that of several iterations; NULL: of one */
    int nvars;                 /* numbers, and distances of neighbors, that are arguments of the kernel */
} gp_ew_program;

/* The options of a stage, and what shape() made of them. */
typedef struct gp_ew_opts {
    const gp_node *expr;
    int edge;                  /* gp_ew_edge */
    gp_ew_program *program;
} gp_ew_opts;

/* types.c. How many of a, b and c are values. */
int gp_ew_operands(gp_ew_op op);
/* Is the result 0 or 1? The computing type of the result. */
bool gp_ew_is_truth(gp_ew_op op);
gp_ew_type gp_ew_makes(const gp_ew_ins *x);
/* The computing type of a dtype, and the dtype of a result. */
gp_ew_type gp_ew_type_of(gp_dtype t);
extern const gp_dtype gp_ew_dtype[GP_EW_NTYPES];

/* space.c: which inputs a program has, and how many axes its frame: of the stage's inputs those that it names as a
 * whole, or nowhere, then others. */
void gp_ew_find_inputs(gp_shape *s, const gp_expr *tree, gp_ew_space *o);
/* The number of such an input, which it becomes one of. -1: there are too many. */
int gp_ew_add_input(gp_ew_space *o, const gp_ew_input *in);
/* The input in->port[...] with n indices, each known, or moved along axis[k] of the frame (-1: neither). False: it is
 * none, as these have to be in the order of the frame's axes; then `in` is the whole input. */
bool gp_ew_place_input(const gp_shape *s, const bool *known, const int *axis, int n, gp_ew_input *in);
/* Is what is placed the whole input, as it lies in a frame of so many axes? */
bool gp_ew_is_whole(const gp_shape *s, int ndim, const gp_ew_input *in);
/* The frame that they broadcast to. False after an error. */
bool gp_ew_broadcast(gp_shape *s, const gp_node *text, const gp_expr *tree, gp_ew_space *o, gp_type *frame);
/* The same of a smaller frame, in a partial call. Along an axis all frames have to be as long as each other. Of a
 * constant the first elements count, if no frame is declared to vary there: it stands beside a frame with fewer
 * rows. */
bool gp_ew_smaller(gp_shape *s, const gp_ew_space *o, gp_type *frame);
/* The same of inputs that are known to fit; `consts`: a set of them, those that are constants. */
void gp_ew_frame(const gp_ew_space *o, const gp_type *in, unsigned consts, gp_type *frame);
/* Fills in dim, stride, axes and linear of a launch that makes such frames; with `merge` axes that lie behind each
 * other are one. `in`: of the stage. */
void gp_ew_lay_out(const gp_ew_space *o, const gp_type *in, const gp_type *frame, bool merge, gp_ew_call *c);
/* Elements from the beginning of a stage's input, of type `in`, to where input i begins. */
int64_t gp_ew_begins(const gp_ew_space *o, int i, const gp_type *in);

/* check.c: fills in ins, in, out (where s->out says none), size, shift, indices, frame; needs space, to which it adds
 * parts of inputs, and edge. False after errors. */
bool gp_ew_check(gp_shape *s, const gp_node *text, const gp_expr *tree, const gp_type *frame, gp_ew_program *p);
/* operators.c: how many of the values before it a node takes. */
int gp_ew_takes(const gp_expr_node *e);
/* Finds out which operations outputs need, and whose indices. */
void gp_ew_mark(gp_ew_program *p);
/* The input of this name, as the stage calls it, or as the pipeline calls its only buffer; -1: there is none. */
int gp_ew_port_of(gp_shape *s, const char *name);
/* The axis whose index the name is; -1: none. */
int gp_ew_axis_of(const char *name);

/* fold.c: the value of an operator whose `n` operands are known. False after an error. */
bool gp_ew_fold(gp_shape *s, gp_loc at, gp_expr_op op, const gp_num *v, gp_num *out);

/* neighbors.c: an index further by a number that is known, by operator e; else what has `is` not set. */
gp_ew_index gp_ew_moved(const gp_expr_node *e, const gp_ew_index *index, gp_num by, bool var);
/* An index in NAME[...]: a number, or that of an axis, moved; `where` it stands. */
typedef struct gp_ew_place {
    bool known;
    gp_num number;
    gp_ew_index index;
    const gp_expr_node *where;
} gp_ew_place;
/* The element of input `port` of the stage that e->name[...] is. Fills in `a` and `shift` of `ins`; NULL there: it is
 * the element itself. False after an error. */
bool gp_ew_neighbor(gp_shape *s, const gp_node *text, const gp_expr_node *e, int port, const gp_ew_place *at,
                     gp_ew_program *p, gp_ew_ins *ins);

/* code.c. False after an error. */
bool gp_ew_encode(gp_shape *s, const gp_node *text, gp_ew_program *p);

/* cuda.c: fills in source, and nvars. */
enum { GP_EW_VARS = 64, GP_EW_ARGS = 4 * GP_MAXPORT + 11 + GP_EW_PORTS + GP_EW_VARS };
bool gp_ew_write(gp_shape *s, const gp_node *text, gp_ew_program *p);
/* The call of the function of one element, and what stands in its brackets, by the texts of an input's element, which
 * gets the number of the input twice, of an index and of an output's element; NULL: no outputs. */
void gp_ew_put_call(FILE *o, const gp_ew_program *p, const char *in, const char *index, const char *out);
void gp_ew_put_list(FILE *o, const gp_ew_program *p, const char *in, const char *index, const char *out);
/* A statement of it: of a number that depends on vars it is the one of number *vars. */
void gp_ew_put_ins(FILE *o, const gp_ew_program *p, int i, int *vars);

/* The type of an element in memory, in C; of an output as it is computed. */
const char *gp_ew_stored(gp_dtype t);
const char *gp_ew_made(const gp_ew_program *p, int output);
/* Is it loaded at its own place? */
bool gp_ew_is_used(const gp_ew_program *p, int input);
/* Where element `rest` of the frame is, in integers of `type`. */
void gp_ew_put_offsets(FILE *o, const gp_ew_program *p, const char *type);

/* Does it reduce the last axes? Else, if it has a reduction, others. */
bool gp_ew_has_lines(const gp_ew_program *p);

/* reduced.c: the struct `loaded`, what an element is computed of; the two walks, with offsets in integers of `type`,
 * NULL: inputs lie as the frame does (and lines begin at multiples of four elements). */
void gp_ew_put_loaded(FILE *o, const gp_ew_program *p);
void gp_ew_put_fold(FILE *o, const gp_ew_program *p, const char *type);
void gp_ew_put_lines(FILE *o, const gp_ew_program *p, const char *type);

/* tiles.c, for programs with neighbors: sets `cut` and `small` for such frames; */
void gp_ew_measure(gp_ew_program *p, const gp_type *frame);
/* ... how many elements below each other a thread takes; the walk over a frame, in the integers `type`; */
int gp_ew_below(const gp_ew_program *p);
void gp_ew_put_tiles(FILE *o, const gp_ew_program *p, const char *type);
/* ... and the frame of a launch. */
gp_ew_tiles gp_ew_tiles_of(const gp_ew_call *c, int cut);
/* Of the element with indices at0, ...: where shift i leads to, s0, ...; the value that operation i takes from there,
 * near0, ...; where an element of an input is, moved by shifts as of a gp_ew_ins, or NULL. */
void gp_ew_put_shift(FILE *o, const gp_ew_program *p, int i, const char *type);
void gp_ew_put_near(FILE *o, const gp_ew_program *p, int i, const char *type);
void gp_ew_put_offset(FILE *o, const gp_ew_program *p, int input, const int *shift, const char *type);

/* steps.c, of the kind, see compile/steps.h: sets `steps`, and writes the source anew; the body of that. */
void gp_ew_find_steps(struct gp_steps *q);
void gp_ew_put_steps(FILE *o, const gp_ew_program *p);

/* link.c: of the kind, see compile/fuse.h. */
bool gp_ew_fuse(struct gp_fuse *f);
/* expr.c: what shape() says of a stage that runs the program. True. */
bool gp_ew_describe(gp_shape *s, const gp_ew_program *p);
