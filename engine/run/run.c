/* run.c - runs a plan, as often as one likes. The memory of a run is freed when the next one begins, because its report
 * may be read until then.
 *
 * A plan's actors (host stages and segments) each have threads of their own, and
 * may lend them to cheap neighbors (turn.c); between them are rings. A ring has one producer, and one cursor for each
 * consumer. An actor may take frame i when each of its input rings holds frame i
 * and each of its output rings has a free slot for it (ring.c): that is all the
 * scheduling and all the back-pressure there is. Host stages are worked by one or
 * more workers who publish in order (host.c). Segments have a launcher, which
 * queues runs of frames on streams, and a reaper, which waits for them in order
 * (launcher.c, reaper.c).
 *
 *   ends      A source that ends sets the end of its rings; whoever reaches the
 *             end of an input passes it on. An actor that takes no more closes
 *             its cursors; a producer whose consumers are all closed ends.
 *   holes     A dropped or failed frame is published like any other, marked in
 *             its meta; everybody passes it on (frame.c).
 *   stopping  Level 1: sources end at once, the rest drains. Level 2: nobody
 *             takes another frame. An error is level 1, and the failing actor
 *             ends at the failed frame, so that all before it comes out.
 *   account   Every frame of every source is counted once by its account.
 *
 * Everything is allocated, opened, built and loaded before frame 0. This file does
 * that step by step and takes it down: the tables are in tables.c, the memory in
 * memory.c, the devices in devices.c, the stages in open.c, the threads in threads.c. */
#include <malloc.h>
#include <sched.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "base/c_locale.h"
#include "base/filetable.h"
#include "base/plural.h"
#include "base/thread.h"
#include "run/nvtx.h"
#include "run/paused.h"
#include "run/setup.h"
#include "run/tap.h"
#include "run/trace.h"

/* ---- errors and levels ----------------------------------------------- */

void gp_run_wake(gp_run *run)
{
    for (int i = 0; i < run->plan->nactors; i++) {
        gp_eventcount_wake(&run->actor[i].changed);
        gp_eventcount_wake(&run->actor[i].to_end);
    }
}

void gp_run_level(gp_run *run, int level)
{
    int was = atomic_load(&run->level);
    while (was < level && !atomic_compare_exchange_weak(&run->level, &was, level))
        ;
    if (atomic_load(&run->is_up) && run->actor)
        gp_run_wake(run);
}

void gp_run_fail(gp_run *run, const gp_errs *errs)
{
    pthread_mutex_lock(&run->lock);
    bool first = !atomic_load(&run->failed);
    if (!errs->failed || first)            /* the first error wins; warnings stay */
        gp_errs_add(&run->errs, errs);
    if (errs->failed)
        atomic_store(&run->failed, true);
    pthread_mutex_unlock(&run->lock);
    if (errs->failed)
        gp_run_level(run, 1);
}

/* Has a source failed so often in a row that it makes nothing more, as one of a damaged file that claims frames without
 * end? A stage that says how many of its frames may fail has that many. */
static bool fails_without_end(gp_actorrt *p)
{
    enum { IN_A_ROW = 1000 };
    const gp_stage *st = p->stage;
    uint64_t good = atomic_load(&p->frames);
    p->in_a_row = good == p->good ? p->in_a_row + 1 : 1, p->good = good;
    return p->source && st->max_dropped < 0 && st->max_part < 0 && p->in_a_row >= IN_A_ROW;
}

bool gp_frame_drop_or_fail(gp_threadrt *t)
{
    const gp_stage *st = t->actor->stage;
    bool fatal = (st ? st->on_error : t->run->graph->on_error) == GP_ON_ERROR_STOP;
    for (int i = 0; i < t->errs.n; i++)
        fatal |= t->errs.e[i].code == GP_E_MISMATCH;
    if (fatal)
        return true;
    uint64_t dropped = atomic_fetch_add(&t->actor->dropped, 1) + 1;
    if (st && st->max_dropped >= 0 && dropped > (uint64_t)st->max_dropped) {
        gp_fail(&t->errs, GP_E_RUN, gp_node_at(st->node, "max_dropped", st->at), "more than %lld frame%s failed in stage '%s'", (long long)st->max_dropped,
                gp_plural(st->max_dropped), st->name);
        return true;
    }
    if (fails_without_end(t->actor)) {
        gp_fail(&t->errs, GP_E_RUN, st->at, "the last %llu frames of stage '%s' failed, one after the other: set "
                "'max_dropped' to go on for longer", (unsigned long long)t->actor->in_a_row, st->name);
        return true;
    }
    for (int i = 0; i < t->errs.n; i++)
        if (t->errs.e[i].code != GP_E_NOTE)
            t->errs.e[i].code = GP_E_WARN;
    t->errs.failed = 0;
    gp_run_fail(t->run, &t->errs);
    t->errs = (gp_errs){ .at = t->errs.at };
    return false;
}

/* Errors of stages in which more frames failed than 'max_dropped' allows. */
static void check_dropped(const gp_run *run, gp_errs *errs)
{
    for (int i = 0; i < run->plan->nactors; i++) {
        const gp_actorrt *p = &run->actor[i];
        uint64_t dropped = atomic_load(&p->dropped), all = dropped + atomic_load(&p->frames);
        if (p->stage && p->stage->max_part >= 0 && (double)dropped > p->stage->max_part * (double)all)
            gp_fail(errs, GP_E_RUN, gp_node_at(p->stage->node, "max_dropped", p->stage->at), "%llu of %llu frames failed in stage '%s', more than %g %%",
                    (unsigned long long)dropped, (unsigned long long)all, p->stage->name, 100 * p->stage->max_part);
    }
}

/* ---- a run, up and down ---------------------------------------------- */

/* Host stages that keep something, and that the run it goes on from has open. */
static void find_kept(gp_run *run, const gp_pipeline *from)
{
    for (int i = 0; i < run->graph->nstages; i++) {
        const gp_stage *s = &run->graph->stage[i];
        run->opts[i] = s->opts;
        run->keeps[i] = from && s->kind->open && !gp_stage_makes_on_device(s) && !run->pipeline->again[i]
                     && (!from->paused || from->paused->opened[i]);
    }
}

/* All but what needs the frames that wait in the run it goes on from. Meanwhile errs->at is the place of what is
 * made: the file, the device, a buffer, a stage. */
static bool set_up_first(gp_run *run, gp_errs *errs)
{
    gp_tables_make(run);
    find_kept(run, run->from);
    if (!run->files && !(run->files = gp_pipeline_files(run->pipeline)))
        longjmp(*run->arena.oom, 1);
    if (!gp_states_hold(run, errs) || !gp_devices_open(run, errs) || !gp_memory_take(run, errs)
        || !gp_prologue_run(run, errs))
        return false;
    gp_rings_make(run);
    gp_actors_make(run);
    if (run->options.check_finite)
        gp_finite_make(run);
    gp_turns_init(run);
    gp_nvtx_open(run);
    return gp_accounts_make(run) && gp_resume_open(run, errs) && gp_stages_open(run, true, errs) && gp_stages_open(run, false, errs)
        && gp_actors_init(run, errs) && gp_states_make(run, errs);
}

/* Those that there were end. False: there are none. */
static bool set_threads(gp_pipeline *p, struct gp_threads *threads)
{
    pthread_rwlock_wrlock(&p->run_lock);
    struct gp_threads *was = p->threads;
    p->threads = threads;
    pthread_rwlock_unlock(&p->run_lock);
    gp_threads_free(was);
    return threads;
}

static bool set_up(gp_run *run, gp_errs *errs)
{
    if (!run->waits && !set_up_first(run, errs))
        return false;
    run->waits = run->from && !run->goes_on;
    if (run->waits)
        return true;
    if (!run->pipeline->threads && !set_threads(run->pipeline, gp_threads_new()))
        longjmp(*run->arena.oom, 1);
    if (!gp_threads_reserve(run->pipeline->threads, run, errs))
        return false;
    if (run->goes_on && !gp_paused_load(run, run->goes_on, errs))
        return false;
    if (run->goes_on)
        gp_paused_take(run, run->goes_on);
    gp_trace_open(run);
    return true;
}

void gp_run_destroy(gp_run *run)
{
    if (!run)
        return;
    const gp_plan *plan = run->plan;
    for (int i = 0; run->actor && i < plan->nactors; i++)
        if (run->actor[i].kind == GP_ACTOR_SEGMENT)
            gp_segment_stop_resident(&run->actor[i]);
    for (int i = 0; run->actor && i < plan->nactors; i++) {
        gp_actorrt *p = &run->actor[i];
        if (!p->run)
            continue;
        if (p->kind == GP_ACTOR_HOST)
            gp_host_fini(p);
        else
            gp_segment_fini(p);
        gp_eventcount_fini(&p->changed);
        gp_eventcount_fini(&p->to_end);
        pthread_mutex_destroy(&p->behind);
    }
    for (int i = 0; i < run->naccounts; i++)
        gp_account_fini(&run->account[i]);
    gp_states_free(run);
    gp_memory_give(run);
    for (int d = 0; run->dev && d < run->ndevs; d++)
        if (run->dev[d])
            run->dev[d]->backend->close(run->dev[d]);
    gp_nvtx_close(run);
    gp_filetable_free(run->held_files);
    gp_resume_free(run);
    gp_states_drop(run);
    close(run->done_fd);
    pthread_mutex_destroy(&run->lock);
    pthread_mutex_destroy(&run->engine_lock);
    gp_arena_free(&run->arena);
    free(run);
}

/* A run that nobody stopped lost no frame, unless it was made by a source that
 * never ends for consumers that had enough. */
static void check_account(const gp_run *run, gp_errs *errs)
{
    for (int i = 0; i < run->naccounts; i++) {
        gp_accountrt *l = &run->account[i];
        const gp_stage *s = &run->graph->stage[l->source];
        uint64_t in = l->in, seen = l->out + l->dropped + l->failed;
        if (seen > in || (seen < in && !s->endless && !l->spare && !atomic_load(&l->cut)))
            gp_fail(errs, GP_E_BUG, s->at,
                    "source '%s': %llu frames went in, but %llu are accounted for", s->name,
                    (unsigned long long)in, (unsigned long long)seen);
    }
}

static gp_loc file_of(const gp_pipeline *p)
{
    return (gp_loc){ .file = p->graph->file };
}

/* What stages do when they are opened may take any time: on a thread of its own. */
static void *set_up_main(void *arg)
{
    GP_C_LOCALE;
    gp_run *run = arg;
    gp_errs *errs = &run->set_up_errs;
    jmp_buf oom;
    gp_thread_known(&run->set_up_tid, &run->set_up_clock);
    run->arena.oom = &oom;
    errs->at = file_of(run->pipeline);
    if (!setjmp(oom))
        run->ready = set_up(run, errs);
    atomic_store(&run->breaks_off, !run->ready);
    for (int i = run->graph->nstages - 1; !run->ready && run->opened && i >= 0; i--) {
        atomic_store(&run->opening, &run->graph->stage[i]);
        gp_stages_break_off(run, i, errs);
    }
    atomic_store(&run->opening, NULL);
    run->arena.oom = run->pipeline->arena.oom = NULL;
    if (!run->ready && !errs->failed && !atomic_load(&run->level))
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    atomic_store(&run->is_up, true);
    eventfd_write(run->done_fd, 1);
    return NULL;
}

bool gp_run_set_up(gp_run *run)
{
    pthread_t thread;
    eventfd_t up;
    int e = gp_thread_start(&thread, set_up_main, run);
    if (e) {
        gp_fail(&run->set_up_errs, GP_E_RESOURCE, file_of(run->pipeline),
                "cannot start a thread: %s", gp_strerror(e));
    } else {
        if (!gp_watch_set_up(run))
            return false;
        pthread_join(thread, NULL);
        eventfd_read(run->done_fd, &up);
        if (!run->ready && atomic_load(&run->level))
            run->set_up_errs = (gp_errs){ .n = 0 };    /* it was broken off */
    }
    gp_run_fail(run, &run->set_up_errs);
    return true;
}

gp_run *gp_pipeline_lock_run(const gp_pipeline *p)
{
    pthread_rwlock_rdlock(&((gp_pipeline *)p)->run_lock);
    return p->run;
}

void gp_pipeline_unlock_run(const gp_pipeline *p)
{
    pthread_rwlock_unlock(&((gp_pipeline *)p)->run_lock);
}

/* Puts `run` in the place of the newest run, which it returns. */
static gp_run *replace_run(gp_pipeline *p, gp_run *run)
{
    pthread_rwlock_wrlock(&p->run_lock);
    gp_run *was = p->run;
    p->run = run;
    pthread_rwlock_unlock(&p->run_lock);
    return was;
}

gp_run *gp_run_new(gp_pipeline *p, gp_pipeline *from, const gp_run_options *o, gp_errs *errs)
{
    gp_run *run = calloc(1, sizeof *run);
    if (!run)
        return GP_NULL(gp_fail(errs, GP_E_RESOURCE, file_of(p), "out of memory"));
    run->pipeline = p, run->plan = p->plan, run->graph = p->plan->graph, run->from = from;
    run->options = o ? *o : (gp_run_options){ .poison = false };
    run->options.isolate |= run->options.check_kernels;
    run->done_fd = eventfd(0, EFD_CLOEXEC);
    pthread_mutex_init(&run->lock, NULL);
    pthread_mutex_init(&run->engine_lock, NULL);
    return run;
}

void gp_pipeline_drop_prepared(gp_pipeline *p)
{
    gp_run *run = p->prepared;
    p->prepared = NULL;
    if (run)
        gp_stages_close(run);
    gp_run_destroy(run);
}

static void set_paused(gp_pipeline *p, struct gp_paused *x)
{
    pthread_rwlock_wrlock(&p->run_lock);
    struct gp_paused *was = p->paused;
    p->paused = x;
    pthread_rwlock_unlock(&p->run_lock);
    gp_paused_free(was);
}

/* What the run has come to is kept; false: that fails, or it has not paused. */
static bool keep_paused(gp_run *run, gp_errs *errs)
{
    struct gp_paused *x = run->ready && !errs->failed && gp_run_is_paused(run) ? gp_paused_make(run, errs) : NULL;
    if (!x)
        return false;
    set_paused(run->pipeline, x);
    gp_stages_close(run);              /* those on the device */
    return true;
}

static void save_states(gp_run *run, int level, gp_errs *errs)
{
    if (run->ready && !errs->failed && level < 2 && gp_states_are_saved(run))
        gp_states_save(run, level, errs);
}

/* `from`: the run goes on with what one of that has come to; NULL: it begins. *level: what was asked for by
 * gp_cancel when it was over. */
static gp_outcome run_once(gp_pipeline *p, gp_pipeline *from, const gp_run_options *o, int *level, gp_errs *errs)
{
    if (p->prepared && p->prepared->from != from)      /* it was to go on from another */
        gp_pipeline_drop_prepared(p);
    gp_run *was = replace_run(from ? from : p, NULL), *run = p->prepared ? p->prepared : gp_run_new(p, from, o, errs);
    if (!from)                         /* else frames that wait are in the memory of that run */
        gp_run_destroy(was), was = NULL;
    if (from && p != from)
        gp_run_destroy(replace_run(p, NULL));
    if (!run) {
        replace_run(from ? from : p, was);
        return GP_ERROR;
    }
    p->prepared = NULL;
    run->goes_on = from ? from->paused : NULL;
    run->files = p->files;
    bool back = gp_run_set_up(run);
    if (back && from && !run->ready && p != from)
        replace_run(from, was), was = NULL;
    gp_run_destroy(replace_run(p, run));       /* also of one that is stuck there is an account */
    if (back && run->ready && from) {
        set_paused(from, NULL);
        run->goes_on = NULL;
        run->saves = was->saves, was->saves = NULL;
    }
    if (back && run->ready && !run->set_up_errs.failed) {
        if (!from && run->options.begin && !run->options.begin(run->options.begin_arg))
            gp_cancel(p, 2), gp_run_level(run, 2);
        gp_resume_start(run);
        gp_states_start(run);
        gp_taps_begin(run);
        gp_threads_start(run);
        gp_loans_begin(run);
        int64_t now = gp_now_ns();
        if (from && atomic_load(&from->told_ns)) {
            atomic_store(&p->since_told_ns, now - atomic_exchange(&from->told_ns, 0));
            atomic_store(&p->paused_ns, now - atomic_load(&from->stopped_ns));
        }
        gp_run_destroy(was), was = NULL;
#ifdef __GLIBC__
        if (from)                      /* else its frames stay with the process, between pieces of plans that stay */
            malloc_trim(0);
#endif
        back = gp_watch(run);
        gp_taps_end(run);
        atomic_store(&p->stopped_ns, gp_now_ns());
        gp_loans_end(run, gp_run_is_paused(run), back);
        gp_threads_end(run, back);
        gp_resume_stop(run);
        if (back)
            gp_states_stop(run);
    }
    if (back && run->watched)
        run->dev[0]->backend->unwatch(run->dev[0]);
    bool paused = back && run->ready && gp_run_is_paused(run);
    back = back && (paused || gp_files_end(run));
    pthread_mutex_lock(&run->lock);
    gp_errs_add(errs, &run->errs);
    pthread_mutex_unlock(&run->lock);
    if (!back) {
        if (p->files)
            gp_filetable_abandon(p->files);
        gp_files_kept(p, o, errs);
        return GP_STUCK;
    }
    *level = atomic_load(&p->cancel);
    if (keep_paused(run, errs))
        return GP_PAUSED;
    if (run->resume && *level)         /* sinks say what they have until they are closed */
        save_states(run, *level, errs);
    gp_stages_close(run);
    if (!run->goes_on)                 /* else they are those of the paused run still */
        gp_files_kept(p, o, errs);
    if (!errs->failed && !atomic_load(&run->level))
        check_account(run, errs);
    if (run->ready && !errs->failed)
        check_dropped(run, errs);
    if (run->ready && !errs->failed)
        gp_latency_check(run, errs);
    if (!run->resume || !*level)
        save_states(run, *level, errs);
    if (!errs->failed && !*level && gp_resume_done(run, errs))
        gp_states_name(run, errs);
    gp_states_drop(run);
    return errs->failed ? GP_ERROR
        : *level >= 2                ? GP_NOT_DRAINED
        : *level == 1                ? GP_DRAINED
                                     : GP_DONE;
}

/* ---- from outside ---------------------------------------------------- */

void gp_pipeline_open_stop(gp_pipeline *p)
{
    if (atomic_load(&p->stop_fd) >= 0)
        return;
    atomic_store(&p->stop_fd, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (atomic_load(&p->cancel))
        eventfd_write(p->stop_fd, 1);
}

/* No run under p goes on. One that is retuned a thousand times would have a thousand of them. */
static void close_stop(gp_pipeline *p)
{
    int fd = atomic_exchange(&p->stop_fd, -1);
    while (atomic_load(&p->cancelling))        /* a signal handler of another thread has it still */
        sched_yield();
    if (fd >= 0)
        close(fd);
}

/* `runs`: under p, not under one that goes on from it. */
static bool begin(gp_pipeline *p, bool runs, const gp_run_options *o, gp_errs *errs)
{
    if (atomic_exchange(&p->running, true))
        return gp_fail(errs, GP_E_RUN, file_of(p), "this pipeline is running, or a run of it got stuck: it has one run at a "
                       "time");
    if (runs && !gp_endpoints_asked(p, o && o->no_sinks, errs)) {
        atomic_store(&p->running, false);
        return false;
    }
    if (runs)
        gp_endpoints_begin(p);
    gp_pipeline_open_stop(p);
    return true;
}

/* A run is over. */
static void end(gp_pipeline *p, gp_outcome outcome, int level)
{
    eventfd_t told;
    gp_endpoints_end(p);
    if (outcome == GP_STUCK)
        return;
    if (outcome != GP_PAUSED) {
        gp_pipeline_forget_files(p);
        set_threads(p, NULL);
        if (atomic_compare_exchange_strong(&p->cancel, &level, 0))     /* what came later is of the next run */
            eventfd_read(p->stop_fd, &told);
    }
    atomic_store(&p->running, false);
}

void gp_pipeline_drop_paused(gp_pipeline *p, gp_errs *errs)
{
    if (!p->paused)
        return;
    gp_paused_close(p->paused);
    set_paused(p, NULL);
    gp_files_kept(p, NULL, errs);
    gp_pipeline_forget_files(p);
    set_threads(p, NULL);
}

static gp_outcome run_begun(gp_pipeline *p, const gp_run_options *o, gp_errs *errs)
{
    GP_C_LOCALE;
    int level = 0;
    gp_pipeline_drop_prepared(p);
    gp_pipeline_drop_paused(p, errs);
    gp_outcome outcome = run_once(p, NULL, o, &level, errs);
    end(p, outcome, level);
    return outcome;
}

gp_outcome gp_pipeline_run(gp_pipeline *p, const gp_run_options *o, gp_errs *errs)
{
    GP_C_LOCALE;
    if (!begin(p, true, o, errs))
        return GP_ERROR;
    return run_begun(p, o, errs);
}

static void *run_main(void *pipeline)
{
    gp_pipeline *p = pipeline;
    p->outcome = run_begun(p, &p->started_options, p->started_errs);
    return NULL;
}

bool gp_pipeline_start(gp_pipeline *p, const gp_run_options *o, gp_errs *errs)
{
    GP_C_LOCALE;
    if (!begin(p, true, o, errs))
        return false;
    atomic_store(&p->waited, false);
    p->started_options = o ? *o : (gp_run_options){ .poison = false };
    p->started_errs = errs;
    int e = gp_thread_start(&p->runner, run_main, p);
    p->started = !e;
    if (!e)
        return true;
    end(p, GP_ERROR, 0);
    return gp_fail(errs, GP_E_RESOURCE, file_of(p), "cannot start a thread: %s", gp_strerror(e));
}

gp_outcome gp_pipeline_wait(gp_pipeline *p)
{
    if (!p->started)
        return GP_ERROR;
    atomic_store(&p->waited, true);
    pthread_join(p->runner, NULL);
    p->started = false;
    return p->outcome;
}

/* What the run goes on with besides: the table of files that are open, its threads, inputs that are closed, and what
 * was asked of it. */
static void hand_on(gp_pipeline *to, gp_pipeline *from)
{
    eventfd_t told;
    if (to == from)
        return;
    gp_pipeline_forget_files(to);
    to->files = atomic_exchange(&from->files, NULL);
    gp_pipeline_add_files(to);
    pthread_rwlock_wrlock(&from->run_lock);
    struct gp_threads *threads = from->threads;
    from->threads = NULL;
    pthread_rwlock_unlock(&from->run_lock);
    set_threads(to, threads);
    gp_endpoints_hand_on(to, from);
    int level = atomic_exchange(&from->cancel, 0);
    if (level)
        gp_cancel(to, level), eventfd_read(from->stop_fd, &told);
}

gp_outcome gp_pipeline_go_on(gp_pipeline *p, gp_pipeline *from, const gp_run_options *o, gp_errs *errs)
{
    GP_C_LOCALE;
    int level = 0;
    gp_outcome outcome = GP_ERROR;
    if (!begin(p, true, o, errs))
        return GP_ERROR;
    if (p != from && !begin(from, false, o, errs)) {
        gp_endpoints_end(p);
        atomic_store(&p->running, false);
        return GP_ERROR;
    }
    bool fits = from->paused && (p == from || !p->paused)
              ? gp_paused_fits(p, from, errs)
              : gp_fail(errs, GP_E_RUN, file_of(from->paused ? p : from), from->paused
                        ? "this pipeline has a paused run of its own" : "no run of this pipeline is paused");
    if (fits) {
        hand_on(p, from);
        outcome = run_once(p, from, o, &level, errs);
    }
    bool taken = !from->paused || (p == from && outcome == GP_PAUSED);
    if (fits && !taken)
        hand_on(from, p);
    if (p != from && outcome != GP_STUCK)
        close_stop(taken ? from : p);
    if (p != from)
        atomic_store(&from->running, false);
    gp_endpoints_end(p);
    if (taken)
        end(p, outcome, level);
    else if (outcome != GP_STUCK)
        atomic_store(&p->running, false);
    return outcome;
}
