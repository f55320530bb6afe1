/* dump_mermaid.c - a graph or plan as a flowchart for Mermaid.
 *
 * No text of the pipeline's can be taken for anything but text. */
#include <ctype.h>
#include <string.h>
#include "base/plain.h"
#include "draw/dump.h"
#include "draw/picture.h"

/* Around the label of each kind of node. */
static const char *const brackets[GP_PIC_KINDS][2] = {
    { "[", "]" }, { "(", ")" }, { "([", "])" }, { "[/", "/]" }, { "{{", "}}" },
};

/* What Mermaid, Markdown or HTML could take for its own is a character code. */
static void label(FILE *f, const char *s)
{
    size_t n = strlen(s);
    for (size_t i = 0, len; i < n; i += len + !len) {
        unsigned c;
        len = gp_utf8(s + i, n - i, &c);
        bool inside = i && isalnum((unsigned char)s[i - 1]) && isalnum((unsigned char)s[i + 1]);
        if (c >= 0x80 && len && !gp_steers(c))
            fwrite(s + i, 1, len, f);
        else if (isalnum((int)c) || (c && strchr(" ,:[]()", (int)c))
                 || (inside && c && strchr("-_.", (int)c)))
            fputc((int)c, f);
        else
            fprintf(f, "#%u;", gp_steers(c) ? 0xfffd : c);
    }
}

static void node(FILE *f, const gp_pic_node *n, int i, const char *indent)
{
    fprintf(f, "%sn%d%s\"", indent, i, brackets[n->kind][0]);
    label(f, n->name);
    fputs(*n->what ? "<br/>" : n->kind == GP_PIC_COPY ? " " : "", f);
    label(f, n->what);
    fputs(*n->what && *n->size ? "<br/>" : "", f);
    label(f, n->size);
    fputs(*n->note ? "<br/>" : "", f);
    label(f, n->note);
    fprintf(f, "\"%s:::", brackets[n->kind][1]);
    if (n->busy >= 0)
        fprintf(f, "heat%d\n", gp_heat(n->busy));
    else
        fprintf(f, "%s\n", gp_pic_looks[n->kind].class);
}

/* Colors by what was measured. */
static void heat(FILE *f, const gp_picture *pic)
{
    const char *most = ",stroke-width:4px";
    for (int i = 0; i < GP_HEAT; i++)
        fprintf(f, "  classDef heat%d fill:%s,stroke:" GP_HEAT_BORDER ",color:#1c2530\n", i,
                gp_heat_color[i]);
    for (int k = 0; pic->plan && k < pic->plan->nsegments; k++) {
        double busy = gp_picture_segment_busy(pic, k);
        if (busy >= 0)
            fprintf(f, "  style g%d fill:%s,stroke:" GP_HEAT_BORDER ",color:#1c2530%s\n", k,
                    gp_heat_color[gp_heat(busy)],
                    gp_is_busiest(pic->measured, busy) ? most : "");
    }
    for (int i = 0; i < pic->nnodes; i++)
        if (gp_is_busiest(pic->measured, pic->node[i].busy))
            fprintf(f, "  style n%d stroke:" GP_HEAT_BORDER "%s\n", i, most);
}

static void flowchart(FILE *f, gp_arena *a, const gp_picture *pic)
{
    int segments = pic->plan ? pic->plan->nsegments : 0;
    bool judged = pic->measured && *pic->measured->verdict;
    fputs("---\ntitle: ", f);
    const char *title = judged ? gp_format(a, "%s: %s", pic->graph->name, pic->measured->verdict) : pic->graph->name;
    gp_json_quote(f, title, strlen(title));
    fputs("\n---\nflowchart TB\n", f);
    for (int k = 0; k <= segments; k++) {
        if (k) {
            fprintf(f, "  subgraph g%d[\"", k - 1);
            const char *note = gp_picture_segment_note(a, pic, k - 1);
            label(f, gp_picture_segment(a, pic->plan, k - 1));
            fputs("<br/>", f);
            label(f, gp_picture_flight(a, pic->plan, k - 1));
            fputs(*note ? "<br/>" : "", f);
            label(f, note);
            fputs("\"]\n", f);
        }
        for (int i = pic->first[k]; i; i = pic->next[i - 1])
            node(f, &pic->node[i - 1], i - 1, k ? "    " : "  ");
        fputs(k ? "  end\n" : "", f);
    }
    for (int i = 0; i < pic->nedges; i++) {
        const gp_pic_edge *e = &pic->edge[i];
        fprintf(f, "  n%d %s n%d\n", e->back ? e->to : e->from,
                pic->node[e->from].kind == GP_PIC_CONST || e->back ? "-.->"
                : pic->node[e->to].kind == GP_PIC_BUFFER ? "---" : "-->", e->back ? e->from : e->to);
    }
    for (int k = 0; k < GP_PIC_KINDS; k++)
        fprintf(f, "  classDef %s fill:%s,stroke:%s,color:#1c2530\n", gp_pic_looks[k].class, gp_pic_looks[k].fill,
                gp_pic_looks[k].stroke);
    if (pic->measured)
        heat(f, pic);
}

bool gp_dump_mermaid(FILE *f, const gp_graph *g, const gp_plan *p, const gp_measured *m,
                     gp_errs *errs)
{
    return gp_picture_draw(f, g, p, m, flowchart, errs);
}
