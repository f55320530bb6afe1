/* sync.c - what was written is put on disk, see outfile.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/outfile.h"
#include "base/path.h"

static int outcome(int failed)
{
    bool no_disk = errno == EINVAL || errno == EROFS || errno == ENOSYS || errno == EOPNOTSUPP;
    return failed && !no_disk ? errno : 0;
}

int gp_sync_file(int fd)
{
    int failed;
    do
        failed = fsync(fd);
    while (failed && errno == EINTR);
    return outcome(failed);
}

int gp_sync_folder(const char *path)
{
    char folder[PATH_MAX] = ".";
    size_t n = gp_path_folder(path);
    if (n)
        memcpy(folder, path, n), folder[n] = 0;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES ? 0 : errno;        /* its names may be made and not listed */
    int bad = gp_sync_file(fd);
    close(fd);
    return bad;
}

int gp_sync_all(int fd)
{
    int failed;
    do
        failed = syncfs(fd);
    while (failed && errno == EINTR);
    return outcome(failed);
}
