/* retuner.h - what edits of a run share: retune.c, who asks and when; retune_edit.c, one edit. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include "cli/retune.h"

enum { GP_RATE_AFTER_S = 1 };          /* a rate is measured for so long, where the run goes on */

typedef struct gp_asked { struct gp_asked *next; int fd; char *line; } gp_asked;
/* own: its last settings */
typedef struct gp_part { gp_loaded l; const char **set; int nset; char **own; int nown; } gp_part;

struct gp_retuner {
    const gp_args *args;
    const gp_registry *registry;
    gp_run_options options;
    const char *why_not;
    gp_watched *watched;       /* NULL: no --watch */
    pthread_t thread;
    int wake_fd;               /* eventfd, with --watch or --service, else -1: something is asked for, or it is to stop; */
    pthread_cond_t wake;       /* likewise, without */
    pthread_mutex_t lock;      /* of what follows */
    gp_asked *first, **last;
    atomic_bool stop, over;    /* the runs of all ranks are over (set with the lock); that of this one is */
    gp_pipeline *trying;       /* may be cancelled */
    bool has_failed;
    gp_errs failure;
    /* The thread's own: */
    gp_asked *told, **last_told;       /* all ranks are told of them, but have not begun */
    gp_part *part; int nparts, cap;    /* part 0 is what runs first; the last one runs */
    gp_part *unused; int nunused;      /* that could not go on: the run's table of files has their names */
    int times;
    bool was_wrong;            /* the files, when one was last saved */
    double since;              /* the run began, or was retuned */
    uint64_t moved;            /* ... and had moved so many frames */
    double rate;               /* frames a second before `since`, if the plan was the same; 0: not known */
    struct gp_edit *edit;      /* the one under way */
    /* A retuning whose rate is not known yet: */
    char *what;
    double pause_ms, told_ms, before;
    int reply_fd;              /* who asked for it, or -1 */
};

/* retune_edit.c. Compiles again, with these settings added, and has the run go on; `fd`: who has asked for it, or
 * -1. In a run of several ranks all do so, in one order. */
void gp_retuner_edit(gp_retuner *r, const char *const *more, int n, int fd);
bool gp_retuner_pause(void *retuner);      /* gp_run_options.pause, of several ranks */
void gp_retuner_tell(gp_retuner *r);       /* the line of a retuning, once the rate after it is known */
void gp_retuner_drop(gp_part *x);
