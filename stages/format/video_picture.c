/* video_picture.c - pictures of a decoder, and frames of them, see video.h. */
#include "rows_file.h"

#ifdef GP_VIDEO
#include <string.h>
#include "color_how.h"
#include "picture_file.h"
#include "turn.h"
#include "video.h"

/* ---- what they are --------------------------------------------------- */

/* How a decoder's pictures are stored: samples of equal depth, whole bytes apart. */
static bool look_at_format(int format, gp_look *l, char err[GP_WHY])
{
    const AVPixFmtDescriptor *d = gp_av.av_pix_fmt_desc_get(format);
    const uint64_t never = AV_PIX_FMT_FLAG_BITSTREAM | AV_PIX_FMT_FLAG_HWACCEL | AV_PIX_FMT_FLAG_BAYER | AV_PIX_FMT_FLAG_FLOAT;
    if (!d)
        return gp_why(err, "does not say how its pictures are stored: it is damaged, or cut off in front of its first one");
    bool palette = d->flags & AV_PIX_FMT_FLAG_PAL, rgb = palette || d->flags & AV_PIX_FMT_FLAG_RGB;
    int parts = d->nb_components < 3 ? 1 : 3, wide = d->log2_chroma_w, high = d->log2_chroma_h;
    bool ok = !(d->flags & never) && d->comp[0].depth >= 8 && d->comp[0].depth <= 16 && strncmp(d->name, "xyz", 3)
           && wide <= 1 && high <= wide;
    for (int i = 1; i < parts; i++)
        ok &= d->comp[i].depth == d->comp[0].depth;
    if (!ok)
        return gp_why(err, "has pictures of the pixel format %s, which is not read: 'command: [ffmpeg, ...]' with "
                      "'-pix_fmt' makes another one of it", d->name);
    l->planes.bits = d->comp[0].depth;
    l->planes.subsampling = parts == 1 ? GP_Y4M_MONO : !wide ? GP_Y4M_444 : high ? GP_Y4M_420 : GP_Y4M_422;
    l->from = rgb ? GP_RGB : parts == 1 ? GP_GRAY : !wide ? GP_YUV444 : high ? GP_YUV420 : GP_YUV422;
    if (!rgb && !strncmp(d->name, "yuvj", 4))
        l->planes.range = GP_Y4M_FULL;
    return true;
}

int gp_matrix_of_size(int64_t width, int64_t height)
{
    return width >= 1280 || height > 576 ? GP_BT709 : GP_BT601;
}

static bool look_at_colors(const AVCodecParameters *p, const gp_rowsfile_how *how, gp_look *l, char err[GP_WHY])
{
    char word[64];
    l->to = how->colors == GP_COLORS_PLANES ? l->from : how->colors == GP_COLORS_GRAY ? GP_GRAY
          : how->colors == GP_COLORS_RGB || l->from != GP_GRAY ? GP_RGB : GP_GRAY;
    if (p->color_range && l->from != GP_RGB && !l->planes.range)
        l->planes.range = p->color_range == AVCOL_RANGE_JPEG ? GP_Y4M_FULL : GP_Y4M_LIMITED;
    if (how->colors == GP_COLORS_PLANES && l->from == GP_RGB)
        return gp_why(err, "stores red, green and blue, not planes of luma and chroma: leave out 'colors: planes'");
    if ((how->range || l->to == l->from) && l->from != GP_RGB && !gp_y4m_has_range(&l->planes, how->range, err))
        return false;
    l->space = (int)p->color_space;
    l->range = (how->range ? how->range : l->planes.range) == GP_Y4M_FULL ? GP_FULL : GP_LIMITED;
    switch ((int)p->color_space) {
    case AVCOL_SPC_BT470BG: case AVCOL_SPC_SMPTE170M: l->matrix = GP_BT601; break;
    case AVCOL_SPC_BT709: l->matrix = GP_BT709; break;
    case AVCOL_SPC_BT2020_NCL: l->matrix = GP_BT2020; break;
    case AVCOL_SPC_UNSPECIFIED: case AVCOL_SPC_RESERVED: l->matrix = gp_matrix_of_size(p->width, p->height); break;
    default:
        snprintf(word, sizeof word, "%d (ITU-T H.273, table 4)", (int)p->color_space);
        if (l->from != l->to && l->from != GP_RGB && l->from != GP_GRAY)
            return gp_why(err, "has the color matrix %s; BT.601, 709 and 2020 are read: 'colors: planes' leaves its "
                          "pictures as they are", word);
    }
    return true;
}

/* Which side is up, as EXIF counts it: of the matrix that says where a pixel goes, x to (a, b) and y to (c, d). 0: none. */
static int orientation_of(const AVStream *st)
{
    enum { A, B, C = 3, D };
    static const signed char turns[9][4] = {
        [1] = { 1, 0, 0, 1 }, [2] = { -1, 0, 0, 1 }, [3] = { -1, 0, 0, -1 }, [4] = { 1, 0, 0, -1 },
        [5] = { 0, 1, 1, 0 }, [6] = { 0, 1, -1, 0 }, [7] = { 0, -1, -1, 0 }, [8] = { 0, -1, 1, 0 },
    };
    const int32_t *m = NULL;
#if LIBAVFORMAT_VERSION_MAJOR > 60
    for (int i = 0; i < st->codecpar->nb_coded_side_data; i++)
        if (st->codecpar->coded_side_data[i].type == AV_PKT_DATA_DISPLAYMATRIX && st->codecpar->coded_side_data[i].size >= 36)
            m = (const int32_t *)(const void *)st->codecpar->coded_side_data[i].data;
#else
    size_t n = 0;
    const uint8_t *data = gp_av.av_stream_get_side_data(st, AV_PKT_DATA_DISPLAYMATRIX, &n);
    m = n >= 36 ? (const int32_t *)(const void *)data : NULL;
#endif
#define SIGN(x) (((x) > 0) - ((x) < 0))
    for (int i = 1; m && i <= 8; i++)
        if (SIGN(m[A]) == turns[i][0] && SIGN(m[B]) == turns[i][1] && SIGN(m[C]) == turns[i][2] && SIGN(m[D]) == turns[i][3])
            return i;
    return !m;
}

/* The type of a frame. */
static bool type_of(const gp_look *l, const gp_rowsfile_how *how, gp_type *t, char err[GP_WHY])
{
    gp_y4m v = l->planes;
    bool turned = l->orientation >= 5;
    if (turned)
        v.width = l->planes.height, v.height = l->planes.width;
    gp_type picture = { v.bits > 8 ? GP_U16 : GP_U8, l->to == GP_GRAY ? 2 : 3, { v.height, v.width, l->to == GP_GRAY ? 0 : 3 } };
    *t = picture;
    if (!gp_has_room(&picture, how->max_pixels, err))
        return false;
    if (turned && l->to == GP_YUV422)
        return gp_why(err, "is 4:2:2 and is to be turned, which its planes cannot: set 'orientation: keep', or leave out "
                      "'colors: planes'");
    return l->to >= GP_RGB || gp_y4m_type(&v, t, err);
}

bool gp_look_at(const AVStream *st, const gp_rowsfile_how *how, gp_look *l, gp_type *frame, char err[GP_WHY])
{
    const AVCodecParameters *p = st->codecpar;
    *l = (gp_look){ .planes = { .width = p->width, .height = p->height },
                    .orientation = how->keep_orientation ? 1 : orientation_of(st) };
    if (p->width <= 0 || p->height <= 0)
        return gp_why(err, "does not say how large its pictures are, or has more pixels than 'max_pixels' allows, %lld: it may be "
                      "damaged, or cut off in front of its first picture", (long long)how->max_pixels);
    if (!l->orientation)
        return gp_why(err, "is to be turned by an angle that is no multiple of 90 degrees: 'orientation: keep' leaves its "
                      "pictures as they are stored");
    return look_at_format(p->format, l, err) && look_at_colors(p, how, l, err) && type_of(l, how, frame, err);
}

bool gp_look_alike(const gp_look *is, const AVFrame *f, int64_t row, char err[GP_WHY])
{
    gp_look l = { .orientation = 1 };
    if (!look_at_format(f->format, &l, err))
        return false;
    const int range = l.planes.range ? (int)l.planes.range : f->color_range == AVCOL_RANGE_JPEG ? GP_Y4M_FULL
                    : f->color_range == AVCOL_RANGE_MPEG ? GP_Y4M_LIMITED : 0, space = (int)f->colorspace;
    return (f->width == is->planes.width && f->height == is->planes.height && l.from == is->from
            && l.planes.bits == is->planes.bits
            && (!range || !is->planes.range || l.from == GP_RGB || range == (int)is->planes.range)
            && (space == AVCOL_SPC_UNSPECIFIED || is->space == AVCOL_SPC_UNSPECIFIED || space == is->space))
        || gp_why(err, "changes at its frame %lld from %lld x %lld pixels of %d bits to %d x %d of %d, or in its colors: "
                  "the frames of a video are of one size", (long long)row, (long long)is->planes.width,
                  (long long)is->planes.height, is->planes.bits, f->width, f->height, l.planes.bits);
}

/* ---- pictures to frames ---------------------------------------------- */

/* Samples of a component, w of each row, which get `apart` from each other. */
static void unpack(const AVFrame *f, const AVPixFmtDescriptor *d, int part, int w, int h, int apart, void *to)
{
    const AVComponentDescriptor *c = &d->comp[part];
    const bool wide = c->depth > 8, big = d->flags & AV_PIX_FMT_FLAG_BE;
    const int size = wide ? 2 : 1;
    const unsigned top = (1u << c->depth) - 1;
    for (int y = 0; y < h; y++) {
        const uint8_t *from = f->data[c->plane] + (ptrdiff_t)y * f->linesize[c->plane] + c->offset;
        uint8_t *byte = (uint8_t *)to + (size_t)y * (size_t)w * (size_t)(apart * size);
        if (c->step == size && apart == 1 && !c->shift && !(wide && big)) {
            memcpy(byte, from, (size_t)w * (size_t)size);
            continue;
        }
        for (int x = 0; x < w; x++, from += c->step, byte += apart * size) {
            uint16_t sample = *from;
            if (wide)
                memcpy(&sample, from, sizeof sample);
            if (wide && big)
                sample = __builtin_bswap16(sample);
            sample = (uint16_t)(sample >> c->shift & top);
            if (wide)
                memcpy(byte, &sample, sizeof sample);
            else
                *byte = (uint8_t)sample;
        }
    }
}

static void unpack_palette(const AVFrame *f, uint8_t *to)
{
    for (int y = 0; y < f->height; y++)
        for (int x = 0; x < f->width; x++, to += 3) {
            uint32_t color;
            memcpy(&color, f->data[1] + 4 * f->data[0][(ptrdiff_t)y * f->linesize[0] + x], sizeof color);
            to[0] = (uint8_t)(color >> 16), to[1] = (uint8_t)(color >> 8), to[2] = (uint8_t)color;
        }
}

/* Rows and columns of a component. */
static void size_of(const AVFrame *f, const AVPixFmtDescriptor *d, int part, int *w, int *h)
{
    int across = part ? d->log2_chroma_w : 0, down = part ? d->log2_chroma_h : 0;
    *w = (f->width + (1 << across) - 1) >> across, *h = (f->height + (1 << down) - 1) >> down;
}

/* A picture as planes one behind the other, or as red, green and blue of each pixel. */
static void unpack_all(const AVFrame *f, const gp_look *l, void *to)
{
    const AVPixFmtDescriptor *d = gp_av.av_pix_fmt_desc_get(f->format);
    const size_t size = l->planes.bits > 8 ? 2 : 1;
    int w, h;
    if (d->flags & AV_PIX_FMT_FLAG_PAL) {
        unpack_palette(f, to);
        return;
    }
    for (int part = 0; part < (l->from == GP_GRAY ? 1 : 3); part++) {
        size_of(f, d, part, &w, &h);
        if (l->from == GP_RGB) {
            unpack(f, d, part, f->width, f->height, 3, (char *)to + (size_t)part * size);
            continue;
        }
        unpack(f, d, part, w, h, 1, to);
        to = (char *)to + (size_t)w * (size_t)h * size;
    }
}

/* A frame of `is->to` that lies as it is stored, upright. */
static void turn(const AVFrame *f, const gp_look *l, const void *from, void *to)
{
    const AVPixFmtDescriptor *d = gp_av.av_pix_fmt_desc_get(f->format);
    const size_t size = l->planes.bits > 8 ? 2 : 1;
    int w = f->width, h = f->height;
    for (int part = 0; part < (l->to >= GP_RGB ? 1 : 3); part++) {
        if (l->to < GP_RGB)
            size_of(f, d, part, &w, &h);
        gp_turn_rows(gp_turn_for(l->orientation, w, h), from, h, 0, w, l->to == GP_RGB ? 3 * size : size, to);
        from = (const char *)from + (size_t)w * (size_t)h * size, to = (char *)to + (size_t)w * (size_t)h * size;
    }
}

bool gp_look_frame(const gp_look *l, const AVFrame *f, gp_growbuf room[2], void *to, char err[GP_WHY])
{
    enum { PLANES, TURNED };
    const size_t most = 3 * ((size_t)f->width + 1) * ((size_t)f->height + 1) * (l->planes.bits > 8 ? 2 : 1);
    const bool converts = l->from != l->to, turns = l->orientation != 1;
    if ((converts && !gp_growbuf_need(&room[PLANES], most)) || (turns && !gp_growbuf_need(&room[TURNED], most)))
        return gp_why(err, "cannot be decoded: " GP_WHY_MEMORY);
    void *stored = turns ? room[TURNED].data : to;
    unpack_all(f, l, converts ? room[PLANES].data : stored);
    if (converts) {
        gp_color_how how = gp_color_how_of(l->from, l->to, l->matrix, l->range, true, l->planes.bits, l->planes.bits);
        gp_color_host(&how, l->planes.bits > 8, stored, room[PLANES].data, f->height, f->width);
    }
    if (turns)
        turn(f, l, stored, to);
    return true;
}
#endif
