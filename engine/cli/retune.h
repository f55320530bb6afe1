/* retune.h - a run that is edited while it goes on: files that are saved, settings that others ask for. */
#pragma once

#include "cli/cli.h"

/* Has a thread of its own, which compiles what is asked for and has the run pause. `first` is what runs; `why_not`: why
 * that cannot be edited, or NULL. NULL after an error. */
typedef struct gp_retuner gp_retuner;
gp_retuner *gp_retuner_start(const gp_args *args, const gp_registry *registry, const gp_loaded *first,
                             const gp_run_options *o, const char *why_not, gp_errs *errs);
/* Takes a connection and the line that it has sent, both of which it frees: settings as JSON, ["depth=6"]. They are
 * answered with a line of JSON when they have taken effect, of several ranks on all, or are refused. Accepts NULL, and
 * refuses. */
void gp_retuner_ask(gp_retuner *r, int fd, char *line);

/* For the thread of the run. It has paused: what it is to go on under. Or that has failed, and it goes on as it was. */
gp_pipeline *gp_retuner_next(gp_retuner *r);
void gp_retuner_failed(gp_retuner *r, const gp_errs *errs);
void gp_retuner_over(gp_retuner *r);       /* this rank's is over; others may go on; accepts NULL */
/* The runs of all are over. How often this one was retuned. Accepts NULL. */
int gp_retuner_stop(gp_retuner *r);
/* Ends what it has compiled, the newest first, but not what runs first; accepts NULL. */
void gp_retuner_free(gp_retuner *r);

/* retune_answer.c. To who has asked, whom it leaves then: a line, errors, a text with its key, why not. */
void gp_answer(int fd, const char *line);
void gp_answer_errors(int fd, const gp_args *args, const gp_errs *errs);
void gp_answer_text(int fd, const char *key, const char *text);
void gp_refuse(int fd, const char *why);
/* The other end. Is it one, whole? Prints it; the exit code. */
bool gp_is_answer(const char *line);
int gp_answer_print(const gp_args *args, const char *answer, gp_errs *errs);
char *gp_answer_of_errors(const gp_args *args, const gp_errs *errs);   /* the line, for free(); NULL: out of memory */

/* watch.c: the files that a pipeline is made of. Its descriptor can be read when something is in their folders; it then
 * says whether it may be of one of them. Call gp_watch_files again once they may be others. */
typedef struct gp_watched gp_watched;
gp_watched *gp_watch_new(gp_errs *errs);
void gp_watch_files(gp_watched *w, const gp_pipeline *p);
int gp_watch_fd(const gp_watched *w);      /* -1: accepts NULL */
bool gp_watch_read(gp_watched *w);
void gp_watch_free(gp_watched *w);         /* accepts NULL */
