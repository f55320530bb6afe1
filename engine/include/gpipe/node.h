/* node.h - what a YAML file says: a tree of scalars, lists and maps, each with
 * its place, and the expressions that stand in it.
 *
 * Stage kinds with structured options read it; it does not change then. */
#ifndef GP_NODE_H
#define GP_NODE_H

#include <stdint.h>
#include <stdbool.h>
#include <stddef.h>
#include <gpipe/err.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

typedef enum gp_node_kind { GP_SCALAR, GP_LIST, GP_MAP } gp_node_kind;

typedef struct gp_node gp_node;
struct gp_node {
    gp_node_kind kind;
    bool quoted;           /* a scalar in quotes, or a block scalar */
    gp_loc at;
    const char *text;      /* of a scalar, NUL-terminated; else "" */
    size_t len;
    int n;                 /* of a list or map: the number of items */
    gp_node **key;         /* of a map: scalars, unique, merge keys resolved */
    gp_node **item;
    const struct gp_table *index;  /* of a map with many keys: where each is; or NULL */
    const struct gp_expr *expr;    /* of a scalar: its text as an expression, once the engine
                                      has parsed it, so that no evaluation has to; or NULL */
    int line, col;         /* of a block scalar whose lines stand in the file as in the text: the
                              line that its text begins in, and the column of each of its lines; else 0 */
    const struct gp_inside *inside;    /* of an included file, or a copy that is repeated: what its names mean; or NULL */
    const char *local;     /* of the name of a buffer: as it stands in such a file or copy; else NULL */
};

/* The value of `key` in a map; NULL when absent or `map` is not a map. */
const gp_node *gp_node_get(const gp_node *map, const char *key);

/* The place of `len` bytes at `offset` of a scalar's text, for errors about a
 * part of it, in a block too; the whole scalar's where escapes or lines were joined. */
gp_loc gp_node_part(const gp_node *n, size_t offset, size_t len);

/* ---- expressions ----------------------------------------------------- */

/* An exact integer that i64 or u64 holds, or a double. */
__extension__ typedef __int128 gp_int128;
typedef struct gp_num {
    bool is_int;
    gp_int128 i;
    double f;              /* set in both cases */
} gp_num;

/* Where names get their values. `var` finds a bare name; `port` finds
 * PORT.shape[k] (k >= 0) and PORT.size (k == -1, elements of the frame). Each
 * returns false, having added no error, when there is no such name; the
 * caller then reports it with what `each` offers as candidates (may be NULL).
 * Both may be NULL. */
typedef struct gp_scope gp_scope;
struct gp_scope {
    bool (*var)(const gp_scope *s, const char *name, gp_num *out);
    bool (*port)(const gp_scope *s, const char *port, int k, gp_num *out);
    void (*each)(const gp_scope *s, gp_near *near);
    const void *arg;
};

/* Grammar: + - * / % ( ), unary minus, ceil(a/b), floor(a/b), min(a, b, ...),
 * max(a, b, ...), names, numbers with an optional unit: ns us ms s min h (a
 * time, in ns when `time` is asked, see gp_eval_time), B KB MB GB KiB MiB GiB
 * TiB (bytes), Hz kHz MHz GHz. Integers stay integers (from -2^63 to 2^64 - 1, beyond
 * is an error); / of integers with a remainder is an error that names ceil and floor.
 * Inside ceil() and floor() a / is the exact quotient. Errors point at the
 * column inside the scalar. Allocates nothing for numbers and nodes of the file,
 * which are parsed when the pipeline is compiled; a scalar that was made since, or
 * is no expression, is parsed anew each time. Any thread. */
bool gp_eval(const gp_node *n, const gp_scope *scope, gp_num *out, gp_errs *errs);

/* The same where a duration is expected: "30s", "1.5ms", "2 * 10ms". A bare
 * number is an error that asks for a unit, except 0. Result in ns. */
bool gp_eval_time(const gp_node *n, const gp_scope *scope, int64_t *ns, gp_errs *errs);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
