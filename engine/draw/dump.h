/* dump.h - what the dumps of the three forms share. */
#ifndef GP_DUMP_H
#define GP_DUMP_H

#include "base/json.h"
#include "draw/measured.h"
#include "draw/rates.h"

/* dump_graph.c: the head of a text, the stages of a text (with a plan, which may be NULL,
 * also where they run) and the rates of the frames, the members of a JSON object, a whole DOT file. */
void gp_dump_head(FILE *f, const gp_graph *g);
void gp_dump_stages(FILE *f, const gp_graph *g, const gp_plan *p);
void gp_dump_graph_members(gp_json *j, const gp_graph *g);
void gp_dump_dot(FILE *f, const gp_graph *g, const gp_plan *p, const gp_measured *m);
/* The widest buffer name and stage name, for columns. */
int gp_dump_width(const gp_graph *g);

/* dump_svg.c, dump_mermaid.c: a picture of the plan `p`; with NULL, of the graph. Colored
 * by what was measured, unless `m` is NULL (gp_dump_dot too). false:
 * out of memory; what was written until then is no whole picture. */
bool gp_dump_svg(FILE *f, const gp_graph *g, const gp_plan *p, const gp_measured *m,
                 gp_errs *errs);
bool gp_dump_mermaid(FILE *f, const gp_graph *g, const gp_plan *p, const gp_measured *m,
                     gp_errs *errs);

/* dump.c: a string of DOT. */
void gp_dot_text(FILE *f, const char *s);

#endif
