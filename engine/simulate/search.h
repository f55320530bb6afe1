/* search.h - which settings to try, by simulating many. Only knobs that change no byte of any output. */
#pragma once

#include "simulate/simulate.h"

/* What a pipeline should be like. */
typedef struct gp_goal {
    bool latency;              /* as little of it as can be; else as high a rate */
    double latency_most;       /* ns, of 99 frames in 100; 0: any */
    double rate_least;         /* frames/s; 0: any */
    size_t memory;             /* that a plan may have, on host and device together; 0: any */
} gp_goal;

/* "rate", "latency", "rate, latency < 5 ms", "latency, rate > 100". */
bool gp_goal_read(const char *text, gp_goal *out, gp_errs *errs);

/* What settings give, simulated or measured. */
typedef struct gp_result { double rate, latency_ns; size_t memory; } gp_result;  /* latency: of 99 frames in 100 */

/* Does it reach what the goal limits? */
bool gp_goal_is_reached(const gp_goal *g, const gp_result *r);
/* How good it is: more is better. What misses a limit is worse than all that reaches it, and the better the nearer. */
double gp_goal_score(const gp_goal *g, const gp_result *r);

typedef struct gp_settings {
    const char **set; int nset;        /* "depth=8": what differs from the given ones */
    gp_result is;              /* simulated */
    int *value;                /* of each knob; 0: as given */
    double score;              /* as gp_goal_score, less a little for each change and for more memory */
} gp_settings;

/* Makes the plan of some settings; NULL: they are not valid, or no plan fits. It is used until the next call. */
typedef const gp_plan *(*gp_planner)(void *arg, const char *const *set, int nset);

typedef struct gp_search {
    const gp_plan *given;      /* the plan as it is given, and its costs */
    const gp_costs *costs;
    gp_goal goal;
    gp_planner plan;
    bool (*goes_on)(void *arg);        /* is there time for another? */
    void *arg;
    int most;                  /* that are simulated */
} gp_search;

typedef struct gp_found {
    gp_settings *all; int n;   /* all that were simulated, the given ones first */
    int *best; int nbest;      /* those worth a measurement, unlike each other, the best first */
} gp_found;

/* In memory of `a`. At most `nbest` are chosen. NULL after errors. */
gp_found *gp_search_settings(gp_arena *a, const gp_search *s, int nbest, gp_errs *errs);

/* Which of the measured ones to propose: rounds are in turns, result[i][round]; 0 is as given. It is one that reaches
 * the goal's limits, and is better than the given one in the middle of the rounds by more than `noise` (0.01: one
 * percent), and in most of them; the best of these, or one that is within 2 % of it with at most half of the memory,
 * the least; else 0. */
int gp_choose_measured(const gp_goal *g, const gp_result *const *result, const int *rounds, int n, double noise);
/* The middle of several. */
gp_result gp_result_middle(const gp_result *r, int n);
