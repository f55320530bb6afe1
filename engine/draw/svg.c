/* svg.c - the pieces of a drawing: text, nodes, their styles. See svg.h.
 *
 * What a node is shows in its shape as well as in its color: host stages are square,
 * device stages round, buffers have a cell for each slot, copies are pointed,
 * constants have a folded corner. Shapes are styled by class alone, so that a page the
 * drawing is put into can change any of it. On paper it is light. */
#include <math.h>
#include <string.h>
#include "base/plain.h"
#include "draw/dump.h"
#include "draw/svg.h"

enum { CELLS = 8, CELL = 7,                /* at most so many are drawn, so wide */
       MOST = GP_SVG_MOST };

const char *const gp_svg_class[GP_PIC_KINDS] = { "host", "device", "buffer", "const", "copy" };

/* ---- text ------------------------------------------------------------ */

/* About how wide a character is in a wide font, as a part of the font's size. */
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

double gp_svg_width(const char *s, double size)
{
    size_t fits;
    return fmin(measure(s, size, MOST, &fits), MOST);
}

/* Escaped; what XML does not allow, or steers what shows it, is U+FFFD. */
static void xml(FILE *f, const char *s, size_t n)
{
    for (size_t i = 0, len; i < n; i += len + !len) {
        unsigned c;
        len = gp_utf8(s + i, n - i, &c);
        if (c == '<' || c == '>' || c == '&' || c == '"')
            fprintf(f, "&#%u;", c);
        else if (!len || (gp_steers(c) && !(c && strchr("\t\n", (int)c))) || c == 0xfffe || c == 0xffff)
            fputs("\xef\xbf\xbd", f);
        else
            fwrite(s + i, 1, len, f);
    }
}

void gp_svg_name(FILE *f, const char *s)
{
    xml(f, s, strlen(s));
}

void gp_svg_text(FILE *f, const char *class, double x, double y, const char *s, double size)
{
    size_t fits, n = strlen(s);
    bool whole = !size || measure(s, size, MOST, &fits) <= MOST;
    if (!whole)
        measure(s, size, MOST - size, &fits);
    fprintf(f, "<text class=\"%s\" x=\"%.0f\" y=\"%.0f\">", class, x, y);
    xml(f, s, whole ? n : fits);
    fputs(whole ? "</text>\n" : "…</text>\n", f);
}

/* ---- shapes ---------------------------------------------------------- */

static int cells(const gp_pic_node *n)
{
    return n->depth < CELLS ? n->depth : CELLS;
}

void gp_svg_size(const gp_pic_node *n, double *w, double *h)
{
    double name = gp_svg_width(n->name, GP_SVG_NAME), size = gp_svg_width(n->size, GP_SVG_SMALL);
    double what = gp_svg_width(n->what, GP_SVG_SMALL), note = gp_svg_width(n->note, GP_SVG_SMALL);
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
        *h = *n->what ? 42 : *n->note ? 27 : 34;
    }
    if (*n->note) {
        *w = fmax(*w, note + (n->kind == GP_PIC_COPY ? 40 : 32));
        *h += GP_SVG_NOTE;
    }
    *w = gp_svg_even(*w);
}

static void polygon(FILE *f, const double *xy, int points)
{
    fputs("<polygon points=\"", f);
    for (int i = 0; i < points; i++)
        fprintf(f, "%s%.0f,%.0f", i ? " " : "", xy[2 * i], xy[2 * i + 1]);
    fputs("\"/>", f);
}

void gp_svg_shape(FILE *f, gp_pic_kind kind, double x, double y, double w, double h)
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

/* Cells [first, last) of those shown. */
static void slots(FILE *f, const char *class, int first, int last, double right, double y)
{
    if (first == last)
        return;
    fprintf(f, "<path class=\"%s\" d=\"", class);
    for (int i = first; i < last; i++)
        fprintf(f, "M%.0f %.0fh%dv9h-%dz", right - (last - i) * (CELL + 2) + 2, y, CELL, CELL);
    fputs("\"/>\n", f);
}

/* All cells of a buffer; those that were in use if that is known. */
static void all_slots(FILE *f, const gp_pic_node *n, double right, double y)
{
    int shown = cells(n), used = n->full >= 0 ? (int)lround(n->full * shown) : shown;
    slots(f, "slots", 0, used, right - (shown - used) * (CELL + 2), y);
    slots(f, "slots free", used, shown, right, y);
}

const char *gp_svg_heat(const gp_measured *m, double busy, char buf[24])
{
    *buf = 0;
    if (busy >= 0)
        snprintf(buf, 24, " heat heat%d%s", gp_heat(busy), gp_is_busiest(m, busy) ? " most" : "");
    return buf;
}

void gp_svg_node(FILE *f, const gp_pic_node *n, const gp_measured *m, double x, double y,
                 double w, double h)
{
    bool stage = n->kind <= GP_PIC_DEVICE;
    char heat[24];
    fprintf(f, "<g class=\"%s%s\" data-%s=\"", gp_svg_class[n->kind],
            gp_svg_heat(m, n->busy, heat),
            stage ? "stage" : n->kind == GP_PIC_COPY ? "copy" : "buffer");
    gp_svg_name(f, n->name);
    fputs("\"><title>", f);
    gp_svg_name(f, n->more);
    fputs(*n->note ? ": " : "", f);
    gp_svg_name(f, n->note);
    fputs("</title>\n", f);
    gp_svg_shape(f, n->kind, x, y, w, h);
    if (n->kind == GP_PIC_COPY) {
        gp_svg_text(f, "name", x + 18, y + 19, n->name, GP_SVG_NAME);
        gp_svg_text(f, "small end", x + w - 18, y + 19, n->size, GP_SVG_SMALL);
    } else if (stage) {
        gp_svg_text(f, "name mid", x + w / 2, y + (*n->what || *n->note ? 18 : 22), n->name,
                    GP_SVG_NAME);
        if (*n->what)
            gp_svg_text(f, "small mid", x + w / 2, y + 33, n->what, GP_SVG_SMALL);
    } else {
        gp_svg_text(f, "name", x + 14, y + 18, n->name, GP_SVG_NAME);
        gp_svg_text(f, "small", x + 14, y + 33, n->what, GP_SVG_SMALL);
        gp_svg_text(f, "small end", x + w - 14, y + 33, n->size, GP_SVG_SMALL);
        if (n->kind == GP_PIC_BUFFER)
            all_slots(f, n, x + w - 14, y + 9);
    }
    if (*n->note)
        gp_svg_text(f, "small mid", x + w / 2, y + h - 9, n->note, GP_SVG_SMALL);
    fputs("</g>\n", f);
}

double gp_svg_scale(FILE *f, double x, double y)
{
    static const char *const word[] = { "0 % busy", "100 %" };
    double first = x + ceil(gp_svg_width(word[0], GP_SVG_SMALL)) + 6;
    double last = first + GP_HEAT * 20 + 4;
    for (int i = 0; y > 0 && i < GP_HEAT; i++) {
        fprintf(f, "<g class=\"heat heat%d\">", i);
        gp_svg_shape(f, GP_PIC_HOST, first + 20 * i, y, 18, 14);
        fputs("</g>\n", f);
    }
    if (y > 0) {
        gp_svg_text(f, "small", x, y + 11, word[0], GP_SVG_SMALL);
        gp_svg_text(f, "small", last, y + 11, word[1], GP_SVG_SMALL);
    }
    return last + ceil(gp_svg_width(word[1], GP_SVG_SMALL));
}

const char *gp_svg_wrap(gp_arena *a, const char **rest, double size, double most)
{
    size_t fits, n = strlen(*rest);
    if (measure(*rest, size, most, &fits) > most) {
        for (n = fits; n && ((*rest)[n] != ' ' || (*rest)[n + 1] == '%');)
            n--;
        n = n ? n : fits;
    }
    const char *line = gp_strndup(a, *rest, n);
    *rest += n + ((*rest)[n] == ' ');
    return line;
}

/* ---- styles ---------------------------------------------------------- */

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

/* What was measured: light to strong, on paper and on a dark screen. */
static void heat_rules(FILE *f, const char *const color[GP_HEAT], const char *border,
                       const char *inside, const char *ink)
{
    fprintf(f, ".heat .small,.said{fill:%s}.heat>rect,.heat>polygon,.segment.heat>rect{stroke:%s}",
            ink, border);
    for (int i = 0; i < GP_HEAT; i++)
        fprintf(f, ".heat%d>rect,.heat%d>polygon,.heat%d>.head{fill:%s}", i, i, i, color[i]);
    fprintf(f, ".segment.heat>rect{fill:%s}", inside);
}

void gp_svg_style(FILE *f, bool heat)
{
    static const char *const dark[GP_HEAT] = { "#221c17", "#3d2a19", "#5b3917", "#7a4515",
                                               "#9c5212" };
    fputs(style, f);
    if (!heat)
        return;
    fputs(".said{font-weight:600}.free{opacity:.25}"
          ".most>rect,.most>polygon,.segment.most>rect{stroke-width:4}", f);
    heat_rules(f, gp_heat_color, GP_HEAT_BORDER, "#fffaf4", "#1c2530");
    fputs("@media screen and (prefers-color-scheme:dark){", f);
    heat_rules(f, dark, "#e0985a", "#15110d", "#e4e9ef");
    fputs("}", f);
}

