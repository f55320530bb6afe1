/* ranks_files.c - one rank tells which files all ranks replaced, and which unfinished files they kept.
 *
 * Not every rank has a sink that writes, since a sink behind a collective stage may run on one rank alone. So each rank
 * says what it has of it; places in the pipeline show what is the same. */
#include <stdlib.h>
#include <string.h>
#include "cli/ranks.h"

typedef struct replaced { uint64_t files, number; int line, col; bool kept; char who[160], path[4096]; } replaced;

static struct { replaced *of; int n; bool apart; } mine, all;          /* all: of all ranks together, or of this one alone */

void gp_ranks_note_replaced(void *arg, const gp_replaced *r)
{
    (void)arg;
    replaced *more = realloc(mine.of, (size_t)(mine.n + 1) * sizeof *more);
    if (!more)                         /* then it is not counted */
        return;
    mine.of = more;
    more[mine.n] = (replaced){ .files = r->files, .number = r->number, .line = r->at.line, .col = r->at.col,
                               .kept = r->kept };
    snprintf(more[mine.n].who, sizeof more->who, "%s", r->who);
    snprintf(more[mine.n++].path, sizeof more->path, "%s", r->path);
}

static void add(const replaced *r)
{
    int i = 0;
    while (i < all.n && (all.of[i].line != r->line || all.of[i].col != r->col || all.of[i].kept != r->kept
                         || strcmp(all.of[i].who, r->who)))
        i++;
    replaced *sum = &all.of[i];
    if (i == all.n) {
        *sum = *r, all.n++;
        return;
    }
    sum->files += r->files;
    if (*r->path && (r->number < sum->number || !*sum->path))
        sum->number = r->number, memcpy(sum->path, r->path, sizeof sum->path);
}

bool gp_ranks_hear_replaced(gp_errs *errs)
{
    int own = mine.n * (int)sizeof *mine.of, sum = 0, *bytes = gp_ranks_gather(&own, sizeof own, errs);
    char *heard = bytes ? gp_ranks_gather_any(mine.of, bytes, errs) : NULL;
    if (!heard)
        return false;
    for (int r = 0; r < gp_ranks(); r++)
        sum += bytes[r];
    all.of = gp_ranks_room((size_t)sum, 1);
    for (const replaced *r = (replaced *)heard; (char *)r < heard + sum; r++)
        add(r);
    free(mine.of), free(bytes), free(heard);
    mine.of = NULL, mine.n = 0;
    return true;
}

void gp_ranks_keep_replaced(void)
{
    if (!mine.of)
        return;
    all.of = mine.of, all.n = mine.n, all.apart = true;
    mine.of = NULL, mine.n = 0;
}

void gp_ranks_replaced(const char *file, gp_errs *errs)
{
    for (int i = 0; i < all.n && (all.apart || gp_ranks_is_first()); i++) {
        const replaced *r = &all.of[i];
        gp_loc at = { .file = file, .line = r->line, .col = r->col };
        const char *path = *r->path ? r->path : "?";
        if (r->kept && r->files == 1)
            gp_fail(errs, GP_E_WARN, at, "what was written is kept as '%s'", path);
        else if (r->kept)
            gp_fail(errs, GP_E_WARN, at, "what was written of %llu files is kept, of the first as '%s'",
                    (unsigned long long)r->files, path);
        else if (r->files == 1)
            gp_fail(errs, GP_E_WARN, at, "%s replaced a file, '%s'", r->who, path);
        else
            gp_fail(errs, GP_E_WARN, at, "%s replaced %llu files, the first '%s'", r->who, (unsigned long long)r->files,
                    path);
    }
    free(all.of);
    all.of = NULL, all.n = 0;
}
