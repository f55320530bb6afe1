/* svg.h - the pieces of a drawing (svg.c), which dump_svg.c puts together. Units: CSS
 * pixels. Texts are taken as a little wider than any font shows them. */
#ifndef GP_SVG_H
#define GP_SVG_H

#include <math.h>
#include "draw/picture.h"

enum { GP_SVG_NOTE = 15,               /* a line of what was measured */
       GP_SVG_MOST = 320 };            /* a wider text is cut short */

/* Sizes of text; what is bold is wider. */
#define GP_SVG_TITLE (18 * 1.12)
#define GP_SVG_NAME  (13 * 1.12)
#define GP_SVG_SMALL 11.0
#define GP_SVG_SAID  (11 * 1.12)

extern const char *const gp_svg_class[GP_PIC_KINDS];

static inline double gp_svg_even(double x)
{
    return 2 * ceil(x / 2);
}

/* How wide a text is, cut short or not. */
double gp_svg_width(const char *s, double size);
/* One line of text; `class` may place it: " mid" in the middle, " end" before x. size 0:
 * it is not cut. */
void gp_svg_text(FILE *f, const char *class, double x, double y, const char *s, double size);
void gp_svg_name(FILE *f, const char *s);      /* escaped */
/* The next line of a text, at most so wide, broken between words; the arena's. */
const char *gp_svg_wrap(gp_arena *a, const char **rest, double size, double most);

void gp_svg_size(const gp_pic_node *n, double *w, double *h);
void gp_svg_node(FILE *f, const gp_pic_node *n, const gp_measured *m, double x, double y,
                 double w, double h);
void gp_svg_shape(FILE *f, gp_pic_kind kind, double x, double y, double w, double h);

/* What was measured: " heat heat3 most", classes for a busy part; "": not known. */
const char *gp_svg_heat(const gp_measured *m, double busy, char buf[24]);
/* The scale of its colors; returns where it ends. Draws only with `y` > 0. */
double gp_svg_scale(FILE *f, double x, double y);

/* What stands in <style>. `heat`: with what was measured. */
void gp_svg_style(FILE *f, bool heat);

#endif
