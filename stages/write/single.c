/* single.c - one file a frame, see writer.h. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include "base/npy.h"
#include "writer.h"

/* Names of sources say nothing of numbers: two runs may well share a pattern with %n. The first of ranks holds it for
 * all. */
bool gp_writer_hold(gp_writer *w, char why[GP_WHY])
{
    w->held.by = w->files, w->held.durable = w->worker[0].file.durable;
    return !w->o->numbered || w->o->named || w->rank || gp_outfile_hold(&w->held, w->o->path, why);
}

/* The number of the first file. Where that is there and must not be replaced, this is known
 * before frame 0. */
bool gp_writer_find_first(gp_writer *w, char why[GP_WHY])
{
    const gp_write_opts *o = w->o;
    char path[PATH_MAX];
    struct stat st;
    w->first = (uint64_t)o->start;
    if (o->if_exists == GP_NEXT) {
        bool ok = gp_next_number(o->path, w->first, &w->first, why);
        w->files->goes_on_at = w->first > (uint64_t)o->start ? w->first : 0;
        return ok;
    }
    if (o->if_exists == GP_REPLACE || o->named || !gp_path_expand(path, o->path, w->first, "", why)
        || stat(path, &st) || !S_ISREG(st.st_mode))
        return true;
    return gp_why(why, o->numbered ? "is there already with number %llu" : "is there already",
                  (unsigned long long)w->first);
}

/* A name that is put for %n stays in its folder, and is no other file with the rest of the path. */
static bool is_file_name(const char *s)
{
    return *s && strcmp(s, ".") && strcmp(s, "..") && !strchr(s, '/');
}

bool gp_writer_name(const gp_writer *w, const gp_frame *f, uint64_t number, char path[PATH_MAX], char why[GP_WHY])
{
    const gp_write_opts *o = w->o;
    char timed[PATH_MAX];
    path[0] = 0;
    if (o->named && (!f->name || !is_file_name(f->name)))
        return f->name ? gp_why(why, "cannot take the name '%s', which its source has", f->name)
                       : gp_why(why, "has a %%n, but the frame has no name (its source gives none, or it is a row of a group): use %%05d");
    return (!o->timed || gp_path_put_time(timed, o->path, f->time_ns, why))
        && gp_path_expand(path, o->timed ? timed : o->path, number, f->name, why);
}

/* A file of one frame that its format makes. */
static bool put_created(const gp_writer *w, const gp_write_worker *d, const gp_view *in, const gp_filemeta *said,
                          const char *path, char why[GP_WHY])
{
    char later[GP_WHY];
    const gp_rowsfile *as = gp_rowsfile_of(w->o->as);
    if (d->file.in_place)
        return gp_why(why, "is not a regular file, which %s needs: set 'format: raw'", as->name);
    gp_rowsfile_how how = w->o->rows;
    gp_rows_out *out = gp_writer_rate(w->o, said, &how.sample_rate, why)
                     ? as->create(d->file.fd, &how, &in->type, path, why) : NULL;
    if (!out)
        return false;
    out->said = said;
    if (as->append(out, in->data, w->o->pages ? 1 : in->type.dim[0], why))
        return as->finish(out, why);
    int error = errno;
    as->finish(out, later);
    errno = error;
    return false;
}

/* After GP_FAILED errno says whether a file system, or what the machine is short of, was to blame. */
static gp_status put_file(gp_writer *w, gp_call *c, const gp_frame *f, const char *path,
                          char why[GP_WHY])
{
    gp_write_worker *d = &w->worker[c->worker];
    const gp_view *in = &f->in[0];
    char head[GP_NPY_HEADER_MAX + GP_Y4M_LINE];
    struct iovec v[2] = { { head, 0 }, { in->data, gp_bytes(&in->type) } };

    if (w->o->as == GP_NPY)
        v[0].iov_len = gp_npy_header(&in->type, head, sizeof head);
    if (gp_write_is_video(w->o) && in->type.dim[0] != in->rows)
        return gp_why(why, "holds a picture of %lld rows, and this frame has %lld", (long long)in->rows,
                      (long long)in->type.dim[0]), GP_FAILED;
    if (gp_write_begins(w->o)) {
        memcpy(head, w->begin, w->nbegin);
        v[0].iov_len = (size_t)(stpcpy(head + w->nbegin, gp_rowsfile_of(w->o->as)->before) - head);
    }
    gp_filemeta said = gp_filemeta_of_frame(c, f);
    gp_picfile_how pictures = w->o->pictures;
    pictures.said = &said;
    if (gp_write_is_pictures(w->o)) {
        if (!gp_picfile_encode(&pictures, in->data, &in->type, &d->encoded, why))
            return GP_FAILED;
        v[1] = (struct iovec){ d->encoded.data, d->encoded.n };
    }
    if (gp_write_is_text(w->o)) {
        d->encoded.n = 0;
        if (!gp_writer_spell(w, c, f, &d->encoded, why))
            return GP_FAILED;
        v[0] = (struct iovec){ (char *)w->begin, w->nbegin };
        v[1] = (struct iovec){ d->encoded.data, d->encoded.n };
    }
    /* The first of two frames with one name has it, whichever is encoded first. */
    if (w->o->named && !w->o->numbered && !gp_wait_turn(c))
        return GP_DROP;
    d->file.frame = f->index, d->file.number = w->first + f->index;
    gp_status s = gp_writer_reach(c, &d->file, path, why);
    bool ok = s == GP_OK && (gp_write_creates(w->o) ? put_created(w, d, in, &said, path, why)
                                                     : gp_write_all(d->file.fd, v, 2, why));
    if (s == GP_OK && !(ok && gp_outfile_commit(&d->file, why)))
        s = GP_FAILED;
    int error = errno;
    gp_outfile_drop(&d->file);
    errno = error;
    return s;
}

/* Is it the disk that fails, or the machine that is short of something, and no single file? */
static bool is_of_the_machine(int error)
{
    return error == ENOSPC || error == EDQUOT || error == EROFS || error == EIO
        || error == EMFILE || error == ENFILE || error == ENOMEM;
}

bool gp_writer_single(gp_writer *w, gp_call *c, gp_frame *f)
{
    char why[GP_WHY], path[PATH_MAX];
    errno = 0;
    f->status = gp_writer_name(w, f, w->first + f->index, path, why) ? put_file(w, c, f, path, why) : GP_FAILED;
    int error = errno;
    if (f->status == GP_FAILED)
        gp_fail(c->errs, GP_E_RUN, w->o->at, "frame %llu: '%s' %s",
                (unsigned long long)f->index, *path ? path : w->o->path, why);
    return f->status != GP_FAILED || !is_of_the_machine(error);
}
