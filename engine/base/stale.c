/* stale.c - temporary files: their names, whose they are, and those that processes left
 * which were killed.
 *
 * One is called .NAME.gpipe-PID-N-SUM, where SUM is a check sum of what stands before it: no
 * file of a user's is called so by chance.
 *
 * Who writes one holds a lock on it (flock), which ends with the process, however it ends:
 * a number of a process may be another's by now, or be one on another machine. So a file
 * goes only if nobody holds it, no process here has its number, it is the user's own, and
 * its file system is not one of a network, where a lock may be seen by one machine alone. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "base/filetable.h"
#include "base/path.h"
#include "base/table.h"

bool gp_hold_temporary(int fd)
{
    struct stat st;
    return (!flock(fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
        && (fstat(fd, &st) || st.st_nlink);    /* else it was taken for one that was left */
}

static const char mark[] = ".gpipe-";

void gp_temporary_name(char out[NAME_MAX + 1], const char *name, long pid, int n)
{
    enum { SUM = 9 };                  /* "-" and 8 digits */
    char number[48];
    snprintf(number, sizeof number, "%s%ld-%d", mark, pid, n);
    int keep = NAME_MAX - 1 - SUM - (int)strlen(number);
    int len = snprintf(out, NAME_MAX + 1, ".%.*s%s", keep, name, number);
    uint64_t sum = gp_text_hash(out);
    snprintf(out + len, SUM + 1, "-%08x", (unsigned)(sum ^ sum >> 32));
}

/* The process that made a temporary file of this name, and how long the part of it is that
 * is the file's own; 0: it is none. */
static pid_t maker(const char *name, size_t *len)
{
    char own[NAME_MAX + 1], made[NAME_MAX + 1];
    const char *p = NULL;
    long pid;
    int n;
    for (const char *q = name; (q = strstr(q, mark)); q++)
        p = q;
    if (*name != '.' || !p || p < name + 2 || strlen(name) > NAME_MAX
        || sscanf(p + strlen(mark), "%9ld-%9d-", &pid, &n) != 2 || pid < 1)
        return 0;
    *len = (size_t)(p - name - 1);
    memcpy(own, name + 1, *len), own[*len] = 0;
    gp_temporary_name(made, own, pid, n);
    return strcmp(made, name) ? 0 : (pid_t)pid;
}

static bool is_of_a_network(int folder)
{
    static const unsigned long networks[] = {
        0x6969 /* NFS */, 0x517b /* SMB */, 0xff534d42 /* CIFS */, 0xfe534d42 /* SMB 2 */,
        0x01021997 /* 9P */, 0x00c36400 /* Ceph */, 0x5346414f, 0x6b414653 /* AFS */,
        0x73757245 /* Coda */, 0x0bd00bd0 /* Lustre */, 0x47504653 /* GPFS */,
        0x65735546 /* FUSE */, 0x19830326 /* BeeGFS */,
    };
    struct statfs fs;
    if (fstatfs(folder, &fs))
        return true;
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
        if (((unsigned long)fs.f_type & 0xffffffff) == networks[i])
            return true;
    return false;
}

static void remove_if_stale(int folder, const char *name, pid_t pid, gp_filewriter *by)
{
    struct stat st;
    char path[48];
    if (!kill(pid, 0) || errno != ESRCH)
        return;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    bool ours = !fstat(fd, &st) && st.st_uid == geteuid() && !(by && gp_filetable_is_read(by, &st))
             && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) && !flock(fd, LOCK_EX | LOCK_NB);
    if (ours && S_ISDIR(st.st_mode)) {
        snprintf(path, sizeof path, "/proc/self/fd/%d/.", fd);
        gp_remove_tree(path);          /* but for the folder itself */
        unlinkat(folder, name, AT_REMOVEDIR);
    } else if (ours) {
        unlinkat(folder, name, 0);
    }
    close(fd);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path), 0;
}

void gp_remove_tree(const char *folder)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

char *gp_temporary_folder(const char *in, const char *of, int *fd)
{
    char name[NAME_MAX + 1], *folder = NULL;
    *fd = -1;
    for (int try = 0; *fd < 0 && try < 1000; try++) {
        gp_temporary_name(name, of, getpid(), try);
        free(folder);
        if (asprintf(&folder, "%s/%s", in, name) < 0)
            return NULL;
        bool made = !mkdir(folder, 0700);
        bool opened = made && (*fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0;
        if (opened && gp_hold_temporary(*fd))
            break;
        int why = errno;
        if (opened)                    /* somebody has just taken it for one that was left */
            close(*fd), *fd = -1;
        if (made)
            rmdir(folder);
        errno = why;
        if (made ? !opened : why != EEXIST)
            break;
    }
    if (*fd < 0)
        free(folder), folder = NULL;
    return folder;
}

void gp_remove_stale(const char *folder, gp_filewriter *by)
{
    DIR *d = opendir(folder);
    size_t len;
    pid_t pid;
    int network = -1;                  /* not known yet */
    for (struct dirent *e; d && (e = readdir(d));) {
        if (!(pid = maker(e->d_name, &len)))
            continue;
        if (network < 0)
            network = is_of_a_network(dirfd(d));
        if (network)
            break;
        remove_if_stale(dirfd(d), e->d_name, pid, by);
    }
    if (d)
        closedir(d);
}

/* `pid`: who has it if it is there, else 0. Another user's may not be opened: it is held while he lives. */
static bool is_held(int folder, const char *name, pid_t pid)
{
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == EACCES && pid)
        return !kill(pid, 0) || errno != ESRCH;
    bool held = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    return held;
}

/* Is it a file of this run, of which the table knows what it writes (filetable.h)? */
static bool is_same(const char *other, const char *name, pid_t pid)
{
    return !strcmp(other, name)
        || (pid != getpid() && gp_path_has_number(other) && !gp_path_has_name(other) && gp_path_meets(other, name));
}

/* One that is live has its name, and is still held. A name that is too long to stand in that of
 * a temporary file is not known from others. */
bool gp_is_being_written(const gp_outfile *f, pid_t *pid, char as[NAME_MAX + 1])
{
    size_t n = gp_path_folder(f->path), len;
    const char *name = f->path + n, *own = f->tmp + n;
    char folder[PATH_MAX] = ".";
    if (n)
        memcpy(folder, f->path, n), folder[n] = 0;
    DIR *d = opendir(folder);
    bool held = d && is_held(dirfd(d), name, 0);
    *pid = 0;
    for (struct dirent *e; d && !held && (e = readdir(d));) {
        if (!(*pid = maker(e->d_name, &len)) || !strcmp(e->d_name, own))
            continue;
        memcpy(as, e->d_name + 1, len), as[len] = 0;
        held = is_same(as, name, *pid) && is_held(dirfd(d), e->d_name, *pid);
    }
    if (d)
        closedir(d);
    return held;
}
