/* dump.h - graphs, plans and their pictures, and the schema of pipeline files, for editors. */
#pragma once

#include "base/json.h"
#include "compile/keys.h"
#include "draw/measured.h"

/* dump_graph.c: the head of a text, the stages of a text (with a plan, which may be NULL,
 * also where they run) and the rates of the frames, the members of a JSON object. */
void gp_dump_head(FILE *f, const gp_graph *g);
void gp_dump_stages(FILE *f, const gp_graph *g, const gp_plan *p);
/* Of one buffer, which may be in a loop: its type, size, depth, who fills and reads it, and its rate. False: there is
 * none of that name. */
bool gp_dump_buffer(FILE *f, const gp_graph *g, const char *name);
void gp_dump_graph_members(gp_json *j, const gp_graph *g);
/* The segment of each stage, -1: none; memory in `a`. `p` NULL: of none. */
int *gp_dump_segments(gp_arena *a, const gp_graph *g, const gp_plan *p);
/* The widest buffer name and stage name, for columns. */
int gp_dump_width(const gp_graph *g);

/* A picture of the plan `p`; with NULL, of the graph. Colored by what was measured, unless `m` is NULL. False after
 * errors; what was written until then is no whole picture. The program dot makes the SVG of the DOT; GP_E_USAGE: it
 * is not in PATH. */
bool gp_dump_dot(FILE *f, const gp_graph *g, const gp_plan *p, const gp_measured *m, gp_errs *errs);
bool gp_dump_svg(FILE *f, const gp_graph *g, const gp_plan *p, const gp_measured *m, gp_errs *errs);

/* print.c: a picture of the plan, or of its graph, as SVG or DOT, colored by a report (NULL: by none), a text of `len`
 * bytes that messages call `file`. False after errors. */
typedef struct gp_drawing { bool graph, dot; const char *report; size_t len; const char *file; } gp_drawing;
bool gp_draw(FILE *f, const gp_plan *p, const gp_drawing *as, gp_errs *errs);

/* rates.c: how many frames become how many, in words. Does some stage fire, or some buffer get frames, more than
 * once in a period? */
bool gp_rates_differ(const gp_graph *g);

/* "4 frames -> 1", "1 frame -> 16", "1 of 4 frames", "each frame with 3 before it", "all frames -> 1"; returns
 * buf. */
enum { GP_REGROUP_TEXT = 160 };
char *gp_regroup_text(const gp_regroup *r, char buf[GP_REGROUP_TEXT]);
/* What a stage does with frames, where that is not one for one and once: as above, "the frame before", "1000 times";
 * or how it does its work; else "". Returns buf. */
char *gp_stage_note(const gp_stage *s, char buf[GP_REGROUP_TEXT]);

/* What a period is, after "per": "frame"; where rates differ "12 frames of 'read', 1 of 'mask'", of many sources
 * the first. The arena's. */
const char *gp_period_text(gp_arena *a, const gp_graph *g);

/* kinds.c: all that can be said of a kind. */
void gp_kind_print(FILE *to, const gp_registry *registry, const gp_kind *k);
/* What may be said for an option: "number, 0.1 to 10, default 1". */
void gp_option_print(FILE *to, const gp_opt *o);

/* schema.c. Writes a JSON Schema (draft 7) of pipeline files: the keys, and the options of all kinds. */
void gp_schema_write(FILE *f, const gp_registry *registry);

/* The option that may stand in the place of one that is required, or NULL. */
const char *gp_schema_instead(const gp_opt *o);
/* Option i of a kind, NULL behind the last. The last of a source is `shard`, a key of stages that is for sources
 * alone. */
const gp_opt *gp_schema_option(const gp_kind *k, int i);
