/* yaml_edit.h - one value in a YAML text, changed where it stands. */
#ifndef GP_YAML_EDIT_H
#define GP_YAML_EDIT_H

#include "base/arena.h"
#include "gpipe/err.h"

/* The text, of `len` bytes, in which what the n words lead to, keys of maps and numbers of lists, is `value`: a
 * scalar, which is put in quotes where it needs them, or what begins with [ { " or ', as it is. All other bytes stay.
 * A key that is not there is added: in a block behind the last key in whose line its value stands, or in front of all;
 * in { } behind the last. In memory of `a`, with a NUL behind its *out_len bytes. NULL with an error: the way leads
 * through an alias, or to nothing. The text is one that gp_yaml_parse takes; `file` is its name. */
char *gp_yaml_edit(gp_arena *a, const char *text, size_t len, const char *file, const char *const *word, int n,
                   const char *value, size_t *out_len, gp_errs *errs);

#endif
