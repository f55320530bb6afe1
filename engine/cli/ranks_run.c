/* ranks_run.c - while a pipeline runs in several ranks, each tells the others how it is, and does as they do: see
 * ranks.h.
 *
 * * A thread sends all ranks what each says of itself, round after round. All see the same rounds, and so decide
 * alike: that all begin, that all stop, whose error ended them, and which round is the last. In each round are the
 * accounts of all: those of the last one are of the whole run, also of ranks that were lost on the way. In every tenth
 * round is what each stage and buffer of all counts, too: what they said last is in ranks_told.c added up. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "cli/live.h"
#include "cli/ranks_told.h"

enum { BETWEEN_ROUNDS_NS = 10 * 1000 * 1000, COUNTED_EACH = 10 };

static struct {
    pthread_t thread;
    bool watched, joined;
    bool timed, begun;                 /* with the clocks of all; there was a round */
    gp_rank_says *mine;                /* the thread's */
    gp_shown shown;
    gp_counters counters;              /* the thread's */
    atomic_int state, status;          /* of this one */
    double seconds;                    /* before it is over */
    atomic_bool go, told, late;        /* all are up; others told this one to stop; others are not up in time */
    int64_t up_ns;                     /* how long some have been up */
    int first;                         /* the rank whose error ended all; -1: none */
    gp_errs errs, late_errs;           /* of MPI; see `late` */
} now = { .first = -1 };

/* Some are up, and others have not come as far for too long: the first of those that are says so, and that ends all. */
static void wait_for_others(int64_t ns)
{
    int first = 0, up = 0;
    char names[200], time[32];
    bool *slow = gp_ranks_room((size_t)gp_ranks(), sizeof *slow);
    for (int r = gp_ranks(); r--;)
        if (gp_told_by(r)->state == SETTING_UP)
            slow[r] = true;
        else
            up++, first = r;
    now.up_ns += up && up < gp_ranks() ? ns : 0;
    if (up && first == gp_rank() && now.up_ns > gp_ranks_join_ns() && !atomic_load(&now.late)) {
        gp_fail(&now.late_errs, GP_E_STALL, (gp_loc){ 0 }, "waited %s for %s to be set up",
                gp_ranks_time(gp_ranks_join_ns(), time), gp_ranks_names(slow, names));
        gp_fail(&now.late_errs, GP_E_NOTE, (gp_loc){ 0 }, "'--join-timeout' says how long to wait");
        atomic_store(&now.late, true);
    }
    free(slow);
}

/* What the others said in this round. Are all over? */
static bool hear(void)
{
    int level = 0, up = 0, over = 0;
    for (int r = 0; r < gp_ranks(); r++) {
        const gp_rank_says *s = gp_told_by(r);
        up += s->state >= IS_UP, over += s->state == IS_OVER;
        if (s->status && !s->level && now.first < 0)
            now.first = r;
        if (r != gp_rank() && s->level > level)
            level = s->level;
    }
    gp_signals_of_another(level);      /* rank 0 says that all stop, whoever was asked to */
    if (now.first >= 0 && now.first != gp_rank())
        level = 2;
    if (level && atomic_load(&now.state) != IS_OVER)
        atomic_store(&now.told, true), gp_signals_cancel(level);
    if (up == gp_ranks())
        atomic_store(&now.go, true);
    return over == gp_ranks();
}

static void say(bool counted)
{
    gp_rank_says *s = now.mine;
    s->state = atomic_load(&now.state);        /* first: what it is when it is over is there before it says so */
    s->status = atomic_load(&now.status), s->level = gp_signals_level();
    s->note = gp_ranks_note_bytes();
    if (s->state == IS_OVER)
        s->seconds = now.seconds;
    else if (!counted)
        return;
    gp_counters_read(&now.counters, gp_shown_look(&now.shown));
    gp_told_count(&now.counters);
}

/* The last round follows that in which all are over, and all count in it. */
static bool tell_rounds(void)
{
    int64_t rested = 0;
    bool over = false, last = false;
    for (int round = 0; !last; round++) {
        last = over;
        bool counted = last || round % COUNTED_EACH == 0;
        say(counted);
        if (!gp_told_round(counted, &now.errs) || !gp_ranks_notes_pass(&now.errs))
            return false;
        now.begun = true, over = hear();
        if (!atomic_load(&now.go))
            wait_for_others(rested);
        rested = over ? 0 : gp_ranks_rest(BETWEEN_ROUNDS_NS);
    }
    return true;
}

static void *watch(void *arg)
{
    if ((now.timed && !gp_ranks_clocks_begin(&now.errs)) || !tell_rounds())
        atomic_store(&now.told, true), gp_signals_cancel(2);
    gp_ranks_notes_end(false);
    if (!now.errs.failed && (!now.timed || gp_ranks_clocks_end(&now.errs)))
        gp_ranks_meet_close(&now.errs);
    return arg;
}

bool gp_ranks_watch(const gp_pipeline *p, bool timed, gp_errs *errs)
{
    gp_pipeline_info is;
    gp_ranks_speak();
    if (gp_ranks() == 1)
        return true;
    gp_pipeline_about(p, &is);
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
    while (now.watched && !atomic_load(&now.go) && !atomic_load(&now.told) && !atomic_load(&now.late)
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
    say(true);
    for (int r = first + 1; r < gp_ranks(); r++)
        if (r == gp_rank() || (first == gp_rank() && !lost[r]))
            gp_told_pass(r, first, 10 * INT64_C(1000000000));
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
    atomic_store(&now.state, IS_OVER);
    pthread_join(now.thread, NULL);
    now.watched = false, now.joined = true;
    if (gp_ranks_lost())
        tell_first(gp_ranks_lost());
    if (now.errs.failed && gp_ranks_is_first())
        gp_print_errs(&(gp_args){ .quiet = true }, NULL, &now.errs);
    if (atomic_load(&now.late))
        gp_print_errs(&(gp_args){ .quiet = true }, NULL, &now.late_errs);
    for (int r = 0; r < gp_ranks(); r++)
        if (gp_told_by(r)->seconds > *seconds)
            *seconds = gp_told_by(r)->seconds;
    *first = now.first < 0 || now.first == gp_rank();
    int all = now.first < 0 ? 0 : gp_told_by(now.first)->status;
    for (int r = 0; !all && r < gp_ranks(); r++)       /* that of a signal */
        all = gp_told_by(r)->status;
    return all ? all : now.errs.failed ? gp_errs_exit(&now.errs) : 0;
}

void gp_ranks_said(void)
{
    gp_errs errs = { .n = 0 };         /* who does not come has said why, or is named in what follows */
    if (now.joined && !now.errs.failed && !gp_ranks_lost())
        gp_ranks_hear_replaced(&errs);
    else
        gp_ranks_keep_replaced();
}

bool gp_ranks_ends(void)
{
    return now.watched && (atomic_load(&now.told) || gp_signals_level());
}

bool gp_ranks_over(void)
{
    return now.joined && now.begun;
}
