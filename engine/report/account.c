/* account.c - what a run was, after it: where the time went, and the verdict.
 *
 * Parts are of the time that frames moved; ~ stands before what was not measured but
 * follows from bytes and what copies reach alone. */
#include <string.h>
#include "base/plural.h"
#include "base/plain.h"
#include "report/report.h"

enum { NAME = 24 };

const char *gp_amount_text(double x, const char *unit, char buf[32])
{
    static const char *const thousands[] = { "", "k", "M", "G", "T", "P" };
    int k = 0;
    for (; x >= 999.5 && k < 5; k++)
        x /= 1000;
    int digits = x >= 99.95 || (!k && x == (double)(int)x) ? 0 : x >= 9.995 ? 1 : 2;
    snprintf(buf, 32, "%.*f%s%s%s", digits, x, k || *unit ? " " : "", thousands[k], unit);
    return buf;
}

/* "850 ns", "12.3 us", "1.24 ms": three digits. */
static const char *span(int64_t ns, char buf[32])
{
    static const char *const unit[] = { "ns", "us", "ms", "s" };
    double x = (double)ns;
    int u = 0;
    for (; x >= 999.5 && u < 3; u++)
        x /= 1000;
    snprintf(buf, 32, "%.*f %s", !u || x >= 99.95 ? 0 : x >= 9.995 ? 1 : 2, x, unit[u]);
    return buf;
}

static const char *percent(int64_t ns, double of, char buf[16])
{
    double part = of > 0 ? 100 * (double)ns / of : 0;
    snprintf(buf, 16, "%.0f %%", part > 100 ? 100 : part);
    return buf;
}

static void print_actor(FILE *to, const gp_report *r, const gp_actor_report *p, int width)
{
    char frames[32], who[32], busy[16], in[16], out[16], p50[32] = "-", p99[32] = "-";
    int n = p->workers > 0 ? p->workers : 1;
    double time = (double)r->wall_ns * n, of = time;
    int64_t worked = p->busy_ns - p->idle_ns;
    if (p->segment >= 0 && r->unified)     /* its streams are threads that work */
        worked = p->time.sum, of = (double)r->wall_ns * p->streams;
    if (p->segment >= 0)
        snprintf(who, sizeof who, "%d stream%s", p->streams, gp_plural(p->streams));
    else if (p->most_workers > p->workers)
        snprintf(who, sizeof who, "%d of %d", p->workers, p->most_workers);
    else
        snprintf(who, sizeof who, "%d", p->workers);
    if (p->time.n) {
        span(gp_hist_at(&p->time, 0.5), p50);
        span(gp_hist_at(&p->time, 0.99), p99);
    }
    fprintf(to, "  %-*.*s  %8s  %10s  %6s  %8s  %7s  %8s  %8s\n", width, width, p->name,
            gp_amount_text((double)p->frames, "", frames), who,
            percent(worked, of, busy), percent(p->wait_in_ns, time, in),
            percent(p->wait_out_ns + p->wait_stream_ns, time, out), p50, p99);
}

/* "copy in", "copy in, cuda:1". */
static const char *engine_name(const gp_engine_report *x, char buf[NAME + 24])
{
    snprintf(buf, NAME + 24, "%s%s%s", x->name, x->device ? ", " : "", x->device ? x->device : "");
    return buf;
}

/* "  copy in   ~39 % busy, 21.2 GB/s of 52.1 GB/s", "  copy out  by kernels, 0.4 GB/s of 52.1 GB/s" */
static void print_engine(FILE *to, const gp_report *r, const gp_engine_report *x, int width)
{
    char name[NAME + 24], busy[16], rate[32], limit[32];
    double per_s = 1e9 * (double)(x->bytes + x->by_kernels) / (double)r->wall_ns;
    fprintf(to, "  %-*s  ", width, engine_name(x, name));
    if (x->by_kernels && x->bytes)
        fputs("also by kernels, ", to);
    if (x->by_kernels && !x->bytes)
        fputs("by kernels", to);       /* the engine itself had nothing to do */
    else if (x->measured || x->busy_ns)
        fprintf(to, "%s%s busy", x->measured ? "" : "~",
                percent(x->busy_ns, (double)r->wall_ns, busy));
    else
        fprintf(to, "not measured");
    if (strcmp(x->name, gp_bound_name(GP_BOUND_COMPUTE)))
        fprintf(to, ", %s/s", gp_amount_text(per_s, "B", rate));
    if (x->limit > 0)
        fprintf(to, " of %s/s", gp_amount_text(x->limit, "B", limit));
    fputc('\n', to);
}

void gp_print_account(FILE *to, const gp_report *r)
{
    char p50[32], p99[32], name[NAME + 24];
    int width = 8;
    for (int i = 0; i < r->nactors; i++) {
        int n = (int)strlen(r->actor[i].name);
        width = n > width ? n < NAME ? n : NAME : width;
    }
    for (int i = 0; i < r->nall; i++) {
        int n = r->all[i].used ? (int)strlen(engine_name(&r->all[i], name)) : 0;
        width = n > width ? n : width;
    }
    fprintf(to, "  %-*s  %8s  %10s  %6s  %8s  %7s  %8s  %8s\n", width, "", "frames", "workers",
            "busy", "no input", "no room", "p50", "p99");
    for (int i = 0; i < r->nactors; i++)
        print_actor(to, r, &r->actor[i], width);
    for (int i = 0; i < r->nall; i++)
        if (r->all[i].used)
            print_engine(to, r, &r->all[i], width);
    fprintf(to, "gpipe: overlap %.0f %%", 100 * r->overlap);
    if (r->latency.n)
        fprintf(to, ", latency p50 %s, p99 %s", span(gp_hist_at(&r->latency, 0.5), p50),
                span(gp_hist_at(&r->latency, 0.99), p99));
    fputs("\ngpipe: ", to);
    gp_put_plain(to, r->verdict.text, strlen(r->verdict.text), "");
    fputc('\n', to);
}
