/* scratch.c - see scratch.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "device/scratch.h"

static const char prefix[] = "gpipe-cc-";

enum { RANDOM = 6 };                   /* characters behind the prefix */

/* Opens a folder of ours and locks it; NULL: it is not ours, or in use. */
static DIR *lock_folder(int dir, const char *name)
{
    struct stat st, now;
    DIR *d;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    if (!fstat(fd, &st) && st.st_uid == geteuid() && !(st.st_mode & 077)
        && !flock(fd, LOCK_EX | LOCK_NB)
        && !fstatat(dir, name, &now, AT_SYMLINK_NOFOLLOW) && now.st_ino == st.st_ino
        && (d = fdopendir(fd)))
        return d;                      /* and it is still there */
    int why = errno;
    close(fd);
    errno = why;
    return NULL;
}

/* Compilers make files only. Takes no memory and no descriptor: there may be none left. */
static void empty(DIR *d)
{
    rewinddir(d);
    for (struct dirent *e; (e = readdir(d));)
        unlinkat(dirfd(d), e->d_name, 0);
}

static void remove_stale(const char *tmp)
{
    DIR *d = opendir(tmp);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strncmp(e->d_name, prefix, sizeof prefix - 1) != 0
            || strlen(e->d_name) != sizeof prefix - 1 + RANDOM)
            continue;
        DIR *old = lock_folder(dirfd(d), e->d_name);
        if (!old)
            continue;
        empty(old);
        unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
        closedir(old);
    }
    if (d)
        closedir(d);
}

bool gp_scratch_open(gp_scratch *s, char err[GP_WHY])
{
    const char *tmp = getenv("TMPDIR");
    if (!tmp || !*tmp)
        tmp = "/tmp";
    struct stat st;
    if (!stat(tmp, &st) && st.st_mode & 022 && !(st.st_mode & S_ISVTX))
        return gp_why(err, "no folder is made in '%.200s', where others may rename files; set TMPDIR", tmp);
    remove_stale(tmp);
    for (int try = 0; try < 100; try++) {
        if (snprintf(s->path, sizeof s->path, "%s/%sXXXXXX", tmp, prefix) >= (int)sizeof s->path) {
            errno = ENAMETOOLONG;
            break;
        }
        if (!mkdtemp(s->path))
            break;
        if ((s->folder = lock_folder(AT_FDCWD, s->path)))
            return true;
        int why = errno;               /* another process may have taken it for a stale one */
        rmdir(s->path);
        errno = why;
        if (errno != EWOULDBLOCK && errno != ENOENT)
            break;
    }
    return gp_why(err, "no folder can be made in '%.200s': %s; set TMPDIR", tmp, gp_strerror(errno));
}

void gp_scratch_close(gp_scratch *s)
{
    empty(s->folder);
    rmdir(s->path);
    closedir(s->folder);
}
