/* goal.c - what settings should give, and which give it. Pure. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "simulate/search.h"

/* ---- the text --------------------------------------------------------- */

static bool wrong(gp_errs *errs, const char *text)
{
    return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "--goal '%.100s': write rate or latency, and limits of the other, "
                   "like 'rate, latency < 5 ms' or 'latency, rate > 100'", text);
}

/* "<5ms", ">100": a limit of the latency, a time as in a pipeline, or of the rate. */
static bool read_limit(const char *text, bool latency, gp_goal *g)
{
    gp_errs ignored = { .n = 0 };
    gp_node n = { .text = text + 1, .len = strlen(text + 1) };
    gp_num rate;
    int64_t ns;
    if (latency && *text == '<' && gp_eval_time(&n, NULL, &ns, &ignored) && ns > 0)
        g->latency_most = (double)ns;
    else if (!latency && *text == '>' && gp_eval(&n, NULL, &rate, &ignored) && rate.f > 0)
        g->rate_least = rate.f;
    else
        return false;
    return true;
}

bool gp_goal_read(const char *text, gp_goal *out, gp_errs *errs)
{
    char copy[256], *to = copy, *rest = copy;
    bool said = false;
    *out = (gp_goal){ .latency = false };
    if (strlen(text) >= sizeof copy)
        return wrong(errs, text);
    for (const char *s = text; *s; s++) {              /* without blanks, but between two words */
        unsigned char next = (unsigned char)s[strspn(s, " \t")];
        if (!strchr(" \t", *s) || (to > copy && isalpha((unsigned char)to[-1]) && isalpha(next)))
            *to++ = *s;
    }
    *to = '\0';
    for (char *part; (part = strsep(&rest, ","));) {
        size_t n = strspn(part, "abcdefghijklmnopqrstuvwxyz");
        bool latency = n == 7 && !strncmp(part, "latency", n), rate = n == 4 && !strncmp(part, "rate", n);
        if ((!latency && !rate) || (part[n] ? !read_limit(part + n, latency, out) : said))
            return wrong(errs, text);
        if (!part[n])
            out->latency = latency, said = true;
    }
    if (!said)                         /* limits alone: the other is to be good */
        out->latency = out->rate_least > 0 && !(out->latency_most > 0);
    return true;
}

/* ---- results ---------------------------------------------------------- */

bool gp_goal_is_reached(const gp_goal *g, const gp_result *r)
{
    return (!(g->latency_most > 0) || r->latency_ns <= g->latency_most)
        && (!(g->rate_least > 0) || r->rate >= g->rate_least) && (!g->memory || r->memory <= g->memory);
}

double gp_goal_score(const gp_goal *g, const gp_result *r)
{
    double missed = 1;
    if (g->latency_most > 0 && r->latency_ns > g->latency_most)
        missed *= g->latency_most / r->latency_ns;
    if (g->rate_least > 0 && r->rate < g->rate_least)
        missed *= r->rate / g->rate_least;
    if (missed < 1)
        return missed - 1;
    return g->latency ? 1e9 / (r->latency_ns + 1) : r->rate;
}

static int by_rate(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double middle(const gp_result *r, int n, bool latency)
{
    double v[64];
    n = n < 64 ? n : 64;
    for (int i = 0; i < n; i++)
        v[i] = latency ? r[i].latency_ns : r[i].rate;
    qsort(v, (size_t)n, sizeof *v, by_rate);
    return n ? n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2 : 0;
}

gp_result gp_result_middle(const gp_result *r, int n)
{
    return (gp_result){ middle(r, n, false), middle(r, n, true), n ? r[0].memory : 0 };
}

/* What result i is better than the given one by, in the middle of as many rounds as both have; 0: it is not, by more
 * than the noise and in most of these rounds, or misses a limit. */
static double gain_of(const gp_goal *g, const gp_result *const *result, const int *rounds, int i, double noise)
{
    int k = rounds[i] < rounds[0] ? rounds[i] : rounds[0], better = 0;
    gp_result is = gp_result_middle(result[i], k), was = gp_result_middle(result[0], k);
    double gain = g->latency ? was.latency_ns / is.latency_ns : is.rate / was.rate;
    for (int r = 0; r < k; r++)
        better += g->latency ? result[i][r].latency_ns < result[0][r].latency_ns
                             : result[i][r].rate > result[0][r].rate;
    if (k < 1 || !gp_goal_is_reached(g, &is))
        return 0;
    return !gp_goal_is_reached(g, &was) || (2 * better > k && gain > 1 + noise) ? gain : 0;
}

int gp_choose_measured(const gp_goal *g, const gp_result *const *result, const int *rounds, int n, double noise)
{
    const double AS_GOOD = 0.98;       /* of the most, with half of the memory */
    int best = 0;
    double most = 0;
    for (int i = 1; i < n; i++) {
        double gain = gain_of(g, result, rounds, i, noise);
        if (gain > most)
            best = i, most = gain;
    }
    size_t enough = result[best][0].memory / 2, least = SIZE_MAX;
    for (int i = 1, of = best; of && i < n; i++) {
        size_t memory = result[i][0].memory;
        if (memory <= enough && memory < least && gain_of(g, result, rounds, i, noise) >= AS_GOOD * most)
            best = i, least = memory;
    }
    return best;
}
