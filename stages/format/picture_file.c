/* picture_file.c - the table of the formats of pictures, see picture_file.h. */
#include <string.h>
#include <strings.h>
#include "picture_file.h"

static const gp_picfile *const table[] = { &gp_png, &gp_jpeg, &gp_pnm, &gp_pfm };
enum { ROWS = sizeof table / sizeof *table };
_Static_assert(GP_PICTURE + ROWS == GP_ROWS, "the table of rows follows that of pictures");

const gp_picfile *gp_picfile_of(gp_filetype as)
{
    return as >= GP_PICTURE && as < GP_PICTURE + ROWS ? table[as - GP_PICTURE] : NULL;
}

gp_filetype gp_picfile_named(const char *path)
{
    const char *dot = strrchr(path, '.');
    for (int i = 0; dot && i < ROWS; i++)
        for (const char *const *s = table[i]->suffix; *s; s++)
            if (!strcasecmp(dot, *s))
                return (gp_filetype)(GP_PICTURE + i);
    return GP_AUTO;
}

bool gp_picfile_takes(gp_filetype as, const char *option)
{
    const gp_picfile *p = gp_picfile_of(as);
    for (const char *const *o = p ? p->options : (const char *[]){ NULL }; *o; o++)
        if (!strcmp(*o, option))
            return true;
    return false;
}

static int64_t frame_ns(const gp_picfile *p, const gp_type *t, int ns)
{
    bool gray = t->ndim < 3 || t->dim[2] == 1;
    return ns * (gray && p->gray_times ? p->gray_times : 1) * (int64_t)gp_bytes(t);
}

int64_t gp_picfile_decode_ns(const gp_picfile *p, const gp_type *t)
{
    return frame_ns(p, t, p->decode_ns);
}

int64_t gp_picfile_encode_ns(const gp_picfile *p, const gp_type *t, int compression)
{
    return frame_ns(p, t, p->encode_ns[compression]);
}

/* The row of a file that begins with `head`; NULL: no format is like it. */
static const gp_picfile *row_of(const gp_picfile_how *how, const char *path, const void *head, size_t n)
{
    for (int i = 0; how->format == GP_AUTO && i < ROWS; i++)
        for (const char *const *m = table[i]->magic; *m; m++)
            if (n >= strlen(*m) && !memcmp(head, *m, strlen(*m)))
                return table[i];
    return gp_picfile_of(how->format ? how->format : gp_picfile_named(path));
}

static bool is_too_large(const gp_type *t)
{
    double bytes = (double)gp_dtype_size(t->dtype);
    for (int k = 0; k < t->ndim; k++)
        bytes *= (double)t->dim[k];
    return bytes > 0x1p40;
}

bool gp_picfile_head(const gp_picfile_how *how, const char *path, const void *head, size_t n, gp_type *type,
                     char err[GP_WHY])
{
    const gp_picfile *p = row_of(how, path, head, n);
    if (!p)
        return gp_why(err, "is not a picture that gpipe reads");
    if (how->halvings && !p->shrinks)
        return gp_why(err, "is not a JPEG file, and only those can be made smaller while they are decoded ('shrink')");
    return p->head(head, n, how, type, err) && (!is_too_large(type)
        || gp_why(err, "says that it has %lld x %lld pixels, which is more than 1 TiB", (long long)type->dim[1],
                  (long long)type->dim[0]));
}

bool gp_picfile_decode(const gp_picfile_how *how, const char *path, const void *file, size_t n, const gp_type *type,
                       void *frame, char err[GP_WHY])
{
    return row_of(how, path, file, n)->decode(file, n, how, type, frame, err);
}

bool gp_picfile_said(const gp_picfile_how *how, const char *path, const void *file, size_t n, gp_said *to,
                     char err[GP_WHY])
{
    const gp_picfile *p = row_of(how, path, file, n);
    return !to->n || !p->said || p->said(file, n, to, err);
}

bool gp_picfile_encode(const gp_picfile_how *how, const void *frame, const gp_type *type, gp_growbuf *out,
                       char err[GP_WHY])
{
    const gp_picfile *p = gp_picfile_of(how->format);
    if (!gp_count(type))
        return gp_why(err, "cannot be written: the frame has no rows, and a %s must have one", p->name);
    out->n = 0;
    return p->encode(frame, type, how, out, err);
}
