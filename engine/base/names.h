/* names.h - a table from names to numbers >= 0, for lists that may be long.
 *
 * Open addressing; the memory is the arena's, the names are borrowed. Start
 * with `gp_names t = { .arena = a }`. One thread. */
#ifndef GP_NAMES_H
#define GP_NAMES_H

#include "base/arena.h"

typedef struct gp_names {
    gp_arena *arena;
    struct gp_names_slot { const char *name; int value; } *slot;
    int n, cap;
} gp_names;

/* The number of `name`, to read and to set; -1 when it was not there, and it
 * then is. Valid until the next call. */
int *gp_names_at(gp_names *t, const char *name);
/* The number of `name`, -1 when it is not there. */
int gp_names_find(const gp_names *t, const char *name);

#endif
