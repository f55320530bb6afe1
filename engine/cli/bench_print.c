/* bench_print.c - gpipe bench: the table, as text or JSON.
 *
 * The columns are in one list, so that both say the same. The name of
 * a column has its unit. */
#include <math.h>
#include <string.h>
#include "cli/bench.h"
#include "base/json.h"
#include "base/plain.h"
#include "base/plural.h"

/* ---- columns ---------------------------------------------------------- */

typedef enum column_id {
    FILENAME, SETTINGS, RATE, BYTES, P50, P90, P95, P99, MAX, WINDOWS, WINDOW, SPREAD, STATE,
    RATIO, RATIO_MIN, RATIO_MAX, BOUND_BY, BEST, NCOLUMNS
} column_id;

static const struct { const char *title, *name; int digits; } columns[NCOLUMNS] = {
    [FILENAME]  = { "file", "file", 0 },
    [SETTINGS]  = { "settings", "settings", 0 },
    [RATE]      = { "frames/s", "frames_per_s", 1 },
    [BYTES]     = { "GB/s", "gb_per_s", 3 },
    [P50]       = { "p50 us", "latency_p50_us", 1 },
    [P90]       = { "p90 us", "latency_p90_us", 1 },
    [P95]       = { "p95 us", "latency_p95_us", 1 },
    [P99]       = { "p99 us", "latency_p99_us", 1 },
    [MAX]       = { "max us", "latency_max_us", 1 },
    [WINDOWS]   = { "windows", "windows", 0 },
    [WINDOW]    = { "each s", "window_mean_s", 3 },
    [SPREAD]    = { "spread %", "spread_percent", 1 },
    [STATE]     = { "", "state", 0 },
    [RATIO]     = { "ratio", "ratio", 3 },
    [RATIO_MIN] = { "from", "ratio_min", 3 },
    [RATIO_MAX] = { "to", "ratio_max", 3 },
    [BOUND_BY]  = { "bound by", "bound_by", 0 },
    [BEST]      = { "", "best", 0 },
};

/* A text, or else a number; neither: the row has no such value. */
typedef struct value { const char *text; double number; } value;

static value get(const gp_bench *b, const gp_row *r, column_id c)
{
    static const double part[] = {
        [P50] = 0.5, [P90] = 0.9, [P95] = 0.95, [P99] = 0.99, [MAX] = 1,
    };
    const gp_figures *f = r->figures;
    value v = { .number = NAN };
    switch (c) {
    case FILENAME:  v.text = r->file; break;
    case SETTINGS:  v.text = r->label; break;
    case RATE:      v.number = f->frames_per_s; break;
    case BYTES:     v.number = f->frames_per_s * f->bytes_per_frame / 1e9; break;
    case P50: case P90: case P95: case P99: case MAX:
        if (f->latency.n)
            v.number = 1e-3 * (double)gp_hist_at(&f->latency, part[c]);
        break;
    case WINDOWS:   v.number = f->windows; break;
    case WINDOW:    v.number = f->window_s; break;
    case SPREAD:    v.number = 100 * f->spread; break;
    case STATE:
        v.text = f->stable ? "stable" : f->enough_s > 0 ? "too few" : "unstable";
        break;
    case RATIO:     v.number = r->base ? r->ratio : NAN; break;
    case RATIO_MIN: v.number = r->base ? r->ratio_min : NAN; break;
    case RATIO_MAX: v.number = r->base ? r->ratio_max : NAN; break;
    case BOUND_BY:  v.text = f->bound_by; break;
    case BEST:
        v.text = r->best ? "best" : r->noise ? "within the noise" : b->nrows > 1 ? "" : NULL;
        break;
    case NCOLUMNS:  break;
    }
    return v;
}

/* ---- text ------------------------------------------------------------- */

static const char *cell(const gp_bench *b, const gp_row *r, column_id c, char buf[64])
{
    value v = get(b, r, c);
    if (v.text)
        return v.text;
    *buf = '\0';
    if (isfinite(v.number))
        snprintf(buf, 64, "%.*f", columns[c].digits, v.number);
    return buf;
}

static void print_columns(FILE *f, const gp_bench *b)
{
    int width[NCOLUMNS];
    char buf[64];
    bool is_text[NCOLUMNS];
    for (int c = 0; c < NCOLUMNS; c++) {
        bool some = c != FILENAME || b->nfiles > 1;
        width[c] = 0, is_text[c] = false;
        for (int i = 0; some && i < b->nrows; i++) {
            int n = (int)strlen(cell(b, &b->row[i], (column_id)c, buf));
            width[c] = n > width[c] ? n : width[c];
            is_text[c] |= get(b, &b->row[i], (column_id)c).text != NULL;
        }
        if (width[c] && width[c] < (int)strlen(columns[c].title))
            width[c] = (int)strlen(columns[c].title);
    }
    for (int i = -1; i < b->nrows; i++) {
        for (int c = 0, some = 0; c < NCOLUMNS; c++) {
            const char *text = i < 0 ? columns[c].title : cell(b, &b->row[i], (column_id)c, buf);
            if (width[c])
                fprintf(f, "%s%*s", some++ ? "  " : "", is_text[c] ? -width[c] : width[c], text);
        }
        fprintf(f, "\n");
    }
}

/* Of the best row, or the only one. */
static void print_verdict(FILE *f, const gp_bench *b, const gp_row *r)
{
    if (r->figures->verdict && (r->best || b->nrows == 1))
        fprintf(f, "\n%s%s%s\n", b->nrows > 1 ? r->label : "", b->nrows > 1 ? ": " : "", r->figures->verdict);
}

/* As --max-time takes it. */
static const char *time_text(double s, char buf[32])
{
    snprintf(buf, 32, "%.10g%s", s < 1 ? 1e3 * s : s, s < 1 ? "ms" : "s");
    return buf;
}

/* A time to suggest: whole seconds, or milliseconds. */
static double rounded_up(double s)
{
    double unit = s < 1 ? 1e-3 : 1;
    return unit * ceil(s / unit - 1e-6);
}

/* Rows of which nobody knows whether they are stable. */
static void print_too_few(FILE *f, const gp_bench *b)
{
    char max[32], needed[32];
    for (int i = 0; i < b->nrows; i++) {
        const gp_row *r = &b->row[i];
        const gp_figures *is = r->figures;
        if (!(is->enough_s > 0))
            continue;
        fprintf(f, "\ntoo few");
        if (b->nrows > 1)
            fprintf(f, ", %s%s%s", b->nfiles > 1 ? r->file : "", b->nfiles > 1 ? ", " : "", r->label);
        fprintf(f, ": %d window%s of %.3g s%s in --max-time %s, and %d in a row have to agree; give it "
                "%s\n", is->windows, gp_plural(is->windows), is->window_s,
                is->whole ? " (whole runs)" : "", time_text(b->max_time_s, max), GP_BENCH_AGREE,
                time_text(rounded_up(is->enough_s), needed));
    }
}

/* Rows whose latency nobody knows, nor what their end takes. */
static void print_in(FILE *f, const gp_bench *b)
{
    int n = 0;
    for (int i = 0; i < b->nrows; i++)
        n += b->row[i].figures->in;
    if (n)
        fprintf(f, "\n%sframes are counted where they go in, as none is done with before the end; what is made then is not "
                "measured\n", n < b->nrows ? "rows without a latency: " : "");
}

/* Faster rows than the best. */
static void print_noise(FILE *f, const gp_bench *b)
{
    for (int i = 0; i < b->nrows; i++)
        if (b->row[i].noise) {
            fprintf(f, "\nwithin the noise: faster than the best, but unstable, and by no more than "
                    "the spread of both rows. Measure\nagain when the machine is quiet, or with a "
                    "longer --window.\n");
            return;
        }
}

struct text { const gp_bench *b; const gp_environment *e; };

static void print_text(FILE *f, const void *arg)
{
    const gp_bench *b = ((const struct text *)arg)->b;
    const gp_environment *e = ((const struct text *)arg)->e;
    char gpipe[96];
    if (b->nfiles == 1)
        fprintf(f, "%s\n", b->row[0].file);
    print_columns(f, b);
    print_too_few(f, b);
    print_in(f, b);
    print_noise(f, b);
    for (int i = 0; i < b->nrows; i++)
        print_verdict(f, b, &b->row[i]);
    fprintf(f, "\ncpu %s (%d)", e->cpu, e->cores);
    if (*e->gpu)
        fprintf(f, ", gpu %s, driver %s", e->gpu, *e->driver ? e->driver : "unknown");
    fprintf(f, "%s%s\ngpipe %s, %s\n", *e->toolkit ? ", toolkit " : "", e->toolkit,
           gp_version_text(gpipe), e->date);
}

/* ---- JSON ------------------------------------------------------------- */

static void print_json_row(gp_json *j, const gp_bench *b, const gp_row *r)
{
    gp_json_open(j, NULL, '{');
    for (int c = 0; c < NCOLUMNS; c++) {
        value v = get(b, r, (column_id)c);
        if (c == BEST)
            gp_json_bool(j, columns[c].name, r->best), gp_json_bool(j, "within_noise", r->noise);
        else if (v.text || c == BOUND_BY)
            gp_json_str(j, columns[c].name, v.text);
        else
            gp_json_num(j, columns[c].name, v.number);
    }
    gp_json_put(j, "whole_runs: %d?, counted: %s, needed_max_time_s: %g", r->figures->whole,
                r->figures->in ? "in" : "done", r->figures->enough_s > 0 ? r->figures->enough_s : NAN);
    GP_JSON_EACH(j, "rounds_frames_per_s", k, b->rounds)
        gp_json_num(j, NULL, r->round[k].frames_per_s);
    gp_json_str(j, "verdict", r->figures->verdict);
    gp_json_close(j, '}');
}

static void print_json(const gp_bench *b, const gp_environment *e)
{
    char gpipe[96];
    gp_json j = { .f = stdout };
    gp_json_put(&j, "{cpu: %s, cpus: %d, gpu: %s, driver: %s, toolkit: %s, gpipe: %s, date: %s, window_s: %g, "
                "max_time_s: %g, rounds: %d", e->cpu, e->cores, *e->gpu ? e->gpu : NULL, *e->driver ? e->driver : NULL,
                *e->toolkit ? e->toolkit : NULL, gp_version_text(gpipe), e->date, b->window_s, b->max_time_s,
                b->rounds);
    GP_JSON_EACH(&j, "rows", i, b->nrows)
        print_json_row(&j, b, &b->row[i]);
    gp_json_close(&j, '}');
    putchar('\n');
}

bool gp_bench_print(const gp_bench *b)
{
    gp_environment e;
    int device = -1;
    for (int i = 0; i < b->nrows && device < 0; i++)
        device = b->row[i].figures->device;
    gp_environment_read(&e, device, gp_commit);
    if (b->args->json)
        print_json(b, &e);
    else
        return gp_print_plain(stdout, print_text, &(struct text){ b, &e });
    return true;
}
