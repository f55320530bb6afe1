/* dump_svg.c - a graph or plan as a drawing.
 *
 * Each segment is laid out by itself, as a box with a point on its border for each
 * line that goes in or out; then all is laid out with the segments as boxes. So
 * frames hold just what is theirs. What a node is shows in its shape as well as in
 * its color: host stages are square, device stages round, buffers have a cell for
 * each slot, copies are pointed, constants have a folded corner.
 *
 * Shapes are styled by class alone, so that a page the drawing is put into can
 * change any of it. On paper it is light. */
#include <math.h>
#include <string.h>
#include "dump.h"
#include "layout.h"
#include "picture.h"

enum {
    MARGIN = 24, PAD = 18,             /* around all; in a frame, beside and below */
    TITLE = 18, NAME = 13, SMALL = 11, /* sizes of text */
    LINE = 16, FRAME_HEAD = 40,
    CELLS = 8, CELL = 7,               /* at most so many are drawn, so wide */
    MOST = 320,                        /* a wider text is cut short */
};

/* What a link shows: an edge, or a piece of one, which may end at points on the borders
 * of frames (boxes of their sheets; -1: not so). */
typedef struct wire { int edge, from_point, to_point; } wire;

/* Boxes and links of the whole, or of what is in one frame. */
typedef struct sheet {
    gp_box *box; int nboxes, boxes_cap;
    int *node; int nodes_cap;          /* of a box: what it shows; -1: a frame, a point */
    gp_link *link; int nlinks, links_cap;
    wire *wire; int wires_cap;         /* of a link */
    double w, h;                       /* what the layout takes */
    double x, y;                       /* where it is drawn: in the frame, then in all */
    int in_all;                        /* of a frame: its box in the whole, -1: empty */
    bool enters, leaves;
    int entry, entry_of;               /* the newest point where lines come in; whose + 1 */
} sheet;

typedef struct drawing {
    gp_arena *arena;
    FILE *f;
    gp_picture pic;
    sheet *frame, all;
    int nframes;
    int *box;                          /* of each node, in its sheet */
    int *exit;                         /* where its lines leave its frame; -1: not yet */
} drawing;

static const char *const kind_class[] = { "host", "device", "buffer", "const", "copy" };
static const char *const kind_word[] = {
    "host stage", "device stage", "buffer", "constant", "copy",
};

/* ---- text ------------------------------------------------------------ */

/* About how wide one character is, in a wide font: part of the size. */
static double wide(unsigned c)
{
    if (c >= 0x300 && c < 0x370)
        return 0;
    if (c >= 0x1100)
        return 1.05;
    if (c < 0x80 && strchr("ijl.,:;'|!I", (int)c))
        return 0.34;
    if (c < 0x80 && strchr("ft()[]{}-\"/\\r ", (int)c))
        return 0.41;
    if (c < 0x80 && strchr("mwMWO%@&QDGN", (int)c))
        return 0.9;
    return c >= 'A' && c <= 'Z' ? 0.7 : c >= 'a' && c <= 'z' ? 0.61 : 0.65;
}

/* How wide a text is; `*fits`: how many bytes of it are not wider than `most`. */
static double measure(const char *s, double size, double most, size_t *fits)
{
    double x = 0;
    size_t n = strlen(s);
    *fits = 0;
    for (size_t i = 0, len; i < n; i += len) {
        unsigned c;
        len = gp_utf8(s + i, n - i, &c);
        len += !len;
        x += size * wide(c);
        if (x <= most)
            *fits = i + len;
    }
    return x;
}

static double width(const char *s, double size)
{
    size_t fits;
    return fmin(measure(s, size, MOST, &fits), MOST);
}

/* Escaped; what XML does not allow is U+FFFD. */
static void xml(FILE *f, const char *s, size_t n)
{
    for (size_t i = 0, len; i < n; i += len + !len) {
        unsigned c;
        len = gp_utf8(s + i, n - i, &c);
        if (c == '<' || c == '>' || c == '&' || c == '"')
            fprintf(f, "&#%u;", c);
        else if (!len || (c < 0x20 && !strchr("\t\n", (int)c)) || c == 0xfffe || c == 0xffff)
            fputs("\xef\xbf\xbd", f);
        else
            fwrite(s + i, 1, len, f);
    }
}

static void xml_name(FILE *f, const char *s)
{
    xml(f, s, strlen(s));
}

/* One line of text. `anchor`: "", " m" in the middle, " e" before `x`. */
static void text(FILE *f, const char *class, double x, double y, const char *s, double size)
{
    size_t fits, n = strlen(s);
    bool whole = measure(s, size, MOST, &fits) <= MOST;
    if (!whole)
        measure(s, size, MOST - size, &fits);
    fprintf(f, "<text class=\"%s\" x=\"%.0f\" y=\"%.0f\">", class, x, y);
    xml(f, s, whole ? n : fits);
    fputs(whole ? "</text>\n" : "…</text>\n", f);
}

/* ---- shapes ---------------------------------------------------------- */

static double even(double x)
{
    return 2 * ceil(x / 2);
}

static int cells(const gp_pic_node *n)
{
    return n->depth < CELLS ? n->depth : CELLS;
}

static void node_size(const gp_pic_node *n, double *w, double *h)
{
    double name = width(n->name, NAME * 1.12), what = width(n->what, SMALL);
    double size = width(n->size, SMALL);
    switch (n->kind) {
    case GP_PIC_BUFFER:
        *w = fmax(name + 20 + cells(n) * (CELL + 2), *n->what ? what + 22 + size : size) + 36;
        *h = 42;
        break;
    case GP_PIC_CONST:
        *w = fmax(name, what + 14 + size) + 28;
        *h = 42;
        break;
    case GP_PIC_COPY:
        *w = name + 8 + size + 40;
        *h = 28;
        break;
    default:
        *w = fmax(fmax(name, what) + 32, 104);
        *h = *n->what ? 42 : 34;
    }
    *w = even(*w);
}

static void polygon(FILE *f, const double *xy, int points)
{
    fputs("<polygon points=\"", f);
    for (int i = 0; i < points; i++)
        fprintf(f, "%s%.0f,%.0f", i ? " " : "", xy[2 * i], xy[2 * i + 1]);
    fputs("\"/>", f);
}

static void shape(FILE *f, gp_pic_kind kind, double x, double y, double w, double h)
{
    double point = fmin(12, h / 2), fold = fmin(10, floor(h / 3)), right = x + w, below = y + h;
    const double copy[] = { x, y + h / 2, x + point, y, right - point, y, right, y + h / 2,
                            right - point, below, x + point, below };
    const double folded[] = { x, y, right - fold, y, right, y + fold, right, below, x, below };
    if (kind == GP_PIC_COPY) {
        polygon(f, copy, 6);
    } else if (kind == GP_PIC_CONST) {
        polygon(f, folded, 5);
        fprintf(f, "<path d=\"M%.0f %.0fv%.0fh%.0f\"/>", right - fold, y, fold, fold);
    } else {
        fprintf(f, "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" rx=\"%d\"/>",
                x, y, w, h, kind == GP_PIC_HOST ? 2 : kind == GP_PIC_BUFFER ? 6 : h < 28 ? 7 : 14);
    }
    fputc('\n', f);
}

static void slots(FILE *f, const gp_pic_node *n, double right, double y)
{
    int shown = cells(n);
    fprintf(f, "<path class=\"slots\" d=\"");
    for (int i = 0; i < shown; i++)
        fprintf(f, "M%.0f %.0fh%dv9h-%dz", right - (shown - i) * (CELL + 2) + 2, y, CELL, CELL);
    fputs("\"/>\n", f);
}

static void draw_node(FILE *f, const gp_pic_node *n, double x, double y, double w, double h)
{
    bool stage = n->kind <= GP_PIC_DEVICE;
    fprintf(f, "<g class=\"%s\" data-%s=\"", kind_class[n->kind],
            stage ? "stage" : n->kind == GP_PIC_COPY ? "copy" : "buffer");
    xml_name(f, n->name);
    fputs("\"><title>", f);
    xml_name(f, n->more);
    fputs("</title>\n", f);
    shape(f, n->kind, x, y, w, h);
    if (n->kind == GP_PIC_COPY) {
        text(f, "name", x + 18, y + 19, n->name, NAME * 1.12);
        text(f, "small end", x + w - 18, y + 19, n->size, SMALL);
    } else if (stage) {
        text(f, "name mid", x + w / 2, y + (*n->what ? 18 : 22), n->name, NAME * 1.12);
        if (*n->what)
            text(f, "small mid", x + w / 2, y + 33, n->what, SMALL);
    } else {
        text(f, "name", x + 14, y + 18, n->name, NAME * 1.12);
        text(f, "small", x + 14, y + 33, n->what, SMALL);
        text(f, "small end", x + w - 14, y + 33, n->size, SMALL);
        if (n->kind == GP_PIC_BUFFER)
            slots(f, n, x + w - 14, y + 9);
    }
    fputs("</g>\n", f);
}

/* ---- sheets ---------------------------------------------------------- */

static sheet *sheet_of(drawing *d, int node)
{
    int segment = d->pic.node[node].segment;
    return segment < 0 ? &d->all : &d->frame[segment];
}

static int add_box(drawing *d, sheet *s, gp_box box, int node)
{
    int n = s->nboxes;
    *GP_PUSH(d->arena, s->node, n, s->nodes_cap) = node;
    *GP_PUSH(d->arena, s->box, s->nboxes, s->boxes_cap) = box;
    return s->nboxes - 1;
}

static void add_link(drawing *d, sheet *s, int from, int to, wire w)
{
    int n = s->nlinks, target = s->node[to];
    gp_pic_kind kind = target < 0 ? GP_PIC_BUFFER : d->pic.node[target].kind;
    const gp_pic_node *origin = &d->pic.node[d->pic.edge[w.edge].from];
    *GP_PUSH(d->arena, s->wire, n, s->wires_cap) = w;
    *GP_PUSH(d->arena, s->link, s->nlinks, s->links_cap) = (gp_link){
        .from = from, .to = to, .label = even(width(origin->name, SMALL) + 8),
        .side = origin->kind == GP_PIC_CONST,
        .arrow = kind != GP_PIC_BUFFER && kind != GP_PIC_CONST };
}

static void add_node(drawing *d, int node)
{
    const gp_pic_node *n = &d->pic.node[node];
    sheet *s = sheet_of(d, node);
    gp_box box = { 0 };
    node_size(n, &box.w, &box.h);
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
    wire inner = { edge, -1, -1 }, outer = inner;
    if (s == t) {
        add_link(d, s, d->box[from], d->box[to], inner);
        return;
    }
    if (s != &d->all && d->exit[from] < 0) {
        d->exit[from] = add_box(d, s, (gp_box){ .w = 2, .rank = GP_RANK_LAST }, -1);
        s->leaves = true;
        add_link(d, s, d->box[from], d->exit[from], inner);
    }
    bool entered = t != &d->all && t->entry_of == from + 1;
    if (t != &d->all && !entered) {
        t->entry = add_box(d, t, (gp_box){ .w = 2, .rank = GP_RANK_FIRST }, -1);
        t->entry_of = from + 1;
        t->enters = true;
    }
    if (t != &d->all)
        add_link(d, t, t->entry, d->box[to], inner);
    outer.from_point = d->exit[from];
    outer.to_point = t == &d->all ? -1 : t->entry;
    if (!entered)
        add_link(d, &d->all, s == &d->all ? d->box[from] : s->in_all,
                 t == &d->all ? d->box[to] : t->in_all, outer);
}

static void lay_out(drawing *d, sheet *s)
{
    gp_layout(d->arena, s->box, s->nboxes, s->link, s->nlinks, &s->w, &s->h);
}

static void lay_out_frame(drawing *d, int segment)
{
    sheet *s = &d->frame[segment];
    gp_box *box = &d->all.box[s->in_all];
    lay_out(d, s);
    double head = fmax(width(gp_picture_frame(d->arena, d->pic.plan, segment), NAME * 1.12),
                       width(gp_picture_flight(d->arena, d->pic.plan, segment), SMALL));
    box->w = even(fmax(s->w, head) + 2 * PAD);
    box->h = FRAME_HEAD + s->h + (s->enters ? 0 : PAD) + (s->leaves ? 0 : PAD);
    s->x = floor((box->w - s->w) / 2);
    s->y = FRAME_HEAD + (s->enters ? 0 : PAD);
}

static void lay_out_all(drawing *d)
{
    for (int i = 0; i < d->nframes; i++)
        lay_out_frame(d, i);
    for (int i = 0; i < d->all.nlinks; i++) {
        gp_link *k = &d->all.link[i];
        const wire *w = &d->all.wire[i];
        const sheet *s = sheet_of(d, d->pic.edge[w->edge].from);
        const sheet *t = sheet_of(d, d->pic.edge[w->edge].to);
        if (w->from_point >= 0)
            k->from_at = s->x + s->box[w->from_point].x + 1;
        if (w->to_point >= 0)
            k->to_at = t->x + t->box[w->to_point].x + 1;
    }
    lay_out(d, &d->all);
}

/* Where lines come in to a frame follows from where they come from. */
static void aim_entries(drawing *d)
{
    for (int i = 0; i < d->all.nlinks; i++) {
        const gp_link *k = &d->all.link[i];
        const wire *w = &d->all.wire[i];
        if (w->to_point >= 0)
            sheet_of(d, d->pic.edge[w->edge].to)->box[w->to_point].aim =
                1 + k->bend[k->nbends - 2].x;
    }
}

static void make_drawing(drawing *d)
{
    const gp_picture *pic = &d->pic;
    d->nframes = pic->plan ? pic->plan->nsegments : 0;
    d->frame = GP_NEW(d->arena, sheet, d->nframes);
    d->box = GP_NEW(d->arena, int, pic->nnodes);
    d->exit = GP_NEW(d->arena, int, pic->nnodes);
    for (int i = 0; i < d->nframes; i++)
        d->frame[i].in_all = -1;
    for (int i = 0; i < pic->nnodes; i++)
        add_node(d, i);
    for (int i = 0; i < pic->nedges; i++)
        add_edge(d, i);
    lay_out_all(d);
    aim_entries(d);
    lay_out_all(d);
}

/* ---- drawing --------------------------------------------------------- */

static void draw_link(drawing *d, const sheet *s, int i)
{
    const gp_link *k = &s->link[i];
    const gp_pic_node *from = &d->pic.node[d->pic.edge[s->wire[i].edge].from];
    const char *class = from->kind == GP_PIC_CONST ? "line once" : "line";
    if (k->cut)
        text(d->f, "small mid", s->x + k->bend[0].x, s->y + k->bend[0].y0 - 3, from->name, SMALL);
    fprintf(d->f, "<path class=\"%s\" d=\"M%.0f %.0f", class, s->x + k->bend[0].x,
            s->y + k->bend[0].y0);
    for (int b = 0; b < k->nbends; b++) {
        double x = s->x + k->bend[b].x, y = s->y + k->bend[b].y0;
        double before = b ? s->x + k->bend[b - 1].x : x, from_y = b ? s->y + k->bend[b - 1].y1 : y;
        double to_y = b == k->nbends - 1 && k->arrow ? y - 8 : y, half = floor((from_y + to_y) / 2);
        if (fabs(before - x) >= 0.5)
            fprintf(d->f, "C%.0f %.0f %.0f %.0f %.0f %.0f", before, half, x, half, x, to_y);
        fprintf(d->f, "V%.0f", s->y + k->bend[b].y1 - (to_y < y ? 3 : 0));
    }
    fputs("\"/>\n", d->f);
    const gp_bend *end = &k->bend[k->nbends - 1];
    if (k->arrow)
        fprintf(d->f, "<path class=\"arrow\" d=\"M%.0f %.0fl-4 -7h8z\"/>\n", s->x + end->x,
                s->y + end->y0);
}

static void draw_sheet(drawing *d, const sheet *s)
{
    for (int i = 0; i < s->nlinks; i++)
        draw_link(d, s, i);
    for (int i = 0; i < s->nboxes; i++)
        if (s->node[i] >= 0)
            draw_node(d->f, &d->pic.node[s->node[i]], s->x + s->box[i].x, s->y + s->box[i].y,
                      s->box[i].w, s->box[i].h);
}

static void draw_frame(drawing *d, int segment)
{
    sheet *s = &d->frame[segment];
    const gp_box *b = &d->all.box[s->in_all];
    double x = d->all.x + b->x, y = d->all.y + b->y, round = 10;
    fprintf(d->f, "<g class=\"segment\" data-segment=\"%d\">\n"
            "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" rx=\"%.0f\"/>\n"
            "<path class=\"head\" d=\"M%.0f %.0fv-%.0fa%.0f %.0f 0 0 1 %.0f -%.0fh%.0f"
            "a%.0f %.0f 0 0 1 %.0f %.0fv%.0fz\"/>\n", segment, x, y, b->w, b->h, round,
            x, y + FRAME_HEAD, FRAME_HEAD - round, round, round, round, round,
            b->w - 2 * round, round, round, round, round, FRAME_HEAD - round);
    text(d->f, "name", x + PAD - 4, y + 18, gp_picture_frame(d->arena, d->pic.plan, segment),
         NAME * 1.12);
    text(d->f, "small", x + PAD - 4, y + 32, gp_picture_flight(d->arena, d->pic.plan, segment),
         SMALL);
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
            fprintf(d->f, "<g class=\"%s\">", kind_class[k]);
            shape(d->f, (gp_pic_kind)k, x, y, 24, 14);
            text(d->f, "small", x + 30, y + 11, kind_word[k], SMALL);
            fputs("</g>\n", d->f);
        }
        x += 30 + ceil(width(kind_word[k], SMALL)) + 14;
    }
    return x - left - 14;
}

static const char style[] =
    ".paper{fill:#fff}"
    "text{font-family:system-ui,sans-serif;fill:#1c2530}"
    ".title{font-size:18px;font-weight:600}.name{font-size:13px;font-weight:600}"
    ".small{font-size:11px;fill:#56616e}.mid{text-anchor:middle}.end{text-anchor:end}"
    ".line{fill:none;stroke:#7c8794;stroke-width:1.5}.once{stroke-dasharray:4 3}"
    ".arrow{fill:#7c8794}"
    ".segment rect{fill:#f3faf5;stroke:#9ccbb0}.head{fill:#dcf0e3}"
    ".host>rect{fill:#e9eef6;stroke:#4c6488;stroke-width:1.5}"
    ".device>rect{fill:#d3edda;stroke:#2a8050;stroke-width:1.5}"
    ".buffer>rect{fill:#fff9e8;stroke:#c99a2e}.slots{fill:#e0b34a}"
    ".copy>polygon{fill:#eee8fb;stroke:#7b5cc4;stroke-width:1.5}"
    ".const>polygon{fill:#f4f4f2;stroke:#85857d}.const>path{fill:none;stroke:#85857d}"
    "@media screen and (prefers-color-scheme:dark){"
    ".paper{fill:#10151c}text{fill:#e4e9ef}.small{fill:#a0abb8}"
    ".line{stroke:#7d8a99}.arrow{fill:#7d8a99}"
    ".segment rect{fill:#111f18;stroke:#2f6346}.head{fill:#18352a}"
    ".host>rect{fill:#1d2838;stroke:#7f9cc4}.device>rect{fill:#194430;stroke:#4fb37d}"
    ".buffer>rect{fill:#272110;stroke:#a8842f}.slots{fill:#d3a53e}"
    ".copy>polygon{fill:#2a2144;stroke:#9f84e4}"
    ".const>polygon{fill:#1f2328;stroke:#8d949c}.const>path{stroke:#8d949c}}";

static void draw(drawing *d)
{
    const char *head[8];
    int lines = 0;
    double w = fmax(d->all.w, fmax(width(d->pic.graph->name, TITLE * 1.12),
                                   draw_legend(d, 0, 0)));
    while ((head[lines] = gp_picture_head(d->arena, &d->pic, lines)))
        w = fmax(w, width(head[lines++], SMALL));
    double top = MARGIN + TITLE + 6 + lines * LINE + 12, bottom = top + d->all.h + MARGIN;
    w = even(w) + 2 * MARGIN;
    double h = bottom + 14 + MARGIN;
    fprintf(d->f, "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"gpipe\" role=\"img\" "
            "width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n<title>", w, h, w, h);
    xml_name(d->f, d->pic.graph->name);
    fprintf(d->f, "</title>\n<style>%s</style>\n"
            "<rect class=\"paper\" width=\"%.0f\" height=\"%.0f\"/>\n", style, w, h);
    text(d->f, "title", MARGIN, MARGIN + 14, d->pic.graph->name, TITLE * 1.12);
    for (int i = 0; i < lines; i++)
        text(d->f, "small", MARGIN, MARGIN + TITLE + 16 + i * LINE, head[i], SMALL);
    d->all.x = floor((w - d->all.w) / 2);
    d->all.y = top;
    for (int i = 0; i < d->nframes; i++)
        draw_frame(d, i);
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

bool gp_dump_svg(FILE *f, const gp_graph *g, const gp_plan *p, gp_errs *errs)
{
    return gp_picture_draw(f, g, p, drawing_of, errs);
}
