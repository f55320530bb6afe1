/* rounds.h - the rounds of a collective stage: frame k of each rank is round k, in which all take part.
 *
 * Before anything is sent, all ranks tell each other which round they are at, and what they have. All see the same, and
 * so decide alike: a frame that one rank lacks, as it is a hole there, is a hole in all; frames that differ in what
 * must be alike are an error in all. A rank whose frames have ended goes on answering until all have. */
#pragma once

#include <gpipe/stage.h>

typedef struct gp_rounds {
    int rank, ranks;
    bool *there;               /* after gp_round: has this rank a frame in it? */
    char *mine;                /* `bytes` bytes, in which to put together what is sent; zero at first */
    size_t bytes;
    bool some;                 /* a rank may have ended, and sends nothing that counts, see `there`; else an error */
    int ended;                 /* after gp_round: the first rank that has ended, or -1 */
    int many;                  /* ... how many rounds in a row all have */
    gp_type alike;             /* ... what all have */
    struct gp_rank_state *said;      /* what this rank tells the others */
} gp_rounds;

/* For open(): with room to send `bytes` bytes, and with `some`. NULL after an error. close() frees it. */
gp_rounds *gp_rounds_open(const gp_open *o, size_t bytes, bool some);
void gp_rounds_close(void *rounds);

/* For run(), of frame *f and the n - 1 behind it, as far as they are of the same type and of consecutive numbers.
 * `alike`: what must be the same on all ranks. A frame without data (gp_shape.from_rank) is one that this rank
 * lacks, and the others have. GP_OK: r->many of the frames can be exchanged, in order; each rank that has not ended
 * sends the same number of bytes of them, and as many as one such frame has where others have ended. Any other
 * status says what becomes of the first frame. GP_STOPPED comes after an error of this rank alone, too. */
gp_status gp_round(gp_call *c, gp_rounds *r, const gp_frame *f, int n, const gp_type *alike);
/* For skipped(): this rank has no frame in round `index`, and tells the others when they are there. False after an
 * error. */
bool gp_round_skip(gp_call *c, gp_rounds *r, uint64_t index);
/* For finish(). Waits until the frames of all have ended. */
bool gp_rounds_finish(gp_call *c, gp_rounds *r);

/* For a kind with an option `from` or `to`: is there a rank of this number? */
bool gp_rounds_has(gp_shape *s, const char *opt, int64_t rank);
