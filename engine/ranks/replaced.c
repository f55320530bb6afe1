/* replaced.c - one rank tells which files all ranks replaced, and which unfinished files they kept.
 *
 * Not every rank has a sink that writes, since a sink behind a collective stage may run on one rank alone. So each rank
 * says what it has of it; places in the pipeline show what is the same. */
#include <stdlib.h>
#include <string.h>
#include "ranks/inside.h"

typedef struct replaced { uint64_t files, number; int line, col; bool kept; char who[160], path[4096]; } replaced;

void gp_ranks_note_replaced(void *arg, const gp_replaced *r)
{
    gp_ranks *us = arg;
    replaced *more = realloc(us->replaced.of, (size_t)(us->replaced.n + 1) * sizeof *more);
    if (!more)                         /* then it is not counted */
        return;
    us->replaced.of = more;
    more[us->replaced.n] = (replaced){ .files = r->files, .number = r->number, .line = r->at.line, .col = r->at.col,
                                .kept = r->kept };
    snprintf(more[us->replaced.n].who, sizeof more->who, "%s", r->who);
    snprintf(more[us->replaced.n++].path, sizeof more->path, "%s", r->path);
}

/* To the first n of `all`. Returns how many there are then. */
static int add(replaced *all, int n, const replaced *r)
{
    replaced *sum = all;
    while (sum < all + n && (sum->line != r->line || sum->col != r->col || sum->kept != r->kept
                             || strcmp(sum->who, r->who)))
        sum++;
    if (sum == all + n) {
        memmove(sum, r, sizeof *sum);
        return n + 1;
    }
    sum->files += r->files;
    if (*r->path && (r->number < sum->number || !*sum->path))
        sum->number = r->number, memcpy(sum->path, r->path, sizeof sum->path);
    return n;
}

bool gp_ranks_hear_replaced(gp_ranks *us, gp_errs *errs)
{
    int most = 0, n = 0, *of = gp_ranks_gather(us, &us->replaced.n, sizeof n, false, errs);
    for (int r = 0; of && r < us->n; r++)
        most = of[r] > most ? of[r] : most;
    replaced *mine = gp_ranks_room(us, (size_t)most, sizeof *mine);
    if (us->replaced.n)
        memcpy(mine, us->replaced.of, (size_t)us->replaced.n * sizeof *mine);
    replaced *all = of ? gp_ranks_gather(us, mine, most * (int)sizeof *mine, false, errs) : NULL;
    for (int r = 0; all && r < us->n; r++)
        for (int i = 0; i < of[r]; i++)
            n = add(all, n, &all[r * most + i]);       /* in its place, or further ahead */
    free(mine), free(of);
    if (!all)
        return false;
    free(us->replaced.of);
    us->replaced.of = all, us->replaced.n = n, us->replaced.merged = true;
    return true;
}

void gp_ranks_replaced(gp_ranks *us, const char *file, gp_errs *errs)
{
    for (int i = 0; i < us->replaced.n && (!us->replaced.merged || gp_ranks_is_first(us)); i++) {
        const replaced *r = &us->replaced.of[i];
        gp_loc at = { .file = file, .line = r->line, .col = r->col };
        gp_replaced_warn(&(gp_replaced){ r->who, at, r->files, r->number, *r->path ? r->path : "?", r->kept }, errs);
    }
    free(us->replaced.of);
    us->replaced.of = NULL, us->replaced.n = 0;
}
