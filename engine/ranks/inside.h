/* inside.h - what the files of ranks share: the object, and what one calls of another. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include "base/clock.h"
#include "mpi/shim.h"
#include "ranks/ranks.h"
#include "ranks/same.h"

/* How far a rank is: its run is set up; is over; what there was to say of it is said; it ends. */
enum { SETTING_UP, IS_UP, IS_OVER, IS_SAID, IS_DONE, NO_ROUNDS };

/* What each rank tells all of itself, round after round (watch.c). status: of its own error; level: of gp_cancel;
 * meets: it waits for others in a collective; ask, saved, listens: of votes.c; seconds: that its run took; frames: that
 * its sources make (< 0: not known). Behind the sources there is room for `stages` and `buffers`; nstages, nbuffers:
 * how many it has counted, which have names of this sum. */
typedef struct gp_rank_says {
    int state, level, status, meets, ask, saved, listens, nsources, stages, buffers, nstages, nbuffers;
    uint64_t names;
    int64_t frames;
    double seconds;
    gp_account source[];               /* without their names */
} gp_rank_says;

struct gp_ranks {
    int rank, n, local_rank, local_n;
    const gp_ranks_host *host;
    /* join.c */
    const gp_mpi *mpi;
    int64_t join_ns;
    struct {
        pthread_mutex_t lock;              /* of all of it; who gives up keeps it */
        bool runs;                         /* the thread */
        int64_t ns, left;                  /* left 0: there is no limit */
        const char *doing;                 /* NULL: to join */
        int status;                        /* with which it ends then; 0: that of a stall, which it says */
    } limit;
    /* meet.c */
    pthread_mutex_t calls;                 /* several threads send, each on its channel; MPI takes one call at a time */
    /* So long (0: for ever) others may take ("to compile the pipeline"), as that key says. */
    int64_t wait_ns; const char *wait_what, *wait_key;
    long gathers;                          /* on channel 0, so far */
    long *heard;                           /* the gather in which each rank called last; 0: in none since this waits */
    atomic_bool apart;                     /* a gather has failed; before: */
    bool *lost; int nlost;
    struct { int n; struct meeting *of; atomic_int waits; } meetings;      /* of collectives; it waits in so many */
    /* agree.c */
    struct { int n; const char **name; } joined;               /* the sinks that write one file in all ranks */
    bool account;
    struct { bool all, names; int rank; char name[32]; } speaker;      /* all: each says what there is to say */
    /* clock.c, of each rank */
    struct { char (*host)[64]; struct offset *begin, *end; } clocks;
    /* watch.c */
    struct {
        pthread_t thread;
        bool watched, timed;               /* timed: with the clocks of all */
        bool begun, over;                  /* the thread's: there was a round, so all can exchange what is left to say;
                                              all know how the runs were */
        gp_shown shown;
        gp_counters counters;              /* the thread's */
        atomic_int state, status;          /* of this one */
        double seconds;                    /* before it is over */
        atomic_int all;                    /* the state that all have reached */
        atomic_bool told;                  /* others told this one to stop */
        atomic_int late;                   /* not 0: others are not up in time, and this is the exit code */
        int64_t up_ns;                     /* how long some have been up */
        int first;                         /* the rank whose error ended all; -1: none */
        gp_errs errs;                      /* the thread's */
        bool named;                        /* who is lost: that was said, or is not to be */
    } run;
    struct {
        size_t few, each;                  /* bytes of a gp_rank_says, without what stages and buffers count; with it */
        gp_rank_says *mine;                /* what this rank says: the thread's */
        pthread_mutex_t lock;
        char *last;                        /* of each, in `each` bytes: under the lock, or by the thread of rounds */
    } told;
    /* votes.c */
    struct {
        pthread_mutex_t lock;              /* of what follows */
        gp_ask *out, *in;                  /* the first of those that all are to hear, that all have heard */
        bool over;
        void (*wake)(void *);
        void *arg;
        int saved;                         /* how often this rank saw files saved */
        int *passed;                       /* the thread's that has the rounds: what each had said of that */
        struct ballot *of;                 /* the voter's: the last vote of each, with these words */
        char **words;
    } votes;
    /* replaced.c; merged: of all ranks */
    struct { struct replaced *of; int n; bool merged; } replaced;
};

static inline double now_s(void)
{
    return 1e-9 * (double)gp_now_ns();
}

/* join.c. Zeroed memory for n things. Without memory this process ends, and its launcher ends the others, which would
 * wait. */
void *gp_ranks_room(gp_ranks *us, size_t n, size_t size);
/* From now on something is done that waits for other ranks, and that nothing ends: after so long this process ends,
 * with an error; 0: it is done. `doing`: what the others did not do; NULL: start. `status` not 0: it ends with that,
 * and says nothing. */
void gp_ranks_limit(gp_ranks *us, int64_t ns, const char *doing, int status);
/* How long it is since *then, of which a moment counts at most: the process may have been stopped; sets *then. */
int64_t gp_ranks_since(double *then);
int64_t gp_ranks_rest(int64_t ns);         /* sleeps; the time that it took, of which a moment counts at most */
const char *gp_ranks_names(gp_ranks *us, const bool *is, char buf[200]);       /* "rank 2", "ranks 0, 2"; returns buf */
/* "waited 30 s for rank 2 to start", which `key` could change: an error. False. */
bool gp_ranks_waited(int64_t ns, const char *key, const char *whom, gp_errs *errs);

/* meet.c. Sends `n` bytes of each rank to all: one after the other, for free(). Waits, but not for ever: NULL with an
 * error, which names the ranks that did not come. Those are lost, and there is no other gather. now: for times, it
 * looks all the time whether that is there. */
void *gp_ranks_gather(gp_ranks *us, const void *mine, int n, bool now, gp_errs *errs);
/* On a channel of its own, by a thread of its own: waits until all have come, or (NULL) some are lost. */
enum { GP_CHANNEL_VOTES = 1, GP_CHANNEL_COLLECTIVES };
void *gp_ranks_gather_on(gp_ranks *us, int channel, const void *mine, int n);
const bool *gp_ranks_lost(gp_ranks *us);   /* of each rank; NULL: none is */
/* Brings `n` bytes of rank `from` to rank `to`, which both call. Waits for as long as the other takes part in rounds,
 * or, if there are none any more, for --join-timeout. A text: why not. */
const char *gp_ranks_pass(gp_ranks *us, int from, int to, void *data, int n);
/* For collectives: a channel for each; when the runs of all are over, the end of what some of them had begun. All ranks
 * call both. */
bool gp_ranks_meet_open(gp_ranks *us, const gp_pipeline *p, gp_errs *errs);
bool gp_ranks_meet_close(gp_ranks *us, gp_errs *errs);

/* clock.c, for what has times of several ranks: all call the first before the run, and the other when it is over, by
 * the thread that gathers. Then each has the clock of each beside that of rank 0, which is no further off than
 * *error_ns, and a name of the machine of each. */
bool gp_ranks_clocks_begin(gp_ranks *us, gp_errs *errs);
bool gp_ranks_clocks_end(gp_ranks *us, gp_errs *errs);
gp_clock gp_ranks_clock(gp_ranks *us, int r, double *error_ns);
const char *gp_ranks_machine(gp_ranks *us, int r);

/* watch.c. This rank ends, with that exit code or the one that this returns. Waits for the others. */
int gp_ranks_done(gp_ranks *us, int status);

gp_rank_says *gp_told_by(gp_ranks *us, int r); /* what it said last; for the thread that has the rounds */
void gp_told_sources(gp_ranks *us, int r, gp_account *a, int n);       /* sets those of that rank */

/* votes.c, for the thread that has the rounds. What this rank is asked for, in what it says; hears what all are;
 * nothing from now on. */
void gp_votes_open(gp_ranks *us);
void gp_votes_tell(gp_ranks *us, gp_rank_says *s);
bool gp_votes_pass(gp_ranks *us, gp_errs *errs);
void gp_votes_end(gp_ranks *us);

/* replaced.c */
bool gp_ranks_hear_replaced(gp_ranks *us, gp_errs *errs);
