/* code.h - what a user's CUDA C++ says, read as text at compile time, where no compiler
 * is: which indices a kernel uses, and which of its own variables it changes.
 *
 * All branches of #if count, and so does every function, type or macro that the entry may
 * reach by a name: what is found is what may be, so that it is the same on every machine
 * and for both back ends. */
#ifndef GP_CODE_H
#define GP_CODE_H

#include <limits.h>
#include "gpipe/stage.h"

typedef struct gp_tok {
    enum { GP_TOK_WORD = 1, GP_TOK_NUMBER, GP_TOK_TEXT, GP_TOK_OTHER } kind;
    int file, line;            /* file: index into gp_cu.path */
    int len;
    const char *p;
    bool branch;               /* it stands in an #if */
    /* After gp_cu_index: */
    int word;                  /* a number that tokens of the same text have */
    int pair;                  /* the bracket that belongs to this one; of an opening one that
                                  nothing closes GP_NO_PAIR, of a closing one -1. < of template
                                  arguments too; GP_NO_PAIR: it is none */
    int up;                    /* the innermost open bracket around it; -1: none */
    bool variable;             /* it declares a gp_var */
} gp_tok;

enum { GP_NO_PAIR = INT_MAX };

/* A list of tokens that ends with two of kind 0. */
typedef struct gp_toks { gp_tok *v; int n, cap; } gp_toks;

/* Something that has a name and a text: a function, a type, a macro, a variable's initial value. */
typedef struct gp_def {
    const gp_tok *name;
    const gp_toks *in;         /* where its tokens are: */
    int from, body, to;        /* its head, what follows the head, its end */
    enum { GP_DEF_FUNCTION, GP_DEF_TYPE, GP_DEF_MACRO, GP_DEF_OTHER } what;
    bool global;               /* __global__ */
    bool always;               /* an operator: it is reached by no name */
    bool reached;              /* see gp_cu_reach */
    int text;                  /* the first with these tokens: itself or one before it */
    int next;                  /* the next of this name; -1: none */
} gp_def;

/* A variable that lives as long as the program. */
typedef struct gp_var {
    const gp_tok *name;
    int dims;                  /* of an array */
    bool same;                 /* const: it cannot be changed */
} gp_var;

typedef struct gp_cu {
    gp_shape *s;               /* for memory, and to look at files */
    const char **path; int nfiles, files_cap;
    gp_toks main, macro;       /* all files, as included; the bodies of all macros */
    int nwords;
    int *named, *last;         /* of a word: the first and the last gp_def of this name; -1: none */
    gp_def *def; int ndefs, defs_cap;
    gp_var *var; int nvars, vars_cap;
    const gp_tok *odd;         /* something that cannot be read as text; NULL: nothing */
    const char *why;           /* ... what it is */
    const char *cut_why;       /* a part of it is not looked at at all; NULL: none */
    gp_loc cut;                /* ... where */
    int deep, ifs;             /* while it is read: files that include each other, open #if */
    int steps;                 /* see gp_cu_step */
} gp_cu;

/* Reads the file with all that it includes in quotes. `define`: "NAME=VALUE". */
gp_cu *gp_cu_read(gp_shape *s, const gp_file *f, const char *const *define, int ndefine);

/* Marks what kernel `entry` may reach; NULL: everything. False: there is no such kernel. */
bool gp_cu_reach(gp_cu *c, const char *entry);

/* ---- the indices of what is reached: axes.c --------------------------- */

/* Bit a (0, 1, 2) for .x, .y, .z. */
typedef struct gp_axes {
    unsigned block, thread;    /* blockIdx, threadIdx */
    unsigned dim, grid;        /* blockDim, gridDim */
    const gp_tok *odd;         /* an index that is used in a way that says nothing of axes */
    const char *why;
} gp_axes;

gp_axes gp_cu_axes(const gp_cu *c);

/* The first use of a word in what is reached; NULL: none. */
const gp_tok *gp_cu_uses(const gp_cu *c, const char *word);

/* ---- the variables that are changed: writes.c -------------------------- */

/* A variable that what is reached may change; NULL: none. `*at`: where. */
const gp_var *gp_cu_writes(gp_cu *c, const gp_tok **at);

/* ---- tokens ------------------------------------------------------------ */

bool gp_tok_is(const gp_tok *t, const char *text);
bool gp_tok_among(const gp_tok *t, const char *const *words);   /* which end with NULL */
void gp_toks_add(gp_cu *c, gp_toks *t, gp_tok tok);
void gp_cu_odd(gp_cu *c, const gp_tok *t, const char *why);
void gp_cu_cut(gp_cu *c, const gp_tok *t, const char *why);
/* Counts what is not in proportion to the source's length. False, and the rest is cut, when
 * that is more than any source needs that was not made for it. */
bool gp_cu_step(gp_cu *c, const gp_tok *t);
gp_loc gp_cu_at(const gp_cu *c, const gp_tok *t);
/* Room for three more in a list of the pipeline's memory. */
void *gp_cu_room(gp_cu *c, void *v, int n, int *cap, size_t each);

/* ---- words, brackets and names: index.c ----------------------------------- */

/* Once, after all tokens are there. */
void gp_cu_index(gp_cu *c);
/* The bracket that closes that at i; `to` when none does; i when there is none at i. */
int gp_tok_close(const gp_toks *t, int i, int to);
/* The bracket that opens that at i; `from` when none does; i when there is none at i. */
int gp_tok_open(const gp_toks *t, int i, int from);
/* The > that closes the < at i, where it is a list of template arguments; else i. */
int gp_tok_angle(const gp_toks *t, int i, int to);
/* Adds a definition; its number. */
int gp_cu_def(gp_cu *c, gp_def d);

/* Finds definitions and variables; after all tokens are there. */
void gp_cu_parse(gp_cu *c);
/* The variables that the declaration [from, to) of `t` names. */
void gp_cu_declare(gp_cu *c, const gp_toks *t, int from, int to);

#endif
