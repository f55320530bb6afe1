/* rates.h - how many frames become how many, in words. */
#ifndef GP_DRAW_RATES_H
#define GP_DRAW_RATES_H

#include "compile/ir.h"

/* Does some stage fire, or some buffer get frames, more than once in a period? */
bool gp_rates_differ(const gp_graph *g);

/* "4 frames -> 1", "1 frame -> 16", "1 of 4 frames", "each frame with 3 before it", "all frames -> 1"; returns
 * buf. */
enum { GP_REGROUP_TEXT = 160 };
char *gp_regroup_text(const gp_regroup *r, char buf[GP_REGROUP_TEXT]);
/* What a stage does with frames, where that is not one for one and once: as above, "the frame before", "1000 times"; or how
 * it does its work; else "". Returns buf. */
char *gp_stage_note(const gp_stage *s, char buf[GP_REGROUP_TEXT]);

/* What a period is, after "per": "frame"; where rates differ "12 frames of 'read', 1 of 'mask'", of many sources
 * the first. The arena's. */
const char *gp_period_text(gp_arena *a, const gp_graph *g);

#endif
