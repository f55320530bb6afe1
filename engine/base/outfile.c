/* outfile.c - files that appear under their names only when they are whole, see outfile.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/filetable.h"
#include "base/path.h"
#include "base/target.h"

enum { MOST_TEMPORARY = 1000 };        /* numbers of temporary files of one name; this one is of what a folder replaces */

/* Makes the folders that `path` lies in. What is put on disk alone needs the name of each
 * there, too: at once, or with the file. False with errno. */
static bool make_folders(gp_outfile *f, const char *path)
{
    char dir[PATH_MAX];
    snprintf(dir, sizeof dir, "%s", path);
    for (char *p = strchr(dir + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = 0;
        bool made = !mkdir(dir, 0777);
        if (!made && errno != EEXIST)
            return false;
        int bad = made && f->durable == GP_DURABLE_FILE ? gp_sync_folder(dir) : 0;
        if (bad) {
            errno = bad;
            return false;
        }
        f->folders_made += made;
        *p = '/';
    }
    return true;
}

/* Opens a new file beside `path`, under a name nobody has. */
static int open_temporary(gp_outfile *f, mode_t mode)
{
    size_t folder = gp_path_folder(f->path);
    char name[NAME_MAX + 1];
    int fd = -1;
    for (int try = 0; fd < 0 && try < MOST_TEMPORARY; try++) {
        gp_temporary_name(name, f->path + folder, getpid(), try);
        if (snprintf(f->tmp, sizeof f->tmp, "%.*s%s", (int)folder, f->path, name)
            >= (int)sizeof f->tmp) {
            errno = ENAMETOOLONG;
            return -1;
        }
        if (f->folder)
            fd = mkdir(f->tmp, mode | (mode & 0444) >> 2) ? -1 : open(f->tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        else
            fd = open(f->tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd < 0 && errno != EEXIST)
            return -1;
        if (fd >= 0 && !gp_hold_temporary(fd))
            remove(f->tmp), close(fd), fd = -1;
    }
    return fd;
}

/* Has the file kept or removed if the run is abandoned. False with errno. */
static bool note(gp_outfile *f)
{
    if (f->by && !f->noted && !(f->noted = gp_filetable_temporary(f->by))) {
        errno = ENOMEM;
        return false;
    }
    errno = ECANCELED;
    return !f->noted || gp_temporary_note(f->noted, f->tmp, f->path + gp_path_folder(f->path));
}

void gp_outfile_whole(const gp_outfile *f, size_t bytes)
{
    if (f->noted)
        atomic_store(&f->noted->whole, (int64_t)bytes);
}

bool gp_outfile_is_abandoned(const gp_outfile *f)
{
    return f->by && gp_filetable_is_abandoned(f->by->table);
}

void gp_outfile_let_go(const gp_outfile *f)
{
    if (f->noted)
        atomic_store(&f->noted->is_there, false);
}

/* Gives the new file what the one had that it replaces. Where the group stays another, it
 * may do what all others may. */
static void take_over(int fd, const struct stat *old)
{
    mode_t mode = old->st_mode & 07777;
    struct stat st;
    if (fstat(fd, &st))
        return;
    bool owner = st.st_uid == old->st_uid, group = st.st_gid == old->st_gid;
    group = group || !fchown(fd, (uid_t)-1, old->st_gid);
    owner = owner || !fchown(fd, old->st_uid, (gid_t)-1);
    if (!owner)
        mode &= ~(mode_t)(S_ISUID | S_ISGID);
    if (!group)
        mode = (mode & ~(mode_t)(S_ISGID | S_IRWXG)) | (mode & S_IRWXO) << 3;
    fchmod(fd, mode);
}

/* Removes the temporary file, unless it is known to be another's. */
static void discard(const gp_outfile *f)
{
    char now[PATH_MAX];
    if (gp_outfile_find(f, now))
        f->folder ? gp_remove_tree(now) : (void)unlink(now);
    gp_outfile_let_go(f);
}

static bool cannot(char err[GP_WHY])
{
    return gp_why(err, "cannot be written: %s", gp_strerror(errno));
}

static bool is_moved(char err[GP_WHY])
{
    return gp_why(err, "cannot be written: its folder was moved or removed");
}

/* Finds out which folder `path` lies in; makes it. `own`: no link leads there, so it is that of the
 * files before, if they have one. */
static bool find_folder(gp_outfile *f, const char *path, bool own, char err[GP_WHY])
{
    size_t n = gp_path_folder(path);
    char dir[PATH_MAX] = ".";
    struct stat st = { .st_mode = 0 };
    bool same = f->placed && n == gp_path_folder(f->path) && !memcmp(path, f->path, n);
    f->own = own = own && f->by && f->by->one_folder;
    if (same && !own)
        return true;
    if (n)
        memcpy(dir, path, n), dir[n] = 0;
    bool found = !stat(dir, &st);
    bool moved = own && (found || errno == ENOENT) && !gp_filetable_is_folder(f->by, &st);
    if (moved && !found)               /* or another worker has made it since it was looked for */
        found = !stat(dir, &st), moved = !found || !gp_filetable_is_folder(f->by, &st);
    if (moved)
        return is_moved(err);
    if (same && found)
        return true;
    if (!found && errno == ENOENT && f->needs_folder)
        return gp_why(err, "cannot be written: there is no folder '%s'", dir);
    if (!found && (errno != ENOENT || !make_folders(f, path) || stat(dir, &st)))
        return cannot(err);
    f->placed = true, f->dev = st.st_dev, f->ino = st.st_ino;
    if (own && !gp_filetable_is_folder(f->by, &st))
        return is_moved(err);
    if (!f->by || gp_filetable_is_new(f->by, f->dev, f->ino, ""))
        gp_remove_stale(dir, f->by);
    return true;
}

static bool is_there(char err[GP_WHY])
{
    return gp_why(err, "is there already, from an earlier run or another program");
}

/* As gp_outfile_claim; *t: what the path leads to; `adds`: it is written as it is, if it is there. */
static bool find(gp_outfile *f, const char *path, gp_target *t, bool adds, char err[GP_WHY])
{
    if (!gp_target_find(t, path))
        return cannot(err);
    const bool folder = S_ISDIR(t->st.st_mode), file = S_ISREG(t->st.st_mode);
    if (f->folder ? file : folder)
        return gp_why(err, "cannot be written: it is a %s", file ? "file, and no folder" : "folder");
    f->in_place = !t->is_name && !folder;
    f->lent = t->own >= 0;
    f->replaces = file || folder;
    if (f->in_place) {
        strcpy(f->path, t->path);
        f->placed = false;
        return !f->by || gp_filetable_claim_open(f->by, &t->st, f->lent ? 0 : f->frame, err);
    }
    if (f->replaces && f->keeps)
        return is_there(err);
    if (folder && !f->folder(t->path, err))
        return false;
    if (!find_folder(f, t->path, !strcmp(t->path, path), err))
        return false;
    strcpy(f->path, t->path);
    gp_fileclaim c = { f->dev, f->ino, f->path + gp_path_folder(f->path), &t->st, f->frame,
                       f->number, adds };
    return !f->by || gp_filetable_claim(f->by, &c, err);
}

/* At the end it may be too late to open the file: its name is another's then. */
static bool sync_later(const gp_outfile *f)
{
    bool alone = f->durable == GP_DURABLE_END_ALONE;
    if (!f->by || (!alone && f->durable != GP_DURABLE_END))
        return true;
    return gp_filetable_sync_later(f->by, f->fd, f->dev, alone ? f->path : NULL,
                                   f->folders_made);
}

bool gp_outfile_claim(gp_outfile *f, const char *path, char err[GP_WHY])
{
    gp_target t;
    return find(f, path, &t, false, err);
}

/* Takes an open file of the process as it is: opened once more it would have another place
 * to write at, and forget that all is to be appended. */
static bool borrow(gp_outfile *f, int fd, char err[GP_WHY])
{
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && (flags & O_ACCMODE) == O_RDONLY)
        flags = -1, errno = EBADF;
    if (flags < 0)
        return cannot(err);
    f->fd = fd;
    return f->open = true;
}

/* Opening does not wait for a FIFO's reader; writing later does. */
static bool open_in_place(gp_outfile *f, bool fifo, char err[GP_WHY])
{
    f->fd = open(f->path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    f->open = f->fd >= 0;
    f->unread = !f->open && fifo && errno == ENXIO;
    if (f->unread)
        return gp_why(err, "cannot be written: nobody reads it yet");
    return f->open ? !fcntl(f->fd, F_SETFL, 0) : cannot(err);
}

/* Is another run at the same file, or pattern? Then the open one is dropped. */
static bool is_taken(gp_outfile *f, char err[GP_WHY])
{
    pid_t pid;
    char as[NAME_MAX + 1];
    if (!gp_is_being_written(f, &pid, as))
        return false;
    gp_outfile_drop(f);
    if (pid && strcmp(as, f->path + gp_path_folder(f->path)))
        gp_why(err, "cannot be written: another run is writing '%s' there, which may be the same file "
               "(process %ld)", as, (long)pid);
    else if (pid)
        gp_why(err, "cannot be written: another run is writing it (process %ld)", (long)pid);
    else
        gp_why(err, "cannot be written: another run is writing it");
    return true;
}

/* Was another folder put in the place of that of the files before, since that was looked for? */
static bool is_in_another(const gp_outfile *f)
{
    char dir[PATH_MAX] = ".";
    struct stat st = { .st_mode = 0 };
    size_t n = gp_path_folder(f->tmp);
    if (n)
        memcpy(dir, f->tmp, n), dir[n] = 0;
    return f->own && !stat(dir, &st) && !gp_filetable_is_folder(f->by, &st);
}

static bool open_anew(gp_outfile *f, const struct stat *old, char err[GP_WHY])
{
    mode_t mode = old->st_mode ? old->st_mode & 0600 : 0666;
    f->fd = open_temporary(f, mode);
    bool made = f->fd < 0 && errno == ENOENT && !f->needs_folder && !(f->by && f->by->one_folder)
             && make_folders(f, f->path);
    if (made)
        f->fd = open_temporary(f, mode);
    f->open = f->fd >= 0;
    if (!f->open)
        return errno == ENOENT ? is_moved(err) : cannot(err);
    if (is_in_another(f)) {
        gp_outfile_drop(f);
        return is_moved(err);
    }
    if (old->st_mode)
        take_over(f->fd, old);
    if (f->is_sole && is_taken(f, err))
        return false;
    if (note(f) && sync_later(f))
        return true;
    int bad = errno;
    gp_outfile_drop(f);
    errno = bad;
    return cannot(err);
}

bool gp_outfile_open(gp_outfile *f, const char *path, char err[GP_WHY])
{
    gp_target t;
    f->unread = false;
    if (!find(f, path, &t, false, err))
        return false;
    return f->lent       ? borrow(f, t.own, err)
         : f->in_place ? open_in_place(f, S_ISFIFO(t.st.st_mode), err)
                       : open_anew(f, &t.st, err);
}

/* False with errno; ENODATA: it is not as long. */
static bool cut_to(int fd, int64_t bytes)
{
    struct stat st;
    if (fstat(fd, &st))
        return false;
    errno = ENODATA;
    return st.st_size >= bytes && !ftruncate(fd, bytes);
}

bool gp_outfile_extend(gp_outfile *f, const char *path, int64_t cut, bool *there, char err[GP_WHY])
{
    gp_target t;
    if (!find(f, path, &t, true, err))
        return false;
    *there = f->replaces && !f->in_place;
    if (!*there)
        return true;
    f->fd = open(f->path, O_RDWR | O_CLOEXEC);
    if (f->fd < 0)
        return cannot(err);
    f->open = f->published = true;
    f->replaces = false;
    strcpy(f->tmp, f->path);
    if (is_taken(f, err))
        return false;
    bool held = gp_hold_temporary(f->fd), fits = held && (cut < 0 || cut_to(f->fd, cut));
    bool whole = !fits || gp_outfile_has_all(f, err);
    if (fits && whole && sync_later(f))
        return true;
    int bad = errno;
    gp_outfile_drop(f);
    errno = bad;
    if (held && !fits && bad == ENODATA)
        return gp_why(err, "cannot be added to: it has fewer than %lld bytes", (long long)cut);
    return !held  ? gp_why(err, "cannot be written: another run is writing it")
         : !whole ? gp_why(err, "cannot be added to: a part of it was never written, as where somebody has cut it")
                  : cannot(err);
}

/* A '/' of the pattern cannot stand in a name. */
bool gp_outfile_hold(gp_outfile *f, const char *pattern, char err[GP_WHY])
{
    char path[PATH_MAX];
    int fixed = (int)gp_path_fixed(pattern);
    snprintf(f->path, sizeof f->path, "%.*s", fixed, pattern);
    if (!gp_path_expand(path, f->path, 0, "", err))
        return true;
    size_t n = strlen(path);
    snprintf(path + n, sizeof path - n, "%s", pattern + fixed);
    for (char *p = path + n; *p; p++)
        *p = *p == '/' ? '\\' : *p;
    if (!find_folder(f, path, true, err))
        return true;
    strcpy(f->path, path);
    if (!gp_filetable_is_new(f->by, f->dev, f->ino, path + n))
        return true;                   /* this run holds it */
    f->fd = open_temporary(f, 0600);
    f->open = f->fd >= 0;
    if (f->open && is_taken(f, err))
        return false;
    if (f->open && !note(f))
        gp_outfile_drop(f);
    return true;
}

bool gp_outfile_lend(gp_outfile *f, int fd, char err[GP_WHY])
{
    struct stat st;
    f->unread = false;
    f->in_place = f->lent = true;
    if (fstat(fd, &st))
        return cannot(err);
    return (!f->by || gp_filetable_claim_open(f->by, &st, 0, err)) && borrow(f, fd, err);
}

bool gp_outfile_share(gp_outfile *f, const char *path, const char *name, uint64_t ino, char err[GP_WHY])
{
    gp_target t;
    struct stat st;
    if (!gp_target_find(&t, path))
        return cannot(err);
    if (snprintf(f->path, sizeof f->path, "%.*s%s", (int)gp_path_folder(t.path), t.path, name) >= (int)sizeof f->path) {
        errno = ENAMETOOLONG;
        return cannot(err);
    }
    f->in_place = true;
    f->fd = open(f->path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    f->open = f->fd >= 0;
    if (!f->open && errno != ENOENT)
        return cannot(err);
    return (f->open && !fstat(f->fd, &st) && st.st_ino == ino)
        || gp_why(err, "cannot be written: the file that another process began, '%s', is not here", f->path);
}

int gp_name_anew(const char *tmp, const char *path)
{
    if (!renameat2(AT_FDCWD, tmp, AT_FDCWD, path, RENAME_NOREPLACE))
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    if (link(tmp, path))
        return errno == EPERM || errno == ENOSYS ? EOPNOTSUPP : errno;
    unlink(tmp);
    return 0;
}

/* Gives a folder the name of another, which goes; where a file system cannot exchange two, there is a moment between. */
static int exchange(const gp_outfile *f)
{
    char why[GP_WHY], old[PATH_MAX], name[NAME_MAX + 1];
    if (!f->folder(f->path, why))
        return EEXIST;
    int bad = renameat2(AT_FDCWD, f->tmp, AT_FDCWD, f->path, RENAME_EXCHANGE) ? errno : 0;
    if (bad && bad != EINVAL && bad != ENOSYS)
        return bad;
    strcpy(old, f->tmp);
    if (bad) {
        size_t folder = gp_path_folder(f->path);
        gp_temporary_name(name, f->path + folder, getpid(), MOST_TEMPORARY);
        snprintf(old, sizeof old, "%.*s%s", (int)folder, f->path, name);
        if (rename(f->path, old))
            return errno;
        if (rename(f->tmp, f->path)) {
            bad = errno;
            return rename(old, f->path) ? errno : bad;
        }
    }
    gp_remove_tree(old);
    return 0;
}

/* Gives the file its name; what is there by now goes, unless it keeps that. 0 or errno. */
static int name_it(gp_outfile *f)
{
    struct stat st;
    if (!gp_target_is(f->fd, f->tmp, AT_SYMLINK_NOFOLLOW))
        return errno;
    int bad = gp_name_anew(f->tmp, f->path);
    f->replaces = bad && !lstat(f->path, &st);
    if (bad && !f->keeps && f->folder && f->replaces)
        return exchange(f);
    return !bad || f->keeps ? bad : rename(f->tmp, f->path) ? errno : 0;
}

static int sync_it(const gp_outfile *f)
{
    return f->folder ? gp_sync_all(f->fd) : gp_sync_file(f->fd);
}

/* Names the open file; with `durable: file` it is on disk before, and its name after. */
static int publish(gp_outfile *f)
{
    bool now = f->durable == GP_DURABLE_FILE;
    int bad = now ? sync_it(f) : 0;
    if (bad || (bad = name_it(f)))
        return bad;
    f->published = true;
    gp_outfile_let_go(f);
    if (f->replaces && f->by)
        gp_filetable_replaced(f->by, f->path, f->number);
    return now ? gp_sync_folder(f->path) : 0;
}

/* The temporary file is not where it was made. */
static bool is_elsewhere(const gp_outfile *f, char err[GP_WHY])
{
    char now[PATH_MAX];
    return gp_outfile_find(f, now)
        ? gp_why(err, "cannot be written: its folder was moved")
        : gp_why(err, "cannot be written: somebody else removed its temporary file");
}

static bool not_published(const gp_outfile *f, int bad, char err[GP_WHY])
{
    struct stat st;
    if (f->open && !f->published && lstat(f->tmp, &st) && (errno == ENOENT || errno == ENOTDIR))
        return is_elsewhere(f, err);
    errno = bad;
    if (bad == ESTALE)
        return gp_why(err, "cannot be written: somebody else changed its temporary file");
    if (f->keeps && bad == EOPNOTSUPP)
        return gp_why(err, "cannot be written: its file system may replace a file while it names "
                      "one: say 'if_exists: replace', or write elsewhere");
    return f->keeps && bad == EEXIST ? is_there(err) : cannot(err);
}

bool gp_outfile_publish(gp_outfile *f, char err[GP_WHY])
{
    int bad = f->in_place ? 0 : publish(f);
    return !bad || not_published(f, bad, err);
}

bool gp_outfile_commit(gp_outfile *f, char err[GP_WHY])
{
    bool was_named = f->published, ok = true;
    if (!f->in_place && !gp_outfile_has_all(f, err))
        return false;
    int bad = f->in_place ? 0 : !was_named ? publish(f)
            : f->durable == GP_DURABLE_FILE ? sync_it(f) : 0;
    if (bad && !f->published)
        return not_published(f, bad, err);
    if (!bad && was_named)
        ok = gp_outfile_is_named(f, err);
    bad = !f->lent && close(f->fd) && !bad ? errno : bad;
    f->open = f->published = false;
    return !bad ? ok : not_published(f, bad, err);
}

void gp_outfile_drop(gp_outfile *f)
{
    if (!f->open)
        return;
    if (!f->in_place && !f->published)
        discard(f);
    if (!f->lent)
        close(f->fd);
    f->open = f->published = false;
}

bool gp_write_all(int fd, struct iovec *v, int n, char err[GP_WHY])
{
    while (n) {
        if (!v->iov_len) {
            v++, n--;
            continue;
        }
        ssize_t k = writev(fd, v, n < IOV_MAX ? n : IOV_MAX);
        if (k < 0 && errno == EAGAIN)          /* an open file that was lent may not wait itself */
            poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, -1);
        if (k < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (k < 0)
            return gp_why(err, "cannot be written: %s", gp_strerror(errno));
        for (size_t left = (size_t)k; left;) {
            size_t part = left < v->iov_len ? left : v->iov_len;
            v->iov_base = (char *)v->iov_base + part;
            v->iov_len -= part;
            left -= part;
            if (!v->iov_len)
                v++, n--;
        }
    }
    return true;
}

bool gp_put_at(int fd, const void *from, size_t n, int64_t at, char err[GP_WHY])
{
    for (size_t put = 0; put < n;) {
        ssize_t k = pwrite(fd, (const char *)from + put, n - put, (off_t)(at + (int64_t)put));
        if (k < 0 && errno != EINTR)
            return gp_why(err, "cannot be written: %s", gp_strerror(errno));
        put += k > 0 ? (size_t)k : 0;
    }
    return true;
}
