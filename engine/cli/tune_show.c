/* tune_show.c - gpipe tune: what was measured, the lines of the file that change, and a drawing of all settings. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/plain.h"
#include "cli/live.h"
#include "cli/tune.h"
#include "draw/svg.h"

/* ---- the table -------------------------------------------------------- */

/* "1.31 (1.28 to 1.35)": to the given ones, of the turns that both had. */
static void print_ratio(const gp_tuning *t, const gp_tried *p)
{
    const gp_tried *given = &t->tried[0];
    int n = p->n < given->n ? p->n : given->n;
    double low = INFINITY, high = 0;
    for (int i = 0; i < n; i++) {
        double r = t->goal.latency ? p->result[i].latency_ns / given->result[i].latency_ns
                                   : p->result[i].rate / given->result[i].rate;
        low = fmin(low, r), high = fmax(high, r);
    }
    gp_result is = gp_result_middle(p->result, n), was = gp_result_middle(given->result, n);
    if (n && p != given)
        printf("%.2f (%.2f to %.2f)", t->goal.latency ? is.latency_ns / was.latency_ns : is.rate / was.rate, low, high);
}

void gp_tune_print(const gp_tuning *t)
{
    int width = 8;
    for (int i = 0; i < t->ntried; i++)
        width = (int)strlen(t->tried[i].label) > width ? (int)strlen(t->tried[i].label) : width;
    printf("%-*s  %12s  %12s  %5s  %10s  %9s  %s\n", width, "settings", "simulated/s", "measured/s", "turns", "p99",
           "memory", t->goal.latency ? "p99, as a ratio" : "rate, as a ratio");
    for (int i = 0; i < t->ntried; i++) {
        const gp_tried *p = &t->tried[i];
        gp_result m = gp_tune_middle(p);
        char rate[32] = "-", p99[32] = "-", memory[32], simulated[32];
        if (p->n) {
            gp_amount_text(m.rate, "", rate);
            snprintf(p99, sizeof p99, "%.3g ms", 1e-6 * m.latency_ns);
        }
        printf("%-*s  %12s  %12s  %5d  %10s  %9s  ", width, p->label, gp_amount_text(p->settings->is.rate, "",
               simulated), rate, p->n, p99, gp_amount_text((double)p->settings->is.memory, "B", memory));
        print_ratio(t, p);
        puts(i && i == t->chosen ? "  best" : "");
        if (p->why)
            gp_put_plain(stdout, p->why, strlen(p->why), ""), putchar('\n');
    }
}

/* ---- the lines that differ -------------------------------------------- */

typedef struct lines { const char *at, *end; int n; } lines;

static size_t length(const lines *l)
{
    const char *nl = memchr(l->at, '\n', (size_t)(l->end - l->at));
    return (size_t)((nl ? nl + 1 : l->end) - l->at);
}

static bool is_same(const lines *x, const lines *y)
{
    size_t n = length(x);
    return x->at < x->end && y->at < y->end && n == length(y) && !memcmp(x->at, y->at, n);
}

static void pass(lines *l)
{
    l->at += length(l), l->n++;
}

static void put(const char *mark, lines *l)
{
    size_t shown = length(l);
    while (shown && strchr("\r\n", l->at[shown - 1]))
        shown--;
    fputs(mark, stdout);
    gp_put_plain(stdout, l->at, shown, "");
    putchar('\n');
    pass(l);
}

/* Does the line of `from` come in `to` soon? */
static bool comes(const lines *from, lines to)
{
    enum { SOON = 32 };
    for (int i = 0; i < SOON && to.at < to.end; i++, pass(&to))
        if (is_same(from, &to))
            return true;
    return false;
}

/* Lines are changed or added, none goes. */
void gp_tune_diff(const char *file, const char *before, size_t n, const char *after, size_t m)
{
    lines was = { before, before + n, 1 }, is = { after, after + m, 1 };
    printf("\n--- %s\n+++ %s\n", file, file);
    for (int shown = 0; is.at < is.end;) {
        if (is_same(&was, &is)) {
            pass(&was), pass(&is);
            continue;
        }
        if (is.n != shown)
            printf("@@ line %d @@\n", is.n);
        if (was.at < was.end && !comes(&was, is))
            put("-", &was);
        put("+", &is);
        shown = is.n;
    }
}

/* ---- a drawing --------------------------------------------------------- */

/* A point's place is its rate and its latency, its color its memory. Small ones were simulated, large ones measured; a
 * line joins those that none of the same sort beats in both. */
enum { WIDTH = 760, HEIGHT = 460, LEFT = 80, RIGHT = 30, TOP = 40, BOTTOM = 60, COLORS = 5 };

static const char *const colors[COLORS] = { "#2c7bb6", "#00a6ca", "#66a61e", "#e6a000", "#d7191c" };

typedef struct view { FILE *f; double low_x, high_x, high_y, low_m, high_m; } view;

static bool is_shown(const gp_result *r)
{
    return r->rate > 0 && r->latency_ns > 0;
}

static gp_result widen(view *v, gp_result r)
{
    double bytes = fmax((double)r.memory, 1);
    if (!is_shown(&r))
        return r;
    v->low_x = fmin(v->low_x, r.latency_ns), v->high_x = fmax(v->high_x, fmax(r.latency_ns, 1.1 * v->low_x));
    v->high_y = fmax(v->high_y, r.rate);
    v->low_m = fmin(v->low_m, bytes), v->high_m = fmax(v->high_m, fmax(bytes, 1.1 * v->low_m));
    return r;
}

static double x_of(const view *v, double latency)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * log(latency / v->low_x) / log(v->high_x / v->low_x);
}

static double y_of(const view *v, double rate)
{
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * rate / v->high_y;
}

static void text(const view *v, double x, double y, const char *anchor, const char *s)
{
    fprintf(v->f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    gp_svg_name(v->f, s);
    fputs("</text>\n", v->f);
}

static void axes(const view *v)
{
    char buf[32];
    fprintf(v->f, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#888\"/>\n", LEFT, TOP, HEIGHT - BOTTOM,
            WIDTH - RIGHT);
    for (int i = 0; i <= 4; i++) {
        double rate = v->high_y * i / 4, latency = v->low_x * pow(v->high_x / v->low_x, i / 4.0);
        text(v, LEFT - 8, y_of(v, rate) + 4, "end", gp_amount_text(rate, "", buf));
        snprintf(buf, sizeof buf, "%.3g ms", 1e-6 * latency);
        text(v, x_of(v, latency), HEIGHT - BOTTOM + 18, "middle", buf);
    }
    text(v, LEFT, TOP - 16, "middle", "frames/s");
    text(v, (WIDTH + LEFT - RIGHT) / 2.0, HEIGHT - 18, "middle", "latency of 99 frames in 100");
    for (int i = 0; i < COLORS; i++) {
        double memory = v->low_m * pow(v->high_m / v->low_m, (i + 0.5) / COLORS), x = WIDTH - RIGHT - 480 + 96 * i;
        fprintf(v->f, "<circle cx=\"%.1f\" cy=\"%d\" r=\"5\" fill=\"%s\"/>\n", x, TOP - 20, colors[i]);
        text(v, x + 9, TOP - 16, "start", gp_amount_text(memory, "B", buf));
    }
}

/* label: NULL: it was simulated. */
static void point(const view *v, const gp_result *r, const char *label)
{
    char rate[32], memory[32];
    if (!is_shown(r))
        return;
    int color = (int)(COLORS * log(fmax((double)r->memory, 1) / v->low_m) / log(v->high_m / v->low_m));
    fprintf(v->f, "<circle cx=\"%.1f\" cy=\"%.1f\" fill=\"%s\" %s><title>", x_of(v, r->latency_ns), y_of(v, r->rate),
            colors[color < COLORS ? color : COLORS - 1], label ? "r=\"6\" stroke=\"#222\""
            : "r=\"2\" fill-opacity=\"0.6\"");
    gp_svg_name(v->f, label ? label : "simulated");
    fprintf(v->f, ": %s frames/s, %.3g ms, %s</title></circle>\n", gp_amount_text(r->rate, "", rate),
            1e-6 * r->latency_ns, gp_amount_text((double)r->memory, "B", memory));
}

static int by_latency(const void *a, const void *b)
{
    const gp_result *x = a, *y = b;
    return (x->latency_ns > y->latency_ns) - (x->latency_ns < y->latency_ns);
}

static void front(const view *v, gp_result *r, int n, const char *style)
{
    double most = 0;
    qsort(r, (size_t)n, sizeof *r, by_latency);
    fprintf(v->f, "<path fill=\"none\" %s d=\"", style);
    for (int i = 0; i < n; i++)
        if (is_shown(&r[i]) && r[i].rate > most) {
            fprintf(v->f, "%c%.1f %.1f", most > 0 ? 'L' : 'M', x_of(v, r[i].latency_ns), y_of(v, r[i].rate));
            most = r[i].rate;
        }
    fputs("\"/>\n", v->f);
}

void gp_tune_svg(FILE *f, gp_arena *a, const gp_tuning *t)
{
    view v = { f, INFINITY, 0, 0, INFINITY, 0 };
    int n = t->found->n, m = 0;
    gp_result *simulated = GP_NEW(a, gp_result, n), *measured = GP_NEW(a, gp_result, t->ntried);
    for (int i = 0; i < n; i++)
        simulated[i] = widen(&v, t->found->all[i].is);
    for (int i = 0; i < t->ntried; i++)
        if (t->tried[i].n)
            measured[m++] = widen(&v, gp_tune_middle(&t->tried[i]));
    fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    if (v.high_y > 0) {
        axes(&v);
        for (int i = 0; i < n; i++)
            point(&v, &simulated[i], NULL);
        front(&v, simulated, n, "stroke=\"#999\" stroke-dasharray=\"3 3\"");
        front(&v, measured, m, "stroke=\"#222\"");
        for (int i = 0; i < t->ntried; i++) {
            gp_result is = gp_tune_middle(&t->tried[i]);
            point(&v, &is, t->tried[i].label);
            if (is_shown(&is) && (i == 0 || i == t->chosen))
                text(&v, x_of(&v, is.latency_ns) + 9, y_of(&v, is.rate) - 7, "start", t->tried[i].label);
        }
    }
    fputs("</svg>\n", f);
}
