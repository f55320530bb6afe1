/* table.h - a hash table, by names or by numbers.
 *
 * Memory is the arena's, or malloc's without one. Start with a zeroed table, or with
 * `{ .arena = a }`; a table whose room was reserved takes no memory until it is full.
 * Names are borrowed. All keys of a table are names, or all are numbers. One thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"

typedef struct gp_entry {
    const char *name;          /* the key; NULL where keys are numbers */
    uint64_t id;               /* the key; of a name: its hash */
    union { int64_t n; void *ptr; };           /* the value */
    bool used;
} gp_entry;

typedef struct gp_table {
    gp_arena *arena;           /* NULL: malloc */
    gp_entry *entry;
    size_t n, cap;             /* cap: 0 or a power of two */
} gp_table;

/* The hash of a text, the same everywhere: FNV-1a, 64 bits (Fowler, Noll, Vo). */
uint64_t gp_text_hash(const char *s);

/* Makes room for `n` entries in all. False: malloc has no memory. */
bool gp_table_reserve(gp_table *t, size_t n);
/* Frees what a table without an arena has; it is then empty. */
void gp_table_free(gp_table *t);

/* NULL: there is none. An entry is valid until the next one is added or removed. */
gp_entry *gp_table_find(const gp_table *t, const char *name);
gp_entry *gp_table_find_id(const gp_table *t, uint64_t id);
/* The number of `name`; -1 when it is not there. */
int gp_table_index(const gp_table *t, const char *name);

/* The entry of the key; when it was not there it is added, with the value `n`. NULL:
 * malloc has no memory. */
gp_entry *gp_table_put(gp_table *t, const char *name, int64_t n);
gp_entry *gp_table_put_id(gp_table *t, uint64_t id, int64_t n);

void gp_table_remove(gp_table *t, gp_entry *e);

/* The entry after `e`, in no particular order; the first for NULL; NULL after the last. */
gp_entry *gp_table_next(const gp_table *t, const gp_entry *e);

/* Numbers in sets: up[v] is v, or another of its set. The one that stands for the set of v. */
static inline int gp_root(int *up, int v)
{
    while (up[v] != v)
        v = up[v] = up[up[v]];
    return v;
}
