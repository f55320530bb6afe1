/* write.c - frames to files, standard output or a process.
 *
 * A path with %05d or %n is one file a frame, and any number of workers may
 * write; otherwise frames are joined along axis 0 in one file, or with a rotate_... option in several that follow each
 * other. It gets its name in finish(), and is written by one worker, unless the pipeline asks for several. A file
 * has its name only once it is complete, unless it is `live`: then it has it before frame 0, and
 * holds whole frames whatever happens. A run that is stopped before its first frame leaves a
 * file that is there already as it is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "npz_file.h"
#include "writer.h"

/* A joined file that did not come to its end keeps what it has. */
static void close_writer(void *state)
{
    gp_writer *w = state;
    char why[GP_WHY];
    if (!w)
        return;
    if (w->rows)
        w->rows->as->finish(w->rows, why);
    if (w->ranges)
        gp_ranges_cut(w);
    for (int i = 0; w->worker && i < w->workers; i++) {
        gp_outfile *f = &w->worker[i].file;
        if (!w->o->single && w->joined.dim[0])
            gp_outfile_keep(f);
        gp_outfile_drop(f);
        free(w->worker[i].encoded.data);
    }
    gp_outfile_drop(&w->held);
    pthread_mutex_destroy(&w->settling);
    pthread_mutex_destroy(&w->lock);
    gp_process_stop(w->process);
    gp_relay_close(w);
    gp_rotate_close(w);
    free(w->worker);
    free(w);
}

gp_status gp_writer_reach(gp_call *c, gp_outfile *f, const char *path, char why[GP_WHY])
{
    const int64_t moment = 20000000;
    while (!gp_outfile_open(f, path, why)) {
        if (!f->unread)
            return GP_FAILED;
        gp_status s = gp_wait_or_pause(c, -1, gp_now_ns() + moment);
        if (s != GP_OK)
            return s;
    }
    return GP_OK;
}

/* Makes what worker i has of its own, before it has written anything. */
static void begin_worker(gp_writer *w, int i)
{
    const gp_write_opts *o = w->o;
    gp_outfile *f = &w->worker[i].file;
    f->by = w->files, f->keeps = o->if_exists != GP_REPLACE, f->is_sole = !o->single;
    f->folder = gp_write_is_folder(o) ? gp_rowsfile_of(o->as)->may_replace : NULL;
    f->durable = o->durable == GP_NOT_DURABLE  ? GP_DURABLE_NONE
               : o->durable == GP_FILE_BY_FILE && !(o->resumes && o->live) ? GP_DURABLE_FILE
               : o->single || o->rotates || f->folder ? GP_DURABLE_END
                                               : GP_DURABLE_END_ALONE;
}

/* Between frames no worker has a file open that is one frame's. */
static bool set_workers(void *state, int n, gp_errs *errs)
{
    gp_writer *w = state;
    if (!w->o->single)
        return gp_fail(errs, GP_E_SPEC, w->o->at, "%s writes one file, and has %d worker%s in the run, which cannot "
                                                  "change while it "
                       "goes on: set 'workers: %d'", w->who, w->workers, w->workers == 1 ? "" : "s", w->workers);
    if (n <= w->workers)
        return true;
    gp_write_worker *more = calloc((size_t)n, sizeof *more);
    if (!more)
        return gp_fail(errs, GP_E_RESOURCE, w->o->at, "%s: out of memory", w->who);
    memcpy(more, w->worker, sizeof *more * (size_t)w->workers);
    free(w->worker);
    w->worker = more;
    for (int i = w->workers; i < n; i++)
        begin_worker(w, i);
    w->workers = n;
    return true;
}

void gp_writer_begin(gp_writer *w, const gp_type *frame)
{
    const gp_write_opts *o = w->o;
    w->begin = o->columns.n ? o->header : w->line;
    w->nbegin = o->columns.n ? strlen(o->header) : 0;
    if (gp_write_begins(o))
        w->nbegin = gp_rowsfile_of(o->as)->begin(&o->rows, frame, w->line);
}

static bool open_writer(const gp_open *g, void **state)
{
    const gp_write_opts *o = g->opts;
    gp_writer *w = calloc(1, sizeof *w);
    char why[GP_WHY], path[PATH_MAX];
    *state = w;
    if (w) {
        w->o = o, w->workers = g->workers, w->rank = g->rank, w->room = -1;
        w->ranks = g->joins ? g->ranks : 1;
        pthread_mutex_init(&w->lock, NULL);
        pthread_mutex_init(&w->settling, NULL);
        snprintf(w->who, sizeof w->who, "stage '%s'", g->name);
        w->files = gp_filetable_writer(g->files, w->who, o->at, o->path);
        w->worker = calloc((size_t)g->workers, sizeof *w->worker);
    }
    for (int i = 0; w && w->worker && i < w->workers; i++)
        begin_worker(w, i);
    if (w && g->saved) {
        w->from = g->saved->next, w->now = *g->saved, w->nfiles = o->rotates ? w->now.own[0] : 0;
        w->goes_on = w->begun = o->append || (o->live && w->now.own[0]);
    }
    if (!w || !w->worker || !w->files)
        return gp_fail(g->errs, GP_E_RESOURCE, g->at, "stage '%s': out of memory", g->name);
    gp_writer_begin(w, &g->in[0]);
    if (o->command.n && !(w->process = gp_process_start(o->command.v, o->folder, true, why)))
        return gp_fail(g->errs, GP_E_RUN, o->at, "'%s' %s", o->path, why);
    bool elsewhere = o->to_stdout && w->ranks > 1 && w->rank;
    if (o->to_stdout && w->ranks > 1 && !gp_relay_open(w))
        return gp_fail(g->errs, GP_E_RESOURCE, g->at, "stage '%s': out of memory", g->name);
    bool ok = w->process   ? gp_outfile_lend(&w->worker[0].file, gp_process_fd(w->process), why)
            : elsewhere    ? true
            : o->to_stdout ? gp_outfile_lend(&w->worker[0].file, STDOUT_FILENO, why)
            : o->single || o->rotates ? gp_writer_hold(w, why) && gp_writer_find_first(w, why)
                           : gp_path_expand(path, o->path, 0, "", why) && gp_writer_open_joined(w, path, &g->in[0], why);
    if (ok && !o->single && w->ranks == 1)
        gp_ranges_open(w);
    if (ok && o->append && !w->begun)  /* a run that goes on cuts it to what it has now */
        w->now = (gp_saved){ w->from, { w->size, (uint64_t)w->joined.dim[0], w->head } }, w->begun = true;
    return ok || w->worker[0].file.unread      /* run() waits for its reader */
        || gp_fail(g->errs, GP_E_RUN, o->at, "'%s' %s", o->path, why);
}

static bool run(gp_call *c, gp_frame *f, int n)
{
    gp_writer *w = c->state;
    int had = 0;
    while (had < n && f[had].index < w->from)
        had++;                         /* by a run that was broken off */
    if (had == n)
        return true;
    if (had) {
        f[had].status = GP_AGAIN;
        return true;
    }
    if (!w->o->single)
        return w->ranks > 1 ? gp_ranks_write(w, c, f, n)
             : w->ranges    ? gp_ranges_write(w, c, f) : gp_writer_join(w, c, f, n);
    if (n > 1)
        f[1].status = GP_AGAIN;
    return gp_writer_single(w, c, &f[0]);
}

/* Of a file for each frame, or a device, all frames are there that have been run. */
static void save(void *state, gp_saved *s)
{
    gp_writer *w = state;
    pthread_mutex_lock(&w->lock);
    if (w->begun)
        *s = w->now;
    else if (w->o->rotates)
        s->own[0] = w->nfiles;
    pthread_mutex_unlock(&w->lock);
}

static void advise(gp_advice *a)
{
    const gp_write_opts *o = a->opts;
    if (gp_write_is_video(o) && gp_write_creates(o))
        strcpy(a->text, "set a faster 'preset', or write less of each frame");
    else if (!gp_write_is_pictures(o) && (!gp_rowsfile_of(o->as) || gp_write_is_video(o) || gp_filetype_takes(o->as, "member")))
        strcpy(a->text, "write a smaller type, or less of each frame");
    else if (gp_filetype_takes(o->as, "compression") && o->compression > 0)
        a->opt = "compression", strcpy(a->value, o->compression > 1 ? "1" : "0");
    else
        strcpy(a->text, "write .npy, which needs no encoding");
}

static const gp_port in[] = {
    { "in", GP_ACCEPT_ANY, .help = "frames; PNG, PNM, video: u8 or u16; JPEG: u8; TIFF: all but c64; PFM, Ogg: f32; WAV, AIFF: "
      "i16, i32, f32 or f64; FLAC: i16, i32; text: all but f16 and c64" },
    { "*", GP_ACCEPT_ANY, true, "of a table (`columns`): more buffers, whose numbers stand behind the first one's" }, { 0 }
};

static const gp_opt options[] = {
    { GP_PATH(gp_write_opts, path), .required = true, .choices = "command",
      .help = "one file a frame with %05d (its number) or %n (its source file's name), beside which %t is its time; "
              "else one file for all; or stdout" },
    { GP_TEXTS(gp_write_opts, command),
      .help = "in place of a path: a program and its arguments, as a list, which reads frames at its standard input" },
    { GP_ENUM(gp_write_opts, format), .def = "auto", .choices = GP_FORMATS,
      .help = "auto: by the file's extension; standard output, a process, devices and FIFOs of other names get raw data"
              GP_FORMATS_HELP },
    { GP_BOOL(gp_write_opts, stack), .help = "one .npy, .npz, Zarr store or text for all: join frames along a new axis 0" },
    { GP_BOOL(gp_write_opts, live),
      .help = "one file for all has its name from the start (where it replaces one, from frame 0 "
              "on), not only when it is whole; the header of a .npy always says how many rows are there, and a video can be "
              "played as far as it was written" },
    { GP_INT(gp_write_opts, rotate_frames), .min = 0, .max = 1e18, .unit = "frames",
      .help = "begin another file after so many frames: %05d is then the number of the file, %t the time of its first "
              "frame; 0: never" },
    { GP_TIME(gp_write_opts, rotate_time), .min = 0, .max = 1e18,
      .help = "begin another file where a frame's time reaches a multiple of this, in UTC (1h: each full hour); 0: never" },
    { GP_INT(gp_write_opts, rotate_size), .min = 0, .max = 1e18, .unit = "bytes",
      .help = "begin another file before a frame that would make it larger (as 1GiB); 0: never" },
    { GP_INT(gp_write_opts, keep), .min = 0, .max = 1e6, .unit = "files",
      .help = "of files that follow each other: only the last so many that are finished stay, of those that this run wrote; 0: "
              "all" },
    { GP_BOOL(gp_write_opts, append),
      .help = "raw, npy, csv, tsv, jsonl: add to the file, if it is there; as if it were `live`" },
    { GP_ENUM(gp_write_opts, if_exists), .def = "replace", .choices = "replace|error|next",
      .help = "what to do where a file is there already; next: with %05d, go on after the highest number" },
    { GP_ENUM(gp_write_opts, durable), .def = "end", .choices = "none|end|file",
      .help = "what survives a power cut: end: all, once the run is done; file: each file, once it "
              "has its name; none: nothing is promised" },
    { GP_INT(gp_write_opts, start), .min = 0, .max = 1e18, .help = "with %05d: the first number" },
    { GP_INT(gp_write_opts, compression), .def = "3", .min = 0, .max = 9,
      .help = "png, tiff, zarr: 0 is fast, 9 is small; a TIFF is not compressed where this is not said; zarr compresses "
              "with zstd; 0 does not compress" },
    { GP_INT(gp_write_opts, chunk), .min = 0, .max = 1e15, .unit = "rows",
      .help = "zarr: how many rows a chunk has; each chunk is a file. 0: as many as a frame" },
    { GP_INT(gp_write_opts, quality), .def = "90", .min = 1, .max = 100, .help = "jpeg, ogg: 1 is small, 100 is good" },
    { GP_ENUM(gp_write_opts, subsampling), .def = "4:2:0", .choices = GP_SUBSAMPLING "|mono",
      .help = "jpeg, video: how many pixels share a color: four, two side by side, none; video: without colors. Where it is not "
              "said, planes with 3 axes are 4:4:4, and lossless codecs store frames as they are" },
    { GP_TEXT(gp_write_opts, codec), .def = "",
      .help = "video: h264, hevc, vp9, av1, ffv1 (lossless), mjpeg, or an encoder of libavcodec, as libx264rgb; where it is not "
              "said h264, of .webm vp9" },
    { GP_FLOAT(gp_write_opts, crf), .def = "-1", .min = -1, .max = 63,
      .help = "video: constant quality, as the encoder counts it: less is better; -1: its default" },
    { GP_TEXT(gp_write_opts, preset), .def = "", .help = "video: how fast it is encoded, as the encoder calls it: h264 has "
      "ultrafast to veryslow" },
    { GP_INT(gp_write_opts, bitrate), .min = 0, .max = 1e12, .unit = "bit/s", .help = "video: in place of a quality; 0: none" },
    { GP_ENUM(gp_write_opts, colors), .def = "keep", .choices = "keep|planes",
      .help = "video: keep: red, green and blue, or gray; planes: luma and chroma as a .y4m has them" },
    { GP_ENUM(gp_write_opts, matrix), .def = "auto", .choices = "auto|bt601|bt709|bt2020",
      .help = "video: how luma and chroma are made of colors, or were; auto: bt709 above 576 rows or from 1280 columns on, else "
              "bt601" },
    { GP_TEXT(gp_write_opts, frame_rate), .def = "", .unit = "Hz",
      .help = "video: frames a second, 25 or 30000/1001; where it is not said, of what is encoded, frames have their times, if "
              "the pipeline lists 'pts' or 'time' under 'metadata'" },
    { GP_TEXT(gp_write_opts, pixel_aspect), .def = "1:1",
      .help = "video: the width of a pixel to its height; 0:0: not said" },
    { GP_ENUM(gp_write_opts, siting), .def = "jpeg", .choices = GP_Y4M_SITING,
      .help = "video, 4:2:0: where colors lie: between four pixels, beside the left two, on the left ones as in DV" },
    { GP_ENUM(gp_write_opts, range), .def = "none", .choices = "none|limited|full",
      .help = "video: the range of luma and chroma, which the file says; none: limited, which a .y4m does not say" },
    { GP_INT(gp_write_opts, bits), .min = 0, .max = 16,
      .help = "video: how many of a value's bits are used; 0: 8 of u8, 16 of u16" },
    { GP_INT(gp_write_opts, sample_rate), .min = 1, .max = 1e9, .unit = "Hz",
      .help = "wav, flac, ogg, aiff: rows a second; where it is not said, what the frames say, if the pipeline lists "
              "'sample_rate' under 'metadata'" },
    { GP_TEXTS(gp_write_opts, columns),
      .help = "csv, tsv: the first line has these names: of the numbers of a row, in their order, and between them, before "
              "them or behind them frame.index, frame.time (in UTC), frame.name, frame.file (with its extension), frame.meta.KEY" },
    { GP_TEXT(gp_write_opts, member), .help = "npz: the name of the array; where it is not said, " GP_NPZ_MEMBER },
    { 0 }
};

const gp_kind gp_kind_write = {
    GP_KIND("write"), .field = "files",
    .also = "imwrite save dump sink",
    .help = "frames to pictures, video, sound, text, .npy, raw, stdout, programs",
    .in = in,
    .opts = options, .opts_size = sizeof(gp_write_opts),
    .max_run = GP_WRITE_RUN,
    .any_shape = true, .joins = true, .set_workers = set_workers, .shape = gp_write_shape,
    .open = open_writer, .close = close_writer, .run = run, .finish = gp_writer_finish,
    .advise = advise, .check = gp_write_check, .reserve = gp_ranges_reserve, .skipped = gp_ranks_skip,
    .save = save,
};
