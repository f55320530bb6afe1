/* sound_file.c - recordings: WAV (with RF64), FLAC, Ogg/Vorbis and AIFF, see rows_file.h.
 *
 * Through libsndfile, which is opened by the first pipeline that has a recording. A row has a sample of each channel.
 * One of its handles is for one thread: each worker has its own over the one open file, with its own place to read at.
 * A format that cannot seek to the very sample (Vorbis) is read in order, and so is one in which seeking takes long, and
 * where what can be read behind damage depends on how one came there (FLAC). */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/dl.h"
#include "base/plural.h"
#include "rows_file.h"

/* ---- the library ----------------------------------------------------- */

/* What is used of <sndfile.h>, whose ABI has not changed since version 1.0. */
typedef struct sf_info { int64_t rows; int rate, channels, format, sections, seekable; } sf_info;
typedef struct sf_io {
    int64_t (*size)(void *user);
    int64_t (*seek)(int64_t offset, int whence, void *user);
    int64_t (*read)(void *to, int64_t n, void *user);
    int64_t (*write)(const void *from, int64_t n, void *user);
    int64_t (*tell)(void *user);
} sf_io;
enum { SF_READ = 0x10, SF_WRITE = 0x20, SF_CONTAINER = 0x0fff0000, SF_CODEC = 0xffff };
enum { SF_UPDATE_HEADER = 0x1060, SF_PEAK_CHUNK = 0x1050, SF_VBR_QUALITY = 0x1300 };
enum { SF_WAV = 0x010000, SF_AIFF = 0x020000, SF_WAVEX = 0x130000, SF_FLAC = 0x170000, SF_OGG = 0x200000,
       SF_RF64 = 0x220000 };
enum { SF_S8 = 1, SF_16, SF_24, SF_32, SF_U8, SF_FLOAT, SF_DOUBLE, SF_ULAW = 0x10, SF_ALAW, SF_VORBIS = 0x60 };

typedef struct sf_library {
    void *(*open)(sf_io *io, int mode, sf_info *info, void *user);
    int (*close)(void *file);
    int64_t (*seek)(void *file, int64_t rows, int whence);
    const char *(*why)(void *file);
    int (*check)(const sf_info *info);
    int (*command)(void *file, int command, void *data, int bytes);
    int64_t (*get[GP_NDTYPES])(void *file, void *to, int64_t rows);
    int64_t (*put[GP_NDTYPES])(void *file, const void *from, int64_t rows);
} sf_library;

static struct {
    pthread_once_t once;
    sf_library call;
    bool ok;
    char why[GP_WHY];
    pthread_mutex_t opening;   /* why a file cannot be opened, the library keeps for the whole process */
} library = { .once = PTHREAD_ONCE_INIT, .opening = PTHREAD_MUTEX_INITIALIZER };

static void open_library(void)
{
    static const char *const names[] = { "libsndfile.so.1", "libsndfile.so", NULL };
    sf_library *l = &library.call;
    const gp_dl_symbol symbol[] = {
        { "sf_open_virtual", &l->open },
        { "sf_close", &l->close },
        { "sf_seek", &l->seek },
        { "sf_strerror", &l->why },
        { "sf_format_check", &l->check },
        { "sf_command", &l->command },
        { "sf_readf_short", &l->get[GP_I16] },
        { "sf_readf_int", &l->get[GP_I32] },
        { "sf_readf_float", &l->get[GP_F32] },
        { "sf_readf_double", &l->get[GP_F64] },
        { "sf_writef_short", &l->put[GP_I16] },
        { "sf_writef_int", &l->put[GP_I32] },
        { "sf_writef_float", &l->put[GP_F32] },
        { "sf_writef_double", &l->put[GP_F64] },
        { 0 },
    };
    gp_errs errs = { .n = 0 };
    library.ok = gp_dl_open(names, symbol, "is a recording, which", "install libsndfile1 (Debian, Ubuntu)",
                            (gp_loc){ 0 }, &errs);
    if (!library.ok)
        gp_why(library.why, "%s", errs.e[0].msg);
}

/* NULL: the library is not there. */
static const sf_library *get_library(char err[GP_WHY])
{
    pthread_once(&library.once, open_library);
    if (!library.ok)
        gp_why(err, "%s", library.why);
    return library.ok ? &library.call : NULL;
}

/* ---- where its bytes are --------------------------------------------- */

typedef struct source {
    int fd;                    /* -1: there is none (any more) */
    const char *head;          /* not NULL: only the first n bytes can be read */
    size_t n;
    int64_t size, at;
    int error;                 /* of reading or writing; 0: none */
} source;

static int64_t size_of(void *user)
{
    return ((source *)user)->size;
}

static int64_t tell(void *user)
{
    return ((source *)user)->at;
}

static int64_t seek_to(int64_t offset, int whence, void *user)
{
    source *s = user;
    s->at = offset + (whence == SEEK_SET ? 0 : whence == SEEK_CUR ? s->at : s->size);
    return s->at;
}

static int64_t get_bytes(void *to, int64_t n, void *user)
{
    source *s = user;
    int64_t got = 0;
    if (s->at < 0)
        return 0;
    if (s->head && s->at < (int64_t)s->n) {
        got = (int64_t)s->n - s->at < n ? (int64_t)s->n - s->at : n;
        memcpy(to, s->head + s->at, (size_t)got);
    } else if (!s->head && s->fd >= 0) {
        got = gp_read_at(s->fd, to, (size_t)n, s->at);
        if (got < 0)
            s->error = errno, got = 0;
    }
    s->at += got;
    return got;
}

/* All of it or nothing, so that the library counts no rows that are not there. After an error nothing is written any
 * more. */
static int64_t put_bytes(const void *from, int64_t n, void *user)
{
    source *s = user;
    int64_t put = 0;
    while (put < n && !s->error) {
        ssize_t k = pwrite(s->fd, (const char *)from + put, (size_t)(n - put), (off_t)(s->at + put));
        if (k < 0 && errno != EINTR)
            s->error = errno;
        put += k > 0 ? k : 0;
    }
    if (s->error) {
        int cut = put && s->at == s->size ? ftruncate(s->fd, (off_t)s->at) : 0;
        (void)cut;                     /* the header says how much there is */
        return 0;
    }
    s->at += put;
    s->size = s->at > s->size ? s->at : s->size;
    return put;
}

static sf_io io = { size_of, seek_to, get_bytes, put_bytes, tell };

/* NULL: an error. */
static void *open_handle(const sf_library *l, source *s, int mode, sf_info *info, char err[GP_WHY])
{
    pthread_mutex_lock(&library.opening);
    void *file = l->open(&io, mode, info, s);
    if (!file && !s->error)
        gp_why(err, "%s: libsndfile says '%s'", mode == SF_WRITE ? "cannot be written"
               : "is not a recording that gpipe reads (WAV, FLAC, Ogg/Vorbis, AIFF)", l->why(NULL));
    pthread_mutex_unlock(&library.opening);
    if (s->error)
        gp_why(err, "cannot be %s: %s", mode == SF_READ ? "read" : "written", strerror(s->error));
    if (file && s->error)
        l->close(file);
    return s->error ? NULL : file;
}

/* ---- reading --------------------------------------------------------- */

typedef struct sound {
    gp_rows rows;
    source from;
    void *file;                /* where it is read in order: the one handle; at */
    int64_t next;              /* this row; */
    bool broken;               /* no further row can be read */
} sound;

typedef struct handle {        /* a worker's */
    source from;
    void *file;
    int64_t next;              /* the row that it is at */
} handle;

static uint64_t number(const unsigned char *p, int bytes, bool big)
{
    uint64_t x = 0;
    for (int i = 0; i < bytes; i++)
        x = x << 8 | p[big ? i : bytes - 1 - i];
    return x;
}

/* The size of data that nobody knew when the header was written: up to the end of the file. */
static bool is_open_end(uint64_t size)
{
    return size >= 0xffffff00 || (size >= 0x7ffff000 && size <= 0x80000000);
}

/* Of a page of Ogg, whose own checksum is 0: polynomial 0x04c11db7, from 0, the highest bit first (RFC 3533, 6). */
static uint32_t ogg_checksum(const unsigned char *p, size_t n)
{
    uint32_t part[16], crc = 0;
    for (uint32_t i = 0; i < 16; i++) {
        part[i] = i << 28;
        for (int k = 0; k < 4; k++)
            part[i] = part[i] << 1 ^ (part[i] >> 31 ? 0x04c11db7 : 0);
    }
    for (size_t i = 0; i < n; i++) {
        crc ^= (uint32_t)p[i] << 24;
        crc = crc << 4 ^ part[crc >> 28];
        crc = crc << 4 ^ part[crc >> 28];
    }
    return crc;
}

/* The library goes on behind a page that is damaged or missing as if there had been none: rows would lie too early. */
static bool is_whole_ogg(source s, char err[GP_WHY])
{
    enum { FIXED = 27, LAST = 4, MOST = FIXED + 255 + 255 * 255 };
    unsigned char *p = malloc(MOST);
    bool ok = p || gp_why(err, GP_WHY_MEMORY), last = false, all = !s.head || (int64_t)s.n == s.size;
    uint64_t serial = 0;
    for (int64_t at = 0, page = 0; ok && at < s.size; page++) {
        s.at = at;
        int64_t got = get_bytes(p, MOST, &s), n = FIXED;
        if (!all && at + MOST > (int64_t)s.n)
            break;                     /* the rest is looked at when it is open */
        for (int i = 0; got >= FIXED && i < p[26]; i++)
            n += 1 + (FIXED + i < got ? p[FIXED + i] : 0);
        bool whole = got >= n && !memcmp(p, "OggS", 4);
        uint64_t sum = whole ? number(p + 22, 4, false) : 0;
        if (whole)
            memset(p + 22, 0, 4);
        if (last)
            ok = gp_why(err, "holds several recordings, one behind the other, or goes on behind its end");
        else if (!whole || ogg_checksum(p, (size_t)n) != sum)
            ok = gp_why(err, "is cut off or damaged at byte %lld", (long long)at);
        else if (number(p + 18, 4, false) != (uint64_t)page || (page && number(p + 14, 4, false) != serial))
            ok = gp_why(err, "lacks a page before byte %lld, or holds several streams", (long long)at);
        if (ok)
            serial = number(p + 14, 4, false), last = p[5] & LAST, at += n;
    }
    free(p);
    return ok && (last || !all || gp_why(err, "is cut off: its last page is not there"));
}

/* Is this how a chunk begins, of which all is there? */
static bool is_chunk(const unsigned char *p, int64_t there, bool big)
{
    for (int i = 0; i < 4; i++)
        if (p[i] < 0x20 || p[i] > 0x7e)
            return false;
    return there >= 8 && number(p + 4, 4, big) <= (uint64_t)there - 8;
}

/* The library takes data that are cut off for a shorter recording: in files of chunks (WAV, AIFF) this is seen here. */
static bool is_whole(source s, char err[GP_WHY])
{
    unsigned char p[24];
    uint64_t size, ds64 = 0;
    s.at = 0;
    if (get_bytes(p, 12, &s) < 12)
        return true;
    if (!memcmp(p, "ID3", 3))
        return gp_why(err, "begins with an ID3 tag, which a recording that gpipe reads has not");
    if (!memcmp(p, "OggS", 4))
        return is_whole_ogg(s, err);
    bool big = !memcmp(p, "FORM", 4);
    if (!big && memcmp(p, "RIFF", 4) && memcmp(p, "RF64", 4))
        return true;
    for (int64_t at = 12; at < s.size; at += 8 + (int64_t)(size + size % 2)) {
        s.at = at;
        int64_t got = get_bytes(p, sizeof p, &s);
        if (got < 8)
            return true;
        size = number(p + 4, 4, big);
        if (!memcmp(p, "ds64", 4) && got == sizeof p)
            ds64 = number(p + 16, 8, false);
        if (memcmp(p, big ? "SSND" : "data", 4))
            continue;
        size = size == UINT32_MAX && ds64 ? ds64 : size;
        if (!size && !ds64 && got > 8 && !is_chunk(p + 8, got < 16 ? 0 : s.size - at - 8, big))
            return gp_why(err, "says that it holds no data, and %lld bytes follow: it was never finished",
                          (long long)(s.size - at - 8));
        uint64_t there = (uint64_t)(s.size - at - 8);
        return size <= there || (!ds64 && is_open_end(size))
            || gp_why(err, "is cut off: its header says %llu bytes of data, %llu are there", (unsigned long long)size,
                      (unsigned long long)there);
    }
    return true;
}

/* Of which type its samples are: the smallest that has all their bits. */
static gp_dtype stored_as(int format)
{
    switch (format & SF_CODEC) {
    case SF_24: case SF_32: return GP_I32;
    case SF_FLOAT: case SF_VORBIS: return GP_F32;
    case SF_DOUBLE: return GP_F64;
    default: return GP_I16;
    }
}

static const gp_rowsfile *format_of(int format)
{
    switch (format & SF_CONTAINER) {
    case SF_WAV: case SF_WAVEX: case SF_RF64: return &gp_wav;
    case SF_AIFF: return &gp_aiff;
    case SF_FLAC: return &gp_flac;
    case SF_OGG: return (format & SF_CODEC) == SF_VORBIS ? &gp_ogg : NULL;
    default: return NULL;
    }
}

/* What the library found -> the type of the whole. */
static bool take_info(const sf_info *info, const gp_rowsfile_how *how, gp_dtype dtype, gp_type *whole, char err[GP_WHY])
{
    gp_dtype stored = stored_as(info->format);
    const gp_rowsfile *is = format_of(info->format), *want = gp_rowsfile_of(how->format);
    if (!is || (want && is != want))
        return gp_why(err, "is not a %s file", want ? want->name : "WAV, FLAC, Ogg/Vorbis or AIFF");
    if (how->sample_rate && info->rate != how->sample_rate)
        return gp_why(err, "has a sample rate of %d Hz, not %lld", info->rate, (long long)how->sample_rate);
    if (!dtype)
        dtype = stored;
    if (!library.call.get[dtype])
        return gp_why(err, "holds %s, and 'buffers' declares %s: recordings are read as i16, i32, f32 or f64; another "
                      "type is made by a 'cast' stage behind this one", gp_dtype_name(stored), gp_dtype_name(dtype));
    if (dtype < GP_F16 && (stored >= GP_F16 || dtype < stored))
        return gp_why(err, "holds %s, of which %s has not all bits: declare %s, and put a 'cast' stage behind this one",
                      stored == GP_I32 ? "samples of 24 or 32 bits" : "floats", gp_dtype_name(dtype),
                      gp_dtype_name(stored));
    *whole = (gp_type){ dtype, info->channels > 1 ? 2 : 1, { info->rows, info->channels } };
    if (whole->ndim == 1)
        whole->dim[1] = 0;
    return true;
}

static bool has_magic(const gp_rows_head *h)
{
    static const char *const magic[] = { "RIFF", "RF64", "FORM", "fLaC", "OggS" };
    for (size_t i = 0; i < sizeof magic / sizeof *magic; i++)
        if (h->n >= 4 && !memcmp(h->data, magic[i], 4))
            return true;
    return false;
}

static bool sound_head(const gp_rows_head *h, const gp_rowsfile_how *how, gp_dtype dtype, gp_type *whole,
                       char err[GP_WHY])
{
    const sf_library *l = get_library(err);
    source s = { .fd = -1, .head = h->data, .n = h->n, .size = h->size };
    sf_info info = { 0 };
    void *file = l ? open_handle(l, &s, SF_READ, &info, err) : NULL;
    if (l && !file && (int64_t)h->n < h->size && has_magic(h)) {       /* much stands before the data */
        *whole = (gp_type){ .ndim = 0 };
        return true;
    }
    if (!file)
        return false;
    bool ok = take_info(&info, how, dtype, whole, err) && is_whole(s, err);
    if (ok && info.rows == INT64_MAX)  /* Ogg has it at its end */
        whole->dim[0] = -1;
    l->close(file);
    return ok;
}

static void sound_close(gp_rows *f)
{
    sound *s = (sound *)f;
    if (s->file)
        library.call.close(s->file);
    free(s);
}

/* May rows be read in any order, each the same as if all before were, and in little time? */
static bool finds_rows(const sf_info *info)
{
    int codec = info->format & SF_CODEC;
    return info->seekable && (info->format & SF_CONTAINER) != SF_FLAC && ((codec >= SF_S8 && codec <= SF_DOUBLE) || codec == SF_ULAW || codec == SF_ALAW);
}

static gp_rows *sound_open(int fd, const gp_rowsfile_how *how, gp_dtype dtype, char err[GP_WHY])
{
    const sf_library *l = get_library(err);
    struct stat st;
    sf_info info = { 0 };
    if (!l)
        return NULL;
    sound *s = calloc(1, sizeof *s);
    if (!s || fstat(fd, &st)) {
        gp_why(err, "cannot be read: %s", strerror(errno));
        free(s);
        return NULL;
    }
    s->from = (source){ .fd = fd, .size = st.st_size };
    s->file = open_handle(l, &s->from, SF_READ, &info, err);
    bool ok = s->file && take_info(&info, how, dtype, &s->rows.whole, err) && is_whole(s->from, err);
    if (ok && info.rows == INT64_MAX)
        ok = gp_why(err, "does not say how long it is: it is cut off, or was never finished");
    if (!ok) {
        sound_close(&s->rows);
        return NULL;
    }
    s->rows.said = (gp_said){ .n = how->nkeys, .key = how->key };
    gp_said_note(&s->rows.said, "sample_rate", info.rate);
    s->rows.in_order = !finds_rows(&info);
    if (!s->rows.in_order)
        l->close(s->file), s->file = NULL;
    return &s->rows;
}

/* The calling worker's handle. */
static handle *own_handle(const sound *s, void **own, char err[GP_WHY])
{
    sf_info info = { 0 };
    handle *h = *own;
    if (h)
        return h;
    if (!(h = calloc(1, sizeof *h))) {
        gp_why(err, GP_WHY_MEMORY);
        return NULL;
    }
    h->from = (source){ .fd = s->from.fd, .size = s->from.size };
    if ((h->file = open_handle(&library.call, &h->from, SF_READ, &info, err)))
        return *own = h;
    free(h);
    return NULL;
}

static bool get_rows(void *file, source *from, const gp_type *whole, int64_t first, int64_t n, void *to,
                     char err[GP_WHY])
{
    int64_t got = library.call.get[whole->dtype](file, to, n);
    if (got == n && !from->error)
        return true;
    if (from->error)
        return gp_why(err, "cannot be read: %s", strerror(from->error));
    return gp_why(err, "is cut off or damaged: %lld rows expected at row %lld, %lld found", (long long)n,
                  (long long)first, (long long)got);
}

/* Behind damage: a new handle at this row, where it can be found to the sample. */
static bool begin_again(sound *s, int64_t first)
{
    char why[GP_WHY];
    sf_info info = { 0 };
    if (s->file)
        library.call.close(s->file);
    s->from.at = 0, s->from.error = 0;
    s->file = open_handle(&library.call, &s->from, SF_READ, &info, why);
    s->broken = !s->file || (info.format & SF_CONTAINER) != SF_FLAC
             || library.call.seek(s->file, first, SEEK_SET) != first;
    return !s->broken;
}

static bool sound_read(gp_rows *f, void **own, int64_t first, int64_t n, void *to, char err[GP_WHY])
{
    sound *s = (sound *)f;
    if (f->in_order) {
        if ((s->broken || s->next != first) && !begin_again(s, first))
            return gp_why(err, "is cut off or damaged before row %lld", (long long)first);
        s->next = first + n;
        s->broken = !get_rows(s->file, &s->from, &f->whole, first, n, to, err);
        return !s->broken;
    }
    handle *h = own_handle(s, own, err);
    if (!h)
        return false;
    if (h->next != first && library.call.seek(h->file, first, SEEK_SET) != first) {
        h->next = -1;
        return gp_why(err, "is cut off or damaged: it has no row %lld", (long long)first);
    }
    bool ok = get_rows(h->file, &h->from, &f->whole, first, n, to, err);
    h->next = ok ? first + n : -1;
    h->from.error = 0;
    return ok;
}

static void sound_leave(void *own)
{
    handle *h = own;
    h->from.fd = -1;
    library.call.close(h->file);
    free(h);
}

/* ---- writing --------------------------------------------------------- */

typedef struct recording {
    gp_rows_out out;
    source to;
    void *file;
    gp_dtype dtype;
    int channels, container;
    int64_t row_bytes;
} recording;

/* The most bytes of a file of chunks, whose header counts them in 32 bits, and less than its header. */
static const int64_t chunks_max = UINT32_MAX - 4096;

static int container_of(const gp_rowsfile *as, const char *path)
{
    const char *dot = strrchr(path, '.');
    if (as == &gp_wav)
        return dot && !strcasecmp(dot, ".rf64") ? SF_RF64 : SF_WAV;
    return as == &gp_flac ? SF_FLAC : as == &gp_ogg ? SF_OGG : SF_AIFF;
}

/* FLAC has 24 bits at most. */
static int codec_of(int container, gp_dtype dtype)
{
    switch (dtype) {
    case GP_I16: return SF_16;
    case GP_I32: return container == SF_FLAC ? SF_24 : SF_32;
    case GP_F32: return container == SF_OGG ? SF_VORBIS : SF_FLOAT;
    default: return SF_DOUBLE;
    }
}

/* A chunk that libsndfile adds to floats has the time of day. Without it the header of an AIFF is shorter; what is left
 * of the longer one would count as rows. */
static void without_peak(recording *r)
{
    library.call.command(r->file, SF_PEAK_CHUNK, NULL, 0);
    if (r->container == SF_AIFF && r->to.at < r->to.size && !ftruncate(r->to.fd, (off_t)r->to.at))
        r->to.size = r->to.at;
}

static gp_rows_out *sound_create(int fd, const gp_rowsfile_how *how, const gp_type *frame, const char *path,
                                 char err[GP_WHY])
{
    const sf_library *l = get_library(err);
    recording *r = l ? calloc(1, sizeof *r) : NULL;
    if (!r) {
        if (l)
            gp_why(err, GP_WHY_MEMORY);
        return NULL;
    }
    *r = (recording){ .out.as = gp_rowsfile_of(how->format), .to.fd = fd, .dtype = frame->dtype,
                      .channels = frame->ndim > 1 ? (int)frame->dim[1] : 1 };
    r->container = container_of(r->out.as, path);
    r->row_bytes = (int64_t)gp_dtype_size(r->dtype) * r->channels;
    sf_info info = { .rate = (int)how->sample_rate, .channels = r->channels,
                     .format = r->container | codec_of(r->container, r->dtype) };
    if (!l->check(&info))
        gp_why(err, "cannot be written: %s has no form with %d channel%s at %d Hz", r->out.as->name, r->channels,
               gp_plural(r->channels), info.rate);
    else
        r->file = open_handle(l, &r->to, SF_WRITE, &info, err);
    if (!r->file) {
        free(r);
        return NULL;
    }
    double quality = how->quality / 100.0;
    without_peak(r);
    l->command(r->file, SF_VBR_QUALITY, &quality, sizeof quality);
    return &r->out;
}

static bool not_written(const recording *r, char err[GP_WHY])
{
    errno = r->to.error;
    return errno ? gp_why(err, "cannot be written: %s", strerror(errno))
                 : gp_why(err, "cannot be written: libsndfile says '%s'", library.call.why(r->file));
}

/* Has each sample 24 bits? */
static bool are_24_bits(const int32_t *p, int64_t n)
{
    int32_t all = 0;
    for (int64_t i = 0; i < n; i++)
        all |= p[i];
    return !(all & 0xff);
}

static bool sound_append(gp_rows_out *o, const void *rows, int64_t n, char err[GP_WHY])
{
    enum { MOST = 4096 };              /* the Vorbis encoder has a block's memory on its stack */
    recording *r = (recording *)o;
    bool chunks = r->container == SF_WAV || r->container == SF_AIFF;
    errno = 0;
    if (chunks && n > (chunks_max - r->to.size) / r->row_bytes)
        return gp_why(err, "cannot be written: it would be larger than 4 GiB, the most that %s holds: %s", o->as->name,
                      r->container == SF_WAV ? "name it .rf64, or give each frame a file" : "give each frame a file");
    if (r->container == SF_FLAC && r->dtype == GP_I32 && !are_24_bits(rows, n * r->channels))
        return gp_why(err, "cannot be written: FLAC holds 24 bits of a sample, the upper ones of an i32, and samples "
                      "of this frame have more: name it .wav, or 'cast' to i16");
    for (int64_t i = 0, k; i < n; i += k) {
        k = r->container == SF_OGG && n - i > MOST ? MOST : n - i;
        if (library.call.put[r->dtype](r->file, (const char *)rows + i * r->row_bytes, k) != k || r->to.error)
            return not_written(r, err);
    }
    if (chunks || r->container == SF_RF64)     /* so that it is a recording whatever comes */
        library.call.command(r->file, SF_UPDATE_HEADER, NULL, 0);
    return !r->to.error || not_written(r, err);
}

static bool sound_finish(gp_rows_out *o, char err[GP_WHY])
{
    recording *r = (recording *)o;
    int failed = r->to.error;
    r->to.error = 0;                   /* what is whole gets its header */
    int bad = library.call.close(r->file);
    bool none = !r->to.size && !r->to.error && !failed;        /* FLAC begins with its first row */
    bool ok = !bad && !r->to.error && !failed && !none;
    errno = r->to.error ? r->to.error : failed;
    if (!ok)
        gp_why(err, "cannot be written: %s", errno ? strerror(errno) : none ? "a FLAC file has rows, and there were none"
               : "libsndfile could not finish it");
    free(r);
    return ok;
}

/* ---- what they can hold ---------------------------------------------- */

static bool has_channels(const gp_type *t, int most)
{
    return t->ndim == 1 || (t->ndim == 2 && t->dim[1] >= 1 && t->dim[1] <= most);
}

static const char *wav_why_not(const gp_type *t, const char *path)
{
    (void)path;
    if (t->dtype != GP_I16 && t->dtype != GP_I32 && t->dtype != GP_F32 && t->dtype != GP_F64)
        return "WAV and AIFF hold i16, i32, f32 or f64: put a 'cast' stage before this one";
    return has_channels(t, 1024) ? NULL
         : "recordings have frames of shape [rows] or [rows, channels], of 1024 channels at most";
}

static const char *flac_why_not(const gp_type *t, const char *path)
{
    (void)path;
    if (t->dtype != GP_I16 && t->dtype != GP_I32)
        return "FLAC holds i16, or i32 of 24 bits: for floats in [-1, 1) put {use: scale, a: 32768} and {use: cast, dtype: "
               "i16} before this one, or name it .wav";
    return has_channels(t, 8) ? NULL : "FLAC has frames of shape [rows] or [rows, channels], of 8 channels at most";
}

static const char *ogg_why_not(const gp_type *t, const char *path)
{
    (void)path;
    if (t->dtype != GP_F32)
        return "Ogg/Vorbis holds f32: put a 'cast' stage before this one";
    return has_channels(t, 255) ? NULL
         : "Ogg/Vorbis has frames of shape [rows] or [rows, channels], of 255 channels at most";
}

#define SOUND                                                                                              \
    .head = sound_head, .open = sound_open, .read = sound_read, .leave = sound_leave, .close = sound_close, \
    .create = sound_create, .append = sound_append, .finish = sound_finish

const gp_rowsfile gp_wav = {
    .name = "WAV", .suffix = { ".wav", ".rf64" }, .magic = { "RIFF", "RF64" }, .options = { "sample_rate" },
    .why_not = wav_why_not, SOUND,
};
const gp_rowsfile gp_flac = {
    .name = "FLAC", .suffix = { ".flac" }, .magic = { "fLaC" }, .options = { "sample_rate" },
    .why_not = flac_why_not, SOUND,
};
const gp_rowsfile gp_ogg = {
    .name = "Ogg/Vorbis", .suffix = { ".ogg", ".oga" }, .magic = { "OggS" }, .options = { "sample_rate", "quality" },
    .why_not = ogg_why_not, SOUND,
};
const gp_rowsfile gp_aiff = {
    .name = "AIFF", .suffix = { ".aiff", ".aif", ".aifc" }, .magic = { "FORM" }, .options = { "sample_rate" },
    .why_not = wav_why_not, SOUND,
};
