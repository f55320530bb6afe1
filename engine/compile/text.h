/* text.h - ${} in texts (text.c). */
#ifndef GP_TEXT_H
#define GP_TEXT_H

#include "base/arena.h"
#include <gpipe/gpipe.h>

/* Replaces ${x}, ${x:-default}, ${env:NAME} and $$ in a scalar's text. `vars`
 * is the map under `vars:` (values are scalars). An unknown name is an error that
 * points at it. */
bool gp_interpolate(gp_arena *a, const gp_node *n, const gp_node *vars,
                    gp_getenv env, const void *env_arg, const char **out,
                    gp_errs *errs);

#endif
