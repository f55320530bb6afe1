/* watch.c - while a pipeline runs in several ranks, each tells the others how it is, and does as they do: see
 * ranks.h.
 *
 * A thread sends all ranks what each says of itself, round after round, until all have ended. All see the same
 * rounds, and so decide alike: that all begin, that all stop, whose error ended them, and how far all are. What they do
 * together when all are as far, that thread does between two rounds; who waits for the others waits for it. In each
 * round are the accounts of all: those of the last one are of the whole run, also of ranks that were lost on the way.
 * In every tenth round is what each stage and buffer of all counts, too. Rounds are signs of life: a rank that is long
 * at work gives them, and only one that is stopped or gone does not. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "base/thread.h"
#include "ranks/inside.h"

enum { BETWEEN_ROUNDS_NS = 10 * 1000 * 1000, COUNTED_EACH = 10 };

/* ---- what each has told, added up ------------------------------------------ */

enum { FEW = 10 };                     /* frames that a rank may be behind */

typedef gp_rank_says says;
typedef struct staged { uint64_t frames, bytes; } staged;
typedef struct held { int held, depth; } held;

static staged *stages_of(const says *s)
{
    return (staged *)&s->source[s->nsources];
}

static held *buffers_of(const says *s)
{
    return (held *)(stages_of(s) + s->stages);
}

gp_rank_says *gp_told_by(gp_ranks *us, int r)
{
    return (says *)(us->told.last + (size_t)r * us->told.each);
}

static void told_open(gp_ranks *us, const gp_pipeline *p)
{
    gp_stage_info st;
    says counts = { .frames = gp_frames_of(p) };
    for (int i = 0; gp_pipeline_stage(p, i, &st); i++)
        counts.nsources += !st.nin, counts.stages++, counts.buffers += st.nin;
    us->told.few = sizeof counts + (size_t)counts.nsources * sizeof *counts.source;
    us->told.each = us->told.few + (size_t)counts.stages * sizeof(staged) + (size_t)counts.buffers * sizeof(held);
    us->told.mine = gp_ranks_room(us, 1, us->told.each);
    us->told.last = gp_ranks_room(us, (size_t)us->n, us->told.each);
    *us->told.mine = counts;
}

/* What this rank says of these. */
static void told_count(gp_ranks *us, const gp_counters *c)
{
    says *s = us->told.mine;
    for (int i = 0; i < s->nsources && i < c->nsources; i++)
        s->source[i] = c->source[i];
    s->nstages = c->nstages <= s->stages ? c->nstages : 0, s->nbuffers = c->nbuffers <= s->buffers ? c->nbuffers : 0;
    s->names = 0;
    for (int i = 0; i < s->nstages; i++) {
        stages_of(s)[i] = (staged){ c->stage[i].frames, c->stage[i].bytes };
        s->names = gp_ranks_hash(s->names, c->stage[i].name, strlen(c->stage[i].name) + 1);
    }
    for (int i = 0; i < s->nbuffers; i++) {
        buffers_of(s)[i] = (held){ c->buffer[i].held, c->buffer[i].depth };
        s->names = gp_ranks_hash(s->names, c->buffer[i].name, strlen(c->buffer[i].name) + 1);
    }
}

static void keep(gp_ranks *us, int first, int n, const char *of, size_t bytes)
{
    pthread_mutex_lock(&us->told.lock);
    for (int i = 0; i < n; i++)
        memcpy(gp_told_by(us, first + i), of + (size_t)i * bytes, bytes);
    pthread_mutex_unlock(&us->told.lock);
}

/* One round. counted: with what stages and buffers count. */
static bool told_round(gp_ranks *us, bool counted, gp_errs *errs)
{
    size_t n = counted ? us->told.each : us->told.few;
    char *of = gp_ranks_gather(us, us->told.mine, (int)n, false, errs);
    if (of)
        keep(us, 0, us->n, of, n);
    free(of);
    return of;
}

/* Without rounds: what rank `from` says, to rank `to`. */
static void told_pass(gp_ranks *us, int from, int to)
{
    char *of = gp_ranks_room(us, 1, us->told.each);
    memcpy(of, us->told.mine, us->told.each);
    if (!gp_ranks_pass(us, from, to, of, (int)us->told.each) && to == us->rank)
        keep(us, from, 1, of, us->told.each);
    free(of);
}

/* Until looked() nothing changes. So many ranks have told something, to this one or (`first`) to rank 0 alone. */
static int look(gp_ranks *us, bool first)
{
    pthread_mutex_lock(&us->told.lock);
    return us->told.last && !(first && us->rank) ? us->n : 0;
}

static void looked(gp_ranks *us)
{
    pthread_mutex_unlock(&us->told.lock);
}

/* The exit code of all: that of rank `first`, or of any. *seconds becomes that of the one that took longest. */
static int told_end(gp_ranks *us, int first, double *seconds)
{
    int ranks = look(us, false), status = first < 0 ? 0 : gp_told_by(us, first)->status;
    for (int r = 0; r < ranks; r++) {
        status = status ? status : gp_told_by(us, r)->status;         /* that of a signal */
        *seconds = gp_told_by(us, r)->seconds > *seconds ? gp_told_by(us, r)->seconds : *seconds;
    }
    looked(us);
    return status;
}

static void add_sources(gp_account *a, int n, const says *s)
{
    for (int i = 0; i < n && i < s->nsources; i++) {
        const gp_account *c = &s->source[i];
        a[i].in += c->in, a[i].out += c->out, a[i].dropped += c->dropped, a[i].failed += c->failed;
        a[i].cancelled += c->cancelled, a[i].faulty += c->faulty, a[i].late += c->late;
        a[i].lost += c->lost, a[i].full += c->full;
    }
}

void gp_ranks_sum(gp_ranks *us, gp_account *a, int n)
{
    for (int r = 0, ranks = look(us, false); r < ranks; r++)
        if (r != us->rank)
            add_sources(a, n, gp_told_by(us, r));
    looked(us);
}

void gp_told_sources(gp_ranks *us, int r, gp_account *a, int n)
{
    int ranks = look(us, false);
    for (int i = 0; ranks && i < n; i++)
        a[i].in = a[i].out = a[i].dropped = a[i].failed = a[i].cancelled = a[i].faulty = a[i].late
            = a[i].lost = a[i].full = 0;
    if (ranks)
        add_sources(a, n, gp_told_by(us, r));
    looked(us);
}

/* Do all of so many ranks count the same stages and buffers? */
static bool are_alike(gp_ranks *us, int ranks, const gp_counters *c)
{
    bool alike = ranks > 0;
    for (int r = 0; alike && r < ranks; r++)
        alike = gp_told_by(us, r)->nstages == c->nstages && gp_told_by(us, r)->nbuffers == c->nbuffers
            && gp_told_by(us, r)->names == gp_told_by(us, 0)->names;
    return alike;
}

bool gp_ranks_fills(gp_ranks *us, const gp_counters *c, double *fill)
{
    int ranks = look(us, true);
    bool alike = are_alike(us, ranks, c);
    for (int r = 0; alike && r < ranks; r++)
        for (int b = 0; b < c->nbuffers; b++) {
            const held *of = buffers_of(gp_told_by(us, r)) + b;
            fill[r * c->nbuffers + b] = of->depth > 0 ? (double)of->held / of->depth : 0;
        }
    looked(us);
    return alike;
}

static uint64_t done_by(const says *s)
{
    uint64_t most = 0;
    for (int i = 0; i < s->nsources; i++) {
        uint64_t done = s->source[i].out + s->source[i].dropped + s->source[i].failed;
        most = done > most ? done : most;
    }
    return most;
}

static void add_counted(gp_counters *c, const says *s)
{
    for (int i = 0; i < c->nstages; i++)
        c->stage[i].frames += stages_of(s)[i].frames, c->stage[i].bytes += stages_of(s)[i].bytes;
    for (int i = 0; i < c->nbuffers; i++)
        c->buffer[i].held += buffers_of(s)[i].held, c->buffer[i].depth += buffers_of(s)[i].depth;
}

void gp_ranks_whole(gp_ranks *us, gp_counters *c, gp_ranks_way *w)
{
    int ranks = look(us, true);
    bool alike = are_alike(us, ranks, c);
    uint64_t most = 0;
    w->behind = -1, w->behind_done = 0, w->left = -1;
    for (int r = 0; r < ranks; r++) {
        const says *s = gp_told_by(us, r);
        uint64_t done = done_by(s);
        double left = done ? ((double)s->frames - (double)done) / (double)done : -1;
        most = done > most ? done : most;
        if (s->state < IS_OVER && (w->behind < 0 || done < w->behind_done))
            w->behind = r, w->behind_done = done;
        if (s->state < IS_OVER && s->frames > 0 && left > w->left)
            w->left = left;
        if (!r)
            continue;
        w->frames = w->frames < 0 || s->frames < 0 ? -1 : w->frames + s->frames;
        add_sources(c->source, c->nsources, s);
        if (alike)
            add_counted(c, s);
    }
    looked(us);
    if (most - w->behind_done < FEW || (double)w->behind_done >= 0.9 * (double)most)
        w->behind = -1;
}

/* ---- rounds ---------------------------------------------------------------- */

/* Some are up, or wait for others in a collective that is being set up, and others have not come as far for too long:
 * the first of those that are says so, and that ends all. */
static void wait_for_others(gp_ranks *us, int64_t ns)
{
    int first = 0, up = 0;
    char names[200], whom[300];
    bool *slow = gp_ranks_room(us, (size_t)us->n, sizeof *slow);
    for (int r = us->n; r--;)
        if (gp_told_by(us, r)->state == SETTING_UP && !gp_told_by(us, r)->meets)
            slow[r] = true;
        else
            up++, first = r;
    us->run.up_ns += up && up < us->n ? ns : 0;
    if (up && first == us->rank && us->run.up_ns > us->join_ns && !atomic_load(&us->run.late)) {
        gp_errs errs = { .n = 0 };
        snprintf(whom, sizeof whom, "%s to be set up", gp_ranks_names(us, slow, names));
        gp_ranks_waited(us->join_ns, "--join-timeout", whom, &errs);
        us->host->say(us, &errs);
        atomic_store(&us->run.late, gp_errs_exit(&errs));
        us->host->cancel(2);
    }
    free(slow);
}

/* What all said in this round: the state that all have reached. */
static int hear(gp_ranks *us)
{
    int level = 0, all = IS_DONE;
    for (int r = 0; r < us->n; r++)
        all = gp_told_by(us, r)->state < all ? gp_told_by(us, r)->state : all;
    for (int r = 0; atomic_load(&us->run.all) < IS_OVER && r < us->n; r++) {
        const gp_rank_says *s = gp_told_by(us, r);
        if (s->status && !s->level && us->run.first < 0)
            us->run.first = r;
        if (r != us->rank && s->level > level)
            level = s->level;
    }
    us->host->stopped(level);          /* rank 0 says that all stop, whoever was asked to */
    if (us->run.first >= 0 && us->run.first != us->rank)
        level = 2;
    if (level && atomic_load(&us->run.state) < IS_OVER)
        atomic_store(&us->run.told, true), us->host->cancel(level);
    return all;
}

static void count(gp_ranks *us)
{
    if (us->told.mine->state >= IS_OVER)
        us->told.mine->seconds = us->run.seconds;
    gp_counters_read(&us->run.counters, gp_shown_look(&us->run.shown));
    told_count(us, &us->run.counters);
}

/* Until all runs are over the pipeline is there. */
static void say(gp_ranks *us, bool counted)
{
    gp_rank_says *s = us->told.mine;
    s->state = atomic_load(&us->run.state);        /* first: what it is when it is over is there before it says so */
    s->status = atomic_load(&us->run.status), s->level = us->host->level();
    s->meets = atomic_load(&us->meetings.waits), gp_votes_tell(us, s);
    if (atomic_load(&us->run.all) < IS_OVER && (counted || s->state >= IS_OVER))
        count(us);
}

/* All have reached that state, and find it in the same round: what they then do together. */
static bool advance(gp_ranks *us, int all)
{
    const int was = atomic_load(&us->run.all);
    bool ok = true;
    if (!us->run.begun)                /* later rounds write nothing that others read meanwhile */
        us->run.begun = true;
    if (was < IS_OVER && all >= IS_OVER) {
        gp_votes_end(us);
        say(us, true);
        us->run.over = told_round(us, true, &us->run.errs);
        ok = us->run.over && (!us->run.timed || gp_ranks_clocks_end(us, &us->run.errs))
            && gp_ranks_meet_close(us, &us->run.errs);
    }
    if (ok && was < IS_SAID && all >= IS_SAID)
        ok = gp_ranks_hear_replaced(us, &us->run.errs);
    if (ok)
        atomic_store(&us->run.all, all);
    return ok;
}

static void *watch(void *arg)
{
    gp_ranks *us = arg;
    int64_t rested = 0;
    bool ok = !us->run.timed || gp_ranks_clocks_begin(us, &us->run.errs);
    for (int round = 0; ok && atomic_load(&us->run.all) < IS_DONE; round++) {
        bool counted = round % COUNTED_EACH == 0;
        say(us, counted);
        ok = told_round(us, counted, &us->run.errs) && gp_votes_pass(us, &us->run.errs) && advance(us, hear(us));
        if (ok && !atomic_load(&us->run.all))
            wait_for_others(us, rested);
        rested = gp_ranks_rest(BETWEEN_ROUNDS_NS);
    }
    gp_votes_end(us);
    if (!ok && atomic_load(&us->run.all) < IS_OVER)
        atomic_store(&us->run.told, true), us->host->cancel(2);
    atomic_store(&us->run.all, NO_ROUNDS);
    return arg;
}

/* This rank is as far. Waits for the others. */
static void reach(gp_ranks *us, int state)
{
    atomic_store(&us->run.state, state);
    while (us->run.watched && atomic_load(&us->run.all) < state)
        gp_ranks_rest(BETWEEN_ROUNDS_NS / 10);
}

bool gp_ranks_watch(gp_ranks *us, const gp_pipeline *p, bool timed, gp_errs *errs)
{
    gp_pipeline_info is;
    us->speaker.all = true;
    if (us->n == 1)
        return true;
    gp_pipeline_about(p, &is);
    gp_votes_open(us);
    told_open(us, p);
    us->run.timed = timed;
    gp_shown_begin(&us->run.shown, p);
    us->wait_ns = is.stall_ns, us->wait_key = "stall_timeout";
    us->wait_what = "to give a sign of life: stopped, killed or out of reach?";
    us->run.watched = !gp_thread_start(&us->run.thread, watch, us);
    return us->run.watched || gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "a thread cannot be started");
}

void gp_ranks_next(gp_ranks *us, const gp_pipeline *p)
{
    atomic_store(&us->run.shown.next, p);
}

bool gp_ranks_begin(void *arg)
{
    gp_ranks *us = arg;
    atomic_store(&us->run.state, IS_UP);
    while (us->run.watched && atomic_load(&us->run.all) < IS_UP && !atomic_load(&us->run.told)
           && !atomic_load(&us->run.late) && !us->host->level())
        gp_ranks_rest(BETWEEN_ROUNDS_NS / 10);
    return !atomic_load(&us->run.told) && !atomic_load(&us->run.late);
}

/* Without those that are lost there are no rounds: the others tell the first of them how their runs ended. */
static void tell_first(gp_ranks *us, const bool *lost)
{
    int first = 0;
    while (lost[first])
        first++;
    say(us, false), count(us);
    for (int r = first + 1; r < us->n; r++)
        if (r == us->rank || (first == us->rank && !lost[r]))
            told_pass(us, r, first);
}

/* The first of those that are left says who is lost, once there are no rounds any more. */
static void name_lost(gp_ranks *us)
{
    if (!us->run.named && atomic_load(&us->run.all) == NO_ROUNDS && us->run.errs.failed && gp_ranks_is_first(us))
        us->host->say(us, &us->run.errs);
    us->run.named |= atomic_load(&us->run.all) == NO_ROUNDS;
}

int gp_ranks_end(gp_ranks *us, int status, double *seconds, bool *first)
{
    *first = true;
    if (!us->run.watched)
        return status;
    if (atomic_load(&us->run.late))
        status = atomic_load(&us->run.late);
    atomic_store(&us->run.status, atomic_load(&us->run.told) && !us->host->level() ? 0 : status);
    us->run.seconds = *seconds;
    reach(us, IS_OVER);
    if (!us->run.over && gp_ranks_lost(us))
        tell_first(us, gp_ranks_lost(us));
    name_lost(us);
    *first = us->run.first < 0 || us->run.first == us->rank;
    int all = told_end(us, us->run.first, seconds);
    return all || us->run.over ? all : gp_errs_exit(&us->run.errs);
}

void gp_ranks_tell_replaced(gp_ranks *us)
{
    reach(us, IS_SAID);
}

int gp_ranks_done(gp_ranks *us, int status)
{
    if (!us->run.watched)
        return status;
    reach(us, IS_DONE);
    pthread_join(us->run.thread, NULL);
    us->run.watched = false;
    name_lost(us), us->host->flush();
    return status ? status : gp_errs_exit(&us->run.errs);
}
