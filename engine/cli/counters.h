/* counters.h - all counters of a run, however many there are. */
#ifndef GP_COUNTERS_H
#define GP_COUNTERS_H

#include <gpipe/gpipe.h>

/* Zeroed before first use. One thread. */
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

#endif
