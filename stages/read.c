/* read.c - frames from files, a FIFO, standard input or a process.
 *
 * shape() finds out what the files hold; run() looks again and checks that this has not changed. Raw and .npy data are
 * read straight into the slot. See read/reader.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/plural.h"
#include "reader.h"

static void close_reader(void *state)
{
    gp_reader *r = state;
    if (!r)
        return;
    gp_ahead_free(r->ahead);
    if (r->process)
        gp_process_stop(r->process);
    else if (r->fd > STDIN_FILENO)
        close(r->fd);
    if (r->open)
        gp_piece_release(r->now);
    for (int i = 0; r->name && r->name[i]; i++)
        free(r->name[i]);
    for (int i = 0; r->worker && i < r->workers; i++)
        free(r->worker[i].room.data), gp_rowsfile_leave(&r->worker[i].own);
    pthread_cond_destroy(&r->turn);
    pthread_mutex_destroy(&r->lock);
    free(r->name);
    free(r->worker);
    free(r->open);
    free(r);
}

static bool open_reader(const gp_open *g, void **state)
{
    const gp_read_opts *o = g->opts;
    gp_reader *r = calloc(1, sizeof *r);
    int n = o->nfiles ? o->nfiles : 1;
    *state = r;
    bool ok = r != NULL;
    if (ok) {
        r->o = o, r->most = g->out[0], r->fd = -1, r->workers = g->workers, r->over = UINT64_MAX;
        r->ranks = (uint64_t)g->ranks, r->pace.from = g->from;
        pthread_mutex_init(&r->lock, NULL);
        pthread_cond_init(&r->turn, NULL);
        r->name = calloc((size_t)n + 1, sizeof *r->name);
        r->worker = calloc((size_t)r->workers, sizeof *r->worker);
        r->open = calloc((size_t)r->workers + 1, sizeof *r->open);
        ok = r->name && r->worker && r->open;
    }
    for (int i = 0; ok && i < r->workers; i++)
        ok = gp_growbuf_need(&r->worker[i].room, GP_READ_HEAD);
    for (int i = 0; ok && i < n; i++) {
        size_t len;
        const char *stem = gp_path_stem(o->nfiles ? o->file[i] : o->path, &len);
        ok = (r->name[i] = malloc(len + strlen(stem) + 2));
        if (ok)
            strcpy((char *)mempcpy(r->name[i], stem, len) + 1, stem), r->name[i][len] = 0;
    }
    ok = ok && (o->when_full == GP_FULL_WAIT || (r->ahead = gp_ahead_new(r)));
    if (!ok)
        return gp_fail(g->errs, GP_E_RESOURCE, g->at, "stage '%s': cannot be opened: %s", g->name, gp_strerror(errno));
    char why[GP_WHY];
    if (o->command.n && !(r->process = gp_process_start(o->command.v, o->folder, false, why)))
        return gp_fail(g->errs, GP_E_RUN, o->at, "'%s' %s", o->path, why);
    return true;
}

/* Between frames a worker has nothing of a file; what is open may be cut into more pieces. */
static bool set_workers(void *state, int n, gp_errs *errs)
{
    gp_reader *r = state;
    if (n <= r->workers)
        return true;
    gp_read_worker *worker = calloc((size_t)n, sizeof *worker);
    gp_piece_file *open = calloc((size_t)n + 1, sizeof *open);
    bool ok = worker && open;
    for (int i = r->workers; ok && i < n; i++)
        ok = gp_growbuf_need(&worker[i].room, GP_READ_HEAD);
    if (!ok) {
        for (int i = r->workers; worker && i < n; i++)
            free(worker[i].room.data);
        free(worker), free(open);
        return gp_fail(errs, GP_E_RESOURCE, r->o->at, "out of memory");
    }
    memcpy(worker, r->worker, sizeof *worker * (size_t)r->workers);
    memcpy(open, r->open, sizeof *open * ((size_t)r->workers + 1));
    r->now = r->now ? open + (r->now - r->open) : NULL;
    free(r->worker), free(r->open);
    r->worker = worker, r->open = open, r->workers = n;
    return true;
}

/* Pairs of whole numbers -> c64, in place: the last one first, as it takes more room. */
static void widen(void *data, int64_t n, const gp_read_opts *o)
{
    gp_c64 *to = data;
    const int8_t *byte = data;
    while (n-- > 0) {
        int16_t pair[2];
        if (o->stored == GP_STORED_CI8)
            pair[0] = byte[2 * n], pair[1] = byte[2 * n + 1];
        else
            memcpy(pair, byte + 4 * n, sizeof pair);
        if (o->stored == GP_STORED_CI16 && o->endian == GP_BIG)
            for (int k = 0; k < 2; k++)
                pair[k] = (int16_t)__builtin_bswap16((uint16_t)pair[k]);
        to[n] = (gp_c64){ pair[0], pair[1] };
    }
}

/* How many frames may be read at once, of n that are left of a call. */
static int at_once(const gp_read_opts *o, const gp_frame *f, int n)
{
    size_t each = gp_bytes(&f->out[0].type), most = each < GP_RUN_BYTES ? GP_RUN_BYTES / (each ? each : 1) : 1;
    uint64_t left = o->frames ? (uint64_t)o->frames - f->index : UINT64_MAX;
    most = o->rate > 0 ? 1 : most < left ? most : (size_t)left;
    return most < (size_t)n ? (int)most : n;
}

static bool run(gp_call *c, gp_frame *f, int n)
{
    gp_reader *r = c->state;
    const gp_read_opts *o = c->opts;
    size_t bytes = 0;
    for (int i = 0, k = 1; i < n; i += k, k = 1) {
        gp_status s = GP_OK;
        if (o->frames && f[i].index >= (uint64_t)o->frames)
            s = GP_END;
        else if (i && (bytes >= GP_RUN_BYTES || gp_read_is_pictures(o)))
            s = GP_AGAIN;
        else
            s = gp_pace_wait(&r->pace, c, o->rate, f[i].index, i == 0);
        if (s == GP_OK)
            s = o->live ? gp_reader_stream(r, c, &f[i], i == 0) : gp_reader_file(r, c, &f[i], at_once(o, &f[i], n - i), &k);
        for (gp_frame *x = &f[i]; x < &f[i + k]; x++) {
            if (s == GP_OK && o->stored)
                widen(x->out[0].data, gp_count(&x->out[0].type), o);
            else if (s == GP_OK && o->endian == GP_BIG)
                gp_swap(x->out[0].data, &x->out[0].type);
            x->status = s;
        }
        if (s == GP_END || s == GP_STOPPED)
            gp_reader_over(r, f[i].index);
        if ((s == GP_FAILED || s == GP_DROP || s == GP_LOST) && i + 1 < n)
            f[i + 1].status = GP_AGAIN;
        if (s != GP_OK)
            break;
        bytes += (size_t)k * gp_bytes(&f[i].out[0].type);
    }
    return !r->worker[c->worker].none;
}

static bool finish(gp_call *c)
{
    gp_reader *r = c->state;
    uint64_t n = r->ahead ? gp_ahead_end(r->ahead, c) : 0;
    if (r->part)
        gp_fail(c->errs, GP_E_WARN, r->o->at, "'%s' ended within a frame: the last one has %lld of %lld rows ('tail: drop' "
                "leaves it out, 'tail: ignore' keeps it without a word)", r->o->path, (long long)r->part,
                (long long)r->most.dim[0]);
    if (n)
        gp_fail(c->errs, GP_E_WARN, r->o->at, "'%s': %llu frame%s came when there was no room, and %s dropped "
                "('when_full: drop-newest')", r->o->path, (unsigned long long)n, gp_plural((int64_t)n),
                n > 1 ? "were" : "was");
    return true;
}

static void advise(gp_advice *a)
{
    const gp_read_opts *o = a->opts;
    strcpy(a->text, gp_read_is_pictures(o) || gp_read_is_rows(o) ? "store its frames as .npy, which need no decoding"
                                   : "store a smaller type, and cast it on the device");
}

static const gp_port out[] = {
    { "out", .help = "declared under 'buffers:', else: a picture, of any size, or a file of a list is one frame; a "
                     "single .npy, and any .tif, is cut at each index of axis 0 (a 1-D one, a recording, text and "
                     "streams have to be "
                     "declared)" },
    { 0 }
};

static const gp_opt options[] = {
    { GP_PATH(gp_read_opts, path), .required = true, .choices = "command",
      .help = "a file; a glob ('*.png', '*.{jpg,png}'), by names, a9 before a10; a number ('img_%05d.png'), from the "
              "lowest to the highest that are there; a FIFO, or stdin" },
    { GP_ENUM(gp_read_opts, missing), .def = "hole", .choices = "hole|skip|error",
      .help = "a number between others that no file has: its frames are dropped, so that all others keep theirs; skip: the "
              "next file takes its place" },
    { GP_TEXTS(gp_read_opts, command),
      .help = "in place of a path: a program and its arguments, as a list, whose standard output is read" },
    { GP_ENUM(gp_read_opts, format), .def = "auto", .choices = GP_FORMATS "|bytes",
      .help = "auto: .raw, .bin, .dat and text by the file's extension, others by their first bytes, or else the extension; "
              "streams that no extension says are raw; bytes: a whole file is a frame, u8 [<=N], with N of the largest "
              "where it is not declared"
              GP_FORMATS_HELP },
    { GP_INT(gp_read_opts, offset), .min = 0, .max = 1e15, .unit = "bytes",
      .help = "raw: where the data begin in each file" },
    { GP_INT(gp_read_opts, skip), .min = 0, .max = 1e15, .unit = "bytes",
      .help = "raw: what stands before each frame and is not data" },
    { GP_ENUM(gp_read_opts, stored), .def = "same", .choices = "same|ci8|ci16",
      .help = "raw: of c64, how a number is stored: as pairs of i8 or i16, of which each value stays as it is" },
    { GP_ENUM(gp_read_opts, endian), .def = "little", .choices = "little|big",
      .help = "raw: the order of bytes in an element" },
    { GP_ENUM(gp_read_opts, tail), .def = "error", .choices = "error|ignore|drop",
      .help = "raw, npy: what to do with bytes after the last whole row; drop: leave out a last frame with fewer rows, too. "
              "Of a stream that ends within a frame ignore also says that this is no news" },
    { GP_INT(gp_read_opts, frames), .min = 0, .max = 1e18, .unit = "frames",
      .help = "stop after so many; 0: all" },
    { GP_INT(gp_read_opts, start), .min = 0, .max = 1e15, .unit = "frames",
      .help = "files: how many to leave out at the beginning" },
    { GP_INT(gp_read_opts, every), .def = "1", .min = 1, .max = 1e9, .unit = "frames",
      .help = "files: one of so many, the first of them; the others are not read, but those of a video are decoded" },
    { GP_INT(gp_read_opts, shuffle), .def = "-1", .min = -1, .max = 1e15,
      .help = "a seed: the files, or the frames of a single one, come in an order that it decides, another in each pass of "
              "'loop'; sources of as many shuffle alike. -1: as they are" },
    { GP_BOOL(gp_read_opts, loop), .help = "begin again after the last file" },
    { GP_BOOL(gp_read_opts, reopen),
      .help = "a FIFO: when its writer has closed it, wait for the next one; writers come one after "
              "another, as a FIFO does not tell two apart that have it open at once" },
    { GP_ENUM(gp_read_opts, when_full), .def = "wait", .choices = "wait|drop-newest",
      .help = "a FIFO, stdin: what to do when there is no room for a frame: wait, and let the writer wait; or go on "
              "reading and drop it: it counts as dropped, and is a hole" },
    { GP_FLOAT(gp_read_opts, rate), .min = 0, .max = 1e9, .unit = "Hz",
      .help = "frames a second; 0: as fast as they can be read" },
    { GP_ENUM(gp_read_opts, header), .def = "auto", .choices = "auto|yes|no",
      .help = "csv, tsv: is the first row a header, which is left out? auto: if something stands in it and nothing is "
              "a number, or it is that of the first file; it says so" },
    { GP_ENUM(gp_read_opts, decimal), .def = "point", .choices = "point|comma",
      .help = "csv, tsv: numbers are 3.5, or 3,5 with semicolons, tabs or blanks between them, or in quotes" },
    { GP_ENUM(gp_read_opts, range), .def = "auto", .choices = "auto|limited|full",
      .help = "video: of which range its values are: a file that says another is an error; auto: limited, and of mono "
              "any; where 'read' makes RGB or luma, as the file says, else limited" },
    { GP_INT(gp_read_opts, stream), .def = "-1", .min = -1, .max = 1e6,
      .help = "video: which stream of the file, as ffmpeg counts them; -1: the best" },
    { GP_INT(gp_read_opts, level), .min = 0, .max = 1000,
      .help = "zarr: which scale of a picture that has several (OME-Zarr); 0 is the largest" },
    { GP_BOOL(gp_read_opts, strict), .help = GP_STRICT_HELP },
    { GP_TEXT(gp_read_opts, member),
      .help = "npz: which array, where there are several beside numbers that 'metadata' lists" },
    { GP_INT(gp_read_opts, sample_rate), .min = 0, .max = 1e9, .unit = "Hz",
      .help = "wav, flac, ogg, aiff: a file with another is an error; 0: any" },
    { GP_ENUM(gp_read_opts, orientation), .def = "apply", .choices = "apply|keep",
      .help = "jpeg, png, tiff, video: turn pictures upright, as they say, or keep them as they are stored" },
    { GP_MAX_PIXELS(gp_read_opts) },
    { GP_ENUM(gp_read_opts, colors), .def = "keep", .choices = GP_COLORS "|planes",
      .help = GP_COLORS_HELP "; of video keep is RGB, or gray of what has no colors; planes: luma and chroma as a .y4m "
              "has them" },
    { GP_ENUM(gp_read_opts, shrink), .def = "1", .choices = "1|2|4|8",
      .help = "jpeg: decode pictures at 1/2, 1/4 or 1/8 of their size, rounded up, which is faster" },
    { 0 }
};

const gp_kind gp_kind_read = {
    GP_KIND("read"), .field = "files",
    .also = "imread VideoCapture load open source",
    .help = "frames from pictures, video, sound, text, .npy, raw, stdin, programs",
    .out = out,
    .opts = options, .opts_size = sizeof(gp_read_opts),
    .max_run = GP_READ_AT_ONCE, .by_number = true,
    .any_shape = true, .tail_rows = true, .set_workers = set_workers, .shape = gp_read_shape,
    .open = open_reader, .close = close_reader, .run = run, .finish = finish,
    .advise = advise,
};
