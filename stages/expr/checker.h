/* checker.h - what check.c, operators.c and types.c share while a program's tree becomes operations. */
#pragma once

#include "base/table.h"
#include "program.h"

/* An operand. */
typedef struct gp_ew_term {
    bool known;                /* it is the number `n`, */
    const char *var;           /* ... which this var is; "": which depends on vars; NULL: on none; */
    gp_num n;
    int at;                    /* else the value of operation `at`, */
    gp_dtype dtype;            /* ... which is this when stored, */
    bool small;
    gp_ew_index index;         /* it is that of an axis, moved */
    const gp_expr_node *where; /* ... and stands there, within NAME[...] */
} gp_ew_term;

typedef struct gp_ew_checker {
    gp_shape *s;
    const gp_node *text;
    const gp_expr *tree;
    const gp_type *frame;
    gp_ew_program *p;
    gp_ew_term *named;         /* what was assigned; */
    gp_table names;            /* ... index by name */
    int nnamed;
    int loaded[GP_EW_PORTS], index[GP_MAXDIM], frame_at[2];     /* operations; -1: not yet */
} gp_ew_checker;

/* An error at node e. */
#define FAIL(c, e, ...) \
    gp_shape_fail_at((c)->s, gp_node_part((c)->text, (e)->from, (e)->len), __VA_ARGS__)

/* ---- types.c ------------------------------------------------------------ */

/* The type in which a term is computed. */
typedef struct gp_ew_common { gp_ew_type type; bool small; } gp_ew_common;

bool gp_ew_is_small(gp_dtype t);
bool gp_ew_is_integer(const gp_ew_term *v);
bool gp_ew_is_complex(const gp_ew_term *v);
gp_ew_common gp_ew_common_of(const gp_ew_term *v);
gp_ew_common gp_ew_common_of_two(const gp_ew_term *a, const gp_ew_term *b);
/* The type of sqrt(v) and the like. */
gp_ew_type gp_ew_float_of(const gp_ew_term *v);
/* For errors. */
const char *gp_ew_type_name(const gp_ew_term *v);

/* ---- operators.c -------------------------------------------------------- */

/* Adds an operation: its number. */
int gp_ew_emit(gp_ew_checker *c, gp_ew_ins ins);
/* The operation whose value is v in that type. */
int gp_ew_as(gp_ew_checker *c, const gp_ew_term *v, gp_ew_type t);
/* The value of an operation. */
gp_ew_term gp_ew_result(int at, gp_ew_type type, bool small);
/* The operator e, whose operands begin at v; the result takes the place of the first. False after an error. */
bool gp_ew_apply(gp_ew_checker *c, const gp_expr_node *e, gp_ew_term *v);
