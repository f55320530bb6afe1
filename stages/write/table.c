/* table.c - frames as rows of a table, a .csv or .tsv whose columns have names, see writer.h.
 *
 * A row has an element of each column of the inputs, one input behind the other, and beside them what `columns` lists of
 * the frame. A field is quoted (RFC 4180) where a reader would else take it for something else. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/plural.h"
#include "text_file.h"
#include "writer.h"

#define FRAME "frame."
#define META "frame.meta."

static const char *const of_frame[] = { "frame.index", "frame.time", "frame.name", "frame.file" };      /* as gp_column.is */
enum { OF_FRAME = sizeof of_frame / sizeof *of_frame };

static bool starts(const char *s, const char *with)
{
    return !strncmp(s, with, strlen(with));
}

/* ---- fields ----------------------------------------------------------- */

static bool put(gp_growbuf *to, const char *s, size_t n)
{
    if (!n)
        return true;
    if (!gp_growbuf_need(to, to->n + n))
        return false;
    memcpy(to->data + to->n, s, n);
    to->n += n;
    return true;
}

/* Blanks at an end, and what begins a comment or would be an empty line, are kept by quotes, too. */
static bool is_plain(const char *s, char separator)
{
    size_t n = strlen(s);
    return n && *s != '#' && *s != ' ' && s[n - 1] != ' ' && !strchr(s, separator) && !strpbrk(s, "\"\r\n\t,;");
}

static bool put_text(gp_growbuf *to, const char *s, char separator)
{
    if (is_plain(s, separator))
        return put(to, s, strlen(s));
    bool ok = put(to, "\"", 1);
    for (; ok && *s; s++)
        ok = put(to, "\"\"", *s == '"' ? 1 : 0) && put(to, s, 1);
    return ok && put(to, "\"", 1);
}

/* ---- before a run ------------------------------------------------------ */

static gp_loc place(gp_shape *s, int i)
{
    const gp_node *n = gp_shape_node(s, "columns");
    return n && n->kind == GP_LIST && i < n->n ? n->item[i]->at : gp_shape_loc(s, "columns");
}

/* What a name means that begins with "frame.". */
static bool check_of_frame(gp_shape *s, const char *name, int i, gp_column *c)
{
    const char *const *keys;
    int n = gp_shape_meta_keys(s, &keys);
    if (starts(name, META)) {
        c->is = GP_COLUMN_META, c->key = name + strlen(META);
        while (n && (strcmp(keys[n - 1], c->key) || !strcmp(c->key, "time")))
            n--;
        return n || gp_shape_fail_at(s, place(s, i), !strcmp(c->key, "time")
            ? "'%.100s': the time of a frame is 'frame.time'" : "'%.100s': say 'metadata: [...]' with it at the top, then it travels "
            "with frames", name);
    }
    int k = 0;
    while (k < OF_FRAME && strcmp(of_frame[k], name))
        k++;
    c->is = k;
    return k < OF_FRAME || gp_shape_fail_at(s, place(s, i), "a frame has no '%.100s': frame.index, frame.time, frame.name, "
                                            "frame.file, frame.meta.KEY", name);
}

bool gp_table_check(gp_shape *s)
{
    gp_write_opts *o = (gp_write_opts *)s->opts;   /* its last fields are this function's */
    bool ok = true;
    if (!o->columns.n)
        return gp_shape_fail(s, "columns", "a table has a name for each number of a row");
    o->column = gp_shape_alloc(s, sizeof *o->column * (size_t)o->columns.n);
    memset(o->column, 0, sizeof *o->column * (size_t)o->columns.n);
    for (int i = 0; i < o->columns.n; i++) {
        const char *name = o->columns.v[i];
        int same = 0;
        while (same < i && strcmp(o->columns.v[same], name))
            same++;
        if (!*name || same < i)
            ok = gp_shape_fail_at(s, place(s, i), *name ? "two columns are called '%.100s'" : "a column needs a name%s", name);
        o->column[i].is = GP_COLUMN_NUMBER;
        ok = (!starts(name, FRAME) || check_of_frame(s, name, i, &o->column[i])) && ok;
    }
    return ok;
}

static int64_t width(const gp_write_opts *o, const gp_type *t)
{
    return o->stack ? t->dim[0] : t->ndim > 1 ? t->dim[1] : 1;
}

static bool make_header(gp_shape *s, gp_write_opts *o)
{
    gp_growbuf line = { 0 };
    const char separator = gp_rowsfile_of(o->as)->separator;
    bool ok = true;
    for (int i = 0; ok && i < o->columns.n; i++)
        ok = put(&line, &separator, i ? 1 : 0) && put_text(&line, o->columns.v[i], separator);
    ok = ok && put(&line, "\n", 2);
    if (ok)
        o->header = memcpy(gp_shape_alloc(s, line.n), line.data, line.n);
    free(line.data);
    return ok || gp_shape_fail(s, "columns", "the header needs more memory than there is");
}

bool gp_table_shape(gp_shape *s)
{
    gp_write_opts *o = (gp_write_opts *)s->opts;   /* its last fields are this function's */
    char text[GP_BOUNDS_TEXT];
    int64_t has = 0, named = 0;
    int port = 0, at = 0;
    for (int i = 0; i < s->nin; i++) {
        gp_type row = s->in[i];
        row.ndim += o->stack, row.dim[1] = o->stack ? row.dim[0] : row.dim[1];
        const char *why = gp_rowsfile_of(o->as)->why_not(&row, o->path);
        gp_bounds_text(&s->in[i], s->in_varies[i], text);
        if (why)
            return gp_shape_fail(s, "in", "'%s' cannot hold '%s', %s: %s", o->path, s->in_name[i], text, why);
        if (s->in_varies[i] & ~1u)
            return gp_shape_fail(s, "in", "a table has the same columns throughout, and those of '%s', %s, may be fewer",
                                 s->in_name[i], text);
        if (!o->stack && s->in[i].dim[0] != s->in[0].dim[0])
            return gp_shape_fail(s, "in", "a row of the table is one of each buffer, and '%s' has %lld rows, '%s' %lld%s",
                                 s->in_name[0], (long long)s->in[0].dim[0], s->in_name[i], (long long)s->in[i].dim[0],
                                 s->in[0].ndim > 1 ? "" : ": 'stack: true' makes one row of each frame");
        has += width(o, &s->in[i]);
    }
    for (int i = 0; i < o->columns.n; i++)
        named += o->column[i].is == GP_COLUMN_NUMBER;
    if (named != has)
        return gp_shape_fail(s, "columns", "%lld name%s, and a row has %lld number%s%s", (long long)named,
                             named == 1 ? " of a number" : "s of numbers", (long long)has, gp_plural(has),
                             o->stack || s->in[0].ndim > 1 ? "" : ": 'stack: true' makes one row of each frame");
    for (int i = 0; i < o->columns.n; i++) {
        if (o->column[i].is != GP_COLUMN_NUMBER)
            continue;
        for (; at == width(o, &s->in[port]); at = 0)
            port++;
        o->column[i].port = port, o->column[i].at = at++;
    }
    return make_header(s, o);
}

/* ---- in a run ----------------------------------------------------------- */

static bool put_field(const gp_write_opts *o, const gp_call *c, const gp_frame *f, const gp_column *col, int64_t row,
                      gp_growbuf *to)
{
    char text[GP_UTC_TEXT];
    const char *name = col->is == GP_COLUMN_FILE ? gp_frame_file(c, f) : f->name;
    const gp_view *in = &f->in[col->port];
    double x;
    int n = 0;
    switch (col->is) {
    case GP_COLUMN_INDEX:
        n = snprintf(text, sizeof text, "%llu", (unsigned long long)f->index);
        break;
    case GP_COLUMN_TIME:
        n = f->time_ns > 0 ? gp_utc_text(text, f->time_ns, "-", ":") : 0;
        break;
    case GP_COLUMN_NAME: case GP_COLUMN_FILE:
        name = name ? name : f->name;
        return !name || put_text(to, name, gp_rowsfile_of(o->as)->separator);
    case GP_COLUMN_META:
        n = gp_meta_get(c, f, col->key, &x) ? gp_text_element(text, &x, GP_F64) : 0;
        break;
    case GP_COLUMN_NUMBER:
        row = o->stack ? 0 : row * width(o, &in->type);
        n = gp_text_element(text, (char *)in->data + (size_t)(row + col->at) * gp_dtype_size(in->type.dtype), in->type.dtype);
    }
    return put(to, text, (size_t)n);
}

bool gp_table_spell(const gp_write_opts *o, const gp_call *c, const gp_frame *f, gp_growbuf *to, char why[GP_WHY])
{
    const char separator = gp_rowsfile_of(o->as)->separator;
    int64_t rows = o->stack ? 1 : f->in[0].type.dim[0];
    bool ok = true;
    const gp_view *misfit = gp_writer_misfit(o, f);
    if (misfit)
        return gp_why(why, "cannot be written: a row is one of each buffer, and of the first the frame has %lld rows, of "
                      "another %lld", (long long)rows, (long long)misfit->type.dim[0]);
    for (int64_t r = 0; ok && r < rows; r++) {
        for (int i = 0; ok && i < o->columns.n; i++)
            ok = put(to, &separator, i ? 1 : 0) && put_field(o, c, f, &o->column[i], r, to);
        ok = ok && put(to, "\n", 1);
    }
    return ok || gp_why(why, "cannot be written: " GP_WHY_MEMORY);
}

/* A row that was cut off may end within a name in quotes, so that all quotes count. */
bool gp_table_ends(const gp_write_opts *o, int fd, int64_t size, char why[GP_WHY])
{
    enum { BLOCK = 1 << 16 };
    const int64_t n = (int64_t)strlen(o->header);
    char block[BLOCK], last = 0, other = 0;        /* the first byte that is not the header's */
    bool same = size >= n, open = false;
    for (int64_t at = 0, k; at < size; at += k) {
        k = gp_read_at(fd, block, (size_t)(size - at < BLOCK ? size - at : BLOCK), at);
        if (k <= 0)
            return gp_why(why, "cannot be read: %s", k ? gp_strerror(errno) : "it ends early");
        for (int64_t i = 0; i < k; i++) {
            if (same && at + i < n && block[i] != o->header[at + i])
                same = false, other = block[i];
            open ^= block[i] == '"';
        }
        last = block[k - 1];
    }
    return !same ? gp_why(why, "cannot be added to: its first line is not '%.*s', as 'columns' says%s", (int)(n - 1 < 200 ? n - 1 : 200),
                          o->header, other == '\r' ? ": a carriage return is at its end"
                          : other == '\xef' ? ": a byte order mark is before it" : "")
                 : (last == '\n' && !open) || gp_why(why, "cannot be added to: its last line does not end");
}
