/* live.h - what shows a run while it goes shares: progress, top, metrics.
 *
 * A glance is made by looking at a pipeline or by reading the JSON of one: whoever
 * draws it cannot tell which. Nothing here is waited for by what moves frames. */
#pragma once

#include "cli/cli.h"

enum { GP_KNOBS = 32 };

/* Rates and fills are means over the last two seconds or so. */
typedef struct gp_glance {
    const char *pipeline;      /* its file, which may have any character */
    double seconds;            /* since the start */
    bool ended, syncing;       /* syncing: as gp_syncing */
    int rank, ranks;           /* whose it is; of rank 0 it is of all. ranks < 2: there is one */
    int behind;                /* the rank that is behind the others; -1: none is. The frames that it is done with: */
    uint64_t behind_done;
    uint64_t done, in;         /* as gp_frames_done; that went in, of the same source */
    uint64_t moved, frames;    /* as gp_frames_moved; in the end (0: not known) */
    double left_s;             /* until the last is done; < 0: not known */
    double frames_s;           /* `moved` a second */
    int bound;                 /* the stage that holds back the rest; -1: none does */
    int bound_rank;            /* the rank that comes last where ranks meet, whose stage that is; -1: none does */
    bool bound_meets;          /* that stage is one where ranks meet */
    double began, looked;      /* gp_glance_look's own */
    gp_counters now;           /* gp_glance_look's own */
    int nsources, nstages, nbuffers;
    const gp_account *source;
    struct gp_glance_stage { gp_stage_status is; double frames_s, bytes_s; } *stage;
    struct gp_glance_buffer { gp_buffer_status is; double fill; } *buffer;     /* fill: 0 to 1 */
    double *rank_fill;         /* gp_glance_look's own: of each rank the same, nbuffers a rank */
    int stages_cap, buffers_cap, rank_fill_cap;
    gp_knob knob[GP_KNOBS]; int nknobs;
    bool settings;             /* draw them */
    const gp_pipeline *of;     /* gp_glance_look's; */
    const struct gp_node *frames_of;   /* ... gp_glance_read's: the names of all its buffers, or NULL */
} gp_glance;

void gp_glance_free(gp_glance *v);

static inline bool gp_is_behind(const gp_glance *v)
{
    return v->ranks > 1 && v->behind >= 0;
}

/* What a number of frames is, where it is not of those that are done with. */
static inline const char *gp_none_done(const gp_glance *v)
{
    return v->done || !v->in ? "" : " in, none done yet";
}

/* glance.c. Looks again, `seconds` after the start; at first *v is zero. */
void gp_glance_look(gp_glance *v, gp_ranks *us, const gp_pipeline *p, double seconds);
/* Room for so many stages and buffers. */
bool gp_glance_room(gp_glance *v, int stages, int buffers);
/* glance_json.c. One object on one line. */
void gp_glance_json(const gp_glance *v, FILE *f);
void gp_buffers_json(gp_json *j, const char *key, const gp_pipeline *p);       /* the names of those that have frames */
/* What gp_glance_json wrote; names lie in `a`. False: it is something else, or there is no
 * memory. All that is read can be drawn: names are names, numbers are in their range. */
bool gp_glance_read(gp_glance *v, gp_arena *a, const char *json);

/* screen.c: lines that are drawn over and over at one place. The cursor waits at
 * their beginning: what others write there, or a window of another size, moves them
 * and leaves nothing behind. */
typedef struct gp_screen {
    int fd;
    bool in_place;             /* a terminal; else block after block */
    bool color;
    bool drawn;                /* lines are there, from the cursor on */
} gp_screen;

/* "12.1 s", "3 min 02 s"; returns buf. */
const char *gp_duration_text(double s, char buf[32]);

gp_screen gp_screen_on(int fd);
/* Nothing while others have the terminal. False: it cannot be written. */
bool gp_screen_draw(gp_screen *s, const gp_glance *v);
void gp_screen_clear(gp_screen *s);        /* removes the lines */

/* socket.c: where gpipe top connects. NULL: there is no place for one, which is no
 * error. Only one thread uses it. */
typedef struct gp_socket gp_socket;
gp_socket *gp_socket_open(void);
void gp_socket_close(gp_socket *s);        /* drains, removes the file; accepts NULL */
int gp_socket_fd(const gp_socket *s);      /* readable: somebody wants in */
/* Lets one in, who is sent `text` at once, or is told that there is no room. False: it cannot, and is still asked
 * to. */
bool gp_socket_accept(gp_socket *s, const char *text, size_t len);
/* To everybody, without waiting: who has read too little misses it. */
void gp_socket_send(gp_socket *s, const char *text, size_t len);
/* The next whole line that a client has sent, which then is nobody's client any more: its descriptor, and the line, for
 * free(). -1: there is none. */
int gp_socket_take(gp_socket *s, char **line);
/* Sends what did not fit yet, as far as it does now. True: all. Accepts NULL. */
bool gp_socket_flush(gp_socket *s);
/* The same, and gives clients that read a moment (0.3 s) for it: when a run has ended. */
void gp_socket_drain(gp_socket *s);
int gp_socket_clients(const gp_socket *s);
/* The other end, of `name`: a process or a path. -1 after an error. */
int gp_socket_connect(const char *name, gp_errs *errs);
/* The same, to be read, once it has said something: a run that was stopped lets one in, and is silent. NULL after an
 * error. */
FILE *gp_socket_reach(const char *name, gp_errs *errs);
enum { GP_SOCKET_WAIT_MS = 5000 };         /* how long one that goes on may take for that */
bool gp_socket_silent(const char *name, gp_errs *errs);    /* the error of one that has not */
/* The processes that have one: how many, of which the first `max` are written. */
int gp_socket_pids(long *pid, int max);

/* runs.c: where one run goes on its process, as for gp_socket_connect; of several the one that alone has such a buffer
 * (NULL: none is asked for), else it prints a list: false, as after an error. */
bool gp_runs_choose(const gp_args *args, const char *buffer, FILE *to, char name[24], gp_errs *errs);

/* view_numbers.c: what is said of a frame. */
typedef struct gp_view_numbers { double min, max, mean, std; size_t n, nan, inf; } gp_view_numbers;    /* of those that are finite;
                                  of complex ones, the absolute values */
double gp_view_element(gp_dtype t, const void *data, size_t i);      /* of a complex one its absolute value */
gp_view_numbers gp_view_numbers_of(const gp_type *t, const void *data);
/* The members of an object: the frame's number, type, and these (NULL: without). */
void gp_view_put(FILE *f, const gp_tapped *frame, const gp_view_numbers *n);

void gp_view_print(FILE *to, const gp_tapped *frame, const gp_view_numbers *n);        /* the same as words, without an end of line */
/* view_write.c: writes it to the file, and in the format, that are asked for; the exit code. */
int gp_view_write(const gp_args *args, const gp_registry *registry, const gp_tapped *frame, gp_errs *errs);

/* viewers.c: gives frames of a run to who looks at it (gpipe view), on a thread for each. `p`: what runs. */
typedef struct gp_viewers gp_viewers;
gp_viewers *gp_viewers_new(const gp_pipeline *p);              /* NULL: no memory; below, too */
bool gp_viewers_is_for(const char *line);                      /* is that what asks for one? */
void gp_viewers_take(gp_viewers *v, int fd, char *line);       /* frees both, in the end */
void gp_viewers_next(gp_viewers *v, const gp_pipeline *p);     /* the run goes on under p */
void gp_viewers_free(gp_viewers *v);                           /* the run is over */

/* A tap of a run that may be retuned: it follows it to the pipeline that it goes on under. Zeroed at first. */
typedef struct gp_follow { gp_tap *tap; const gp_pipeline *of; } gp_follow;
gp_tap_status gp_follow_take(gp_follow *f, const gp_pipeline *now, const char *buffer, int64_t timeout_ns, gp_tapped *out,
                             gp_errs *errs);

/* view_page.c: the page of 'gpipe run --view', and what it asks for: served by metrics.c, which knows HTTP. */
typedef struct gp_view_page gp_view_page;
gp_view_page *gp_view_page_new(void);      /* NULL: no memory */
void gp_view_page_free(gp_view_page *v);   /* accepts NULL */
/* What a browser asks for: `url`, and the values of its arguments, "" where there is none. `now`: what runs. */
typedef struct gp_view_ask { const gp_pipeline *now; const char *url, *buffer, *after; } gp_view_ask;
/* Writes it; returns the status: 200, 204 (no new frame), 404. *type: what it is. One thread. */
unsigned gp_view_page_get(gp_view_page *v, const gp_view_ask *ask, FILE *to, const char **type);

/* metrics.c: a server with a thread of its own. NULL after an error. */
typedef struct gp_metrics gp_metrics;
gp_metrics *gp_metrics_start(const gp_args *args, const gp_pipeline *p, gp_errs *errs);
void gp_metrics_next(gp_metrics *m, const gp_pipeline *p);     /* accepts NULL */
void gp_metrics_stop(gp_metrics *m);       /* accepts NULL */
