/* expr.h - an expression of the YAML as a tree: expr_parse.c makes it from the text of a
 * scalar, expr.c finds its value. What the text may say is in node.h. A program over the elements of frames
 * (the kind `expr`) has the same tree with more operators; stages/expr finds its types and its code.
 *
 * The nodes are in the order of evaluation: an operator stands behind its operands, which
 * stand from left to right; the last node is the root. So a walk is a loop that keeps on a
 * stack what it knows of the operands: 1 + 1 + 1 + ... is as deep as it is long, and takes
 * two places there. */
#pragma once

#include "base/arena.h"
#include <gpipe/node.h>

enum {
    GP_EXPR_DEEPEST = 64,                          /* brackets, calls and signs in each other */
    GP_EXPR_MOST = 10000,                          /* nodes of a program */
    GP_EXPR_STACK = 3 * (GP_EXPR_DEEPEST + 1),     /* the most places that a walk needs: at each
                                                      depth an argument of min() or max(), a sum
                                                      and a product wait for what follows. Of a
                                                      program it is not a bound */
};

/* A name's length in an expression, with its end. */
enum { GP_EXPR_NAME = 64 };

typedef enum gp_expr_op {
    GP_EXPR_NUMBER, GP_EXPR_VAR, GP_EXPR_PORT,     /* no operand */
    GP_EXPR_NEGATE, GP_EXPR_CEIL, GP_EXPR_FLOOR,   /* one */
    GP_EXPR_ADD, GP_EXPR_SUBTRACT, GP_EXPR_MULTIPLY, GP_EXPR_DIVIDE,   /* two */
    GP_EXPR_QUOTIENT,          /* a / inside ceil() or floor(): of integers, exact */
    GP_EXPR_REMAINDER,
    GP_EXPR_MIN, GP_EXPR_MAX,  /* of more than two arguments: one for each but the first */
    /* In programs only. */
    GP_EXPR_FRAME,             /* no operand: frame.index (axis 0), frame.time (1) */
    GP_EXPR_NOT, GP_EXPR_INVERT, GP_EXPR_ABS, GP_EXPR_ROUND, GP_EXPR_SQRT, GP_EXPR_RSQRT, GP_EXPR_EXP,
    GP_EXPR_LOG, GP_EXPR_LOG2, GP_EXPR_LOG10, GP_EXPR_SIN, GP_EXPR_COS, GP_EXPR_TAN,
    GP_EXPR_RE, GP_EXPR_IM, GP_EXPR_CONJ, GP_EXPR_ARG, GP_EXPR_ISNAN,      /* one */
    GP_EXPR_AND, GP_EXPR_OR,   /* two; && and ||, of which both are computed */
    GP_EXPR_LESS, GP_EXPR_LESS_EQUAL, GP_EXPR_GREATER, GP_EXPR_GREATER_EQUAL, GP_EXPR_EQUAL, GP_EXPR_NOT_EQUAL,
    GP_EXPR_BIT_AND, GP_EXPR_BIT_OR, GP_EXPR_BIT_XOR, GP_EXPR_SHIFT_LEFT, GP_EXPR_SHIFT_RIGHT,
    GP_EXPR_POW, GP_EXPR_ATAN2, GP_EXPR_HYPOT, GP_EXPR_COMPLEX,
    GP_EXPR_SELECT,            /* three: ? : */
    GP_EXPR_INDEX,             /* one, which stays: it is an index within NAME[...] */
    GP_EXPR_AT,                /* NAME[...], which has `axis` operands */
    GP_EXPR_ASSIGN,            /* one, which it takes: `name` is that from here on */
} gp_expr_op;

typedef struct gp_unit {
    const char *name;
    bool time;
    int64_t factor;
} gp_unit;

typedef struct gp_expr_node {
    gp_expr_op op;
    size_t from, len;          /* where it stands in the text, for gp_node_part: an operator's
                                  sign, the name of a function or before a '[', else all of it */
    union {
        struct { gp_num value; const gp_unit *unit; };     /* of a number: the unit is in the
                                                              value; NULL: it has none */
        struct { const char *name; int axis; };            /* of a var, of what is assigned, of
                                                              NAME[...]; of a port: its
                                                              shape[axis], -1: its size */
    };
} gp_expr_node;

typedef struct gp_expr {
    const char *text;          /* what it was made from */
    bool named;                /* has a name or a unit: is no bare number */
    int n;
    gp_expr_node node[];
} gp_expr;

/* The tree of a scalar's text, in the arena. NULL after an error, which is not told when
 * `errs` is NULL. */
const gp_expr *gp_expr_parse(gp_arena *a, const gp_node *scalar, gp_errs *errs);

/* The same of a program: one expression, without a GP_EXPR_ASSIGN, or statements `name = expression`, one a line
 * or with ';' between them, each of which ends with one. */
const gp_expr *gp_expr_parse_program(gp_arena *a, const gp_node *scalar, gp_errs *errs);

/* The tree that a scalar keeps; NULL: none, or that of the text it was copied with. */
static inline const gp_expr *gp_expr_kept(const gp_node *scalar)
{
    return scalar->expr && scalar->expr->text == scalar->text ? scalar->expr : NULL;
}

/* The same, after parsing it if there is none: while a pipeline is compiled, in its arena, so
 * that threads that evaluate it later only read. NULL: it is no expression; gp_eval says why. */
const gp_expr *gp_expr_keep(gp_arena *a, const gp_node *scalar);
