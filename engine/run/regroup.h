/* regroup.h - what a stage that regroups does when it fires, on the host and on the device. Which frames those
 * are: compile/firing.h. */
#pragma once

#include "run/run.h"

struct gp_batch;

/* How many of the n firings from k can be made, up to the first that takes a partial frame as a row. 0: none, with
 * an error. */
int gp_regroup_good(const gp_actorrt *p, uint64_t k, int n, gp_errs *errs);

/* The error: frame f of the input is partial. */
void gp_regroup_partial(const gp_actorrt *p, uint64_t f, gp_errs *errs);

/* Copies what firing k takes into the slots that it makes, in host memory. It is one that can be made. */
void gp_regroup_copy(const gp_actorrt *p, uint64_t k);
/* Queues the same for n firings, in the device's memory. `whole`: as if all frames were whole. */
bool gp_regroup_record(gp_rec *r, const gp_actorrt *p, uint64_t k, int n, bool whole);

/* Writes the metas of the frames that n firings from k make. `failed`: they could not be made, and make holes.
 * Returns how many are no holes, and their bytes. */
typedef struct gp_regrouped { uint64_t frames, bytes; } gp_regrouped;
gp_regrouped gp_regroup_write_metas(gp_actorrt *p, uint64_t k, int n, bool failed);
/* A stage with emit(), in its segment: how many of the n frames from f one launch adds, up to one that is a hole
 * or makes a frame; 0 with an error: f is partial. Does that make one? Queues it (gp_batch.emits: with the frame that
 * it makes). Notes what was added, and writes the meta of a frame that is made. `failed`: f could not be added, or
 * their frame not be made (gp_gathered.lost). */
int gp_gather_good(const gp_actorrt *p, uint64_t f, int n, gp_errs *errs);
bool gp_gather_emits(const gp_actorrt *p, uint64_t f, int n);
bool gp_gather_record(gp_rec *r, const struct gp_batch *o, const gp_taskrt *part, gp_dcall *c);
void gp_gather_note(gp_actorrt *p, uint64_t f, int n, bool failed, bool emits);

/* After `firings` firings, as many as there are: marks the frames at the end that it does not take as dropped. The
 * first of them, or GP_UNKNOWN. */
uint64_t gp_regroup_left_out(gp_actorrt *p, uint64_t firings);
