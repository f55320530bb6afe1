/* names.h - the names that a pipeline's text gives: for editors and shells, which complete them. */
#pragma once

#include "base/arena.h"
#include "gpipe/gpipe.h"
#include "gpipe/node.h"

typedef struct gp_name {
    const char *name;
    const gp_kind *kind;       /* of a stage; NULL: there is none of that name */
    gp_loc at;                 /* where it is said, or of a stage that makes a buffer without saying so */
    bool again;                /* a buffer before it has its name */
} gp_name;

typedef struct gp_names {
    gp_name *stage, *buffer, *var;         /* a buffer may be there twice: its declaration, and its maker */
    int nstages, nbuffers, nvars;
    int caps[3];
} gp_names;

/* False: the text is no pipeline. Memory is the arena's. The places' file is `file`. */
bool gp_names_read(gp_arena *a, gp_names *out, const char *text, size_t len, const char *file,
                   const gp_registry *registry);
