/* ranks.h - one pipeline in several processes, its ranks, that a launcher of MPI (mpirun, srun) has started.
 *
 * Each compiles the same file and runs it on its share of the frames (compile/shard.c). Meanwhile they tell each other
 * how they are: none begins before all are set up, the first error of one ends all, and where one is asked to stop, all
 * do. Without a launcher there is one rank, and nothing here does anything. */
#ifndef GP_CLI_RANKS_H
#define GP_CLI_RANKS_H

#include "cli/cli.h"

/* ranks.c. Joins the others, if there are any; before anything is compiled. `ok`: the command line has no error here,
 * which they learn. False if this rank has nothing to do: with an error, or since rank 0 does that alone. */
bool gp_ranks_join(const gp_args *args, bool ok, gp_errs *errs);
bool gp_ranks_is_another(void);            /* does the environment say that this is a rank, and not rank 0? */
/* Before the process ends with this exit code; waits for all, or, if some are lost or do not answer, ends it. */
void gp_ranks_leave(int status);
int gp_rank(void);
int gp_ranks(void);
int gp_local_rank(void);
int gp_local_ranks(void);              /* 0: no launcher started it */
/* Zeroed memory for n things. Without memory this process ends, and its launcher ends the others, which would wait. */
void *gp_ranks_room(size_t n, size_t size);
/* Sends `n` bytes of each rank to all: one after the other, for free(). Waits, but not for ever: NULL with an error,
 * which names the ranks that did not come. Those are lost, and there is no other gather. */
void *gp_ranks_gather(const void *mine, int n, gp_errs *errs);
/* The same for times: looks all the time whether that is there. */
void *gp_ranks_gather_now(const void *mine, int n, gp_errs *errs);
/* The same of bytes[r] of each rank r. */
void *gp_ranks_gather_any(const void *mine, const int *bytes, gp_errs *errs);
/* From now on so long (0: for ever) for what others have to do meanwhile ("to compile the pipeline"); `key` says so. */
void gp_ranks_wait_for(int64_t ns, const char *what, const char *key);
/* Has `what` taken longer? With an error. */
bool gp_ranks_too_late(int64_t ns, const char *what, gp_errs *errs);
const bool *gp_ranks_lost(void);           /* of each rank; NULL: none is */
bool gp_ranks_is_first(void);              /* of those that are not lost */
int64_t gp_ranks_join_ns(void);            /* --join-timeout */
/* Brings `n` bytes of rank `from` to rank `to`, which both call. Waits for as long as the other takes part in rounds,
 * or, if there are none any more, for --join-timeout. A text: why not. */
const char *gp_ranks_pass(int from, int to, void *data, int n);

/* ranks_limit.c. This rank joins the others: those on its machine see that without MPI. */
void gp_ranks_come(void);
/* From now on something is done that waits for other ranks, and that nothing ends: after so long this process ends,
 * with an error; 0: it is done. `doing`: what the others did not do; NULL: start. `status` not 0: it ends with that,
 * and says nothing. */
void gp_ranks_limit(int64_t ns, const char *doing, int status);
/* How long it is since *then, of which a moment counts at most: the process may have been stopped; sets *then. */
int64_t gp_ranks_since(double *then);
int64_t gp_ranks_rest(int64_t ns);         /* sleeps; the time that it took, of which a moment counts at most */
const char *gp_ranks_names(const bool *is, char buf[200]);     /* "rank 2", "ranks 0, 2"; returns buf */
const char *gp_ranks_time(int64_t ns, char buf[32]);           /* "30 s"; returns buf */

/* On a channel of its own, by a thread of its own: waits until all have come, or (NULL) some are lost. */
enum { GP_CHANNEL_VOTES = 1, GP_CHANNEL_COLLECTIVES };
void *gp_ranks_gather_on(int channel, const void *mine, int n);

/* Of the shim, each by any thread: more channels; beginning to send on one; is that done? A text: why not. */
const char *gp_ranks_channels(int n);
const char *gp_ranks_send(int channel, const void *mine, int n, void *all);
const char *gp_ranks_sent(int channel, bool *done);

/* ranks_meet.c, for stages that are collective: a channel for each; what gp_run_options.gather is; and, when the runs
 * of all are over, the end of what some of them had begun. All ranks call the first and the last. */
bool gp_ranks_meet_open(const gp_pipeline *p, gp_errs *errs);
int gp_ranks_meet(void *, int collective, const void *mine, size_t n, const void **all, gp_errs *errs);
bool gp_ranks_meet_close(gp_errs *errs);
bool gp_ranks_meets(void);                 /* does this rank wait for others in one? */

/* ranks_agree.c. Have all ranks the same pipeline, and was it compiled in all (`ok`: here)? Do they write different
 * files? False with an error, which one of them is to say: see gp_ranks_say. */
bool gp_ranks_agree(const gp_args *args, const gp_loaded *l, bool ok, gp_errs *errs);
/* gp_run_options.joins: is it one of the sinks that write the same file in all ranks, and can do so? After
 * gp_ranks_agree. */
bool gp_ranks_joins(void *, const char *stage);
/* Is it this rank that says what there is to say? If so, *name is what it says first: "rank 2: ", or "". */
bool gp_ranks_say(const char **name);
void gp_ranks_speak(void);                 /* from now on each rank does, by its name */

/* Does rank 0 print where the time went? Known to all after gp_ranks_agree. */
bool gp_ranks_account(void);

/* ranks_clock.c, for what has times of several ranks: all call the first before the run, and the other when it is over,
 * by the thread that gathers. Then each has the clock of each beside that of rank 0, which is no further off than
 * *error_ns, and a name of the machine of each. */
bool gp_ranks_clocks_begin(gp_errs *errs);
bool gp_ranks_clocks_end(gp_errs *errs);
gp_clock gp_ranks_clock(int r, double *error_ns);
const char *gp_ranks_host(int r);

/* ranks_run.c. From now on until gp_ranks_end all know how each is. timed: and the clocks of all. */
bool gp_ranks_watch(const gp_pipeline *p, bool timed, gp_errs *errs);
void gp_ranks_next(const gp_pipeline *p);              /* the run goes on under p */
bool gp_ranks_begin(void *);               /* gp_run_options.begin */
/* Its run is over, and all it wrote has its name or is gone. Waits for the others. The exit code of all; *seconds: how
 * long it took, becomes that of the one that took longest; *first: is this the rank whose error ended them, if any? */
int gp_ranks_end(int status, double *seconds, bool *first);
/* Behind that, when it has printed its errors: waits for the others, so that these come before what is said of all. */
void gp_ranks_said(void);
/* Adds to the accounts of this rank those of the others, as they said them last: after gp_ranks_end as they are, but of
 * ranks that are lost. Sets those of another rank alone. */
void gp_ranks_sum(gp_account *a, int n);
void gp_ranks_told(int r, gp_account *a, int n);
/* How far all are. frames: what all make together (< 0: not known), of which this rank's are there before; behind: the
 * rank that is behind the others (-1: none is), and how many frames it is done with; left: how much longer than so far
 * it takes the one that is done last, if all go on so (< 0: not known). */
typedef struct gp_ranks_way { int64_t frames; int behind; uint64_t behind_done; double left; } gp_ranks_way;
/* On rank 0, while a run goes on: adds to what it counts what the others do, as they said it last. Stages and buffers
 * are left alone where not all ranks have the same. On others nothing is known. */
void gp_ranks_whole(gp_counters *c, gp_ranks_way *w);
/* How full the buffers of each rank are, 0 to 1: c->nbuffers a rank. False: that is not known. */
bool gp_ranks_fills(const gp_counters *c, double *fill);
/* Is the run of all over, so that they can exchange what is left to say? All ranks find the same. */
bool gp_ranks_over(void);
void gp_ranks_are_named(void);             /* that some are lost was said, behind the run */
/* This rank ends, with that exit code or the one that this returns. Waits for the others. */
int gp_ranks_done(int status);

/* ranks_files.c. Of gp_run_options.replaced: kept, until all tell each other (gp_ranks_said); where not all ranks can,
 * each tells of itself. */
void gp_ranks_note_replaced(void *, const gp_replaced *r);
bool gp_ranks_hear_replaced(gp_errs *errs);
/* On the rank that tells it, behind that: warnings of what all replaced, or keep, in the pipeline's `file`. */
void gp_ranks_replaced(const char *file, gp_errs *errs);

/* ranks_report.c. After gp_ranks_end(`status`): the report and the trace of all, which rank 0 writes. All call it. */
struct gp_report_files;
void gp_ranks_report(struct gp_report_files *f, const gp_pipeline *p, gp_outcome outcome, int status, gp_errs *errs);

#endif
