/* retune_votes.h - of several ranks: one is asked for a change, and all are changed, or none.
 *
 * All hear of the change, in the same order. Each makes it ready and votes; where one cannot, none is changed. Else each
 * pauses and goes on, and votes on how that went. */
#ifndef GP_CLI_RETUNE_VOTES_H
#define GP_CLI_RETUNE_VOTES_H

#include "cli/ranks.h"

/* What a rank says of a change. First one of READY, SAME (nothing changes there), REFUSED, OVER (its run is). Then,
 * where all go on, those that were ready: CHANGED, FAILED (it goes on as it was), or OVER; the others the same again. */
typedef enum gp_vote { GP_VOTE_READY, GP_VOTE_SAME, GP_VOTE_REFUSED, GP_VOTE_OVER, GP_VOTE_CHANGED, GP_VOTE_FAILED } gp_vote;

/* One change that all have heard of: by a line of settings, as gp_retuner_ask has it, of rank `from`; or files that some
 * saw saved. */
enum { GP_ASK_FILES = -1 };
typedef struct gp_ask { struct gp_ask *next; int from; char line[]; } gp_ask;

/* Any thread. All are to hear of that; false: the runs of all are over. */
bool gp_votes_ask(const char *line);
void gp_votes_saved(void);                 /* the thread that votes */
/* From now on this rank votes; nothing is heard before all do. `wake` is called by another thread when there is
 * something. */
void gp_votes_listen(void (*wake)(void *arg), void *arg);
bool gp_votes_are_asked(void);
/* The next change, for free(); NULL: there is none yet. Each rank votes on each; but on files that were saved before
 * all compiled what they voted on none does. */
gp_ask *gp_votes_next(void);
/* Votes, and waits for the votes of all. False: some are lost. files: what it votes on was saved; text: hash of the
 * pipeline's; words: what changes, or a line with errors; pause_ms, told_ms: of a change. */
bool gp_votes_cast(gp_vote vote, bool files, uint64_t text, const char *words, double pause_ms, double told_ms);

/* Of the last votes. */
bool gp_votes_go(void);                    /* are all that are not over ready, or the same, and one ready? */
int gp_votes_of(gp_vote vote, int *first); /* how many, and which rank is the first; -1: none */
const char *gp_votes_words(int rank);
int gp_votes_other_text(void);             /* the first rank that has another text than the first; -1: none has */
/* "depth 4 -> 6 on all 3 ranks", the longest pause of all. */
void gp_votes_changes(char *text, size_t max, double *pause_ms, double *told_ms);

/* For those who exchange rounds. What this rank is asked for, in what it says; hears what all are; nothing from now on. */
struct gp_rank_says;
void gp_votes_open(void);
void gp_votes_tell(struct gp_rank_says *s);
bool gp_votes_pass(gp_errs *errs);
void gp_votes_end(void);

#endif
