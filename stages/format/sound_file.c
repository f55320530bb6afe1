/* sound_file.c - recordings: WAV (with RF64), FLAC, Ogg with Vorbis or Opus, MP3 and AIFF, see rows_file.h.
 *
 * Through libsndfile, which is opened by the first pipeline that has a recording. A row has a sample of each channel.
 * One of its handles is for one thread: each worker has its own over the one open file, with its own place to read at.
 * A format that cannot seek to the very sample (Vorbis, MP3) is read in order, and so is one in which seeking takes
 * long, and where what can be read behind damage depends on how one came there (FLAC). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include "base/plural.h"
#include "sndfile.h"

/* ---- reading --------------------------------------------------------- */

typedef struct sound {
    gp_rows rows;
    gp_sound_bytes from;
    void *file;                /* where it is read in order: the one handle; at */
    int64_t next;              /* this row; */
    bool broken;               /* no further row can be read */
} sound;

typedef struct handle {        /* a worker's */
    gp_sound_bytes from;
    void *file;
    int64_t next;              /* the row that it is at */
} handle;

/* The type of its samples: the smallest that has all their bits. */
static gp_dtype stored_as(int format)
{
    switch (format & SF_CODEC) {
    case SF_24: case SF_32: return GP_I32;
    case SF_FLOAT: case SF_VORBIS: case SF_OPUS: case SF_MP1: case SF_MP2: case SF_MP3: return GP_F32;
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
    case SF_OGG: return (format & SF_CODEC) == SF_VORBIS || (format & SF_CODEC) == SF_OPUS ? &gp_ogg : NULL;
    case SF_MPEG: return &gp_mp3;
    default: return NULL;
    }
}

/* The type of the whole, from what the library found. */
static bool take_info(const gp_sf_info *info, const gp_rowsfile_how *how, gp_type *whole, char err[GP_WHY])
{
    gp_dtype stored = stored_as(info->format), dtype = how->dtype ? how->dtype : stored;
    const gp_rowsfile *is = format_of(info->format), *want = gp_rowsfile_of(how->format);
    if (!is || (want && is != want))
        return gp_why(err, "is not a %s file", want ? want->name : "WAV, FLAC, Ogg (Vorbis, Opus), MP3 or AIFF");
    if (how->sample_rate && info->rate != how->sample_rate)
        return gp_why(err, "has a sample rate of %d Hz, not %lld", info->rate, (long long)how->sample_rate);
    if (!gp_sf.get[dtype])
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

/* A FLAC file that was written to a pipe does not say how long it is, and then nobody could tell damage, at which the
 * library stops without a word, from its end. */
static bool has_rows(const gp_sf_info *info, char err[GP_WHY])
{
    return (info->rows && info->rows != INT64_MAX) || (info->format & SF_CONTAINER) != SF_FLAC
        || gp_why(err, "does not say how long it is, as where it was written to a pipe: 'flac -d IN.flac -c | flac - -o "
                  "OUT.flac' or 'ffmpeg -i IN.flac OUT.flac' makes a file that does");
}

enum { BEGINS = 12 };          /* bytes that say what it is */

/* Do its rows stand as they are, all of one size? */
static bool is_list(const gp_sf_info *info)
{
    int codec = info->format & SF_CODEC;
    return (codec >= SF_S8 && codec <= SF_DOUBLE) || codec == SF_ULAW || codec == SF_ALAW;
}

static bool is_whole(const gp_sound_bytes *s, const gp_sf_info *info, const gp_rowsfile_how *how, char fault[GP_WHY],
                     char err[GP_WHY])
{
    *fault = 0;
    return gp_sound_is_whole(*s, !how->strict && format_of(info->format) == &gp_wav && is_list(info) && info->rows > 0,
                             fault, err);
}

static bool sound_head(const gp_rows_head *h, const gp_rowsfile_how *how, gp_type *whole, char err[GP_WHY])
{
    gp_sound_bytes s = { .fd = -1, .head = h->data, .n = h->n, .size = h->size };
    gp_sf_info info = { 0 };
    if (!gp_sf_load(err))
        return false;
    gp_sound_skip_tags(&s);
    bool all = (int64_t)s.n == s.size;
    if (!gp_sound_says_length(&s, err))
        return false;
    void *file = gp_sf_open(&s, SF_READ, &info, err);
    if (!file && !all && (s.n < BEGINS || gp_filetype_takes(gp_filetype_begun(s.head, s.n), "sample_rate"))) {
        /* much stands before the data */
        *whole = (gp_type){ .ndim = 0 };
        return true;
    }
    if (!file)
        return false;
    char fault[GP_WHY];
    bool ok = take_info(&info, how, whole, err) && has_rows(&info, err) && is_whole(&s, &info, how, fault, err);
    if (ok && (info.rows == INT64_MAX || (!all && s.unsaid) || (!all && (info.format & SF_CONTAINER) == SF_MPEG)))    /* Ogg has it at its end */
        whole->dim[0] = -1;
    gp_sf.close(file);
    return ok;
}

static void sound_close(gp_rows *f)
{
    sound *s = (sound *)f;
    if (s->file)
        gp_sf.close(s->file);
    free(s);
}

/* May rows be read in any order, each the same as if all before were, and in little time? */
static bool finds_rows(const gp_sf_info *info)
{
    return info->seekable && (info->format & SF_CONTAINER) != SF_FLAC && is_list(info);
}

static gp_rows *sound_open(int fd, const gp_rowsfile_how *how, char err[GP_WHY])
{
    int64_t size;
    gp_sf_info info = { 0 };
    sound *s = gp_sf_load(err) ? gp_rows_new(sizeof *s, fd, &size, err) : NULL;
    if (!s)
        return NULL;
    s->from = (gp_sound_bytes){ .fd = fd, .size = size };
    gp_sound_skip_tags(&s->from);
    s->file = gp_sound_says_length(&s->from, err) ? gp_sf_open(&s->from, SF_READ, &info, err) : NULL;
    bool ok = s->file && take_info(&info, how, &s->rows.whole, err)
           && has_rows(&info, err) && is_whole(&s->from, &info, how, s->rows.fault, err);
    if (ok && info.rows == INT64_MAX)
        ok = gp_why(err, "does not say how long it is: it is cut off, or was never finished");
    if (!ok) {
        sound_close(&s->rows);
        return NULL;
    }
    s->rows.said = (gp_filemeta){ .n = how->nkeys, .key = how->key };
    gp_filemeta_set(&s->rows.said, "sample_rate", info.rate);
    s->rows.in_order = !finds_rows(&info);
    if (!s->rows.in_order)
        gp_sf.close(s->file), s->file = NULL;
    return &s->rows;
}

/* The calling worker's handle. */
static handle *own_handle(const sound *s, void **own, char err[GP_WHY])
{
    gp_sf_info info = { 0 };
    handle *h = *own;
    if (h)
        return h;
    if (!(h = calloc(1, sizeof *h)))
        return GP_NULL(gp_why(err, GP_WHY_MEMORY));
    h->from = (gp_sound_bytes){ .fd = s->from.fd, .begins = s->from.begins, .size = s->from.size };
    if ((h->file = gp_sf_open(&h->from, SF_READ, &info, err)))
        return *own = h;
    free(h);
    return NULL;
}

static bool get_rows(void *file, gp_sound_bytes *from, const gp_type *whole, int64_t first, int64_t n, void *to,
                     char err[GP_WHY])
{
    int64_t got = gp_sf.get[whole->dtype](file, to, n);
    if (got == n && !from->error)
        return true;
    if (from->error)
        return gp_why(err, "cannot be read: %s", gp_strerror(from->error));
    return gp_why(err, "is cut off or damaged: %lld rows expected at row %lld, %lld found", (long long)n,
                  (long long)first, (long long)got);
}

/* Behind damage: a new handle at this row, where it can be found to the sample. */
static bool begin_again(sound *s, int64_t first)
{
    char why[GP_WHY];
    gp_sf_info info = { 0 };
    if (s->file)
        gp_sf.close(s->file);
    s->from.at = 0, s->from.error = 0;
    s->file = gp_sf_open(&s->from, SF_READ, &info, why);
    s->broken = !s->file || (info.format & SF_CONTAINER) != SF_FLAC
             || gp_sf.seek(s->file, first, SEEK_SET) != first;
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
    if (h->next != first && gp_sf.seek(h->file, first, SEEK_SET) != first) {
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
    gp_sf.close(h->file);
    free(h);
}

/* ---- writing --------------------------------------------------------- */

typedef struct recording {
    gp_rows_out out;
    gp_sound_bytes to;
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
    return as == &gp_flac ? SF_FLAC : as == &gp_ogg ? SF_OGG : as == &gp_mp3 ? SF_MPEG : SF_AIFF;
}

/* FLAC has 24 bits at most. */
static int codec_of(int container, gp_dtype dtype, const char *path)
{
    const char *dot = strrchr(path, '.');
    switch (dtype) {
    case GP_I16: return SF_16;
    case GP_I32: return container == SF_FLAC ? SF_24 : SF_32;
    case GP_F32: return container == SF_MPEG ? SF_MP3 : container != SF_OGG ? SF_FLOAT
                      : dot && !strcasecmp(dot, ".opus") ? SF_OPUS : SF_VORBIS;
    default: return SF_DOUBLE;
    }
}

/* A chunk that libsndfile adds to floats has the time of day. Without it the header of an AIFF is shorter; what is left
 * of the longer one would count as rows. */
static void without_peak(recording *r)
{
    gp_sf.command(r->file, SF_PEAK_CHUNK, NULL, 0);
    if (r->container == SF_AIFF && r->to.at < r->to.size && !ftruncate(r->to.fd, (off_t)r->to.at))
        r->to.size = r->to.at;
}

static gp_rows_out *sound_create(int fd, const gp_rowsfile_how *how, const gp_type *frame, const char *path,
                                 char err[GP_WHY])
{
    if (!gp_sf_load(err))
        return NULL;
    recording *r = calloc(1, sizeof *r);
    if (!r)
        return GP_NULL(gp_why(err, GP_WHY_MEMORY));
    *r = (recording){ .out.as = gp_rowsfile_of(how->format), .to.fd = fd, .dtype = frame->dtype,
                      .channels = frame->ndim > 1 ? (int)frame->dim[1] : 1 };
    r->container = container_of(r->out.as, path);
    r->row_bytes = (int64_t)gp_dtype_size(r->dtype) * r->channels;
    gp_sf_info info = { .rate = (int)how->sample_rate, .channels = r->channels,
                        .format = r->container | codec_of(r->container, r->dtype, path) };
    if (!gp_sf.check(&info))
        gp_why(err, "cannot be written: %s has no form with %d channel%s at %d Hz", r->out.as->name, r->channels,
               gp_plural(r->channels), info.rate);
    else
        r->file = gp_sf_open(&r->to, SF_WRITE, &info, err);
    if (!r->file) {
        free(r);
        return NULL;
    }
    double quality = how->quality / 100.0;
    without_peak(r);
    gp_sf.command(r->file, SF_VBR_QUALITY, &quality, sizeof quality);
    return &r->out;
}

static bool not_written(const recording *r, char err[GP_WHY])
{
    errno = r->to.error;
    return errno ? gp_why(err, "cannot be written: %s", gp_strerror(errno))
                 : gp_why(err, "cannot be written: libsndfile says '%s'", gp_sf.why(r->file));
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
        if (gp_sf.put[r->dtype](r->file, (const char *)rows + i * r->row_bytes, k) != k || r->to.error)
            return not_written(r, err);
    }
    if (chunks || r->container == SF_RF64)     /* so that it is a recording whatever comes */
        gp_sf.command(r->file, SF_UPDATE_HEADER, NULL, 0);
    return !r->to.error || not_written(r, err);
}

static bool sound_finish(gp_rows_out *o, char err[GP_WHY])
{
    recording *r = (recording *)o;
    int failed = r->to.error;
    r->to.error = 0;                   /* what is whole gets its header */
    int bad = gp_sf.close(r->file);
    bool none = !r->to.size && !r->to.error && !failed;        /* FLAC begins with its first row */
    bool ok = !bad && !r->to.error && !failed && !none;
    errno = r->to.error ? r->to.error : failed;
    if (!ok)
        gp_why(err, "cannot be written: %s", errno ? gp_strerror(errno) : none ? "a FLAC file has rows, and there were none"
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
    if (t->dtype != GP_I16 && t->dtype != GP_I32 && t->dtype != GP_F32 && t->dtype != GP_F64)
        return "WAV and AIFF hold i16, i32, f32 or f64: put a 'cast' stage before this one";
    return has_channels(t, 1024) ? NULL
         : "recordings have frames of shape [rows] or [rows, channels], of 1024 channels at most";
}

static const char *flac_why_not(const gp_type *t, const char *path)
{
    if (t->dtype != GP_I16 && t->dtype != GP_I32)
        return "FLAC holds i16, or i32 of 24 bits: for floats in [-1, 1) put {use: scale, a: 32768} and {use: cast, dtype: "
               "i16} before this one, or name it .wav";
    return has_channels(t, 8) ? NULL : "FLAC has frames of shape [rows] or [rows, channels], of 8 channels at most";
}

static const char *mp3_why_not(const gp_type *t, const char *path)
{
    if (t->dtype != GP_F32)
        return "MP3 holds f32: put a 'cast' stage before this one";
    return has_channels(t, 2) ? NULL : "MP3 has frames of shape [rows] or [rows, channels], of 2 channels at most";
}

static const char *ogg_why_not(const gp_type *t, const char *path)
{
    if (t->dtype != GP_F32)
        return "Ogg/Vorbis holds f32: put a 'cast' stage before this one";
    return has_channels(t, 255) ? NULL
         : "Ogg/Vorbis has frames of shape [rows] or [rows, channels], of 255 channels at most";
}

#define SOUND                                                                                              \
    .program = "ffmpeg, -v, error, -xerror, -i, FILE, -f, f32le, '-'", SOUND_FUNCTIONS
#define SOUND_FUNCTIONS                                                                                    \
    .head = sound_head, .open = sound_open, .read = sound_read, .leave = sound_leave, .close = sound_close, \
    .create = sound_create, .append = sound_append, .finish = sound_finish

const gp_rowsfile gp_wav = {
    .name = "WAV", .magic = { "RIFF????WAVE", "RF64????WAVE" }, .options = { "sample_rate" },
    .why_not = wav_why_not, SOUND,
};
const gp_rowsfile gp_flac = {
    .name = "FLAC", .magic = { "fLaC" }, .options = { "sample_rate" },
    .why_not = flac_why_not, .by_turns = true, SOUND_FUNCTIONS,
    .program = "flac, -dcs, --force-raw-format, --endian=little, --sign=signed, FILE",     /* which fails at damage */
};
const gp_rowsfile gp_ogg = {
    .name = "Ogg/Vorbis", .magic = { "OggS" }, .options = { "sample_rate", "quality" },
    .why_not = ogg_why_not, .by_turns = true, SOUND,
};
const gp_rowsfile gp_mp3 = {
    .name = "MP3", .options = { "sample_rate", "quality" },
    .magic = { "ID3", "\xff\xfb", "\xff\xfa", "\xff\xf3", "\xff\xf2", "\xff\xe3", "\xff\xe2" },
    .why_not = mp3_why_not, .by_turns = true, SOUND,
};
const gp_rowsfile gp_aiff = {
    .name = "AIFF", .magic = { "FORM????AIF" }, .options = { "sample_rate" },
    .why_not = wav_why_not, SOUND,
};
