/* verdict.h - what the rules of verdict.c, their numbers and the edits share.
 *
 * The verdict's text grows from left to right: what bounds the run, figures, and then
 * what to do, which begins with a colon. */
#pragma once

#include "compile/plan.h"
#include "report/report.h"

typedef struct gp_judging {
    gp_report *r;
    const gp_graph *g;
    const gp_plan *plan;
    uint64_t frames;           /* of the actor that saw most */
    int64_t asks_ns;           /* gp_report.one_thread: for so long that waits for a frame, or for room, */
    int64_t away_ns;           /* ... and for so long it neither does nor has a frame */
    bool crowd_said;           /* see gp_say_crowd() */
} gp_judging;

/* Something that every frame needs, and the part of the run that it was busy. */
typedef struct gp_candidate { gp_bound bound; int actor; double part; } gp_candidate;

/* ---- verdict.c -------------------------------------------------------- */

/* Adds to the text. */
void gp_verdict_say(gp_judging *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static const double GP_HELD_UP = 0.25;         /* who waits so much of the run is held up: that is no accident */
#define say gp_verdict_say             /* here, as all say and many say how much */
#define percent gp_verdict_percent
/* What bounds the run, and whose it is. */
void gp_verdict_found(gp_judging *j, gp_bound bound, int actor);

/* ---- verdict_cores.c -------------------------------------------------- */

/* What comes before all else where others had most of the cores: no edit helps as much. */
void gp_say_crowd(gp_judging *j);
/* ", other processes used 0.6 of 2 cores" where that is worth a word and not said yet. */
void gp_say_others(gp_judging *j);
/* ", GPU idle 61 %" where there is a GPU, with ~ an estimate, of several the one that is busiest; and the cores; then
 * `end`. */
void gp_say_machine(gp_judging *j, const char *end);
bool gp_are_cores_busy(gp_judging *j);     /* the rule */

/* ---- verdict_thread.c ------------------------------------------------- */

/* Are its frames those of the only thread of the program? */
bool gp_shares_thread(const gp_judging *j, int actor);
/* gp_actor_report.idle_ns, without what such a thread does elsewhere. */
int64_t gp_idle(const gp_judging *j, int actor);
void gp_follow_thread(gp_judging *j);      /* sets asks_ns and away_ns */
/* The rule: it pushes a frame, and waits until that comes out. */
bool gp_takes_turns(gp_judging *j);
void gp_blame_thread(gp_judging *j, int actor);        /* it has no frame, and asks for none */

/* ---- verdict_busy.c --------------------------------------------------- */

double gp_part_of_run(const gp_judging *j, int64_t ns);               /* of the run */
int gp_verdict_percent(double part);       /* 0 to 100 */
int gp_least_depth(const gp_judging *j, int actor);    /* the least depth of its buffers */
/* The workers that can have a frame. */
int gp_workers_able(const gp_judging *j, int actor);
/* Launches on the CPU: threads that have a kernel to run and never sleep, the mean. */
double gp_kernels_of(const gp_judging *j, const gp_actor_report *p);
/* The cores that an actor keeps busy, or would. */
double gp_cores_of(const gp_judging *j, const gp_actor_report *p);
double gp_cores_used(const gp_judging *j);
/* The part of gp_report_usable that was idle or looked for work. */
double gp_cores_free(const gp_judging *j);
/* The part of the run that each worker who can have a frame waits: for others, or as a
 * source for its time. */
double gp_waiting(const gp_judging *j, int actor);
gp_candidate gp_working(const gp_judging *j, int actor);   /* what its own threads do */
void gp_consider(gp_candidate *best, gp_candidate other);
/* The segment that was longest on device `on`, or, of peer copies, that copies most there; -1: there is none. */
int gp_main_segment(const gp_judging *j, gp_engine e, int on);
gp_candidate gp_busiest(const gp_judging *j, int without);          /* all but actor `without` */

/* ---- verdict_rates.c -------------------------------------------------- */

enum { GP_DEEPEST = 65536 };           /* that a buffer may be */

/* The frames that its producer makes at a time, that its reader takes anew at a time, and that the reader keeps
 * from one time to the next: 1, 1 and 0 but where frames are regrouped. */
int gp_made_at_once(const gp_judging *j, const gp_buffer_report *b);
int gp_taken_at_once(const gp_judging *j, const gp_buffer_report *b);
int gp_kept(const gp_judging *j, const gp_buffer_report *b);
/* How full it was with frames that were still to be read, in the mean: 0 to 1. */
double gp_fullness(const gp_judging *j, const gp_buffer_report *b);
/* How many times there is room in `depth` slots for what its sides make or take at a time, at least 1; and the slots
 * for so many times. */
int gp_turns_of(const gp_judging *j, const gp_buffer_report *b, int depth);
int gp_depth_for(const gp_judging *j, const gp_buffer_report *b, int turns);
/* The depth of gp_report.buffer[buffer] by the file or by default: a plan may have made it more. And the pipeline's
 * `depth` from which it follows, 0: from none. */
int gp_given_depth(const gp_judging *j, int buffer);
int gp_followed_depth(const gp_judging *j, int buffer);

/* ---- verdict_edit.c: each adds to the text, and sets the edit ---------- */

/* GROUP.NAME.KEY, or with NULL just KEY. */
void gp_try_word(gp_judging *j, const char *group, const char *name, const char *key,
                 const char *value);
/* To what the next busiest would keep up with, and the free cores allow. */
void gp_try_workers(gp_judging *j, gp_candidate c);
/* For a stage that cannot have more workers: what it could do less of; its kind knows
 * (gp_kind.advise). */
void gp_try_less(gp_judging *j, const gp_actor_report *p);
/* For a stage in which all ranks take part: what makes the exchange cheaper, into buf. */
void gp_exchange_less(const gp_judging *j, const gp_stage *st, char *buf, size_t bytes);
/* For a source that keeps a pace of its own. */
void gp_try_unpaced(gp_judging *j, const gp_actor_report *p);
void gp_try_streams(gp_judging *j, const gp_segment *s, int want);
/* More frames in a launch of a segment; false: nothing allows that. */
bool gp_try_batch(gp_judging *j, const gp_actor_report *p);
/* `times` the depth of the buffer around `actor` with the least room, or with -1 of
 * gp_report.buffer[buffer]. */
void gp_try_deeper(gp_judging *j, int actor, int buffer, int times);
/* As many times the depth as so many frames in flight take: 2 to 4. */
int gp_times_for(int depth, int64_t frames);
/* Twice the depth of gp_report.buffer[buffer] alone. */
void gp_try_depth(gp_judging *j, int buffer);
