/* arena.c - see arena.h. A list of blocks; the newest is filled. Under AddressSanitizer each piece is a block of its
 * own, so that an access beside a piece is found. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/arena.h"

struct gp_arena_block {
    struct gp_arena_block *next;
    size_t used, size;
    _Alignas(16) char data[];
};

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined __SANITIZE_ADDRESS__ || __has_feature(address_sanitizer)
enum { BLOCK = 0, ROUND = 1 };
#else
enum { BLOCK = 64 * 1024, ROUND = 16 };
#endif

void *gp_alloc(gp_arena *a, size_t bytes)
{
    if (bytes > (size_t)1 << 40)
        goto oom;
    bytes = (bytes + ROUND - 1) & ~(size_t)(ROUND - 1);
    struct gp_arena_block *b = a->head;
    if (!b || b->size - b->used < bytes) {
        size_t size = bytes > BLOCK / 4 ? bytes : BLOCK;
        struct gp_arena_block *n = calloc(1, sizeof *n + size);
        if (!n)
            goto oom;
        n->size = size;
        a->total += size;
        if (b && size != BLOCK) {          /* keep filling the current block */
            n->next = b->next;
            b->next = n;
            n->used = size;
            return n->data;
        }
        n->next = b;
        a->head = b = n;
    }
    void *p = b->data + b->used;
    b->used += bytes;
    return p;
oom:
    if (a->oom)
        longjmp(*a->oom, 1);
    abort();
}

void *gp_alloc_lines(gp_arena *a, size_t bytes)
{
    enum { LINE = 64 };
    char *p = gp_alloc(a, ((bytes + LINE - 1) & ~(size_t)(LINE - 1)) + LINE - 16);
    return p + (-(uintptr_t)p & (LINE - 1));
}

char *gp_strndup(gp_arena *a, const char *s, size_t n)
{
    char *p = gp_alloc(a, n + 1);
    if (n)
        memcpy(p, s, n);
    return p;
}

char *gp_strdup(gp_arena *a, const char *s)
{
    return gp_strndup(a, s, strlen(s));
}

char *gp_format(gp_arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *p = gp_alloc(a, (size_t)n + 1);
    va_start(ap, fmt);
    vsnprintf(p, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return p;
}

void *gp_regrow(gp_arena *a, const void *old, size_t old_bytes, size_t bytes)
{
    void *p = gp_alloc(a, bytes);
    if (old_bytes)
        memcpy(p, old, old_bytes);
    return p;
}

void gp_arena_free(gp_arena *a)
{
    while (a->head) {
        struct gp_arena_block *next = a->head->next;
        free(a->head);
        a->head = next;
    }
}

bool gp_grow(void *array, size_t n, size_t size)
{
    void *is;
    memcpy(&is, array, sizeof is);
    void *more = realloc(is, n * size);
    if (more)
        memcpy(array, &more, sizeof more);
    return more;
}
