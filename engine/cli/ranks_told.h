/* ranks_told.h - what each rank tells the others of itself, round after round (ranks_run.c), and what follows from it
 * for the whole (ranks_told.c). */
#ifndef GP_CLI_RANKS_TOLD_H
#define GP_CLI_RANKS_TOLD_H

#include "cli/ranks.h"

enum { SETTING_UP, IS_UP, IS_OVER };

/* Of one source. */
typedef struct gp_rank_counted { uint64_t in, out, dropped, failed, cancelled; } gp_rank_counted;

/* status: of its own error; level: of gp_cancel; seconds: that its run took; frames: that its sources make (< 0: not
 * known); clocks: gp_ranks_clocks_known; note: bytes of a note that follows. Behind the sources there is room for
 * `stages` and `buffers`; nstages, nbuffers: how many it has counted, which have names of this sum. */
typedef struct gp_rank_says {
    int state, level, status, note, nsources, stages, buffers, nstages, nbuffers;
    uint64_t names;
    int64_t frames;
    double seconds;
    bool clocks;
    gp_rank_counted source[];
} gp_rank_says;

size_t gp_rank_says_bytes(int sources, int stages, int buffers);
void gp_rank_count(gp_rank_says *s, const gp_counters *c);
/* A copy of what all said last, *each bytes a rank, for free(); NULL: nothing yet. */
char *gp_ranks_last(size_t *each);

#endif
