/* code.h - what a user's CUDA C++ says, read as text at compile time, where no compiler
 * is: which grid a kernel wants, and which of its own variables it may change.
 *
 * Only what is plainly right is accepted. What is not understood is never taken for harmless:
 * it asks the user for `grid` or `serial`. All branches of #if count, so that what is found is
 * the same on every machine and for both back ends. */
#ifndef GP_CODE_H
#define GP_CODE_H

#include <limits.h>
#include "gpipe/stage.h"

typedef struct gp_tok {
    enum { GP_TOK_WORD = 1, GP_TOK_NUMBER, GP_TOK_TEXT, GP_TOK_OTHER } kind;
    int file, line;            /* file: index into gp_cu.path */
    int len;
    const char *p;
    int chosen;                /* the part of an #if that it stands in, from 1; 0: in none */
    /* After gp_cu_index: */
    int word;                  /* a number that tokens of the same text have */
    int pair;                  /* the bracket that belongs to this one; of an opening one that
                                  nothing closes GP_NO_PAIR, of a closing one -1. < of template
                                  arguments too; GP_NO_PAIR: it is none */
    int up;                    /* the innermost open bracket around it; -1: none */
    bool other;                /* of a kernel that is not the entry; after gp_cu_kernels */
} gp_tok;

enum { GP_NO_PAIR = INT_MAX };

/* A list of tokens that ends with two of kind 0. */
typedef struct gp_toks { gp_tok *v; int n, cap; } gp_toks;

typedef struct gp_macro {
    int from, body, to;        /* in gp_cu.macro: its name, what follows the head, its end */
    int next;                  /* the next of this name; -1: none */
} gp_macro;

/* A kernel's place in gp_cu.main: [from, to) from its __global__ on, and its name. */
typedef struct gp_region { int from, to, name; } gp_region;

typedef struct gp_kernels {
    gp_region entry;
    gp_region *other; int nothers;         /* in their order */
    const gp_tok *odd;         /* the entry's name, where it is not plainly declared as one; the first
                                  token of all: there is none; NULL: it is the one kernel of its name */
} gp_kernels;

typedef struct gp_cu {
    gp_shape *s;               /* for memory, and to look at files */
    const gp_source *source;
    const char **path; int nfiles, files_cap;  /* as messages name them; the first is the source */
    gp_toks main, text;        /* all files, as included; the bodies of all macros */
    int nwords;
    gp_macro *macro; int nmacros, macros_cap;
    int *named;                /* of a word: the last macro of this name; -1: none */
    const char *entry;         /* NULL: it has none, and none was named */
    gp_kernels kernels;
    gp_region flat;            /* after gp_cu_axes: the one index, along x, and the name before its `=`;
                                  `to` 0: there are other indices, too */
    int open, part, parts;     /* while it is read: brackets, the part of an #if, all parts so far */
    /* After gp_cu_state, sorted: names of variables that are __constant__, those of these and of
     * what is const, and all words; NULL: there may be more, put together by ##, or in a header. */
    const char **constant, **fixed, **words; int nconstants, nfixed, nsorted;
    const gp_tok *odd;         /* something that cannot be read as text; NULL: nothing */
    const char *why;           /* ... what it is */
    bool cut;                  /* ... which may hide a variable */
    int deep;                  /* while it is read: files that include each other */
    int steps;                 /* see gp_cu_step */
} gp_cu;

/* Reads the source, which is in `f` unless it is a text, with all that it includes in quotes; its `entry`
 * NULL: the first kernel that it has. */
gp_cu *gp_cu_read(gp_shape *s, const gp_source *src, const gp_file *f);
/* The option that gives the source. */
const char *gp_cu_option(const gp_cu *c);

/* ---- the kernels of a source: entry.c ---------------------------------- */

/* Once, after gp_cu_index. */
void gp_cu_kernels(gp_cu *c);
/* The first use of a word, other kernels than the entry left out; NULL: none. */
const gp_tok *gp_cu_uses(const gp_cu *c, const char *word);

/* ---- the indices of a kernel: axes.c ----------------------------------- */

typedef struct gp_axes {
    unsigned any;              /* bit a (0, 1, 2) for .x, .y, .z */
    const gp_tok *odd;         /* what is not a plain index of one thread for one element */
    const char *why;           /* NULL: `odd` is gp_cu.kernels.odd */
} gp_axes;

/* `batched`: blockIdx.z is the frame. */
gp_axes gp_cu_axes(gp_cu *c, bool batched);

/* ---- what no compiler would take: slips.c ------------------------------ */

/* Says the first slip that the text shows. False: it shows none. */
bool gp_cu_slip(const gp_cu *c);

/* ---- variables that outlive a launch: state.c, changes.c --------------- */

typedef struct gp_state {
    const gp_tok *at;          /* NULL: it keeps nothing */
    const gp_tok *changed;     /* where `at`, though const, may be changed; NULL: it is not const */
} gp_state;

gp_state gp_cu_state(gp_cu *c);
/* Where one that is const may be changed. `fixed`, of a word: 'c' it names one that is const, 'd' one
 * that is __constant__, else 0; `declares`: tokens of gp_cu.main that declare them. */
gp_state gp_cu_changes(gp_cu *c, const char *fixed, const bool *declares);

/* ---- one token: words.c ------------------------------------------------ */

bool gp_tok_is(const gp_tok *t, const char *text);
bool gp_tok_among(const gp_tok *t, const char *const *words);   /* which end with NULL */
/* A type of integers of 32 bits or more? */
bool gp_tok_is_integer(const gp_tok *t);
/* A type whose variables hold a value: no void, nor what may be a reference? */
bool gp_tok_is_value(const gp_tok *t);
/* Is it a word for a type of C, or may it be? */
bool gp_tok_is_type(const gp_tok *t);
/* =, += and the like, ++ and -- */
bool gp_tok_assigns(const gp_tok *t);
/* May it keep a thread from what follows? */
bool gp_tok_branches(const gp_tok *t);
bool gp_tok_is_asm(const gp_tok *t);

/* ---- tokens: tokens.c -------------------------------------------------- */

/* Counts what is not in proportion to the source's length. False, and the rest is cut, when
 * that is more than any source needs that was not made for it. */
bool gp_cu_step(gp_cu *c, const gp_tok *t);
gp_loc gp_cu_at(const gp_cu *c, const gp_tok *t);
/* Room for three more in a list of the pipeline's memory. */
void *gp_cu_room(gp_cu *c, void *v, int n, int *cap, size_t each);

/* ---- words, brackets and macros: index.c ------------------------------- */

/* Once, after all tokens are there. */
void gp_cu_index(gp_cu *c);
/* The bracket that closes that at i; `to` when none does; i when there is none at i. */
int gp_tok_close(const gp_toks *t, int i, int to);
/* The > that closes the < at i, where it is a list of template arguments; else i. */
int gp_tok_angle(const gp_toks *t, int i, int to);
/* Is it the name of a macro? */
bool gp_tok_is_macro(const gp_cu *c, const gp_tok *t);

#endif
