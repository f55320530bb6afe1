/* retune.c - edits of a run that goes on: `gpipe run --watch`, and what `gpipe set` asks for.
 *
 * The thread waits for files to be saved and for settings, compiles, and has gp_pipeline_retune pause the run; the run's
 * own thread goes on with what gp_retuner_next gives it. All pipelines that ran stay until the end, since stages that
 * stay open belong to the one that opened them. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/json.h"
#include "base/memfile.h"
#include "base/yaml.h"
#include "cli/live.h"
#include "cli/retune.h"

enum { QUIET_MS = 20, LATEST_MS = 200, AFTER_S = 1, LOOK_US = 500, FEW = 8 };

typedef struct asked { struct asked *next; int fd; char *line; } asked;
typedef struct part { gp_loaded l; const char **set; int nset; char **own; int nown; } part;   /* own: its last settings */

struct gp_retuner {
    const gp_args *args;
    const gp_registry *registry;
    const gp_run_options *options;
    const char *why_not;
    gp_watched *watched;       /* NULL: no --watch */
    pthread_t thread;
    int wake_fd;               /* eventfd, with --watch, else -1: something is asked for, or it is to stop; */
    pthread_cond_t wake;       /* likewise, without */
    pthread_mutex_t lock;      /* of what follows */
    asked *first, **last;
    bool stop;
    gp_pipeline *trying;       /* may be cancelled */
    bool has_failed;
    gp_errs failure;
    /* The thread's own: */
    part *part; int nparts, cap;       /* part 0 is what runs first; the last one runs */
    part *unused; int nunused;         /* that could not go on: the run's table of files has their names */
    int times;
    double since;              /* the run began, or was retuned */
    uint64_t moved;            /* ... and had moved so many frames */
    /* A retuning whose rate is not known yet: */
    char *what;
    double pause_ms, told_ms, before;
    int reply_fd;              /* who asked for it, or -1 */
};

/* ---- answers ------------------------------------------------------------ */

/* A line to who has asked, whom it leaves then. */
static void answer(int fd, gp_memfile *m)
{
    size_t n = 0;
    char *text = gp_memfile_close(m, &n);
    ssize_t sent = text ? send(fd, text, n, MSG_NOSIGNAL | MSG_DONTWAIT) : -1;
    (void)sent;                        /* who asks and does not read has left */
    free(text);
    close(fd);
}

static void answer_errors(int fd, const gp_args *args, const gp_errs *errs)
{
    gp_memfile m;
    if (!gp_memfile_open(&m)) {
        close(fd);
        return;
    }
    gp_json j = { .f = m.f, .level = 3 };
    gp_json_open(&j, NULL, '{');
    gp_json_int(&j, "exit", gp_errs_exit(errs));
    gp_json_open(&j, "errors", '[');
    for (int i = 0; i < errs->n; i++) {
        const gp_err *e = &errs->e[i];
        char *option = gp_err_option(args, e);
        gp_json_open(&j, NULL, '{');
        gp_json_str(&j, "message", e->msg);
        gp_json_int(&j, "code", e->code);
        if (option || e->at.file)
            gp_json_str(&j, "file", option ? option : e->at.file);
        gp_json_int(&j, "line", option ? 0 : e->at.line);
        gp_json_int(&j, "column", option ? 0 : e->at.col);
        gp_json_close(&j, '}');
        free(option);
    }
    gp_json_close(&j, ']');
    gp_json_close(&j, '}');
    fputc('\n', m.f);
    answer(fd, &m);
}

static void answer_text(int fd, const char *key, const char *text)
{
    gp_memfile m;
    if (!gp_memfile_open(&m)) {
        close(fd);
        return;
    }
    gp_json j = { .f = m.f, .level = 3 };
    gp_json_open(&j, NULL, '{');
    gp_json_int(&j, "exit", 0);
    gp_json_str(&j, key, text);
    gp_json_close(&j, '}');
    fputc('\n', m.f);
    answer(fd, &m);
}

static void refuse(int fd, const char *why)
{
    gp_errs errs = { .n = 0 };
    gp_args none = { 0 };
    gp_fail(&errs, GP_E_USAGE, (gp_loc){ 0 }, "%s", why);
    answer_errors(fd, &none, &errs);
}

/* With the lock. */
static void wake(gp_retuner *r)
{
    pthread_cond_signal(&r->wake);
    if (r->wake_fd >= 0)
        eventfd_write(r->wake_fd, 1);
}

void gp_retuner_ask(gp_retuner *r, int fd, char *line)
{
    asked *a = r ? calloc(1, sizeof *a) : NULL;
    if (!a) {
        refuse(fd, r ? "out of memory" : "this run cannot be retuned");
        free(line);
        return;
    }
    *a = (asked){ .fd = fd, .line = line };
    pthread_mutex_lock(&r->lock);
    *r->last = a, r->last = &a->next;
    wake(r);
    pthread_mutex_unlock(&r->lock);
}

/* ---- rates -------------------------------------------------------------- */

static uint64_t moved(const gp_pipeline *p)
{
    gp_account few[FEW];
    int n = gp_accounts(p, few, FEW);
    return n > 0 ? gp_frames_moved(few, n < FEW ? n : FEW) : 0;
}

static gp_pipeline *runs(const gp_retuner *r)
{
    return r->part[r->nparts - 1].l.pipeline;
}

static double rate(gp_retuner *r, const gp_pipeline *p)
{
    double now = gp_seconds(), s = now - r->since;
    uint64_t n = moved(p);
    double rate = s > 0 && n > r->moved ? (double)(n - r->moved) / s : 0;
    r->since = now, r->moved = n > r->moved ? n : r->moved;
    return rate;
}

/* The line of a retuning, once the rate after it is known. */
static void tell(gp_retuner *r)
{
    char before[32], after[32], *line = NULL;
    if (!r->what)
        return;
    gp_amount_text(r->before, "", before);
    gp_amount_text(rate(r, runs(r)), "", after);
    if (asprintf(&line, "%s; pause %.1f ms (%.1f ms since sources stopped); %s frames/s before, %s after", r->what,
                 r->pause_ms, r->told_ms, before, after) < 0)
        line = NULL;
    if (line && !r->args->quiet)
        fprintf(stderr, "gpipe: retuned: %s\n", line);
    if (r->reply_fd >= 0)
        answer_text(r->reply_fd, "retuned", line ? line : "");
    r->reply_fd = -1;
    free(line), free(r->what);
    r->what = NULL;
}

/* ---- one edit ------------------------------------------------------------- */

static void drop(part *x)
{
    gp_unload(&x->l);
    for (int i = 0; i < x->nown; i++)
        free(x->own[i]);
    free(x->own), free(x->set);
}

/* The settings of the newest part, and `n` more. */
static bool add_settings(gp_retuner *r, part *x, const char *const *more, int n)
{
    const part *was = &r->part[r->nparts - 1];
    x->set = malloc(sizeof *x->set * (size_t)(was->nset + n + 1));
    x->own = calloc((size_t)n + 1, sizeof *x->own);
    bool ok = x->set && x->own;
    for (int i = 0; ok && i < was->nset; i++)
        x->set[x->nset++] = was->set[i];
    for (int i = 0; ok && i < n; i++)
        if ((ok = (x->own[x->nown] = strdup(more[i]))))
            x->set[x->nset++] = x->own[x->nown++];
    return ok;
}

static bool is_stopping(gp_retuner *r)
{
    pthread_mutex_lock(&r->lock);
    bool stop = r->stop;
    pthread_mutex_unlock(&r->lock);
    return stop;
}

static void try(gp_retuner *r, gp_pipeline *p)
{
    pthread_mutex_lock(&r->lock);
    r->trying = p, r->has_failed = false;
    if (p && r->stop)
        gp_cancel(p, 2);
    pthread_mutex_unlock(&r->lock);
}

/* Until the run under p has begun, or goes on as it was before an edit that failed: before, it cannot be retuned. */
static void wait_for(gp_retuner *r, const gp_pipeline *p)
{
    gp_stage_status s;
    while (!is_stopping(r) && (gp_pipeline_is_paused(p) || gp_stages_status(p, &s, 1) < 1))
        usleep(LOOK_US);
}

/* Until the run goes on under p, or it does not. */
static bool goes_on(gp_retuner *r, const gp_pipeline *p, gp_errs *errs)
{
    bool up = false, failed = false, stop = false;
    while (!up && !failed && !stop) {
        up = gp_pipeline_paused_ns(p, NULL) > 0;
        pthread_mutex_lock(&r->lock);
        failed = r->has_failed, stop = r->stop;
        if (failed)
            gp_errs_add(errs, &r->failure);
        pthread_mutex_unlock(&r->lock);
        if (!up && !failed && !stop)
            usleep(LOOK_US);
    }
    return up || (stop && !failed && gp_pipeline_paused_ns(p, NULL) > 0);
}

static void usage_errors(const gp_args *args, gp_errs *errs)
{
    for (int i = 0; i < errs->n; i++) {
        char *option = gp_err_option(args, &errs->e[i]);
        if (option && errs->e[i].code == GP_E_SPEC)
            errs->e[i].code = GP_E_USAGE;
        free(option);
    }
}

/* Compiles again, with these settings added; `fd`: who has asked for it, or -1. */
static void edit(gp_retuner *r, const char *const *more, int n, int fd)
{
    char what[400];
    gp_errs errs = { .n = 0 };
    gp_args args = *r->args;
    part x = { .nset = 0 };
    gp_pipeline *was = runs(r);
    tell(r);
    part *room = r->nparts < r->cap ? r->part : realloc(r->part, sizeof *room * (size_t)(2 * r->cap));
    if (room != r->part || r->nparts == r->cap)
        r->part = room ? room : r->part, r->cap *= room ? 2 : 1;
    bool ok = room && add_settings(r, &x, more, n);
    args.set = x.set, args.nset = x.nset;
    if (!ok)
        gp_fail(&errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    ok = ok && gp_load(&x.l, args.operand[0], &args, r->registry, &errs);
    int items = ok ? gp_pipeline_changes(x.l.pipeline, was, what, sizeof what) : 0;
    bool went_on = false, tried = false;
    if (ok && items) {
        wait_for(r, was);
        try(r, x.l.pipeline);
        if (gp_pipeline_retune(x.l.pipeline, was, r->options, &errs)) {
            r->before = rate(r, was);
            tried = true;
            went_on = goes_on(r, x.l.pipeline, &errs);
        }
        try(r, NULL);
    }
    usage_errors(&args, &errs);
    if (fd < 0 || went_on)
        gp_print_errs(&args, &x.l, &errs);
    if (fd < 0 && errs.failed)
        fprintf(stderr, "gpipe: the run goes on as it was\n");
    if (errs.failed || !went_on) {
        if (fd >= 0 && errs.failed)
            answer_errors(fd, &args, &errs);
        else if (fd >= 0 && ok && !items)
            answer_text(fd, "same", "nothing changes");
        else if (fd >= 0)
            refuse(fd, "the run is over");
    }
    if (went_on) {
        r->part[r->nparts++] = x;
        r->times++;
        int64_t told, paused = gp_pipeline_paused_ns(x.l.pipeline, &told);
        r->what = strdup(what), r->pause_ms = 1e-6 * (double)paused, r->told_ms = 1e-6 * (double)told;
        r->reply_fd = fd;
        r->since = gp_seconds();
        if (r->watched)
            gp_watch_files(r->watched, x.l.pipeline);
    } else if (!tried) {
        drop(&x);
    } else {
        part *all = realloc(r->unused, sizeof *all * (size_t)(r->nunused + 1));
        if (all)                       /* else it is not freed */
            r->unused = all, all[r->nunused++] = x;
    }
}

/* A line ["depth=6", ...]. */
static void do_asked(gp_retuner *r, asked *a)
{
    gp_arena arena = { 0 };
    jmp_buf oom;
    gp_errs errs = { .n = 0 };
    if (setjmp(oom)) {
        refuse(a->fd, "out of memory");
    } else {
        arena.oom = &oom;
        const gp_node *list = gp_yaml_value(&arena, a->line, (gp_loc){ .file = "socket" }, &errs);
        bool good = list && list->kind == GP_LIST && list->n;
        const char **set = good ? GP_NEW(&arena, const char *, list->n) : NULL;
        for (int i = 0; good && i < list->n; i++) {
            good = list->item[i]->kind == GP_SCALAR;
            set[i] = list->item[i]->text;
        }
        if (!good)
            refuse(a->fd, "this is not a list of settings");
        else if (r->why_not)
            refuse(a->fd, r->why_not);
        else
            edit(r, set, list->n, a->fd);
    }
    gp_arena_free(&arena);
    free(a->line);
    free(a);
}

/* ---- the thread ------------------------------------------------------------ */

static asked *next_asked(gp_retuner *r)
{
    pthread_mutex_lock(&r->lock);
    asked *a = r->first;
    if (a && !(r->first = a->next))
        r->last = &r->first;
    pthread_mutex_unlock(&r->lock);
    return a;
}

/* Saving may take several writes: reads until it has been quiet for a while. */
static bool is_saved(gp_retuner *r)
{
    struct pollfd p = { gp_watch_fd(r->watched), POLLIN, 0 };
    double latest = gp_seconds() + 1e-3 * LATEST_MS;
    bool ours = gp_watch_read(r->watched);
    while (ours && gp_seconds() < latest && poll(&p, 1, QUIET_MS) > 0)
        gp_watch_read(r->watched);
    return ours;
}

/* For so long (-1: without an end), or until something is asked for. A run without --watch needs no descriptor. */
static int sleep_for(gp_retuner *r, int ms)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += ms % 1000 * 1000000L;
    until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000, until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&r->lock);
    for (int e = 0; !e && !r->stop && !r->first;)
        e = ms < 0 ? pthread_cond_wait(&r->wake, &r->lock) : pthread_cond_timedwait(&r->wake, &r->lock, &until);
    int n = r->stop || r->first;
    pthread_mutex_unlock(&r->lock);
    return n;
}

static void *retuner_main(void *arg)
{
    gp_retuner *r = arg;
    struct pollfd p[2] = { { r->wake_fd, POLLIN, 0 }, { gp_watch_fd(r->watched), POLLIN, 0 } };
    while (!is_stopping(r)) {
        eventfd_t woken;
        asked *a;
        double left = r->what ? AFTER_S - (gp_seconds() - r->since) : 0;
        int ms = r->what ? left > 0 ? (int)(1e3 * left) + 1 : 0 : -1;
        int n = r->watched ? poll(p, 2, ms) : sleep_for(r, ms);
        if (n < 0 && errno != EINTR)
            break;
        if (r->what && gp_seconds() - r->since >= AFTER_S)
            tell(r);
        if (n <= 0)
            continue;
        if (r->watched && p[0].revents)
            eventfd_read(r->wake_fd, &woken);
        while (!is_stopping(r) && (a = next_asked(r)))
            do_asked(r, a);
        if (p[1].revents && is_saved(r) && !is_stopping(r))
            edit(r, NULL, 0, -1);
    }
    return NULL;
}

gp_retuner *gp_retuner_start(const gp_args *args, const gp_registry *registry, const gp_loaded *first,
                             const gp_run_options *o, const char *why_not, gp_errs *errs)
{
    gp_retuner *r = calloc(1, sizeof *r);
    part *parts = calloc(FEW, sizeof *parts);
    if (r && parts) {
        *r = (gp_retuner){ .args = args, .registry = registry, .options = o, .why_not = why_not, .part = parts, .nparts = 1,
                           .cap = FEW, .since = gp_seconds(), .reply_fd = -1, .wake_fd = args->watch ? eventfd(0, EFD_CLOEXEC) : -1 };
        r->last = &r->first;
        parts[0].l = *first, parts[0].set = args->set, parts[0].nset = args->nset;
        pthread_mutex_init(&r->lock, NULL);
        pthread_cond_init(&r->wake, NULL);
        if (args->watch && (r->watched = gp_watch_new(errs)))
            gp_watch_files(r->watched, first->pipeline);
        if ((!args->watch || (r->watched && r->wake_fd >= 0)) && !pthread_create(&r->thread, NULL, retuner_main, r))
            return r;
        gp_watch_free(r->watched);
        if (r->wake_fd >= 0)
            close(r->wake_fd);
    }
    if (!errs->failed)
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "no memory or thread to retune the run");
    free(parts), free(r);
    return NULL;
}

gp_pipeline *gp_retuner_next(gp_retuner *r)
{
    pthread_mutex_lock(&r->lock);
    gp_pipeline *p = r->trying;
    pthread_mutex_unlock(&r->lock);
    return p;
}

void gp_retuner_failed(gp_retuner *r, const gp_errs *errs)
{
    pthread_mutex_lock(&r->lock);
    r->has_failed = true, r->failure = *errs;
    pthread_mutex_unlock(&r->lock);
}

int gp_retuner_stop(gp_retuner *r)
{
    asked *a;
    if (!r)
        return 0;
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    if (r->trying)
        gp_cancel(r->trying, 2);
    wake(r);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    tell(r);
    while ((a = next_asked(r))) {
        refuse(a->fd, "the run is over");
        free(a->line), free(a);
    }
    return r->times;
}

void gp_retuner_free(gp_retuner *r)
{
    if (!r)
        return;
    while (r->nparts > 1)
        drop(&r->part[--r->nparts]);
    while (r->nunused)
        drop(&r->unused[--r->nunused]);
    free(r->unused);
    gp_watch_free(r->watched);
    if (r->wake_fd >= 0)
        close(r->wake_fd);
    pthread_cond_destroy(&r->wake);
    pthread_mutex_destroy(&r->lock);
    free(r->part), free(r);
}
