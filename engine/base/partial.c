/* partial.c - what is kept of a file that does not get its name, by a rename alone. Of what earlier runs kept so there
 * stay two at most: NAME.partial is replaced by what is as long or longer, else NAME.partial.2 is, whatever it has.
 * Nothing else is replaced: no link, nothing that the run reads, or that came while it was writing. */
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

static bool is_regular(const char *path, struct stat *st)
{
    return !lstat(path, st) && S_ISREG(st->st_mode);
}

void gp_outfile_worth(const gp_outfile *f)
{
    gp_temporary *t = f->noted;
    char name[PATH_MAX];
    struct stat st;
    if (!t || atomic_load_explicit(&t->is_worth, memory_order_relaxed))
        return;
    for (int n = 0; n < GP_PARTIALS; n++)
        if (kept_name(name, t->path, t->name, n + 1) && is_regular(name, &st) && st.st_uid == geteuid()
            && !gp_filetable_is_read(t->by, &st))
            t->older[n] = st.st_ino;
    atomic_store_explicit(&t->is_worth, true, memory_order_release);
}

/* May what is at `now` replace the n-th of those that earlier runs kept? */
static bool may_replace(const gp_temporary *t, const char *name, int n, const char *now)
{
    struct stat old, st;
    return n <= GP_PARTIALS && is_regular(name, &old) && old.st_ino == t->older[n - 1]
        && (n == GP_PARTIALS || (!stat(now, &st) && old.st_size <= st.st_size));
}

/* Keeps what is at `now` of the file `path`. */
static bool keep(const char *now, const char *path, gp_temporary *t)
{
    char name[PATH_MAX];
    int bad = EEXIST;
    for (int n = 1; bad == EEXIST && kept_name(name, now, path, n); n++) {
        bad = name_beside(now, name);
        if (bad == EEXIST && may_replace(t, name, n, now))
            bad = rename(now, name) ? errno : 0;
    }
    return !bad && strcpy(t->by->kept_path, name);
}

void gp_outfile_keep(gp_outfile *f)
{
    char now[PATH_MAX];
    bool mine = f->open && !f->in_place && !f->published && f->noted && gp_outfile_find(f, now);
    if (mine && keep(now, f->path, f->noted)) {
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
    if (!atomic_load(&t->is_worth) || !keep(t->path, t->name, t))
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
        if (n && !fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) && (S_ISREG(st.st_mode) || (f->folder && S_ISDIR(st.st_mode))))
            lowest = !found++ || n < lowest ? n : lowest;
    }
    if (d)
        closedir(d);
    return found && kept_name(first, f->path, f->path, lowest) ? found : 0;
}
