/* scratch.c - see scratch.h. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "device/scratch.h"

bool gp_scratch_open(gp_scratch *s, char err[GP_WHY])
{
    const char *tmp = getenv("TMPDIR");
    int fd;
    if (!tmp || !*tmp)
        tmp = "/tmp";
    struct stat st;
    if (!stat(tmp, &st) && st.st_mode & 022 && !(st.st_mode & S_ISVTX))
        return gp_why(err, "no folder is made in '%.200s', where others may rename files; set TMPDIR", tmp);
    gp_remove_stale(tmp, NULL);
    s->path = gp_temporary_folder(tmp, "cc", &fd);
    if (s->path && (s->folder = fdopendir(fd)))
        return true;
    int why = errno;
    if (s->path)
        rmdir(s->path), close(fd), free(s->path);
    return gp_why(err, "no folder can be made in '%.200s': %s; set TMPDIR", tmp, gp_strerror(why));
}

/* Compilers make files only. It takes no memory and no descriptor: there may be none left. */
void gp_scratch_close(gp_scratch *s)
{
    rewinddir(s->folder);
    for (struct dirent *e; (e = readdir(s->folder));)
        unlinkat(dirfd(s->folder), e->d_name, 0);
    rmdir(s->path);
    closedir(s->folder);
    free(s->path);
}
