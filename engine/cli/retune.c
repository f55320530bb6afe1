/* retune.c - edits of a run that goes on: `gpipe run --watch`, and what `gpipe set` asks for.
 *
 * The thread waits for files to be saved and for settings, compiles, and has gp_pipeline_retune pause the run; the
 * run's own thread goes on with what gp_retuner_next gives it. All pipelines that ran stay until the end, since
 * stages that stay open belong to the one that opened them. Of several ranks one that is asked tells all, itself,
 * too: each does it when it hears that (ranks/votes.c). */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/thread.h"
#include "base/yaml.h"
#include "cli/live.h"
#include "cli/retuner.h"

enum { QUIET_MS = 20, LATEST_MS = 200, FEW = 8 };

/* With the lock. */
static void wake(gp_retuner *r)
{
    pthread_cond_signal(&r->wake);
    if (r->wake_fd >= 0)
        eventfd_write(r->wake_fd, 1);
}

static void asks_came(void *arg)
{
    gp_retuner *r = arg;
    pthread_mutex_lock(&r->lock);
    wake(r);
    pthread_mutex_unlock(&r->lock);
}

void gp_retuner_ask(gp_retuner *r, int fd, char *line)
{
    gp_asked *a = r ? calloc(1, sizeof *a) : NULL;
    if (!a) {
        gp_refuse(fd, r ? "out of memory" : "this run cannot be retuned");
        free(line);
        return;
    }
    *a = (gp_asked){ .fd = fd, .line = line };
    pthread_mutex_lock(&r->lock);
    *r->last = a, r->last = &a->next;
    wake(r);
    pthread_mutex_unlock(&r->lock);
}

/* ---- what is asked for ----------------------------------------------------- */

/* Reads a line ["depth=6", ...] into memory of `a`; returns how many settings it has, 0 where it is no such line, -1
 * out of memory. */
static int settings(gp_arena *a, const char *line, const char ***set)
{
    gp_errs *errs;
    GP_IF_OOM(a)
        return -1;
    errs = GP_NEW(a, gp_errs, 1);
    const gp_node *list = gp_yaml_value(a, line, (gp_loc){ .file = "socket" }, errs);
    if (!list || list->kind != GP_LIST)
        return 0;
    *set = GP_NEW(a, const char *, list->n);
    for (int i = 0; i < list->n; i++) {
        if (list->item[i]->kind != GP_SCALAR)
            return 0;
        (*set)[i] = list->item[i]->text;
    }
    return list->n;
}

/* Tells all ranks, each of which begins when it hears of it. */
static void do_asked(gp_retuner *r, gp_asked *a)
{
    GP_ARENA(arena);
    const char **set = NULL;
    int n = settings(&arena, a->line, &set);
    const char *why = n < 0 ? "out of memory" : !n ? "this is not a list of settings" : r->why_not;
    if (!why && gp_ranks_n(r->args->ranks) > 1 && gp_votes_ask(r->args->ranks, a->line)) {
        *r->last_told = a, r->last_told = &a->next, a->next = NULL;
        return;
    }
    if (why || gp_ranks_n(r->args->ranks) > 1)
        gp_refuse(a->fd, why ? why : "the run is over");
    else
        gp_retuner_edit(r, set, n, a->fd);
    free(a->line), free(a);
}

static gp_asked *first_of(gp_asked **first, gp_asked ***last)
{
    gp_asked *a = *first;
    if (a && !(*first = a->next))
        *last = first;
    return a;
}

/* What all were asked for. The others wait for the vote of this rank, also when the runs are over. */
static void do_heard(gp_retuner *r)
{
    for (gp_ask *ask; (ask = gp_votes_next(r->args->ranks)); free(ask)) {
        GP_ARENA(arena);
        const char **set = NULL;
        gp_asked *a = ask->from == gp_rank(r->args->ranks) ? first_of(&r->told, &r->last_told) : NULL;
        int n = ask->from == GP_ASK_FILES ? 0 : settings(&arena, ask->line, &set);
        gp_retuner_edit(r, set, n, a ? a->fd : -1);
        if (a)
            free(a->line), free(a);
    }
}

/* ---- the thread ------------------------------------------------------------ */

static gp_asked *next_asked(gp_retuner *r)
{
    pthread_mutex_lock(&r->lock);
    gp_asked *a = first_of(&r->first, &r->last);
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
    struct timespec until = gp_moment(gp_now_ns() + 1000000LL * ms);
    pthread_mutex_lock(&r->lock);
    for (int e = 0; !e && !r->stop && !r->first && !gp_votes_are_asked(r->args->ranks);)
        e = ms < 0 ? pthread_cond_wait(&r->wake, &r->lock) : pthread_cond_timedwait(&r->wake, &r->lock, &until);
    int n = r->stop || r->first || gp_votes_are_asked(r->args->ranks);
    pthread_mutex_unlock(&r->lock);
    return n;
}

static void *retuner_main(void *arg)
{
    gp_retuner *r = arg;
    bool polls = r->wake_fd >= 0;
    const int reload_fd = gp_service_reload_fd();
    struct pollfd p[3] = { { r->wake_fd, POLLIN, 0 }, { gp_watch_fd(r->watched), POLLIN, 0 }, { reload_fd, POLLIN, 0 } };
    while (!r->stop) {
        eventfd_t woken;
        gp_asked *a;
        double left = r->what ? GP_RATE_AFTER_S - (gp_seconds() - r->since) : 0;
        int ms = r->what ? left > 0 ? (int)(1e3 * left) + 1 : 0 : -1;
        int n = polls ? poll(p, 3, ms) : sleep_for(r, ms);
        polls &= n >= 0 || errno == EINTR;     /* without memory for it no file is watched, but other ranks are answered */
        if (r->what && gp_seconds() - r->since >= GP_RATE_AFTER_S)
            gp_retuner_tell(r);
        if (n <= 0)
            continue;
        if (polls && p[0].revents)
            eventfd_read(r->wake_fd, &woken);
        while (!r->stop && (a = next_asked(r)))
            do_asked(r, a);
        do_heard(r);
        if (polls && p[2].revents && !eventfd_read(reload_fd, &woken) && !r->stop
            && !gp_signals_level()) {
            while (!gp_service_reloads() && !r->stop)
                ;
            gp_retuner_edit(r, NULL, 0, -1);
            while (!gp_service_tell(true, "READY=1") && !r->stop)
                ;
        }
        if (!polls || !p[1].revents || !is_saved(r) || r->stop)
            continue;
        if (gp_ranks_n(r->args->ranks) > 1)
            gp_votes_saved(r->args->ranks);
        else
            gp_retuner_edit(r, NULL, 0, -1);
    }
    do_heard(r);
    return NULL;
}

gp_retuner *gp_retuner_start(const gp_args *args, const gp_registry *registry, const gp_loaded *first,
                             const gp_run_options *o, const char *why_not, gp_errs *errs)
{
    gp_retuner *r = calloc(1, sizeof *r);
    gp_part *parts = calloc(FEW, sizeof *parts);
    bool polls = args->watch || gp_service_reload_fd() >= 0;
    if (r && parts) {
        *r = (gp_retuner){ .args = args, .registry = registry, .options = *o, .why_not = why_not, .part = parts,
                           .nparts = 1, .cap = FEW, .since = gp_seconds(), .reply_fd = -1,
                           .wake_fd = polls ? eventfd(0, EFD_CLOEXEC) : -1 };
        r->last = &r->first, r->last_told = &r->told;
        if (gp_ranks_n(r->args->ranks) > 1)
            r->options.pause = gp_retuner_pause, r->options.pause_arg = r;
        parts[0].l = *first, parts[0].set = args->set, parts[0].nset = args->nset;
        pthread_mutex_init(&r->lock, NULL);
        gp_cond_init(&r->wake);
        if (args->watch && (r->watched = gp_watch_new(errs)))
            gp_watch_files(r->watched, first->pipeline);
        if ((!args->watch || r->watched) && (!polls || r->wake_fd >= 0) && !gp_thread_start(&r->thread, retuner_main, r)) {
            gp_votes_listen(args->ranks, asks_came, r);
            asks_came(r);             /* before */
            return r;
        }
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

void gp_retuner_over(gp_retuner *r)
{
    if (r)
        r->over = true;
}

int gp_retuner_stop(gp_retuner *r)
{
    gp_asked *a;
    if (!r)
        return 0;
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    if (r->trying)
        gp_cancel(r->trying, 2);
    wake(r);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    gp_retuner_tell(r);
    while ((a = next_asked(r)) || (a = first_of(&r->told, &r->last_told))) {
        gp_refuse(a->fd, "the run is over");
        free(a->line), free(a);
    }
    return r->times;
}

void gp_retuner_free(gp_retuner *r)
{
    if (!r)
        return;
    while (r->nparts > 1)
        gp_retuner_drop(&r->part[--r->nparts]);
    while (r->nunused)
        gp_retuner_drop(&r->unused[--r->nunused]);
    free(r->unused);
    gp_watch_free(r->watched);
    if (r->wake_fd >= 0)
        close(r->wake_fd);
    pthread_cond_destroy(&r->wake);
    pthread_mutex_destroy(&r->lock);
    free(r->part), free(r);
}
