/* yaml.h - YAML text, and so JSON, as a tree of nodes (node.h), each with its place.
 *
 * What a key means is of no interest here. Memory is the arena's; when there is no more,
 * control goes where the arena says. NULL after errors, and (without an error) when there
 * is nothing in the text. */
#pragma once

#include "base/arena.h"
#include "gpipe/node.h"

/* The one document of a file: `len` bytes of UTF-8. `file` is borrowed by the places. */
gp_node *gp_yaml_parse(gp_arena *a, const char *text, size_t len, const char *file,
                       gp_errs *errs);

/* A value in a string; all its nodes are `at` this place. */
gp_node *gp_yaml_value(gp_arena *a, const char *text, gp_loc at, gp_errs *errs);

/* A node of a text that is to be changed, which has these bytes, its anchor not included. An alias is a scalar without
 * a text, and `<<` a key as any other. */
typedef struct gp_marked { gp_node node; size_t from, to; bool alias, flow, block; } gp_marked;     /* block: | or > */
const gp_marked *gp_yaml_marked(gp_arena *a, const char *text, size_t len, const char *file, gp_errs *errs);

/* node.c. What a map (NULL: an empty one) has under a key: a text, else ""; a number that is not negative, else -1; a
 * list, else NULL. */
const char *gp_node_text(const gp_node *map, const char *key);
double gp_node_number(const gp_node *map, const char *key);
const gp_node *gp_node_list(const gp_node *map, const char *key);
gp_loc gp_node_at(const gp_node *map, const char *key, gp_loc otherwise);      /* where it stands */

/* 1, 0: the text is true or false as YAML writes it, in lower or upper case, or capitalized; -1: neither. */
int gp_bool_parse(const char *text);

/* yaml_edit.c: the text, of `len` bytes, in which what the n words lead to, keys of maps and numbers of lists, is
 * `value`: a scalar, which is put in quotes where it needs them, or what begins with [ { " or ', as it is. All other
 * bytes stay. A key that is not there is added: in a block behind the last key in whose line its value stands, or in
 * front of all; in { } behind the last. In memory of `a`, with a NUL behind its *out_len bytes. NULL with an error:
 * the way leads through an alias, or to nothing. The text is one that gp_yaml_parse takes; `file` is its name. */
char *gp_yaml_edit(gp_arena *a, const char *text, size_t len, const char *file, const char *const *word, int n,
                   const char *value, size_t *out_len, gp_errs *errs);
