/* files.c - the files of a run: what the graph reads is put into their table, and what
 * the caller writes beside the run. What stages write they put there themselves. */
#include <stdio.h>
#include <string.h>
#include "base/filetable.h"
#include "run/pipeline.h"

/* "stage 'read'", in the pipeline's memory. */
static const char *who(gp_pipeline *p, const char *what, const char *name)
{
    size_t n = strlen(what) + strlen(name) + 4;
    char *text = gp_alloc(&p->arena, n);
    snprintf(text, n, "%s '%s'", what, name);
    return text;
}

static bool fill(gp_pipeline *p)
{
    const gp_graph *g = p->graph;
    bool ok = gp_filetable_reads(p->files, "gpipe as the pipeline", &g->file, 1);
    for (int i = 0; i < g->nstages; i++)
        if (g->stage[i].nreads)
            ok &= gp_filetable_reads(p->files, who(p, "stage", g->stage[i].name),
                                     g->stage[i].reads, g->stage[i].nreads);
    for (int i = 0; i < g->nbuffers; i++)
        if (g->buffer[i].path)
            ok &= gp_filetable_reads(p->files, who(p, "buffer", g->buffer[i].name),
                                     (const char *const *)&g->buffer[i].path, 1);
    return ok;
}

struct gp_filetable *gp_pipeline_files(gp_pipeline *p)
{
    jmp_buf oom, *was = p->arena.oom;
    if (p->files)
        return p->files;
    p->files = gp_filetable_new();
    p->arena.oom = &oom;
    if (p->files && (setjmp(oom) || !fill(p))) {
        gp_filetable_free(p->files);
        p->files = NULL;
    }
    p->arena.oom = was;
    return p->files;
}

bool gp_pipeline_writes(gp_pipeline *p, const char *who, const char *path, gp_errs *errs)
{
    char why[GP_WHY];
    gp_filetable *t = gp_pipeline_files(p);
    gp_outfile f = { .by = t ? gp_filetable_writer(t, who, path) : NULL };
    if (!f.by)
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    return gp_outfile_claim(&f, path, why)
        || gp_fail(errs, GP_E_USAGE, (gp_loc){ .file = path }, "%s", why);
}
