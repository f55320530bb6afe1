/* write.c - frames to files or standard output.
 *
 * A path with %05d or %n is one file a frame, and any number of workers may
 * write; otherwise frames are joined along axis 0 in one file, which gets its
 * name in finish(). A file has its name only once it is complete, unless it is `live`:
 * then it has it before frame 0, and holds whole frames whatever happens. A run that is
 * stopped before its first frame leaves a file that is there already as it is. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/filetable.h"
#include "base/npy.h"
#include "base/plural.h"
#include "picture_file.h"

enum { MAX_RUN = 64, RUN_BYTES = 1 << 20 };
enum { REPLACE, ERROR, NEXT };
enum { NONE, END, FILE_BY_FILE };

struct opts {
    const char *path;
    int format;
    bool stack, live;
    int64_t compression, start, quality;
    int if_exists, durable, subsampling;
    /* found by check() */
    gp_loc at;
    gp_filetype as;
    gp_picfile_how pictures;   /* where `as` is one */
    bool numbered;             /* has a number: no two frames have one name */
    bool named;                /* has a %n */
    bool single;               /* one file a frame */
    bool to_stdout;
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
                                  "the name of its source file, %%%% a '%%'", (int)known, p);
        }
    const struct opts *o = s->opts;
    return ok && (!gp_path_lacks_zero(o->path)
                  || gp_shape_fail(s, "path", "'%s' has no number: that is %%d, or with its digits "
                                              "%%05d", o->path));
}

/* Refuses what has no effect on such a file. */
static bool check_exists(gp_shape *s, const struct opts *o)
{
    const char *name = o->path + gp_path_folder(o->path);
    if (!o->numbered && !gp_shape_without(s, "start", "a path without a number, like %05d"))
        return false;
    if (o->to_stdout && (!gp_shape_without(s, "if_exists", "standard output")
                         || !gp_shape_without(s, "durable", "standard output")))
        return false;
    return o->if_exists != NEXT
        || (gp_path_has_number(name) && !o->named && !memchr(o->path, '%', (size_t)(name - o->path)))
        || gp_shape_fail(s, "if_exists", "'next' is for files that differ only in the number in "
                         "their names, like 'out/%%05d.raw'");
}

static bool is_pictures(const struct opts *o)
{
    return o->as >= GP_PICTURE;
}

/* Refuses options of other formats than that of the file. */
static bool check_pictures(gp_shape *s, struct opts *o)
{
    static const char *const options[] = { "compression", "quality", "subsampling" };
    char what[64];
    bool ok = true;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        snprintf(what, sizeof what, "a file that is not a %s", gp_picfile_taking(options[i]));
        ok = ok && (gp_picfile_takes(o->as, options[i]) || gp_shape_without(s, options[i], what));
    }
    o->pictures = (gp_picfile_how){ .format = o->as, .compression = (int)o->compression, .quality = (int)o->quality,
                                    .subsampling = o->subsampling };
    return ok;
}

static bool check(gp_shape *s)
{
    struct opts *o = (struct opts *)s->opts;   /* its last fields are check()'s */
    if (!check_path(s))
        return false;

    o->at = gp_shape_loc(s, "path");
    o->to_stdout = !strcmp(o->path, "stdout");
    o->as = o->format ? (gp_filetype)o->format : gp_filetype_of(o->path);
    if (!o->format && gp_foreign_extension(o->path))
        return gp_shape_fail(s, "path", "gpipe writes no %s files; name it .npy or .png, or set "
                             "'format: raw' for its bytes alone", gp_foreign_extension(o->path));
    o->numbered = gp_path_has_number(o->path);
    o->named = gp_path_has_name(o->path);
    o->single = o->numbered || o->named || is_pictures(o);

    if (o->to_stdout && o->as != GP_RAW)
        return gp_shape_fail(s, "format", "only raw data can be written to stdout");
    if (o->stack && (o->single || o->as != GP_NPY))
        return gp_shape_fail(s, "stack", "'stack' joins frames in one .npy file, which '%s' is not",
                             o->path);
    if (!check_pictures(s, o))
        return false;
    if ((o->single || o->to_stdout)
        && !gp_shape_without(s, "live", o->to_stdout ? "standard output" : "a file for each frame"))
        return false;
    return check_exists(s, o) && gp_shape_writes(s, "path", o->path);
}

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *t = &s->in[0];
    if (s->partial)
        return true;
    const char *why = is_pictures(o) ? gp_picfile_of(o->as)->why_not(t, o->path) : NULL;
    char have[128];
    if (why)
        return gp_shape_fail(s, "path", "'%s' cannot hold %s: %s", o->path,
                             gp_type_text(t, have), why);
    if (!o->single && s->in_varies[0] & ~1u)
        return gp_shape_fail(s, "path", "'%s' joins frames along axis 0, and those of '%s' may differ in others: give "
                             "each a file of its own, with %%05d or %%n in the path", o->path, s->in_name[0]);
    if (o->stack && t->ndim == GP_MAXDIM)
        return gp_shape_fail(s, "stack", "frames with %d axes cannot have one more", GP_MAXDIM);
    s->any_length = o->to_stdout || !strncmp(o->path, "/dev/", 5);
    s->serial = !o->numbered && !o->named;
    s->writes_from = o->if_exists == NEXT ? INT64_MAX : o->start;
    s->busy_ns = is_pictures(o) ? gp_picfile_of(o->as)->encode_ns[o->compression] * (int64_t)gp_bytes(t) : 0;
    return true;
}

/* ---- state ----------------------------------------------------------- */

struct worker {                  /* one worker's */
    gp_outfile file;
    gp_growbuf picture;
};

struct writer {
    const struct opts *o;
    gp_filewriter *files;      /* all that it writes */
    gp_outfile held;           /* the pattern of numbered files */
    char who[128];
    uint64_t first;            /* number of the file of frame 0 */
    int workers;
    struct worker *worker;
    gp_type joined;            /* what the joined file holds so far */
    size_t head;               /* bytes of its header */
    bool began;                /* a frame came, be it one of no rows */
};

/* Writes the header of the joined file as it now is; its length stays the same. */
static bool put_header(struct writer *w, char why[GP_WHY])
{
    char head[GP_NPY_HEADER_MAX];
    int fd = w->worker[0].file.fd;
    size_t n = gp_npy_header(&w->joined, head, sizeof head);
    struct iovec v = { head, n };
    if (!w->head) {
        w->head = n;
        return gp_write_all(fd, &v, 1, why);
    }
    for (size_t at = 0; at < n;) {
        ssize_t k = pwrite(fd, head + at, n - at, (off_t)at);
        if (k < 0 && errno != EINTR)
            return gp_why(why, "cannot be written: %s", strerror(errno));
        at += k > 0 ? (size_t)k : 0;
    }
    return true;
}

/* A joined file that did not come to its end keeps what it has. */
static void close_writer(void *state)
{
    struct writer *w = state;
    if (!w)
        return;
    for (int i = 0; w->worker && i < w->workers; i++) {
        gp_outfile *f = &w->worker[i].file;
        if (!w->o->single && w->joined.dim[0])
            gp_outfile_keep(f);
        gp_outfile_drop(f);
        free(w->worker[i].picture.data);
    }
    gp_outfile_drop(&w->held);
    free(w->worker);
    free(w);
}

static bool open_joined(struct writer *w, const gp_type *frame, char why[GP_WHY])
{
    const struct opts *o = w->o;
    char path[PATH_MAX];
    w->joined = *frame;
    if (o->stack) {
        w->joined.ndim++;
        memcpy(w->joined.dim + 1, frame->dim, sizeof frame->dim[0] * (size_t)frame->ndim);
    }
    w->joined.dim[0] = 0;
    bool ok = gp_path_expand(path, o->path, 0, "", why)
        && gp_outfile_open(&w->worker[0].file, path, why);
    bool refused = w->worker[0].file.in_place && (o->as == GP_NPY || o->live);
    if (refused)
        w->worker[0].file.unread = false;      /* nor is its reader waited for */
    if (refused && o->as == GP_NPY)
        return gp_why(why, "is not a regular file, which a joined .npy needs: set 'format: raw'");
    if (refused)
        return gp_why(why, "is not a regular file, on which 'live' has no effect");
    return ok && (o->as != GP_NPY || put_header(w, why))
        && (!o->live || w->worker[0].file.replaces || gp_outfile_publish(&w->worker[0].file, why));
}

/* Names of sources say nothing of numbers: two runs may well share a pattern with %n. */
static bool hold(struct writer *w, char why[GP_WHY])
{
    w->held.by = w->files, w->held.durable = w->worker[0].file.durable;
    return !w->o->numbered || w->o->named || gp_outfile_hold(&w->held, w->o->path, why);
}

/* The number of the first file. Where that is there and must not be replaced, this is known
 * before frame 0. */
static bool find_first(struct writer *w, char why[GP_WHY])
{
    const struct opts *o = w->o;
    char path[PATH_MAX];
    struct stat st;
    w->first = (uint64_t)o->start;
    if (o->if_exists == NEXT) {
        bool ok = gp_next_number(o->path, w->first, &w->first, why);
        w->files->goes_on_at = w->first > (uint64_t)o->start ? w->first : 0;
        return ok;
    }
    if (o->if_exists == REPLACE || o->named || !gp_path_expand(path, o->path, w->first, "", why)
        || stat(path, &st) || !S_ISREG(st.st_mode))
        return true;
    return gp_why(why, o->numbered ? "is there already with number %llu" : "is there already",
                  (unsigned long long)w->first);
}

/* Opens a file; of a FIFO it waits for the reader. GP_OK; GP_STOPPED; GP_FAILED with `why`. */
static gp_status reach(gp_call *c, gp_outfile *f, const char *path, char why[GP_WHY])
{
    const int64_t moment = 20000000;
    while (!gp_outfile_open(f, path, why)) {
        if (!f->unread)
            return GP_FAILED;
        if (!gp_wait_until(c, gp_now_ns() + moment))
            return GP_STOPPED;
    }
    return GP_OK;
}

static gp_status reach_joined(struct writer *w, gp_call *c, char why[GP_WHY])
{
    char path[PATH_MAX];
    gp_outfile *f = &w->worker[0].file;
    if (f->open)
        return GP_OK;
    return gp_path_expand(path, w->o->path, 0, "", why) ? reach(c, f, path, why) : GP_FAILED;
}

static bool open_writer(const gp_open *g, void **state)
{
    const struct opts *o = g->opts;
    struct writer *w = calloc(1, sizeof *w);
    char why[GP_WHY];
    *state = w;
    if (w) {
        w->o = o, w->workers = g->workers;
        snprintf(w->who, sizeof w->who, "stage '%s'", g->name);
        w->files = gp_filetable_writer(g->files, w->who, o->at, o->path);
        w->worker = calloc((size_t)g->workers, sizeof *w->worker);
    }
    for (int i = 0; w && w->worker && i < w->workers; i++)
        w->worker[i].file.by = w->files, w->worker[i].file.keeps = o->if_exists != REPLACE,
        w->worker[i].file.is_sole = !o->single,
        w->worker[i].file.durable = o->durable == NONE           ? GP_DURABLE_NONE
                                  : o->durable == FILE_BY_FILE ? GP_DURABLE_FILE
                                  : o->single                  ? GP_DURABLE_END
                                                               : GP_DURABLE_END_ALONE;
    if (!w || !w->worker || !w->files)
        return gp_fail(g->errs, GP_E_RESOURCE, g->at, "stage '%s': out of memory", g->name);
    bool ok = o->to_stdout ? gp_outfile_lend(&w->worker[0].file, STDOUT_FILENO, why)
            : o->single    ? hold(w, why) && find_first(w, why)
                           : open_joined(w, &g->in[0], why);
    return ok || w->worker[0].file.unread      /* run() waits for its reader */
        || gp_fail(g->errs, GP_E_RUN, o->at, "'%s' %s", o->path, why);
}

/* ---- one file a frame ------------------------------------------------ */

/* What is put for %n stays in its folder, and is no other file with the rest of the path. */
static bool is_file_name(const char *s)
{
    return *s && strcmp(s, ".") && strcmp(s, "..") && !strchr(s, '/');
}

/* `path` is empty after an error that is the pattern's. */
static bool name_file(struct writer *w, const gp_frame *f, char path[PATH_MAX],
                      char why[GP_WHY])
{
    const struct opts *o = w->o;
    path[0] = 0;
    if (o->named && (!f->name || !is_file_name(f->name)))
        return f->name ? gp_why(why, "cannot take the name '%s', which its source has", f->name)
                       : gp_why(why, "has a %%n, but the frame's source gives no names: use %%05d");
    return gp_path_expand(path, o->path, w->first + f->index, f->name, why);
}

/* After GP_FAILED errno says whether a file system was to blame. */
static gp_status put_file(struct writer *w, gp_call *c, const gp_frame *f, const char *path,
                          char why[GP_WHY])
{
    struct worker *d = &w->worker[c->worker];
    const gp_view *in = &f->in[0];
    char head[GP_NPY_HEADER_MAX];
    struct iovec v[2] = { { head, 0 }, { in->data, gp_bytes(&in->type) } };

    if (w->o->as == GP_NPY)
        v[0].iov_len = gp_npy_header(&in->type, head, sizeof head);
    if (is_pictures(w->o)) {
        if (!gp_picfile_encode(&w->o->pictures, in->data, &in->type, &d->picture, why))
            return GP_FAILED;
        v[1] = (struct iovec){ d->picture.data, d->picture.n };
    }
    /* Of two frames with one name the first has it, whichever is encoded first. */
    if (w->o->named && !w->o->numbered && !gp_wait_turn(c))
        return GP_DROP;
    d->file.frame = f->index, d->file.number = w->first + f->index;
    gp_status s = reach(c, &d->file, path, why);
    if (s == GP_OK && !(gp_write_all(d->file.fd, v, 2, why) && gp_outfile_commit(&d->file, why)))
        s = GP_FAILED;
    int error = errno;
    gp_outfile_drop(&d->file);
    errno = error;
    return s;
}

/* Is it the disk that fails, and no single file? */
static bool is_of_the_disk(int error)
{
    return error == ENOSPC || error == EDQUOT || error == EROFS || error == EIO;
}

/* False: no further frame could be written either. */
static bool write_single(struct writer *w, gp_call *c, gp_frame *f)
{
    char why[GP_WHY], path[PATH_MAX];
    errno = 0;
    f->status = name_file(w, f, path, why) ? put_file(w, c, f, path, why) : GP_FAILED;
    int error = errno;
    if (f->status == GP_FAILED)
        gp_fail(c->errs, GP_E_RUN, w->o->at, "frame %llu: '%s' %s",
                (unsigned long long)f->index, *path ? path : w->o->path, why);
    return f->status != GP_FAILED || !is_of_the_disk(error);
}

/* ---- joined ---------------------------------------------------------- */

/* How many bytes the joined file has, as far as it is whole. */
static size_t joined_size(const struct writer *w)
{
    return w->head + gp_bytes(&w->joined);
}

/* Writes at the end of the file. Somebody may truncate one that is live at any moment: then it
 * stays too short. */
static bool put_rows(const gp_outfile *f, struct iovec *v, int n, char why[GP_WHY])
{
    if (f->published)
        fcntl(f->fd, F_SETFL, O_APPEND);
    bool ok = gp_write_all(f->fd, v, n, why);
    if (f->published)
        fcntl(f->fd, F_SETFL, 0);      /* the header has its place */
    return ok;
}

/* Adds the frames to the joined file. A .npy then says that they are there, whatever comes; what
 * could not be written whole is taken away. */
static bool append(struct writer *w, struct iovec *v, int n, int64_t rows, char why[GP_WHY])
{
    const struct opts *o = w->o;
    gp_outfile *f = &w->worker[0].file;
    w->began = true;
    if ((o->live && !f->published && !gp_outfile_publish(f, why))
        || !gp_outfile_check(f, joined_size(w), why))
        return false;
    if (put_rows(f, v, n, why)) {
        w->joined.dim[0] += rows;
        if (o->as != GP_NPY || put_header(w, why)) {
            if (w->joined.dim[0])
                gp_outfile_worth(f);
            return true;
        }
        w->joined.dim[0] -= rows;      /* the header says what was there before */
    }
    int cut = f->in_place ? 0 : ftruncate(f->fd, (off_t)joined_size(w));
    (void)cut;                         /* a .npy says how much of it is whole */
    return false;
}

/* A file with a gap is useless, so any error ends the run. */
static bool write_joined(struct writer *w, gp_call *c, gp_frame *f, int n)
{
    const struct opts *o = w->o;
    struct iovec v[MAX_RUN];
    char why[GP_WHY];
    size_t bytes = 0;
    int64_t rows = 0;
    int k = 0;
    if ((f[0].status = reach_joined(w, c, why)) != GP_OK)
        return f[0].status == GP_STOPPED
            || gp_fail(c->errs, GP_E_RUN, o->at, "'%s' %s", o->path, why);
    for (; k < n && bytes < RUN_BYTES; k++) {
        const gp_view *in = &f[k].in[0];
        bool partial = o->stack && in->type.dim[0] != in->rows;
        if (partial && k)
            break;                     /* first those before it */
        if (partial)
            return gp_fail(c->errs, GP_E_RUN, o->at, "frame %llu: '%s' cannot stack a frame of "
                           "%lld row%s on frames of %lld: set 'stack: false', or leave it out before (a group has "
                           "'tail: drop'; a script returns 'drop')",
                           (unsigned long long)f[k].index, o->path, (long long)in->type.dim[0],
                           gp_plural(in->type.dim[0]), (long long)in->rows);
        v[k] = (struct iovec){ in->data, gp_bytes(&in->type) };
        bytes += v[k].iov_len;
        rows += o->stack ? 1 : in->type.dim[0];
    }
    if (k < n)
        f[k].status = GP_AGAIN;
    if (append(w, v, k, rows, why))
        return true;
    gp_code code = o->to_stdout && errno == EPIPE ? GP_E_CLOSED : GP_E_RUN;
    return (k == 1 ? gp_fail(c->errs, code, o->at, "frame %llu: '%s' %s",
                             (unsigned long long)f[0].index, o->path, why)
                   : gp_fail(c->errs, code, o->at, "frames %llu to %llu: '%s' %s",
                             (unsigned long long)f[0].index, (unsigned long long)f[k - 1].index,
                             o->path, why));
}

static bool run(gp_call *c, gp_frame *f, int n)
{
    struct writer *w = c->state;
    if (!w->o->single)
        return write_joined(w, c, f, n);
    if (n > 1)
        f[1].status = GP_AGAIN;
    return write_single(w, c, &f[0]);
}

/* Now that the file is whole, that may be done with. */
static void tell_kept(const struct writer *w, gp_call *c)
{
    char first[PATH_MAX], more[40] = "";
    const gp_outfile *f = &w->worker[0].file;
    int n = f->in_place ? 0 : gp_outfile_kept(f, first);
    if (n > 1)
        snprintf(more, sizeof more, ", and %d more", n - 1);
    if (n)
        gp_fail(c->errs, GP_E_WARN, w->o->at, "'%s', which a run that failed kept, is still there%s",
                first, more);
}

static bool finish(gp_call *c)
{
    struct writer *w = c->state;
    const struct opts *o = w->o;
    gp_outfile *f = &w->worker[0].file;
    char why[GP_WHY];
    if (o->single)
        return true;
    if (gp_stopping(c) && !w->began && f->open && !f->in_place && !f->published) {
        gp_fail(c->errs, GP_E_WARN, o->at, "'%s' is %s: the run was stopped before its first frame",
                o->path, f->replaces ? "left as it is" : "not made");
        return true;                   /* close_writer() drops it */
    }
    gp_status s = reach_joined(w, c, why);
    if (s == GP_STOPPED)
        return true;
    if (s != GP_OK || !gp_outfile_check(f, joined_size(w), why) || !gp_outfile_commit(f, why))
        return gp_fail(c->errs, GP_E_RUN, o->at, "'%s' %s", o->path, why);
    tell_kept(w, c);
    return true;
}

static void advise(gp_advice *a)
{
    const struct opts *o = a->opts;
    if (!is_pictures(o))
        strcpy(a->text, "write a smaller type, or less of each frame");
    else if (gp_picfile_takes(o->as, "compression") && o->compression > 0)
        a->opt = "compression", strcpy(a->value, o->compression > 1 ? "1" : "0");
    else
        strcpy(a->text, "write .npy, which needs no encoding");
}

static const gp_port in[] = {
    { "in", GP_ACCEPT_ANY, .help = "frames; PNG, PNM: u8 or u16; JPEG: u8; PFM: f32" }, { 0 }
};

static const gp_opt options[] = {
    { GP_PATH(struct opts, path), .required = true,
      .help = "one file a frame with %05d (its number) or %n (its source file's name), else one "
              "file for all; or stdout" },
    { GP_ENUM(struct opts, format), .def = "auto", .choices = GP_FORMATS,
      .help = "auto: .npy and pictures (.png .jpg .jpeg .pgm .ppm .pnm .pfm) by the file's extension, all "
              "else is raw" },
    { GP_BOOL(struct opts, stack), .help = "one .npy for all: join frames along a new axis 0" },
    { GP_BOOL(struct opts, live),
      .help = "one file for all has its name from the start (where it replaces one, from frame 0 "
              "on), not only when it is whole, and the header of a .npy always says how many rows "
              "are there" },
    { GP_ENUM(struct opts, if_exists), .def = "replace", .choices = "replace|error|next",
      .help = "what to do where a file is there already; next: with %05d, go on after the highest number" },
    { GP_ENUM(struct opts, durable), .def = "end", .choices = "none|end|file",
      .help = "what survives a power cut: end: all, once the run is done; file: each file, once it "
              "has its name; none: nothing is promised" },
    { GP_INT(struct opts, start), .min = 0, .max = 1e18, .help = "with %05d: the first number" },
    { GP_INT(struct opts, compression), .def = "3", .min = 0, .max = 9,
      .help = "png: 0 is fast, 9 is small" },
    { GP_INT(struct opts, quality), .def = "90", .min = 1, .max = 100, .help = "jpeg: 1 is small, 100 is good" },
    { GP_ENUM(struct opts, subsampling), .def = "4:2:0", .choices = GP_SUBSAMPLING,
      .help = "jpeg: how many pixels share a colour: four, two side by side, none" },
    { 0 }
};

const gp_kind gp_kind_write = {
    GP_KIND("write"),
    .help = "frames to pictures, .npy or raw files or to standard output",
    .in = in,
    .opts = options, .opts_size = sizeof(struct opts),
    .max_run = MAX_RUN,
    .any_shape = true, .shape = shape, .open = open_writer, .close = close_writer, .run = run, .finish = finish,
    .advise = advise, .check = check,
};
