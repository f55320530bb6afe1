/* ranks_files.c - one rank tells which files all ranks replaced, and which unfinished files they kept.
 *
 * Not every rank has a sink that writes, since a sink behind a collective stage may run on one rank alone. So each rank
 * says what it has of it; places in the pipeline show what is the same. */
#include <stdlib.h>
#include <string.h>
#include "cli/ranks.h"

typedef struct replaced { uint64_t files, number; int line, col; bool kept; char who[160], path[4096]; } replaced;

static struct { replaced *of; int n; bool merged; } files;     /* merged: of all ranks */

void gp_ranks_note_replaced(void *arg, const gp_replaced *r)
{
    (void)arg;
    replaced *more = realloc(files.of, (size_t)(files.n + 1) * sizeof *more);
    if (!more)                         /* then it is not counted */
        return;
    files.of = more;
    more[files.n] = (replaced){ .files = r->files, .number = r->number, .line = r->at.line, .col = r->at.col,
                                .kept = r->kept };
    snprintf(more[files.n].who, sizeof more->who, "%s", r->who);
    snprintf(more[files.n++].path, sizeof more->path, "%s", r->path);
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

bool gp_ranks_hear_replaced(gp_errs *errs)
{
    int own = files.n * (int)sizeof *files.of, n = 0, sum = 0, *bytes = gp_ranks_gather(&own, sizeof own, errs);
    replaced *all = bytes ? gp_ranks_gather_any(files.of, bytes, errs) : NULL;
    if (!all)
        return false;
    for (int r = 0; r < gp_ranks(); r++)
        sum += bytes[r] / (int)sizeof *all;
    for (int i = 0; i < sum; i++)
        n = add(all, n, &all[i]);      /* n <= i: in its place, or further ahead */
    free(files.of), free(bytes);
    files.of = all, files.n = n, files.merged = true;
    return true;
}

void gp_ranks_replaced(const char *file, gp_errs *errs)
{
    for (int i = 0; i < files.n && (!files.merged || gp_ranks_is_first()); i++) {
        const replaced *r = &files.of[i];
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
    free(files.of);
    files.of = NULL, files.n = 0;
}
