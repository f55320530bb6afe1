/* ranks.h - one pipeline in several processes, its ranks, that a launcher of MPI (mpirun, srun) has started.
 *
 * Each compiles the same file and runs it on its share of the frames (compile/shard.c). Meanwhile they tell each other
 * how they are: none begins before all are set up, the first error of one ends all, and where one is asked to stop, all
 * do. Without a launcher there is one rank, and nothing here does anything. */
#pragma once

#include "report/counters.h"
#include "report/files.h"

typedef struct gp_ranks gp_ranks;

/* What they need of the program. Each by any thread. */
typedef struct gp_ranks_host {
    const char *version;                       /* of its build */
    void (*say)(gp_ranks *us, const gp_errs *errs);        /* errors of this rank */
    void (*flush)(void);                       /* what is said, before the process ends */
    int (*level)(void);                        /* of gp_cancel, as this process was asked for */
    void (*cancel)(int level);                 /* what runs */
    void (*stopped)(int level);                /* another rank was asked to stop: the first says so, once */
    void (*not_measured)(bool all);            /* why there is no account: all ranks were changed, or this one */
    void (*account)(FILE *to, const gp_report *r);
    /* As gp_page_write; `own`: the report of this rank, or NULL, with which it draws the plan of p. */
    bool (*page)(FILE *to, const gp_pipeline *p, const char *report, const char *trace, const char *own, gp_errs *errs);
} gp_ranks_host;

/* ---- join.c: who is here ------------------------------------------------- */

/* One rank, until it has joined others. */
gp_ranks *gp_ranks_open(const gp_ranks_host *host);
/* What several do: the first alone does it; it cannot be, as each would do it; all do it together. */
typedef enum gp_ranks_do { GP_RANKS_FIRST, GP_RANKS_NEVER, GP_RANKS_ALL } gp_ranks_do;
/* Joins the others, if there are any; before anything is compiled. `ok`: the command line has no error here, which they
 * learn; join_ns: how long it waits for them; 0: as ever. False if this rank has nothing to do: with an error, or since
 * rank 0 does that alone. */
bool gp_ranks_join(gp_ranks *us, gp_ranks_do what, bool reads_stdin, int64_t join_ns, bool ok, gp_errs *errs);
bool gp_ranks_is_another(void);            /* does the environment say that this is a rank, and not rank 0? */
/* Before the process ends with this exit code; waits for all, or, if some are lost or do not answer, ends it. */
void gp_ranks_leave(gp_ranks *us, int status);
int gp_rank(const gp_ranks *us);
int gp_ranks_n(const gp_ranks *us);
int gp_local_rank(const gp_ranks *us);
int gp_local_ranks(const gp_ranks *us);    /* 0: no launcher started it */
bool gp_ranks_is_first(gp_ranks *us);      /* of those that are not lost */

/* ---- agree.c: before anything runs --------------------------------------- */

/* What a rank has: loaded where `text` is there; settings: hash of what else is to be the same; account: it prints
 * where the time went; runs: what is compiled is to run. */
typedef struct gp_ranks_has {
    const char *file, *text;
    size_t len;
    uint64_t settings;
    const gp_pipeline *pipeline;
    bool account, runs;
} gp_ranks_has;
/* Have all ranks the same, and was it compiled in all (`ok`: here)? Do they write different files? False with an error,
 * which one of them is to say: see gp_ranks_say. */
bool gp_ranks_agree(gp_ranks *us, const gp_ranks_has *mine, bool ok, gp_errs *errs);
/* gp_run_options.joins, of a gp_ranks: is it one of the sinks that write the same file in all ranks, and can do so?
 * After gp_ranks_agree. */
bool gp_ranks_joins(void *us, const char *stage);
/* Is it this rank that says what there is to say? If so, *name is what it says first: "rank 2: ", or "". */
bool gp_ranks_say(gp_ranks *us, const char **name);
bool gp_ranks_account(gp_ranks *us);       /* does rank 0 print where the time went? After gp_ranks_agree */

/* ---- watch.c: while it runs ---------------------------------------------- */

/* gp_run_options.gather and .begin, of a gp_ranks. */
int gp_ranks_meet(void *us, int collective, const void *mine, size_t n, const void **all, gp_errs *errs);
bool gp_ranks_begin(void *us);
/* From now on until gp_ranks_end all know how each is. timed: and the clocks of all. */
bool gp_ranks_watch(gp_ranks *us, const gp_pipeline *p, bool timed, gp_errs *errs);
void gp_ranks_next(gp_ranks *us, const gp_pipeline *p);        /* the run goes on under p */
/* Its run is over, and all it wrote has its name or is gone. Waits for the others. The exit code of all; *seconds: how
 * long it took, becomes that of the one that took longest; *first: is this the rank whose error ended them, if any? */
int gp_ranks_end(gp_ranks *us, int status, double *seconds, bool *first);
/* Behind that, when it has printed its errors: waits for the others, so that these come before what is said of all. */
void gp_ranks_tell_replaced(gp_ranks *us);
/* Adds to the accounts of this rank those of the others, as they said them last: after gp_ranks_end as they are, but of
 * ranks that are lost. */
void gp_ranks_sum(gp_ranks *us, gp_account *a, int n);
/* How far all are. frames: what all make together (< 0: not known), of which this rank's are there before; behind: the
 * rank that is behind the others (-1: none is), and how many frames it is done with; left: how much longer than so far
 * it takes the one that is done last, if all go on so (< 0: not known). */
typedef struct gp_ranks_way { int64_t frames; int behind; uint64_t behind_done; double left; } gp_ranks_way;
/* On rank 0, while a run goes on: adds to what it counts what the others do, as they said it last. Stages and buffers
 * are left alone where not all ranks have the same. On others nothing is known. */
void gp_ranks_whole(gp_ranks *us, gp_counters *c, gp_ranks_way *w);
/* How full the buffers of each rank are, 0 to 1: c->nbuffers a rank. False: that is not known. */
bool gp_ranks_fills(gp_ranks *us, const gp_counters *c, double *fill);

/* ---- votes.c: one is asked for a change, and all are changed, or none ------ */

/* All hear of a change, in the same order. Each makes it ready and votes; where one cannot, none is changed. Else each
 * pauses and goes on, and votes on how that went.
 *
 * What a rank says of a change: first one of READY, SAME (nothing changes there), REFUSED, OVER (its run is). Then,
 * where all go on, those that were ready: CHANGED, FAILED (it goes on as it was), OVER; others the same again. */
typedef enum gp_vote { GP_VOTE_READY, GP_VOTE_SAME, GP_VOTE_REFUSED, GP_VOTE_OVER, GP_VOTE_CHANGED,
                       GP_VOTE_FAILED } gp_vote;

/* One change that all have heard of: by a line of settings of rank `from`; or files that some saw saved. */
enum { GP_ASK_FILES = -1 };
typedef struct gp_ask { struct gp_ask *next; int from; char line[]; } gp_ask;

/* Any thread. All are to hear of that; false: the runs of all are over. */
bool gp_votes_ask(gp_ranks *us, const char *line);
void gp_votes_saved(gp_ranks *us);         /* the thread that votes */
/* From now on this rank votes; nothing is heard before all do. `wake` is called by another thread when there is
 * something. */
void gp_votes_listen(gp_ranks *us, void (*wake)(void *arg), void *arg);
bool gp_votes_are_asked(gp_ranks *us);
/* The next change, for free(); NULL: there is none yet. Each rank votes on each; but on files that were saved before
 * all compiled what they voted on none does. */
gp_ask *gp_votes_next(gp_ranks *us);
/* Votes, and waits for the votes of all. False: some are lost. files: what it votes on was saved; text: the pipeline's,
 * or NULL; included: gp_pipeline_included(); words: what changes, or a line with errors; pause_ms, told_ms: of a change. */
bool gp_votes_cast(gp_ranks *us, gp_vote vote, bool files, const char *text, size_t len, uint64_t included, const char *words,
                   double pause_ms, double told_ms);

/* What the last votes say. */
bool gp_votes_go(gp_ranks *us);            /* are all that are not over ready, or the same, and one ready? */
int gp_votes_of(gp_ranks *us, gp_vote vote, int *first);       /* how many, and which rank is the first; -1: none */
const char *gp_votes_words(gp_ranks *us, int rank);
int gp_votes_other_text(gp_ranks *us);     /* the first rank that has another text than the first; -1: none has */
/* "depth 4 -> 6 on all 3 ranks", the longest pause of all. */
void gp_votes_changes(gp_ranks *us, char *text, size_t max, double *pause_ms, double *told_ms);

/* ---- replaced.c, report.c: what is left of it ------------------------------ */

/* gp_run_options.replaced, of a gp_ranks: notes it until all ranks tell each other (gp_ranks_tell_replaced); where not
 * all ranks can, each tells of itself. */
void gp_ranks_note_replaced(void *us, const gp_replaced *r);
/* On the rank that tells it, behind that: warnings of what all replaced, or keep, in the pipeline's `file`. */
void gp_ranks_replaced(gp_ranks *us, const char *file, gp_errs *errs);
/* After gp_ranks_end(`status`): the report and the trace of all, which rank 0 writes. All call it. */
void gp_ranks_report(gp_ranks *us, gp_report_files *f, const gp_pipeline *p, gp_outcome outcome, int status,
                     gp_errs *errs);
