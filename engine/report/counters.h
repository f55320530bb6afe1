/* counters.h - what a run counts, while it goes on and at its end. */
#pragma once

#include <stdatomic.h>
#include <gpipe/gpipe.h>

/* All counters of a run, however many there are. Zeroed before first use. One thread. */
typedef struct gp_counters {
    gp_account *source; int nsources, sources_cap;
    gp_stage_status *stage; int nstages, stages_cap;
    gp_buffer_status *buffer; int nbuffers, buffers_cap;
} gp_counters;

/* Reads them; of a kind that there is no memory for there are none. */
void gp_counters_read(gp_counters *c, const gp_pipeline *p);
void gp_counters_free(gp_counters *c);

/* Makes *array, of *cap zeroed elements of so many bytes, at least n long, and keeps what
 * is in it. False: no memory, nothing has changed. */
bool gp_make_room(void *array, int *cap, int n, size_t bytes);

/* The frames of the source that makes most, in this process; < 0: of one it is not known. */
int64_t gp_frames_of(const gp_pipeline *p);

/* Which pipeline is looked at, of a run that may go on under another: that one once it runs. One thread asks. */
typedef struct gp_shown { const gp_pipeline *now; _Atomic(const gp_pipeline *) next; } gp_shown;
void gp_shown_begin(gp_shown *s, const gp_pipeline *p);
const gp_pipeline *gp_shown_look(gp_shown *s);
