/* same.h - may several ranks run what each of them has? All find the same files in their sources, and no two write one
 * file. Pure: the answers of all ranks are given, by MPI (agree.c) or from the plan of each (cli/simulate.c). */
#pragma once

#include <gpipe/gpipe.h>

/* What ranks compare of a stage, found by its name. source: its frames are shared out, so each rank has to find the
 * same files; folders may have other names. sink: it writes files; each: one a frame; anyone: all may write there;
 * joins: all can write to one together. */
typedef struct gp_rank_stage {
    uint64_t name, names, path;
    int64_t files, frames, from;
    bool source, sink, shared, each, anyone, joins;
} gp_rank_stage;

/* The first `most` stages of a plan; returns how many there are. */
int gp_rank_stages(const gp_pipeline *p, gp_rank_stage *to, int most);

/* Below `of` has n of each of so many ranks, rank after rank; of one that has fewer zeros follow. Stages are counted as
 * rank 0 has them. */

/* False with an error; `p` is the plan of rank 0. */
bool gp_ranks_find_alike(const gp_pipeline *p, const gp_rank_stage *of, int n, int ranks, gp_errs *errs);
/* The first two ranks that would write one file, and where. False: there are none. */
typedef struct gp_ranks_clash { int stage, a, b; } gp_ranks_clash;
bool gp_ranks_clash_of(const gp_rank_stage *of, int n, int ranks, gp_ranks_clash *c);
/* Adds it as an error; `p` is the plan of rank c->a. False. */
bool gp_ranks_clash_fail(const gp_pipeline *p, const gp_rank_stage *of, int n, int ranks, const gp_ranks_clash *c,
                         gp_errs *errs);

/* FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/), 64 bits; begins with h = 0. */
uint64_t gp_ranks_hash(uint64_t h, const void *data, size_t n);
