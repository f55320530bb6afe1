/* compare.c - a sink that fails the run where frames differ from what is expected: another
 * buffer, or the rows of a .npy or raw file, in order.
 *
 * a is what came, b what is expected; they agree where a == b, both are NaN, or
 * |a - b| <= abs + rel |b|. Integers are subtracted exactly. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/plural.h"
#include "cut.h"
#include "base/half.h"

enum { NAN_EQUAL, NAN_DIFFER };
enum { HEAD = 12 + (1 << 16) };

struct opts {
    const char *file;
    gp_num abs;
    double rel;
    int nan;
    gp_loc at;                 /* found by check() */
};

/* How the file's rows lie; `head` is its beginning. */
static bool cut_file(gp_cut *cut, const char *path, const void *head, size_t n, int64_t size,
                     const gp_type *frame, char why[GP_WHY])
{
    gp_cut_how how = { 0 };
    return gp_filetype_is(path, head, n) == GP_NPY ? gp_cut_npy(cut, head, n, size, frame, &how, why)
                                        : gp_cut_raw(cut, size, frame, &how, why);
}

static bool check(gp_shape *s)
{
    struct opts *o = (struct opts *)s->opts;   /* its last field is made here */
    o->at = gp_shape_loc(s, "file");
    if (!o->file)
        return true;
    const gp_file *f = gp_probe_file(s, o->file);
    gp_shape_reads(s, &o->file, 1);
    if (f->error)
        return gp_shape_missing(s, "file", "cannot read '%s': %s", o->file, gp_strerror(f->error));
    gp_filetype as = gp_filetype_is(o->file, f->head, f->nhead);
    return (f->kind == GP_FILE_REGULAR && (as == GP_NPY || as == GP_RAW || !as))
        || gp_shape_fail(s, "file", "'%s' is neither a .npy nor a raw file", o->file);
}

/* Can a frame of one be like one of the other? Where frames may differ in size, sizes are looked at frame by frame. */
static bool may_agree(const gp_shape *s)
{
    const gp_type *a = &s->in[0], *b = &s->in[1];
    bool ok = a->dtype == b->dtype && a->ndim == b->ndim;
    for (int k = 0; ok && k < a->ndim; k++)
        ok = a->dim[k] == b->dim[k] || (s->in_varies[0] | s->in_varies[1]) >> k & 1;
    return ok;
}

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    bool with = s->nin > 1 && s->in[1].dtype;
    char why[GP_WHY], a[GP_BOUNDS_TEXT], b[GP_BOUNDS_TEXT];
    gp_cut cut;
    if (s->partial)
        return true;

    s->serial = true;
    s->any_length = with;
    if (with == (o->file != NULL))
        return gp_shape_fail(s, with ? "file" : NULL, "'compare' needs one thing to compare with: "
                             "either a second input, 'in: [A, B]', or 'file: PATH'");
    if (with)
        return may_agree(s) || gp_shape_fail(s, NULL, "%s cannot be compared with %s",
                                             gp_bounds_text(&s->in[0], s->in_varies[0], a),
                                             gp_bounds_text(&s->in[1], s->in_varies[1], b));
    const gp_file *f = gp_probe_file(s, o->file);
    return f->error || cut_file(&cut, o->file, f->head, f->nhead, f->size, &s->in[0], why)
        || gp_shape_fail(s, "file", "'%s' %s", o->file, why);
}

/* ---- one frame against another --------------------------------------- */

struct found {
    size_t n, first;           /* how many elements differ, and the first that does */
    char a[64], b[64];         /* its values */
};

static bool near_int(const struct opts *o, uint64_t apart, double b)
{
    double most = o->abs.f + o->rel * fabs(b);
    return !apart || (o->abs.is_int && !o->rel ? apart <= (uint64_t)o->abs.i
                                               : most >= 0x1p64 || apart <= (uint64_t)most);
}

static bool near_float(const struct opts *o, double a, double b)
{
    return a == b || (a != a && b != b && o->nan == NAN_EQUAL)
        || (isfinite(b) && fabs(a - b) <= o->abs.f + o->rel * fabs(b));
}

/* A part that is infinite or NaN in both counts as 0 in both, if these agree. */
static bool near_complex(const struct opts *o, gp_c64 a, gp_c64 b)
{
    if (!isfinite(b.re) && near_float(o, a.re, b.re))
        a.re = b.re = 0;
    if (!isfinite(b.im) && near_float(o, a.im, b.im))
        a.im = b.im = 0;
    return isfinite(b.re) && isfinite(b.im)
        && hypot((double)a.re - b.re, (double)a.im - b.im) <= o->abs.f + o->rel * hypot(b.re, b.im);
}

/* Elements p[i] and q[i]; NEAR tests one pair, PRINT are format and value of x. */
#define LOOK(ctype, NEAR, ...) do {                                                  \
        const ctype *p = a, *q = b;                                                  \
        for (size_t i = 0; i < n; i++) {                                             \
            if (NEAR)                                                                \
                continue;                                                            \
            if (!d->n++) {                                                           \
                ctype x = p[i];                                                      \
                d->first = i;                                                        \
                snprintf(d->a, sizeof d->a, __VA_ARGS__);                            \
                x = q[i];                                                            \
                snprintf(d->b, sizeof d->b, __VA_ARGS__);                            \
            }                                                                        \
        }                                                                            \
    } while (0)

/* The sign of a NaN is no difference. */
static void drop_sign_of_nan(char *text)
{
    for (char *at; (at = strstr(text, "-nan"));)
        memmove(at, at + 1, strlen(at));
}

#define APART (p[i] > q[i] ? (uint64_t)p[i] - (uint64_t)q[i] : (uint64_t)q[i] - (uint64_t)p[i])
#define SIGNED(ctype)   LOOK(ctype, near_int(o, APART, (double)q[i]), "%" PRId64, (int64_t)x)
#define UNSIGNED(ctype) LOOK(ctype, near_int(o, APART, (double)q[i]), "%" PRIu64, (uint64_t)x)

static void look(const struct opts *o, gp_dtype t, const void *a, const void *b, size_t n,
                 struct found *d)
{
    *d = (struct found){ 0 };
    if (o->nan == NAN_EQUAL && !memcmp(a, b, n * gp_dtype_size(t)))
        return;
    switch (t) {
    case GP_U8:  UNSIGNED(uint8_t); break;
    case GP_I8:  SIGNED(int8_t); break;
    case GP_U16: UNSIGNED(uint16_t); break;
    case GP_I16: SIGNED(int16_t); break;
    case GP_U32: UNSIGNED(uint32_t); break;
    case GP_I32: SIGNED(int32_t); break;
    case GP_U64: UNSIGNED(uint64_t); break;
    case GP_I64: SIGNED(int64_t); break;
    case GP_F16: LOOK(uint16_t, near_float(o, gp_half_to_float(p[i]), gp_half_to_float(q[i])),
                      "%.5g", gp_half_to_float(x)); break;
    case GP_F32: LOOK(float, near_float(o, p[i], q[i]), "%.9g", x); break;
    case GP_F64: LOOK(double, near_float(o, p[i], q[i]), "%.17g", x); break;
    case GP_C64: LOOK(gp_c64, near_complex(o, p[i], q[i]), "(%.9g, %.9g)", x.re, x.im); break;
    case GP_NO_DTYPE: case GP_NDTYPES: break;
    }
    drop_sign_of_nan(d->a), drop_sign_of_nan(d->b);
}

/* "[3, 17]": where element `i` of such a frame is. */
static char *index_text(const gp_type *t, size_t i, char buf[GP_WHY])
{
    size_t at[GP_MAXDIM], n = 0;
    for (int k = t->ndim; k-- > 0; i /= (size_t)t->dim[k])
        at[k] = i % (size_t)t->dim[k];
    for (int k = 0; k < t->ndim && n < GP_WHY; k++)
        n += (size_t)snprintf(buf + n, GP_WHY - n, "%s%zu", k ? ", " : "[", at[k]);
    if (n < GP_WHY)
        snprintf(buf + n, GP_WHY - n, "]");
    return buf;
}

/* ---- running --------------------------------------------------------- */

struct state {
    const struct opts *o;
    gp_type frame;             /* what the file's rows belong to */
    int fd;                    /* of the file, or -1 */
    gp_cut cut;
    int64_t row;               /* of the file: the next one to be compared */
    gp_growbuf room;              /* its part that belongs to the frame */
};

static void close_state(void *state)
{
    struct state *s = state;
    if (!s)
        return;
    if (s->fd >= 0)
        close(s->fd);
    free(s->room.data);
    free(s);
}

static bool open_file(struct state *s, const gp_type *frame, char why[GP_WHY])
{
    struct stat st;
    size_t bytes = gp_bytes(frame);
    s->fd = open(s->o->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (s->fd < 0 || fstat(s->fd, &st))
        return gp_why(why, "cannot be read: %s", gp_strerror(errno));
    if (!gp_growbuf_need(&s->room, bytes > HEAD ? bytes : HEAD))
        return gp_why(why, GP_WHY_MEMORY);
    return gp_read_file(s->fd, HEAD, &s->room, why)
        && cut_file(&s->cut, s->o->file, s->room.data, s->room.n, st.st_size, frame, why);
}

static bool open_state(const gp_open *g, void **state)
{
    struct state *s = calloc(1, sizeof *s);
    char why[GP_WHY];
    *state = s;
    if (!s)
        return gp_fail(g->errs, GP_E_RESOURCE, g->at, "stage '%s': out of memory", g->name);
    s->o = g->opts, s->frame = g->in[0];
    s->fd = -1;
    return !s->o->file || open_file(s, &g->in[0], why)
        || gp_fail(g->errs, GP_E_RUN, s->o->at, "'%s' %s", s->o->file, why);
}

/* The expected data of frame `f`: NULL after an error. */
static const void *expected(struct state *s, gp_call *c, const gp_frame *f)
{
    const gp_type *t = &f->in[0].type;
    unsigned long long i = f->index;
    int64_t want = t->dim[0] * s->cut.row_bytes;
    if (s->row + t->dim[0] > s->cut.rows)
        return GP_NULL(gp_fail(c->errs, GP_E_MISMATCH, s->o->at, "frame %llu ends at row %lld, but '%s' has only %lld "
                               "row%s", i, (long long)(s->row + t->dim[0]), s->o->file, (long long)s->cut.rows,
                               gp_plural(s->cut.rows)));
    int64_t got = gp_read_at(s->fd, s->room.data, (size_t)want,
                             s->cut.data + s->row * s->cut.row_bytes);
    s->row += t->dim[0];
    if (got == want)
        return s->room.data;
    gp_fail(c->errs, GP_E_RUN, s->o->at, "frame %llu: '%s' cannot be read: %s", i, s->o->file,
            got < 0 ? gp_strerror(errno) : "it became shorter");
    return NULL;
}

static bool agrees(struct state *s, gp_call *c, const gp_frame *f)
{
    const gp_type *t = &f->in[0].type;
    unsigned long long i = f->index;
    gp_type with = s->o->file ? s->frame : f->in[1].type;
    int64_t rows = with.dim[0];
    char where[GP_WHY], one[128], two[128];
    struct found d, again = { .n = 1 };
    const void *b;

    with.dim[0] = t->dim[0];
    if (!gp_type_same(t, &with)) {
        with.dim[0] = rows;
        return gp_fail(c->errs, GP_E_MISMATCH, c->at, "frame %llu is %s where %s is expected", i, gp_type_text(t, one),
                       gp_type_text(&with, two));
    }
    if (s->o->file) {
        b = expected(s, c, f);
        if (!b)
            return false;
    } else {
        b = f->in[1].data;
        if (t->dim[0] != rows)
            return gp_fail(c->errs, GP_E_MISMATCH, c->at, "frame %llu has %lld row%s where %lld are "
                           "expected", i, (long long)t->dim[0], gp_plural(t->dim[0]), (long long)rows);
    }
    look(s->o, t->dtype, f->in[0].data, b, (size_t)gp_count(t), &d);
    size_t from = d.first * gp_dtype_size(t->dtype);
    if (d.n && s->o->nan == NAN_DIFFER)
        look(&(struct opts){ .abs = s->o->abs, .rel = s->o->rel, .nan = NAN_EQUAL }, t->dtype,
             (const char *)f->in[0].data + from, (const char *)b + from, 1, &again);
    return !d.n || gp_fail(c->errs, GP_E_MISMATCH, c->at, "frame %llu at %s is %s where %s is "
                           "expected; %zu of its %lld elements differ%s", i, index_text(t, d.first, where), d.a, d.b, d.n,
                           (long long)gp_count(t), again.n ? "" : " ('nan: differ': no NaN agrees)");
}

static bool run(gp_call *c, gp_frame *f, int n)
{
    for (int i = 0; i < n; i++)
        if (!agrees(c->state, c, &f[i])) {
            f[i].status = GP_FAILED;
            if (i + 1 < n)
                f[i + 1].status = GP_AGAIN;
            break;
        }
    return true;
}

static bool finish(gp_call *c)
{
    const struct state *s = c->state;
    return !s->o->file || s->row == s->cut.rows || (s->row < s->cut.rows && gp_stopping(c))
        || gp_fail(c->errs, GP_E_MISMATCH, s->o->at, "all frames together have %lld row%s, but "
                   "'%s' has %lld", (long long)s->row, gp_plural(s->row), s->o->file, (long long)s->cut.rows);
}

static const gp_port in[] = {
    { "in", GP_ACCEPT_ANY, .help = "what came" },
    { "with", GP_ACCEPT_ANY, .optional = true, .help = "what is expected" },
    { 0 }
};

static const gp_opt options[] = {
    { GP_PATH(struct opts, file), .help = "what is expected: .npy or raw, all frames joined" },
    { GP_NUM(struct opts, abs), .def = "0", .min = 0, .max = 1e300,
      .help = "how far apart values may be; 0 with rel 0: exact" },
    { GP_FLOAT(struct opts, rel), .min = 0, .max = 1e300,
      .help = "how far apart, as a part of the expected value" },
    { GP_ENUM(struct opts, nan), .def = "equal", .choices = "equal|differ",
      .help = "whether NaN agrees with NaN" },
    { 0 }
};

const gp_kind gp_kind_compare = {
    GP_KIND("compare"), .field = "testing",
    .help = "exit code 6 where frames differ from another buffer or a file",
    .in = in,
    .opts = options, .opts_size = sizeof(struct opts),
    .max_run = 16, .any_shape = true,
    .shape = shape, .open = open_state, .close = close_state, .run = run, .finish = finish,
    .check = check,
};
