/* iir.c - recursive filter along axis 0, as scipy.signal.sosfilt: the rows of all frames are one signal, which starts
 * at rest.
 *
 * What is kept of the signal is two f64 numbers a section, z; without input a chunk of rows makes A^CHUNK z of them. So
 * what each chunk leaves, which begins at rest, is a sum of its rows, with weights; these are joined to the states that
 * chunks begin with, level by level, and then all chunks are filtered at once; see kernels/iir.cu. The order depends on
 * a frame's shape alone.
 *
 * In z, A^k has large numbers that cancel where a filter is narrow: those of [[2, 1], [-1, 0]]^k grow as k does. So
 * weights, sums and joins have (z0, u) of each section, u = z1 + c z0. In these A is [[e, 1], [d, c]], with e + c = -a1
 * and d = e c - a2. Of poles that are complex, c = e: this is their radius times a rotation by their angle, but for the
 * scale of u. Of real ones e is the larger, and d is 0. What is small remains so in such powers, and joins add less to
 * the error than the rows of a chunk. Nearest integers are taken out of the diagonal, whose rounding would count as
 * often as there are joins. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/npy.h"
#include "base/why.h"
#include "device.h"

enum { CHUNK_BITS = 6, PART_BITS = 3, CHUNK = 1 << CHUNK_BITS, PART = 1 << PART_BITS, QUAD = 4, COLUMNS = 6,
       SECTIONS = 16, TOP = 32, LEVELS = 12, MANY = 4096 };                 /* the first line as in kernels/iir.cu */

struct opts {
    const gp_node *sos;
    int n;                                 /* sections */
    const char *file;                      /* where they are, or NULL; it and the next are made by check() */
    double (*section)[COLUMNS];
};

/* ---- the option -------------------------------------------------------- */

static bool check_sections(gp_shape *s, const struct opts *o)
{
    for (int i = 0; i < o->n; i++) {
        const double *c = o->section[i];
        gp_loc at = o->sos->kind == GP_LIST ? o->sos->item[i]->at : o->sos->at;
        for (int k = 0; k < COLUMNS; k++)
            if (!isfinite(c[k]))
                return gp_shape_fail_at(s, at, "section %d has %g, and must be finite", i, c[k]);
        if (c[3] != 1)
            return gp_shape_fail_at(s, at, "section %d has a0 = %g: divide all of it by that, so that a0 is 1", i,
                                    c[3]);
        if (fabs(c[5]) > 1 + 1e-12 || fabs(c[4]) > 1 + c[5] + 1e-12)
            return gp_shape_fail_at(s, at, "section %d, with a1 = %g and a2 = %g, is unstable: what it makes grows "
                                    "without end", i, c[4], c[5]);
    }
    return true;
}

static bool has_room(gp_shape *s, struct opts *o, int64_t n)
{
    if (n < 1 || n > SECTIONS)
        return gp_shape_fail(s, "sos", "'sos' has %lld sections, and must have 1 to %d", (long long)n, SECTIONS);
    o->n = (int)n, o->section = gp_shape_alloc(s, sizeof *o->section * (size_t)n);
    return true;
}

static bool read_list(gp_shape *s, struct opts *o)
{
    const gp_node *list = o->sos;
    if (!has_room(s, o, list->n))
        return false;
    for (int i = 0; i < list->n; i++) {
        const gp_node *row = list->item[i];
        if (row->kind != GP_LIST || row->n != COLUMNS)
            return gp_shape_fail_at(s, row->at, "section %d must be [b0, b1, b2, a0, a1, a2], six numbers, as "
                                    "scipy.signal.butter(..., output=\"sos\") gives them", i);
        for (int k = 0; k < COLUMNS; k++) {
            gp_num v;
            if (row->item[k]->kind != GP_SCALAR)
                return gp_shape_fail_at(s, row->item[k]->at, "section %d has a list where a number should be", i);
            if (!gp_shape_eval(s, row->item[k], &v))
                return false;
            o->section[i][k] = v.f;
        }
    }
    return true;
}

static bool read_file(gp_shape *s, struct opts *o)
{
    const char *path = o->file = gp_shape_path(s, o->sos);
    const gp_file *f = path ? gp_probe_file(s, path) : NULL;
    gp_type t;
    size_t at;
    bool fortran;
    char err[160], text[128];

    if (!f)
        return false;
    gp_shape_reads(s, &o->file, 1);
    if (f->error)
        return gp_shape_fail(s, "sos", "cannot read '%s': %s; 'sos' is a .npy, or a list of sections", path,
                             gp_strerror(f->error));
    if (!gp_npy_parse(f->head, f->nhead, &t, &at, &fortran, err))
        return gp_shape_fail(s, "sos", "'%s' %s", path, err);
    if ((t.dtype != GP_F64 && t.dtype != GP_F32) || t.ndim != 2 || t.dim[1] != COLUMNS)
        return gp_shape_fail(s, "sos", "'%s' is %s, and must be f64 or f32 [sections, 6]", path,
                             gp_type_text(&t, text));
    if (!has_room(s, o, t.dim[0]))
        return false;
    if (at + gp_bytes(&t) > f->nhead)
        return gp_shape_fail(s, "sos", "'%s' ends before its data do", path);
    for (int i = 0; i < o->n; i++)
        for (int k = 0; k < COLUMNS; k++) {
            size_t place = (size_t)(fortran ? k * o->n + i : i * COLUMNS + k);
            const char *from = f->head + at + place * gp_dtype_size(t.dtype);
            float narrow;
            if (t.dtype == GP_F64)
                memcpy(&o->section[i][k], from, sizeof(double));
            else
                memcpy(&narrow, from, sizeof narrow), o->section[i][k] = narrow;
        }
    return true;
}

static bool check(gp_shape *s)
{
    struct opts *o = (struct opts *)s->opts;
    if (o->sos->kind == GP_MAP)
        return gp_shape_fail(s, "sos", "'sos' is a list of sections, or a .npy");
    return (o->sos->kind == GP_LIST ? read_list(s, o) : read_file(s, o)) && check_sections(s, o);
}

/* ---- chunks ------------------------------------------------------------ */

/* parts[0] chunks; parts[l + 1] groups of PART of what level l has. Of the last level there are TOP at most. */
struct work { size_t rows, channels, chunk, states, quads, power, parts[LEVELS]; int levels; };

static struct work work_of(const struct opts *o, const gp_type *t)
{
    struct work w = { .rows = (size_t)t->dim[0], .states = 2 * (size_t)o->n };
    w.quads = (w.states + QUAD - 1) / QUAD, w.power = w.states * (w.states + 1);
    w.channels = (size_t)gp_count(t) / w.rows * (t->dtype == GP_C64 ? 2 : 1);
    w.chunk = w.channels < MANY ? CHUNK : w.rows;              /* so many are enough to do at once */
    size_t n = (w.rows + w.chunk - 1) / w.chunk;
    for (w.parts[w.levels++] = n; n > TOP; w.parts[w.levels++] = n)
        n = (n + PART - 1) / PART;
    return w;
}

static size_t bytes_of(const struct work *w, int level)
{
    return w->states * w->parts[level] * w->channels * sizeof(double);
}

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    struct work w = work_of(o, &s->in[0]);
    s->out[0] = s->in[0];
    s->state = w.states * w.channels * sizeof(double);
    for (int l = 0; w.parts[0] > 1 && l < w.levels; l++)
        s->scratch += bytes_of(&w, l);
    s->table = (CHUNK * QUAD * w.quads + (size_t)o->n * COLUMNS + (size_t)(CHUNK_BITS + w.levels) * w.power) *
               sizeof(double);
    s->known.f64 = true;
    return true;
}

enum { STATES = 2 * SECTIONS };

/* b = a a. No section has anything of those behind it. */
static void square(int n, long double b[][STATES], long double a[][STATES])
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            b[i][j] = 0;
            for (int k = j & ~1; k <= (i | 1); k++)
                b[i][j] += a[i][k] * a[k][j];
        }
}

/* a b - c, as if rounded once. */
static long double less(double a, double b, double c)
{
    double most = a * b;
    return (long double)most - c + fma(a, b, -most);
}

/* c of a section. */
static double inner(const double *s)
{
    double half = -s[4] / 2;
    long double apart = less(half, half, s[5]);
    if (apart <= 0)
        return half;
    long double outer = half < 0 ? half - sqrtl(apart) : half + sqrtl(apart);
    return -s[4] - (double)outer;
}

/* to = what a row x makes of states z, both as (z0, u) of each section. */
static void row(const struct opts *o, long double *to, const long double *z, long double x)
{
    for (int i = 0; i < o->n; i++, z += 2, to += 2) {
        const double *s = o->section[i], c = inner(s);
        long double e = -(long double)s[4] - c, d = less(c, (double)e, s[5]) + c * (e - (double)e);
        long double first = s[1] - (long double)s[4] * s[0];
        long double second = less(c, c, 0) * s[0] + (long double)c * s[1] + s[2] + d * s[0];
        long double y = s[0] * x + z[0];
        to[0] = first * x + e * z[0] + z[1];
        to[1] = second * x + d * z[0] + c * z[1];
        x = y;
    }
}

/* The weight of each row of a chunk in each state; the sections, with c for a0; A^1, A^2, A^4, ... A^CHUNK,
 * A^(CHUNK PART), ..., each without the nearest integers of its diagonal, and then these. */
static bool table(const gp_table_call *t)
{
    const struct opts *o = t->opts;
    int n = 2 * o->n;
    long double a[2][STATES][STATES], z[2][STATES] = { { 0 } };
    double *to = t->data;
    struct work w = work_of(o, &t->in[0]);

    memset(to, 0, t->bytes);
    for (int r = CHUNK; r-- > 0; memcpy(z[0], z[1], sizeof z[0])) {
        row(o, z[1], z[0], r == CHUNK - 1);
        for (int k = 0; k < n; k++)
            to[r * (int)w.quads * QUAD + k] = (double)z[1][k];
    }
    to += CHUNK * QUAD * w.quads;
    memcpy(to, o->section, sizeof *o->section * (size_t)o->n);
    for (int i = 0; i < o->n; i++, to += COLUMNS)
        to[3] = inner(o->section[i]);
    for (int k = 0; k < n; k++) {
        memset(z[0], 0, sizeof z[0]);
        z[0][k] = 1;
        row(o, z[1], z[0], 0);
        for (int j = 0; j < n; j++)
            a[0][j][k] = z[1][j];
    }
    for (int bit = 0, last = CHUNK_BITS + PART_BITS * (w.levels - 1); bit <= last; bit++) {
        if (bit <= CHUNK_BITS || (bit - CHUNK_BITS) % PART_BITS == 0) {
            for (int i = 0; i < n; i++)
                for (int j = 0; j < n; j++)
                    *to++ = (double)(a[0][i][j] - (i == j ? rintl(a[0][i][i]) : 0));
            for (int i = 0; i < n; i++)
                *to++ = (double)rintl(a[0][i][i]);
        }
        square(n, a[1], a[0]);
        memcpy(a[0], a[1], sizeof a[0]);
    }
    return true;
}

/* Blocks are small, as often there are few threads, each with much to do. */
static bool launch(gp_dcall *c, const char *kernel, size_t threads, void *const *args, int nargs)
{
    enum { BLOCK = 64, MOST = 1 << 16 };
    size_t blocks = (threads + BLOCK - 1) / BLOCK;
    gp_dim3 grid = { (unsigned)(blocks < MOST ? blocks : MOST), 1, (unsigned)c->n };
    return gp_launch(c, kernel, grid, (gp_dim3){ BLOCK, 1, 1 }, 0, args, nargs);
}

/* Kernel NAME for as many sections: 2, 4, 8 or 16. */
static bool launch_for(gp_dcall *c, const char *name, const struct work *w, size_t n, void *const *args, int nargs)
{
    size_t most = 2;
    char kernel[40];
    while (2 * most < w->states)
        most *= 2;
    snprintf(kernel, sizeof kernel, "iir_%s_%zu", name, most);
    return launch(c, kernel, n * w->channels, args, nargs);
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *x = c->in, *y = c->out;
    struct work w = work_of(o, &x->type);
    bool f64 = x->type.dtype == GP_F64;
    const double *weights = c->table, *sections = weights + CHUNK * QUAD * w.quads;
    const double *powers = sections + o->n * COLUMNS, *power = powers + CHUNK_BITS * w.power;
    double *z[LEVELS] = { w.parts[0] > 1 ? c->scratch : c->carried };
    int last = w.levels - 1;

    if (w.parts[0] > 1 && !launch(c, f64 ? "iir_rest_f64" : "iir_rest_f32", w.parts[0] * w.quads * w.channels,
                                  GP_ARGS(&z[0], (void *)&x->data, &w.rows, &w.channels, &weights, &w.states)))
        return false;
    for (int l = 0; l < last; l++, power += w.power) {
        z[l + 1] = (double *)((char *)z[l] + bytes_of(&w, l));
        if (!launch_for(c, "join", &w, w.parts[l + 1],
                        GP_ARGS(&z[l + 1], &z[l], &w.parts[l], &w.channels, &power, &w.states)))
            return false;
    }
    for (int l = last; w.parts[0] > 1 && l >= 0; l--, power -= w.power) {
        size_t group = l < last ? PART : TOP, rows = l ? 0 : w.rows;
        const double *from = l < last ? z[l + 1] : c->carried;
        if (!launch_for(c, "start", &w, l < last ? w.parts[l + 1] : 1,
                        GP_ARGS(&z[l], &from, &w.parts[l], &group, &w.channels, &power, &w.states, &sections,
                                &c->carried, &rows)))
            return false;
    }
    return launch_for(c, f64 ? "filter_f64" : "filter_f32", &w, w.parts[0],
                      GP_ARGS((void *)&y->data, (void *)&x->data, &w.rows, &w.channels, &w.chunk, &sections, &w.states,
                              &z[0], &c->carried));
}

#define SIGNALS (GP_ACCEPT(GP_F32) | GP_ACCEPT(GP_F64) | GP_ACCEPT(GP_C64))
static const gp_port in[] = { { "in", SIGNALS, .help = "a signal: rows in time, all else are channels" }, { 0 } };
static const gp_port out[] = { { "out", SIGNALS, .help = "the same, filtered; computed in f64, in chunks of a frame: "
                                             "its last bits go by the frames' size" }, { 0 } };

static const gp_opt options[] = {
    { GP_NODE(struct opts, sos), .required = true,
      .help = "second-order sections, [[b0, b1, b2, 1, a1, a2], ...], 16 at most, as scipy.signal designs them with "
              "output=\"sos\"; or a .npy that has them" },
    { 0 }
};

const gp_kind gp_kind_iir = {
    GP_KIND("iir"), .field = "signals",
    .also = "sosfilt butterworth lowpass highpass bandpass notch",
    .help = "filter a signal recursively: low-pass, high-pass, band-pass, notch",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .check = check, .shape = shape, .record = record, .table = table,
};
