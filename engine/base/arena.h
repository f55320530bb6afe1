/* arena.h - memory that is freed all at once.
 *
 * One arena holds everything a compilation makes. Memory is zeroed and aligned
 * to 16 bytes. When the system has no more, control goes to `*oom` (which
 * gp_compile sets), so that callers need not test for NULL. One thread. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <gpipe/err.h>

struct gp_arena_block;

typedef struct gp_arena {
    struct gp_arena_block *head;
    jmp_buf *oom;              /* where to go without memory; NULL: abort() */
    size_t total;              /* bytes taken from the system so far */
} gp_arena;

void *gp_alloc(gp_arena *a, size_t bytes);
void *gp_alloc_lines(gp_arena *a, size_t bytes);   /* aligned to 64 bytes */
char *gp_strndup(gp_arena *a, const char *s, size_t n);
char *gp_strdup(gp_arena *a, const char *s);
char *gp_format(gp_arena *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void gp_arena_free(gp_arena *a);       /* the blocks, not the struct */

/* `if` and `if not`: there is no more memory. From the statement on, that is where control comes back to, until the
 * block ends; so one block has one. */
#define GP_IF_OOM(a) jmp_buf oom_; (a)->oom = &oom_; if (setjmp(oom_))
#define GP_UNLESS_OOM(a) jmp_buf oom_; (a)->oom = &oom_; if (!setjmp(oom_))

/* An arena that is freed where the block ends in which it is declared. */
#define GP_ARENA(a) gp_arena a __attribute__((cleanup(gp_arena_free))) = { 0 }

/* The error that there is no more memory; false, as gp_fail. */
#define gp_no_memory(errs) gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory")

/* Array of n zeroed T. */
#define GP_NEW(a, T, n) ((T *)gp_alloc((a), sizeof(T) * (size_t)(n)))

/* The same on cache lines of its own, for what several threads write. */
#define GP_NEW_LINES(a, T, n) ((T *)gp_alloc_lines((a), sizeof(T) * (size_t)(n)))

/* Room for one more element at the end of the growing array `v` of `n`
 * elements and capacity `cap`; amortized, old copies stay in the arena. */
#define GP_PUSH(a, v, n, cap)                                              \
    ((n) == (cap)                                                          \
         ? ((cap) = (cap) ? 2 * (cap) : 8,                                 \
            (v) = gp_regrow((a), (v), sizeof *(v) * (size_t)(n),           \
                            sizeof *(v) * (size_t)(cap)),                  \
            &(v)[(n)++])                                                   \
         : &(v)[(n)++])

void *gp_regrow(gp_arena *a, const void *old, size_t old_bytes, size_t bytes);

/* The same of an array that is malloc'd: is there room for one more, or can some be made? Else nothing changes. */
#define GP_ROOM(v, n, cap)                                                 \
    ((n) < (cap) || (gp_grow(&(v), 2 * (size_t)(cap) + 8, sizeof *(v)) && ((cap) = 2 * (cap) + 8, true)))
bool gp_grow(void *array, size_t n, size_t size);
