/* look.c - which files a `read` stage has, and what is in them, see reader.h. */
#include <stdio.h>
#include <string.h>
#include "base/npy.h"
#include "base/plural.h"
#include "reader.h"

enum { COPIED_IN_NS = 8, MOST_COPIES = 8 };     /* bytes, from the cache of files, about; at once, until memory is busy */
enum { MOST_HEADERS = 1000, SHORT_HEAD = 4096, LONG_HEAD = 1 << 20 };

bool gp_read_is_pictures(const gp_read_opts *o)
{
    return gp_picfile_of(o->as) != NULL;
}

bool gp_read_is_rows(const gp_read_opts *o)
{
    return gp_rowsfile_of(o->as) != NULL;
}

bool gp_read_is_video(const gp_read_opts *o)
{
    return gp_read_is_rows(o) && gp_rowsfile_of(o->as)->is_video;
}

gp_cut_how gp_read_cut(const gp_read_opts *o)
{
    return (gp_cut_how){ o->offset, o->skip, o->tail != GP_TAIL_ERROR, o->tail == GP_TAIL_DROP, true };
}

gp_type gp_read_stored(const gp_read_opts *o, const gp_type *frame)
{
    gp_type t = *frame;
    t.dtype = o->stored == GP_STORED_CI8 ? GP_U16 : o->stored == GP_STORED_CI16 ? GP_U32 : t.dtype;
    return t;
}

/* ---- which files ----------------------------------------------------- */

/* May this folder be a file of a format that has folders: as `format` says, or by its name or what is in it? */
static bool is_folder(gp_shape *s, const gp_read_opts *o, const char *path)
{
    static const char *const names[] = { "zarr.json", ".zarray", ".zgroup" };
    char *file = gp_shape_alloc(s, strlen(path) + 16);
    bool is = o->format == GP_FORMAT_zarr || (!o->format && gp_filetype_of(path) == GP_FORMAT_zarr);
    for (int i = 0; !o->format && !is && i < 3; i++) {
        strcpy(stpcpy(stpcpy(file, path), "/"), names[i]);
        is = gp_probe_size(s, file) >= 0;
    }
    return is;
}

/* Fills in file, nfiles, live. *many: a glob or numbered. False: ask again, or
 * an error was added. */
static bool list_files(gp_shape *s, gp_read_opts *o, const gp_file **first, bool *many)
{
    o->nfiles = 0;
    *first = NULL;
    *many = false;
    if (o->command.n) {
        o->live = true;
        return true;
    }
    if (!strcmp(o->path, "stdin")) {
        static const char *const file[] = { "/dev/stdin" };    /* it may be any file */
        gp_shape_reads(s, file, 1);
        o->live = true;
        return true;
    }
    bool glob = gp_path_is_glob(o->path), numbered = gp_path_has_number(o->path);
    if (glob || numbered) {
        *many = gp_probe_file(s, o->path)->error != 0;     /* a file may be called 'a[1].npy' */
    }
    int choices = *many && gp_path_has_choice(o->path) && !numbered ? gp_path_choices(o->path) : 1;
    if (choices > GP_CHOICES)
        return gp_shape_fail(s, "path", "'%.200s' stands for more than %d patterns", o->path, GP_CHOICES);
    if (!choices)
        return gp_shape_fail(s, "path", "'%.200s': braces are for choices, like *.{jpg,png}, which are not nested; '\\{' is the "
                             "character", o->path);
    if (*many && strstr(o->path, "**"))
        return gp_shape_fail(s, "path", "'**' has no meaning: a glob is of one folder, or with '*/' of all folders of "
                                        "one level");
    if (!*many) {
        const char **file = gp_shape_alloc(s, sizeof *file);
        file[0] = o->path;
        o->file = file, o->nfiles = 1;
    } else {
        const gp_files *all = gp_probe_glob(s, o->path);
        if (!all)
            return false;
        o->file = all->path, o->nfiles = all->n;
    }
    if (!o->nfiles)
        return gp_shape_missing(s, "path", "no file matches '%s'%s", o->path, glob && numbered
                                ? ": beside a number, *, ?, [ and { mean themselves" : "");
    *first = gp_probe_file(s, o->file[0]);
    gp_shape_reads(s, o->file, o->nfiles);
    if ((*first)->error)
        return gp_shape_missing(s, "path", "cannot read '%s': %s%s", o->file[0],
                                gp_strerror((*first)->error), !gp_path_lacks_zero(o->file[0]) ? ""
                                : "; a number is %d, or with its digits %05d");
    if ((*first)->kind == GP_FILE_DIR && !is_folder(s, o, o->file[0]))
        return gp_shape_fail(s, "path", "'%s' is a folder: say which of its files, as in "
                                        "'%s/*.npy'", o->file[0], o->file[0]);
    o->live = (*first)->kind == GP_FILE_STREAM;
    return !o->live || o->nfiles == 1
        || gp_shape_fail(s, "path", "'%s' is a stream, and cannot be one of the %d files that match", o->file[0], o->nfiles);
}

/* Numbered files: of which numbers is there none? */
static bool find_missing(gp_shape *s, gp_read_opts *o)
{
    enum { FEW = 1000, MOST = 10 };            /* numbers for each file, beside a few */
    uint64_t last, number;
    o->numbered = NULL, o->numbers = 0, o->pieces = 0;
    if (!gp_path_has_number(o->path) && !gp_shape_without(s, "missing", "what has no number, as in img_%03d.png"))
        return false;
    if (o->nfiles < 2 || o->missing == GP_MISSING_SKIP || !gp_path_match(o->path, o->file[0], &o->lowest)
        || !gp_path_match(o->path, o->file[o->nfiles - 1], &last))
        return true;
    s->known.number = (int64_t)o->lowest + 1;
    if (last - o->lowest > (uint64_t)o->nfiles * MOST + FEW)
        return gp_shape_fail(s, "path", "of the numbers %llu to %llu only %d have a file '%.200s': 'missing: skip' takes one "
                             "after the other", (unsigned long long)o->lowest, (unsigned long long)last, o->nfiles, o->path);
    int n = (int)(last - o->lowest) + 1, none = 0;
    int *at = gp_shape_alloc(s, sizeof *at * (size_t)n);
    memset(at, -1, sizeof *at * (size_t)n);
    for (int i = 0; i < o->nfiles; i++)
        if (gp_path_match(o->path, o->file[i], &number))
            at[number - o->lowest] = i;
    while (none < n && at[none] >= 0)
        none++;
    if (o->missing == GP_MISSING_ERROR && none < n)
        return gp_shape_fail(s, "path", "there is no file '%.200s' of number %llu", o->path,
                             (unsigned long long)o->lowest + none);
    o->numbered = at, o->numbers = n;
    o->first_gap = o->lowest + (uint64_t)none, o->gaps = 0;
    for (int i = none; i < n; i++)
        o->gaps += at[i] < 0;
    return true;
}

/* How many frames a file that is missing, or cannot be opened, would have had: as many as each other one. */
static bool count_pieces(gp_shape *s, gp_read_opts *o, const gp_file *first, int64_t pieces)
{
    bool same = pieces > 0;
    for (int i = 1; o->numbered && pieces > 1 && same && i < o->nfiles; i++)
        same = gp_probe_size(s, o->file[i]) == first->size;
    o->pieces = pieces;
    if (!same && o->numbers == o->nfiles)
        o->numbered = NULL, o->numbers = 0;    /* none is missing */
    return same || !o->numbered
        || gp_shape_fail(s, "path", "a file '%.200s' is missing between others, and how many frames it would have had is not "
                         "known, as %s: 'missing: skip' goes on with the next file", o->path,
                         pieces ? "files differ in size" : "the size of a file does not say it");
}

/* ---- what is in them ------------------------------------------------- */

/* Refuses a file that is no format's by its name and its first bytes. */
static bool unknown_format(gp_shape *s, const gp_file *f, bool many)
{
    enum { SHOWN = 8 };
    char begins[4 * SHOWN + 1] = "", *to = begins;
    for (size_t i = 0; i < SHOWN && i < f->nhead; i++) {
        unsigned char c = ((const unsigned char *)f->head)[i];
        to += sprintf(to, c < ' ' || c > '~' ? "\\x%02x" : "%c", c);
    }
    return gp_shape_fail(s, "path", "'%s' is of no format that gpipe reads, neither by its name nor by its first bytes "
                                    "(%s%s%s): "
                         "%sset 'format: raw' to read its bytes as samples, or 'format: csv' where it is text; 'gpipe "
                         "help files' lists "
                         "the formats", f->path, f->nhead ? "'" : "there are none", begins, f->nhead ? "'" : "",
                         many ? "leave it out of the glob, or " : "");
}

/* All files of a stage are read in one way, which the first says. Pictures are, and recordings. */
static bool are_alike(gp_shape *s, const gp_read_opts *o)
{
    char head[16];
    for (int i = 1; !o->format && !gp_shape_drops(s) && i < o->nfiles; i++) {
        gp_filetype as = gp_filetype_of(o->file[i]);
        if (as == o->as || (!as && o->as != GP_RAW))
            continue;                  /* what is no such file says so when it is its turn; raw is any */
        const gp_file f = { .path = o->file[i] };
        int64_t n = gp_probe_bytes(s, &f, 0, head, sizeof head);
        as = n < 0 ? o->as : gp_filetype_is(f.path, head, (size_t)n);
        if (as != o->as && !(gp_picfile_of(as) && gp_read_is_pictures(o))
            && !(gp_filetype_takes(as, "sample_rate") && gp_filetype_takes(o->as, "sample_rate")))
            return gp_shape_fail(s, "path", "'%s' is %s, and '%s', the first file, is %s: one stage does not read both; leave "
                                 "one out, as '*.{png,jpg}' does, or set 'format'", f.path,
                                 as ? gp_filetype_word(as) : "of no format that gpipe reads", o->file[0],
                                 gp_filetype_word(o->as));
    }
    return true;
}

/* The files are what `format` says, else what the first is. Of a stream, and of what is not there yet, the name
 * says it, else it is raw. */
static bool say_format(gp_shape *s, gp_read_opts *o, const gp_file *first)
{
    char *name = gp_shape_alloc(s, strlen(o->path) + 1);
    gp_path_first_choice(o->path, name);
    bool is_there = first && !first->error && first->kind == GP_FILE_REGULAR && !gp_path_is_device(first->path);
    bool folder = first && !first->error && first->kind == GP_FILE_DIR;
    o->whole = o->format == GP_WHOLE;
    o->as = o->whole ? GP_RAW
          : o->format ? (gp_filetype)o->format
          : folder ? GP_FORMAT_zarr
          : o->command.n ? GP_RAW
          : is_there ? gp_filetype_is(first->path, first->head, first->nhead)
                     : gp_filetype_of(first ? first->path : name);
    for (int i = 1; !o->as && is_there && gp_shape_drops(s) && i < o->nfiles; i++)
        o->as = gp_filetype_of(o->file[i]);        /* the first one is none, and left out */
    if (!o->as && is_there)
        return unknown_format(s, first, o->nfiles > 1);
    o->as = o->as ? o->as : GP_RAW;
    o->pictures = (gp_picfile_how){ .format = (gp_filetype)o->format,
                                    .keep_orientation = o->orientation == GP_ORIENTATION_KEEP, .colors = o->colors,
                                    .strict = o->strict,
                                    .halvings = o->shrink, .max_pixels = o->max_pixels };
    o->rows = (gp_rowsfile_how){ .format = (gp_filetype)o->format, .sample_rate = o->sample_rate, .member = o->member,
                                 .keep_orientation = o->orientation == GP_ORIENTATION_KEEP, .strict = o->strict,
                                 .max_pixels = o->max_pixels, .range = o->range, .colors = o->colors,
                                 .stream = (int)o->stream, .level = o->level, .header = o->header,
                                 .decimal_comma = o->decimal == GP_COMMA };
    o->rows.nkeys = gp_shape_meta_keys(s, &o->rows.key);
    if (o->varies && gp_read_is_video(o))
        return gp_shape_fail(s, o->from, "the frames of a video are of one size, which is that of '%s': declare no bounds "
                             "('<=')", o->path);
    return are_alike(s, o);
}

/* Raw data have no shape of their own. The first of many files says what all are. */
static bool may_vary(gp_shape *s, const gp_read_opts *o, bool many)
{
    if (!(o->varies & ~1u) || o->as != GP_RAW)
        return true;
    return gp_shape_fail(s, o->from, "raw data have no header: in the shape of what is read from '%s' only "
                         "the first number may be a bound ('<=')%s%s%s", o->path, many ? "; the first of its files, '" : "",
                         many ? o->file[0] : "", many ? "', says what they are, and is not a picture" : "");
}

/* An option has no effect on what is not such a file; of many the first one says what all are. */
static bool without(gp_shape *s, const gp_read_opts *o, bool many, const char *opt, const char *what)
{
    enum { MOST = 400 };
    char *of = gp_shape_alloc(s, MOST);
    snprintf(of, MOST, many ? "a file that is not a %s: '%.300s', the first one, is none, and says what all are"
             : "a file that is not a %s", what, many ? o->file[0] : "");
    return gp_shape_without(s, opt, of);
}

static bool raw_only(gp_shape *s, const gp_read_opts *o, bool many)
{
    static const char *const of_raw[] = { "offset", "skip", "stored", "endian", "tail" };
    for (size_t i = 0; o->whole && i < sizeof of_raw / sizeof *of_raw; i++)
        if (!gp_shape_without(s, of_raw[i], "whole files ('format: bytes')"))
            return false;
    const char *opt = o->offset           ? "offset"
                    : o->skip             ? "skip"
                    : o->stored           ? "stored"
                    : o->endian != GP_LITTLE ? "endian"
                                          : NULL;
    if (o->as != GP_RAW && opt)
        return gp_shape_fail(s, opt, "'%s' is only for raw data, not for '%s'", opt, o->path);
    static const char *const of_pictures[] = { "orientation", "max_pixels", "colors", "shrink" };
    char *file = gp_shape_alloc(s, 40);
    snprintf(file, 40, "a %s file", gp_read_is_rows(o) ? gp_rowsfile_of(o->as)->name : "");
    for (size_t i = 0; !gp_read_is_pictures(o) && i < sizeof of_pictures / sizeof *of_pictures; i++)
        if (!gp_filetype_takes(o->as, of_pictures[i])
            && (gp_filetype_takes(o->as, "orientation") ? !gp_shape_without(s, of_pictures[i], file)
                                                        : !without(s, o, many, of_pictures[i], "picture")))
            return false;
    if (gp_read_is_pictures(o) && o->colors == GP_COLORS_PLANES)
        return gp_shape_fail(s, "colors", "'colors: planes' is for video, not for '%s'", o->path);
    if (!gp_filetype_takes(o->as, "stream") && !without(s, o, many, "stream", "video"))
        return false;
    if (!gp_filetype_takes(o->as, "level") && !without(s, o, many, "level", "Zarr"))
        return false;
    if (!gp_filetype_takes(o->as, "sample_rate")
        && !without(s, o, many, "sample_rate", "recording"))
        return false;
    if (!gp_filetype_takes(o->as, "member") && !without(s, o, many, "member", ".npz"))
        return false;
    if (!gp_filetype_takes(o->as, "range") && !without(s, o, many, "range", "video"))
        return false;
    static const char *const of_text[] = { "header", "decimal" };
    for (size_t i = 0; i < sizeof of_text / sizeof *of_text; i++)
        if (!gp_filetype_takes(o->as, of_text[i]) && !without(s, o, many, of_text[i], ".csv or .tsv"))
            return false;
    if ((gp_read_is_pictures(o) || gp_read_is_rows(o)) && o->tail != GP_TAIL_ERROR)
        return gp_shape_fail(s, "tail", "'tail' is only for raw and .npy data, not for '%s'",
                             o->path);
    return !o->varies || o->tail != GP_TAIL_DROP || gp_shape_without(s, "tail", "files of which each is a frame");
}

static bool declared(gp_shape *s, const gp_read_opts *o, const char *path)
{
    gp_type *t = &s->out[0];
    if (o->stored && !t->dtype)
        t->dtype = GP_C64;
    if (o->stored && t->dtype != GP_C64)
        return gp_shape_fail(s, "stored", "pairs of whole numbers are read as c64, and 'buffers' declares %s",
                             gp_dtype_name(t->dtype));
    return (t->dtype && t->ndim)
        || gp_shape_fail(s, o->from, "raw data have no header: declare dtype and shape "
                                     "of what is read from '%s' under 'buffers:'", path);
}

/* Looks at what has no file. */
static bool look_at_stream(gp_shape *s, const gp_read_opts *o)
{
    const gp_type *t = &s->out[0];
    if (o->whole)
        return gp_shape_fail(s, o->from, "'%s' is a stream, which does not say where a file ends: 'format: bytes' reads whole "
                             "files", o->path);
    if (gp_read_is_video(o) && !gp_rowsfile_of(o->as)->program)
        return (t->dtype && t->ndim)
            || gp_shape_fail(s, o->from, "what '%s' delivers is known only when the run has begun: declare its "
                                        "dtype and shape "
                             "under 'buffers:', for 640 x 480 in 4:2:0 {dtype: u8, shape: [480 * 3 / 2, 640]}",
                             o->path);
    const char *program = gp_read_is_rows(o) && !o->command.n ? gp_rowsfile_of(o->as)->program : NULL;
    if (o->as != GP_RAW && o->as != GP_NPY)
        return gp_shape_fail(s, o->from, "'%s' is a stream, and only raw data ('format: raw'), npy and y4m can be read "
                                         "from one: "
                             "other formats need a file%s%s%s", o->path, program
                             ? "; or let a program make raw data of it, whose "
                             "failure is told: 'command: [" : "", program ? program : "", program ? "]'" : "");
    if (o->as == GP_NPY && o->varies)
        return gp_shape_fail(s, o->from, "the frames of a stream are of one size: declare no bounds ('<=') for '%s'", o->path);
    if (o->as == GP_NPY)
        return (t->dtype && t->ndim)
            || gp_shape_fail(s, o->from, "what '%s' delivers is known only when the run has begun: declare its dtype and shape "
                             "under 'buffers:'", o->path);
    return declared(s, o, o->path);
}

static bool check_command(gp_shape *s, gp_read_opts *o)
{
    static const char *const others[] = { "loop", "reopen", "when_full", NULL };
    return gp_process_shape(s, &o->command, "frames come from a 'path' or from a 'command', not from both", others,
                            "what a process writes", &o->path, &o->folder);
}

/* Has the file the type that is declared? */
static bool has_dtype(const gp_type *found, const gp_type *t, char why[GP_WHY])
{
    return !t->dtype || t->dtype == found->dtype
        || gp_why(why, "holds %s, and 'buffers' declares %s", gp_dtype_name(found->dtype), gp_dtype_name(t->dtype));
}

/* Is the type declared, for a file that does not say in its head what it holds? */
static bool is_declared(const gp_type *t, char why[GP_WHY])
{
    return (t->dtype && t->ndim)
        || gp_why(why, "says what it holds behind its first MiB, which is all that is read before the run: declare "
                  "dtype and shape of the output under 'buffers:'");
}

/* The same of a list of rows. One that is not declared is a frame where there are many, whose rows then have to be
 * known. */
static bool infer_rows(const gp_read_opts *o, gp_type *t, const gp_type *found, bool many, gp_cut *cut,
                       char why[GP_WHY])
{
    char have[128], want[128], columns[32] = "";
    if (!found->ndim)
        return is_declared(t, why);
    if (!has_dtype(found, t, why))
        return false;
    if (gp_read_is_video(o)) {
        gp_type frame = { 0 };
        if (!gp_cut_infer(&frame, found, false, why))
            return false;
        if (!t->ndim)
            *t = frame;
        return gp_type_same(t, &frame)
            ? gp_cut_type(cut, found, t, why)
            : gp_why(why, "has frames of %s, and 'buffers' declares %s", gp_type_text(&frame, have), gp_type_text(t, want));
    }
    if (gp_rowsfile_of(o->as)->is_array)
        return gp_cut_infer(t, found, many && !gp_rowsfile_of(o->as)->pages, why) && gp_cut_type(cut, found, t, why);
    if (!t->dtype)
        t->dtype = found->dtype;
    if (!t->ndim && many && found->dim[0] > 0)
        *t = *found;
    if (found->ndim > 1)
        snprintf(columns, sizeof columns, ", %lld", (long long)found->dim[1]);
    if (!t->ndim)
        return gp_why(why, "holds %s: how many rows make a frame? declare the shape of the output under 'buffers:', "
                      "for instance shape: [%d%s]", gp_rowsfile_text(found, have),
                      gp_filetype_takes(o->as, "sample_rate") ? 4096 : 1000, columns);
    return gp_cut_type(cut, found, t, why);
}

/* Of how many files, the first in the list, frames are made, where each is one. */
static int files_used(const gp_read_opts *o)
{
    int64_t n = o->frames && o->frames < o->nfiles && o->shuffle < 0 ? (int64_t)gp_read_frame(o, (uint64_t)o->frames - 1) + 1 : o->nfiles;
    return n < o->nfiles ? (int)n : o->nfiles;
}

/* `all`: the frames of all files, 0 where that is not known. */
static bool say_frames(gp_shape *s, const gp_read_opts *o, int64_t all, bool can_shuffle)
{
    if (all && o->start >= all)
        return gp_shape_fail(s, "start", "'start' is %lld, and there %s %lld frame%s", (long long)o->start,
                             all == 1 ? "is" : "are", (long long)all, gp_plural(all));
    if (o->shuffle >= 0 && !can_shuffle)
        return gp_shape_fail(s, "shuffle", "several files, each of which is cut into frames, cannot be shuffled: make one file "
                             "of them all, as a .npy, or of each frame");
    all -= all ? o->start : 0;
    all = (all + o->every - 1) / o->every;
    s->known.frames = o->loop || (o->frames && o->frames < all) ? o->frames : all;
    return true;
}

/* Whole files: a frame has as many bytes as its file, and the largest has room, as it is now. */
static bool look_at_bytes(gp_shape *s, gp_read_opts *o)
{
    gp_type *t = &s->out[0];
    int64_t most = 1;
    if ((t->dtype && t->dtype != GP_U8) || (t->ndim && (t->ndim != 1 || !(o->varies & 1))))
        return gp_shape_fail(s, "format", "the bytes of a file are u8, and as many as it has: declare no more than a bound, "
                             "as in {dtype: u8, shape: [\"<=1000000\"]}");
    for (int i = 0; !t->ndim && i < files_used(o); i++) {
        int64_t size = gp_probe_size(s, o->file[i]);
        most = size > most ? size : most;
    }
    *t = (gp_type){ .dtype = GP_U8, .ndim = 1, .dim = { t->ndim ? t->dim[0] : most } };
    o->varies = s->varies = 1;
    s->busy_ns = t->dim[0] / COPIED_IN_NS;
    return say_frames(s, o, o->numbered ? o->numbers : o->nfiles, true);
}

/* Where bytes of a file are that are not in its head. */
typedef struct probed { gp_shape *s; const gp_file *f; } probed;

static int64_t more(void *user, int64_t at, void *to, size_t n)
{
    const probed *p = user;
    return gp_probe_bytes(p->s, p->f, at, to, n);
}

static int64_t beside(void *user, const char *name, int64_t at, void *to, size_t n)
{
    const probed *p = user;
    char *path = gp_shape_alloc(p->s, strlen(p->f->path) + strlen(name) + 2);
    strcpy(stpcpy(stpcpy(path, p->f->path), "/"), name);
    return gp_probe_bytes(p->s, &(gp_file){ .path = path }, at, to, n);
}

static bool look_at_head(gp_shape *s, gp_read_opts *o, const gp_file *f, gp_type *found, char why[GP_WHY])
{
    char note[GP_WHY] = "";
    gp_rows_head h = { f->head, f->nhead, f->size, more, &(probed){ s, f }, f->kind == GP_FILE_DIR ? beside : NULL, note,
                       &o->rows.header_line };
    if (!gp_rowsfile_head(&o->rows, o->as, &h, &s->out[0], found, why)) {
        o->rows.header_line = 0;
        return false;
    }
    if (*note)
        gp_shape_warn(s, "path", "'%s' %s", f->path, note);
    return true;
}

/* The type of a picture of which the first n bytes are there; of its end no more is read than that needs. */
static bool take_picture(gp_shape *s, const gp_read_opts *o, const char *path, const void *head, size_t n, gp_type *found,
                         char why[GP_WHY])
{
    const gp_file f = { .path = path };
    if (!gp_picfile_head(&o->pictures, path, head, n, found, why))
        return false;
    int64_t size = gp_picfile_has_end(&o->pictures, path, head, n) ? gp_probe_size(s, path) : 0, got;
    if (size <= (int64_t)n)
        return true;
    char end[GP_PICFILE_END];
    got = gp_probe_bytes(s, &f, size > GP_PICFILE_END ? size - GP_PICFILE_END : 0, end, GP_PICFILE_END);
    gp_picfile_end(&o->pictures, path, head, n, end, got > 0 ? (size_t)got : 0, found);
    return true;
}

/* The head of a picture, of which no more is read than it needs. */
static bool look_at_picture(gp_shape *s, const gp_read_opts *o, int i, char head[LONG_HEAD], gp_type *found)
{
    const gp_file f = { .path = o->file[i] };
    char why[GP_WHY];
    int64_t n = gp_probe_bytes(s, &f, 0, head, SHORT_HEAD);
    bool ok = n > 0 && take_picture(s, o, f.path, head, (size_t)n, found, why);
    if (!ok && n == SHORT_HEAD && (n = gp_probe_bytes(s, &f, 0, head, LONG_HEAD)) > 0)
        ok = take_picture(s, o, f.path, head, (size_t)n, found, why);
    return ok;
}

/* Which of several types is meant is not for the order of names to say, but for `typed`. Pictures of other colors would
 * fail when it is their turn. */
static bool are_of_one_sort(gp_shape *s, const gp_read_opts *o, const gp_type *all, bool typed)
{
    const gp_dtype first = all->dtype;
    char why[GP_WHY];
    int most = files_used(o);
    char *head = most > 1 ? gp_shape_alloc(s, LONG_HEAD) : NULL;
    gp_type found;
    for (int i = 1; head && i < most && i < MOST_HEADERS; i++) {
        if (!look_at_picture(s, o, i, head, &found))
            continue;
        if (found.dtype != first && !typed)
            return gp_shape_fail(s, "path", "'%s' holds %s, and '%s', the first file, %s: pictures of 8 and of 16 bits, or "
                                 "floats, are read by a stage each; or declare which are meant, as 'dtype: %s' under "
                                 "'buffers', and "
                                 "leave out the others ('on_error: drop')", o->file[i], gp_dtype_name(found.dtype), o->file[0],
                                 gp_dtype_name(first), gp_dtype_name(found.dtype));
        if (found.dtype == first && !gp_shape_drops(s)
            && !gp_picfile_alike(&found, all, o->varies, gp_read_who_says(o, o->says_shape), why))
            return gp_shape_fail(s, "path", "'%s' %s", o->file[i], why);
    }
    return true;
}

/* The largest sides of pictures without a declared shape are the bounds of a frame. Those that are of another type,
 * broken, gone, or larger than can be made of so few bytes do not count: they are told of when it is their turn. */
static void look_at_sizes(gp_shape *s, gp_read_opts *o)
{
    enum { MOST_FOR_A_BYTE = 1032 * 32 };      /* of deflate's, of a bit that becomes RGBA; of what is not coded by arithmetic */
    gp_type *t = &s->out[0], found;
    int most = files_used(o);          /* pictures: a frame each */
    char *head = most > 1 ? gp_shape_alloc(s, LONG_HEAD) : NULL;
    for (int i = 0; head && i < most && i < MOST_HEADERS; i++) {
        int64_t size = gp_probe_size(s, o->file[i]);
        if (size < 0 || !look_at_picture(s, o, i, head, &found))
            continue;
        if ((double)gp_bytes(&found) > (double)size * MOST_FOR_A_BYTE || (t->dtype && t->dtype != found.dtype))
            continue;
        if (!t->ndim)
            *t = found;
        if (found.ndim != t->ndim || (t->ndim > 2 && found.dim[2] != t->dim[2]))
            continue;
        for (int k = 0; k < 2; k++) {
            o->varies |= found.dim[k] != t->dim[k] ? 1u << k : 0;
            t->dim[k] = found.dim[k] > t->dim[k] ? found.dim[k] : t->dim[k];
        }
    }
    o->looked = o->varies ? o->nfiles < MOST_HEADERS ? o->nfiles : MOST_HEADERS : 0;
    s->varies = o->varies;
}

/* The type of a frame, from the head of the first file and the declaration. */
static bool look_inside(gp_shape *s, gp_read_opts *o, const gp_file *f, bool many)
{
    gp_type *t = &s->out[0], found = { 0 };
    gp_cut cut = { 0 };
    gp_cut_how as = gp_read_cut(o);
    char why[GP_WHY], have[GP_WHY], want[128];
    bool ok = true, broken = false, fortran, big, rows = gp_read_is_rows(o);
    const gp_dtype dtype = t->dtype;   /* as declared */
    size_t data;
    o->says_dtype = t->dtype, o->says_shape = t->ndim;

    o->same_rows = (o->as == GP_NPY || (rows && !gp_rowsfile_of(o->as)->pages && !gp_read_is_video(o))) && many && !t->ndim;
    if (gp_read_is_pictures(o) && t->ndim && !gp_picfile_fits_colors(s, &o->pictures, t, o->varies))
        return false;
    if (rows && !look_at_head(s, o, f, &found, why)) {
        ok = false, broken = true;
        bool of_text = gp_filetype_takes(o->as, "header");     /* the next one says what the header is */
        for (int i = 1; gp_shape_drops(s) && of_text && i < o->nfiles && !o->rows.header_line; i++)
            look_at_head(s, o, gp_probe_file(s, o->file[i]), &found, have);
    } else if (o->varies) {
        if (o->as == GP_RAW && !declared(s, o, f->path))
            return false;
        if (o->as != GP_RAW && !rows)
            ok = gp_read_is_pictures(o) ? take_picture(s, o, f->path, f->head, f->nhead, &found, why)
                                : gp_npy_parse_any(f->head, f->nhead, &found, &data, &fortran, &big, why);
        ok = ok && (!rows || found.ndim || is_declared(t, why))
          && (!rows || gp_rowsfile_one(&found, gp_rowsfile_of(o->as), t->ndim, why));
        if (!t->dtype)
            t->dtype = found.dtype;
        if (rows && found.dim[0] < 0)
            found.dim[0] = t->dim[0];  /* as many as there may be */
        if (rows && !found.ndim)
            found = *t;                /* which is declared */
        broken = !ok || (gp_read_is_pictures(o) && dtype && dtype != found.dtype);
        ok = ok && (!gp_read_is_pictures(o) || gp_picfile_alike(&found, t, o->varies, "and 'buffers' declares", why))
          && (o->as == GP_RAW || gp_file_fits(&found, t, o->varies, why));
    } else if (o->as == GP_RAW) {
        if (!declared(s, o, f->path))
            return false;
        gp_type stored = gp_read_stored(o, t);
        ok = gp_cut_raw(&cut, f->size, &stored, &as, why);
    } else if (rows) {
        ok = infer_rows(o, t, &found, many, &cut, why);
    } else if (o->as == GP_NPY) {
        ok = gp_npy_parse_any(f->head, f->nhead, &found, &data, &fortran, &big, why);
        broken = !ok;
        ok = ok && has_dtype(&found, t, why)
          && gp_cut_infer(t, &found, many, why)
          && gp_cut_npy(&cut, f->head, f->nhead, f->size, t, &as, why);
    } else {
        ok = take_picture(s, o, f->path, f->head, f->nhead, &found, why)
          && gp_picfile_can_hold(&o->pictures, f->path, f->head, f->nhead, f->size, &found, why);
        broken = !ok;
        gp_type said = { .dtype = t->dtype ? t->dtype : found.dtype,
                         .ndim = t->ndim ? t->ndim : found.ndim };
        memcpy(said.dim, t->ndim ? t->dim : found.dim, sizeof said.dim);
        if (ok && !gp_type_same(&said, &found))
            ok = gp_why(why, "holds %s, and 'buffers' declares %s", gp_type_text(&found, have),
                        gp_type_text(&said, want));
        bool open = many && !t->ndim && (ok || gp_shape_drops(s));
        broken |= !ok && dtype && dtype != found.dtype;
        if (ok)
            *t = found;
        if (open)
            look_at_sizes(s, o);
    }
    if (broken && many && t->dtype && t->ndim && gp_shape_drops(s))
        ok = true;                     /* frame 0 says it */
    if (ok && many && (!dtype || !o->says_shape) && gp_read_is_pictures(o) && !are_of_one_sort(s, o, t, dtype))
        return false;
    if (!ok)
        return gp_shape_fail(s, "path", "'%s' %s", f->path, why);
    /* how many there are, where that shows in the first file */
    int64_t each = gp_read_is_pictures(o) || o->same_rows || o->varies ? 1
        : o->nfiles == 1 && cut.rows > 0 ? gp_cut_frames(&cut) : 0;
    int64_t n = cut.rows > 0 ? gp_cut_frames(&cut) : 0;
    if (n && (o->shuffle >= 0 || ((n - 1 - o->start) % o->every == 0
                                  && (!o->frames || o->frames >= n || (int64_t)gp_read_frame(o, (uint64_t)o->frames - 1) >= n - 1))))
        s->tail_rows = cut.rows % cut.frame_rows;
    int64_t pieces = cut.rows > 0 && !rows ? gp_cut_frames(&cut) : 0;
    if (!count_pieces(s, o, f, each == 1 && o->nfiles > 1 ? 1 : pieces))
        return false;
    int64_t all = o->numbered ? o->pieces * o->numbers : each * o->nfiles;
    s->busy_ns = rows ? gp_rowsfile_of(o->as)->decode_ns * (int64_t)gp_bytes(t)
               : gp_read_is_pictures(o) ? gp_picfile_decode_ns(gp_picfile_of(o->as), &o->pictures, t) : 0;
    if (rows && gp_rowsfile_of(o->as)->by_turns && !o->same_rows && !o->varies)
        s->most_workers = 1;
    if (o->as == GP_RAW || o->as == GP_NPY)
        s->busy_ns = (int64_t)gp_bytes(t) / COPIED_IN_NS,
        s->most_workers = gp_bytes(t) * GP_READ_AT_ONCE < GP_RUN_BYTES ? 1 : MOST_COPIES;      /* one reads many at once */
    if (rows && gp_rowsfile_of(o->as)->take && !gp_shape_without(s, "shuffle", "a video, whose frames come one after the other"))
        return false;
    return say_frames(s, o, all, o->nfiles == 1 || (each && o->as != GP_RAW));
}

bool gp_read_shape(gp_shape *s)
{
    gp_read_opts *o = (gp_read_opts *)s->opts;   /* its last fields are shape()'s */
    const gp_file *first;
    bool many;

    bool spawns = gp_shape_node(s, "command") != NULL;
    o->from = spawns ? "command" : "path";
    o->at = gp_shape_loc(s, o->from), o->start_at = gp_shape_loc(s, "start");
    o->varies = s->out_varies[0], o->looked = 0;
    if (spawns && !check_command(s, o))
        return false;
    s->endless = (o->loop || o->reopen) && !o->frames;
    s->known.hertz = o->rate;
    if (!list_files(s, o, &first, &many) || !find_missing(s, o) || !say_format(s, o, first)
        || !may_vary(s, o, many && o->nfiles) || !raw_only(s, o, many && o->nfiles))
        return false;
    s->once = o->live && !spawns;      /* a process can be started again */
    s->by_number = !o->live;
    if (o->live && s->workers > 1)
        return gp_shape_fail(s, "workers", "'%s' is a stream, whose frames come one after the other: it has one worker",
                             o->path);
    if (o->reopen && (!o->live || !o->nfiles))
        return gp_shape_fail(s, "reopen", "'reopen' is for a FIFO, and '%s' is not one", o->path);
    if (!o->live && !gp_shape_without(s, "when_full", "a file, which waits"))
        return false;
    if (o->live && (!gp_shape_without(s, "start", "a stream, which begins where it is")
                    || !gp_shape_without(s, "every", "a stream: 'decimate' keeps one of several of its frames")
                    || !gp_shape_without(s, "shuffle", "a stream, whose frames come one after the other")))
        return false;
    if (o->live) {
        if (o->loop)
            return gp_shape_fail(s, "loop", "'%s' is a stream and cannot be read twice%s", o->path,
                                 o->nfiles ? ": 'reopen' waits for its next writer" : "");
        return look_at_stream(s, o);
    }
    return !first || first->error || (o->whole ? look_at_bytes(s, o) : look_inside(s, o, first, many));
}
