/* yaml_problem.h - what libyaml says of a text that is not YAML, in words that say what to edit
 * (yaml_problem.c). */
#ifndef GP_YAML_PROBLEM_H
#define GP_YAML_PROBLEM_H

#include <stddef.h>

typedef struct gp_yaml_problem {
    const char *text; size_t len;          /* all of it */
    const char *problem, *context;         /* libyaml's words */
    size_t at, context_at;                 /* ... and its places, in bytes of `text` */
    size_t from, to;                       /* result: what to point at */
    char say[200];                         /* result */
} gp_yaml_problem;

void gp_yaml_explain(gp_yaml_problem *x);

#endif
