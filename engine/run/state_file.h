/* state_file.h - what state_file.c, which has the files of states, and state_save.c, which saves while a run goes on, share. */
#ifndef GP_STATE_FILE_H
#define GP_STATE_FILE_H
#include "run/segment.h"
#include "run/setup.h"

/* Replaces the file of a state, or with `resume` FILE.next: `data` is the state behind so many frames, which the header of
 * the file says, too. load: from the file that `resume` noted. */
bool gp_state_write(const gp_run *run, const gp_buffer *b, uint64_t frames, void *data, gp_errs *errs);
bool gp_state_load(gp_run *run, const gp_ringrt *r, gp_errs *errs);

/* The segment whose stages use the state, and the order in which the frames of that go on. room: where copies of the state
 * were put while the run went on, to which nothing is written any more; NULL: there is none. */
gp_actorrt *gp_state_actor(const gp_run *run, const gp_ringrt *r, int *order);
void *gp_state_room(const gp_run *run, const gp_ringrt *r, gp_errs *errs);

#endif
