/* video_file.c - video of any container and codec that FFmpeg's libraries know, see rows_file.h: how it is decoded.
 *
 * Packets are read and decoded in order, by one worker at a time, while the decoder has threads of its own; each worker
 * then makes its frame of a picture that is its own. How many pictures there are shows at the end. Frames that are left out
 * are decoded, too: a packet may give no picture where it is damaged, so that none has a number before those in front of it
 * were decoded. What several threads make of damage differs from run to run: at its first sign one thread decodes the file
 * again from its beginning, and what that makes is handed out. */
#include <string.h>
#include "rows_file.h"
#include "video_how.h"

#ifdef GP_VIDEO
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "video.h"

static bool video_head(const gp_rows_head *h, const gp_rowsfile_how *how, gp_type *whole, char err[GP_WHY])
{
    gp_video_input in = { .from = { .fd = -1, .head = h, .size = h->size } };
    char fault[GP_WHY];
    gp_look l;
    bool ok = gp_video_open(&in, how, err) && gp_video_look(&in, how, &l, whole, fault, err);
    gp_video_close(&in);
    return ok;
}

typedef struct video {
    gp_rows rows;
    gp_rowsfile_how how;
    gp_video_input in;
    gp_look is;
    AVCodecContext *codec;
    AVPacket *packet;
    bool careful;              /* one thread decodes: something is damaged, or nobody would say so */
    _Atomic bool doubt;        /* the decoder has said that something is wrong; one that is careful keeps */
    char why[GP_WHY];          /* ... what it said, */
    int64_t fed, bad;          /* ... and the time of the packet that it had then; fed: of its last packet */
    bool over, cut;            /* no picture comes any more; the file ended where a packet should have been */
    int64_t next;              /* the number of the decoder's next picture */
    char fault[GP_WHY];        /* what was wrong before it; or "" */
} video;

typedef struct own {           /* a worker's */
    AVFrame *picture;
    gp_growbuf room[2];
    double pts;                /* s; NaN: not known */
    char fault[GP_WHY];
} own;

/* Room for a picture, which is not always filled where packets are damaged: what other pictures left there would differ
 * from run to run. */
static int get_room(AVCodecContext *codec, AVFrame *f, int flags)
{
    int bad = gp_av.avcodec_default_get_buffer2(codec, f, flags);
    for (int i = 0; bad >= 0 && i < AV_NUM_DATA_POINTERS && f->buf[i]; i++)
        memset(f->buf[i]->data, 0, (size_t)f->buf[i]->size);
    return bad;
}

static bool open_decoder(video *v, char err[GP_WHY])
{
    char text[AV_ERROR_MAX_STRING_SIZE];
    /* The threads of libavcodec 59 for MPEG-4 Part 2 abort the process at some damaged packets. */
    v->careful |= !gp_video_tells() || v->in.codec->id == AV_CODEC_ID_MPEG4;
    v->packet = v->packet ? v->packet : gp_av.av_packet_alloc();
    v->codec = v->packet ? gp_av.avcodec_alloc_context3(v->in.codec) : NULL;
    if (!v->codec)
        return gp_why(err, GP_WHY_MEMORY);
    int bad = gp_av.avcodec_parameters_to_context(v->codec, v->in.stream->codecpar);
    v->codec->thread_count = v->careful ? 1 : 0;       /* 0: as many as there are cores */
    v->codec->err_recognition |= v->careful ? 0 : AV_EF_EXPLODE;       /* else some decoders hide damage and go on */
    v->codec->get_buffer2 = get_room, v->codec->opaque = v;
#if LIBAVCODEC_VERSION_MAJOR < 60
    v->codec->thread_safe_callbacks = 1;       /* which others do not ask */
#endif
    v->codec->pkt_timebase = v->in.stream->time_base;
    v->codec->max_pixels = v->how.max_pixels ? v->how.max_pixels : v->codec->max_pixels;
    bad = bad < 0 ? bad : gp_av.avcodec_open2(v->codec, v->in.codec, NULL);
    return bad >= 0 || gp_why(err, "cannot be decoded: the decoder of %s says '%s'", v->in.codec->name, gp_video_error(bad, text));
}

/* Goes back to the first packet; where something is damaged, one thread decodes. */
static bool begin_again(video *v, char err[GP_WHY])
{
    gp_av.avcodec_free_context(&v->codec);
    gp_video_close(&v->in);
    v->careful |= v->doubt;
    v->in.from.at = v->next = 0;
    v->doubt = false;
    v->cut = false, *v->fault = 0;
    return gp_video_open(&v->in, &v->how, err) && open_decoder(v, err);
}

static void video_close(gp_rows *rows)
{
    video *v = (video *)rows;
    if (v->codec)
        gp_av.avcodec_free_context(&v->codec);
    if (v->packet)
        gp_av.av_packet_free(&v->packet);
    gp_video_close(&v->in);
    free(v);
}

static gp_rows *video_open(int fd, const gp_rowsfile_how *how, char err[GP_WHY])
{
    int64_t size;
    video *v = gp_rows_new(sizeof *v, fd, &size, err);
    if (!v)
        return NULL;
    v->in.from = (gp_video_bytes){ .fd = fd, .size = size };
    v->rows.in_order = true, v->how = *how;
    if (gp_video_open(&v->in, how, err) && gp_video_look(&v->in, how, &v->is, &v->rows.whole, v->rows.fault, err)
        && open_decoder(v, err)) {
        v->rows.whole.dim[0] = -1;     /* until the end shows */
        return &v->rows;
    }
    video_close(&v->rows);
    return NULL;
}

static void note(video *v, const char *what, const char *text)
{
    v->doubt |= !v->careful;
    if (!*v->fault)
        gp_why(v->fault, "has %s before frame %lld of the file: the decoder of %s says '%s'", what, (long long)v->next,
               v->in.codec->name, text);
}

static void complain(video *v, const char *what)
{
    if (v->careful && v->doubt)
        note(v, "a damaged packet", v->why);
    if (v->careful)
        gp_why(v->why, "%s", what), v->bad = v->fed;
    v->doubt = true;
}

/* Not all decoders return an error, or flag a picture, of which they made up a part; but they say so. */
bool gp_video_hears(void *of, int level, const char *format, va_list args)
{
    char text[GP_WHY / 2];
    const AVClass *class = of ? *(const AVClass **)of : NULL;
    const AVCodecContext *codec = class && !strcmp(class->class_name, "AVCodecContext") ? of : NULL;
    if (!codec || codec->get_buffer2 != get_room)
        return false;
    vsnprintf(text, sizeof text, format, args);
    text[strcspn(text, "\n")] = 0;
    if (level <= AV_LOG_ERROR || !strncmp(text, "concealing ", 11))
        complain(codec->opaque, text);
    return true;
}

/* Gives the decoder its next packet, or tells it that there is none. False: there is no memory. */
static bool feed(video *v)
{
    char text[AV_ERROR_MAX_STRING_SIZE];
    int bad = gp_video_packet(&v->in, v->packet);
    if (bad == AVERROR(ENOMEM))
        return false;
    v->cut |= bad < 0 && (bad != AVERROR_EOF || v->in.from.error);
    if (bad >= 0 && v->packet->flags & AV_PKT_FLAG_CORRUPT)
        note(v, "a packet that is cut off or damaged", gp_video_error(AVERROR_INVALIDDATA, text));
    v->fed = bad < 0 ? AV_NOPTS_VALUE : v->packet->pts;
    bad = gp_av.avcodec_send_packet(v->codec, bad < 0 ? NULL : v->packet);
    if (bad < 0 && bad != AVERROR_EOF)
        note(v, "a damaged packet", gp_video_error(bad, text));
    gp_av.av_packet_unref(v->packet);
    return bad != AVERROR(ENOMEM);
}

/* The decoder's next picture. GP_END: there is none. Not each packet gives one. */
static gp_status decode(video *v, AVFrame *to, gp_call *c, char err[GP_WHY])
{
    enum { MOST_ERRORS = 1000 };       /* of a decoder that gets nothing more */
    char text[AV_ERROR_MAX_STRING_SIZE];
    int got, errors = 0;
    while ((got = gp_av.avcodec_receive_frame(v->codec, to)) < 0) {
        if (gp_stopping(c))
            return GP_STOPPED;
        if (got == AVERROR_EOF || errors > MOST_ERRORS)
            return GP_END;
        if (got != AVERROR(EAGAIN))
            note(v, "a damaged packet", gp_video_error(got, text)), errors++;
        if (got == AVERROR(ENOMEM) || (got == AVERROR(EAGAIN) && !feed(v)))
            return gp_why(err, "cannot be decoded: " GP_WHY_MEMORY), GP_FAILED;
        if (v->doubt && !v->careful)
            break;
    }
    const bool made_up = got >= 0 && (to->decode_error_flags || to->flags & AV_FRAME_FLAG_CORRUPT);
    if (v->careful && v->doubt && (made_up || v->bad == AV_NOPTS_VALUE || v->bad == to->pts)) {
        v->doubt = false;
        if (!*v->fault)
            gp_why(v->fault, "is damaged in its frame %lld: the decoder of %s says '%s'", (long long)v->next,
                   v->in.codec->name, v->why);
    } else if (made_up && !*v->fault) {
        gp_why(v->fault, "is damaged in its frame %lld, of which the decoder of %s made up a part", (long long)v->next,
               v->in.codec->name);
        v->doubt |= !v->careful;
    }
    return GP_OK;
}

/* Behind the last picture. */
static gp_status end(video *v, char err[GP_WHY])
{
    if (v->over)
        return GP_END;
    v->over = true, v->rows.came = v->next;
    if (v->in.from.error)              /* frames behind it are there, and are not to be lost */
        return gp_why(err, "cannot be read behind its frame %lld: %s", (long long)v->next - 1, gp_strerror(v->in.from.error)),
               GP_FAILED;
    if (v->doubt)
        note(v, "a damaged packet", v->why);
    if (v->cut)
        gp_why(err, "ends behind its frame %lld, where it is cut off or damaged", (long long)v->next - 1);
    else
        memcpy(err, v->fault, GP_WHY);
    if (v->next)
        return *err && v->how.strict ? GP_FAILED : GP_END;
    if (!*err || v->cut)
        gp_why(err, "has no picture that can be decoded");
    return GP_FAILED;
}

static gp_status video_take(gp_rows *rows, void **mine, int64_t row, gp_call *c, char err[GP_WHY])
{
    video *v = (video *)rows;
    own *o = *mine;
    if (!o && !(o = *mine = calloc(1, sizeof *o)))
        return gp_why(err, GP_WHY_MEMORY), GP_FAILED;
    if (!o->picture && !(o->picture = gp_av.av_frame_alloc()))
        return gp_why(err, GP_WHY_MEMORY), GP_FAILED;
    gp_status s = v->over ? GP_END : GP_OK;
    while (s == GP_OK && v->next <= row) {
        s = decode(v, o->picture, c, err);
        if (v->doubt && !v->careful)
            s = begin_again(v, err) ? GP_OK : GP_FAILED;
        else if (s == GP_OK && v->next++ < row)
            *v->fault = 0;             /* it is left out */
    }
    v->over |= s == GP_FAILED;
    if (s != GP_OK)
        return s == GP_END ? end(v, err) : s;
    const AVRational unit = v->in.stream->time_base;
    const int64_t at = o->picture->best_effort_timestamp;
    o->pts = at == AV_NOPTS_VALUE ? NAN : (double)at * unit.num / unit.den;
    memcpy(o->fault, v->fault, sizeof o->fault);
    *v->fault = 0;
    if (*o->fault && v->how.strict)
        return memcpy(err, o->fault, GP_WHY), GP_FAILED;
    return gp_look_alike(&v->is, o->picture, row, err) ? GP_OK : GP_FAILED;
}

static bool video_read(gp_rows *rows, void **mine, int64_t first, int64_t n, void *to, char err[GP_WHY])
{
    own *o = *mine;
    if (!gp_look_frame(&((const video *)rows)->is, o->picture, o->room, to, err))
        return false;
    memcpy(err, o->fault, GP_WHY);
    return true;
}

static bool video_said(gp_rows *rows, void *mine, int64_t row, gp_filemeta *to, char err[GP_WHY])
{
    const own *o = mine;
    if (o->pts == o->pts)
        gp_filemeta_set(to, "pts", o->pts);
    return true;
}

static void video_leave(void *mine)
{
    own *o = mine;
    if (o->picture)
        gp_av.av_frame_free(&o->picture);
    free(o->room[0].data);
    free(o->room[1].data);
    free(o);
}

#else                                  /* there were no headers of libavformat when gpipe was built */

static bool is_missing(char err[GP_WHY])
{
    return gp_why(err, "is a video, and this gpipe was built without libavformat: install libavformat-dev (Debian, Ubuntu), "
                  "version 59 or later, and build it again, or let a program decode it, as in 'command: [ffmpeg, -i, "
                  "FILE, -f, yuv4mpegpipe, \"-\"]' with 'format: y4m'");
}

static bool video_head(const gp_rows_head *h, const gp_rowsfile_how *how, gp_type *whole, char err[GP_WHY])
{
    return is_missing(err);
}

static gp_rows *video_open(int fd, const gp_rowsfile_how *how, char err[GP_WHY])
{
    return GP_NULL(is_missing(err));
}
static gp_status video_take(gp_rows *rows, void **own, int64_t row, gp_call *c, char err[GP_WHY])
{
    return GP_FAILED;
}
#define video_read NULL
#define video_said NULL
#define video_leave NULL
#define video_close NULL

static bool gp_video_fits(const gp_rowsfile_how *how, const char *path, char note[GP_WHY], char err[GP_WHY])
{
    return gp_why(err, "is a video, and this gpipe was built without libavformat: install libavformat-dev (Debian, Ubuntu), "
                  "version 59 or later, and build it again, or let a program encode it, as in 'command: [ffmpeg, -i, \"-\", "
                  "FILE]' with 'format: y4m'");
}

static gp_rows_out *gp_video_create(int fd, const gp_rowsfile_how *how, const gp_type *frame, const char *path, char err[GP_WHY])
{
    return GP_NULL(gp_video_fits(how, path, err, err));
}
#define gp_video_append NULL
#define gp_video_finish NULL
#endif

const char *gp_video_container(const char *path)
{
    static const char *const names[][2] = { { ".mp4", "mp4" }, { ".m4v", "mp4" }, { ".mov", "mov" }, { ".mkv", "matroska" },
                                            { ".webm", "webm" } };
    const char *dot = strrchr(path, '.');
    size_t i = 0;
    while (dot && i < 5 && strcasecmp(dot, names[i][0]))
        i++;
    return dot && i < 5 ? names[i][1] : NULL;
}

static const char *video_why_not(const gp_type *type, const char *path)
{
    return type->dtype == GP_U8 || type->dtype == GP_U16 ? NULL : "video holds u8 or u16";
}

const gp_rowsfile gp_video = {
    .name = "video", .magic = { "????ftyp", "\x1a\x45\xdf\xa3", "RIFF????AVI ", "DKIF", "GIF8" },
    .options = { "range", "orientation", "max_pixels", "colors", "stream", "codec", "crf", "preset", "bitrate", "matrix",
                 "frame_rate", "subsampling", "pixel_aspect", "siting", "bits" },
    .program = "ffmpeg, -v, error, -xerror, -i, FILE, -pix_fmt, rgb24, -f, rawvideo, '-'",
    .is_video = true, .decode_ns = 3, .encode_ns = { [3] = 5 },
    .head = video_head, .open = video_open, .take = video_take, .read = video_read, .said = video_said,
    .leave = video_leave, .close = video_close, .why_not = video_why_not,
    .fits = gp_video_fits, .create = gp_video_create, .append = gp_video_append, .finish = gp_video_finish,
};
