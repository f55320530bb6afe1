/* retune_votes.h - of several ranks: one is asked for a change, and all are changed, or none.
 *
 * The change is told to all, by a note (ranks.h). Each makes it ready, and says that, or why it cannot; where one
 * cannot, none is changed. Else each pauses and goes on, and says how that went. All hear the same notes in the same
 * order, so that they come to one end of each change, and begin the next one alike. */
#ifndef GP_CLI_RETUNE_VOTES_H
#define GP_CLI_RETUNE_VOTES_H

#include "cli/ranks.h"

/* What a rank says of a change. First one of READY, SAME (nothing changes there), REFUSED, OVER (its run is). Then,
 * where all go on, those that were ready: CHANGED, FAILED (it goes on as it was), or OVER. */
typedef enum gp_vote { GP_VOTE_NOT, GP_VOTE_READY, GP_VOTE_SAME, GP_VOTE_REFUSED, GP_VOTE_OVER, GP_VOTE_CHANGED,
                       GP_VOTE_FAILED } gp_vote;

/* One change that is asked for: by a line of settings, as gp_retuner_ask has it, or (empty) by files that were
 * saved. */
bool gp_votes_ask(const char *line);       /* all are to hear it. False: the runs of all are over */
/* Takes a note that was heard: true if it is such a line, which begins a change, for gp_votes_begin. Votes are
 * counted. What is asked for during a change is kept for later, for gp_votes_next; or not at all: files that a rank
 * saw saved before it voted on files were compiled by then. */
bool gp_votes_take(gp_note *note);
gp_note *gp_votes_next(void);
const char *gp_votes_line(const gp_note *ask);
void gp_votes_begin(const gp_note *ask);
/* text: hash of the pipeline's; words: what changes, or a line with errors; pause_ms, told_ms: of a change. */
void gp_votes_say(gp_vote vote, uint64_t text, const char *words, double pause_ms, double told_ms);
bool gp_votes_have(bool second);           /* have all said the first of these; and `second`, where all go on? */
bool gp_votes_go(void);                    /* are all that are not over ready, or the same, and one ready? */
void gp_votes_end(void);

/* When all have voted. Of these votes: how many, and which rank is the first; -1: none. */
int gp_votes_of(gp_vote vote, int *first);
const char *gp_votes_words(int rank);
int gp_votes_other_text(void);             /* the first rank that has another text than the first; -1: none has */
/* "depth 4 -> 6 on all 3 ranks", the longest pause of all. */
void gp_votes_changes(char *text, size_t max, double *pause_ms, double *told_ms);

#endif
