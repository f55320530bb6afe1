/* tune_show.c - gpipe tune: what was measured, and the lines of the file that change. */
#include <math.h>
#include <string.h>
#include "base/plain.h"
#include "report/report.h"
#include "cli/tune.h"

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
