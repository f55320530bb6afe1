/* dump_svg.c - a graph or plan as a drawing.
 *
 * Each segment is laid out by itself, as a box with a point on its border for each
 * line that goes in or out; then all is laid out with the segments as boxes. So
 * a segment's box holds only what is in the segment. How the pieces look is in svg.c. */
#include <math.h>
#include <string.h>
#include "draw/dump.h"
#include "draw/layout.h"
#include "draw/svg.h"

enum {
    MARGIN = 24, PAD = 18,             /* around all; in a segment, beside and below */
    TITLE = 18, LINE = 16, SEGMENT_HEAD = 40,
};

/* An edge of the picture, or the piece of it that is on one sheet: it may end at points on
 * the borders of segments (boxes of their sheets; -1: not so). */
typedef struct piece { int edge, from_point, to_point; } piece;

/* Boxes and edges of the whole, or of what is in one segment. */
typedef struct sheet {
    gp_box *box; int nboxes, boxes_cap;
    int *node; int nodes_cap;          /* of a box: what it shows; -1: a segment, a point */
    gp_edge *edge; int nedges, edges_cap;
    piece *piece; int pieces_cap;      /* of an edge: what it shows */
    double w, h;                       /* what the layout takes */
    double x, y;                       /* where it is drawn: in its segment, then in all */
    double head;                       /* of a segment: what its words take */
    int in_all;                        /* of a segment: its box in the whole, -1: empty */
    bool enters, leaves;
    int entry, entry_of;               /* the newest point where lines come in; whose + 1 */
} sheet;

typedef struct drawing {
    gp_arena *arena;
    FILE *f;
    gp_picture pic;
    sheet *segment, all;
    int nsegments;
    int *box;                          /* of each node, in its sheet */
    int *exit;                         /* where its lines leave its segment; -1: not yet */
} drawing;

static const char *const kind_word[] = {
    "host stage", "device stage", "buffer", "constant", "copy",
};

/* ---- sheets ---------------------------------------------------------- */

static sheet *sheet_of(drawing *d, int node)
{
    int segment = d->pic.node[node].segment;
    return segment < 0 ? &d->all : &d->segment[segment];
}

static int add_box(drawing *d, sheet *s, gp_box box, int node)
{
    int n = s->nboxes;
    *GP_PUSH(d->arena, s->node, n, s->nodes_cap) = node;
    *GP_PUSH(d->arena, s->box, s->nboxes, s->boxes_cap) = box;
    return s->nboxes - 1;
}

static void add_piece(drawing *d, sheet *s, int from, int to, piece part)
{
    int n = s->nedges, target = s->node[to];
    gp_pic_kind kind = target < 0 ? GP_PIC_BUFFER : d->pic.node[target].kind;
    const gp_pic_node *origin = &d->pic.node[d->pic.edge[part.edge].from];
    *GP_PUSH(d->arena, s->piece, n, s->pieces_cap) = part;
    *GP_PUSH(d->arena, s->edge, s->nedges, s->edges_cap) = (gp_edge){
        .from = from, .to = to, .label = gp_svg_even(gp_svg_width(origin->name, GP_SVG_SMALL) + 8),
        .back = d->pic.edge[part.edge].back && s->node[from] >= 0, .side = origin->kind == GP_PIC_CONST,
        .arrow = kind != GP_PIC_BUFFER && kind != GP_PIC_CONST && !d->pic.edge[part.edge].back };
}

static void add_node(drawing *d, int node)
{
    const gp_pic_node *n = &d->pic.node[node];
    sheet *s = sheet_of(d, node);
    gp_box box = { 0 };
    gp_svg_size(n, &box.w, &box.h);
    d->box[node] = add_box(d, s, box, node);
    d->exit[node] = -1;
    if (s != &d->all && s->in_all < 0)
        s->in_all = add_box(d, &d->all, (gp_box){ .fixed = true }, -1);
}

/* Between sheets an edge is a piece in each, and one in the whole; the lines of one
 * node share theirs as far as they can. */
static void add_edge(drawing *d, int edge)
{
    int from = d->pic.edge[edge].from, to = d->pic.edge[edge].to;
    sheet *s = sheet_of(d, from), *t = sheet_of(d, to);
    piece inner = { edge, -1, -1 }, outer = inner;
    if (s == t) {
        add_piece(d, s, d->box[from], d->box[to], inner);
        return;
    }
    if (s != &d->all && d->exit[from] < 0) {
        d->exit[from] = add_box(d, s, (gp_box){ .w = 2, .rank = GP_RANK_LAST }, -1);
        s->leaves = true;
        add_piece(d, s, d->box[from], d->exit[from], inner);
    }
    bool entered = t != &d->all && t->entry_of == from + 1;
    if (t != &d->all && !entered) {
        t->entry = add_box(d, t, (gp_box){ .w = 2, .rank = GP_RANK_FIRST }, -1);
        t->entry_of = from + 1;
        t->enters = true;
    }
    if (t != &d->all)
        add_piece(d, t, t->entry, d->box[to], inner);
    outer.from_point = d->exit[from];
    outer.to_point = t == &d->all ? -1 : t->entry;
    if (!entered)
        add_piece(d, &d->all, s == &d->all ? d->box[from] : s->in_all,
                 t == &d->all ? d->box[to] : t->in_all, outer);
}

static void lay_out(drawing *d, sheet *s)
{
    gp_layout(d->arena, s->box, s->nboxes, s->edge, s->nedges, &s->w, &s->h);
}

static void lay_out_segment(drawing *d, int segment)
{
    sheet *s = &d->segment[segment];
    gp_box *box = &d->all.box[s->in_all];
    lay_out(d, s);
    const gp_plan *p = d->pic.plan;
    const char *note = gp_picture_segment_note(d->arena, &d->pic, segment);
    double head = fmax(gp_svg_width(gp_picture_segment(d->arena, p, segment), GP_SVG_NAME),
                       gp_svg_width(gp_picture_flight(d->arena, p, segment), GP_SVG_SMALL));
    head = fmax(head, gp_svg_width(note, GP_SVG_SMALL));
    s->head = SEGMENT_HEAD + (*note ? GP_SVG_NOTE : 0);
    box->w = gp_svg_even(fmax(s->w, head) + 2 * PAD);
    box->h = s->head + s->h + (s->enters ? 0 : PAD) + (s->leaves ? 0 : PAD);
    s->x = floor((box->w - s->w) / 2);
    s->y = s->head + (s->enters ? 0 : PAD);
}

static void lay_out_all(drawing *d)
{
    for (int i = 0; i < d->nsegments; i++)
        lay_out_segment(d, i);
    for (int i = 0; i < d->all.nedges; i++) {
        gp_edge *k = &d->all.edge[i];
        const piece *part = &d->all.piece[i];
        const sheet *s = sheet_of(d, d->pic.edge[part->edge].from);
        const sheet *t = sheet_of(d, d->pic.edge[part->edge].to);
        if (part->from_point >= 0)
            k->from_at = s->x + s->box[part->from_point].x + 1;
        if (part->to_point >= 0)
            k->to_at = t->x + t->box[part->to_point].x + 1;
    }
    lay_out(d, &d->all);
}

/* Where lines come in to a segment follows from where they come from. */
static void aim_entries(drawing *d)
{
    for (int i = 0; i < d->all.nedges; i++) {
        const gp_edge *k = &d->all.edge[i];
        const piece *part = &d->all.piece[i];
        if (part->to_point >= 0)
            sheet_of(d, d->pic.edge[part->edge].to)->box[part->to_point].aim =
                1 + k->bend[k->nbends - 2].x;
    }
}

static void make_drawing(drawing *d)
{
    const gp_picture *pic = &d->pic;
    d->nsegments = pic->plan ? pic->plan->nsegments : 0;
    d->segment = GP_NEW(d->arena, sheet, d->nsegments);
    d->box = GP_NEW(d->arena, int, pic->nnodes);
    d->exit = GP_NEW(d->arena, int, pic->nnodes);
    for (int i = 0; i < d->nsegments; i++)
        d->segment[i].in_all = -1;
    for (int i = 0; i < pic->nnodes; i++)
        add_node(d, i);
    for (int i = 0; i < pic->nedges; i++)
        add_edge(d, i);
    lay_out_all(d);
    aim_entries(d);
    lay_out_all(d);
}

/* ---- drawing --------------------------------------------------------- */

static void draw_piece(drawing *d, const sheet *s, int i)
{
    const gp_edge *k = &s->edge[i];
    const gp_pic_node *from = &d->pic.node[d->pic.edge[s->piece[i].edge].from];
    const char *class = from->kind == GP_PIC_CONST ? "line once" : "line";
    const char *dashes = d->pic.edge[s->piece[i].edge].back ? " stroke-dasharray=\"8 4\"" : "";
    bool up = k->back && !k->cut;
    double start = s->y + k->bend[0].y0 + (up ? 3 : 0);
    if (k->cut)
        gp_svg_text(d->f, "small mid", s->x + k->bend[0].x, s->y + k->bend[0].y0 - 3, from->name,
                    GP_SVG_SMALL);
    fprintf(d->f, "<path class=\"%s\"%s d=\"M%.0f %.0f", class, dashes, s->x + k->bend[0].x, start);
    for (int b = 0; b < k->nbends; b++) {
        double x = s->x + k->bend[b].x, y = s->y + k->bend[b].y0;
        double before = b ? s->x + k->bend[b - 1].x : x, from_y = b ? s->y + k->bend[b - 1].y1 : y;
        double to_y = b == k->nbends - 1 && k->arrow ? y - 8 : y, half = floor((from_y + to_y) / 2);
        if (fabs(before - x) >= 0.5)
            fprintf(d->f, "C%.0f %.0f %.0f %.0f %.0f %.0f", before, half, x, half, x, to_y);
        fprintf(d->f, "V%.0f", fmax(s->y + k->bend[b].y1 - (to_y < y ? 3 : 0), start));
    }
    fputs("\"/>\n", d->f);
    const gp_bend *end = &k->bend[k->nbends - 1];
    if (up)
        fprintf(d->f, "<path class=\"arrow\" d=\"M%.0f %.0fl-4 7h8z\"/>\n", s->x + k->bend[0].x, start - 3);
    if (k->arrow)
        fprintf(d->f, "<path class=\"arrow\" d=\"M%.0f %.0fl-4 -7h8z\"/>\n", s->x + end->x,
                s->y + end->y0);
}

static void draw_sheet(drawing *d, const sheet *s)
{
    for (int i = 0; i < s->nedges; i++)
        draw_piece(d, s, i);
    for (int i = 0; i < s->nboxes; i++)
        if (s->node[i] >= 0)
            gp_svg_node(d->f, &d->pic.node[s->node[i]], d->pic.measured, s->x + s->box[i].x,
                      s->y + s->box[i].y, s->box[i].w, s->box[i].h);
}

static void draw_segment(drawing *d, int segment)
{
    sheet *s = &d->segment[segment];
    const gp_box *b = &d->all.box[s->in_all];
    double x = d->all.x + b->x, y = d->all.y + b->y, round = 10;
    char heat[24];
    const char *note = gp_picture_segment_note(d->arena, &d->pic, segment);
    gp_svg_heat(d->pic.measured, gp_picture_segment_busy(&d->pic, segment), heat);
    fprintf(d->f, "<g class=\"segment%s\" data-segment=\"%d\">\n"
            "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" rx=\"%.0f\"/>\n"
            "<path class=\"head\" d=\"M%.0f %.0fv-%.0fa%.0f %.0f 0 0 1 %.0f -%.0fh%.0f"
            "a%.0f %.0f 0 0 1 %.0f %.0fv%.0fz\"/>\n", heat, segment, x, y, b->w, b->h, round,
            x, y + s->head, s->head - round, round, round, round, round,
            b->w - 2 * round, round, round, round, round, s->head - round);
    gp_svg_text(d->f, "name", x + PAD - 4, y + 18,
                gp_picture_segment(d->arena, d->pic.plan, segment), GP_SVG_NAME);
    gp_svg_text(d->f, "small", x + PAD - 4, y + 32,
                gp_picture_flight(d->arena, d->pic.plan, segment), GP_SVG_SMALL);
    if (*note)
        gp_svg_text(d->f, "small", x + PAD - 4, y + 47, note, GP_SVG_SMALL);
    fputs("</g>\n", d->f);
    s->x += x;
    s->y += y;
    draw_sheet(d, s);
}

/* One of each kind there is; returns how wide it is. Draws only with `y` > 0. */
static double draw_legend(const drawing *d, double x, double y)
{
    bool there[GP_PIC_KINDS] = { false };
    double left = x;
    for (int i = 0; i < d->pic.nnodes; i++)
        there[d->pic.node[i].kind] = true;
    for (int k = 0; k < GP_PIC_KINDS; k++) {
        if (!there[k])
            continue;
        if (y > 0) {
            fprintf(d->f, "<g class=\"%s\">", gp_svg_class[k]);
            gp_svg_shape(d->f, (gp_pic_kind)k, x, y, 24, 14);
            gp_svg_text(d->f, "small", x + 30, y + 11, kind_word[k], GP_SVG_SMALL);
            fputs("</g>\n", d->f);
        }
        x += 30 + ceil(gp_svg_width(kind_word[k], GP_SVG_SMALL)) + 14;
    }
    return (d->pic.measured ? gp_svg_scale(d->f, x, y) : x - 14) - left;
}

static void draw(drawing *d)
{
    const char **head = NULL, *text, *said = d->pic.measured ? d->pic.measured->verdict : "";
    int lines = 0, lines_cap = 0, first_said;
    double w = fmax(d->all.w, fmax(gp_svg_width(d->pic.graph->name, GP_SVG_TITLE),
                                   draw_legend(d, 0, 0)));
    while ((text = gp_picture_head(d->arena, &d->pic, lines))) {
        w = fmax(w, gp_svg_width(text, GP_SVG_SMALL));
        *GP_PUSH(d->arena, head, lines, lines_cap) = text;
    }
    first_said = lines;
    if (*said)
        w = fmax(w, GP_SVG_MOST);
    while (*said) {
        text = gp_svg_wrap(d->arena, &said, GP_SVG_SAID, w);
        *GP_PUSH(d->arena, head, lines, lines_cap) = text;
    }
    double top = MARGIN + TITLE + 6 + lines * LINE + 12, bottom = top + d->all.h + MARGIN;
    w = gp_svg_even(w) + 2 * MARGIN;
    double h = bottom + 14 + MARGIN;
    fprintf(d->f, "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"gpipe\" role=\"img\" "
            "width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n<title>", w, h, w, h);
    gp_svg_name(d->f, d->pic.graph->name);
    fputs("</title>\n<style>", d->f);
    gp_svg_style(d->f, d->pic.measured);
    fprintf(d->f, "</style>\n<rect class=\"paper\" width=\"%.0f\" height=\"%.0f\"/>\n", w, h);
    gp_svg_text(d->f, "title", MARGIN, MARGIN + 14, d->pic.graph->name, GP_SVG_TITLE);
    for (int i = 0; i < lines; i++)
        gp_svg_text(d->f, i < first_said ? "small" : "small said", MARGIN,
                    MARGIN + TITLE + 16 + i * LINE, head[i], i < first_said ? GP_SVG_SMALL : 0);
    d->all.x = floor((w - d->all.w) / 2);
    d->all.y = top;
    for (int i = 0; i < d->nsegments; i++)
        draw_segment(d, i);
    draw_sheet(d, &d->all);
    fputs("<g class=\"legend\">\n", d->f);
    draw_legend(d, MARGIN, bottom);
    fputs("</g>\n</svg>\n", d->f);
}

static void drawing_of(FILE *f, gp_arena *a, const gp_picture *pic)
{
    drawing d = { .arena = a, .f = f, .pic = *pic };
    make_drawing(&d);
    draw(&d);
}

bool gp_dump_svg(FILE *f, const gp_graph *g, const gp_plan *p, const gp_measured *m,
                 gp_errs *errs)
{
    return gp_picture_draw(f, g, p, m, drawing_of, errs);
}
