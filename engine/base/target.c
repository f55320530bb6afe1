/* target.c - what the path of an output leads to, and where an open one is, see target.h.
 *
 * In /proc a link is no name, but what is open or running there, whatever it reads like. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "base/path.h"
#include "base/target.h"

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

/* Is it in a folder of /proc, wherever that is mounted? Then `folder` is that one. */
static bool is_in_proc(const char *path, char folder[PATH_MAX])
{
    char given[PATH_MAX] = ".";
    size_t n = gp_path_folder(path);
    struct statfs fs;
    if (n)
        memcpy(given, path, n), given[n] = 0;
    return realpath(given, folder) && !statfs(folder, &fs) && fs.f_type == PROC_SUPER_MAGIC;
}

/* Cuts the last part off `path`. Returns it; "" where there is none. */
static const char *cut_part(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash)
        return "";
    *slash = 0;
    return slash + 1;
}

/* Is it the folder of this process's open files, .../PID/fd or .../PID/task/TID/fd? */
static bool is_own(char folder[PATH_MAX])
{
    if (strcmp(cut_part(folder), "fd"))
        return false;
    long id = strtol(cut_part(folder), NULL, 10);
    char *task = strrchr(folder, '/');
    if (task && !strcmp(task, "/task"))
        *task = 0, id = strtol(cut_part(folder), NULL, 10);
    return id == getpid();
}

/* The number in /proc/self/fd/N; -1: it is no such path. */
static int own_file(const char *path)
{
    char folder[PATH_MAX];
    const char *name = path + gp_path_folder(path);
    size_t n = strlen(name);
    if (!n || n > 9 || strspn(name, "0123456789") < n || !is_in_proc(path, folder)
        || !is_own(folder))
        return -1;
    return atoi(name);
}

/* Was it given to this program? What that opens itself is closed where another one begins. */
static bool is_given(int fd)
{
    int flags = fcntl(fd, F_GETFD);
    if (flags >= 0 && fd > STDERR_FILENO && flags & FD_CLOEXEC)
        flags = -1, errno = EBADF;
    return flags >= 0;
}

bool gp_target_is(int fd, const char *path, int flags)
{
    struct stat is, there;
    if (fstat(fd, &is) || fstatat(AT_FDCWD, path, &there, flags))
        return false;
    errno = ESTALE;
    return is.st_dev == there.st_dev && is.st_ino == there.st_ino;
}

bool gp_target_path(int fd, char path[PATH_MAX])
{
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, PATH_MAX - 1);
    path[n > 0 ? n : 0] = 0;
    return gp_target_is(fd, path, AT_SYMLINK_NOFOLLOW);
}

bool gp_target_find(gp_target *t, const char *path)
{
    enum { MOST = 40 };                /* as many as Linux follows */
    char folder[PATH_MAX];
    if ((size_t)snprintf(t->path, sizeof t->path, "%s", path) >= sizeof t->path) {
        errno = ENAMETOOLONG;
        return false;
    }
    for (int i = 0; i < MOST; i++) {
        t->own = own_file(t->path);
        t->is_name = false;
        if (t->own >= 0)
            return is_given(t->own) && !fstat(t->own, &t->st);
        if (lstat(t->path, &t->st)) {
            t->st.st_mode = 0;
            t->is_name = true;
            return errno == ENOENT;
        }
        t->is_name = S_ISREG(t->st.st_mode);
        if (!S_ISLNK(t->st.st_mode))
            return true;
        if (is_in_proc(t->path, folder))
            return !stat(t->path, &t->st);
        if (!read_link(t->path))
            return false;
    }
    errno = ELOOP;
    return false;
}
