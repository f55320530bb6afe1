/* video_file.c - video of any container and codec that FFmpeg's libraries know, see rows_file.h.
 *
 * They are opened by the first pipeline that has a video. A build knows the structures of one major version alone, which
 * is part of the library's name. Packets are read and decoded in order, by one worker at a time, while the decoder has
 * threads of its own; each worker then makes its frame of a picture that is its own. How many pictures there are shows
 * at the end. */
#include "rows_file.h"

#ifdef GP_VIDEO
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/pixdesc.h>
#include "base/dl.h"
#include "color_how.h"
#include "picture_file.h"
#include "turn.h"
#include "y4m_file.h"

/* ---- the libraries --------------------------------------------------- */

#if LIBAVFORMAT_VERSION_MAJOR > 60
#define OLD(X)
#else
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"     /* 60 has both, the newer one not in all its versions */
#define OLD(X) X(av_stream_get_side_data)
#endif
#define FUNCTIONS(X) \
    X(avformat_alloc_context) X(avformat_open_input) X(avformat_find_stream_info) X(avformat_close_input) \
    X(avformat_free_context) X(av_find_best_stream) X(av_read_frame) X(avio_alloc_context) X(avio_context_free) \
    X(avformat_index_get_entries_count) X(avformat_index_get_entry) OLD(X) \
    X(avcodec_find_decoder) X(avcodec_get_name) X(avcodec_alloc_context3) X(avcodec_parameters_to_context) \
    X(avcodec_open2) X(avcodec_send_packet) X(avcodec_receive_frame) X(avcodec_free_context) \
    X(av_packet_alloc) X(av_packet_free) X(av_packet_unref) \
    X(av_frame_alloc) X(av_frame_free) X(av_frame_unref) X(av_pix_fmt_desc_get) X(av_malloc) X(av_freep) \
    X(av_strerror) X(av_log_set_level)
#define FIELD(name) __typeof__(name) *name;
static struct { FUNCTIONS(FIELD) } av;

static struct {
    pthread_once_t once;
    bool ok;
    char why[GP_WHY];
} library = { .once = PTHREAD_ONCE_INIT };

static void open_library(void)
{
    static const char *const names[] = { "libavformat.so." AV_STRINGIFY(LIBAVFORMAT_VERSION_MAJOR), NULL };
#define SYMBOL(name) { #name, &av.name },
    const gp_dl_symbol symbol[] = { FUNCTIONS(SYMBOL) { 0 } };
    gp_errs errs = { .n = 0 };
    library.ok = gp_dl_open(names, symbol, "is a video, which", "install libavformat"
                            AV_STRINGIFY(LIBAVFORMAT_VERSION_MAJOR) " (Debian, Ubuntu), the version that this gpipe was built "
                            "for", (gp_loc){ 0 }, &errs);
    if (!library.ok)
        gp_why(library.why, "%s", errs.e[0].msg);
    else
        av.av_log_set_level(AV_LOG_QUIET);     /* what is wrong becomes an error or a warning */
}

static const char *said(int error, char text[AV_ERROR_MAX_STRING_SIZE])
{
    av.av_strerror(error, text, AV_ERROR_MAX_STRING_SIZE);
    return text;
}

/* ---- where its bytes are --------------------------------------------- */

typedef struct bytes {
    int fd;                    /* negative: `head` has some, */
    const gp_rows_head *head;
    int64_t size, at;
    int error;                 /* of reading; 0: none */
} bytes;

static int get_bytes(void *user, uint8_t *to, int n)
{
    bytes *b = user;
    int64_t left = b->size - b->at;
    if (left <= 0)
        return AVERROR_EOF;
    int64_t got = gp_rows_bytes(b->fd, b->head, b->at, to, (size_t)(left < n ? left : n));
    if (got < 0)
        return b->error = errno, AVERROR(errno);
    b->at += got;
    return got ? (int)got : AVERROR_EOF;
}

static int64_t seek_to(void *user, int64_t offset, int whence)
{
    bytes *b = user;
    if (whence & AVSEEK_SIZE)
        return b->size;
    whence &= ~AVSEEK_FORCE;
    offset += whence == SEEK_CUR ? b->at : whence == SEEK_END ? b->size : 0;
    return offset < 0 ? AVERROR(EINVAL) : (b->at = offset);
}

/* A file that names others (a playlist, a movie whose data are elsewhere) does not get them: not by this, nor by a demuxer
 * that opens them itself, as no protocol is allowed (open_input). */
static int open_other(AVFormatContext *s, AVIOContext **io, const char *url, int flags, AVDictionary **options)
{
    return AVERROR(EPERM);
}

/* ---- what its pictures are ------------------------------------------- */

typedef struct look {
    gp_y4m planes;             /* size, subsampling, bits; the range as the file says */
    int from, to;              /* as gp_color_how has it */
    int matrix, range, orientation, space;     /* space: AVColorSpace, as the file says */
} look;

/* How a decoder's pictures are stored: samples of equal depth, whole bytes apart. */
static bool look_at_format(int format, look *l, char err[GP_WHY])
{
    const AVPixFmtDescriptor *d = av.av_pix_fmt_desc_get(format);
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

static bool look_at_colors(const AVCodecParameters *p, const gp_rowsfile_how *how, look *l, char err[GP_WHY])
{
    char word[64];
    bool hd = p->width >= 1280 || p->height > 576;
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
    case AVCOL_SPC_UNSPECIFIED: case AVCOL_SPC_RESERVED: l->matrix = hd ? GP_BT709 : GP_BT601; break;
    default:
        snprintf(word, sizeof word, "%d (ITU-T H.273, table 4)", (int)p->color_space);
        if (l->from != l->to && l->from != GP_RGB && l->from != GP_GRAY)
            return gp_why(err, "has the color matrix %s; BT.601, 709 and 2020 are read: 'colors: planes' leaves its "
                          "pictures as they are", word);
    }
    return true;
}

/* Which side is up, as EXIF counts it: of the matrix that says where a pixel goes, x to (a, b) and y to (c, d). */
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
    const uint8_t *data = av.av_stream_get_side_data(st, AV_PKT_DATA_DISPLAYMATRIX, &n);
    m = n >= 36 ? (const int32_t *)(const void *)data : NULL;
#endif
#define SIGN(x) (((x) > 0) - ((x) < 0))
    for (int i = 1; m && i <= 8; i++)
        if (SIGN(m[A]) == turns[i][0] && SIGN(m[B]) == turns[i][1] && SIGN(m[C]) == turns[i][2] && SIGN(m[D]) == turns[i][3])
            return i;
    return 1;
}

/* The type of a frame. */
static bool type_of(const look *l, const gp_rowsfile_how *how, gp_type *t, char err[GP_WHY])
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

/* ---- opening --------------------------------------------------------- */

typedef struct input {
    bytes from;
    AVFormatContext *format;   /* NULL: it is not open */
    AVStream *stream;
    const AVCodec *codec;
    look is;
} input;

static void close_input(input *in)
{
    AVIOContext *io = in->format ? in->format->pb : NULL;
    if (in->format)
        av.avformat_close_input(&in->format);
    if (io)
        av.av_freep(&io->buffer), av.avio_context_free(&io);
}

static bool find_stream(input *in, const gp_rowsfile_how *how, char err[GP_WHY])
{
    AVFormatContext *f = in->format;
    int n = (int)f->nb_streams, i = how->stream;
    if (i >= n || (i >= 0 && f->streams[i]->codecpar->codec_type != AVMEDIA_TYPE_VIDEO))
        return i >= n ? gp_why(err, "has no stream %d, only %d: 'stream' counts them from 0, as ffmpeg does", i, n)
                      : gp_why(err, "has no pictures in its stream %d", i);
    if (i < 0)
        i = av.av_find_best_stream(f, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);
    if (i < 0)
        return gp_why(err, "has no stream of pictures");
    in->stream = f->streams[i];
    in->codec = av.avcodec_find_decoder(in->stream->codecpar->codec_id);
    for (int k = 0; k < n; k++)
        f->streams[k]->discard = k == i ? AVDISCARD_DEFAULT : AVDISCARD_ALL;
    return in->codec || gp_why(err, "is coded as %s, for which this libavcodec has no decoder",
                               av.avcodec_get_name(in->stream->codecpar->codec_id));
}

static bool look_at_stream(input *in, const gp_rowsfile_how *how, gp_type *whole, char err[GP_WHY])
{
    const AVCodecParameters *p = in->stream->codecpar;
    gp_type frame;
    in->is = (look){ .planes = { .width = p->width, .height = p->height },
                     .orientation = how->keep_orientation ? 1 : orientation_of(in->stream) };
    if (p->width <= 0 || p->height <= 0)
        return gp_why(err, "does not say how large its pictures are: it is damaged, or cut off in front of its first one");
    if (!look_at_format(p->format, &in->is, err) || !look_at_colors(p, how, &in->is, err)
        || !type_of(&in->is, how, &frame, err))
        return false;
    *whole = (gp_type){ frame.dtype, frame.ndim + 1, { -1 } };
    memcpy(whole->dim + 1, frame.dim, sizeof *frame.dim * (size_t)frame.ndim);
    return true;
}

/* Opens `in`, whose `from` is said. */
static bool open_input(input *in, const gp_rowsfile_how *how, gp_type *whole, char err[GP_WHY])
{
    enum { BUFFER = 1 << 16 };
    static const char NO_PROTOCOL[] = "none";
    char text[AV_ERROR_MAX_STRING_SIZE];
    pthread_once(&library.once, open_library);
    if (!library.ok)
        return gp_why(err, "%s", library.why);
    unsigned char *buffer = av.av_malloc(BUFFER);
    AVIOContext *io = buffer ? av.avio_alloc_context(buffer, BUFFER, 0, &in->from, get_bytes, NULL, seek_to) : NULL;
    AVFormatContext *f = io ? av.avformat_alloc_context() : NULL;
    if (!f) {
        av.av_freep(&buffer), av.avio_context_free(&io);
        return gp_why(err, GP_WHY_MEMORY);
    }
    f->pb = io, f->io_open = open_other, f->flags |= AVFMT_FLAG_CUSTOM_IO;
    f->protocol_whitelist = av.av_malloc(sizeof NO_PROTOCOL);      /* freed with the context */
    int bad = AVERROR(ENOMEM);
    if (f->protocol_whitelist) {
        memcpy(f->protocol_whitelist, NO_PROTOCOL, sizeof NO_PROTOCOL);
        bad = av.avformat_open_input(&f, "", NULL, NULL);
    } else {
        av.avformat_close_input(&f);
    }
    if (bad < 0)
        av.av_freep(&io->buffer), av.avio_context_free(&io);
    else
        in->format = f, bad = av.avformat_find_stream_info(f, NULL);
    bool ok = bad >= 0 || (in->from.error ? gp_why(err, "cannot be read: %s", gp_strerror(in->from.error))
                           : gp_why(err, "is no video that libavformat reads, or is cut off or damaged: it says '%s'",
                                    said(bad, text)));
    ok = ok && find_stream(in, how, err) && look_at_stream(in, how, whole, err);
    in->from.error = 0;
    if (!ok)
        close_input(in);
    return ok;
}

/* How many frames an MP4 says that it has, and in `there` how many of them have their data; -1: other containers do not
 * say it. */
static int64_t count(input *in, int64_t *there)
{
    int entries = av.avformat_index_get_entries_count(in->stream);
    int64_t n = 0;
    *there = 0;
    if (strncmp(in->format->iformat->name, "mov", 3) || in->stream->nb_frames <= 0 || entries <= 0)
        return -1;
    for (int i = 0; i < entries; i++) {
        const AVIndexEntry *e = av.avformat_index_get_entry(in->stream, i);
        if (e->flags & AVINDEX_DISCARD_FRAME)
            continue;
        n++, *there += e->pos <= in->from.size - e->size;
    }
    return n;
}

static bool is_whole(input *in, const gp_rowsfile_how *how, int64_t *frames, char fault[GP_WHY], char err[GP_WHY])
{
    int64_t there, n = count(in, &there);
    *frames = n < 0 ? n : there, *fault = 0;
    return n <= there || n < 0
        || gp_why(how->strict ? err : fault, "is cut off: its header says %lld frames, %lld are there", (long long)n,
                  (long long)there) || !how->strict;
}

static bool video_head(const gp_rows_head *h, const gp_rowsfile_how *how, gp_type *whole, char err[GP_WHY])
{
    input in = { .from = { .fd = -1, .head = h, .size = h->size } };
    char fault[GP_WHY];
    if (!open_input(&in, how, whole, err))
        return false;
    bool ok = is_whole(&in, how, &whole->dim[0], fault, err);
    close_input(&in);
    return ok;
}

typedef struct video {
    gp_rows rows;
    input in;
    AVCodecContext *codec;
    AVPacket *packet;
    bool strict, over;         /* over: no picture comes any more */
    char fault[GP_WHY];        /* what was wrong before the next picture; or "" */
    char last[GP_WHY];         /* ... behind the last one */
} video;

static void video_close(gp_rows *rows)
{
    video *v = (video *)rows;
    if (v->codec)
        av.avcodec_free_context(&v->codec);
    if (v->packet)
        av.av_packet_free(&v->packet);
    close_input(&v->in);
    free(v);
}

static bool open_decoder(video *v, const gp_rowsfile_how *how, char err[GP_WHY])
{
    char text[AV_ERROR_MAX_STRING_SIZE];
    v->packet = av.av_packet_alloc();
    v->codec = v->packet ? av.avcodec_alloc_context3(v->in.codec) : NULL;
    if (!v->codec)
        return gp_why(err, GP_WHY_MEMORY);
    int bad = av.avcodec_parameters_to_context(v->codec, v->in.stream->codecpar);
    v->codec->thread_count = 0;        /* as many as there are cores */
    v->codec->pkt_timebase = v->in.stream->time_base;
    v->codec->max_pixels = how->max_pixels ? how->max_pixels : v->codec->max_pixels;
    bad = bad < 0 ? bad : av.avcodec_open2(v->codec, v->in.codec, NULL);
    return bad >= 0 || gp_why(err, "cannot be decoded: the decoder of %s says '%s'", v->in.codec->name, said(bad, text));
}

static gp_rows *video_open(int fd, const gp_rowsfile_how *how, char err[GP_WHY])
{
    enum { MOST = 1 << 30 };           /* frames: until the end shows */
    int64_t size, frames;
    video *v = gp_rows_new(sizeof *v, fd, &size, err);
    if (!v)
        return NULL;
    v->in.from = (bytes){ .fd = fd, .size = size };
    v->rows.in_order = true, v->strict = how->strict;
    if (open_input(&v->in, how, &v->rows.whole, err) && is_whole(&v->in, how, &frames, v->rows.fault, err)
        && open_decoder(v, how, err)) {
        v->rows.whole.dim[0] = MOST;
        return &v->rows;
    }
    video_close(&v->rows);
    return NULL;
}

/* ---- decoding -------------------------------------------------------- */

typedef struct own {           /* a worker's */
    AVFrame *picture;
    gp_growbuf planes, turned;
    char fault[GP_WHY];
} own;

static void note(video *v, const char *what, int error, int64_t row)
{
    char text[AV_ERROR_MAX_STRING_SIZE];
    if (!*v->fault)
        gp_why(v->fault, "has %s before frame %lld of the file: the decoder of %s says '%s'", what, (long long)row,
               v->in.codec->name, said(error, text));
}

/* Gives the decoder its next packet, or tells it that there is none. False: there is no memory. */
static bool feed(video *v, int64_t row)
{
    int bad;
    while ((bad = av.av_read_frame(v->in.format, v->packet)) >= 0 && v->packet->stream_index != v->in.stream->index)
        av.av_packet_unref(v->packet);
    if (bad == AVERROR(ENOMEM))
        return false;
    if (bad < 0 && (bad != AVERROR_EOF || v->in.from.error) && !*v->last)
        gp_why(v->last, "ends behind frame %lld, where it is cut off or damaged", (long long)row);
    if (bad >= 0 && v->packet->flags & AV_PKT_FLAG_CORRUPT)
        note(v, "a packet that is cut off or damaged", AVERROR_INVALIDDATA, row);
    bad = av.avcodec_send_packet(v->codec, bad < 0 ? NULL : v->packet);
    if (bad < 0 && bad != AVERROR_EOF)
        note(v, "a damaged packet", bad, row);
    av.av_packet_unref(v->packet);
    return bad != AVERROR(ENOMEM);
}

/* Is the picture as all are, by what the head of the file says? */
static bool is_alike(const video *v, const AVFrame *f, int64_t row, char err[GP_WHY])
{
    look l = { .orientation = 1 };
    const look *is = &v->in.is;
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

/* Behind the last picture. */
static gp_status end(video *v, int64_t row, char err[GP_WHY])
{
    bool before = v->over;
    v->over = true;
    if (before)
        return GP_END;
    if (v->in.from.error)              /* frames behind it are there, and are not to be lost */
        return gp_why(err, "cannot be read behind its frame %lld: %s", (long long)row - 1, gp_strerror(v->in.from.error)),
               GP_FAILED;
    if (!*v->last && *v->fault)
        memcpy(v->last, v->fault, sizeof v->last);
    memcpy(err, v->last, GP_WHY);
    if (row)
        return *err && v->strict ? GP_FAILED : GP_END;
    if (!*err)
        gp_why(err, "has no picture that can be decoded");
    return GP_FAILED;
}

static gp_status video_take(gp_rows *rows, void **mine, int64_t row, char err[GP_WHY])
{
    enum { MOST_ERRORS = 1000 };       /* of a decoder that gets nothing more */
    video *v = (video *)rows;
    own *o = *mine;
    int got = 0, errors = 0;
    if (!o && !(o = *mine = calloc(1, sizeof *o)))
        return gp_why(err, GP_WHY_MEMORY), GP_FAILED;
    if (!o->picture && !(o->picture = av.av_frame_alloc()))
        return gp_why(err, GP_WHY_MEMORY), GP_FAILED;
    while (!v->over && (got = av.avcodec_receive_frame(v->codec, o->picture)) < 0) {
        if (got == AVERROR_EOF || errors > MOST_ERRORS)
            break;
        if (got != AVERROR(EAGAIN))
            note(v, "a damaged packet", got, row), errors++;
        if (got == AVERROR(ENOMEM) || (got == AVERROR(EAGAIN) && !feed(v, row))) {
            v->over = true;
            return gp_why(err, "cannot be decoded: " GP_WHY_MEMORY), GP_FAILED;
        }
    }
    if (v->over || got < 0)
        return end(v, row, err);
    if (!*v->fault && (o->picture->decode_error_flags || o->picture->flags & AV_FRAME_FLAG_CORRUPT))
        gp_why(v->fault, "is damaged in its frame %lld, of which the decoder of %s made up a part", (long long)row,
               v->in.codec->name);
    memcpy(o->fault, v->fault, sizeof o->fault);
    *v->fault = 0;
    if (*o->fault && v->strict)
        return memcpy(err, o->fault, GP_WHY), GP_FAILED;
    return is_alike(v, o->picture, row, err) ? GP_OK : GP_FAILED;
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
static void unpack_all(const AVFrame *f, const look *l, void *to)
{
    const AVPixFmtDescriptor *d = av.av_pix_fmt_desc_get(f->format);
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
static void turn(const AVFrame *f, const look *l, const void *from, void *to)
{
    const AVPixFmtDescriptor *d = av.av_pix_fmt_desc_get(f->format);
    const size_t size = l->planes.bits > 8 ? 2 : 1;
    int w = f->width, h = f->height;
    for (int part = 0; part < (l->to >= GP_RGB ? 1 : 3); part++) {
        if (l->to < GP_RGB)
            size_of(f, d, part, &w, &h);
        gp_turn_rows(gp_turn_for(l->orientation, w, h), from, h, 0, w, l->to == GP_RGB ? 3 * size : size, to);
        from = (const char *)from + (size_t)w * (size_t)h * size, to = (char *)to + (size_t)w * (size_t)h * size;
    }
}

static bool video_read(gp_rows *rows, void **mine, int64_t first, int64_t n, void *to, char err[GP_WHY])
{
    const video *v = (const video *)rows;
    const look *l = &v->in.is;
    own *o = *mine;
    const AVFrame *f = o->picture;
    const size_t room = 3 * ((size_t)f->width + 1) * ((size_t)f->height + 1) * (l->planes.bits > 8 ? 2 : 1);
    const bool converts = l->from != l->to, turns = l->orientation != 1;
    if ((converts && !gp_growbuf_need(&o->planes, room)) || (turns && !gp_growbuf_need(&o->turned, room)))
        return gp_why(err, "cannot be decoded: " GP_WHY_MEMORY);
    void *upright = turns ? o->turned.data : to;
    unpack_all(f, l, converts ? o->planes.data : upright);
    if (converts) {
        gp_color_how how = gp_color_how_of(l->from, l->to, l->matrix, l->range, true, l->planes.bits, l->planes.bits);
        gp_color_host(&how, l->planes.bits > 8, upright, o->planes.data, f->height, f->width);
    }
    if (turns)
        turn(f, l, upright, to);
    memcpy(err, o->fault, GP_WHY);
    return true;
}

static bool video_said(gp_rows *rows, void *mine, int64_t row, gp_filemeta *to, char err[GP_WHY])
{
    const AVRational unit = ((const video *)rows)->in.stream->time_base;
    int64_t at = ((const own *)mine)->picture->best_effort_timestamp;
    if (at != AV_NOPTS_VALUE)
        gp_filemeta_set(to, "pts", (double)at * unit.num / unit.den);
    return true;
}

static void video_leave(void *mine)
{
    own *o = mine;
    if (o->picture)
        av.av_frame_free(&o->picture);
    free(o->planes.data);
    free(o->turned.data);
    free(o);
}

#else                                  /* there were no headers of libavformat when gpipe was built */

static bool is_missing(char err[GP_WHY])
{
    return gp_why(err, "is a video, and this gpipe was built without libavformat: install libavformat-dev (Debian, Ubuntu), "
                  "version 59 or later, and build it again, or let a program decode it, as in 'command: [ffmpeg, -i, FILE, -f, yuv4mpegpipe, "
                  "\"-\"]' with 'format: y4m'");
}

static bool video_head(const gp_rows_head *h, const gp_rowsfile_how *how, gp_type *whole, char err[GP_WHY])
{
    return is_missing(err);
}

static gp_rows *video_open(int fd, const gp_rowsfile_how *how, char err[GP_WHY])
{
    return GP_NULL(is_missing(err));
}
static gp_status video_take(gp_rows *rows, void **own, int64_t row, char err[GP_WHY])
{
    return GP_FAILED;
}
#define video_read NULL
#define video_said NULL
#define video_leave NULL
#define video_close NULL
#endif

static const char *video_why_not(const gp_type *type, const char *path)
{
    return "gpipe does not encode video";
}

const gp_rowsfile gp_video = {
    .name = "video", .magic = { "????ftyp", "\x1a\x45\xdf\xa3", "RIFF????AVI ", "DKIF", "GIF8" },
    .options = { "range", "orientation", "max_pixels", "colors", "stream" },
    .program = "ffmpeg, -v, error, -xerror, -i, FILE, -pix_fmt, rgb24, -f, rawvideo, '-'",
    .is_video = true, .decode_ns = 3,
    .head = video_head, .open = video_open, .take = video_take, .read = video_read, .said = video_said,
    .leave = video_leave, .close = video_close, .why_not = video_why_not,
};
