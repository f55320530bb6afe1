/* expr_cases.h - what must hold of the kind `expr` on any back end. */
#pragma once

#include "harness.h"

enum { EXPR_INPUTS = 6, EXPR_OUTPUTS = 16 };

/* A line of tests/ref/exprs.txt. */
typedef struct expr_case {
    char name[60], program[2000], port[EXPR_INPUTS][20], edge[10];     /* edge: "" without neighbors */
    int nin, nout;
    array in[EXPR_INPUTS], want[EXPR_OUTPUTS];
    double tolerance;
} expr_case;

void expr_each_case(void (*f)(const expr_case *));
/* How a case's pipeline is written. */
typedef struct expr_way {
    bool bounds;               /* inputs may be smaller, in all axes of more than one element */
    bool typed;                /* output i is declared to have type i + 1 */
    int rows, more;            /* axes of more than one element are longer than the case's: the first, the others */
} expr_way;

/* As YAML, malloc'd. */
char *expr_pipeline(const expr_case *c, expr_way way);
