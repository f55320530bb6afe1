/* files.c - the table of a run's files, which keeps two writers off one file. The files that the graph reads, and those
 * that the caller writes beside the run, are entered here; stages enter what they write themselves. At the end it is
 * said which files were replaced, where numbering went on, and which unfinished files were kept. */
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include "base/filetable.h"
#include "base/path.h"
#include "base/thread.h"
#include "compile/inside.h"
#include "run/setup.h"

/* "stage 'read'", in the pipeline's memory. */
static const char *make_who(gp_pipeline *p, const char *what, const char *name)
{
    size_t n = strlen(what) + strlen(name) + 4;
    char *text = gp_alloc(&p->arena, n);
    snprintf(text, n, "%s '%s'", what, name);
    return text;
}

/* Names are made once, for all runs. */
static const char *const *readers(gp_pipeline *p)
{
    const gp_graph *g = p->graph;
    if (p->reader)
        return p->reader;
    const char **r = GP_NEW(&p->arena, const char *, g->nstages + g->nbuffers + 1);
    for (int i = 0; i < g->nstages; i++)
        r[i] = make_who(p, "stage", g->stage[i].name);
    for (int i = 0; i < g->nbuffers; i++)
        r[g->nstages + i] = make_who(p, "buffer", g->buffer[i].name);
    return p->reader = r;
}

static bool fill(gp_pipeline *p, gp_filetable *t)
{
    const gp_graph *g = p->graph;
    const char *const *who = readers(p);
    bool ok = gp_filetable_reads(t, "gpipe as the pipeline", &g->file, 1);
    for (int i = 0; i < g->nstages; i++)
        if (g->stage[i].nreads)
            ok &= gp_filetable_reads(t, who[i], g->stage[i].reads, g->stage[i].nreads);
    for (int i = 0; i < g->nprologue; i++)
        if (g->prologue[i].nreads)
            ok &= gp_filetable_reads(t, "a stage before frame 0", g->prologue[i].reads, g->prologue[i].nreads);
    for (const gp_inside *in = p->spec->insides; in; in = in->next)
        if (in->at.line && in->opaque)
            ok &= gp_filetable_reads(t, "gpipe as a part of the pipeline", &in->path, 1);
    for (int i = 0; i < g->nbuffers; i++)
        if (g->buffer[i].path)
            ok &= gp_filetable_reads(t, who[g->nstages + i], (const char *const *)&g->buffer[i].path, 1);
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

void gp_pipeline_add_files(gp_pipeline *p)
{
    jmp_buf oom, *was = p->arena.oom;
    p->arena.oom = &oom;
    if (p->files && !setjmp(oom))      /* without memory a file that is new is not known to be read */
        fill(p, p->files);
    p->arena.oom = was;
}

void gp_pipeline_forget_files(gp_pipeline *p)
{
    gp_filetable *t = atomic_exchange(&p->files, NULL);
    while (atomic_load(&p->cancelling))        /* a signal handler of another thread has it still */
        sched_yield();
    gp_filetable_free(t);
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
    if (gp_thread_start(&thread, sync_main, s))
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

/* How many files of a longer run before are there beside `path`, which was replaced; `first`: the
 * one with the lowest number. */
static int count_higher(const gp_filewriter *w, const char *path, char first[PATH_MAX])
{
    char folder[PATH_MAX] = ".";
    uint64_t number, lowest = 0;
    int found = 0;
    memcpy(folder, path, gp_path_folder(path));
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        if (gp_filetable_is_left(w, e->d_name, &number) && (!found++ || number < lowest)) {
            lowest = number;
            snprintf(first, PATH_MAX, "%.*s%s", (int)gp_path_folder(path), path, e->d_name);
        }
    if (d)
        closedir(d);
    return found;
}

static void say_higher(const gp_filewriter *w, const char *path, gp_errs *errs)
{
    char first[PATH_MAX];
    int n = count_higher(w, path, first);
    if (n == 1)
        gp_fail(errs, GP_E_NOTE, w->at, "a file with a higher number is still there, '%s'", first);
    else if (n)
        gp_fail(errs, GP_E_NOTE, w->at, "%d files with higher numbers are still there, the first '%s'", n, first);
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
        gp_replaced is = { w->who, w->at, w->replaced, w->replaced_number, path, false };
        if (run->options.replaced) {
            run->options.replaced(run->options.gather_arg, &is);
            continue;
        }
        gp_replaced_warn(&is, &errs);
        if (w->replaced_path && run->graph->ranks == 1)        /* else another rank may have written them */
            say_higher(w, path, &errs);
    }
    gp_run_fail(run, &errs);
}

/* A path that does not fit into a message is a note a part, each of whole folders. */
static void say_kept(const gp_replaced *r, gp_errs *errs)
{
    static const char says[] = "what was written is kept as";
    enum { MOST = sizeof errs->e->msg - 1 };
    const char *path = r->path;
    if (sizeof says + strlen(" ''") + strlen(path) <= sizeof errs->e->msg) {
        gp_fail(errs, GP_E_WARN, r->at, "%s '%s'", says, path);
        return;
    }
    gp_fail(errs, GP_E_WARN, r->at, "%s the path that these lines make:", says);
    for (int n; *path; path += n) {
        for (n = (int)strnlen(path, MOST); path[n] && n > 1 && path[n - 1] != '/'; n--)
            ;
        gp_fail(errs, GP_E_NOTE, r->at, "%.*s", n, path);
    }
}

void gp_replaced_warn(const gp_replaced *r, gp_errs *errs)
{
    unsigned long long n = r->files;
    struct stat st;
    const char *what = !stat(r->path, &st) && S_ISDIR(st.st_mode) ? "store" : "file";
    if (r->kept && n == 1)
        say_kept(r, errs);
    else if (r->kept)
        gp_fail(errs, GP_E_WARN, r->at, "what was written of %llu files is kept, of the first as '%s'", n, r->path);
    else if (n == 1)
        gp_fail(errs, GP_E_WARN, r->at, "%s replaced a %s, '%s'", r->who, what, r->path);
    else
        gp_fail(errs, GP_E_WARN, r->at, "%s replaced %llu %ss, the first '%s'", r->who, n, what, r->path);
}

void gp_files_kept(const gp_pipeline *p, const gp_run_options *o, gp_errs *errs)
{
    const gp_filewriter *w = p->files ? gp_filetable_writers(p->files) : NULL;
    for (; w; w = w->next) {           /* `who` was the stage's */
        gp_replaced is = { "", w->at, 1, 0, w->kept_path, true };
        if (*w->kept_path && o && o->replaced && w->at.line)
            o->replaced(o->gather_arg, &is);
        else if (*w->kept_path)
            gp_replaced_warn(&is, errs);
    }
}

bool gp_files_end(gp_run *run)
{
    bool cancelled = atomic_load(&run->level) >= 2 && !atomic_load(&run->gave_up);
    if (!run->pipeline->files)
        return true;
    say(run);
    return cancelled || !gp_filetable_must_sync(run->pipeline->files) || sync_all(run);
}
