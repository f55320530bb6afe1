/* check.c - what can be said of a `write` stage before it runs, see writer.h. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "color_how.h"
#include "writer.h"

enum {
    COPIED_OUT_NS = 2,                 /* bytes, into new pages of the cache of files, about */
    LINE = 32,                         /* bytes that may be a line of text */
};

/* The length of a ${...} at `p`, or of a '$' alone. */
static size_t value_length(const char *p)
{
    size_t n = 1;
    int open = 0;
    if (p[1] == '$')
        return 2;
    do {
        open += p[n] == '{' ? 1 : p[n] == '}' ? -1 : 0;
        n++;
    } while (open && p[n - 1]);
    return p[1] == '{' && !open ? n : 1;
}

/* Checks that every % in the path, as the pipeline spells it, begins a known conversion. */
static bool check_path(gp_shape *s)
{
    const gp_node *n = gp_shape_node(s, "path");
    bool ok = true;
    size_t known;
    for (const char *p = n->text; (p += strcspn(p, "$%"), *p); p += known)
        if (*p == '$')
            known = value_length(p);
        else if (!(known = gp_path_conversion(p))) {
            known = 1 + strspn(p + 1, "0123456789");
            known += isalpha((unsigned char)p[known]) != 0;
            ok = gp_shape_fail_at(s, gp_node_part(n, (size_t)(p - n->text), known),
                                  "'%.*s' has no meaning here; %%05d is the frame's number, %%n "
                                  "the name of its source file, %%t its time, %%%% a '%%'", (int)known, p);
        }
    const gp_write_opts *o = s->opts;
    return ok && (!gp_path_lacks_zero(o->path)
                  || gp_shape_fail(s, "path", "'%s' has no number: that is %%d, or with its digits "
                                              "%%05d", o->path));
}

static bool check_command(gp_shape *s, gp_write_opts *o)
{
    static const char *const others[] = { "live", "if_exists", "durable", "start", "append", "keep", "rotate_frames",
                                          "rotate_time", "rotate_size", NULL };
    return gp_process_shape(s, &o->command, "frames go to a 'path' or to a 'command', not to both", others,
                            "what a process reads", &o->path, &o->folder);
}

/* Refuses what has no effect on such a file. */
static bool check_exists(gp_shape *s, const gp_write_opts *o)
{
    const char *name = o->path + gp_path_folder(o->path);
    if (!o->numbered && !gp_shape_without(s, "start", "a path without a number, like %05d"))
        return false;
    if (o->to_stdout && (!gp_shape_without(s, "if_exists", "standard output")
                         || !gp_shape_without(s, "durable", "standard output")))
        return false;
    return o->if_exists != GP_NEXT
        || (gp_path_has_number(name) && !o->named && !o->timed && !memchr(o->path, '%', (size_t)(name - o->path)))
        || gp_shape_fail(s, "if_exists", "'next' is for files that differ only in the number in "
                         "their names, like 'out/%%05d.raw'");
}

/* What decides where a file ends and the next begins. */
static bool check_rotation(gp_shape *s, const gp_write_opts *o)
{
    const char *by = o->rotate_frames ? "rotate_frames" : o->rotate_time ? "rotate_time" : "rotate_size";
    if (!o->rotates && !gp_shape_without(s, "keep", "files that do not follow each other: set 'rotate_frames', "
                                         "'rotate_time' or 'rotate_size', too"))
        return false;
    if (o->timed && !o->numbered && (!o->rotates || o->rotate_frames || o->rotate_size))
        return gp_shape_fail(s, "path", "'%s' may be one name for two files, as frames may have one time: put %%05d into "
                             "it, too", o->path);
    if (!o->rotates)
        return true;
    if (o->to_stdout || gp_path_is_device(o->path))
        return gp_shape_without(s, by, o->to_stdout ? "standard output" : "a device");
    if (gp_write_is_folder(o) && !gp_shape_without(s, "keep", "Zarr stores, which are folders"))
        return false;
    if (o->single)
        return gp_shape_without(s, by, o->named ? "files with the names of frames (%n)" : "pictures, of which each is a file");
    if (!o->numbered && !o->timed)
        return gp_shape_fail(s, "path", "'%s' is one name for all files that '%s' makes: put %%05d into it, which is then the "
                             "number of the file, or %%t, the time of its first frame", o->path, by);
    return !o->rotate_size || !gp_write_creates(o)
        || gp_shape_fail(s, "rotate_size", "how large %s becomes is known once it is finished: set 'rotate_frames' or "
                         "'rotate_time'", gp_rowsfile_of(o->as)->name);
}

static bool check_append(gp_shape *s, gp_write_opts *o)
{
    if (!o->append)
        return true;
    if (o->single || o->rotates || o->to_stdout || gp_path_is_device(o->path))
        return gp_shape_without(s, "append", o->single    ? "a file for each frame"
                                           : o->rotates   ? "files that follow each other; 'if_exists: next' goes on behind "
                                                            "those that are there"
                                           : o->to_stdout ? "standard output" : "a device");
    if (o->as != GP_RAW && o->as != GP_NPY && !gp_write_is_text(o))
        return gp_shape_fail(s, "append", "frames can be added to raw data, .npy, .csv, .tsv and .jsonl files, not to %s",
                             gp_rowsfile_of(o->as)->name);
    o->live = true;
    return gp_shape_without(s, "if_exists", "a file that is added to");
}

/* Can a run go on that was broken off? Each sink has to have by then, under names that come again, what it was given. */
static bool check_resume(gp_shape *s, gp_write_opts *o)
{
    const char *what = "a run that may go on from another ('resume')";
    o->resumes = s->resume;
    if (!o->resumes || gp_path_is_device(o->path))
        return true;
    if (o->to_stdout || o->command.n)
        return gp_shape_fail(s, o->to, "what %s has had is not known to the run that goes on from this one, as 'resume' says: "
                             "write to a file", o->to_stdout ? "standard output" : "a process");
    if (!gp_shape_without(s, "keep", what) || !gp_shape_without(s, "if_exists", what))
        return false;
    if (o->timed || o->rotate_time)
        return gp_shape_fail(s, o->timed ? "path" : "rotate_time", "frames that are made once more, as 'resume' says, may have "
                             "another time then: use %s", o->timed ? "%05d alone" : "'rotate_frames' or 'rotate_size'");
    if (o->durable == GP_NOT_DURABLE)
        return gp_shape_fail(s, "durable", "'resume' relies on what is on disk: leave out 'durable: none'");
    if (gp_write_is_folder(o) && !o->single && !o->rotates)
        return gp_shape_fail(s, "path", "a run that goes on, as 'resume' says, cannot go on with a %s store: write a .npy with "
                             "'live: true', or give stores several frames each ('rotate_frames', with %%05d in the path)",
                             gp_rowsfile_of(o->as)->name);
    return o->single || o->rotates || (o->live && !gp_write_creates(o))
        || gp_shape_fail(s, "path", "a run that goes on, as 'resume' says, needs what this one has written: %sgive files several "
                         "frames each ('rotate_frames', with %%05d in the path), or each frame a file",
                         gp_write_creates(o) ? "" : "say 'live: true', ");
}

bool gp_write_is_pictures(const gp_write_opts *o)
{
    return gp_picfile_of(o->as) != NULL;
}

bool gp_write_is_text(const gp_write_opts *o)
{
    const gp_rowsfile *f = gp_rowsfile_of(o->as);
    return f && f->encode;
}

bool gp_write_creates(const gp_write_opts *o)
{
    const gp_rowsfile *f = gp_rowsfile_of(o->as);
    return f && f->create;
}

bool gp_write_is_video(const gp_write_opts *o)
{
    const gp_rowsfile *f = gp_rowsfile_of(o->as);
    return f && f->is_video;
}

bool gp_write_begins(const gp_write_opts *o)
{
    const gp_rowsfile *f = gp_rowsfile_of(o->as);
    return f && f->begin;
}

bool gp_write_is_folder(const gp_write_opts *o)
{
    const gp_rowsfile *f = gp_rowsfile_of(o->as);
    return f && f->is_folder;
}

/* Does that travel with frames? */
static bool lists(gp_shape *s, const char *key)
{
    const char *const *keys;
    int n = gp_shape_meta_keys(s, &keys);
    while (n && strcmp(keys[n - 1], key))
        n--;
    return n > 0;
}

/* Checks what the header of a video says, as far as it does not depend on its frames. */
static bool check_video(gp_shape *s, gp_write_opts *o)
{
    const bool coded = gp_write_creates(o);
    o->video = (gp_y4m){ .siting = o->siting, .range = o->range };
    o->encode = (gp_video_how){ .codec = o->codec, .preset = o->preset, .crf = o->crf, .bitrate = o->bitrate, .live = o->live,
                                .matrix = o->matrix - 1 };
    if (coded && !gp_video_container(o->path))
        return gp_shape_fail(s, o->to, "'%s' is a video, of which gpipe writes " GP_VIDEO_CONTAINERS ": let a program make "
                             "others, as in 'command: [ffmpeg, -i, \"-\", out.gif]' with 'format: y4m'", o->path);
    if (coded && !*o->frame_rate)
        o->encode.times = lists(s, "pts") ? "pts" : lists(s, "time") ? "time" : NULL;
    if (!*o->frame_rate && !o->encode.times)
        return gp_shape_fail(s, o->to, "'%s' needs to know how many frames are a second: set 'frame_rate', for instance to 25 or "
                             "30000/1001%s", o->path, coded ? "; or where frames are from videos, say 'metadata: [pts]' at the "
                             "top, where they are from instruments, 'metadata: [time]'" : "");
    if (*o->frame_rate && !gp_y4m_ratio(o->frame_rate, o->video.rate))
        return gp_shape_fail(s, "frame_rate", "'%s' is not a frame rate such as 25, 12.5 or 30000/1001", o->frame_rate);
    if (strcmp(o->pixel_aspect, "0:0") && !gp_y4m_ratio(o->pixel_aspect, o->video.aspect))
        return gp_shape_fail(s, "pixel_aspect", "'%s' is not a ratio such as 1:1 or 16:11; 0:0 means not "
                                        "known", o->pixel_aspect);
    return true;
}

/* Of a video that is encoded: how frames become what is stored, and whether they can. */
static bool check_coded(gp_shape *s, gp_write_opts *o, const gp_type *t, bool chosen)
{
    static const int kind[] = { [GP_Y4M_420] = GP_YUV420, [GP_Y4M_422] = GP_YUV422, [GP_Y4M_444] = GP_YUV444,
                                [GP_Y4M_MONO] = GP_GRAY };
    char why[GP_WHY], note[GP_WHY], have[128];
    if (o->bitrate && o->crf >= 0)
        return gp_shape_fail(s, "bitrate", "'bitrate' takes the place of 'crf': give one of them");
    const char *at = gp_shape_node(s, "codec") ? "codec" : o->to;
    const bool planes = o->colors, gray = t->ndim == 2 || (t->ndim == 3 && t->dim[2] == 1);
    if (!planes && !gray && !(t->ndim == 3 && t->dim[2] == 3))
        return gp_shape_fail(s, o->to, "'%s' cannot hold %s: frames are [H, W, 3] of red, green and blue, or gray, [H, W]; with "
                             "'colors: planes' they are as of a .y4m", o->path, gp_type_text(t, have));
    if (!planes && !gp_shape_without(s, "siting", "frames that are not planes, of which colors are in the middle of pixels"))
        return false;
    o->encode.from = planes ? kind[o->video.subsampling] : gray ? GP_GRAY : GP_RGB;
    o->encode.to = planes || chosen ? kind[o->video.subsampling] : -1;
    if (!planes)
        o->video.height = t->dim[0], o->video.width = t->dim[1];
    o->rows.encode = &o->encode;
    if (!gp_rowsfile_of(o->as)->fits(&o->rows, o->path, note, why))
        return gp_shape_fail(s, at, "'%s' %s", o->path, why);
    if (*note)
        gp_shape_warn(s, at, "'%s' %s", o->path, note);
    return true;
}

/* The rest, from the type of the frames. */
static bool check_planes(gp_shape *s, gp_write_opts *o, const gp_type *t)
{
    char why[GP_WHY];
    bool chosen = gp_shape_node(s, "subsampling") != NULL, deep = t->dtype == GP_U16;
    o->video.subsampling = t->ndim == 3 && !chosen && (!gp_write_creates(o) || o->colors) ? GP_Y4M_444 : o->subsampling;
    o->video.bits = o->bits ? (int)o->bits : deep ? 16 : 8;
    if (o->bits && (o->bits < 8 || deep != (o->bits > 8)))
        return gp_shape_fail(s, "bits", "8 bits are u8, 9 to 16 are u16, and frames of '%s' are %s", s->in_name[0],
                             gp_dtype_name(t->dtype));
    if (o->video.subsampling != GP_Y4M_420 && !gp_shape_without(s, "siting", "a video that is not 4:2:0"))
        return false;
    o->rows.video = &o->video;
    if ((!gp_write_creates(o) || o->colors) && !gp_y4m_take(&o->video, t, why))
        return gp_shape_fail(s, o->to, "'%s' %s", o->path, why);
    return !gp_write_creates(o) || check_coded(s, o, t, chosen);
}

/* Refuses options of other formats than that of the file. */
static bool check_format(gp_shape *s, gp_write_opts *o)
{
#define ENCODED "video, or not encoded"
    static const struct { const char *name, *what; } options[] = {
        { "compression", "PNG, TIFF or Zarr" }, { "quality", "JPEG or Ogg/Vorbis" }, { "subsampling", "JPEG or video" },
        { "sample_rate", "recording" }, { "frame_rate", "video" }, { "pixel_aspect", "video" }, { "siting", "video" },
        { "bits", "video" }, { "range", "video" }, { "member", ".npz" }, { "chunk", "Zarr" },
        { "columns", ".csv or .tsv" }, { "codec", ENCODED }, { "crf", ENCODED }, { "preset", ENCODED }, { "bitrate", ENCODED },
        { "colors", ENCODED }, { "matrix", ENCODED },
    };
    char what[64];
    bool ok = true;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        snprintf(what, sizeof what, "a file that is not a %s", options[i].what);
        ok = ok && (gp_filetype_takes(o->as, options[i].name)
                    || gp_shape_without(s, options[i].name, what));
    }
    if (ok && gp_filetype_takes(o->as, "sample_rate") && !o->sample_rate && !lists(s, "sample_rate"))
        return gp_shape_fail(s, "path", "'%s' needs to know how many rows are a second: set 'sample_rate', for "
                                        "instance "
                             "to 44100; or where frames are from recordings, say 'metadata: [sample_rate]' at the top",
                             o->path);
    if (ok && gp_shape_node(s, "columns") && !gp_table_check(s))
        return false;
    if (ok && gp_write_is_video(o) && !check_video(s, o))
        return false;
    if (ok && gp_write_is_pictures(o) && o->subsampling == GP_Y4M_MONO)
        return gp_shape_fail(s, "subsampling", "a JPEG is gray where its frame is: 'mono' is for .y4m");
    o->pictures = (gp_picfile_how){ .format = o->as, .compression = (int)o->compression, .quality = (int)o->quality,
                                    .subsampling = o->subsampling };
    if (o->pages && !gp_shape_node(s, "compression"))
        o->compression = 0;            /* what is in many pages is to be read fast, and by any program */
    o->rows = (gp_rowsfile_how){ .format = o->as, .member = o->member, .stack = o->stack, .sample_rate = o->sample_rate,
                                 .quality = (int)o->quality, .compression = (int)o->compression, .chunk = o->chunk,
                                 .alone = o->single };
    return ok;
}

/* The name of an array, which is that of a file in the archive. */
static bool check_member(gp_shape *s, const gp_write_opts *o)
{
    if (!*o->member || strlen(o->member) > 200 || strchr(o->member, '/'))
        return gp_shape_fail(s, "member", "'%.60s' cannot name an array: a name has 1 to 200 bytes and no "
                                        "'/'", o->member);
    return !lists(s, o->member)
        || gp_shape_fail(s, "member", "'%s' is a number that 'metadata' lists, which is in the file, too", o->member);
}

bool gp_write_check(gp_shape *s)
{
    gp_write_opts *o = (gp_write_opts *)s->opts;   /* its last fields are this function's */
    bool spawns = gp_shape_node(s, "command") != NULL;
    if (spawns ? !check_command(s, o) : !check_path(s))
        return false;

    o->to = spawns ? "command" : "path";
    o->at = gp_shape_loc(s, o->to);
    o->to_stdout = !spawns && !strcmp(o->path, "stdout");
    o->as = o->format ? (gp_filetype)o->format : spawns ? GP_RAW : gp_filetype_of(o->path);
    if (!o->as && !o->to_stdout && !gp_path_is_device(o->path) && gp_probe_file(s, o->path)->kind == GP_FILE_REGULAR)
        return gp_shape_fail(s, o->to, "'%s' does not end in the extension of a format that gpipe writes, such as .npy or .png: "
                             "name it so, or set 'format: raw' for the bytes of its frames alone, or 'format: csv' for text; "
                             "'gpipe help files' lists the formats", o->path);
    o->as = o->as ? o->as : GP_RAW;
    const gp_rowsfile *rows = gp_rowsfile_of(o->as);
    o->numbered = !spawns && gp_path_has_number(o->path);
    o->named = !spawns && gp_path_has_name(o->path);
    o->timed = !spawns && gp_path_has_time(o->path);
    o->rotates = !spawns && (o->rotate_frames || o->rotate_time || o->rotate_size);
    o->single = ((o->numbered || o->timed) && !o->rotates) || o->named || (gp_write_is_pictures(o) && !spawns);
    o->pages = rows && (rows->pages || (rows->is_video && rows->create));

    o->arrays = o->as == GP_NPY && (o->to_stdout || spawns);
    if ((o->to_stdout || spawns) && o->as != GP_RAW && !o->arrays && !gp_write_is_text(o) && !gp_write_begins(o))
        return gp_shape_fail(s, "format", "only raw data, npy, text and y4m can be written to %s",
                             spawns ? "a process" : "stdout");
    if (o->arrays && !gp_shape_without(s, "stack", "a stream, in which each frame is an array of its own"))
        return false;
    bool stacks = o->as == GP_NPY || gp_write_is_text(o) || (rows && rows->is_array && !rows->pages);
    if (o->stack && (o->single || !stacks))
        return gp_shape_fail(s, "stack", "'stack' joins frames in one .npy, .npz, Zarr or text file, which '%s' is not",
                             o->path);
    if (gp_write_is_folder(o) && !o->path[gp_path_folder(o->path)])
        return gp_shape_fail(s, "path", "'%s' ends in '/': it is made as a whole, under its name without that", o->path);
    if (o->member && !check_member(s, o))
        return false;
    if (!check_format(s, o))
        return false;
    if (gp_write_creates(o) && !gp_write_is_folder(o) && !gp_write_is_video(o) && !gp_shape_without(s, "live", o->pages ? "a TIFF"
                                                 : stacks ? "a .npz, whose list of arrays is at its end"
                                                 : "a recording, whose header is right at its end only"))
        return false;
    if ((o->single || o->to_stdout)
        && !gp_shape_without(s, "live", o->to_stdout ? "standard output" : "a file for each frame"))
        return false;
    if (!spawns && !(check_exists(s, o) && check_rotation(s, o) && check_append(s, o)))
        return false;
    return check_resume(s, o) && (spawns || gp_shape_writes(s, "path", o->path));
}

bool gp_write_shape(gp_shape *s)
{
    gp_write_opts *o = (gp_write_opts *)s->opts;   /* its last fields are this function's */
    const gp_type *t = &s->in[0];
    if (s->partial)
        return true;
    o->nin = s->nin;
    if (s->nin > 1 && !o->columns.n)
        return gp_shape_fail(s, "in", "'%s' takes one buffer: several are in a table, which is a .csv or .tsv with 'columns'",
                             o->path);
    gp_type row = *t;                          /* a stacked frame is one */
    row.ndim += o->stack, row.dim[1] = o->stack ? t->dim[0] : t->dim[1];
    const char *why = gp_write_is_pictures(o)    ? gp_picfile_of(o->as)->why_not(t, o->path)
                    : gp_rowsfile_of(o->as) ? gp_rowsfile_of(o->as)->why_not(&row, o->path)
                                            : NULL;
    char have[128];
    if (why)
        return gp_shape_fail(s, o->to, "'%s' cannot hold %s: %s", o->path,
                             gp_type_text(t, have), why);
    if (o->columns.n && !gp_table_shape(s))
        return false;
    if (!o->format && gp_write_is_text(o) && !o->columns.n && t->dtype == GP_U8 && t->ndim == 1 && t->dim[0] >= LINE && !o->stack)
        return gp_shape_fail(s, o->to, "'%s' would have a number for each byte of a frame: say 'format: raw' if it is text, or "
                             "'format: %s' if numbers are meant", o->path, gp_filetype_word(o->as));
    if (gp_write_is_video(o) && s->in_varies[0])
        return gp_shape_fail(s, o->to, "the frames of a video are of one size, and those of '%s' may differ",
                             s->in_name[0]);
    if (gp_write_is_video(o) && !check_planes(s, o, t))
        return false;
    if (!o->single && !o->arrays && s->in_varies[0] & (o->pages ? ~0u : ~1u))
        return gp_shape_fail(s, o->to, "'%s' joins frames along axis 0, and those of '%s' may differ in %s: give "
                             "each a file of its own, with %%05d or %%n in the path", o->path, s->in_name[0],
                             o->pages ? "shape" : "others");
    if ((double)o->chunk * (double)gp_bytes(t) / (double)(o->stack ? 1 : t->dim[0]) > 0x1p36)
        return gp_shape_fail(s, "chunk", "a chunk of %lld rows would have more than 64 GiB", (long long)o->chunk);
    if (o->stack && t->ndim == GP_MAXDIM)
        return gp_shape_fail(s, "stack", "frames with %d axes cannot have one more", GP_MAXDIM);
    s->any_length = o->to_stdout || (!o->command.n && gp_path_is_device(o->path));
    bool bytes = !o->single && (o->as == GP_RAW || o->as == GP_NPY) && !o->to_stdout && !o->command.n && !o->live
              && !o->rotates;
    s->serial = o->rotates || (!o->numbered && !o->named && !(bytes && s->workers > 1));   /* `auto`: one, mostly the fastest */
    s->joins = bytes || (!o->single && !o->command.n && !o->live && !o->rotates && !gp_write_creates(o));
    s->file_each = o->single && !s->any_length;
    s->writes_from = o->if_exists == GP_NEXT ? INT64_MAX : o->start;
    int64_t whole = (int64_t)gp_bytes(t);
    s->busy_ns = gp_write_is_pictures(o) ? gp_picfile_encode_ns(gp_picfile_of(o->as), t, (int)o->compression)
               : gp_rowsfile_of(o->as)   ? gp_rowsfile_of(o->as)->encode_ns[o->compression] * whole : 0;
    if (o->single && s->busy_ns < whole / COPIED_OUT_NS)
        s->busy_ns = whole / COPIED_OUT_NS;
    return true;
}
