/* files.c - the files of a run: what the graph reads is put into their table, and what
 * the caller writes beside the run. What stages write they put there themselves; at the
 * end it is said what was replaced, where numbers went on, and what was kept of a file that
 * did not come to its end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/filetable.h"
#include "run/setup.h"

/* "stage 'read'", in the pipeline's memory. */
static const char *who(gp_pipeline *p, const char *what, const char *name)
{
    size_t n = strlen(what) + strlen(name) + 4;
    char *text = gp_alloc(&p->arena, n);
    snprintf(text, n, "%s '%s'", what, name);
    return text;
}

static bool fill(gp_pipeline *p, gp_filetable *t)
{
    const gp_graph *g = p->graph;
    bool ok = gp_filetable_reads(t, "gpipe as the pipeline", &g->file, 1);
    for (int i = 0; i < g->nstages; i++)
        if (g->stage[i].nreads)
            ok &= gp_filetable_reads(t, who(p, "stage", g->stage[i].name),
                                     g->stage[i].reads, g->stage[i].nreads);
    for (int i = 0; i < g->nbuffers; i++)
        if (g->buffer[i].path)
            ok &= gp_filetable_reads(t, who(p, "buffer", g->buffer[i].name),
                                     (const char *const *)&g->buffer[i].path, 1);
    return ok;
}

struct gp_filetable *gp_pipeline_files(gp_pipeline *p)
{
    jmp_buf oom, *was = p->arena.oom;
    if (p->files)
        return p->files;
    gp_filetable *const t = gp_filetable_new();
    p->arena.oom = &oom;
    if (t && !setjmp(oom) && fill(p, t))
        p->files = t;
    else
        gp_filetable_free(t);
    p->arena.oom = was;
    return p->files;
}

bool gp_pipeline_writes(gp_pipeline *p, const char *who, const char *path, gp_errs *errs)
{
    char why[GP_WHY];
    gp_filetable *t = gp_pipeline_files(p);
    gp_outfile f = { .by = t ? gp_filetable_writer(t, who, (gp_loc){ 0 }, path) : NULL,
                     .needs_folder = true };
    if (!f.by)
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    return gp_outfile_claim(&f, path, why)
        || gp_fail(errs, GP_E_USAGE, (gp_loc){ .file = path }, "%s", why);
}

/* ---- at the end ------------------------------------------------------ */

typedef struct syncing { gp_filetable *files; gp_errs errs; } syncing;

static void *sync_main(void *arg)
{
    syncing *s = arg;
    gp_filetable_sync(s->files, &s->errs);
    return NULL;
}

/* A disk may take minutes, which is no stall; who cancels twice does not wait for it. */
static bool join(gp_run *run, pthread_t thread)
{
    enum { TICK_MS = 50, GRACE_MS = 2000 };
    int64_t asked = 0, now;
    for (;;) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        t.tv_nsec += TICK_MS * 1000000L;
        t.tv_sec += t.tv_nsec / 1000000000, t.tv_nsec %= 1000000000;
        if (!pthread_timedjoin_np(thread, NULL, &t))
            return true;
        now = gp_now_ns();
        if (!asked && atomic_load(&run->pipeline->cancel) >= 2)
            asked = now;
        if (asked && now - asked > GRACE_MS * 1000000LL)
            return false;
    }
}

static bool sync_all(gp_run *run)
{
    pthread_t thread;
    bool back = true;
    syncing *s = calloc(1, sizeof *s);
    if (!s) {
        gp_errs errs = { .n = 0 };
        gp_fail(&errs, GP_E_RESOURCE, (gp_loc){ .file = run->graph->file }, "out of memory");
        gp_run_fail(run, &errs);
        return true;
    }
    s->files = run->pipeline->files;
    atomic_store(&run->syncing, true);
    if (pthread_create(&thread, NULL, sync_main, s))
        sync_main(s);
    else
        back = join(run, thread);
    atomic_store(&run->syncing, false);
    if (!back) {
        pthread_detach(thread);        /* it still uses `s` */
        return false;
    }
    gp_run_fail(run, &s->errs);
    free(s);
    return true;
}

static void say(gp_run *run)
{
    const gp_filewriter *w = gp_filetable_writers(run->pipeline->files);
    gp_errs errs = { .n = 0 };
    for (; w; w = w->next) {
        if (w->goes_on_at)
            gp_fail(&errs, GP_E_WARN, w->at, "%s went on at number %llu", w->who,
                    (unsigned long long)w->goes_on_at);
        if (!w->replaced || !w->at.line)
            continue;
        const char *path = w->replaced_path ? w->replaced_path : "?";
        if (w->replaced == 1)
            gp_fail(&errs, GP_E_WARN, w->at, "%s replaced a file, '%s'", w->who, path);
        else
            gp_fail(&errs, GP_E_WARN, w->at, "%s replaced %llu files, the first '%s'", w->who,
                    (unsigned long long)w->replaced, path);
    }
    gp_run_fail(run, &errs);
}

void gp_files_kept(const gp_pipeline *p, gp_errs *errs)
{
    const gp_filewriter *w = p->files ? gp_filetable_writers(p->files) : NULL;
    for (; w; w = w->next)
        if (w->kept_path)
            gp_fail(errs, GP_E_WARN, w->at, "the file did not come to its end: what was written is "
                    "kept as '%s'", w->kept_path);     /* `who` was the stage's */
}

bool gp_files_end(gp_run *run)
{
    bool cancelled = atomic_load(&run->level) >= 2;
    if (!run->pipeline->files)
        return true;
    say(run);
    return cancelled || !gp_filetable_must_sync(run->pipeline->files) || sync_all(run);
}
