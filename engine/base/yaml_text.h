/* yaml_text.h - the text that libyaml is given, and what is said where it takes none.
 *
 * yaml_pairs.c: JSON writes a character beyond U+FFFF as two escapes, \ud83d\ude00, which libyaml refuses.
 *
 * So that libyaml takes such pairs, and all places stay as they are, each pair in double quotes is given to it as
 * \ue83d\uee00: as long, and two characters for private use. What it makes of them is then put right. */
#pragma once

#include "base/arena.h"

/* The text to give to libyaml, of the same length: `text` itself where it has no pairs. UTF-8; time is linear. */
const char *gp_yaml_hide_pairs(gp_arena *a, const char *text, size_t len);
/* Puts right the value of a double-quoted scalar, of `len` bytes, whose source, with its quotes, stands in [source,
 * source + n) of the text as it was. Returns the value's new length, which is no larger. */
size_t gp_yaml_show_pairs(char *value, size_t len, const char *source, size_t n);

/* yaml_problem.c: what libyaml says of a text that is not YAML, in words that say what to edit. */
typedef struct gp_yaml_problem {
    const char *text; size_t len;          /* all of it */
    const char *problem, *context;         /* libyaml's words */
    size_t at, context_at;                 /* ... and its places, in bytes of `text` */
    size_t from, to;                       /* result: what to point at */
    char say[200];                         /* result */
} gp_yaml_problem;

void gp_yaml_explain(gp_yaml_problem *x);
