/* outfile.c - files that appear under their names only when they are whole, see outfile.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/outfile.h"

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

/* Opens a new file beside `path`, under a name nobody has. */
static int open_temporary(gp_outfile *f)
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
        fd = open(f->tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            return -1;
    }
    return fd;
}

bool gp_outfile_open(gp_outfile *f, const char *path, char err[GP_WHY])
{
    struct stat st;
    if ((size_t)snprintf(f->path, sizeof f->path, "%s", path) >= sizeof f->path)
        return gp_why(err, "cannot be written: %s", strerror(ENAMETOOLONG));
    bool there = !stat(path, &st);
    if (there && S_ISDIR(st.st_mode))
        return gp_why(err, "cannot be written: it is a folder");
    f->in_place = there && !S_ISREG(st.st_mode);
    if (f->in_place) {
        /* Opening does not wait for a FIFO's reader; writing later does. */
        f->fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        f->unread = f->fd < 0 && errno == ENXIO;
        if (f->unread)
            return gp_why(err, "cannot be written: nobody reads it yet");
        if (f->fd >= 0)
            fcntl(f->fd, F_SETFL, 0);
    } else {
        f->fd = open_temporary(f);
        if (f->fd < 0 && errno == ENOENT && make_folders(path))
            f->fd = open_temporary(f);
    }
    f->open = f->fd >= 0;
    return f->open || gp_why(err, "cannot be written: %s", strerror(errno));
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
