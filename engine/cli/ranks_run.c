/* ranks_run.c - while a pipeline runs in several ranks, each tells the others how it is, and does as they do: see
 * ranks.h.
 *
 * A thread sends all ranks what each says of itself, round after round, until all have ended. All see the same
 * rounds, and so decide alike: that all begin, that all stop, whose error ended them, and how far all are. What they do
 * together when all are as far, that thread does between two rounds; who waits for the others waits for it. In each
 * round are the accounts of all: those of the last one are of the whole run, also of ranks that were lost on the way.
 * In every tenth round is what each stage and buffer of all counts, too: what they said last is in ranks_told.c added
 * up. Rounds are signs of life, too: a rank that is long at work gives them, and only one that is stopped or gone does
 * not. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "cli/live.h"
#include "cli/ranks_told.h"
#include "cli/retune_votes.h"

enum { BETWEEN_ROUNDS_NS = 10 * 1000 * 1000, COUNTED_EACH = 10 };

static struct {
    pthread_t thread;
    bool watched, timed;               /* timed: with the clocks of all */
    bool begun, over;                  /* the thread's: there was a round; all know how the runs were */
    gp_rank_says *mine;                /* the thread's */
    gp_shown shown;
    gp_counters counters;              /* the thread's */
    atomic_int state, status;          /* of this one */
    double seconds;                    /* before it is over */
    atomic_int all;                    /* the state that all have reached */
    atomic_bool told, late;            /* others told this one to stop; others are not up in time */
    int64_t up_ns;                     /* how long some have been up */
    int first;                         /* the rank whose error ended all; -1: none */
    gp_errs errs, late_errs;           /* the thread's; see `late` */
    bool named;                        /* who is lost: that was said */
} now = { .first = -1 };

/* Some are up, or wait for others in a collective that is being set up, and others have not come as far for too long:
 * the first of those that are says so, and that ends all. */
static void wait_for_others(int64_t ns)
{
    int first = 0, up = 0;
    char names[200], time[32];
    bool *slow = gp_ranks_room((size_t)gp_ranks(), sizeof *slow);
    for (int r = gp_ranks(); r--;)
        if (gp_told_by(r)->state == SETTING_UP && !gp_told_by(r)->meets)
            slow[r] = true;
        else
            up++, first = r;
    now.up_ns += up && up < gp_ranks() ? ns : 0;
    if (up && first == gp_rank() && now.up_ns > gp_ranks_join_ns() && !atomic_load(&now.late)) {
        gp_fail(&now.late_errs, GP_E_STALL, (gp_loc){ 0 }, "waited %s for %s to be set up",
                gp_ranks_time(gp_ranks_join_ns(), time), gp_ranks_names(slow, names));
        gp_fail(&now.late_errs, GP_E_NOTE, (gp_loc){ 0 }, "'--join-timeout' says how long to wait");
        atomic_store(&now.late, true);
        gp_signals_cancel(2);
    }
    free(slow);
}

/* What all said in this round: the state that all have reached. */
static int hear(void)
{
    int level = 0, all = IS_DONE;
    for (int r = 0; r < gp_ranks(); r++)
        all = gp_told_by(r)->state < all ? gp_told_by(r)->state : all;
    for (int r = 0; atomic_load(&now.all) < IS_OVER && r < gp_ranks(); r++) {
        const gp_rank_says *s = gp_told_by(r);
        if (s->status && !s->level && now.first < 0)
            now.first = r;
        if (r != gp_rank() && s->level > level)
            level = s->level;
    }
    gp_signals_of_another(level);      /* rank 0 says that all stop, whoever was asked to */
    if (now.first >= 0 && now.first != gp_rank())
        level = 2;
    if (level && atomic_load(&now.state) < IS_OVER)
        atomic_store(&now.told, true), gp_signals_cancel(level);
    return all;
}

static void count(void)
{
    if (now.mine->state >= IS_OVER)
        now.mine->seconds = now.seconds;
    gp_counters_read(&now.counters, gp_shown_look(&now.shown));
    gp_told_count(&now.counters);
}

/* Until all runs are over the pipeline is there. */
static void say(bool counted)
{
    gp_rank_says *s = now.mine;
    s->state = atomic_load(&now.state);        /* first: what it is when it is over is there before it says so */
    s->status = atomic_load(&now.status), s->level = gp_signals_level();
    s->meets = gp_ranks_meets(), gp_votes_tell(s);
    if (atomic_load(&now.all) < IS_OVER && (counted || s->state >= IS_OVER))
        count();
}

/* All have reached that state, and find it in the same round: what they then do together. */
static bool advance(int all)
{
    const int was = atomic_load(&now.all);
    bool ok = true;
    if (!now.begun)
        now.begun = true;
    if (was < IS_OVER && all >= IS_OVER) {
        gp_votes_end();
        say(true);
        now.over = gp_told_round(true, &now.errs);
        ok = now.over && (!now.timed || gp_ranks_clocks_end(&now.errs))
            && gp_ranks_meet_close(&now.errs);
    }
    if (ok && was < IS_SAID && all >= IS_SAID)
        ok = gp_ranks_hear_replaced(&now.errs);
    if (ok)
        atomic_store(&now.all, all);
    return ok;
}

static void *watch(void *arg)
{
    int64_t rested = 0;
    bool ok = !now.timed || gp_ranks_clocks_begin(&now.errs);
    for (int round = 0; ok && atomic_load(&now.all) < IS_DONE; round++) {
        bool counted = round % COUNTED_EACH == 0;
        say(counted);
        ok = gp_told_round(counted, &now.errs) && gp_votes_pass(&now.errs) && advance(hear());
        if (ok && !atomic_load(&now.all))
            wait_for_others(rested);
        rested = gp_ranks_rest(BETWEEN_ROUNDS_NS);
    }
    gp_votes_end();
    if (!ok && atomic_load(&now.all) < IS_OVER)
        atomic_store(&now.told, true), gp_signals_cancel(2);
    atomic_store(&now.all, NO_ROUNDS);
    return arg;
}

/* This rank is as far. Waits for the others. */
static void reach(int state)
{
    atomic_store(&now.state, state);
    while (now.watched && atomic_load(&now.all) < state)
        gp_ranks_rest(BETWEEN_ROUNDS_NS / 10);
}

bool gp_ranks_watch(const gp_pipeline *p, bool timed, gp_errs *errs)
{
    gp_pipeline_info is;
    gp_ranks_speak();
    if (gp_ranks() == 1)
        return true;
    gp_pipeline_about(p, &is);
    gp_votes_open();
    now.mine = gp_told_open(p), now.timed = timed;
    gp_shown_begin(&now.shown, p);
    gp_ranks_wait_for(is.stall_ns, "to give a sign of life: stopped, killed or out of reach?", "stall_timeout");
    now.watched = !pthread_create(&now.thread, NULL, watch, NULL);
    return now.watched || gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "a thread cannot be started");
}

void gp_ranks_next(const gp_pipeline *p)
{
    atomic_store(&now.shown.next, p);
}

bool gp_ranks_begin(void *arg)
{
    (void)arg;
    atomic_store(&now.state, IS_UP);
    while (now.watched && atomic_load(&now.all) < IS_UP && !atomic_load(&now.told) && !atomic_load(&now.late)
           && !gp_signals_level())
        gp_ranks_rest(BETWEEN_ROUNDS_NS / 10);
    return !atomic_load(&now.told) && !atomic_load(&now.late);
}

/* Without those that are lost there are no rounds: the others tell the first of them how their runs ended. */
static void tell_first(const bool *lost)
{
    int first = 0;
    while (lost[first])
        first++;
    say(false), count();
    for (int r = first + 1; r < gp_ranks(); r++)
        if (r == gp_rank() || (first == gp_rank() && !lost[r]))
            gp_told_pass(r, first);
}

/* The first of those that are left says who is lost, once there are no rounds any more. */
static void name_lost(void)
{
    if (!now.named && atomic_load(&now.all) == NO_ROUNDS && now.errs.failed && gp_ranks_is_first())
        gp_print_errs(&(gp_args){ .quiet = true }, NULL, &now.errs);
    now.named |= atomic_load(&now.all) == NO_ROUNDS;
}

int gp_ranks_end(int status, double *seconds, bool *first)
{
    *first = true;
    if (!now.watched)
        return status;
    if (atomic_load(&now.late))
        status = gp_errs_exit(&now.late_errs);
    atomic_store(&now.status, atomic_load(&now.told) && !gp_signals_level() ? 0 : status);
    now.seconds = *seconds;
    reach(IS_OVER);
    if (!now.over && gp_ranks_lost())
        tell_first(gp_ranks_lost());
    name_lost();
    if (atomic_load(&now.late))
        gp_print_errs(&(gp_args){ .quiet = true }, NULL, &now.late_errs);
    *first = now.first < 0 || now.first == gp_rank();
    int all = gp_told_end(now.first, seconds);
    return all || now.over ? all : gp_errs_exit(&now.errs);
}

void gp_ranks_said(void)
{
    reach(IS_SAID);
}

bool gp_ranks_over(void)
{
    return now.begun;
}

void gp_ranks_are_named(void)
{
    now.named = true;
}

int gp_ranks_done(int status)
{
    if (!now.watched)
        return status;
    reach(IS_DONE);
    pthread_join(now.thread, NULL);
    now.watched = false;
    name_lost(), gp_say_last();
    return status ? status : gp_errs_exit(&now.errs);
}
