/* ranks_files.c - one rank tells which files all ranks replaced, and which unfinished files they kept.
 *
 * Not every rank has a sink that writes, since a sink behind a collective stage may run on one rank alone. So each rank
 * first sends the number of its messages, then the messages; their places in the pipeline show which are the same. */
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

void gp_ranks_hear_replaced(gp_errs *errs)
{
    size_t ranks = (size_t)gp_ranks();
    int most = 0, *of = gp_ranks_room(ranks, sizeof *of);
    bool ok = gp_ranks_gather(&mine.n, sizeof mine.n, of, errs);
    for (size_t r = 0; ok && r < ranks; r++)
        most = of[r] > most ? of[r] : most;
    free(of);
    if (ok && most) {
        size_t n = (size_t)most;
        replaced *here = gp_ranks_room(n, sizeof *here), *heard = gp_ranks_room(n * ranks, sizeof *heard);
        for (int i = 0; i < mine.n; i++)
            here[i] = mine.of[i];
        ok = gp_ranks_gather(here, (int)(n * sizeof *here), heard, errs);
        all.of = gp_ranks_room(n * ranks, sizeof *all.of);
        for (size_t i = 0; ok && i < n * ranks; i++)
            if (heard[i].files)
                add(&heard[i]);
        free(here), free(heard);
    }
    free(mine.of);
    mine.of = NULL, mine.n = 0;
}

void gp_ranks_keep_replaced(void)
{
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
