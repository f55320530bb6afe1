/* setup.h - what run.c sets a run up from, and takes down: its tables, memory and threads.
 * Without memory for a table goes to run->arena.oom. */
#pragma once

#include "run/run.h"

/* tables.c, in this order; rings want their memory. */
void gp_tables_make(gp_run *run);
void gp_rings_make(gp_run *run);
void gp_actors_make(gp_run *run);
bool gp_accounts_make(gp_run *run);

/* devices.c: opens the devices that the plan needs, if any; once stages are open, what actors need of their own. What
 * is opened is closed with the run, also after an error. */
bool gp_devices_open(gp_run *run, gp_errs *errs);
bool gp_actors_init(gp_run *run, gp_errs *errs);

/* open.c: opens the stages of the device, or of the host; and closes all that were. */
bool gp_stages_open(gp_run *run, bool device, gp_errs *errs);
void gp_stages_close(gp_run *run);
/* gp_kind.break_off of an open host stage: for the first error of `errs`, else of the run, else because it was stopped.
 * */
void gp_stages_break_off(gp_run *run, int stage, gp_errs *errs);
/* Closes one; `why`: what a stage is told that has come to no end. */
void gp_stage_close(const gp_stage *s, void *state, const char *why);

/* memory.c */
bool gp_memory_take(gp_run *run, gp_errs *errs);
void gp_memory_give(gp_run *run);
/* Memory of the first device beside that: some, zeroed, and the table of a stage; NULL after an error. */
void *gp_memory_device(gp_run *run, size_t bytes, gp_errs *errs);
void *gp_memory_table(gp_run *run, const gp_stage *st, gp_errs *errs);
void gp_memory_device_free(gp_run *run, void *mem, size_t bytes);
/* A copy from any place to any other, which is done on return; by stream 0 of the device. */
bool gp_memory_copy(gp_dev *dev, void *dst, const void *src, size_t bytes, gp_errs *errs);

/* prologue.c: runs the stages of gp_graph.prologue; wants constants in memory, and a device. */
bool gp_prologue_run(gp_run *run, gp_errs *errs);

/* resume.c: finds how far another run has come, which gp_graph.from says then, and what that has said of a stage, NULL:
 * nothing; notes how far this one has come, between these two calls; it is done, so that there is nothing to go on. */
bool gp_resume_open(gp_run *run, gp_errs *errs);
const gp_saved *gp_resume_saved(const gp_run *run, int stage);
void gp_resume_start(gp_run *run);
/* States: what is saved of one; is it what the note says? states: notes that all are saved behind so many frames. False: it
 * has not, as some sink has fewer yet, or after an error of the run. */
void gp_resume_state(const gp_run *run, const gp_buffer *state, const void *data);
bool gp_resume_is_state(const gp_run *run, const gp_buffer *state, const void *data);
bool gp_resume_states(gp_run *run, uint64_t frames);
void gp_resume_stop(gp_run *run);
bool gp_resume_done(gp_run *run, gp_errs *errs);
/* state_file.c: hold opens the files of states before a run takes memory, which states begin in, but those that the run has
 * that it goes on from. save: of a run that was drained, or is done; with `resume` name is the last step then. state_save.c:
 * count_streams, make and free do what saving takes while the run goes on, which a thread does between start and stop. */
static inline bool gp_states_are_saved(const gp_run *run)
{
    return !run->options.no_sinks && !run->options.no_saves;
}
bool gp_states_hold(gp_run *run, gp_errs *errs);
void gp_states_drop(gp_run *run);
bool gp_states_save(gp_run *run, bool drained, gp_errs *errs);
bool gp_states_name(const gp_run *run, gp_errs *errs);
void gp_states_count_streams(const gp_run *run, gp_device_use *use);
bool gp_states_make(gp_run *run, gp_errs *errs);
void gp_states_start(gp_run *run);
void gp_states_stop(gp_run *run);
void gp_states_free(gp_run *run);
void gp_resume_free(gp_run *run);

/* files.c: once the threads have returned, before the stages are closed: what was written
 * is put on disk. False: the disk does not come back, and nobody wants to wait longer. */
bool gp_files_end(gp_run *run);
/* Warns of joined files that do not have their names, and says where they are, or has the caller do
 * so (gp_run_options.replaced; `o` may be NULL); once stages are closed. */
void gp_files_kept(const gp_pipeline *p, const gp_run_options *o, gp_errs *errs);

/* run.c. A run of p that is not set up yet; NULL after an error. `from`: whose run it goes on from, or NULL. */
gp_run *gp_run_new(gp_pipeline *p, gp_pipeline *from, const gp_run_options *o, gp_errs *errs);
/* Sets it up, as far as can be until there is gp_run.goes_on, if it goes on from another; then run->ready. Errors are
 * the run's. False: it does not come back. */
bool gp_run_set_up(gp_run *run);

/* threads.c */
int gp_threads_needed(const gp_plan *plan);
struct gp_threads *gp_threads_new(void);                       /* NULL: out of memory */
void gp_threads_free(struct gp_threads *all);                  /* those of no run that goes on; accepts NULL */
/* Starts those that the run needs beside the ones that there are, which another may have still. */
bool gp_threads_reserve(struct gp_threads *all, const gp_run *run, gp_errs *errs);
void gp_threads_release(struct gp_threads *all, const gp_run *run);        /* ends these; the run does not begin */
/* Those of the run's pipeline, which are reserved. */
void gp_threads_start(gp_run *run);
/* `back`: they all have returned, or will at once. */
void gp_threads_end(gp_run *run, bool back);
