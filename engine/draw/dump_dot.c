/* dump_dot.c - a graph or plan as a graph for dot (Graphviz), with the look of the drawing that dot makes of it: labels
 * are HTML to it, classes and ids are for style sheets and scripts. */
#include <string.h>
#include "base/plain.h"
#include "base/plural.h"
#include "draw/dump.h"
#include "draw/picture.h"

enum { MOST_SLOTS = 8,                     /* at most so many are drawn */
       LINE = 100 };                       /* bytes of a verdict in a line */

/* How a kind of node looks, and what it is called in the legend. */
static const struct { const char *class, *word, *fill, *stroke; } looks[GP_PIC_KINDS] = {
    { "host", "host stage", "#e9eef6", "#4c6488" },     { "device", "device stage", "#d3edda", "#2a8050" },
    { "buffer", "buffer", "#fff9e8", "#c99a2e" },       { "const", "constant", "#f4f4f2", "#85857d" },
    { "copy", "copy", "#eee8fb", "#7b5cc4" },
};

/* Escaped; what XML does not allow, or steers what shows it, is U+FFFD. */
static void put_text(FILE *f, const char *s, size_t n)
{
    for (size_t i = 0, len; i < n; i += len + !len) {
        unsigned c;
        len = gp_utf8(s + i, n - i, &c);
        if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\\')
            fprintf(f, "&#%u;", c);
        else if (!len || gp_steers(c) || c == 0xfffe || c == 0xffff)
            fputs("\xef\xbf\xbd", f);
        else
            fwrite(s + i, 1, len, f);
    }
}

static void put(FILE *f, const char *before, const char *s, const char *after)
{
    if (*s) {
        fputs(before, f);
        put_text(f, s, strlen(s));
        fputs(after, f);
    }
}

#define SMALL "<font point-size=\"11\" color=\"#56616e\">"

/* ---- nodes ----------------------------------------------------------- */

static void put_squares(FILE *f, const char *color, int full, int empty)
{
    fprintf(f, "<font color=\"%s\">", color);
    while (full-- > 0)
        fputs("■", f);
    while (empty-- > 0)
        fputs("□", f);
    fputs("</font>", f);
}

/* One for each slot; full those that were in use if that is known. */
static void put_slots(FILE *f, const gp_pic_node *n)
{
    int shown = n->depth < MOST_SLOTS ? n->depth : MOST_SLOTS;
    int used = n->full >= 0 ? (int)(n->full * shown + 0.5) : shown;
    put_squares(f, "#e0b34a", used, shown - used);
}

/* A buffer or a constant: its name and slots, its type and size. */
static void put_table(FILE *f, const gp_pic_node *n)
{
    fputs("<table border=\"0\" cellborder=\"0\" cellspacing=\"0\" cellpadding=\"1\"><tr><td align=\"left\">", f);
    put(f, "<b>", n->name, "</b>   </td><td align=\"right\">");
    if (n->kind == GP_PIC_BUFFER && n->depth)
        put_slots(f, n);
    put(f, "</td></tr><tr><td align=\"left\">" SMALL, n->what, "</font>   </td>");
    put(f, "<td align=\"right\">" SMALL, n->size, "</font></td></tr>");
    put(f, "<tr><td colspan=\"2\">" SMALL, n->note, "</font></td></tr>");
    fputs("</table>", f);
}

static void put_node(FILE *f, const gp_picture *pic, int i)
{
    static const char *const shape[GP_PIC_KINDS] = {
        "box style=filled", "box style=\"filled,rounded\"", "box style=\"filled,rounded\" margin=\"0.1,0.06\"",
        "note style=filled margin=\"0.1,0.06\"", "hexagon style=filled margin=0",
    };
    const gp_pic_node *n = &pic->node[i];
    bool hot = n->busy >= 0;
    fprintf(f, "  n%d [class=\"%s%s\" shape=%s", i, looks[n->kind].class, hot ? " heat" : "", shape[n->kind]);
    if (n->kind != GP_PIC_COPY)
        put(f, n->kind <= GP_PIC_DEVICE ? " id=\"stage " : " id=\"buffer ", n->name, "\"");
    put(f, " tooltip=\"", n->more, "\"");
    fprintf(f, " fillcolor=\"%s\" color=\"%s\"%s label=<", hot ? gp_heat_color[gp_heat(n->busy)] : looks[n->kind].fill,
            hot ? GP_HEAT_BORDER : looks[n->kind].stroke, gp_is_busiest(pic->measured, n->busy) ? " penwidth=4" : "");
    if (n->kind == GP_PIC_BUFFER || n->kind == GP_PIC_CONST) {
        put_table(f, n);
    } else {
        put(f, "<b>", n->name, "</b>");
        put(f, "  " SMALL, n->size, "</font>");
        put(f, "<br/>" SMALL, n->what, "</font>");
        put(f, "<br/>" SMALL, n->note, "</font>");
    }
    fputs(">];\n", f);
}

/* ---- the whole ------------------------------------------------------- */

/* Its words are a node, which lines go round: they would go through those of a label. */
static void put_segment(FILE *f, gp_arena *a, const gp_picture *pic, int k)
{
    const gp_segment *s = &pic->plan->segment[k];
    const gp_measured *m = pic->measured;
    gp_time time = m ? m->segment[k] : GP_NO_TIME;
    bool hot = time.busy >= 0;
    char place[24], note[64];
    fprintf(f, "  subgraph cluster_%d {\n  graph [label=\"\" class=\"segment%s\" style=\"filled,rounded\" "
            "fillcolor=\"#f3faf5\" color=\"%s\"%s];\n", k, hot ? " heat" : "", hot ? GP_HEAT_BORDER : "#9ccbb0",
            gp_is_busiest(m, time.busy) ? " penwidth=4" : "");
    fprintf(f, "  { rank=min; g%d [class=\"head%s\" shape=box style=filled penwidth=0 margin=0.05 fillcolor=\"%s\" label=<",
            k, hot ? " heat" : "", hot ? gp_heat_color[gp_heat(time.busy)] : "#dcf0e3");
    put(f, "<b>", gp_format(a, "segment %d on %s", k, gp_place_text(pic->plan, s->place, place)),
        "</b><br align=\"left\"/>");
    put(f, SMALL, gp_format(a, "%d in flight, %d stream%s, %s%d a launch", s->depth, s->streams, gp_plural(s->streams),
                            s->batch > 1 ? "up to " : "", s->batch), "</font><br align=\"left\"/>");
    put(f, SMALL, gp_time_text(m, time, note), "</font><br align=\"left\"/>");
    fputs(">]; }\n", f);
}

/* The kinds of nodes there are; what was measured has colors of its own. */
static void put_legend(FILE *f, const gp_picture *pic)
{
    bool there[GP_PIC_KINDS] = { false };
    for (int i = 0; i < pic->nnodes; i++)
        there[pic->node[i].kind] = true;
    for (int k = 0; k < GP_PIC_KINDS; k++)
        if (there[k]) {
            put_squares(f, looks[k].stroke, 1, 0);
            put(f, SMALL "&#160;", looks[k].word, "&#160;&#160; </font>");
        }
    put(f, SMALL, pic->measured ? "0 % busy" : "", "&#160;</font>");
    for (int i = 0; pic->measured && i < GP_HEAT; i++)
        put_squares(f, gp_heat_color[i], 2, 0);
    put(f, SMALL "&#160;", pic->measured ? "100 %" : "", "</font>");
}

/* The i-th line about the whole, NULL past the last. */
static const char *head(gp_arena *a, const gp_picture *pic, int i)
{
    const gp_graph *g = pic->graph;
    const gp_plan *p = pic->plan;
    char x[24], y[24], z[24];
    const char *why = g->device_why ? g->device_why : "";
    if (i == 0)
        return gp_format(a, "%sdevice %s%s%s%s", g->ranks > 1 ? gp_format(a, "rank %d of %d, ", g->rank, g->ranks) : "",
                         g->device_name, *why ? " (" : "", why, *why ? ")" : "");
    if (i == 1 && p)
        return gp_format(a, "host memory %s, pinned %s", gp_size_text(p->host_bytes, x),
                         gp_size_text(p->pinned_bytes, y));
    if (i == 2 && p && !p->unified)
        return gp_format(a, "%s memory %s", g->device_name, gp_size_text(p->device_bytes, x));
    if (i == 3 && p && !p->unified)
        return gp_format(a, "PCIe per %s: %s in, %s out%s%s", gp_period_text(a, g),
                         gp_size_text(p->copy_in_bytes, x), gp_size_text(p->copy_out_bytes, y),
                         p->copy_peer_bytes ? "; directly between devices " : "",
                         p->copy_peer_bytes ? gp_size_text(p->copy_peer_bytes, z) : "");
    return NULL;
}

static void put_head(FILE *f, gp_arena *a, const gp_picture *pic)
{
    const char *text, *verdict = pic->measured ? pic->measured->verdict : "";
    fputs("  labelloc=t; labeljust=l; label=<<table border=\"0\" cellborder=\"0\" cellpadding=\"0\">\n", f);
    put(f, "<tr><td align=\"left\"><font point-size=\"18\"><b>", pic->graph->name, "</b></font></td></tr>\n");
    for (int i = 0; (text = head(a, pic, i)); i++)
        put(f, "<tr><td align=\"left\">" SMALL, text, "</font></td></tr>\n");
    while (*verdict) {
        size_t n = strlen(verdict);
        for (n = n < LINE ? n : LINE; verdict[n] && verdict[n] != ' ' && n;)
            n--;
        n = n ? n : strcspn(verdict, " ");
        fputs("<tr><td align=\"left\"><b>", f);
        put_text(f, verdict, n);
        fputs("</b></td></tr>\n", f);
        verdict += n + (verdict[n] == ' ');
    }
    fputs("<tr><td align=\"left\">", f);
    put_legend(f, pic);
    fputs("</td></tr></table>>;\n", f);
}

static void digraph(FILE *f, gp_arena *a, const gp_picture *pic)
{
    int segments = pic->plan ? pic->plan->nsegments : 0;
    static const char font[] = "fontname=\"Helvetica,Arial,sans-serif\" fontcolor=\"#1c2530\"";
    fputs("digraph \"", f);
    put_text(f, pic->graph->name, strlen(pic->graph->name));
    /* The limits keep the time for graphs with many joins low: 1 s in place of 30 for 150 stages. */
    fprintf(f, "\" {\n  graph [%s fontsize=13 ranksep=0.24 nodesep=0.25 nslimit=1 nslimit1=1 mclimit=0.1];\n"
            "  node [%s fontsize=13 height=0.3 margin=\"0.15,0.05\"];\n  edge [color=\"#7c8794\" arrowsize=0.7];\n", font, font);
    put_head(f, a, pic);
    for (int k = 0; k <= segments; k++) {
        if (k)
            put_segment(f, a, pic, k - 1);
        for (int i = pic->first[k]; i; i = pic->next[i - 1])
            put_node(f, pic, i - 1);
        fputs(k ? "  }\n" : "", f);
    }
    for (int i = 0; i < pic->nedges; i++) {
        const gp_pic_edge *e = &pic->edge[i];
        fprintf(f, "  n%d -> n%d%s;\n", e->from, e->to, e->back ? " [dir=back style=dashed]"
                : pic->node[e->from].kind == GP_PIC_CONST ? " [style=dashed]"
                : pic->node[e->to].kind == GP_PIC_BUFFER ? " [arrowhead=none]" : "");
    }
    fputs("}\n", f);
}

bool gp_dump_dot(FILE *f, const gp_graph *g, const gp_plan *p, const gp_measured *m, gp_errs *errs)
{
    GP_ARENA(a);
    GP_IF_OOM(&a)
        return gp_no_memory(errs);
    gp_picture pic = gp_picture_of(&a, g, p, m);
    digraph(f, &a, &pic);
    return true;
}
