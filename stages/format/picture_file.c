/* picture_file.c - pictures of any format, see picture_file.h. */
#include <stdlib.h>
#include "picture_file.h"

static int64_t frame_ns(const gp_picfile *p, const gp_type *t, int ns)
{
    bool gray = t->ndim < 3 || t->dim[2] == 1;
    return ns * (gray && p->gray_times ? p->gray_times : 1) * (int64_t)gp_bytes(t);
}

/* A picture that becomes gray may be colored: all of it is decoded, of a JPEG the luma. */
int64_t gp_picfile_decode_ns(const gp_picfile *p, const gp_picfile_how *how, const gp_type *t)
{
    return how->colors == GP_COLORS_GRAY ? 3 * p->decode_ns * (int64_t)gp_bytes(t) : frame_ns(p, t, p->decode_ns);
}

int64_t gp_picfile_encode_ns(const gp_picfile *p, const gp_type *t, int compression)
{
    return frame_ns(p, t, p->encode_ns[compression]);
}

/* The row of a file that begins with `head`; NULL: no format is like it. */
static const gp_picfile *row_of(const gp_picfile_how *how, const char *path, const void *head, size_t n)
{
    return gp_picfile_of(how->format ? how->format : gp_filetype_is(path, head, n));
}

bool gp_picfile_head(const gp_picfile_how *how, const char *path, const void *head, size_t n, gp_type *type,
                     char err[GP_WHY])
{
    const gp_picfile *p = row_of(how, path, head, n);
    if (!n)
        return gp_why(err, "is empty");
    if (!p)
        return gp_why(err, "is not a picture that gpipe reads");
    if (how->halvings && !p->shrinks)
        return gp_why(err, "is not a JPEG file, and only those can be made smaller while they are decoded ('shrink')");
    if (!p->head(head, n, how, type, err))
        return false;
    *type = gp_picfile_colored(how, *type);
    return gp_has_room(type, how->max_pixels, err);
}

bool gp_picfile_has_end(const gp_picfile_how *how, const char *path, const void *head, size_t n)
{
    return row_of(how, path, head, n)->end != NULL;
}

void gp_picfile_end(const gp_picfile_how *how, const char *path, const void *head, size_t n, const void *end, size_t nend,
                    gp_type *type)
{
    row_of(how, path, head, n)->end(head, n, end, nend, how, type);
}

bool gp_picfile_can_hold(const gp_picfile_how *how, const char *path, const void *head, size_t n, int64_t size,
                         const gp_type *type, char why[GP_WHY])
{
    double most = (double)row_of(how, path, head, n)->most_for_a_byte * (double)size;
    return !most || (double)gp_bytes(type) <= most
        || gp_why(why, "is cut off or damaged: it says that it has %lld x %lld pixels, for which %lld bytes are too few",
                  (long long)type->dim[1], (long long)type->dim[0], (long long)size);
}

/* ---- colors ---------------------------------------------------------- */

gp_type gp_picfile_colored(const gp_picfile_how *how, gp_type t)
{
    t.ndim = how->colors == GP_COLORS_RGB ? 3 : how->colors == GP_COLORS_GRAY ? 2 : t.ndim;
    t.dim[2] = how->colors == GP_COLORS_RGB ? 3 : t.ndim == 2 ? 0 : t.dim[2];
    return t;
}

bool gp_picfile_alike(const gp_type *found, const gp_type *others, unsigned varies, const char *of, char why[GP_WHY])
{
    char have[128], want[GP_BOUNDS_TEXT];
    bool type = found->dtype == others->dtype, colors = found->ndim == others->ndim;
    if (colors && found->ndim == 3)
        colors = varies >> 2 & 1 ? found->dim[2] <= others->dim[2] : found->dim[2] == others->dim[2];
    return (type && colors)
        || gp_why(why, "holds %s, %s %s: %s", type ? gp_type_text(found, have) : gp_dtype_name(found->dtype), of,
                  type ? gp_bounds_text(others, varies, want) : gp_dtype_name(others->dtype),
                  !type ? "pictures of 8 and of 16 bits, or floats, are read by a stage each"
                  : "'colors: rgb' makes RGB of gray pictures and of those with alpha, 'colors: gray' luma of all");
}

bool gp_picfile_fits_colors(gp_shape *s, const gp_picfile_how *how, const gp_type *declared, unsigned varies)
{
    char made[GP_BOUNDS_TEXT], said[GP_BOUNDS_TEXT];
    gp_type t = gp_picfile_colored(how, *declared);
    bool fits = t.ndim == declared->ndim
             && (t.ndim < 3 || t.dim[2] == declared->dim[2] || (varies >> 2 & 1 && t.dim[2] < declared->dim[2]));
    return fits || gp_shape_fail(s, "colors", "'colors: %s' makes %s, and 'buffers' declares %s", how->colors == GP_COLORS_RGB
                                 ? "rgb" : "gray", gp_bounds_text(&t, varies & 3, made), gp_bounds_text(declared, varies, said));
}

/* n pixels of `c` channels to RGB, or to luma: ITU-R BT.601, 2.5.1; of integers with weights of 16 bits, rounded. */
#define CONVERTS(name, T, LUMA) \
    static void name(const T *p, int c, T *to, bool rgb, size_t n) \
    { \
        for (size_t i = 0; i < n; i++, p += c) \
            if (rgb) \
                to[3 * i] = p[0], to[3 * i + 1] = p[c > 2 ? 1 : 0], to[3 * i + 2] = p[c > 2 ? 2 : 0]; \
            else \
                to[i] = c > 2 ? (T)(LUMA) : p[0]; \
    }
CONVERTS(convert_u8, uint8_t, (19595u * p[0] + 38470u * p[1] + 7471u * p[2] + 32768u) >> 16)
CONVERTS(convert_u16, uint16_t, (19595u * p[0] + 38470u * p[1] + 7471u * p[2] + 32768u) >> 16)
CONVERTS(convert_f32, float, 0.299f * p[0] + 0.587f * p[1] + 0.114f * p[2])

static void convert(const void *from, const gp_type *has, void *to, const gp_type *type)
{
    size_t n = (size_t)has->dim[0] * (size_t)has->dim[1];
    int c = has->ndim == 3 ? (int)has->dim[2] : 1;
    bool rgb = type->ndim == 3;
    if (type->dtype == GP_U8)
        convert_u8(from, c, to, rgb, n);
    else if (type->dtype == GP_U16)
        convert_u16(from, c, to, rgb, n);
    else
        convert_f32(from, c, to, rgb, n);
}

bool gp_picfile_decode(const gp_picfile_how *how, const char *path, const void *file, size_t n, const gp_type *type,
                       void *frame, char err[GP_WHY])
{
    const gp_picfile *p = row_of(how, path, file, n);
    gp_type has;
    *err = 0;
    if (how->colors == GP_COLORS_KEEP)
        return p->decode(file, n, how, type, frame, err);
    if (!p->head(file, n, how, &has, err))
        return false;
    if (gp_type_same(&has, type))
        return p->decode(file, n, how, type, frame, err);
    void *aside = malloc(gp_bytes(&has));
    bool ok = aside ? p->decode(file, n, how, &has, aside, err) : gp_why(err, "cannot be decoded: " GP_WHY_MEMORY);
    if (ok)
        convert(aside, &has, frame, type);
    free(aside);
    return ok;
}

bool gp_picfile_metadata(const gp_picfile_how *how, const char *path, const void *file, size_t n, gp_filemeta *to,
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
