/* video_output.c - video that is written: its encoder, pictures of frames, packets in a file, see video.h and video_how.h.
 *
 * One thread hands in frames, in their order; the encoder has threads of its own. A packet is in the file when the
 * encoder has made it, some frames later, and all are once the file is finished, be it after an error. */
#include "rows_file.h"

#ifdef GP_VIDEO
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/outfile.h"
#include "color_how.h"
#include "video.h"
#include "video_how.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"     /* AVCodec.pix_fmts, until 62 */

/* ---- which encoder, which pixels ------------------------------------- */

/* Of these several know a codec: the first that is there. */
static const struct { const char *codec, *encoder; } best[] = {
    { "h264", "libx264" }, { "hevc", "libx265" }, { "vp9", "libvpx-vp9" }, { "av1", "libsvtav1" }, { "av1", "libaom-av1" },
};

typedef struct choice {
    const AVOutputFormat *container;
    const AVCodec *encoder;
    const AVPixFmtDescriptor *pixels;
    enum AVPixelFormat format;
    int to, matrix;            /* as gp_color_how has it */
    bool full;                 /* the range of luma and chroma */
} choice;

static bool has_option(const AVCodec *c, const char *name)
{
    return c->priv_class && gp_av.av_opt_find((void *)&c->priv_class, name, NULL, 0, AV_OPT_SEARCH_FAKE_OBJ);
}

static bool is_lossy(const AVCodec *c)
{
    const AVCodecDescriptor *d = gp_av.avcodec_descriptor_get(c->id);
    return !d || d->props & AV_CODEC_PROP_LOSSY;
}

static bool holds(const AVOutputFormat *f, const AVCodec *c)
{
    return gp_av.avformat_query_codec(f, c->id, FF_COMPLIANCE_NORMAL) == 1;
}

enum { LIST = GP_WHY * 5 / 8 };

/* Adds a name to a list, as far as there is room. */
static void list(char to[LIST], const char *name)
{
    const size_t n = strlen(to);
    if (n + strlen(name) + 8 < LIST)
        sprintf(to + n, "%s%s", n ? ", " : "", name);
    else if (n && to[n - 1] != '.')
        strcpy(to + n, ", ...");
}

/* Those that need no hardware. */
static char *encoders(const AVOutputFormat *f, char to[LIST])
{
    const int others = AV_CODEC_CAP_HARDWARE | AV_CODEC_CAP_HYBRID | AV_CODEC_CAP_EXPERIMENTAL;
    void *at = NULL;
    *to = 0;
    for (const AVCodec *c; (c = gp_av.av_codec_iterate(&at));)
        if (gp_av.av_codec_is_encoder(c) && c->type == AVMEDIA_TYPE_VIDEO && !(c->capabilities & others) && holds(f, c))
            list(to, c->name);
    return to;
}

static bool choose_encoder(choice *k, const gp_video_how *how, const char *path, char note[GP_WHY], char err[GP_WHY])
{
    char all[LIST];
    const char *container = gp_video_container(path), *usual = strcmp(container, "webm") ? "h264" : "vp9";
    const char *codec = *how->codec ? how->codec : usual;
    const char *missing = NULL;
    k->container = gp_av.av_guess_format(container, NULL, NULL);
    for (size_t i = 0; i < sizeof best / sizeof *best && !k->encoder; i++)
        if (!strcmp(best[i].codec, codec) && !(k->encoder = gp_av.avcodec_find_encoder_by_name(best[i].encoder)))
            missing = missing ? missing : best[i].encoder;
    const AVCodecDescriptor *d = gp_av.avcodec_descriptor_get_by_name(codec);
    k->encoder = k->encoder ? k->encoder : gp_av.avcodec_find_encoder_by_name(codec);
    k->encoder = k->encoder || !d ? k->encoder : gp_av.avcodec_find_encoder(d->id);
    if (!k->container)
        return gp_why(err, "cannot be written: this libavformat has no '%s'", container);
    if (!k->encoder || k->encoder->type != AVMEDIA_TYPE_VIDEO)
        return gp_why(err, "cannot be encoded: this libavcodec has no encoder '%s'; for such a file it has %s", codec,
                      encoders(k->container, all));
    if (!holds(k->container, k->encoder))
        return gp_why(err, "cannot hold what '%s' makes; for such a file this libavcodec has %s", k->encoder->name,
                      encoders(k->container, all));
    if (*how->preset && !has_option(k->encoder, "preset"))
        return gp_why(err, "cannot be encoded: '%s' has no 'preset'", k->encoder->name);
    if (how->crf >= 0 && !is_lossy(k->encoder))
        return gp_why(err, "cannot be encoded: '%s' has no 'crf', as it is lossless", k->encoder->name);
    const bool quantizer = is_lossy(k->encoder) && !has_option(k->encoder, "crf");
    const double most = quantizer ? 31 : k->encoder->id == AV_CODEC_ID_H264 || k->encoder->id == AV_CODEC_ID_HEVC ? 51 : 63;
    if (how->crf > most || (quantizer && how->crf >= 0 && how->crf < 1))
        return gp_why(err, "cannot be encoded: 'crf' of '%s' is from %d to %g", k->encoder->name, quantizer, most);
    if (missing)
        gp_why(note, "is encoded by '%s', as this libavcodec has no '%s'", k->encoder->name, missing);
    return true;
}

static bool takes(const AVCodec *c, const char *name, choice *k)
{
    const enum AVPixelFormat *p = c->pix_fmts, is = gp_av.av_get_pix_fmt(name);
    while (p && *p >= 0 && *p != is)
        p++;
    if (is == AV_PIX_FMT_NONE || (p && *p < 0))
        return false;
    k->format = is, k->pixels = gp_av.av_pix_fmt_desc_get(is);
    return true;
}

/* Of those that store `to` with so many bits. */
static bool find_pixels(choice *k, int to, const gp_y4m *v)
{
    static const char *const names[][3] = {
        [GP_YUV420] = { "yuv420p", "yuvj420p" }, [GP_YUV422] = { "yuv422p", "yuvj422p" }, [GP_YUV444] = { "yuv444p", "yuvj444p" },
        [GP_RGB] = { "rgb24", "bgr0", "gbrp" }, [GP_GRAY] = { "gray" },
    };
    char name[32];
    k->to = to;
    for (int i = 0; i < 3 && names[to][i]; i++) {
        snprintf(name, sizeof name, v->bits > 8 ? "%s%dle" : "%s", names[to][i], v->bits);
        if (takes(k->encoder, name, k))
            return true;
    }
    return false;
}

/* How pictures are stored: where it is not said, as they are by what is lossless, else as 4:2:0, which all programs read. */
static bool choose_pixels(choice *k, const gp_video_how *how, const gp_y4m *v, char err[GP_WHY])
{
    static const char *const words[] = { [GP_YUV420] = "4:2:0", [GP_YUV422] = "4:2:2", [GP_YUV444] = "4:4:4", [GP_RGB] = "RGB",
                                         [GP_GRAY] = "gray" };
    char all[LIST] = "", name[32];
    const bool jpeg = k->encoder->id == AV_CODEC_ID_MJPEG;     /* it says of neither range nor matrix */
    const int to = how->to >= 0 ? how->to : how->from < GP_RGB || !is_lossy(k->encoder) ? how->from : GP_YUV420;
    bool found = find_pixels(k, to, v) || (how->to < 0 && find_pixels(k, how->from, v));
    if (!found) {
        for (const enum AVPixelFormat *p = k->encoder->pix_fmts; p && *p >= 0; p++)
            list(all, gp_av.av_pix_fmt_desc_get(*p)->name);
        return gp_why(err, "cannot hold %s of %d bits as '%s', which takes %s", words[to], v->bits, k->encoder->name, all);
    }
    k->full = v->range == GP_Y4M_FULL || k->to == GP_RGB || (k->to == GP_GRAY && v->range != GP_Y4M_LIMITED) || (jpeg && v->range != GP_Y4M_LIMITED && how->from >= GP_RGB);
    k->matrix = how->matrix >= 0 ? how->matrix : jpeg ? GP_BT601 : gp_matrix_of_size(v->width, v->height);
    if (jpeg && (!k->full || k->matrix != GP_BT601))
        return gp_why(err, "cannot be encoded: '%s' has the full range and BT.601 alone: say 'range: full' of planes that are so",
                      k->encoder->name);
    if (jpeg && v->bits == 8 && k->to < GP_RGB) {              /* where the format, too, says the range */
        snprintf(name, sizeof name, "yuvj%s", k->pixels->name + 3 + (k->pixels->name[3] == 'j'));
        takes(k->encoder, name, k);
    }
    if ((k->to < GP_YUV444 && v->width % 2) || (k->to == GP_YUV420 && v->height % 2))
        return gp_why(err, "is stored as %s, where colors are of two pixels side by side%s, and has %lld rows of %lld pixels: "
                      "crop or pad them, or set 'subsampling: 4:4:4'", words[k->to], k->to == GP_YUV420 ? " in two rows" : "",
                      (long long)v->height, (long long)v->width);
    return true;
}

static bool choose(choice *k, const gp_rowsfile_how *how, const char *path, char note[GP_WHY], char err[GP_WHY])
{
    *note = 0;
    return gp_video_library(err) && choose_encoder(k, how->encode, path, note, err)
        && choose_pixels(k, how->encode, how->video, err);
}

bool gp_video_fits(const gp_rowsfile_how *how, const char *path, char note[GP_WHY], char err[GP_WHY])
{
    choice k = { .container = NULL };
    return choose(&k, how, path, note, err);
}

/* ---- an open file ---------------------------------------------------- */

typedef struct output {
    gp_rows_out rows;
    gp_video_how how;
    gp_y4m is;
    choice as;
    int fd;
    int64_t at, size;          /* where the next byte goes; of the file */
    int error;                 /* of writing; 0: none */
    AVFormatContext *format;
    AVCodecContext *codec;
    AVStream *stream;
    AVFrame *frame;
    AVPacket *packet;
    gp_growbuf room;
    int64_t n;                 /* frames that were handed in */
    double first; int64_t first_ns;    /* ... the time of the first */
    int64_t last, step;        /* ... of the last one, in units of the encoder's; from the one before it */
    bool begun, broken;        /* the header is there; an error came, behind which nothing follows */
    char says[GP_WHY / 2];
} output;

static _Thread_local output *speaks;   /* this thread has its encoder open */

/* Marks encoders of ours, which do not ask for it. */
static int no_buffer(AVCodecContext *codec, AVFrame *f, int flags)
{
    return AVERROR(EINVAL);
}

/* Keeps the first error that an encoder tells, and what it tells with it; all else that encoders of ours tell is left out. */
bool gp_video_writes(void *of, int level, const char *format, va_list args)
{
    const AVClass *class = of ? *(const AVClass **)of : NULL;
    const AVCodecContext *codec = class && !strcmp(class->class_name, "AVCodecContext") ? of : NULL;
    if (!speaks && (!codec || codec->get_buffer2 != no_buffer))
        return false;
    size_t n = speaks ? strlen(speaks->says) : 0;
    if (speaks && (level <= AV_LOG_ERROR || (n && level <= AV_LOG_INFO)) && n + 1 < sizeof speaks->says) {
        vsnprintf(speaks->says + n, sizeof speaks->says - n, format, args);
        for (char *p = speaks->says + n; (p = strchr(p, '\n'));)
            *p = ' ';
    }
    return true;
}

#if LIBAVFORMAT_VERSION_MAJOR > 60
static int put_bytes(void *user, const uint8_t *from, int n)
#else
static int put_bytes(void *user, uint8_t *from, int n)
#endif
{
    output *o = user;
    char why[GP_WHY];
    if (!gp_put_at(o->fd, from, (size_t)n, o->at, why))
        return o->error = errno ? errno : EIO, AVERROR(o->error);
    o->at += n;
    o->size = o->at > o->size ? o->at : o->size;
    return n;
}

static int64_t seek_to(void *user, int64_t offset, int whence)
{
    output *o = user;
    if (whence & AVSEEK_SIZE)
        return o->size;
    whence &= ~AVSEEK_FORCE;
    offset += whence == SEEK_CUR ? o->at : whence == SEEK_END ? o->size : 0;
    return offset < 0 ? AVERROR(EINVAL) : (o->at = offset);
}

/* A call failed: why. errno is that of the file system, where it was to blame. */
static bool fail(output *o, int bad, const char *who, char err[GP_WHY])
{
    char text[AV_ERROR_MAX_STRING_SIZE];
    o->broken = true;
    for (size_t n = strlen(o->says); n && o->says[n - 1] == ' '; n--)
        o->says[n - 1] = 0;
    errno = o->error ? o->error : bad == AVERROR(ENOMEM) ? ENOMEM : 0;
    return o->error ? gp_why(err, "cannot be written: %s", gp_strerror(o->error))
         : errno    ? gp_why(err, "cannot be encoded: " GP_WHY_MEMORY)
                    : gp_why(err, "cannot be encoded: '%s' says '%s'", who, *o->says ? o->says : gp_video_error(bad, text));
}

static void out_close(output *o)
{
    AVIOContext *io = o->format ? o->format->pb : NULL;
    speaks = o;
    if (o->codec)
        gp_av.avcodec_free_context(&o->codec);
    if (o->frame)
        gp_av.av_frame_free(&o->frame);
    if (o->packet)
        gp_av.av_packet_free(&o->packet);
    if (io)
        gp_av.av_freep(&io->buffer), gp_av.avio_context_free(&io);
    if (o->format)
        gp_av.avformat_free_context(o->format);
    speaks = NULL;
    free(o->room.data);
    free(o);
}

/* ---- opening --------------------------------------------------------- */

static void set_quality(output *o, AVDictionary **with)
{
    enum { GOOD = 2 };                 /* of encoders that count from 1, which is best, to 31 */
    const AVCodec *c = o->as.encoder;
    char text[32];
    if (*o->how.preset)
        gp_av.av_dict_set(with, "preset", o->how.preset, 0);
    snprintf(text, sizeof text, "%.9g", o->how.crf);
    if (o->how.crf >= 0 && has_option(c, "crf")) {
        gp_av.av_dict_set(with, "crf", text, 0);
    } else if (is_lossy(c) && !has_option(c, "crf") && (o->how.crf >= 0 || !o->how.bitrate)) {
        o->codec->flags |= AV_CODEC_FLAG_QSCALE;
        o->codec->global_quality = (int)((o->how.crf >= 0 ? o->how.crf : GOOD) * FF_QP2LAMBDA);
    }
    if (o->how.bitrate)
        o->codec->bit_rate = o->how.bitrate;
    if (!strcmp(c->name, "libx265"))   /* it tells the standard error what it does, by itself */
        gp_av.av_dict_set(with, "x265-params", "log-level=none", 0);
}

static void set_colors(output *o)
{
    static const int matrix[] = { AVCOL_SPC_SMPTE170M, AVCOL_SPC_BT709, AVCOL_SPC_BT2020_NCL };
    static const int siting[] = { [GP_Y4M_JPEG] = AVCHROMA_LOC_CENTER, [GP_Y4M_MPEG2] = AVCHROMA_LOC_LEFT,
                                  [GP_Y4M_PALDV] = AVCHROMA_LOC_TOPLEFT, [GP_Y4M_UNSAID] = AVCHROMA_LOC_UNSPECIFIED };
    o->codec->color_range = o->as.full ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
    o->codec->colorspace = o->as.to < GP_RGB ? matrix[o->as.matrix] : o->as.to == GP_RGB ? AVCOL_SPC_RGB : AVCOL_SPC_UNSPECIFIED;
    if (o->as.to == GP_YUV420)
        o->codec->chroma_sample_location = siting[o->is.siting];
}

/* Frames have their numbers for times, or what they say. */
static bool open_encoder(output *o, char err[GP_WHY])
{
    enum { UNIT = 60000, USUAL = 30 };     /* with UNIT, 25, 30000/1001 and others are whole numbers */
    AVDictionary *with = NULL;
    AVCodecContext *c = o->codec = gp_av.avcodec_alloc_context3(o->as.encoder);
    if (!c)
        return gp_why(err, "cannot be encoded: " GP_WHY_MEMORY);
    const AVRational rate = o->how.times ? (AVRational){ USUAL, 1 } : (AVRational){ (int)o->is.rate[0], (int)o->is.rate[1] };
    c->width = (int)o->is.width, c->height = (int)o->is.height, c->pix_fmt = o->as.format;
    c->framerate = rate;
    c->time_base = o->how.times ? (AVRational){ 1, UNIT } : (AVRational){ rate.den, rate.num };
    c->sample_aspect_ratio = (AVRational){ (int)o->is.aspect[0], o->is.aspect[0] ? (int)o->is.aspect[1] : 1 };
    c->thread_count = 0;               /* as many as there are cores */
    c->get_buffer2 = no_buffer;
    if (o->as.container->flags & AVFMT_GLOBALHEADER)
        c->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    set_colors(o);
    set_quality(o, &with);
    speaks = o, *o->says = 0;
    int bad = gp_av.avcodec_open2(c, o->as.encoder, &with);
    speaks = NULL;
    gp_av.av_dict_free(&with);
    return bad >= 0 || fail(o, bad, o->as.encoder->name, err);
}

static bool open_container(output *o, char err[GP_WHY])
{
    enum { BUFFER = 1 << 16, SECOND_US = 1000000, SECOND_MS = 1000 };
    AVDictionary *with = NULL;
    unsigned char *buffer = gp_av.av_malloc(BUFFER);
    AVIOContext *io = buffer ? gp_av.avio_alloc_context(buffer, BUFFER, 1, o, NULL, put_bytes, seek_to) : NULL;
    AVFormatContext *f = o->format = io ? gp_av.avformat_alloc_context() : NULL;
    if (!f) {
        gp_av.av_freep(&buffer), gp_av.avio_context_free(&io);
        return gp_why(err, "cannot be written: " GP_WHY_MEMORY);
    }
    f->pb = io, f->oformat = o->as.container, f->flags |= AVFMT_FLAG_CUSTOM_IO, f->flush_packets = 1;
    o->stream = gp_av.avformat_new_stream(f, NULL);
    o->packet = gp_av.av_packet_alloc(), o->frame = gp_av.av_frame_alloc();
    bool has = o->stream && o->packet && o->frame;
    int bad = has ? gp_av.avcodec_parameters_from_context(o->stream->codecpar, o->codec) : AVERROR(ENOMEM);
    if (bad < 0)
        return fail(o, bad, o->as.container->name, err);
    o->stream->time_base = o->codec->time_base;
    o->stream->sample_aspect_ratio = o->codec->sample_aspect_ratio;
    if (!o->how.times)
        o->stream->avg_frame_rate = o->codec->framerate;
    const bool mov = !strcmp(f->oformat->name, "mov") || !strcmp(f->oformat->name, "mp4");
    if (o->how.live && mov)
        gp_av.av_dict_set(&with, "movflags", "empty_moov+delay_moov+default_base_moof", 0);
    if (o->how.live)
        gp_av.av_dict_set_int(&with, mov ? "frag_duration" : "cluster_time_limit", mov ? SECOND_US : SECOND_MS, 0);
    speaks = o, *o->says = 0;
    bad = gp_av.avformat_write_header(f, &with);
    speaks = NULL;
    gp_av.av_dict_free(&with);
    o->begun = bad >= 0;
    return o->begun || fail(o, bad, o->as.container->name, err);
}

gp_rows_out *gp_video_create(int fd, const gp_rowsfile_how *how, const gp_type *frame, const char *path, char err[GP_WHY])
{
    char note[GP_WHY];
    output *o = calloc(1, sizeof *o);
    if (!o)
        return GP_NULL(gp_why(err, GP_WHY_MEMORY));
    o->rows.as = &gp_video, o->how = *how->encode, o->is = *how->video, o->fd = fd;
    if (choose(&o->as, how, path, note, err) && open_encoder(o, err) && open_container(o, err))
        return &o->rows;
    out_close(o);
    return NULL;
}

/* ---- frames to packets ----------------------------------------------- */

/* Samples of a component, w of each row, which are `apart` from each other: the other way of what video_picture.c does. */
static void pack(const AVFrame *f, const AVComponentDescriptor *c, int w, int h, int apart, const void *from)
{
    const int size = c->depth > 8 ? 2 : 1;
    for (int y = 0; y < h; y++) {
        uint8_t *to = f->data[c->plane] + (ptrdiff_t)y * f->linesize[c->plane] + c->offset;
        const uint8_t *row = (const uint8_t *)from + (size_t)y * (size_t)w * (size_t)(apart * size);
        if (c->step == size && apart == 1)
            memcpy(to, row, (size_t)w * (size_t)size);
        else if (size == 1)
            for (int x = 0; x < w; x++, to += c->step, row += apart)
                *to = *row;
        else
            for (int x = 0; x < w; x++, to += c->step, row += 2 * apart)
                memcpy(to, row, 2);
    }
}

static bool fill(output *o, const void *from, char err[GP_WHY])
{
    const int w = (int)o->is.width, h = (int)o->is.height, bits = o->is.bits;
    const AVPixFmtDescriptor *d = o->as.pixels;
    const size_t size = bits > 8 ? 2 : 1;
    AVFrame *f = o->frame;
    f->width = w, f->height = h, f->format = o->as.format;
    f->color_range = o->codec->color_range, f->colorspace = o->codec->colorspace;
    f->chroma_location = o->codec->chroma_sample_location;
    f->sample_aspect_ratio = o->codec->sample_aspect_ratio;
    if (gp_av.av_frame_get_buffer(f, 0) < 0 || !gp_growbuf_need(&o->room, 3 * (size_t)w * (size_t)h * size))
        return fail(o, AVERROR(ENOMEM), "", err);
    if (o->as.to == GP_RGB && d->comp[0].step > 3)
        memset(f->buf[0]->data, 0, (size_t)f->buf[0]->size);   /* what stands beside the colors */
    if (o->how.from != o->as.to) {
        const int range = o->as.full ? GP_FULL : GP_LIMITED;
        gp_color_how how = gp_color_how_of(o->how.from, o->as.to, o->as.matrix, range, true, bits, bits);
        gp_color_host(&how, bits > 8, o->room.data, from, h, w);
        from = o->room.data;
    }
    for (int part = 0; part < (o->as.to == GP_GRAY ? 1 : 3); part++) {
        const int across = part && o->as.to != GP_RGB ? w >> d->log2_chroma_w : w;
        const int down = part && o->as.to != GP_RGB ? h >> d->log2_chroma_h : h;
        if (o->as.to == GP_RGB) {
            pack(f, &d->comp[part], w, h, 3, (const char *)from + (size_t)part * size);
            continue;
        }
        pack(f, &d->comp[part], across, down, 1, from);
        from = (const char *)from + (size_t)across * (size_t)down * size;
    }
    return true;
}

/* When the frame is to be shown, in units of the encoder's time. */
static bool when(output *o, int64_t *pts, char err[GP_WHY])
{
    *pts = o->n;
    o->step = o->how.times ? o->codec->time_base.den / o->codec->framerate.num : 1;
    if (!o->how.times)
        return true;
    const gp_filemeta *said = o->rows.said;
    const int i = gp_filemeta_find(said, o->how.times, strlen(o->how.times));
    if (i < 0 || !(said->has & 1u << i))
        return gp_why(err, "cannot be written: the frame's metadata have no '%s': set the option 'frame_rate'", o->how.times);
    const bool clock = !strcmp(o->how.times, "time");
    if (!o->n)
        o->first = said->value[i], o->first_ns = said->time_ns;
    const double s = clock ? (double)(said->time_ns - o->first_ns) / 1e9 : said->value[i] - o->first;
    *pts = fabs(s) < 1e9 ? llround(s * o->codec->time_base.den) : -1;
    if (clock && o->n && *pts <= o->last && fabs(s) < 1e9)
        *pts = o->last + 1;            /* a source that catches up makes several at a time, which is no error */
    o->step = o->n ? *pts - o->last : o->step;
    return !o->n || *pts > o->last
        || gp_why(err, "cannot be written: the frame's '%s' is not later than that of the frame before it: set the option "
                  "'frame_rate'", o->how.times);
}

/* Writes what packets there are; `f` NULL: no frame follows. */
static bool encode(output *o, AVFrame *f, char err[GP_WHY])
{
    speaks = o, *o->says = 0;
    int bad = gp_av.avcodec_send_frame(o->codec, f), wrote = 0;
    while (bad >= 0 && wrote >= 0 && (bad = gp_av.avcodec_receive_packet(o->codec, o->packet)) >= 0) {
        o->packet->stream_index = 0;
        o->packet->duration = o->step; /* that of the last one counts; of others it is from one to the next */
        gp_av.av_packet_rescale_ts(o->packet, o->codec->time_base, o->stream->time_base);
        wrote = gp_av.av_write_frame(o->format, o->packet);
        gp_av.av_packet_unref(o->packet);
    }
    speaks = NULL;
    if (wrote < 0)
        return fail(o, wrote, o->as.container->name, err);
    return bad == AVERROR(EAGAIN) || bad == AVERROR_EOF || fail(o, bad, o->as.encoder->name, err);
}

bool gp_video_append(gp_rows_out *rows, const void *data, int64_t n, char err[GP_WHY])
{
    output *o = (output *)rows;
    int64_t pts;
    errno = 0;
    if (!when(o, &pts, err) || !fill(o, data, err))
        return false;
    o->frame->pts = o->last = pts, o->n++;
    o->frame->quality = o->codec->global_quality;      /* which some encoders ask of each frame */
    bool ok = encode(o, o->frame, err);
    gp_av.av_frame_unref(o->frame);
    return ok;
}

bool gp_video_finish(gp_rows_out *rows, char err[GP_WHY])
{
    output *o = (output *)rows;
    errno = 0;
    bool ok = !o->broken && encode(o, NULL, err);
    speaks = o;
    int bad = gp_av.av_write_trailer(o->format);
    speaks = NULL;
    ok = ok && (bad >= 0 || fail(o, bad, o->as.container->name, err));
    int error = errno;
    out_close(o);
    errno = error;
    return ok;
}
#endif
