/* verdict.h - what the rules of verdict.c and the edits of verdict_edit.c share.
 *
 * The verdict's text grows from left to right: what bounds the run, figures, and then
 * what to do, which begins with a colon. */
#ifndef GP_VERDICT_H
#define GP_VERDICT_H

#include "compile/plan.h"
#include "report/report.h"

typedef struct gp_judging {
    gp_report *r;
    const gp_graph *g;
    const gp_plan *plan;
    uint64_t frames;           /* of the actor that saw most */
} gp_judging;

/* Something that every frame needs, and the part of the run that it was busy. */
typedef struct gp_candidate { gp_bound bound; int actor; double part; } gp_candidate;

/* ---- verdict.c -------------------------------------------------------- */

/* Adds to the text. */
void gp_verdict_say(gp_judging *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
double gp_part_of_run(const gp_judging *j, int64_t ns);               /* of the run */
double gp_cores_used(const gp_judging *j);
double gp_cores_free(const gp_judging *j);   /* idle, or looking for work */
gp_candidate gp_busiest(const gp_judging *j, int without);          /* all but actor `without` */
int gp_least_depth(const gp_judging *j, int actor);   /* the least depth of its buffers */

/* ---- verdict_edit.c: each adds to the text, and sets the edit ---------- */

/* GROUP.NAME.KEY, or with NULL just KEY. */
void gp_try(gp_judging *j, const char *group, const char *name, const char *key, int64_t value);
void gp_try_word(gp_judging *j, const char *group, const char *name, const char *key,
                 const char *value);
/* To what the next busiest would keep up with, and the free cores allow. */
void gp_try_workers(gp_judging *j, gp_candidate c);
/* For a stage that cannot have more workers: what it could do less of; its kind knows
 * (gp_kind.advise). */
void gp_try_less(gp_judging *j, const gp_actor_report *p);
/* For a source that keeps a pace of its own. */
void gp_try_unpaced(gp_judging *j, const gp_actor_report *p);
void gp_try_streams(gp_judging *j, const gp_segment *s, int want);
/* More frames in a launch of a segment; false: nothing allows that. */
bool gp_try_batch(gp_judging *j, const gp_actor_report *p);
/* `times` the depth of the shallowest buffer around `actor`, or with -1 of
 * gp_report.buffer[buffer]. */
void gp_try_deeper(gp_judging *j, int actor, int buffer, int times);
/* As many times the depth as so many frames in flight take: 2 to 4. */
int gp_times_for(int depth, int64_t frames);
/* Twice the depth of gp_report.buffer[buffer] alone. */
void gp_try_depth(gp_judging *j, int buffer);

#endif
