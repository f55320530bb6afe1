/* outfile.c - files that appear under their names only when they are whole, see outfile.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/filetable.h"
#include "base/path.h"

bool gp_why(char err[GP_WHY], const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err, GP_WHY, fmt, ap);
    va_end(ap);
    return false;
}

/* Makes the folders that `path` lies in. */
static bool make_folders(const char *path)
{
    char dir[PATH_MAX];
    snprintf(dir, sizeof dir, "%s", path);
    for (char *p = strchr(dir + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = 0;
        if (mkdir(dir, 0777) && errno != EEXIST)
            return false;
        *p = '/';
    }
    return true;
}

/* Puts the path that `link` has into it in its place. False with errno. */
static bool read_link(char link[PATH_MAX])
{
    char to[PATH_MAX];
    ssize_t n = readlink(link, to, sizeof to);
    char *slash = strrchr(link, '/');
    size_t dir = n > 0 && *to != '/' && slash ? (size_t)(slash + 1 - link) : 0;
    if (n > 0 && dir + (size_t)n >= PATH_MAX)
        errno = ENAMETOOLONG;
    if (n <= 0 || dir + (size_t)n >= PATH_MAX)
        return false;
    memcpy(link + dir, to, (size_t)n);
    link[dir + (size_t)n] = 0;
    return true;
}

/* Follows links at the end of `path`. st_mode is 0 where nothing is. In /proc a link is no
 * name but an open file: st_mode is then none of a regular file. False with errno. */
static bool find_file(char path[PATH_MAX], struct stat *st)
{
    enum { MOST = 40 };                /* as many as Linux follows */
    for (int i = 0; i < MOST; i++) {
        if (lstat(path, st)) {
            st->st_mode = 0;
            return errno == ENOENT;
        }
        if (!S_ISLNK(st->st_mode))
            return true;
        if (!strncmp(path, "/proc/", 6)) {
            st->st_mode = S_IFCHR;
            return true;
        }
        if (!read_link(path))
            return false;
    }
    errno = ELOOP;
    return false;
}

/* Opens a new file beside `path`, under a name nobody has. */
static int open_temporary(gp_outfile *f, mode_t mode)
{
    const char *slash = strrchr(f->path, '/'), *name = slash ? slash + 1 : f->path;
    int fd = -1;
    for (int try = 0; fd < 0 && try < 1000; try++) {
        char suffix[48];
        snprintf(suffix, sizeof suffix, try ? ".tmp-%ld-%d" : ".tmp-%ld", (long)getpid(), try);
        int keep = NAME_MAX - 1 - (int)strlen(suffix);
        int n = snprintf(f->tmp, sizeof f->tmp, "%.*s.%.*s%s", (int)(name - f->path), f->path,
                         keep, name, suffix);
        if (n >= (int)sizeof f->tmp) {
            errno = ENAMETOOLONG;
            return -1;
        }
        fd = open(f->tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd < 0 && errno != EEXIST)
            return -1;
    }
    return fd;
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

/* Finds out which folder `path` lies in, unless it is that of the path before; makes it. */
static bool find_folder(gp_outfile *f, const char *path)
{
    size_t n = gp_path_folder(path);
    char dir[PATH_MAX] = ".";
    struct stat st;
    if (f->placed && n == gp_path_folder(f->path) && !memcmp(path, f->path, n))
        return true;
    if (n)
        memcpy(dir, path, n), dir[n] = 0;
    if (stat(dir, &st) && (errno != ENOENT || !make_folders(path) || stat(dir, &st)))
        return false;
    f->placed = true, f->dev = st.st_dev, f->ino = st.st_ino;
    return true;
}

static bool cannot(char err[GP_WHY])
{
    return gp_why(err, "cannot be written: %s", strerror(errno));
}

/* As gp_outfile_claim; *st: what is there now. */
static bool find(gp_outfile *f, const char *path, struct stat *st, char err[GP_WHY])
{
    char now[PATH_MAX];
    if ((size_t)snprintf(now, sizeof now, "%s", path) >= sizeof now) {
        errno = ENAMETOOLONG;
        return cannot(err);
    }
    if (!find_file(now, st))
        return cannot(err);
    if (S_ISDIR(st->st_mode))
        return gp_why(err, "cannot be written: it is a folder");
    f->in_place = st->st_mode && !S_ISREG(st->st_mode);
    bool shared = f->in_place && !S_ISFIFO(st->st_mode);       /* everybody's, as /dev/null */
    if (!shared && !find_folder(f, now))
        return cannot(err);
    f->placed = !shared;
    strcpy(f->path, now);
    gp_fileclaim c = { f->dev, f->ino, f->path + gp_path_folder(f->path), st, f->frame,
                       f->number };
    return shared || !f->by || gp_filetable_claim(f->by, &c, err);
}

bool gp_outfile_claim(gp_outfile *f, const char *path, char err[GP_WHY])
{
    struct stat st;
    return find(f, path, &st, err);
}

bool gp_outfile_open(gp_outfile *f, const char *path, char err[GP_WHY])
{
    struct stat st;
    if (!find(f, path, &st, err))
        return false;
    if (f->in_place) {
        /* Opening does not wait for a FIFO's reader; writing later does. */
        f->fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        f->unread = f->fd < 0 && errno == ENXIO;
        if (f->unread)
            return gp_why(err, "cannot be written: nobody reads it yet");
        if (f->fd >= 0)
            fcntl(f->fd, F_SETFL, 0);
    } else {
        mode_t mode = st.st_mode ? st.st_mode & 0600 : 0666;
        f->fd = open_temporary(f, mode);
        if (f->fd < 0 && errno == ENOENT && make_folders(f->path))
            f->fd = open_temporary(f, mode);
        if (f->fd >= 0 && st.st_mode)
            take_over(f->fd, &st);
    }
    f->open = f->fd >= 0;
    return f->open || cannot(err);
}

bool gp_outfile_commit(gp_outfile *f, char err[GP_WHY])
{
    int bad = close(f->fd) ? errno : 0;
    f->open = false;
    if (!bad && !f->in_place && rename(f->tmp, f->path))
        bad = errno;
    if (!bad)
        return true;
    if (!f->in_place)
        unlink(f->tmp);
    return gp_why(err, "cannot be written: %s", strerror(bad));
}

void gp_outfile_drop(gp_outfile *f)
{
    if (!f->open)
        return;
    f->open = false;
    close(f->fd);
    if (!f->in_place)
        unlink(f->tmp);
}

bool gp_write_all(int fd, struct iovec *v, int n, char err[GP_WHY])
{
    while (n) {
        if (!v->iov_len) {
            v++, n--;
            continue;
        }
        ssize_t k = writev(fd, v, n < IOV_MAX ? n : IOV_MAX);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return gp_why(err, "cannot be written: %s", strerror(errno));
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
