/* watch.c - while a pipeline runs in several ranks, each tells the others how it is, and does as they do: see
 * ranks.h.
 *
 * A thread sends all ranks what each says of itself, round after round, until all have ended. All see the same
 * rounds, and so decide alike: that all begin, that all stop, whose error ended them, and how far all are. What they do
 * together when all are as far, that thread does between two rounds; who waits for the others waits for it. In each
 * round are the accounts of all: those of the last one are of the whole run, also of ranks that were lost on the way.
 * In every tenth round is what each stage and buffer of all counts, too: what they said last is in told.c added
 * up. Rounds are signs of life, too: a rank that is long at work gives them, and only one that is stopped or gone does
 * not. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "ranks/inside.h"

enum { BETWEEN_ROUNDS_NS = 10 * 1000 * 1000, COUNTED_EACH = 10 };

/* Some are up, or wait for others in a collective that is being set up, and others have not come as far for too long:
 * the first of those that are says so, and that ends all. */
static void wait_for_others(gp_ranks *us, int64_t ns)
{
    int first = 0, up = 0;
    char names[200], time[32];
    bool *slow = gp_ranks_room(us, (size_t)us->n, sizeof *slow);
    for (int r = us->n; r--;)
        if (gp_told_by(us, r)->state == SETTING_UP && !gp_told_by(us, r)->meets)
            slow[r] = true;
        else
            up++, first = r;
    us->run.up_ns += up && up < us->n ? ns : 0;
    if (up && first == us->rank && us->run.up_ns > us->join_ns && !atomic_load(&us->run.late)) {
        gp_errs errs = { .n = 0 };
        gp_fail(&errs, GP_E_STALL, (gp_loc){ 0 }, "waited %s for %s to be set up", gp_ranks_time(us->join_ns, time),
                gp_ranks_names(us, slow, names));
        gp_fail(&errs, GP_E_NOTE, (gp_loc){ 0 }, "'--join-timeout' says how long to wait");
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
    if (us->run.mine->state >= IS_OVER)
        us->run.mine->seconds = us->run.seconds;
    gp_counters_read(&us->run.counters, gp_shown_look(&us->run.shown));
    gp_told_count(us, &us->run.counters);
}

/* Until all runs are over the pipeline is there. */
static void say(gp_ranks *us, bool counted)
{
    gp_rank_says *s = us->run.mine;
    s->state = atomic_load(&us->run.state);        /* first: what it is when it is over is there before it says so */
    s->status = atomic_load(&us->run.status), s->level = us->host->level();
    s->meets = gp_ranks_meets(us), gp_votes_tell(us, s);
    if (atomic_load(&us->run.all) < IS_OVER && (counted || s->state >= IS_OVER))
        count(us);
}

/* All have reached that state, and find it in the same round: what they then do together. */
static bool advance(gp_ranks *us, int all)
{
    const int was = atomic_load(&us->run.all);
    bool ok = true;
    us->run.begun = true;
    if (was < IS_OVER && all >= IS_OVER) {
        gp_votes_end(us);
        say(us, true);
        us->run.over = gp_told_round(us, true, &us->run.errs);
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
        ok = gp_told_round(us, counted, &us->run.errs) && gp_votes_pass(us, &us->run.errs) && advance(us, hear(us));
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
    gp_ranks_speak(us);
    if (us->n == 1)
        return true;
    gp_pipeline_about(p, &is);
    gp_votes_open(us);
    us->run.mine = gp_told_open(us, p), us->run.timed = timed;
    gp_shown_begin(&us->run.shown, p);
    gp_ranks_wait_for(us, is.stall_ns, "to give a sign of life: stopped, killed or out of reach?", "stall_timeout");
    us->run.watched = !pthread_create(&us->run.thread, NULL, watch, us);
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
    while (us->run.watched && atomic_load(&us->run.all) < IS_UP && !atomic_load(&us->run.told) && !atomic_load(&us->run.late)
           && !us->host->level())
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
            gp_told_pass(us, r, first);
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
    int all = gp_told_end(us, us->run.first, seconds);
    return all || us->run.over ? all : gp_errs_exit(&us->run.errs);
}

void gp_ranks_said(gp_ranks *us)
{
    reach(us, IS_SAID);
}

bool gp_ranks_over(gp_ranks *us)
{
    return us->run.begun;
}

void gp_ranks_are_named(gp_ranks *us)
{
    us->run.named = true;
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
