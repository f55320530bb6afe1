/* append.c - the end of a joined file that is there already, see writer.h: that of a run that was broken off, or another.
 *
 * Frames go on there only if the file is whole, and of their type, as far as its format says: so a file that was added
 * to is one that a single run could have written. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/npy.h"
#include "writer.h"

enum { HEAD = 1 << 20 };               /* bytes in which a text has its first row */

/* How many numbers a row of text has. */
static int64_t columns(const gp_type *t)
{
    return t->ndim > 1 ? gp_count(t) / (t->dim[0] ? t->dim[0] : 1) : 1;
}

/* Is the last line spelled as those that follow? Others have other separators. */
static bool ends_alike(const gp_rowsfile *as, int fd, int64_t size, int64_t numbers, char why[GP_WHY])
{
    int64_t n = size < HEAD ? size : HEAD, begins = n - 1, parts = 1;
    gp_growbuf tail = { 0 };
    if (!gp_growbuf_need(&tail, (size_t)n))
        return gp_why(why, GP_WHY_MEMORY);
    const char *s = (const char *)tail.data;
    bool read = gp_read_at(fd, tail.data, (size_t)n, size - n) == n, ends = read && s[n - 1] == '\n';
    while (ends && begins && s[begins - 1] != '\n')
        parts += s[--begins] == as->separator;
    bool same = ends && (!as->separator || parts == numbers || s[begins] == '#' || begins == n - 1 || (!begins && n < size));
    free(tail.data);
    return !read ? gp_why(why, "cannot be read: %s", gp_strerror(errno))
         : !ends ? gp_why(why, "cannot be added to: its last line does not end")
                 : same || gp_why(why, "cannot be added to: its last line has no %lld numbers with '%s' between them",
                                  (long long)numbers, as->separator == '\t' ? "\\t" : ",");
}

static bool ends_text(const gp_writer *w, int fd, int64_t size, char why[GP_WHY])
{
    const gp_write_opts *o = w->o;
    const gp_rowsfile *as = gp_rowsfile_of(o->as);
    if (o->columns.n)
        return !size || gp_table_ends(o, fd, size, why);
    gp_growbuf head = { 0 };
    gp_type is = { 0 }, row = w->joined;
    row.dim[0] = 1;
    bool ok = gp_read_file(fd, HEAD, &head, why);
    gp_rows_head h = { .data = head.data, .n = head.n < (size_t)size ? head.n : (size_t)size, .size = size };
    gp_rowsfile_how how = { .as = as, .dtype = GP_F64 };
    ok = ok && (!size || as->head(&h, &how, &is, why));
    free(head.data);
    if (!ok)
        return false;
    if (is.ndim && columns(&is) != columns(&row))
        return gp_why(why, "cannot be added to: its rows have %lld numbers, those of the frames %lld", (long long)columns(&is),
                      (long long)columns(&row));
    return !size || ends_alike(as, fd, size, columns(&row), why);
}

/* What it holds, which has to be rows of the frames, and the bytes of its header. */
static bool reads_npy(const gp_writer *w, int fd, gp_type *is, size_t *header, char why[GP_WHY])
{
    char head[4096], is_text[128], text[128];
    gp_type want = w->joined;
    bool column_major;
    int64_t n = gp_read_at(fd, head, sizeof head, 0);
    if (n < 0)
        return gp_why(why, "cannot be read: %s", gp_strerror(errno));
    if (!gp_npy_parse(head, (size_t)n, is, header, &column_major, why))
        return false;
    want.dim[0] = is->dim[0];
    return (!column_major && gp_type_same(is, &want))
        || gp_why(why, "cannot be added to: it holds %s%s, and with the frames it would be %s", gp_type_text(is, is_text),
                  column_major ? " in the order of columns" : "", gp_type_text(&want, text));
}

static bool ends_npy(gp_writer *w, int fd, int64_t size, char why[GP_WHY])
{
    char made[GP_NPY_HEADER_MAX];
    gp_type is;
    if (!reads_npy(w, fd, &is, &w->head, why))
        return false;
    if ((uint64_t)size != w->head + gp_bytes(&is))
        return gp_why(why, "cannot be added to: it has %lld bytes, and by its header %llu", (long long)size,
                      (unsigned long long)(w->head + gp_bytes(&is)));
    if (w->head != gp_npy_header(&is, made, sizeof made))
        return gp_why(why, "cannot be added to: its header is of another length than those that gpipe writes");
    w->joined = is;
    return true;
}

static bool ends_raw(const gp_writer *w, int64_t size, char why[GP_WHY])
{
    gp_type row = w->joined;
    row.dim[0] = 1;
    size_t bytes = gp_bytes(&row);
    return (uint64_t)size % bytes == 0
        || gp_why(why, "cannot be added to: it has %lld bytes, which are no whole rows of %zu", (long long)size, bytes);
}

/* Is the file, of which a part is to be cut off, still the one that the run has written, as far as its format says? Whether
 * it is there, and as long, is found when it is opened. */
static bool is_own(const gp_writer *w, const char *path, char why[GP_WHY])
{
    const uint64_t *was = w->now.own;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    size_t header;
    gp_type is;
    bool ok = true;
    if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && (uint64_t)st.st_size >= was[0] && was[0])
        ok = w->o->as == GP_NPY ? reads_npy(w, fd, &is, &header, why)
                                  && ((header == was[2] && (uint64_t)is.dim[0] >= was[1])
                                      || gp_why(why, "cannot be added to: it has fewer than %llu rows", (unsigned long long)was[1]))
           : !gp_write_is_text(w->o) || ends_text(w, fd, (int64_t)was[0], why);
    if (fd >= 0)
        close(fd);
    return ok;
}

bool gp_append_open(gp_writer *w, const char *path, char why[GP_WHY])
{
    gp_outfile *f = &w->worker[0].file;
    const uint64_t *was = w->now.own;
    bool there;
    if (w->goes_on && !is_own(w, path, why))
        return false;
    if (!gp_outfile_extend(f, path, w->goes_on ? (int64_t)was[0] : -1, &there, why))
        return false;
    f->keeps = true;                   /* what another makes of this name from now on */
    if (w->goes_on && there) {
        w->size = (size_t)was[0], w->joined.dim[0] = (int64_t)was[1], w->head = (size_t)was[2];
        w->nbegin = w->size ? 0 : w->nbegin;
        return !w->head || gp_writer_put_header(w, why);
    }
    if (w->goes_on)
        return gp_why(why, "is not there any more, and a run is to go on in it: to begin from the first frame, remove what "
                      "'resume' names");
    if (!there)
        return true;
    off_t size = lseek(f->fd, 0, SEEK_END);
    if (size < 0)
        return gp_why(why, "cannot be read: %s", gp_strerror(errno));
    if (!(w->o->as == GP_NPY ? ends_npy(w, f->fd, size, why) : gp_write_is_text(w->o) ? ends_text(w, f->fd, size, why)
                                                                                   : ends_raw(w, size, why)))
        return false;
    w->size = (size_t)size;
    w->nbegin = size ? 0 : w->nbegin;
    return true;
}
