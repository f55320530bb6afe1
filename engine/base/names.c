/* names.c - see names.h. At most half of the slots are in use. */
#include <stdint.h>
#include <string.h>
#include "base/names.h"

/* FNV-1a, 64 bits (Fowler, Noll, Vo). */
static uint64_t hash(const char *s)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return h ^ h >> 32;
}

/* Where `name` is, or the free slot where it would be. */
static struct gp_names_slot *look(const gp_names *t, const char *name)
{
    uint64_t mask = (uint64_t)t->cap - 1;
    for (uint64_t i = hash(name) & mask;; i = (i + 1) & mask) {
        struct gp_names_slot *s = &t->slot[i];
        if (!s->name || !strcmp(s->name, name))
            return s;
    }
}

int *gp_names_at(gp_names *t, const char *name)
{
    if (2 * t->n >= t->cap) {
        gp_names old = *t;
        t->cap = old.cap ? 2 * old.cap : 32;
        t->slot = GP_NEW(t->arena, struct gp_names_slot, t->cap);
        for (int i = 0; i < old.cap; i++)
            if (old.slot[i].name)
                *look(t, old.slot[i].name) = old.slot[i];
    }
    struct gp_names_slot *s = look(t, name);
    if (!s->name)
        *s = (struct gp_names_slot){ name, -1 }, t->n++;
    return &s->value;
}

int gp_names_find(const gp_names *t, const char *name)
{
    const struct gp_names_slot *s = t->cap ? look(t, name) : NULL;
    return s && s->name ? s->value : -1;
}
