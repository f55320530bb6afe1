/* dump.h - what the dumps of the three forms share. */
#ifndef GP_DUMP_H
#define GP_DUMP_H

#include "draw/measured.h"

/* Writes JSON: the outer two levels over lines, what is deeper on one line.
 * `key` is NULL inside arrays. Strings need not be UTF-8: what is not becomes
 * U+FFFD. A NULL string is null. */
typedef struct gp_json {
    FILE *f;
    int level;
    bool some;                 /* the open object or array has something in it */
} gp_json;

void gp_json_open(gp_json *j, const char *key, char bracket);     /* '{' or '[' */
void gp_json_close(gp_json *j, char bracket);                     /* '}' or ']' */
void gp_json_str(gp_json *j, const char *key, const char *s);
void gp_json_strn(gp_json *j, const char *key, const char *s, size_t n);
void gp_json_int(gp_json *j, const char *key, int64_t i);
void gp_json_num(gp_json *j, const char *key, double v);          /* null: not finite */
void gp_json_size(gp_json *j, const char *key, size_t n);
void gp_json_bool(gp_json *j, const char *key, bool b);
void gp_json_ints(gp_json *j, const char *key, const int *v, int n);

/* dump_graph.c: as the file says it; by gp_launch_mode, by gp_sync. */
extern const char *const gp_launch_name[], *const gp_sync_name[];

/* dump_graph.c: the head of a text, the stages of a text (a plan says where they
 * run, NULL without), the members of a JSON object, a whole DOT file. */
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

/* dump.c: how many bytes the UTF-8 character at `s` has, of `n` there are; 0: it is
 * none. `*code` is set, then to U+FFFD. */
size_t gp_utf8(const char *s, size_t n, unsigned *code);
/* dump.c: a string of DOT. */
void gp_dot_text(FILE *f, const char *s);

#endif
