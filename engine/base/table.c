/* table.c - see table.h. Open addressing with linear probing; at most half of the
 * entries are in use, so a search ends soon, at one that is free. */
#include <stdlib.h>
#include <string.h>
#include "base/table.h"

enum { LEAST = 32 };

uint64_t gp_text_hash(const char *s)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return h;
}

/* Where an entry is when nothing is in its way: the high bits of a product with 2^64 /
 * the golden ratio, which spread numbers that follow each other too (Knuth, TAOCP 6.4). */
static size_t home(const gp_table *t, uint64_t id)
{
    return (size_t)(id * 0x9e3779b97f4a7c15u >> (64 - __builtin_ctzll(t->cap)));
}

static size_t after(const gp_table *t, size_t i)
{
    return (i + 1) & (t->cap - 1);
}

/* The entry of the key, or the free one where it belongs. */
static gp_entry *look(const gp_table *t, const char *name, uint64_t id)
{
    for (size_t i = home(t, id);; i = after(t, i)) {
        gp_entry *e = &t->entry[i];
        if (!e->used || (e->id == id && (!name || !strcmp(e->name, name))))
            return e;
    }
}

bool gp_table_reserve(gp_table *t, size_t n)
{
    gp_table old = *t;
    size_t cap = old.cap ? old.cap : LEAST;
    while (cap < 2 * n)
        cap *= 2;
    if (cap == old.cap)
        return true;
    gp_entry *entry = t->arena ? GP_NEW(t->arena, gp_entry, cap) : calloc(cap, sizeof *entry);
    if (!entry)
        return false;
    t->entry = entry, t->cap = cap;
    for (size_t i = 0; i < old.cap; i++)
        if (old.entry[i].used)
            *look(t, old.entry[i].name, old.entry[i].id) = old.entry[i];
    if (!t->arena)
        free(old.entry);
    return true;
}

void gp_table_free(gp_table *t)
{
    free(t->entry);
    *t = (gp_table){ .n = 0 };
}

static gp_entry *find(const gp_table *t, const char *name, uint64_t id)
{
    gp_entry *e = t->n ? look(t, name, id) : NULL;
    return e && e->used ? e : NULL;
}

static gp_entry *put(gp_table *t, const char *name, uint64_t id, int64_t n)
{
    gp_entry *e = find(t, name, id);
    if (e)
        return e;
    if (!gp_table_reserve(t, t->n + 1))
        return NULL;
    e = look(t, name, id);
    *e = (gp_entry){ .name = name, .id = id, .n = n, .used = true };
    t->n++;
    return e;
}

gp_entry *gp_table_find(const gp_table *t, const char *name)
{
    return find(t, name, gp_text_hash(name));
}

gp_entry *gp_table_find_id(const gp_table *t, uint64_t id)
{
    return find(t, NULL, id);
}

int gp_table_index(const gp_table *t, const char *name)
{
    const gp_entry *e = gp_table_find(t, name);
    return e ? (int)e->n : -1;
}

gp_entry *gp_table_put(gp_table *t, const char *name, int64_t n)
{
    return put(t, name, gp_text_hash(name), n);
}

gp_entry *gp_table_put_id(gp_table *t, uint64_t id, int64_t n)
{
    return put(t, NULL, id, n);
}

/* Entries behind it that were put there because it was in their way move up. */
void gp_table_remove(gp_table *t, gp_entry *e)
{
    size_t hole = (size_t)(e - t->entry), mask = t->cap - 1;
    for (size_t i = after(t, hole); t->entry[i].used; i = after(t, i)) {
        size_t way = (i - home(t, t->entry[i].id)) & mask;     /* from home */
        if (way >= ((i - hole) & mask)) {
            t->entry[hole] = t->entry[i];
            hole = i;
        }
    }
    t->entry[hole] = (gp_entry){ .used = false };
    t->n--;
}

gp_entry *gp_table_next(const gp_table *t, const gp_entry *e)
{
    for (size_t i = e ? (size_t)(e - t->entry) + 1 : 0; i < t->cap; i++)
        if (t->entry[i].used)
            return &t->entry[i];
    return NULL;
}
