/* ranks_told.h - what each rank tells all of itself, round after round (ranks_run.c), and what follows from it for the
 * whole (ranks_told.c). */
#ifndef GP_CLI_RANKS_TOLD_H
#define GP_CLI_RANKS_TOLD_H

#include "cli/ranks.h"

/* How far a rank is: its run is set up; is over; what there was to say of it is said; it ends. */
enum { SETTING_UP, IS_UP, IS_OVER, IS_SAID, IS_DONE, NO_ROUNDS };

/* Of one source. */
typedef struct gp_rank_counted { uint64_t in, out, dropped, failed, cancelled, faulty; } gp_rank_counted;

/* status: of its own error; level: of gp_cancel; seconds: that its run took; frames: that its sources make (< 0: not
 * known); note: bytes of a note that follows. Behind the sources there is room for `stages` and `buffers`; nstages,
 * nbuffers: how many it has counted, which have names of this sum. */
typedef struct gp_rank_says {
    int state, level, status, note, nsources, stages, buffers, nstages, nbuffers;
    uint64_t names;
    int64_t frames;
    double seconds;
    gp_rank_counted source[];
} gp_rank_says;

gp_rank_says *gp_told_open(const gp_pipeline *p);      /* what this rank says */
void gp_told_count(const gp_counters *c);              /* ... of these */
/* One round. counted: with what stages and buffers count. */
bool gp_told_round(bool counted, gp_errs *errs);
/* Without rounds: what rank `from` says, to rank `to`. */
void gp_told_pass(int from, int to);
/* The exit code of all: that of rank `first`, or of any. *seconds becomes that of the one that took longest. */
int gp_told_end(int first, double *seconds);
/* What rank r said last. The thread that calls gp_told_round. */
const gp_rank_says *gp_told_by(int r);

#endif
