/* measured.h - what a run took, as its report (gpipe run --report FILE.json) says it:
 * for pictures of the pipeline. Reads no file: it is given the text. */
#pragma once

#include "compile/plan.h"

/* < 0: not known. */
typedef struct gp_time {
    double busy;               /* the part of the run, 0 to 1 */
    double p50_us;             /* of one frame */
    bool estimate;             /* `busy` is: it was not measured */
} gp_time;
#define GP_NO_TIME ((gp_time){ -1, -1, false })

typedef struct gp_measured {
    const gp_time *stage;      /* of each stage of the graph; those of a device: not known */
    const gp_time *segment;    /* of each segment of the plan; busy if it is the only one */
    gp_time copy_in, copy_out, copy_peer;      /* of all copies that way */
    const double *held;        /* of each buffer: frames in it, the mean; < 0: not known */
    double most;               /* the largest of what was busy; < 0: none is known;
                                  INFINITY: it is not in the plan */
    const char *verdict;       /* "": none; says so if it was measured on another device */
} gp_measured;

/* "97 % busy, 1.2 ms a frame, the busiest", "~39 % busy" for an estimate, as far as it is
 * known; returns buf. */
const char *gp_time_text(const gp_measured *m, gp_time t, char buf[64]);
bool gp_is_busiest(const gp_measured *m, double busy);

/* A busy part as one of the colors 0 to GP_HEAT - 1: a scale from light to strong in one
 * hue, which is one of lightness to those who see no hue. */
enum { GP_HEAT = 5 };
int gp_heat(double busy);
extern const char *const gp_heat_color[GP_HEAT];   /* "#rrggbb", under black text */
#define GP_HEAT_BORDER "#8f4a0e"

/* From JSON of `len` bytes that is called `file` in messages; memory in `a`, without it
 * goes to a->oom. NULL after errors: it is no report, or one of another pipeline. */
const gp_measured *gp_measured_read(gp_arena *a, const gp_plan *p, const char *json, size_t len,
                                    const char *file, gp_errs *errs);
