/* inside.h - what the nodes of an included file, and of the copies that `repeat` makes, stand in: which vars their names
 * mean, and where their paths start. The vars of all are in one map, under full names (expand.c). */
#pragma once

#include "compile/ir.h"

struct gp_inside {
    const char *prefix;        /* of the names of its stages: "ch.0" */
    const gp_inside *outer;    /* NULL: it is the pipeline itself; */
    bool opaque;               /* none of its names mean anything here */
    gp_table vars;             /* names here -> full names */
    const char *dir;           /* relative paths start here */
    const char *path;          /* of its file */
    const char *file;          /* the same text in a place of its own, which errors in it name; NULL: the pipeline itself */
    const char *text; size_t len;      /* of that file; NULL: of the pipeline's */
    gp_loc at; const char *name;       /* where its file is included, and as what; or line 0 */
    const gp_inside *next;     /* of the spec */
};

/* The full name of a var that nodes in there call so; NULL: there is none. */
static inline const char *gp_inside_name(const gp_inside *in, const char *name)
{
    const gp_entry *e = NULL;
    bool opaque = false;
    for (; in && !e && !opaque; opaque = in->opaque, in = in->outer)
        e = gp_table_find(&in->vars, name);
    return e ? e->ptr : opaque ? NULL : name;
}

/* For a name that there is not: those that there are. */
void gp_inside_near(const gp_inside *in, gp_near *near);
/* The folder that a path starts at, which a node has: that of the file that its beginning is written in, be that the
 * value of a var. `dir`: of the pipeline's file. */
const char *gp_inside_dir(const gp_node *n, const gp_node *vars, const char *dir);
