/* video_file.c - video of any container and codec that FFmpeg's libraries know, see rows_file.h.
 *
 * They are opened by the first pipeline that has a video. A build knows the structures of one major version alone, which
 * is part of the library's name. Packets are read and decoded in order, by one worker at a time, while the decoder has
 * threads of its own; each worker then makes its frame of a picture that is its own. How many pictures there are shows
 * at the end. Frames that are left out are decoded, too: a packet may give no picture where it is damaged, so that none
 * has a number before those in front of it were decoded. What several threads make of damage differs from run to run: at
 * its first sign one thread decodes the file again from its beginning, and what that makes is handed out. */
#include "rows_file.h"

#ifdef GP_VIDEO
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/dl.h"
#include "picture_file.h"
#include "video.h"

/* ---- the libraries --------------------------------------------------- */

struct gp_av gp_av;

static struct {
    pthread_once_t once;
    bool ok, tells;            /* tells: what decoders say comes to hear() */
    char why[GP_WHY];
} library = { .once = PTHREAD_ONCE_INIT };

static _Thread_local bool ours;        /* this thread opens or demuxes a file of a pipeline */

static int get_room(AVCodecContext *codec, AVFrame *f, int flags);
static void complain(void *video, const char *what);

/* What the libraries say: of our own files it is printed nowhere. Not all decoders return an error, or flag a picture, of
 * which they made up a part; but they say so. */
static void hear(void *of, int level, const char *format, va_list args)
{
    char text[GP_WHY / 2];
    const AVClass *class = of ? *(const AVClass **)of : NULL;
    const AVCodecContext *codec = class && !strcmp(class->class_name, "AVCodecContext") ? of : NULL;
    if (!codec || codec->get_buffer2 != get_room) {
        if (!ours)
            gp_av.av_log_default_callback(of, level, format, args);
        return;
    }
    vsnprintf(text, sizeof text, format, args);
    text[strcspn(text, "\n")] = 0;
    if (level <= AV_LOG_ERROR || !strncmp(text, "concealing ", 11))
        complain(codec->opaque, text);
}

static void open_library(void)
{
    static const char *const names[] = { "libavformat.so." AV_STRINGIFY(LIBAVFORMAT_VERSION_MAJOR), NULL };
#define SYMBOL(name) { #name, &gp_av.name },
    const gp_dl_symbol symbol[] = { GP_AV_FUNCTIONS(SYMBOL) { 0 } };
    gp_errs errs = { .n = 0 };
    void *others = dlopen("libavutil.so." AV_STRINGIFY(LIBAVUTIL_VERSION_MAJOR), RTLD_LAZY | RTLD_NOLOAD);
    library.ok = gp_dl_open(names, symbol, "is a video, which", "install libavformat"
                            AV_STRINGIFY(LIBAVFORMAT_VERSION_MAJOR) " (Debian, Ubuntu), the version that this gpipe was built "
                            "for", (gp_loc){ 0 }, &errs);
    if (!library.ok)
        gp_why(library.why, "%s", errs.e[0].msg);
    else if (!others)                  /* a program that has the library itself may have set its own */
        gp_av.av_log_set_callback(hear), library.tells = true;
    if (others)
        dlclose(others);
}

static const char *said(int error, char text[AV_ERROR_MAX_STRING_SIZE])
{
    gp_av.av_strerror(error, text, AV_ERROR_MAX_STRING_SIZE);
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

/* ---- opening --------------------------------------------------------- */

typedef struct input {
    bytes from;
    AVFormatContext *format;   /* NULL: it is not open */
    AVStream *stream;
    const AVCodec *codec;
} input;

static void close_input(input *in)
{
    AVIOContext *io = in->format ? in->format->pb : NULL;
    if (in->format)
        gp_av.avformat_close_input(&in->format);
    if (io)
        gp_av.av_freep(&io->buffer), gp_av.avio_context_free(&io);
}

static bool find_stream(input *in, const gp_rowsfile_how *how, char err[GP_WHY])
{
    AVFormatContext *f = in->format;
    int n = (int)f->nb_streams, i = how->stream;
    if (i >= n || (i >= 0 && f->streams[i]->codecpar->codec_type != AVMEDIA_TYPE_VIDEO))
        return i >= n ? gp_why(err, "has no stream %d, only %d: 'stream' counts them from 0, as ffmpeg does", i, n)
                      : gp_why(err, "has no pictures in its stream %d", i);
    if (i < 0)
        i = gp_av.av_find_best_stream(f, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);
    if (i < 0)
        return gp_why(err, "has no stream of pictures");
    in->stream = f->streams[i];
    in->codec = gp_av.avcodec_find_decoder(in->stream->codecpar->codec_id);
    for (int k = 0; k < n; k++)
        f->streams[k]->discard = k == i ? AVDISCARD_DEFAULT : AVDISCARD_ALL;
    return in->codec || gp_why(err, "is coded as %s, for which this libavcodec has no decoder",
                               gp_av.avcodec_get_name(in->stream->codecpar->codec_id));
}

/* Reads as many packets as it takes to know the streams. Some are decoded: none that has more pixels than may be. */
static int look_at_streams(AVFormatContext *f, int64_t max_pixels)
{
    const unsigned n = f->nb_streams;
    AVDictionary **each = calloc(n + 1, sizeof *each);
    int bad = each ? 0 : AVERROR(ENOMEM);
    for (unsigned i = 0; i < n && bad >= 0; i++)
        bad = gp_av.av_dict_set_int(&each[i], "max_pixels", max_pixels ? max_pixels : INT_MAX, 0);
    bad = bad < 0 ? bad : gp_av.avformat_find_stream_info(f, n ? each : NULL);
    for (unsigned i = 0; i < n && each; i++)
        gp_av.av_dict_free(&each[i]);
    free(each);
    return bad;
}

/* Opens `in`, whose `from` is said. */
static bool open_input(input *in, const gp_rowsfile_how *how, char err[GP_WHY])
{
    enum { BUFFER = 1 << 16 };
    static const char NO_PROTOCOL[] = "none";
    char text[AV_ERROR_MAX_STRING_SIZE];
    pthread_once(&library.once, open_library);
    if (!library.ok)
        return gp_why(err, "%s", library.why);
    unsigned char *buffer = gp_av.av_malloc(BUFFER);
    AVIOContext *io = buffer ? gp_av.avio_alloc_context(buffer, BUFFER, 0, &in->from, get_bytes, NULL, seek_to) : NULL;
    AVFormatContext *f = io ? gp_av.avformat_alloc_context() : NULL;
    if (!f) {
        gp_av.av_freep(&buffer), gp_av.avio_context_free(&io);
        return gp_why(err, GP_WHY_MEMORY);
    }
    f->pb = io, f->io_open = open_other, f->flags |= AVFMT_FLAG_CUSTOM_IO;
    f->protocol_whitelist = gp_av.av_malloc(sizeof NO_PROTOCOL);      /* freed with the context */
    int bad = AVERROR(ENOMEM);
    ours = true;
    if (f->protocol_whitelist) {
        memcpy(f->protocol_whitelist, NO_PROTOCOL, sizeof NO_PROTOCOL);
        bad = gp_av.avformat_open_input(&f, "", NULL, NULL);
    } else {
        gp_av.avformat_close_input(&f);
    }
    if (bad < 0)
        gp_av.av_freep(&io->buffer), gp_av.avio_context_free(&io);
    else
        in->format = f, bad = look_at_streams(f, how->max_pixels);
    ours = false;
    bool ok = bad >= 0 || (in->from.error ? gp_why(err, "cannot be read: %s", gp_strerror(in->from.error))
                           : gp_why(err, "is no video that libavformat reads, or is cut off or damaged: it says '%s'",
                                    said(bad, text)));
    ok = ok && find_stream(in, how, err);
    in->from.error = 0;
    if (!ok)
        close_input(in);
    return ok;
}

/* How many frames an MP4 says that it has, and in `there` how many of them have their data; -1: other containers do not
 * say it. */
static int64_t count(input *in, int64_t *there)
{
    int entries = gp_av.avformat_index_get_entries_count(in->stream);
    int64_t n = 0;
    *there = 0;
    if (strncmp(in->format->iformat->name, "mov", 3) || in->stream->nb_frames <= 0 || entries <= 0)
        return -1;
    for (int i = 0; i < entries; i++) {
        const AVIndexEntry *e = gp_av.avformat_index_get_entry(in->stream, i);
        if (e->flags & AVINDEX_DISCARD_FRAME)
            continue;
        n++, *there += e->pos <= in->from.size - e->size;
    }
    return n;
}

/* A number of EBML that begins at `at` (RFC 8794, 4): how many bytes it has; 0: none is there. -1 stands for unknown. */
static int ebml_number(const input *in, int64_t at, bool keeps_marker, int64_t *number)
{
    unsigned char p[8];
    int n = 1;
    if (gp_rows_bytes(in->from.fd, in->from.head, at, p, sizeof p) < (int64_t)sizeof p || !*p)
        return 0;
    while (!(*p & 0x80 >> (n - 1)))
        n++;
    const int64_t none = ((int64_t)1 << 7 * n) - 1;
    *number = (int64_t)gp_number(p, n, true);
    if (!keeps_marker)
        *number = (*number & none) == none ? -1 : *number & none;
    return n;
}

/* Are fewer bytes there than the container says there are, as far as it does? */
static bool is_cut(const input *in, char why[GP_WHY])
{
    enum { EBML = 0x1a45dfa3, SEGMENT = 0x18538067 };
    const char *name = in->format->iformat->name;
    const int64_t size = in->from.size;
    unsigned char p[8] = { 0 };
    int64_t claimed = 0, id, at = 0, n;
    int a, b;
    if (!strncmp(name, "matroska", 8)) {
        while ((a = ebml_number(in, at, true, &id)) && (b = ebml_number(in, at + a, false, &n)) && id == EBML)
            at += a + b + n;
        claimed = a && b && id == SEGMENT && n >= 0 ? at + a + b + n : 0;
    } else if (!strcmp(name, "avi") && gp_rows_bytes(in->from.fd, in->from.head, 0, p, sizeof p) == sizeof p) {
        claimed = (int64_t)gp_number(p + 4, 4, false) + 8;
    } else if (!strcmp(name, "gif") && gp_rows_bytes(in->from.fd, in->from.head, size - 1, p, 1) == 1 && *p != ';') {
        return gp_why(why, "does not end as a GIF does: it is cut off, or bytes of another kind follow"), true;
    } else if (!strcmp(name, "mpegts") && size % 188 && size % 192 && size % 204) {
        return gp_why(why, "ends within a packet of its container: it is cut off"), true;
    }
    return claimed > size && !gp_why(why, "is cut off: its header says %lld bytes, %lld are there", (long long)claimed,
                                     (long long)size);
}

/* Has it all that its head says? *frames: how many are there; -1: that is not known. What is missing is a fault of it. */
static bool is_whole(input *in, const gp_rowsfile_how *how, int64_t *frames, char fault[GP_WHY], char err[GP_WHY])
{
    char why[GP_WHY] = "";
    int64_t there, n = count(in, &there);
    *frames = n < 0 ? n : there;
    if (n > there)
        gp_why(why, "is cut off: its header says %lld frames, %lld are there", (long long)n, (long long)there);
    else
        is_cut(in, why);
    memcpy(how->strict && *why ? err : fault, why, GP_WHY);
    return !how->strict || !*why;
}

/* The type of all frames. */
static bool look_at(input *in, const gp_rowsfile_how *how, gp_look *l, gp_type *whole, char fault[GP_WHY], char err[GP_WHY])
{
    gp_type frame;
    int64_t frames;
    if (!gp_look_at(in->stream, how, l, &frame, err) || !is_whole(in, how, &frames, fault, err))
        return false;
    *whole = (gp_type){ frame.dtype, frame.ndim + 1, { frames } };
    memcpy(whole->dim + 1, frame.dim, sizeof *frame.dim * (size_t)frame.ndim);
    return true;
}

static bool video_head(const gp_rows_head *h, const gp_rowsfile_how *how, gp_type *whole, char err[GP_WHY])
{
    input in = { .from = { .fd = -1, .head = h, .size = h->size } };
    char fault[GP_WHY];
    gp_look l;
    bool ok = open_input(&in, how, err) && look_at(&in, how, &l, whole, fault, err);
    close_input(&in);
    return ok;
}

/* ---- decoding -------------------------------------------------------- */

typedef struct video {
    gp_rows rows;
    gp_rowsfile_how how;
    input in;
    gp_look is;
    AVCodecContext *codec;
    AVPacket *packet;
    bool careful;              /* one thread decodes: something is damaged, or would not be told */
    _Atomic bool doubt;        /* the decoder said that something is wrong; if it is careful, */
    char why[GP_WHY];          /* ... what, */
    int64_t fed, bad;          /* ... and which picture is: by its time, as that of the packet before */
    bool over, cut;            /* no picture comes any more; no packet, though there should be */
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
    v->careful |= !library.tells || v->in.codec->id == AV_CODEC_ID_MPEG4;
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
    return bad >= 0 || gp_why(err, "cannot be decoded: the decoder of %s says '%s'", v->in.codec->name, said(bad, text));
}

/* Goes back to the first packet; where something is damaged, one thread decodes. */
static bool begin_again(video *v, char err[GP_WHY])
{
    gp_av.avcodec_free_context(&v->codec);
    close_input(&v->in);
    v->careful |= v->doubt;
    v->in.from.at = v->next = 0;
    v->doubt = false;
    v->cut = false, *v->fault = 0;
    return open_input(&v->in, &v->how, err) && open_decoder(v, err);
}

static void video_close(gp_rows *rows)
{
    video *v = (video *)rows;
    if (v->codec)
        gp_av.avcodec_free_context(&v->codec);
    if (v->packet)
        gp_av.av_packet_free(&v->packet);
    close_input(&v->in);
    free(v);
}

static gp_rows *video_open(int fd, const gp_rowsfile_how *how, char err[GP_WHY])
{
    int64_t size;
    video *v = gp_rows_new(sizeof *v, fd, &size, err);
    if (!v)
        return NULL;
    v->in.from = (bytes){ .fd = fd, .size = size };
    v->rows.in_order = true, v->how = *how;
    if (open_input(&v->in, how, err) && look_at(&v->in, how, &v->is, &v->rows.whole, v->rows.fault, err)
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

static void complain(void *video_, const char *what)
{
    video *v = video_;
    if (v->careful && v->doubt)
        note(v, "a damaged packet", v->why);
    if (v->careful)
        gp_why(v->why, "%s", what), v->bad = v->fed;
    v->doubt = true;
}

/* The next packet of the file. */
static int read_packet(video *v, AVPacket *to)
{
    int bad;
    ours = true;
    while ((bad = gp_av.av_read_frame(v->in.format, to)) >= 0 && to->stream_index != v->in.stream->index)
        gp_av.av_packet_unref(to);
    ours = false;
    if (bad < 0)
        v->cut |= bad != AVERROR(ENOMEM) && (bad != AVERROR_EOF || v->in.from.error);
    return bad;
}

/* Gives the decoder its next packet, or tells it that there is none. False: there is no memory. */
static bool feed(video *v)
{
    char text[AV_ERROR_MAX_STRING_SIZE];
    int bad = read_packet(v, v->packet);
    if (bad == AVERROR(ENOMEM))
        return false;
    if (bad >= 0 && v->packet->flags & AV_PKT_FLAG_CORRUPT)
        note(v, "a packet that is cut off or damaged", said(AVERROR_INVALIDDATA, text));
    v->fed = bad < 0 ? AV_NOPTS_VALUE : v->packet->pts;
    bad = gp_av.avcodec_send_packet(v->codec, bad < 0 ? NULL : v->packet);
    if (bad < 0 && bad != AVERROR_EOF)
        note(v, "a damaged packet", said(bad, text));
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
            note(v, "a damaged packet", said(got, text)), errors++;
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
