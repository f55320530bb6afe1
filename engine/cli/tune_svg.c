/* tune_svg.c - gpipe tune: all settings in a drawing: a point's place is its rate and its latency, its color its
 * memory. Small ones were simulated, large ones measured; a line joins those that none of the same sort beats in both.
 * */
#include <math.h>
#include <stdlib.h>
#include "cli/live.h"
#include "cli/tune.h"

enum { WIDTH = 760, HEIGHT = 460, LEFT = 80, RIGHT = 30, TOP = 40, BOTTOM = 60, COLORS = 5 };

static const char *const colors[COLORS] = { "#2c7bb6", "#00a6ca", "#66a61e", "#e6a000", "#d7191c" };

typedef struct view { double low_x, high_x, high_y, low_m, high_m; } view;

static void widen(view *v, const gp_result *r)
{
    if (!(r->rate > 0) || !(r->latency_ns > 0))
        return;
    v->low_x = fmin(v->low_x, r->latency_ns), v->high_x = fmax(v->high_x, r->latency_ns);
    v->high_y = fmax(v->high_y, r->rate);
    v->low_m = fmin(v->low_m, (double)r->memory), v->high_m = fmax(v->high_m, (double)r->memory);
}

static double x_of(const view *v, double latency)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * log(latency / v->low_x) / log(v->high_x / v->low_x);
}

static double y_of(const view *v, double rate)
{
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * rate / v->high_y;
}

static const char *color_of(const view *v, double memory)
{
    double part = log(memory / v->low_m) / log(v->high_m / v->low_m);
    int i = (int)(part * COLORS);
    return colors[i < 0 ? 0 : i < COLORS ? i : COLORS - 1];
}

static void text(FILE *f, double x, double y, const char *anchor, const char *s)
{
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    for (; *s; s++)
        if (*s == '<' || *s == '&')
            fprintf(f, "&#%d;", *s);
        else
            putc(*s, f);
    fputs("</text>\n", f);
}

static void axes(FILE *f, const view *v)
{
    char buf[32];
    fprintf(f, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#888\"/>\n", LEFT, TOP, HEIGHT - BOTTOM, WIDTH - RIGHT);
    for (int i = 0; i <= 4; i++) {
        double rate = v->high_y * i / 4, latency = v->low_x * pow(v->high_x / v->low_x, i / 4.0);
        text(f, LEFT - 8, y_of(v, rate) + 4, "end", gp_amount_text(rate, "", buf));
        snprintf(buf, sizeof buf, "%.3g ms", 1e-6 * latency);
        text(f, x_of(v, latency), HEIGHT - BOTTOM + 18, "middle", buf);
    }
    text(f, LEFT, TOP - 16, "middle", "frames/s");
    text(f, (WIDTH + LEFT - RIGHT) / 2.0, HEIGHT - 18, "middle", "latency of 99 frames in 100");
    for (int i = 0; i < COLORS; i++) {
        double memory = v->low_m * pow(v->high_m / v->low_m, (i + 0.5) / COLORS), x = WIDTH - RIGHT - 480 + 96 * i;
        fprintf(f, "<circle cx=\"%.1f\" cy=\"%d\" r=\"5\" fill=\"%s\"/>\n", x, TOP - 20, colors[i]);
        text(f, x + 9, TOP - 16, "start", gp_amount_text(memory, "B", buf));
    }
}

static void point(FILE *f, const view *v, const gp_result *r, bool measured, const char *label)
{
    char rate[32], memory[32];
    if (!(r->rate > 0) || !(r->latency_ns > 0))
        return;
    fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%s\" fill=\"%s\"%s><title>", x_of(v, r->latency_ns), y_of(v,
            r->rate),
            measured ? "6" : "2", color_of(v, (double)r->memory), measured ? " stroke=\"#222\""
                : " fill-opacity=\"0.6\"");
    fprintf(f, "%s: %s frames/s, %.3g ms, %s, %s</title></circle>\n", label, gp_amount_text(r->rate, "", rate),
            1e-6 * r->latency_ns, gp_amount_text((double)r->memory, "B", memory), measured ? "measured" : "simulated");
}

static int by_latency(const void *a, const void *b)
{
    const gp_result *x = a, *y = b;
    return (x->latency_ns > y->latency_ns) - (x->latency_ns < y->latency_ns);
}

static void front(FILE *f, const view *v, gp_result *r, int n, const char *style)
{
    double most = 0;
    qsort(r, (size_t)n, sizeof *r, by_latency);
    fputs("<path fill=\"none\" ", f);
    fprintf(f, "%s d=\"", style);
    for (int i = 0; i < n; i++) {
        if (!(r[i].rate > most) || !(r[i].latency_ns > 0))
            continue;
        fprintf(f, "%c%.1f %.1f", most > 0 ? 'L' : 'M', x_of(v, r[i].latency_ns), y_of(v, r[i].rate));
        most = r[i].rate;
    }
    fputs("\"/>\n", f);
}

void gp_tune_svg(FILE *f, const gp_tuning *t)
{
    view v = { INFINITY, 0, 0, INFINITY, 0 };
    int n = t->found->n, m = 0;
    gp_result *r = malloc(sizeof *r * (size_t)(n + t->ntried + 1));
    for (int i = 0; r && i < n; i++)
        widen(&v, &t->found->all[i].is);
    for (int i = 0; r && i < t->ntried; i++)
        if (t->tried[i].n) {
            r[m] = gp_result_middle(t->tried[i].result, t->tried[i].n);
            r[m].memory = t->tried[i].settings->is.memory;
            widen(&v, &r[m++]);
        }
    if (!(v.high_x > v.low_x * 1.01))
        v.high_x = v.low_x * 1.1;
    if (!(v.high_m > v.low_m * 1.01))
        v.high_m = v.low_m * 1.1;
    fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
                WIDTH,
            HEIGHT, WIDTH, HEIGHT);
    if (r && v.high_y > 0) {
        axes(f, &v);
        for (int i = 0; i < n; i++)
            point(f, &v, &t->found->all[i].is, false, "");
        front(f, &v, r, m, "stroke=\"#222\"");
        for (int i = 0; i < t->ntried; i++) {
            gp_result is = gp_result_middle(t->tried[i].result, t->tried[i].n);
            is.memory = t->tried[i].settings->is.memory;
            if (t->tried[i].n)
                point(f, &v, &is, true, t->tried[i].label);
            if (t->tried[i].n && (i == 0 || i == t->chosen))
                text(f, x_of(&v, is.latency_ns) + 9, y_of(&v, is.rate) - 7, "start", t->tried[i].label);
        }
        for (int i = 0; i < n; i++)
            r[i] = t->found->all[i].is;
        front(f, &v, r, n, "stroke=\"#999\" stroke-dasharray=\"3 3\"");
    }
    fputs("</svg>\n", f);
    free(r);
}
