/* parse.h - what set.c needs of parse.c beside gp_parse. */
#ifndef GP_PARSE_H
#define GP_PARSE_H

#include "compile/ir.h"

/* YAML of any kind in a string; all its nodes are `at` this place. NULL after
 * errors, and (without an error) when there is nothing in it. */
gp_node *gp_parse_value(gp_arena *a, const char *text, gp_loc at, gp_errs *errs);

#endif
