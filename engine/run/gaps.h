/* gaps.h - which frames of a group its rows are: gp_meta.gaps. Bit j: frame j of the group is a hole, and one behind it
 * is none, so that rows behind are not at their places. Of more than 64 frames GP_GAPS_MANY and a hash of these bits. */
#ifndef GP_GAPS_H
#define GP_GAPS_H

#include "run/run.h"

#define GP_GAPS_MANY ((uint64_t)1 << 63)

/* With frame j of a group of `take` a hole, and one behind it none. */
uint64_t gp_gaps_with(uint64_t gaps, uint64_t j, int64_t take);
/* Of gaps without GP_GAPS_MANY: is frame j one? How many are there before it? */
bool gp_gaps_have(uint64_t gaps, uint64_t j);
uint64_t gp_gaps_before(uint64_t gaps, uint64_t j);

/* The gaps of what a stage makes of `in`, which are not all whole: an output that has a row for each has their gaps.
 * False, with an error: two inputs of which that holds lack different frames. `out`, `made`: by the stage's outputs.
 * `errs` may be NULL: that was looked at. */
bool gp_gaps_pass(const gp_graph *g, const gp_stage *st, const gp_type *in, const uint64_t *gaps, const gp_type *out,
                  uint64_t *made, gp_errs *errs);
/* Of a host stage's frame `fr`, with the rows that its outputs have. */
bool gp_gaps_pass_host(const gp_actorrt *p, const gp_frame *fr, uint64_t made[GP_MAXPORT], gp_errs *errs);

#endif
