/* video_input.c - files of video: FFmpeg's libraries, which the first pipeline opens that has a video, what such a file has,
 * whether all of it is there, and its packets, see video.h. A build knows the structures of one major version of the
 * libraries alone, which is part of their names. */
#include "rows_file.h"

#ifdef GP_VIDEO
#include <dlfcn.h>
#include <errno.h>
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
    bool ok, tells;
    char why[GP_WHY];
} library = { .once = PTHREAD_ONCE_INIT };

static _Thread_local bool ours;        /* this thread opens or demuxes a file of a pipeline */

static void hear(void *of, int level, const char *format, va_list args)
{
    if (!gp_video_hears(of, level, format, args) && !gp_video_writes(of, level, format, args) && !ours)
        gp_av.av_log_default_callback(of, level, format, args);
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

bool gp_video_library(char err[GP_WHY])
{
    pthread_once(&library.once, open_library);
    return library.ok || gp_why(err, "%s", library.why);
}

const char *gp_video_error(int error, char text[AV_ERROR_MAX_STRING_SIZE])
{
    gp_av.av_strerror(error, text, AV_ERROR_MAX_STRING_SIZE);
    return text;
}

/* ---- where its bytes are --------------------------------------------- */

static int get_bytes(void *user, uint8_t *to, int n)
{
    gp_video_bytes *b = user;
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
    gp_video_bytes *b = user;
    if (whence & AVSEEK_SIZE)
        return b->size;
    whence &= ~AVSEEK_FORCE;
    offset += whence == SEEK_CUR ? b->at : whence == SEEK_END ? b->size : 0;
    return offset < 0 ? AVERROR(EINVAL) : (b->at = offset);
}

/* A file that names others (a playlist, a movie whose data are elsewhere) does not get them: not by this, nor by a demuxer
 * that opens them itself, as no protocol is allowed (gp_video_open). */
static int open_other(AVFormatContext *s, AVIOContext **io, const char *url, int flags, AVDictionary **options)
{
    return AVERROR(EPERM);
}

/* ---- opening --------------------------------------------------------- */

void gp_video_close(gp_video_input *in)
{
    AVIOContext *io = in->format ? in->format->pb : NULL;
    if (in->format)
        gp_av.avformat_close_input(&in->format);
    if (io)
        gp_av.av_freep(&io->buffer), gp_av.avio_context_free(&io);
}

static bool find_stream(gp_video_input *in, const gp_rowsfile_how *how, char err[GP_WHY])
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

bool gp_video_open(gp_video_input *in, const gp_rowsfile_how *how, char err[GP_WHY])
{
    enum { BUFFER = 1 << 16 };
    static const char NO_PROTOCOL[] = "none";
    char text[AV_ERROR_MAX_STRING_SIZE];
    if (!gp_video_library(err))
        return false;
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
                                    gp_video_error(bad, text)));
    ok = ok && find_stream(in, how, err);
    in->from.error = 0;
    if (!ok)
        gp_video_close(in);
    return ok;
}

/* How many frames an MP4 says that it has, and in `there` how many of them have their data; -1: other containers do not
 * say it. */
static int64_t count(gp_video_input *in, int64_t *there)
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
static int ebml_number(const gp_video_input *in, int64_t at, bool keeps_marker, int64_t *number)
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
static bool is_cut(const gp_video_input *in, char why[GP_WHY])
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
static bool is_whole(gp_video_input *in, const gp_rowsfile_how *how, int64_t *frames, char fault[GP_WHY], char err[GP_WHY])
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

bool gp_video_look(gp_video_input *in, const gp_rowsfile_how *how, gp_look *l, gp_type *whole, char fault[GP_WHY],
                   char err[GP_WHY])
{
    gp_type frame;
    int64_t frames;
    if (!gp_look_at(in->stream, how, l, &frame, err) || !is_whole(in, how, &frames, fault, err))
        return false;
    *whole = (gp_type){ frame.dtype, frame.ndim + 1, { frames } };
    memcpy(whole->dim + 1, frame.dim, sizeof *frame.dim * (size_t)frame.ndim);
    return true;
}

int gp_video_packet(gp_video_input *in, AVPacket *to)
{
    int bad;
    ours = true;
    while ((bad = gp_av.av_read_frame(in->format, to)) >= 0 && to->stream_index != in->stream->index)
        gp_av.av_packet_unref(to);
    ours = false;
    return bad;
}

bool gp_video_tells(void)
{
    return library.tells;
}
#endif
