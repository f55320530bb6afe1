/* partial.c - what is kept of a file that does not get its name, by a rename alone. Nothing that
 * is there is replaced. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/filetable.h"
#include "base/path.h"

/* The n-th name, from 1, under which something of the file `path` is kept in the folder of
 * `beside`. Safe in a signal handler, as all that gp_filetable_abandon calls. */
static bool kept_name(char out[PATH_MAX], const char *beside, const char *path, int n)
{
    enum { END = 19 };                 /* bytes of the longest end */
    char end[END + 1] = ".partial", *p = end + strlen(end);
    const char *name = path + gp_path_folder(path);
    size_t folder = gp_path_folder(beside), len = strnlen(name, NAME_MAX - END);
    int unit = 1;
    while (n / unit > 9)
        unit *= 10;
    for (*p = '.', p += n > 1; n > 1 && unit; unit /= 10)
        *p++ = (char)('0' + n / unit % 10);
    *p++ = 0;
    if (folder + len + (size_t)(p - end) > PATH_MAX)
        return false;
    memcpy(mempcpy(mempcpy(out, beside, folder), name, len), end, (size_t)(p - end));
    return true;
}

/* As gp_name_anew; where that does not work there is a moment between looking and naming. */
static int name_beside(const char *tmp, const char *path)
{
    struct stat st;
    int bad = gp_name_anew(tmp, path);
    if (!bad || bad == EEXIST)
        return bad;
    return !lstat(path, &st) ? EEXIST : rename(tmp, path) ? errno : 0;
}

/* Keeps what is at `now` of the file `path`, of `by`. */
static bool keep(const char *now, const char *path, gp_filewriter *by)
{
    char name[PATH_MAX];
    int bad = EEXIST;
    for (int n = 1; bad == EEXIST && kept_name(name, now, path, n); n++)
        bad = name_beside(now, name);
    return !bad && strcpy(by->kept_path, name);
}

void gp_outfile_keep(gp_outfile *f)
{
    char now[PATH_MAX];
    bool mine = f->open && !f->in_place && !f->published && f->by && gp_outfile_find(f, now);
    if (mine && keep(now, f->path, f->by)) {
        gp_outfile_let_go(f);
        f->published = true;
    }
    gp_outfile_drop(f);
}

void gp_temporary_end(gp_temporary *t)
{
    if (!atomic_load(&t->is_there))
        return;
    int64_t whole = atomic_load(&t->whole);
    int cut = whole >= 0 ? truncate(t->path, whole) : 0;
    (void)cut;
    if (!atomic_load(&t->is_worth) || !keep(t->path, t->name, t->by))
        unlink(t->path);
    atomic_store(&t->is_there, false);
}

/* Which of the names of the file `path` it is, from 1; 0: none of them. */
static int kept_number(const char *name, const char *path)
{
    const char *dot = strrchr(name, '.');
    char made[PATH_MAX];
    int n = dot ? atoi(dot + 1) : 0;
    n = n > 1 ? n : 1;
    return dot && kept_name(made, "", path, n) && !strcmp(made, name) ? n : 0;
}

int gp_outfile_kept(const gp_outfile *f, char first[PATH_MAX])
{
    char folder[PATH_MAX] = ".";
    struct stat st;
    int lowest = 0, found = 0, n;
    memcpy(folder, f->path, gp_path_folder(f->path));
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        n = kept_number(e->d_name, f->path);
        if (n && !fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode))
            lowest = !found++ || n < lowest ? n : lowest;
    }
    if (d)
        closedir(d);
    return found && kept_name(first, f->path, f->path, lowest) ? found : 0;
}
